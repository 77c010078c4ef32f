//! `statistics` against numpy, and against itself after great numbers.

use serde_json::json;
use sinew_core::NodeFixture;
use sinew_core::catalogue::Bool;

use super::*;
use crate::filter_testing::{allocations, hold_all, walk};
use crate::testing::{fixture, reference};

fn statistics(window: usize) -> NodeFixture {
    fixture(&NODE, &[("window", &window.to_string())]).expect("makes")
}

/// Mean, min, max, rms and std after this value.
fn say(node: &mut NodeFixture, value: f64) -> [f64; 5] {
    node.put(IN, &Real { value });
    node.update().expect("goes on");
    let says = std::array::from_fn(|at| node.get::<Real>(OUT + at).expect("says").value);
    assert_eq!(says, std::array::from_fn(|at| node.signal(at)[0]));
    says
}

fn reset(node: &mut NodeFixture, value: bool) {
    node.put(RESET, &Flag { value: Bool::from(value) });
}

#[test]
fn windows_of_all_sorts_are_as_numpy_says() {
    let values = walk(700);
    let mut cases = vec![];
    for window in [0, 1, 2, 3, 4, 5, 7, 8, 100, 255, 699, 700, 701, 65_536] {
        let mut node = statistics(window);
        let ours: Vec<_> = values.iter().map(|&value| say(&mut node, value)).collect();
        // One case for each figure: each is compared within the scale of its own greatest value.
        for (at, figure) in ["mean", "min", "max", "rms", "std"].into_iter().enumerate() {
            let ours = ours.iter().map(|all| all[at]).collect();
            cases.push((json!({"window": window, "figure": figure, "values": values}), ours));
        }
    }
    hold_all("figure", &cases);
}

#[test]
fn a_small_spread_far_from_zero_is_not_lost() {
    // With squares of 1e12 the sums of a simple method cannot hold anything smaller than 1e-4.
    let values: Vec<_> = walk(500).iter().map(|value| 1e6 + value * 1e-4).collect();
    for window in [0, 64] {
        let mut node = statistics(window);
        let ours: Vec<_> = values.iter().map(|&value| say(&mut node, value)[4]).collect();
        let with = json!({"window": window, "figure": "std", "values": values});
        let Some(theirs) = reference("filters.figure", &with) else { return };
        for (our, their) in ours.iter().zip(theirs).skip(5) {
            let off = (our / their - 1.0).abs();
            assert!(off < 1e-4, "window {window}: {our} is not {their}");
        }
    }
}

#[test]
fn nothing_stays_of_what_has_left_the_window() {
    for window in [1, 2, 5, 6] {
        let mut node = statistics(window);
        for value in walk(1000) {
            say(&mut node, value * 1e12);
        }
        let last = (0..window).map(|_| say(&mut node, 0.1)).last().expect("one");
        assert_eq!((last[1], last[2], last[4]), (0.1, 0.1, 0.0), "window {window}");
        assert!((last[0] - 0.1).abs() < 1e-16 && (last[3] - 0.1).abs() < 1e-16, "{last:?}");
    }
}

#[test]
fn a_reset_begins_anew() {
    for window in [0, 1, 4, 5] {
        let mut node = statistics(window);
        for value in [9.0; 11] {
            say(&mut node, value);
        }
        reset(&mut node, true);
        assert_eq!(say(&mut node, 3.0), [3.0, 3.0, 3.0, 3.0, 0.0]);
        assert_eq!(say(&mut node, -4.0), [-4.0, -4.0, -4.0, 4.0, 0.0]);
        reset(&mut node, false);
        let (says, both) = (say(&mut node, 4.0), [0.0, -4.0, 4.0, 4.0, 4.0]);
        assert_eq!(says, if window == 1 { [4.0, 4.0, 4.0, 4.0, 0.0] } else { both });
    }
}

#[test]
fn before_the_first_value_it_says_nothing_then_each_cycle_counts() {
    let mut node = statistics(0);
    node.update().expect("goes on");
    assert_eq!(node.get::<Real>(OUT), None);
    say(&mut node, 2.0);
    node.update().expect("goes on with the old value");
    let says = say(&mut node, 5.0);
    assert!((says[0] - 3.0).abs() < 1e-15, "2, 2 and 5: {}", says[0]);
}

#[test]
fn no_cycle_allocates() {
    for window in [0, 7] {
        assert_eq!(allocations(&mut statistics(window)), 0);
    }
}
