//! Two sequences side by side: which item of the one is which of the other.

#![allow(clippy::indexing_slicing, reason = "positions are those of the sequences at hand")]

use std::collections::HashMap;

use imara_diff::{Algorithm, Diff, Token};

/// The positions of what both have in common, in order. What is alike at both ends is taken for the same; the rest is found by Myers's algorithm with the
/// usual limits, so that sequences without anything in common do not take quadratic time.
pub(super) fn common(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[before..], &b[before..]);
    let after = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (ours, theirs) = (&a[..a.len() - after], &b[..b.len() - after]);
    let mut found: Vec<_> = (0..before).map(|place| (place, place)).collect();
    found.extend(between(ours, theirs).into_iter().map(|(a, b)| (before + a, before + b)));
    found.extend((0..after).map(|place| (before + ours.len() + place, before + theirs.len() + place)));
    found
}

fn between(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    // What the algorithm needs grows with the largest number.
    let mut numbers = HashMap::new();
    let mut token = |item: &u32| {
        let next = numbers.len() as u32;
        Token(*numbers.entry(*item).or_insert(next))
    };
    let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(&mut token).collect(), b.iter().map(&mut token).collect());
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Myers, &a, &b, numbers.len() as u32);
    let kept = |count: usize, is_gone: &dyn Fn(u32) -> bool| (0..count).filter(|at| !is_gone(*at as u32)).collect::<Vec<_>>();
    let (ours, theirs) = (kept(a.len(), &|at| diff.is_removed(at)), kept(b.len(), &|at| diff.is_added(at)));
    ours.into_iter().zip(theirs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_is_found_in_order() {
        assert_eq!(common(&[1, 2, 3], &[1, 2, 3]), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(common(&[1, 2, 3], &[1, 9, 2, 3]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(common(&[1, 5, 2, 6, 3], &[1, 2, 7, 3, 8]), [(0, 0), (2, 1), (4, 3)]);
        assert_eq!(common(&[1, 1, 1], &[1, 1]), [(0, 0), (1, 1)]);
        assert_eq!(common(&[], &[1]), []);
        assert_eq!(common(&[u32::MAX, 7], &[7, u32::MAX - 1, 7]), [(1, 2)]);
    }

    #[test]
    fn sequences_with_nothing_in_place_take_no_quadratic_time() {
        let a: Vec<u32> = (0..200_000).map(|at| at * 7919 % 200_003).collect();
        let b: Vec<u32> = (0..200_000).map(|at| at * 104_729 % 200_003).collect();
        let start = std::time::Instant::now();
        let found = common(&a, &b);
        assert!(found.iter().all(|(at, other)| a[*at] == b[*other]) && found.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1));
        let few: Vec<u32> = (0..200_000).map(|at| at * 31 % 7).collect();
        let others: Vec<u32> = (0..200_000).map(|at: u32| (at / 3) * 17 % 7).collect();
        common(&few, &others);
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    }
}
