//! How `path_follower` drives a simulated base that obeys at once.

use std::f64::consts::{FRAC_PI_2, TAU};
use std::path::Path;

use allocation_counter::measure;
use sinew_core::NodeFixture;

use super::*;
use crate::testing::fixture;

const SQUARE: &str = "[[0, 0], [2, 0], [2, 2], [0, 2]]";

fn follower(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, Path::new("."), given).expect("makes")
}

fn refusal(given: &[(&str, &str)]) -> String {
    let made = fixture(&NODE, Path::new("."), given);
    made.err().expect("it is refused").text().to_owned()
}

fn pose(place: PlanarPlace) -> BaseState {
    let mut state = BaseState::default();
    place.show(&mut state);
    state
}

fn place(x: f64, y: f64, turn_rad: f64) -> PlanarPlace {
    PlanarPlace { position_m: DVec2::new(x, y), turn_rad }
}

/// A base that does at once what it is told, in cycles of 1 ms.
struct Obedient {
    follower: NodeFixture,
    place: PlanarPlace,
    speed_m_per_s: f64,
}

impl Obedient {
    fn new(follower: NodeFixture, place: PlanarPlace) -> Obedient {
        Obedient { follower, place, speed_m_per_s: 0.0 }
    }

    fn cycle(&mut self) -> PathProgress {
        self.follower.put(POSE, &pose(self.place));
        self.follower.update().expect("a cycle");
        let twist = self.follower.get::<TwistTarget>(OUT).expect("every cycle");
        let (speed, turn) = (twist.linear_m_per_s[0], twist.angular_rad_per_s[2]);
        assert!((0.0..=0.4 + 1e-12).contains(&speed) && turn.abs() <= 1.0 + 1e-12, "{twist:?}");
        self.speed_m_per_s = speed;
        self.place = self.place.after(speed * 1e-3, turn * 1e-3);
        self.follower.get::<PathProgress>(PROGRESS).expect("every cycle")
    }
}

/// Distance from a place to a line between two points, without the kind's own geometry.
fn off_m(at: DVec2, points: &[[f64; 2]]) -> f64 {
    let many = |pair: &[[f64; 2]]| {
        let (a, b) = (DVec2::from(pair[0]), DVec2::from(pair[1]));
        let near = |step: u32| at.distance(a.lerp(b, f64::from(step) / 2000.0));
        (0..=2000).map(near).fold(f64::MAX, f64::min)
    };
    points.windows(2).map(many).fold(f64::MAX, f64::min)
}

#[test]
fn it_reaches_the_end_from_wherever_it_begins() {
    let mut random = fastrand::Rng::with_seed(17);
    for round in 0..60 {
        let count = random.usize(2..8);
        let mut number = || random.f64() * 6.0 - 3.0;
        let points: Vec<[f64; 2]> = (0..count).map(|_| [number(), number()]).collect();
        let start = place(number(), number(), number() + 3.0);
        let follower = follower(&[("points", &format!("{points:?}"))]);
        let mut base = Obedient::new(follower, start);
        let mut cycles = 0;
        while base.cycle().state != FOLLOWER_ARRIVED {
            cycles += 1;
            assert!(cycles < 300_000, "round {round}: {points:?} from {start:?}: {:?}", base.place);
        }
        let end = DVec2::from(points[count - 1]);
        let off = base.place.position_m.distance(end);
        assert!(off <= 0.05 + 1e-9, "{off} m from the end");
        assert_eq!(base.speed_m_per_s, 0.0);
        let place = base.place;
        assert!((0..1000).all(|_| base.cycle().state == FOLLOWER_ARRIVED) && base.place == place);
    }
}

#[test]
fn on_its_path_it_is_never_farther_off_than_it_looks_ahead() {
    let points = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [-1.0, 2.0], [0.0, -1.0], [1.0, -1.0]];
    let given = [("points", &*format!("{points:?}")), ("lookahead_m", "0.3")];
    let mut base = Obedient::new(follower(&given), place(0.0, 0.0, 0.0));
    let (mut worst_m, mut nearest_m) = (0f64, [f64::MAX; 6]);
    while base.cycle().state != FOLLOWER_ARRIVED {
        worst_m = worst_m.max(off_m(base.place.position_m, &points));
        for (nearest, point) in nearest_m.iter_mut().zip(points) {
            *nearest = nearest.min(base.place.position_m.distance(point.into()));
        }
    }
    assert!(worst_m < 0.3 && nearest_m.iter().all(|m| *m < 0.3), "{worst_m}, {nearest_m:?} m");
}

#[test]
fn a_straight_line_is_driven_straight_and_its_end_slowly() {
    let mut base = Obedient::new(follower(&[("points", "[[0, 0], [3, 0]]")]), place(0.0, 0.2, 0.0));
    let mut speeds = Vec::new();
    while base.cycle().state != FOLLOWER_ARRIVED {
        speeds.push((base.place.position_m, base.speed_m_per_s));
    }
    let late = speeds.iter().filter(|(at, _)| at.x > 2.0);
    assert!(late.clone().all(|(at, _)| at.y.abs() < 0.01), "it converges");
    // v2 = 2 a s, with one tolerance as a reserve.
    assert!(late.clone().all(|(at, speed)| speed.powi(2) <= 2.0 * 0.3 * (3.0 - at.x) + 1e-3));
    assert!(late.clone().any(|(_, speed)| *speed == 0.4));
}

#[test]
fn a_path_that_repeats_has_no_end() {
    let given = [("points", SQUARE), ("repeat", "true")];
    let mut base = Obedient::new(follower(&given), place(1.0, 1.0, 0.0));
    let mut cycles = 0;
    loop {
        let progress = base.cycle();
        cycles += 1;
        if cycles > 20_000 {
            let corners = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]];
            assert!(off_m(base.place.position_m, &corners) < 0.2, "{:?}", base.place);
        }
        if progress.left_m < 0.2 {
            let [x, y] = progress.goal_m;
            assert!(x > 0.15 && y == 0.0, "its goal is on the first line again: {x}, {y}");
        }
        if progress.rounds == 4 {
            break;
        }
        assert!(progress.state == FOLLOWER_DRIVES && cycles < 200_000, "{progress:?}");
    }
    // A round is 8 m, at 0.4 m/s, with corners that are cut.
    assert!(cycles > 70_000, "{cycles}");
}

#[test]
fn it_goes_on_where_it_left_the_path() {
    let mut base = Obedient::new(follower(&[("points", SQUARE)]), place(0.0, 0.0, 0.0));
    for _ in 0..3000 {
        base.cycle();
    }
    let left_m = base.cycle().left_m;
    // The base is moved to the end of the second line, where it has not been yet.
    base.place = place(1.9, 1.9, 0.0);
    let progress = base.cycle();
    assert!((progress.left_m - left_m).abs() < 0.01, "{} and {left_m}", progress.left_m);
    let [x, y] = progress.goal_m;
    assert!((x - (6.0 - left_m)).abs() < 0.01 && y == 0.0, "back to the first line: {x}, {y}");
}

#[test]
fn what_is_near_slows_it_down_and_what_is_nearer_stops_it() {
    let mut follower = follower(&[("points", "[[0, 0], [5, 0]]")]);
    let mut speed = |range_m: [f64; 3]| {
        follower.put(POSE, &pose(place(0.0, 0.0, 0.0)));
        follower.put(RANGES, &Ranges { range_m });
        follower.update().expect("a cycle");
        let state = follower.get::<PathProgress>(PROGRESS).expect("every cycle").state;
        (follower.get::<TwistTarget>(OUT).expect("every cycle").linear_m_per_s[0], state)
    };
    assert_eq!(speed([3.0, 3.0, 0.8]), (0.4, FOLLOWER_DRIVES));
    let (half, state) = speed([0.475, 3.0, 3.0]);
    assert!((half - 0.2).abs() < 1e-12 && state == FOLLOWER_SLOWED);
    assert_eq!(speed([0.15, 3.0, 3.0]), (0.0, FOLLOWER_SLOWED));
    let (beside, _) = speed([3.0, 0.0, 3.0]);
    assert!((beside - 0.12).abs() < 1e-12, "beside its way it does not stop it: {beside}");
}

#[test]
fn it_turns_first_to_what_lies_beside_or_behind_even_before_an_obstacle() {
    for (turn_rad, turn) in [(FRAC_PI_2, -1.0), (-FRAC_PI_2, 1.0), (TAU * 0.45, -1.0)] {
        let mut follower = follower(&[("points", "[[0, 0], [5, 0]]")]);
        follower.put(POSE, &pose(place(0.0, 0.0, turn_rad.rem_euclid(TAU))));
        follower.put(RANGES, &Ranges { range_m: [0.0; 3] });
        follower.update().expect("a cycle");
        let twist = follower.get::<TwistTarget>(OUT).expect("every cycle");
        assert_eq!((twist.linear_m_per_s[0], twist.angular_rad_per_s[2]), (0.0, turn));
    }
}

#[test]
fn before_an_obstacle_it_still_turns_to_where_its_path_leads() {
    let mut follower = follower(&[("points", "[[0, 0], [5, 0]]")]);
    let mut turn = |turn_rad: f64, range_m: [f64; 3]| {
        follower.put(POSE, &pose(place(0.0, 0.0, turn_rad)));
        follower.put(RANGES, &Ranges { range_m });
        follower.update().expect("a cycle");
        let twist = follower.get::<TwistTarget>(OUT).expect("every cycle");
        (twist.linear_m_per_s[0], twist.angular_rad_per_s[2])
    };
    assert_eq!(turn(0.5, [0.1, 3.0, 3.0]), (0.0, -1.0));
    assert_eq!(turn(0.05, [0.1, 3.0, 3.0]), (0.0, 0.0), "it is on its way, and stands");
    let (speed, _) = turn(0.5, [3.0; 3]);
    assert!((speed - 0.4).abs() < 1e-12, "with nothing there it drives an arc: {speed}");
}

#[test]
fn without_a_place_it_stands() {
    let mut follower = follower(&[("points", SQUARE)]);
    follower.update().expect("a cycle");
    assert_eq!(follower.get::<TwistTarget>(OUT), Some(TwistTarget::default()));
    let progress = follower.get::<PathProgress>(PROGRESS).expect("every cycle");
    assert_eq!((progress.state, progress.left_m), (FOLLOWER_WAITS, 6.0));
    let points = follower.get::<PathPoints>(POINTS).expect("every cycle");
    assert_eq!(
        (points.count, points.repeats, points.points_m[6..9].to_vec()),
        (4, 0, vec![0.0, 2.0, 0.0])
    );
}

#[test]
fn far_away_it_still_says_numbers() {
    let mut follower = follower(&[("points", SQUARE)]);
    let far = BaseState { position_m: [-1e300, f64::MAX, 0.0], ..pose(place(0.0, 0.0, 1.0)) };
    follower.put(POSE, &far);
    follower.update().expect("a cycle");
    let twist = follower.get::<TwistTarget>(OUT).expect("every cycle");
    assert!(twist.linear_m_per_s[0].is_finite() && twist.angular_rad_per_s[2].is_finite());
    assert!(follower.signal(1)[0].is_finite());
}

#[test]
fn no_cycle_allocates() {
    let given = [("points", SQUARE), ("repeat", "true")];
    let mut base = Obedient::new(follower(&given), place(1.0, 1.0, 0.0));
    let count = measure(|| (0..30_000).for_each(|_| _ = base.cycle())).count_total;
    assert_eq!(count, 0);
}

#[test]
fn what_is_no_path_is_refused() {
    let says: [(&[(&str, &str)], &str); 6] = [
        (&[("points", "[[0, 0]]")], "points has 1 rows, expected 2 to 64"),
        (&[("points", "[[0, 0], [0, 0]]")], "points 1 and 2 are 0 m apart, expected 0.001"),
        (
            &[("points", "[[0, 0], [1, 0], [0, 0]]"), ("repeat", "true")],
            "points 3 and 1 are 0 m apart",
        ),
        (&[("points", "[[0, 0], [1]]")], "row 2 of points has 1 numbers, expected 2"),
        (&[("points", SQUARE), ("stop_m", "0.8")], "slow_m 0.8 is not more than stop_m 0.8"),
        (&[("points", SQUARE), ("lookahead_m", "0.01")], "less than tolerance_m 0.05; raise"),
    ];
    for (given, text) in says {
        let found = refusal(given);
        assert!(found.contains(text), "{given:?}: {found}");
    }
}
