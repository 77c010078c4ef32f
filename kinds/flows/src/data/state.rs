//! `state`: one operation on an entry of a store.

use std::sync::Arc;

use bytestring::ByteString;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, NodeContext, Step, Value, cbor, error, input,
    output,
};
use sinew_spec::item_json;

use super::entries::{Act, Asked, Outcome};
use super::store::{self, Store};
use crate::script::expression::Expression;
use crate::script::key::Key;
use crate::script::template::Template;
use crate::script::{refused, taken};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

/// Longest time that an entry may be kept for: ten years.
pub(super) const EXPIRE_NS_MAX: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;
/// Most elements of a list that `append` makes.
const KEEP_MAX: i64 = 1_000_000;
/// Bytes of an entry that are written, and read, for one unit of work; the same as for JSON.
const BYTES_WRITTEN_PER_UNIT: usize = 8;
const BYTES_READ_PER_UNIT: usize = 4;

static INFO: Kind = Kind {
    name: "state",
    doc: "Reads or changes one entry of a store, as one atomic operation. The value of the entry \
          after it (with 'delete', before it) goes to 'out' as the packet, or is set as a value of \
          the flow ('into').",
    ports: &[
        input("in", "The packet."),
        error(),
        output("out", "The value of the entry; with 'into' the packet."),
        output(
            "otherwise",
            "The packet, if 'get' or 'delete' finds no entry, or 'replace' another value. Without \
             a link: the value is nothing (null); with 'replace', an error with status 409.",
        ),
    ],
    parameters: &[
        Parameter::new("store", ParameterType::Text).doc("The name of a node of the kind 'store'."),
        Parameter::new("do", ParameterType::Choice(OPERATIONS)).or("get").doc(
            "get; set; append (to a list); replace (if the value is 'expected'); increment (a \
             whole number, 0 without an entry); delete; figures (of the store, without a key).",
        ),
        Parameter::new("key", ParameterType::Yaml)
            .or("~")
            .doc("Which entry, as an expression (CEL) that gives a text or a whole number."),
        Parameter::new("value", ParameterType::Yaml)
            .or("~")
            .doc("A template: the value that is set, appended, or put in place of 'expected'."),
        Parameter::new("expected", ParameterType::Yaml)
            .or("~")
            .doc("A template: the value that 'replace' must find; null: no entry."),
        Parameter::new("by", ParameterType::Yaml)
            .or("1")
            .doc("How much 'increment' adds, as an expression."),
        Parameter::new("keep", ParameterType::Integer { min: 1, max: KEEP_MAX })
            .or("1000")
            .doc("Most elements that 'append' keeps; the first ones are removed."),
        Parameter::new("expire", ParameterType::Duration { min_ns: 0, max_ns: EXPIRE_NS_MAX })
            .or("0s")
            .doc(
                "The entry expires this long after the operation. 0s: never after 'set' and \
                 'replace'; 'append' and 'increment' leave its time as it was.",
            ),
        Parameter::new("into", ParameterType::Text)
            .or("\"\"")
            .doc("The flow's value (values.NAME) that is set; the packet is unchanged."),
    ],
    ..FLOW
};

const OUT: usize = 2;
const OTHERWISE: usize = 3;

const OPERATIONS: &[&str] = &["get", "set", "append", "replace", "increment", "delete", "figures"];

struct State {
    store_name: String,
    store: Option<Arc<Store>>,
    /// `None` if it asks for the store's figures.
    operation: Option<(Key, What)>,
    expire_ms: Option<u64>,
    into: Option<ByteString>,
}

enum What {
    Get,
    Set(Template),
    Append(Template, u64),
    Replace { expected: Template, value: Template },
    Increment(Expression),
    Delete,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = misplaced(parameters);
    let store_name = store::named(parameters).map_err(|refusal| vec![refusal]);
    let store_name = taken(store_name, &mut refusals);
    let operation = taken(operation(parameters), &mut refusals);
    let (Some(store_name), Some(operation), true) = (store_name, operation, refusals.is_empty())
    else {
        return Err(refusals);
    };
    Ok(Box::new(State {
        store_name,
        store: None,
        operation,
        expire_ms: expire_ms(parameters),
        into: Some(parameters.text("into")).filter(|it| !it.is_empty()).map(ByteString::from),
    }))
}

/// The time that `expire` gives; `None` for 0s.
pub(super) fn expire_ms(parameters: &Parameters<'_>) -> Option<u64> {
    let expire = parameters.duration("expire");
    (!expire.is_zero()).then(|| (expire.as_millis() as u64).max(1))
}

/// Parameters that this operation does not use, and those that it lacks.
fn misplaced(parameters: &Parameters<'_>) -> Vec<Refusal> {
    let operation = parameters.text("do");
    let has = |name| match name {
        "expire" => !parameters.duration(name).is_zero(),
        _ => !item_json(parameters.yaml(name)).is_null(),
    };
    let changes = ["set", "append", "replace", "increment"];
    let rows: [(&str, &[&str], bool); 4] = [
        ("key", &["get", "set", "append", "replace", "increment", "delete"], true),
        ("value", &changes[..3], true),
        ("expected", &["replace"], false),
        ("expire", &changes, false),
    ];
    let mut refusals = Vec::new();
    for (name, operations, is_needed) in rows {
        let (message, help) = match (operations.contains(&operation), has(name)) {
            (false, true) => (
                format!("'{name}' has no meaning with 'do: {operation}'"),
                format!("remove it; it goes with {}", operations.join(", ")),
            ),
            (true, false) if is_needed => {
                let example = if name == "key" { "packet.user" } else { "\"{{ packet.text }}\"" };
                (format!("'do: {operation}' needs '{name}'"), format!("add '{name}: {example}'"))
            }
            _ => continue,
        };
        refusals.push(Refusal::new(parameters.span(name), message, help));
    }
    refusals
}

fn operation(parameters: &Parameters<'_>) -> Result<Option<(Key, What)>, Vec<Refusal>> {
    let (operation, key) = (parameters.text("do"), parameters.yaml("key"));
    if operation == "figures" || item_json(key).is_null() {
        return Ok(None);
    }
    let template = |name| Template::compile(parameters.yaml(name));
    let what = match operation {
        "get" => Ok(What::Get),
        "set" => template("value").map(What::Set),
        "append" => template("value")
            .map(|value| What::Append(value, parameters.integer("keep").unsigned_abs())),
        "replace" => template("expected")
            .and_then(|expected| Ok(What::Replace { expected, value: template("value")? })),
        "increment" => Expression::of(parameters.yaml("by"), &[]).map(What::Increment),
        _ => Ok(What::Delete),
    };
    match (Key::of(key), what) {
        (Ok(key), Ok(what)) => Ok(Some((key, what))),
        (key, what) => Err([key.err(), what.err()].into_iter().flatten().flatten().collect()),
    }
}

impl FlowNode for State {
    fn attach(&mut self, site: &NodeContext) {
        self.store = site.resource(&self.store_name);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            match self.carry_out(at, &packet).await {
                Ok(Some(value)) => self.pass(at, packet, value),
                Ok(None) if at.is_linked(OTHERWISE) => Step::Pass(OTHERWISE, packet),
                Ok(None) if matches!(self.operation, Some((_, What::Replace { .. }))) => {
                    Step::Fail(refused(409, "the entry has another value than was expected"))
                }
                Ok(None) => self.pass(at, packet, Value::Null),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl State {
    fn pass<'a>(&self, at: At<'a>, packet: Value, value: Value) -> Step<'a> {
        match &self.into {
            Some(name) => {
                at.flow().set(name.clone(), value);
                Step::Pass(OUT, packet)
            }
            None => Step::Pass(OUT, value),
        }
    }

    /// The entry's value; `None` if there is no entry, or it is not as expected.
    async fn carry_out(&self, at: At<'_>, packet: &Value) -> Result<Option<Value>, Error> {
        let store = self.store.as_deref().expect("its name was looked up as the node was made");
        let Some((key, what)) = &self.operation else { return Ok(Some(store.figures())) };
        let flow = at.flow();
        let key = key.find(flow, packet)?;
        let act = act(what, flow, packet, store.value_max()).await?;
        let asked = Asked { key: (&*key).into(), act, expire_ms: self.expire_ms };
        match store.carry_out(at.pool(), asked).await? {
            Outcome::Is(bytes) => read(flow, &bytes).map(Some),
            Outcome::Missing | Outcome::Differs => Ok(None),
        }
    }
}

async fn act(what: &What, flow: &Flow, packet: &Value, value_max: usize) -> Result<Act, Error> {
    let made = async |template: &Template| flow.resolve(&template.render(flow, packet).await?);
    let written = async |template| write(flow, &made(template).await?, value_max);
    Ok(match what {
        What::Get => Act::Get,
        What::Delete => Act::Delete,
        What::Set(value) => Act::Set(written(value).await?),
        What::Append(value, keep) => Act::Append { element: written(value).await?, keep: *keep },
        What::Replace { expected, value } => {
            let expected = made(expected).await?;
            // The expected value waits for the disk like the new value, so it has the same bound.
            write(flow, &expected, value_max)?;
            Act::Replace { expected, value: written(value).await? }
        }
        What::Increment(by) => match by.evaluate((flow, packet))? {
            Value::Integer(by) => Act::Increment(by),
            other => {
                let what = format!("'by' gives {}, not a whole number", other.sort());
                return Err(refused(400, what));
            }
        },
    })
}

/// A value as the bytes of an entry. The cost is drawn from the flow's work.
pub(super) fn write(flow: &Flow, value: &Value, len_max: usize) -> Result<bytes::Bytes, Error> {
    let bytes = cbor::bytes(value, len_max)?;
    flow.spend((bytes.len() / BYTES_WRITTEN_PER_UNIT) as u64)?;
    Ok(bytes)
}

/// The value of an entry. The cost is drawn from the flow's work.
pub(super) fn read(flow: &Flow, bytes: &[u8]) -> Result<Value, Error> {
    flow.spend((bytes.len() / BYTES_READ_PER_UNIT) as u64)?;
    cbor::value(bytes)
}

#[cfg(test)]
mod tests;
