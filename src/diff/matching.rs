//! Which function of one module is which of the other.

#![allow(clippy::indexing_slicing, reason = "numbers are those of functions of the modules at hand")]

use std::collections::HashMap;

use super::module::Module;

/// Pairs of functions, and the pair of each function.
pub(super) struct Matching {
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) of_a: Vec<Option<usize>>,
    pub(super) of_b: Vec<Option<usize>>,
}

impl Matching {
    /// Matches functions of one name that do the same; then public ones by name; private ones that do the same, in textual order; and what is left by name.
    pub(super) fn new(modules: [&Module<'_, '_>; 2], functions: [&[u32]; 2]) -> Self {
        let [a, b] = modules;
        let mut matching = Self { pairs: Vec::new(), of_a: vec![None; a.functions.len()], of_b: vec![None; b.functions.len()] };
        let by_name = |matching: &mut Self, is_wanted: &dyn Fn(usize, usize) -> bool| {
            for (ours, function) in a.functions.iter().enumerate() {
                if let Some(theirs) = b.function(function.name).filter(|theirs| is_wanted(ours, *theirs)) {
                    matching.add(ours, theirs);
                }
            }
        };
        by_name(&mut matching, &|ours, theirs| functions[0][ours] == functions[1][theirs]);
        by_name(&mut matching, &|ours, theirs| !a.functions[ours].is_private || !b.functions[theirs].is_private);
        let mut free: HashMap<u32, Vec<usize>> = HashMap::new();
        for theirs in (0..b.functions.len()).rev().filter(|theirs| matching.of_b[*theirs].is_none()) {
            free.entry(functions[1][theirs]).or_default().push(theirs);
        }
        for (ours, number) in functions[0].iter().enumerate() {
            if matching.of_a[ours].is_none()
                && let Some(theirs) = free.get_mut(number).and_then(Vec::pop)
            {
                matching.add(ours, theirs);
            }
        }
        by_name(&mut matching, &|_, _| true);
        matching
    }

    /// Takes two functions for the same, unless one of them is matched.
    pub(super) fn add(&mut self, ours: usize, theirs: usize) -> bool {
        let is_free = self.of_a[ours].is_none() && self.of_b[theirs].is_none();
        if is_free {
            (self.of_a[ours], self.of_b[theirs]) = (Some(self.pairs.len()), Some(self.pairs.len()));
            self.pairs.push((ours, theirs));
        }
        is_free
    }
}
