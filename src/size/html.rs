//! A page that shows a [`Size`] as a treemap: one file, without a network.
//!
//! The page is `page.html`, with the sizes as JSON in it. Its policy allows the style and the script that are written there, by their hashes, and nothing else:
//! after a change of either, `tests/jax/test_package.py` says the new hash, and `tests/page.rs` looks at it in a browser.

use serde::Serialize;

use super::{Level, Size};
use crate::error::{Error, Result};

const PAGE: &str = include_str!("page.html");
/// Where the data goes.
const DATA: &str = "{{data}}";
/// Most rectangles in one; the smallest share one.
const MOST: usize = 500;

/// A rectangle.
#[derive(Serialize)]
struct Node {
    name: String,
    bytes: u64,
    /// What it is, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// Its place in the user's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// What decides its colour; that of the one around it without.
    #[serde(skip_serializing_if = "Option::is_none")]
    section: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inside: Vec<Node>,
}

impl Node {
    fn new(name: impl Into<String>, bytes: u64) -> Self {
        Self { name: name.into(), bytes, about: None, place: None, section: None, inside: Vec::new() }
    }

    fn about(self, about: impl Into<String>) -> Self {
        Self { about: Some(about.into()), ..self }
    }

    fn place(self, place: Option<&str>) -> Self {
        Self { place: place.map(str::to_owned), ..self }
    }

    fn section(self, section: &'static str) -> Self {
        Self { section: Some(section), ..self }
    }

    /// With what is inside, largest first; what is missing is `rest`.
    fn inside(mut self, mut inside: Vec<Node>, rest: &str) -> Self {
        inside.retain(|node| node.bytes > 0);
        inside.sort_by_key(|node| std::cmp::Reverse(node.bytes));
        let missing = self.bytes.saturating_sub(inside.iter().map(|node| node.bytes).sum());
        let smallest = inside.split_off(inside.len().min(MOST));
        if !smallest.is_empty() {
            inside.push(Node::new(format!("{} smaller", smallest.len()), smallest.iter().map(|node| node.bytes).sum()));
        }
        if missing > 0 && !inside.is_empty() {
            inside.push(Node::new(rest, missing));
        }
        inside.sort_by_key(|node| std::cmp::Reverse(node.bytes));
        self.inside = inside;
        self
    }
}

/// The page. `title` names the file.
///
/// # Errors
/// Only those of a bug.
pub fn to_html(size: &Size, title: &str) -> Result<String> {
    let (before, after) = PAGE.split_once(DATA).ok_or_else(|| Error::bug("a page without a place for its data"))?;
    let json = serde_json::to_string(&file(size, title)).map_err(|error| Error::bug(format!("no JSON for it: {error}")))?;
    Ok([before, &without_markup(&json), after].concat())
}

/// JSON that means the same and holds nothing that HTML could take for a tag, a comment or an entity.
fn without_markup(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // They stand in strings alone, where JSON allows this.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => text.push(character),
        }
    }
    text
}

fn file(size: &Size, title: &str) -> Node {
    let container =
        Node::new("container", size.container).section("container").about("names, types, trees and shardings of arguments and results");
    let mut inside = match &size.levels[..] {
        [level] => sections(level),
        levels => levels.iter().map(named_level).collect(),
    };
    inside.push(container);
    Node::new(title, size.bytes).inside(inside, "rest")
}

fn named_level(level: &Level) -> Node {
    let name = match level.level {
        0 => "level 0: the function".to_owned(),
        number => format!("level {number}: gradient"),
    };
    let node = Node::new(name, level.bytes).about("a module");
    let node = if let Some(name) = &level.function_name { node.about(name) } else { node };
    node.inside(sections(level), "rest")
}

fn sections(level: &Level) -> Vec<Node> {
    let section = |(name, bytes): (&'static str, u64)| {
        let node = Node::new(name, bytes).section(name);
        match name {
            "operations" => node.about("the IR section, by function").inside(functions(level), "outside of functions"),
            "constants" => node.about("values of constant operations; equal ones are stored once").inside(constants(level), "others"),
            "locations" => node.about("where operations come from, by file").inside(locations(level), "others"),
            "strings" => node.about("names, texts and configurations, by what names them first").inside(strings(level), "their number"),
            "attributes" => node.about("attributes by kind").inside(kinds(level, false), "others"),
            "types" => node.about("types by kind").inside(kinds(level, true), "others"),
            "offsets" => node.about("the sizes of attributes and types"),
            "names" => node.about("dialects and operation names; their text is among the strings"),
            "properties" => node.about("inherent attributes of operations, by reference; equal ones are stored once"),
            "headers" => node.about("headers and paddings of sections"),
            _ => node,
        }
    };
    level.sections.each().into_iter().filter(|(_, bytes)| *bytes > 0).map(section).collect()
}

fn functions(level: &Level) -> Vec<Node> {
    let function = |function: &super::Function| {
        let retained = function.retained.map_or_else(String::new, |retained| format!(", retains {retained}"));
        let about = format!("{} operations; own {} bytes{retained}", function.operations, function.bytes);
        Node::new(format!("@{}", function.name), function.own.operations).about(about).place(function.place.as_deref())
    };
    level.functions.largest.iter().map(function).collect()
}

fn constants(level: &Level) -> Vec<Node> {
    let constant = |constant: &super::Constant| {
        let splat = if constant.splat { ", one element for all" } else { "" };
        let uses = match (constant.uses, constant.functions) {
            (1, _) => String::new(),
            (uses, 1) => format!(", used {uses} times"),
            (uses, functions) => format!(", used {uses} times in {functions} functions"),
        };
        let about = format!("in @{}{uses}{splat}", constant.function);
        Node::new(&constant.r#type, constant.bytes).about(about).place(constant.place.as_deref())
    };
    level.constants.largest.iter().map(constant).collect()
}

fn locations(level: &Level) -> Vec<Node> {
    let file = |file: &super::LocationFile| {
        let about = format!("{} attributes; {} more bytes of strings", file.count, file.string_bytes);
        Node::new(file.file.as_deref().unwrap_or("without a file"), file.bytes - file.string_bytes).about(about)
    };
    level.locations.largest.iter().map(file).collect()
}

fn kinds(level: &Level, types: bool) -> Vec<Node> {
    let is_wanted = |kind: &&super::AttributeKind| kind.kind.starts_with("type ") == types;
    let kind = |kind: &super::AttributeKind| {
        Node::new(&kind.kind, kind.bytes - kind.string_bytes)
            .about(format!("{} of them; {} more bytes of strings", kind.count, kind.string_bytes))
    };
    level.attributes.largest.iter().filter(is_wanted).map(kind).collect()
}

fn strings(level: &Level) -> Vec<Node> {
    let of_use = |of_use: &super::StringUse| {
        let texts = level.strings.each.largest.iter().filter(|text| text.used_by == of_use.used_by);
        let texts = texts.map(|text| Node::new(&text.text, text.bytes)).collect();
        Node::new(format!("of {}", of_use.used_by), of_use.bytes).about(format!("{} strings", of_use.count)).inside(texts, "others")
    };
    level.strings.uses.largest.iter().map(of_use).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_cannot_end_its_element() {
        let escaped = without_markup("\"</script><!-- & \u{2028}\\\"\"");
        assert_eq!(escaped, "\"\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028\\\"\"");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "</script><!-- & \u{2028}\"");
    }

    #[test]
    fn the_smallest_share_a_rectangle_and_nothing_is_lost() {
        let node =
            Node::new("all", 2_000).inside((0..600).map(|number| Node::new(number.to_string(), u64::from(number > 0))).collect(), "rest");
        assert_eq!(node.inside.iter().map(|node| node.bytes).sum::<u64>(), 2_000);
        assert_eq!((node.inside.len(), &*node.inside[0].name, &*node.inside[1].name), (502, "rest", "99 smaller"));
    }

    #[test]
    fn the_page_has_one_place_for_its_data() {
        assert_eq!(PAGE.matches(DATA).count(), 1);
    }
}
