//! The servers that a node asks in turn, and which of them can be reached. Both requests and health
//! checks show that.

#[cfg(test)]
mod tests;

use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use sinew_core::clock::now_ns;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::connect::Connector;
use crate::http::body::{Body, Content};

/// How the server that is asked next is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Balance {
    /// One after the other.
    RoundRobin,
    /// The server with the fewest requests under way; of several the next one.
    LeastRequests,
}

/// How the health of servers is checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Health {
    /// The path that is asked for, behind the server's own url.
    pub(super) path: String,
    pub(super) every: Duration,
    pub(super) deadline: Duration,
    /// So many bad answers in a row take a server out, and `passes` good ones bring it back.
    pub(super) fails: u32,
    pub(super) passes: u32,
}

/// The servers of a node, for all its workers. Each figure is right by itself, and nothing depends
/// on their order: all atomics are relaxed.
#[derive(Debug)]
pub(super) struct Targets {
    all: Vec<Target>,
    balance: Balance,
    /// How long a server that could not be reached is not asked.
    rest: Duration,
    next: AtomicUsize,
    /// Whether some worker runs the health checks.
    is_watched: AtomicBool,
    /// Changes that have not been reported yet.
    news: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Target {
    /// Scheme, host and perhaps the beginning of a path, without a slash at the end.
    base: String,
    under_way: AtomicU32,
    /// The server is not asked before this time; 0: it could be reached.
    rests_until_ns: AtomicU64,
    /// Whether health checks have found it down.
    is_down: AtomicBool,
    /// Health checks in a row whose outcome is the opposite of what `is_down` says.
    unlike: AtomicU32,
}

/// A request that is under way at a server.
pub(super) struct Turn<'a> {
    targets: &'a Targets,
    at: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.targets.all[self.at].under_way.fetch_sub(1, Relaxed);
    }
}

impl Turn<'_> {
    /// What its urls begin with.
    pub(super) fn base(&self) -> &str {
        &self.targets.all[self.at].base
    }

    /// The server could not be reached: it is not asked for a while.
    pub(super) fn unreached(&self, why: &str) {
        let Turn { targets, at } = self;
        let until_ns = now_ns().saturating_add(targets.rest.as_nanos() as u64);
        if targets.all[*at].rests_until_ns.swap(until_ns, Relaxed) == 0 {
            let (base, rest) = (self.base(), targets.rest);
            targets.tell(format!("{base} is left out for {rest:?} at a time: {why}"));
        }
    }

    /// The server answered.
    pub(super) fn reached(&self) {
        let target = &self.targets.all[self.at];
        if target.rests_until_ns.load(Relaxed) != 0 && target.rests_until_ns.swap(0, Relaxed) != 0 {
            self.targets.tell(format!("{} answers again", target.base));
        }
    }
}

impl Targets {
    pub(super) fn new(bases: &[String], balance: Balance, rest: Duration) -> Targets {
        let target = |base: &String| Target {
            base: base.trim_end_matches('/').to_owned(),
            under_way: AtomicU32::new(0),
            rests_until_ns: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            unlike: AtomicU32::new(0),
        };
        Targets {
            all: bases.iter().map(target).collect(),
            balance,
            rest,
            next: AtomicUsize::new(0),
            is_watched: AtomicBool::new(false),
            news: Mutex::default(),
        }
    }

    /// How many servers there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The server that is asked next; `None` if none is left.
    pub(super) fn pick(&self) -> Option<Turn<'_>> {
        let (now_ns, first) = (now_ns(), self.next.fetch_add(1, Relaxed));
        let in_turn = (0..self.all.len()).map(|at| first.wrapping_add(at) % self.all.len());
        let mut there = in_turn.filter(|at| self.all[*at].is_there(now_ns));
        let at = match self.balance {
            Balance::RoundRobin => there.next(),
            Balance::LeastRequests => there.min_by_key(|at| self.all[*at].under_way.load(Relaxed)),
        }?;
        self.all[at].under_way.fetch_add(1, Relaxed);
        Some(Turn { targets: self, at })
    }

    /// In how many seconds a server may be asked again, as far as that is known.
    pub(super) fn wait_s(&self) -> u64 {
        let now_ns = now_ns();
        let waits = self.all.iter().map(|it| it.rests_until_ns.load(Relaxed));
        let shortest = waits.filter_map(|until_ns| until_ns.checked_sub(now_ns)).min();
        shortest.unwrap_or_default().div_ceil(1_000_000_000).max(1)
    }

    /// The changes since the last call.
    pub(super) fn news(&self) -> Vec<String> {
        // After a panic the lock can be used: a list of texts is never half changed.
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, what: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Begins the health checks, unless some worker runs them already. They stop when `owner` is
    /// dropped.
    pub(super) fn watch(
        self: &Arc<Targets>,
        health: &Health,
        client: &Client<Connector, Body<()>>,
        owner: &Rc<()>,
    ) {
        if self.is_watched.load(Relaxed) || self.is_watched.swap(true, Relaxed) {
            return;
        }
        let watch = Watch(Arc::clone(self));
        let (health, client, owner) = (health.clone(), client.clone(), Rc::downgrade(owner));
        spawn_local(async move { watch.run(&health, &client, &owner).await });
    }

    /// Takes in the outcome of a health check.
    fn looked(&self, at: usize, outcome: Result<(), String>, health: &Health) {
        let target = &self.all[at];
        let (was_down, is_bad) = (target.is_down.load(Relaxed), outcome.is_err());
        if was_down == is_bad {
            target.unlike.store(0, Relaxed);
        } else if target.unlike.fetch_add(1, Relaxed) + 1
            >= if is_bad { health.fails } else { health.passes }
        {
            target.unlike.store(0, Relaxed);
            target.is_down.store(is_bad, Relaxed);
            target.rests_until_ns.store(0, Relaxed);
            let Target { base, .. } = target;
            self.tell(match outcome {
                Ok(()) => format!("{base} is back: {} answers", health.path),
                Err(why) => format!("{base} is left out: {} {why}", health.path),
            });
        }
    }
}

impl Target {
    fn is_there(&self, now_ns: u64) -> bool {
        !self.is_down.load(Relaxed) && self.rests_until_ns.load(Relaxed) <= now_ns
    }
}

/// The health checks that a worker runs. When this is dropped, another worker may run them.
struct Watch(Arc<Targets>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Relaxed);
    }
}

impl Watch {
    async fn run(&self, health: &Health, client: &Client<Connector, Body<()>>, owner: &Weak<()>) {
        while owner.strong_count() > 0 {
            for at in 0..self.0.all.len() {
                let outcome = ask(&self.0.all[at].base, health, client).await;
                if owner.strong_count() == 0 {
                    return;
                }
                self.0.looked(at, outcome, health);
            }
            sleep(health.every).await;
        }
    }
}

/// Checks the health of a server. The error says what is wrong.
async fn ask(
    base: &str,
    health: &Health,
    client: &Client<Connector, Body<()>>,
) -> Result<(), String> {
    let uri: Uri =
        format!("{base}{}", health.path).parse().map_err(|_| "is not a url".to_owned())?;
    let mut request = Request::new(Body::new(Content::Empty, ()));
    *request.uri_mut() = uri;
    let answer: Response<Incoming> = timeout(health.deadline, client.request(request))
        .await
        .map_err(|_| format!("does not answer within {:?}", health.deadline))?
        .map_err(|error| format!("cannot be asked: {}", super::chain(&error)))?;
    match answer.status() {
        status if status.as_u16() < 400 => Ok(()),
        status => Err(format!("answers {status}")),
    }
}
