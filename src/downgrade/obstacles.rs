//! What a version cannot hold, by what it is; and the error that says so.

use std::fmt::Write;

use indexmap::{IndexMap, IndexSet};

use super::needs::Node;
use crate::bytecode::{Bytecode, Code, OpNameId, StablehloVersion, Tables, entry_row};
use crate::error::{Error, Result};
use crate::inspect::View;

/// How many things the error names.
const SHOWN: usize = 10;
/// How many places of each.
const PLACES: usize = 3;

/// Something that came with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct What {
    kind: Kind,
    since: StablehloVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Operation(OpNameId),
    /// An inherent attribute that an operation has to have a value of.
    Property(OpNameId, &'static str),
    /// Something else that an operation has.
    OperationWith(OpNameId, &'static str),
    /// An attribute or a type.
    Entry(Node),
}

impl What {
    /// An operation.
    pub fn operation(name: OpNameId, since: StablehloVersion) -> Self {
        Self { kind: Kind::Operation(name), since }
    }

    /// An operation with an attribute that says something.
    pub fn property(name: OpNameId, attribute: &'static str, since: StablehloVersion) -> Self {
        Self { kind: Kind::Property(name, attribute), since }
    }

    /// An operation that has something else, in words.
    pub fn operation_with(name: OpNameId, has: &'static str, since: StablehloVersion) -> Self {
        Self { kind: Kind::OperationWith(name, has), since }
    }

    /// The version that it came with.
    pub fn since(self) -> StablehloVersion {
        self.since
    }

    /// An attribute or a type.
    pub fn entry(node: Node, since: StablehloVersion) -> Self {
        Self { kind: Kind::Entry(node), since }
    }

    /// The newer of two; the first if they came together.
    pub fn newer(self, other: Self) -> Self {
        if other.since > self.since { other } else { self }
    }

    fn text(self, tables: &Tables<'_>) -> String {
        match self.kind {
            Kind::Operation(name) => format!("`{}`", tables.op_name_text(name)),
            Kind::Property(name, attribute) => format!("`{}` with `{attribute}`", tables.op_name_text(name)),
            Kind::OperationWith(name, has) => format!("`{}` with {has}", tables.op_name_text(name)),
            Kind::Entry(node) => {
                let entry = node.entry(tables);
                let (kind, is_type) = match node {
                    Node::Attribute(_) => ("the attribute", false),
                    Node::Type(_) => ("the type", true),
                };
                let dialect = String::from_utf8_lossy(tables.dialect(entry.dialect));
                let row = match entry.code {
                    Code::Known(code) => entry_row(entry.dialect, is_type, code),
                    _ => None,
                };
                format!("{kind} `{dialect}.{}`", row.map_or("?", |row| row.name))
            }
        }
    }
}

/// Obstacles, with the first operations that hold each, and how many do.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    found: IndexMap<What, (Vec<usize>, usize)>,
}

impl Obstacles {
    /// The operation at a position holds it.
    pub fn add(&mut self, position: usize, what: What) {
        let (first, count) = self.found.entry(what).or_default();
        *count += 1;
        if first.len() < PLACES {
            first.push(position);
        }
    }

    /// The operation at a position holds some things, of which those count that are newer than a version.
    pub fn add_newer(&mut self, position: usize, found: impl IntoIterator<Item = What>, version: StablehloVersion) {
        let newer: IndexSet<What> = found.into_iter().filter(|what| what.since > version).collect();
        newer.into_iter().for_each(|what| self.add(position, what));
    }

    /// Refuses a module that has some.
    pub fn check(&self, bytecode: &Bytecode<'_>, version: StablehloVersion) -> Result<()> {
        let Some(oldest) = self.found.keys().map(|what| what.since).max() else { return Ok(()) };
        let view = View::new(bytecode);
        let mut message = format!("the module cannot be written as StableHLO {version}");
        for (what, (positions, count)) in self.found.iter().take(SHOWN) {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            let places: IndexSet<String> = positions.iter().filter_map(|position| place(&view, *position as u32)).collect();
            let places = places.iter().map(|place| format!(", {place}")).collect::<String>();
            let more = if *count > positions.len() { ", …" } else { "" };
            let _ = write!(message, "\n  {} came with {}: {times}{places}{more}", what.text(&bytecode.tables), what.since);
        }
        if self.found.len() > SHOWN {
            let _ = write!(message, "\n  and {} more", self.found.len() - SHOWN);
        }
        let mut hint = format!("{oldest} is the oldest version that has all of this module");
        if self.found.keys().any(|what| what.since == StablehloVersion::MIXED) {
            hint.push_str("; `--strip-sdy` takes shardings out");
        }
        Err(Error::refused(message).with_hint(hint))
    }
}

/// Where an operation stands: its place in the user's files, and the function of the module.
fn place(view: &View<'_, '_>, position: u32) -> Option<String> {
    let function = Some(view.function_name(position)).filter(|name| name != "?").map(|name| format!("@{name}"));
    match (view.place(view.operation(position)), function) {
        (Some(place), Some(function)) => Some(format!("{place} in {function}")),
        (place, function) => place.or(function),
    }
}
