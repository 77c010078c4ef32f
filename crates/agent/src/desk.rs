//! Linux's side of named memory and letters: answers the guest's requests, sends the requests of
//! Linux and matches their answers. Nothing here waits.

use sinew_carve_out::{
    AgentLetter, CarveOut, Header, Letters, LettersBroken, MadeBy, Registry, SharedRefusal,
};
use sinew_core::sys::Region;
use sinew_link::RegionError;

/// Most requests of the guest that are answered in one look. The others wait for the next look.
const REQUESTS_MAX: usize = 8;
/// Most answers of the guest that are read in one look.
const ANSWERS_MAX: usize = 32;

/// Linux's side of the named things, in one life of a guest.
pub struct Desk {
    /// Which side made each named thing, and which sides hold it.
    pub registry: Registry<Region>,
    letters: Letters<Region>,
    /// Whether the guest has overwritten the letters.
    is_broken: bool,
    last_id: u32,
    /// Requests that were sent and not forgotten, with their answers.
    open: Vec<(u32, Option<AgentLetter>)>,
    tally: DeskTally,
}

/// Counters of a desk, since the life began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeskTally {
    /// Requests of the guest that were answered.
    pub answered: u64,
    /// Those of them that were refused.
    pub refused: u64,
    /// Answers to no open request: they came too late, or are invented.
    pub stale: u64,
    /// Tokens of semaphores that were handed to the guest.
    pub tokens: u64,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("tally", &self.tally).finish_non_exhaustive()
    }
}

impl Desk {
    /// Must be called after the life has begun and before the guest starts.
    pub(crate) fn open(carve_out: &CarveOut<Region>, header: &Header) -> Result<Desk, RegionError> {
        let letters = Letters::open(carve_out, MadeBy::Linux)?;
        let registry = Registry::new(carve_out.clone(), header, MadeBy::Linux);
        let (open, tally) = (Vec::new(), DeskTally::default());
        Ok(Desk { registry, letters, is_broken: false, last_id: 0, open, tally })
    }

    /// Answers some requests of the guest, and matches its answers. Returns whether the guest must
    /// be rung.
    pub(crate) fn serve(&mut self) -> bool {
        let before = self.tally;
        if !self.is_broken {
            self.is_broken = self.answer_some().and_then(|()| self.sort()).is_err();
        }
        self.tally.tokens += u64::from(self.registry.serve_semaphores());
        (self.tally.answered, self.tally.tokens) != (before.answered, before.tokens)
    }

    fn answer_some(&mut self) -> Result<(), LettersBroken> {
        for _ in 0..REQUESTS_MAX {
            let Some(letter) = self.letters.asked()? else { break };
            let answer = self.registry.answer(&letter);
            let answer = answer.unwrap_or_else(|| letter.refused(SharedRefusal::BadRequest));
            self.tally.answered += 1;
            self.tally.refused += u64::from(answer.outcome().is_err());
            // If there is no room, the guest does not read its answers, and its deadline reports
            // that.
            self.letters.answer(&answer)?;
        }
        Ok(())
    }

    fn sort(&mut self) -> Result<(), LettersBroken> {
        for _ in 0..ANSWERS_MAX {
            let Some(answer) = self.letters.answers()? else { break };
            match self.open.iter_mut().find(|(id, it)| *id == answer.id && it.is_none()) {
                Some((_, place)) => *place = Some(answer),
                None => self.tally.stale += 1,
            }
        }
        Ok(())
    }

    /// Sends a request. Returns its number, for [`Desk::answer`]. The caller must ring the guest.
    ///
    /// # Errors
    /// The guest does not read its requests, or has overwritten the letters.
    pub(crate) fn ask(&mut self, letter: &AgentLetter) -> Result<u32, SharedRefusal> {
        if self.is_broken {
            return Err(SharedRefusal::Corrupt);
        }
        self.last_id = self.last_id.wrapping_add(1);
        match self.letters.ask(&letter.as_request(self.last_id)) {
            Ok(true) => self.open.push((self.last_id, None)),
            Ok(false) => return Err(SharedRefusal::Busy),
            Err(LettersBroken) => {
                self.is_broken = true;
                return Err(SharedRefusal::Corrupt);
            }
        }
        Ok(self.last_id)
    }

    /// The answer to a request, if it has come.
    pub(crate) fn answer(&self, id: u32) -> Option<AgentLetter> {
        self.open.iter().find(|(open, _)| *open == id).and_then(|(_, answer)| *answer)
    }

    /// Drops a request whose answer is no longer awaited.
    pub(crate) fn forget(&mut self, id: u32) {
        self.open.retain(|(open, _)| *open != id);
    }

    /// Whether the guest has overwritten the letters. Then nothing is asked or answered any more.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The counters.
    pub fn tally(&self) -> DeskTally {
        self.tally
    }
}
