//! A cell of the table: one contender, one size, one measure. Its links are made anew every round,
//! so that no rival spins while another one is measured.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_lab::harness::{Access, Cpus, Found, Gone, Side, What, answer, stop, time};

use crate::poll::Poll;

/// What both sides of a link must agree on. It is handed to a far process as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) what: What,
    pub(crate) access: Access,
    /// Bytes of a message.
    pub(crate) bytes: usize,
    /// Messages that a link can hold.
    pub(crate) capacity: usize,
    /// How both sides wait.
    pub(crate) poll: Poll,
}

impl Form {
    /// Count of words in a message.
    pub(crate) fn words(&self) -> usize {
        self.bytes / size_of::<u64>()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Form { what, access, bytes, capacity, poll } = self;
        let [what, access, poll] = [what.word(), access.word(), poll.word()];
        write!(f, "{what} {access} {bytes} {capacity} {poll}")
    }
}

impl FromStr for Form {
    type Err = Gone;

    fn from_str(text: &str) -> Result<Form, Gone> {
        let bad = || Gone(format!("'{text}': expected measure, access, bytes, capacity and poll"));
        let [what, access, bytes, capacity, poll] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err(bad());
        };
        let what = what.parse().map_err(|_| bad())?;
        let access = access.parse().map_err(|_| bad())?;
        let poll = poll.parse().map_err(|_| bad())?;
        let number = |word: &str| word.parse().map_err(|_| bad());
        Ok(Form { what, access, bytes: number(bytes)?, capacity: number(capacity)?, poll })
    }
}

/// One contender, one size, one measure, for a short time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) form: Form,
    pub(crate) cpus: Cpus,
    pub(crate) clock: Clock,
    /// How long to measure.
    pub(crate) budget: Duration,
}

/// The role of a side.
pub(crate) trait Role {
    /// The result of the role.
    type Found;

    /// Plays the role to its end.
    fn play(self, side: &mut impl Side) -> Result<Self::Found, Gone>;
}

/// The role of the far side: to answer until it is told to stop.
pub(crate) struct Answer;

impl Role for Answer {
    type Found = ();

    fn play(self, side: &mut impl Side) -> Result<(), Gone> {
        answer(side)
    }
}

/// The role of the near side: to measure, and to tell the far side to stop.
impl Role for &Cell {
    type Found = Found;

    fn play(self, side: &mut impl Side) -> Result<Found, Gone> {
        let Cell { form, clock, budget, .. } = *self;
        let found = time(side, form.what, form.capacity as u32, clock, budget)?;
        stop(side)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_handed_over_as_text() {
        for poll in [Poll::Pause, Poll::Gap, Poll::Own] {
            let (what, access) = (What::PerMessage, Access::InPlace);
            let form = Form { what, access, bytes: 64, capacity: 8, poll };
            assert_eq!(form.to_string().parse(), Ok(form));
        }
        let Gone(why) = "round_trip in_place 64".parse::<Form>().expect_err("too short");
        assert_eq!(
            why,
            "'round_trip in_place 64': expected measure, access, bytes, capacity and poll"
        );
        for bad in ["moved 64 8 gap", "copied 64 -1 gap", "copied 64 8 often"] {
            assert!(format!("round_trip {bad}").parse::<Form>().is_err(), "{bad}");
        }
    }
}
