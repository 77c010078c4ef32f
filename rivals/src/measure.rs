//! A cell of the table: one contender, one size, one measure. Its links are made anew every round,
//! so that no rival spins while another one is measured.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sinew_lab::harness::{Access, Cpus, Found, Gone, Side, What, answer, stop, time};
use sinew_runtime::clock::Clock;

/// What both sides of a link must agree on; it is handed to a far process as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) access: Access,
    /// Of a message.
    pub(crate) bytes: usize,
    /// Messages that a link holds.
    pub(crate) capacity: usize,
}

impl Form {
    /// Words of a message.
    pub(crate) fn words(&self) -> usize {
        self.bytes / size_of::<u64>()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.access.word(), self.bytes, self.capacity)
    }
}

impl FromStr for Form {
    type Err = Gone;

    fn from_str(text: &str) -> Result<Form, Gone> {
        let bad = || Gone(format!("'{text}': expected access, bytes and capacity"));
        let [access, bytes, capacity] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err(bad());
        };
        let access = access.parse().map_err(|_| bad())?;
        let number = |word: &str| word.parse().map_err(|_| bad());
        Ok(Form { access, bytes: number(bytes)?, capacity: number(capacity)? })
    }
}

/// One contender, one size, one measure, for a short time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) what: What,
    pub(crate) form: Form,
    pub(crate) cpus: Cpus,
    pub(crate) clock: Clock,
    /// How long to measure.
    pub(crate) budget: Duration,
}

/// What a side is made for.
pub(crate) trait Role {
    /// What comes of it.
    type Found;

    /// Plays it to its end.
    ///
    /// # Errors
    /// The other side is gone.
    fn play(self, side: &mut impl Side) -> Result<Self::Found, Gone>;
}

/// The far side's: to answer until it is told to stop.
pub(crate) struct Answer;

impl Role for Answer {
    type Found = ();

    fn play(self, side: &mut impl Side) -> Result<(), Gone> {
        answer(side)
    }
}

/// The near side's: to measure, and to tell the far side to stop.
impl Role for &Cell {
    type Found = Found;

    fn play(self, side: &mut impl Side) -> Result<Found, Gone> {
        let Cell { what, form, clock, budget, .. } = *self;
        let found = time(side, what, form.capacity as u32, clock, budget)?;
        stop(side)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_handed_over_as_text() {
        let form = Form { access: Access::InPlace, bytes: 64, capacity: 8 };
        assert_eq!(form.to_string().parse(), Ok(form));
        let Gone(why) = "in_place 64".parse::<Form>().expect_err("too short");
        assert_eq!(why, "'in_place 64': expected access, bytes and capacity");
        assert!("moved 64 8".parse::<Form>().is_err() && "copied 64 -1".parse::<Form>().is_err());
    }
}
