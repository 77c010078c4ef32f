//! The calls of a host: how many may be under way, who may call, and what became of them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sinew_hosts::{Echo, Freshness, Judge, MessageHeader, number};
use zenoh::query::Query;

use crate::call::{AnswerTaker, CallFailure, Question, Reply, Waits};
use crate::configuration::{answered_key, asked_key};
use crate::inbox::refusal;
use crate::not_taken::NotTaken;
use crate::room::{Place, Room};
use crate::say::SayQueue;
use crate::setting::{CallPort, Setting, Way};

/// Longest wait for the answer of a call, whatever its deadline. After it both hosts give it up.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What became of the calls with one other host since the mirror was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Its calls that were handed out.
    pub taken: u64,
    /// Its calls that came when nobody waited for a reply any more.
    pub late: u64,
    /// Calls, to it or from it, that found no room here.
    pub full: u64,
    /// Its calls that were sent and never came.
    pub lost: u64,
}

/// A call of another host, to be answered.
pub struct IncomingCall {
    /// Its place among the setting's inputs that others call.
    pub at: usize,
    /// How long its caller still waits.
    pub wait: Duration,
    /// The packet.
    pub packet: Vec<u8>,
    query: Query,
    sequence: u64,
    place: Place,
    say: Arc<SayQueue>,
}

impl IncomingCall {
    /// Answers the call; never waits for the network. A call that is dropped unanswered is lost for
    /// its caller.
    pub fn answer(self, bytes: Vec<u8>) {
        let (query, at, sequence, place) = (self.query, self.at, self.sequence, Some(self.place));
        self.say.answer(Reply { query, at, sequence, bytes, _place: place });
    }
}

/// Takes the calls of other hosts. It must not wait: all calls would wait with it.
type Take = Box<dyn Fn(IncomingCall) + Send + Sync>;

/// The calls of a host.
pub(crate) struct Calls {
    asked: Arc<Room>,
    answering: Arc<Room>,
    /// One for each input that others call.
    judges: Vec<Mutex<Judge>>,
    counts: Vec<Mutex<CallCounts>>,
    /// The peer of each call: of the inputs on other hosts, and of the inputs here.
    peers: [Vec<usize>; 2],
    /// The number of its key, in the same order.
    keys: [Vec<u64>; 2],
    /// What waits to be sent, for each way that the host speaks by.
    pub(crate) ways: Vec<(Way, Arc<SayQueue>)>,
    /// For each peer, the index of its way.
    way_of: Vec<usize>,
    pub(crate) take: OnceLock<Take>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("peers", &self.peers).finish_non_exhaustive()
    }
}

impl Calls {
    pub(crate) fn new(setting: &Setting, own: (u64, u64)) -> Calls {
        // The setting was checked, so the peer is there.
        let peer = |it: &CallPort| setting.peer(&it.host).unwrap_or_default();
        let peers = [&setting.calls, &setting.called].map(|all| all.iter().map(peer).collect());
        let asked = setting.calls.iter().map(|it| number(&asked_key(setting, it)));
        let answered = setting.called.iter().map(|it| number(&answered_key(setting, it)));
        let queue = |it| (it, Arc::new(SayQueue::new(setting.calls.len())));
        let ways: Vec<_> = setting.ways().into_iter().map(queue).collect();
        let way_of = |peer| ways.iter().position(|it| it.0 == setting.way(peer));
        let way_of = setting.peers.iter().map(way_of).map(Option::unwrap_or_default).collect();
        // Each call itself says how old it may be.
        let judge = |_| Mutex::new(Judge::new(own, u64::MAX));
        Calls {
            asked: Arc::default(),
            answering: Arc::default(),
            judges: setting.called.iter().map(judge).collect(),
            counts: setting.peers.iter().map(|_| Mutex::default()).collect(),
            peers,
            keys: [asked.collect(), answered.collect()],
            ways,
            way_of,
            take: OnceLock::new(),
        }
    }

    /// Whether any calls cross.
    pub(crate) fn are_some(&self) -> bool {
        self.peers.iter().any(|it| !it.is_empty())
    }

    /// The peer behind a call of the setting.
    pub(crate) fn called_peer(&self, at: usize) -> usize {
        self.peers[0][at]
    }

    /// The peer behind an input that others call.
    pub(crate) fn calling_peer(&self, at: usize) -> usize {
        self.peers[1][at]
    }

    /// The number of the key of a call of the setting.
    pub(crate) fn asked_key(&self, at: usize) -> u64 {
        self.keys[0][at]
    }

    /// The number of the key of an input that others call.
    pub(crate) fn answered_key(&self, at: usize) -> u64 {
        self.keys[1][at]
    }

    /// The queue of the way to a peer.
    fn say(&self, peer: usize) -> &Arc<SayQueue> {
        &self.ways[self.way_of[peer]].1
    }

    /// What became of the calls with a peer.
    pub(crate) fn counts(&self, peer: usize) -> MutexGuard<'_, CallCounts> {
        self.counts[peer].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a question, with the stamps that were heard by now.
    pub(crate) fn ask(
        &self,
        at: usize,
        (wait, echoes): (Duration, Vec<Echo>),
        packet: Vec<u8>,
        answer: AnswerTaker,
    ) {
        let Some(place) = self.asked.take(packet.len()) else {
            self.counts(self.called_peer(at)).full += 1;
            return answer(Err(CallFailure::Full));
        };
        let (wait, since) = (wait.min(WAIT_MAX), Instant::now());
        let waits = Waits::new(answer, place);
        self.say(self.called_peer(at)).ask(Question { at, wait, since, echoes, packet, waits });
    }

    /// A question came for input `at`, of a life that may ask.
    ///
    /// # Errors
    /// It is not taken, and why.
    pub(crate) fn arrive(
        &self,
        at: usize,
        (query, header): (Query, &MessageHeader),
        (wait, packet): (Duration, &[u8]),
        (was_sent, now_ns): (impl Fn(u64) -> bool, u64),
    ) -> Result<(), NotTaken> {
        let peer = self.calling_peer(at);
        let mut counts = self.counts(peer);
        let mut judge = self.judges[at].lock().unwrap_or_else(PoisonError::into_inner);
        let (stamp_ns, lost) = match judge.judge(header, was_sent, now_ns) {
            Freshness::Fresh { stamp_ns, lost } => (stamp_ns, lost),
            refused => return Err(refusal(refused)),
        };
        counts.lost = counts.lost.saturating_add(lost);
        let age = Duration::from_nanos(now_ns.saturating_sub(stamp_ns));
        let Some(wait) = wait.min(WAIT_MAX).checked_sub(age).filter(|it| !it.is_zero()) else {
            counts.late += 1;
            return Ok(());
        };
        let (sequence, take) = (header.sequence, self.take.get());
        match (self.answering.take(packet.len()), take) {
            (Some(place), Some(take)) => {
                counts.taken += 1;
                drop((counts, judge));
                let (packet, say) = (packet.to_vec(), Arc::clone(self.say(peer)));
                take(IncomingCall { at, wait, packet, query, sequence, place, say });
            }
            _ => {
                counts.full += 1;
                let reply = Reply { query, at, sequence, bytes: Vec::new(), _place: None };
                self.say(peer).answer(reply);
            }
        }
        Ok(())
    }
}
