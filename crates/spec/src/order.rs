//! An order in which writers come before readers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most loops that are returned; further ones are only cut.
const LOOPS_MAX: usize = 20;

/// Sorts `0..count` so that `a` comes before `b` for every pair `(a, b)`; among the free ones the
/// lowest comes first (Kahn's algorithm with a heap). A loop is cut before its lowest member and
/// returned beside the order, lowest member first.
pub(crate) fn sort(count: usize, pairs: &[(usize, usize)]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut readers = vec![Vec::new(); count];
    let mut writers = vec![Vec::new(); count];
    for &(from, to) in pairs {
        readers[from].push(to);
        writers[to].push(from);
    }
    let mut waits_for: Vec<usize> = writers.iter().map(Vec::len).collect();
    let mut placed = vec![false; count];
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..count).filter(|&at| waits_for[at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    let mut loops = Vec::new();
    let mut first_left = 0;
    while order.len() < count {
        let Some(Reverse(at)) = ready.pop() else {
            while placed[first_left] {
                first_left += 1;
            }
            let cut = if loops.len() < LOOPS_MAX {
                loops.push(walk_back(first_left, &writers, &placed));
                loops[loops.len() - 1][0]
            } else {
                first_left
            };
            ready.push(Reverse(cut));
            continue;
        };
        placed[at] = true;
        order.push(at);
        for &reader in &readers[at] {
            waits_for[reader] -= 1;
            if waits_for[reader] == 0 && !placed[reader] {
                ready.push(Reverse(reader));
            }
        }
    }
    (order, loops)
}

/// A loop upstream of `start`. There is one, because each remaining element waits for another one.
fn walk_back(start: usize, writers: &[Vec<usize>], placed: &[bool]) -> Vec<usize> {
    let mut seen_at = vec![usize::MAX; writers.len()];
    let mut path = Vec::new();
    let mut at = start;
    while seen_at[at] == usize::MAX {
        seen_at[at] = path.len();
        path.push(at);
        let left = writers[at].iter().copied().find(|&writer| !placed[writer]);
        at = left.expect("a member that waits has a writer that waits");
    }
    let mut members = path.split_off(seen_at[at]);
    members.reverse();
    let lowest = members.iter().enumerate().min_by_key(|&(_, member)| member).map_or(0, |(i, _)| i);
    members.rotate_left(lowest);
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_come_first_and_the_rest_keeps_its_order() {
        assert_eq!(sort(4, &[(3, 0)]), (vec![1, 2, 3, 0], vec![]));
        assert_eq!(sort(3, &[]), (vec![0, 1, 2], vec![]));
        assert_eq!(sort(3, &[(0, 1), (0, 1), (1, 2)]), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn loops_are_named_in_the_direction_of_their_links() {
        let (order, loops) = sort(5, &[(4, 1), (1, 3), (3, 4), (3, 2), (0, 0)]);
        assert_eq!(loops, [vec![0], vec![1, 3, 4]]);
        assert_eq!(order, [0, 1, 3, 2, 4]);
    }
}
