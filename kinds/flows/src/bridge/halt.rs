//! `halt`: stops the core.

use std::time::Duration;

use sinew_control::Request;
use sinew_control::Supervisor;
use sinew_control::status::{Phase, Status};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::{Made, Parameters};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{Ahead, At, Error, FlowNode, Site, Step, Value, error, input, output};

use super::supervisor::Rank;
use super::{shown, supervisor};
use crate::script::template::Template;

/// The row of the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "halt",
    runs_in: RunsIn::Flow,
    doc: "Has the supervisor stop the core: safe outputs at the next cycle, then to rest. In a \
          graph with 'hold: true' it waits until the core is held and tells how long that took; \
          any other graph ends, and this one answers once the order is taken. It is a service's \
          stop: in the machine's safety chain nothing replaces a stop button.",
    ports: &[
        input("in", "The packet, from which 'reason' is made."),
        output("out", "{phase, stop: {reason, safe_output_us, at_rest_us}}."),
        error(),
    ],
    parameters: &[
        Parameter {
            name: "reason",
            doc: "Why, for those who read the log: a text with templates in it.",
            unit: "",
            ty: ParameterType::Yaml,
            default: Some("asked for by a flow"),
        },
        Parameter {
            name: "within",
            doc: "Longest that it waits for the end of the stop; then it fails with status 504, \
                  and the stop goes on. 0s answers once the order is taken.",
            unit: "",
            ty: ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 },
            default: Some("5s"),
        },
    ],
    signals: &[],
};

const OUT: usize = 1;

/// Bytes of a reason. It stands in the log and on the screen.
const REASON_LEN_MAX: usize = 200;

struct Halt {
    supervisor: Option<Supervisor>,
    holds: bool,
    reason: Template,
    within: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let reason = Template::compile(parameters.yaml("reason"))?;
    let within = parameters.duration("within");
    Ok(Box::new(Halt { supervisor: None, holds: false, reason, within }))
}

impl FlowNode for Halt {
    fn attach(&mut self, site: &Site) {
        self.supervisor = site.supervisor.clone();
        self.holds = site.plan.hold;
    }

    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Reserved
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.halt(at, &packet).await {
                Ok(value) => Step::Pass(OUT, value),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Halt {
    async fn halt(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let reason = Some(reason(&self.reason.render(at.flow(), packet).await?)?);
        let supervisor = supervisor::of(&self.supervisor)?;
        let before = supervisor::status(at, supervisor, Rank::First).await?;
        if before.phase == Phase::Held {
            return Ok(supervisor::core(&before));
        }
        supervisor::order(at, supervisor, Request::Halt { reason }).await?;
        if !self.holds || self.within.is_zero() {
            return Ok(Value::map([("phase", supervisor::phase(Phase::Stopping))]));
        }
        let is_held = |status: &Status| status.phase == Phase::Held;
        let status = supervisor::reached(at, supervisor, self.within, is_held).await?;
        Ok(supervisor::core(&status))
    }
}

/// The reason as it may stand in a line of the log.
fn reason(value: &Value) -> Result<String, Error> {
    let text = value.as_text().filter(|text| text.len() <= REASON_LEN_MAX);
    let text = text.filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        let text = format!("a reason is one line of {REASON_LEN_MAX} bytes at most");
        let error = shown(&text);
        Error::new(text).with_status(400).with_shown(error)
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
