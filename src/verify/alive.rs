//! Which steps of a function count: those with effects, and those that they, or the results, need.

use rustc_hash::FxHashSet;

use super::module::{Module, values};
use super::walk::{Item, Residual, Step};
use crate::bytecode::{Operation, ValueId};

/// The steps that count, in order.
pub(super) fn alive(module: &Module<'_, '_>, residual: &Residual) -> Vec<Item> {
    let items = &residual.items;
    let mut effects_before = Vec::with_capacity(items.len() + 1);
    let mut effects = 0u32;
    for item in items {
        effects_before.push(effects);
        let can_have = matches!(item.step, Step::Plain | Step::Open);
        effects += u32::from(can_have && !module.is_pure(module.operation(item.operation)));
    }
    let mut search = Search { module, residual, needed: FxHashSet::default(), alive: Vec::new() };
    // Backwards: whatever uses a value stands behind it.
    let mut next = items.len();
    while let Some(position) = next.checked_sub(1) {
        next = position;
        let Some(item) = items.get(position) else { break };
        let operation = module.operation(item.operation);
        match item.step {
            Step::Plain => {
                if !module.is_pure(operation) || search.has_needed_results(item) {
                    search.keep(item, operation);
                }
            }
            Step::Close => {
                let open = item.partner as usize;
                let has_effects = effects_before.get(position) > effects_before.get(open);
                if has_effects || search.has_needed_results(item) {
                    search.keep(item, operation);
                } else {
                    next = open;
                }
            }
            Step::End => {
                let around = module.operation(item.partner);
                let is_condition = operation.end != around.end;
                let dropped = residual.dropped(item.partner);
                let dropped = if is_condition { &[][..] } else { &dropped.results };
                search.need(operation, dropped);
                search.alive.push(*item);
            }
            Step::Open | Step::Region(_) => search.alive.push(*item),
        }
    }
    search.alive.reverse();
    search.alive
}

struct Search<'r, 'm, 'b, 'a> {
    module: &'m Module<'b, 'a>,
    residual: &'r Residual,
    needed: FxHashSet<ValueId>,
    alive: Vec<Item>,
}

impl Search<'_, '_, '_, '_> {
    fn has_needed_results(&self, item: &Item) -> bool {
        let dropped = self.residual.dropped(item.operation).results;
        let results = values(self.module.operation(item.operation).results).enumerate();
        let mut kept = results.filter(|(place, _)| dropped.binary_search(place).is_err());
        kept.any(|(_, result)| self.needed.contains(&result))
    }

    fn keep(&mut self, item: &Item, operation: &Operation) {
        self.need(operation, &self.residual.dropped(item.operation).operands);
        self.alive.push(*item);
    }

    fn need(&mut self, operation: &Operation, dropped: &[usize]) {
        for operand in without(self.module.operands(operation), dropped) {
            self.needed.insert(self.residual.root(operand));
        }
    }
}

/// The values but for those at some positions, which ascend.
pub(super) fn without<'v>(values: &'v [ValueId], dropped: &'v [usize]) -> impl Iterator<Item = ValueId> + 'v {
    let kept = values.iter().enumerate().filter(|(place, _)| dropped.binary_search(place).is_err());
    kept.map(|(_, value)| *value)
}
