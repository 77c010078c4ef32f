//! Taps: people who may see the run see the packets that pass the nodes of this domain, and may
//! hold up one of them.
//!
//! As long as nobody looks, the cost is one read of a word at the beginning of a flow. Flows that
//! begin while somebody looks show what they do to those who asked for it ([`flow`]), and go on.
//! Only a packet that is to be held waits ([`hold`]). The first worker serves the connections
//! ([`serve`]).

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

/// Most taps of a domain at once.
const TAPS_MAX: usize = 8;
/// Most lines of a tap that wait to be read; further lines are only counted.
const LINES_MAX: usize = 256;
const NS_PER_S: u64 = 1_000_000_000;
/// Parameters that say at which address a node listens.
const ADDRESSES: [&str; 2] = ["host", "listen"];

/// Whether a packet of a flow is wanted.
pub type PacketFilter = Box<dyn Fn(&Flow, &Value) -> Result<bool, Error>>;

/// How packets are chosen and shown. The kinds of a program provide this, as they know expressions
/// and JSON.
#[derive(Clone, Copy)]
pub struct Lens {
    /// Makes a filter of this text, for one worker. The error says what is wrong with the text.
    pub filter: fn(&str) -> Result<PacketFilter, String>,
    /// A packet as a text for people, without secrets, of at most a few kilobytes. It draws from
    /// the work of the given flow, which is made for this look only.
    pub show: fn(&Flow, &Value) -> String,
}

/// The taps of a domain.
#[derive(Default)]
pub(crate) struct Taps {
    lens: Option<Lens>,
    /// Why no packet of this graph may be held.
    no_pause: Option<String>,
    /// Nodes that begin flows; packets never come to them.
    sources: Vec<String>,
    /// Whether there are any taps.
    is_on: Arc<AtomicBool>,
    /// How often the taps have changed.
    edition: AtomicU64,
    open: Mutex<Vec<Arc<Tap>>>,
}

/// A tap as all workers see it.
pub(crate) struct Tap {
    asked: TapRequest,
    lines: mpsc::Sender<TapLine>,
    lost: AtomicU64,
    /// A packet may be shown from this time on, monotonic ns.
    due_ns: Mutex<u64>,
    hold: Mutex<Hold>,
}

/// A tap as one worker sees it.
struct Here {
    tap: Arc<Tap>,
    filter: Option<PacketFilter>,
}

thread_local! {
    /// Thread-local, because a worker is a thread while its programs come and go.
    static HERE: RefCell<Rc<TapView>> = RefCell::default();
}

/// The taps of a domain, as one worker sees them.
#[derive(Default)]
pub(super) struct TapView {
    taps: Arc<Taps>,
    /// The edition of the taps in `here`.
    seen: Cell<u64>,
    here: RefCell<Rc<[Here]>>,
}

impl Taps {
    /// No taps yet, in a domain of this graph.
    pub(crate) fn new(plan: &Plan, lens: Option<Lens>) -> Taps {
        let takes = |kind: &Kind| kind.ports.iter().any(|port| port.direction == Direction::In);
        let sources = plan.nodes.iter().filter(|node| !takes(node.kind));
        let sources = sources.map(|node| node.name.clone()).collect();
        Taps { lens, no_pause: beyond_loopback(plan), sources, ..Taps::default() }
    }

    /// Lets this worker's flows see the taps. The flag says whether there are any.
    pub(crate) fn begin_here(self: &Arc<Taps>) -> Arc<AtomicBool> {
        let view = TapView { taps: Arc::clone(self), ..TapView::default() };
        HERE.set(Rc::new(view));
        Arc::clone(&self.is_on)
    }

    /// Opens a tap; returns it and its lines. `is_node` knows the nodes of the domain.
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

    /// Closes a tap; a packet that it holds goes on.
    pub(crate) fn close(&self, tap: &Arc<Tap>) {
        let mut open = lock(&self.open);
        open.retain(|other| !Arc::ptr_eq(other, tap));
        self.changed(&open);
        drop(open);
        tap.release();
    }

    fn changed(&self, open: &[Arc<Tap>]) {
        // Release pairs with the acquire load in `TapView::here`. The list itself is read under its
        // lock anyway.
        self.edition.fetch_add(1, Ordering::Release);
        // Relaxed: a worker that sees the change later only begins a flow that taps do not see.
        self.is_on.store(!open.is_empty(), Ordering::Relaxed);
    }
}

impl Tap {
    /// Whether one more packet may be shown now; the number per second is limited.
    fn admits(&self) -> bool {
        *lock(&self.due_ns) <= now_ns()
    }

    /// The same, and counts the packet as shown.
    fn takes(&self) -> bool {
        let (mut due_ns, now_ns) = (lock(&self.due_ns), now_ns());
        if *due_ns > now_ns {
            return false;
        }
        // The packets of one second may come directly one after the other.
        let apart_ns = NS_PER_S / u64::from(self.asked.per_s);
        *due_ns = (*due_ns).max((now_ns + apart_ns).saturating_sub(NS_PER_S)) + apart_ns;
        true
    }

    fn say(&self, line: TapLine) {
        if self.lines.try_send(line).is_err() {
            // Relaxed: it is a number alone; no other data goes with it.
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines found no room since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl TapView {
    /// The view of this worker.
    pub(super) fn of_this_worker() -> Rc<TapView> {
        HERE.with_borrow(Rc::clone)
    }

    /// The taps that are open now, with filters for this worker.
    fn here(&self) -> Rc<[Here]> {
        let edition = self.taps.edition.load(Ordering::Acquire);
        if self.seen.replace(edition) != edition {
            let open = lock(&self.taps.open).clone();
            let here = open.into_iter().map(|tap| {
                let text = tap.asked.filter.as_deref();
                // The filter compiled without error when the tap was opened.
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
    /// Whether a packet is wanted. It is not if the filter fails on it.
    fn wants(&self, flow: &Flow, packet: &Value) -> bool {
        let Some(filter) = &self.filter else { return true };
        filter(&flow.eye(), packet).unwrap_or(false)
    }

    /// Whether the tap asks for packets that come to this node.
    fn is_at(&self, node: &str) -> bool {
        self.tap.asked.node.as_deref() == Some(node)
    }
}

/// Why no packet of this graph may be held: a node listens beyond this machine, so others may wait
/// for its packets.
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
    // A poisoned lock is still good: no panic can leave its content half changed.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
