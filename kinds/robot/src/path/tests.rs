//! Path files, good and bad; the places on arcs; and the bounds of profiles.

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::fmt::Write;

use rs_opw_kinematics::glam::DQuat;

use super::csv::HEADER;
use super::geometry::Segment;
use super::profile::{Motion, ToolLimits};
use super::*;

pub(crate) const BOUNDS: ToolLimits = ToolLimits {
    speed_m_per_s: 0.25,
    acceleration_m_per_s2: 2.0,
    jerk_m_per_s3: 20.0,
    turn_speed_rad_per_s: 1.5,
    turn_acceleration_rad_per_s2: 8.0,
    turn_jerk_rad_per_s3: 80.0,
};

fn home() -> Pose {
    Pose { translation: DVec3::new(0.3, 0.0, 0.5), rotation: DQuat::IDENTITY }
}

fn csv(rows: &str) -> Result<Vec<Move>, String> {
    csv::parse(&format!("{HEADER}\n{rows}")).map_err(shown)
}

fn gcode(text: &str) -> Result<Vec<Move>, String> {
    gcode::parse(text, &home(), DVec3::ZERO).map_err(shown)
}

fn shown(bad: BadText) -> String {
    format!("{}:{}: {}", bad.line, bad.column, bad.text)
}

fn near(a: DVec3, b: [f64; 3]) {
    assert!((a - DVec3::from_array(b)).length() < 1e-9, "{a} is not {b:?}");
}

/// The poses of a program's moves at a part of each move's way.
fn points(moves: &[Move], part: f64) -> Vec<DVec3> {
    let mut from = home();
    let point = |step: &Move| {
        let segment = Segment::new(from, step).expect("goes somewhere");
        from = step.to;
        segment.pose(segment.span * part).translation
    };
    moves.iter().map(point).collect()
}

#[test]
fn waypoints_are_read_with_their_units_and_lines() {
    let moves = csv("# comment\n100,-200,300,0,0,90,250\n\n 1, 2 ,3,180,0,0,12.5\n").expect("good");
    assert_eq!((moves.len(), moves[0].line, moves[1].line), (2, 3, 5));
    near(moves[0].to.translation, [0.1, -0.2, 0.3]);
    near(moves[0].to.rotation * DVec3::X, [0.0, 1.0, 0.0]);
    near(moves[1].to.rotation * DVec3::Z, [0.0, 0.0, -1.0]);
    assert_eq!((moves[0].speed_m_per_s, moves[1].speed_m_per_s), (0.25, 0.0125));
}

#[test]
fn bad_waypoints_are_refused_with_line_and_column() {
    let good = "1,2,3,0,0,0,10";
    let cases = [
        ("", "1:1: 0 waypoints; expected at least 2"),
        (good, "2:1: 1 waypoints; expected at least 2"),
        ("1,2,3,0,0,0,10\n1,2,abc,0,0,0,10", "3:5: 'abc' is not a number; expected one like 12.5"),
        ("1,2,,0,0,0,10", "2:5: nothing here; expected a number"),
        ("1,2, nan,0,0,0,10", "2:6: 'nan' is not finite; expected a finite number"),
        ("1,2,inf,0,0,0,10", "2:5: 'inf' is not finite; expected a finite number"),
        ("1,2,1e999,0,0,0,10", "2:5: '1e999' is not finite; expected a finite number"),
        ("1,2,3,0,0,0", "2:12: 6 values; expected 7: "),
        ("1,2,3,0,0,0,10,11", "2:16: an eighth value; expected 7, each with a decimal point"),
        ("1,2,3,0,0,0,0", "2:13: speed 0 mm/s; expected more than 0"),
        ("1,2,3,0,0,0,-5", "2:13: speed -5 mm/s; expected more than 0"),
        ("1e9,2,3,0,0,0,5", "2:1: coordinate 1000000000; expected at most 100000 to either side"),
        ("1,2,3,0,400,0,5", "2:9: angle 400; expected at most 360 to either side of zero"),
    ];
    for (rows, expected) in cases {
        let found = csv(rows).expect_err(rows);
        assert!(found.starts_with(expected), "{rows:?}: {found}");
    }
    let empty = csv::parse("").map_err(shown).expect_err("empty");
    assert!(empty.starts_with("1:1: is empty; expected the line 'x_mm,"), "{empty}");
    let header = csv::parse("# a\nx,y,z\n").map_err(shown).expect_err("header");
    assert!(header.starts_with("2:1: found 'x,y,z'; expected 'x_mm,"), "{header}");
    let mut huge = String::new();
    (0..=MOVES_MAX).for_each(|i| writeln!(huge, "{i},0,0,0,0,0,1").expect("a string"));
    let huge = csv(&huge).expect_err("too many");
    assert_eq!(huge, "10002:1: more than 10000 waypoints; split it");
}

#[test]
fn straight_g_code_follows_its_modes() {
    let moves =
        gcode("N10 G0 X100 Y0 Z0\nG1 F600 X110 (on)\n G91 X1 ; rel\nG20 x1\nG90Y2F60\nM30\n?")
            .expect("good");
    let ends: Vec<DVec3> = moves.iter().map(|step| step.to.translation).collect();
    near(ends[0], [0.1, 0.0, 0.0]);
    near(ends[1], [0.11, 0.0, 0.0]);
    near(ends[2], [0.111, 0.0, 0.0]);
    near(ends[3], [0.1364, 0.0, 0.0]);
    near(ends[4], [0.1364, 0.0508, 0.0]);
    let speeds: Vec<f64> = moves.iter().map(|step| step.speed_m_per_s).collect();
    assert_eq!(speeds[..4], [f64::INFINITY, 0.01, 0.01, 0.01]);
    assert!((speeds[4] - 0.0254).abs() < 1e-12);
    assert_eq!(moves[4].line, 5);
}

#[test]
fn axes_that_are_not_named_stay_and_the_origin_is_added() {
    let origin = DVec3::new(0.2, 0.1, 0.0);
    let moves = gcode::parse("G0 Z10\nX5", &home(), origin).expect("good");
    near(moves[0].to.translation, [0.3, 0.0, 0.01]);
    near(moves[1].to.translation, [0.205, 0.0, 0.01]);
}

#[test]
fn arcs_go_where_the_standard_says() {
    let start = "G0 X10 Y0 Z0\nF600\n";
    let middle = |block: &str| {
        let moves =
            gcode(&format!("{start}{block}")).unwrap_or_else(|bad| panic!("{block}: {bad}"));
        points(&moves, 0.5)[1] * 1e3
    };
    let h = 10.0 * FRAC_PI_2.sin() / 2f64.sqrt();
    near(middle("G3 X0 Y10 I-10 J0"), [h, h, 0.0]);
    near(middle("G3 X0 Y10 R10"), [h, h, 0.0]);
    near(middle("G2 X0 Y10 I-10 J0"), [-h, -h, 0.0]);
    // A negative radius means the long way around: the centre is at (10, 10).
    near(middle("G3 X0 Y10 R-10"), [10.0 + h, 10.0 + h, 0.0]);
    near(middle("G2 X0 Y10 R10"), [10.0 - h, 10.0 - h, 0.0]);
    // A full circle, clockwise, about (20, 0).
    near(middle("G2 X10 Y0 I10"), [30.0, 0.0, 0.0]);
    // A helix.
    near(middle("G3 X0 Y10 Z4 I-10"), [h, h, 2.0]);
    // Other planes: counterclockwise means right-handed about their normal.
    near(middle("G18 G3 X0 Z10 I-10 K0"), [-h, 0.0, -h]);
    near(middle("G18 G2 X0 Z10 I-10 K0"), [h, 0.0, h]);
    near(middle("G19 G3 Y10 Z10 J10 K0"), [10.0, 10.0 + h, -h]);
    near(middle("G91 G3 X-10 Y10 R10"), [h, h, 0.0]);
}

#[test]
fn an_arc_has_length_and_curvature() {
    let moves = gcode("G0 X10 Y0 Z0\nG3 X-10 Y0 I-10 F600").expect("good");
    let arc = Segment::new(moves[0].to, &moves[1]).expect("goes");
    assert!((arc.span - 0.01 * PI).abs() < 1e-12);
    assert!((arc.curvature_per_m - 100.0).abs() < 1e-9);
    let helix = gcode("G0 X10 Y0 Z0\nG3 X10 Y0 Z30 I-10 F600").expect("good");
    let helix = Segment::new(helix[0].to, &helix[1]).expect("goes");
    assert!((helix.span - (0.01f64 * TAU).hypot(0.03)).abs() < 1e-12);
}

#[test]
fn bad_g_code_is_refused_with_line_and_column() {
    let start = "G0 X10 Y0 Z0\nF600\n";
    let cases = [
        ("G4 P1", "3:1: G4 is not understood; expected G0-G3, G17-G21, G90 or G91"),
        ("G1 X1 G90.1", "3:7: G90.1 is not understood; expected G0-G3, G17-G21, G90 or G91"),
        ("M3 S100", "3:1: M3 is not understood; see G0 to G3, F"),
        ("G1 X1 E5", "3:7: E5 is not understood; see G0 to G3, F"),
        ("G1 X", "3:4: nothing after 'X'; expected a number, as in X1"),
        ("G1 X1.2.3", "3:5: '1.2.3' is not a number; expected one like 12.5"),
        ("G1 X1,5", "3:6: found ','; expected a decimal point, as in X1.5"),
        ("G1 X1 , Y2", "3:7: found ','; expected a word like G1"),
        ("G1 X1 X2", "3:7: a second X in this line"),
        ("G1 G2 X1", "3:4: a second motion in this line"),
        ("G1 X1 (open", "3:7: a comment without its ')'"),
        ("G1 X1 $", "3:7: found '$'; expected a word like G1"),
        ("G1 X1 F0", "3:7: F0; expected more than 0"),
        ("G1 X1 I5", "3:7: a centre or radius; expected G2 or G3 with it"),
        ("G2 X1 Y1", "3:4: an arc without centre or radius"),
        ("G2 X0 Y10 R10 I1", "3:11: both R and a centre; expected one"),
        ("G2 X0 Y10 K1 I1", "3:11: K is not in the plane of the arc; see G17-G19"),
        ("G2 X0 Y20 I-10", "3:4: start and end lie 10.0000 and 20.0000 mm from the centre"),
        ("G2 X0 Y10 I0 J0", "3:4: start and end lie 0.0000 and"),
        ("G2 X-90 Y0 R10", "3:12: radius 10.0000 mm for ends 100.0000 mm apart"),
        ("G2 X10 Y0 R10", "3:11: radius 10.0000 mm for ends 0.0000 mm apart"),
        ("G1 X1e9", "3:6: E9 is not understood; see G0 to G3, F"),
        ("G1 X999999999", "3:4: X at 999999.999 m; expected at most 100 m"),
    ];
    for (block, expected) in cases {
        let found = gcode(&format!("{start}{block}")).expect_err(block);
        assert!(found.starts_with(expected), "{block:?}: {found}");
    }
    let cases = [
        ("", "1:1: 0 moves in all; expected at least 2"),
        ("G0 X1", "1:1: 1 moves in all; expected at least 2"),
        ("X1 Y2", "1:1: coordinates before any of G0, G1, G2, G3"),
        ("G1 X1", "1:4: G1, G2 or G3 before any F; expected a speed"),
        ("F100\nG2 X1 Y1 R5", "2:4: an arc as first move; expected G0 or G1"),
    ];
    for (text, expected) in cases {
        let found = gcode(text).expect_err(text);
        assert!(found.starts_with(expected), "{text:?}: {found}");
    }
    let many = "G0 X1\nX2\n".repeat(MOVES_MAX);
    assert_eq!(
        gcode(&many).expect_err("many"),
        "10001:1: more than 10000 moves; split the program"
    );
}

#[test]
fn any_text_is_answered() {
    let mut random = fastrand::Rng::with_seed(7);
    let alphabet: Vec<char> = "GXYZIJKRFMN0123456789.-+ ();%\n,#eé\u{0}".chars().collect();
    for _ in 0..3_000 {
        let length = random.usize(..60);
        let text: String = (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
        let _ = gcode(&text);
        let _ = csv(&text);
    }
}

#[test]
fn files_are_refused_before_they_are_read() {
    let folder = std::env::temp_dir().join(format!("sinew_path_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let refused = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::write(&file, bytes).expect("writes");
        read(&file, name, &home(), DVec3::ZERO).expect_err(name).text().to_owned()
    };
    let huge = vec![b'\n'; FILE_BYTES_MAX as usize + 1];
    assert_eq!(
        refused("a.csv", &huge),
        "a.csv: more than 4194304 bytes, the limit for such a file; give a .csv or .gcode file in \
         'path'"
    );
    assert_eq!(refused("b.csv", b"x\ny\xFFz"), "b.csv:2:1: is not text (UTF-8)");
    assert!(refused("c.txt", b"").ends_with("ends in .csv, .gcode, .nc or .ngc"));
    assert!(refused("d.nc", b"").starts_with("d.nc:1:1: 0 moves in all"));
    std::fs::remove_dir_all(&folder).expect("removes");
    let gone = read(&folder.join("e.csv"), "e.csv", &home(), DVec3::ZERO).expect_err("gone");
    assert!(gone.text().starts_with("e.csv: No such file"), "{gone}");
    assert!(gone.text().ends_with("give a .csv or .gcode file in 'path'"), "{gone}");
}

/// The greatest speed, acceleration and jerk of poses that are a step apart, by differences: of
/// place, in m, and of turn, in rad.
pub(crate) fn greatest(poses: &[Pose], step_s: f64) -> [[f64; 3]; 2] {
    let place = |pair: &[Pose]| pair[1].translation - pair[0].translation;
    let turn = |pair: &[Pose]| {
        let turn = pair[1].rotation * pair[0].rotation.inverse();
        let turn = if turn.w < 0.0 { -turn } else { turn };
        turn.xyz().normalize_or_zero() * 2.0 * turn.xyz().length().atan2(turn.w)
    };
    let rates = |ways: Vec<DVec3>| -> [f64; 3] {
        let mut values: Vec<_> = ways.into_iter().map(|way| way / step_s).collect();
        std::array::from_fn(|_| {
            let greatest = values.iter().map(|value| value.length()).fold(0.0, f64::max);
            values = values.windows(2).map(|pair| (pair[1] - pair[0]) / step_s).collect();
            greatest
        })
    };
    let pairs = || poses.windows(2);
    [rates(pairs().map(place).collect()), rates(pairs().map(turn).collect())]
}

/// Checks a whole path, and returns the same figures.
fn keeps_to_bounds(moves: &[Move]) -> [[f64; 3]; 2] {
    let mut motion = Motion::new(home(), moves, 1, false, &BOUNDS).expect("times");
    let mut poses = vec![home(); 4];
    while !motion.is_done() {
        motion.advance(1e-3);
        poses.push(motion.place().pose);
    }
    poses.extend([poses[poses.len() - 1]; 4]);
    let [way, turn] = greatest(&poses, 1e-3);
    let within = |found: f64, bound: f64, what: &str| {
        assert!(found <= bound * 1.001, "{what}: {found} exceeds {bound}");
    };
    within(way[0], BOUNDS.speed_m_per_s, "speed");
    within(way[1], BOUNDS.acceleration_m_per_s2, "acceleration");
    within(way[2], BOUNDS.jerk_m_per_s3, "jerk");
    within(turn[0], BOUNDS.turn_speed_rad_per_s, "turn speed");
    within(turn[1], BOUNDS.turn_acceleration_rad_per_s2, "turn acceleration");
    within(turn[2], BOUNDS.turn_jerk_rad_per_s3, "turn jerk");
    [way, turn]
}

#[test]
fn a_square_with_tilts_keeps_to_its_bounds_and_uses_them() {
    let rows = "300,-75,350,0,0,0,250\n450,-75,350,0,10,0,250\n450,75,350,40,0,0,250\n\
                300,75,350,0,0,0,100\n300,75,350,0,0,90,100\n300,-75,350,0,0,0,250\n";
    let [way, turn] = keeps_to_bounds(&csv(rows).expect("good"));
    assert!(way[0] > 0.249 && way[2] > 19.0, "{way:?}");
    assert!(turn[0] > 1.0, "{turn:?}");
}

#[test]
fn arcs_and_helices_keep_to_their_bounds() {
    let text = "G0 X300 Y0 Z400\nG1 X350 F12000\nG3 X350 Y60 J30\nG1 X300\nG3 X300 Y0 R30\n\
                G2 X300 Y0 Z420 I5 J0\nG3 X302 Y2 R2\nG0 X250";
    keeps_to_bounds(&gcode(text).expect("good"));
}

#[test]
fn straight_on_the_tool_passes_at_the_lower_speed() {
    let rows =
        "300,0,500,0,0,0,250\n350,0,500,0,0,0,250\n400,0,500,0,0,0,100\n450,0,500,0,0,0,250\n";
    let moves = csv(rows).expect("good");
    keeps_to_bounds(&moves);
    let mut motion = Motion::new(home(), &moves, 1, false, &BOUNDS).expect("times");
    let mut slowest: f64 = 1.0;
    while !motion.is_done() {
        motion.advance(1e-3);
        let place = motion.place();
        if (0.03..0.12).contains(&place.position_m) {
            slowest = slowest.min(place.speed_m_per_s);
        }
    }
    assert!((slowest - 0.1).abs() < 1e-6, "{slowest}");
}

#[test]
fn two_halves_of_a_circle_are_passed_without_a_stop() {
    let halves = "G0 X300 Y0 Z400\nG3 X300 Y60 J30 F6000\nG3 X300 Y0 J-30";
    let moves = gcode(halves).expect("good");
    keeps_to_bounds(&moves);
    let first = Segment::new(moves[0].to, &moves[1]).expect("goes");
    let second = Segment::new(moves[1].to, &moves[2]).expect("goes");
    assert!(first.joins(&second));
    let line = gcode("G0 X300 Y0 Z400\nG1 X330 F6000\nG3 X330 Y60 J30").expect("good");
    let straight = Segment::new(line[0].to, &line[1]).expect("goes");
    let arc = Segment::new(line[1].to, &line[2]).expect("goes");
    assert!(!straight.joins(&arc), "the acceleration jumps there");
}

#[test]
fn many_short_collinear_moves_keep_to_their_bounds() {
    let mut rows = String::new();
    for i in 0..200 {
        let speed = [250, 20, 180][i % 3];
        writeln!(rows, "{},0,500,0,0,0,{speed}", 300.0 + i as f64 * 0.25).expect("a string");
    }
    keeps_to_bounds(&csv(&rows).expect("good"));
}

#[test]
fn laps_close_the_path_and_are_counted() {
    let moves =
        csv("300,0,450,0,0,0,250\n320,0,450,0,0,0,250\n320,20,450,0,0,0,250\n").expect("good");
    let mut motion = Motion::new(home(), &moves, 3, false, &BOUNDS).expect("times");
    let (mut laps, mut last) = (Vec::new(), home().translation);
    while !motion.is_done() {
        if laps.last() != Some(&motion.lap()) {
            laps.push(motion.lap());
        }
        motion.advance(1e-3);
        let here = motion.place().pose.translation;
        assert!((here - last).length() < 0.26e-3, "a jump from {last} to {here}");
        last = here;
    }
    assert_eq!(laps, [0, 1, 2, 3]);
    near(last, [0.3, 0.0, 0.45]);
    let one = Motion::new(home(), &moves, 1, false, &BOUNDS).expect("times");
    assert!(one.duration_s() < motion.duration_s(), "one lap needs no way back");
}

#[test]
fn a_path_that_goes_nowhere_is_refused() {
    let moves = csv("1,2,3,0,0,0,10\n1,2,3,0,0,0,10\n").expect("good");
    let fault = Motion::new(home(), &moves, 1, false, &BOUNDS).expect_err("nothing moves");
    assert_eq!(fault.text(), "line 2: all waypoints are the same pose");
}
