//! What differs between a recorded cycle and the same cycle now: messages field by field, signals
//! number by number, failures.

use std::fmt;

use sinew_plan::catalogue::{Field, MessageType, Scalar};
use sinew_plan::plan::{End, Plan};

use crate::trace::Failed;

/// A number of a message or signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of an unsigned field.
    Unsigned(u64),
    /// Of a signed field.
    Signed(i64),
    /// Of a field of single precision.
    Single(f32),
    /// Of a field of double precision, or of a signal.
    Double(f64),
}

impl Number {
    /// Reads number `at` of a field. `None` if the message ends before it.
    fn read(field: &Field, at: u32, message: &[u8]) -> Option<Number> {
        let rest = message.get(field.offset as usize..)?;
        let at = at as usize;
        macro_rules! read {
            ($ty:ty) => {{
                let bytes = rest.get(at * size_of::<$ty>()..)?.first_chunk()?;
                <$ty>::from_le_bytes(*bytes)
            }};
        }
        Some(match field.scalar {
            Scalar::U8 | Scalar::Bool => Number::Unsigned(read!(u8).into()),
            Scalar::I8 => Number::Signed(read!(i8).into()),
            Scalar::U16 => Number::Unsigned(read!(u16).into()),
            Scalar::I16 => Number::Signed(read!(i16).into()),
            Scalar::U32 => Number::Unsigned(read!(u32).into()),
            Scalar::I32 => Number::Signed(read!(i32).into()),
            Scalar::U64 => Number::Unsigned(read!(u64)),
            Scalar::I64 => Number::Signed(read!(i64)),
            Scalar::F32 => Number::Single(read!(f32)),
            Scalar::F64 => Number::Double(read!(f64)),
        })
    }

    /// As a double, for differences: whole numbers beyond 2^53 lose their last digits.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Unsigned(number) => number as f64,
            Number::Signed(number) => number as f64,
            Number::Single(number) => number.into(),
            Number::Double(number) => number,
        }
    }

    /// Whether both have the same bits.
    fn is_same(self, other: Number) -> bool {
        match (self, other) {
            (Number::Single(a), Number::Single(b)) => a.to_bits() == b.to_bits(),
            (Number::Double(a), Number::Double(b)) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }
}

/// As many digits as tell it from all others.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Unsigned(number) => number.fmt(f),
            Number::Signed(number) => number.fmt(f),
            Number::Single(number) if number.is_nan() => write!(f, "NaN {:#x}", number.to_bits()),
            Number::Single(number) => write!(f, "{number:?}"),
            Number::Double(number) if number.is_nan() => write!(f, "NaN {:#x}", number.to_bits()),
            Number::Double(number) => write!(f, "{number:?}"),
        }
    }
}

/// Where two builds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Whether a cycle failed, and where.
    Failure,
    /// Whether there was a message at this port.
    Message {
        /// Index of the node in the plan.
        node: usize,
        /// Index of the port in its kind.
        port: usize,
    },
    /// A number of a message.
    Field {
        /// Index of the node in the plan.
        node: usize,
        /// Index of the port in its kind.
        port: usize,
        /// Index of the field in the message type.
        field: usize,
        /// Which of the field's numbers.
        at: usize,
    },
    /// A number of a signal.
    Signal {
        /// Index of the node in the plan.
        node: usize,
        /// Index of the signal in its kind.
        signal: usize,
        /// Which of its numbers.
        at: usize,
    },
}

/// A number that differs, a message that only one of both has, or a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Place of the node in its thread; after all nodes for a failure at the feedback.
    pub place: usize,
    /// Where.
    pub site: Site,
    /// As recorded. `None` at [`Site::Message`] if there was none; always at [`Site::Failure`].
    pub old: Option<Number>,
    /// As it is now.
    pub new: Option<Number>,
}

/// The difference between how two cycles ended, if there is one.
pub(super) fn failures(now: Option<Failed>, past: Option<Failed>) -> Vec<Difference> {
    if now == past {
        return Vec::new();
    }
    // Where both failed, but differently, the difference began at the earlier place.
    let places = [past, now].into_iter().flatten();
    let place = places.map(|failed| failed.place.unwrap_or(usize::MAX)).min();
    let place = place.expect("only one of the two failed");
    vec![Difference { place, site: Site::Failure, old: None, new: None }]
}

/// Adds the differences between two messages at a port. If only one side has a message, that side's
/// number is 1 and the other's is missing.
pub(super) fn messages(
    plan: &Plan,
    place: usize,
    end: End,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    to: &mut Vec<Difference>,
) {
    let End { node, port } = end;
    let (old, new) = match (old, new) {
        (None, None) => return,
        (Some(old), Some(new)) => (old, new),
        (old, new) => {
            let there = |message: Option<&[u8]>| message.map(|_| Number::Unsigned(1));
            let site = Site::Message { node, port };
            to.push(Difference { place, site, old: there(old), new: there(new) });
            return;
        }
    };
    let pairs = numbers(plan.port(end).message, old).zip(numbers(plan.port(end).message, new));
    for ((field, at, old), (_, _, new)) in pairs.filter(|(old, new)| !old.2.is_same(new.2)) {
        let site = Site::Field { node, port, field, at };
        to.push(Difference { place, site, old: Some(old), new: Some(new) });
    }
}

/// All numbers of a message: index of the field, which of its numbers, the number.
pub fn numbers(
    message: &MessageType,
    bytes: &[u8],
) -> impl Iterator<Item = (usize, usize, Number)> {
    let fields = message.fields.iter().enumerate();
    fields.flat_map(move |(index, field)| {
        let number = move |at| Some((index, at as usize, Number::read(field, at, bytes)?));
        (0..field.count).map_while(number)
    })
}
