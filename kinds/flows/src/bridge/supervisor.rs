//! How nodes ask the supervisor: on a thread for blocking work, because each question crosses a
//! socket.

use std::time::{Duration, Instant};

use sinew_control::status::{Phase, Status, StopStatus};
use sinew_control::{Answer, Request, Supervisor};
use sinew_core::{Fault, Made};
use sinew_flow::{Ahead, At, Error, FlowNode, NodeContext, Step, Value};
use tokio::time::sleep;

use super::{refused, unavailable};

/// Whether a question may wait behind other work that blocks.
#[derive(Clone, Copy)]
pub(super) enum Rank {
    /// It goes before all other work, in a queue of its own; for what ends a run or starts it
    /// again.
    First,
    /// It waits like any other work.
    Ordinary,
}

/// How often the supervisor is asked whether an order is carried out.
const LOOK: Duration = Duration::from_millis(10);

/// The output of these kinds, by index of their tables.
const OUT: usize = 1;

/// A question of a node to the supervisor.
pub(super) trait Ask: 'static {
    /// The answer, which is passed on.
    async fn ask(&self, run: Run<'_>, packet: &Value) -> Result<Value, Error>;
}

/// A node that asks the supervisor.
struct Asks<A> {
    ask: A,
    supervisor: Option<Supervisor>,
    holds: bool,
}

/// Makes a node that asks this.
pub(super) fn asks(ask: impl Ask) -> Made<dyn FlowNode> {
    Ok(Box::new(Asks { ask, supervisor: None, holds: false }))
}

impl<A: Ask> FlowNode for Asks<A> {
    fn attach(&mut self, site: &NodeContext) {
        self.supervisor = site.supervisor.clone();
        self.holds = site.plan.hold;
    }

    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Reserved
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let run = Run { at, supervisor: self.supervisor.as_ref(), holds: self.holds };
        Step::wait(async move { Step::pass(OUT, self.ask.ask(run, &packet).await) })
    }
}

/// The run, as a node that asks sees it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) at: At<'a>,
    /// `None` in a test.
    supervisor: Option<&'a Supervisor>,
    /// Whether the graph says 'hold: true'.
    pub(super) holds: bool,
}

impl Run<'_> {
    fn supervisor(self) -> Result<Supervisor, Error> {
        self.supervisor.cloned().ok_or_else(|| unavailable("no core runs here"))
    }

    /// The status of the run now.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub(super) async fn status(self, rank: Rank) -> Result<Status, Error> {
        let supervisor = self.supervisor()?;
        let ask = move || supervisor.status();
        let answer = match rank {
            Rank::First => self.at.pool().run_first(ask).await?,
            Rank::Ordinary => self.at.pool().run(ask).await?,
        };
        answer.map_err(silent)
    }

    /// Gives an order. It goes before all other work.
    ///
    /// # Errors
    /// The supervisor refuses (409) or does not answer.
    pub(super) async fn order(self, request: Request) -> Result<(), Error> {
        match self.ask(request).await? {
            Answer::Done { .. } => Ok(()),
            other => Err(Error::new(format_args!("the supervisor answered {other:?}"))),
        }
    }

    /// Asks a question. It goes before all other work.
    ///
    /// # Errors
    /// As for [`Run::order`].
    pub(super) async fn ask(self, request: Request) -> Result<Answer, Error> {
        let supervisor = self.supervisor()?;
        match self.at.pool().run_first(move || supervisor.ask(&request)).await?.map_err(silent)? {
            Answer::Error(text) => Err(refused(409, text)),
            answer => Ok(answer),
        }
    }

    /// Waits until the status is as `is_reached` says.
    ///
    /// # Errors
    /// The status is not reached within `limit` (504); or the supervisor does not answer.
    pub(super) async fn reached(
        self,
        limit: Duration,
        is_reached: impl Fn(&Status) -> bool,
    ) -> Result<Status, Error> {
        let until = Instant::now() + limit;
        loop {
            let status = self.status(Rank::First).await?;
            if is_reached(&status) {
                return Ok(status);
            }
            if Instant::now() >= until {
                let text = format!("the core is {} after {limit:?}; it goes on", status.phase);
                return Err(refused(504, text));
            }
            sleep(LOOK).await;
        }
    }
}

/// The core and its last stop, as `status`, `halt` and `reset` answer.
pub(super) fn core(status: &Status) -> Value {
    Value::map([("phase", phase(status.phase)), ("stop", stop(status.stop.as_ref()))])
}

/// A phase by its word.
pub(super) fn phase(phase: Phase) -> Value {
    Value::text(phase.word())
}

/// A stop of the core in figures.
pub(super) fn stop(stop: Option<&StopStatus>) -> Value {
    let Some(stop) = stop else { return Value::Null };
    let us = |us: Option<i64>| us.map_or(Value::Null, Value::Integer);
    Value::map([
        ("reason", Value::text(stop.reason.clone())),
        ("safe_output_us", us(stop.safe_output_us)),
        ("at_rest_us", us(stop.at_rest_us)),
    ])
}

fn silent(fault: Fault) -> Error {
    Error::new(fault).with_status(503)
}
