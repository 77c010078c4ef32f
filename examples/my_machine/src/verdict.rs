//! Kind `verdict`: a flow node. It gets a packet and passes one on, or replies. It must not block:
//! many flows run at once.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FlowEntry, FlowNode, Make, Step, Value};

static VERDICT: Kind = Kind {
    ports: &[
        sinew_flow::input("in", "How the oven is, from a node of kind 'read'."),
        sinew_flow::error(),
        sinew_flow::output(
            "out",
            "{temperature_deg_c, mode, ready}; led nowhere, it is the reply.",
        ),
    ],
    parameters: &[Parameter::new("ready_deg_c", ParameterType::Number { min: 0.0, max: 1000.0 })
        .unit("deg C")
        .doc("From here on it is ready.")],
    ..Kind::flow("verdict", "Says what the oven does, and whether it is ready.")
};

const OUT: usize = VERDICT.output("out");
const READY: &str = VERDICT.parameter("ready_deg_c");

/// The kind's row among those of `main`.
pub const NODE: FlowEntry = FlowEntry::new(&VERDICT, Make::Node(make));

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Verdict { ready_deg_c: parameters.number(READY) }))
}

struct Verdict {
    ready_deg_c: f64,
}

impl FlowNode for Verdict {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::pass(OUT, self.verdict(&packet))
    }
}

impl Verdict {
    fn verdict(&self, packet: &Value) -> Result<Value, Error> {
        let temperature = packet.field("temperature_deg_c")?;
        let Value::Number(temperature_deg_c) = temperature else {
            let sort = temperature.sort();
            return Err(Error::new(format_args!(
                "temperature_deg_c: expected a number, got {sort}"
            )));
        };
        Ok(Value::map([
            ("temperature_deg_c", Value::Number(temperature_deg_c)),
            // An enum's word. A number without a word stays a number.
            ("mode", packet.field("mode")?),
            ("ready", Value::Bool(temperature_deg_c >= self.ready_deg_c)),
        ]))
    }
}
