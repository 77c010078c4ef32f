//! Kinds with a memory, so that a replay that once goes wrong stays wrong.

#![expect(unreachable_pub, reason = "`message!` declares public types")]

use sinew_plan::catalogue::{
    Direction, Kind, MessageType, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal,
};

use crate::fault;
use crate::fault::Fault;
use crate::message;
use crate::message::Message;
use crate::node::{Cycle, Fresh, Io, Node, NodeEntry, Parameters};

message! {
    /// A command.
    pub struct Command {
        /// Anything but 0 moves the motor.
        pub velocity: f64,
        /// Number of the cycle.
        pub number: u64,
    }
    /// What the service wishes.
    pub struct Wish {
        /// Added to what is commanded.
        pub offset: f64,
    }
}

/// All kinds.
pub(super) const NODES: &[NodeEntry] = &[
    NodeEntry { kind: &SOURCE, make: |p| Ok(Box::new(Source::new(p))), safe: None },
    NodeEntry { kind: &FILTER, make: |p| Ok(Box::new(Filter::new(p))), safe: None },
    NodeEntry {
        kind: &MOTOR,
        make: |_| Ok(Box::new(Motor::default())),
        safe: Some(|_, _, message| message.fill(0)),
    },
];

/// Those of services, which are not made.
pub(super) static SERVICES: [&Kind; 2] = [&WRITER, &OBSERVER];

const fn port(name: &'static str, direction: Direction, message: &'static MessageType) -> Port {
    Port { name, doc: "", direction, message, optional: true, safe: &[] }
}

const fn parameter(name: &'static str, ty: ParameterType, default: &'static str) -> Parameter {
    Parameter { name, doc: "", unit: "", ty, default: Some(default) }
}

const fn signal(name: &'static str) -> Signal {
    Signal { name, doc: "", unit: "", count: 1, labels: &[] }
}

static SOURCE: Kind = Kind {
    name: "source",
    runs_in: RunsIn::Realtime,
    doc: "Commands what feedback, trim and wishes add up to.",
    ports: &[
        port("out", Direction::Out, Command::TYPE),
        port("feedback", Direction::In, Command::TYPE),
        port("trim", Direction::In, Command::TYPE),
        port("wish", Direction::In, Wish::TYPE),
    ],
    parameters: &[
        parameter("fail_at", ParameterType::Integer { min: 0, max: 1_000_000 }, "1000000"),
        parameter("failure", ParameterType::Choice(&["error", "panic", "nan"]), "error"),
    ],
    signals: &[signal("sum"), signal("silent")],
};

struct Source {
    fail_at: u64,
    failure: String,
    sum: f64,
    silent: u64,
}

impl Source {
    fn new(parameters: &Parameters<'_>) -> Source {
        let fail_at = parameters.integer("fail_at") as u64;
        Source { fail_at, failure: parameters.text("failure").into(), sum: 0.0, silent: 0 }
    }
}

impl Node for Source {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(1) == Fresh::New {
            self.sum += 0.1 * io.read::<Command>(1).velocity;
        } else {
            self.silent += 1 + cycle.skipped;
        }
        self.sum = 0.9 * self.sum + 0.01 * io.read::<Command>(2).velocity;
        if io.fresh(3) == Fresh::New {
            self.sum += io.read::<Wish>(3).offset;
        }
        let velocity = 1.0 + self.sum.sin() + self.silent as f64 / 7.0;
        *io.write::<Command>(0) = Command { velocity, number: cycle.number };
        io.signal(0)[0] = self.sum;
        io.signal(1)[0] = self.silent as f64;
        if cycle.number < self.fail_at {
            return Ok(());
        }
        match self.failure.as_str() {
            "error" => Err(fault!("told to fail")),
            "panic" => panic!("told to fail"),
            _ => {
                io.write::<Command>(0).velocity = f64::NAN;
                Ok(())
            }
        }
    }
}

static FILTER: Kind = Kind {
    name: "filter",
    runs_in: RunsIn::Realtime,
    doc: "Half of what it reads and half of what it wrote; every other time it says nothing.",
    ports: &[port("in", Direction::In, Command::TYPE), port("out", Direction::Out, Command::TYPE)],
    parameters: &[parameter("gain", ParameterType::Number { min: 0.0, max: 1.0 }, "0.5")],
    signals: &[signal("velocity")],
};

struct Filter {
    gain: f64,
    velocity: f64,
}

impl Filter {
    fn new(parameters: &Parameters<'_>) -> Filter {
        Filter { gain: parameters.number("gain"), velocity: 0.0 }
    }
}

impl Node for Filter {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let read = io.read::<Command>(0).velocity;
        if cycle.number > 0 {
            self.velocity = self.gain * read;
        }
        io.signal(0)[0] = self.velocity;
        if cycle.number % 2 == 1 {
            *io.write::<Command>(1) = Command { velocity: self.velocity, number: cycle.number };
        }
        Ok(())
    }
}

static MOTOR: Kind = Kind {
    name: "motor",
    runs_in: RunsIn::Realtime,
    doc: "Goes as it is told.",
    ports: &[
        Port {
            safe: &[SafeValue { name: "stand", doc: "Stands." }],
            ..port("in", Direction::In, Command::TYPE)
        },
        port("out", Direction::Out, Command::TYPE),
    ],
    parameters: &[],
    signals: &[signal("position"), signal("safe")],
};

#[derive(Default)]
struct Motor {
    position: f64,
    safe: u64,
}

impl Node for Motor {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.safe += u64::from(io.fresh(0) == Fresh::Safe);
        self.position += io.read::<Command>(0).velocity * cycle.period_s();
        let velocity = self.position.cos();
        *io.write::<Command>(1) = Command { velocity, number: cycle.number };
        io.signal(0)[0] = self.position;
        io.signal(1)[0] = self.safe as f64;
        Ok(())
    }
}

static WRITER: Kind = Kind {
    name: "writer",
    runs_in: RunsIn::Service,
    doc: "Wishes; played by the test.",
    ports: &[port("out", Direction::Out, Wish::TYPE)],
    parameters: &[],
    signals: &[],
};

static OBSERVER: Kind = Kind {
    name: "observer",
    runs_in: RunsIn::Observer,
    doc: "Is there, so that cycles leave their messages behind.",
    ports: &[],
    parameters: &[],
    signals: &[],
};
