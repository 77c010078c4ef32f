//! Kind `camera`: frames of the machine, 30 a second.

mod film;
pub mod image;
mod jpeg;
mod pace;
pub mod source;
pub mod synthetic;
mod v4l2;
mod yuyv;

use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, Message, Parameters, fault};
use sinew_robot::arm::{HOME_DEG, joints_rad};
use sinew_robot::messages::{AxisFeedback, FEEDBACK_VALID};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use self::film::Film;
use self::image::{head, write_row};
use self::pace::Pace;
use self::source::{FrameSource, Shot};
use self::synthetic::Synthetic;
use self::v4l2::V4l2;
use crate::messages::Picture;
use crate::picture::write_head;

const POSE: usize = 0;
const OUT: usize = 1;

/// Interval between two reads of the pose: the resolution of the path in the picture. Each read
/// wakes a CPU that may be the core's.
const LOOK_NS: u64 = 16_000_000;
/// Interval between two reports of missed frames.
const TELL_NS: u64 = 10_000_000_000;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "camera",
    runs_in: RunsIn::Service,
    doc: "Frames of 640 x 480 points. By default it needs no camera: it draws the arm in the pose \
          that its drives report, with the path of its flange; without a pose it shows the last \
          one and says so. 'v4l2' is a camera of Linux (USB and others), 'file' a film in Motion \
          JPEG. Frames cross the link without a copy: link it with 'delivery: queue' in shared \
          memory, and room for a few. A frame that finds no room is dropped; one whose period has \
          passed is missed and not made up for. A camera that is unplugged is a fault of its \
          domain, whose restart policy brings it back.",
    ports: &[
        Port::input("pose", "What the drives report: the pose that is drawn.", AxisFeedback::TYPE)
            .optional(),
        Port::output("out", "A frame.", Picture::TYPE),
    ],
    parameters: &[
        Parameter::new("source", ParameterType::Choice(&["synthetic", "v4l2", "file"]))
            .or("synthetic")
            .doc(
                "Where frames come from: 'synthetic' draws the arm, 'v4l2' is a camera, 'file' a \
                 film.",
            ),
        Parameter::new("rate_hz", ParameterType::Integer { min: 1, max: 60 })
            .or("30")
            .unit("Hz")
            .doc("Frames per second."),
        Parameter::new("arm", ParameterType::Text)
            .or("\"\"")
            .doc("URDF of the arm that 'synthetic' draws, as for the planner."),
        HOME_DEG,
        Parameter::new("device", ParameterType::Text)
            .or("/dev/video0")
            .doc("The camera that 'v4l2' takes frames from."),
        Parameter::new("file", ParameterType::Text)
            .or("\"\"")
            .doc("The film that 'file' takes frames from: Motion JPEG, 640 x 480 points."),
        Parameter::new("repeat", ParameterType::Bool)
            .or("true")
            .doc("Whether the film begins again after its last frame; if not, the camera is done."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let rate_hz = parameters.integer("rate_hz");
    let file = |name: &str, what: &str| match parameters.text(name) {
        "" => Err(fault!("'source: {}' {what} in '{name}'", parameters.text("source"))),
        _ => Ok(parameters.path(name)),
    };
    let source: Box<dyn FrameSource> = match parameters.text("source") {
        "v4l2" => Box::new(V4l2::new(parameters.text("device"), rate_hz as u32)),
        "file" => {
            let film = file("file", "shows a film; give its Motion JPEG file")?;
            Box::new(Film::open(&film, parameters.bool("repeat"))?)
        }
        _ => {
            let home = joints_rad(parameters.numbers("home_deg"));
            Box::new(Synthetic::new(&file("arm", "draws an arm; give its URDF file")?, home)?)
        }
    };
    Ok(Box::new(Camera::new(source, rate_hz as u64)))
}

/// The service: takes frames from a source at their time and sends them.
pub struct Camera {
    source: Box<dyn FrameSource>,
    rate_hz: u64,
    /// Time of the last pose, or of the camera's start.
    pose_ns: u64,
}

impl Camera {
    /// A camera with the ports of [`INFO`], `rate_hz` frames a second (1 at least).
    pub fn new(source: Box<dyn FrameSource>, rate_hz: u64) -> Camera {
        Camera { source, rate_hz: rate_hz.max(1), pose_ns: 0 }
    }

    /// Reads whether the arm has moved.
    fn look(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let Some(pose) = io.receive::<AxisFeedback>(POSE)? else { return Ok(()) };
        let is_good = pose.position_rad.iter().all(|angle| angle.is_finite());
        if is_good && pose.flags & FEEDBACK_VALID != 0 {
            self.pose_ns = now_ns();
            self.source.moved(self.pose_ns, &pose.position_rad);
        }
        Ok(())
    }

    /// Takes the frame with this number; if no reader has room for it, it is dropped.
    fn take(&mut self, io: &mut ServiceIo, number: u64) -> Result<(), Fault> {
        let shot = Shot { time_ns: now_ns(), number, pose_ns: self.pose_ns };
        let Some(mut frame) = io.claim::<Picture>(OUT)? else { return self.source.skip() };
        write_head(&mut frame, &head(number, shot.time_ns));
        self.source.frame(&shot, &mut |y, row| write_row(&mut frame, y, row))?;
        frame.commit();
        Ok(())
    }
}

impl Service for Camera {
    fn start(&mut self) -> Result<(), Fault> {
        self.source.start()
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        self.pose_ns = now_ns();
        let mut pace = Pace::new(self.rate_hz, now_ns());
        let mut told = Told { missed: 0, next_ns: now_ns() };
        loop {
            let left_ns = pace.left_ns(now_ns());
            if !io.wait(Duration::from_nanos(left_ns.min(LOOK_NS))) {
                return Ok(());
            }
            self.look(io)?;
            if pace.left_ns(now_ns()) == 0 {
                if self.source.is_over()? {
                    return Ok(());
                }
                let number = pace.go_on(now_ns());
                self.take(io, number)?;
                told.tell(now_ns(), pace.missed());
            }
        }
    }
}

/// What was reported of missed frames.
struct Told {
    missed: u64,
    next_ns: u64,
}

impl Told {
    fn tell(&mut self, now_ns: u64, missed: u64) {
        if missed > self.missed && now_ns >= self.next_ns {
            let more = missed - self.missed;
            tell(format_args!(
                "missed {more} frames, {missed} since the start; lower 'rate_hz', or raise the \
                 domain's limit of CPU"
            ));
            *self = Told { missed, next_ns: now_ns + TELL_NS };
        }
    }
}
