//! Kind `journal`: a service. It runs in a process of its own, and may block, fail and come back.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port};
use sinew_core::{Fault, Message, Parameters, fault};
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use crate::oven::OvenState;

static JOURNAL: Kind = Kind {
    ports: &[Port::input("in", "How the oven is.", OvenState::TYPE)],
    parameters: &[
        Parameter::new("file", ParameterType::Path).doc("Where the lines go, behind those there."),
        Parameter::new(
            "every",
            ParameterType::Duration { min_ns: 10_000_000, max_ns: 3_600_000_000_000 },
        )
        .or("1s")
        .doc("Between two lines."),
    ],
    ..Kind::service("journal", "Writes down how the oven is.")
};

const IN: usize = JOURNAL.input("in");
const FILE: &str = JOURNAL.parameter("file");
const EVERY: &str = JOURNAL.parameter("every");

/// The kind's row among those of `main`.
pub const NODE: ServiceEntry = ServiceEntry::new(&JOURNAL, make);

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let (path, every) = (parameters.path(FILE), parameters.duration(EVERY));
    Ok(Box::new(Journal { path, every }))
}

struct Journal {
    path: PathBuf,
    every: Duration,
}

impl Service for Journal {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let failed = |error| fault!("cannot write '{}': {error}", self.path.display());
        let file = File::options().create(true).append(true).open(&self.path);
        let mut file = file.map_err(failed)?;
        // Each `wait` is a heartbeat. It returns false when the service must end.
        while io.wait(self.every) {
            let mut newest = None;
            while let Some(state) = io.receive::<OvenState>(IN)? {
                newest = Some(state);
            }
            if let Some(state) = newest {
                writeln!(file, "{}", line(&state)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn line(state: &OvenState) -> String {
    let OvenState { temperature_deg_c, power_w, mode, .. } = state;
    match mode.get() {
        Some(mode) => format!("{temperature_deg_c:.1} deg C, {power_w:.0} W, {mode:?}"),
        // Another process wrote the number, so it may be any number.
        None => format!("{temperature_deg_c:.1} deg C, {power_w:.0} W, mode {}?", mode.number()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oven::Mode;

    #[test]
    fn a_line_says_how_the_oven_is() {
        let mode = Mode::Heat.into();
        let state = OvenState { temperature_deg_c: 20.04, power_w: 3000.0, mode, reserved: [0; 7] };
        assert_eq!(line(&state), "20.0 deg C, 3000 W, Heat");
    }
}
