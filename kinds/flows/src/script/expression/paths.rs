//! Paths into variables: `packet.user.name`, `values.count`, `flow.id`.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use bytestring::ByteString;
use sinew_flow::{Error, Value};

use super::Scope;
use super::budget::{charge, make};
use super::convert::{is_to_come, look, to_cel, weight};
use super::types::{CelBool, CelOptional};
use super::value::{CowVal, Val};

/// A path into a variable.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<StepIn>,
    pub(super) want: Want,
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Root {
    /// `packet`.
    Packet,
    /// `values.name`.
    Value(ByteString),
    /// `flow.id`.
    FlowId,
    /// One of the variables beside the usual ones.
    Also(usize, Box<str>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StepIn {
    Field(Box<str>),
    Element(usize),
}

/// What is wanted of the value at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Want {
    /// The value; without one, an error.
    Value,
    /// Whether there is one: `has(packet.a)`.
    Presence,
    /// The value if there is one: `packet.?a`.
    Optional,
    /// Its size: `size(packet.a)`. The interpreter would look at all of the value.
    Size,
}

/// The status of an error that the client has made.
const BAD_REQUEST: u16 = 400;

/// Charges the price of something that is made.
pub(super) type Pay<'a> = &'a dyn Fn(u64) -> Result<(), Gap>;

/// Why a path leads to no value.
#[derive(Clone, Debug)]
pub(super) enum Gap {
    /// Nothing is there; the text says where.
    Absent(String),
    /// Nothing is there in what the client has sent; with the part that the client left out.
    Unsent(String, String),
    /// What is there cannot be decoded, such as a body that is not JSON.
    Broken(Error),
    /// The expression has cost too much already.
    Stopped,
}

impl Gap {
    /// The gap as the error of an expression; `failed` makes an error of a text.
    pub(super) fn into_error(self, failed: impl Fn(String) -> Error) -> Error {
        match self {
            Gap::Absent(text) => failed(text),
            Gap::Unsent(text, part) => {
                let shown = format!("the request has no {part}");
                let shown = Value::map([("error", Value::text(shown))]);
                failed(text).with_status(BAD_REQUEST).with_shown(shown)
            }
            Gap::Broken(error) => error,
            Gap::Stopped => failed("it takes too much work".to_owned()),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Root::Packet => f.write_str("packet")?,
            Root::Value(name) => write!(f, "values.{name}")?,
            Root::FlowId => f.write_str("flow.id")?,
            Root::Also(_, name) => f.write_str(name)?,
        }
        self.steps.iter().try_for_each(|step| match step {
            StepIn::Field(name) => write!(f, ".{name}"),
            StepIn::Element(at) => write!(f, "[{at}]"),
        })
    }
}

impl Path {
    /// Whether the value itself is wanted.
    pub(super) fn plain(&self) -> bool {
        self.want == Want::Value
    }

    /// The value at its root; `None` if there is none.
    pub(super) fn start<'a>(&self, scope: &Scope<'a>) -> Option<Cow<'a, Value>> {
        match &self.root {
            Root::Packet => Some(Cow::Borrowed(scope.packet)),
            Root::Value(name) => scope.flow?.get(name).map(Cow::Owned),
            Root::FlowId => Some(Cow::Owned(Value::Integer(scope.flow?.id() as i64))),
            Root::Also(at, _) => scope.also.get(*at).map(|value| Cow::Borrowed(*value)),
        }
    }

    /// The value at its end; `pay` is called with the price of what has to be made for it.
    pub(super) fn find<'a>(
        &self,
        start: Option<Cow<'a, Value>>,
        pay: Pay<'_>,
    ) -> Result<Cow<'a, Value>, Gap> {
        let Some(mut at) = start else {
            return Err(Gap::Absent(self.missing(0, "the flow has no such value")));
        };
        let is_sent = match (&*at, self.steps.first()) {
            (Value::Document(document), Some(StepIn::Field(name))) => document.is_sent(name),
            _ => false,
        };
        for (place, step) in self.steps.iter().enumerate() {
            let part = match at {
                Cow::Borrowed(value) => part(value, step, pay)?,
                Cow::Owned(value) => part(&value, step, pay)?.map(owned),
            };
            let Some(part) = part else {
                let text = self.missing(place + 1, "there is no such part");
                return Err(match is_sent {
                    true => Gap::Unsent(text, self.part_name(place + 1)),
                    false => Gap::Absent(text),
                });
            };
            at = part;
        }
        Ok(at)
    }

    /// The text of an error: there is no value after `steps` of its steps.
    #[cold]
    fn missing(&self, steps: usize, why: &str) -> String {
        let steps = self.steps[..steps].to_vec();
        let way = Path { root: self.root.clone(), steps, want: self.want };
        format!("{way}: {why}; has({way}) says whether there is")
    }

    /// A part by its steps alone, as the client knows it.
    #[cold]
    fn part_name(&self, steps: usize) -> String {
        let mut name = String::new();
        for step in &self.steps[..steps] {
            match step {
                StepIn::Field(field) if name.is_empty() => name += field,
                StepIn::Field(field) => name.extend([".", field]),
                StepIn::Element(at) => name += &format!("[{at}]"),
            }
        }
        name
    }
}

fn owned(value: Cow<'_, Value>) -> Cow<'static, Value> {
    Cow::Owned(value.into_owned())
}

/// A part of a value; `None` if it has none of this name.
fn part<'a>(value: &'a Value, step: &StepIn, pay: Pay<'_>) -> Result<Option<Cow<'a, Value>>, Gap> {
    Ok(match (value, step) {
        (Value::Map(map), StepIn::Field(name)) => map.get(&**name).map(Cow::Borrowed),
        (Value::Document(document), StepIn::Field(name)) => {
            if document.names().iter().any(|it| **it == **name) {
                pay(document.price(name))?;
                Some(Cow::Owned(document.field(name).map_err(Gap::Broken)?))
            } else {
                None
            }
        }
        (Value::List(items), StepIn::Element(at)) => items.get(*at).map(Cow::Borrowed),
        _ => None,
    })
}

/// Charges for what is made of a packet while an expression is evaluated.
fn pay(price: u64) -> Result<(), Gap> {
    if make(price) { Ok(()) } else { Err(Gap::Stopped) }
}

/// A path while an expression is evaluated. It is followed once, when its value is first needed.
pub(super) struct Lookup<'a> {
    path: &'a Path,
    start: Option<Cow<'a, Value>>,
    found: OnceLock<Result<Found<'a>, Gap>>,
}

struct Found<'a> {
    value: Cow<'a, Value>,
    /// What the interpreter sees; `None` if that is cheap to make.
    seen: Option<Box<dyn Val>>,
    weight: u64,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(path: &'a Path, scope: &Scope<'a>) -> Lookup<'a> {
        Lookup { path, start: path.start(scope), found: OnceLock::new() }
    }

    /// Why there is no value, after it was asked for.
    pub(super) fn gap(&self) -> Option<Gap> {
        self.found.get()?.as_ref().err().cloned()
    }

    /// What the interpreter gets; `None` where there is nothing.
    pub(super) fn value<'b>(&'b self) -> Option<CowVal<'b, 'b>> {
        let found = self.found.get_or_init(|| self.find());
        let absent = matches!(found, Err(Gap::Absent(_) | Gap::Unsent(..)));
        match (self.path.want, found) {
            (Want::Presence, Ok(_)) => Some(CowVal::owned(CelBool::from(true))),
            (Want::Presence, Err(_)) if absent => Some(CowVal::owned(CelBool::from(false))),
            (Want::Optional, Err(_)) if absent => Some(CowVal::owned(CelOptional::none())),
            (Want::Optional, Ok(found)) => {
                let value = found.show()?.into_owned();
                Some(CowVal::owned(CelOptional::of(value)))
            }
            (Want::Value | Want::Size, Ok(found)) => found.show(),
            (_, Err(_)) => None,
        }
    }

    fn find(&self) -> Result<Found<'a>, Gap> {
        let value = self.path.find(self.start.clone(), &pay)?;
        match self.path.want {
            Want::Presence => return Ok(Found { value, seen: None, weight: 0 }),
            Want::Size => {
                let size = Cow::Owned(Value::Integer(self.size(&value)?));
                return Ok(Found { value: size, seen: None, weight: 1 });
            }
            Want::Value | Want::Optional => {}
        }
        let value = match &*value {
            Value::Document(_) => {
                pay(value.price())?;
                Cow::Owned(value.resolve().map_err(Gap::Broken)?)
            }
            _ => value,
        };
        if is_to_come(&value) {
            return Err(self.refused("a stream cannot be read in cel"));
        }
        let weight = weight(&value);
        let heavy = matches!(*value, Value::List(_) | Value::Map(_));
        // The copy for the interpreter is charged for before it is made.
        if heavy && !charge(weight) {
            return Err(Gap::Stopped);
        }
        let seen = heavy.then(|| to_cel(&value));
        Ok(Found { value, seen, weight })
    }

    /// How many characters, bytes, elements or fields there are.
    fn size(&self, value: &Value) -> Result<i64, Gap> {
        let size = match value {
            Value::Text(text) => {
                if !charge(weight(value)) {
                    return Err(Gap::Stopped);
                }
                text.chars().count()
            }
            Value::Bytes(bytes) => bytes.len(),
            Value::List(items) => items.len(),
            Value::Map(map) => map.len(),
            Value::Document(document) => document.names().len(),
            other => return Err(self.refused(&format!("{} has no size", other.sort()))),
        };
        Ok(size as i64)
    }

    /// The value cannot be used in this way.
    #[cold]
    fn refused(&self, why: &str) -> Gap {
        Gap::Broken(Error::new(format_args!("expression: {}: {why}", self.path)))
    }
}

impl Found<'_> {
    /// What the interpreter sees; each look is charged for.
    fn show<'b>(&'b self) -> Option<CowVal<'b, 'b>> {
        if !charge(self.weight) {
            return None;
        }
        Some(match &self.seen {
            Some(seen) => CowVal::Borrowed(seen.as_ref()),
            None => CowVal::Owned(look(&self.value)),
        })
    }
}
