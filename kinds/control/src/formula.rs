//! Formulas: text in, a short list of steps out. A cycle runs the steps without a stack or a
//! pointer.
//!
//! | binds | written | note |
//! |---|---|---|
//! | most | `( )`, `f( )`, names, numbers | |
//! | | `a ^ b` | from the right: `2^3^2` is 512; `2^-1` is allowed |
//! | | `-a` | after the power: `-2^2` is -4 |
//! | | `a * b`, `a / b`, `a % b` | from the left; `%` has the sign of `b`, as an angle needs it |
//! | | `a + b`, `a - b` | from the left |
//! | | `a < b`, `<=`, `>`, `>=`, `==`, `!=` | one of them; `a < b and b < c` for two |
//! | | `not a` | |
//! | | `a and b` | both sides are always evaluated |
//! | least | `a or b` | the same |
//!
//! True is 1, false is 0; as a condition, anything but 0 is true. These are Python's rules, with
//! two exceptions: `^` stands for `**`, and a comparison cannot be chained. All arithmetic is IEEE
//! 754 binary64. NaN (`0/0`, `sqrt(-1)`) stays NaN through `min`, `max` and `clamp`. Each
//! comparison with NaN is false, except `!=`, which is true.

mod read;

use std::fmt;

use sinew_core::{Fault, fault};
use sinew_plan::{Item, Span};

/// Count of places of a bank. A byte is an index into it that needs no check.
const PLACES: usize = 256;
/// Most operations of a formula, and so most steps: it bounds the time of an evaluation.
pub(crate) const OPERATIONS_MAX: usize = 256;
/// Most bytes of a formula: it bounds the time to read one.
pub(crate) const TEXT_MAX: usize = 4096;
/// Most names in formulas: the names of ports, and one of the kind's own.
pub(crate) const NAMES_MAX: usize = 33;
/// Count of names that a fault shows with their numbers.
const NAMES_SHOWN: usize = 4;

/// The numbers of the formulas of a node: first those with names, then intermediate results, at the
/// end the constants. All formulas of the node share it, so that a cycle writes each input once.
pub(crate) struct Bank {
    places: Box<[f64; PLACES]>,
    names: Vec<String>,
    /// The most intermediate results that a formula keeps.
    between: usize,
    constants: usize,
}

/// Why a text is no formula.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misread {
    /// The byte of the text at which the mistake is seen.
    pub(crate) at: usize,
    /// What is wrong and what was expected.
    pub(crate) what: String,
}

impl Misread {
    /// The mistake as a fault, for the formula in this piece of the spec; `title` names it. The
    /// column is counted in characters from 1.
    pub(crate) fn fault(&self, title: impl fmt::Display, item: &Item) -> Fault {
        let text = item.text().unwrap_or_default();
        let column = text.char_indices().take_while(|&(at, _)| at < self.at).count() + 1;
        fault!("{title}, column {column}: {}", self.what).at(item.span_at(self.at))
    }
}

/// A text of the spec with its place, so that errors can point into it.
pub(crate) fn placed(text: &str, span: Span) -> Item {
    let plain = span.len as usize == text.len();
    Item::scalar(span, text.to_owned(), plain, None)
}

impl Bank {
    /// A bank for formulas of these names. All numbers are 0.
    ///
    /// # Panics
    /// There are more than [`NAMES_MAX`].
    pub(crate) fn new(names: &[String]) -> Bank {
        assert!(names.len() <= NAMES_MAX, "the table of the kind says how many there may be");
        let places = Box::new([0.0; PLACES]);
        Bank { places, names: names.to_vec(), between: 0, constants: 0 }
    }

    /// Sets the number of a name, by its index.
    #[inline]
    pub(crate) fn set(&mut self, name: usize, number: f64) {
        self.places[name] = number;
    }

    /// Whether there is room for all, with this many intermediate results.
    fn has_room(&self, between: usize) -> bool {
        self.names.len() + between + self.constants <= PLACES
    }

    /// The place of a constant; `None` if there are too many.
    fn constant(&mut self, number: f64) -> Option<u8> {
        let start = PLACES - self.constants;
        let same = |at: &usize| self.places[*at].to_bits() == number.to_bits();
        if let Some(at) = (start..PLACES).find(same) {
            return Some(at as u8);
        }
        self.constants += 1;
        if !self.has_room(self.between) {
            return None;
        }
        self.places[start - 1] = number;
        Some((start - 1) as u8)
    }
}

/// What a step does with one, two or three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Not,
    Negate,
    If,
    Abs,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Exp,
    Ln,
    Log10,
    Min,
    Max,
    Clamp,
    Floor,
    Ceil,
    Round,
    Sign,
    Hypot,
    // Two operations at once, `(a . b) . c`: a step costs more than its operation. Both operations
    // round.
    AddAdd,
    AddSubtract,
    AddMultiply,
    SubtractAdd,
    SubtractSubtract,
    SubtractMultiply,
    MultiplyAdd,
    MultiplySubtract,
    MultiplyMultiply,
    /// `c - a * b`.
    SubtractProduct,
}

impl Op {
    /// The result. An operation of fewer than three numbers ignores the rest.
    #[inline(always)]
    fn of(self, a: f64, b: f64, c: f64) -> f64 {
        let truth = |it: bool| f64::from(u8::from(it));
        match self {
            Op::Add => a + b,
            Op::Subtract => a - b,
            Op::Multiply => a * b,
            Op::Divide => a / b,
            Op::Modulo => modulo(a, b),
            Op::Power => a.powf(b),
            Op::Less => truth(a < b),
            Op::LessOrEqual => truth(a <= b),
            Op::Greater => truth(a > b),
            Op::GreaterOrEqual => truth(a >= b),
            Op::Equal => truth(a == b),
            Op::NotEqual => truth(a != b),
            Op::And => truth(a != 0.0 && b != 0.0),
            Op::Or => truth(a != 0.0 || b != 0.0),
            Op::Not => truth(a == 0.0),
            Op::Negate => -a,
            Op::If => [c, b][usize::from(a != 0.0)],
            Op::Abs => a.abs(),
            Op::Sqrt => a.sqrt(),
            Op::Sin => a.sin(),
            Op::Cos => a.cos(),
            Op::Tan => a.tan(),
            Op::Asin => a.asin(),
            Op::Acos => a.acos(),
            Op::Atan => a.atan(),
            Op::Atan2 => a.atan2(b),
            Op::Exp => a.exp(),
            Op::Ln => a.ln(),
            Op::Log10 => a.log10(),
            Op::Min => least(a, b),
            Op::Max => greatest(a, b),
            Op::Clamp => least(greatest(a, b), c),
            Op::Floor => a.floor(),
            Op::Ceil => a.ceil(),
            Op::Round => a.round(),
            Op::Sign if a > 0.0 => 1.0,
            Op::Sign if a < 0.0 => -1.0,
            // Zero or NaN.
            Op::Sign => a,
            Op::Hypot => a.hypot(b),
            Op::AddAdd => a + b + c,
            Op::AddSubtract => a + b - c,
            Op::AddMultiply => (a + b) * c,
            Op::SubtractAdd => a - b + c,
            Op::SubtractSubtract => a - b - c,
            Op::SubtractMultiply => (a - b) * c,
            Op::MultiplyAdd => a * b + c,
            Op::MultiplySubtract => a * b - c,
            Op::MultiplyMultiply => a * b * c,
            Op::SubtractProduct => c - a * b,
        }
    }
}

/// The rest of `a` after a quotient that is rounded down, as in Python.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}

// The functions of the standard library lose NaN.

fn least(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

fn greatest(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// Reads places `a`, `b` and `c` of the bank, writes place `to`. Aligned, so that no step lies
/// across two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Step {
    op: Op,
    to: u8,
    a: u8,
    b: u8,
    c: u8,
}

/// A formula that was read.
pub(crate) struct Formula {
    text: Box<str>,
    steps: Box<[Step]>,
    result: Place,
    /// The names in the formula, by index, in the order of the text.
    names: Box<[u8]>,
}

/// Where the result of a formula is.
#[derive(Clone, Copy)]
enum Place {
    At(u8),
    /// The result of a formula without names. It needs no place.
    Constant(f64),
}

impl Formula {
    /// The value with the numbers in the bank. It takes no allocation, and at most
    /// [`OPERATIONS_MAX`] steps.
    #[inline]
    pub(crate) fn value(&self, bank: &mut Bank) -> f64 {
        let places = &mut *bank.places;
        for step in &self.steps {
            let [a, b, c] = [step.a, step.b, step.c].map(|at| places[usize::from(at)]);
            places[usize::from(step.to)] = step.op.of(a, b, c);
        }
        match self.result {
            Place::At(at) => places[usize::from(at)],
            Place::Constant(number) => number,
        }
    }

    /// Like [`value`](Self::value), and checked.
    ///
    /// # Errors
    /// The value is not finite. The fault names the formula and the first of its names, for
    /// `whose`.
    #[inline]
    pub(crate) fn finite(&self, bank: &mut Bank, whose: impl fmt::Display) -> Result<f64, Fault> {
        let value = self.value(bank);
        if value.is_finite() { Ok(value) } else { Err(self.not_finite(bank, value, whose)) }
    }

    #[cold]
    fn not_finite(&self, bank: &Bank, value: f64, whose: impl fmt::Display) -> Fault {
        let text: &str = &self.text;
        let with = With { names: &self.names, bank };
        fault!("{whose}'{text:.60}' is {value:?}{with}; keep it finite with if() or clamp()")
    }
}

/// Names with their numbers, as many as a fault has room for.
struct With<'a> {
    names: &'a [u8],
    bank: &'a Bank,
}

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, &name) in self.names.iter().take(NAMES_SHOWN).enumerate() {
            let name = usize::from(name);
            let (before, number) = ([" with ", ", "][nth.min(1)], self.bank.places[name]);
            write!(f, "{before}{:.20} = {number:?}", self.bank.names[name])?;
        }
        let more = self.names.len() > NAMES_SHOWN;
        f.write_str(if more { ", ..." } else { "" })
    }
}

/// Refuses a name that no formula can hold; `what` says what is named, `span` where it is in the
/// spec.
pub(crate) fn check_names(what: &str, names: &[String], span: Span) -> Result<(), Fault> {
    for name in names {
        let first = name.chars().next().unwrap_or('-');
        let sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let why = if read::is_word(name) {
            "is a word of formulas; give it another name, such as"
        } else if first.is_ascii_digit() {
            "begins with a digit, and no name in a formula does; write"
        } else if !name.chars().all(sign) {
            "holds more than letters, digits and '_'; write"
        } else {
            continue;
        };
        let mut better: String = name.chars().map(|it| if sign(it) { it } else { '_' }).collect();
        if better == *name {
            better = format!("in_{name}");
        }
        return Err(fault!("{what} '{name}' {why} '{better}'").at(span));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
