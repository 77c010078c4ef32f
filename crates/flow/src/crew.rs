//! The crew of a domain: its workers, and the thread that watches them.

pub(crate) mod reload;
pub(crate) mod shared;
pub(crate) mod sources;
pub(crate) mod tally;
pub(crate) mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sinew_control::counters::BEATS;
use sinew_core::board::{Board, DomainOrder as Orders, FaultAt};
use sinew_core::clock::Clock;
use sinew_core::fault::{Cause, Fault};
use sinew_core::halt::Halt;
use sinew_core::sys::Region;
use sinew_link::counter;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::at_work::{AtWork, NOBODY};
use crate::crew::reload::Reload;
use crate::crew::shared::{Graph, Order, Setup, Shared, at};
use crate::crew::sources::{HeldBy, OpenSources};
use crate::crew::tally::Tally;
use crate::crew::worker::{BEAT, Post};
use crate::path::run::taps::Taps;
use crate::resource::Resources;
use crate::tell::Told;
use crate::{Figures, Pool, make, spans};

/// By this part of the time that a domain has for its stop, the last spans must be sent.
const PATIENCE_IN_ALL: f64 = 0.9;

/// The workers of a domain's flows.
pub struct Crew {
    workers: Vec<Worker>,
    /// The counters of each node, by index of the plan.
    counters: Vec<(usize, counter::Writer<Region>)>,
    told: Told,
    tally: Tally,
    reload: Reload,
    stop_deadline: Duration,
}

/// A worker, from outside.
struct Worker {
    thread: JoinHandle<()>,
    orders: UnboundedSender<Order>,
    at_work: AtWork,
    /// How many stretches of its work had ended at the last look.
    seen: u32,
    keeper: Keeper,
}

/// Which nodes have had a packet since a worker's last sign of life, as far as the crew's looks
/// have found.
#[derive(Clone, Copy)]
enum Keeper {
    Nobody,
    /// Only this node, by index of the plan of the start.
    Node(u32),
    /// More than one node, so the packet was passed on or given back: no single node keeps the
    /// worker, though the flow may.
    Several,
}

impl Crew {
    /// Opens all sources and makes all nodes, each with its counters; flows begin with
    /// [`Crew::serve`].
    pub fn open(setup: Setup, counters: Vec<counter::Writer<Region>>) -> Result<Crew, FaultAt> {
        spans::begin(&setup.plan, setup.domain)
            .map_err(|error| at(None, Fault::new(Cause::System, format_args!("{error}"))))?;
        let (pool, keeper) = Pool::start_kept(setup.blocking).map_err(no_thread)?;
        let resources = Resources::default();
        let (plan, nodes) = (Arc::clone(&setup.plan), Arc::from(&*setup.nodes));
        let opened = make::resources(&plan, &nodes, &setup.table, &setup.spec.base, &resources);
        let opened = opened.map_err(|(node, fault)| at(Some(node), fault))?;
        let taps = Arc::new(Taps::new(&plan, setup.lens));
        let shared = Arc::new(Shared {
            taps,
            graph: Graph { plan, nodes, opened },
            resources,
            pool,
            clock: Clock::calibrate(),
            setup,
        });
        let opened = sources::open(&shared, &shared.graph, |_| true, &HeldBy::new());
        let in_node = |(node, fault)| at(Some(node), fault);
        let OpenSources { parts, held, addresses } = opened.map_err(in_node)?;
        sources::announce(&shared, addresses).map_err(in_node)?;
        let mut told = Told::new();
        let (sender, made) = mpsc::channel();
        let (mut workers, mut counted) = (Vec::new(), Vec::new());
        for (number, parts) in parts.into_iter().enumerate() {
            let (figures, at_work) = (Arc::<Figures>::default(), AtWork::new());
            counted.push(Arc::clone(&figures));
            let post = Post {
                number,
                shared: Arc::clone(&shared),
                parts,
                figures,
                teller: told.teller(),
                at_work: at_work.clone(),
            };
            let (orders, receiver) = unbounded_channel();
            let sender = sender.clone();
            let thread = thread::Builder::new().name(format!("flows/{number}"));
            let thread = thread.spawn(move || post.run(sender, receiver)).map_err(no_thread)?;
            workers.push(Worker { thread, orders, at_work, seen: 0, keeper: Keeper::Nobody });
        }
        drop(sender);
        // Each worker reports once. The first one that cannot begin is the domain's fault.
        made.iter().collect::<Result<(), FaultAt>>()?;
        let tally = Tally::new(counted, keeper, shared.clock, shared.setup.supervisor.clone());
        let orders = workers.iter().map(|worker: &Worker| worker.orders.clone()).collect();
        let counters = shared.graph.nodes.iter().copied().zip(counters).collect();
        let stop_deadline = shared.setup.stop_deadline;
        let reload = Reload::new(shared, orders, held);
        Ok(Crew { workers, counters, told, tally, reload, stop_deadline })
    }

    /// Lets flows begin until the domain is to stop. Returns when those that have begun have ended,
    /// or the time for that is over.
    pub fn serve(mut self, board: &Board, halt: &Halt) {
        self.order(|| Order::Serve);
        while !halt.is_stopping() {
            self.beat();
            self.told.write();
            self.tally.tell_in_time();
            self.reload.look(board);
            board.sleep_while(Orders::Run, BEAT.as_nanos() as u64);
        }
        let until = Instant::now() + self.stop_deadline.mul_f64(PATIENCE_IN_ALL);
        self.reload.end();
        self.order(|| Order::Stop);
        for worker in self.workers {
            // A worker that panicked has already reported it.
            let _ = worker.thread.join();
        }
        self.told.write();
        self.tally.tell();
        spans::end(until);
    }

    fn order(&self, order: impl Fn() -> Order) {
        for worker in &self.workers {
            // A worker that is gone has already said why.
            let _ = worker.orders.send(order());
        }
    }

    /// Gives all nodes a heartbeat if all workers live. A node that keeps a worker gets none, so
    /// the supervisor knows which node hangs. If a worker hangs and the node is unknown, no node
    /// gets one.
    fn beat(&mut self) {
        let mut keepers = Vec::new();
        for worker in &mut self.workers {
            match worker.look() {
                None => {}
                Some(Keeper::Node(node)) => keepers.push(node as usize),
                Some(_) => return,
            }
        }
        for (node, counters) in &mut self.counters {
            if !keepers.contains(node) {
                counters.add(BEATS, 1);
            }
        }
    }
}

impl Worker {
    /// Which node keeps the worker; `None` if it has given a sign of life since the last look.
    fn look(&mut self) -> Option<Keeper> {
        let (ended, node) = self.at_work.look();
        if ended != self.seen {
            (self.seen, self.keeper) = (ended, Keeper::Nobody);
            return None;
        }
        self.keeper = match self.keeper {
            Keeper::Nobody if node == NOBODY => Keeper::Nobody,
            Keeper::Nobody => Keeper::Node(node),
            Keeper::Node(keeper) if keeper == node => Keeper::Node(node),
            Keeper::Node(_) | Keeper::Several => Keeper::Several,
        };
        Some(self.keeper)
    }
}

fn no_thread(error: io::Error) -> FaultAt {
    at(None, Fault::new(Cause::System, format_args!("cannot start a thread: {error}")))
}
