//! What messages mean: those of JAX and XLA that lead somebody here, our own, and the passes by their names.
//!
//! The texts are docs/messages.md, of which every section begins with the messages that it is about, and the documents of the passes. A message is found by its
//! words, in their order: case, punctuation and backquotes do not count, and `{…}` in a message of the document stands for any words.

use std::collections::HashMap;

use crate::passes::PASSES;

const MESSAGES: &str = include_str!("../docs/messages.md");
/// Most words that `{…}` stands for.
const GAP: usize = 40;
/// Most words of a question that are looked at.
const MOST_WORDS: usize = 20_000;
/// How many entries are proposed where none fits.
const NEAREST: usize = 3;

/// A section: what it is about, and what there is to say.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The messages, with `{…}` for what differs; for a pass its name.
    pub messages: Vec<&'static str>,
    /// Who says them, what they mean and what to do, as Markdown.
    pub text: &'static str,
    /// Whether it is a pass.
    pub is_pass: bool,
}

/// What is known about a message.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The message is that of an entry, and perhaps holds those of others.
    Found(Entry, Vec<Entry>),
    /// It is a part of the messages of several entries.
    Several(Vec<Entry>),
    /// It is none of them; these have rare words in common with it.
    Unknown(Vec<Entry>),
}

/// All entries: messages of others, our own, passes.
pub fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut rest = MESSAGES.split_once("\n## ").map_or("", |(_, rest)| rest);
    while !rest.is_empty() {
        let (section, next) = rest.split_once("\n\n## ").unwrap_or((rest, ""));
        let (head, text) = section.split_once("\n\n").unwrap_or((section, ""));
        entries.push(Entry { messages: head.split("\n## ").map(bare).collect(), text: text.trim_end(), is_pass: false });
        rest = next;
    }
    entries.extend(PASSES.iter().map(|pass| Entry { messages: vec![pass.name], text: pass.doc, is_pass: true }));
    entries
}

/// Explains a message or a part of it, or a pass.
pub fn explain(question: &str) -> Answer {
    let entries = entries();
    let asked: Vec<String> = words(question, false).into_iter().flatten().collect();
    // What somebody copies ends with the message.
    let asked: Vec<&str> = asked.iter().skip(asked.len().saturating_sub(MOST_WORDS)).map(String::as_str).collect();
    // In front of it there may be the name of an exception.
    let without_name = question.split_once(": ").map_or(asked.len(), |(name, _)| words(name, false).len());
    let after = asked.get(without_name..).unwrap_or_default();
    let mut whole: Vec<(usize, &Entry)> = Vec::new();
    let mut part: Vec<(usize, &Entry)> = Vec::new();
    for entry in &entries {
        let messages: Vec<_> = entry.messages.iter().map(|message| words(message, true)).collect();
        if let Some(fit) = messages.iter().filter_map(|message| whole_in(message, &asked)).max() {
            whole.push((fit, entry));
        } else if let Some(fit) = messages.iter().filter_map(|message| part_of(&asked, message).max(part_of(after, message))).max() {
            part.push((fit, entry));
        }
    }
    // The longest first; among alike, the first of the document.
    whole.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
    let mut whole = whole.into_iter().map(|(_, entry)| entry.clone());
    if let Some(best) = whole.next() {
        return Answer::Found(best, whole.collect());
    }
    let most = part.iter().map(|(fit, _)| *fit).max();
    let mut part: Vec<Entry> = part.into_iter().filter(|(fit, _)| Some(*fit) == most).map(|(_, entry)| entry.clone()).collect();
    match (part.pop(), part.is_empty()) {
        (None, _) => Answer::Unknown(nearest(&entries, &asked)),
        (Some(only), true) => Answer::Found(only, part),
        (Some(last), false) => {
            part.push(last);
            Answer::Several(part)
        }
    }
}

/// A message without its heading's marks and backquotes.
fn bare(heading: &'static str) -> &'static str {
    let heading = heading.trim();
    let inside = heading.strip_prefix("`` ").and_then(|heading| heading.strip_suffix(" ``"));
    inside.or_else(|| heading.strip_prefix('`').and_then(|heading| heading.strip_suffix('`'))).unwrap_or(heading)
}

/// The words of a text, in small letters. In a pattern, `{…}` is `None`.
fn words(text: &str, is_pattern: bool) -> Vec<Option<String>> {
    let mut words: Vec<Option<String>> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if is_pattern && let Some(inside) = rest.strip_prefix('{') {
            words.push(None);
            rest = inside.split_once('}').map_or("", |(_, after)| after);
        } else if let Some((word, after)) = rest.split_at_checked(end).filter(|(word, _)| !word.is_empty()) {
            words.push(Some(word.to_lowercase()));
            rest = after;
        } else {
            rest = rest.get(first.len_utf8()..).unwrap_or("");
        }
    }
    words
}

/// How many words of the message stand in the question, if all do, in their order, with gaps where it has them. A message of one word must be all there is.
fn whole_in(message: &[Option<String>], asked: &[&str]) -> Option<usize> {
    let runs: Vec<Vec<&str>> = message
        .split(Option::is_none)
        .map(|run| run.iter().filter_map(Option::as_deref).collect::<Vec<_>>())
        .filter(|run| !run.is_empty())
        .collect();
    let (first, others) = runs.split_first()?;
    let count = runs.iter().map(Vec::len).sum();
    if count == 1 && asked.len() != 1 {
        return None;
    }
    let starts = (0..asked.len()).filter(|start| asked.get(*start..).is_some_and(|rest| rest.starts_with(first)));
    let goes_on = |start: usize| {
        let mut at = start + first.len();
        others.iter().all(|run| {
            let found = (at..=at + GAP).find(|position| asked.get(*position..).is_some_and(|rest| rest.starts_with(run)));
            at = found.unwrap_or(at) + run.len();
            found.is_some()
        })
    };
    starts.into_iter().any(goes_on).then_some(count)
}

/// How many words of what was asked are the message's, if all of it stands in the message, and more than half not in its gaps.
fn part_of(asked: &[&str], message: &[Option<String>]) -> Option<usize> {
    // How many words fit at best, by how far the message was read.
    let mut best: Vec<Option<usize>> = vec![Some(0); message.len() + 1];
    for word in asked {
        let mut next = vec![None; message.len() + 1];
        for (position, (part, &fits)) in message.iter().zip(&best).enumerate() {
            let Some(fits) = fits else { continue };
            let (target, fits) = match part {
                None => (position, fits),
                Some(part) if part == word => (position + 1, fits + 1),
                Some(_) => continue,
            };
            if let Some(slot) = next.get_mut(target) {
                *slot = (*slot).max(Some(fits));
            }
        }
        // A gap may stand for nothing, and for no more.
        for (position, _) in message.iter().enumerate().filter(|(_, part)| part.is_none()) {
            let here = next.get(position).copied().flatten();
            if let Some(slot) = next.get_mut(position + 1) {
                *slot = (*slot).max(here);
            }
        }
        best = next;
    }
    best.into_iter().flatten().max().filter(|fits| fits * 2 > asked.len())
}

/// The entries that share the rarest words with the question.
fn nearest(entries: &[Entry], asked: &[&str]) -> Vec<Entry> {
    let words_of = |entry: &Entry| {
        let mut words: Vec<String> = entry.messages.iter().flat_map(|message| words(message, true)).flatten().collect();
        words.sort();
        words.dedup();
        words
    };
    let mut often: HashMap<String, usize> = HashMap::new();
    for word in entries.iter().flat_map(words_of) {
        *often.entry(word).or_default() += 1;
    }
    let mut scored: Vec<(usize, &Entry)> = Vec::new();
    for entry in entries {
        let shared = words_of(entry).into_iter().filter(|word| asked.contains(&word.as_str()));
        let score: usize = shared.map(|word| 1_000 / often.get(&word).copied().unwrap_or(1)).sum();
        if score > 0 {
            scored.push((score, entry));
        }
    }
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(NEAREST).map(|(_, entry)| entry.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(question: &str) -> String {
        match explain(question) {
            Answer::Found(entry, _) => entry.messages[0].to_owned(),
            other => panic!("{question}: {other:?}"),
        }
    }

    #[test]
    fn every_entry_has_a_text_and_is_found_by_each_of_its_messages() {
        let entries = entries();
        assert!(entries.len() > PASSES.len() + 40);
        for entry in &entries {
            assert!(
                entry.text.contains("From ") || entry.text.starts_with("The kind of") || entry.is_pass || entry.text.starts_with("A note"),
                "{entry:?}"
            );
            for message in &entry.messages {
                assert!(!message.contains("##") && !message.starts_with('`') || message.matches('`').count() % 2 == 0, "{message}");
                let asked = message.replace("{platform}", "cuda").replace("{platforms}", "('cpu', 'cuda')").replace("{n}", "12");
                let asked = asked.replace(['{', '}'], "`");
                assert_eq!(found(&asked), entry.messages[0], "{asked}");
                assert_eq!(found(&asked.to_uppercase().replace('`', "'")), entry.messages[0]);
            }
        }
    }

    #[test]
    fn messages_are_found_in_what_is_around_them_and_by_a_part() {
        for (asked, expected) in [
            ("fold-cases", "fold-cases"),
            ("Prune", "prune"),
            ("multi-platform lowering for", "multi-platform lowering for python_callback"),
            ("host_callbacks is not", "serialization of host_callbacks is not yet implemented"),
            (
                "INVALID_ARGUMENT: Execution supplied 3 arguments but compiled program expected 4\n",
                "Execution supplied {n} arguments but compiled program expected {m}",
            ),
            ("NotImplementedError: serialization of host_callbacks", "serialization of host_callbacks is not yet implemented"),
            ("supplied 1 arguments but", "Execution supplied {n} arguments but compiled program expected {m}"),
            ("partitioned callback NOT implemented on metal", "Partitioned callback not implemented on {platform} backend."),
            (
                "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: `buffer_callback` not supported on tpu backend.",
                "`buffer_callback` not supported on {platform} backend.",
            ),
            (
                "error: cannot split `m`\n\nCaused by:\n    0: the export has no platform `rocm`\n\nhint: it has `cpu`, `tpu`\n",
                "the export has no platform {platform}",
            ),
            ("format", "format"),
        ] {
            assert_eq!(found(asked), expected, "{asked}");
        }
    }

    #[test]
    fn a_part_of_several_messages_finds_them_all() {
        let Answer::Several(entries) = explain("callbacks") else { panic!("several") };
        assert!(entries.len() > 2);
        let Answer::Found(_, also) = explain("the export has no platform `x`, and it exists") else { panic!("found") };
        assert_eq!(also[0].messages[0], "it exists");
    }

    #[test]
    fn what_is_unknown_has_neighbours_at_most() {
        for (asked, expected) in [("fold-case", "fold-cases"), ("python_callback is bad", "multi-platform lowering for python_callback")] {
            let Answer::Unknown(nearest) = explain(asked) else { panic!("{asked} is unknown") };
            assert_eq!(nearest[0].messages[0], expected);
            assert!(nearest.len() <= NEAREST);
        }
        for asked in ["", "…", "tpu", "12", "{n}", &"xyzzy ".repeat(100_000)] {
            assert!(matches!(explain(asked), Answer::Unknown(_)), "{}", asked.len());
        }
    }
}
