//! `read`: the newest message of a link from the core, as a value.

use std::time::{Duration, Instant};

use sinew_core::catalogue::{ANY_MESSAGE, Kind, Parameter, ParameterType, Port};
use sinew_core::{Fault, Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, LastMessage, Make, MessageInput, NodeContext, Step,
    Value, error, input, output,
};
use tokio::time::sleep;

use super::unavailable;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "read",
    doc: "Reads the newest message of a link from the core. The message, as a mapping of its \
          fields, replaces the packet. Before the first message, and without a new one for longer \
          than 'stale_after', it fails with status 503. The core never waits for it.",
    ports: &[
        input("in", "Any packet: it asks for the newest message."),
        output("out", "The message as a mapping of its fields."),
        error(),
        Port::input("from", "The link from the core.", &ANY_MESSAGE),
    ],
    parameters: &[Parameter::new(
        "stale_after",
        ParameterType::Duration { min_ns: 0, max_ns: 3_600_000_000_000 },
    )
    .or("1s")
    .doc(
        "Older messages are refused: without a new one for this long, the core has stopped. 0s: \
         takes the newest, however old.",
    )],
    ..FLOW
};

const OUT: usize = 1;
const FROM: usize = 3;

/// While `read` waits for a message that shows that the core lives, it looks again and again. Each
/// pause is an eighth of the time that it has waited so far, but between these two limits. So even
/// many flows that wait for a silent core cost little, and if the core runs, one pause is enough.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Shortest `stale_after`. The age of a message is known only up to the pause between two looks,
/// and a timer is exact to one or two milliseconds.
const STALE_AFTER_MIN: Duration = Duration::from_millis(5);

struct Read {
    from: Option<MessageInput>,
    /// `None` if a message never grows stale.
    stale_after: Option<Duration>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let stale_after = Some(parameters.duration("stale_after")).filter(|it| !it.is_zero());
    if let Some(short) = stale_after.filter(|it| *it < STALE_AFTER_MIN) {
        let message = format!("{short:?} is too short to tell old messages from new ones");
        let help = format!("write {STALE_AFTER_MIN:?} or more, or 0s for messages of any age");
        return Err(vec![Refusal::new(parameters.span("stale_after"), message, help)]);
    }
    Ok(Box::new(Read { from: None, stale_after }))
}

impl FlowNode for Read {
    fn attach(&mut self, site: &NodeContext) {
        self.from = site.inputs[FROM].clone();
    }

    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        let Some(from) = &self.from else { return Step::Fail(unavailable("no core runs here")) };
        match self.judge(from.look()) {
            Some(judged) => Step::pass(OUT, judged),
            None => Step::wait(self.await_sign(from)),
        }
    }
}

impl Read {
    /// What follows from a look. `None` if nobody has looked for a while: the message may then be
    /// new, or as old as the last look. Whether a message comes within 'stale_after' decides.
    fn judge(&self, looked: Result<Option<LastMessage>, Fault>) -> Option<Result<Value, Error>> {
        let seen = match looked {
            Ok(Some(seen)) => seen,
            Ok(None) => return Some(Err(unavailable("the core has sent no message yet"))),
            Err(fault) => return Some(Err(Error::new(fault))),
        };
        let is_fresh = |limit| seen.age_max.is_some_and(|age| age <= limit);
        match self.stale_after {
            Some(_) if seen.is_closed => Some(Err(unavailable("the core has stopped"))),
            Some(limit) if !is_fresh(limit) => None,
            _ => Some(Ok(seen.value)),
        }
    }

    /// Looks again and again, until a message comes or the core has been silent for too long.
    async fn await_sign<'a>(&'a self, from: &'a MessageInput) -> Step<'a> {
        let (begun, limit) = (Instant::now(), self.stale_after.unwrap_or_default());
        loop {
            sleep(pause(begun.elapsed())).await;
            if let Some(judged) = self.judge(from.look()) {
                return Step::pass(OUT, judged);
            }
            if begun.elapsed() >= limit {
                let text = format!("the core has sent nothing for {limit:?}");
                return Step::Fail(unavailable(&text));
            }
        }
    }
}

/// The pause before the next look, after waiting for `waited`.
fn pause(waited: Duration) -> Duration {
    (waited / 8).clamp(PAUSE_MIN, PAUSE_MAX)
}

#[cfg(test)]
mod tests;
