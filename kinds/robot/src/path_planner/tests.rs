//! What the planner refuses before the first cycle, and how it uses feedback.

mod commands;
mod outages;

use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, graph};

/// A planner for a path of the given waypoints, in a folder of its own.
fn planner(name: &str, rows: &str, given: &[(&str, &str)]) -> Result<NodeFixture, Fault> {
    let folder = std::env::temp_dir().join(format!("sinew_planner_{}_{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!("{}\n{rows}", path::csv::HEADER);
    std::fs::write(folder.join("path.csv"), text).expect("writes");
    let arm = graph().join("irb120.urdf").display().to_string();
    let mut given = given.to_vec();
    given.extend([("path", "path.csv"), ("arm", arm.as_str())]);
    let answer = fixture(&NODE, &folder, &given);
    std::fs::remove_dir_all(&folder).expect("removes");
    answer
}

fn refused(name: &str, rows: &str, given: &[(&str, &str)]) -> String {
    planner(name, rows, given).err().expect("is refused").text().to_owned()
}

const GOOD: &str = "302,0,500,180,0,180,100\n302,20,500,180,0,180,100\n";

#[test]
fn a_path_outside_the_workspace_is_refused_at_its_line() {
    let text = refused("outside", "302,0,500,180,0,180,100\n700,0,300,180,0,180,10\n", &[]);
    assert!(text.starts_with("path.csv:3: at x "), "{text}");
    assert!(text.contains("mm: "), "{text}");
    let found = text.contains("elbow singularity") || text.contains("out of reach");
    assert!(found, "{text}");
}

#[test]
fn of_several_violations_the_one_that_makes_the_others_is_told() {
    // On the way there the arm stretches, and joint 3 also turns too fast.
    let text = refused("cause", "302,0,500,180,0,180,100\n900,0,400,180,0,180,250\n", &[]);
    assert_eq!(
        text,
        "path.csv:3: at x 900.0 y 0.0 z 400.0 mm: out of reach: wrist centre 0.9182 m from \
         joint 2, the arm reaches 0.0400 to 0.5800 m: 0.3382 m too far; move the path"
    );
    // Too fast at line 3, out of reach at line 4.
    let fast = "302,0,500,180,0,180,100\n302,0,500,180,0,90,100\n302,0,900,180,0,90,100\n";
    let speeds = [
        ("turn_speed_deg_per_s", "900"),
        ("turn_acceleration_deg_per_s2", "9000"),
        ("turn_jerk_deg_per_s3", "500000"),
    ];
    let text = refused("later", fast, &speeds);
    assert!(text.starts_with("path.csv:4: at x 302.0 y 0.0 z 900.0 mm: out of reach"), "{text}");
    // Too fast at line 3, through the wrist's singularity at line 5.
    let fast = "302,0,500,180,0,180,100\n302,0,500,180,0,90,100\n302,0,500,180,0,180,100\n\
                320,0,500,180,100,180,100\n";
    let text = refused("singular", fast, &speeds);
    assert!(text.starts_with("path.csv:5: ") && text.contains("wrist singularity"), "{text}");
}

#[test]
fn a_flange_below_the_floor_is_refused_wherever_on_the_path_it_is() {
    let below = "302,0,500,180,0,180,100\n350,0,-120,180,-40,180,100\n";
    assert_eq!(
        refused("floor", below, &[]),
        "path.csv:3: at x 350.0 y 0.0 z -120.0 mm: 120.000 mm below the floor: z is -120.000 mm, \
         floor_mm says 0.000; move it or change floor_mm"
    );
    let cellar = planner("cellar", below, &[("floor_mm", "-120")]);
    assert!(cellar.is_ok(), "{}", cellar.err().expect("a fault"));
    let text = refused("table", GOOD, &[("floor_mm", "600")]);
    assert!(text.starts_with("home_deg: 42.000 mm below the floor: z is 558.000 mm"), "{text}");
}

#[test]
fn the_box_is_looked_at_on_all_six_sides() {
    for (knob, value, text) in [
        ("box_min_mm", "[303, -900, -900]", "1.000 mm before the box: x is 302.000 mm"),
        ("box_min_mm", "[-900, 1, -900]", "1.000 mm before the box: y is 0.000 mm"),
        ("box_min_mm", "[-900, -900, 501]", "1.000 mm before the box: z is 500.000 mm"),
        ("box_max_mm", "[301, 900, 900]", "1.000 mm beyond the box: x is 302.000 mm"),
        ("box_max_mm", "[900, 19, 900]", "1.000 mm beyond the box: y is 20.000 mm"),
        ("box_max_mm", "[900, 900, 557]", "1.000 mm beyond the box: z is 558.000 mm"),
    ] {
        let found = refused("box", GOOD, &[(knob, value)]);
        assert!(found.contains(text), "{found}");
        assert!(found.ends_with(&format!("move it or change {knob}")), "{found}");
    }
    let none = [("box_min_mm", "[0, 5, 0]"), ("box_max_mm", "[900, 5, 900]")];
    assert_eq!(
        refused("none", GOOD, &none),
        "box_min_mm and box_max_mm leave no room in y: 5.000 to 5.000 mm; give the lesser one in \
         box_min_mm"
    );
}

#[test]
fn an_arc_that_leaves_the_box_between_its_ends_is_refused() {
    // Half a circle of 30 mm from x 300 to x 360, through y -30. All its ends are at y 0.
    let given = |y: &'static str| {
        [
            ("path", "bulge.gcode"),
            ("arm", "irb120.urdf"),
            ("box_min_mm", y),
            ("work_origin_mm", "[300, 0, 450]"),
        ]
    };
    let folder = std::env::temp_dir().join(format!("sinew_bulge_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(graph().join("irb120.urdf"), folder.join("irb120.urdf")).expect("copies");
    let text = "G21 G90\nG1 X0 Y0 Z0 F3000\nG3 X60 Y0 I30 J0\nM2\n";
    std::fs::write(folder.join("bulge.gcode"), text).expect("writes");
    let outside = fixture(&NODE, &folder, &given("[-900, -29.99, -900]"));
    let inside = fixture(&NODE, &folder, &given("[-900, -30, -900]"));
    std::fs::remove_dir_all(&folder).expect("removes");
    let outside = outside.err().expect("is refused");
    assert!(outside.text().starts_with("bulge.gcode:3: at x 330.0 y -30.0 z 450.0"), "{outside}");
    assert!(outside.text().contains("0.010 mm before the box: y is -30.000 mm"), "{outside}");
    assert!(inside.is_ok(), "{}", inside.err().expect("a fault"));
}

#[test]
fn a_path_through_a_wrist_singularity_is_refused() {
    // The tool turns from downwards to forwards, so the wrist is straight on the way.
    let text = refused("wrist", "302,0,500,180,0,180,100\n320,0,500,180,100,180,100\n", &[]);
    assert!(text.starts_with("path.csv:3: at x "), "{text}");
    assert!(text.contains("wrist singularity: joint 5 would be 4.9"), "{text}");
}

#[test]
fn a_path_over_axis_1_is_refused() {
    let text = refused("over", "302,0,500,180,0,180,100\n-302,0,500,180,0,180,100\n", &[]);
    assert!(text.starts_with("path.csv:3: at x "), "{text}");
    assert!(text.contains("shoulder singularity") || text.contains("joint"), "{text}");
}

#[test]
fn a_path_faster_than_a_joint_is_refused() {
    let rows = "302,0,500,180,0,180,100\n302,0,500,180,0,90,100\n";
    let fast = [
        ("turn_speed_deg_per_s", "900"),
        ("turn_acceleration_deg_per_s2", "9000"),
        ("turn_jerk_deg_per_s3", "500000"),
    ];
    let text = refused("fast", rows, &fast);
    assert!(text.contains("joint 6 would turn at 42"), "{text}");
    assert!(text.ends_with("its limit is 420.0 deg/s; lower the path speed"), "{text}");
    assert!(planner("slow", rows, &[]).is_ok());
}

#[test]
fn a_path_that_takes_for_ever_is_refused() {
    let text = refused("ages", "302,0,500,180,0,180,100\n302,20,500,180,0,180,0.0001\n", &[]);
    assert_eq!(text, "path.csv:2: the path takes 56 h; at most 24; raise its speeds");
}

#[test]
fn a_joint_beyond_its_limit_is_refused() {
    let rows = "302,0,500,180,0,180,100\n302,0,500,180,0,60,100\n302,0,500,180,0,-60,100\n\
                302,0,500,180,0,180,100\n302,0,500,180,0,60,100\n302,0,500,180,0,-60,100\n";
    let text = refused("limit", rows, &[]);
    assert!(text.contains("joint 6 would stand at"), "{text}");
    assert!(text.contains("limits are -400.00 to 400.00 deg"), "{text}");
}

#[test]
fn bad_files_are_refused_with_line_and_column() {
    let text = refused("text", "302,0,500,180,0,180,fast\n", &[]);
    assert_eq!(text, "path.csv:2:21: 'fast' is not a number; expected one like 12.5");
    let missing = fixture(&NODE, &graph(), &[("path", "none.csv"), ("arm", "irb120.urdf")]);
    let missing = missing.err().expect("is not there");
    assert!(missing.text().starts_with("none.csv: No such file"), "{missing}");
    let arm = fixture(&NODE, &graph(), &[("path", "square.csv"), ("arm", "none.urdf")]);
    let arm = arm.err().expect("is not there");
    assert!(arm.text().contains("none.urdf: No such file"), "{arm}");
}

/// Feedback of an arm that stands at home.
fn at_home(sequence: u64) -> AxisFeedback {
    AxisFeedback {
        position_rad: [0.0, 0.0, 0.0, 0.0, 90f64.to_radians(), 0.0],
        sequence,
        flags: FEEDBACK_VALID | FEEDBACK_OPERATIONAL,
        ..AxisFeedback::default()
    }
}

/// Feedback that answers the last target, from an arm that stands at home all the same.
fn answer(planner: &NodeFixture) -> AxisFeedback {
    at_home(planner.get::<CartesianTarget>(OUT).map_or(0, |target| target.sequence))
}

/// Parameters with which the arm may be anywhere.
const ANYWHERE: [(&str, &str); 2] = [("following_mm", "1000"), ("following_deg", "180")];

fn target(planner: &NodeFixture) -> CartesianTarget {
    planner.get::<CartesianTarget>(OUT).expect("sends every cycle")
}

#[test]
fn the_tool_stays_at_home_until_the_drives_follow_its_targets() {
    let mut planner = planner("waits", GOOD, &[]).expect("makes");
    planner.update().expect("runs");
    let home = target(&planner);
    assert!((home.position_m[0] - 0.302).abs() < 1e-9 && home.flags == 0, "{home:?}");
    for sequence in 2..10 {
        // Disabled; then enabled, but not near to any target, or to one of an earlier planner.
        let flags = if sequence < 5 { FEEDBACK_VALID } else { at_home(0).flags };
        let other = if sequence < 8 { 0 } else { 1_000 };
        planner.put(FEEDBACK, &AxisFeedback { flags, ..at_home(other) });
        planner.update().expect("runs");
        assert_eq!(target(&planner), CartesianTarget { sequence, ..home });
    }
    planner.put(FEEDBACK, &at_home(9));
    planner.update().expect("runs");
    planner.update().expect("runs");
    assert_eq!(target(&planner).flags, TARGET_MOVING);
    assert_ne!(target(&planner).position_m, home.position_m);
}

#[test]
fn an_arm_too_far_from_its_target_is_a_fault_that_names_the_knob() {
    let mut planner = planner("far", GOOD, &[]).expect("makes");
    planner.update().expect("runs");
    let mut feedback = at_home(1);
    feedback.position_rad[0] = 0.01;
    planner.put(FEEDBACK, &feedback);
    let fault = planner.update().expect_err("3 mm away");
    assert_eq!(
        fault.text(),
        "following error 3.020 mm exceeds following_mm 2.000; lower the path speed or \
         raise following_mm"
    );
}

#[test]
fn a_tool_turned_too_far_is_a_fault() {
    let mut planner = planner("turned", GOOD, &[]).expect("makes");
    planner.update().expect("runs");
    let mut feedback = at_home(1);
    feedback.position_rad[5] = 2f64.to_radians();
    planner.put(FEEDBACK, &feedback);
    let fault = planner.update().expect_err("2 deg");
    assert!(fault.text().contains("following error 2.000 deg exceeds following_deg 1.000"));
}

#[test]
fn feedback_that_answers_a_target_long_gone_is_a_fault() {
    let mut planner = planner("late", GOOD, &[]).expect("makes");
    for _ in 0..300 {
        planner.update().expect("waits");
    }
    planner.put(FEEDBACK, &at_home(44));
    let fault = planner.update().expect_err("256 cycles ago");
    assert!(fault.text().contains("answers a target of 256 cycles ago"), "{fault}");
}

#[test]
fn lost_periods_make_no_jump() {
    let mut planner = planner("skip", GOOD, &ANYWHERE).expect("makes");
    let mut last = None;
    for sequence in 0..250 {
        planner.cycle.skipped = if sequence % 50 == 49 { 20 } else { 0 };
        let feedback = answer(&planner);
        planner.put(FEEDBACK, &feedback);
        planner.update().expect("runs");
        let here = DVec3::from_array(target(&planner).position_m);
        let step = last.map_or(0.0, |last: DVec3| (here - last).length());
        assert!(step <= 0.1001e-3, "{step} m in one cycle");
        last = Some(here);
    }
}

#[test]
fn without_an_answer_for_long_the_path_comes_to_a_standstill_and_then_goes_on() {
    let rows = "302,0,500,180,0,180,100\n302,300,500,180,0,180,100\n";
    let given = [&[("laps", "0")], &ANYWHERE[..]].concat();
    // No feedback; an arm that is near to no target; one that says that it lost its targets; one
    // that answers the same target all the time.
    for silence in 0..4 {
        let mut planner = planner("silent", rows, &given).expect("makes");
        let (mut speeds, mut old) = (Vec::new(), at_home(0));
        for cycle in 0..8_000 {
            let answer = answer(&planner);
            if !(1_000..3_000).contains(&cycle) {
                planner.put(FEEDBACK, &answer);
                old = answer;
            } else if silence > 0 {
                let none = [
                    at_home(0),
                    AxisFeedback { flags: FEEDBACK_VALID, ..answer },
                    at_home(old.sequence.max(answer.sequence.saturating_sub(200))),
                ];
                planner.put(FEEDBACK, &none[silence - 1]);
            }
            planner.update().expect("runs");
            speeds.push(planner.signal(PATH_SPEED)[0]);
        }
        assert!((speeds[999] - 0.1).abs() < 1e-3 && speeds[1001] == speeds[999], "two are borne");
        assert_eq!(speeds[2_900..2_999], [0.0; 99], "silence {silence}");
        assert!(speeds[3_000..].iter().any(|speed| (speed - 0.1).abs() < 1e-3));
    }
}

#[test]
fn while_the_graph_stops_the_target_stays_and_nothing_faults() {
    let mut planner = planner("stops", GOOD, &ANYWHERE).expect("makes");
    for _ in 0..100 {
        let feedback = answer(&planner);
        planner.put(FEEDBACK, &feedback);
        planner.update().expect("runs");
    }
    let last = target(&planner).position_m;
    planner.cycle.stopping = true;
    let mut far = at_home(50);
    far.position_rad[0] = 1.0;
    planner.put(FEEDBACK, &far);
    planner.update().expect("nobody watches any more");
    assert_eq!(target(&planner).position_m, last);
}
