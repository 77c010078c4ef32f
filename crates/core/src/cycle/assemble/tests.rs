//! Links that take one number of a message: what the reader gets, and when it is new.

use std::sync::Mutex;

use sinew_plan::catalogue::{Kind, Port, RunsIn};
use sinew_plan::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

use super::*;
use crate::message::{Flag, Message, Real};
use crate::node::{Cycle, Fresh, Io, Node};

crate::message! {
    /// For the tests: numbers of several types.
    pub struct Several {
        /// A double.
        pub position_rad: f64,
        /// Floats.
        pub force_n: [f32; 2],
        /// A whole number that loses digits as a double.
        pub count: u64,
        /// A short one.
        pub status: i16,
        /// True or false.
        pub enabled: bool,
        /// Nothing.
        pub reserved: [u8; 5],
    }
}

static WRITER: Kind =
    Kind::new("writer", RunsIn::Realtime, &[Port::output("out", "All.", Several::TYPE)]);

const fn number(name: &'static str) -> Port {
    Port::input(name, "A number.", Real::TYPE).optional()
}

static READER: Kind = Kind::new(
    "reader",
    RunsIn::Realtime,
    &[
        number("a"),
        number("b"),
        number("c"),
        number("d"),
        number("e"),
        Port::input("f", "A flag.", Flag::TYPE).optional(),
    ],
);

/// What the reader saw in each cycle: of each port its number and whether it is new.
static SEEN: Mutex<Vec<Vec<(f64, Fresh)>>> = Mutex::new(Vec::new());

struct Writer;

impl Node for Writer {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if cycle.number.is_multiple_of(2) {
            let number = cycle.number as f64;
            *io.write::<Several>(0) = Several {
                position_rad: number + 0.5,
                force_n: [1.0, 0.25 - number as f32],
                count: (1 << 53) + 2,
                status: -3,
                enabled: (cycle.number == 0).into(),
                reserved: [0; 5],
            };
        }
        Ok(())
    }
}

struct Reader;

impl Node for Reader {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        let mut seen: Vec<_> =
            (0..5).map(|port| (io.read::<Real>(port).value, io.fresh(port))).collect();
        seen.push((f64::from(u8::from(io.read::<Flag>(5).value.get())), io.fresh(5)));
        SEEN.lock().expect("nobody panics").push(seen);
        Ok(())
    }
}

const TABLE: &[NodeEntry] = &[
    NodeEntry { kind: &WRITER, make: |_| Ok(Box::new(Writer)), safe: None },
    NodeEntry { kind: &READER, make: |_| Ok(Box::new(Reader)), safe: None },
];

const TEXT: &str = "
name: parts
domains: {control: {realtime: {period: 1ms}}}
nodes:
  - kind: writer
    name: writer
    domain: control
    ports:
      out:
        - {name: reader, port: a, field: position_rad}
        - {name: reader, port: b, field: 'force_n[1]'}
        - {name: reader, port: c, field: count}
        - {name: reader, port: d, field: status}
        - {name: reader, port: e, field: enabled, delay: 1}
        - {name: reader, port: f, field: enabled}
  - {kind: reader, name: reader, domain: control}
";

#[test]
fn a_reader_gets_its_number_of_a_message_when_the_message_is_new() {
    let source = SpecSource::of("parts.yaml", TEXT);
    let plan = compile(&source, &[&WRITER, &READER], &TargetMachine::of(vec![0]));
    let plan = plan.unwrap_or_else(|bad| panic!("{}", render(&bad, TEXT, false)));
    let mut executor = Executor::fused(&plan, TABLE, Path::new(".")).expect("makes");
    for number in 0..3 {
        executor.cycle(&Cycle::new(number, 1_000_000), u64::MAX).expect("no fault");
    }
    let count = ((1_u64 << 53) + 2) as f64;
    let (new, old, none) = (Fresh::New, Fresh::Old, Fresh::None);
    let expected = [
        [(0.5, new), (0.25, new), (count, new), (-3.0, new), (0.0, none), (1.0, new)],
        [(0.5, old), (0.25, old), (count, old), (-3.0, old), (1.0, new), (1.0, old)],
        [(2.5, new), (-1.75, new), (count, new), (-3.0, new), (1.0, old), (0.0, new)],
    ];
    assert_eq!(*SEEN.lock().expect("nobody panics"), expected.map(Vec::from));
}
