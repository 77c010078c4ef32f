//! The crew of a domain: its workers, and the thread that watches them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew_link::counter;
use sinew_spec::plan::Plan;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use super::program::Base;
use super::{Figures, MessageInput, MessageOutput, Opened, Outlet, Pool, Site, Stop, make};
use crate::assemble::{entry, parameters};
use crate::board::{Board, FaultAt, Order as Orders};
use crate::clock::Clock;
use crate::fault::{Cause, Fault};
use crate::halt::Halt;
use crate::node::{Make, NodeEntry};
use crate::refusal::Refusal;
use crate::service::BEATS;
use crate::sys::Region;
use crate::watch::Supervisor;

/// How often a worker says that it lives, and the crew looks whether it does.
const BEAT: Duration = Duration::from_millis(100);

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
}

/// The workers of a domain's flows.
pub(crate) struct Crew {
    workers: Vec<Worker>,
    counters: Vec<counter::Writer<Region>>,
}

struct Worker {
    thread: JoinHandle<()>,
    orders: UnboundedSender<Order>,
    beats: Arc<AtomicU64>,
}

enum Order {
    Serve,
    Stop,
}

/// What sources have opened for one worker, each with its index of the plan.
type Parts = Vec<(usize, Box<dyn Opened>)>;

/// What a worker is made of.
struct Post {
    number: usize,
    setup: Arc<Shared>,
    parts: Parts,
    figures: Arc<Figures>,
    beats: Arc<AtomicU64>,
}

/// What all workers are made of.
struct Shared {
    plan: Arc<Plan>,
    nodes: Vec<usize>,
    table: Vec<NodeEntry>,
    folder: PathBuf,
    workers: usize,
    pool: Pool,
    clock: Clock,
    inputs: BTreeMap<(usize, usize), MessageInput>,
    outputs: BTreeMap<(usize, usize), Vec<MessageOutput>>,
    supervisor: Option<Supervisor>,
    halt: Arc<Halt>,
}

impl Crew {
    /// Opens all sources and makes all nodes; flows begin with [`Crew::serve`].
    pub(crate) fn open(setup: Setup) -> Result<Crew, FaultAt> {
        let pool = Pool::start(setup.blocking).map_err(|error| {
            at(None, Fault::new(Cause::System, format_args!("cannot start a thread: {error}")))
        })?;
        let shared = Arc::new(Shared {
            plan: setup.plan,
            nodes: setup.nodes,
            table: setup.table,
            folder: setup.folder,
            workers: setup.workers,
            pool,
            clock: Clock::calibrate(),
            inputs: setup.inputs,
            outputs: setup.outputs,
            supervisor: setup.supervisor,
            halt: setup.halt,
        });
        let parts = open_sources(&shared)?;
        let (sender, made) = channel();
        let mut workers = Vec::new();
        for (number, parts) in parts.into_iter().enumerate() {
            let beats = Arc::new(AtomicU64::new(0));
            let post = Post {
                number,
                setup: Arc::clone(&shared),
                parts,
                figures: Arc::new(Figures::new(shared.nodes.len())),
                beats: Arc::clone(&beats),
            };
            let (orders, receiver) = unbounded_channel();
            let sender = sender.clone();
            let spawned = thread::Builder::new().name(format!("flows/{number}")).spawn(move || {
                post.work(&sender, receiver);
            });
            let thread = spawned.map_err(|error| {
                at(None, Fault::new(Cause::System, format_args!("cannot start a thread: {error}")))
            })?;
            workers.push(Worker { thread, orders, beats });
        }
        drop(sender);
        // Each worker says one word; the first that cannot is the domain's fault.
        made.iter().collect::<Result<(), FaultAt>>()?;
        Ok(Crew { workers, counters: setup.counters })
    }

    /// Lets flows begin, until the domain is to stop; returns when those that have begun have
    /// ended.
    pub(crate) fn serve(mut self, board: &Board, halt: &Halt) {
        self.order(|| Order::Serve);
        let mut seen = vec![0; self.workers.len()];
        while !halt.is_stopping() {
            if self.all_live(&mut seen) {
                self.beat();
            }
            board.sleep_while(Orders::Run, BEAT.as_nanos() as u64);
        }
        self.order(|| Order::Stop);
        for worker in self.workers {
            // A worker that panicked has said so.
            let _ = worker.thread.join();
        }
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

fn at(node: Option<usize>, fault: Fault) -> FaultAt {
    FaultAt { fault, node, cycle: None }
}

fn refused(node: usize, refusals: &[Refusal]) -> FaultAt {
    let first = refusals.first().map(ToString::to_string).unwrap_or_default();
    at(Some(node), Fault::new(Cause::Error, format_args!("{first}")))
}

impl Post {
    /// A worker's whole life.
    fn work(self, made: &mpsc::Sender<Result<(), FaultAt>>, mut orders: UnboundedReceiver<Order>) {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
            at(None, Fault::new(Cause::System, format_args!("cannot start a worker: {error}")))
        });
        let (runtime, program) = match runtime.and_then(|runtime| Ok((runtime, self.program()?))) {
            Ok(pair) => pair,
            Err(fault) => {
                // The receiver is there until every worker has spoken.
                let _ = made.send(Err(fault));
                return;
            }
        };
        let _ = made.send(Ok(()));
        LocalSet::new().block_on(&runtime, self.serve(Rc::new(program), &mut orders));
    }

    fn program(&self) -> Result<super::Program, FaultAt> {
        let shared = &*self.setup;
        let ids = Rc::new(Cell::new(((self.number as u64) << 48) + 1));
        let base = Base { ids, clock: shared.clock, figures: Arc::clone(&self.figures) };
        let made = make::program(
            &shared.plan,
            &shared.nodes,
            &shared.table,
            &shared.folder,
            &base,
            |node| self.site(node),
        );
        made.map_err(|(node, refusals)| refused(node, &refusals))
    }

    fn site(&self, node: usize) -> Site {
        let shared = &*self.setup;
        let ports = 0..shared.plan.nodes[node].kind.ports.len();
        Site {
            worker: self.number,
            workers: shared.workers,
            pool: shared.pool.clone(),
            inputs: ports.clone().map(|port| shared.inputs.get(&(node, port)).cloned()).collect(),
            outputs: ports
                .map(|port| shared.outputs.get(&(node, port)).cloned().unwrap_or_default())
                .collect(),
            supervisor: shared.supervisor.clone(),
            plan: Arc::clone(&shared.plan),
        }
    }

    async fn serve(self, program: Rc<super::Program>, orders: &mut UnboundedReceiver<Order>) {
        let Some(Order::Serve) = orders.recv().await else { return };
        let (stopper, stop) = Stop::new();
        let mut serving = JoinSet::new();
        for (index, part) in self.parts {
            let name = &self.setup.plan.nodes[index].name;
            let place = program.find(name).expect("a source of this program");
            let outlet = Outlet::new(Rc::clone(&program), place);
            let serves = part.serve(outlet, stop.clone());
            let halt = Arc::clone(&self.setup.halt);
            serving.spawn_local(async move {
                if let Err(fault) = serves.await {
                    halt.fault(at(Some(index), fault));
                }
            });
        }
        let beats = self.beats;
        let lives = tokio::task::spawn_local(async move {
            loop {
                // Relaxed: a sign of life orders nothing.
                beats.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BEAT).await;
            }
        });
        // The only other order is to stop; a crew that is gone means the same.
        let _ = orders.recv().await;
        // Sources that have ended need not hear it.
        let _ = stopper.send(true);
        while serving.join_next().await.is_some() {}
        lives.abort();
    }
}

/// An end that all workers share.
pub(crate) fn shared<T: ?Sized>(end: Box<T>) -> Arc<Mutex<Box<T>>> {
    Arc::new(Mutex::new(end))
}
