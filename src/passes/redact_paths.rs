#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]
#![doc = include_str!("redact_paths.md")]

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::locations::relocate;
use super::{Changes, Options, Pass};
use crate::bytecode::{AttributeId, Code, Entry, Field, code, dialect};
use crate::error::Result;
use crate::ir::{Program, Session};

pub const PASS: Pass = Pass {
    name: "redact-paths",
    summary: "Take the directories from the file names in locations",
    doc: include_str!("redact_paths.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let session = program.session;
    let mut redaction = Redaction { session, known: FxHashMap::default(), changed: FxHashSet::default() };
    relocate(program, |location| {
        let before = session.attribute_id(location)?;
        let after = redaction.location(before);
        Ok(if after == before { location } else { session.location(after) })
    })?;
    Ok(Changes { paths_redacted: redaction.changed.len(), ..Changes::default() })
}

/// The pass under way. It works on entries, not on what MLIR makes of them, since some locations are no more than a handle there.
struct Redaction<'s, 'a> {
    session: &'s Session<'a>,
    /// What became of each location, so that what is shared is looked at once.
    known: FxHashMap<AttributeId, AttributeId>,
    /// The strings that were cut, and the locations that became unknown.
    changed: FxHashSet<AttributeId>,
}

impl Redaction<'_, '_> {
    /// What becomes of a location, and first of those inside it.
    fn location(&mut self, root: AttributeId) -> AttributeId {
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            let waiting = work.len();
            if !self.known.contains_key(&id) {
                work.extend(inner(self.session.tables().attribute(id)).filter(|inner| !self.known.contains_key(inner)));
                if work.len() > waiting {
                    continue;
                }
                let made = self.rebuild(id);
                self.known.insert(id, made);
            }
            work.pop();
        }
        self.known.get(&root).copied().unwrap_or(root)
    }

    /// A location with its own text cut, of locations that are known already.
    fn rebuild(&mut self, id: AttributeId) -> AttributeId {
        let mut entry = self.session.tables().attribute(id).clone();
        let Some(parts) = parts(&entry) else {
            self.changed.insert(id);
            return self.session.add_attribute(Entry::new(dialect::BUILTIN, code::builtin::LOC_UNKNOWN, [])).0;
        };
        for field in &mut entry.fields[parts] {
            if let Field::Attribute(inner) = field {
                *inner = self.known.get(inner).copied().unwrap_or(*inner);
            }
        }
        if let Some(Field::Attribute(text)) = entry.fields.first_mut() {
            *text = self.text(*text, entry.code);
        }
        self.session.add_attribute(entry).0
    }

    /// The text that a location of some kind begins with, cut. What is no text stays.
    fn text(&mut self, id: AttributeId, kind: Code) -> AttributeId {
        let tables = self.session.tables();
        let Some(text) = tables.string(id) else { return id };
        let cut = match kind {
            Code::Known(code::builtin::LOC_FILE | code::builtin::LOC_FILE_RANGE) => base_name(text).to_vec(),
            Code::Known(code::builtin::LOC_NAME) => cut_words(text),
            _ => return id,
        };
        if cut == text {
            return id;
        }
        drop(tables);
        self.changed.insert(id);
        self.session.add_string(&cut)
    }
}

/// Where among its fields the locations are that a location is made of. `None` if it is not known how it is encoded.
fn parts(entry: &Entry<'_>) -> Option<Range<usize>> {
    use code::builtin as b;
    let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { return None };
    match (code, &entry.fields[..]) {
        (b::LOC_UNKNOWN, []) => Some(0..0),
        (b::LOC_FILE | b::LOC_FILE_RANGE, [_, ..]) => Some(0..0),
        (b::LOC_NAME, [_, _]) => Some(1..2),
        (b::LOC_CALLSITE, [_, _]) => Some(0..2),
        (b::LOC_FUSED | b::LOC_FUSED_METADATA, [Field::Count(count), rest @ ..]) => {
            let count = *count as usize;
            (count <= rest.len()).then_some(1..1 + count)
        }
        _ => None,
    }
}

/// The locations that a location is made of.
fn inner<'e>(entry: &'e Entry<'_>) -> impl Iterator<Item = AttributeId> + 'e {
    let fields = parts(entry).map_or(&[][..], |parts| &entry.fields[parts]);
    fields.iter().filter_map(|field| match field {
        Field::Attribute(id) => Some(*id),
        _ => None,
    })
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// A path without its directories.
fn base_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| !is_separator(byte)).map_or(0, |last| last + 1);
    let start = path[..end].iter().rposition(is_separator).map_or(0, |last| last + 1);
    &path[start..end]
}

/// A name whose words lose their directories where they are paths of Python files.
fn cut_words(name: &[u8]) -> Vec<u8> {
    let words = name.split_inclusive(ends_word).map(|word| if is_python_path(word) { last_part(word) } else { word });
    words.collect::<Vec<_>>().concat()
}

fn ends_word(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'=' | b',')
}

/// Whether a word ends like the path of a Python file: `/home/me/train.py`, `proj/train.py:5:11]`.
fn is_python_path(word: &[u8]) -> bool {
    let is_place = |byte: &u8| ends_word(byte) || matches!(byte, b'0'..=b'9' | b':' | b')' | b']' | b'}' | b'>');
    let end = word.iter().rposition(|byte| !is_place(byte)).map_or(0, |last| last + 1);
    word[..end].ends_with(b".py")
}

/// What stands behind the last separator.
fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(is_separator).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_file_keeps_its_own_name() {
        for (path, name) in [
            ("/home/me/proj/train.py", "train.py"),
            ("proj/train.py", "train.py"),
            ("../train.py", "train.py"),
            (r"C:\Users\me\my train.py", "my train.py"),
            (r"\\host\share/train", "train"),
            ("/home/me/", "me"),
            ("//", ""),
            ("train.py", "train.py"),
            ("<ipython-input-3-0a1b>", "<ipython-input-3-0a1b>"),
            ("", ""),
        ] {
            assert_eq!(text(base_name(path.as_bytes())), name);
            assert_eq!(text(base_name(name.as_bytes())), name);
        }
    }

    #[test]
    fn a_name_loses_the_directories_of_python_files_alone() {
        for (name, cut) in [
            ("jit(f)/while/body/add", "jit(f)/while/body/add"),
            ("vjp_nested.<locals>.f", "vjp_nested.<locals>.f"),
            ("jit(f)/p[src=f at /home/me/k.py:12 n=3]", "jit(f)/p[src=f at k.py:12 n=3]"),
            ("jit(f)/p[src='C:\\me\\k.py', path=/a/b]", "jit(f)/p[src='k.py', path=/a/b]"),
            ("jit(f)/p[<f at proj/k.py:12:3>]", "jit(f)/p[<f at k.py:12:3>]"),
            ("/home/me/k.py", "k.py"),
            ("k.py", "k.py"),
            ("jit(f)/happy", "jit(f)/happy"),
        ] {
            assert_eq!(text(&cut_words(name.as_bytes())), cut);
            assert_eq!(text(&cut_words(cut.as_bytes())), cut);
        }
    }
}
