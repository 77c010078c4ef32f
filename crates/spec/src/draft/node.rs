//! Nodes as the user wrote them, read by the tables of their kinds, with the links that they write
//! to.

use sinew_plan::catalogue::{Kind, Parameter, ParameterType, ParameterValue};
use sinew_plan::plan::{Actuator, Delivery, Full, Sync, Transport, Wait};
use sinew_plan::{Data, Entry, Item, Span};

use super::requires::{self, Required};
use crate::diagnostic::Report;
use crate::fields::{Fields, Named, how_to_add, list};
use crate::keys;
use crate::nearest::suggest;
use crate::value::parameter;
use crate::yaml::parse;

/// A node.
pub(crate) struct Node<'a> {
    /// Its name, within its scope.
    pub(crate) name: Named<'a>,
    /// The scope of the names in its links: 0 is outside of blocks, `n` inside block `n - 1`.
    pub(crate) scope: usize,
    /// `None` if its kind is unknown or not allowed here, which is reported already.
    pub(crate) kind: Option<&'static Kind>,
    pub(crate) domain: Option<Named<'a>>,
    /// Whether everything that it takes from outside of the spec exists.
    pub(crate) is_whole: bool,
    pub(crate) values: Vec<ParameterValue>,
    pub(crate) spans: Vec<Span>,
    pub(crate) entries: Vec<Vec<Item>>,
    pub(crate) written: Vec<Option<String>>,
    pub(crate) actuators: Vec<Actuator>,
    pub(crate) links: Vec<Link<'a>>,
    /// Whether all its links could be read.
    pub(crate) links_complete: bool,
    /// Where the node begins.
    pub(crate) span: Span,
}

/// A link, as written at its writer: a node or a block.
pub(crate) struct Link<'a> {
    /// Output of the writer: a port of its kind, or a gate; `None` if it is unknown.
    pub(crate) from: Option<usize>,
    pub(crate) node: Named<'a>,
    pub(crate) port: Named<'a>,
    /// The one number of the writer's message that the reader takes.
    pub(crate) field: Option<Named<'a>>,
    // The default of an option depends on where the link leads.
    pub(crate) transport: Option<Transport>,
    pub(crate) sync: Option<Sync>,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) wait: Option<Wait>,
    pub(crate) capacity: u32,
    pub(crate) full: Option<Full>,
    pub(crate) delay: bool,
    pub(crate) after_ns: Option<u64>,
    pub(crate) requires: Vec<Required>,
    /// The mapping as written, for the places of options.
    pub(crate) fields: Fields<'a>,
}

/// Whether a node may be in this scope; reports one that may not.
pub(super) fn may_stand(kind: &Kind, name: Named<'_>, scope: usize, report: &Report) -> bool {
    let good = scope == 0 || kind.runs_in.is_flow();
    if !good {
        let message = format!(
            "node '{}' ({}) cannot stand in a block: it takes no part in flows",
            name.text, kind.name
        );
        let help = "put it outside the block, and link it to a port of the block";
        report.error(name.span, message, help);
    }
    good
}

/// A kind, with the defaults of its parameters read once for all its nodes.
pub(super) struct Known {
    pub(super) kind: &'static Kind,
    defaults: Vec<Option<ParameterValue>>,
}

impl Known {
    pub(super) fn new(kind: &'static Kind) -> Known {
        let default = |row: &Parameter| row.default.map(|text| default_value(kind, row, text));
        Known { kind, defaults: kind.parameters.iter().map(default).collect() }
    }
}

/// The entries of a list of texts.
pub(super) fn texts(row: &Parameter, item: Option<&Item>) -> Vec<Item> {
    match (row.ty, item.map(|item| &item.data)) {
        (ParameterType::Texts { .. }, Some(Data::List(items))) => items.clone(),
        _ => Vec::new(),
    }
}

pub(super) fn values(known: &Known, fields: &Fields<'_>, name: Named<'_>) -> Vec<ParameterValue> {
    let report = fields.report;
    let mut values = Vec::with_capacity(known.defaults.len());
    for (row, default) in known.kind.parameters.iter().zip(&known.defaults) {
        let value = match (fields.get(row.name), default) {
            (Some(item), _) => parameter(row, item, report),
            (None, Some(value)) => Some(value.clone()),
            (None, None) => {
                let message = format!("node '{}' lacks '{}'", name.text, row.name);
                report.error(name.span, message, how_to_add(row.name, row.doc));
                None
            }
        };
        values.extend(value);
    }
    values
}

/// A default of the catalogue, read as if the spec gave it; `None` if it is refused.
pub(crate) fn read_default(row: &Parameter, text: &str) -> Option<ParameterValue> {
    let item = parse(text, 0, &Report::default()).unwrap_or_else(|| {
        // An empty default is an empty text.
        let data = Data::Scalar { text: text.to_owned(), plain: false };
        Item::new(Span::default(), data)
    });
    parameter(row, &item, &Report::default())
}

fn default_value(kind: &Kind, row: &Parameter, text: &str) -> ParameterValue {
    read_default(row, text).unwrap_or_else(|| {
        panic!("kind {} has a bad default '{text}' for '{}'", kind.name, row.name)
    })
}

pub(super) fn actuators(kind: &Kind, fields: &Fields<'_>, name: Named<'_>) -> Vec<Actuator> {
    let (report, entries) = (fields.report, fields.map("safe"));
    let is_actuator = |at: &usize| !kind.ports[*at].safe.is_empty();
    let actuator_ports = || (0..kind.ports.len()).filter(is_actuator);
    for entry in entries {
        if !actuator_ports().any(|at| kind.ports[at].name == entry.key) {
            let message = format!("'{}' is not an actuator port of {}", entry.key, kind.name);
            let help = suggest(&entry.key, actuator_ports().map(|at| kind.ports[at].name));
            report.error(entry.span, message, help);
        }
    }
    let mut actuators = Vec::new();
    for port in actuator_ports() {
        let Some(entry) = entries.iter().find(|entry| entry.key == kind.ports[port].name) else {
            let port = &kind.ports[port];
            let message = format!("actuator port '{}.{}' has no safe value", name.text, port.name);
            let help = format!(
                "add 'safe: {{{}: {{value: {}, after: 50}}}}'",
                port.name, port.safe[0].name
            );
            report.error(name.span, message, help);
            continue;
        };
        let fields = Fields::new(&entry.value, &keys::SAFE, &[], entry.span, report);
        let offers = kind.ports[port].safe;
        let safe = fields.text("value").and_then(|value| {
            let found = offers.iter().position(|offer| offer.name == value.text);
            if found.is_none() {
                let message = format!("port '{}' offers no safe value '{}'", entry.key, value.text);
                let help = suggest(value.text, offers.iter().map(|offer| offer.name));
                report.error(value.span, message, help);
            }
            found
        });
        if let (Some(safe), Some(after)) = (safe, fields.number("after")) {
            actuators.push(Actuator { port, safe, after: after as u32 });
        }
    }
    actuators
}

/// The links that begin at a node or block, and whether all of them could be read. `output` finds
/// an output by its name and place, or reports it.
pub(super) fn links<'a>(
    fields: &Fields<'a>,
    output: impl Fn(Named<'a>) -> Option<usize>,
) -> (Vec<Link<'a>>, bool) {
    let mut links = Vec::new();
    let mut complete = true;
    for Entry { key, span, value } in fields.map("ports") {
        let from = output(Named { text: key, span: *span });
        complete &= from.is_some() && matches!(value.data, Data::List(_));
        for item in list(value, key, fields.report) {
            let link = link(from, Fields::of(item, &keys::LINK, fields.report));
            complete &= link.is_some();
            links.extend(link);
        }
    }
    (links, complete)
}

fn link(from: Option<usize>, fields: Fields<'_>) -> Option<Link<'_>> {
    Some(Link {
        from,
        node: fields.text("name")?,
        port: fields.text("port")?,
        field: fields.text("field"),
        transport: fields.given_word("transport", Transport::ALL),
        sync: fields.given_word("sync", Sync::ALL),
        delivery: fields.given_word("delivery", Delivery::ALL),
        wait: fields.given_word("wait", Wait::ALL),
        capacity: fields.number("capacity").unwrap_or(1) as u32,
        full: fields.given_word("full", Full::ALL),
        delay: fields.number("delay").is_none_or(|delay| delay == 1),
        after_ns: fields.number_if_given("after"),
        requires: requires::read(&fields, false),
        fields,
    })
}
