//! Where in the user's Python an operation comes from.

use rustc_hash::FxHashSet;

use crate::bytecode::{AttributeId, Code, Field, Tables, code, dialect};

/// What is said of an operation without a place.
pub const UNKNOWN: &str = "an unknown place";

/// The innermost place of a location in the user's files, as `train.py:41:8`, or the names that lead to it where there is no file.
pub fn place(tables: &Tables<'_>, location: AttributeId) -> String {
    use code::builtin as b;
    let mut names: Vec<String> = Vec::new();
    let mut work = vec![location];
    let mut seen = FxHashSet::default();
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let entry = tables.attribute(id);
        let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { continue };
        match (code, &entry.fields[..]) {
            (b::LOC_FILE, [Field::Attribute(file), Field::Unsigned(line), Field::Unsigned(column)]) => {
                return position(tables, *file, &[*line, *column]);
            }
            (b::LOC_FILE_RANGE, [Field::Attribute(file), Field::Count(_), numbers @ ..]) => {
                let numbers = numbers.iter().take(2).filter_map(|field| match field {
                    Field::Unsigned(number) => Some(*number),
                    _ => None,
                });
                return position(tables, *file, &numbers.collect::<Vec<_>>());
            }
            (b::LOC_NAME, [Field::Attribute(name), Field::Attribute(child)]) => {
                names.extend(tables.string(*name).map(|name| String::from_utf8_lossy(name).into_owned()));
                work.push(*child);
            }
            (b::LOC_CALLSITE, [Field::Attribute(callee), Field::Attribute(caller)]) => work.extend([*caller, *callee]),
            (b::LOC_FUSED | b::LOC_FUSED_METADATA, [Field::Count(count), rest @ ..]) => {
                let parts = rest.iter().take(*count as usize).rev().filter_map(|field| match field {
                    Field::Attribute(id) => Some(*id),
                    _ => None,
                });
                work.extend(parts);
            }
            _ => {}
        }
    }
    if names.is_empty() { UNKNOWN.to_owned() } else { format!("`{}`", names.join("/")) }
}

fn position(tables: &Tables<'_>, file: AttributeId, numbers: &[u64]) -> String {
    let file = tables.string(file).map_or_else(|| "?".into(), |file| String::from_utf8_lossy(file).into_owned());
    numbers.iter().fold(file, |text, number| format!("{text}:{number}"))
}
