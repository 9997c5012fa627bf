//! What an operation on integers results in, when it is known what they are.

use super::super::platform_value::{is_move, is_sharding_call, known};
use crate::bytecode::{Field, code, dialect};
use crate::ir::constants::{Integer, integer};
use crate::ir::{Op, Program, Value};

/// The result of `operation` that its operand at `position` leads to, and what every element of it is. `None`: not an operation on integers, or some
/// operand that it needs is not known.
pub(super) fn fold<'s>(program: &Program<'s, '_>, operation: Op<'s>, position: usize) -> Option<(Value<'s>, i64)> {
    let name = operation.name_str();
    let name = name.strip_prefix("vhlo.").and_then(|name| name.rsplit_once("_v")).map_or(name, |(name, _)| name);
    let operand = |index: usize| known(program.session, operation.operand(index));
    // The one operation whose results are its operands, one by one.
    if name == "optimization_barrier" {
        return Some((operation.result(position), operand(position)?));
    }
    if operation.result_count() != 1 {
        return None;
    }
    let result = operation.result(0);
    let of = integer(program.session, result.r#type())?;
    let value: i128 = match (name, operation.operand_count()) {
        _ if is_move(operation.name_str()) && position == 0 => i128::from(operand(0)?),
        _ if is_sharding_call(program, operation) => i128::from(operand(0)?),
        ("convert", 1) => i128::from(Integer::convert(operand(0)?, of)?),
        ("not", 1) if of.width == 1 => i128::from(operand(0)? == 0),
        ("not", 1) => !i128::from(operand(0)?),
        ("negate", 1) => -i128::from(operand(0)?),
        ("abs", 1) => i128::from(operand(0)?).abs(),
        ("sign", 1) => i128::from(operand(0)?.signum()),
        ("clamp", 3) => clamp(operand(0)?, operand(1)?, operand(2)?),
        ("compare", 2) => i128::from(compare(program, operation, operand(0)?, operand(1)?)?),
        (name, 2) => binary(name, of, operand(0)?, operand(1)?)?,
        _ => return None,
    };
    Some((result, of.wrap(value)?))
}

/// `min(max(low, value), high)`, as StableHLO defines it: the upper bound wins.
fn clamp(low: i64, value: i64, high: i64) -> i128 {
    i128::from(value.max(low).min(high))
}

fn binary(name: &str, of: Integer, left: i64, right: i64) -> Option<i128> {
    let is_boolean = of.width == 1;
    let (left, right) = (i128::from(left), i128::from(right));
    Some(match name {
        // On booleans StableHLO's `add` is `or` and `multiply` is `and`.
        "add" if is_boolean => left | right,
        "add" => left + right,
        "subtract" if !is_boolean => left - right,
        "multiply" => left * right,
        "minimum" => left.min(right),
        "maximum" => left.max(right),
        "and" => left & right,
        "or" => left | right,
        "xor" => left ^ right,
        // Division by zero and overflow are the platform's own affair.
        "divide" if right > 0 => left / right,
        "remainder" if right > 0 => left % right,
        _ => return None,
    })
}

/// Codes of `comparison_direction_v1`: EQ, NE, GE, GT, LE, LT.
fn compare(program: &Program<'_, '_>, operation: Op<'_>, left: i64, right: i64) -> Option<bool> {
    let id = program.session.attribute_id(operation.attribute("comparison_direction")?).ok()?;
    let tables = program.session.tables();
    let entry = tables.attribute(id);
    let [Field::Unsigned(direction)] = entry.fields[..] else { return None };
    if !entry.is(dialect::VHLO, code::vhlo::COMPARISON_DIRECTION) {
        return None;
    }
    Some(match direction {
        0 => left == right,
        1 => left != right,
        2 => left >= right,
        3 => left > right,
        4 => left <= right,
        5 => left < right,
        _ => return None,
    })
}
