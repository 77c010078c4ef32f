//! Tests how `trajectory` moves: against numerical differences, and against the closed form of the
//! time that a double-S profile takes.

use std::path::Path;

use sinew_core::NodeFixture;
use sinew_spec::alone;

use super::*;
use crate::testing::{fixture, reference};

const PERIOD_S: f64 = 1e-3;

/// Limits of velocity, acceleration and jerk.
type Bounds = [f64; 3];

fn axis(bounds: Bounds, given: &[(&str, &str)]) -> NodeFixture {
    let [velocity, acceleration, jerk] = bounds.map(|it| it.to_string());
    let limits =
        [("velocity_max", &*velocity), ("acceleration_max", &*acceleration), ("jerk_max", &*jerk)];
    fixture(&NODE, &[&limits, given].concat()).expect("makes")
}

/// Position, velocity and acceleration in the next cycle.
fn next(node: &mut NodeFixture) -> [f64; 3] {
    node.update().expect("a cycle");
    [POSITION, VELOCITY, ACCELERATION].map(|port| node.get::<Real>(port).expect("written").value)
}

fn has_arrived(node: &NodeFixture) -> bool {
    node.get::<Flag>(ARRIVED).expect("written").value.get()
}

/// Counts the cycles until the axis has arrived at its target.
fn cycles_to(node: &mut NodeFixture, target: f64) -> usize {
    node.put(TARGET, &Real { value: target });
    let is_there = |_: &usize| {
        let state = next(node);
        if has_arrived(node) {
            assert_eq!(state, [target, 0.0, 0.0]);
        }
        has_arrived(node)
    };
    (1..2_000_000).find(is_there).expect("it arrives")
}

/// Checks the outputs against the limits, by differences to the cycle before.
struct Watch {
    bounds: Bounds,
    before: [f64; 3],
    /// Position and velocity are rounded: differences up to this, in the unit of the axis, do not
    /// count.
    rounding: f64,
}

impl Watch {
    #[track_caller]
    fn look(&mut self, now: [f64; 3]) {
        let [position, velocity, acceleration] = now;
        let [velocity_max, acceleration_max, jerk_max] = self.bounds;
        let change = |at: usize| (now[at] - self.before[at]) / PERIOD_S;
        let off = self.rounding / PERIOD_S;
        for (is, most, rounding) in [
            (velocity, velocity_max, 0.0),
            (acceleration, acceleration_max, 0.0),
            (change(0), velocity_max, off),
            (change(1), acceleration_max, off),
            (change(2), jerk_max, off / PERIOD_S),
        ] {
            let most = most * (1.0 + 1e-9) + rounding;
            assert!(is.abs() <= most, "{is} with {most}: {now:?} after {:?}", self.before);
        }
        // The three outputs belong together: the mean of the velocities is the way, except for the
        // jerk.
        let mean = f64::midpoint(velocity, self.before[1]);
        let bend = jerk_max * PERIOD_S * PERIOD_S / 4.0;
        assert!((change(0) - mean).abs() <= bend + off, "{position}: {} and {mean}", change(0));
        self.before = now;
    }
}

const BOUNDS: [Bounds; 6] = [
    [1.0, 2.0, 20.0],
    [0.5, 30.0, 40.0],
    [2.0, 0.3, 1000.0],
    [1000.0, 5000.0, 1e5],
    [3.0, 1.0, 0.1],
    [0.01, 10.0, 1e4],
];

#[test]
fn no_target_makes_it_leave_its_limits_or_is_not_taken() {
    let mut random = fastrand::Rng::with_seed(11);
    for bounds in BOUNDS {
        let mut node = axis(bounds, &[]);
        let mut watch = Watch { bounds, before: [0.0; 3], rounding: 1e-12 * bounds[0].max(1.0) };
        for _ in 0..400 {
            let size = bounds[0] * [1e-3, 0.1, 1.0, 10.0][random.usize(..4)];
            let mut target = (random.f64() - 0.5) * size;
            let moves = (random.f64() - 0.5) * bounds[0] * 3.0 * PERIOD_S;
            let is_moving = random.u8(..3) == 0;
            for _ in 0..random.usize(1..600) {
                target += if is_moving { moves } else { 0.0 };
                node.put(TARGET, &Real { value: target });
                watch.look(next(&mut node));
            }
        }
        assert_eq!(node.signal(REFUSED), [0.0], "{bounds:?}");
        cycles_to(&mut node, 0.1);
    }
}

#[test]
fn a_motion_takes_the_time_of_the_closed_form() {
    let mut random = fastrand::Rng::with_seed(12);
    let (mut ways, mut all) = (Vec::new(), Vec::new());
    for bounds in &BOUNDS[..5] {
        for _ in 0..8 {
            let way = (random.f64() - 0.5) * bounds[0] * 10f64.powi(random.i32(-4..2));
            ways.push((*bounds, way));
            all.push([way, bounds[0], bounds[1], bounds[2]]);
        }
    }
    let Some(times) = reference("controllers.double_s", &serde_json::json!({ "ways": all })) else {
        return;
    };
    for ((bounds, way), time_s) in ways.into_iter().zip(times) {
        let mut node = axis(bounds, &[]);
        node.put(TARGET, &Real { value: way });
        next(&mut node);
        let left_s = node.signal(LEFT)[0] + PERIOD_S;
        let expected_s = time_s.max(PERIOD_S);
        assert!((left_s - expected_s).abs() < 1e-9 * expected_s, "{bounds:?} {way} {time_s}");
        let cycles = 1 + if has_arrived(&node) { 0 } else { cycles_to(&mut node, way) };
        let expected = (time_s / PERIOD_S).ceil() as usize;
        assert!(cycles.abs_diff(expected) <= 1, "{bounds:?} {way}: {cycles}, not {expected}");
    }
}

#[test]
fn it_goes_around_its_waypoints_and_rests_in_each() {
    let given = [("waypoints", "[0.2, 0.2, -0.1]"), ("dwell", "5ms"), ("repeat", "true")];
    let mut node = axis(BOUNDS[0], &given);
    let mut watch = Watch { bounds: BOUNDS[0], before: [0.0; 3], rounding: 1e-12 };
    let mut rests: Vec<(f64, usize)> = Vec::new();
    for _ in 0..6000 {
        let state = next(&mut node);
        watch.look(state);
        match rests.last_mut() {
            Some((place, cycles)) if has_arrived(&node) && *place == state[0] => *cycles += 1,
            _ if has_arrived(&node) => rests.push((state[0], 1)),
            _ => {}
        }
    }
    // The cycle of arrival and 5 of dwell. The second waypoint equals the first, so it adds 6 more.
    let expected = [(0.2, 12), (-0.1, 6)];
    assert!(
        rests.len() > 4 && rests.iter().zip(expected.iter().cycle()).all(|(is, it)| is == it),
        "{rests:?}"
    );
    assert!(!node.cycle.is_finished());
}

#[test]
fn after_the_last_waypoint_it_stays_and_may_end_the_run() {
    for finish in ["true", "false"] {
        let mut node = axis(
            BOUNDS[0],
            &[("waypoints", "[0.01, 0.02]"), ("finish", finish), ("initial", "0.01")],
        );
        let is_over = |_: &usize| {
            let state = next(&mut node);
            assert!(!node.cycle.is_finished() || state == [0.02, 0.0, 0.0]);
            node.cycle.is_finished()
        };
        let finished = (0..2000).find(is_over);
        assert_eq!(finished.is_some(), finish == "true");
        assert_eq!(next(&mut node), [0.02, 0.0, 0.0]);
        assert!(has_arrived(&node));
    }
}

#[test]
fn while_the_graph_stops_it_brakes_within_its_limits() {
    for given in [&[][..], &[("waypoints", "[50]"), ("finish", "true")]] {
        let mut node = axis(BOUNDS[0], given);
        let mut watch = Watch { bounds: BOUNDS[0], before: [0.0; 3], rounding: 1e-12 };
        if given.is_empty() {
            node.put(TARGET, &Real { value: 50.0 });
        }
        (0..400).for_each(|_| watch.look(next(&mut node)));
        assert_ne!(node.signal(LEFT), [0.0]);
        node.cycle.stopping = true;
        let speed = watch.before[1];
        let cycles = (1..5000).find(|_| {
            watch.look(next(&mut node));
            node.signal(LEFT) == [0.0]
        });
        let least = speed / BOUNDS[0][1] / PERIOD_S;
        let cycles = cycles.expect("it stands") as f64;
        assert!(cycles > least && cycles < 2.0 * least, "{cycles} cycles from {speed}");
        let place = watch.before[0];
        assert!(place < 1.0);
        assert_eq!(next(&mut node), [place, 0.0, 0.0]);
        assert!(!has_arrived(&node) && !node.cycle.is_finished());
    }
}

#[test]
fn without_a_target_it_rests_where_it_begins() {
    let mut node = axis(BOUNDS[0], &[("initial", "-0.5")]);
    assert_eq!(next(&mut node), [-0.5, 0.0, 0.0]);
    assert!(!has_arrived(&node) && node.signal(LEFT) == [0.0]);
}

#[test]
fn a_target_out_of_reach_is_counted_and_not_taken() {
    let mut node = axis(BOUNDS[0], &[]);
    cycles_to(&mut node, 0.1);
    node.put(TARGET, &Real { value: 1e300 });
    let counted = allocation_counter::measure(|| {
        assert_eq!(next(&mut node), [0.1, 0.0, 0.0]);
    });
    assert_eq!(counted.count_total, 0);
    assert!(!has_arrived(&node));
    assert_eq!(node.signal(REFUSED), [1.0]);
    cycles_to(&mut node, 0.2);
}

#[test]
fn it_refuses_what_it_cannot_do() {
    let limits = [("velocity_max", "1"), ("acceleration_max", "1"), ("jerk_max", "1")];
    let refused = |given: &[(&str, &str)]| {
        fixture(&NODE, &[&limits, given].concat()).err().expect("refuses").text().to_owned()
    };
    assert_eq!(
        refused(&[("finish", "true")]),
        "finish is true, with 0 waypoints and repeat: false; give one or more, and repeat: false"
    );
    assert_eq!(
        refused(&[("waypoints", "[1]"), ("finish", "true"), ("repeat", "true")]),
        "finish is true, with 1 waypoints and repeat: true; give one or more, and repeat: false"
    );
    let given = [&limits[..], &[("waypoints", "[1, 2]")]].concat();
    let node = alone(NODE.kind, &given, "").expect("compiles");
    let parameters = Parameters {
        kind: node.kind,
        values: &node.values,
        base: Path::new("."),
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![(TARGET, Real::TYPE)],
        home: None,
    };
    assert_eq!(
        make(&parameters).err().expect("refuses").text(),
        "port 'target' is linked, and there are 2 waypoints; leave one out"
    );
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut random = fastrand::Rng::with_seed(13);
    let mut node = axis(BOUNDS[0], &[]);
    let mut tour = axis(BOUNDS[0], &[("waypoints", "[0.1, 0]"), ("repeat", "true")]);
    let counted = allocation_counter::measure(|| {
        for _ in 0..2000 {
            node.put(TARGET, &Real { value: random.f64() });
            next(&mut node);
            next(&mut tour);
        }
        node.cycle.stopping = true;
        next(&mut node);
    });
    assert_eq!(counted.count_total, 0);
}

/// Varies the ratios of the limits, the ways and the moments to turn, in the units in which Ruckig
/// is called.
#[test]
fn every_target_within_reach_has_a_profile() {
    let mut random = fastrand::Rng::with_seed(99);
    for round in 0..5000 {
        let jerk = 10f64.powi(random.i32(-4..=4));
        let time_s = 1f64.max(1.0 / jerk.sqrt());
        let limits = AxisLimits { velocity: 1.0, acceleration: 1.0, jerk };
        let mut motion = AxisMotion::new(limits, 0.0);
        for _ in 0..5 {
            let far = (random.f64() - 0.5) * 10f64.powi(random.i32(-9..=7));
            assert!(motion.go(far * time_s), "round {round}: {far} with {jerk}");
            motion.advance(random.f64() * 3.0 * time_s);
        }
        assert!(motion.brake(), "round {round} with {jerk}");
    }
}

/// Changes limits to others, up to ten thousand times as great or as small.
#[test]
fn every_change_of_limits_in_motion_has_a_profile() {
    let mut random = fastrand::Rng::with_seed(98);
    let mut changes = 0;
    for round in 0..3000 {
        let decades = random.f64() * 4.0;
        let mut draw = || 10f64.powf(decades * (random.f64() - 0.5));
        let mut limits = || AxisLimits { velocity: draw(), acceleration: draw(), jerk: draw() };
        let mut motion = AxisMotion::new(limits(), 0.0);
        let all: Vec<_> = (0..20).map(|_| limits()).collect();
        for limits in all {
            let goal = 10f64.powf(decades * (random.f64() - 0.5)) * (random.f64() - 0.5).signum();
            let counted = allocation_counter::measure(|| {
                motion.go(goal);
                motion.advance(random.f64());
                assert!(motion.limit(limits), "round {round}: {limits:?}");
                if random.u8(..8) == 0 {
                    assert!(motion.brake(), "round {round}: {limits:?}");
                }
            });
            assert_eq!(counted.count_total, 0, "round {round}: {limits:?} to {goal}");
            changes += u32::from(motion.left_s() > 0.0);
        }
        motion.brake();
        motion.advance(motion.left_s());
        assert_eq!(motion.state()[1..], [0.0; 2], "round {round}");
    }
    assert!(changes > 10_000, "in motion: {changes}");
}
