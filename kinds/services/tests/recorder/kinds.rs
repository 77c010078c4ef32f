//! Two kinds whose messages depend only on the number of the cycle, so that what is recorded can be
//! compared, bit by bit, with what was sent.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{Cycle, Fault, Io, Level, Message, Node, NodeEntry, message};

message! {
    /// Every sort of scalar but one, and bytes that cannot be compressed.
    pub struct Noise {
        /// Number of the cycle.
        pub number: u64,
        /// Half of it.
        pub half: f64,
        /// The number, and the numbers after it.
        pub floats: [f32; 4],
        /// Noise.
        pub bytes: [u8; 1024],
        /// The number, cut off.
        pub small: [i16; 4],
    }
}

impl Noise {
    /// The message of a cycle.
    pub(crate) fn of(number: u64) -> Noise {
        let mut bytes = [0; 1024];
        for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = mixed(number * 128 + at as u64).to_le_bytes();
        }
        Noise {
            number,
            half: number as f64 / 2.0,
            floats: [0.0, 1.0, 2.0, 3.0].map(|more| number as f32 + more),
            bytes,
            small: [number as i16; 4],
        }
    }
}

/// The finalizer of Steele, Lea and Flood's SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const IN: Port = Port::input("in", "", Noise::TYPE);
const OUT: Port = Port::output("out", "", Noise::TYPE);

static SOURCE: Kind = Kind {
    parameters: &[Parameter::new("file", ParameterType::Path).or("notes.txt")],
    signals: &[Signal::new("thirds", "", "", 3)],
    ..Kind::new("source", RunsIn::Realtime, &[OUT])
};
static RELAY: Kind = Kind::new("relay", RunsIn::Realtime, &[IN, OUT]);
static SINK: Kind = Kind {
    signals: &[Signal::new("number", "", "", 1)],
    ..Kind::new("sink", RunsIn::Realtime, &[IN])
};

/// The kinds of the core.
pub(crate) const CORE: [NodeEntry; 3] = [
    NodeEntry { kind: &SOURCE, make: |_| Ok(Box::new(Source)), safe: None },
    NodeEntry { kind: &RELAY, make: |_| Ok(Box::new(Relay)), safe: None },
    NodeEntry { kind: &SINK, make: |_| Ok(Box::new(Sink)), safe: None },
];

struct Source;

impl Node for Source {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        *io.write(0) = Noise::of(cycle.number);
        if cycle.number == 100 {
            cycle.log(Level::Warning, "a third of {:.1}", &[cycle.number as f64]);
        }
        let number = cycle.number as f64;
        io.signal(0).copy_from_slice(&[number, number / 3.0, -number]);
        Ok(())
    }
}

struct Relay;

impl Node for Relay {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let noise = *io.read::<Noise>(0);
        *io.write(1) = noise;
        Ok(())
    }
}

struct Sink;

impl Node for Sink {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let number = io.read::<Noise>(0).number as f64;
        io.signal(0)[0] = number;
        Ok(())
    }
}
