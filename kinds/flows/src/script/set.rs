//! `set`: sets values of the flow, or replaces the packet.

use bytestring::ByteString;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Step, Value, error, input, output,
};
use sinew_spec::{Data, Item};

use super::expression::weight;
use super::taken;
use super::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "set",
    doc: "Sets values of the flow, which later nodes see as values.NAME, and passes the packet on, \
          or another in its place. All templates see the flow as it was before.",
    ports: &[
        input("in", "The packet."),
        output("out", "The packet, or what takes its place."),
        error(),
    ],
    parameters: &[
        Parameter::new("values", ParameterType::Yaml)
            .or("~")
            .doc("A mapping of names to templates."),
        Parameter::new("packet", ParameterType::Yaml)
            .or("~")
            .doc("A template whose value takes the place of the packet."),
    ],
    ..FLOW
};

const OUT: usize = 1;

/// Deepest nesting of a value that is kept. A loop that puts the value of its last turn into the
/// next one would nest without end, and code that goes through a value is recursive.
const DEPTH_MAX: usize = 256;
/// Values whose depth is checked for one unit of work.
const VALUES_PER_UNIT: u64 = 8;

struct Set {
    values: Vec<(ByteString, Template)>,
    packet: Option<Template>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let (values, packet) = (parameters.yaml("values"), parameters.yaml("packet"));
    let mut refusals = Vec::new();
    if is_nothing(values) && is_nothing(packet) {
        let help = "write values: {name: '{{ packet.name }}'}, or packet: with a template";
        refusals.push(Refusal::new(values.span, "nothing is set", help));
    }
    let values = match &values.data {
        Data::Map(entries) => {
            let template = |entry: &sinew_spec::Entry| {
                let value = taken(Template::compile(&entry.value), &mut refusals)?;
                Some((entry.key.as_str().into(), value))
            };
            entries.iter().filter_map(template).collect()
        }
        _ if is_nothing(values) => Vec::new(),
        _ => {
            let message = format!("'values' is a mapping, found {}", values.sort());
            refusals.push(Refusal::new(values.span, message, "write values: {name: value}"));
            Vec::new()
        }
    };
    let packet = (!is_nothing(packet)).then(|| Template::compile(packet));
    let packet = packet.and_then(|packet| taken(packet, &mut refusals));
    if refusals.is_empty() { Ok(Box::new(Set { values, packet })) } else { Err(refusals) }
}

/// Whether a parameter was left out.
fn is_nothing(item: &Item) -> bool {
    matches!(&item.data, Data::Scalar { text, plain: true } if text.is_empty() || text == "~")
}

impl Set {
    async fn apply(&self, flow: &Flow, packet: Value) -> Result<Value, Error> {
        let mut values = Vec::with_capacity(self.values.len());
        for (name, template) in &self.values {
            flow.turn().await;
            let value = template.render(flow, &packet).await?;
            if matches!(value, Value::List(_) | Value::Map(_)) {
                flow.spend(weight(&value) / VALUES_PER_UNIT)?;
            }
            if value.is_deeper_than(DEPTH_MAX) {
                return Err(too_deep(name));
            }
            values.push((name.clone(), value));
        }
        let next = match &self.packet {
            Some(template) => Some(template.render(flow, &packet).await?),
            None => None,
        };
        for (name, value) in values {
            flow.set(name, value);
        }
        Ok(next.unwrap_or(packet))
    }
}

#[cold]
fn too_deep(name: &str) -> Error {
    Error::new(format_args!(
        "values.{name} would be nested deeper than {DEPTH_MAX} levels; keep a list, and add to it"
    ))
}

impl FlowNode for Set {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move { Step::pass(OUT, self.apply(at.flow(), packet).await) })
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use crate::testing::{refusals, reply};

    fn graph(parameters: &str) -> String {
        format!(
            "- {{kind: set, name: a, {parameters}, ports: {{out: [{{name: b, port: in}}]}}}}\n\
             - {{kind: snippet, name: b, language: cel, \
             code: '[packet, values.n, values.?m.orValue(0)]'}}"
        )
    }

    fn list(values: [i64; 3]) -> Value {
        Value::list(values.map(Value::Integer))
    }

    #[test]
    fn later_nodes_see_what_was_set() {
        let text = graph("values: {n: '{{ packet + 1 }}'}");
        assert_eq!(reply(&text, Value::Integer(1)), Ok(Some(list([1, 2, 0]))));
        let text = graph("values: {n: 5, m: '{{ packet }}'}, packet: '{{ packet * 10 }}'");
        assert_eq!(reply(&text, Value::Integer(1)), Ok(Some(list([10, 5, 1]))));
    }

    #[test]
    fn a_template_that_fails_sets_nothing() {
        let text = graph("values: {n: 1, m: '{{ packet.x }}'}");
        let error = reply(&text, Value::Integer(1)).unwrap_err();
        assert!(error.text().contains("packet.x"), "{error}");
    }

    #[test]
    fn a_value_that_nests_itself_again_and_again_is_an_error() {
        let text = "
            - {kind: for, name: f, ports: {out: [{name: a, port: in}]}}
            - {kind: set, name: a, values: {x: {last: '{{ values.?x.orValue(0) }}'}}}
        ";
        let items = |count| Value::list((0..count).map(Value::Integer));
        assert!(reply(text, items(256)).is_ok());
        let error = reply(text, items(10_000)).expect_err("too deep");
        assert!(error.text().contains("values.x would be nested deeper"), "{error}");
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = graph("values: {n: '{{ packte }}', m: '{{'}, packet: '{{ 1 + }}'");
        assert_eq!(refusals(&text).len(), 3);
        assert_eq!(refusals(&graph("values: 5")).len(), 1);
        assert_eq!(refusals(&graph("packet: ~")).len(), 1);
    }
}
