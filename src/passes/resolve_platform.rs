#![doc = include_str!("resolve_platform.md")]

use super::{Changes, Options, Pass, platform_value};
use crate::error::{Error, Result};
use crate::ir::{Program, constants, functions};

pub const PASS: Pass = Pass {
    name: "resolve-platform",
    summary: "Replace main's platform index argument by the number of one platform",
    doc: include_str!("resolve_platform.md"),
    in_split: true,
    run,
};

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let Some(index) = options.platform_index else {
        return Err(Error::refused("no platform to resolve was given"));
    };
    let main = program.main()?;
    let block = main.region(0).first_block().filter(|block| block.argument_count() > 0);
    let block = block.ok_or_else(|| not_an_index("`main` has no arguments"))?;
    let argument = block.argument(0);
    let of = constants::integer(program.session, argument.r#type());
    let is_index = of.is_some_and(|of| of.count == Some(1) && matches!(of.width, 32 | 64));
    let first = block.first().ok_or_else(|| Error::bug("`main` has an empty body"))?;
    if !is_index {
        return Err(not_an_index("the first argument of `main` is no scalar integer"));
    }
    let marker = platform_value::make(program, argument.r#type(), index, None, first)?;
    argument.replace_uses(marker.result(0));
    functions::drop_arguments(program, main, &[0])?;
    Ok(Changes { arguments_dropped: 1, ..Changes::default() })
}

fn not_an_index(what: &str) -> Error {
    Error::format(format!("{what}, so there is no platform index"))
        .with_hint("the export says that it has several platforms; the module in it does not")
}
