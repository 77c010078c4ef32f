//! The synthetic camera, frame by frame.

use std::path::PathBuf;

use glam::Vec2;
use sinew_robot::kinematics::Margins;

use super::super::image::{POINTS_LEN, ROW_LEN};
use super::*;

const HOME: Joints = [0.0, 0.0, 0.0, 0.0, 1.5, 0.0];

fn arm() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf")
}

/// The arm, ready to be drawn.
fn camera() -> Synthetic {
    let mut camera = Synthetic::new(&arm(), HOME).expect("an arm");
    camera.start().expect("needs nothing");
    camera
}

fn frame(camera: &mut Synthetic, time_s: u64, pose_s: u64) -> Vec<u8> {
    let [time_ns, pose_ns] = [time_s, pose_s].map(|time_s| time_s * 1_000_000_000);
    let mut points = vec![0; POINTS_LEN];
    let mut rows = 0..HEIGHT;
    let shot = Shot { time_ns, number: 1, pose_ns };
    let put = &mut |y: usize, row: &PixelRow| {
        assert_eq!(Some(y), rows.next(), "each row once, from the top");
        points[y * ROW_LEN..][..ROW_LEN].copy_from_slice(row);
    };
    camera.frame(&shot, put).expect("cannot fail");
    assert_eq!(rows.len(), 0);
    points
}

/// The number of points that differ in these rows.
fn differing(one: &[u8], other: &[u8], rows: std::ops::Range<usize>) -> usize {
    let span = rows.start * ROW_LEN..rows.end * ROW_LEN;
    let points = one[span.clone()].as_chunks::<3>().0.iter().zip(other[span].as_chunks::<3>().0);
    points.filter(|(one, other)| one != other).count()
}

#[test]
fn the_picture_shows_the_arm_and_follows_its_pose() {
    let mut camera = camera();
    let home = frame(&mut camera, 1, 1);
    let is_paint = |point: &&[u8; 3]| point[0] > 120 && point[0] / 2 > point[2];
    assert!(home.as_chunks::<3>().0.iter().filter(is_paint).count() > 10_000);
    assert_eq!(home, frame(&mut camera, 1, 1), "the same pose, the same picture");
    camera.moved(1_000_000_000, &[0.8, 0.3, 0.0, 0.0, 1.5, 0.0]);
    let turned = frame(&mut camera, 1, 1);
    assert!(differing(&home, &turned, 0..HEIGHT) > 10_000);
}

/// The middle of the mark that shows the place of the flange, and the number of its points.
fn mark(points: &[u8]) -> (Vec2, usize) {
    let is_mark = |&(_, point): &(usize, &[u8; 3])| *point == TRACK;
    let points = points.as_chunks::<3>().0.iter().enumerate().filter(is_mark);
    let spots: Vec<_> = points
        .map(|(at, _)| Vec2::new((at % WIDTH) as f32 + 0.5, (at / WIDTH) as f32 + 0.5))
        .collect();
    (spots.iter().sum::<Vec2>() / spots.len().max(1) as f32, spots.len())
}

#[test]
fn the_flange_is_drawn_where_the_closed_form_says_that_it_is() {
    let margins = Margins { angle_rad: 0.1, shoulder_m: 0.01 };
    let solver = sinew_robot::arm::read(&arm(), margins).expect("an arm");
    let poses = [
        [0.0, 0.0, 0.0, 0.0, 0.4, 0.0],
        [-0.6, 0.5, -0.3, 0.0, 0.2, 1.0],
        [-1.0, -0.4, 0.2, 0.5, 0.6, 2.0],
        [0.4, 0.9, -0.5, -0.6, 0.3, 0.0],
    ];
    for joints in poses {
        let mut camera = camera();
        camera.moved(1_000_000_000, &joints);
        let (spot, points) = mark(&frame(&mut camera, 1, 1));
        assert!(points > 20, "{points} of {joints:?} are seen");
        let place = solver.forward(&joints).translation.as_vec3();
        let off = spot.distance(camera.view.spot(place));
        assert!(off < 1.0, "{joints:?}: {off} points beside it");
    }
}

#[test]
fn the_arm_covers_its_joints_and_only_what_is_near_it() {
    for joints in [HOME, [0.9, 0.8, -0.4, 0.0, 1.0, 0.0], [-1.2, -0.5, 0.6, 0.0, -1.0, 0.0]] {
        let mut camera = camera();
        camera.moved(1_000_000_000, &joints);
        let with = frame(&mut camera, 1, 1);
        let room = camera.room.data().as_chunks::<4>().0;
        let places: Vec<_> = frames(&camera.chain, &joints)[1..]
            .iter()
            .map(|it| Vec3::from(it.translation))
            .collect();
        for place in &places {
            let spot = camera.view.spot(*place);
            let at = spot.y as usize * WIDTH + spot.x as usize;
            assert_ne!(with.as_chunks::<3>().0[at], room[at][..3], "{joints:?} at {place}");
        }
        // Points brighter than the room belong to the arm: its shadow and the words' ground are
        // darker.
        let bodies = places.iter().chain([&Vec3::ZERO]).map(|place| camera.view.spot(*place));
        let bodies = bodies.collect::<Vec<_>>();
        let is_paint = |point: &[u8; 3]| point[0] > 120 && point[0] / 2 > point[2];
        for at in (0..WIDTH * HEIGHT).filter(|&at| is_paint(&with.as_chunks::<3>().0[at])) {
            let spot = Vec2::new((at % WIDTH) as f32, (at / WIDTH) as f32);
            let near = bodies.iter().any(|body| body.distance(spot) < 110.0);
            assert!(near, "{joints:?}: paint at {spot}");
        }
    }
}

#[test]
fn the_flange_leaves_a_path_that_fades_away() {
    let mut camera = camera();
    let before = frame(&mut camera, 1, 1);
    for step in 0..100 {
        let swing = (f64::from(step) / 99.0 * std::f64::consts::TAU).sin() * 0.6;
        camera.moved(1_000_000_000, &[swing, 0.0, 0.0, 0.0, 1.5, 0.0]);
    }
    camera.moved(1_000_000_000, &HOME);
    let after = frame(&mut camera, 1, 1);
    assert!(differing(&before, &after, 0..HEIGHT - 40) > 500);
    let later = frame(&mut camera, 20, 20);
    assert_eq!(differing(&before, &later, 0..HEIGHT - 40), 0);
}

#[test]
fn a_pose_that_stays_away_is_said_on_the_picture() {
    let mut camera = camera();
    let good = frame(&mut camera, 7, 7);
    let without = frame(&mut camera, 7, 4);
    assert!(differing(&good, &without, 0..40) > 500);
    assert_eq!(differing(&good, &without, 40..HEIGHT), 0);
    let shot = Shot { time_ns: 7_000_000_000, number: 1, pose_ns: 4_000_000_000 };
    let words: Vec<_> = Synthetic::labels(&shot).into_iter().map(|label| label.words).collect();
    assert_eq!(words, ["frame 000001  7.000 s", "no pose since 3 s"]);
}

#[test]
fn poses_that_no_arm_takes_draw_something_or_nothing() {
    let mut camera = camera();
    for angle in [1e300, -1e9, f64::MAX] {
        camera.moved(0, &[angle; 6]);
        frame(&mut camera, 1, 1);
    }
}

#[test]
fn a_file_that_describes_no_arm_is_named() {
    for (file, word) in [("no-such.urdf", "urdf"), ("../../Cargo.toml", "Cargo.toml")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let refused = Synthetic::new(&path, HOME).err().expect("it is not an arm");
        assert!(refused.text().contains(word), "{refused:?}");
    }
}
