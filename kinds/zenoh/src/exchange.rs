//! Calls over a session. What others may ask is declared, and a thread sends the questions and
//! answers of this host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sinew_hosts::MessageHeader;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::{ConsolidationMode, Query, QueryTarget};
use zenoh::sample::Locality;
use zenoh::{Session, Wait};

use crate::call::{self, AnswerTaker, CallFailure, QUESTION_MAX, Question, Reply, Waits, question};
use crate::calls::{CallCounts, IncomingCall};
use crate::configuration::{CALL_MAX, answered_key, asked_key, heard};
use crate::not_taken::NotTaken;
use crate::say::Say;
use crate::seen::HostState;
use crate::setting::Way;
use crate::shared::Shared;

/// Added to the time that a caller waits: an answer that the other side sends at the end of that
/// time is still on its way.
const GRACE: Duration = Duration::from_millis(500);

/// The calls of a host, for those who make and answer them.
#[derive(Clone)]
pub struct Exchange(Arc<Shared>);

impl Exchange {
    pub(crate) fn of(shared: &Arc<Shared>) -> Exchange {
        Exchange(Arc::clone(shared))
    }

    /// Asks the host behind call `at` of the setting to answer a packet; never waits for the
    /// network. If there is no reply, `answer` gets the reason: at once if that host cannot be
    /// asked, else as soon as it is known, and some time after `wait` at the latest.
    ///
    /// # Panics
    /// If the packet has more than 1 MiB.
    pub fn ask(&self, at: usize, wait: Duration, packet: Vec<u8>, answer: AnswerTaker) {
        assert!(packet.len() <= CALL_MAX, "a packet of {} bytes", packet.len());
        let Exchange(shared) = self;
        let (peer, version) = (shared.calls.called_peer(at), shared.setting.version);
        let state = shared.peer(peer).state(version, shared.now_ns());
        match state {
            HostState::Heard | HostState::Two => {
                shared.calls.ask(at, (wait, shared.echoes()), packet, answer)
            }
            HostState::Unheard => answer(Err(CallFailure::Unheard)),
            HostState::Silent => answer(Err(CallFailure::Silent)),
            HostState::OtherVersion(_) => answer(Err(CallFailure::OtherVersion)),
        }
    }

    /// From now on `take` gets what others ask; it must not wait. Only the first `take` counts:
    /// returns whether this is the first.
    pub fn take(&self, take: impl Fn(IncomingCall) + Send + Sync + 'static) -> bool {
        self.0.calls.take.set(Box::new(take)).is_ok()
    }

    /// What became of the calls with each other host, in the setting's order.
    pub fn counted(&self) -> Vec<CallCounts> {
        let Exchange(shared) = self;
        (0..shared.setting.peers.len()).map(|peer| *shared.calls.counts(peer)).collect()
    }
}

/// Declares what others may ask over a way, and starts the thread that sends what waits there.
/// `None`: no calls cross.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    at: usize,
    session: &Session,
) -> Result<Option<thread::JoinHandle<()>>, String> {
    if !shared.calls.are_some() {
        return Ok(None);
    }
    declare(shared, shared.calls.ways[at].0, session).map_err(|error| format!("zenoh: {error}"))?;
    let line = shared.calls.ways[at].1.begin_line();
    let (shared, session) = (Arc::clone(shared), session.clone());
    let thread = thread::Builder::new().name("mirror-calls".into());
    let thread = thread.spawn(move || say(&shared, (at, line), &session));
    thread.map(Some).map_err(|error| format!("cannot start a thread: {error}"))
}

/// As with messages, these callbacks only put bytes in their place: while one works, nothing else
/// comes over that connection.
fn declare(shared: &Arc<Shared>, way: Way, session: &Session) -> zenoh::Result<()> {
    let setting = &shared.setting;
    let is_here = |at: usize| setting.way(&setting.peers[shared.calls.calling_peer(at)]) == way;
    for (at, port) in setting.called.iter().enumerate().filter(|it| is_here(it.0)) {
        let taker = Arc::clone(shared);
        let take = move |query: Query| {
            // The panic was reported on standard error.
            let _ = catch_unwind(AssertUnwindSafe(|| arrive(&taker, at, query)));
        };
        let queryable = session.declare_queryable(heard(&answered_key(setting, port)));
        queryable.allowed_origin(Locality::Remote).callback(take).background().wait()?;
    }
    Ok(())
}

fn arrive(shared: &Shared, at: usize, query: Query) {
    if let Err(refusal) = arrived(shared, at, query) {
        shared.refuse(shared.calls.calling_peer(at), refusal);
    }
}

fn arrived(shared: &Shared, at: usize, query: Query) -> Result<(), NotTaken> {
    let (peer, key) = (shared.calls.calling_peer(at), shared.calls.answered_key(at));
    let longest = QUESTION_MAX + shared.seal.len();
    let payload = query.payload().filter(|it| it.len() <= longest);
    let bytes = payload.ok_or(NotTaken::Malformed)?.to_bytes().into_owned();
    let (header, wait, packet) = call::read(shared.seal.open(&bytes)?)?;
    shared.is_of(peer, key, &header)?;
    shared.allows(peer, header.life)?;
    let was_sent = |stamp_ns| shared.sent().has(stamp_ns);
    let judged = (was_sent, shared.now_ns());
    shared.calls.arrive(at, (query, &header), (wait, packet), judged)
}

/// The work of the thread, until another line begins.
fn say(shared: &Arc<Shared>, (at, line): (usize, u64), session: &Session) {
    while let Some(said) = shared.calls.ways[at].1.next(line) {
        // A question or answer that cannot be sent is lost. Dropping it tells those who wait for
        // it.
        let _ = match said {
            Say::Ask(question, sequence) => ask(shared, session, question, sequence),
            Say::Answer(reply) => answer(shared, reply),
        };
    }
}

fn ask(
    shared: &Arc<Shared>,
    session: &Session,
    asked: Question,
    sequence: u64,
) -> zenoh::Result<()> {
    let Question { at, wait, since, echoes, packet, waits } = asked;
    let left = wait.saturating_sub(since.elapsed());
    let header = shared.header(shared.calls.asked_key(at), sequence, echoes);
    let bytes = shared.seal.close(question(&header, wait, &packet));
    let (waits, hears) = (Mutex::new(waits), Arc::clone(shared));
    let hear = move |reply: zenoh::query::Reply| {
        let hear = || {
            // An error is a reply of zenoh itself and only says that there is no answer.
            if let Ok(said) = reply.result() {
                let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
                replied(&hears, at, sequence, said, &mut waits);
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(hear));
    };
    session
        .get(asked_key(&shared.setting, &shared.setting.calls[at]))
        .payload(bytes)
        // A stranger that answers first must not keep the other host from answering.
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .timeout(left + GRACE)
        .congestion_control(CongestionControl::Drop)
        // Less urgent than all stamps and messages.
        .priority(Priority::Data)
        .allowed_destination(Locality::Remote)
        .callback(hear)
        .wait()
}

/// An answer came, from the host that was asked or from somebody in its name.
fn replied(
    shared: &Shared,
    at: usize,
    sequence: u64,
    said: &zenoh::sample::Sample,
    waits: &mut Waits,
) {
    let answer = answered(shared, at, sequence, said);
    match answer {
        Ok(reply) if reply.is_empty() => waits.say(Err(CallFailure::Full)),
        Ok(reply) => waits.say(Ok(reply)),
        Err(refusal) => shared.refuse(shared.calls.called_peer(at), refusal),
    }
}

/// The reply in an answer to the question with this sequence.
fn answered(
    shared: &Shared,
    at: usize,
    sequence: u64,
    said: &zenoh::sample::Sample,
) -> Result<Vec<u8>, NotTaken> {
    let peer = shared.calls.called_peer(at);
    let longest = QUESTION_MAX + shared.seal.len();
    let payload = Some(said.payload()).filter(|it| it.len() <= longest);
    let bytes = payload.ok_or(NotTaken::Malformed)?.to_bytes();
    let bytes = shared.seal.open(&bytes)?;
    let (header, reply) = MessageHeader::split(bytes)?;
    shared.is_of(peer, shared.calls.asked_key(at), &header)?;
    shared.allows(peer, header.life)?;
    if header.sequence != sequence {
        return Err(NotTaken::Again);
    }
    let stamp_ns = header.stamp_of(shared.own).ok_or(NotTaken::Unstamped)?;
    if shared.sent().has(stamp_ns) { Ok(reply.to_vec()) } else { Err(NotTaken::Forged) }
}

fn answer(shared: &Shared, reply: Reply) -> zenoh::Result<()> {
    let Reply { query, at, sequence, bytes, _place } = reply;
    let key = shared.calls.answered_key(at);
    let bytes = shared.header(key, sequence, shared.echoes()).write(&bytes);
    let bytes = shared.seal.close(bytes);
    // It has the priority of the question.
    query.reply(query.key_expr().clone(), bytes).wait()
}
