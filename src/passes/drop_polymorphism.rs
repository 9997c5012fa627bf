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

/// The attribute by which a module says that it takes a platform index or dimensions.
pub(crate) const POLYMORPHISM: &str = "jax.uses_shape_polymorphism";

/// Says that the module is polymorphic. Returns false if it does so already.
pub(crate) fn declare_polymorphism(program: &Program<'_, '_>) -> Result<bool> {
    let is_new = !is_declared(program);
    if is_new {
        declare(program, true)?;
    }
    Ok(is_new)
}

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    if !is_declared(program) || is_polymorphic(program)? {
        return Ok(Changes::default());
    }
    declare(program, false)?;
    Ok(Changes { attributes_set: 1, ..Changes::default() })
}

fn is_declared(program: &Program<'_, '_>) -> bool {
    program.module.attribute(POLYMORPHISM).is_some_and(|value| value.as_integer().is_some_and(|value| value != 0))
}

fn declare(program: &Program<'_, '_>, is_polymorphic: bool) -> Result<()> {
    let session = program.session;
    let boolean = session.add_type(Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, [Field::Unsigned(1 << 2)]));
    let fields = [Field::Type(session.type_id(boolean)?), Field::Unsigned(u64::from(is_polymorphic))];
    let (_, value) = session.add_attribute(Entry::new(dialect::BUILTIN, code::builtin::INTEGER, fields));
    program.module.set_attribute(POLYMORPHISM, value);
    Ok(())
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
