//! What stands inside a branch: its own operations and those of the functions it calls, each function once.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use indexmap::IndexMap;

use super::module::{count, text};
use super::view::View;

/// Steps from function to function that all branches of a module together may take, so that crafted call graphs cost no more than real ones.
const MAX_STEPS: usize = 1 << 22;

/// Counts branches.
pub(super) struct Counter<'v, 'b, 'a> {
    view: &'v View<'b, 'a>,
    /// What functions hold together, by the functions called first.
    totals: HashMap<Vec<u32>, Held<'b>>,
    steps: usize,
}

#[derive(Clone, Default)]
struct Held<'b> {
    operations: usize,
    targets: Vec<&'b [u8]>,
}

impl<'v, 'b, 'a> Counter<'v, 'b, 'a> {
    pub fn new(view: &'v View<'b, 'a>) -> Self {
        Self { view, totals: HashMap::new(), steps: 0 }
    }

    /// Whether some count is too small because there were too many steps.
    pub fn is_exhausted(&self) -> bool {
        self.steps >= MAX_STEPS
    }

    /// The operations and custom calls in a branch, without the terminator that ends it.
    pub fn count(&mut self, inside: Range<u32>) -> (usize, IndexMap<String, usize>) {
        let mut called: Vec<u32> = self.called(&inside).collect();
        called.sort_unstable();
        called.dedup();
        let mut held = self.held(&inside);
        if !called.is_empty() {
            let functions = match self.totals.get(&called) {
                Some(known) => known.clone(),
                None => {
                    let functions = self.reach(&called);
                    self.totals.insert(called, functions.clone());
                    functions
                }
            };
            held.operations += functions.operations;
            held.targets.extend(functions.targets);
        }
        (held.operations, count(held.targets.into_iter().map(text)))
    }

    fn reach(&mut self, called: &[u32]) -> Held<'b> {
        let mut total = Held::default();
        let mut seen: HashSet<u32> = called.iter().copied().collect();
        let mut work = called.to_vec();
        while let Some(function) = work.pop() {
            let inside = function + 1..self.view.operation(function).end;
            let held = self.held(&inside);
            total.operations += held.operations;
            total.targets.extend(held.targets);
            for callee in self.called(&inside).collect::<Vec<_>>() {
                self.steps += 1;
                if seen.insert(callee) {
                    work.push(callee);
                }
            }
            self.steps += 1;
            if self.is_exhausted() {
                break;
            }
        }
        total
    }

    fn held(&self, inside: &Range<u32>) -> Held<'b> {
        let calls = &self.view.custom_calls;
        let first = calls.partition_point(|call| call.0 < inside.start);
        let targets = calls.iter().skip(first).take_while(|call| call.0 < inside.end).map(|call| call.1);
        Held { operations: inside.len().saturating_sub(1), targets: targets.collect() }
    }

    fn called(&self, inside: &Range<u32>) -> impl Iterator<Item = u32> + use<'v, 'b, 'a> {
        let (calls, end) = (&self.view.calls, inside.end);
        let first = calls.partition_point(|call| call.0 < inside.start);
        calls.iter().skip(first).take_while(move |call| call.0 < end).map(|call| call.1)
    }
}
