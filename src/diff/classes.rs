//! Attributes and types of two modules under common numbers: two have the same number if, and only if, they are the same. `distinct` attributes, of which
//! JAX writes none, are the same if they hold the same: a module tells them apart by nothing that another module would have.

#![allow(clippy::indexing_slicing, reason = "an id is a position in the tables at hand, for each of which there is a number")]

use std::collections::HashMap;

use crate::bytecode::{AttributeId, Bytecode, Bytes, Code, DialectId, Entry, Field, Tables, TypeId, code, dialect};

/// Other names of symbols.
pub(super) type Renamed<'b> = HashMap<&'b [u8], &'b [u8]>;

const UNKNOWN: u32 = u32::MAX;

/// The numbers of one module.
pub(super) struct Classes {
    attributes: Vec<u32>,
    types: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Id {
    Attribute(AttributeId),
    Type(TypeId),
}

impl Classes {
    pub(super) fn attribute(&self, id: AttributeId) -> u32 {
        self.attributes[id.index()]
    }

    pub(super) fn r#type(&self, id: TypeId) -> u32 {
        self.types[id.index()]
    }

    fn of(&mut self, id: Id) -> &mut u32 {
        match id {
            Id::Attribute(id) => &mut self.attributes[id.index()],
            Id::Type(id) => &mut self.types[id.index()],
        }
    }
}

/// Numbers the entries of two modules. Symbols of the first one that are `renamed` count as if they had their other name.
pub(super) fn classes<'a>(a: &Bytecode<'a>, b: &Bytecode<'a>, renamed: &Renamed<'_>) -> [Classes; 2] {
    let mut numbers = Numbers { dialects: HashMap::new(), entries: HashMap::new(), next: 0 };
    [numbers.classes(&a.tables, renamed), numbers.classes(&b.tables, &Renamed::new())]
}

struct Numbers<'a> {
    dialects: HashMap<Vec<u8>, DialectId>,
    /// Entries whose fields are such numbers; whether one is a type tells it apart.
    entries: HashMap<(bool, Entry<'a>), u32>,
    next: u32,
}

impl<'a> Numbers<'a> {
    fn classes(&mut self, tables: &Tables<'a>, renamed: &Renamed<'_>) -> Classes {
        let mut classes = Classes { attributes: vec![UNKNOWN; tables.attribute_count()], types: vec![UNKNOWN; tables.type_count()] };
        let attributes = (0..tables.attribute_count() as u32).map(|id| Id::Attribute(AttributeId(id)));
        let types = (0..tables.type_count() as u32).map(|id| Id::Type(TypeId(id)));
        let mut work = Vec::new();
        for id in types.chain(attributes) {
            // What is inside comes first; a stack says what waits for it.
            work.push(id);
            while let Some(&id) = work.last() {
                if *classes.of(id) == UNKNOWN {
                    let waiting = work.len();
                    let entry = match id {
                        Id::Attribute(id) => tables.attribute(id),
                        Id::Type(id) => tables.r#type(id),
                    };
                    work.extend(entry.attributes().filter(|id| classes.attributes[id.index()] == UNKNOWN).map(Id::Attribute));
                    work.extend(entry.types().filter(|id| classes.types[id.index()] == UNKNOWN).map(Id::Type));
                    if work.len() > waiting {
                        continue;
                    }
                    *classes.of(id) = self.number(tables, id, entry, &classes, renamed);
                }
                work.pop();
            }
        }
        classes
    }

    fn number(&mut self, tables: &Tables<'a>, id: Id, entry: &Entry<'a>, classes: &Classes, renamed: &Renamed<'_>) -> u32 {
        let fresh = self.next;
        // What it refers to is not known, or it was left out: it is the same as nothing else.
        let is_elided = entry.is(dialect::VHLO, code::vhlo::TENSOR) && entry.fields.last() == Some(&Field::Absent);
        if entry.code == Code::Opaque || is_elided {
            self.next += 1;
            return fresh;
        }
        let count = self.dialects.len() as u32;
        let dialect = *self.dialects.entry(tables.dialect(entry.dialect).to_vec()).or_insert(DialectId(count));
        let mut fields = entry.fields.clone();
        for field in &mut fields {
            match field {
                Field::Attribute(id) => *id = AttributeId(classes.attribute(*id)),
                Field::Type(id) => *id = TypeId(classes.r#type(*id)),
                _ => {}
            }
        }
        if let (Some(name), Some(first)) = (symbol(tables, entry), fields.first_mut()) {
            let name = renamed.get(name).copied().unwrap_or(name);
            *first = Field::String(Bytes(name.to_vec().into()));
        }
        let entry = Entry { dialect, code: entry.code, identity: 0, fields };
        let number = *self.entries.entry((matches!(id, Id::Type(_)), entry)).or_insert(fresh);
        self.next += u32::from(number == fresh);
        number
    }
}

/// The symbol that an entry names with its first field.
fn symbol<'t>(tables: &'t Tables<'_>, entry: &'t Entry<'_>) -> Option<&'t [u8]> {
    use code::builtin as b;
    match (entry.dialect, entry.code, &entry.fields[..]) {
        (dialect::BUILTIN, Code::Known(b::FLAT_SYMBOL_REF | b::SYMBOL_REF), [Field::Attribute(name), ..])
        | (dialect::VHLO, Code::Known(code::vhlo::REPLICA_GROUP_MESH_AXES), [Field::Attribute(name), ..]) => tables.string(*name),
        _ => None,
    }
}
