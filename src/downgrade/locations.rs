//! Locations for readers that know no ranges: a range becomes the point that it begins with.
//!
//! StableHLO leaves this to a pass of its own, `stablehlo-compatibility-expander`.

use crate::bytecode::{AttributeId, Bytecode, Code, Entry, Field, code, dialect};

/// Makes points of the ranges in all locations.
pub(super) fn make_points(bytecode: &mut Bytecode<'_>) {
    let tables = &mut bytecode.tables;
    // What an entry names stands before it in the table.
    let mut points: Vec<AttributeId> = Vec::with_capacity(tables.attribute_count());
    for id in (0..tables.attribute_count() as u32).map(AttributeId) {
        let point = match point(tables.attribute(id), &points) {
            Some(entry) => tables.intern_attribute(entry),
            None => id,
        };
        points.push(point);
    }
    let operations = bytecode.tree.operations.iter_mut().map(|operation| &mut operation.location);
    for location in operations.chain(&mut bytecode.tree.argument_locations) {
        *location = points[location.index()];
    }
}

/// A location with points for its ranges. `None`: it has none, or is no location.
fn point<'a>(entry: &Entry<'a>, points: &[AttributeId]) -> Option<Entry<'a>> {
    use code::builtin as b;
    let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { return None };
    match (code, &entry.fields[..]) {
        (b::LOC_FILE_RANGE, [file, Field::Count(_), numbers @ ..]) => {
            let number = |index: usize| numbers.get(index).cloned().unwrap_or(Field::Unsigned(0));
            Some(Entry::new(dialect::BUILTIN, b::LOC_FILE, [file.clone(), number(0), number(1)]))
        }
        (b::LOC_CALLSITE | b::LOC_NAME | b::LOC_FUSED | b::LOC_FUSED_METADATA, fields) => {
            let mut made = entry.clone();
            for field in &mut made.fields {
                if let Field::Attribute(id) = field {
                    *id = points.get(id.index()).copied().unwrap_or(*id);
                }
            }
            (made.fields[..] != *fields).then_some(made)
        }
        _ => None,
    }
}
