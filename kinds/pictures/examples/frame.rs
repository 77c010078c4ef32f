//! Writes a frame of the synthetic camera as a JPEG and measures its cost:
//! `cargo run --release -p sinew-pictures --example frame -- out.jpg [frames [J1 ... J6]]`, in
//! degrees; without joints the arm swings.

#![expect(clippy::print_stdout, reason = "an example says what it measured")]

use std::path::Path;
use std::time::Instant;

use sinew_pictures::camera::image::{POINTS_LEN, ROW_LEN, head};
use sinew_pictures::camera::source::{FrameSource, Shot};
use sinew_pictures::camera::synthetic::Synthetic;
use sinew_pictures::picture::{PictureView, jpeg};

/// Between two frames, ns.
const PERIOD_NS: u64 = 33_333_333;
/// How often the last frame is encoded.
const ENCODED: u32 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "frame.jpg".into());
    let frames: u64 = arguments.next().map_or(Ok(200), |count| count.parse())?;
    let still = arguments.map(|angle| Ok(angle.parse::<f64>()?.to_radians()));
    let still: Vec<f64> = still.collect::<Result<_, std::num::ParseFloatError>>()?;
    let arm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm/irb120.urdf");
    let mut camera = Synthetic::new(&arm, [0.0, 0.0, 0.0, 0.0, 1.5, 0.0])
        .map_err(|fault| fault.text().to_owned())?;
    camera.start().map_err(|fault| fault.text().to_owned())?;
    let mut points = vec![0; POINTS_LEN];
    let begun = Instant::now();
    for number in 1..=frames {
        let time_ns = number * PERIOD_NS;
        let turn = time_ns as f64 * 1e-9;
        let swing = [0.5 * turn.sin(), 0.25 + 0.15 * (1.7 * turn).cos(), 0.1, 0.0, 1.2, 0.3 * turn];
        camera.moved(time_ns, &still.as_slice().try_into().unwrap_or(swing));
        let shot = Shot { time_ns, number, pose_ns: time_ns };
        let put = &mut |y: usize, row: &[u8; ROW_LEN]| {
            points[y * ROW_LEN..][..ROW_LEN].copy_from_slice(row);
        };
        camera.frame(&shot, put).map_err(|fault| fault.text().to_owned())?;
    }
    let frame_ms = begun.elapsed().as_secs_f64() * 1e3 / frames.max(1) as f64;
    let picture = PictureView::new(head(frames, 0), &points).map_err(|bad| bad.0)?;
    let begun = Instant::now();
    let mut bytes = Vec::new();
    for _ in 0..ENCODED {
        bytes = jpeg::encode(&picture, 80);
    }
    let jpeg_ms = begun.elapsed().as_secs_f64() * 1e3 / f64::from(ENCODED);
    std::fs::write(&file, &bytes)?;
    println!("drawn in {frame_ms:.2} ms a frame, mean of {frames}");
    println!("JPEG in {jpeg_ms:.2} ms, mean of {ENCODED}, {} bytes: {file}", bytes.len());
    Ok(())
}
