//! Which function something belongs to: the dominators of the call graph, and where in their tree the users of something meet.

#![allow(clippy::indexing_slicing, reason = "nodes are those of the tree at hand")]

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;
use rustc_hash::FxHashSet;

/// The module around all functions: what is used by several, or by none.
pub const MODULE: u32 = 0;
/// Finding dominators may take as many steps as there are functions times calls. JAX's exports stay far below.
const MOST_STEPS: u64 = 1 << 32;

/// The dominator tree of the functions. Its root is [`MODULE`]; function `n` is node `n + 1`.
pub struct Tree {
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// An ancestor further up, so that finding one takes few steps in a deep tree.
    jump: Vec<u32>,
    /// All nodes, each after its parent.
    order: Vec<u32>,
}

impl Tree {
    /// The tree of functions of which those that are `public` are roots, and call one another, by node. Functions that no public one leads to are roots too:
    /// they stand for themselves. `None` if there are too many.
    pub fn new(public: &[bool], calls: &FxHashSet<(u32, u32)>) -> Option<Self> {
        if public.len() as u64 * calls.len() as u64 > MOST_STEPS {
            return None;
        }
        let node = |number: u32| NodeIndex::new(number as usize);
        let mut graph = DiGraph::<(), ()>::new();
        (0..=public.len()).for_each(|_| _ = graph.add_node(()));
        let mut calls: Vec<_> = calls.iter().copied().collect();
        calls.sort_unstable();
        calls.iter().for_each(|(caller, callee)| _ = graph.add_edge(node(*caller), node(*callee), ()));
        let functions = (1..).zip(public);
        functions.clone().filter(|(_, public)| **public).for_each(|(number, _)| _ = graph.add_edge(node(MODULE), node(number), ()));
        let mut reached = Dfs::new(&graph, node(MODULE));
        while reached.next(&graph).is_some() {}
        let is_reached = reached.discovered;
        for (number, _) in functions.filter(|(number, _)| !is_reached.contains(*number as usize)) {
            graph.add_edge(node(MODULE), node(number), ());
        }
        let dominators = simple_fast(&graph, node(MODULE));
        let parent = |number| dominators.immediate_dominator(node(number)).map_or(MODULE, |parent| parent.index() as u32);
        Some(Self::of((0..=public.len() as u32).map(parent).collect()))
    }

    /// The tree in which all functions stand side by side.
    pub fn flat(functions: usize) -> Self {
        Self::of(vec![MODULE; functions + 1])
    }

    fn of(parent: Vec<u32>) -> Self {
        let mut children = vec![Vec::new(); parent.len()];
        (1..).zip(&parent[1..]).for_each(|(number, parent)| children[*parent as usize].push(number));
        let (mut depth, mut jump) = (vec![0u32; parent.len()], vec![MODULE; parent.len()]);
        let mut order = vec![MODULE];
        let mut next = 0;
        while let Some(&above) = order.get(next) {
            next += 1;
            let up = jump[above as usize];
            let further = jump[up as usize];
            // As long a jump as the one above and the one above that together, if these are equally long.
            let is_even = depth[above as usize] - depth[up as usize] == depth[up as usize] - depth[further as usize];
            for &child in &children[above as usize] {
                depth[child as usize] = depth[above as usize] + 1;
                jump[child as usize] = if is_even { further } else { above };
                order.push(child);
            }
        }
        Self { parent, depth, jump, order }
    }

    /// The lowest node that both are, or are below.
    pub fn meet(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            if self.depth[a as usize] < self.depth[b as usize] {
                std::mem::swap(&mut a, &mut b);
            }
            let (jump, other) = (self.jump[a as usize], self.jump[b as usize]);
            let is_level = self.depth[a as usize] == self.depth[b as usize];
            if is_level && jump != other {
                (a, b) = (jump, other);
            } else if is_level {
                (a, b) = (self.parent[a as usize], self.parent[b as usize]);
            } else {
                let is_far = self.depth[jump as usize] >= self.depth[b as usize];
                a = if is_far { jump } else { self.parent[a as usize] };
            }
        }
        a
    }

    /// Adds to the bytes of each node those of all nodes below it.
    pub fn add_up(&self, bytes: &mut [u64]) {
        for &node in self.order.iter().rev().filter(|node| **node != MODULE) {
            bytes[self.parent[node as usize] as usize] += bytes[node as usize];
        }
    }
}

/// What is known of the users of something.
#[derive(Debug, Clone, Copy, Default)]
pub struct Owner {
    /// The only function that uses it, or the module if several do. `None`: nothing uses it.
    pub only: Option<u32>,
    /// The function without which nothing would use it.
    pub below: Option<u32>,
}

impl Owner {
    /// Something that one function uses.
    pub fn one(node: u32) -> Self {
        Self { only: Some(node), below: Some(node) }
    }

    /// Adds further users.
    pub fn add(&mut self, other: Self, tree: &Tree) {
        self.only = match (self.only, other.only) {
            (Some(a), Some(b)) if a != b => Some(MODULE),
            (a, b) => a.or(b),
        };
        self.below = match (self.below, other.below) {
            (Some(a), Some(b)) => Some(tree.meet(a, b)),
            (a, b) => a.or(b),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(public: &[bool], calls: &[(u32, u32)]) -> Tree {
        Tree::new(public, &calls.iter().copied().collect()).unwrap()
    }

    #[test]
    fn a_function_is_below_the_last_one_that_every_way_to_it_leads_through() {
        // 1 calls 2 and 3, both call 4, 4 calls 5; 6 is public too and calls 5; 7 and 8 call one another, and nothing calls them.
        let tree = tree(
            &[true, false, false, false, false, true, false, false],
            &[(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (6, 5), (7, 8), (8, 7)],
        );
        assert_eq!(tree.parent[1..], [0, 1, 1, 1, 0, 0, 0, 0]);
        let mut bytes = [0, 1, 10, 100, 1_000, 10_000, 5, 6, 7];
        tree.add_up(&mut bytes);
        assert_eq!(bytes, [11_129, 1_111, 10, 100, 1_000, 10_000, 5, 6, 7]);
        assert_eq!((tree.meet(2, 4), tree.meet(5, 2), tree.meet(4, 4)), (1, 0, 4));
    }

    #[test]
    fn meeting_takes_few_steps_in_a_deep_tree_and_is_right() {
        // A chain of 1,000, and a branch of 500 that leaves it at every hundredth.
        let mut calls: Vec<_> = (1..1_000).map(|number| (number, number + 1)).collect();
        calls.extend((0..500).map(|number| (if number % 50 == 0 { 2 * number + 100 } else { 1_000 + number }, 1_001 + number)));
        let public: Vec<_> = (0..1_500).map(|number| number == 0).collect();
        let tree = tree(&public, &calls);
        let slow = |mut a: u32, mut b: u32| {
            while a != b {
                let lower = if tree.depth[a as usize] >= tree.depth[b as usize] { &mut a } else { &mut b };
                *lower = tree.parent[*lower as usize];
            }
            a
        };
        for a in (0..1_501).step_by(37) {
            for b in (0..1_501).step_by(41) {
                assert_eq!(tree.meet(a, b), slow(a, b), "{a} {b}");
            }
        }
    }

    #[test]
    fn functions_that_call_one_another_are_below_the_one_that_is_called_from_outside() {
        assert_eq!(tree(&[true, false, false], &[(1, 2), (2, 3), (3, 2)]).parent, [0, 0, 1, 2]);
    }
}
