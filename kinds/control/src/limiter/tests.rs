//! Tests that `limiter` never breaks its limits, that it reaches its goal, and how soon.

use sinew_core::NodeFixture;
use sinew_spec::alone;

use super::*;
use crate::testing::{fixture, reference};

const PERIOD_S: f64 = 1e-3;

fn limiter(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, given).expect("makes")
}

/// The output of the next cycle.
fn follow(node: &mut NodeFixture, wanted: f64) -> f64 {
    node.put(IN, &Real { value: wanted });
    node.update().expect("a cycle");
    node.get::<Real>(OUT).expect("it says so every cycle").value
}

fn is_limited(node: &NodeFixture) -> bool {
    node.get::<Flag>(LIMITED).expect("it says so every cycle").value.get()
}

#[test]
fn no_input_makes_it_leave_its_limits_and_it_stops_at_each() {
    let mut random = fastrand::Rng::with_seed(8);
    for (rate, acceleration) in
        [(3.0, 20.0), (3.0, 1e12), (1e12, 5.0), (0.5, 4000.0), (0.37, 1.3), (900.0, 0.7)]
    {
        let [rate_max, acceleration_max] = [rate, acceleration].map(|it: f64| it.to_string());
        let mut node = limiter(&[
            ("min", "-1.5"),
            ("max", "2"),
            ("rate_max", &rate_max),
            ("acceleration_max", &acceleration_max),
        ]);
        let (mut out, mut step) = (0.0, 0.0);
        for _ in 0..100 {
            let goal = random.f64() * 6.0 - 3.0;
            let moves = (random.f64() - 0.5) * [0.0, 1e-3, 0.1][random.usize(..3)];
            for at in 0..random.u32(1..3000) {
                let next = follow(&mut node, goal + moves * f64::from(at));
                assert!((-1.5..=2.0).contains(&next), "{next}");
                let next_step = next - out;
                assert!(next_step.abs() <= rate * PERIOD_S + 1e-12, "{next} after {out}");
                let most = acceleration * PERIOD_S * PERIOD_S;
                assert!((next_step - step).abs() <= most + 1e-12, "{next_step} after {step}");
                (out, step) = (next, next_step);
            }
        }
        for goal in [0.7, -1.0, 1.99] {
            for _ in 0..20_000 {
                out = follow(&mut node, goal);
            }
            assert_eq!(out, goal, "with {rate} and {acceleration}");
            assert!(!is_limited(&node));
        }
    }
}

/// The steps until it is there, and how far past the goal it goes.
fn way_there(node: &mut NodeFixture, goal: f64) -> (usize, f64) {
    let outs: Vec<f64> = (0..20_000).map(|_| follow(node, goal)).collect();
    let steps = outs.iter().rposition(|out| *out != goal).map_or(1, |last| last + 2);
    (steps, outs.iter().map(|out| (out - goal) * goal.signum()).fold(0.0, f64::max))
}

#[test]
fn from_rest_it_is_there_as_soon_as_a_linear_program_and_never_past_it() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..8 {
        let [rate, acceleration] = [0.5 + random.f64(), 5.0 + 30.0 * random.f64()];
        let goal = (random.f64() - 0.5) * 0.2;
        let [rate_max, acceleration_max] = [rate, acceleration].map(|it| it.to_string());
        let given = [("rate_max", &*rate_max), ("acceleration_max", &*acceleration_max)];
        let (steps, past) = way_there(&mut limiter(&given), goal);
        assert!(past <= 1e-15, "past its goal by {past}");
        let with = serde_json::json!({
            "way": goal, "step_max": rate * PERIOD_S, "change_max": acceleration * 1e-6,
        });
        if let Some(least) = reference("controllers.limit_least", &with) {
            let least = least[0] as usize;
            assert!((least..=least + 2).contains(&steps), "{steps} steps, {least} are enough");
        }
    }
}

#[test]
fn without_limits_it_passes_every_number_as_it_is() {
    let mut random = fastrand::Rng::with_seed(10);
    let mut node = limiter(&[]);
    for _ in 0..1000 {
        let wanted = (random.f64() - 0.5) * 10f64.powi(random.i32(-12..12));
        assert_eq!(follow(&mut node, wanted), wanted);
        assert!(!is_limited(&node));
    }
    assert_eq!(follow(&mut node, 1e300), 1e12);
    assert!(is_limited(&node));
    assert_eq!(follow(&mut node, 1.0), 1.0);
}

#[test]
fn with_a_rate_alone_it_goes_straight() {
    let mut node = limiter(&[("rate_max", "2"), ("initial", "1")]);
    for cycle in 1..=500 {
        let out = follow(&mut node, -7.0);
        assert!((out - (1.0 - 0.002 * f64::from(cycle))).abs() < 1e-12, "{out}");
        assert!(is_limited(&node));
    }
}

#[test]
fn it_rests_at_the_first_output_until_it_is_told() {
    let mut node = limiter(&[("initial", "0.5"), ("rate_max", "1")]);
    for _ in 0..3 {
        node.update().expect("a cycle");
        assert_eq!(node.get::<Real>(OUT), Some(Real { value: 0.5 }));
        assert!(!is_limited(&node));
    }
    assert_eq!(follow(&mut node, 0.0), 0.499);
}

#[test]
fn it_refuses_limits_that_nothing_meets() {
    let refused =
        |given: &[(&str, &str)]| fixture(&NODE, given).err().expect("refuses").text().to_owned();
    assert_eq!(refused(&[("min", "1"), ("max", "1")]), "min 1 is not below max 1; lower min");
    assert_eq!(
        refused(&[("min", "1"), ("max", "2")]),
        "initial 0 is outside of min 1 to max 2; give one between them"
    );
    for (name, value) in [("rate_max", "0"), ("acceleration_max", "-1"), ("max", ".inf")] {
        assert!(alone(&INFO, &[(name, value)], "").is_err(), "{name}: {value}");
    }
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = limiter(&[("rate_max", "1"), ("acceleration_max", "3")]);
    let counted = allocation_counter::measure(|| {
        for wanted in 0..100 {
            follow(&mut node, f64::from(wanted));
        }
    });
    assert_eq!(counted.count_total, 0);
}
