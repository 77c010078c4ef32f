//! A session with a guest: named things on both sides, its nodes and its jobs, with deadlines.
//!
//! While it waits it looks after the guest, as its [`Keeper`] requires. It belongs to one thread.

use std::fmt;
use std::time::{Duration, Instant};

use sinew_carve_out::{
    AgentLetter, Ask, GuestState, MadeBy, Name, Order, SharedEntry, SharedHolds, SharedRefusal,
    SharedWish,
};

use sinew_core::sys::Region;
use sinew_link::{PieceMemory, SharedWords};

use crate::keeper::{GuestProgress, Keeper};

/// Longest wait without a look at the guest, as the guest must see our heartbeat.
const LOOK: Duration = Duration::from_millis(10);

/// Why something did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// One of the sides refused it. If a job failed, also the job's own text.
    Refused(SharedRefusal, String),
    /// The guest has ended.
    Over(GuestProgress),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Refused(why, words) if words.is_empty() => why.fmt(f),
            SessionError::Refused(why, words) => write!(f, "{why}: {words}"),
            SessionError::Over(progress) => write!(f, "the guest has ended: {progress}"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<SharedRefusal> for SessionError {
    fn from(why: SharedRefusal) -> SessionError {
        SessionError::Refused(why, String::new())
    }
}

/// The words of a region.
pub type RegionWords = SharedWords<PieceMemory<Region>>;

type Outcome<T> = Result<T, SessionError>;

/// A session with a guest.
#[derive(Debug)]
pub struct GuestSession {
    /// Starts and watches the guest.
    pub keeper: Keeper,
    /// Lines that it has printed and that were not fetched yet.
    printed: Vec<String>,
}

/// Where the guest sees the carve-out, and how many bells it has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestView {
    /// Virtual address, as its programs see it.
    pub virtual_address: u32,
    /// Address on its bus, as devices see it.
    pub physical_address: u64,
    /// Size in bytes.
    pub size: u32,
    /// Count of Linux's bells that it has heard, modulo 2^32.
    pub bells: u32,
}

/// A node, as the guest reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNodeState {
    /// Its name.
    pub name: String,
    /// Whether it runs, is to stop, or has done its last act.
    pub state: &'static str,
    /// Cycles, modulo 2^32.
    pub cycles: u32,
}

impl GuestSession {
    /// A session with a guest that has been started.
    pub fn new(keeper: Keeper) -> GuestSession {
        GuestSession { keeper, printed: Vec::new() }
    }

    /// What the guest has printed since the last call.
    pub fn take_printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    /// Looks after the guest for this time, or until something happens.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn turn(&mut self, at_most: Duration) -> Outcome<GuestProgress> {
        self.keeper.wait(at_most.min(LOOK));
        let printed = &mut self.printed;
        match self.keeper.look(&mut |line| printed.push(line.to_owned())) {
            end @ (GuestProgress::Faulted(_)
            | GuestProgress::Ended(_)
            | GuestProgress::Nonsense(_)) => Err(SessionError::Over(end)),
            progress => Ok(progress),
        }
    }

    /// Repeats `attempt` until it succeeds or the deadline is over, and looks after the guest
    /// meanwhile.
    fn until<T>(
        &mut self,
        within: Duration,
        mut attempt: impl FnMut(&mut GuestSession) -> Outcome<Option<T>>,
    ) -> Outcome<T> {
        let begun = Instant::now();
        loop {
            if let Some(done) = attempt(self)? {
                return Ok(done);
            }
            let left = within.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(SharedRefusal::Late.into());
            }
            self.turn(left)?;
        }
    }

    /// Gives an order and waits until the guest has this progress. A guest that has stopped may
    /// have ended by then.
    ///
    /// # Errors
    /// The deadline is over, or the guest has ended before.
    pub fn order(&mut self, order: Order, until: GuestProgress, within: Duration) -> Outcome<()> {
        self.keeper.order(order);
        self.until(within, |it| {
            let has_stopped = |it: &GuestSession| it.keeper.state() == Some(GuestState::Stopped);
            match it.turn(LOOK) {
                Err(SessionError::Over(GuestProgress::Ended(_)))
                    if until == GuestProgress::Stopped && has_stopped(it) =>
                {
                    Ok(Some(()))
                }
                found => Ok((found? == until).then_some(())),
            }
        })
    }

    /// Sends a request to the guest, and waits for its answer.
    ///
    /// # Errors
    /// The guest refuses, does not answer in time, or has ended.
    pub fn ask(&mut self, letter: &AgentLetter, within: Duration) -> Outcome<AgentLetter> {
        let id = self.keeper.desk.ask(letter)?;
        self.keeper.ring(1);
        let answer = self.until(within, |it| match it.keeper.desk.answer(id) {
            None if it.keeper.desk.is_broken() => Err(SharedRefusal::Corrupt.into()),
            answer => Ok(answer),
        });
        self.keeper.desk.forget(id);
        let answer = answer?;
        match answer.outcome() {
            Ok(()) => Ok(answer),
            Err(why) => Err(SessionError::Refused(why, answer.text().to_owned())),
        }
    }

    /// Finds the thing with this name, or has it made: by Linux's allocator, or by the guest's.
    ///
    /// # Errors
    /// The name belongs to something else, the wish cannot be met, or as for [`GuestSession::ask`].
    pub fn get(
        &mut self,
        name: Name,
        wish: &SharedWish,
        maker: MadeBy,
        within: Duration,
    ) -> Outcome<SharedEntry> {
        if self.keeper.desk.registry.find(name).is_some() || maker == MadeBy::Linux {
            return Ok(self.keeper.desk.registry.get(name, wish, false)?);
        }
        let SharedWish { class, size, hash, detail: [first, second] } = *wish;
        let numbers = [class as u32, size, hash, first, second];
        self.ask(&AgentLetter::ask(Ask::Get, name).numbered(numbers), within)?;
        // The guest wrote its entry before it answered.
        Ok(self.keeper.desk.registry.find(name).ok_or(SharedRefusal::Unknown)?)
    }

    /// Attaches it on one side.
    ///
    /// # Errors
    /// There is no such thing, or as for [`GuestSession::ask`].
    pub fn attach(&mut self, name: Name, side: MadeBy, within: Duration) -> Outcome<()> {
        match side {
            MadeBy::Linux => self.keeper.desk.registry.attach(name).map(drop)?,
            MadeBy::Guest => drop(self.ask(&AgentLetter::ask(Ask::Attach, name), within)?),
        }
        Ok(())
    }

    /// Detaches it on one side.
    ///
    /// # Errors
    /// That side does not hold it, or as for [`GuestSession::ask`].
    pub fn detach(&mut self, name: Name, side: MadeBy, within: Duration) -> Outcome<()> {
        match side {
            MadeBy::Linux => self.keeper.desk.registry.detach(name)?,
            MadeBy::Guest => drop(self.ask(&AgentLetter::ask(Ask::Detach, name), within)?),
        }
        Ok(())
    }

    /// Removes it, on the side that made it.
    ///
    /// # Errors
    /// There is no such thing, a side holds it, or as for [`GuestSession::ask`].
    pub fn remove(&mut self, name: Name, within: Duration) -> Outcome<()> {
        let found = self.keeper.desk.registry.find(name).ok_or(SharedRefusal::Unknown)?;
        match found.maker {
            MadeBy::Linux => self.keeper.desk.registry.remove(name)?,
            MadeBy::Guest => drop(self.ask(&AgentLetter::ask(Ask::Remove, name), within)?),
        }
        Ok(())
    }

    /// Everything that has a name, and who holds it.
    pub fn list(&self) -> Vec<SharedHolds> {
        self.keeper.desk.registry.list().collect()
    }

    /// Adds a token to a semaphore that Linux holds.
    ///
    /// # Errors
    /// Linux does not hold it, or its words are garbage.
    pub fn post(&mut self, name: Name) -> Outcome<()> {
        let semaphore = self.keeper.desk.registry.semaphore(name)?;
        semaphore.post().map_err(|_| SharedRefusal::Corrupt)?;
        self.keeper.ring(1);
        Ok(())
    }

    /// Takes a token of a semaphore that Linux holds.
    ///
    /// # Errors
    /// There was none in time, Linux does not hold it, or its words are garbage.
    pub fn take(&mut self, name: Name, within: Duration) -> Outcome<()> {
        let semaphore = self.keeper.desk.registry.semaphore(name)?;
        semaphore.begin_wait();
        // The guest checks whether it has a token to spare.
        self.keeper.ring(1);
        let taken = self.until(within, |_| {
            let taken = semaphore.try_take().map_err(|_| SharedRefusal::Corrupt)?;
            Ok(taken.then_some(()))
        });
        semaphore.end_wait();
        taken
    }

    /// Sends a message through a queue that Linux holds.
    ///
    /// # Errors
    /// There was no room in time, the message has another size, Linux does not hold the queue, or
    /// its words are garbage.
    pub fn send(&mut self, name: Name, message: &[u8], within: Duration) -> Outcome<()> {
        self.until(within, |it| Ok(it.keeper.desk.registry.send(name, message)?.then_some(())))?;
        self.keeper.ring(1);
        Ok(())
    }

    /// Receives a message through a queue that Linux holds.
    ///
    /// # Errors
    /// No message came in time, or as for [`GuestSession::send`].
    pub fn receive(&mut self, name: Name, message: &mut [u8], within: Duration) -> Outcome<()> {
        self.until(within, |it| Ok(it.keeper.desk.registry.receive(name, message)?.then_some(())))
    }

    /// Has the guest do a job, and waits for its answer. If the answer comes too late, the job
    /// still goes on, and the guest is busy until the job ends.
    ///
    /// # Errors
    /// The image has no such job, another job is running, the job failed, or as for
    /// [`GuestSession::ask`].
    pub fn call(
        &mut self,
        job: Name,
        numbers: [u32; 5],
        data: &[u8],
        within: Duration,
    ) -> Outcome<AgentLetter> {
        self.ask(&AgentLetter::ask(Ask::Call, job).numbered(numbers).with(data), within)
    }

    /// The jobs of the image, and what each does.
    ///
    /// # Errors
    /// As for [`GuestSession::ask`].
    pub fn jobs(&mut self, within: Duration) -> Outcome<Vec<(String, String)>> {
        let all = self.all(Ask::Jobs, SharedRefusal::NoJob, within)?;
        Ok(all.iter().map(|it| (it.name.to_string(), it.text().to_owned())).collect())
    }

    /// The nodes of the guest.
    ///
    /// # Errors
    /// As for [`GuestSession::ask`].
    pub fn nodes(&mut self, within: Duration) -> Outcome<Vec<GuestNodeState>> {
        let node = |it: &AgentLetter| {
            let state = ["runs", "is to stop", "has stopped"];
            let state = state.get(it.numbers[0] as usize).copied().unwrap_or("unknown");
            GuestNodeState { name: it.name.to_string(), state, cycles: it.numbers[1] }
        };
        Ok(self.all(Ask::Nodes, SharedRefusal::NoNode, within)?.iter().map(node).collect())
    }

    /// Stops one node after its last act. The other nodes go on.
    ///
    /// # Errors
    /// There is no such node, or as for [`GuestSession::ask`].
    pub fn stop_node(&mut self, name: Name, within: Duration) -> Outcome<()> {
        self.ask(&AgentLetter::ask(Ask::StopNode, name), within).map(drop)
    }

    /// Where the guest sees the carve-out.
    ///
    /// # Errors
    /// As for [`GuestSession::ask`].
    pub fn view(&mut self, within: Duration) -> Outcome<GuestView> {
        let nobody = Name::new("").ok_or(SharedRefusal::BadName)?;
        let [virtual_address, low, high, size, bells] =
            self.ask(&AgentLetter::ask(Ask::Where, nobody), within)?.numbers;
        let physical_address = u64::from(low) | u64::from(high) << 32;
        Ok(GuestView { virtual_address, physical_address, size, bells })
    }

    /// Asks for one entry after the other, until there is none. All share one deadline, so that a
    /// guest which always has one more cannot hold us longer.
    fn all(
        &mut self,
        what: Ask,
        end: SharedRefusal,
        within: Duration,
    ) -> Outcome<Vec<AgentLetter>> {
        /// More than the jobs of any image, and than the nodes of any guest.
        const MOST: u32 = 256;
        let nobody = Name::new("").ok_or(SharedRefusal::BadName)?;
        let (mut found, begun) = (Vec::new(), Instant::now());
        for at in 0..MOST {
            let left = within.saturating_sub(begun.elapsed());
            match self.ask(&AgentLetter::ask(what, nobody).numbered([at, 0, 0, 0, 0]), left) {
                Ok(answer) => found.push(answer),
                Err(SessionError::Refused(why, _)) if why == end => break,
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}
