//! `reset`: starts the core again.

use std::time::Duration;

use sinew_control::Request;
use sinew_control::Supervisor;
use sinew_control::status::{DomainRole, DomainState, Phase, Status};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::{Made, Parameters};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_flow::{Ahead, At, Error, FlowNode, Site, Step, Value, error, input, output};

use super::{shown, supervisor};

/// The row of the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "reset",
    runs_in: RunsIn::Flow,
    doc: "Has the supervisor start the core again, after it has stopped in a graph with \
          'hold: true', and waits until it runs. A core that is not held is an error with status \
          409; so is one that stops again at once.",
    ports: &[
        input("in", "Any packet: it asks for the reset."),
        output("out", "{phase, stop: the last stop}."),
        error(),
    ],
    parameters: &[Parameter {
        name: "within",
        doc: "Longest that it waits; then it fails with status 504, and the start goes on. 0s \
              answers once the order is taken.",
        unit: "",
        ty: ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 },
        default: Some("10s"),
    }],
    signals: &[],
};

const OUT: usize = 1;

struct Reset {
    supervisor: Option<Supervisor>,
    within: Duration,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Reset { supervisor: None, within: parameters.duration("within") }))
}

impl FlowNode for Reset {
    fn attach(&mut self, site: &Site) {
        self.supervisor = site.supervisor.clone();
    }

    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Reserved
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.reset(at).await {
                Ok(value) => Step::Pass(OUT, value),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Reset {
    async fn reset(&self, at: At<'_>) -> Result<Value, Error> {
        let supervisor = supervisor::of(&self.supervisor)?;
        supervisor::order(at, supervisor, Request::Reset {}).await?;
        if self.within.is_zero() {
            return Ok(Value::map([("phase", supervisor::phase(Phase::Starting))]));
        }
        let is_decided = |status: &Status| status.phase == Phase::Held || runs(status);
        let status = supervisor::reached(at, supervisor, self.within, is_decided).await?;
        if status.phase == Phase::Held {
            let reason = status.stop.map_or_else(String::new, |stop| stop.reason);
            let text = format!("the core has stopped again: {reason}");
            let error = shown(&text);
            return Err(Error::new(text).with_status(409).with_shown(error));
        }
        Ok(supervisor::core(&status))
    }
}

/// Whether the core runs, all of it.
fn runs(status: &Status) -> bool {
    let mut core = status.domains.iter().filter(|domain| domain.role == DomainRole::Realtime);
    status.phase == Phase::Running && core.all(|domain| domain.state == DomainState::Running)
}
