//! Kinds for these tests: joints in the core, cameras with known frames, one that is unplugged
//! again and again, and a screen that checks every point.

use std::io::{Write, stdout};
use std::time::Duration;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, fault};
use sinew_media::PictureHead;
use sinew_pictures::camera::image::{HEIGHT, PixelRow, ROW_LEN};
use sinew_pictures::camera::source::{FrameSource, Shot};
use sinew_pictures::camera::{Camera, INFO};
use sinew_pictures::messages;
use sinew_pictures::picture::{PictureView, read_head};
use sinew_robot::messages::{AxisFeedback, FEEDBACK_VALID};
use sinew_runtime::ServiceEntry;
use sinew_runtime::{Service, ServiceIo};

/// Frames after which the camera is unplugged.
const PULLED_AFTER: u64 = 8;

/// Frames between two lines of the screen.
const TOLD: u64 = 5;

/// Nodes of the core, beside the services.
pub(crate) const JOINTS: NodeEntry =
    NodeEntry { kind: &JOINTS_INFO, make: |_| Ok(Box::new(Joints)), safe: None };
pub(crate) const SERVICES: [ServiceEntry; 3] = [
    ServiceEntry { kind: &NUMBERED_INFO, make: numbered },
    ServiceEntry { kind: &PULLED_INFO, make: pulled },
    ServiceEntry { kind: &SCREEN_INFO, make: screen },
];

static JOINTS_INFO: Kind =
    Kind::new("joints", RunsIn::Realtime, &[Port::output("out", "", AxisFeedback::TYPE)]);
static NUMBERED_INFO: Kind = Kind::new("numbered", RunsIn::Service, INFO.ports);
static PULLED_INFO: Kind = Kind::new("pulled", RunsIn::Service, INFO.ports);
static SCREEN_INFO: Kind =
    Kind::new("screen", RunsIn::Service, &[Port::input("in", "", messages::Picture::TYPE)]);

/// An arm that swings.
struct Joints;

impl Node for Joints {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let feedback = io.write::<AxisFeedback>(0);
        let angle = (cycle.number as f64 * 0.01).sin() * 0.5;
        feedback.position_rad = [angle, 0.0, 0.0, 0.0, 1.0, 0.0];
        feedback.flags = FEEDBACK_VALID;
        Ok(())
    }
}

fn numbered(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Camera::new(Box::new(Numbered { left: u64::MAX }), 60)))
}

fn pulled(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Camera::new(Box::new(Numbered { left: PULLED_AFTER }), 60)))
}

/// Frames whose every point follows from their number; after `left` of them the camera is gone.
struct Numbered {
    left: u64,
}

fn row_of(number: u64, y: usize) -> PixelRow {
    [(number as u8).wrapping_mul(31).wrapping_add(y as u8); ROW_LEN]
}

impl FrameSource for Numbered {
    fn frame(&mut self, shot: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault> {
        let is_pulled = self.left == 0;
        self.left = self.left.saturating_sub(1);
        // It fails in the middle of a frame.
        let rows = if is_pulled { HEIGHT / 2 } else { HEIGHT };
        (0..rows).for_each(|y| put(y, &row_of(shot.number, y)));
        if is_pulled {
            return Err(fault!("camera 'test': it was unplugged; plug it in again"));
        }
        Ok(())
    }
}

fn screen(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Screen { seen: 0, last: 0 }))
}

/// Checks frames in the memory of their link; reports how many it saw, and what was wrong.
struct Screen {
    seen: u64,
    last: u64,
}

impl Service for Screen {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        while io.wait(Duration::from_millis(2)) {
            while let Some(frame) = io.peek::<messages::Picture>(0)? {
                let head: PictureHead = read_head(|bytes| frame.read_at(0, bytes));
                let picture = PictureView::new(head, &frame).map_err(|bad| fault!("{bad}"))?;
                let mut row = vec![];
                let torn = (0..HEIGHT).find(|&y| {
                    picture.read_row(0, y as u32, &mut row);
                    row != row_of(head.number, y)
                });
                frame.release();
                self.seen += 1;
                if torn.is_some() {
                    tell(&format!("strange {}", head.number));
                }
                // A camera that was restarted counts from 1 again.
                if head.number <= self.last && head.number != 1 {
                    tell(&format!("disorder {} after {}", head.number, self.last));
                }
                self.last = head.number;
                if self.seen.is_multiple_of(TOLD) {
                    tell(&format!("seen {}", self.seen));
                }
            }
        }
        Ok(())
    }
}

fn tell(line: &str) {
    // If this fails, the test that waits for the line reports it.
    let _ = writeln!(stdout(), "{line}");
}
