//! What operations on integers result in.

use crate::bytecode::{Bytecode, Code, Field, Operation, Tables, TypeId, code, dialect};

/// The elements of a tensor of integers or booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    width: u32,
    is_signed: bool,
    /// How many there are, where that is known.
    count: Option<u64>,
}

/// Where a number comes from. What the platform decides is carried out; what the user wrote stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The platform.
    Platform,
    /// A constant of the module, moved about or converted.
    Constant,
    /// Arithmetic on constants alone.
    Computed,
}

/// The number that every element of a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) number: i128,
    pub(super) origin: Origin,
}

impl Integer {
    pub(super) fn of(tables: &Tables<'_>, id: TypeId) -> Option<Self> {
        use code::vhlo as v;
        let (shape, element) = tables.tensor(id)?;
        let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(u64::try_from(*size).ok()?));
        let entry = tables.r#type(element);
        let (width, is_signed) = match (entry.dialect, entry.code, &entry.fields[..]) {
            (dialect::BUILTIN, Code::Known(code::builtin::INTEGER_TYPE), [Field::Unsigned(packed)]) => {
                let width = u32::try_from(packed >> 2).ok().filter(|width| (1..=64).contains(width))?;
                (width, width > 1 && packed & 3 != 2)
            }
            (dialect::VHLO, Code::Known(code), _) => match code {
                v::BOOL_TYPE => (1, false),
                v::I2_TYPE => (2, true),
                v::I4_TYPE => (4, true),
                v::I8_TYPE => (8, true),
                v::I16_TYPE => (16, true),
                v::I32_TYPE => (32, true),
                v::I64_TYPE => (64, true),
                v::UI2_TYPE => (2, false),
                v::UI4_TYPE => (4, false),
                v::UI8_TYPE => (8, false),
                v::UI16_TYPE => (16, false),
                v::UI32_TYPE => (32, false),
                v::UI64_TYPE => (64, false),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { width, is_signed, count })
    }

    /// Whether it is a single number that could be a platform index.
    pub(super) fn is_index(self) -> bool {
        self.count == Some(1) && matches!(self.width, 32 | 64)
    }

    pub(super) fn is_scalar(self) -> bool {
        self.count == Some(1)
    }

    /// Whether there are constants of it that say one number.
    pub(super) fn has_constants(self) -> bool {
        self.count.is_some_and(|count| count > 0)
    }

    fn wrap(self, number: i128) -> i128 {
        let modulus = 1i128 << self.width;
        let low = number.rem_euclid(modulus);
        if self.is_signed && low >= modulus >> 1 { low - modulus } else { low }
    }

    /// The number that every element of a constant is, from its bytes.
    pub(super) fn splat(self, bytes: &[u8]) -> Option<i128> {
        if self.width == 1 {
            return match bytes {
                [0] => Some(0),
                [0xff] => Some(1),
                [1] if self.count == Some(1) => Some(1),
                _ => None,
            };
        }
        if bytes.len() != self.width.div_ceil(8) as usize {
            return None;
        }
        let number = bytes.iter().rev().fold(0i128, |number, byte| number << 8 | i128::from(*byte));
        Some(self.wrap(number))
    }

    /// The number converted to this type: whatever is not 0 is true, all else wraps.
    pub(super) fn convert(self, number: i128) -> i128 {
        if self.width == 1 { i128::from(number != 0) } else { self.wrap(number) }
    }

    /// What an operation of vhlo makes of numbers, in elements of this type.
    pub(super) fn compute(self, bytecode: &Bytecode<'_>, operation: &Operation, name: &str, numbers: &[i128]) -> Option<i128> {
        let is_boolean = self.width == 1;
        let number = match (name, numbers) {
            ("convert", [a]) => self.convert(*a),
            ("not", [a]) if is_boolean => i128::from(*a == 0),
            ("not", [a]) => !a,
            ("negate", [a]) => -a,
            ("abs", [a]) => a.abs(),
            ("sign", [a]) => a.signum(),
            // `min(max(low, value), high)`: the upper bound wins.
            ("clamp", [low, a, high]) => *a.max(low).min(high),
            ("compare", [a, b]) => i128::from(compare(bytecode, operation, *a, *b)?),
            // On booleans StableHLO's `add` is `or`.
            ("add", [a, b]) if is_boolean => a | b,
            ("add", [a, b]) => a + b,
            ("subtract", [a, b]) if !is_boolean => a - b,
            // Two numbers of 64 bits always fit, signed or not, but for the largest unsigned ones.
            ("multiply", [a, b]) => a.checked_mul(*b)?,
            ("minimum", [a, b]) => *a.min(b),
            ("maximum", [a, b]) => *a.max(b),
            ("and", [a, b]) => a & b,
            ("or", [a, b]) => a | b,
            ("xor", [a, b]) => a ^ b,
            // Division by zero and overflow are the platform's own affair.
            ("divide", [a, b]) if *b > 0 => a / b,
            ("remainder", [a, b]) if *b > 0 => a % b,
            _ => return None,
        };
        Some(self.wrap(number))
    }
}

fn compare(bytecode: &Bytecode<'_>, operation: &Operation, a: i128, b: i128) -> Option<bool> {
    let entry = bytecode.tables.attribute(bytecode.inherent(operation, "comparison_direction")?);
    let [Field::Unsigned(direction)] = entry.fields[..] else { return None };
    // StableHLO's order: EQ, NE, GE, GT, LE, LT.
    let outcomes = [a == b, a != b, a >= b, a > b, a <= b, a < b];
    outcomes.get(usize::try_from(direction).ok()?).copied().filter(|_| entry.is(dialect::VHLO, code::vhlo::COMPARISON_DIRECTION))
}
