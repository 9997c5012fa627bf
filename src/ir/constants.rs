//! Integers in tensors: their types, the constants that hold one, and how they are made.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use super::{Attribute, Definition, Op, OpSpec, Session, Type, Value};
use crate::bytecode::{Bytes, Code, Entry, Field, TypeId, code, dialect};

/// The elements of a tensor of integers or booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// Bits, 1 to 64; 1 is a boolean.
    pub width: u32,
    /// Whether the top bit is a sign. Booleans have none.
    pub is_signed: bool,
    /// How many elements there are. `None` where that is not known.
    pub count: Option<u64>,
}

impl Integer {
    /// `value` wrapped to this type. `None` for unsigned values that do not fit `i64`.
    pub fn wrap(self, value: i128) -> Option<i64> {
        let modulus = 1i128 << self.width;
        let low = value.rem_euclid(modulus);
        let wrapped = if self.is_signed && low >= modulus / 2 { low - modulus } else { low };
        i64::try_from(wrapped).ok()
    }

    /// `value` converted to this type: whatever is not 0 is true, all else wraps.
    pub fn convert(value: i64, to: Self) -> Option<i64> {
        if to.width == 1 { Some(i64::from(value != 0)) } else { to.wrap(i128::from(value)) }
    }
}

/// The integer type of a tensor type's elements, vhlo or builtin.
pub fn integer(session: &Session<'_>, of: Type<'_>) -> Option<Integer> {
    let tables = session.tables();
    let (shape, element) = tables.tensor(session.type_id(of).ok()?)?;
    let count = shape.iter().try_fold(1u64, |count, dimension| count.checked_mul(u64::try_from(*dimension).ok()?));
    let (width, is_signed) = element_integer(&tables, element)?;
    Some(Integer { width, is_signed, count })
}

/// The integer types of vhlo: code, width, and whether the top bit is a sign.
const VHLO_INTEGERS: [(u8, u32, bool); 13] = {
    use code::vhlo as v;
    [
        (v::BOOL_TYPE, 1, false),
        (v::I2_TYPE, 2, true),
        (v::I4_TYPE, 4, true),
        (v::I8_TYPE, 8, true),
        (v::I16_TYPE, 16, true),
        (v::I32_TYPE, 32, true),
        (v::I64_TYPE, 64, true),
        (v::UI2_TYPE, 2, false),
        (v::UI4_TYPE, 4, false),
        (v::UI8_TYPE, 8, false),
        (v::UI16_TYPE, 16, false),
        (v::UI32_TYPE, 32, false),
        (v::UI64_TYPE, 64, false),
    ]
};

fn element_integer(tables: &crate::bytecode::Tables<'_>, element: TypeId) -> Option<(u32, bool)> {
    use code::builtin as b;
    let entry = tables.r#type(element);
    match (entry.dialect, entry.code, &entry.fields[..]) {
        (dialect::BUILTIN, Code::Known(b::INTEGER_TYPE), [Field::Unsigned(packed)]) => {
            let width = u32::try_from(packed >> 2).ok().filter(|width| (1..=64).contains(width))?;
            Some((width, packed & 3 != 2 && width > 1))
        }
        (dialect::VHLO, Code::Known(code), _) => {
            VHLO_INTEGERS.iter().find(|row| row.0 == code).map(|(_, width, is_signed)| (*width, *is_signed))
        }
        _ => None,
    }
}

/// The integer that every element of a constant is, if it is one integer.
pub fn constant(session: &Session<'_>, value: Value<'_>) -> Option<i64> {
    let Definition::Result(operation, 0) = value.definition() else { return None };
    if !operation.is("vhlo.constant_v1") {
        return None;
    }
    let of = integer(session, value.r#type())?;
    let id = session.attribute_id(operation.attribute("value")?).ok()?;
    let tables = session.tables();
    let entry = tables.attribute(id);
    let bytes = entry.bytes().filter(|_| entry.is(dialect::VHLO, code::vhlo::TENSOR))?;
    match (of.width, &bytes.0[..]) {
        (1, [0]) => Some(0),
        (1, [0xff]) => Some(1),
        (1, [1]) if of.count == Some(1) => Some(1),
        (1, _) => None,
        (width, bytes) if bytes.len() == width.div_ceil(8) as usize => {
            let mut word = [0; 16];
            word[..bytes.len()].copy_from_slice(bytes);
            of.wrap(i128::from_le_bytes(word))
        }
        _ => None,
    }
}

/// Makes a constant of a tensor type of vhlo, or of builtin by way of a cast, whose every element is `value`, for use at `position`.
///
/// It stands where JAX's writer puts constants: at the top of the function, or of the isolated operation, around `position`; one that stands there
/// already is used again. `None` where the type is no static tensor of integers.
pub fn make_constant<'s>(session: &'s Session<'_>, of: Type<'s>, value: i64, position: Op<'s>) -> Option<Value<'s>> {
    let elements = integer(session, of)?;
    elements.count.filter(|count| *count > 0)?;
    let id = session.type_id(of).ok()?;
    let (shape, element) = session.tables().tensor(id)?;
    let is_builtin = session.tables().r#type(id).dialect == dialect::BUILTIN;
    let made = if is_builtin { vhlo_tensor(session, &shape, element)? } else { of };
    let bytes = match elements.width {
        // One boolean is a 1, more of them are the splat byte.
        1 if elements.count == Some(1) => vec![value as u8 & 1],
        1 => vec![0u8.wrapping_sub(value as u8 & 1)],
        width => value.to_le_bytes()[..width.div_ceil(8) as usize].to_vec(),
    };
    let bytes = mask_unused(bytes, elements.width);
    let fields = [Field::Type(session.type_id(made).ok()?), Field::Blob(Bytes(bytes.into()))];
    let (_, attribute) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::TENSOR, fields));
    let position = top_of_scope(position)?;
    let constant = constant_at(session, made, attribute, position, !is_builtin)?;
    if !is_builtin {
        return Some(constant.result(0));
    }
    let spec = OpSpec {
        name: b"builtin.unrealized_conversion_cast",
        location: session.unknown_location(),
        operands: &[constant.result(0)],
        results: &[of],
        attributes: &[],
        regions: 0,
    };
    let cast = spec.create()?;
    cast.insert_before(position);
    Some(cast.result(0))
}

/// Makes a constant of a static tensor type of vhlo, whose every element has the bytes `element`, for use at `position`. It stands where
/// [`make_constant`] puts constants. A boolean is 0 or 1.
pub fn make_splat<'s>(session: &'s Session<'_>, of: Type<'s>, element: Vec<u8>, position: Op<'s>) -> Option<Value<'s>> {
    let id = session.type_id(of).ok()?;
    let (shape, element_type) = session.tables().tensor(id)?;
    let count = shape.iter().try_fold(1u64, |count, dimension| count.checked_mul(u64::try_from(*dimension).ok()?))?;
    let is_bool = session.tables().r#type(element_type).is(dialect::VHLO, code::vhlo::BOOL_TYPE);
    let bytes = match (count, &element[..]) {
        (0, _) => Vec::new(),
        // One boolean is a 1, more of them are the splat byte.
        (2.., [value]) if is_bool => vec![0u8.wrapping_sub(*value)],
        _ => element,
    };
    let (_, attribute) =
        session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::TENSOR, [Field::Type(id), Field::Blob(Bytes(bytes.into()))]));
    Some(constant_at(session, of, attribute, top_of_scope(position)?, true)?.result(0))
}

/// A constant before `position`; one that stands at the top already may be used again.
fn constant_at<'s>(
    session: &'s Session<'_>,
    made: Type<'s>,
    attribute: Attribute<'s>,
    position: Op<'s>,
    may_reuse: bool,
) -> Option<Op<'s>> {
    let is_equal = |operation: &Op<'s>| operation.attribute("value") == Some(attribute) && operation.result(0).r#type() == made;
    let leading =
        std::iter::successors(Some(position), |operation| operation.next()).take_while(|operation| operation.is("vhlo.constant_v1"));
    if let Some(constant) = leading.into_iter().find(is_equal).filter(|_| may_reuse) {
        return Some(constant);
    }
    let spec = OpSpec {
        name: b"vhlo.constant_v1",
        location: session.unknown_location(),
        operands: &[],
        results: &[made],
        attributes: &[(session.factory().name(b"value"), attribute)],
        regions: 0,
    };
    let constant = spec.create()?;
    constant.insert_before(position);
    Some(constant)
}

/// The first operation of the function, or of the isolated operation, around a place.
fn top_of_scope(mut place: Op<'_>) -> Option<Op<'_>> {
    while let Some(parent) = place.parent().filter(|parent| !matches!(parent.name_str(), "func.func" | "sdy.manual_computation")) {
        place = parent;
    }
    place.block()?.first()
}

/// Integers narrower than a byte have their high bits zero.
fn mask_unused(mut bytes: Vec<u8>, width: u32) -> Vec<u8> {
    if let Some(byte) = bytes.first_mut().filter(|_| (2..8).contains(&width)) {
        *byte &= (1 << width) - 1;
    }
    bytes
}

/// The vhlo tensor type of a builtin one.
fn vhlo_tensor<'s>(session: &'s Session<'_>, shape: &[i64], element: TypeId) -> Option<Type<'s>> {
    let (width, is_signed) = element_integer(&session.tables(), element)?;
    let code = VHLO_INTEGERS.iter().find(|row| (row.1, row.2) == (width, is_signed))?.0;
    let element = session.type_id(session.add_type(Entry::new(dialect::VHLO, code, []))).ok()?;
    let mut fields = vec![Field::Count(shape.len() as u32)];
    fields.extend(shape.iter().map(|dimension| Field::Signed(*dimension)));
    fields.push(Field::Type(element));
    Some(session.add_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_as_their_type_says() {
        let of = |width, is_signed| Integer { width, is_signed, count: Some(1) };
        assert_eq!(of(8, true).wrap(200), Some(-56));
        assert_eq!(of(8, false).wrap(-1), Some(255));
        assert_eq!(of(1, false).wrap(3), Some(1));
        assert_eq!(of(64, true).wrap(i128::from(i64::MIN)), Some(i64::MIN));
        assert_eq!(of(64, false).wrap(-1), None);
    }
}
