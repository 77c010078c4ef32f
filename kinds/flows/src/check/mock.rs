//! `mocks` of a test: while the test runs, nodes give these answers instead of doing their work.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use sinew_core::{Parameters, Refusal};
use sinew_flow::{At, Error, FlowFixture, FlowNode, NodeContext, Step, Value};
use sinew_spec::{Data, Entry, Item, suggest};

use crate::json;
use crate::script::taken;
use crate::script::template::Template;

/// The mocks of a test, by node.
pub(super) type Mocks = BTreeMap<String, Arc<Mock>>;

/// What a node answers.
pub(super) enum Mock {
    /// This value, as if it had come from outside.
    Answer(Template),
    /// An error: its status, its text, and what the caller is shown.
    Error { status: u16, error: Option<Template>, body: Option<Template> },
}

const HELP: &str = "write 'NODE: {answer: VALUE}' or 'NODE: {error: {status: 404, error: TEXT}}'";

/// The mocks that a test names.
pub(super) fn of(parameters: &Parameters<'_>) -> Result<Mocks, Vec<Refusal>> {
    let item = parameters.yaml("mocks");
    let Data::Map(entries) = &item.data else {
        return Err(vec![Refusal::new(item.span, "mocks are a mapping", HELP)]);
    };
    let (mut mocks, mut refusals) = (Mocks::new(), Vec::new());
    for Entry { key, span, value } in entries {
        let names = parameters.neighbours().map(|node| node.name.as_str());
        if !names.clone().any(|name| name == key) {
            let message = format!("there is no flow node '{key}' that could be mocked");
            refusals.push(Refusal::new(*span, message, suggest(key, names)));
        }
        if let Some(mock) = taken(mock(value), &mut refusals) {
            mocks.insert(key.clone(), Arc::new(mock));
        }
    }
    if refusals.is_empty() { Ok(mocks) } else { Err(refusals) }
}

fn mock(item: &Item) -> Result<Mock, Vec<Refusal>> {
    let refused = || vec![Refusal::new(item.span, "this is not a mock", HELP)];
    let Data::Map(entries) = &item.data else { return Err(refused()) };
    let [Entry { key, value, .. }] = entries.as_slice() else { return Err(refused()) };
    match key.as_str() {
        "answer" => Template::compile(value).map(Mock::Answer),
        "error" => error(value),
        _ => Err(refused()),
    }
}

fn error(item: &Item) -> Result<Mock, Vec<Refusal>> {
    let known = ["status", "error", "body"];
    let Data::Map(entries) = &item.data else {
        return Err(vec![Refusal::new(item.span, "an error is a mapping", HELP)]);
    };
    let unknown = entries.iter().filter(|entry| !known.contains(&&*entry.key));
    let mut refusals: Vec<_> = unknown
        .map(|entry| {
            let message = format!("unknown key '{}' in an error", entry.key);
            Refusal::new(entry.span, message, suggest(&entry.key, known.into_iter()))
        })
        .collect();
    let [error, body] = ["error", "body"]
        .map(|key| item.get(key).and_then(|item| taken(Template::compile(item), &mut refusals)));
    let status = match item.get("status").map(|item| (&item.data, item.span)) {
        None => Some(500),
        Some((Data::Scalar { text, .. }, span)) => {
            let status = text.parse().ok().filter(|status| (400..=599).contains(status));
            if status.is_none() {
                let message = format!("'{text}' is not a status of an error");
                refusals.push(Refusal::new(span, message, "write a number from 400 to 599"));
            }
            status
        }
        Some((_, span)) => {
            let help = "write a number from 400 to 599";
            refusals.push(Refusal::new(span, "a status is a number", help));
            None
        }
    };
    match status {
        Some(status) if refusals.is_empty() => Ok(Mock::Error { status, error, body }),
        _ => Err(refusals),
    }
}

/// The mocks of the test that runs.
pub(super) type Current = Rc<RefCell<Mocks>>;

/// Wraps each node that some test mocks, so that it first looks for a mock.
pub(super) fn install<'a>(
    fixture: &mut FlowFixture,
    names: impl Iterator<Item = &'a str>,
) -> Current {
    let current = Current::default();
    for name in names {
        fixture.wrap(name, |kind, inner| {
            let (name, out, current) = (name.to_owned(), kind.port_index("out"), current.clone());
            Box::new(Mocked { name, out, inner, current })
        });
    }
    current
}

/// A node that some test mocks.
struct Mocked {
    name: String,
    /// The output where its answers go, if it has one.
    out: Option<usize>,
    inner: Box<dyn FlowNode>,
    current: Current,
}

impl FlowNode for Mocked {
    fn attach(&mut self, site: &NodeContext) {
        self.inner.attach(site);
    }

    fn handle<'a>(&'a self, at: At<'a>, input: usize, packet: Value) -> Step<'a> {
        let mock = self.current.borrow().get(&self.name).cloned();
        let Some(mock) = mock else { return self.inner.handle(at, input, packet) };
        Step::compute(async move {
            match mock.answer(at, &packet).await {
                Ok(answer) => match self.out {
                    Some(out) => Step::Pass(out, answer),
                    None => Step::Reply(Some(answer)),
                },
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Mock {
    async fn answer(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let (status, error, body) = match self {
            Mock::Answer(answer) => return answer.render(at.flow(), packet).await,
            Mock::Error { status, error, body } => (*status, error, body),
        };
        let text = match error {
            Some(error) => error.render(at.flow(), packet).await?,
            None => Value::text("mocked"),
        };
        let text = json::line(at.flow(), &text).await?;
        let error = Error::new(text).with_status(status);
        Err(match body {
            Some(body) => error.with_shown(body.render(at.flow(), packet).await?),
            None => error,
        })
    }
}
