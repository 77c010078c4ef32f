//! `state_space` against scipy, and what it refuses.

use serde_json::json;
use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, hold, reference};

const PERIOD_S: f64 = 1e-3;

/// Two inputs, two outputs and feed-through. The matrices are stable in continuous and in discrete
/// time.
const A: &str = "[[-0.5, 0.4, 0], [-0.4, -0.5, 0.1], [0, 0.2, -0.8]]";
const B: &str = "[[1, 0], [0.5, -2], [0, 1e-1]]";
const C: &str = "[[1, 0, 0], [0.25, -1, 3]]";
const D: &str = "[[0, 0.5], [0, 0]]";
const INITIAL: &str = "[1, -2, 0.5]";

fn two_by_two(time: &str) -> Vec<(&'static str, String)> {
    let ports = [("inputs", "[left, right]"), ("outputs", "[y, z]"), ("time", time)];
    let matrices = [("a", A), ("b", B), ("c", C), ("d", D), ("initial", INITIAL)];
    ports.into_iter().chain(matrices).map(|(name, text)| (name, text.to_owned())).collect()
}

fn made(given: &[(&'static str, String)]) -> Result<NodeFixture, Fault> {
    let given: Vec<_> = given.iter().map(|(name, text)| (*name, text.as_str())).collect();
    fixture(&NODE, &given)
}

/// The system of `two_by_two`, with another text for one parameter.
fn with(name: &str, text: &str) -> Result<NodeFixture, Fault> {
    let mut given = two_by_two("continuous");
    given.iter_mut().find(|row| row.0 == name).expect("is given").1 = text.into();
    made(&given)
}

fn outputs(node: &NodeFixture) -> [f64; 2] {
    [2, 3].map(|port| node.get::<Real>(port).expect("it says so every cycle").value)
}

fn inputs(cycles: usize) -> Vec<[f64; 2]> {
    let mut rng = fastrand::Rng::with_seed(3);
    (0..cycles).map(|_| [rng.f64() * 20.0 - 10.0, rng.f64() * 20.0 - 10.0]).collect()
}

#[test]
fn its_outputs_are_those_of_scipy() {
    let inputs = inputs(2000);
    for time in ["continuous", "discrete"] {
        let mut node = made(&two_by_two(time)).expect("makes");
        let mut ours = vec![];
        for input in &inputs {
            (0..2).for_each(|port| node.put(port, &Real { value: input[port] }));
            node.update().expect("goes on");
            ours.extend(outputs(&node));
        }
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        let question = json!({
            "system": [parse(A), parse(B), parse(C), parse(D)], "initial": parse(INITIAL),
            "period": if time == "continuous" { Some(PERIOD_S) } else { None }, "inputs": inputs,
        });
        let Some(theirs) = reference("plants.outputs", &question) else { return };
        hold(time, &ours, &theirs);
    }
}

#[test]
fn lost_periods_pass_for_what_is_continuous_only() {
    for (time, passed) in [("continuous", 4), ("discrete", 1)] {
        let [mut lost, mut all] = [(); 2].map(|()| made(&two_by_two(time)).expect("makes"));
        for node in [&mut lost, &mut all] {
            node.put(0, &Real { value: 7.0 });
            node.update().expect("goes on");
        }
        // The inputs before the lost periods apply to them. The new inputs show one cycle later.
        lost.cycle.skipped = 3;
        lost.put(0, &Real { value: -100.0 });
        lost.update().expect("goes on");
        (0..passed).for_each(|_| all.update().expect("goes on"));
        assert_eq!(outputs(&lost), outputs(&all), "{time}");
    }
}

#[test]
fn feed_through_is_seen_at_once_and_the_rest_one_cycle_later() {
    let mut node = made(&two_by_two("continuous")).expect("makes");
    node.put(1, &Real { value: 8.0 });
    node.update().expect("goes on");
    // The outputs are c initial + d u.
    assert_eq!(outputs(&node), [1.0 + 4.0, 0.25 + 2.0 + 1.5]);
    node.update().expect("goes on");
    assert!((outputs(&node)[1] - 3.75).abs() > 1e-3, "{:?}", outputs(&node));
}

#[test]
fn ports_and_matrices_may_be_fewer() {
    let given =
        [("inputs", "[]"), ("outputs", "[x]"), ("a", "[[0]]"), ("c", "[[3]]"), ("initial", "[2]")];
    let mut node = fixture(&NODE, &given).expect("makes");
    for _ in 0..3 {
        node.update().expect("goes on");
        assert_eq!(node.get::<Real>(0), Some(Real { value: 6.0 }));
    }
    let given =
        [("inputs", "[u]"), ("outputs", "[x]"), ("a", "[[0]]"), ("b", "[[1]]"), ("c", "[[1]]")];
    let mut node = fixture(&NODE, &given).expect("makes");
    node.put(0, &Real { value: 1e3 });
    (0..3).for_each(|_| node.update().expect("goes on"));
    assert_eq!(node.get::<Real>(1), Some(Real { value: 2.0 }));
}

/// A parameter, a value that does not fit, and the error.
const REFUSED: &[(&str, &str, &str)] = &[
    ("outputs", "[]", "outputs is empty, expected 1 to 8 names; name what c gives"),
    (
        "a",
        "3",
        "a is a single value, expected a list of rows, each a list of numbers: [[1, 2], \
                    [3, 4]]",
    ),
    ("a", "[]", "a has 0 rows, one for each state; expected 1 to 16 states"),
    (
        "a",
        "[[1, 2, 3], [4, 5, 6], 7]",
        "row 3 of a is a single value, expected a list of 3 \
                                            numbers",
    ),
    (
        "a",
        "[[1, 2], [3]]",
        "row 2 of a has 1 numbers, but there are 2 states; write a number \
                                for each",
    ),
    ("b", "[]", "b has 0 rows, but there are 3 states; write a row for each"),
    (
        "b",
        "[[1], [2], [3]]",
        "row 1 of b has 1 numbers, but there are 2 inputs; write a number \
                                  for each",
    ),
    (
        "c",
        "[[1, 2, x], [1, 2, 3]]",
        "number 3 of row 1 of c is 'x', expected one from -1e12 to \
                                         1e12",
    ),
    (
        "c",
        "[[1, 2, 1e13], [1, 2, 3]]",
        "number 3 of row 1 of c is '1e13', expected one from \
                                            -1e12 to 1e12",
    ),
    (
        "c",
        "[[1, nan, 2], [1, 2, 3]]",
        "number 2 of row 1 of c is 'nan', expected one from \
                                           -1e12 to 1e12",
    ),
    (
        "c",
        "[[1, [2], 2], [1, 2, 3]]",
        "number 2 of row 1 of c is 'a list', expected one from \
                                           -1e12 to 1e12",
    ),
    ("d", "[[1, 2]]", "d has 1 rows, but there are 2 outputs; write a row for each"),
    (
        "initial",
        "[1, 2]",
        "initial has 2 numbers, but there are 3 states; write a number for \
                               each",
    ),
    ("initial", "{x: 1}", "initial is a mapping, expected a list of 3 numbers"),
    (
        "a",
        "[[-1e10, 0, 0], [0, 0, 0], [0, 0, 0]]",
        "the system is too fast for the period: in \
         0.001 s it could change by 1.0e7 times itself, at most 1048576; shorten the period, or \
         make the system slower",
    ),
];

#[test]
fn what_does_not_fit_is_refused() {
    let long = format!("[{}]", "[0],".repeat(17));
    let too_long = ("a", &*long, "a has 17 rows, one for each state; expected 1 to 16 states");
    for (name, given, expected) in REFUSED.iter().copied().chain([too_long]) {
        match with(name, given) {
            Ok(_) => panic!("{name}: {given} makes"),
            Err(fault) => assert_eq!(fault.text(), expected),
        }
    }
}

#[test]
fn what_grows_past_all_numbers_is_a_fault() {
    let mut node = with("a", "[[0, 0, 0], [0, 1e5, 0], [0, 0, 0]]").expect("unstable is allowed");
    let fault = (0..100).find_map(|_| node.update().err()).expect("grows by exp(100) a cycle");
    assert_eq!(
        fault.text(),
        "state 2 has grown past all numbers: the system is unstable by itself, or made so by what \
         drives it; change a, or the controller"
    );
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = made(&two_by_two("continuous")).expect("makes");
    node.put(0, &Real { value: 7.0 });
    node.cycle.skipped = 2;
    let counted = allocation_counter::measure(|| {
        (0..100).for_each(|_| node.update().expect("goes on"));
    });
    assert_eq!(counted.count_total, 0);
}
