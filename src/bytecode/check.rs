//! What the encoding allows and the format forbids: shapes, element data, kinds of types. MLIR's C++ reader leaves these unchecked.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use super::arity::Count;
use super::tables::{AttributeId, Code, Entry, Field, Kind, OpNameId, OpRow, Tables, TypeId, dialect, entry_row};
use super::tree::{OpTree, Operation, Span};
use super::{Bytecode, builtin, vhlo};
use crate::error::{Error, Result};
use crate::reader::MAX_ATTRIBUTE_DEPTH;

/// The dimensions of a tensor type, builtin or vhlo.
pub(super) fn shape(entry: &Entry<'_>) -> Option<impl Iterator<Item = i64>> {
    use builtin::code as b;
    use vhlo::code as v;
    let skip = match (entry.dialect, entry.code) {
        (dialect::BUILTIN, Code::Known(b::TENSOR_TYPE)) | (dialect::VHLO, Code::Known(v::TENSOR_TYPE)) => 0,
        (dialect::BUILTIN, Code::Known(b::TENSOR_WITH_ENCODING_TYPE)) | (dialect::VHLO, Code::Known(v::TENSOR_WITH_ENCODING_TYPE)) => 1,
        _ => return None,
    };
    Some(entry.fields.iter().skip(skip).filter_map(|field| match field {
        Field::Signed(dimension) => Some(*dimension),
        _ => None,
    }))
}

/// How many elements a type of static shape has. `None` for other types, and where the number does not fit.
pub(super) fn element_count(entry: &Entry<'_>) -> Option<u64> {
    shape(entry)?.try_fold(1u64, |count, dimension| count.checked_mul(u64::try_from(dimension).ok()?))
}

/// The element type of a tensor type.
pub(super) fn element_type(entry: &Entry<'_>) -> Option<TypeId> {
    let _ = shape(entry)?;
    entry.types().last()
}

/// The width of an integer or float type, if it is a type of which `attribute` (by its row's name) can hold a value.
pub(super) fn bit_width(entry: &Entry<'_>, attribute: &str) -> Option<u64> {
    use vhlo::code as v;
    let wants_float = attribute.starts_with("float");
    if entry.code == Code::Text {
        // Builtin floats that were too young for a code when the file was written, e.g. `f8E4M3FN` and `tf32`.
        let text = std::str::from_utf8(&entry.bytes()?.0).ok()?;
        return match text {
            _ if !wants_float => None,
            "tf32" => Some(19),
            _ => text.strip_prefix('f')?.split('E').next()?.parse().ok(),
        };
    }
    let Code::Known(code) = entry.code else { return None };
    let integer = match (entry.dialect, code, &entry.fields[..]) {
        (dialect::BUILTIN, builtin::code::INTEGER_TYPE, [Field::Unsigned(width)]) => Some(width >> 2),
        (dialect::BUILTIN, builtin::code::INDEX_TYPE, _) | (dialect::VHLO, v::INDEX_TYPE | v::I64_TYPE | v::UI64_TYPE, _) => Some(64),
        (dialect::VHLO, v::I4_TYPE | v::UI4_TYPE, _) => Some(4),
        (dialect::VHLO, v::I8_TYPE | v::UI8_TYPE, _) => Some(8),
        (dialect::VHLO, v::I16_TYPE | v::UI16_TYPE, _) => Some(16),
        (dialect::VHLO, v::I32_TYPE | v::UI32_TYPE, _) => Some(32),
        _ => None,
    };
    if wants_float { float_width(entry) } else { integer }
}

/// The width of a float type, builtin or vhlo, from its mnemonic.
fn float_width(entry: &Entry<'_>) -> Option<u64> {
    let Code::Known(code) = entry.code else { return None };
    if !matches!(entry.dialect, dialect::BUILTIN | dialect::VHLO) {
        return None;
    }
    let name = entry_row(entry.dialect, true, code)?.name;
    match name.trim_end_matches("_v1") {
        "bf16" => Some(16),
        "tf32" | "tf31" => Some(19),
        name => {
            let digits: String = name.strip_prefix('f')?.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        }
    }
}

/// Bytes that one element takes in `tensor_v1`, which packs nothing but booleans. `None`: not an element type.
fn element_bytes(tables: &Tables<'_>, id: TypeId) -> Option<ElementSize> {
    use vhlo::code as v;
    let entry = tables.r#type(id);
    if entry.is(dialect::VHLO, v::BOOL_TYPE) {
        return Some(ElementSize::Bit);
    }
    if entry.is(dialect::VHLO, v::COMPLEX_TYPE) {
        let width = bit_width(tables.r#type(entry.types().next()?), "float")?;
        return Some(ElementSize::Bytes(2 * width.div_ceil(8)));
    }
    let is_quantized = entry.is(dialect::VHLO, v::QUANTIZED_TYPE) || entry.is(dialect::VHLO, v::QUANTIZED_PER_AXIS_TYPE);
    let entry = if is_quantized { tables.r#type(entry.types().next()?) } else { entry };
    if entry.is(dialect::VHLO, v::I2_TYPE) || entry.is(dialect::VHLO, v::UI2_TYPE) {
        return Some(ElementSize::Bytes(1));
    }
    let width = bit_width(entry, "integer").or_else(|| bit_width(entry, "float"))?;
    Some(ElementSize::Bytes(width.div_ceil(8)))
}

enum ElementSize {
    Bit,
    Bytes(u64),
}

/// Whether a tensor of several elements stores one for all.
pub(super) fn is_splat(entry: &Entry<'_>, tables: &Tables<'_>) -> bool {
    let (Some(type_id), Some(bytes)) = (entry.types().next(), entry.bytes()) else { return false };
    let tensor_type = tables.r#type(type_id);
    let count = element_count(tensor_type).unwrap_or(0);
    match element_type(tensor_type).and_then(|id| element_bytes(tables, id)) {
        Some(ElementSize::Bit) => count > 8 && bytes.0.len() == 1,
        Some(ElementSize::Bytes(size)) => count > 1 && bytes.0.len() as u64 == size,
        None => false,
    }
}

/// Checks one entry whose references are already in the tables.
pub(super) fn entry(entry: &Entry<'_>, is_type: bool, tables: &Tables<'_>) -> Result<()> {
    if is_type {
        let negative = shape(entry).and_then(|mut shape| shape.find(|dimension| *dimension < 0 && *dimension != i64::MIN));
        return negative.map_or(Ok(()), |dimension| Err(Error::format(format!("a tensor type has the dimension {dimension}"))));
    }
    if entry.is(dialect::VHLO, vhlo::code::TENSOR) {
        return tensor(entry, tables);
    }
    let is_dictionary = entry.is(dialect::BUILTIN, builtin::code::DICTIONARY) || entry.is(dialect::VHLO, vhlo::code::DICT);
    if is_dictionary && entry.attributes().step_by(2).any(|key| tables.attribute(key).code != Code::Text && tables.string(key).is_none()) {
        return Err(Error::format("a dictionary's key is no string"));
    }
    Ok(())
}

/// Checks that builtin locations are made of locations and strings, and dictionaries have strings for keys. MLIR refuses the file otherwise.
fn builtin_parts(entry: &Entry<'_>, tables: &Tables<'_>) -> Result<()> {
    use builtin::code as b;
    let (Code::Known(code), dialect::BUILTIN) = (entry.code, entry.dialect) else { return Ok(()) };
    let parts: Vec<AttributeId> = entry.attributes().collect();
    let (strings, locations) = match (code, &parts[..]) {
        (b::LOC_NAME, [name, child]) => (std::slice::from_ref(name), std::slice::from_ref(child)),
        (b::LOC_FILE | b::LOC_FILE_RANGE, [file, ..]) => (std::slice::from_ref(file), &[][..]),
        (b::LOC_CALLSITE | b::LOC_FUSED, all) => (&[][..], all),
        (b::LOC_FUSED_METADATA, [all @ .., _]) => (&[][..], all),
        _ => (&[][..], &[][..]),
    };
    let is_string = |id: &AttributeId| {
        let entry = tables.attribute(*id);
        match entry.code {
            Code::Known(code) => entry.dialect == dialect::BUILTIN && matches!(code, b::STRING | b::STRING_WITH_TYPE),
            Code::Text | Code::Opaque => entry.dialect != dialect::VHLO,
        }
    };
    if !strings.iter().all(is_string) {
        return Err(Error::format("a location's name is no string"));
    }
    if code == b::DICTIONARY && !parts.iter().step_by(2).all(is_string) {
        return Err(Error::format("a dictionary's key is no builtin string"));
    }
    if !locations.iter().all(|id| may_be_location(tables.attribute(*id))) {
        return Err(Error::format("a location has a part that is none"));
    }
    Ok(())
}

/// Whether a value may be of a type: of VHLO's, what tensors are made of, and functions, are types of no value.
pub(super) fn may_be_of_value(entry: &Entry<'_>) -> bool {
    use vhlo::code as v;
    let Code::Known(code) = entry.code else { return true };
    let is_element = matches!(code, v::BOOL_TYPE..=v::UI64_TYPE | v::QUANTIZED_TYPE | v::F8E4M3FNUZ_TYPE..=v::F8E8M0FNU_TYPE);
    entry.dialect != dialect::VHLO || !is_element
}

/// Whether MLIR may take an attribute for a location: a builtin one, or one that is not known here.
pub(super) fn may_be_location(entry: &Entry<'_>) -> bool {
    use builtin::code as b;
    match (entry.dialect, entry.code) {
        (dialect::BUILTIN, Code::Known(code)) => matches!(code, b::LOC_CALLSITE..=b::LOC_UNKNOWN | b::LOC_FILE_RANGE),
        (dialect::VHLO | dialect::SDY, Code::Known(_)) | (dialect::VHLO, _) => false,
        _ => true,
    }
}

/// Checks that an entry has the fields that its row in the dialect's table wants.
pub(super) fn fields(entry: &Entry<'_>, is_type: bool, tables: &Tables<'_>) -> Result<()> {
    let wrong = |what: &str| Error::format(format!("the fields are not those of {what}"));
    let row = match (entry.code, &entry.fields[..]) {
        (Code::Text, [Field::String(text)]) if !text.0.contains(&0) => return Ok(()),
        (Code::Opaque, [Field::Blob(_)]) if !matches!(entry.dialect, dialect::BUILTIN | dialect::VHLO) => return Ok(()),
        (Code::Known(code), _) => entry_row(entry.dialect, is_type, code).ok_or_else(|| wrong("a known code"))?,
        _ => return Err(wrong("an entry in text or of an unknown encoding")),
    };
    let mut rest = &entry.fields[..];
    for kind in row.fields {
        rest = field(*kind, rest, entry, row.name, tables).ok_or_else(|| wrong(row.name))?;
    }
    if rest.is_empty() { Ok(()) } else { Err(wrong(row.name)) }
}

/// The fields behind one of a kind, if it is there.
fn field<'f, 'a>(kind: Kind, fields: &'f [Field<'a>], entry: &Entry<'a>, name: &str, tables: &Tables<'a>) -> Option<&'f [Field<'a>]> {
    use Field as F;
    let list = |item: fn(&Field<'_>) -> bool, each: usize| {
        let (F::Count(count), rest) = fields.split_first()? else { return None };
        let (items, rest) = rest.split_at_checked(each * *count as usize)?;
        items.iter().all(item).then_some(rest)
    };
    let width = || match entry.fields.first() {
        Some(F::Type(id)) => bit_width(tables.r#type(*id), name),
        _ => None,
    };
    let (first, rest) = match fields.split_first() {
        Some((first, rest)) => (Some(first), rest),
        None => (None, fields),
    };
    let is_there = match (kind, first) {
        (Kind::Attributes, _) => return list(|field| matches!(field, F::Attribute(_)), 1),
        (Kind::AttributePairs, _) => return list(|field| matches!(field, F::Attribute(_)), 2),
        (Kind::Types, _) => return list(|field| matches!(field, F::Type(_)), 1),
        (Kind::UnsignedList | Kind::DoubleList, _) => return list(|field| matches!(field, F::Unsigned(_)), 1),
        (Kind::ByteList, _) => return list(|field| matches!(field, F::Unsigned(0..=255)), 1),
        (Kind::SignedList, _) => return list(|field| matches!(field, F::Signed(_)), 1),
        (Kind::ElementStrings, _) => {
            let count = match &entry.fields[..] {
                [_, F::Unsigned(1), ..] => Some(1),
                [F::Type(id), ..] => element_count(tables.r#type(*id)),
                _ => None,
            };
            let is_count = matches!(first, Some(F::Count(given)) if Some(u64::from(*given)) == count);
            return if is_count { list(|field| matches!(field, F::String(_)), 1) } else { None };
        }
        (Kind::Bits, first) => match width()? {
            65.. => return list(|field| matches!(field, F::Unsigned(_)), 1),
            width => matches!(first, Some(F::Unsigned(bits)) if width == 64 || bits >> width == 0 || width <= 8 && *bits <= 255),
        },
        (Kind::Attribute, Some(F::Attribute(_))) | (Kind::Type, Some(F::Type(_))) | (Kind::Signed, Some(F::Signed(_))) => true,
        (Kind::OptionalAttribute | Kind::PresentAttribute, Some(F::Attribute(_) | F::Absent)) => true,
        (Kind::OptionalUnsigned, Some(F::Unsigned(_) | F::Absent)) => true,
        (Kind::Unsigned | Kind::Double | Kind::Resource, Some(F::Unsigned(_))) | (Kind::Byte, Some(F::Unsigned(0..=255))) => true,
        (Kind::String, Some(F::String(_))) | (Kind::Rest, Some(F::Blob(_))) => true,
        (Kind::Blob, Some(F::Blob(_) | F::Absent)) => true,
        _ => false,
    };
    is_there.then_some(rest)
}

/// Checks that a `tensor_v1` has the data its type wants: all elements, or one for all of them.
fn tensor(entry: &Entry<'_>, tables: &Tables<'_>) -> Result<()> {
    if matches!(entry.fields[..], [Field::Type(_), Field::Absent]) {
        // Elided in text. It can be looked at, but not written.
        return Ok(());
    }
    let (Some(type_id), Some(bytes)) = (entry.types().next(), entry.bytes()) else {
        return Err(Error::bug("a tensor attribute without a type or data"));
    };
    let tensor_type = tables.r#type(type_id);
    let Some(count) = element_count(tensor_type) else {
        return Err(Error::format("a constant's type is no tensor of static shape, or has too many elements"));
    };
    let size = element_type(tensor_type).and_then(|id| element_bytes(tables, id));
    let length = bytes.0.len() as u64;
    let fits = match size {
        None => return Err(Error::format("a constant's elements are of a type without values")),
        Some(ElementSize::Bit) => length == 1 || length == count || length == count.div_ceil(8),
        Some(ElementSize::Bytes(size)) => length == size || count.checked_mul(size) == Some(length),
    };
    if fits || (count == 0 && length == 0) {
        return Ok(());
    }
    Err(Error::format(format!("a constant of {count} elements has {length} bytes of data")))
}

impl Bytecode<'_> {
    /// Checks an operation that was not read from bytecode.
    pub(crate) fn check_operation(&self, of: &Operation) -> Result<()> {
        operation(self.version, &self.tables, &self.tree, of.name, (of.attributes, of.properties))?;
        arity(&self.tables, of.name, of.operands.len, of.results.len)
    }

    /// Checks what MLIR refuses to read beyond the encoding: locations that are none, and values of types that have none. Such a module can be looked at,
    /// but nobody can load what would be made of it.
    pub(crate) fn check_loadable(&self) -> Result<()> {
        (0..self.tables.attribute_count()).try_for_each(|id| builtin_parts(self.tables.attribute(AttributeId(id as u32)), &self.tables))?;
        let all = self.tree.operations.iter().map(|operation| &operation.location).chain(&self.tree.argument_locations);
        if !all.into_iter().all(|id| may_be_location(self.tables.attribute(*id))) {
            return Err(Error::format("a location that is another attribute"));
        }
        let is_wrong = |id: &&TypeId| !may_be_of_value(self.tables.r#type(**id));
        let Some(position) = self.tree.value_types.iter().position(|id| is_wrong(&id)) else { return Ok(()) };
        let is_result = |operation: &&Operation| operation.results.range().contains(&position);
        let of = self.tree.operations.iter().find(is_result).map_or_else(|| "a block".to_owned(), |of| format!("`{}`", self.op_name(of)));
        Err(Error::format(format!("{of} has a value of a type that has no values")))
    }
}

/// Checks that no chain of entries that name one another is too long.
pub(super) fn depth(tables: &Tables<'_>) -> Result<()> {
    let split = tables.attribute_count();
    let mut depths = vec![0u32; split + tables.type_count()];
    let entry_of = |node: usize| {
        if node < split { tables.attribute(AttributeId(node as u32)) } else { tables.r#type(TypeId((node - split) as u32)) }
    };
    for root in 0..depths.len() {
        let mut stack = vec![root];
        while let Some(node) = stack.last().copied() {
            let inside = entry_of(node).fields.iter().filter_map(|field| match field {
                Field::Attribute(id) => Some(id.index()),
                Field::Type(id) => Some(split + id.index()),
                _ => None,
            });
            let (mut deepest, before) = (0, stack.len());
            for inner in inside {
                match depths[inner] {
                    0 => stack.push(inner),
                    depth => deepest = deepest.max(depth),
                }
            }
            if stack.len() == before {
                stack.pop();
                depths[node] = deepest + 1;
            }
        }
        if depths[root] as usize > MAX_ATTRIBUTE_DEPTH {
            return Err(Error::unsupported(format!("attributes or locations nest deeper than {MAX_ATTRIBUTE_DEPTH}")));
        }
    }
    Ok(())
}

/// Checks that an operation of vhlo has as many operands and results as it is said to have. StableHLO's converter ends the process where they are not there.
pub(super) fn arity(tables: &Tables<'_>, name: OpNameId, operands: u32, results: u32) -> Result<()> {
    let Some(expected) = tables.arity(name) else { return Ok(()) };
    for (what, wanted, count) in [("operand", expected.operands, operands), ("result", expected.results, results)] {
        if !wanted.allows(count) {
            let (name, wanted) = (tables.op_name_text(name), wanted.text(what));
            return Err(Error::format(format!("a `{name}` has {}, not {wanted}", Count::Exactly(count).text(what))));
        }
    }
    Ok(())
}

/// Checks what any later step takes for granted of an operation: that its attributes are a dictionary, that its
/// properties are there, and that a constant's value is a tensor.
pub(super) fn operation(
    version: u64,
    tables: &Tables<'_>,
    tree: &OpTree,
    name: OpNameId,
    (attributes, properties): (Option<AttributeId>, Option<Span>),
) -> Result<()> {
    let is_dictionary =
        |id| tables.attribute(id).code == Code::Text || tables.attribute(id).is(dialect::BUILTIN, builtin::code::DICTIONARY);
    if attributes.is_some_and(|id| !is_dictionary(id)) {
        return Err(Error::format("the attributes of an operation are no dictionary"));
    }
    let wants_properties = |row: &OpRow| row.properties.iter().any(|property| !property.ends_with('?'));
    if version >= 5 && properties.is_none() && tables.op_row(name).is_some_and(wants_properties) {
        return Err(Error::format(format!("the properties of a `{}` are missing", tables.op_name_text(name))));
    }
    let inherent = |wanted: &str| match properties {
        Some(span) => {
            let position =
                tables.op_row(name)?.properties.iter().position(|property| property.strip_suffix('?').unwrap_or(property) == wanted)?;
            tree.properties.get(span.start as usize + position).copied().flatten()
        }
        None => tables.dictionary(attributes?)?.find(|(key, _)| *key == wanted.as_bytes()).map(|(_, value)| value),
    };
    let op_name = tables.op_name(name);
    if op_name.dialect != dialect::VHLO {
        return Ok(());
    }
    // Of all properties the one that StableHLO does not check: it ends the process.
    let is_accuracy = |entry: &Entry<'_>| {
        let is_mode = |id| tables.attribute(id).is(dialect::VHLO, vhlo::code::RESULT_ACCURACY_MODE);
        entry.code == Code::Text || entry.is(dialect::VHLO, vhlo::code::RESULT_ACCURACY) && entry.attributes().all(is_mode)
    };
    if inherent("result_accuracy").is_some_and(|id| !is_accuracy(tables.attribute(id))) {
        return Err(Error::format(format!("the `result_accuracy` of a `{}` is something else", tables.op_name_text(name))));
    }
    if &*op_name.name != b"constant_v1" {
        return Ok(());
    }
    let value = inherent("value");
    let value = value.map(|id| tables.attribute(id));
    if !value.is_some_and(|value| value.code == Code::Text || value.is(dialect::VHLO, vhlo::code::TENSOR)) {
        return Err(Error::format("the value of a `vhlo.constant_v1` is no tensor"));
    }
    Ok(())
}
