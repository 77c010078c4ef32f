//! `once`: begins one flow, and ends the run with its result.

use std::pin::pin;

use futures_util::FutureExt;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Fault, Made, Parameters};
use sinew_flow::{
    Error, FLOW, FlowEntry, FlowLimits, Local, Make, Opened, Outlet, Reply, Source, StopSignal,
    Value, output,
};

use crate::script::template::Template;
use crate::work::{WORK_MAX, limits};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

static INFO: Kind = Kind {
    name: "once",
    doc: "Begins one flow as soon as its domain runs. When the reply is back the run ends: all \
          domains stop in order, and the exit status is 0, or 1 if the reply is an error. A run \
          that is told to stop before that ends with 1, and the flow is cancelled. Only the first \
          worker runs it. A domain that is started again begins the flow again.",
    ports: &[output("out", "The packet.")],
    parameters: &[
        Parameter::new("packet", ParameterType::Yaml)
            .or("{}")
            .doc("The packet: any YAML, with templates in it."),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: crate::path::LIMIT_NS_MAX },
        )
        .or("24h")
        .doc("Longest that the flow may take."),
        WORK_MAX.or("1000000000000"),
    ],
    ..FLOW
};

const OUT: usize = 0;
/// Most characters of a reply that are logged.
const REPLY_CHARS_MAX: usize = 400;

struct Once {
    packet: Template,
    limits: FlowLimits,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    let packet = Template::compile(parameters.yaml("packet"))?;
    Ok(Box::new(Job(Once { packet, limits: limits(parameters) })))
}

struct Job(Once);

impl Source for Job {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(vec![self])
    }
}

impl Opened for Job {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        mut stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        async move {
            let mut flow = Box::pin(self.0.run(&outlet));
            let reply = tokio::select! {
                biased;
                reply = &mut flow => reply,
                () = stop.wait() => {
                    if stop.yields() {
                        // The source that replaces this one ends the run.
                        let _ = flow.await;
                        return Ok(());
                    }
                    let text = "the run was told to stop before the flow had ended";
                    Err(Error::new(text).with_status(503))
                }
            };
            if let Ok(reply) = &reply {
                outlet.say(format_args!("done: {}", shown(reply.as_ref())));
            }
            outlet.finish(reply.as_ref().err()).await
        }
        .boxed_local()
    }
}

impl Once {
    async fn run(&self, outlet: &Outlet) -> Reply {
        let begun = outlet.begin(self.limits);
        let flow = begun.flow();
        match flow.in_time(pin!(self.packet.render(flow, &Value::Null))).await {
            Ok(packet) => begun.open(OUT, packet).await,
            Err(error) => {
                begun.fail(&error);
                Err(error)
            }
        }
    }
}

/// A reply as a line of the log shows it.
fn shown(reply: Option<&Value>) -> String {
    let Some(reply) = reply else { return "nothing".into() };
    let text = reply.to_json().map_or_else(|error| error.to_string(), |json| json.to_string());
    text.chars().take(REPLY_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use sinew_flow::FlowFixture;

    use super::*;
    use crate::testing::{LIMIT, fixture, plan, run};

    fn serve(next: &str) -> (FlowFixture, Job, String) {
        let text = format!(
            "- {{kind: once, name: once, packet: {{n: '{{{{ 1 + 1 }}}}'}}, \
             ports: {{out: [{{name: next, port: in}}]}}}}\n- {{kind: {next}, name: next}}"
        );
        let item = plan(&text);
        let packet =
            Template::compile(Parameters::of(&item, &item.nodes[0], "".as_ref()).yaml("packet"));
        let packet = packet.unwrap_or_else(|refusals| panic!("{refusals:?}"));
        (fixture(&text), Job(Once { packet, limits: LIMIT.into() }), text)
    }

    #[test]
    fn the_flow_begins_once_and_its_reply_is_the_outcome() {
        let (fixture, job, _) = serve("snippet, language: cel, code: packet.n");
        assert_eq!(run(job.0.run(&fixture.outlet("once"))), Ok(Some(Value::Integer(2))));
        let (_stopper, stop) = StopSignal::new();
        assert!(run(Box::new(job).serve(fixture.outlet("once"), stop)).is_ok());
        assert_eq!(fixture.flows(), 0);
        let (fixture, job, _) = serve("throw, status: 418");
        let error = run(job.0.run(&fixture.outlet("once"))).expect_err("it fails");
        assert_eq!(error.status(), 418);
    }

    #[test]
    fn a_stop_cancels_the_flow() {
        let (fixture, job, _) = serve("sleep, duration: 60s");
        let (stopper, stop) = StopSignal::new();
        stopper.end();
        assert!(run(Box::new(job).serve(fixture.outlet("once"), stop)).is_ok());
        assert_eq!(fixture.flows(), 0);
    }
}
