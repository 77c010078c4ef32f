//! `for`: sends on the elements of a list, one packet each.

use std::cell::Cell;

use futures_util::{StreamExt, stream};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, Reply, Step, Value, error, input, output,
};

use crate::script::expression::Expression;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "for",
    doc: "Sends each element of a list to 'out'. The replies, in the order of the elements and \
          null for nothing, are a list: it goes to 'done'; without a link it is the reply. After \
          an error no more elements are begun; those under way end, and their errors are joined.",
    ports: &[
        input("in", "The list, or the packet for 'items'."),
        error(),
        output("out", "An element."),
        output("done", "The list of replies."),
    ],
    parameters: &[
        Parameter::new("items", ParameterType::Text)
            .or(PACKET)
            .doc("The list, as an expression (CEL) over 'packet'."),
        Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 })
            .or("1")
            .doc("Most elements that are under way at once."),
        Parameter::new("items_max", ParameterType::Integer { min: 1, max: 10_000_000 })
            .or("10000")
            .doc("Most elements of a list; a longer one is an error."),
    ],
    ..FLOW
};

/// The expression that needs no evaluation.
const PACKET: &str = "packet";

const OUT: usize = 2;
const DONE: usize = 3;

/// Work that an element costs, without the work of its nodes.
pub(crate) const ELEMENT_WORK: u64 = 3;

struct For {
    /// `None` for the packet itself.
    items: Option<Expression>,
    concurrency: usize,
    items_max: usize,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let items = match parameters.text("items") {
        PACKET => None,
        text => Some(Expression::compile(text, parameters.span("items"))?),
    };
    let number = |name| parameters.integer(name) as usize;
    let (concurrency, items_max) = (number("concurrency"), number("items_max"));
    Ok(Box::new(For { items, concurrency, items_max }))
}

impl FlowNode for For {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let items = match self.items(at, packet) {
            Ok(items) => items,
            Err(error) => return Step::Fail(error),
        };
        Step::wait(async move { Step::pass(DONE, self.replies(at, &items).await.map(Value::list)) })
    }
}

impl For {
    fn items(&self, at: At<'_>, packet: Value) -> Result<std::sync::Arc<Vec<Value>>, Error> {
        let items = match &self.items {
            Some(expression) => expression.evaluate((at.flow(), &packet))?,
            None => packet,
        };
        let Value::List(items) = items else {
            return Err(Error::new(format_args!("expected a list, got {}", items.sort())));
        };
        if items.len() > self.items_max {
            return Err(Error::new(format_args!(
                "a list of {} elements, at most {}; raise items_max",
                items.len(),
                self.items_max
            )));
        }
        Ok(items)
    }

    /// The replies to all elements, in their order.
    async fn replies(&self, at: At<'_>, items: &[Value]) -> Result<Vec<Value>, Error> {
        let has_failed = Cell::new(false);
        let call = async |(place, item): (usize, &Value)| {
            let reply = match at.flow().spend(ELEMENT_WORK) {
                // `call` lets other flows have the worker after a slice of time.
                Ok(()) => at.call(OUT, item.clone()).await,
                Err(error) => Err(error),
            };
            has_failed.set(has_failed.get() || reply.is_err());
            (place, reply)
        };
        let begun = items.iter().enumerate().take_while(|_| !has_failed.get()).map(call);
        let mut replies: Vec<(usize, Reply)> =
            stream::iter(begun).buffer_unordered(self.concurrency).collect().await;
        replies.sort_unstable_by_key(|(place, _)| *place);
        let (mut values, mut errors) = (Vec::with_capacity(replies.len()), Vec::new());
        for (_, reply) in replies {
            match reply {
                Ok(value) => values.push(value.unwrap_or_default()),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(values) } else { Err(Error::joined(errors)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sinew_flow::Value;

    use crate::testing::{fixture, run};

    #[test]
    fn the_deadline_ends_a_list_whose_elements_never_wait() {
        let fixture = fixture(
            "
            - {kind: for, name: f, items_max: 1000000, ports: {out: [{name: a, port: in}]}}
            - {kind: snippet, name: a, language: lua, time: 10s, code: 'for i = 1, 10000 do end'}
            ",
        );
        let items = Value::list((0..1_000_000).map(Value::Integer));
        let reply = run(fixture.open("begin", 0, items, Duration::from_millis(20)));
        assert_eq!(reply.expect_err("there was no time for all").status(), 504);
    }
}
