//! `batch`: sends packets of several flows on as one list.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Beginning, Error, FLOW, FlowEntry, FlowLimits, FlowNode, Make, NodeContext, OwnFlow, Reply,
    Step, Value, error, input, output,
};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::spawn_local;
use tokio::time::timeout_at;

use super::LIMIT_NS_MAX;
use super::for_each::ELEMENT_WORK;
use crate::script::expression::{Expression, Scope};
use crate::script::refused_for_now;
use crate::work::{WORK_MAX, limits};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "batch",
    doc: "Collects packets of all flows of its worker, and of all branches of one, and sends them \
          to 'out' as one list, in the order in which they came: as soon as there are enough of \
          them, by count or bytes, or the first has waited long enough. The reply to the list, or \
          its error, is the answer to each packet. The list has a flow of its own, with its own \
          time and work: a packet whose flow ends before that is taken out, and the others go on.",
    ports: &[
        input("in", "A packet."),
        error(),
        output("out", "A list of packets; one, if no more came."),
    ],
    parameters: &[
        Parameter::new("count_max", ParameterType::Integer { min: 1, max: 100_000 })
            .or("1000")
            .doc("A list of this many packets is sent at once."),
        Parameter::new("size_max", ParameterType::Size { min_bytes: 1 << 10, max_bytes: 64 << 20 })
            .or("1MiB")
            .doc("Most bytes of a list. A packet with more is an error (413)."),
        Parameter::new("wait_max", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("10ms")
            .doc("How long the first packet waits for others."),
        Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 }).or("1").doc(
            "Most lists that are under way at once, in all workers. Meanwhile packets are \
             collected.",
        ),
        Parameter::new("waiting_max", ParameterType::Integer { min: 1, max: 1_000_000 })
            .or("10000")
            .doc("Most packets that wait, in all workers; one more fails with status 503."),
        Parameter::new("reply", ParameterType::Choice(&["whole", "each"])).or("whole").doc(
            "whole: each packet gets the reply to the list. each: the reply is a list with one \
             for each packet, in their order, null for nothing.",
        ),
        Parameter::new("halve_when", ParameterType::Yaml).or("false").doc(
            "Which errors come from some packets alone, as an expression (CEL) over 'error' \
             ({error, status, node}) and 'packet', the list. Then both halves of the list are sent \
             again, one after the other, and so on down to one packet. The nodes behind 'out' must \
             undo what they did for a list that fails.",
        ),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: LIMIT_NS_MAX },
        )
        .or("30s")
        .doc("Longest that a list may take, its halves included."),
        WORK_MAX,
    ],
    ..FLOW
};

const OUT: usize = 2;

/// About how many bytes a value takes beside its text or bytes.
const VALUE_SIZE: u64 = 16;

struct Batch {
    waiting_max: usize,
    size_max: u64,
    /// Packets that wait, in all workers.
    waiting: Arc<AtomicUsize>,
    gathering: Rc<Gathering>,
}

/// The waiting packets of a worker, and how they are sent.
struct Gathering {
    count_max: usize,
    size_max: u64,
    wait_max: Duration,
    limits: FlowLimits,
    is_each: bool,
    halve_when: Expression,
    /// Permits for lists that may be under way, in all workers.
    room: Arc<Semaphore>,
    line: RefCell<Waiting>,
    /// Whether `serve` runs for the line.
    is_served: Cell<bool>,
    is_full: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Sorted by their numbers, which rise.
    members: VecDeque<Member>,
    size: u64,
    next: u64,
}

/// A packet, and the flow that waits for its reply.
struct Member {
    number: u64,
    packet: Value,
    size: u64,
    came: Instant,
    answer: oneshot::Sender<Reply>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let halve_when = Expression::of(parameters.yaml("halve_when"), &["error"])?;
    let size_max = parameters.size("size_max");
    let gathering = Gathering {
        count_max: parameters.integer("count_max") as usize,
        size_max,
        wait_max: parameters.duration("wait_max"),
        limits: limits(parameters),
        is_each: parameters.text("reply") == "each",
        halve_when,
        room: Arc::new(Semaphore::new(parameters.integer("concurrency") as usize)),
        line: RefCell::default(),
        is_served: Cell::new(false),
        is_full: Notify::new(),
    };
    let waiting_max = parameters.integer("waiting_max") as usize;
    let (waiting, gathering) = (Arc::default(), Rc::new(gathering));
    Ok(Box::new(Batch { waiting_max, size_max, waiting, gathering }))
}

impl FlowNode for Batch {
    fn attach(&mut self, site: &NodeContext) {
        self.waiting = site.share(AtomicUsize::default);
        let gathering = Rc::get_mut(&mut self.gathering).expect("no packet has come yet");
        let permits = gathering.room.available_permits();
        // After an edit that changes this number, the lists of the old graph have permits of their
        // own.
        let key = format!("{} {permits}", site.plan.nodes[site.node].name);
        gathering.room = site.resources.share(&key, || Semaphore::new(permits));
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.enter(at, &packet) {
            Ok(place) => Step::wait(place.answer()),
            Err(error) => Step::Fail(error),
        }
    }
}

impl Batch {
    /// Puts a packet in line, and starts `serve` if it does not run.
    fn enter(&self, at: At<'_>, packet: &Value) -> Result<InBatch<'_>, Error> {
        if at.is_within() {
            return Err(Error::new(
                "a packet within a transaction cannot go on with those of others; put the \
                 transaction behind 'out'",
            ));
        }
        at.flow().spend(ELEMENT_WORK)?;
        // Resolved here, so that a malformed packet fails alone and not the whole list.
        let packet = match packet {
            Value::Document(_) => at.flow().resolve(packet)?,
            other => other.clone(),
        };
        let size = size(&packet);
        if size > self.size_max {
            let text =
                format!("a packet of {size} bytes, at most {}; raise size_max", self.size_max);
            return Err(Error::new(text).with_status(413));
        }
        // Relaxed: it is a count, and orders nothing.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.waiting_max {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let max = self.waiting_max;
            let what = format!("{max} packets wait already; raise 'waiting_max'");
            return Err(refused_for_now(503, what, 1));
        }
        let (answer, answered) = oneshot::channel();
        let number = self.gathering.push(packet, size, answer);
        if !self.gathering.is_served.replace(true) {
            spawn_local(Rc::clone(&self.gathering).serve(at.beginning()));
        }
        Ok(InBatch { batch: self, number, answered: Some(answered) })
    }
}

/// A packet's place, in line or in a list. The packet leaves it when this is dropped.
struct InBatch<'a> {
    batch: &'a Batch,
    number: u64,
    answered: Option<oneshot::Receiver<Reply>>,
}

impl<'a> InBatch<'a> {
    async fn answer(mut self) -> Step<'a> {
        let answered = self.answered.take().expect("it waits once");
        let gone = |_| Err(Error::new("its list has ended without a reply"));
        Step::answer(answered.await.unwrap_or_else(gone))
    }
}

impl Drop for InBatch<'_> {
    fn drop(&mut self) {
        // Relaxed: as in `enter`.
        self.batch.waiting.fetch_sub(1, Ordering::Relaxed);
        self.batch.gathering.remove(self.number);
    }
}

impl Gathering {
    fn push(&self, packet: Value, size: u64, answer: oneshot::Sender<Reply>) -> u64 {
        let mut line = self.line.borrow_mut();
        let number = line.next;
        line.next += 1;
        line.size += size;
        line.members.push_back(Member { number, packet, size, came: Instant::now(), answer });
        if self.is_full(&line) {
            self.is_full.notify_one();
        }
        number
    }

    fn remove(&self, number: u64) {
        let mut line = self.line.borrow_mut();
        if let Ok(at) = line.members.binary_search_by_key(&number, |member| member.number) {
            let member = line.members.remove(at);
            line.size -= member.map_or(0, |member| member.size);
        }
    }

    fn is_full(&self, line: &Waiting) -> bool {
        line.members.len() >= self.count_max || line.size >= self.size_max
    }

    /// Sends the waiting packets, list by list, until none waits.
    async fn serve(self: Rc<Self>, beginning: Beginning) {
        // Its drop also runs if the runtime ends in the middle.
        let _served = Served(&self);
        while !self.line.borrow().members.is_empty() {
            self.wait().await;
            // More packets may come during this wait.
            let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else { return };
            let members = self.take();
            if members.is_empty() {
                continue;
            }
            let (this, beginning) = (Rc::clone(&self), beginning.clone());
            spawn_local(async move {
                this.send(&beginning, members).await;
                drop(permit);
            });
        }
    }

    /// Waits until a list is full, or the first packet has waited for `wait_max`, or no packet is
    /// left.
    async fn wait(&self) {
        loop {
            let until = {
                let line = self.line.borrow();
                let Some(first) = line.members.front() else { return };
                if self.is_full(&line) {
                    return;
                }
                first.came + self.wait_max
            };
            if until <= Instant::now() {
                return;
            }
            // Looks again after either.
            let _ = timeout_at(until.into(), self.is_full.notified()).await;
        }
    }

    /// Takes the next list: as many packets as it may have.
    fn take(&self) -> Vec<Member> {
        let mut line = self.line.borrow_mut();
        let (mut members, mut size) = (Vec::new(), 0);
        while members.len() < self.count_max
            && let Some(next) = line.members.pop_front_if(|next| size + next.size <= self.size_max)
        {
            size += next.size;
            members.push(next);
        }
        line.size -= size;
        members
    }

    /// Sends a list; sends it again in halves if the error calls for that.
    async fn send(&self, beginning: &Beginning, members: Vec<Member>) {
        let flow = match beginning.begin(self.limits) {
            Ok(flow) => flow,
            Err(error) => return self.answer(None, members, Err(error)),
        };
        let mut parts = vec![members];
        while let Some(mut members) = parts.pop() {
            members.retain(|member| !member.answer.is_closed());
            if members.is_empty() {
                continue;
            }
            let packet = Value::list(members.iter().map(|member| member.packet.clone()));
            let reply = flow.send(OUT, packet.clone()).await;
            let is_halved = match &reply {
                Err(error) if members.len() > 1 => self.is_halved(&flow, &packet, error),
                _ => Ok(false),
            };
            match is_halved {
                Ok(true) => {
                    parts.push(members.split_off(members.len() / 2));
                    parts.push(members);
                }
                Ok(false) => self.answer(Some(&flow), members, reply),
                Err(error) => self.answer(Some(&flow), members, Err(error)),
            }
        }
    }

    fn is_halved(&self, flow: &OwnFlow, packet: &Value, error: &Error) -> Result<bool, Error> {
        let flow = flow.flow();
        // If the deadline has passed, there is no time left for the halves.
        if flow.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(false);
        }
        let also = [&error.to_value()];
        self.halve_when.holds(Scope { flow: Some(flow), packet, also: &also })
    }

    /// Gives the reply to the flows that still wait.
    fn answer(&self, flow: Option<&OwnFlow>, members: Vec<Member>, reply: Reply) {
        let count = members.len();
        let own = match &reply {
            Ok(reply) if self.is_each => match reply {
                Some(Value::List(own)) if own.len() == count => Ok(Some(own)),
                other => Err(wrong_reply(count, other.as_ref())),
            },
            Ok(_) => Ok(None),
            Err(error) => Err(error.clone()),
        };
        let mut is_heard = false;
        for (at, member) in members.into_iter().enumerate() {
            let said = match &own {
                Ok(Some(own)) => Ok(Some(own[at].clone()).filter(|own| *own != Value::Null)),
                Ok(None) => reply.clone(),
                Err(error) => Err(error.clone()),
            };
            is_heard |= member.answer.send(said).is_ok();
        }
        if let (Err(error), Some(flow), false) = (&own, flow, is_heard) {
            flow.tell(error);
        }
    }
}

/// When dropped, says that `serve` no longer runs for the line.
struct Served<'a>(&'a Gathering);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.is_served.set(false);
    }
}

#[cold]
fn wrong_reply(count: usize, reply: Option<&Value>) -> Error {
    let came = match reply {
        Some(Value::List(items)) => format!("a list of {}", items.len()),
        other => other.map_or("nothing", Value::sort).to_owned(),
    };
    Error::new(format_args!(
        "the reply to {count} packets is {came}, not a list with one for each; give one, or write \
         reply: whole"
    ))
}

/// About how many bytes a value takes in memory.
fn size(value: &Value) -> u64 {
    VALUE_SIZE
        + match value {
            Value::Text(text) => text.len() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(items) => items.iter().map(size).sum(),
            Value::Map(map) => map.iter().map(|(key, value)| key.len() as u64 + size(value)).sum(),
            _ => 0,
        }
}

#[cfg(test)]
mod tests;
