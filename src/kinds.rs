//! `sinew kinds`: what a graph can be made of, from the tables of this program.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sinew_figures::wrap::wrap_narrow;
use sinew_runtime::Kinds;
use sinew_spec::catalogue::{
    ANY_MESSAGE, Direction, FLAG, Field, Form, Kind, MessageType, NAMED_MESSAGE, PACKET, Parameter,
    Port, REAL, RunsIn, Unit, unit_of_name,
};
use sinew_spec::{expected, suggest};

use crate::answer::{BAD_REQUEST, print, refuse};

/// List the kinds of nodes, or show one: its ports, parameters, signals, and an example.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KindsArgs {
    /// Name of a kind. Default: list all kinds
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew kinds
  sinew kinds pid
  sinew kinds --json | jq '.kinds[].name'

Exit status: 0 good, 2 there is no such kind.";

/// What the kinds of each group are for, in the order in which they are listed.
const GROUPS: &[(&[RunsIn], &str)] = &[
    (&[RunsIn::Realtime], "in the cycles of a realtime domain"),
    (&[RunsIn::Service, RunsIn::Observer], "services, in a domain without 'realtime'"),
    (&[RunsIn::Flow, RunsIn::Test], "in flows, which carry packets"),
];

/// Carries out the command.
pub(crate) fn run(args: &KindsArgs, kinds: &Kinds) -> ExitCode {
    let mut catalogue = kinds.catalogue();
    // No graph names such a kind: its node is put into the part of each host.
    catalogue.retain(|kind| kind.runs_in != RunsIn::Hosts);
    catalogue.sort_by_key(|kind| kind.name);
    let Some(name) = &args.kind else {
        let text = match args.json {
            true => {
                let all: Vec<Value> = catalogue.iter().map(|kind| to_json(kind)).collect();
                format!("{:#}\n", json!({ "kinds": all }))
            }
            false => list(&catalogue),
        };
        return print(&text, ExitCode::SUCCESS);
    };
    let Some(kind) = catalogue.iter().find(|kind| kind.name == name) else {
        let help = suggest(name, catalogue.iter().map(|kind| kind.name));
        let why = format!("there is no kind '{name}'; {help}");
        return refuse(&why, BAD_REQUEST, args.json);
    };
    let text = match args.json {
        true => format!("{:#}\n", to_json(kind)),
        false => show(kind),
    };
    print(&text, ExitCode::SUCCESS)
}

/// The first sentence of a kind's description. The dot after a person's initial does not end it.
fn sentence(doc: &str) -> &str {
    let ends = |&at: &usize| !doc[..at].ends_with(|last: char| last.is_ascii_uppercase());
    let end = doc.match_indices(". ").map(|(at, _)| at).find(ends);
    end.map_or(doc, |end| &doc[..=end])
}

fn list(catalogue: &[&'static Kind]) -> String {
    let width = catalogue.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (places, title) in GROUPS {
        let of_group = catalogue.iter().filter(|kind| places.contains(&kind.runs_in));
        writeln!(text, "{title}").expect("a string takes all");
        for kind in of_group {
            let before = format!("  {:width$}  ", kind.name);
            wrap_narrow(&mut text, &before, sentence(kind.doc));
        }
        text.push('\n');
    }
    text + "sinew kinds KIND shows one of them\n"
}

fn show(kind: &Kind) -> String {
    let mut text = String::new();
    wrap_narrow(&mut text, "", &format!("{}: {}", kind.name, kind.doc));
    let group = GROUPS.iter().find(|(places, _)| places.contains(&kind.runs_in));
    if let Some((_, title)) = group {
        write!(text, "\nruns {title}\n").expect("a string takes all");
    }
    section(&mut text, "ports", kind.ports.iter().map(port));
    section(&mut text, "messages", kind_messages(kind).flat_map(message_fields));
    section(&mut text, "parameters", kind.parameters.iter().map(parameter));
    let signals = kind.signals.iter().map(|signal| {
        let count = if signal.count == 1 { String::new() } else { format!("[{}]", signal.count) };
        let what = match signal.labels {
            [] => match signal.unit_as {
                Some(port) => format!(" (unit of '{port}')"),
                None => unit(signal.unit),
            },
            labels => format!(" ({})", labels.join(", ")),
        };
        (format!("{}{count}", signal.name), format!("{}{what}", signal.doc))
    });
    section(&mut text, "signals", signals);
    write!(text, "\nexample\n{}", example(kind)).expect("a string takes all");
    text
}

/// A title and lines, each a name with its description. Nothing if there are no lines.
fn section(text: &mut String, title: &str, lines: impl Iterator<Item = (String, String)>) {
    let lines: Vec<_> = lines.collect();
    let Some(width) = lines.iter().map(|(name, _)| name.len()).max() else { return };
    write!(text, "\n{title}\n").expect("a string takes all");
    for (name, doc) in lines {
        wrap_narrow(text, &format!("  {name:width$}  "), &doc);
    }
}

fn unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" ({unit})") }
}

/// What crosses a port, in words.
fn message(port: &Port) -> String {
    let hash = port.message.hash;
    match port.form {
        _ if hash == PACKET.hash => "packets".into(),
        _ if hash == ANY_MESSAGE.hash => "any message".into(),
        Form::Message(parameter) => format!("the message of '{parameter}'"),
        Form::Fields(parameter) => format!("each number of the message of '{parameter}'"),
        Form::Each(parameter) => format!("{} for each name in '{parameter}'", port.message.name),
        Form::One => port.message.name.into(),
    }
}

/// The messages at a kind's ports that need a description of their fields, each once.
fn kind_messages(kind: &Kind) -> impl Iterator<Item = &'static MessageType> {
    let mut seen = vec![REAL.hash, FLAG.hash];
    let message = |port: &Port| port.message;
    kind.ports.iter().map(message).filter(move |ty| {
        let is_new = !seen.contains(&ty.hash);
        seen.push(ty.hash);
        is_new
    })
}

/// A line for each field: what it is made of, and its unit or its words.
fn message_fields(ty: &'static MessageType) -> impl Iterator<Item = (String, String)> {
    ty.fields.iter().map(|field| {
        let scalar = format!("{:?}", field.scalar).to_lowercase();
        let count = if field.count == 1 { String::new() } else { format!("[{}]", field.count) };
        let words: Vec<_> = field.labels.iter().copied().filter(|it| !it.is_empty()).collect();
        let what = match words.is_empty() {
            true => unit(unit_of_name(field.name).unwrap_or_default()),
            false => format!(": {}", words.join(", ")),
        };
        (format!("{}.{}", ty.name, field.name), format!("{scalar}{count}{what}"))
    })
}

fn port(port: &Port) -> (String, String) {
    let direction = if port.direction == Direction::In { "in " } else { "out" };
    let measured = match port.unit {
        Unit::Any if matches!(port.form, Form::Each(_)) && port.message.hash == REAL.hash => {
            " (unit by its name)".into()
        }
        Unit::Any => String::new(),
        Unit::Of(unit) => self::unit(unit),
        Unit::As(other) => format!(" (unit of '{other}')"),
        Unit::Parameter(parameter) => format!(" (unit by '{parameter}')"),
    };
    let mut notes = Vec::new();
    if port.optional {
        notes.push("may stay unlinked".to_owned());
    }
    if !port.safe.is_empty() {
        let safe: Vec<_> = port.safe.iter().map(|safe| safe.name).collect();
        notes.push(format!("moves an actuator; safe: {}", safe.join(", ")));
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" [{}]", notes.join("; ")) };
    let text = format!("{}{measured}. {}{notes}", message(port), port.doc);
    (format!("{direction} {}", port.name), text)
}

fn parameter(row: &Parameter) -> (String, String) {
    let default = match row.default {
        Some("") => "default: none".to_owned(),
        Some(default) => format!("default {default}"),
        None => "required".to_owned(),
    };
    let tunable = if row.tunable { " [tunable: sinew set]" } else { "" };
    (row.name.to_owned(), format!("{}, {default}. {}{tunable}", expected(row), row.doc))
}

/// A node of the kind with everything that it needs, as a graph writes it.
fn example(kind: &Kind) -> String {
    let mut text = format!("  - kind: {0}\n    name: {0}\n", kind.name);
    text += match kind.runs_in {
        RunsIn::Realtime => "    domain: control\n",
        _ => "    domain: services\n",
    };
    let is_shown = |row: &&Parameter| row.default.is_none() || !row.example.is_empty();
    for row in kind.parameters.iter().filter(is_shown) {
        let line = match row.example {
            "" => format!("    {}: ...  # {}", row.name, expected(row)),
            example => format!("    {}: {example}", row.name),
        };
        writeln!(text, "{line}").expect("a string takes all");
    }
    let safe: Vec<_> = kind.ports.iter().filter(|port| !port.safe.is_empty()).collect();
    for port in &safe {
        let (name, value) = (port.name, port.safe[0].name);
        writeln!(text, "    safe: {{{name}: {{value: {value}, after: 50}}}}").expect("a string");
    }
    let is_out = |port: &&Port| port.direction == Direction::Out && port.form == Form::One;
    if let Some(port) = kind.ports.iter().find(is_out) {
        let name = match port.name.strip_suffix("[]") {
            Some(name) => format!("'{name}[0]'"),
            None => port.name.to_owned(),
        };
        writeln!(text, "    ports: {{{name}: [{{name: NODE, port: PORT}}]}}").expect("a string");
    }
    text
}

fn to_json(kind: &Kind) -> Value {
    let port = |port: &Port| {
        json!({
            "name": port.name,
            "direction": if port.direction == Direction::In { "in" } else { "out" },
            "message": message(port),
            "fields": fields(port),
            "unit": match port.unit { Unit::Of(unit) => Some(unit), _ => None },
            "optional": port.optional,
            "safe": port.safe.iter().map(|safe| safe.name).collect::<Vec<_>>(),
            "doc": port.doc,
        })
    };
    let parameter = |row: &Parameter| {
        json!({
            "name": row.name, "takes": expected(row), "unit": row.unit,
            "default": row.default, "tunable": row.tunable, "doc": row.doc,
        })
    };
    json!({
        "name": kind.name,
        "doc": kind.doc,
        "runs_in": format!("{:?}", kind.runs_in).to_lowercase(),
        "ports": kind.ports.iter().map(port).collect::<Vec<_>>(),
        "parameters": kind.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "signals": kind.signals.iter().map(|signal| json!({
            "name": signal.name, "unit": signal.unit, "count": signal.count,
            "labels": signal.labels, "doc": signal.doc,
        })).collect::<Vec<_>>(),
        "example": example(kind),
    })
}

/// The numbers in a port's message.
fn fields(port: &Port) -> Vec<Value> {
    if port.message.hash == NAMED_MESSAGE.hash {
        return Vec::new();
    }
    let field = |field: &Field| {
        let scalar = format!("{:?}", field.scalar).to_lowercase();
        json!({
            "name": field.name, "type": scalar, "count": field.count, "labels": field.labels,
        })
    };
    port.message.fields.iter().map(field).collect()
}
