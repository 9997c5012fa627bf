//! The passes that only retargeting runs: what they make of a module fits its container only together with what is said there.

use crate::bytecode::{Entry, Field, code, dialect};
use crate::callbacks::counterpart;
use crate::error::{Error, Result};
use crate::ir::{Program, functions, verify};
use crate::passes::{Changes, Options, Pass, declare_polymorphism};

/// Renames custom calls to their counterparts on the platform.
pub static MAP_TARGETS: Pass = Pass {
    name: "map-targets",
    summary: "Rename custom calls to their counterparts on another GPU platform",
    doc: "",
    in_split: false,
    run: map_targets,
};

/// Gives `main` a platform index that nothing uses.
pub static ADD_PLATFORM_INDEX: Pass = Pass {
    name: "add-platform-index",
    summary: "Give main an unused platform index argument",
    doc: "",
    in_split: false,
    run: add_platform_index,
};

fn map_targets(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let session = program.session;
    let platform = options.platform.as_ref().ok_or_else(|| Error::bug("no platform to map targets to"))?;
    let mut custom_calls = Vec::new();
    Program::walk(program.module, |operation| {
        if operation.name_str().starts_with("vhlo.custom_call_v") {
            custom_calls.push(operation);
        }
    });
    let mut attributes_set = 0;
    for operation in custom_calls {
        let Some(attribute) = operation.attribute("call_target_name") else { continue };
        let id = session.attribute_id(attribute)?;
        let target = session.tables().string(id).and_then(|target| counterpart(std::str::from_utf8(target).ok()?, platform));
        if let Some(target) = target {
            operation.set_attribute("call_target_name", session.attribute(session.add_vhlo_string(target.as_bytes())));
            attributes_set += 1;
        }
    }
    Ok(Changes { attributes_set, ..Changes::default() })
}

/// What JAX gives `main` where there are several platforms: `%arg0: tensor<i32> {jax.global_constant = "_platform_index"}`, in a module that says that it
/// uses global constants.
fn add_platform_index(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let session = program.session;
    let factory = session.factory();
    let i32_type = session.type_id(session.add_type(Entry::new(dialect::VHLO, code::vhlo::I32_TYPE, [])))?;
    let scalar = session.add_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, [Field::Count(0), Field::Type(i32_type)]));
    let name = session.attribute(session.add_vhlo_string(b"_platform_index"));
    let attributes = factory.dictionary(&[(factory.name(b"jax.global_constant"), name)]);
    functions::insert_argument(program, program.main()?, scalar, attributes)?;
    declare_polymorphism(program)?;
    verify(program)?;
    Ok(Changes { attributes_set: 1, ..Changes::default() })
}
