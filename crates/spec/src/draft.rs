//! The spec as the user wrote it, read by the tables of keys and by the kinds of its nodes. Names
//! of other nodes and domains are still only names here.

mod domain;
mod service;

use std::collections::HashMap;

pub(crate) use domain::{Domain, Realtime, Role, late};

use crate::catalogue::{Direction, Kind, Parameter, Value};
use crate::diagnostic::{Report, Span};
use crate::fields::{Fields, Named, how_to_add, list};
use crate::keys::{self, NODES_MAX};
use crate::nearest::suggest;
use crate::plan::{Actuator, Delivery, Full, Sync, Transport, Wait};
use crate::value::parameter;
use crate::yaml::{Data, Entry, Item, parse};

/// The whole spec.
pub(crate) struct Draft<'a> {
    pub(crate) name: &'a str,
    /// Whether the services outlive the core.
    pub(crate) hold: bool,
    pub(crate) domains: Vec<Domain<'a>>,
    /// Names of domains that are reported already and stand for nothing.
    pub(crate) refused: Vec<&'a str>,
    pub(crate) nodes: Vec<Node<'a>>,
    /// Whether it is only a list of nodes.
    pub(crate) is_bare_list: bool,
}

/// A node.
pub(crate) struct Node<'a> {
    pub(crate) name: Named<'a>,
    /// `None` if its kind is unknown; that is reported already.
    pub(crate) kind: Option<&'static Kind>,
    pub(crate) domain: Option<Named<'a>>,
    pub(crate) values: Vec<Value>,
    pub(crate) spans: Vec<Span>,
    pub(crate) actuators: Vec<Actuator>,
    pub(crate) links: Vec<Link<'a>>,
    /// Whether all its links could be read.
    pub(crate) links_complete: bool,
    /// Where the node begins.
    pub(crate) span: Span,
}

/// A link, as it stands at its writer.
pub(crate) struct Link<'a> {
    /// Output port of the writer; `None` if that is not known.
    pub(crate) from: Option<usize>,
    pub(crate) node: Named<'a>,
    pub(crate) port: Named<'a>,
    // What stands for an option that is not written depends on where the link leads.
    pub(crate) transport: Option<Transport>,
    pub(crate) sync: Option<Sync>,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) wait: Option<Wait>,
    pub(crate) capacity: u32,
    pub(crate) full: Option<Full>,
    pub(crate) delay: bool,
    /// What was written, for the places of options.
    pub(crate) fields: Fields<'a>,
}

/// Puts the values of `--set node.key=value` into the tree.
pub(crate) fn set(root: &mut Item, overrides: &[(String, String)], report: &mut Report) {
    for (at, (path, text)) in overrides.iter().enumerate() {
        let source = at as u32 + 1;
        let span = Span { source, start: 0, len: 1 };
        if text.trim().is_empty() {
            report.error(span, format!("'{path}' gets no value"), "write it after the '='");
            continue;
        }
        let Some(value) = parse(text, source, report) else { continue };
        let Some((node, key)) = path.split_once('.') else {
            report.error(
                span,
                format!("'{path}' names no parameter"),
                "write node.parameter=value",
            );
            continue;
        };
        let names: Vec<String> = nodes_mut(root).filter_map(|item| name_of(item)).collect();
        let Some(found) = names.iter().position(|name| name == node) else {
            let help = suggest(node, names.iter().map(String::as_str));
            report.error(span, format!("there is no node '{node}'"), help);
            continue;
        };
        let Some(Data::Map(entries)) = nodes_mut(root)
            .filter(|item| name_of(item).is_some())
            .nth(found)
            .map(|item| &mut item.data)
        else {
            continue;
        };
        match entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { key: key.to_owned(), span, value }),
        }
    }
}

fn nodes_mut(root: &mut Item) -> impl Iterator<Item = &mut Item> {
    let items: &mut [Item] = match &mut root.data {
        Data::List(items) => items,
        Data::Map(entries) => {
            let nodes = entries.iter_mut().find(|entry| entry.key == "nodes");
            match nodes.map(|entry| &mut entry.value.data) {
                Some(Data::List(items)) => items,
                _ => &mut [],
            }
        }
        Data::Scalar { .. } => &mut [],
    };
    items.iter_mut()
}

fn name_of(node: &Item) -> Option<String> {
    let fields = Fields::peek(node, &keys::NODE);
    let name = fields.get("name").or_else(|| fields.get("kind"))?;
    if let Data::Scalar { text, .. } = &name.data { Some(text.clone()) } else { None }
}

/// Reads the tree. `None` if it is too large to be a graph. A bare list of nodes is one service
/// domain.
pub(crate) fn read<'a>(
    root: &'a Item,
    catalogue: &[&'static Kind],
    report: &mut Report,
) -> Option<Draft<'a>> {
    let (mut domains, mut refused) = (Vec::new(), Vec::new());
    let (mut name, mut hold) = (keys::GRAPH_NAME, false);
    let is_bare_list = matches!(root.data, Data::List(_));
    let nodes = if is_bare_list {
        domains.push(Domain::of_a_bare_list(root.span));
        Some(root)
    } else {
        let fields = Fields::new(root, &keys::GRAPH, &[], root.span, report);
        name = fields.name("name", report).map_or(name, |named| named.text);
        for entry in fields.map("domains", report) {
            match domain::read(entry, report) {
                Some(domain) => domains.push(domain),
                None => refused.push(entry.key.as_str()),
            }
        }
        hold = fields.truth("hold", report).unwrap_or(false);
        if hold && refused.is_empty() && domains.iter().all(Domain::is_service) {
            let help = "leave it out, or give a domain 'realtime: {period: 1ms}'";
            report.error(fields.at("hold"), "there is no core that could be held", help);
        }
        fields.get("nodes")
    };
    let items = nodes.map_or(&[][..], |item| list(item, "nodes", report));
    if let Some(item) = items.get(NODES_MAX) {
        let message = format!("{} nodes in one graph", items.len());
        report.error(item.span, message, format!("at most {NODES_MAX}; split the graph"));
        return None;
    }
    if let Some(item) = nodes.filter(|item| matches!(&item.data, Data::List(all) if all.is_empty()))
    {
        report.error(item.span, "the graph has no nodes", "add '- kind: ...' to it");
    }
    let kinds: HashMap<&str, Known> =
        catalogue.iter().map(|kind| (kind.name, Known::new(kind))).collect();
    let nodes = items.iter().filter_map(|item| node(item, catalogue, &kinds, report)).collect();
    Some(Draft { name, hold, domains, refused, nodes, is_bare_list })
}

fn node<'a>(
    item: &'a Item,
    catalogue: &[&'static Kind],
    kinds: &HashMap<&str, Known>,
    report: &mut Report,
) -> Option<Node<'a>> {
    let named = Fields::peek(item, &keys::NODE).reference("kind", &mut Report::default());
    let known = named.and_then(|named| kinds.get(named.text));
    let kind = known.map(|known| known.kind);
    let at = named.map_or(item.span, |named| named.span);
    let fields = match kind {
        Some(kind) => Fields::new(item, &keys::NODE, kind.parameters, at, report),
        None => {
            // Its keys may be parameters of the kind that was meant: only the kind is reported.
            let fields = Fields::peek(item, &keys::NODE);
            match named {
                Some(Named { text, span }) => report.error_with(span, || {
                    let help = suggest(text, catalogue.iter().map(|kind| kind.name));
                    (format!("there is no kind of node '{text}'"), help)
                }),
                None => {
                    let _ = Fields::new(item, &keys::NODE, &[], at, report).name("kind", report);
                }
            }
            fields
        }
    };
    let name = match fields.get("name") {
        Some(_) => fields.name("name", report),
        None => named,
    }?;
    let (links, links_complete) = links(kind, &fields, name, report);
    let spans = kind.map_or(&[][..], |kind| kind.parameters).iter();
    let spans = spans.map(|row| fields.get(row.name).map_or(name.span, |item| item.span)).collect();
    Some(Node {
        name,
        kind,
        spans,
        domain: fields.reference("domain", report),
        values: known.map_or(Vec::new(), |known| values(known, &fields, name, report)),
        actuators: kind.map_or(Vec::new(), |kind| actuators(kind, &fields, name, report)),
        links,
        links_complete,
        span: item.span,
    })
}

/// A kind, with the defaults of its parameters read once for all its nodes.
struct Known {
    kind: &'static Kind,
    defaults: Vec<Option<Value>>,
}

impl Known {
    fn new(kind: &'static Kind) -> Known {
        let default = |row: &Parameter| row.default.map(|text| default_value(kind, row, text));
        Known { kind, defaults: kind.parameters.iter().map(default).collect() }
    }
}

fn values(known: &Known, fields: &Fields<'_>, name: Named<'_>, report: &mut Report) -> Vec<Value> {
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

/// A default of the catalogue, read as the spec would write it.
fn default_value(kind: &Kind, row: &Parameter, text: &str) -> Value {
    let item = parse(text, 0, &mut Report::default()).unwrap_or_else(|| {
        // An empty default is an empty text.
        let data = Data::Scalar { text: text.to_owned(), plain: false };
        Item::new(Span::default(), data)
    });
    parameter(row, &item, &mut Report::default()).unwrap_or_else(|| {
        panic!("kind {} has a bad default '{text}' for '{}'", kind.name, row.name)
    })
}

fn actuators(
    kind: &'static Kind,
    fields: &Fields<'_>,
    name: Named<'_>,
    report: &mut Report,
) -> Vec<Actuator> {
    let entries = fields.map("safe", report);
    let is_actuator = |at: &usize| !kind.ports[*at].safe.is_empty();
    let actuator_ports = || (0..kind.ports.len()).filter(is_actuator);
    for entry in entries {
        if !actuator_ports().any(|at| kind.ports[at].name == entry.key) {
            let message = format!("'{}' is no actuator port of {}", entry.key, kind.name);
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
        let safe = fields.reference("value", report).and_then(|value| {
            let found = offers.iter().position(|offer| offer.name == value.text);
            if found.is_none() {
                let message = format!("port '{}' offers no safe value '{}'", entry.key, value.text);
                let help = suggest(value.text, offers.iter().map(|offer| offer.name));
                report.error(value.span, message, help);
            }
            found
        });
        if let (Some(safe), Some(after)) = (safe, fields.integer("after", report)) {
            actuators.push(Actuator { port, safe, after: after as u32 });
        }
    }
    actuators
}

/// The links that begin at a node, and whether all could be read.
fn links<'a>(
    kind: Option<&'static Kind>,
    fields: &Fields<'a>,
    name: Named<'a>,
    report: &mut Report,
) -> (Vec<Link<'a>>, bool) {
    let mut links = Vec::new();
    let mut complete = true;
    for entry in fields.map("ports", report) {
        let from = kind.and_then(|kind| output(kind, entry, name, report));
        complete &= from.is_some() && matches!(entry.value.data, Data::List(_));
        for item in list(&entry.value, &entry.key, report) {
            let link = link(from, item, report);
            complete &= link.is_some();
            links.extend(link);
        }
    }
    (links, complete)
}

fn output(kind: &Kind, entry: &Entry, name: Named<'_>, report: &mut Report) -> Option<usize> {
    let found = kind.port_index(&entry.key);
    match found {
        Some(at) if kind.port(at).direction == Direction::Out => Some(at),
        Some(_) => {
            let message = format!("'{}' is an input port of '{}'", entry.key, name.text);
            report.error(entry.span, message, "write the link at the node that writes to it");
            None
        }
        None => {
            let outputs = kind.ports.iter().filter(|port| port.direction == Direction::Out);
            let message = format!("'{}' ({}) has no port '{}'", name.text, kind.name, entry.key);
            report.error(entry.span, message, suggest(&entry.key, outputs.map(|port| port.name)));
            None
        }
    }
}

fn link<'a>(from: Option<usize>, item: &'a Item, report: &mut Report) -> Option<Link<'a>> {
    let fields = Fields::new(item, &keys::LINK, &[], item.span, report);
    Some(Link {
        from,
        node: fields.reference("name", report)?,
        port: fields.reference("port", report)?,
        transport: fields.given_word("transport", Transport::ALL, report),
        sync: fields.given_word("sync", Sync::ALL, report),
        delivery: fields.given_word("delivery", Delivery::ALL, report),
        wait: fields.given_word("wait", Wait::ALL, report),
        capacity: fields.power_of_two("capacity", report).unwrap_or(1),
        full: fields.given_word("full", Full::ALL, report),
        delay: fields.integer("delay", report).is_none_or(|delay| delay == 1),
        fields,
    })
}
