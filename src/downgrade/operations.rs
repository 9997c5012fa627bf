//! The step from an operation to its form in the version before: another name, without the attributes that came with the newer form.
//!
//! Source: StableHLO's `VhloToVersion.cpp` and `VhloToVersionPatterns.td`.

use std::borrow::Cow;

use super::obstacles::What;
use crate::bytecode::{
    AttributeId, Bytecode, Bytes, Entry, Field, OpRow, Operation, Span, StablehloVersion, Tables, code, dialect, op_row_named,
};
use crate::error::{Error, Result};

/// Older forms that take one operand where the newer take several.
const ONE_OPERAND: [&str; 4] = ["all_gather_v1", "all_reduce_v1", "all_to_all_v1", "collective_broadcast_v1"];

/// Makes an operation one of a version, or says what is in the way. What it holds is another matter.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] if nobody here knows the operation.
pub(super) fn downgrade(bytecode: &mut Bytecode<'_>, position: usize, version: StablehloVersion) -> Result<Result<(), What>> {
    loop {
        let operation = &bytecode.tree.operations[position];
        if bytecode.tables.op_name(operation.name).dialect != dialect::VHLO {
            return Ok(Ok(()));
        }
        let Some(row) = bytecode.tables.op_row(operation.name) else {
            let name = bytecode.op_name(operation);
            return Err(Error::unsupported(format!("`{name}` is not known here, nor is the version that it came with")));
        };
        if row.since <= version {
            return Ok(Ok(()));
        }
        // Newer forms are younger than properties, which bytecode has since version 5.
        let Some(older) = before(row).filter(|_| bytecode.version >= 5) else {
            return Ok(Err(What::operation(operation.name, row.since)));
        };
        if let Some(what) = loses(bytecode, operation, row, older) {
            return Ok(Err(what));
        }
        step(bytecode, position, row, older)?;
    }
}

/// The form of an operation in the version before.
fn before(row: &OpRow) -> Option<&'static OpRow> {
    let (name, number) = row.name.rsplit_once("_v")?;
    op_row_named(&format!("vhlo.{name}_v{}", number.parse::<u32>().ok()?.checked_sub(1)?))
}

/// Whether an operation has another form in a newer version.
pub(super) fn has_newer(row: &OpRow) -> bool {
    let next = |(name, number): (&str, &str)| op_row_named(&format!("vhlo.{name}_v{}", number.parse::<u32>().ok()?.checked_add(1)?));
    row.name.rsplit_once("_v").and_then(next).is_some()
}

/// What an operation has that its older form does not hold.
fn loses(bytecode: &Bytecode<'_>, operation: &Operation, row: &OpRow, older: &OpRow) -> Option<What> {
    if ONE_OPERAND.contains(&older.name) && operation.operands.len != 1 {
        return Some(What::operation_with(operation.name, "several operands", row.since));
    }
    if older.regions != OpRow::VARIADIC && operation.regions.len != u32::from(older.regions) {
        return Some(What::operation_with(operation.name, "regions", row.since));
    }
    let mut added = row.properties.iter().filter(|name| !older.properties.contains(name));
    let says_nothing = |name: &str| bytecode.inherent(operation, name).is_some_and(|id| says_nothing(&bytecode.tables, name, id));
    added.find(|name| !says_nothing(name)).map(|name| What::property(operation.name, name, row.since))
}

/// What an attribute that came later is where the operation means what it meant without it.
#[derive(Debug, Clone, Copy)]
enum Nothing {
    DefaultAccuracy,
    EmptyArray,
    EmptyTensor,
    False,
    NoType,
}

impl Nothing {
    fn of(attribute: &str) -> Option<Self> {
        Some(match attribute {
            "result_accuracy" => Self::DefaultAccuracy,
            "result_tilings" => Self::EmptyArray,
            "has_dynamic_root" => Self::False,
            "input_batching_dims"
            | "operand_batching_dims"
            | "scatter_indices_batching_dims"
            | "source_target_pairs"
            | "start_indices_batching_dims" => Self::EmptyTensor,
            "accumulation_type"
            | "allow_imprecise_accumulation"
            | "lhs_component_count"
            | "lhs_precision_type"
            | "num_primitive_operations"
            | "rhs_component_count"
            | "rhs_precision_type" => Self::NoType,
            _ => return None,
        })
    }
}

fn says_nothing(tables: &Tables<'_>, name: &str, id: AttributeId) -> bool {
    use code::vhlo as v;
    let entry = tables.attribute(id);
    let is = |code: u8| entry.is(dialect::VHLO, code);
    match Nothing::of(name) {
        Some(Nothing::DefaultAccuracy) => is(v::RESULT_ACCURACY) && is_default_accuracy(tables, entry),
        Some(Nothing::EmptyArray) => is(v::ARRAY) && entry.fields[..] == [Field::Count(0)],
        Some(Nothing::EmptyTensor) => is(v::TENSOR) && entry.bytes().is_some_and(|bytes| bytes.0.is_empty()),
        Some(Nothing::False) => is(v::BOOL) && entry.fields[..] == [Field::Unsigned(0)],
        Some(Nothing::NoType) => is(v::TYPE) && entry.types().next().is_some_and(|id| tables.r#type(id).is(dialect::VHLO, v::NONE_TYPE)),
        None => false,
    }
}

/// Whether no tolerance and no mode is asked for.
fn is_default_accuracy(tables: &Tables<'_>, entry: &Entry<'_>) -> bool {
    let [Field::Unsigned(absolute), Field::Unsigned(relative), Field::Signed(0), Field::Attribute(mode)] = &entry.fields[..] else {
        return false;
    };
    let mode = tables.attribute(*mode);
    let is_zero = |bits: &u64| f64::from_bits(*bits) == 0.0;
    is_zero(absolute)
        && is_zero(relative)
        && mode.is(dialect::VHLO, code::vhlo::RESULT_ACCURACY_MODE)
        && mode.fields[..] == [Field::Unsigned(0)]
}

/// Gives an operation its older form, which holds all of it.
fn step(bytecode: &mut Bytecode<'_>, position: usize, row: &OpRow, older: &'static OpRow) -> Result<()> {
    let operation = &bytecode.tree.operations[position];
    let mut properties = Vec::with_capacity(older.properties.len());
    for name in older.properties {
        let value = if row.properties.contains(name) { bytecode.inherent(operation, name) } else { None };
        properties.push((*name, value));
    }
    // The one attribute that an operation has lost.
    if let Some((_, padding)) = properties.iter_mut().find(|(name, _)| *name == "padding" && !row.properties.contains(name)) {
        *padding = Some(no_padding(bytecode, position)?);
    }
    let start = bytecode.tree.properties.len();
    bytecode.tree.properties.extend(properties.iter().map(|(_, value)| *value));
    let name = bytecode.tables.intern_op_name(dialect::VHLO, Cow::Borrowed(older.name.as_bytes()), true);
    let operation = &mut bytecode.tree.operations[position];
    operation.name = name;
    operation.properties = (!properties.is_empty()).then(|| Span::new(start, properties.len()));
    Ok(())
}

/// What `dynamic_conv_v1` has beside the padding that is an operand: two zeros for each spatial dimension.
fn no_padding(bytecode: &mut Bytecode<'_>, position: usize) -> Result<AttributeId> {
    let (tables, tree) = (&mut bytecode.tables, &bytecode.tree);
    let operand = tree.operands_of(&tree.operations[position]).first();
    let shape = operand.and_then(|value| tables.tensor(tree.value_types[value.index()]));
    let spatial = shape.and_then(|(shape, _)| shape.len().checked_sub(2)).ok_or_else(|| Error::format("a convolution of no images"))?;
    let i64_type = tables.intern_type(Entry::new(dialect::VHLO, code::vhlo::I64_TYPE, []));
    let fields = [Field::Count(2), Field::Signed(spatial as i64), Field::Signed(2), Field::Type(i64_type)];
    let tensor_type = tables.intern_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, fields));
    // Of equal elements one is stored.
    let zeros: &[u8] = if spatial == 0 { &[] } else { &[0; 8] };
    let fields = [Field::Type(tensor_type), Field::Blob(Bytes(Cow::Borrowed(zeros)))];
    Ok(tables.intern_attribute(Entry::new(dialect::VHLO, code::vhlo::TENSOR, fields)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::VHLO_OPERATIONS;

    #[test]
    fn it_is_known_what_says_nothing_of_all_that_operations_gained_and_lost() {
        let newer = VHLO_OPERATIONS.iter().filter_map(|row| Some((row, before(row)?)));
        let mut count = 0;
        for (row, older) in newer {
            count += 1;
            assert!(older.since < row.since, "{}", row.name);
            let lost: Vec<_> = older.properties.iter().filter(|name| !row.properties.contains(name)).collect();
            assert_eq!(lost, if row.name == "dynamic_conv_v2" { vec![&"padding"] } else { vec![] });
            let mut gained = row.properties.iter().filter(|name| !older.properties.contains(name));
            assert_eq!(gained.find(|name| Nothing::of(name).is_none()), None, "{}", row.name);
        }
        assert_eq!(count, VHLO_OPERATIONS.iter().filter(|row| !row.name.ends_with("_v1")).count());
    }
}
