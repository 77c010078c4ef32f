//! `reset`: starts the core again.

use std::time::Duration;

use sinew_control::Request;
use sinew_control::status::{DomainRole, DomainState, Phase, Status};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{Error, FLOW, FlowEntry, FlowNode, Make, Value, error, input, output};

use super::refused;
use super::supervisor::{Ask, Run, asks, core, phase};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "reset",
    doc: "Starts the core again through the supervisor, after it has stopped in a graph with \
          'hold: true', and waits until it runs. If the core is not held, or stops again at once, \
          it fails with status 409.",
    ports: &[
        input("in", "Any packet: it asks for the reset."),
        output("out", "{phase, stop: the last stop}."),
        error(),
    ],
    parameters: &[Parameter::new(
        "within",
        ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 },
    )
    .or("10s")
    .doc(
        "Longest that it waits; then it fails with status 504, and the start goes on. 0s answers \
         as soon as the request is accepted.",
    )],
    ..FLOW
};

struct Reset {
    within: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    asks(Reset { within: parameters.duration("within") })
}

impl Ask for Reset {
    async fn ask(&self, run: Run<'_>, _packet: &Value) -> Result<Value, Error> {
        run.order(Request::Reset {}).await?;
        if self.within.is_zero() {
            return Ok(Value::map([("phase", phase(Phase::Starting))]));
        }
        let is_decided = |status: &Status| status.phase == Phase::Held || runs(status);
        let status = run.reached(self.within, is_decided).await?;
        if status.phase == Phase::Held {
            let reason = status.stop.map_or_else(String::new, |stop| stop.reason);
            return Err(refused(409, format!("the core has stopped again: {reason}")));
        }
        Ok(core(&status))
    }
}

/// Whether all of the core runs.
fn runs(status: &Status) -> bool {
    let mut core = status.domains.iter().filter(|domain| domain.role == DomainRole::Realtime);
    status.phase == Phase::Running && core.all(|domain| domain.state == DomainState::Running)
}
