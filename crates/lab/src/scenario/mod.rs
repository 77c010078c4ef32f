//! What can be measured: one file and one row of [`SCENARIOS`] for each scenario.

mod beside;
pub(crate) mod cycles;
mod guest;
mod http;
mod jung_kim;
mod link;
mod load;
mod mistakes;
mod pipeline;
mod player;
mod pool;
mod robot;
mod select;
mod services;
mod serving;
mod shared_size;
mod switch;
mod sync;

use std::path::PathBuf;

pub use select::Selection;
use sinew_robot::NODES;
use sinew_runtime::Kinds;

use crate::harness::process::FarSide;
use crate::report::{Axis, ScenarioReport};
use crate::rounds::Session;

/// A scenario.
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// The axes of its rows, in the order of the table's columns.
    pub axes: &'static [Axis],
    /// Whether it can show a report of rivals beside its own rows.
    pub takes_rivals: bool,
    /// Whether it runs the image of a guest.
    pub takes_image: bool,
    /// Runs it.
    pub run: fn(&ScenarioRequest, &Session<'_>) -> Result<ScenarioReport, CannotRun>,
}

/// What a scenario is asked to do.
#[derive(Clone, Default)]
pub struct ScenarioRequest {
    /// The short form.
    pub quick: bool,
    /// Rows to measure.
    pub only: Selection,
    /// Rounds, if not the scenario's own number.
    pub rounds: Option<u32>,
    /// The CPUs that may be used.
    pub cpus: Vec<u32>,
    /// The kinds of nodes that this program has. The lab gets the kinds of services only from here,
    /// so that a program that only measures links does not depend on what they need.
    pub kinds: Kinds,
    /// A report of rivals to show beside the rows.
    pub rivals: Option<ScenarioReport>,
    /// The image of the guest, if not the scenario's own.
    pub image: Option<PathBuf>,
}

impl ScenarioRequest {
    /// The number of rounds that was requested, or the scenario's own for the whole or the quick
    /// form.
    fn rounds_or(&self, whole: u32, quick: u32) -> u32 {
        self.rounds.unwrap_or(if self.quick { quick } else { whole })
    }

    /// Refuses a program that lacks one of these kinds; `what` names what the program must give to
    /// the lab.
    fn needs(&self, kinds: &[&str], what: &str) -> Result<(), CannotRun> {
        let catalogue = self.kinds.catalogue();
        let is_there = |name: &&&str| catalogue.iter().any(|kind| kind.name == **name);
        match kinds.iter().find(|name| !is_there(name)) {
            Some(missing) => {
                Err(CannotRun(format!("this program has no kind '{missing}'; give the lab {what}")))
            }
            None => Ok(()),
        }
    }
}

/// Why a scenario cannot run as asked; a sentence that says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotRun(pub String);

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    pipeline::SCENARIO,
    link::SCENARIO,
    services::SCENARIO,
    robot::SCENARIO,
    http::SCENARIO,
    guest::SCENARIO,
    player::SCENARIO,
    switch::SCENARIO,
    shared_size::SCENARIO,
    sync::SCENARIO,
    mistakes::SCENARIO,
    pool::SCENARIO,
];

/// The kinds of nodes that a domain of the lab may have: its own, and `kinds` of a program that
/// brings some.
pub fn table(kinds: &Kinds) -> Kinds {
    let known: Vec<_> = kinds.catalogue().iter().map(|kind| kind.name).collect();
    let mut all = kinds.clone();
    let nodes = NODES.iter().chain([&pipeline::NODE, &services::NODE]);
    all.nodes.extend(nodes.filter(|row| !known.contains(&row.kind.name)));
    all.services.push(services::SERVICE);
    all.flows.push(pool::NODE);
    all
}

/// The parts that far sides in processes of their own can play; for [`process::main`].
///
/// [`process::main`]: crate::harness::process::main
pub const PARTS: &[FarSide] = &[link::PART, switch::PART];
