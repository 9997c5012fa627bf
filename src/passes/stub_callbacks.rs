#![doc = include_str!("stub_callbacks.md")]

use super::placeholders::{Placeholder, fate, placeholders};
use super::{Changes, Options, Pass};
use crate::bytecode::{Bytes, Entry, Field, Tables, TypeId, code, dialect};
use crate::callbacks::{Policy, StubWith};
use crate::error::{Error, Result};
use crate::ir::{OpSpec, Program, Value, constants};

pub const PASS: Pass = Pass {
    name: "stub-callbacks",
    summary: "Replace the results of the callbacks whose policy is `stub`",
    doc: include_str!("stub_callbacks.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let mut changes = Changes::default();
    for placeholder in placeholders(program)? {
        if let Policy::Stub(with) = *fate(options, &placeholder.slot).policy {
            let refuse = |error: Error| error.context(format!("cannot stub {}", placeholder.described(program)));
            let is_used = placeholder.results().iter().any(|(_, result)| result.has_uses());
            let values = values(program, &placeholder, with).map_err(refuse)?;
            placeholder.replace(&values);
            changes.callbacks_stubbed += 1;
            changes.results_stubbed += usize::from(is_used);
        }
    }
    Ok(changes)
}

/// What stands for each result of the operation.
fn values<'s>(program: &Program<'s, '_>, placeholder: &Placeholder<'s>, with: StubWith) -> Result<Vec<Value<'s>>> {
    placeholder.check(program)?;
    let mut values: Vec<_> = placeholder.operation.operands().take(placeholder.tokens()).collect();
    for (position, result) in placeholder.results() {
        let value = if result.has_uses() { value(program, placeholder, with, position, result)? } else { result };
        values.push(value);
    }
    Ok(values)
}

fn value<'s>(
    program: &Program<'s, '_>,
    placeholder: &Placeholder<'s>,
    with: StubWith,
    position: usize,
    result: Value<'s>,
) -> Result<Value<'s>> {
    let number = position - placeholder.tokens();
    let same = |operand: Value<'s>, what: String| {
        if operand.r#type() == result.r#type() {
            Ok(operand)
        } else {
            Err(Error::refused(format!("{what} has another type than result {number}")))
        }
    };
    match with {
        StubWith::Zeros => {
            constant(program, placeholder, position, result, |tables, element| Some(vec![0; element_bytes(tables, element)?]))
        }
        StubWith::Nan => {
            let made = constant(program, placeholder, position, result, nan);
            made.map_err(|error| if error.hint().is_some() { error } else { error.with_hint("`stub:zeros` is for results of any type") })
        }
        StubWith::Operand(index) => {
            let operand = placeholder.arguments().get(index).copied();
            same(operand.ok_or_else(|| Error::refused(format!("there is no operand {index}")))?, format!("operand {index}"))
        }
        StubWith::Alias => {
            let operand = placeholder.aliases(program).into_iter().find(|(_, aliased)| *aliased == position).map(|(operand, _)| operand);
            let operand = operand.filter(|operand| *operand < placeholder.operation.operand_count());
            let operand = operand.ok_or_else(|| Error::refused(format!("result {number} is no alias of an operand")))?;
            same(placeholder.operation.operand(operand), format!("the aliased operand {operand}"))
        }
    }
}

/// A constant of one value for all elements.
fn constant<'s>(
    program: &Program<'s, '_>,
    placeholder: &Placeholder<'s>,
    position: usize,
    result: Value<'s>,
    element: impl Fn(&Tables<'_>, TypeId) -> Option<Vec<u8>>,
) -> Result<Value<'s>> {
    let session = program.session;
    let number = position - placeholder.tokens();
    let id = session.type_id(result.r#type())?;
    let tensor = session.tables().tensor(id).filter(|_| session.tables().r#type(id).dialect == dialect::VHLO);
    let (shape, of) = tensor.ok_or_else(|| Error::refused(format!("result {number} is no tensor")))?;
    let value = element(&session.tables(), of);
    let value = value.ok_or_else(|| Error::refused(format!("there is no such value of the type of result {number}")))?;
    if !shape.contains(&i64::MIN) {
        let made = constants::make_splat(session, result.r#type(), value, placeholder.operation);
        return made.ok_or_else(|| Error::bug("no constant of a static shape"));
    }
    let scalar = session.add_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, [Field::Count(0), Field::Type(of)]));
    let scalar = constants::make_splat(session, scalar, value, placeholder.operation).ok_or_else(|| Error::bug("no scalar constant"))?;
    let shape = placeholder.shape_operand(program, position);
    let shape = shape.ok_or_else(|| Error::refused(format!("the shape of result {number} is not known")))?;
    let factory = session.factory();
    let index = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::I64_TYPE, [])))?;
    let fields = [Field::Count(1), Field::Signed(0), Field::Type(index)];
    let none = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, fields)))?;
    let fields = [Field::Type(none), Field::Blob(Bytes(Vec::new().into()))];
    let (_, none) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::TENSOR, fields));
    let names = ["broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"];
    let spec = OpSpec {
        name: b"vhlo.dynamic_broadcast_in_dim_v1",
        location: placeholder.operation.location(),
        operands: &[scalar, shape],
        results: &[result.r#type()],
        attributes: &names.map(|name| (factory.name(name.as_bytes()), none)),
        regions: 0,
    };
    let made = spec.create().ok_or_else(|| session.bug("MLIR made no broadcast"))?;
    made.insert_before(placeholder.operation);
    Ok(made.result(0))
}

/// Bytes of an element; one for a boolean.
fn element_bytes(tables: &Tables<'_>, element: TypeId) -> Option<usize> {
    use code::vhlo as v;
    let entry = tables.r#type(element);
    if entry.is(dialect::VHLO, v::COMPLEX_TYPE) {
        return Some(2 * element_bytes(tables, entry.types().next()?)?);
    }
    match entry.bit_width() {
        Some(width) => Some(width.div_ceil(8) as usize),
        None if entry.is(dialect::VHLO, v::BOOL_TYPE) || entry.is(dialect::VHLO, v::I2_TYPE) || entry.is(dialect::VHLO, v::UI2_TYPE) => {
            Some(1)
        }
        None => None,
    }
}

/// The bits of a quiet NaN, little-endian; of a complex number, two.
fn nan(tables: &Tables<'_>, element: TypeId) -> Option<Vec<u8>> {
    use code::vhlo as v;
    let entry = tables.r#type(element);
    if entry.is(dialect::VHLO, v::COMPLEX_TYPE) {
        let part = nan(tables, entry.types().next()?)?;
        return Some([part.clone(), part].concat());
    }
    let bits: &[u8] = match entry.vhlo_name()? {
        "f64_v1" => &[0, 0, 0, 0, 0, 0, 0xF8, 0x7F],
        "f32_v1" => &[0, 0, 0xC0, 0x7F],
        "f16_v1" => &[0, 0x7E],
        "bf16_v1" => &[0xC0, 0x7F],
        "f8E5M2_v1" => &[0x7E],
        "f8E4M3_v1" => &[0x7C],
        "f8E3M4_v1" => &[0x78],
        "f8E4M3FN_v1" => &[0x7F],
        "f8E4M3FNUZ_v1" | "f8E5M2FNUZ_v1" | "f8E4M3B11FNUZ_v1" => &[0x80],
        "f8E8M0FNU_v1" => &[0xFF],
        _ => return None,
    };
    Some(bits.to_vec())
}
