//! A kind of node in a guest: its record, how a node is made, and its two acts.

use alloc::boxed::Box;
use core::fmt;

use sinew_carve_out::NodeRow;
use sinew_carve_out::image::{ImageKind as Record, KindRecord};

use crate::{Io, Serving};

/// A node: called once a period.
pub trait GuestNode {
    /// The work of one cycle.
    ///
    /// # Errors
    /// A reason to stop: all nodes of the guest then do their last act, and the guest ends.
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault>;

    /// If the kind serves, takes the node's thread for itself until the guest stops. Then there are
    /// no cycles. Most kinds do not serve, and have cycles.
    fn serve(&mut self, serving: &mut Serving<'_>) -> Option<Result<(), Fault>> {
        let _ = serving;
        None
    }

    /// The last act: writes the safe values. Not called after a fault of the processor.
    fn stop(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }
}

/// One cycle of a node.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// Counts from 0.
    pub number: u64,
    /// Nominal spacing.
    pub period_us: u32,
    /// Whole periods lost immediately before this cycle.
    pub skipped: u32,
    /// Time since Linux last showed that it is alive.
    pub linux_silent_ms: u32,
}

impl Cycle {
    /// Nominal spacing, s.
    pub fn period_s(&self) -> f64 {
        f64::from(self.period_us) * 1e-6
    }
}

/// Most bytes of the text of a fault. A longer text is cut.
const TEXT_MAX: usize = 128;

/// A reason to stop, made without allocating.
#[derive(Clone)]
pub struct Fault {
    text: [u8; TEXT_MAX],
    len: usize,
}

impl Fault {
    /// A fault with this text.
    pub fn new(text: fmt::Arguments<'_>) -> Fault {
        let mut fault = Fault { text: [0; TEXT_MAX], len: 0 };
        // Cutting a text that is too long is the only failure, and `write_str` does not report it.
        let _ = fmt::write(&mut fault, text);
        fault
    }

    /// What went wrong, where, and what to change.
    pub fn text(&self) -> &str {
        let text = &self.text[..self.len];
        match core::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl fmt::Write for Fault {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = &text.as_bytes()[..text.len().min(TEXT_MAX - self.len)];
        self.text[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A [`Fault`], written like `format!`.
#[macro_export]
macro_rules! fault {
    ($($text:tt)*) => { $crate::Fault::new(format_args!($($text)*)) };
}

/// The inputs of a new node.
pub struct Parameters<'a> {
    row: &'a NodeRow,
    record: Record<'static>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(row: &'a NodeRow, record: Record<'static>) -> Parameters<'a> {
        Parameters { row, record }
    }

    /// The node's name in the graph.
    pub fn node(&self) -> &str {
        self.row.name.as_str()
    }

    /// Nominal spacing of its cycles.
    pub fn period_us(&self) -> u32 {
        self.row.period_us
    }

    /// The values of a parameter, as many as the kind's record says.
    ///
    /// # Panics
    /// The kind has no such parameter: a bug of the kind.
    pub fn numbers(&self, name: &str) -> &[f64] {
        let mut at = 0;
        for parameter in self.record.parameters() {
            let count = parameter.count() as usize;
            if parameter.name() == name {
                return &self.row.values[at..at + count];
            }
            at += count;
        }
        panic!("kind '{}' has no parameter '{name}'", self.record.name())
    }

    /// All values, in the order of the kind's record.
    pub fn values(&self) -> &[f64] {
        &self.row.values[..self.row.value_count as usize]
    }

    /// The value of a parameter; for a list its first value.
    ///
    /// # Panics
    /// As for [`Parameters::numbers`].
    pub fn number(&self, name: &str) -> f64 {
        self.numbers(name)[0]
    }

    /// The values of a list of `N`.
    ///
    /// # Panics
    /// As for [`Parameters::numbers`]; or the list has another length: a bug of the kind.
    pub fn list<const N: usize>(&self, name: &str) -> [f64; N] {
        let values = self.numbers(name);
        assert!(values.len() == N, "parameter '{name}' has {} values, not {N}", values.len());
        core::array::from_fn(|i| values[i])
    }
}

/// Makes a node.
pub type Make = fn(&Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault>;

/// A kind of a guest's table.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The record, which Linux reads in the image.
    pub record: KindRecord,
    /// Makes a node of the kind.
    pub make: Make,
}

/// Makes nodes of a kind in the image's section of records; [`kinds!`](crate::kinds!) writes it.
#[derive(Clone, Copy)]
pub struct Maker {
    /// The record.
    pub record: &'static KindRecord,
    /// Makes a node of the kind.
    pub make: Make,
}

/// Declares the kinds of an image, in one table. A program uses it once.
#[macro_export]
macro_rules! kinds {
    ($($kind:expr),* $(,)?) => {
        const _: () = {
            const COUNT: usize = [$($kind.make),*].len();
            #[used]
            #[unsafe(link_section = ".sinew_kinds")]
            static RECORDS: [$crate::KindRecord; COUNT] = [$($kind.record),*];
            #[used]
            #[unsafe(link_section = ".sinew_makers")]
            static MAKERS: [$crate::Maker; COUNT] = {
                let makes = [$($kind.make),*];
                let mut makers = [$crate::Maker { record: &RECORDS[0], make: makes[0] }; COUNT];
                let mut i = 0;
                while i < COUNT {
                    makers[i] = $crate::Maker { record: &RECORDS[i], make: makes[i] };
                    i += 1;
                }
                makers
            };
        };
    };
}
