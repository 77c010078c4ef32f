//! Kind `statistics`: mean, least, greatest and spread of a number, in a window or since the start.

mod moments;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal, Unit};
use sinew_core::{Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters, Real};

use moments::{MomentWindow, Moments};

const IN: usize = 0;
const RESET: usize = 1;
/// The first output. The others follow in the order of the signals.
const OUT: usize = 2;

/// Most cycles of a window: it takes 4 MB and is a minute of cycles of 1 ms.
const WINDOW_MAX: i64 = 65_536;

const fn out(name: &'static str, doc: &'static str) -> Port {
    Port::output(name, doc, Real::TYPE).optional().unit(Unit::As("in"))
}

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "statistics",
    runs_in: RunsIn::Realtime,
    doc: "Mean, least, greatest, root of the mean square and standard deviation of the newest \
          value of each of the last 'window' cycles, or of all since the first value. Until a \
          window is full, of those there are. The deviation is that of the whole population: the \
          root of the mean square distance from the mean, divided by n and not by n - 1. Values \
          are added by B. P. Welford's method (1962), parts of a window joined by that of T. F. \
          Chan, G. H. Golub and R. J. LeVeque (1979); nothing is ever subtracted from a sum, so no \
          error stays when a value has left the window, and none grows. The window is kept in \
          halves whose ends are summed backwards (M. van Herk, 1992), one value in each cycle: all \
          cycles take the same work, however wide it is. Lost periods do not count. Before the \
          first value it writes nothing. Values past 1e150 have no square.",
    ports: &[
        Port::input("in", "What to look at.", Real::TYPE),
        Port::input("reset", "While it is true only the newest value counts.", Flag::TYPE)
            .optional(),
        out("mean", "The mean."),
        out("min", "The least."),
        out("max", "The greatest."),
        out("rms", "The root of the mean square."),
        out("std", "The standard deviation."),
    ],
    parameters: &[Parameter::new("window", ParameterType::Integer { min: 0, max: WINDOW_MAX })
        .such_as("1000")
        .doc("How many cycles count; 0: all since the first value or 'reset'.")],
    signals: &[
        Signal::new("mean", "The mean.", "", 1).unit_as("in"),
        Signal::new("min", "The least.", "", 1).unit_as("in"),
        Signal::new("max", "The greatest.", "", 1).unit_as("in"),
        Signal::new("rms", "The root of the mean square.", "", 1).unit_as("in"),
        Signal::new("std", "The standard deviation.", "", 1).unit_as("in"),
    ],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let window = parameters.integer("window") as usize;
    let seen = match window {
        0 => Seen::All(Moments::NONE),
        _ => Seen::Last(MomentWindow::new(window)),
    };
    Ok(Box::new(Statistics { seen, has_begun: false }))
}

enum Seen {
    All(Moments),
    Last(MomentWindow),
}

struct Statistics {
    seen: Seen,
    has_begun: bool,
}

impl Node for Statistics {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        self.has_begun |= io.fresh(IN) != Fresh::None;
        if !self.has_begun {
            return Ok(());
        }
        let value = io.read::<Real>(IN).value;
        let is_reset = io.read::<Flag>(RESET).value.get();
        let moments = self.seen.add(value, is_reset);
        for (at, figure) in moments.figures().into_iter().enumerate() {
            io.write::<Real>(OUT + at).value = figure;
            io.signal(at)[0] = figure;
        }
        Ok(())
    }
}

impl Seen {
    fn add(&mut self, value: f64, is_reset: bool) -> Moments {
        match self {
            Seen::All(all) => {
                if is_reset {
                    *all = Moments::NONE;
                }
                all.add(value);
                *all
            }
            Seen::Last(window) => {
                if is_reset {
                    window.clear();
                }
                window.add(value)
            }
        }
    }
}

#[cfg(test)]
mod tests;
