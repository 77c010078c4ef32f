//! `switch`: the first of several outputs whose expression is true.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use sinew_spec::{Data, Entry, Item};

use super::expression::Expression;
use super::taken;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "switch",
    doc: "Passes a packet on through the port of the first expression that is true for it. If none \
          is, it goes to 'otherwise'; without one, that is an error with status 404.",
    ports: &[
        input("in", "The packet."),
        error(),
        output("out[]", "The ports that 'matches' and 'otherwise' name."),
    ],
    parameters: &[
        Parameter::new("matches", ParameterType::Yaml)
            .doc("A list of {when: expression, port: out[i]}; they are tried in this order."),
        Parameter::new("otherwise", ParameterType::Yaml).or("~").doc("The port for all others."),
    ],
    ..FLOW
};

/// Most entries of `matches`.
const MATCHES_MAX: usize = 256;
/// The status of HTTP for a packet that no entry matches.
const NOT_FOUND: u16 = 404;

struct Switch {
    matches: Vec<(Expression, usize)>,
    otherwise: Option<usize>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let matches = matches(parameters.yaml("matches"), &mut refusals);
    let otherwise = match &parameters.yaml("otherwise").data {
        Data::Scalar { text, plain: true } if text.is_empty() || text == "~" => None,
        _ => port(parameters.yaml("otherwise"), &mut refusals),
    };
    if refusals.is_empty() { Ok(Box::new(Switch { matches, otherwise })) } else { Err(refusals) }
}

fn matches(item: &Item, refusals: &mut Vec<Refusal>) -> Vec<(Expression, usize)> {
    let help = "write - {when: 'packet.age >= 18', port: 'out[0]'}";
    let Data::List(items) = &item.data else {
        let message = format!("'matches' is a list, found {}", item.sort());
        refusals.push(Refusal::new(item.span, message, help));
        return Vec::new();
    };
    if items.len() > MATCHES_MAX {
        let message = format!("{} entries; at most {MATCHES_MAX}", items.len());
        refusals.push(Refusal::new(item.span, message, "a router finds its way faster"));
        return Vec::new();
    }
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let Data::Map(entries) = &item.data else {
            refusals.push(Refusal::new(item.span, "an entry has 'when' and 'port'", help));
            continue;
        };
        for Entry { key, span, .. } in entries {
            if !["when", "port"].contains(&key.as_str()) {
                refusals.push(Refusal::new(*span, format!("there is no key '{key}' here"), help));
            }
        }
        let value =
            |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.value);
        let (Some(when), Some(to)) = (value("when"), value("port")) else {
            refusals.push(Refusal::new(item.span, "an entry has 'when' and 'port'", help));
            continue;
        };
        let to = port(to, refusals);
        all.extend(taken(Expression::of(when, &[]), refusals).zip(to));
    }
    all
}

/// The index of a port that the spec names.
fn port(item: &Item, refusals: &mut Vec<Refusal>) -> Option<usize> {
    let named = match &item.data {
        Data::Scalar { text, .. } => {
            INFO.port_index(text).filter(|&port| INFO.port(port).name == "out[]")
        }
        _ => None,
    };
    if named.is_none() {
        let message = "this is none of the ports out[0], out[1]..";
        refusals.push(Refusal::new(item.span, message, "write 'out[0]' in quotes"));
    }
    named
}

impl FlowNode for Switch {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        self.from(at, 0, packet)
    }
}

impl Switch {
    /// Tries the entries from `first` on. Before each of them others may have the worker.
    fn from<'a>(&'a self, at: At<'a>, first: usize, packet: Value) -> Step<'a> {
        for (place, (when, port)) in self.matches.iter().enumerate().skip(first) {
            if place > first && at.flow().is_due() {
                return Step::wait(async move {
                    at.flow().turn().await;
                    self.from(at, place, packet)
                });
            }
            match when.holds((at.flow(), &packet)) {
                Ok(true) => return Step::Pass(*port, packet),
                Ok(false) => {}
                Err(error) => return Step::Fail(error),
            }
        }
        match self.otherwise {
            Some(port) => Step::Pass(port, packet),
            None => {
                let text =
                    "no entry of 'matches' is true for this packet, and there is no 'otherwise'";
                Step::Fail(Error::new(text).with_status(NOT_FOUND))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use crate::testing::{refusals, reply};

    const GRAPH: &str = "
        - kind: switch
          name: a
          matches:
            - {when: packet < 0, port: 'out[0]'}
            - {when: packet < 10, port: 'out[1]'}
            - {when: packet < 10, port: 'out[0]'}
          otherwise: out[2]
          ports:
            out[0]: [{name: negative, port: in}]
            out[1]: [{name: small, port: in}]
        - {kind: snippet, name: negative, language: text, code: negative}
        - {kind: snippet, name: small, language: text, code: small}
    ";

    #[test]
    fn the_first_that_is_true_wins() {
        assert_eq!(reply(GRAPH, Value::Integer(-1)), Ok(Some(Value::text("negative"))));
        assert_eq!(reply(GRAPH, Value::Integer(1)), Ok(Some(Value::text("small"))));
        // out[2] leads nowhere.
        assert_eq!(reply(GRAPH, Value::Integer(10)), Ok(Some(Value::Integer(10))));
    }

    #[test]
    fn without_otherwise_the_rest_is_an_error() {
        let text = GRAPH.replace("otherwise: out[2]", "");
        let error = reply(&text, Value::Integer(10)).unwrap_err();
        assert_eq!(error.status(), 404);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = "
            - kind: switch
              name: a
              matches:
                - {when: packte < 0, port: 'out[0]'}
                - {when: 'true', port: error}
                - {when: 'true', prot: 'out[1]'}
                - x
              otherwise: nowhere
        ";
        let refusals = refusals(text);
        let found: Vec<_> = refusals.iter().map(|refusal| refusal.message.as_str()).collect();
        assert_eq!(found.len(), 6, "{found:?}");
    }
}
