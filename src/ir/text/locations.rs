//! Locations as text: each one has a name, and is defined once behind the module.

use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::assembly::{Writer, quote};
use crate::bytecode::{AttributeId, Code, Entry, Field, Tables, code, dialect};
use crate::error::Result;

/// What MLIR's parser calls text that has no name.
pub(in super::super) const NAMELESS: &[u8] = b"-";

/// The locations that were named so far.
#[derive(Default)]
pub(super) struct Locations {
    names: FxHashMap<AttributeId, String>,
    definitions: Vec<String>,
}

impl Locations {
    /// The definitions, those that others name first.
    pub(super) fn definitions(&self) -> &[String] {
        &self.definitions
    }

    /// How a location is named. Recurses into those it holds, whose depth the reader of the bytecode has checked.
    pub(super) fn reference(&mut self, writer: &mut Writer<'_, '_>, tables: &Tables<'_>, id: AttributeId) -> Result<String> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let entry = tables.attribute(id);
        let mut text = String::new();
        if entry.is(dialect::BUILTIN, code::builtin::LOC_UNKNOWN) {
            text.push_str("unknown");
            self.names.insert(id, text.clone());
            return Ok(text);
        }
        if !self.plain(&mut text, writer, tables, entry)? {
            // MLIR would make another location of it, so it travels as the metadata of one.
            text.clear();
            text.push_str("fused<");
            writer.attribute_by_fields(&mut text, id)?;
            text.push_str(">[unknown]");
        }
        let name = format!("#loc{}", self.definitions.len());
        self.definitions.push(format!("{name} = loc({text})"));
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// A location as MLIR writes it. `false`: that would not be the same entry.
    fn plain(&mut self, text: &mut String, writer: &mut Writer<'_, '_>, tables: &Tables<'_>, entry: &Entry<'_>) -> Result<bool> {
        use code::builtin as b;
        let Code::Known(code) = entry.code else { return Ok(false) };
        if entry.dialect != dialect::BUILTIN {
            return Ok(false);
        }
        let builtin_string = |id: AttributeId| {
            let entry = tables.attribute(id);
            if entry.is(dialect::BUILTIN, b::STRING) { entry.bytes().map(|bytes| &bytes.0[..]) } else { None }
        };
        match (code, &entry.fields[..]) {
            (b::LOC_FILE, [Field::Attribute(file), Field::Unsigned(line), Field::Unsigned(column)]) => {
                let Some(file) = builtin_string(*file) else { return Ok(false) };
                quote(text, file);
                let _ = write!(text, ":{line}:{column}");
                Ok(u32::try_from(*line.max(column)).is_ok() && file != NAMELESS)
            }
            (b::LOC_FILE_RANGE, [Field::Attribute(file), Field::Count(_), numbers @ ..]) => {
                let Some(file) = builtin_string(*file) else { return Ok(false) };
                quote(text, file);
                let numbers: Vec<_> = numbers.iter().filter_map(number).collect();
                match numbers[..] {
                    [line, column, end] if end != column => _ = write!(text, ":{line}:{column} to :{end}"),
                    [line, column, end_line, end] if end_line != line => _ = write!(text, ":{line}:{column} to {end_line}:{end}"),
                    _ => return Ok(false),
                }
                Ok(file != NAMELESS)
            }
            (b::LOC_NAME, [Field::Attribute(name), Field::Attribute(child)]) => {
                let Some(name) = builtin_string(*name) else { return Ok(false) };
                let child = self.reference(writer, tables, *child)?;
                quote(text, name);
                let _ = write!(text, "({child})");
                Ok(true)
            }
            (b::LOC_CALLSITE, [Field::Attribute(callee), Field::Attribute(caller)]) => {
                let callee = self.reference(writer, tables, *callee)?;
                let caller = self.reference(writer, tables, *caller)?;
                let _ = write!(text, "callsite({callee} at {caller})");
                Ok(true)
            }
            (b::LOC_FUSED, [Field::Count(count), parts @ ..]) if *count > 1 => {
                let is_kept = |id: AttributeId| {
                    let entry = tables.attribute(id);
                    let is_code = |code| matches!(code, b::LOC_CALLSITE | b::LOC_FILE | b::LOC_NAME | b::LOC_FILE_RANGE);
                    entry.dialect == dialect::BUILTIN && matches!(entry.code, Code::Known(code) if is_code(code))
                };
                text.push_str("fused[");
                let (mut names, mut seen) = (Vec::new(), FxHashSet::default());
                for part in parts {
                    let Field::Attribute(part) = part else { return Ok(false) };
                    // MLIR drops what it takes for nothing, and what it has.
                    if !is_kept(*part) || !seen.insert(*part) {
                        return Ok(false);
                    }
                    names.push(self.reference(writer, tables, *part)?);
                }
                text.push_str(&names.join(", "));
                text.push(']');
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

fn number(field: &Field<'_>) -> Option<u32> {
    match field {
        Field::Unsigned(number) => u32::try_from(*number).ok(),
        _ => None,
    }
}
