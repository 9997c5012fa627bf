//! Types in a few characters: `f32[16,?]`.

use crate::bytecode::{Bytecode, Code, Entry, Field, TypeId, dialect, entry_row};

/// A tensor type as element type and shape; another type by its name.
pub(crate) fn text(bytecode: &Bytecode<'_>, id: TypeId) -> String {
    let Some((shape, element)) = bytecode.tables.tensor(id) else { return name(bytecode.tables.r#type(id)) };
    let dimension = |&size: &i64| if size == i64::MIN { "?".to_owned() } else { size.to_string() };
    format!("{}[{}]", element_name(bytecode, element), shape.iter().map(dimension).collect::<Vec<_>>().join(","))
}

fn element_name(bytecode: &Bytecode<'_>, id: TypeId) -> String {
    let entry = bytecode.tables.r#type(id);
    match (name(entry), entry.types().next()) {
        (name, Some(part)) if name == "complex" => format!("complex<{}>", self::name(bytecode.tables.r#type(part))),
        (name, _) => name,
    }
}

fn name(entry: &Entry<'_>) -> String {
    match (entry.code, &entry.fields[..]) {
        (Code::Text, [Field::String(text), ..]) => String::from_utf8_lossy(&text.0).into_owned(),
        // MLIR keeps the width above two bits for the sign.
        (Code::Known(_), [Field::Unsigned(width)]) if entry.dialect == dialect::BUILTIN => {
            format!("{}i{}", ["", "s", "u"].get((width & 3) as usize).unwrap_or(&""), width >> 2)
        }
        (Code::Known(code), _) => entry_row(entry.dialect, true, code).map_or("?", |row| row.name.trim_end_matches("_v1")).to_owned(),
        _ => "?".to_owned(),
    }
}
