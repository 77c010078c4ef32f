//! Nodes that speak HTTP: `listener`, `router`, `http`, and `upgrader` and `websocket` of earlier
//! versions.

use std::collections::{HashMap, HashSet};

use sinew_spec::Data;

use super::parts::{duration, remove, set_kind};
use super::sheet::{Away, Sheet};
use super::workflow::{BLOCKS, DONE, Way, Workflow, WorkflowLink};

/// Kinds that pass on the packet that they got.
const PASSES: [&str; 8] = ["router", "if", "switch", "try", "retry", "sleep", "print", "fork"];

pub(super) fn listener<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &mut flow.nodes[at];
    let span = node.item.span;
    match node.entry("host").map(|entry| &entry.value) {
        Some(host) if host.text() == Some("localhost") => sheet.set(host, "127.0.0.1"),
        Some(_) => {}
        None => sheet.note(
            span,
            "without 'host' a listener is reached from this machine alone",
            "write host: 0.0.0.0 if every machine may reach it",
        ),
    }
    if let Some(entry) = node.entry("tls") {
        sheet.change(&node.at, "tls", None);
        let help = "decode 'cert' and 'key' into PEM files, and write 'certificate: cert.pem' and \
                    'key: key.pem'";
        sheet.left(entry.span, "certificate and key are files", help);
    }
    if let Some(entry) = node.entry("protocol")
        && sheet.value(&entry.value).as_deref() == Some("websocket")
    {
        sheet.set(&entry.value, "http");
        let out = node.take_links("out");
        let (name, to) = flow.add(&format!("{}_socket", flow.nodes[at].name));
        let out = flow.hand(&out);
        sheet.add(format!("{{kind: websocket, name: {name}, ports: {{out: {out}}}}}"));
        flow.nodes[at].set_links("out", vec![WorkflowLink::new(to, "in")]);
    }
    caught(flow, at, sheet);
}

/// Puts a `try` behind a node whose `error` port has links. In uniflow that port gets the errors of
/// all nodes that follow.
pub(super) fn caught<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let errors = flow.nodes[at].take_links("error");
    if errors.is_empty() {
        return;
    }
    if flow.nodes[at].holder.is_some() {
        let help = "put a node of the kind 'try' behind it, whose 'error' leads there";
        let span = flow.nodes[at].item.span;
        return sheet.left(span, "'error' is for errors of the node itself", help);
    }
    let out = flow.nodes[at].take_links("out");
    let (name, to) = flow.add(&format!("{}_try", flow.nodes[at].name));
    let (out, errors) = (flow.hand(&out), flow.hand(&errors));
    let ports = format!("{{out: {out}, error: {errors}}}");
    sheet.add(format!("{{kind: try, name: {name}, ports: {ports}}}"));
    flow.nodes[at].set_links("out", vec![WorkflowLink::new(to, "in")]);
}

pub(super) fn router<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let routes = flow.nodes[at].item.get("routes").map(|routes| &routes.data);
    let Some(Data::List(routes)) = routes else { return };
    for path in routes.iter().filter_map(|route| route.get("path")) {
        let Some(text) = sheet.value(path) else { continue };
        let mut new = if text.starts_with('/') { text.clone() } else { format!("/{text}") };
        if new.contains("\\:") {
            let help = "write {name} for a parameter; ':' within a segment is itself";
            sheet.left(path.span, "'\\:' is not an escape in a path", help);
        }
        if new.ends_with("/*") {
            new += "rest";
            let help = "'*' takes one segment at least; add a route for the path without it";
            sheet.note(path.span, "what '*' takes is params.rest", help);
        }
        if new != text {
            sheet.set(path, new);
        }
    }
}

/// Nodes that get the request of a listener unchanged.
pub(super) fn with_requests(flow: &Workflow<'_>, ways: &[Way]) -> HashSet<usize> {
    spread(flow, ways, |way| flow.nodes[way.from].kind == "listener" && way.port == "out")
}

/// Nodes that get an error.
pub(super) fn with_errors(flow: &Workflow<'_>, ways: &[Way]) -> HashSet<usize> {
    spread(flow, ways, |way| way.port == "error")
}

/// The nodes at the ends of these ways, and the nodes behind them that get the same packet.
fn spread(flow: &Workflow<'_>, ways: &[Way], begins: impl Fn(&Way) -> bool) -> HashSet<usize> {
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); flow.nodes.len()];
    let passes = |way: &&Way| PASSES.contains(&flow.nodes[way.from].kind) && way.port != "error";
    ways.iter().filter(passes).for_each(|way| behind[way.from].push(way.to));
    let mut open: Vec<usize> = ways.iter().filter(|way| begins(way)).map(|way| way.to).collect();
    let mut found = HashSet::new();
    while let Some(node) = open.pop() {
        if found.insert(node) {
            open.extend(&behind[node]);
        }
    }
    found
}

pub(super) fn http<'t>(
    flow: &Workflow<'t>,
    at: usize,
    requests: &HashSet<usize>,
    from: &[usize],
    sheet: &mut Sheet<'t>,
) {
    duration(&flow.nodes[at], "timeout", "deadline", sheet);
    let node = &flow.nodes[at];
    let Some(entry) = node.entry("url") else {
        let help = "write 'url: https://host', and 'hosts' if the packet says which host";
        return sheet.left(node.item.span, "this node takes its url from the packet", help);
    };
    let url = sheet.value(&entry.value).unwrap_or_default();
    let is_plain = |from: &usize| {
        let kind = flow.nodes[*from].kind;
        kind == "listener" || requests.contains(from) && PASSES.contains(&kind)
    };
    let has_query = url.contains('?');
    let base = url.trim_end_matches('/');
    if !from.is_empty() && from.iter().all(is_plain) && !has_query {
        sheet.change(&node.at, "proxy", Some("true".to_owned()));
        // If the value is a template, it is the whole url.
        if base.contains("{{") {
            sheet.set(&entry.value, format!("{base}{{{{ packet.path }}}}"));
        }
        return;
    }
    // A node makes the packet. Fields that it leaves out have defaults.
    let field =
        |name: &str, default: &str| format!("'{{{{ packet.?{name}.orValue({default}) }}}}'");
    if has_query {
        let help = "leave the query out of the url, and add it to 'query'";
        sheet.left(entry.value.span, "the path of the packet cannot follow a query", help);
    } else {
        sheet.set(&entry.value, format!("{base}{{{{ packet.?path.orValue('') }}}}"));
    }
    let method = "'{{ packet.?method.orValue(has(packet.body) ? ''POST'' : ''GET'') }}'";
    sheet.change(&node.at, "method", Some(method.to_owned()));
    for (name, default) in [("query", "{}"), ("header", "{}"), ("body", "null")] {
        sheet.change(&node.at, name, Some(field(name, default)));
    }
    let help = "the keys it may have are method, path, query, header and body; see the answer too";
    sheet.note(entry.span, "the request is made of a packet that is a mapping", help);
}

/// Rewrites websockets. What uniflow sends to a websocket is the reply here. A link that only opens
/// one stays as a link.
pub(super) fn sockets<'t>(flow: &mut Workflow<'t>, sheet: &mut Sheet<'t>) {
    let is_upgrader = |node: &usize| flow.nodes[*node].kind == "upgrader";
    let upgraders: Vec<usize> = (0..flow.nodes.len()).filter(is_upgrader).collect();
    let clients: HashMap<usize, usize> =
        upgraders.iter().filter_map(|&at| Some((at, proxied(flow, at)?))).collect();
    let passed: HashSet<usize> = clients.values().copied().collect();
    let kinds: Vec<&str> = flow.nodes.iter().map(|node| node.kind).collect();
    flow.keep_links(|link| {
        // A block has port names of its own.
        let opens = link.port == "io" && !BLOCKS.contains(&kinds[link.to]);
        if opens {
            link.port = "in".to_owned();
        }
        match kinds[link.to] {
            "upgrader" => opens && !clients.contains_key(&link.to),
            "websocket" => opens && passed.contains(&link.to),
            _ => true,
        }
    });
    for at in upgraders {
        match clients.get(&at) {
            Some(&client) => pass_on(flow, at, client, sheet),
            None => upgrader(flow, at, sheet),
        }
    }
}

/// Turns a listener's request into a websocket.
fn upgrader<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    set_kind(&flow.nodes[at], "websocket", sheet);
    for key in ["protocol", "buffer", "timeout"] {
        remove(&flow.nodes[at], key, "", sheet);
    }
    let span = flow.nodes[at].item.span;
    flow.nodes[at].kind = DONE;
    if flow.nodes[at].links("out").is_empty() {
        return sheet.note(span, "each message is sent back as it is", "");
    }
    sheet.note(span, "the reply to a message is sent to the client; nothing is not", "");
    if flow.nodes[at].holder.is_some() {
        let help = "a message is a text or bytes here, and so is a reply: leave out {type, data}";
        return sheet.left(span, "messages are {type, data} in uniflow", help);
    }
    // Nodes behind the websocket see messages in the form of uniflow.
    let out = flow.nodes[at].take_links("out");
    let name = flow.nodes[at].name.clone();
    let (pipe, to) = flow.add(&format!("{name}_message"));
    let (wrap, first) = flow.add(&format!("{name}_received"));
    let (open, last) = flow.add(&format!("{name}_sent"));
    let mut step = |to| flow.hand(&[WorkflowLink::new(to, "in")]);
    let (first, last) = (step(first), step(last));
    let out = flow.hand(&out);
    let steps = format!("\"out[0]\": {first}, \"out[1]\": {out}, \"out[2]\": {last}");
    sheet.add(format!("{{kind: pipe, name: {pipe}, ports: {{{steps}}}}}"));
    let cel = |name: &str, code: &str| {
        format!("{{kind: snippet, name: {name}, language: cel, code: \"{code}\"}}")
    };
    sheet.add(cel(&wrap, "{'type': 1, 'data': packet}"));
    sheet.add(cel(&open, "type(packet) == map && has(packet.data) ? packet.data : packet"));
    flow.nodes[at].set_links("out", vec![WorkflowLink::new(to, "in")]);
}

/// The client to which an upgrader sends everything, and which sends everything back.
fn proxied(flow: &Workflow<'_>, at: usize) -> Option<usize> {
    let only = |node: usize| match flow.nodes[node].links("out") {
        [link] if link.port == "in" => Some(link.to),
        _ => None,
    };
    let client = only(at).filter(|&client| flow.nodes[client].kind == "websocket")?;
    let are_alone = [at, client].iter().all(|&node| flow.nodes[node].number().is_some());
    (are_alone && only(client) == Some(at)).then_some(client)
}

/// Turns an upgrader and a client into one node that passes a websocket on.
fn pass_on<'t>(flow: &mut Workflow<'t>, at: usize, client: usize, sheet: &mut Sheet<'t>) {
    flow.nodes[at].ports.iter_mut().for_each(|port| port.links.clear());
    flow.nodes[at].kind = DONE;
    if let Some(number) = flow.nodes[at].number() {
        sheet.leave_out(number, Away::Gone);
    }
    let node = &mut flow.nodes[client];
    node.take_links("out");
    set_kind(node, "http", sheet);
    duration(node, "timeout", "deadline", sheet);
    if let Some(entry) = node.entry("url") {
        let url = sheet.value(&entry.value).unwrap_or_default();
        let url = url.strip_prefix("ws").map_or(url.clone(), |rest| format!("http{rest}"));
        // A template is the whole url. Without a template, the path of the request would follow the
        // url.
        sheet.set(&entry.value, format!("{url}{{{{ '' }}}}"));
        sheet.note(entry.span, "the websocket is passed on as it comes", "");
    }
    sheet.change(&node.at, "proxy", Some("true".to_owned()));
    node.kind = DONE;
}

/// Rewrites a client of a websocket that is not part of a proxy.
pub(super) fn client<'t>(flow: &mut Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    set_kind(&flow.nodes[at], "websocket_client", sheet);
    remove(&flow.nodes[at], "timeout", "", sheet);
    let help = "it is a source here: it keeps its connection, begins a flow for each message, and \
                sends the reply";
    let span = flow.nodes[at].item.span;
    sheet.left(span, "a packet cannot open the connection of a websocket client", help);
}
