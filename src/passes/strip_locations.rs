#![doc = include_str!("strip_locations.md")]

use super::locations::relocate;
use super::{Changes, Options, Pass};
use crate::error::Result;
use crate::ir::Program;

pub const PASS: Pass =
    Pass { name: "strip-locations", summary: "Make every location unknown", doc: include_str!("strip_locations.md"), in_split: false, run };

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let unknown = program.session.unknown_location();
    let locations_stripped = relocate(program, |_| Ok(unknown))?;
    Ok(Changes { locations_stripped, ..Changes::default() })
}
