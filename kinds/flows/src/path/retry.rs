//! `retry`: sends a packet again, after a pause, when an error comes back.

use std::time::{Duration, Instant};

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::LIMIT_NS_MAX;
use crate::script::expression::{Expression, Scope};
use crate::script::taken;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "retry",
    doc: "Passes a packet on; if an error comes back, once more after a pause, up to 'threshold' \
          times in all. The last error is the answer. A pause that would not end before the \
          flow's deadline is not begun.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet.")],
    parameters: &[
        Parameter::new("threshold", ParameterType::Integer { min: 1, max: 1000 })
            .or("3")
            .doc("Most attempts, the first included."),
        Parameter::new("backoff", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("100ms")
            .doc("Pause after the first error; it doubles with each further one."),
        Parameter::new("backoff_max", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("10s")
            .doc("Longest pause."),
        Parameter::new("jitter", ParameterType::Number { min: 0.0, max: 1.0 }).or("0.5").doc(
            "Random part of each pause, so that flows that failed together do not come back \
             together: 0.5 means from half of the pause to all of it.",
        ),
        Parameter::new("when", ParameterType::Yaml).or("true").doc(
            "Which errors are worth another attempt, as an expression (CEL) over 'error' \
             ({error, status, node}) and 'packet'.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 2;

struct Retry {
    threshold: u32,
    backoff: Duration,
    backoff_max: Duration,
    jitter: f64,
    when: Expression,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let (backoff, backoff_max) =
        (parameters.duration("backoff"), parameters.duration("backoff_max"));
    if backoff > backoff_max {
        let message = format!("a pause of {backoff:?} is longer than backoff_max, {backoff_max:?}");
        let help = "raise backoff_max, or shorten backoff";
        refusals.push(Refusal::new(parameters.span("backoff"), message, help));
    }
    let when = Expression::of(parameters.yaml("when"), &["error"]);
    let when = taken(when, &mut refusals).filter(|_| refusals.is_empty()).ok_or(refusals)?;
    Ok(Box::new(Retry {
        threshold: parameters.integer("threshold") as u32,
        backoff,
        backoff_max,
        jitter: parameters.number("jitter"),
        when,
    }))
}

impl FlowNode for Retry {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            let mut attempt = 1;
            loop {
                let error = match at.call(OUT, packet.clone()).await {
                    Ok(reply) => return Step::Reply(reply),
                    Err(error) => error,
                };
                let pause = self.pause(attempt, fastrand::f64());
                match self.is_worth_another(at, &packet, &error) {
                    Ok(true) if attempt < self.threshold && fits(at, pause) => {}
                    Ok(_) => return Step::Fail(error),
                    Err(error) => return Step::Fail(error),
                }
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
        })
    }
}

impl Retry {
    fn is_worth_another(&self, at: At<'_>, packet: &Value, error: &Error) -> Result<bool, Error> {
        let also = [&error.to_value()];
        self.when.holds(Scope { flow: Some(at.flow()), packet, also: &also })
    }

    /// The pause after an attempt, counted from 1; `chance` is from 0 to 1.
    fn pause(&self, attempt: u32, chance: f64) -> Duration {
        let doubled = 2u32.checked_pow(attempt - 1).and_then(|by| self.backoff.checked_mul(by));
        let longest = doubled.map_or(self.backoff_max, |pause| pause.min(self.backoff_max));
        longest.mul_f64(1.0 - self.jitter * chance)
    }
}

/// Whether a pause ends before the flow's deadline.
fn fits(at: At<'_>, pause: Duration) -> bool {
    at.flow().deadline().is_none_or(|deadline| Instant::now() + pause < deadline)
}

#[cfg(test)]
mod tests;
