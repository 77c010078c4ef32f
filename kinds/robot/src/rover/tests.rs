//! How `rover` moves among obstacles, and what its sensors see, against an independent geometry.

use std::f64::consts::{FRAC_PI_2, TAU};
use std::path::Path;

use allocation_counter::measure;
use rs_opw_kinematics::glam::DVec2;
use sinew_core::NodeFixture;
use zerocopy::IntoBytes;

use super::*;
use crate::testing::fixture;
use crate::tuning_tests::tune;

const GAP: usize = 5;

fn rover(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, Path::new("."), given).expect("makes")
}

fn refusal(given: &[(&str, &str)]) -> String {
    let made = fixture(&NODE, Path::new("."), given);
    made.err().expect("it is refused").text().to_owned()
}

fn twist(speed_m_per_s: f64, turn_rad_per_s: f64) -> TwistTarget {
    TwistTarget {
        linear_m_per_s: [speed_m_per_s, 0.0, 0.0],
        angular_rad_per_s: [0.0, 0.0, turn_rad_per_s],
    }
}

fn run(rover: &mut NodeFixture, target: &TwistTarget, cycles: usize) -> BaseState {
    for _ in 0..cycles {
        rover.put(IN, target);
        rover.update().expect("a cycle");
    }
    rover.get::<BaseState>(OUT).expect("every cycle")
}

fn is_bumped(rover: &NodeFixture) -> bool {
    rover.get::<Flag>(BUMPED).expect("every cycle").value.get()
}

/// Fence and obstacles of a test.
struct Drawn {
    fence: [f64; 4],
    circles: Vec<[f64; 3]>,
}

impl Drawn {
    fn random(random: &mut fastrand::Rng) -> Drawn {
        let mut circles = Vec::new();
        while circles.len() < 24 {
            let mut number = |least: f64, most: f64| least + random.f64() * (most - least);
            let [x, y, radius] = [number(-3.9, 3.9), number(-2.9, 2.9), number(0.02, 0.5)];
            // The middle stays free, as the rover begins there.
            if x.hypot(y) > radius + 0.3 {
                circles.push([x, y, radius]);
            }
        }
        Drawn { fence: [-4.0, -3.0, 4.0, 3.0], circles }
    }

    fn rover(&self, given: &[(&str, &str)]) -> NodeFixture {
        let (fence, obstacles) = (format!("{:?}", self.fence), format!("{:?}", self.circles));
        rover(&[&[("fence_m", &*fence), ("obstacles", &*obstacles)], given].concat())
    }

    /// Whether a point is inside the fence and outside all obstacles.
    fn is_open(&self, x: f64, y: f64) -> bool {
        let [x_min, y_min, x_max, y_max] = self.fence;
        let is_inside = x > x_min && x < x_max && y > y_min && y < y_max;
        is_inside
            && self.circles.iter().all(|[cx, cy, r]| (x - cx).powi(2) + (y - cy).powi(2) > r * r)
    }

    /// Marches along a ray by small steps until it is no longer in the open.
    fn march_m(&self, [x, y]: [f64; 2], angle_rad: f64, step_m: f64, most_m: f64) -> f64 {
        let steps = (most_m / step_m) as u32;
        let away = |step: u32| f64::from(step) * step_m;
        let meets = |step: &u32| {
            let m = away(*step);
            !self.is_open(x + m * angle_rad.cos(), y + m * angle_rad.sin())
        };
        (0..=steps).find(meets).map_or(most_m, away)
    }
}

#[test]
fn its_sensors_see_what_a_march_along_the_ray_meets() {
    const STEP_M: f64 = 2e-4;
    let mut random = fastrand::Rng::with_seed(5);
    let mut hits = 0;
    for _ in 0..20 {
        let drawn = Drawn::random(&mut random);
        let turn_rad = random.f64() * TAU;
        let mut rover = drawn.rover(&[("start_turn_rad", &turn_rad.to_string())]);
        let state = run(&mut rover, &twist(0.0, 0.0), 1);
        let seen_m = rover.get::<Ranges>(RANGES).expect("every cycle").range_m;
        let [x, y, _] = state.position_m;
        for (seen_m, look_rad) in seen_m.iter().zip([0.0, TAU / 12.0, -TAU / 12.0]) {
            let marched_m = drawn.march_m([x, y], turn_rad + look_rad, STEP_M, 3.22) - 0.22;
            // A ray may pass through a rim that is thinner than a step.
            let off_m = marched_m - seen_m;
            assert!((-1e-9..=STEP_M + 1e-9).contains(&off_m), "{seen_m} and {marched_m} m");
            hits += u32::from(*seen_m < 3.0);
        }
    }
    assert!(hits > 30, "most rays meet something: {hits}");
}

#[test]
fn it_never_enters_anything_wherever_it_is_driven() {
    let mut random = fastrand::Rng::with_seed(8);
    let (mut bumps, mut way_m) = (0, 0.0);
    for _ in 0..30 {
        let drawn = Drawn::random(&mut random);
        let mut rover = drawn.rover(&[("slip", "[0.02, -0.01]")]);
        let mut before = DVec2::ZERO;
        for _ in 0..150 {
            let target = twist(random.f64() * 4.0 - 1.5, random.f64() * 6.0 - 3.0);
            rover.cycle.skipped = if random.u8(..10) == 0 { random.u64(..500) } else { 0 };
            let count = random.usize(1..100);
            let mut state = run(&mut rover, &target, 1);
            rover.cycle.skipped = 0;
            for _ in 0..count {
                let at = DVec2::new(state.position_m[0], state.position_m[1]);
                for [x, y, radius] in &drawn.circles {
                    let gap_m = at.distance(DVec2::new(*x, *y)) - radius - 0.22;
                    assert!(gap_m >= -1e-12, "{gap_m} m");
                }
                assert!(at.x.abs() <= 3.78 + 1e-12 && at.y.abs() <= 2.78 + 1e-12, "{at}");
                way_m += at.distance(before);
                before = at;
                state = run(&mut rover, &target, 1);
            }
            bumps += u32::from(is_bumped(&rover));
        }
    }
    assert!(bumps > 300 && way_m > 100.0, "{bumps} contacts on {way_m} m");
}

#[test]
fn numbers_that_change_while_it_drives_make_it_jump_nowhere() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut rover = rover(&[]);
    let mut before = run(&mut rover, &twist(0.0, 0.0), 1);
    let mut bumps = 0;
    for _ in 0..300 {
        let drawn = [(0.2, 0.8), (5.0, 40.0), (20.0, 200.0), (0.5, 5.0)]
            .map(|(least, most)| least + random.f64() * (most - least));
        let names =
            ["track_m", "wheel_speed_rad_per_s", "wheel_acceleration_rad_per_s2", "range_max_m"];
        let given = drawn.map(|it| it.to_string());
        let given: Vec<_> = names.into_iter().zip(given.iter().map(String::as_str)).collect();
        assert_eq!(tune(&mut rover, &NODE, Path::new("."), &given), 0);
        let target = twist(random.f64() * 4.0 - 1.5, random.f64() * 6.0 - 3.0);
        for _ in 0..random.usize(1..900) {
            let now = run(&mut rover, &target, 1);
            let [from, to] = [&before, &now].map(PlanarPlace::of);
            // 40 rad/s with wheels of 0.05 m; and with the wheels in opposite directions, 0.2 m
            // apart.
            assert!(from.position_m.distance(to.position_m) <= 2e-3, "{from:?} to {to:?}");
            assert!((to.turn_rad - from.turn_rad).sin().abs() <= 20e-3, "{from:?} to {to:?}");
            for wheel in [0, 1] {
                let of = |state: &BaseState| {
                    (state.wheel_position_rad[wheel], state.wheel_velocity_rad_per_s[wheel])
                };
                let ((from, slow), (to, fast)) = (of(&before), of(&now));
                assert!((to - from).abs() <= 40e-3 + 1e-9, "{from} to {to} rad");
                let most = drawn[2] * 1e-3 + 1e-9;
                assert!((fast - slow).abs() <= most || is_bumped(&rover), "{slow} to {fast} rad/s");
            }
            before = now;
        }
        bumps += u32::from(is_bumped(&rover));
    }
    assert!((10..290).contains(&bumps), "it drives, and is touched: {bumps}");
}

#[test]
fn at_contact_it_stands_and_can_turn_and_go_back() {
    let mut rover = rover(&[("obstacles", "[[2, 0, 0.5]]")]);
    let state = run(&mut rover, &twist(1.0, 0.0), 3000);
    assert!((state.position_m[0] - 1.28).abs() < 1e-6, "2 - 0.5 - 0.22: {state:?}");
    assert_eq!((state.linear_m_per_s[0], is_bumped(&rover)), (0.0, true));
    let text = "touches something at x 1.28 m, y 0.00 m; see 'obstacles', 'fence_m'";
    assert_eq!(rover.lines(), [(Level::Warning, text.to_owned())], "once, not in every cycle");
    let turned = state.wheel_position_rad[0] * 0.05;
    assert!((turned - 1.28).abs() < 1e-3, "its wheels stand too: {turned} m");
    // Ahead and to the left: it turns until its way is free.
    let state = run(&mut rover, &twist(0.5, 1.0), 3000);
    assert!(state.position_m[1].abs() > 0.1, "it comes away: {state:?}");
    let mut rover = self::rover(&[("obstacles", "[[2, 0, 0.5]]")]);
    run(&mut rover, &twist(1.0, 0.0), 3000);
    let state = run(&mut rover, &twist(-1.0, 0.0), 500);
    assert!(state.position_m[0] < 1.0 && !is_bumped(&rover), "{state:?}");
}

#[test]
fn a_long_gap_leads_through_nothing() {
    let mut rover = rover(&[("obstacles", "[[1, 0, 0.01]]")]);
    rover.cycle.skipped = u64::MAX;
    let state = run(&mut rover, &twist(2.0, 0.0), 2);
    assert!((state.position_m[0] - 0.77).abs() < 1e-6, "{state:?}");
    // A rover whose way is free advances by one second.
    let mut rover = self::rover(&[("fence_m", "[-1, -1, 100, 1]")]);
    run(&mut rover, &twist(2.0, 0.0), 1000);
    let before = run(&mut rover, &twist(2.0, 0.0), 1).position_m[0];
    rover.cycle.skipped = u64::MAX;
    let after = run(&mut rover, &twist(2.0, 0.0), 1).position_m[0];
    assert!((after - before - 2.0).abs() < 1e-9, "{}", after - before);
}

#[test]
fn what_its_wheels_slip_is_missing_in_its_way() {
    let mut rover = rover(&[("slip", "[0.1, 0.1]"), ("fence_m", "[-9, -9, 9, 9]")]);
    let state = run(&mut rover, &twist(0.5, 0.0), 4000);
    let wheels_m = state.wheel_position_rad[1] * 0.05;
    assert!((state.position_m[0] - 0.9 * wheels_m).abs() < 1e-9, "{wheels_m}");
    let mut rover = self::rover(&[("slip", "[0.1, 0]")]);
    let state = run(&mut rover, &twist(0.5, 0.0), 2000);
    let turn_rad = rover.signal(1)[0];
    let expected = 0.1 * state.wheel_position_rad[0] * 0.05 / 0.4;
    assert!((turn_rad - expected).abs() < 1e-9, "to the left: {turn_rad}, {expected} rad");
}

#[test]
fn it_stands_at_its_safe_value_and_tells_what_is_around() {
    let given = [("start_m", "[1, 2]"), ("obstacles", "[[3, 2, 0.5], [-1, -1, 0.25]]")];
    let mut rover = rover(&given);
    run(&mut rover, &twist(0.3, 0.5), 300);
    assert!(!rover.at_rest());
    let mut stand = TwistTarget::default();
    safe(IN, 0, stand.as_mut_bytes());
    for _ in 0..400 {
        rover.put_safe(IN, &stand);
        rover.update().expect("a cycle");
    }
    assert!(rover.at_rest());
    let map = rover.get::<PlaneMap>(PLANE).expect("every cycle");
    assert_eq!((map.fence_m, map.count), ([-4.0, -3.0, 4.0, 3.0], 2));
    assert_eq!(map.base_radius_m, 0.22);
    assert_eq!(map.obstacles_m[..7], [3.0, 2.0, 0.5, -1.0, -1.0, 0.25, 0.0]);
}

#[test]
fn it_sees_as_far_as_it_may() {
    let turn_rad = FRAC_PI_2.to_string();
    let mut rover = rover(&[("range_max_m", "2.5"), ("start_turn_rad", &turn_rad)]);
    run(&mut rover, &twist(0.0, 0.0), 1);
    let seen_m = rover.get::<Ranges>(RANGES).expect("every cycle").range_m;
    assert_eq!(seen_m, [2.5; 3], "3 m to the fence, less its radius");
    assert!((rover.signal(GAP)[0] - 2.78).abs() < 1e-12);
}

#[test]
fn no_cycle_allocates() {
    let mut rover = rover(&[("obstacles", "[[1, 0, 0.3]]")]);
    let count = measure(|| _ = run(&mut rover, &twist(1.0, 0.1), 3000)).count_total;
    assert_eq!(count, 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let says = [
        (("obstacles", "[[0.5, 0, 0.4]]"), "is 0.120 m inside row 1 of obstacles; move one"),
        (("start_m", "[3.9, 0]"), "is 0.120 m inside fence_m"),
        (("fence_m", "[1, -3, -1, 3]"), "has nothing in it; write least x and y"),
        (("obstacles", "[[1, 1]]"), "row 1 of obstacles has 2 numbers, expected 3"),
        (("obstacles", "[[1, 1, a]]"), "'a' in row 1 of obstacles, expected a number"),
        (("obstacles", "[[1, 1, .inf]]"), "in row 1 of obstacles, expected a number"),
        (("obstacles", "[[1, 1, 0]]"), "row 1 of obstacles has radius 0, expected more"),
        (("obstacles", "5"), "obstacles is a single value, expected a list of rows"),
        (("wheel_speed_rad_per_s", "1e3"), "wheels make 50 m/s, more than 100 times radius_m"),
    ];
    for (given, text) in says {
        let found = refusal(&[given]);
        assert!(found.contains(text), "{given:?}: {found}");
    }
    let many = format!("[{}]", "[3, 2, 0.1],".repeat(65));
    assert!(refusal(&[("obstacles", &many)]).contains("has 65 rows, expected 0 to 64"));
}
