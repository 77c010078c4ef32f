//! The tester: one guest from its start to its end, and the commands for the guest as a whole.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sinew_agent::{GuestProgress, GuestSession, SessionError};
use sinew_carve_out::{MadeBy, Name, Order, SharedRefusal, SharedWish};

use super::setup::Bench;

/// How long a guest has to boot.
const BOOT: Duration = Duration::from_secs(60);
/// Name of the region that test patterns go through.
const PATTERN: &str = "tester-pattern";

/// What a command answers.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) value: Value,
}

impl Said {
    pub(super) fn new(text: impl Into<String>, value: Value) -> Said {
        Said { text: text.into(), value }
    }
}

/// Why a command was not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The command's words are wrong.
    Request(String),
    /// The command was tried and failed.
    Failed(String),
}

impl From<SessionError> for Wrong {
    fn from(error: SessionError) -> Wrong {
        Wrong::Failed(error.to_string())
    }
}

impl From<SharedRefusal> for Wrong {
    fn from(why: SharedRefusal) -> Wrong {
        Wrong::Failed(why.to_string())
    }
}

pub(super) type Answer = Result<Said, Wrong>;

/// A guest under test.
pub(super) struct Tester {
    bench: Bench,
    session: Option<GuestSession>,
    /// How long each command waits.
    pub(super) within: Duration,
    is_over: bool,
}

impl Tester {
    pub(super) fn new(bench: Bench, within: Duration) -> Tester {
        Tester { bench, session: None, within, is_over: false }
    }

    /// Whether the tester was told to quit.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn is_open(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn take_printed(&mut self) -> Vec<String> {
        self.session.as_mut().map(GuestSession::take_printed).unwrap_or_default()
    }

    /// Looks after the guest, for `at_most` at most.
    pub(super) fn look(&mut self, at_most: Duration) -> Result<(), Wrong> {
        let Some(session) = &mut self.session else { return Ok(()) };
        if let Err(error) = session.turn(at_most) {
            self.session = None;
            return Err(error.into());
        }
        Ok(())
    }

    /// The guest. It is started if it does not run.
    pub(super) fn session(&mut self) -> Result<&mut GuestSession, Wrong> {
        if self.session.is_none() {
            let mut session = self.bench.start().map_err(Wrong::Failed)?;
            let ready = session.order(Order::Wait, GuestProgress::Ready, BOOT);
            let printed = session.take_printed().join("; ");
            ready.map_err(|error| Wrong::Failed(format!("{error}; it printed: {printed}")))?;
            self.session = Some(session);
        }
        Ok(self.session.as_mut().expect("it was just made"))
    }

    /// Starts the guest. Answers where both sides see the memory.
    pub(super) fn open(&mut self) -> Answer {
        let within = self.within;
        let begun = Instant::now();
        let session = self.session()?;
        let view = session.view(within)?;
        let boot_ms = begun.elapsed().as_millis() as u64;
        let linux = session.keeper.memory().words().as_ptr().addr();
        let (epoch, process) = (session.keeper.epoch(), session.keeper.process());
        let Bench { domain, memory_bytes, .. } = &self.bench;
        let text = format!(
            "guest '{domain}' is ready after {boot_ms} ms: life {epoch}, process {process}\n\
             memory: {memory_bytes} bytes\n\
             \x20 Linux sees it at {linux:#x}\n\
             \x20 the guest sees it at {:#x}, its bus at {:#x}",
            view.virtual_address, view.physical_address
        );
        let value = json!({
            "domain": domain, "boot_ms": boot_ms, "epoch": epoch, "memory_bytes": memory_bytes,
            "linux_virtual": linux, "guest_virtual": view.virtual_address,
            "guest_physical": view.physical_address,
        });
        Ok(Said::new(text, value))
    }

    /// Makes the nodes run.
    pub(super) fn run(&mut self) -> Answer {
        let within = self.within;
        self.session()?.order(Order::Run, GuestProgress::Running, within)?;
        Ok(Said::new("its nodes run", json!({ "running": true })))
    }

    /// Looks after the guest for this long.
    pub(super) fn wait(&mut self, pause: Duration) -> Answer {
        let (begun, session) = (Instant::now(), self.session()?);
        while let Some(left) = pause.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            session.turn(left)?;
        }
        Ok(Said::new(format!("waited {pause:?}"), json!({ "ms": pause.as_millis() as u64 })))
    }

    /// Sends a pattern of `size` bytes there and back, through memory of either side.
    pub(super) fn test(&mut self, size: u32) -> Answer {
        let (mut text, mut values) = (String::new(), Vec::new());
        for maker in [MadeBy::Linux, MadeBy::Guest] {
            let took = self.pattern(size, maker)?;
            let word = maker.word();
            let _ = writeln!(
                text,
                "{size} bytes in memory of {word}: inverted and back in {} us, filled and read in \
                 {} us",
                took[0], took[1]
            );
            values.push(json!({
                "memory_of": word, "bytes": size, "invert_us": took[0], "fill_us": took[1],
            }));
        }
        Ok(Said::new(text + "every byte is right", json!({ "rounds": values })))
    }

    fn pattern(&mut self, size: u32, maker: MadeBy) -> Result<[u64; 2], Wrong> {
        let within = self.within;
        let session = self.session()?;
        let name = name_of(PATTERN)?;
        session.get(name, &SharedWish::region(size, 0), maker, within)?;
        session.attach(name, MadeBy::Linux, within)?;
        let tried = there_and_back(session, name, size, within);
        session.detach(name, MadeBy::Linux, within)?;
        session.remove(name, within)?;
        tried
    }

    /// Shows the state of everything.
    pub(super) fn states(&mut self) -> Answer {
        let within = self.within;
        let rows = self.bench.rows.clone();
        let session = self.session()?;
        let view = session.view(within)?;
        let state = session.keeper.state().map_or("nonsense".into(), |it| format!("{it:?}"));
        let (beats, desk) = (session.keeper.beats_of_guest(), session.keeper.desk.tally());
        let mut text = format!(
            "the guest is {state}, {beats} beats, {} bells heard\n\
             requests of the guest: {} answered, {} of them refused; {} late answers",
            view.bells, desk.answered, desk.refused, desk.stale
        );
        let mut links = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let side = session.keeper.side(at).map_or("nonsense".into(), |it| format!("{it:?}"));
            let _ = write!(text, "\nlink {}: {side}", row.name);
            links.push(json!({ "link": row.name.as_str(), "guest": side }));
        }
        let value = json!({
            "state": state, "beats": beats, "bells_heard": view.bells, "links": links,
            "answered": desk.answered, "refused": desk.refused, "late": desk.stale,
        });
        Ok(Said::new(text, value))
    }

    /// Rings the doorbell this many times, and says how often the guest has heard it.
    pub(super) fn doorbell(&mut self, times: u32) -> Answer {
        let within = self.within;
        let session = self.session()?;
        let before = session.view(within)?.bells;
        session.keeper.ring(times);
        // Two requests: each rings once itself.
        let heard = session.view(within)?.bells.wrapping_sub(before);
        let text =
            format!("rang {times} times; it heard {heard}: rings in quick succession count once");
        Ok(Said::new(text, json!({ "rung": times, "heard": heard })))
    }

    /// Makes the guest stop in order.
    pub(super) fn shutdown(&mut self) -> Answer {
        let within = self.within;
        let Some(session) = &mut self.session else {
            return Ok(Said::new("the guest does not run", json!({ "stopped": false })));
        };
        let stopped = session.order(Order::Stop, GuestProgress::Stopped, within);
        self.session = None;
        let said = || Said::new("it has stopped", json!({ "stopped": true }));
        stopped.map(|()| said()).map_err(Wrong::from)
    }

    /// Ends the guest and the tester.
    pub(super) fn quit(&mut self) {
        self.session = None;
        self.is_over = true;
    }
}

/// Writes a pattern that the guest inverts, then reads one that the guest has written. Returns the
/// time of each in us.
fn there_and_back(
    session: &mut GuestSession,
    name: Name,
    size: u32,
    within: Duration,
) -> Result<[u64; 2], Wrong> {
    let wrong = |at: usize| Wrong::Failed(format!("byte {at} of {size} came back wrong"));
    let words = session.keeper.desk.registry.region(name)?;
    let sent: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
    let mut back = vec![0; size as usize];
    let begun = Instant::now();
    words.write(0, &sent);
    session.call(name_of("invert")?, [0; 5], PATTERN.as_bytes(), within)?;
    words.read(0, &mut back);
    let inverted_us = begun.elapsed().as_micros() as u64;
    if let Some(at) = (0..back.len()).find(|&at| back[at] != !sent[at]) {
        return Err(wrong(at));
    }
    let begun = Instant::now();
    session.call(name_of("fill")?, [size, 0, 0, 0, 0], PATTERN.as_bytes(), within)?;
    words.read(0, &mut back);
    let filled_us = begun.elapsed().as_micros() as u64;
    let expected = |at: usize| {
        let word = size.wrapping_add((at as u32 / 4).wrapping_mul(0x9e37_79b9));
        word.to_le_bytes()[at % 4]
    };
    match (0..back.len()).find(|&at| back[at] != expected(at)) {
        Some(at) => Err(wrong(at)),
        None => Ok([inverted_us, filled_us]),
    }
}

/// A name in the form that both sides use.
pub(super) fn name_of(text: &str) -> Result<Name, Wrong> {
    let name = Name::new(text).filter(|_| (1..=31).contains(&text.len()));
    name.ok_or_else(|| {
        Wrong::Request(format!("'{text}' is not a name; {}", SharedRefusal::BadName.text()))
    })
}
