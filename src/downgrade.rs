//! A module in an older version of StableHLO: the same program for readers that know no newer one, or what they cannot be told.
//!
//! It becomes what StableHLO's own `vhlo-to-version` makes of it, and what that refuses is refused. Beyond that, no location is left that readers of the
//! version do not know, and no dialect but `vhlo` where they know none.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

mod constraints;
mod locations;
mod needs;
mod obstacles;
mod operations;
mod orders;
mod properties;

use crate::bytecode::{Bytecode, StablehloVersion, dialect};
use crate::error::Result;

use needs::Needs;
use obstacles::{Obstacles, What};

/// Writes a module in a version. `None`: it is in that one or an older one, which readers of the version read.
///
/// # Errors
/// - [`crate::ErrorKind::Refused`]: the version has not all that the module holds; the error says what, where, and since when there is what.
/// - [`crate::ErrorKind::Unsupported`]: the module holds an operation that is not known here.
pub(crate) fn downgrade<'a>(bytecode: &Bytecode<'a>, version: StablehloVersion) -> Result<Option<Bytecode<'a>>> {
    if StablehloVersion::of_producer(&bytecode.producer).is_some_and(|own| own <= version) {
        return Ok(None);
    }
    let mut older = bytecode.clone();
    let mut obstacles = Obstacles::default();
    // What operations may hold: where one has to be newer itself, all that came before it.
    let mut allowed = vec![version; older.tree.operations.len()];
    for (position, allowed) in allowed.iter_mut().enumerate() {
        if let Err(what) = operations::downgrade(&mut older, position, version)? {
            *allowed = what.since();
            obstacles.add(position, what);
        }
    }
    let mut needs = Needs::new(&older.tables);
    for (position, allowed) in allowed.into_iter().enumerate() {
        obstacles.add_newer(position, held(&older, position, &mut needs), allowed);
    }
    obstacles.check(&older, version)?;
    if version < StablehloVersion::RANGES {
        locations::make_points(&mut older);
    }
    if version.bytecode() < 5 {
        properties::move_into_dictionaries(&mut older)?;
    }
    older.tree.use_orders = orders::of(&older);
    older.version = older.version.min(version.bytecode());
    older.producer = version.producer().into_bytes().into();
    Ok(Some(older))
}

/// What an operation holds, with the versions that it came with. What other dialects hold is theirs.
fn held(bytecode: &Bytecode<'_>, position: usize, needs: &mut Needs<'_, '_>) -> Vec<What> {
    let (tables, tree) = (&bytecode.tables, &bytecode.tree);
    let operation = &tree.operations[position];
    let name = tables.op_name(operation.name);
    if name.dialect == dialect::BUILTIN && name.name[..] == *b"module" {
        return Vec::new();
    }
    if name.dialect != dialect::VHLO {
        return vec![What::operation(operation.name, StablehloVersion::MIXED)];
    }
    let properties = operation.properties.map_or(&[][..], |span| &tree.properties[span.range()]);
    let mut held: Vec<What> = properties.iter().flatten().filter_map(|id| needs.attribute(*id)).collect();
    held.extend(operation.attributes.and_then(|id| needs.dictionary(id)));
    held.extend(constraints::need(bytecode, operation));
    let blocks = tree.regions_of(operation).iter().flat_map(|region| tree.blocks_of(region));
    let values = operation.results.range().chain(blocks.flat_map(|block| block.arguments.range()));
    held.extend(values.filter_map(|value| needs.r#type(tree.value_types[value])));
    held.extend(tree.operands_of(operation).iter().filter_map(|value| needs.r#type(tree.value_types[value.index()])));
    held
}
