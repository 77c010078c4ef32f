//! Linux's side of named memory and letters: what the guest asks for is answered, what Linux asks
//! is sent and the answers sorted. Nothing here waits.

use sinew_carve_out::{
    AgentLetter, CarveOut, Header, Letters, LettersBroken, MadeBy, Registry, SharedRefusal,
};
use sinew_core::sys::Region;
use sinew_link::RegionError;

/// Requests of the guest that are answered at one look; the others wait for the next.
const REQUESTS_MAX: usize = 8;
/// Answers of the guest that are read at one look.
const ANSWERS_MAX: usize = 32;

/// Linux's side of what has a name, in one life of a guest.
pub struct Desk {
    /// Who made what, and who holds it.
    pub registry: Registry<Region>,
    letters: Letters<Region>,
    /// The guest has written over the letters.
    is_broken: bool,
    last_id: u32,
    /// Requests on their way, and their answers.
    open: Vec<(u32, Option<AgentLetter>)>,
    tally: DeskTally,
}

/// What a desk has seen, since the life began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeskTally {
    /// Requests of the guest that were answered.
    pub answered: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Answers that nobody waited for: too late, or made up.
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
    /// To be called when the life has begun, and before the guest starts.
    pub(crate) fn open(carve_out: &CarveOut<Region>, header: &Header) -> Result<Desk, RegionError> {
        let letters = Letters::open(carve_out, MadeBy::Linux)?;
        let registry = Registry::new(carve_out.clone(), header, MadeBy::Linux);
        let (open, tally) = (Vec::new(), DeskTally::default());
        Ok(Desk { registry, letters, is_broken: false, last_id: 0, open, tally })
    }

    /// Answers some of what the guest has asked for, and sorts its answers; whether it is to be
    /// rung.
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
            // Without room the guest's deadline tells: it does not read what it asks for.
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

    /// Sends a request; its number, for [`Desk::answer`]. The guest has to be rung.
    ///
    /// # Errors
    /// The guest does not read what it is asked, or has written over the letters.
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

    /// Nobody waits for this answer any more.
    pub(crate) fn forget(&mut self, id: u32) {
        self.open.retain(|(open, _)| *open != id);
    }

    /// Whether the guest has written over the letters: then nothing is asked or answered any more.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// What it has seen.
    pub fn tally(&self) -> DeskTally {
        self.tally
    }
}
