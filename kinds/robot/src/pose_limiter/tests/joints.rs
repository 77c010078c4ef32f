//! Whatever pose it is told, `ik` behind it takes each of its targets.

use std::collections::BTreeSet;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

use fastrand::Rng;

use super::*;
use crate::ik;
use crate::kinematics::Margins;
use crate::messages::JointTargets;

/// Far more cycles than a way takes.
const CYCLES_MAX: usize = 10_000;
/// After so many cycles at a standstill it is held: sometimes it stands for a moment and goes on.
const STANDS: usize = 20;
/// Greatest speed and acceleration of the flange by default: of place (m) and turn (rad), with what
/// differences of targets may add.
const BOUNDS: [f64; 4] = [0.5 + 1e-9, 5.0 + 1e-6, 120.0 * DEGREE + 1e-6, 1000.0 * DEGREE + 1e-3];
const DEGREE: f64 = PI / 180.0;

/// Limiter and `ik`, one behind the other.
struct Pair {
    limiter: NodeFixture,
    ik: NodeFixture,
    solver: Solver,
    /// The bounds that the flange shall keep to.
    bounds: [f64; 4],
    /// The present target, and the one before.
    sent: [CartesianTarget; 2],
    joints: Joints,
    sequence: u64,
    /// Everything that has limited it.
    limited_by: BTreeSet<&'static str>,
}

impl Pair {
    fn new(place: &[(&str, &str)], given: &[(&str, &str)], bounds: [f64; 4]) -> Pair {
        let all = [place, given].concat();
        let mut limiter = limiter(&all);
        let with_arm = [&[("arm", "irb120.urdf")], place].concat();
        let mut ik = fixture(&ik::NODE, &graph(), &with_arm).expect("makes");
        let sent = [home(&mut limiter); 2];
        ik.put(0, &sent[0]);
        ik.update().expect("home");
        let joints = ik.get::<JointTargets>(1).expect("sends").position_rad;
        let margins = Margins { angle_rad: 5.0 * DEGREE, shoulder_m: 0.05 };
        let solver = arm::read(&graph().join("irb120.urdf"), margins).expect("the arm");
        let limited_by = BTreeSet::new();
        Pair { limiter, ik, solver, bounds, sent, joints, sequence: 0, limited_by }
    }

    fn target(&mut self, pose: &Pose) -> CartesianTarget {
        self.sequence += 1;
        let mut target = CartesianTarget { sequence: self.sequence, ..CartesianTarget::default() };
        target.set_pose(pose);
        target
    }

    fn pose(&self) -> Pose {
        self.sent[0].pose().expect("a rotation")
    }

    fn limit(&self) -> &'static str {
        LIMITS[self.limiter.signal(LIMITED_BY)[0] as usize]
    }

    fn cycle(&mut self, goal: Option<&CartesianTarget>) {
        if let Some(goal) = goal {
            self.limiter.put(IN, goal);
        }
        self.limiter.update().expect("no fault");
        let said = sent(&self.limiter);
        self.ik.put(0, &said);
        let from = self.joints;
        self.ik.update().unwrap_or_else(|fault| {
            panic!("target {}: {goal:?} from joints {from:?}: {fault}", self.sequence)
        });
        self.joints = self.ik.get::<JointTargets>(1).expect("sends").position_rad;
        assert_eq!(self.limiter.signal(CUT_SHORT), [0.0], "target {}: {goal:?}", self.sequence);
        let found = greatest(&[self.sent[1], self.sent[0], said]);
        for (found, bound) in found.iter().zip(self.bounds) {
            assert!(*found <= bound, "target {}: {found} of {bound}: {goal:?}", self.sequence);
        }
        self.sent = [said, self.sent[0]];
        self.limited_by.insert(self.limit());
    }

    fn is_at(&self, goal: &Pose) -> bool {
        let here = self.pose();
        here.translation.distance(goal.translation) < 1e-9
            && turn_between(here.rotation, goal.rotation).length() < 1e-9
    }

    fn stands(&self) -> bool {
        self.sent[0].position_m == self.sent[1].position_m
            && self.sent[0].orientation_xyzw == self.sent[1].orientation_xyzw
    }

    /// Goes on until it is at a pose, or held before it.
    fn until_there_or_held(&mut self, goal: &Pose) {
        let target = self.target(goal);
        let mut stood = 0;
        for _ in 0..CYCLES_MAX {
            self.cycle(Some(&target));
            stood = if self.stands() { stood + 1 } else { 0 };
            if self.is_at(goal) || stood == STANDS {
                return;
            }
        }
        // It may slide along a limit for long.
        let (at, limit) = (self.joints, self.limit());
        assert!(limit != "nothing", "neither there nor held: at {at:?} before {goal:?}");
    }

    /// Whether the arm can stand with room to spare wherever on the way it has moved and turned by
    /// any shares, so that the way is free however fast it does both.
    fn is_free(&self, goal: &Pose) -> bool {
        const PARTS: usize = 16;
        let more = Margins { angle_rad: DEGREE, shoulder_m: 5e-3 };
        let strict = self.solver.reserved(&more, 3.0 * DEGREE);
        let here = self.pose();
        let turn = turn_between(here.rotation, goal.rotation);
        let part = |part: usize| part as f64 / PARTS as f64;
        let mut row = self.joints;
        (0..=PARTS).all(|gone| {
            let mut joints = row;
            (0..=PARTS).all(|turned| {
                let pose = Pose {
                    translation: here.translation.lerp(goal.translation, part(gone)),
                    rotation: DQuat::from_scaled_axis(turn * part(turned)) * here.rotation,
                };
                // Between two parts that are further apart, there may be something.
                let Ok(next) = strict.stand(&pose, &joints) else { return false };
                let is_near = next.iter().zip(joints).all(|(a, b)| (a - b).abs() < 0.15);
                joints = next;
                row = if turned == 0 { next } else { row };
                is_near && pose.translation.z > 0.01
            })
        })
    }
}

fn by(random: &mut Rng, most: f64) -> f64 {
    most * (2.0 * random.f64() - 1.0)
}

/// A pose of one of the sorts that a program may send by mistake or on purpose.
fn any_pose(pair: &Pair, random: &mut Rng) -> Pose {
    let within = |random: &mut Rng| -> Joints {
        std::array::from_fn(|i| {
            let limits = pair.solver.limits()[i];
            limits.min_rad + (limits.max_rad - limits.min_rad) * random.f64()
        })
    };
    let mut joints = pair.joints;
    let here = pair.pose();
    match random.usize(0..9) {
        // Anywhere.
        0 => joints = within(random),
        // Near, and a little further.
        1 => joints.iter_mut().for_each(|joint| *joint += by(random, 0.3)),
        2 => joints.iter_mut().for_each(|joint| *joint += by(random, 1.2)),
        // In the middle of a singularity of the wrist, or near it, or beyond it.
        3 => {
            joints.iter_mut().for_each(|joint| *joint += by(random, 0.4));
            joints[4] = if random.bool() { 0.0 } else { by(random, 0.5) };
        }
        // The arm nearly stretched.
        4 => {
            joints.iter_mut().for_each(|joint| *joint += by(random, 0.4));
            joints[2] = -PI / 2.0 + 0.23 + by(random, 0.2);
        }
        // A joint at its limit, or a little further.
        5 => {
            let joint = random.usize(0..6);
            let limits = pair.solver.limits()[joint];
            let limit = if random.bool() { limits.min_rad } else { limits.max_rad };
            joints[joint] = limit + by(random, 0.02);
        }
        // Across axis 1.
        6 => {
            let mut pose = here;
            pose.translation.x *= -1.0;
            pose.translation.y *= if random.bool() { -1.0 } else { 1.0 };
            return pose;
        }
        // Half a turn on the spot.
        7 => {
            let axis = DVec3::new(by(random, 1.0), by(random, 1.0), by(random, 1.0));
            let turn = DQuat::from_scaled_axis(axis.normalize_or(DVec3::Z) * PI);
            return Pose { rotation: turn * here.rotation, ..here };
        }
        // Anywhere in space, mostly out of reach.
        _ => {
            let place = DVec3::new(by(random, 0.8), by(random, 0.8), by(random, 0.9));
            return Pose { translation: place, ..here };
        }
    }
    pair.solver.forward(&joints)
}

/// As many targets as variable `SINEW_TARGETS` says.
fn count() -> usize {
    let given = std::env::var("SINEW_TARGETS").ok();
    given.map_or(400, |count| count.parse().expect("a number of targets"))
}

#[test]
fn a_way_on_which_a_joint_would_be_too_fast_takes_longer_and_arrives() {
    let mut pair = Pair::new(&[], &[], BOUNDS);
    let turned = DQuat::from_xyzw(0.0, FRAC_1_SQRT_2, 0.0, FRAC_1_SQRT_2);
    let goal = Pose { translation: DVec3::new(0.3, 0.2, 0.4), rotation: turned };
    pair.until_there_or_held(&goal);
    assert!(pair.is_at(&goal), "held by {} at {:?}", pair.limit(), pair.joints);
    assert!(pair.limited_by.contains("joint 4"), "not shown: {:?}", pair.limited_by);
}

#[test]
fn no_target_of_whatever_sort_makes_ik_fault() {
    let mut pair = Pair::new(&[], &[], BOUNDS);
    let mut random = Rng::with_seed(11);
    let mut limited = 0;
    for _ in 0..count() {
        let pose = any_pose(&pair, &mut random);
        let target = pair.target(&pose);
        pair.limited_by.clear();
        for cycle in 0..random.usize(1..300) {
            // Sometimes nothing comes for long enough that it holds.
            pair.cycle(Some(&target).filter(|_| cycle < 200));
        }
        limited += usize::from(pair.limited_by.iter().any(|limit| *limit != "nothing"));
    }
    assert!(limited > count() / 50, "not shown: only {limited} targets were limited");
}

#[test]
fn neither_slow_brakes_nor_quick_motions_nor_walls_make_ik_fault() {
    let slow = [("acceleration_mm_per_s2", "200"), ("turn_acceleration_deg_per_s2", "60")];
    let quick = [("speed_mm_per_s", "3000"), ("turn_speed_deg_per_s", "900")];
    let walls = [
        ("floor_mm", "200"),
        ("box_min_mm", "[-100, -300, 0]"),
        ("box_max_mm", "[450, 300, 650]"),
        ("singularity_deg", "1"),
    ];
    let bounds = |factors: [f64; 4]| std::array::from_fn(|i| BOUNDS[i] * factors[i]);
    for (place, given, bounds, cycles_max) in [
        (&[][..], &slow[..], bounds([1.0, 0.04, 1.0, 0.06]), 2_000),
        (&[], &quick, bounds([6.0, 1.0, 7.5, 1.0]), 300),
        (&walls, &quick, bounds([6.0, 1.0, 7.5, 1.0]), 300),
    ] {
        let mut pair = Pair::new(place, given, bounds);
        let mut random = Rng::with_seed(12);
        for _ in 0..count() / 8 {
            let pose = any_pose(&pair, &mut random);
            let target = pair.target(&pose);
            for _ in 0..random.usize(1..cycles_max) {
                pair.cycle(Some(&target));
            }
        }
        assert!(pair.limited_by.len() > 3, "not shown: only {:?}", pair.limited_by);
    }
}

#[test]
fn a_goal_with_a_free_way_is_reached() {
    let mut pair = Pair::new(&[], &[], BOUNDS);
    let mut random = Rng::with_seed(13);
    let (mut free, mut held) = (0, 0);
    for number in 0..count() / 10 {
        if number % 2 == 0 {
            pair = Pair::new(&[], &[], BOUNDS);
            let start = [0.2, -0.2, 0.2, 0.5, 1.2, 0.4].map(|joint| joint + by(&mut random, 0.3));
            pair.until_there_or_held(&pair.solver.forward(&start));
        }
        let near = pair.joints.map(|joint| joint + by(&mut random, 0.5));
        let near = pair.solver.forward(&near);
        let goal = if random.bool() { near } else { any_pose(&pair, &mut random) };
        let is_free = pair.is_free(&goal);
        pair.until_there_or_held(&goal);
        let limit = pair.limit();
        assert!(
            !is_free || pair.is_at(&goal),
            "held by {limit} at {:?} before {goal:?}",
            pair.joints
        );
        free += usize::from(is_free);
        held += usize::from(!pair.is_at(&goal) && limit != "nothing");
    }
    assert!(free > count() / 80 && held > count() / 80, "not shown: {free} free, {held} held");
}

#[test]
fn what_it_holds_before_is_told_once() {
    let mut pair = Pair::new(&[], &[], BOUNDS);
    // The wrist has to turn through its straight position.
    let mut goal = pair.pose();
    goal.rotation = DQuat::from_rotation_y(-100.0 * DEGREE) * goal.rotation;
    let target = pair.target(&goal);
    for _ in 0..3_000 {
        pair.cycle(Some(&target));
    }
    assert!(pair.stands() && !pair.is_at(&goal), "at {:?}", pair.joints);
    assert_eq!(pair.limit(), "wrist");
    let lines = pair.limiter.lines();
    let [(level, line)] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(*level, Level::Warning);
    assert!(line.starts_with("holds before a wrist singularity: joint 5 would be 5.0"), "{line}");
    // Another target frees it.
    let back = pair.solver.forward(&[0.0, 0.0, 0.0, 0.0, PI / 2.0, 0.0]);
    pair.until_there_or_held(&back);
    assert!(pair.is_at(&back));
    assert_eq!(pair.limit(), "nothing");
}

#[test]
fn a_pose_without_a_rotation_is_counted_and_not_taken() {
    let mut pair = Pair::new(&[], &[], BOUNDS);
    let good = pair.sent[0];
    let wrong = [[0.0; 4], [0.0, 0.0, 0.0, 2.0], [0.5, 0.0, 0.0, 0.0], [f64::NAN; 4]];
    for (refused, orientation_xyzw) in (1..).zip(wrong) {
        pair.cycle(Some(&CartesianTarget { orientation_xyzw, sequence: 5, ..good }));
        assert_eq!(pair.limiter.signal(REFUSED), [f64::from(refused)]);
        assert_eq!(pair.sent[0].position_m, good.position_m);
        assert_eq!((pair.sent[0].sequence, pair.limiter.signal(HOLDS)), (0, &[1.0][..]));
    }
    for position in [f64::NAN, f64::INFINITY, 1e200] {
        pair.cycle(Some(&CartesianTarget { position_m: [position, 0.0, 0.5], ..good }));
    }
    assert_eq!(pair.limiter.signal(REFUSED), [7.0]);
    let lines = pair.limiter.lines();
    let [(Level::Warning, line)] = &lines[..] else { panic!("told once: {lines:?}") };
    assert!(line.ends_with("m: the length of its quaternion is not 1"), "{line}");
}

#[test]
fn a_home_too_near_to_a_singularity_is_refused() {
    let given = [("arm", "irb120.urdf"), ("home_deg", "[0, 0, 0, 0, 5.02, 0]")];
    let fault = fixture(&NODE, &graph(), &given).err().expect("is refused");
    assert!(fault.text().starts_with("home_deg: the limiter keeps 0.05 deg and 1.0 mm"), "{fault}");
    assert!(fault.text().contains("wrist singularity: joint 5 would be 5.02 deg"), "{fault}");
}
