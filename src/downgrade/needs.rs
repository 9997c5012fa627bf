//! The version that attributes and types need, with all that they are made of.

use rustc_hash::FxHashMap;

use super::obstacles::What;
use crate::bytecode::{AttributeId, Code, Entry, Field, StablehloVersion, Tables, TypeId, dialect, entry_row};

/// An attribute or a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Attribute(AttributeId),
    Type(TypeId),
}

impl Node {
    pub fn entry<'t, 'a>(self, tables: &'t Tables<'a>) -> &'t Entry<'a> {
        match self {
            Self::Attribute(id) => tables.attribute(id),
            Self::Type(id) => tables.r#type(id),
        }
    }
}

/// What entries need. Each is looked at once, however often it is used.
pub(super) struct Needs<'t, 'a> {
    tables: &'t Tables<'a>,
    known: FxHashMap<Node, What>,
    /// Of dictionaries of operations, where it is the values that count.
    dictionaries: FxHashMap<AttributeId, Option<What>>,
}

impl<'t, 'a> Needs<'t, 'a> {
    pub fn new(tables: &'t Tables<'a>) -> Self {
        Self { tables, known: FxHashMap::default(), dictionaries: FxHashMap::default() }
    }

    /// The newest that an attribute is made of.
    pub fn attribute(&mut self, id: AttributeId) -> Option<What> {
        self.of(Node::Attribute(id))
    }

    /// The newest that the values in the dictionary of an operation are made of.
    pub fn dictionary(&mut self, id: AttributeId) -> Option<What> {
        if let Some(known) = self.dictionaries.get(&id) {
            return *known;
        }
        let tables = self.tables;
        let values = tables.dictionary(id).into_iter().flatten();
        let newest = values.filter_map(|(_, value)| self.attribute(value)).reduce(What::newer);
        self.dictionaries.insert(id, newest);
        newest
    }

    /// The newest that a type is made of.
    pub fn r#type(&mut self, id: TypeId) -> Option<What> {
        self.of(Node::Type(id))
    }

    fn of(&mut self, root: Node) -> Option<What> {
        let mut work = vec![root];
        while let Some(&node) = work.last() {
            let waiting = work.len();
            if !self.known.contains_key(&node) {
                work.extend(parts(node.entry(self.tables)).filter(|part| !self.known.contains_key(part)));
                if work.len() > waiting {
                    continue;
                }
                let newest =
                    parts(node.entry(self.tables)).filter_map(|part| self.known.get(&part).copied()).fold(self.own(node), What::newer);
                self.known.insert(node, newest);
            }
            work.pop();
        }
        self.known.get(&root).copied()
    }

    /// What an entry needs without its parts.
    fn own(&self, node: Node) -> What {
        let entry = node.entry(self.tables);
        let since = match (entry.dialect, entry.code) {
            (dialect::VHLO, Code::Known(code)) => entry_row(dialect::VHLO, matches!(node, Node::Type(_)), code).map(|row| row.since),
            (dialect::VHLO, _) => None,
            _ => Some(StablehloVersion::MIXED),
        };
        // Of what is not known, nobody says since when it is there.
        What::entry(node, since.unwrap_or(StablehloVersion::NEWEST))
    }
}

fn parts<'e>(entry: &'e Entry<'_>) -> impl Iterator<Item = Node> + 'e {
    entry.fields.iter().filter_map(|field| match field {
        Field::Attribute(id) => Some(Node::Attribute(*id)),
        Field::Type(id) => Some(Node::Type(*id)),
        _ => None,
    })
}
