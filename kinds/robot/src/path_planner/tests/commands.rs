//! How the planner acts on commands, and that the tool keeps to its bounds meanwhile: measured on
//! its targets alone, by differences from one cycle to the next.

use fastrand::Rng;

use super::*;
use crate::messages::{PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME};
use crate::path::tests::greatest;

const PERIOD_S: f64 = 1e-3;
/// By this factor a difference over a cycle may exceed the derivative that it approximates.
const TOLERANCE: f64 = 1.002;
/// Far more cycles than anything here takes.
const CYCLES_MAX: usize = 60_000;

/// Speed, acceleration and jerk of the default parameters, in m and in rad.
const BOUNDS: [[f64; 3]; 2] = [[0.25, 2.0, 20.0], [FRAC_PI_2, 500.0 * DEGREE, 5000.0 * DEGREE]];
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A planner whose drives are enabled, and all targets that it has written.
struct Course {
    planner: NodeFixture,
    poses: Vec<Pose>,
    /// Indices in `poses` at which the machine has stood, as nobody commanded it.
    stood: Vec<usize>,
    sequence: u64,
}

impl Course {
    fn new(given: &[(&str, &str)]) -> Course {
        Course::try_new(given).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// A planner with the square, then the plate as G-code, then another square in CSV.
    fn try_new(given: &[(&str, &str)]) -> Result<Course, Fault> {
        let mut all = vec![
            ("path", "square.csv"),
            ("other_paths", "[plate.gcode, square.csv]"),
            ("work_origin_mm", "[290, -40, 340]"),
            ("arm", "irb120.urdf"),
            ("laps", "0"),
            // The arm's places do not matter here: it always reports that it is at home.
            ("following_mm", "1000"),
            ("following_deg", "180"),
        ];
        all.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
        all.extend(given);
        let planner = fixture(&NODE, &graph(), &all)?;
        Ok(Course { planner, poses: Vec::new(), stood: Vec::new(), sequence: 0 })
    }

    fn cycle(&mut self) {
        let feedback = answer(&self.planner);
        self.planner.put(FEEDBACK, &feedback);
        self.silent_cycle();
    }

    /// A cycle without feedback.
    fn silent_cycle(&mut self) {
        if self.planner.cycle.skipped > SILENT_MAX {
            // The drives cannot be told to slow down: they have held the last target meanwhile.
            let here = self.poses[self.poses.len() - 1];
            self.stood.push(self.poses.len());
            self.poses.extend([here; 3]);
        }
        self.planner.update().expect("a command is never a fault");
        self.poses.push(target(&self.planner).pose().expect("a rotation"));
    }

    fn cycles(&mut self, count: usize) {
        (0..count).for_each(|_| self.cycle());
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&Course) -> bool) {
        for _ in 0..CYCLES_MAX {
            self.cycle();
            if is_so(self) {
                return;
            }
        }
        panic!("never {what}");
    }

    fn command(&mut self, what: u32, path: u32) {
        self.sequence += 1;
        self.planner.put(COMMAND, &PlannerCommand { sequence: self.sequence, what, path });
    }

    fn signal(&self, signal: usize) -> f64 {
        self.planner.signal(signal)[0]
    }

    /// Path under way, path chosen, lap.
    fn at(&self) -> [f64; 3] {
        [PATH, PATH_CHOSEN, LAP].map(|signal| self.signal(signal))
    }

    fn is_at_home(&self) -> bool {
        let home = self.poses[0];
        let here = self.poses[self.poses.len() - 1];
        (here.translation - home.translation).length() < 1e-9
    }

    fn stands_still(&self) -> bool {
        let [.., before, here] = self.poses[..] else { return false };
        before.translation == here.translation && before.rotation == here.rotation
    }

    /// Checks that the greatest speed, acceleration and jerk, of place and of turn, are within
    /// bounds, and returns them.
    fn keeps_to_bounds(&self) -> [[f64; 3]; 2] {
        let mut found = [[0.0; 3]; 2];
        let starts = once(0).chain(self.stood.iter().copied());
        let ends = self.stood.iter().copied().chain([self.poses.len()]);
        for (start, end) in starts.zip(ends) {
            let of_stretch = greatest(&self.poses[start..end], PERIOD_S);
            for (most, one) in found.as_flattened_mut().iter_mut().zip(of_stretch.as_flattened()) {
                *most = f64::max(*most, *one);
            }
        }
        for (found, bounds) in found.as_flattened().iter().zip(BOUNDS.as_flattened()) {
            assert!(*found <= bounds * TOLERANCE, "{found} of {bounds}");
        }
        found
    }
}

#[test]
fn a_chosen_path_begins_at_home_after_the_lap_under_way() {
    let mut course = Course::new(&[]);
    course.until("in its second lap", |course| course.at() == [0.0, 0.0, 2.0]);
    course.cycles(500);
    course.command(PLANNER_CHOOSE, 1);
    course.cycle();
    assert_eq!(course.at(), [0.0, 1.0, 2.0], "the lap goes on");
    course.until("on its way home", |course| course.at() == [0.0, 1.0, 0.0]);
    let waypoint = DVec3::new(0.275, -0.075, 0.35);
    let here = course.poses[course.poses.len() - 1].translation;
    assert!((here - waypoint).length() < 1e-4, "{here}");
    course.until("on path 1", |course| course.at() == [1.0, 1.0, 0.0]);
    assert!(course.is_at_home());
    course.until("around", |course| course.at() == [1.0, 1.0, 2.0]);
    course.keeps_to_bounds();
}

#[test]
fn of_two_choices_the_last_one_counts_and_the_same_path_is_none() {
    let mut course = Course::new(&[]);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    for path in [1, 2, 2] {
        course.command(PLANNER_CHOOSE, path);
        course.cycles(100);
    }
    course.until("on path 2", |course| course.at() == [2.0, 2.0, 1.0]);
    assert!(course.signal(PATH_SPEED) < 0.01, "path 1 was never begun");
    course.command(PLANNER_CHOOSE, 1);
    course.cycle();
    course.command(PLANNER_CHOOSE, 2);
    course.until("in the next lap", |course| course.at() == [2.0, 2.0, 2.0]);
    course.keeps_to_bounds();
}

#[test]
fn a_choice_on_the_way_back_changes_only_what_comes_next() {
    let mut course = Course::new(&[]);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    course.command(PLANNER_CHOOSE, 1);
    course.until("on its way home", |course| course.at() == [0.0, 1.0, 0.0]);
    course.cycles(300);
    course.command(PLANNER_CHOOSE, 0);
    course.until("home", Course::is_at_home);
    course.until("around again", |course| course.at() == [0.0, 0.0, 1.0]);
    course.keeps_to_bounds();
}

#[test]
fn a_choice_on_the_way_from_home_needs_no_lap() {
    let mut course = Course::new(&[]);
    course.cycles(200);
    assert!(!course.is_at_home());
    course.command(PLANNER_CHOOSE, 1);
    let mut laps = Vec::new();
    course.until("on path 1", |course| {
        laps.push(course.signal(LAP));
        course.signal(PATH) == 1.0
    });
    assert!(course.is_at_home() && laps.iter().all(|lap| *lap == 0.0));
    course.keeps_to_bounds();
}

#[test]
fn a_choice_before_the_drives_are_enabled_is_taken_at_once() {
    let mut course = Course::new(&[]);
    course.command(PLANNER_CHOOSE, 2);
    course.planner.update().expect("runs");
    assert_eq!(course.at(), [2.0, 2.0, 0.0]);
    course.until("around", |course| course.at() == [2.0, 2.0, 1.0]);
}

#[test]
fn a_pause_at_any_moment_keeps_the_tool_within_its_bounds() {
    let mut random = Rng::with_seed(5);
    for path in ["square.csv", "plate.gcode"] {
        let mut course = Course::new(&[("path", path)]);
        let mut used: f64 = 0.0;
        for _ in 0..30 {
            course.cycles(random.usize(..900));
            let speed = course.signal(PATH_SPEED);
            course.command(PLANNER_PAUSE, 0);
            // Most pauses are cancelled before the tool stands still.
            course.cycles(random.usize(1..2000));
            assert_eq!(course.signal(PAUSED), 1.0);
            course.command(PLANNER_RESUME, 0);
            used = used.max(speed);
        }
        course.keeps_to_bounds();
        assert!(used > 0.2, "paused at {used} m/s");
    }
}

#[test]
fn lost_cycles_at_any_moment_keep_the_tool_within_its_bounds() {
    for (seed, path) in [(3, "square.csv"), (4, "plate.gcode"), (5, "../robot/sinew.csv")] {
        let mut random = Rng::with_seed(seed);
        let mut course = Course::new(&[("path", path)]);
        let mut used: f64 = 0.0;
        for round in 0..60 {
            course.cycles(random.usize(..400));
            used = used.max(course.signal(PATH_SPEED));
            // How many cycles in a row are lost: all numbers up to 60, and some far beyond.
            let lost = if round % 10 == 9 { round * 40 } else { round };
            match random.u32(..3) {
                0 => (0..lost).for_each(|_| course.silent_cycle()),
                1 => course.planner.cycle.skipped = lost,
                _ => {
                    course.command(PLANNER_PAUSE, 0);
                    (0..lost).for_each(|_| course.silent_cycle());
                    course.command(PLANNER_RESUME, 0);
                }
            }
            course.cycle();
            course.planner.cycle.skipped = 0;
        }
        course.keeps_to_bounds();
        assert!(used > 0.2, "lost at {used} m/s");
    }
}

#[test]
fn a_pause_is_a_standstill_and_changes_no_place_of_the_path() {
    let mut course = Course::new(&[]);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    course.cycles(300);
    assert!(course.signal(PATH_SPEED) > 0.2);
    course.command(PLANNER_PAUSE, 0);
    course.until("still", Course::stands_still);
    course.cycles(500);
    assert!(course.stands_still() && course.signal(PATH_SPEED) == 0.0);
    course.command(PLANNER_RESUME, 0);
    course.until("around again", |course| course.at() == [0.0, 0.0, 2.0]);
    for pose in &course.poses[1_500..] {
        let [x, y, _] = (pose.translation * 1e3).to_array();
        let beside = [x - 275.0, x - 425.0, y - 75.0, y + 75.0];
        assert!(beside.iter().any(|distance| distance.abs() < 1e-6), "{x} {y}");
    }
    course.keeps_to_bounds();
}

#[test]
fn a_choice_during_a_pause_waits_for_the_end_of_the_pause() {
    let mut course = Course::new(&[]);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    course.command(PLANNER_PAUSE, 0);
    course.cycles(2_000);
    course.command(PLANNER_CHOOSE, 1);
    course.cycles(2_000);
    assert!(course.stands_still());
    assert_eq!(course.at(), [0.0, 1.0, 1.0]);
    course.command(PLANNER_RESUME, 0);
    course.until("on path 1", |course| course.at() == [1.0, 1.0, 1.0]);
    course.keeps_to_bounds();
}

#[test]
fn a_pause_at_home_keeps_the_tool_there() {
    let mut course = Course::new(&[]);
    course.command(PLANNER_PAUSE, 0);
    course.cycles(3_000);
    assert!(course.stands_still());
    course.command(PLANNER_RESUME, 0);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    course.keeps_to_bounds();
}

#[test]
fn a_hostile_mailbox_is_no_fault_and_breaks_no_bound() {
    let mut random = Rng::with_seed(7);
    let mut course = Course::new(&[]);
    for _ in 0..20_000 {
        let odd = [0, 1, 2, 3, 4, 1 << 31, u32::MAX];
        let mut word = || odd[random.usize(..odd.len())];
        let command = PlannerCommand { sequence: u64::from(word()), what: word(), path: word() };
        course.planner.put(COMMAND, &command);
        course.cycle();
    }
    assert!(course.signal(COMMANDS_IGNORED) > 5_000.0);
    assert!(course.signal(PATH) < 3.0 && course.signal(PATH_CHOSEN) < 3.0);
    course.keeps_to_bounds();
}

#[test]
fn laps_count_for_each_path_and_after_the_last_one_nobody_obeys() {
    let mut course = Course::new(&[("laps", "1")]);
    course.until("around", |course| course.at() == [0.0, 0.0, 1.0]);
    course.command(PLANNER_CHOOSE, 2);
    course.until("on the other path", |course| course.at() == [2.0, 2.0, 1.0]);
    course.until("finished", |course| course.planner.cycle.is_finished());
    let end = course.poses[course.poses.len() - 1].translation;
    assert!((end - DVec3::new(0.275, -0.075, 0.35)).length() < 1e-9, "closed: {end}");
    for what in [PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME] {
        course.command(what, 1);
        course.cycle();
    }
    assert_eq!(course.signal(COMMANDS_IGNORED), 3.0);
    assert_eq!((course.signal(PATH_CHOSEN), course.signal(PAUSED)), (2.0, 0.0));
    course.keeps_to_bounds();
}

#[test]
fn a_planner_without_other_paths_knows_only_its_own() {
    let mut course = Course::new(&[("other_paths", "[]")]);
    course.cycles(100);
    course.command(PLANNER_CHOOSE, 1);
    course.cycles(10);
    course.command(PLANNER_CHOOSE, 0);
    course.cycles(10);
    assert_eq!((course.signal(COMMANDS_IGNORED), course.signal(PATH_CHOSEN)), (1.0, 0.0));
}

#[test]
fn every_other_path_is_read_and_tried_before_the_first_cycle() {
    let refused = |given: &[_]| Course::try_new(given).err().expect("is refused").to_string();
    let missing = refused(&[("other_paths", "[square.csv, none.csv]")]);
    assert!(missing.contains("none.csv: No such file"), "{missing}");
    let outside = refused(&[("work_origin_mm", "[700, 0, 300]")]);
    assert!(outside.contains("plate.gcode:5: at x "), "{outside}");
}

#[test]
fn a_path_that_leaves_a_joint_turned_cannot_be_followed_by_another() {
    let rows = "302,0,500,180,0,180,100\n302,0,500,180,0,60,100\n302,0,500,180,0,-60,100\n";
    let alone = planner("turns", rows, &[("laps", "0")]);
    assert!(alone.is_ok(), "alone it may");
    let square = format!("[{}]", graph().join("square.csv").display());
    let text = refused("turns", rows, &[("laps", "0"), ("other_paths", &square)]);
    assert!(text.starts_with("path.csv:"), "{text}");
    assert!(text.contains("joint 6 stands at 360.0 deg, it began at 0.0"), "{text}");
}
