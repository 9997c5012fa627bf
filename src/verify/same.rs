//! Attributes and types of two modules: which of one is which of the other, and how they look.

use rustc_hash::FxHashMap;

use crate::bytecode::{AttributeId, Bytecode, DialectId, Entry, Field, Tables, TypeId};
use crate::ir::assembly::{Constants, Form, Writer};

/// Characters that a message shows of an attribute.
const SHOWN: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Id {
    Attribute(AttributeId),
    Type(TypeId),
}

/// Finds for what is in one module what is the same in another. Equal entries of one module are one entry, so each has at most one counterpart.
pub(super) struct Same<'m, 'a> {
    left: &'m Tables<'a>,
    right: &'m Tables<'a>,
    /// What was found; `None` for what the other module does not have.
    found: FxHashMap<Id, Option<Id>>,
}

impl<'m, 'a> Same<'m, 'a> {
    pub(super) fn new(left: &'m Bytecode<'a>, right: &'m Bytecode<'a>) -> Self {
        Self { left: &left.tables, right: &right.tables, found: FxHashMap::default() }
    }

    pub(super) fn attributes(&mut self, left: AttributeId, right: AttributeId) -> bool {
        self.find(Id::Attribute(left)) == Some(Id::Attribute(right))
    }

    pub(super) fn types(&mut self, left: TypeId, right: TypeId) -> bool {
        self.find(Id::Type(left)) == Some(Id::Type(right))
    }

    /// What is inside comes first; a stack says what waits for it.
    fn find(&mut self, root: Id) -> Option<Id> {
        let left = self.left;
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            if !self.found.contains_key(&id) {
                let waiting = work.len();
                let entry = entry(left, id);
                work.extend(entry.attributes().map(Id::Attribute).filter(|inner| !self.found.contains_key(inner)));
                work.extend(entry.types().map(Id::Type).filter(|inner| !self.found.contains_key(inner)));
                if work.len() > waiting {
                    continue;
                }
                let found = self.counterpart(id, entry);
                self.found.insert(id, found);
            }
            work.pop();
        }
        self.found.get(&root).copied().flatten()
    }

    /// The same entry in the other module, given what is inside it.
    fn counterpart(&self, id: Id, entry: &Entry<'a>) -> Option<Id> {
        let mut fields = entry.fields.clone();
        for field in &mut fields {
            match field {
                Field::Attribute(inner) => match self.found.get(&Id::Attribute(*inner)) {
                    Some(Some(Id::Attribute(found))) => *inner = *found,
                    _ => return None,
                },
                Field::Type(inner) => match self.found.get(&Id::Type(*inner)) {
                    Some(Some(Id::Type(found))) => *inner = *found,
                    _ => return None,
                },
                _ => {}
            }
        }
        let dialect = self.dialect(entry.dialect)?;
        let wanted = Entry { dialect, code: entry.code, identity: entry.identity, fields };
        match id {
            Id::Attribute(_) => self.right.find_attribute(&wanted).map(Id::Attribute),
            Id::Type(_) => self.right.find_type(&wanted).map(Id::Type),
        }
    }

    pub(super) fn dialect(&self, left: DialectId) -> Option<DialectId> {
        self.right.find_dialect(self.left.dialect(left))
    }
}

fn entry<'m, 'a>(tables: &'m Tables<'a>, id: Id) -> &'m Entry<'a> {
    match id {
        Id::Attribute(id) => tables.attribute(id),
        Id::Type(id) => tables.r#type(id),
    }
}

/// An attribute as messages show it.
pub(super) fn attribute_text(bytecode: &Bytecode<'_>, id: AttributeId) -> String {
    let mut text = String::new();
    let written = writer(bytecode).attribute(&mut text, id);
    shown(if written.is_ok() { text } else { "…".to_owned() })
}

/// A type as messages show it.
pub(super) fn type_text(bytecode: &Bytecode<'_>, id: TypeId) -> String {
    let mut text = String::new();
    let written = writer(bytecode).r#type(&mut text, id);
    shown(if written.is_ok() { text } else { "…".to_owned() })
}

fn writer<'m, 'a>(bytecode: &'m Bytecode<'a>) -> Writer<'m, 'a> {
    Writer::new(&bytecode.tables, Form::Stablehlo, Constants::Hashed(16), bytecode.tree.operations.len())
}

/// Text that is not too long for a message.
pub(super) fn shown(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
