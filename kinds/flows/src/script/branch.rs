//! `if`: one output for packets for which an expression is true, another for all others.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::expression::Expression;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "if",
    doc: "Passes a packet on to out[0] if an expression is true for it, to out[1] if it is false. \
          An expression that is neither is an error.",
    ports: &[
        input("in", "The packet."),
        error(),
        output("out[]", "out[0]: it is true, out[1]: it is false."),
    ],
    parameters: &[Parameter::new("when", ParameterType::Yaml)
        .doc("An expression in CEL, such as packet.age >= 18.")],
    ..FLOW
};

const TRUE: usize = 2;
const FALSE: usize = 3;

struct Branch(Expression);

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Branch(Expression::of(parameters.yaml("when"), &[])?)))
}

impl FlowNode for Branch {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.0.holds((at.flow(), &packet)) {
            Ok(true) => Step::Pass(TRUE, packet),
            Ok(false) => Step::Pass(FALSE, packet),
            Err(error) => Step::Fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use crate::testing::{refusals, reply};

    const GRAPH: &str = "
        - kind: if
          name: a
          when: packet > 1
          ports: {'out[0]': [{name: big, port: in}], 'out[1]': [{name: small, port: in}]}
        - {kind: snippet, name: big, language: text, code: big}
        - {kind: snippet, name: small, language: text, code: small}
    ";

    #[test]
    fn true_goes_one_way_and_false_the_other() {
        assert_eq!(reply(GRAPH, Value::Integer(2)), Ok(Some(Value::text("big"))));
        assert_eq!(reply(GRAPH, Value::Integer(1)), Ok(Some(Value::text("small"))));
        assert!(reply(GRAPH, Value::text("x")).is_err());
    }

    #[test]
    fn what_is_neither_is_an_error_and_a_bad_expression_a_refusal() {
        let error = reply(&GRAPH.replace("packet > 1", "packet"), Value::Integer(1)).unwrap_err();
        assert!(error.text().contains("not true or false"), "{error}");
        let text = GRAPH.replace("packet > 1", "packte > 1");
        let refusals = refusals(&text);
        let start = refusals[0].span.expect("a place").start as usize;
        assert!(text[start..].starts_with("packte"), "{refusals:?}");
    }
}
