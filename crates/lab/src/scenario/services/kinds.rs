//! The kinds of this scenario: a service that does one thing, good or bad, without end, and a node
//! of the core with mailboxes for messages from services.

use std::hint::black_box;
use std::thread::park;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::zerocopy::FromZeros;
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, fault};
use sinew_robot::messages::AxisFeedback;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use crate::words::words;

sinew_core::message! {
    /// What a service puts into a mailbox.
    pub struct Letter {
        /// The number of the letter, in every word.
        pub words: [u64; 32],
    }
}

words! {
    /// What a service does.
    pub(super) enum Deed {
        /// Reads its input and sleeps in between.
        Idle = "idle",
        /// Panics, 5 ms after it has started.
        Panic = "panic",
        /// Sends SIGKILL to itself as soon as it starts.
        Kill = "kill",
        /// Never becomes ready.
        Hang = "hang",
        /// Never sleeps.
        Burn = "burn",
        /// Writes to a mailbox without a pause.
        Flood = "flood",
    }
}

const IN: usize = 0;
const OUT: usize = 1;
/// Time between two looks of a service that sleeps.
const LOOK: Duration = Duration::from_millis(10);
/// How long the service that panics runs.
const LIFE: Duration = Duration::from_millis(5);
/// Rounds of a busy loop, or letters, between two heartbeats: far below a millisecond.
const BETWEEN_BEATS: u64 = 1000;

static SERVICE_KIND: Kind = Kind {
    name: "lab_service",
    runs_in: RunsIn::Service,
    doc: "Does one thing without end.",
    ports: &[
        Port::input("in", "What the drives report.", AxisFeedback::TYPE).optional(),
        Port::output("out", "Letters.", Letter::TYPE).optional(),
    ],
    parameters: &[Parameter::new("deed", ParameterType::Choice(Deed::WORDS)).doc("What it does.")],
    signals: &[],
};

const fn mailbox(name: &'static str) -> Port {
    Port::input(name, "Letters of a service.", Letter::TYPE).optional()
}

/// Adds up the messages from services.
static INBOX_KIND: Kind =
    Kind::new("lab_inbox", RunsIn::Realtime, &[mailbox("in_0"), mailbox("in_1"), mailbox("in_2")]);

/// Row of the table of nodes; users do not see it.
pub(in crate::scenario) const NODE: NodeEntry =
    NodeEntry { kind: &INBOX_KIND, make: |_| Ok(Box::new(Inbox { sum: 0 })), safe: None };
/// Row of the table of services; users do not see it.
pub(in crate::scenario) const SERVICE: ServiceEntry = ServiceEntry { kind: &SERVICE_KIND, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let deed = parameters.text("deed").parse().map_err(|why| fault!("deed: {why}"))?;
    Ok(Box::new(Doer { deed }))
}

struct Inbox {
    sum: u64,
}

impl Node for Inbox {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        for port in 0..INBOX_KIND.ports.len() {
            self.sum = self.sum.wrapping_add(io.read::<Letter>(port).words.iter().sum());
        }
        black_box(self.sum);
        Ok(())
    }
}

struct Doer {
    deed: Deed,
}

impl Service for Doer {
    fn start(&mut self) -> Result<(), Fault> {
        if self.deed == Deed::Hang {
            loop {
                park();
            }
        }
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        match self.deed {
            Deed::Idle | Deed::Hang => idle(io),
            Deed::Panic => {
                io.wait(LIFE);
                panic!("as this row wants it");
            }
            Deed::Kill => kill_process(getpid(), Signal::KILL)
                .map_err(|error| fault!("cannot kill itself: {error}")),
            Deed::Burn => {
                burn(io);
                Ok(())
            }
            Deed::Flood => flood(io),
        }
    }
}

fn idle(io: &mut ServiceIo) -> Result<(), Fault> {
    while io.wait(LOOK) {
        while io.receive::<AxisFeedback>(IN)?.is_some() {}
    }
    Ok(())
}

fn burn(io: &mut ServiceIo) {
    let mut sum = 0_u64;
    while !io.is_stopping() {
        (0..BETWEEN_BEATS).for_each(|more| sum = black_box(sum.wrapping_add(more)));
        io.beat();
    }
}

fn flood(io: &mut ServiceIo) -> Result<(), Fault> {
    let mut letter = Letter::new_zeroed();
    while !io.is_stopping() {
        for _ in 0..BETWEEN_BEATS {
            letter.words[0] += 1;
            io.send(OUT, &letter)?;
        }
        io.beat();
    }
    Ok(())
}
