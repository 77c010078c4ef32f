//! `throw`: fails on purpose.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input};

use crate::json;
use crate::script::taken;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "throw",
    doc: "Answers every packet with an error. Its message is for the log and for 'error' \
          ports; over HTTP only status and body are seen.",
    ports: &[input("in", "The packet."), error()],
    parameters: &[
        Parameter::new("message", ParameterType::Yaml)
            .or("thrown")
            .doc("What went wrong, as a template."),
        Parameter::new("status", ParameterType::Yaml)
            .or("500")
            .doc("HTTP status, 400 to 599, as a number or a template."),
        Parameter::new("body", ParameterType::Yaml)
            .or("null")
            .doc("What the client gets, as a template. Default: nothing but the status."),
    ],
    ..FLOW
};

struct Throw {
    message: Template,
    status: Template,
    body: Template,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let mut template = |name| taken(Template::compile(parameters.yaml(name)), &mut refusals);
    let (message, status, body) = (template("message"), template("status"), template("body"));
    if let Some(constant) = status.as_ref().and_then(Template::constant)
        && let Err(error) = checked(constant)
    {
        let help = "write a number from 400 to 599";
        refusals.push(Refusal::new(parameters.span("status"), error.text(), help));
    }
    match (message, status, body) {
        (Some(message), Some(status), Some(body)) if refusals.is_empty() => {
            Ok(Box::new(Throw { message, status, body }))
        }
        _ => Err(refusals),
    }
}

impl FlowNode for Throw {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            Step::Fail(self.error(at, &packet).await.unwrap_or_else(|error| error))
        })
    }
}

impl Throw {
    /// The error to throw; or the error of making it.
    async fn error(&self, at: At<'_>, packet: &Value) -> Result<Error, Error> {
        let message = self.message.render(at.flow(), packet).await?;
        let message = json::line(at.flow(), &message).await?;
        let status = checked(&self.status.render(at.flow(), packet).await?)?;
        let error = Error::new(message).with_status(status);
        Ok(match self.body.render(at.flow(), packet).await? {
            Value::Null => error,
            body => error.with_shown(body),
        })
    }
}

/// The status, if it is one of an error.
fn checked(status: &Value) -> Result<u16, Error> {
    match status {
        Value::Integer(status @ 400..=599) => Ok(*status as u16),
        Value::Integer(other) => Err(Error::new(format_args!(
            "an error's status is a number from 400 to 599, got {other}"
        ))),
        other => Err(Error::new(format_args!(
            "an error's status is a number from 400 to 599, got {}",
            other.sort()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::{Error, Value};

    use crate::testing::{refusals, reply};

    fn graph(parameters: &str) -> String {
        format!("- {{kind: throw, name: t{parameters}}}")
    }

    fn thrown(parameters: &str, packet: Value) -> Error {
        reply(&graph(parameters), packet).expect_err("an error")
    }

    #[test]
    fn only_the_body_is_shown() {
        let packet = Value::map([("id", Value::Integer(7))]);
        let error = thrown(
            ", status: 404, message: 'no {{ packet.id }}', body: {id: '{{ packet.id }}'}",
            packet.clone(),
        );
        assert_eq!((error.text(), error.status()), ("no 7", 404));
        assert_eq!(error.shown(), Some(&packet));
        assert_eq!(thrown("", Value::Null).shown(), None);
    }

    #[test]
    fn what_is_shown_comes_to_an_error_port_too() {
        let tried = "- {kind: try, name: y, ports: {out: [{name: t, port: in}], \
            error: [{name: e, port: in}]}}\n\
            - {kind: throw, name: t, status: 409, body: {id: 7}}\n\
            - {kind: snippet, name: e, language: cel, code: 'packet.body.id + 1'}";
        assert_eq!(reply(tried, Value::Null), Ok(Some(Value::Integer(8))));
    }

    #[test]
    fn a_status_that_is_computed_is_checked_when_it_is_there() {
        let status = ", status: '{{ packet }}'";
        assert_eq!(thrown(status, Value::Integer(409)).status(), 409);
        let error = thrown(status, Value::Integer(200));
        assert!(error.status() == 500 && error.text().contains("got 200"), "{error}");
    }

    #[test]
    fn a_status_that_is_no_error_is_refused() {
        for bad in ["200", "600", "'x'"] {
            let refusals = refusals(&graph(&format!(", status: {bad}")));
            assert!(refusals[0].message.contains("400 to 599"), "{refusals:?}");
        }
        assert_eq!(refusals(&graph(", message: '{{', body: '{{', status: 200")).len(), 3);
    }
}
