//! `halt`: stops the core.

use std::time::Duration;

use sinew_control::Request;
use sinew_control::status::{Phase, Status};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{Error, FLOW, FlowEntry, FlowNode, Make, Value, error, input, output};

use super::refused;
use super::supervisor::{Ask, Rank, Run, asks, core, phase};
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "halt",
    doc: "Stops the core through the supervisor: safe outputs at the next cycle, then the \
          actuators come to rest. In a graph with 'hold: true' it waits until the core is held, \
          and answers how long that took; any other graph ends, and the answer comes as soon as \
          the request is accepted. This is the stop of a service: it does not replace a stop \
          button in the machine's safety chain.",
    ports: &[
        input("in", "The packet, from which 'reason' is made."),
        output("out", "{phase, stop: {reason, safe_output_us, at_rest_us}}."),
        error(),
    ],
    parameters: &[
        Parameter::new("reason", ParameterType::Yaml)
            .or("asked for by a flow")
            .doc("The reason, for the log: a text with templates in it."),
        Parameter::new("within", ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 })
            .or("5s")
            .doc(
                "Longest that it waits for the end of the stop; then it fails with status 504, and \
                 the stop goes on. 0s answers as soon as the request is accepted.",
            ),
    ],
    ..FLOW
};

/// Most bytes of a reason. It is shown in the log and on the screen.
const REASON_LEN_MAX: usize = 200;

struct Halt {
    reason: Template,
    within: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let reason = Template::compile(parameters.yaml("reason"))?;
    asks(Halt { reason, within: parameters.duration("within") })
}

impl Ask for Halt {
    async fn ask(&self, run: Run<'_>, packet: &Value) -> Result<Value, Error> {
        let reason = Some(reason(&self.reason.render(run.at.flow(), packet).await?)?);
        let before = run.status(Rank::First).await?;
        if before.phase == Phase::Held {
            return Ok(core(&before));
        }
        run.order(Request::Halt { reason }).await?;
        if !run.holds || self.within.is_zero() {
            return Ok(Value::map([("phase", phase(Phase::Stopping))]));
        }
        let is_held = |status: &Status| status.phase == Phase::Held;
        Ok(core(&run.reached(self.within, is_held).await?))
    }
}

/// The reason, if it may be shown in a line of the log.
fn reason(value: &Value) -> Result<String, Error> {
    let text = value.as_text().filter(|text| text.len() <= REASON_LEN_MAX);
    let text = text.filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        refused(400, format!("a reason is one line of {REASON_LEN_MAX} bytes at most"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(reason(&Value::text("a hand in the cell")).as_deref(), Ok("a hand in the cell"));
        for bad in [Value::text("x".repeat(201)), Value::text("a\nb"), Value::Null] {
            assert_eq!(reason(&bad).expect_err("bad").status(), 400);
        }
    }
}
