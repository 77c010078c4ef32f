//! What can be measured: one file and one row of [`SCENARIOS`] each.

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
    /// What its rows differ in, in the order of the table's columns.
    pub axes: &'static [Axis],
    /// Whether it can show a report of rivals beside its own rows.
    pub takes_rivals: bool,
    /// Whether it runs the image of a guest.
    pub takes_image: bool,
    /// Runs it.
    pub run: fn(&ScenarioRequest, &Session<'_>) -> Result<ScenarioReport, CannotRun>,
}

/// What is asked of a scenario.
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
    /// The kinds of nodes that this program has. The lab knows those of services only from here:
    /// what they depend on is no affair of who measures links.
    pub kinds: Kinds,
    /// A report of rivals to stand beside the rows.
    pub rivals: Option<ScenarioReport>,
    /// The image of the guest, if not the scenario's own.
    pub image: Option<PathBuf>,
}

impl ScenarioRequest {
    /// Rounds that are asked for, or as many as the scenario has by itself, in either form.
    fn rounds_or(&self, whole: u32, quick: u32) -> u32 {
        self.rounds.unwrap_or(if self.quick { quick } else { whole })
    }

    /// Refuses a program that lacks one of these kinds; `what` is what it is to give the lab.
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

/// The kinds of nodes that a domain of the lab may have, beside `kinds`: those of a program that
/// brings its own.
pub fn table(kinds: &Kinds) -> Kinds {
    let known: Vec<_> = kinds.catalogue().iter().map(|kind| kind.name).collect();
    let mut all = kinds.clone();
    let nodes = NODES.iter().chain([&pipeline::NODE, &services::NODE]);
    all.nodes.extend(nodes.filter(|row| !known.contains(&row.kind.name)));
    all.services.push(services::SERVICE);
    all.flows.push(pool::NODE);
    all
}

/// What far sides in processes of their own can do; for [`process::main`].
///
/// [`process::main`]: crate::harness::process::main
pub const PARTS: &[FarSide] = &[link::PART, switch::PART];
