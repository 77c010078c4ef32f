//! How nodes ask the supervisor: on a thread for what blocks, for each question crosses a socket.

use std::time::{Duration, Instant};

use sinew_control::Supervisor;
use sinew_control::status::{Phase, Status, StopStatus};
use sinew_control::{Answer, Request};
use sinew_core::Fault;
use sinew_flow::{At, Error, Value};
use tokio::time::sleep;

use super::{shown, unavailable};

/// Whether a question may wait behind other work that blocks.
#[derive(Clone, Copy)]
pub(super) enum Rank {
    /// It has a place of its own, before all others: what ends a run or starts it again.
    First,
    /// It waits like any other work.
    Ordinary,
}

/// How often the supervisor is asked whether what was ordered has come about.
const LOOK: Duration = Duration::from_millis(10);

/// The supervisor, if there is one: a test has none.
///
/// # Errors
/// There is none.
pub(super) fn of(supervisor: &Option<Supervisor>) -> Result<&Supervisor, Error> {
    supervisor.as_ref().ok_or_else(|| unavailable("no core runs here"))
}

/// The run as it is now.
///
/// # Errors
/// The supervisor does not answer.
pub(super) async fn status(
    at: At<'_>,
    supervisor: &Supervisor,
    rank: Rank,
) -> Result<Status, Error> {
    let supervisor = supervisor.clone();
    let ask = move || supervisor.status();
    let answer = match rank {
        Rank::First => at.block_first(ask).await?,
        Rank::Ordinary => at.block(ask).await?,
    };
    answer.map_err(silent)
}

/// Gives an order, before all other work.
///
/// # Errors
/// The supervisor refuses (409) or does not answer.
pub(super) async fn order(
    at: At<'_>,
    supervisor: &Supervisor,
    request: Request,
) -> Result<(), Error> {
    let supervisor = supervisor.clone();
    match at.block_first(move || supervisor.ask(&request)).await?.map_err(silent)? {
        Answer::Done { .. } => Ok(()),
        Answer::Error(text) => {
            let error = shown(&text);
            Err(Error::new(text).with_status(409).with_shown(error))
        }
        other => Err(Error::new(format_args!("the supervisor answered {other:?}"))),
    }
}

/// Waits until the run is as `is_reached` says.
///
/// # Errors
/// That is not so within `limit` (504); the supervisor does not answer.
pub(super) async fn reached(
    at: At<'_>,
    supervisor: &Supervisor,
    limit: Duration,
    is_reached: impl Fn(&Status) -> bool,
) -> Result<Status, Error> {
    let until = Instant::now() + limit;
    loop {
        let status = status(at, supervisor, Rank::First).await?;
        if is_reached(&status) {
            return Ok(status);
        }
        if Instant::now() >= until {
            let text = format!("the core is {} after {limit:?}; it goes on", status.phase);
            let error = shown(&text);
            return Err(Error::new(text).with_status(504).with_shown(error));
        }
        sleep(LOOK).await;
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
