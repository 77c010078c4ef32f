//! What the user sees while a graph runs: a live view, plain lines, or nothing.

use std::env;
use std::io::{self, IsTerminal, Write, stderr, stdout};

use sinew_runtime::privileges::{Asked, Obtained};
use sinew_runtime::run::{ServiceState, ThreadId};
use sinew_runtime::status::Phase;

use super::live::Live;
use super::plain::Plain;
use super::stats::{Observed, Stats};

/// The moment that is to be shown.
pub(crate) struct Scene<'a> {
    pub(crate) graph: &'a str,
    pub(crate) stats: &'a Stats,
    pub(crate) privileges: &'a [(ThreadId, Asked, Obtained)],
    /// Name and state of each service domain.
    pub(crate) services: &'a [(String, ServiceState)],
    pub(crate) phase: Phase,
    /// Since the first release.
    pub(crate) elapsed_s: f64,
    pub(crate) duration_s: Option<f64>,
    /// The worst cycle that was late since the last moment that was shown.
    pub(crate) late: Option<&'a str>,
    /// What last went wrong outside the graph, or the last cycle that was late.
    pub(crate) notice: Option<&'a str>,
}

/// What shows it.
pub(crate) enum View {
    Live(Box<Live>),
    Plain(Plain<Box<dyn Write>>),
    None,
}

impl View {
    /// What suits standard output. With `json` that is left alone: then lines go to standard error,
    /// if a terminal is there to read them.
    pub(crate) fn open(json: bool, stats: &Stats) -> View {
        let smart = env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty());
        if json {
            return match stderr().is_terminal() {
                true => View::Plain(Plain::new(Box::new(stderr()))),
                false => View::None,
            };
        }
        let live = (smart && stdout().is_terminal()).then(|| Live::open(stats));
        match live {
            Some(Ok(live)) => View::Live(Box::new(live)),
            _ => View::Plain(Plain::new(Box::new(stdout()))),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self, View::Live(_))
    }

    /// Takes notice of a cycle.
    pub(crate) fn observe(&mut self, thread: ThreadId, observed: &Observed) {
        if let View::Live(live) = self {
            live.observe(thread, observed);
        }
    }

    /// Whether it is time to show something new.
    pub(crate) fn is_due(&self, elapsed_s: f64) -> bool {
        match self {
            View::Live(live) => live.is_due(elapsed_s),
            View::Plain(plain) => plain.is_due(elapsed_s),
            View::None => false,
        }
    }

    /// Tells what has happened; the live view shows it where it has room.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub(crate) fn tell(&mut self, events: &[String]) -> io::Result<()> {
        match self {
            View::Plain(plain) if !events.is_empty() => plain.tell(events),
            _ => Ok(()),
        }
    }

    /// Shows the moment.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub(crate) fn show(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        match self {
            View::Live(live) => live.show(scene),
            View::Plain(plain) => plain.show(scene),
            View::None => Ok(()),
        }
    }
}
