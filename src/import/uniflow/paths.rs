//! Nodes that decide a packet's way, and the snippets on it.

use sinew_spec::{Data, Item};

use super::cel::About;
use super::net::caught;
use super::parts::{duration, expression, remove, rename, set_kind, tell};
use super::script;
use super::sheet::{NewValue, Sheet};
use super::workflow::Workflow;

/// Files that `print` may write to.
const OUTPUTS: [&str; 2] = ["/dev/stdout", "/dev/stderr"];
/// Why the time limit of a single node is dropped.
const ONE_DEADLINE: &str =
    "all that a flow does has one 'deadline' and one 'work_max', at its source";

/// Rewrites a node of these kinds. Returns false if the node is of another kind.
pub(super) fn rewrite<'t>(
    flow: &mut Workflow<'t>,
    at: usize,
    about: About,
    sheet: &mut Sheet<'t>,
) -> bool {
    let node = &flow.nodes[at];
    match node.kind {
        "block" | "merge" | "pipe" | "split" | "try" => {}
        "step" | "sequential" => set_kind(node, "block", sheet),
        "for" => repeat(flow, at, sheet),
        "fork" => caught(flow, at, sheet),
        "if" => {
            remove(node, "timeout", ONE_DEADLINE, sheet);
            if let Some(when) = node.entry("when") {
                expression(&when.value, about, sheet);
            }
        }
        "switch" => switch(flow, at, about, sheet),
        "nop" => nothing(flow, at, sheet),
        "retry" => retry(flow, at, sheet),
        "sleep" => duration(node, "interval", "duration", sheet),
        "snippet" => snippet(flow, at, about, sheet),
        "throw" => sheet.change(&node.at, "message", Some("'{{ packet }}'".to_owned())),
        "print" | "write" => print(flow, at, sheet),
        "cache" => cache(flow, at, sheet),
        _ => return false,
    }
    true
}

fn repeat<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &mut flow.nodes[at];
    node.rename_port("out[0]", "out");
    node.rename_port("out[1]", "done");
    let items = "'type(packet) == list ? packet : [packet]'".to_owned();
    sheet.change(&node.at, "items", Some(items));
    let help = "uniflow gives a single reply by itself, and leaves out those that are nothing";
    sheet.note(node.item.span, "the replies are a list, with null for nothing", help);
}

fn switch<'t>(flow: &mut Workflow<'t>, at: usize, about: About, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    remove(node, "timeout", ONE_DEADLINE, sheet);
    rename(node, "match", "matches", sheet);
    let matches = node.item.get("matches").or(node.item.get("match"));
    let Some(Data::List(matches)) = matches.map(|matches| &matches.data) else { return };
    for when in matches.iter().filter_map(|entry| entry.get("when")) {
        expression(when, about, sheet);
    }
}

/// uniflow's `nop` answers with nothing, ours answers with the packet.
fn nothing<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    if node.ports.iter().any(|port| !port.links.is_empty()) {
        return;
    }
    set_kind(node, "snippet", sheet);
    sheet.change(&node.at, "language", Some("cel".to_owned()));
    sheet.change(&node.at, "code", Some("'null'".to_owned()));
}

fn retry<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    let help = "'backoff' is the pause: 100ms unless it says otherwise";
    sheet.note(node.item.span, "'threshold' counts the first attempt too", help);
    let Some(entry) = node.entry("threshold") else {
        return sheet.change(&node.at, "threshold", Some("1".to_owned()));
    };
    let text = sheet.value(&entry.value).unwrap_or_default();
    match text.parse::<u16>() {
        Ok(more) => {
            sheet.put(&entry.value, NewValue::Yaml((u32::from(more) + 1).to_string()));
        }
        Err(_) => {
            let help = "write how many attempts there are, the first included";
            sheet.left(entry.value.span, format!("'{text}' is not a number of attempts"), help);
        }
    }
}

fn snippet<'t>(flow: &mut Workflow<'t>, at: usize, about: About, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    let (Some(language), Some(code)) = (node.entry("language"), node.entry("code")) else {
        let help = "write 'language' and 'code'";
        return sheet.left(node.item.span, "this snippet has no language or no code", help);
    };
    let language = &language.value;
    let name = language.text().unwrap_or_default();
    match name {
        "text" | "json" | "yaml" => remove(node, "timeout", ONE_DEADLINE, sheet),
        "cel" => {
            remove(node, "timeout", ONE_DEADLINE, sheet);
            expression(&code.value, about, sheet);
        }
        "javascript" | "ecmascript" | "js" | "typescript" | "ts" => {
            duration(node, "timeout", "time", sheet);
            if name != "javascript" {
                sheet.set(language, "javascript");
            }
            if name.starts_with('t') {
                let help = "remove the types from the code";
                sheet.left(language.span, "scripts are JavaScript, not TypeScript", help);
            }
            let made = script::rewrite(&sheet.value(&code.value).unwrap_or_default());
            tell(&code.value, &made, sheet);
            sheet.set(&code.value, made.code);
        }
        _ => {
            let help = "write it in text, html, json, yaml, cel, lua or javascript";
            sheet.left(language.span, format!("there is no language '{name}'"), help);
        }
    }
}

fn print<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    set_kind(&flow.nodes[at], "print", sheet);
    flow.nodes[at].take_links("error");
    let node = &flow.nodes[at];
    let file = node.entry("filename");
    let name = file.and_then(|file| sheet.value(&file.value));
    match name {
        Some(name) if OUTPUTS.contains(&name.as_str()) => remove(node, "filename", "", sheet),
        _ => {
            remove(node, "filename", "", sheet);
            let span = file.map_or(node.item.span, |file| file.span);
            let help = "the kind 'append' writes to a file";
            sheet.left(span, "'print' writes to the log of the run", help);
        }
    }
    let help = "the packet is one line, as JSON if it is not text: there are no formats";
    sheet.note(node.item.span, "'print' passes its packet on, not the number of bytes", help);
}

fn cache<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let (store, _) = flow.add(&format!("{}_store", flow.nodes[at].name));
    let node = &flow.nodes[at];
    duration(node, "interval", "expire", sheet);
    let most = node.entry("capacity").and_then(|entry| sheet.value(&entry.value));
    remove(node, "capacity", "", sheet);
    let most = most.and_then(|most| most.parse::<u64>().ok());
    let most = most.map_or(String::new(), |most| format!(", entries_max: {most}"));
    sheet.add(format!("{{kind: store, name: {store}{most}, full: evict}}"));
    sheet.change(&node.at, "store", Some(store));
    sheet.change(&node.at, "key", Some("packet".to_owned()));
    let help = "say in 'key' what the reply depends on: a text or a whole number";
    sheet.left(node.item.span, "a cache needs a key", help);
}

/// What to write instead of kinds that a graph does not have.
const OTHERS: &[(&str, &str)] = &[
    ("session", "'set' gives values to a flow, which later nodes see as values.NAME"),
    ("signal", "'topic', 'publish' and 'subscribe' hand messages to many"),
    ("trigger", "'once' and 'timer' begin flows"),
    ("syscall", "'status', 'halt' and 'reset' reach the run; the graph itself is a file"),
    ("native", "'status', 'halt' and 'reset' reach the run; the graph itself is a file"),
    ("scan", "'file' reads a file"),
    ("read", "'file' reads a file"),
    ("gateway", "'websocket' makes a websocket of a request"),
    ("proxy", "'http' with 'targets' and 'proxy: true' hands requests to several servers"),
];

/// Says what to do about a node of another kind.
pub(super) fn unknown<'t>(kind: &'t Item, sheet: &mut Sheet<'t>) {
    let name = kind.text().unwrap_or_default();
    let help = OTHERS.iter().find(|(other, _)| *other == name).map(|(_, help)| *help);
    let help = help.unwrap_or("docs/flows.md says which kinds there are; write one of your own");
    sheet.left(kind.span, format!("there is no kind '{name}' here"), help);
}
