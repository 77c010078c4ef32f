//! `send`: puts a command into a mailbox of the core. The command is checked, and `send` never
//! waits for the core.

mod fields;

use bytestring::ByteString;
use sinew_core::catalogue::{ANY_MESSAGE, Kind, MessageType, Parameter, ParameterType, Port};
use sinew_core::transport::Sent;
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, MessageOutput, NodeContext, Step, Value, error,
    input, output, to_message,
};

use self::fields::{check, count_max};
use super::{refused, unavailable};
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "send",
    doc: "Makes a message of 'value' and puts it into a mailbox of the core, which reads it at the \
          beginning of a cycle. 'value' must have every field of the message, with a value that \
          fits, and no other field: else it fails with status 400. If the mailbox is full or the \
          core has stopped, it fails with status 503; it never waits.",
    ports: &[
        input("in", "The packet, from which 'value' is made."),
        output("out", "{sent: true}."),
        error(),
        Port::output("to", "The link into the core.", &ANY_MESSAGE),
    ],
    parameters: &[
        Parameter::new("value", ParameterType::Yaml)
            .or("'{{ packet }}'")
            .doc("The fields of the message: a mapping with templates in it."),
        Parameter::new("count", ParameterType::Text).or("").doc(
            "A field that is not in 'value': it is filled with a higher number in every message, \
             for a reader that tells commands apart by it. Empty: none.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 1;
const TO: usize = 3;

struct Send {
    to: Vec<MessageOutput>,
    value: Template,
    /// The field that gets the number of the message.
    count: Option<ByteString>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let value = Template::compile(parameters.yaml("value"))?;
    let count = Some(parameters.text("count")).filter(|name| !name.is_empty());
    let messages = parameters.messages.iter().filter(|(port, _)| *port == TO);
    let refusals: Vec<_> = messages.flat_map(|(_, ty)| check(ty, parameters, count)).collect();
    if !refusals.is_empty() {
        return Err(refusals);
    }
    Ok(Box::new(Send { to: Vec::new(), value, count: count.map(ByteString::from) }))
}

impl FlowNode for Send {
    fn attach(&mut self, site: &NodeContext) {
        self.to = site.outputs[TO].clone();
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            let rendered = self.value.render(at.flow(), &packet).await;
            let resolved = rendered.and_then(|value| at.flow().resolve(&value));
            let sent = resolved.and_then(|value| self.send(&value));
            Step::pass(OUT, sent.map(|()| Value::map([("sent", Value::Bool(true))])))
        })
    }
}

impl Send {
    /// Sends to all links; an error if one does not take it.
    fn send(&self, value: &Value) -> Result<(), Error> {
        if self.to.is_empty() {
            return Err(unavailable("no core runs here"));
        }
        self.to.iter().try_for_each(|to| {
            match to.send(|number| self.message(to.message(), value, number))? {
                Sent::Done => Ok(()),
                Sent::Full => Err(unavailable("the mailbox is full; try again")),
                Sent::Closed => Err(unavailable("the core has stopped")),
            }
        })
    }

    fn message(&self, ty: &MessageType, value: &Value, number: u64) -> Result<Vec<u8>, Error> {
        let numbered = match &self.count {
            Some(field) => &with_number(ty, value, field, number)?,
            None => value,
        };
        // The caller may see this error: it describes the interface, and nothing internal.
        to_message(ty, numbered).map_err(|error| refused(error.status(), error.text()))
    }
}

/// The value with its number, wrapped to what the field can hold.
fn with_number(
    ty: &MessageType,
    value: &Value,
    name: &ByteString,
    number: u64,
) -> Result<Value, Error> {
    let Value::Map(map) = value else { return Ok(value.clone()) };
    if map.contains_key(name) {
        return Err(refused(400, format!("'{name}' is filled in by this node; leave it out")));
    }
    let max = count_max(ty, name).expect("checked as the node was made");
    let mut map = (**map).clone();
    map.insert(name.clone(), Value::Integer((number & max) as i64));
    Ok(Value::Map(map.into()))
}

#[cfg(test)]
mod tests;
