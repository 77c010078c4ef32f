//! Kinds with a memory, so that a replay that once goes wrong stays wrong.

#![expect(unreachable_pub, reason = "`message!` declares public types")]

use sinew_plan::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};

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

/// The kinds of services, which are not made.
pub(super) static SERVICES: [&Kind; 2] = [&WRITER, &OBSERVER];

static SOURCE: Kind = Kind {
    name: "source",
    runs_in: RunsIn::Realtime,
    doc: "Commands what feedback, trim and wishes add up to.",
    ports: &[
        Port::output("out", "", Command::TYPE).optional(),
        Port::input("feedback", "", Command::TYPE).optional(),
        Port::input("trim", "", Command::TYPE).optional(),
        Port::input("wish", "", Wish::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("fail_at", ParameterType::Integer { min: 0, max: 1_000_000 }).or("1000000"),
        Parameter::new("failure", ParameterType::Choice(&["error", "panic", "nan"])).or("error"),
    ],
    signals: &[Signal::new("sum", "", "", 1), Signal::new("silent", "", "", 1)],
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
    ports: &[
        Port::input("in", "", Command::TYPE).optional(),
        Port::output("out", "", Command::TYPE).optional(),
    ],
    parameters: &[Parameter::new("gain", ParameterType::Number { min: 0.0, max: 1.0 }).or("0.5")],
    signals: &[Signal::new("velocity", "", "", 1)],
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
            ..Port::input("in", "", Command::TYPE).optional()
        },
        Port::output("out", "", Command::TYPE).optional(),
    ],
    parameters: &[],
    signals: &[Signal::new("position", "", "", 1), Signal::new("safe", "", "", 1)],
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

/// Wishes; played by the test.
static WRITER: Kind =
    Kind::new("writer", RunsIn::Service, &[Port::output("out", "", Wish::TYPE).optional()]);

/// It exists so that cycles leave their messages behind.
static OBSERVER: Kind = Kind::new("observer", RunsIn::Observer, &[]);
