//! The branches that the platform decides: `case` operations whose index follows from the platform index.

use indexmap::IndexMap;
use serde::Serialize;

use super::branches::Counter;
use super::view::{Kind, View};
use super::walk::{Decided, MAX_PLATFORMS, Walk};
use crate::bytecode::Region;

/// A branch that the platform decides.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PlatformCase {
    /// The function it stands in.
    pub function: String,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
    /// Whether it only picks a number, as those do that map the platform's number to a branch's number.
    pub index_table: bool,
    /// Its branches in order.
    pub branches: Vec<PlatformBranch>,
}

/// One branch.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PlatformBranch {
    /// The platforms that take it. A function that is called with different indices lets a platform take several.
    pub platforms: Vec<String>,
    /// The operations inside it and in the functions it calls, without terminators.
    pub operations: usize,
    /// How many custom calls there are of each target, most frequent first.
    pub custom_calls: IndexMap<String, usize>,
}

/// Finds them with their positions, and says whether everything was looked at. Without platforms, which a module alone does not name, they go by their
/// numbers.
pub(super) fn find(view: &View<'_, '_>, platforms: &[String]) -> (Vec<(u32, PlatformCase)>, bool) {
    let Some(main) = view.main() else { return (Vec::new(), true) };
    let numbered: Vec<String> = match platforms {
        [] if takes_platform_index(view, main) => {
            let cases = view.positions(Kind::Case).map(|position| view.operation(position).regions.len as usize);
            (0..cases.max().unwrap_or(0).min(MAX_PLATFORMS)).map(|number| format!("#{number}")).collect()
        }
        names => names.to_vec(),
    };
    match numbered.len() {
        0 | 1 => return (Vec::new(), true),
        count if count > MAX_PLATFORMS => return (Vec::new(), false),
        _ => {}
    }
    let mut walk = Walk::new(view, numbered.len());
    let is_complete = walk.run(main);
    let mut counter = Counter::new(view);
    let mut found: Vec<_> = walk.found.into_iter().collect();
    found.sort_by_key(|(position, _)| *position);
    let describe = |(position, decided)| (position, describe(view, &mut counter, &numbered, position, &decided));
    let cases = found.into_iter().map(describe).collect();
    (cases, is_complete && !counter.is_exhausted())
}

/// JAX marks the argument, which a module alone may have or not.
fn takes_platform_index(view: &View<'_, '_>, main: u32) -> bool {
    let tables = &view.bytecode.tables;
    let first = || {
        let all = view.bytecode.inherent(view.operation(main), "arg_attrs")?;
        let first = tables.array(all)?.next()?;
        tables.dictionary(first)?.find(|(key, _)| *key == b"jax.global_constant").and_then(|(_, value)| tables.string(value))
    };
    first() == Some(b"_platform_index")
}

fn describe(
    view: &View<'_, '_>,
    counter: &mut Counter<'_, '_, '_>,
    platforms: &[String],
    position: u32,
    decided: &Decided,
) -> PlatformCase {
    let operation = view.operation(position);
    let branch = |(region, &set): (&Region, &u64)| {
        let (operations, custom_calls) = view.entry(region).map_or_else(Default::default, |block| counter.count(block.first..block.end));
        let takes = platforms.iter().enumerate().filter(|(number, _)| set >> number & 1 == 1);
        PlatformBranch { platforms: takes.map(|(_, name)| name.clone()).collect(), operations, custom_calls }
    };
    let branches: Vec<_> = view.bytecode.tree.regions_of(operation).iter().zip(&decided.taken).map(branch).collect();
    PlatformCase {
        function: view.function_name(position),
        place: view.place(operation),
        index_table: decided.is_number && view.bytecode.tree.regions_of(operation).iter().all(|region| holds_constants_only(view, region)),
        branches,
    }
}

fn holds_constants_only(view: &View<'_, '_>, region: &Region) -> bool {
    let inside = view.entry(region).map_or(0..0, |block| block.first..block.end.saturating_sub(1));
    inside.into_iter().all(|position| view.kind(view.operation(position)) == Kind::Constant)
}
