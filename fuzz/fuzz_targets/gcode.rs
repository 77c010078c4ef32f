//! Any text as a G-code program. A program that is accepted can also be laid out in space.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_robot::messages::CartesianTarget;
use sinew_robot::path::gcode;
use sinew_robot::path::geometry::Segment;

fuzz_target!(|text: &str| {
    let upright =
        CartesianTarget { orientation_xyzw: [0.0, 0.0, 0.0, 1.0], ..CartesianTarget::default() };
    let mut place = upright.pose().expect("a rotation");
    let Ok(moves) = gcode::parse(text, &place, place.translation) else { return };
    for step in &moves {
        if let Some(segment) = Segment::new(place, step) {
            let end = segment.pose(segment.span);
            assert!(end.translation.is_finite(), "line {} ends nowhere", step.line);
        }
        place = step.to;
    }
});
