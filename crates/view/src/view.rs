//! What the user sees while a graph runs: a live view, plain lines, or nothing.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use sinew_core::trace::ThreadId;
use sinew_report::{Observed, Stats};

use crate::live::Live;
use crate::plain::Plain;
use crate::scene::Scene;
use crate::screen::draws;

/// The view of a run.
pub struct View(Kind);

enum Kind {
    Live(Box<Live>),
    Plain(Plain<Box<dyn Write>>),
    None,
}

impl View {
    /// Nothing is shown.
    pub fn none() -> View {
        View(Kind::None)
    }

    /// The view that suits standard output. With `json` standard output is left alone, and lines go
    /// to standard error if it is a terminal.
    pub fn open(json: bool, stats: &Stats) -> View {
        if json {
            return View(match stderr().is_terminal() {
                true => Kind::Plain(Plain::new(Box::new(stderr()))),
                false => Kind::None,
            });
        }
        let live = draws(&stdout()).then(|| Live::open(stats));
        View(match live {
            Some(Ok(live)) => Kind::Live(Box::new(live)),
            _ => Kind::Plain(Plain::new(Box::new(stdout()))),
        })
    }

    /// Whether the view has the terminal to itself.
    pub fn is_live(&self) -> bool {
        matches!(self.0, Kind::Live(_))
    }

    /// Takes in a cycle.
    pub fn observe(&mut self, thread: ThreadId, observed: &Observed) {
        if let Kind::Live(live) = &mut self.0 {
            live.observe(thread, observed);
        }
    }

    /// Whether it is time to show something new.
    pub fn is_due(&self, elapsed_s: f64) -> bool {
        match &self.0 {
            Kind::Live(live) => live.is_due(elapsed_s),
            Kind::Plain(plain) => plain.is_due(elapsed_s),
            Kind::None => false,
        }
    }

    /// Shows events. The live view shows them where it has room.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub fn tell(&mut self, events: &[String]) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(plain) if !events.is_empty() => plain.tell(events),
            _ => Ok(()),
        }
    }

    /// Shows the current moment.
    ///
    /// # Errors
    /// If the output is closed or full.
    pub fn show(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        match &mut self.0 {
            Kind::Live(live) => live.show(scene),
            Kind::Plain(plain) => plain.show(scene),
            Kind::None => Ok(()),
        }
    }
}
