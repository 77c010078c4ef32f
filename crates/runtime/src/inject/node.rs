//! A node to which something happens.

use sinew_spec::catalogue::{Direction, Kind, MessageType, Scalar};

use super::{Injection, What, error, hang, signal};
use crate::clock::now_ns;
use crate::fault::Fault;
use crate::node::{Cycle, Io, Node};

/// Where the first number of a message lies.
#[derive(Clone, Copy, Debug)]
struct Number {
    port: usize,
    offset: usize,
    scalar: Scalar,
}

/// The wrapper.
pub(super) struct Injected {
    node: Box<dyn Node>,
    injections: Vec<Injection>,
    numbers: Vec<Number>,
}

impl Injected {
    pub(super) fn new(node: Box<dyn Node>, kind: &Kind, injections: Vec<Injection>) -> Injected {
        Injected { node, injections, numbers: numbers(kind) }
    }

    fn spoil(&self, io: &mut Io<'_>) {
        for number in &self.numbers {
            let slot = io.wiring.ports[number.port];
            let bytes = &mut io.slots.bytes_mut(slot)[number.offset..];
            match number.scalar {
                Scalar::F64 => bytes[..8].copy_from_slice(&f64::NAN.to_ne_bytes()),
                _ => bytes[..4].copy_from_slice(&f32::NAN.to_ne_bytes()),
            }
            io.slots.mark_new(slot, io.cycle);
        }
    }
}

/// The first number of each output that has one.
fn numbers(kind: &Kind) -> Vec<Number> {
    let outputs = kind.ports.iter().enumerate().filter(|(_, it)| it.direction == Direction::Out);
    let number = |message: &MessageType| {
        let is_number = |scalar| matches!(scalar, Scalar::F64 | Scalar::F32);
        let field = message.fields.iter().find(|field| is_number(field.scalar))?;
        Some((field.offset as usize, field.scalar))
    };
    let numbers = outputs.filter_map(|(port, it)| {
        number(it.message).map(|(offset, scalar)| Number { port, offset, scalar })
    });
    numbers.collect()
}

impl Node for Injected {
    fn start(&mut self) -> Result<(), Fault> {
        if self.injections.iter().any(|injection| injection.what == What::FailStart) {
            return Err(error("the node does not start"));
        }
        self.node.start()
    }

    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let due = |injection: &&Injection| injection.at_cycle == cycle.number;
        match self.injections.iter().find(due).map(|injection| injection.what) {
            Some(What::Panic) => panic!("injected by a drill"),
            Some(What::Error) => return Err(error("the node fails")),
            Some(what @ (What::Segv | What::Kill | What::Stop)) => signal(what),
            Some(What::Hang) => hang(),
            Some(What::Late { cycles }) => be_busy(u64::from(cycles) * cycle.period_ns),
            Some(What::NotFinite) => {
                self.node.update(io, cycle)?;
                self.spoil(io);
                return Ok(());
            }
            _ => {}
        }
        self.node.update(io, cycle)
    }

    fn stop(&mut self) {
        self.node.stop();
    }

    fn at_rest(&self) -> bool {
        self.node.at_rest()
    }
}

fn be_busy(for_ns: u64) {
    let until_ns = now_ns() + for_ns;
    while now_ns() < until_ns {
        std::hint::spin_loop();
    }
}
