//! The shapes of `signal` against those of scipy, its time, its noise, and the parameters that it
//! refuses.

use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, hold, reference};

fn signal(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, given).expect("makes")
}

/// The output of the next cycle.
fn next(node: &mut NodeFixture) -> f64 {
    node.update().expect("a cycle");
    node.get::<Real>(OUT).expect("it says so every cycle").value
}

fn row(node: &mut NodeFixture, cycles: usize) -> Vec<f64> {
    (0..cycles).map(|_| next(node)).collect()
}

#[test]
fn shapes_are_those_of_scipy() {
    for shape in ["sine", "square", "triangle", "sawtooth"] {
        let ours = row(
            &mut signal(&[
                ("shape", shape),
                ("frequency_hz", "37.3"),
                ("phase_deg", "-76.4"),
                ("duty_percent", "31"),
            ]),
            5000,
        );
        let with = serde_json::json!({
            "name": shape, "frequency": 37.3, "duty": 0.31, "phase": -76.4 / 360.0,
            "period_s": 1e-3, "count": 5000,
        });
        if let Some(theirs) = reference("controllers.shape", &with) {
            hold(shape, &ours, &theirs);
        }
    }
}

#[test]
fn chirps_are_those_of_scipy_and_then_the_offset() {
    for (sweep, begin, end) in
        [("linear", 2.0, 110.0), ("linear", 90.0, 3.0), ("logarithmic", 0.5, 200.0)]
    {
        let [begin_hz, end_hz] = [begin, end].map(|it: f64| it.to_string());
        let mut node = signal(&[
            ("shape", "chirp"),
            ("sweep", sweep),
            ("frequency_hz", &begin_hz),
            ("frequency_end_hz", &end_hz),
            ("sweep_time", "3s"),
            ("phase_deg", "40"),
        ]);
        let ours = row(&mut node, 3000);
        let with = serde_json::json!({
            "begin": begin, "end": end, "time_s": 3, "method": sweep, "phase_deg": 40,
            "period_s": 1e-3, "count": 3000,
        });
        if let Some(theirs) = reference("controllers.chirp", &with) {
            hold(sweep, &ours, &theirs);
        }
        assert_eq!(row(&mut node, 3), [0.0; 3]);
    }
}

#[test]
fn amplitude_and_offset_and_begin() {
    let given = [("amplitude", "3"), ("offset", "-1"), ("starts_after", "2ms")];
    let mut node = signal(&[&[("shape", "step")], &given[..]].concat());
    assert_eq!(row(&mut node, 4), [-1.0, -1.0, 2.0, 2.0]);
    let mut node = signal(&[&[("shape", "sine"), ("frequency_hz", "250")], &given[..]].concat());
    let ours = row(&mut node, 6);
    hold("sine", &ours, &[-1.0, -1.0, -1.0, 2.0, -1.0, -4.0]);
}

#[test]
fn a_square_is_as_long_up_as_down_wherever_its_steps_meet_cycles() {
    for (frequency_hz, half) in
        [("12.5", 40), ("1", 500), ("0.1", 5000), ("41.666666666666664", 12)]
    {
        let mut node = signal(&[("shape", "square"), ("frequency_hz", frequency_hz)]);
        for turn in 0..20 {
            for expected in [1.0, -1.0] {
                assert_eq!(row(&mut node, half), vec![expected; half], "{frequency_hz} {turn}");
            }
        }
    }
    assert_eq!(row(&mut signal(&[("shape", "square"), ("duty_percent", "0")]), 2), [-1.0; 2]);
    assert_eq!(row(&mut signal(&[("shape", "square"), ("duty_percent", "100")]), 2), [1.0; 2]);
}

#[test]
fn lost_periods_pass_too() {
    for shape in ["sawtooth", "noise", "chirp"] {
        let whole = row(&mut signal(&[("shape", shape)]), 20);
        let mut node = signal(&[("shape", shape)]);
        row(&mut node, 5);
        node.cycle.skipped = 7;
        assert_eq!(next(&mut node), whole[12], "{shape}");
        node.cycle.skipped = 0;
        assert_eq!(next(&mut node), whole[13], "{shape}");
    }
}

#[test]
fn noise_is_normal_white_and_the_same_in_every_run() {
    let noise = |seed: &str| row(&mut signal(&[("shape", "noise"), ("seed", seed)]), 50_000);
    let numbers = noise("1");
    assert_eq!(numbers, noise("1"));
    assert_ne!(numbers[..10], noise("2")[..10]);
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let deviation = (numbers.iter().map(|it| it * it).sum::<f64>() / count).sqrt();
    // The limits are four standard deviations of each figure.
    assert!(mean.abs() < 0.018 && (deviation - 1.0).abs() < 0.013, "{mean} {deviation}");
    if let Some(theirs) =
        reference("controllers.normality", &serde_json::json!({ "numbers": numbers }))
    {
        assert!(theirs[0] > 0.01 && theirs[1] < 4.0, "{theirs:?}");
    }
}

/// The first numbers of the generator with seed 1234567, as its authors' program prints them.
#[test]
fn the_generator_is_that_of_the_paper() {
    let published = [6_457_827_717_110_365_317u64, 3_203_168_211_198_807_973];
    assert_eq!([0, 1].map(|at| split_mix(1_234_567, at)), published);
}

#[test]
fn it_refuses_a_frequency_that_a_period_cannot_show() {
    let refused =
        |given: &[(&str, &str)]| fixture(&NODE, given).err().map(|it| it.text().to_owned());
    assert_eq!(
        refused(&[("shape", "sine"), ("frequency_hz", "500")]).as_deref(),
        Some("frequency_hz 500 is not below 500, half of 1 / period; lower it or the period")
    );
    assert_eq!(
        refused(&[("shape", "chirp"), ("frequency_end_hz", "600")]).as_deref(),
        Some("frequency_end_hz 600 is not below 500, half of 1 / period; lower it or the period")
    );
    assert_eq!(refused(&[("shape", "noise"), ("frequency_hz", "600")]), None);
    assert_eq!(refused(&[("shape", "sine"), ("frequency_end_hz", "600")]), None);
}

#[test]
fn a_cycle_does_not_allocate() {
    for shape in SHAPES {
        let mut node = signal(&[("shape", shape)]);
        let counted = allocation_counter::measure(|| {
            next(&mut node);
            next(&mut node);
        });
        assert_eq!(counted.count_total, 0, "{shape}");
    }
}
