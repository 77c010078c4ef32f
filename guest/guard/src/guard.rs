//! Kind `guard`: is between a controller and the drives, and lets only allowed frames pass.
//!
//! A frame passes if it is fresh, is one of ours, and asks no axis for a place or a speed past the
//! limits. Otherwise the guard commands a quick stop to all drives in every cycle. It does so until
//! the controller confirms by sending a frame that enables no drive.

use alloc::boxed::Box;
use core::f64::consts::TAU;

use sinew_ethercat::DRIVES;
use sinew_ethercat::cia402::{CYCLIC_SYNCHRONOUS_POSITION, control};
use sinew_ethercat::frame::{self, CheckedFrame, Command, FRAME_BYTES};
use sinew_guest::{
    Cycle, Fault, Fresh, GuestNode, Io, Kind, KindRecord, Message, ParameterRecord, Parameters,
    numbers, port,
};

const IN: usize = 0;
const OUT: usize = 1;

const PASSED: usize = 0;
const SILENT: usize = 1;
const CLOSED: usize = 2;
const LIMITED: usize = 3;
const UNREADABLE: usize = 4;
const SAFE: usize = 5;

/// Bytes that a [`Frame`] can hold.
const FRAME_BYTES_MAX: usize = 184;

sinew_guest::message! {
    /// An Ethernet frame without its check sequence, as the kinds of the arm declare it.
    pub struct Frame {
        /// The bytes. Only the first `length` are valid.
        pub bytes: [u8; FRAME_BYTES_MAX],
        /// Count of valid bytes.
        pub length: u32,
        /// Always zero.
        pub reserved: u32,
    }
}

const fn per_axis(name: &str, doc: &str, unit: &str, default: &str, max: f64) -> ParameterRecord {
    numbers(name, doc, unit, default, DRIVES as u32, (-max, max))
}

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "guard",
        "Lets the master's frames through to the drives while they are fresh and within limits. \
         Else it commands a quick stop, until the master sends a frame that enables no drive.",
        8 * 1024,
        &[
            port("in", "The master's frame.", 0, Frame::TYPE),
            port("out", "The frame for the drives.", 1, Frame::TYPE),
        ],
        &[
            numbers(
                "after",
                "Cycles of the guard without a fresh frame before it commands a quick stop.",
                "cycles",
                "10",
                1,
                (1.0, 10_000.0),
            ),
            numbers(
                "counts_per_turn",
                "Encoder counts per turn of a joint, as the master's.",
                "counts",
                "104857600",
                1,
                (1000.0, 268_435_456.0),
            ),
            per_axis(
                "position_min_deg",
                "Least place of each joint.",
                "deg",
                "[-180, -180, -180, -400, -180, -400]",
                1e6,
            ),
            per_axis(
                "position_max_deg",
                "Greatest place of each joint.",
                "deg",
                "[180, 180, 180, 400, 180, 400]",
                1e6,
            ),
            per_axis(
                "speed_max_rad_per_s",
                "Greatest speed of each joint.",
                "rad/s",
                "[5, 5, 5, 8, 8, 12]",
                1e3,
            ),
        ],
        &["passed", "silent", "closed", "limited", "unreadable", "safe"],
    ),
    make,
};

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    let counts_per_rad = parameters.number("counts_per_turn") / TAU;
    let counts = |name| {
        let degrees: [f64; DRIVES] = parameters.list(name);
        degrees.map(|degrees| (degrees.to_radians() * counts_per_rad) as i64)
    };
    let speeds: [f64; DRIVES] = parameters.list("speed_max_rad_per_s");
    let period_s = f64::from(parameters.period_us()) * 1e-6;
    Ok(Box::new(Guard {
        after: parameters.number("after") as u32,
        least: counts("position_min_deg"),
        greatest: counts("position_max_deg"),
        step_max: speeds.map(|speed| (speed * counts_per_rad * period_s) as i64 + 1),
        state: State::Waiting,
        quiet: 0,
        index: 0,
        targets: None,
    }))
}

/// The state of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No frame has come yet, so there is nothing to stop.
    Waiting,
    /// Frames pass.
    Passing,
    /// It commands a quick stop.
    Stopping,
}

struct Guard {
    after: u32,
    /// Limits of each axis in counts, and in counts per cycle.
    least: [i64; DRIVES],
    greatest: [i64; DRIVES],
    step_max: [i64; DRIVES],
    state: State,
    /// Cycles since the last fresh frame.
    quiet: u32,
    /// Index of the last frame that was sent.
    index: u8,
    /// The last targets that passed while drives were enabled.
    targets: Option<[i64; DRIVES]>,
}

impl GuestNode for Guard {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.quiet = self.quiet.saturating_add(1 + cycle.skipped);
        let frame = (io.fresh(IN) == Fresh::New).then(|| *io.read::<Frame>(IN));
        if let Some(frame) = frame {
            self.judge(frame, io);
        }
        if self.state == State::Passing {
            if self.quiet > self.after {
                self.stop_for(SILENT, io);
            } else if frame.is_none() && io.is_closed(IN) {
                self.stop_for(CLOSED, io);
            }
        }
        if self.state == State::Stopping {
            self.command_stop(io);
        }
        Ok(())
    }

    fn stop(&mut self, io: &mut Io<'_>) {
        if self.state != State::Waiting {
            self.command_stop(io);
        }
    }
}

impl Guard {
    /// Sends a frame on, or begins to stop.
    fn judge(&mut self, mut frame: Frame, io: &mut Io<'_>) {
        let length = (frame.length as usize).min(FRAME_BYTES_MAX);
        let Ok(view) = CheckedFrame::new(&mut frame.bytes[..length]) else {
            count(io, UNREADABLE);
            return;
        };
        let (index, commands) = (view.index(), core::array::from_fn(|drive| view.command(drive)));
        let enables = commands.iter().any(enables);
        if self.state == State::Stopping && enables {
            return;
        }
        if enables && !self.may_be(&commands) {
            self.stop_for(LIMITED, io);
            return;
        }
        self.targets = enables.then(|| commands.map(|command| command.target_counts.into()));
        (self.state, self.quiet, self.index) = (State::Passing, 0, index);
        count(io, PASSED);
        *io.write::<Frame>(OUT) = frame;
    }

    /// Whether all targets are within the limits of their axes, and no further away than an axis
    /// may move since the last frame.
    fn may_be(&self, commands: &[Command; DRIVES]) -> bool {
        let cycles = i64::from(self.quiet.min(self.after));
        commands.iter().enumerate().all(|(axis, command)| {
            let target = i64::from(command.target_counts);
            let step = self.targets.map_or(0, |targets| (target - targets[axis]).abs());
            (self.least[axis]..=self.greatest[axis]).contains(&target)
                && step <= self.step_max[axis] * cycles
        })
    }

    fn stop_for(&mut self, why: usize, io: &mut Io<'_>) {
        (self.state, self.targets) = (State::Stopping, None);
        count(io, why);
    }

    fn command_stop(&mut self, io: &mut Io<'_>) {
        let mode = CYCLIC_SYNCHRONOUS_POSITION;
        let stop = Command { control: control::QUICK_STOP, mode, target_counts: 0 };
        self.index = self.index.wrapping_add(1);
        let out = io.write::<Frame>(OUT);
        (out.length, out.reserved) = (FRAME_BYTES as u32, 0);
        frame::encode(&mut out.bytes, self.index, &[stop; DRIVES]);
        count(io, SAFE);
    }
}

/// Whether a drive that obeys this command may move.
fn enables(command: &Command) -> bool {
    command.control & control::ENABLE_OPERATION == control::ENABLE_OPERATION
}

fn count(io: &mut Io<'_>, counter: usize) {
    let count = io.counter(counter);
    *count = count.wrapping_add(1);
}
