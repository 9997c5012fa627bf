//! Locations of everything that has one of its own: operations and arguments of blocks.

use crate::error::Result;
use crate::ir::{Attribute, Program};

/// Gives everything the location that `change` makes of its own. Returns how many that changed.
pub fn relocate<'s>(program: &Program<'s, '_>, mut change: impl FnMut(Attribute<'s>) -> Result<Attribute<'s>>) -> Result<usize> {
    let mut operations = Vec::new();
    Program::walk(program.module, |operation| operations.push(operation));
    let mut changed = 0;
    for operation in operations {
        let (before, after) = (operation.location(), change(operation.location())?);
        if after != before {
            operation.set_location(after);
            changed += 1;
        }
        for argument in operation.regions().flat_map(|region| region.blocks()).flat_map(|block| block.arguments()) {
            let (before, after) = (argument.location(), change(argument.location())?);
            if after != before {
                argument.set_argument_location(after);
                changed += 1;
            }
        }
    }
    Ok(changed)
}
