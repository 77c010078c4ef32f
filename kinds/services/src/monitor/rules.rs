//! Rules: what is watched in the run, and what is done about it. This module has the rule as it is
//! written; the grammar is in `parse`, what may be watched in `quantity`, where that is found in a
//! plan in `bind`, and when a rule fires in `judge`.
//!
//! ```text
//! rule       = quantity comparison bound ["for" time] ["within" time] ":" actions [text]
//! quantity   = name ["{" key "=" value {"," key "=" value} "}"]
//!            | node "." signal ["[" index "]"]
//!            | "|" node "." signal ["[" index "]"] "|"
//! comparison = ">" | ">=" | "<" | "<=" | "==" | "!="
//! bound      = number | the word of a state, quoted if it has a space
//! time       = number ("ms" | "s" | "min" | "h")
//! actions    = action {"," action};  action = "event" | "webhook" | "stop"
//! text       = what people should read, quoted
//! ```

mod bind;
mod judge;
mod parse;
mod quantity;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use sinew_core::trace::ThreadId;

pub(super) use self::bind::Watched;
pub(super) use self::judge::Change;
use self::judge::Judge;
pub(super) use self::parse::Wrong;
use self::quantity::{How, Known};

/// Window of a count without `within` and without `for`.
const WITHIN_NS: u64 = 1_000_000_000;

/// Most bytes of a rule: an alarm repeats the rule, and a request to the supervisor is limited.
const LEN_MAX: usize = 500;

/// A rule as it is written.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// From 1, in the order of the spec.
    pub(super) number: usize,
    /// As the spec writes it.
    pub(super) text: String,
    quantity: Quantity,
    comparison: Comparison,
    bound: Bound,
    /// How long it must hold before the rule fires.
    for_ns: u64,
    /// For a count or a maximum: how far it looks back.
    within_ns: u64,
    /// Whether a webhook is told.
    pub(super) webhook: bool,
    /// Whether the core is stopped.
    pub(super) stop: bool,
    /// What people should read.
    pub(super) say: Option<String>,
}

/// What a rule watches.
#[derive(Clone, Debug)]
enum Quantity {
    /// One of the table, at the sources that the selector chooses.
    Known { known: &'static Known, selector: Vec<(&'static str, String)> },
    /// A signal of a node of the core: one element, or any of them.
    Signal { node: String, signal: String, element: Option<usize>, absolute: bool },
}

impl Quantity {
    fn how(&self) -> How {
        match self {
            Quantity::Known { known, .. } => known.how,
            Quantity::Signal { .. } => How::Each,
        }
    }
}

/// What a quantity is compared with.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Number(f64),
    /// The word of a state.
    Word(String),
}

/// How a value is compared with a bound.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    word: &'static str,
    holds: fn(&f64, &f64) -> bool,
    /// Which of two values is further beyond the bound.
    better: Ordering,
}

const fn row(word: &'static str, holds: fn(&f64, &f64) -> bool, better: Ordering) -> Comparison {
    Comparison { word, holds, better }
}

/// Longer ones come before those that they begin with.
const COMPARISONS: [Comparison; 6] = [
    row(">=", f64::ge, Ordering::Greater),
    row("<=", f64::le, Ordering::Less),
    row("==", f64::eq, Ordering::Equal),
    row("!=", f64::ne, Ordering::Equal),
    row(">", f64::gt, Ordering::Greater),
    row("<", f64::lt, Ordering::Less),
];

impl Comparison {
    /// Of several values the one that meets the bound best: a rule holds if it holds for any of
    /// them.
    fn foremost(self, values: impl Iterator<Item = f64>, bound: f64) -> f64 {
        let holds = |value: f64| (self.holds)(&value, &bound);
        let better = |a: f64, b: f64| match self.better {
            Ordering::Equal => holds(b) && !holds(a),
            better => b.partial_cmp(&a) == Some(better),
        };
        // A NaN is worse than any number: it must not hide the others.
        let is_better = |a: f64, b: f64| better(a, b) || a.is_nan() && !holds(a);
        values.reduce(|a, b| if is_better(a, b) { b } else { a }).unwrap_or(f64::NAN)
    }
}

/// A cycle of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) thread: ThreadId,
    pub(super) life: u32,
    pub(super) number: u64,
    pub(super) start_ns: u64,
}

/// A rule has fired or is resolved.
#[derive(Debug)]
pub(super) struct News {
    /// Index of the rule.
    pub(super) rule: usize,
    pub(super) source: String,
    pub(super) change: Change,
    /// The cycle that caused it.
    pub(super) at: Option<At>,
}

impl Rule {
    /// What the rule watches, in words.
    pub(super) fn doc(&self) -> &'static str {
        match &self.quantity {
            Quantity::Known { known, .. } => known.doc,
            Quantity::Signal { .. } => "a signal",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} '{}'", self.number, self.text)
    }
}
