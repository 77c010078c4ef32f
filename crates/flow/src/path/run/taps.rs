//! Taps: whoever may see the run sees the packets that pass the nodes of this domain, and may hold
//! one of them.
//!
//! As long as nobody looks a flow costs one look at a word more, as it begins. Flows that begin
//! while somebody does show what they do to those who asked for it ([`flow`]), and go on: only a
//! packet that is to be held waits ([`hold`]). The first worker serves the connections ([`serve`]).

pub(crate) mod flow;
mod hold;
pub(crate) mod serve;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_control::tap::{PER_S_MAX, TapLine, TapRequest};
use sinew_core::clock::now_ns;
use sinew_spec::catalogue::{Direction, Kind, ParameterValue};
use sinew_spec::plan::Plan;
use tokio::sync::mpsc;

use crate::{Error, Flow, Value};

use self::hold::Hold;

/// Taps of a domain at once.
const TAPS_MAX: usize = 8;
/// Lines of a tap that wait to be read; past that they are counted only.
const LINES_MAX: usize = 256;
const NS_PER_S: u64 = 1_000_000_000;
/// Parameters that say at which address a node listens.
const ADDRESSES: [&str; 2] = ["host", "listen"];

/// Whether a packet of a flow is one of those that are wanted.
pub type PacketFilter = Box<dyn Fn(&Flow, &Value) -> Result<bool, Error>>;

/// How packets are chosen and shown: the kinds of a program know expressions and JSON.
#[derive(Clone, Copy)]
pub struct Lens {
    /// A filter of this text, for one worker. The error says what is wrong with it.
    pub filter: fn(&str) -> Result<PacketFilter, String>,
    /// A packet as a text for people, without secrets; a few kilobytes at most. It spends work of
    /// the flow, which is one of its own.
    pub show: fn(&Flow, &Value) -> String,
}

/// The taps of a domain.
#[derive(Default)]
pub(crate) struct Taps {
    lens: Option<Lens>,
    /// Why no packet of this graph may be held.
    no_pause: Option<String>,
    /// Nodes that begin flows: no packet comes to them.
    sources: Vec<String>,
    /// Whether there are any.
    is_on: Arc<AtomicBool>,
    /// How often they have changed.
    edition: AtomicU64,
    open: Mutex<Vec<Arc<Tap>>>,
}

/// One of them, as all workers see it.
pub(crate) struct Tap {
    asked: TapRequest,
    lines: mpsc::Sender<TapLine>,
    lost: AtomicU64,
    /// Until when the packets of this second have been shown already, monotonic ns.
    due_ns: Mutex<u64>,
    hold: Mutex<Hold>,
}

/// A tap as one worker sees it.
struct Here {
    tap: Arc<Tap>,
    filter: Option<PacketFilter>,
}

thread_local! {
    /// A worker is a thread, and its programs come and go.
    static HERE: RefCell<Rc<TapView>> = RefCell::default();
}

/// The taps of a domain, as one worker sees them.
#[derive(Default)]
pub(super) struct TapView {
    taps: Arc<Taps>,
    /// The edition that it has seen.
    seen: Cell<u64>,
    here: RefCell<Rc<[Here]>>,
}

impl Taps {
    /// None yet, in a domain of this graph.
    pub(crate) fn new(plan: &Plan, lens: Option<Lens>) -> Taps {
        let takes = |kind: &Kind| kind.ports.iter().any(|port| port.direction == Direction::In);
        let sources = plan.nodes.iter().filter(|node| !takes(node.kind));
        let sources = sources.map(|node| node.name.clone()).collect();
        Taps { lens, no_pause: beyond_loopback(plan), sources, ..Taps::default() }
    }

    /// Lets this worker's flows see them; whether there are any.
    pub(crate) fn begin_here(self: &Arc<Taps>) -> Arc<AtomicBool> {
        let view = TapView { taps: Arc::clone(self), ..TapView::default() };
        HERE.set(Rc::new(view));
        Arc::clone(&self.is_on)
    }

    /// One more, and its lines. `is_node` knows the nodes of the domain.
    ///
    /// # Errors
    /// What is wrong with the request, and what was expected.
    pub(crate) fn open(
        &self,
        asked: TapRequest,
        is_node: impl Fn(&str) -> bool,
    ) -> Result<(Arc<Tap>, mpsc::Receiver<TapLine>), String> {
        let lens =
            self.lens.ok_or("the kinds of this program cannot show packets (Kinds::lens)")?;
        match &asked.node {
            Some(node) if !is_node(node) => return Err(format!("no flow node '{node}' is here")),
            None if asked.pause || !asked.way => return Err("'node' is missing".into()),
            _ => {}
        }
        if !(1..=PER_S_MAX).contains(&asked.per_s) {
            return Err(format!("per_s: {}; expected 1 to {PER_S_MAX}", asked.per_s));
        }
        if asked.pause && asked.way {
            return Err("'pause' and 'way' exclude each other".into());
        }
        if asked.pause {
            self.no_pause.clone().map_or(Ok(()), Err)?;
            if let Some(source) = self.sources.iter().find(|it| Some(*it) == asked.node.as_ref()) {
                return Err(format!(
                    "'{source}' begins flows, and no packet comes to it; name the node behind it"
                ));
            }
        }
        asked.filter.as_deref().map_or(Ok(()), |text| (lens.filter)(text).map(drop))?;
        let (lines, receiver) = mpsc::channel(LINES_MAX);
        let tap = Arc::new(Tap {
            asked,
            lines,
            lost: AtomicU64::new(0),
            due_ns: Mutex::new(0),
            hold: Mutex::default(),
        });
        let mut open = lock(&self.open);
        if open.len() == TAPS_MAX {
            return Err(format!("{TAPS_MAX} taps of this domain are open; end one"));
        }
        open.push(Arc::clone(&tap));
        self.changed(&open);
        Ok((tap, receiver))
    }

    /// One less; what it holds goes on.
    pub(crate) fn close(&self, tap: &Arc<Tap>) {
        let mut open = lock(&self.open);
        open.retain(|other| !Arc::ptr_eq(other, tap));
        self.changed(&open);
        drop(open);
        tap.release();
    }

    fn changed(&self, open: &[Arc<Tap>]) {
        // Release, with the acquire of who looks: the list is read under its lock all the same.
        self.edition.fetch_add(1, Ordering::Release);
        // Relaxed: who sees it later begins a flow that is not seen.
        self.is_on.store(!open.is_empty(), Ordering::Relaxed);
    }
}

impl Tap {
    /// Whether one more may be shown now, of which there are only so many in a second.
    fn admits(&self) -> bool {
        *lock(&self.due_ns) <= now_ns()
    }

    /// The same, and counts it.
    fn takes(&self) -> bool {
        let (mut due_ns, now_ns) = (lock(&self.due_ns), now_ns());
        if *due_ns > now_ns {
            return false;
        }
        // Those of a second may come in a row.
        let apart_ns = NS_PER_S / u64::from(self.asked.per_s);
        *due_ns = (*due_ns).max((now_ns + apart_ns).saturating_sub(NS_PER_S)) + apart_ns;
        true
    }

    fn say(&self, line: TapLine) {
        if self.lines.try_send(line).is_err() {
            // Relaxed: a number, and nothing that goes with it.
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines found no room since the last question.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl TapView {
    /// That of this worker.
    pub(super) fn of_this_worker() -> Rc<TapView> {
        HERE.with_borrow(Rc::clone)
    }

    /// Those that are open now, with filters for this worker.
    fn here(&self) -> Rc<[Here]> {
        let edition = self.taps.edition.load(Ordering::Acquire);
        if self.seen.replace(edition) != edition {
            let open = lock(&self.taps.open).clone();
            let here = open.into_iter().map(|tap| {
                let text = tap.asked.filter.as_deref();
                // It was compiled as the tap was opened.
                let filter = text.and_then(|text| (self.taps.lens?.filter)(text).ok());
                Here { tap, filter }
            });
            *self.here.borrow_mut() = here.collect();
        }
        Rc::clone(&self.here.borrow())
    }

    fn show(&self, flow: &Flow, value: &Value) -> String {
        self.taps.lens.map_or_else(String::new, |lens| (lens.show)(&flow.eye(), value))
    }
}

impl Here {
    /// Whether a packet is wanted. One of which the filter cannot say it is not.
    fn wants(&self, flow: &Flow, packet: &Value) -> bool {
        let Some(filter) = &self.filter else { return true };
        filter(&flow.eye(), packet).unwrap_or(false)
    }

    /// Whether it is about what comes to this node.
    fn is_at(&self, node: &str) -> bool {
        self.tap.asked.node.as_deref() == Some(node)
    }
}

/// Why no packet of this graph may be held: others than the people at this machine wait for it.
fn beyond_loopback(plan: &Plan) -> Option<String> {
    plan.nodes.iter().find_map(|node| {
        let parameters = node.kind.parameters.iter().zip(&node.values);
        let mut addresses = parameters.filter(|(parameter, _)| ADDRESSES.contains(&parameter.name));
        let (parameter, text) = addresses.find_map(|(parameter, value)| match value {
            ParameterValue::Text(text) if !is_loopback(text) => Some((parameter.name, text)),
            _ => None,
        })?;
        Some(format!(
            "node '{}' listens at '{text}' ({parameter}), which other machines may reach: packets \
             are held only if every listener has a loopback address",
            node.name
        ))
    })
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is = |host: &str| host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is(address) || is(host.trim_matches(['[', ']'])) || host == "localhost"
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody can have left it half changed.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
