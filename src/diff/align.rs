//! Two sequences side by side: which item of the one is which of the other.

#![allow(clippy::indexing_slicing, reason = "positions are those of the sequences at hand")]

use std::collections::HashMap;

use imara_diff::{Algorithm, Diff, Token};

/// Pairs of items that are looked through one by one.
const FEW: usize = 1 << 18;
/// How often a stretch is cut at what stands in it once.
const CUTS: usize = 8;
/// Stretches of so many items are looked for that stand once in both: more stand once the longer they are, but fewer in both.
const WIDTHS: [usize; 3] = [1, 8, 64];

/// The positions of what both have in common, in order. What is alike at both ends is taken for the same. Short sequences are then compared by Myers's
/// algorithm; long ones are first cut at what stands once in both, since that algorithm takes quadratic time over sequences that have little in common.
pub(super) fn common(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    stretch(a, b, (0, 0), CUTS, &mut found);
    found
}

/// Finds what two stretches, which begin at these positions, have in common.
fn stretch(a: &[u32], b: &[u32], (at_a, at_b): (usize, usize), cuts: usize, found: &mut Vec<(usize, usize)>) {
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    found.extend((0..before).map(|place| (at_a + place, at_b + place)));
    let (a, b, at_a, at_b) = (&a[before..], &b[before..], at_a + before, at_b + before);
    let after = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (ours, theirs) = (&a[..a.len() - after], &b[..b.len() - after]);
    if ours.len().saturating_mul(theirs.len()) <= FEW {
        found.extend(between(ours, theirs).into_iter().map(|(a, b)| (at_a + a, at_b + b)));
    } else if cuts > 0 {
        let anchors = WIDTHS.iter().map(|width| anchors(ours, theirs, *width)).find(|anchors| !anchors.is_empty());
        let (mut from_a, mut from_b) = (0, 0);
        // Where nothing stands once, nothing is taken for the same.
        for (a, b) in anchors.into_iter().flat_map(|anchors| anchors.into_iter().chain([(ours.len(), theirs.len())])) {
            stretch(&ours[from_a..a], &theirs[from_b..b], (at_a + from_a, at_b + from_b), cuts - 1, found);
            (from_a, from_b) = (a, b);
        }
    }
    found.extend((0..after).map(|place| (at_a + ours.len() + place, at_b + theirs.len() + place)));
}

/// Where stretches of that width begin that stand once in both, as many as are in the same order in both.
fn anchors(a: &[u32], b: &[u32], width: usize) -> Vec<(usize, usize)> {
    const SEVERAL: usize = usize::MAX;
    let once = |items: &[u32]| {
        let mut places = HashMap::new();
        for (place, window) in items.windows(width).enumerate() {
            places.entry(window.to_vec()).and_modify(|known| *known = SEVERAL).or_insert(place);
        }
        places
    };
    let (ours, theirs) = (once(a), once(b));
    let mut pairs: Vec<_> = ours.iter().filter_map(|(window, &at)| Some((at, *theirs.get(window)?))).collect();
    pairs.retain(|(a, b)| *a != SEVERAL && *b != SEVERAL);
    pairs.sort_unstable();
    // The longest run of pairs that rises on both sides: `ends` has, for each length, the pair with the least end.
    let (mut ends, mut previous) = (Vec::<usize>::new(), Vec::with_capacity(pairs.len()));
    for (number, (_, b)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < *b);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(number);
        } else {
            ends[length] = number;
        }
    }
    let mut run: Vec<_> = std::iter::successors(ends.last().copied(), |&number| previous[number]).map(|number| pairs[number]).collect();
    run.reverse();
    run
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

    fn check(a: &[u32], b: &[u32]) -> usize {
        let found = common(a, b);
        assert!(found.iter().all(|(at, other)| a[*at] == b[*other]));
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        found.len()
    }

    #[test]
    fn a_few_edits_of_long_sequences_are_all_that_is_missing() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 61) as u32
        };
        let long: Vec<u32> = (0..100_000).map(|_| next()).collect();
        let mut edited = long.clone();
        for place in [10, 30_000, 60_000, 99_000] {
            edited.insert(place, 100);
            edited.remove(place + 500);
        }
        assert_eq!(check(&long, &edited), long.len() - 4);
        assert_eq!(check(&long, &long[1..]), long.len() - 1);
    }

    /// Quadratic time would be minutes.
    #[test]
    fn sequences_with_nothing_in_place_are_done_soon() {
        let shuffled = |factor: u64| (0..200_000).map(|at| (at * factor % 200_003) as u32).collect::<Vec<_>>();
        assert!(check(&shuffled(7_919), &shuffled(104_729)) > 0);
        let few: Vec<u32> = (0..200_000).map(|at| at * 31 % 7).collect();
        let others: Vec<u32> = (0..200_000).map(|at: u32| (at / 3) * 17 % 7).collect();
        check(&few, &others);
    }
}
