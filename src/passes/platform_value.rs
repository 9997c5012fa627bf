//! `jaxprism.platform_value`: an integer that is known because the platform decides it.
//!
//! ```mlir
//! %1 = "jaxprism.platform_value"() {value = 2 : i64} : () -> !vhlo.tensor_v1<!vhlo.i32_v1>          // in place of an argument
//! %2 = "jaxprism.platform_value"(%0) {value = 2 : i64} : (…) -> !vhlo.tensor_v1<!vhlo.i32_v1>       // beside the operation that computes it
//! ```
//! It exists only between `resolve-platform` and the end of `fold-cases`. What derives from the platform index is marked by it, so that the user's own
//! constants are told apart. Every element of its result is the value.

use crate::bytecode::{Entry, Field, code, dialect};
use crate::error::{Error, Result};
use crate::ir::{Op, OpSpec, Program, Session, Type, Value, constants};

const NAME: &str = "jaxprism.platform_value";

/// Whether an operation is one.
pub fn is_platform_value(operation: Op<'_>) -> bool {
    operation.is(NAME)
}

/// The integer of a value that the platform decides.
pub fn decided(value: Value<'_>) -> Option<i64> {
    let operation = value.defining_op().filter(|operation| is_platform_value(*operation))?;
    operation.attribute("value")?.as_integer()
}

/// The integer that every element of a value is, if the platform decides it or it is a constant of the module, also one that is only moved about or
/// converted: JAX writes a full tensor as a scalar constant that is broadcast.
pub fn known(session: &Session<'_>, value: Value<'_>) -> Option<i64> {
    /// More moves in a row than any program has, few enough to ask often.
    const MOST_MOVES: usize = 32;
    let mut origin = value;
    let mut converted = Vec::new();
    for _ in 0..MOST_MOVES {
        if let Some(known) = decided(origin).or_else(|| constants::constant(session, origin)) {
            return converted.into_iter().rev().try_fold(known, constants::Integer::convert);
        }
        let operation = origin.defining_op()?;
        match operation.name_str() {
            name if is_move(name) => {}
            "vhlo.convert_v1" => converted.push(constants::integer(session, origin.r#type())?),
            _ => return None,
        }
        origin = operation.operands().next()?;
    }
    None
}

/// Whether an operation only moves elements about, so that its result is a splat where its first operand is one.
pub fn is_move(name: &str) -> bool {
    matches!(
        name,
        "vhlo.broadcast_in_dim_v1"
            | "vhlo.broadcast_v1"
            | "vhlo.reshape_v1"
            | "vhlo.transpose_v1"
            | "vhlo.reverse_v1"
            | "vhlo.slice_v1"
            | "vhlo.dynamic_broadcast_in_dim_v1"
            | "vhlo.dynamic_reshape_v1"
            | "builtin.unrealized_conversion_cast"
    )
}

/// Whether an operation is a custom call that says where a value lives and leaves it as it is: how JAX before 0.7 wrote shardings.
pub fn is_sharding_call(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    if !operation.name_str().starts_with("vhlo.custom_call") || operation.operand_count() != 1 || operation.result_count() != 1 {
        return false;
    }
    let id = operation.attribute("call_target_name").and_then(|target| program.session.attribute_id(target).ok());
    let tables = program.session.tables();
    let target = id.and_then(|id| tables.string(id));
    matches!(target, Some(b"Sharding" | b"SPMDFullToShardShape" | b"SPMDShardToFullShape"))
}

/// Whether a constant of that type can be made where a marker stands.
pub fn has_constants(session: &Session<'_>, of: Type<'_>) -> bool {
    constants::integer(session, of).and_then(|of| of.count).is_some_and(|count| count > 0)
}

/// Makes one before `position`. `beside` is the value it stands beside, where the module computes it.
pub fn make<'s>(program: &Program<'s, '_>, of: Type<'s>, value: i64, beside: Option<Value<'s>>, position: Op<'s>) -> Result<Op<'s>> {
    let session = program.session;
    let i64_type = session.add_type(Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, [Field::Unsigned(64 << 2)]));
    let factory = session.factory();
    let value = factory.integer(i64_type, value).ok_or_else(|| session.bug("MLIR has no `i64`"))?;
    let spec = OpSpec {
        name: NAME.as_bytes(),
        location: position.location(),
        operands: beside.as_slice(),
        results: &[of],
        attributes: &[(factory.name(b"value"), value)],
        regions: 0,
    };
    let made = spec.create().ok_or_else(|| session.bug("MLIR made no marker of a platform value"))?;
    made.insert_before(position);
    Ok(made)
}

/// A value without the marker: what it stands beside, or a constant made here.
pub fn unmarked<'s>(program: &Program<'s, '_>, marker: Op<'s>) -> Result<Value<'s>> {
    if let Some(beside) = marker.operands().next() {
        return Ok(beside);
    }
    let result = marker.result(0);
    let value = decided(result).ok_or_else(|| Error::bug("a marker without a value"))?;
    constants::make_constant(program.session, result.r#type(), value, marker)
        .ok_or_else(|| Error::bug("a platform value of a type that has no constants"))
}
