#![doc = include_str!("unlower_callbacks.md")]

use super::placeholders::{lowered, unlower};
use super::{Changes, Options, Pass};
use crate::error::Result;
use crate::ir::Program;

pub const PASS: Pass = Pass {
    name: "unlower-callbacks",
    summary: "Make placeholders again of what `lower-callbacks` lowered",
    doc: include_str!("unlower_callbacks.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let lowered = lowered(program)?;
    let callbacks_unlowered = lowered.len();
    for (operation, config) in lowered {
        unlower(program, operation, config);
    }
    Ok(Changes { callbacks_unlowered, ..Changes::default() })
}
