//! The crew of a domain: its workers, and the thread that watches them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew_link::counter;
use sinew_spec::plan::Plan;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::tell::Told;
use super::worker::{BEAT, Order, Parts, Post, Shared, at, refused};
use super::{Figures, MessageInput, MessageOutput, Pool};
use crate::assemble::{entry, parameters};
use crate::board::{Board, FaultAt, Order as Orders};
use crate::clock::Clock;
use crate::fault::{Cause, Fault};
use crate::halt::Halt;
use crate::node::{Make, NodeEntry};
use crate::service::BEATS;
use crate::sys::Region;
use crate::watch::Supervisor;

/// Of the time that a domain has for its stop, flows get this part; the rest is for their nodes and
/// threads to end in order, before the supervisor kills them.
const PATIENCE: f64 = 0.75;

/// What a crew is made of.
pub(crate) struct Setup {
    pub(crate) plan: Arc<Plan>,
    /// The flow nodes, by index of the plan.
    pub(crate) nodes: Vec<usize>,
    pub(crate) table: Vec<NodeEntry>,
    /// Where paths in the spec start.
    pub(crate) folder: PathBuf,
    pub(crate) workers: usize,
    pub(crate) blocking: u32,
    /// Ends of links to the core, by node and port.
    pub(crate) inputs: BTreeMap<(usize, usize), MessageInput>,
    pub(crate) outputs: BTreeMap<(usize, usize), Vec<MessageOutput>>,
    /// One for each of `nodes`.
    pub(crate) counters: Vec<counter::Writer<Region>>,
    /// Who starts and watches this domain.
    pub(crate) supervisor: Option<Supervisor>,
    pub(crate) halt: Arc<Halt>,
    /// How long the domain may take to stop.
    pub(crate) stop_deadline: Duration,
}

/// The workers of a domain's flows.
pub(crate) struct Crew {
    workers: Vec<Worker>,
    counters: Vec<counter::Writer<Region>>,
    told: Told,
}

/// A worker, from outside.
struct Worker {
    thread: JoinHandle<()>,
    orders: UnboundedSender<Order>,
    beats: Arc<AtomicU64>,
}

impl Crew {
    /// Opens all sources and makes all nodes; flows begin with [`Crew::serve`].
    pub(crate) fn open(setup: Setup) -> Result<Crew, FaultAt> {
        let shared = Arc::new(Shared {
            plan: setup.plan,
            nodes: setup.nodes,
            table: setup.table,
            folder: setup.folder,
            workers: setup.workers,
            pool: Pool::start(setup.blocking).map_err(no_thread)?,
            clock: Clock::calibrate(),
            inputs: setup.inputs,
            outputs: setup.outputs,
            supervisor: setup.supervisor,
            halt: setup.halt,
            patience: setup.stop_deadline.mul_f64(PATIENCE),
        });
        let parts = open_sources(&shared)?;
        let mut told = Told::new();
        let (sender, made) = channel();
        let mut workers = Vec::new();
        for (number, parts) in parts.into_iter().enumerate() {
            let beats = Arc::new(AtomicU64::new(0));
            let post = Post {
                number,
                shared: Arc::clone(&shared),
                parts,
                figures: Arc::<Figures>::default(),
                voice: told.voice(),
                beats: Arc::clone(&beats),
            };
            let (orders, receiver) = unbounded_channel();
            let sender = sender.clone();
            let thread = thread::Builder::new().name(format!("flows/{number}"));
            let thread = thread.spawn(move || post.run(&sender, receiver)).map_err(no_thread)?;
            workers.push(Worker { thread, orders, beats });
        }
        drop(sender);
        // Each worker says one word; the first that cannot is the domain's fault.
        made.iter().collect::<Result<(), FaultAt>>()?;
        Ok(Crew { workers, counters: setup.counters, told })
    }

    /// Lets flows begin, until the domain is to stop; returns when those that have begun have
    /// ended, or time for that is over.
    pub(crate) fn serve(mut self, board: &Board, halt: &Halt) {
        self.order(|| Order::Serve);
        let mut seen = vec![0; self.workers.len()];
        while !halt.is_stopping() {
            if self.all_live(&mut seen) {
                self.beat();
            }
            self.told.write();
            board.sleep_while(Orders::Run, BEAT.as_nanos() as u64);
        }
        self.order(|| Order::Stop);
        for worker in self.workers {
            // A worker that panicked has said so.
            let _ = worker.thread.join();
        }
        self.told.write();
    }

    fn order(&self, order: impl Fn() -> Order) {
        for worker in &self.workers {
            // One that is gone has said why.
            let _ = worker.orders.send(order());
        }
    }

    /// Whether every worker has given a sign of life since the last time that all had.
    fn all_live(&self, seen: &mut [u64]) -> bool {
        // Relaxed: a sign of life orders nothing.
        let now: Vec<u64> =
            self.workers.iter().map(|worker| worker.beats.load(Ordering::Relaxed)).collect();
        let live = now.iter().zip(seen.iter()).all(|(now, seen)| now != seen);
        if live {
            seen.copy_from_slice(&now);
        }
        live
    }

    fn beat(&mut self) {
        for counters in &mut self.counters {
            counters.add(BEATS, 1);
        }
    }
}

/// Opens all sources; the parts of each worker.
fn open_sources(shared: &Shared) -> Result<Vec<Parts>, FaultAt> {
    let mut parts: Vec<Vec<_>> = (0..shared.workers).map(|_| Vec::new()).collect();
    for &index in &shared.nodes {
        let node = &shared.plan.nodes[index];
        let Make::Source(make) = entry(&shared.table, node).make else { continue };
        let made = make(&parameters(&shared.plan, node, &shared.folder));
        let made = made.map_err(|refusals| refused(index, &refusals))?;
        let opened = made.open(shared.workers).map_err(|fault| at(Some(index), fault))?;
        for (parts, part) in parts.iter_mut().zip(opened) {
            parts.push((index, part));
        }
    }
    Ok(parts)
}

fn no_thread(error: io::Error) -> FaultAt {
    at(None, Fault::new(Cause::System, format_args!("cannot start a thread: {error}")))
}
