//! Small integers per platform: what a value is on each platform, as far as it follows from the platform index and constants.

use super::view::Kind;
use crate::bytecode::{AttributeId, Bytecode, Code, Field, code, dialect};

/// A scalar integer, or one that fills a whole array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Value {
    /// Whether the platform index went into it, so that a choice by it is the platform's and not the user's.
    pub is_decided: bool,
    /// What it is on each platform, where known.
    pub by_platform: Box<[Option<i64>]>,
}

impl Value {
    /// The platform index itself.
    pub fn index(platforms: usize) -> Self {
        Self { is_decided: true, by_platform: (0..platforms as i64).map(Some).collect() }
    }

    pub fn constant(value: i64, platforms: usize) -> Self {
        Self { is_decided: false, by_platform: vec![Some(value); platforms].into() }
    }

    pub fn on(&self, platform: usize) -> Option<i64> {
        self.by_platform.get(platform).copied().flatten()
    }
}

/// The result of a pure operation on known operands; `None` for other operations and where the result is not known on any platform.
pub(super) fn fold(kind: Kind, direction: Option<u64>, operands: &[Option<&Value>], platforms: usize) -> Option<Value> {
    let is_decided = operands.iter().flatten().any(|value| value.is_decided);
    let number = |platform: usize, operand: usize| (*operands.get(operand)?)?.on(platform);
    let on = |platform: usize| -> Option<i64> {
        let operand = |operand| number(platform, operand);
        Some(match kind {
            Kind::Compare => i64::from(compare(direction?, operand(0)?, operand(1)?)?),
            Kind::Select => operand(if operand(0)? != 0 { 1 } else { 2 })?,
            Kind::Clamp => operand(1)?.max(operand(0)?).min(operand(2)?),
            Kind::Maximum => operand(0)?.max(operand(1)?),
            Kind::Minimum => operand(0)?.min(operand(1)?),
            _ => return None,
        })
    };
    let by_platform: Box<[_]> = (0..platforms).map(on).collect();
    by_platform.iter().any(Option::is_some).then_some(Value { is_decided, by_platform })
}

/// Source: `ComparisonDirectionV1` in StableHLO's `VhloEnums.td`.
fn compare(direction: u64, a: i64, b: i64) -> Option<bool> {
    Some(match direction {
        0 => a == b,
        1 => a != b,
        2 => a >= b,
        3 => a > b,
        4 => a <= b,
        5 => a < b,
        _ => return None,
    })
}

/// The branch that an index selects. StableHLO: an index outside the range selects the last branch of a `case`; an `if` has `true` first.
pub(super) fn branch(kind: Kind, index: i64, branches: usize) -> usize {
    match kind {
        Kind::If => usize::from(index == 0),
        _ => usize::try_from(index).unwrap_or(usize::MAX).min(branches.saturating_sub(1)),
    }
}

/// The number that a constant's value is, if all its elements are one integer.
pub(super) fn splat(bytecode: &Bytecode<'_>, value: AttributeId) -> Option<i64> {
    use code::vhlo as v;
    let entry = bytecode.tables.attribute(value);
    let [Field::Type(id), Field::Blob(blob)] = &entry.fields[..] else { return None };
    let element = bytecode.tables.r#type(bytecode.tables.tensor(*id)?.1);
    let Code::Known(code) = element.code else { return None };
    let bytes: &[u8] = &blob.0;
    if element.dialect != dialect::VHLO {
        return None;
    }
    Some(match (code, bytes) {
        (v::BOOL_TYPE, &[byte]) => i64::from(byte != 0),
        (v::I8_TYPE, &[byte]) => i64::from(byte as i8),
        (v::UI8_TYPE, &[byte]) => i64::from(byte),
        (v::I16_TYPE, &[a, b]) => i64::from(i16::from_le_bytes([a, b])),
        (v::UI16_TYPE, &[a, b]) => i64::from(u16::from_le_bytes([a, b])),
        (v::I32_TYPE, &[a, b, c, d]) => i64::from(i32::from_le_bytes([a, b, c, d])),
        (v::UI32_TYPE, &[a, b, c, d]) => i64::from(u32::from_le_bytes([a, b, c, d])),
        (v::I64_TYPE, bytes) => i64::from_le_bytes(bytes.try_into().ok()?),
        (v::UI64_TYPE, bytes) => i64::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_outside_the_range_selects_the_last_branch() {
        for (kind, index, expected) in [
            (Kind::Case, 1, 1),
            (Kind::Case, 3, 2),
            (Kind::Case, -1, 2),
            (Kind::Case, i64::MAX, 2),
            (Kind::If, 0, 1),
            (Kind::If, 1, 0),
            (Kind::If, -1, 0),
        ] {
            assert_eq!(branch(kind, index, if kind == Kind::If { 2 } else { 3 }), expected, "{kind:?} {index}");
        }
    }

    #[test]
    fn choices_by_comparing_the_index_are_followed() {
        let (index, one) = (Value::index(3), Value::constant(1, 3));
        let is_one = fold(Kind::Compare, Some(0), &[Some(&index), Some(&one)], 3).unwrap();
        assert_eq!((is_one.is_decided, &is_one.by_platform[..]), (true, &[Some(0), Some(1), Some(0)][..]));
        let chosen = fold(Kind::Select, None, &[Some(&is_one), Some(&one), None], 3).unwrap();
        assert_eq!(chosen.by_platform[..], [None, Some(1), None]);
        assert_eq!(fold(Kind::Other, None, &[Some(&index)], 3), None);
        let user = fold(Kind::Maximum, None, &[Some(&one), Some(&one)], 3).unwrap();
        assert!(!user.is_decided);
    }
}
