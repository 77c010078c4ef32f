//! `set_parameters`: sets parameters of the core while it runs.

use bytestring::ByteString;
use sinew_control::{Answer, Request, SETTINGS_MAX, Tunable};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{Error, FLOW, FlowEntry, FlowNode, Make, Value, error, input, output};

use super::refused;
use super::supervisor::{Ask, Run, asks};
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "set_parameters",
    doc: "Sets parameters of the core between two cycles, those of one node all at once, as 'sinew \
          set' does: only those that 'parameters' names, within the limits of their tables. If one \
          value is wrong, none is set. A name that may not be set, or an invalid value, fails with \
          status 400; values that the node refuses, with 409. An empty mapping sets nothing, and \
          shows the present values.",
    ports: &[
        input("in", "The packet, from which 'values' is made."),
        output("out", "The values of all 'parameters', as they are now: {pid.kp: 2.5}."),
        error(),
    ],
    parameters: &[
        Parameter::new("parameters", ParameterType::Texts { max: SETTINGS_MAX })
            .doc("Those that may be set, NODE.PARAMETER each; they must be tunable."),
        Parameter::new("values", ParameterType::Yaml)
            .or("'{{ packet }}'")
            .doc("New values by their names: a mapping with templates in it."),
        Parameter::new("save", ParameterType::Bool)
            .or("false")
            .doc("Whether the values are also written to the spec; an event tells the result."),
    ],
    ..FLOW
};

struct SetParameters {
    allowed: Vec<String>,
    values: Template,
    save: bool,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let allowed = parameters.texts("parameters").to_vec();
    let refusals: Vec<Refusal> =
        allowed.iter().filter_map(|name| unknown(parameters, name)).collect();
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let values = Template::compile(parameters.yaml("values"))?;
    asks(SetParameters { allowed, values, save: parameters.bool("save") })
}

/// Why the parameter `name` cannot be set in the node's graph; `None` if it can.
fn unknown(parameters: &Parameters<'_>, name: &str) -> Option<Refusal> {
    let (plan, _) = parameters.home?;
    let refuse =
        |why: String, help: String| Some(Refusal::new(parameters.span("parameters"), why, help));
    let Some((node, parameter)) = name.rsplit_once('.') else {
        return refuse(format!("'{name}' names no parameter"), "write NODE.PARAMETER".into());
    };
    let Some(found) = plan.nodes.iter().position(|row| row.name == node) else {
        // In a faulty graph the node may be missing only because it is faulty itself, which is
        // already reported.
        let follows = plan.left_out.iter().flatten().any(|row| row.name == node);
        let refusal = refuse(format!("there is no node '{node}'"), "name one of the core".into());
        return refusal.map(|refusal| refusal.following(follows));
    };
    let kind = plan.nodes[found].kind;
    let tunable = kind.parameters.iter().any(|row| row.tunable && row.name == parameter);
    if tunable && plan.tuning(found).is_some() {
        return None;
    }
    let help = format!("'sinew kinds {}' shows which parameters are tunable", kind.name);
    refuse(format!("'{name}' cannot be set while the graph runs"), help)
}

impl Ask for SetParameters {
    async fn ask(&self, run: Run<'_>, packet: &Value) -> Result<Value, Error> {
        let values = self.values.render(run.at.flow(), packet).await?;
        let values = run.at.flow().resolve(&values)?;
        let settings = settings(&self.allowed, &values)?;
        if !settings.is_empty() {
            run.order(Request::Set { settings, save: self.save }).await?;
        }
        match run.ask(Request::Tunables {}).await? {
            Answer::Tunables(all) => Ok(self.shown(&all)),
            other => Err(Error::new(format_args!("the supervisor answered {other:?}"))),
        }
    }
}

/// The wanted values in the form that the supervisor takes.
fn settings(allowed: &[String], values: &Value) -> Result<Vec<String>, Error> {
    let Value::Map(values) = values else {
        let sort = values.sort();
        return Err(refused(400, format!("expected values by their names, found {sort}")));
    };
    let setting = |(name, value): (&ByteString, &Value)| {
        if !allowed.iter().any(|allowed| allowed == &**name) {
            let allowed = allowed.join(", ");
            return Err(refused(400, format!("'{name}' may not be set here; {allowed} may")));
        }
        match value {
            Value::Bool(value) => Ok(format!("{name}={value}")),
            Value::Integer(value) => Ok(format!("{name}={value}")),
            Value::Number(value) if value.is_finite() => Ok(format!("{name}={value}")),
            other => {
                let sort = other.sort();
                Err(refused(400, format!("'{name}' takes a finite number or a flag, found {sort}")))
            }
        }
    };
    values.iter().map(setting).collect()
}

impl SetParameters {
    /// The present values of the parameters that may be set.
    fn shown(&self, all: &[Tunable]) -> Value {
        let value = |name: &String| {
            let found = all.iter().find(|it| format!("{}.{}", it.node, it.parameter) == *name);
            let value = found.map_or(Value::Null, |it| match it.value.parse::<f64>() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::Bool(it.value == "true"),
            });
            (name.clone(), value)
        };
        Value::map(self.allowed.iter().map(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::testing::Graph;

    #[test]
    fn only_what_may_be_set_is_asked_for() {
        let allowed = ["pid.kp".to_owned(), "pid.is_fast".to_owned()];
        let set = |name: &'static str, value| settings(&allowed, &Value::map([(name, value)]));
        let good = settings(
            &allowed,
            &Value::map([("pid.kp", Value::Number(0.1)), ("pid.is_fast", Value::Bool(true))]),
        );
        assert_eq!(good, Ok(vec!["pid.kp=0.1".to_owned(), "pid.is_fast=true".to_owned()]));
        assert_eq!(settings(&allowed, &Value::map::<&str>([])), Ok(vec![]));
        let bad = [
            (set("pid.ki", Value::Integer(1)), "'pid.ki' may not be set here; pid.kp, "),
            (set("pid.kp", Value::text("1; 2")), "'pid.kp' takes a finite number or a flag"),
            (set("pid.kp", Value::Number(f64::NAN)), "takes a finite number"),
            (settings(&allowed, &Value::Null), "expected values by their names, found nothing"),
        ];
        for (refused, expected) in bad {
            let error = refused.expect_err(expected);
            assert!(error.text().contains(expected), "{error}");
            assert_eq!(error.status(), 400);
        }
    }

    #[test]
    fn a_parameter_that_cannot_be_set_is_refused_before_it_runs() {
        for (name, expected) in [
            ("core", "'core' names no parameter; write NODE.PARAMETER"),
            ("pid.kp", "there is no node 'pid'; name one of the core"),
            ("core.gain", "'core.gain' cannot be set while the graph runs; 'sinew kinds core'"),
        ] {
            let made = Graph::sets(&format!("parameters: ['{name}']"));
            let refusals = made.err().expect("refused");
            assert!(refusals[0].to_string().starts_with(expected), "{}", refusals[0]);
        }
    }
}
