//! Kinds for these tests: a probe in the core that shows the orders it gets, and a camera.

use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::clock::now_ns;
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, NodeEntry, Parameters};
use sinew_pictures::camera::image::{HEIGHT, PixelRow, ROW_LEN, head, write_row};
use sinew_pictures::messages::Picture;
use sinew_pictures::picture::write_head;
use sinew_robot::messages::PlannerCommand;
use sinew_runtime::ServiceEntry;
use sinew_runtime::{Service, ServiceIo};

/// Cycles of a stop after which the probe's brakes are closed, and it is at rest.
const REST_CYCLES: u32 = 5;

/// Nodes of the core, beside the services.
pub(crate) const PROBE: NodeEntry =
    NodeEntry { kind: &PROBE_INFO, make: |_| Ok(Box::new(Probe::default())), safe: None };

static PROBE_INFO: Kind = Kind {
    parameters: &[
        Parameter::new("path", ParameterType::Path).or("a"),
        Parameter::new("other_paths", ParameterType::Paths { max: 2 }).or("[b]"),
    ],
    signals: &[
        Signal::new("commands", "", "", 1),
        Signal::new("what", "", "", 1),
        Signal::new("path", "", "", 1),
        Signal::new("actual_m", "", "", 3),
        Signal { labels: &["open", "closed"], ..Signal::new("brake", "", "", 2) },
    ],
    ..Kind::new(
        "probe",
        RunsIn::Realtime,
        &[Port::input("command", "", PlannerCommand::TYPE).optional()],
    )
};

#[derive(Default)]
struct Probe {
    commands: f64,
    last: [f64; 2],
    stopping: u32,
}

impl Node for Probe {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if io.fresh(0) == Fresh::New {
            let command = io.read::<PlannerCommand>(0);
            self.last = [f64::from(command.what), f64::from(command.path)];
            self.commands += 1.0;
        }
        self.stopping += u32::from(cycle.stopping);
        io.signal(0)[0] = self.commands;
        io.signal(1)[0] = self.last[0];
        io.signal(2)[0] = self.last[1];
        io.signal(3).copy_from_slice(&[cycle.number as f64, 1.0, 2.0]);
        io.signal(4).fill(f64::from(u8::from(self.at_rest())));
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.stopping >= REST_CYCLES
    }
}

/// A camera that needs no arm.
pub(crate) const FILM: ServiceEntry = ServiceEntry { kind: &FILM_INFO, make: film };

static FILM_INFO: Kind = Kind {
    parameters: &[Parameter::new("pause_ms", ParameterType::Integer { min: 0, max: 1000 })
        .or("20")
        .unit("ms")
        .doc("Between two frames.")],
    ..Kind::new("film", RunsIn::Service, &[Port::output("out", "", Picture::TYPE)])
};

fn film(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Film { pause: Duration::from_millis(parameters.integer("pause_ms") as u64) }))
}

struct Film {
    pause: Duration,
}

impl Service for Film {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut sequence: u64 = 0;
        while io.wait(self.pause) {
            let Some(mut frame) = io.claim::<Picture>(0)? else { continue };
            sequence += 1;
            let row: PixelRow = [sequence as u8; ROW_LEN];
            write_head(&mut frame, &head(sequence, now_ns()));
            (0..HEIGHT).for_each(|y| write_row(&mut frame, y, &row));
            frame.commit();
        }
        Ok(())
    }
}
