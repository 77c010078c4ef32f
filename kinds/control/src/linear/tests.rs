//! Discretisation against scipy, and the systems that are refused.

use serde_json::json;

use super::*;
use crate::testing::{hold, reference};

fn random(rng: &mut fastrand::Rng, rows: usize, columns: usize, most: f64) -> DenseMatrix {
    let numbers = (0..rows * columns).map(|_| (rng.f64() * 2.0 - 1.0) * most).collect();
    DenseMatrix { columns, numbers }
}

fn rows(matrix: &DenseMatrix) -> Vec<Vec<f64>> {
    matrix.numbers.chunks(matrix.columns).map(<[f64]>::to_vec).collect()
}

/// Both matrices side by side, as the reference gives them.
fn side_by_side(held: &HeldSystem) -> Vec<f64> {
    let rows = rows(&held.state).into_iter().zip(rows(&held.input));
    rows.flat_map(|(state, input)| [state, input].concat()).collect()
}

fn compare(what: &str, a: &DenseMatrix, b: &DenseMatrix, period: f64, within: f64) {
    let question = json!({"a": rows(a), "b": rows(b), "period": period});
    let Some(theirs) = reference("plants.zero_order_hold", &question) else { return };
    let ours = side_by_side(&HeldSystem::new(a, b, period).expect("is not too fast"));
    hold(what, &ours, &theirs);
    let scale = theirs.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
    for (our, their) in ours.iter().zip(&theirs) {
        assert!((our - their).abs() <= within * scale, "{what}: {our} and {their} of {scale}");
    }
}

#[test]
fn a_held_period_is_that_of_scipy() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (states, inputs, most) in [(1, 1, 1.0), (2, 1, 300.0), (5, 3, 1e3), (16, 8, 200.0)] {
        let a = random(&mut rng, states, states, most);
        let b = random(&mut rng, states, inputs, most);
        compare(&format!("{states} states"), &a, &b, 1e-3, 1e-12);
    }
}

#[test]
fn integrators_stiff_systems_and_great_inputs_are_exact_too() {
    let free = DenseMatrix::of([[0.0, 1.0], [0.0, 0.0]]);
    let held = HeldSystem::new(&free, &DenseMatrix::of([[0.0], [2.0]]), 0.5).expect("slow");
    assert_eq!(side_by_side(&held), [1.0, 0.5, 0.25, 0.0, 1.0, 1.0]);
    let stiff = DenseMatrix::of([[-1.0, 1.0], [0.0, -1e6]]);
    compare("stiff", &stiff, &DenseMatrix::of([[0.0], [1e6]]), 1e-2, 1e-12);
    let motor = DenseMatrix::of([[0.0, 1.0, 0.0], [0.0, -1.0, 7500.0], [0.0, -210.0, -5100.0]]);
    let inputs = DenseMatrix::of([[0.0, 0.0], [0.0, -2.9e5], [8400.0, 0.0]]);
    compare("motor", &motor, &inputs, 1e-3, 1e-12);
    let great = inputs.scaled(1e9);
    // Here scipy loses digits, as it takes more squarings.
    compare("great inputs", &motor, &great, 1e-3, 1e-11);
    // Without inputs there is nothing to add.
    let alone = HeldSystem::new(&motor, &DenseMatrix::zeros(3, 0), 1e-3).expect("slow enough");
    assert_eq!(alone.input.numbers.len(), 0);
}

#[test]
fn what_no_number_can_say_is_refused() {
    let one = DenseMatrix::of([[1.0]]);
    let fast = HeldSystem::new(&one.scaled(-2e9), &one, 1e-3).expect_err("1e6 periods");
    assert_eq!(
        fast.text(),
        "the system is too fast for the period: in 0.001 s it could change by 2.0e6 times itself, \
         at most 1048576; shorten the period, or make the system slower"
    );
    let grows = HeldSystem::new(&one.scaled(1e6), &one, 1e-3).expect_err("exp(1000)");
    assert_eq!(
        grows.text(),
        "the system grows past all numbers within a period of 0.001 s; shorten the period, or \
         make the system slower"
    );
}

#[test]
fn a_step_goes_on_by_a_period() {
    let held = HeldSystem {
        state: DenseMatrix::of([[1.0, 2.0], [3.0, 4.0]]),
        input: DenseMatrix::of([[5.0], [6.0]]),
    };
    let mut next = [f64::NAN; 2];
    held.step(&[1.0, 10.0], &[100.0], &mut next);
    assert_eq!(next, [521.0, 643.0]);
}
