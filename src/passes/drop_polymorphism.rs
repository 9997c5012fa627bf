#![doc = include_str!("drop_polymorphism.md")]

use rustc_hash::FxHashSet;

use super::{Changes, Options, Pass};
use crate::bytecode::{Entry, Field, TypeId, code, dialect};
use crate::error::Result;
use crate::ir::{Program, Type};

pub const PASS: Pass = Pass {
    name: "drop-polymorphism",
    summary: "Say that the module is not polymorphic when all its shapes are static",
    doc: include_str!("drop_polymorphism.md"),
    in_split: true,
    run,
};

const ATTRIBUTE: &str = "jax.uses_shape_polymorphism";

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let is_set = program.module.attribute(ATTRIBUTE).is_some_and(|value| value.as_integer().is_some_and(|value| value != 0));
    if !is_set || is_polymorphic(program)? {
        return Ok(Changes::default());
    }
    let session = program.session;
    let boolean = session.add_type(Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, [Field::Unsigned(1 << 2)]));
    let fields = [Field::Type(session.type_id(boolean)?), Field::Unsigned(0)];
    let (_, no) = session.add_attribute(Entry::new(dialect::BUILTIN, code::builtin::INTEGER, fields));
    program.module.set_attribute(ATTRIBUTE, no);
    Ok(Changes { attributes_set: 1, ..Changes::default() })
}

/// Whether a value of the program has a dynamic dimension.
fn is_polymorphic(program: &Program<'_, '_>) -> Result<bool> {
    let all = (0..program.session.tables().type_count()).map(|id| TypeId(id as u32));
    if !program.session.tables().have_dynamic(all) {
        return Ok(false);
    }
    let mut types: FxHashSet<Type<'_>> = FxHashSet::default();
    Program::walk(program.module, |operation| {
        types.extend(operation.results().map(|result| result.r#type()));
        for block in operation.regions().flat_map(|region| region.blocks()) {
            types.extend(block.arguments().map(|argument| argument.r#type()));
        }
    });
    let ids = types.into_iter().map(|of| program.session.type_id(of)).collect::<Result<Vec<_>>>()?;
    Ok(program.session.tables().have_dynamic(ids))
}
