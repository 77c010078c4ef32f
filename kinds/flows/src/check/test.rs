//! `test`: a packet and what its reply must be. `sinew test` carries it out; in a run it does
//! nothing.

use std::pin::pin;

use jiff::Timestamp;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::{Fault, Made, Parameters, Refusal};
use sinew_flow::{
    Error, Flow, FlowEntry, FlowLimits, Make, Opened, Reply, Source, Value, WORK_DEFAULT, output,
};

use super::mock::{self, Mocks};
use crate::script::expression::{Expression, Scope};
use crate::script::taken;
use crate::script::template::Template;
use crate::work::{WORK_MAX, limits};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

pub(super) static INFO: Kind = Kind {
    name: "test",
    runs_in: RunsIn::Test,
    doc: "A test of the graph: 'sinew test' sends the packet, in a separate flow, and looks at \
          the reply. In a run it does nothing.",
    ports: &[output("out", "The packet.")],
    parameters: &[
        Parameter::new("packet", ParameterType::Yaml)
            .or("{}")
            .doc("The packet: any YAML, with templates in it."),
        Parameter::new("expect", ParameterType::Yaml).or("true").doc(
            "An expression in CEL that must be true. It sees 'reply', and 'error' {error, \
             status, node}, of which one is null; 'packet' and 'values'. An error as the \
             reply fails the test, unless the expression looks at 'error'.",
        ),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 },
        )
        .or("10s")
        .doc("Longest that it waits for the reply."),
        Parameter::new("mocks", ParameterType::Yaml).or("{}").doc(
            "What nodes answer in this test, in place of what they would do: 'NODE: {answer: \
             VALUE}' or 'NODE: {error: {status, error, body}}'. Templates see the packet that came \
             to the node.",
        ),
        Parameter::new("now", ParameterType::Text).or("").doc(
            "The time that it is in this test, such as 2026-01-31T12:00:00Z, for 'now()', tokens \
             and signatures. Default: what it is.",
        ),
        WORK_MAX,
    ],
    signals: &[],
};

/// A test of the graph.
pub(super) struct Test {
    packet: Template,
    expect: Expression,
    /// Whether an error is a reply that may be expected.
    looks_at_error: bool,
    pub(super) mocks: Mocks,
    /// The time of day that the test assumes, in ms since 1970; `None` for the real one.
    pub(super) now_ms: Option<i64>,
    pub(super) limits: FlowLimits,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    Ok(Box::new(Test::of(parameters)?))
}

/// The time of day that a test gives.
fn now(parameters: &Parameters<'_>) -> Result<Option<i64>, Vec<Refusal>> {
    match parameters.text("now") {
        "" => Ok(None),
        text => match text.parse::<Timestamp>() {
            Ok(time) => Ok(Some(time.as_millisecond())),
            Err(error) => {
                let message = format!("'{text}' is not a time: {error}");
                let help = "write one with its zone, such as 2026-01-31T12:00:00Z";
                Err(vec![Refusal::new(parameters.span("now"), message, help)])
            }
        },
    }
}

/// In a run it does nothing.
impl Source for Test {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(Vec::new())
    }
}

impl Test {
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Test, Vec<Refusal>> {
        let text = parameters.yaml("expect");
        let mut refusals = Vec::new();
        let packet = taken(Template::compile(parameters.yaml("packet")), &mut refusals);
        let expect = taken(Expression::of(text, &["reply", "error"]), &mut refusals);
        let mocks = taken(mock::of(parameters), &mut refusals);
        let now_ms = taken(now(parameters), &mut refusals);
        let made = packet.zip(expect).zip(mocks.zip(now_ms));
        let ((packet, expect), (mocks, now_ms)) = made.ok_or(refusals)?;
        // The expression uses `error` if it does not compile with `reply` alone.
        let looks_at_error = Expression::of(text, &["reply"]).is_err();
        let limits = limits(parameters);
        Ok(Test { packet, expect, looks_at_error, mocks, now_ms, limits })
    }

    /// What is expected, as the spec says it.
    pub(super) fn expected(&self) -> &str {
        self.expect.text()
    }

    /// The packet that a flow begins with.
    ///
    /// # Errors
    /// A template in it cannot be filled in.
    pub(super) async fn packet(&self, flow: &Flow) -> Result<Value, Error> {
        flow.in_time(pin!(self.packet.render(flow, &Value::Null))).await
    }

    /// Whether the reply is as expected.
    ///
    /// # Errors
    /// Another reason for failure: an error that is not expected, or an expression that fails.
    pub(super) fn judge(&self, flow: &Flow, packet: &Value, reply: &Reply) -> Result<bool, String> {
        // Gives new work, because the flow may have used up its own.
        flow.allow(WORK_DEFAULT);
        let (value, error) = match reply {
            Ok(reply) => (reply.clone().unwrap_or_default(), Value::Null),
            Err(_) if !self.looks_at_error => return Err("the reply is an error".into()),
            Err(error) => (Value::Null, error.to_value()),
        };
        let scope = Scope { flow: Some(flow), packet, also: &[&value, &error] };
        self.expect.holds(scope).map_err(|error| error.text().to_owned())
    }
}
