//! A worker: a thread with nodes, sources and flows of its own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use sinew_spec::plan::Plan;
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

use super::program::Base;
use super::tell::Voice;
use super::{
    Figures, MessageInput, MessageOutput, Opened, Outlet, Pool, Program, Site, Stop, make,
};
use crate::board::FaultAt;
use crate::clock::Clock;
use crate::fault::{Cause, Fault};
use crate::halt::Halt;
use crate::node::NodeEntry;
use crate::panics;
use crate::refusal::Refusal;
use crate::watch::Supervisor;

/// How often a worker says that it lives, and the crew looks whether it does.
pub(super) const BEAT: Duration = Duration::from_millis(100);

/// What a worker is told.
pub(super) enum Order {
    /// To let flows begin.
    Serve,
    /// To let none begin any more, and to end with those that have.
    Stop,
}

/// What sources have opened for one worker, each with its index of the plan.
pub(super) type Parts = Vec<(usize, Box<dyn Opened>)>;

/// What a worker is made of.
pub(super) struct Post {
    pub(super) number: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) parts: Parts,
    pub(super) figures: Arc<Figures>,
    pub(super) voice: Voice,
    pub(super) beats: Arc<AtomicU64>,
}

/// What all workers are made of.
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) nodes: Vec<usize>,
    pub(super) table: Vec<NodeEntry>,
    pub(super) folder: PathBuf,
    pub(super) workers: usize,
    pub(super) pool: Pool,
    pub(super) clock: Clock,
    pub(super) inputs: BTreeMap<(usize, usize), MessageInput>,
    pub(super) outputs: BTreeMap<(usize, usize), Vec<MessageOutput>>,
    pub(super) supervisor: Option<Supervisor>,
    pub(super) halt: Arc<Halt>,
    /// How long flows may go on after the stop.
    pub(super) patience: Duration,
}

impl Post {
    /// A worker's whole life. What it panics with outside of any node is the domain's fault.
    pub(super) fn run(
        self,
        made: &mpsc::Sender<Result<(), FaultAt>>,
        orders: UnboundedReceiver<Order>,
    ) {
        let halt = Arc::clone(&self.shared.halt);
        if catch_unwind(AssertUnwindSafe(|| self.work(made, orders))).is_err() {
            halt.fault(at(None, panics::take()));
        }
    }

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

    fn program(&self) -> Result<Program, FaultAt> {
        let shared = &*self.shared;
        let number = (self.number, shared.workers);
        let base = Base::new(number, shared.clock, Arc::clone(&self.figures), self.voice.teller());
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
        let shared = &*self.shared;
        let ports = 0..shared.plan.nodes[node].kind.ports.len();
        Site {
            node,
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

    /// Serves from the first order until all flows have ended after the last one.
    async fn serve(self, program: Rc<Program>, orders: &mut UnboundedReceiver<Order>) {
        let Some(Order::Serve) = orders.recv().await else { return };
        let (stopper, stop) = Stop::new();
        let mut serving = JoinSet::new();
        for (index, part) in self.parts {
            let name = &self.shared.plan.nodes[index].name;
            let place = program.find(name).expect("a source of this program");
            let outlet = Outlet::new(Rc::clone(&program), place);
            let halt = Arc::clone(&self.shared.halt);
            serving.spawn_local(serve_source(index, part, outlet, stop.clone(), halt));
        }
        let lives = tokio::task::spawn_local(beat(self.beats));
        // The only other order is to stop; a crew that is gone means the same.
        let _ = orders.recv().await;
        // Sources that have ended need not hear it.
        let _ = stopper.send(true);
        let ended = async {
            while serving.join_next().await.is_some() {}
            program.base.children.all_ended().await;
        };
        let patience = self.shared.patience;
        if timeout(patience, ended).await.is_err() {
            let (count, number) = (program.flows(), self.number);
            program.base.teller.say(format_args!(
                "worker {number}: {count} flows had not ended {patience:?} after the stop and are \
                 cancelled; give them a shorter deadline, or the domain a longer 'stop_deadline'"
            ));
        }
        lives.abort();
    }
}

/// A source's life in this worker. It ends in order only after the stop; all else is the domain's
/// fault, a panic too.
async fn serve_source(
    index: usize,
    part: Box<dyn Opened>,
    outlet: Outlet,
    stop: Stop,
    halt: Arc<Halt>,
) {
    let served = AssertUnwindSafe(async { part.serve(outlet, stop).await }).catch_unwind().await;
    if let Err(fault) = served.unwrap_or_else(|panic| Err(panics::take_or(&*panic))) {
        halt.fault(at(Some(index), fault));
    }
}

/// Says that the worker lives, as long as it comes to that.
async fn beat(beats: Arc<AtomicU64>) {
    loop {
        // Relaxed: a sign of life orders nothing; this worker alone gives it.
        beats.store(beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        sleep(BEAT).await;
    }
}

pub(super) fn at(node: Option<usize>, fault: Fault) -> FaultAt {
    FaultAt { fault, node, cycle: None }
}

pub(super) fn refused(node: usize, refusals: &[Refusal]) -> FaultAt {
    let first = refusals.first().map(ToString::to_string).unwrap_or_default();
    at(Some(node), Fault::new(Cause::Error, format_args!("{first}")))
}
