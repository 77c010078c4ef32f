//! The nodes of a workflow with their links, as they will be in the graph. Differences from the
//! text are written when everything has been rewritten.

use std::collections::{HashMap, HashSet};

use sinew_spec::edit::PathStep;
use sinew_spec::keys::NAME_LEN_MAX;
use sinew_spec::{Data, Entry, Item, Span};

use super::sheet::{Sheet, in_braces};

/// The kinds of nodes that hold others.
pub(super) const BLOCKS: [&str; 3] = ["block", "step", "sequential"];

/// The kind of a node whose rewriting is done.
pub(super) const DONE: &str = "";

/// Most links through blocks that are followed. A graph cannot have more ports in its blocks.
const WAYS_MAX: usize = 200_000;

/// A node.
pub(super) struct WorkflowNode<'t> {
    pub(super) item: &'t Item,
    /// The node's path, with the keys of the graph.
    pub(super) at: Vec<PathStep>,
    /// The block that holds it.
    pub(super) holder: Option<usize>,
    /// The kind of uniflow.
    pub(super) kind: &'t str,
    pub(super) name: String,
    pub(super) ports: Vec<WorkflowPort<'t>>,
    /// For a block: where its own ports lead inside.
    pub(super) inputs: Vec<WorkflowPort<'t>>,
    /// For a block: which ports inside are its own.
    pub(super) outputs: Vec<WorkflowPort<'t>>,
}

/// A port and its links.
pub(super) struct WorkflowPort<'t> {
    pub(super) name: String,
    pub(super) links: Vec<WorkflowLink<'t>>,
    /// The entry in the text, and how many links it has there. `None` if it was added.
    written: Option<(&'t Entry, usize)>,
}

/// A link to a port of a node.
#[derive(Clone)]
pub(super) struct WorkflowLink<'t> {
    pub(super) to: usize,
    pub(super) port: String,
    /// The link in the text. `None` if it was added.
    item: Option<&'t Item>,
}

impl<'t> WorkflowLink<'t> {
    pub(super) fn new(to: usize, port: &str) -> WorkflowLink<'t> {
        WorkflowLink { to, port: port.to_owned(), item: None }
    }
}

impl<'t> WorkflowNode<'t> {
    /// The node's entry with this key.
    pub(super) fn entry(&self, key: &str) -> Option<&'t Entry> {
        let Data::Map(entries) = &self.item.data else { return None };
        entries.iter().find(|entry| entry.key == key)
    }

    pub(super) fn port(&self, name: &str) -> Option<&WorkflowPort<'t>> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// Where a port is in the text.
    pub(super) fn port_span(&self, name: &str) -> Span {
        let written = self.port(name).and_then(|port| port.written);
        written.map_or(self.item.span, |(entry, _)| entry.span)
    }

    /// The links of a port.
    pub(super) fn links(&self, name: &str) -> &[WorkflowLink<'t>] {
        self.port(name).map_or(&[], |port| &port.links)
    }

    /// Gives a port these links.
    pub(super) fn set_links(&mut self, name: &str, links: Vec<WorkflowLink<'t>>) {
        match self.ports.iter_mut().find(|port| port.name == name) {
            Some(port) => port.links = links,
            None => {
                let name = name.to_owned();
                self.ports.push(WorkflowPort { name, links, written: None });
            }
        }
    }

    /// Removes and returns the links of a port.
    pub(super) fn take_links(&mut self, name: &str) -> Vec<WorkflowLink<'t>> {
        let port = self.ports.iter_mut().find(|port| port.name == name);
        port.map(|port| std::mem::take(&mut port.links)).unwrap_or_default()
    }

    /// Gives a port another name. No port may have the new name yet.
    pub(super) fn rename_port(&mut self, name: &str, new: &str) {
        if let Some(port) = self.ports.iter_mut().find(|port| port.name == name) {
            port.name = new.to_owned();
        }
    }

    /// The node's number in the file, if it is in no block.
    pub(super) fn number(&self) -> Option<usize> {
        match (self.holder, self.at.first()) {
            (None, Some(PathStep::Index(number))) => Some(*number),
            _ => None,
        }
    }
}

/// All nodes. Those in blocks come after the others.
#[derive(Default)]
pub(super) struct Workflow<'t> {
    pub(super) nodes: Vec<WorkflowNode<'t>>,
    /// Names of the nodes that were added. For links, their numbers follow those of the other
    /// nodes.
    added: Vec<String>,
    /// The nodes that the added nodes have links to.
    handed: Vec<usize>,
    /// The names that are taken in the file.
    names: Names,
}

/// A link from one node to another, through blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub(super) from: usize,
    pub(super) port: String,
    pub(super) to: usize,
}

impl<'t> Workflow<'t> {
    pub(super) fn read(items: &'t [Item], sheet: &mut Sheet<'t>) -> Workflow<'t> {
        let mut workflow = Workflow::default();
        workflow.scope(items, None, &[], sheet);
        workflow
    }

    /// Reads the nodes of the file or of a block.
    fn scope(
        &mut self,
        items: &'t [Item],
        holder: Option<usize>,
        to: &[PathStep],
        sheet: &mut Sheet<'t>,
    ) -> (Vec<usize>, HashMap<String, usize>) {
        let (mut own, mut known) = (Vec::new(), HashMap::new());
        for (number, item) in items.iter().enumerate() {
            let Some(kind) = item.get("kind").and_then(Item::text) else {
                sheet.left(item.span, "this is not a node", "write 'kind: ...'");
                continue;
            };
            let mut at = to.to_vec();
            at.push(PathStep::Index(number));
            let node = self.nodes.len();
            known.insert(format!("${number}"), node);
            for key in ["id", "name"] {
                if let Some(text) = item.get(key).and_then(Item::text) {
                    known.insert(text.to_owned(), node);
                }
            }
            let (inputs, outputs) = (Vec::new(), Vec::new());
            let (name, ports) = (String::new(), Vec::new());
            own.push(node);
            self.nodes.push(WorkflowNode { item, at, holder, kind, name, ports, inputs, outputs });
        }
        self.name(&own, sheet);
        for &node in &own {
            self.nodes[node].ports =
                ports(self.nodes[node].item, &["ports", "links"], &known, sheet);
            if BLOCKS.contains(&self.nodes[node].kind) {
                self.block(node, sheet);
            }
        }
        (own, known)
    }

    /// Gives each node of a scope a name that a graph allows.
    fn name(&mut self, own: &[usize], sheet: &mut Sheet<'t>) {
        let (mut names, mut unnamed) = (Names::default(), Vec::new());
        let is_file = own.first().is_some_and(|&node| self.nodes[node].holder.is_none());
        for &node in own {
            let Some(given) = self.nodes[node]
                .item
                .get("name")
                .filter(|it| it.text().is_some_and(|it| !it.is_empty()))
            else {
                unnamed.push(node);
                continue;
            };
            let text = given.text().unwrap_or_default();
            let name = names.take(text);
            if name != text {
                sheet.set(given, name.clone());
            }
            self.nodes[node].name = name;
        }
        for node in unnamed {
            let this = &mut self.nodes[node];
            let name = names.take(this.kind);
            sheet.change(&this.at, "name", Some(name.clone()));
            this.name = name;
        }
        if is_file {
            self.names = names;
        }
    }

    /// Reads the inside of a block or of steps.
    fn block(&mut self, node: usize, sheet: &mut Sheet<'t>) {
        let (item, is_block) = (self.nodes[node].item, self.nodes[node].kind == "block");
        let specs =
            self.nodes[node].entry("specs").filter(|it| matches!(it.value.data, Data::List(_)));
        let Some((specs, Data::List(items))) = specs.map(|specs| (specs, &specs.value.data)) else {
            let help = "write the nodes inside as a list, 'nodes: [...]'";
            return sheet.left(item.span, "this block has no 'specs'", help);
        };
        sheet.rename(specs, "nodes");
        let mut to = self.nodes[node].at.clone();
        to.push(PathStep::Key("nodes".to_owned()));
        let (own, known) = self.scope(items, Some(node), &to, sheet);
        // A block without such ports is of an earlier version, and means what steps mean now.
        let has_ports = ["inbounds", "inbound", "outbounds", "outbound"]
            .iter()
            .any(|key| item.get(key).is_some());
        if is_block && has_ports {
            let this = &mut self.nodes[node];
            this.inputs = ports(item, &["inbounds", "inbound"], &known, sheet);
            this.outputs = ports(item, &["outbounds", "outbound"], &known, sheet);
        } else {
            self.chain(node, &own);
        }
    }

    /// Links steps one after another.
    fn chain(&mut self, node: usize, own: &[usize]) {
        let (Some(&first), Some(&last)) = (own.first(), own.last()) else { return };
        for (place, &step) in own.iter().enumerate() {
            let step = &mut self.nodes[step];
            step.ports.iter_mut().for_each(|port| port.links.clear());
            if let Some(&next) = own.get(place + 1) {
                step.set_links("out", vec![WorkflowLink::new(next, "in")]);
            }
        }
        let has = |port| !self.nodes[node].links(port).is_empty();
        let (has_out, has_error) = (has("out"), has("error"));
        let port = |name: &str, links| WorkflowPort { name: name.to_owned(), links, written: None };
        let this = &mut self.nodes[node];
        this.inputs = vec![port("in", vec![WorkflowLink::new(first, "in")])];
        if has_out {
            this.outputs.push(port("out", vec![WorkflowLink::new(last, "out")]));
        }
        if has_error {
            let fails = |step: &&usize| !["print", "write"].contains(&self.nodes[**step].kind);
            let errors = own.iter().filter(fails);
            let errors = errors.map(|&step| WorkflowLink::new(step, "error")).collect();
            self.nodes[node].outputs.push(port("error", errors));
        }
    }

    /// Reserves a name for a node that is added to the file. Also returns its number for links.
    pub(super) fn add(&mut self, name: &str) -> (String, usize) {
        let name = self.names.take(name);
        self.added.push(name.clone());
        (name, self.nodes.len() + self.added.len() - 1)
    }

    /// The links of an added node, on one line.
    pub(super) fn hand(&mut self, links: &[WorkflowLink<'t>]) -> String {
        self.handed.extend(links.iter().map(|link| link.to));
        self.shown(links)
    }

    /// The name of a node, with the names of the blocks that hold it.
    pub(super) fn full_name(&self, node: usize) -> String {
        match self.nodes[node].holder {
            Some(holder) => format!("{}/{}", self.full_name(holder), self.nodes[node].name),
            None => self.nodes[node].name.clone(),
        }
    }

    /// The node, and the blocks that hold it, the innermost first.
    pub(super) fn holders(&self, node: usize) -> impl Iterator<Item = &'t Item> {
        let next = move |at: &usize| self.nodes[*at].holder;
        std::iter::successors(Some(node), next).map(move |at| self.nodes[at].item)
    }

    fn name_of(&self, node: usize) -> &str {
        match self.nodes.get(node) {
            Some(node) => &node.name,
            None => &self.added[node - self.nodes.len()],
        }
    }

    /// For each node, the nodes that link to it directly, not through blocks.
    pub(super) fn callers(&self) -> Vec<Vec<usize>> {
        let mut callers = vec![Vec::new(); self.nodes.len()];
        for (from, node) in self.nodes.iter().enumerate() {
            for link in node.ports.iter().chain(&node.inputs).flat_map(|port| &port.links) {
                callers[link.to].push(from);
            }
        }
        callers
    }

    /// All links from node to node, also those through blocks, in the order of the nodes.
    pub(super) fn ways(&self) -> Vec<Way> {
        let mut all = Vec::new();
        for (from, node) in self.nodes.iter().enumerate() {
            for port in &node.ports {
                for link in &port.links {
                    self.follow(from, &port.name, link, 0, &mut all);
                }
            }
        }
        all
    }

    fn follow(
        &self,
        from: usize,
        port: &str,
        link: &WorkflowLink<'t>,
        depth: usize,
        all: &mut Vec<Way>,
    ) {
        if all.len() >= WAYS_MAX || depth > NAME_LEN_MAX {
            return;
        }
        let inputs = self.nodes.get(link.to).map_or(&[][..], |node| &node.inputs);
        let Some(inside) = inputs.iter().find(|it| it.name == link.port) else {
            // What a block sends out is sent by nodes inside it.
            let outputs = self.nodes[from].outputs.iter().filter(|output| output.name == port);
            let inner: Vec<_> = outputs.flat_map(|output| &output.links).collect();
            if inner.is_empty() {
                all.push(Way { from, port: port.to_owned(), to: link.to });
            }
            for source in inner {
                self.follow(source.to, &source.port, link, depth + 1, all);
            }
            return;
        };
        for inner in &inside.links {
            self.follow(from, port, inner, depth + 1, all);
        }
    }

    /// Calls `keeps` for all links between nodes, and drops those for which it returns false.
    pub(super) fn keep_links(&mut self, mut keeps: impl FnMut(&mut WorkflowLink<'t>) -> bool) {
        for node in &mut self.nodes {
            for port in node.ports.iter_mut().chain(&mut node.inputs) {
                port.links.retain_mut(&mut keeps);
            }
        }
    }

    /// The nodes that packets reach from the nodes whose kind begins flows.
    pub(super) fn reached(&self, begins: impl Fn(&str) -> bool) -> HashSet<usize> {
        let sources = (0..self.nodes.len()).filter(|&node| begins(self.nodes[node].kind));
        let mut open: Vec<usize> = sources.chain(self.handed.iter().copied()).collect();
        let mut found = HashSet::new();
        while let Some(node) = open.pop() {
            if node < self.nodes.len() && found.insert(node) {
                let ports = &self.nodes[node].ports;
                open.extend(ports.iter().flat_map(|port| &port.links).map(|link| link.to));
            }
        }
        found
    }

    /// Writes the differences from the text.
    pub(super) fn write(&self, sheet: &mut Sheet<'t>) {
        for node in &self.nodes {
            let is_away = node.number().is_some_and(|number| sheet.is_away(number));
            if is_away {
                continue;
            }
            self.write_ports(node, &["ports", "links"], "ports", &node.ports, sheet);
            self.write_ports(node, &["inbounds", "inbound"], "inputs", &node.inputs, sheet);
            self.write_ports(node, &["outbounds", "outbound"], "outputs", &node.outputs, sheet);
        }
    }

    fn write_ports(
        &self,
        node: &WorkflowNode<'t>,
        keys: &[&str],
        key: &str,
        ports: &[WorkflowPort<'t>],
        sheet: &mut Sheet<'t>,
    ) {
        let entry = keys.iter().find_map(|key| node.entry(key));
        if let Some(entry) = entry {
            sheet.rename(entry, key);
        }
        let linked: Vec<_> = ports.iter().filter(|port| !port.links.is_empty()).collect();
        let Some(_) = entry.filter(|_| !linked.is_empty()) else {
            let all: Vec<_> = linked
                .iter()
                .map(|port| format!("{}: {}", in_braces(&port.name), self.shown(&port.links)))
                .collect();
            let value = (!linked.is_empty()).then(|| format!("{{{}}}", all.join(", ")));
            if entry.is_some() || value.is_some() {
                sheet.change(&node.at, key, value);
            }
            return;
        };
        let mut at = node.at.clone();
        at.push(PathStep::Key(key.to_owned()));
        // New keys are written first, so that a mapping is never empty.
        let (gone, there): (Vec<_>, Vec<_>) = ports.iter().partition(|port| port.links.is_empty());
        for port in there {
            match port.written {
                Some((entry, count)) if self.is_as_written(port, count) => {
                    sheet.rename(entry, &port.name);
                    port.links.iter().for_each(|link| self.write_link(link, sheet));
                }
                Some((entry, _)) => {
                    sheet.rename(entry, &port.name);
                    sheet.change(&at, &port.name, Some(self.shown(&port.links)));
                }
                None => sheet.change(&at, &port.name, Some(self.shown(&port.links))),
            }
        }
        for port in gone {
            if let Some((entry, _)) = port.written {
                sheet.rename(entry, &port.name);
                sheet.change(&at, &port.name, None);
            }
        }
    }

    /// Whether a port still has the links of the text, perhaps to other names.
    fn is_as_written(&self, port: &WorkflowPort<'t>, count: usize) -> bool {
        port.links.len() == count && port.links.iter().all(|link| link.item.is_some())
    }

    /// Changes the names in a link, in their places.
    fn write_link(&self, link: &WorkflowLink<'t>, sheet: &mut Sheet<'t>) {
        let Some(Data::Map(entries)) = link.item.map(|item| &item.data) else { return };
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        let name = self.name_of(link.to);
        if let Some(entry) = find("name").or(find("id")) {
            sheet.rename(entry, "name");
            if entry.value.text() != Some(name) {
                sheet.set(&entry.value, name);
            }
        }
        if let Some(entry) = find("port").filter(|entry| entry.value.text() != Some(&link.port)) {
            sheet.set(&entry.value, link.port.clone());
        }
    }

    /// Links on one line.
    fn shown(&self, links: &[WorkflowLink<'t>]) -> String {
        let one = |link: &WorkflowLink<'t>| {
            let name = in_braces(self.name_of(link.to));
            format!("{{name: {name}, port: {}}}", in_braces(&link.port))
        };
        format!("[{}]", links.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// The ports under the first of these keys that a node has.
fn ports<'t>(
    item: &'t Item,
    keys: &[&str],
    known: &HashMap<String, usize>,
    sheet: &mut Sheet<'t>,
) -> Vec<WorkflowPort<'t>> {
    let Some(held) = keys.iter().find_map(|key| item.get(key)) else { return Vec::new() };
    let Data::Map(entries) = &held.data else {
        sheet.left(held.span, "these are not ports", "write {out: [{name: node, port: in}]}");
        return Vec::new();
    };
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let items = if let Data::List(items) = &entry.value.data { items.as_slice() } else { &[] };
        let mut links = Vec::with_capacity(items.len());
        for item in items {
            let text = |key| item.get(key).and_then(Item::text).filter(|text| !text.is_empty());
            let name = text("name").or(text("id")).unwrap_or_default();
            match (known.get(name), text("port")) {
                (Some(&to), Some(port)) => {
                    let item = Some(item);
                    links.push(WorkflowLink { to, port: port.to_owned(), item });
                }
                _ => {
                    let message = format!("this link leads to no node of the file: '{name}'");
                    sheet.left(item.span, message, "link it to a node that is there");
                }
            }
        }
        let written = Some((entry, items.len()));
        all.push(WorkflowPort { name: entry.key.clone(), links, written });
    }
    all
}

/// The names of a scope.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    /// The next number to append to each name.
    next: HashMap<String, usize>,
}

impl Names {
    /// A name that has only the signs that a graph allows, and that no other node has.
    fn take(&mut self, text: &str) -> String {
        let is_good = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
        let good = text.chars().map(|sign| if is_good(sign) { sign } else { '_' });
        let good: String = good.take(NAME_LEN_MAX).collect();
        let mut name = if good.is_empty() { "node".to_owned() } else { good.clone() };
        while self.taken.contains(&name) {
            let number = self.next.entry(good.clone()).or_insert(1);
            *number += 1;
            name = format!("{}_{number}", &good[..good.len().min(NAME_LEN_MAX - 12)]);
        }
        self.taken.insert(name.clone());
        name
    }
}
