//! An edited graph in a domain's process. The crew prepares it on a thread of its own while flows
//! go on, and swaps it in or drops it when the supervisor says so. Until then no part of it serves.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew_control::status::cut;
use sinew_control::{Answer, Request, Spec, outside};
use sinew_core::board::{Board, Wish};
use sinew_spec::catalogue::ParameterValue;
use sinew_spec::plan::Node;
use sinew_spec::{Brought, SpecSource, compile, item_json};
use tokio::sync::mpsc::UnboundedSender;

use crate::crew::shared::{Graph, Order, Parts, Preparation, Shared};
use crate::crew::sources::{Addresses, HeldBy, OpenSources, announce, open};
use crate::make;

/// How long a worker may take to make its nodes: more than the supervisor waits.
const WORKER_WITHIN: Duration = Duration::from_secs(20);
/// How long to wait for the workers' answers. Workers swap at once unless something keeps them;
/// then their answers are taken at a later look.
const SWAP_WITHIN: Duration = Duration::from_millis(20);

/// The edits of a crew's graph.
pub(crate) struct Reload {
    maker: Maker,
    /// The newest edit that was looked at. `stage` says how far it is.
    number: u32,
    stage: Stage,
}

enum Stage {
    /// The edit was swapped in or dropped, or no edit has come yet.
    Over,
    /// A thread prepares it, and tells the supervisor the result.
    Preparing(JoinHandle<Option<Next>>),
    /// Workers that have swapped answer how many flows are still to end in the old graph.
    Swapping { answers: Receiver<u64>, missing: usize, flows: u64 },
}

/// What replaces the graph and what its sources hold.
struct Next {
    graph: Graph,
    held: HeldBy,
    addresses: Addresses,
}

impl Reload {
    /// No edit has come yet.
    pub(crate) fn new(
        shared: Arc<Shared>,
        workers: Vec<UnboundedSender<Order>>,
        held: HeldBy,
    ) -> Reload {
        let graph = shared.graph.clone();
        let maker = Maker { shared, workers, graph, held };
        Reload { maker, number: 0, stage: Stage::Over }
    }

    /// Does what the supervisor wishes. To be called again and again; never waits for long.
    pub(crate) fn look(&mut self, board: &Board) {
        let Some((number, wish)) = board.edition() else { return };
        let is_next = number != self.number;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over if is_next && wish == Wish::Prepare => self.prepare(number),
            Stage::Over => {}
            Stage::Preparing(thread) if !is_next && wish == Wish::Prepare => {
                self.stage = Stage::Preparing(thread);
            }
            // The thread has said that the edit is ready, and is about to end.
            Stage::Preparing(thread) if !is_next && wish == Wish::Swap => {
                match thread.join().ok().flatten() {
                    Some(next) => self.swap(next),
                    None => self.order(|| Order::Withdraw),
                }
            }
            Stage::Preparing(thread) if thread.is_finished() => self.order(|| Order::Withdraw),
            Stage::Preparing(thread) => self.stage = Stage::Preparing(thread),
            Stage::Swapping { answers, missing, flows } => self.count(answers, missing, flows),
        }
    }

    /// The domain stops: no source will take over what others hold.
    pub(crate) fn end(&mut self) {
        self.maker.held.clear();
    }

    fn prepare(&mut self, number: u32) {
        self.number = number;
        let maker = self.maker.clone();
        let thread = thread::Builder::new().name("edit".into());
        match thread.spawn(move || maker.prepare(number)) {
            Ok(thread) => self.stage = Stage::Preparing(thread),
            Err(error) => {
                self.maker.shared.say_prepared(number, Some(format!("no thread: {error}")))
            }
        }
    }

    fn swap(&mut self, next: Next) {
        let (sender, answers) = channel();
        self.order(|| Order::Swap(sender.clone()));
        drop(sender);
        (self.maker.graph, self.maker.held) = (next.graph, next.held);
        // An error means that the supervisor is gone; then this process ends soon.
        let _ = announce(&self.maker.shared, next.addresses);
        self.count(answers, self.maker.workers.len(), 0);
    }

    /// Takes the answers that are there, and tells the supervisor once all are there.
    fn count(&mut self, answers: Receiver<u64>, mut missing: usize, mut flows: u64) {
        while missing > 0
            && let Ok(more) = answers.recv_timeout(SWAP_WITHIN)
        {
            (missing, flows) = (missing - 1, flows + more);
        }
        if missing > 0 {
            self.stage = Stage::Swapping { answers, missing, flows };
            return;
        }
        self.maker.shared.tell(&Request::Swapped { number: self.number, flows });
    }

    fn order(&self, order: impl Fn() -> Order) {
        for worker in &self.maker.workers {
            // A worker that is gone has already said why.
            let _ = worker.send(order());
        }
    }
}

impl Shared {
    /// Tells the supervisor. If it is gone, this process ends soon.
    fn tell(&self, request: &Request) {
        if let Some(supervisor) = &self.setup.supervisor {
            let _ = supervisor.order(request);
        }
    }

    fn say_prepared(&self, number: u32, refused: Option<String>) {
        self.tell(&Request::Prepared { number, refused: refused.map(cut) });
    }
}

/// Makes all that an edited graph needs.
#[derive(Clone)]
struct Maker {
    shared: Arc<Shared>,
    workers: Vec<UnboundedSender<Order>>,
    graph: Graph,
    held: HeldBy,
}

impl Maker {
    fn prepare(self, number: u32) -> Option<Next> {
        let answer = self.shared.setup.supervisor.as_ref()?.ask(&Request::Edition {}).ok()?;
        let Answer::Edition { number: newest, text, touched, outside } = answer else {
            return None;
        };
        if newest != number {
            // This edit was already withdrawn.
            return None;
        }
        let (next, refused) = match self.make(&text, &touched, &outside) {
            Ok(next) => (Some(next), None),
            Err(text) => (None, Some(text)),
        };
        self.shared.say_prepared(number, refused);
        next
    }

    fn make(&self, text: &str, touched: &[String], outside: &[Brought]) -> Result<Next, String> {
        outside::know(outside);
        let graph = self.compile(text, outside)?;
        let old = |name: &str| {
            let mut nodes = self.graph.nodes.iter().map(|&node| &self.graph.plan.nodes[node]);
            nodes.find(|node| node.name == name)
        };
        let stays = |node: &Node| {
            !touched.contains(&node.name) && old(&node.name).is_some_and(|old| is_same(old, node))
        };
        let of_source = |node: &Node| (node.kind.name, node.name.clone());
        let nodes = graph.nodes.iter().map(|&node| &graph.plan.nodes[node]);
        let staying = nodes.filter(|node| self.held.contains_key(&of_source(node)) && stays(node));
        let staying: Vec<_> = staying.map(of_source).collect();
        let (mut held, gone): (HeldBy, HeldBy) =
            self.held.clone().into_iter().partition(|(source, _)| staying.contains(source));
        let opened = open(&self.shared, &graph, |node| !staying.contains(&of_source(node)), &gone);
        let OpenSources { parts, held: new, addresses } = opened
            .map_err(|(node, fault)| format!("node '{}': {fault}", graph.plan.nodes[node].name))?;
        held.extend(new);
        let stay: Arc<[String]> = staying.into_iter().map(|(_, name)| name).collect();
        self.prepare_workers(&graph, &stay, parts)?;
        Ok(Next { graph, held, addresses })
    }

    /// Compiles the text as the domain's process did at its start.
    fn compile(&self, text: &str, outside: &[Brought]) -> Result<Graph, String> {
        let spec = &self.shared.setup.spec;
        let Spec { file, overrides, images, host, .. } = spec;
        let host = host.as_deref();
        let source = SpecSource { overrides, images, outside, host, ..SpecSource::of(file, text) };
        let mut plan =
            compile(&source, &self.shared.setup.kinds, &spec.machine).map_err(|errors| {
                let first = errors.first().map_or("", |error| error.message.as_str());
                format!("the spec does not compile: {first}")
            })?;
        plan.leave_out_tests();
        let domain = plan.domains.get(self.shared.setup.domain).and_then(|domain| domain.service());
        let nodes = domain.map_or(&[][..], |service| &service.nodes);
        let nodes: Arc<[usize]> = nodes.iter().copied().filter(|&it| plan.is_flow(it)).collect();
        if nodes.is_empty() {
            return Err("the domain has no flow node left".into());
        }
        let (table, base) = (&self.shared.setup.table, &self.shared.setup.spec.base);
        let opened = make::resources(&plan, &nodes, table, base, &self.shared.resources);
        let opened =
            opened.map_err(|(node, fault)| format!("node '{}': {fault}", plan.nodes[node].name))?;
        Ok(Graph { plan: Arc::new(plan), nodes, opened })
    }

    fn prepare_workers(
        &self,
        graph: &Graph,
        stay: &Arc<[String]>,
        parts: Vec<Parts>,
    ) -> Result<(), String> {
        let (answer, answers) = channel();
        for (worker, parts) in self.workers.iter().zip(parts) {
            let (graph, stay, answer) = (graph.clone(), Arc::clone(stay), answer.clone());
            let preparation = Preparation { graph, stay, parts, answer };
            // A worker that is gone gives no answer, which the loop below notices.
            let _ = worker.send(Order::Prepare(Box::new(preparation)));
        }
        drop(answer);
        for _ in &self.workers {
            let made = answers.recv_timeout(WORKER_WITHIN);
            made.map_err(|_| "a worker does not answer".to_owned())??;
        }
        Ok(())
    }
}

/// Whether two flow nodes of one name have the same kind and parameter values, regardless of their
/// place in the text.
pub fn is_same(old: &Node, new: &Node) -> bool {
    let same_value = |(old, new): (&ParameterValue, &ParameterValue)| match (old, new) {
        (ParameterValue::Yaml(old), ParameterValue::Yaml(new)) => item_json(old) == item_json(new),
        _ => old == new,
    };
    old.kind.name == new.kind.name
        && old.values.len() == new.values.len()
        && old.values.iter().zip(&new.values).all(same_value)
}
