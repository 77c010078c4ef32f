//! A worker: a thread with nodes, sources and flows of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use sinew_control::tap::TapSocket;
use sinew_core::board::FaultAt;
use sinew_core::fault::{Cause, Fault};
use sinew_core::panics;
use sinew_core::refusal::Refusal;
use sinew_spec::plan::Node;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::across::caller::{Caller, Callers, stand_in};
use crate::at_work::AtWork;
use crate::crew::shared::{Graph, Order, Parts, Preparation, Shared, at, refused};
use crate::crew::sources::Sources;
use crate::path::program::Base;
use crate::path::run::taps::serve::serve;
use crate::tell::Teller;
use crate::{Figures, NodeContext, Program, make};

/// How often an idle worker gives a sign of life, and how often the crew looks for one. A busy
/// worker gives one at the end of every stretch of work.
pub(crate) const BEAT: Duration = Duration::from_millis(100);

/// Of the time that a domain has for its stop, flows get this part to end by themselves.
const PATIENCE: f64 = 0.65;
/// In this further part the remaining flows end with an error, which is answered. The rest of the
/// time is for nodes and threads to end in order, before the supervisor kills them.
const PATIENCE_AFTER: f64 = 0.1;

/// What a worker is made of.
pub(crate) struct Post {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) parts: Parts,
    pub(crate) figures: Arc<Figures>,
    pub(crate) teller: Teller,
    pub(crate) at_work: AtWork,
}

impl Post {
    /// A worker's whole life. A panic outside any node is the domain's fault.
    pub(crate) fn run(
        self,
        made: mpsc::Sender<Result<(), FaultAt>>,
        orders: UnboundedReceiver<Order>,
    ) {
        let halt = Arc::clone(&self.shared.setup.halt);
        if catch_unwind(AssertUnwindSafe(|| self.work(made, orders))).is_err() {
            halt.fault(at(None, panics::take()));
        }
    }

    fn work(self, made: mpsc::Sender<Result<(), FaultAt>>, mut orders: UnboundedReceiver<Order>) {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| {
            at(None, Fault::new(Cause::System, format_args!("cannot start a worker: {error}")))
        });
        let callers = self.callers();
        let begun = runtime.and_then(|runtime| {
            let callers = callers?;
            let base = self.base(&callers);
            let program = self.program(&self.shared.graph, &base);
            let refused = |(node, refusals): (usize, Vec<_>)| refused(node, &refusals);
            Ok((runtime, callers, program.map_err(refused)?))
        });
        let (runtime, callers, program) = match begun {
            Ok(made) => made,
            Err(fault) => {
                // The receiver is there until every worker has reported.
                let _ = made.send(Err(fault));
                return;
            }
        };
        let _ = made.send(Ok(()));
        // The crew waits until every sender is dropped.
        drop(made);
        runtime.block_on(self.serve(Rc::new(program), &callers, &mut orders));
    }

    fn base(&self, callers: &Callers) -> Base {
        let number = (self.number, self.shared.setup.workers);
        let (figures, at_work) = (Arc::clone(&self.figures), self.at_work.clone());
        let mut base = Base::new(number, self.shared.clock, figures, self.teller.clone(), at_work);
        base.supervisor = self.shared.setup.supervisor.clone();
        base.stand_in = stand_in(callers);
        base.is_looked_at = self.shared.taps.begin_here();
        base
    }

    /// What calls other domains for this worker.
    fn callers(&self) -> Result<Callers, FaultAt> {
        let Shared { graph, setup, .. } = &*self.shared;
        let caller = |(domain, door): (&usize, &OwnedFd)| {
            let name = &graph.plan.domains[*domain].name;
            let door = door.try_clone().map_err(no_door)?;
            Ok((*domain, Rc::new(Caller::new(name, door, self.teller.clone()))))
        };
        setup.calls.iter().map(caller).collect()
    }

    fn program(&self, graph: &Graph, base: &Base) -> Result<Program, (usize, Vec<Refusal>)> {
        let shared = &*self.shared;
        let site = |node| self.site(graph, node);
        make::program(
            &graph.plan,
            &graph.nodes,
            &shared.setup.table,
            &shared.setup.spec.base,
            base,
            site,
        )
    }

    fn site(&self, graph: &Graph, node: usize) -> NodeContext {
        let shared = &*self.shared;
        let Node { name, kind, .. } = &graph.plan.nodes[node];
        let ports = 0..kind.ports.len();
        // A node that an edit added has no link to the core.
        let born = shared.born(name);
        let end = |port| born.map(|born| (born, port));
        NodeContext {
            node,
            worker: self.number,
            workers: shared.setup.workers,
            pool: shared.pool.clone(),
            inputs: ports
                .clone()
                .map(|port| shared.setup.inputs.get(&end(port)?).cloned())
                .collect(),
            outputs: ports
                .map(|port| shared.setup.outputs.get(&end(port)?).cloned())
                .map(Option::unwrap_or_default)
                .collect(),
            born,
            supervisor: shared.setup.supervisor.clone(),
            resources: shared.resources.clone(),
            opened: Arc::clone(&graph.opened),
            plan: Arc::clone(&graph.plan),
        }
    }

    /// Serves from the first order until, after the last order, all flows have ended.
    async fn serve(
        mut self,
        program: Rc<Program>,
        callers: &Callers,
        orders: &mut UnboundedReceiver<Order>,
    ) {
        let Some(Order::Serve) = orders.recv().await else { return };
        let base = program.base.clone();
        let mut sources = Sources::new(program, Arc::clone(&self.shared));
        sources.begin(std::mem::take(&mut self.parts));
        callers.values().for_each(Caller::begin);
        for door in &self.shared.setup.called {
            match door.try_clone() {
                Ok(door) => sources.called().begin(door),
                Err(error) => base.teller.say(format_args!("{}", no_door(error).fault)),
            }
        }
        let lives = tokio::task::spawn_local(beat(self.at_work.clone()));
        let looks = self.serve_taps(&base);
        let mut next = None;
        loop {
            match orders.recv().await {
                Some(Order::Serve) => {}
                Some(Order::Prepare(preparation)) => next = self.prepare(preparation, &base),
                Some(Order::Withdraw) => next = None,
                Some(Order::Swap(answer)) => {
                    if let Some((program, Preparation { stay, parts, .. })) = next.take() {
                        // The crew waits for this answer, or is gone.
                        let _ = answer.send(sources.swap(Rc::new(program), &stay, parts));
                    }
                }
                // If the crew is gone, the worker stops too.
                Some(Order::Stop) | None => break,
            }
        }
        // Packets that people hold up go on.
        looks.into_iter().for_each(|looks| looks.abort());
        self.stop(&mut sources, &base).await;
        lives.abort();
    }

    /// Serves the people who look at packets of this run, if this is the first worker.
    fn serve_taps(&self, base: &Base) -> Option<JoinHandle<()>> {
        let Shared { setup, taps, .. } = &*self.shared;
        if self.number > 0 || setup.supervisor.is_none() || setup.lens.is_none() {
            return None;
        }
        let (taps, figures) = (Arc::clone(taps), Arc::clone(&self.figures));
        let teller = base.teller.clone();
        Some(tokio::task::spawn_local(async move {
            let served = async { serve(TapSocket::open()?, taps, figures).await };
            if let Err(error) = served.await {
                teller.say(format_args!("'sinew tap' sees nothing here: {error}"));
            }
        }))
    }

    /// Lets all flows end. Those that take too long end with an error, so that their callers learn
    /// of the stop. Flows that do not end even then are dropped.
    async fn stop(&self, sources: &mut Sources, base: &Base) {
        let (program, number) = (Rc::clone(sources.program()), self.number);
        let mut ended = pin!(sources.end());
        let patience = |part| self.shared.setup.stop_deadline.mul_f64(part);
        if timeout(patience(PATIENCE), &mut ended).await.is_ok() {
            return;
        }
        let (count, waited) = (program.flows(), patience(PATIENCE));
        base.teller.say(format_args!(
            "worker {number}: {count} flows had not ended {waited:?} after the stop and end with \
             an error; give them a shorter deadline, or the domain a longer 'stop_deadline'"
        ));
        base.closing.begin();
        if timeout(patience(PATIENCE_AFTER), ended).await.is_err() {
            let count = program.flows();
            base.teller.say(format_args!("worker {number}: {count} flows are cancelled"));
        }
    }

    /// Makes the nodes of an edited graph, and says whether that went well.
    fn prepare(
        &self,
        preparation: Box<Preparation>,
        base: &Base,
    ) -> Option<(Program, Preparation)> {
        let Graph { plan, .. } = &preparation.graph;
        let made = self.program(&preparation.graph, base).map_err(|(node, refusals)| {
            let (name, fault) = (&plan.nodes[node].name, refused(node, &refusals).fault);
            format!("node '{name}': {fault}")
        });
        let (program, said) = match made {
            Ok(program) => (Some(program), Ok(())),
            Err(text) => (None, Err(text)),
        };
        // An error means that the edit's thread has stopped waiting, or is gone; then the edit is
        // withdrawn.
        let _ = preparation.answer.send(said);
        program.map(|program| (program, *preparation))
    }
}

fn no_door(error: io::Error) -> FaultAt {
    at(None, Fault::new(Cause::System, format_args!("cannot open a door to a domain: {error}")))
}

/// Gives a sign of life, also when there is nothing to do.
async fn beat(at_work: AtWork) {
    loop {
        at_work.end();
        sleep(BEAT).await;
    }
}
