//! `assert`: passes on only packets that are as expected.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::show;
use crate::script::expression::Expression;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "assert",
    doc: "Passes the packet on if 'expect' is true for it. Else it fails, and the error says what \
          was expected and what came. It is for what must never happen; 'if' is for what may \
          happen.",
    ports: &[
        input("in", "The packet."),
        output("out", "The same packet, if it is as expected."),
        error(),
    ],
    parameters: &[Parameter::new("expect", ParameterType::Yaml)
        .doc("An expression in CEL that must be true: 'packet.status == 200'.")],
    ..FLOW
};

const OUT: usize = 1;

struct Assert {
    expect: Expression,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Assert { expect: Expression::of(parameters.yaml("expect"), &[])? }))
}

impl FlowNode for Assert {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.expect.holds((at.flow(), &packet)) {
            Ok(true) => Step::Pass(OUT, packet),
            Ok(false) => {
                let (expected, came) = (self.expect.text(), show(&packet));
                Step::Fail(Error::new(format_args!("expected {expected}, found packet {came}")))
            }
            Err(error) => Step::Fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use crate::testing::{refusals, reply};

    const GRAPH: &str = "- {kind: assert, name: small, expect: packet < 10}";

    #[test]
    fn what_is_as_expected_passes() {
        assert_eq!(reply(GRAPH, Value::Integer(9)), Ok(Some(Value::Integer(9))));
    }

    #[test]
    fn what_is_not_says_what_was_expected_and_what_came() {
        let error = reply(GRAPH, Value::Integer(10)).expect_err("not small");
        assert_eq!(error.text(), "expected packet < 10, found packet 10");
        assert_eq!((error.status(), error.shown()), (500, None), "nothing internal leaves");
    }

    #[test]
    fn what_cannot_be_compared_is_an_error_too() {
        let error = reply(GRAPH, Value::text("x")).expect_err("no number");
        assert!(error.text().contains("packet < 10"), "{error}");
    }

    #[test]
    fn a_long_value_is_cut() {
        let graph = "- {kind: assert, name: none, expect: packet == ''}";
        let error = reply(graph, Value::text("x".repeat(100_000)));
        assert!(error.expect_err("not empty").text().len() < 1100);
    }

    #[test]
    fn a_bad_expression_is_refused() {
        let graph = "- {kind: assert, name: a, expect: 'packet ==='}";
        assert!(refusals(graph)[0].message.contains("not an expression"));
    }
}
