//! The kind of one node. A row of its table that stands for several ports, or for a message that
//! the graph declares, is replaced by what the node's parameters say.

use std::collections::HashSet;

use sinew_plan::catalogue::{
    FLAG, Field, Form, Kind, MessageType, NAMED_MESSAGE, ParameterValue, Port, REAL, Scalar, Unit,
    unit_of_name,
};
use sinew_plan::{Data, Span};

use crate::fields::{Fields, Named, check_name};
use crate::made::{self, PortRow};
use crate::messages::Messages;

/// The kind of a node with these values; `None` if they do not define its ports, which is reported.
pub(crate) fn of_node(
    kind: &'static Kind,
    values: &[ParameterValue],
    fields: &Fields<'_>,
    messages: &Messages<'_>,
) -> Option<&'static Kind> {
    let is_fixed = |port: &Port| port.form == Form::One && port.message.hash != NAMED_MESSAGE.hash;
    if kind.ports.iter().all(is_fixed) {
        return Some(kind);
    }
    // A missing value is reported already.
    if values.len() != kind.parameters.len() {
        return None;
    }
    let node = Shaped { kind, values, fields, messages };
    let mut ports = Vec::new();
    for port in kind.ports {
        ports.extend(node.rows(port)?);
    }
    node.is_each_once(&ports).then(|| made::kind(kind, &ports))
}

/// The names of a message's numbers as a link writes them, and their types as ports have them.
pub(crate) fn numbers(message: &MessageType) -> impl Iterator<Item = (String, Scalar)> + '_ {
    message.fields.iter().flat_map(|field| {
        let name = |at: u32| match field.count {
            1 => field.name.to_owned(),
            _ => format!("{}[{at}]", field.name),
        };
        (0..field.count).map(move |at| (name(at), field.scalar))
    })
}

/// A node whose ports are to be found.
struct Shaped<'n, 'a> {
    kind: &'static Kind,
    values: &'n [ParameterValue],
    fields: &'n Fields<'a>,
    messages: &'n Messages<'a>,
}

impl Shaped<'_, '_> {
    /// The ports that a row of the table stands for.
    fn rows(&self, port: &Port) -> Option<Vec<PortRow>> {
        let row = |name: String, message| PortRow {
            name,
            rest: Port { message, form: Form::One, ..*port },
        };
        match port.form {
            Form::One => Some(vec![row(port.name.to_owned(), port.message)]),
            Form::Each(parameter) => {
                let names = self.texts(parameter).iter().enumerate();
                let port = |(at, name): (usize, &String)| {
                    check_name(self.named(parameter, at, name), "a port", self.fields.report);
                    let row = row(name.clone(), port.message);
                    // A single letter such as 'a' does not mean ampere.
                    let is_number = port.message.hash == REAL.hash;
                    let unit = unit_of_name(name).filter(|_| is_number && name.contains('_'));
                    let unit = unit.map_or(row.rest.unit, Unit::Of);
                    PortRow { rest: row.rest.unit(unit), ..row }
                };
                Some(names.map(port).collect())
            }
            Form::Message(parameter) => {
                Some(vec![row(port.name.to_owned(), self.message(parameter)?)])
            }
            Form::Fields(parameter) => {
                let port = |(name, scalar): (String, Scalar)| {
                    let unit = unit_of_name(&name).map_or(Unit::Any, Unit::Of);
                    let row = row(name, if scalar == Scalar::Bool { &FLAG } else { &REAL });
                    PortRow { rest: row.rest.unit(unit), ..row }
                };
                Some(numbers(self.message(parameter)?).map(port).collect())
            }
        }
    }

    fn value(&self, parameter: &str) -> &ParameterValue {
        let at = self.kind.parameters.iter().position(|row| row.name == parameter);
        let at = at.unwrap_or_else(|| panic!("{} has no '{parameter}'", self.kind.name));
        &self.values[at]
    }

    fn texts(&self, parameter: &str) -> &[String] {
        match self.value(parameter) {
            ParameterValue::Texts(texts) => texts,
            other => panic!("'{parameter}' of {} is not a list: {other:?}", self.kind.name),
        }
    }

    fn message(&self, parameter: &str) -> Option<&'static MessageType> {
        let ParameterValue::Text(text) = self.value(parameter) else {
            panic!("'{parameter}' of {} is not text", self.kind.name);
        };
        let span = self.fields.at(parameter);
        self.messages.find(Named { text, span }, self.fields.report)
    }

    /// Text `at` of a list, with its place.
    fn named<'t>(&self, parameter: &str, at: usize, text: &'t str) -> Named<'t> {
        let span = match self.fields.get(parameter).map(|item| &item.data) {
            Some(Data::List(items)) => items.get(at).map(|item| item.span),
            _ => None,
        };
        Named { text, span: span.unwrap_or(self.fields.span) }
    }

    /// Whether no two ports have the same name; reports those that have.
    fn is_each_once(&self, ports: &[PortRow]) -> bool {
        let mut seen = HashSet::new();
        let twice: Vec<&str> =
            ports.iter().map(|port| &*port.name).filter(|name| !seen.insert(*name)).collect();
        for name in &twice {
            let text = format!("two ports of {} would be named '{name}'", self.kind.name);
            self.fields.report.error(self.span_of(name), text, "give one of them another name");
        }
        twice.is_empty()
    }

    /// The place where a port's name was written last.
    fn span_of(&self, name: &str) -> Span {
        let lists = self.kind.parameters.iter().filter_map(|row| match self.value(row.name) {
            ParameterValue::Texts(texts) => Some((row.name, texts)),
            _ => None,
        });
        let mut found = lists.filter_map(|(parameter, texts)| {
            let at = texts.iter().rposition(|text| text == name)?;
            Some(self.named(parameter, at, name).span)
        });
        found.next().unwrap_or(self.fields.span)
    }
}

/// The number of a message that a link names: `position_rad`, or `force_n[2]`.
pub(crate) fn find_number(message: &MessageType, name: &str) -> Option<(Field, u32)> {
    let (field, at) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((field, at)) => (field, Some(at.parse::<u32>().ok()?)),
        None => (name, None),
    };
    let found = message.fields.iter().find(|row| row.name == field)?;
    let at = match at {
        Some(at) => (found.count > 1 && at < found.count).then_some(at)?,
        None => (found.count == 1).then_some(0)?,
    };
    Some((*found, at))
}
