//! A whole `sinew` for a machine that is not the arm: a carriage on one axis. No name and no signal
//! of it is the arm's. `SINEW_ROW` adds one more row to its table, for the tests of refused tables.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};
use sinew_core::zerocopy::IntoBytes;
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters, fault, message};
use sinew_runtime::Kinds;

message! {
    /// What the carriage is to do.
    pub struct Push {
        /// How fast.
        pub speed_mm_per_s: f64,
    }
    /// Where it is.
    pub struct Place {
        /// From the left end.
        pub place_mm: f64,
    }
}

const IN: Port = Port::input("in", "The command.", Push::TYPE);
const OUT: Port = Port::output("out", "The command.", Push::TYPE);

static SWAY: Kind = Kind {
    name: "sway",
    runs_in: RunsIn::Realtime,
    doc: "Pushes the carriage to and fro; every second it rests for a while.",
    ports: &[OUT, Port::input("place", "Where it is.", Place::TYPE)],
    parameters: &[
        Parameter::new("speed_mm_per_s", ParameterType::Number { min: 0.0, max: 1000.0 })
            .or("100")
            .unit("mm/s")
            .doc("How fast at most."),
        Parameter::new("pushes_s", ParameterType::Number { min: 0.0, max: 1e6 })
            .or("1e6")
            .unit("s")
            .doc("For how long; then it says nothing any more."),
    ],
    signals: &[],
};

static CARRIAGE: Kind = Kind {
    name: "carriage",
    runs_in: RunsIn::Realtime,
    doc: "The simulated machine: it has the speed that it is told, and slows down by friction.",
    ports: &[
        Port { safe: &[SafeValue { name: "let_go", doc: "It is pushed no more." }], ..IN },
        Port::output("place", "Where it is.", Place::TYPE),
    ],
    parameters: &[],
    signals: &[Signal::new("place_mm", "Where it is.", "mm", 1)],
};

static BEGINNER: Kind = Kind { name: "sway", ports: &[], parameters: &[], ..SWAY };

const NODES: &[NodeEntry] = &[
    NodeEntry { kind: &SWAY, make: make_sway, safe: None },
    NodeEntry { kind: &CARRIAGE, make: make_carriage, safe: Some(safe) },
];

fn make_sway(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let [speed_mm_per_s, pushes_s] =
        ["speed_mm_per_s", "pushes_s"].map(|name| parameters.number(name));
    Ok(Box::new(Sway { speed_mm_per_s, pushes_s, time_s: 0.0 }))
}

fn make_carriage(_: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    Ok(Box::new(Carriage::default()))
}

fn safe(_port: usize, _safe: usize, message: &mut [u8]) {
    message.copy_from_slice(Push { speed_mm_per_s: 0.0 }.as_bytes());
}

struct Sway {
    speed_mm_per_s: f64,
    pushes_s: f64,
    time_s: f64,
}

impl Node for Sway {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        self.time_s += cycle.period_s();
        if self.time_s > self.pushes_s {
            return Ok(());
        }
        let phase = self.time_s.fract();
        // At rest for a fifth of the time. Then a command equals the safe value.
        let factor = if phase < 0.8 { (phase * std::f64::consts::TAU / 0.8).sin() } else { 0.0 };
        *io.write(0) = Push { speed_mm_per_s: self.speed_mm_per_s * factor };
        Ok(())
    }
}

#[derive(Default)]
struct Carriage {
    place_mm: f64,
    speed_mm_per_s: f64,
}

impl Carriage {
    /// Below this speed friction holds it.
    const HELD_MM_PER_S: f64 = 0.5;
    /// Rate at which it slows down without commands.
    const FRICTION_PER_S: f64 = 60.0;
}

impl Node for Carriage {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        match io.fresh(0) {
            Fresh::New | Fresh::Old => self.speed_mm_per_s = io.read::<Push>(0).speed_mm_per_s,
            Fresh::Safe | Fresh::None => {
                self.speed_mm_per_s *= (1.0 - Self::FRICTION_PER_S * cycle.period_s()).max(0.0);
            }
        }
        if self.speed_mm_per_s.abs() < Self::HELD_MM_PER_S {
            self.speed_mm_per_s = 0.0;
        }
        self.place_mm += self.speed_mm_per_s * cycle.period_s();
        if !self.place_mm.is_finite() {
            return Err(fault!("the carriage is nowhere"));
        }
        io.signal(0)[0] = self.place_mm;
        *io.write(1) = Place { place_mm: self.place_mm };
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.speed_mm_per_s == 0.0
    }
}

/// The row that `SINEW_ROW` asks for. Each is bad in its own way.
fn more() -> impl Iterator<Item = NodeEntry> {
    let carriage: &'static Kind = Box::leak(Box::new(Kind { name: "unsafe", ..CARRIAGE }));
    let service: &'static Kind =
        Box::leak(Box::new(Kind { name: "nowhere", runs_in: RunsIn::Service, ..SWAY }));
    let rows = [
        ("unsafe", NodeEntry { kind: carriage, make: make_carriage, safe: None }),
        ("nowhere", NodeEntry { kind: service, make: make_sway, safe: None }),
        ("twice", NodeEntry { kind: &BEGINNER, make: make_sway, safe: None }),
    ];
    let asked = std::env::var("SINEW_ROW").unwrap_or_default();
    rows.into_iter().filter(move |(name, _)| asked.contains(name)).map(|(_, row)| row)
}

fn main() -> std::process::ExitCode {
    let nodes = NODES.iter().copied().chain(more()).collect();
    sinew::main(&Kinds { nodes, ..sinew::kinds() })
}
