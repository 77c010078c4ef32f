//! For the tests of kinds that turn one number into another: inputs, and the answers of a node.

use serde_json::{Value as Json, json};
use sinew_core::{NodeFixture, Real};

use crate::testing::{hold, reference};

/// A random walk with small steps and some leaps, the same in every run.
pub(crate) fn walk(count: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut at = 3.0;
    let mut step = || {
        at +=
            random.f64() - 0.5 + if random.u8(..) < 5 { 10.0 * (random.f64() - 0.5) } else { 0.0 };
        at
    };
    (0..count).map(|_| step()).collect()
}

/// The numbers that a node writes to port 1, for each of these on port 0.
pub(crate) fn answers(node: &mut NodeFixture, values: &[f64]) -> Vec<f64> {
    let answer = |&value: &f64| {
        node.put(0, &Real { value });
        node.update().expect("goes on");
        node.get::<Real>(1).expect("answers").value
    };
    values.iter().map(answer).collect()
}

/// How often the node allocates while it is updated a hundred times with numbers on port 0.
pub(crate) fn allocations(node: &mut NodeFixture) -> u64 {
    let values = walk(100);
    let count = || {
        for &value in &values {
            node.put(0, &Real { value });
            node.update().expect("goes on");
        }
    };
    allocation_counter::measure(count).count_total
}

/// Checks the answers of nodes against those of function `question` of `filters.py` with the same
/// arguments. All questions are asked at once, as an interpreter takes long to start.
pub(crate) fn hold_all(question: &str, cases: &[(Json, Vec<f64>)]) {
    let arguments: Vec<_> = cases.iter().map(|case| &case.0).collect();
    let with = json!({"question": question, "cases": arguments});
    let Some(theirs) = reference("filters.each", &with) else { return };
    let mut rest = &theirs[..];
    for (with, ours) in cases {
        let mut what = with.clone();
        what.as_object_mut().expect("named").remove("values");
        let (theirs, behind) = rest.split_at(ours.len());
        hold(&format!("{question} {what}"), ours, theirs);
        rest = behind;
    }
    assert!(rest.is_empty(), "{question}: as many numbers");
}
