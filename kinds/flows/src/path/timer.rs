//! `timer`: begins flows at set times.

mod schedule;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use schedule::{Clock, Schedule};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Fault, Made, Parameters};
use sinew_flow::{
    FLOW, FlowEntry, FlowLimits, Local, Make, Opened, Outlet, Reply, Source, StopSignal, Value,
    output,
};

use super::LIMIT_NS_MAX;
use crate::work::{WORK_MAX, limits};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

static INFO: Kind = Kind {
    name: "timer",
    doc: "Begins a flow at regular intervals ('interval', by the monotonic clock) or at times of \
          the day ('cron', by the clock of day). Its packet is {time_ms, number, missed}: the time \
          since 1970, how many flows it has begun before, how many it has left out since the last. \
          Only the first worker runs it.",
    ports: &[output("out", "The packet.")],
    parameters: &[
        Parameter::new("interval", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("0s")
            .doc("From the beginning of one flow to the next. Either this or 'cron' is given."),
        Parameter::new("cron", ParameterType::Text).or("\"\"").doc(
            "Times as crontab(5) writes them, '30 6 * * MON-FRI', with seconds in front if \
             there are six fields.",
        ),
        Parameter::new("timezone", ParameterType::Text)
            .or("UTC")
            .doc("Time zone of 'cron', such as Europe/Berlin; the system must know it."),
        Parameter::new("overlap", ParameterType::Choice(&["skip", "queue", "allow"]))
            .or("skip")
            .doc(
                "If the last flow has not ended yet: leave this one out (skip), begin it after \
                 that, one at most (queue), or begin it now (allow).",
            ),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: LIMIT_NS_MAX },
        )
        .or("30s")
        .doc("Longest that a flow may take."),
        WORK_MAX,
    ],
    ..FLOW
};

const OUT: usize = 0;

/// Most flows under way with 'allow'; further ones are left out. Otherwise a timer that is faster
/// than its flows would grow without limit.
const OPEN_MAX: usize = 1000;

struct Timer {
    schedule: Schedule,
    /// Flows that may be under way.
    open_max: usize,
    /// Packets that may wait to begin.
    waiting_max: usize,
    limits: FlowLimits,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    let schedule = Schedule::new(parameters, Timestamp::now())?;
    let (open_max, waiting_max) = bounds(parameters.text("overlap"));
    let limits = limits(parameters);
    Ok(Box::new(Timer { schedule, open_max, waiting_max, limits }))
}

/// How many flows may be under way, and how many packets may wait to begin.
fn bounds(overlap: &str) -> (usize, usize) {
    match overlap {
        "skip" => (1, 0),
        "queue" => (1, 1),
        _ => (OPEN_MAX, 0),
    }
}

impl Source for Timer {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(vec![self])
    }
}

impl Opened for Timer {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        mut stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        async move {
            let mut clock = Clock::new(&self.schedule);
            let mut turns = Turns::new(&self, outlet);
            loop {
                tokio::select! {
                    biased;
                    () = stop.wait() => break,
                    Some(_) = turns.open.next() => turns.begin(),
                    passed = clock.next() => turns.come(passed),
                }
            }
            // Flows that have begun are waited for; no new ones begin.
            while turns.open.next().await.is_some() {}
            Ok(())
        }
        .boxed_local()
    }
}

/// The times that have come due: begun, waiting, or left out.
struct Turns<'a> {
    timer: &'a Timer,
    outlet: Outlet,
    /// Flows under way. Errors in their replies are already logged.
    open: FuturesUnordered<Local<'static, Reply>>,
    /// The due times of the packets that wait.
    waiting: Vec<Timestamp>,
    number: i64,
    missed: i64,
}

impl<'a> Turns<'a> {
    fn new(timer: &'a Timer, outlet: Outlet) -> Turns<'a> {
        let (open, waiting) = (FuturesUnordered::new(), Vec::new());
        Turns { timer, outlet, open, waiting, number: 0, missed: 0 }
    }

    /// A time has come, after `lost` others were missed.
    fn come(&mut self, (time, lost): (Timestamp, i64)) {
        self.missed += lost;
        if self.open.len() < self.timer.open_max || self.waiting.len() < self.timer.waiting_max {
            self.waiting.push(time);
            self.begin();
        } else {
            self.missed += 1;
        }
    }

    /// Begins the waiting flows, as far as there is room.
    fn begin(&mut self) {
        while self.open.len() < self.timer.open_max && !self.waiting.is_empty() {
            let packet = Value::map([
                ("time_ms", Value::Integer(self.waiting.remove(0).as_millisecond())),
                ("number", Value::Integer(self.number)),
                ("missed", Value::Integer(std::mem::take(&mut self.missed))),
            ]);
            self.number += 1;
            let (outlet, limits) = (self.outlet.clone(), self.timer.limits);
            let flow = async move { outlet.open(OUT, packet, limits).await };
            self.open.push(flow.boxed_local());
        }
    }
}

#[cfg(test)]
mod tests;
