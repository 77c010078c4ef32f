//! `sleep`: lets some time go by.

use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use sinew_spec::item_json;

use super::LIMIT_NS_MAX;
use crate::script::expression::Expression;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "sleep",
    doc: "Passes every packet on after some time; other flows go on meanwhile. The time is exact \
          to about a millisecond.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet, later.")],
    parameters: &[
        Parameter::new("duration", ParameterType::Duration { min_ns: 0, max_ns: LIMIT_NS_MAX })
            .or("0s")
            .doc("How long. Either this or 'duration_ms' is given."),
        Parameter::new("duration_ms", ParameterType::Yaml)
            .unit("ms")
            .or("null")
            .doc("How long, as an expression (CEL) over 'packet'."),
    ],
    ..FLOW
};

const OUT: usize = 2;

enum Sleep {
    Always(Duration),
    /// Milliseconds.
    Computed(Expression),
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let (duration, item) = (parameters.duration("duration"), parameters.yaml("duration_ms"));
    let is_given = !item_json(item).is_null();
    match (duration, is_given) {
        (Duration::ZERO, false) => {
            let help = "add 'duration: 100ms', or 'duration_ms: packet.pause_ms'";
            let message = "neither 'duration' nor 'duration_ms' is given".to_owned();
            Err(vec![Refusal::of_node(message, help)])
        }
        (duration, false) => Ok(Box::new(Sleep::Always(duration))),
        (Duration::ZERO, true) => Ok(Box::new(Sleep::Computed(Expression::of(item, &[])?))),
        (_, true) => {
            let message = "both 'duration' and 'duration_ms' are given";
            Err(vec![Refusal::new(item.span, message, "remove one of them")])
        }
    }
}

impl FlowNode for Sleep {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.duration(at, &packet) {
            Ok(duration) => Step::wait(async move {
                tokio::time::sleep(duration).await;
                Step::Pass(OUT, packet)
            }),
            Err(error) => Step::Fail(error),
        }
    }
}

impl Sleep {
    fn duration(&self, at: At<'_>, packet: &Value) -> Result<Duration, Error> {
        let expression = match self {
            Sleep::Always(duration) => return Ok(*duration),
            Sleep::Computed(expression) => expression,
        };
        let value = expression.evaluate((at.flow(), packet))?;
        let ms = match value {
            Value::Integer(ms) => ms as f64,
            Value::Number(ms) => ms,
            _ => f64::NAN,
        };
        let max_ms = LIMIT_NS_MAX as f64 / 1e6;
        if (0.0..=max_ms).contains(&ms) {
            return Ok(Duration::from_secs_f64(ms / 1e3));
        }
        let found = value.to_json()?;
        Err(Error::new(format_args!("expected a number of ms from 0 to {max_ms}, got {found}")))
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use crate::testing::{refusals, reply};

    fn graph(parameters: &str) -> String {
        format!("- {{kind: sleep, name: s{parameters}}}")
    }

    #[test]
    fn a_packet_passes_later() {
        let packet = Value::Number(1.5);
        for parameters in [", duration: 1ms", ", duration_ms: packet", ", duration_ms: 2"] {
            assert_eq!(reply(&graph(parameters), packet.clone()), Ok(Some(packet.clone())));
        }
    }

    #[test]
    fn a_time_that_is_none_is_an_error() {
        for bad in [Value::Integer(-1), Value::text("1ms"), Value::Number(f64::NAN)] {
            let error = reply(&graph(", duration_ms: packet"), bad).expect_err("no time");
            assert!(error.text().contains("expected a number of ms"), "{error}");
        }
    }

    #[test]
    fn it_is_said_once_how_long() {
        for (bad, said) in [
            ("", "neither"),
            (", duration: 1s, duration_ms: 1", "both"),
            (", duration_ms: 'packet.'", ""),
        ] {
            let refusals = refusals(&graph(bad));
            assert!(refusals.len() == 1 && refusals[0].message.contains(said), "{refusals:?}");
        }
    }
}
