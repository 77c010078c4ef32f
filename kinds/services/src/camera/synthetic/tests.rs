//! The synthetic camera, frame by frame.

use super::super::image::{POINTS_LEN, ROW_LEN};
use super::*;

const HOME: Joints = [0.0, 0.0, 0.0, 0.0, 1.5, 0.0];

/// The arm in graphs/arm, ready to be drawn.
fn camera() -> Synthetic {
    let arm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf");
    let mut camera = Synthetic::new(&arm, HOME).expect("an arm");
    camera.start().expect("needs nothing");
    camera
}

fn frame(camera: &mut Synthetic, time_s: u64, pose_s: u64) -> Vec<u8> {
    let [time_ns, pose_ns] = [time_s, pose_s].map(|time_s| time_s * 1_000_000_000);
    let mut points = vec![0; POINTS_LEN];
    let mut rows = 0..HEIGHT;
    let shot = Shot { time_ns, number: 1, pose_ns };
    let put = &mut |y: usize, row: &Row| {
        assert_eq!(Some(y), rows.next(), "each row once, from the top");
        points[y * ROW_LEN..][..ROW_LEN].copy_from_slice(row);
    };
    camera.frame(&shot, put).expect("cannot fail");
    assert_eq!(rows.len(), 0);
    points
}

/// Points that differ, in these rows.
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
    let words: Vec<_> = camera.labels().iter().map(Label::words).map(str::to_owned).collect();
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
        let refused = Synthetic::new(&path, HOME).err().expect("it is no arm");
        assert!(refused.text().contains(word), "{refused:?}");
    }
}
