//! Workflows of [uniflow](https://github.com/siyul-park/uniflow) as graphs. What differs is
//! rewritten in its place; each submodule rewrites one subject. Everything else stays as it is
//! written.

mod cel;
mod data;
mod net;
mod parts;
mod paths;
mod script;
mod sheet;
mod suite;
mod values;
mod workflow;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sinew_runtime::Kinds;
use sinew_spec::{Data, Diagnostic, Item, Span, SpecSource, diagnose, read};

use self::cel::About;
use self::sheet::{Away, Sheet};
use self::workflow::{DONE, Way, Workflow};

/// A graph and the messages about it, with places in the workflow.
pub(super) struct Imported {
    pub(super) graph: String,
    /// What is left to do by hand.
    pub(super) left: Vec<Diagnostic>,
    /// What has another meaning now, or is gone.
    pub(super) notes: Vec<Diagnostic>,
}

/// The kinds of uniflow, of this version and earlier ones; many are ours too.
const KINDS: &[&str] = &[
    "assert",
    "block",
    "cache",
    "for",
    "fork",
    "gateway",
    "http",
    "if",
    "listener",
    "merge",
    "native",
    "nop",
    "pipe",
    "print",
    "proxy",
    "rdb",
    "read",
    "retry",
    "router",
    "scan",
    "sequential",
    "session",
    "signal",
    "sleep",
    "snippet",
    "split",
    "sql",
    "step",
    "switch",
    "syscall",
    "test",
    "throw",
    "trigger",
    "try",
    "upgrader",
    "websocket",
    "write",
];

/// Keys that a kind has here and not in uniflow.
const OURS: &[(&str, &str)] = &[
    ("block", "nodes"),
    ("cache", "store"),
    ("for", "items"),
    ("http", "proxy"),
    ("http", "targets"),
    ("print", "format"),
    ("sleep", "duration"),
    ("sql", "database"),
    ("test", "expect"),
    ("test", "packet"),
    ("throw", "message"),
    ("throw", "status"),
    ("websocket", "as"),
];

/// Keys of a node that a graph does not have, and why that is no loss.
const DROPPED: &[(&str, &str)] = &[
    ("id", "links name their nodes"),
    ("namespace", "a run has one graph; another one is another run"),
    ("annotations", "a comment says as much"),
    ("env", ""),
];

/// Rewrites a workflow.
///
/// # Errors
/// It is no YAML, or no workflow of uniflow.
pub(super) fn import(file: &str, text: &str, kinds: &Kinds) -> Result<Imported, Vec<Diagnostic>> {
    let source = SpecSource::of(file, text);
    let root = read(&source)?;
    if let Data::Map(_) = &root.data
        && root.get("kind").is_some()
    {
        // The file is one node without a list. It means the same as a list of this node.
        let text = listed(text);
        return import(file, &text, kinds);
    }
    let refuse = |(span, message, help): (Span, String, &str)| {
        diagnose(&source, [(span, message, help.to_owned())])
    };
    let items = nodes(&root, kinds).map_err(refuse)?;
    let mut sheet = Sheet::new(text);
    rewrite(items, &mut sheet);
    let graph = sheet.write(&root);
    let again = SpecSource { text: &graph, ..source };
    if let Err(wrong) = read(&again) {
        let why = wrong.first().map_or("", |wrong| wrong.message.as_str());
        let help = "write out what '*name' repeats, and import again";
        sheet.left(root.span, format!("the graph cannot be read: {why}"), help);
    }
    let (mut left, mut notes) = (Vec::new(), Vec::new());
    for it in sheet.findings {
        let list = if it.is_left { &mut left } else { &mut notes };
        list.push((it.span, it.message, it.help));
    }
    Ok(Imported { graph, left: diagnose(&source, left), notes: diagnose(&source, notes) })
}

/// Turns a text into the only entry of a list.
fn listed(text: &str) -> String {
    let mut is_first = true;
    let mut line = |line: &str| {
        let is_mark = line.starts_with("---") || line.starts_with(['#', '%']);
        let is_said = !line.trim().is_empty() && !is_mark;
        match is_said {
            true if std::mem::take(&mut is_first) => format!("- {line}"),
            true => format!("  {line}"),
            false => line.to_owned(),
        }
    };
    text.split_inclusive('\n').map(&mut line).collect()
}

/// The nodes of a file. The error says what the file is instead.
fn nodes<'t>(root: &'t Item, kinds: &Kinds) -> Result<&'t [Item], (Span, String, &'static str)> {
    let graph = "it is a graph already: run it with 'sinew run'";
    let items = match &root.data {
        Data::List(items) if !items.is_empty() => items,
        Data::Map(_) if root.get("nodes").is_some() || root.get("domains").is_some() => {
            return Err((root.span, "this is a graph of Sinew, not of uniflow".to_owned(), graph));
        }
        _ => {
            let help = "give a list of nodes, '- kind: ...'";
            return Err((root.span, format!("a workflow is a list, found {}", root.sort()), help));
        }
    };
    let catalogue: HashSet<&str> = kinds.catalogue().iter().map(|kind| kind.name).collect();
    for item in items {
        let Some(kind) = item.get("kind").and_then(Item::text) else {
            let (message, help) = match item.get("data") {
                Some(_) => (
                    "this file holds values of uniflow, not nodes",
                    "give each value in the environment, or as a file that {{ file.PATH }} names",
                ),
                None => ("this is not a node: it has no 'kind'", "give a file of nodes of uniflow"),
            };
            return Err((item.span, message.to_owned(), help));
        };
        let ours = OURS.iter().find(|(name, key)| *name == kind && item.get(key).is_some());
        if let Some((_, key)) = ours {
            let message = format!("this is of Sinew: a '{kind}' of uniflow has no '{key}'");
            return Err((item.span, message, graph));
        }
        if catalogue.contains(kind) && !KINDS.contains(&kind) {
            return Err((item.span, format!("uniflow has no kind '{kind}', Sinew has"), graph));
        }
    }
    Ok(items)
}

fn rewrite<'t>(items: &'t [Item], sheet: &mut Sheet<'t>) {
    let mut flow = Workflow::read(items, sheet);
    drop_keys(&flow, sheet);
    (0..flow.nodes.len()).for_each(|at| values::rewrite(flow.holders(at), sheet));
    let (ways, callers) = (flow.ways(), flow.callers());
    let errors = net::with_errors(&flow, &ways);
    let requests = net::with_requests(&flow, &ways);
    let mut from = vec![Vec::new(); flow.nodes.len()];
    ways.iter().for_each(|way| from[way.to].push(way.from));
    let mixed = mixed(&ways, &errors, &flow);
    net::sockets(&mut flow, sheet);
    let (mut queries, mut judges) = (HashMap::new(), BTreeSet::new());
    for (at, callers) in callers.iter().enumerate() {
        match flow.nodes[at].kind {
            "sql" | "rdb" => data::database(&mut flow, at, callers, &mut queries, sheet),
            "test" => suite::test(&mut flow, at, &mut judges, sheet),
            _ => {}
        }
    }
    let kinds: Vec<&str> = flow.nodes.iter().map(|node| node.kind).collect();
    flow.keep_links(|link| !matches!(kinds.get(link.to), Some(&"sql" | &"rdb")));
    suite::without_judges(&mut flow, &judges, sheet);
    for (at, from) in from.iter().enumerate() {
        let about = if errors.contains(&at) { About::Error } else { About::Packet };
        if mixed.contains(&at) {
            let help = "an error is {error, status, node} here: read packet.error where the packet \
                        is an error";
            sheet.note(flow.nodes[at].item.span, "packets and errors come to this node", help);
        }
        let kind = flow.nodes[at].kind;
        match kind {
            DONE | "sql" | "rdb" | "test" => {}
            "listener" => net::listener(&mut flow, at, sheet),
            "router" => net::router(&mut flow, at, sheet),
            "http" => net::http(&flow, at, &requests, from, sheet),
            "websocket" => net::client(&mut flow, at, sheet),
            "assert" => suite::assert(&mut flow, at, sheet),
            _ if paths::rewrite(&mut flow, at, about, sheet) => {}
            _ => {
                if let Some(kind) = flow.nodes[at].item.get("kind") {
                    paths::unknown(kind, sheet);
                }
            }
        }
    }
    data::beginnings(&mut flow, &callers, &queries, sheet);
    without_callers(&flow, &callers, sheet);
    flow.write(sheet);
}

/// The nodes `if`, `switch` and `snippet` that get both packets and errors.
fn mixed(ways: &[Way], errors: &HashSet<usize>, flow: &Workflow<'_>) -> HashSet<usize> {
    let is_packet = |way: &&Way| way.port != "error" && !errors.contains(&way.from);
    let both = ways.iter().filter(is_packet).map(|way| way.to).filter(|to| errors.contains(to));
    both.filter(|&to| ["if", "switch", "snippet"].contains(&flow.nodes[to].kind)).collect()
}

/// Removes the keys that a graph does not have. Each key is noted once.
fn drop_keys<'t>(flow: &Workflow<'t>, sheet: &mut Sheet<'t>) {
    let mut found: BTreeMap<&str, (Span, usize)> = BTreeMap::new();
    for node in &flow.nodes {
        for (key, _) in DROPPED {
            if let Some(entry) = node.entry(key) {
                sheet.change(&node.at, key, None);
                found.entry(*key).or_insert((entry.span, 0)).1 += 1;
            }
        }
    }
    for (key, why) in DROPPED.iter().filter(|(_, why)| !why.is_empty()) {
        if let Some((span, count)) = found.get(key) {
            let more = if *count > 1 {
                format!(", here and {} times more", count - 1)
            } else {
                String::new()
            };
            sheet.note(*span, format!("'{key}' is dropped{more}"), why);
        }
    }
}

/// Turns nodes that no packet reaches any more into comments: a graph refuses such nodes.
fn without_callers<'t>(flow: &Workflow<'t>, callers: &[Vec<usize>], sheet: &mut Sheet<'t>) {
    let begins = |kind: &str| {
        // Nodes of unknown kinds stay, so that the user sees them.
        ["listener", "test", "websocket", "sql", "rdb"].contains(&kind) || is_unknown(kind)
    };
    let reached = flow.reached(begins);
    if reached.is_empty() {
        let span = flow.nodes.first().map(|node| node.item.span).unwrap_or_default();
        let help = "add a listener, a timer or a test that leads to the first node";
        return sheet.left(span, "nothing in this file begins a flow", help);
    }
    for (at, node) in flow.nodes.iter().enumerate() {
        let number = node.number().filter(|&number| !sheet.is_away(number));
        let Some(number) = number.filter(|_| !reached.contains(&at)) else { continue };
        sheet.leave_out(number, Away::Comment);
        if callers[at].is_empty() {
            let help = "link it, or leave it out";
            sheet.note(node.item.span, "no packet comes to this node: it stays as a comment", help);
        }
    }
}

fn is_unknown(kind: &str) -> bool {
    kind != DONE && !KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The graph, what is left to do, and the notes, without places.
    fn made(text: &str) -> (String, Vec<String>, Vec<String>) {
        let made = import("w.yaml", text, &crate::kinds()).expect("a workflow");
        let all = |them: Vec<Diagnostic>| them.into_iter().map(|it| it.message).collect();
        (made.graph, all(made.left), all(made.notes))
    }

    /// Checks that nodes behind a test become this, with nothing left to do.
    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        let test = "- kind: test\n  ports: {out: [{name: a, port: in}]}\n";
        let (graph, left, _) = made(&format!("{test}{text}"));
        let head = "- kind: test\n  ports: {out: [{name: a, port: in}]}\n  name: test\n";
        assert_eq!(graph.strip_prefix(head), Some(expected), "{graph}");
        assert_eq!(left, Vec::<String>::new());
    }

    #[test]
    fn values_come_from_outside_or_are_put_in() {
        becomes(
            "- kind: http
  name: a
  url: '{{ .SCHEME }}://{{ .HOST }}/x/'
  env:
    SCHEME: {data: http}
    HOST: {name: net, data: '{{ .NAME }}:80'}
",
            "- kind: http
  name: a
  url: \"http://{{ env.NAME }}:80/x{{ packet.?path.orValue('') }}\"
  method: '{{ packet.?method.orValue(has(packet.body) ? ''POST'' : ''GET'') }}'
  query: '{{ packet.?query.orValue({}) }}'
  header: '{{ packet.?header.orValue({}) }}'
  body: '{{ packet.?body.orValue(null) }}'
",
        );
        becomes(
            "- kind: sleep
  name: a
  interval: '{{ .PAUSE }}'
  env: {PAUSE: {data: '{{ .P }}s'}}
",
            "- kind: sleep
  name: a
  duration: '{{ env.P }}s'
",
        );
        let text = "- kind: test\n  ports: {out: [{name: a, port: in}]}\n- kind: snippet\n  name: \
                    a\n  language: text\n  code: '{{ .DB.user }} {{ if .X }}'\n";
        let (_, left, _) = made(text);
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn comments_and_lines_stay_and_names_are_mended() {
        becomes(
            "
# Of a.
- kind: if # why
  name: a
  # Deep.
  when: >
    count > 1 &&
    ok

  ports:
    out[0]:
    - {name: \"b.c\", port: in} # there
- kind: snippet
  name: b.c
  language: json
  code: 1
",
            "
# Of a.
- kind: if # why
  name: a
  # Deep.
  when: |
    packet.count > 1 && packet.ok

  ports:
    out[0]:
    - {name: \"b_c\", port: in} # there
- kind: snippet
  name: b_c
  language: json
  code: 1
",
        );
    }

    #[test]
    fn what_an_alias_repeats_is_left_or_the_same() {
        let text = "- kind: test\n  ports: &p {out: [{name: a, port: in}]}\n- kind: test\n  name: \
                    t\n  ports: *p\n- kind: throw\n  name: a\n";
        let (graph, left, _) = made(text);
        assert!(graph.contains("  ports: *p\n"), "{graph}");
        assert_eq!(left, Vec::<String>::new());
        let (_, left, _) = made(&text.replace("name: t", "name: t\n  id: x"));
        assert_eq!(left, ["'id' is not removed"]);
    }

    #[test]
    fn a_cache_has_its_store_and_errors_of_all_are_caught() {
        let text = "- kind: listener\n  port: 1\n  protocol: http\n  ports:\n    out: [{name: c, \
                    port: in}]\n- kind: cache\n  name: c\n  capacity: 10\n  interval: 1h\n";
        let (graph, left, _) = made(text);
        assert!(
            graph.ends_with("\n- {kind: store, name: c_store, entries_max: 10, full: evict}\n")
        );
        assert!(graph.contains("  expire: 3600s\n  store: c_store\n  key: packet\n"), "{graph}");
        assert_eq!(left, ["a cache needs a key"]);
    }
}
