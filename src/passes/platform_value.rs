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

/// The integer of a value that the platform decides or that is a constant of the module.
pub fn known(session: &Session<'_>, value: Value<'_>) -> Option<i64> {
    decided(value).or_else(|| constants::constant(session, value))
}

/// Makes one before `position`. `beside` is the value it stands beside, where the module computes it.
pub fn make<'s>(program: &Program<'s, '_>, of: Type<'s>, value: i64, beside: Option<Value<'s>>, position: Op<'s>) -> Result<Op<'s>> {
    let session = program.session;
    let i64_type = session.add_type(Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, [Field::Unsigned(64 << 2)]));
    let factory = session.factory();
    let spec = OpSpec {
        name: NAME.as_bytes(),
        location: position.location(),
        operands: beside.as_slice(),
        results: &[of],
        attributes: &[(factory.name(b"value"), factory.integer(i64_type, value))],
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
