//! The place of everything in the picture.
//!
//! Domains are placed side by side in stop order, each with its threads one below the other.
//! Inside, nodes are placed in columns: a node is to the right of the nodes that it reads from;
//! after some columns the row wraps. A link leaves its node to the right and arrives from the left:
//!
//! ```text
//!   │ entry tracks │ labels │ node │ exit tracks │ entry tracks │ labels │ node │
//! ```
//!
//! A label is placed at the input port at which its link arrives. An input of messages has one
//! writer and a row of its own, so labels cannot overlap; links that carry packets have none. A
//! link into the next column turns once in an exit track; every other link goes down to a lane
//! below the thread, the domain or the picture, and up again.

mod lanes;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{Domain, End, Plan};

use self::lanes::{Lanes, Level};
use crate::order::sort;
use crate::picture::line::{Line, lines};
use crate::picture::{
    SEPARATOR, domain_facts, message_text, notes, option_texts, rows, thread_head,
};

/// Nodes in a row before it wraps.
const COLUMNS_MAX: usize = 6;
const MARGIN: f64 = 28.0;
const TITLE_HEIGHT: f64 = 30.0;
/// The base line of the title.
pub(super) const TITLE_Y: f64 = 38.0;
/// Height of the legend and of each note below it.
pub(super) const LEGEND_HEIGHT: f64 = 22.0;
/// Wide enough for the legend.
const WIDTH_MIN: f64 = 640.0;
const DOMAIN_GAP: f64 = 36.0;
/// Gap between the core and the services.
const FIREWALL_GAP: f64 = 76.0;
const DOMAIN_PAD: f64 = 14.0;
const DOMAIN_HEADER: f64 = 58.0;
const THREAD_GAP: f64 = 14.0;
const THREAD_PAD: f64 = 16.0;
const THREAD_HEADER: f64 = 34.0;
const NODE_GAP: f64 = 20.0;
/// Height of a node's name and kind.
pub(super) const NODE_HEADER: f64 = 48.0;
/// From there to the first port, so that ports of neighbours are at the same height.
const FIRST_PORT: f64 = 18.0;
const NODE_WIDTH_MIN: f64 = 132.0;
/// Height of a port with the text below it.
const ROW: f64 = 30.0;
/// The same if its label has three lines.
const ROW_LABELLED: f64 = 52.0;
const TRACK: f64 = 14.0;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The path of a link, and the width of its label: the last piece runs through the label's middle.
#[derive(Debug)]
pub(super) struct Way {
    /// Corners of a line of horizontal and vertical pieces, from the writer to the reader.
    pub(super) points: Vec<(f64, f64)>,
    /// The last of these corners.
    pub(super) end: (f64, f64),
    pub(super) label_width: f64,
}

/// The picture, in pixels.
pub(super) struct Layout<'a> {
    plan: &'a Plan,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Middle of the legend.
    pub(super) legend_y: f64,
    /// Between the core and the services, if there are both.
    pub(super) firewall_x: Option<f64>,
    pub(super) domains: Vec<Rect>,
    /// The threads of each domain.
    pub(super) threads: Vec<Vec<Rect>>,
    pub(super) nodes: Vec<Rect>,
    /// Height of the rows of each node's ports.
    pub(super) rows: Vec<f64>,
    /// What is drawn between ports.
    pub(super) lines: Vec<Line>,
    /// One for each line.
    pub(super) ways: Vec<Way>,
    /// The ports of each node that are drawn, from top to bottom.
    pub(super) ports: Vec<Vec<usize>>,
    /// The ends of all lines.
    pub(super) linked: HashSet<End>,
}

impl<'a> Layout<'a> {
    /// A layout in which nothing has its place yet.
    fn new(plan: &'a Plan) -> Layout<'a> {
        let lines = lines(plan);
        let linked: HashSet<End> = lines.iter().flat_map(|line| [line.from, line.to]).collect();
        Layout {
            plan,
            width: 0.0,
            height: 0.0,
            legend_y: 0.0,
            firewall_x: None,
            domains: Vec::new(),
            threads: Vec::new(),
            nodes: vec![Rect::default(); plan.nodes.len()],
            rows: row_heights(plan),
            ways: Vec::new(),
            ports: ports(plan, &linked),
            linked,
            lines,
        }
    }

    /// Row of a port among its node's inputs or outputs.
    fn row(&self, end: End) -> usize {
        let direction = |port| self.plan.port(End { port, ..end }).direction;
        let above = self.ports[end.node].iter().take_while(|&&other| other != end.port);
        above.filter(|&&other| direction(other) == direction(end.port)).count()
    }

    /// The height of a port at the side of its node.
    pub(super) fn port_y(&self, end: End) -> f64 {
        let row_y = self.rows[end.node] * self.row(end) as f64;
        self.nodes[end.node].y + NODE_HEADER + FIRST_PORT + row_y
    }

    fn node_height(&self, node: usize) -> f64 {
        let direction = |port| self.plan.port(End { node, port }).direction;
        let ports = &self.ports[node];
        let inputs = ports.iter().filter(|&&port| direction(port) == Direction::In).count();
        let rows = inputs.max(ports.len() - inputs).max(1);
        NODE_HEADER + FIRST_PORT + rows as f64 * self.rows[node] - ROW / 2.0 + 3.0
    }

    /// A key that grows from top to bottom of a column.
    fn place(&self, bands: &[usize], end: End) -> (usize, usize, usize, usize) {
        let node = &self.plan.nodes[end.node];
        let nodes = rows(&self.plan.domains[node.domain])[node.thread];
        let order = nodes.iter().position(|&other| other == end.node).unwrap_or(0);
        (node.thread, bands[end.node], order, self.row(end))
    }
}

/// Width of a text of `size` pixels in a proportional font, rather too large than too small.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.57
}

/// A column of nodes.
#[derive(Clone, Debug, Default)]
struct Column {
    domain: usize,
    nodes: Vec<usize>,
    /// Links that come in by a lane, later their nets; one track each.
    entries: Vec<usize>,
    /// Links that go out, later their nets.
    exits: Vec<usize>,
    label_width: f64,
    node_width: f64,
    entry_x: f64,
    node_x: f64,
}

/// The ports of each node that are drawn; of elements `out[i]` only those with a link.
fn ports(plan: &Plan, linked: &HashSet<End>) -> Vec<Vec<usize>> {
    let mut ports: Vec<Vec<usize>> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let is_one = |at: &usize| !node.kind.ports[*at].name.ends_with("[]");
        ports.push((0..node.kind.ports.len()).filter(is_one).collect());
    }
    for end in linked {
        if plan.port(*end).name.ends_with("[]") {
            ports[end.node].push(end.port);
        }
    }
    ports.iter_mut().for_each(|ports| ports.sort_unstable());
    ports
}

/// Places everything.
pub(super) fn layout(plan: &Plan) -> Layout<'_> {
    let mut layout = Layout::new(plan);
    let lines = &layout.lines;
    let depths = depths(plan, lines);
    let mut columns = columns(plan, &depths);
    let mut column_of = vec![0; plan.nodes.len()];
    for (at, column) in columns.iter().enumerate() {
        column.nodes.iter().for_each(|&node| column_of[node] = at);
    }
    // The row of columns in which each node is placed: a chain that is too long wraps.
    let bands: Vec<usize> = depths.into_iter().map(|depth| depth / COLUMNS_MAX).collect();
    let direct = |line: &Line| column_of[line.to.node] == column_of[line.from.node] + 1;
    for (at, line) in lines.iter().enumerate() {
        columns[column_of[line.from.node]].exits.push(at);
        let target = &mut columns[column_of[line.to.node]];
        target.label_width = target.label_width.max(label_width(plan, line));
        if !direct(line) {
            target.entries.push(at);
        }
    }
    let nets = nets(plan, lines);
    // Upper ports turn further out than lower ones, so that paths to a lane do not cross each
    // other.
    for column in &mut columns {
        column.entries.sort_by_cached_key(|&at| layout.place(&bands, lines[at].to));
        // Paths that go down turn before those into the next column, whose last piece may pass a
        // port.
        let turn =
            |&at: &usize| (direct(&lines[at]), Reverse(layout.place(&bands, lines[at].from)));
        column.exits.sort_by_cached_key(turn);
        column.entries = tracks(&column.entries, &nets);
        column.exits = tracks(&column.exits, &nets);
    }
    place_columns(plan, &mut columns, &mut layout);
    let turn = |(at, line): (usize, &Line)| {
        let (writer, reader) =
            (&columns[column_of[line.from.node]], &columns[column_of[line.to.node]]);
        let exit_x = writer.exit_x() + track(&writer.exits, nets[at]);
        let entry_x = reader.entry_x + track(&reader.entries, nets[at]);
        Turns { exit_x, entry_x: (!direct(line)).then_some(entry_x) }
    };
    let turns: Vec<Turns> = layout.lines.iter().enumerate().map(turn).collect();
    let lanes = Lanes::new(plan, &layout.lines, &nets, &turns);
    place_rows(&columns, &bands, &lanes, &mut layout);
    let way = |(at, line): (usize, &Line)| {
        let &Line { from, to, .. } = line;
        let Turns { exit_x, entry_x } = turns[at];
        let start = (layout.nodes[from.node].right(), layout.port_y(from));
        let end = (layout.nodes[to.node].x, layout.port_y(to));
        let mut points = vec![start, (exit_x, start.1)];
        if let Some(entry_x) = entry_x {
            let lane_y = lanes.y(nets[at], &layout);
            points.extend([(exit_x, lane_y), (entry_x, lane_y), (entry_x, end.1)]);
        } else {
            points.push((exit_x, end.1));
        }
        points.push(end);
        Way { points, end, label_width: columns[column_of[to.node]].label_width }
    };
    layout.ways = layout.lines.iter().enumerate().map(way).collect();
    layout
}

/// The turns of a link.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    pub(super) exit_x: f64,
    /// `None`: it ends in the next column and needs no lane.
    pub(super) entry_x: Option<f64>,
}

/// For each link the first of the links that share its tracks and lane: links of one port that look
/// alike are drawn as a tree.
fn nets(plan: &Plan, lines: &[Line]) -> Vec<usize> {
    let mut first = HashMap::new();
    let net = |(at, line): (usize, &Line)| {
        let key = (line.from, line.delay, Level::of(plan, line));
        *first.entry(key).or_insert(at)
    };
    lines.iter().enumerate().map(net).collect()
}

/// The nets of some links, each once.
fn tracks(links: &[usize], nets: &[usize]) -> Vec<usize> {
    let mut seen = HashSet::new();
    links.iter().map(|&at| nets[at]).filter(|&net| seen.insert(net)).collect()
}

/// Distance of a net's track from the first track.
fn track(tracks: &[usize], net: usize) -> f64 {
    TRACK * tracks.iter().position(|&other| other == net).unwrap_or(0) as f64
}

impl Column {
    fn exit_x(&self) -> f64 {
        self.node_x + self.node_width + TRACK
    }

    fn end_x(&self) -> f64 {
        self.exit_x() + TRACK * self.exits.len() as f64
    }
}

fn label_width(plan: &Plan, line: &Line) -> f64 {
    let Some(link) = line.link(plan) else { return 2.0 * TRACK };
    let options = option_texts(plan, link).into_iter().flatten();
    let texts = options.chain([message_text(link)]);
    let widest = texts.map(|text| text_width(&text, 11.0)).fold(0.0, f64::max);
    widest + 22.0
}

/// The depth of each node: how long the chain of nodes of its domain is that it reads from.
fn depths(plan: &Plan, lines: &[Line]) -> Vec<usize> {
    let inside = |line: &&Line| {
        !line.delay && plan.nodes[line.from.node].domain == plan.nodes[line.to.node].domain
    };
    let pairs: Vec<(usize, usize)> =
        lines.iter().filter(inside).map(|line| (line.from.node, line.to.node)).collect();
    let mut readers = vec![Vec::new(); plan.nodes.len()];
    for &(from, to) in &pairs {
        readers[from].push(to);
    }
    let mut depths = vec![0; plan.nodes.len()];
    for node in sort(plan.nodes.len(), &pairs).0 {
        for &reader in &readers[node] {
            depths[reader] = depths[reader].max(depths[node] + 1);
        }
    }
    depths
}

/// All columns from left to right, with their nodes from top to bottom.
fn columns(plan: &Plan, depths: &[usize]) -> Vec<Column> {
    let mut columns = Vec::new();
    for (at, domain) in plan.domains.iter().enumerate() {
        let nodes: Vec<usize> = rows(domain).concat();
        let deepest = nodes.iter().map(|&node| depths[node]).max().unwrap_or(0);
        for column in 0..=deepest.min(COLUMNS_MAX - 1) {
            let here = nodes.iter().copied().filter(|&node| depths[node] % COLUMNS_MAX == column);
            columns.push(Column { domain: at, nodes: here.collect(), ..Column::default() });
        }
    }
    columns
}

fn row_heights(plan: &Plan) -> Vec<f64> {
    let mut rows = vec![ROW; plan.nodes.len()];
    for link in plan.links.iter().filter(|link| !link.fused) {
        rows[link.to.node] = ROW_LABELLED;
    }
    rows
}

fn node_width(plan: &Plan, node: usize, ports: &[usize]) -> f64 {
    let row = &plan.nodes[node];
    let widest = |direction| {
        let ports = ports.iter().filter(|&&port| row.kind.port(port).direction == direction);
        ports.map(|&port| text_width(&row.kind.port_name(port), 11.0)).fold(0.0, f64::max)
    };
    let ports = widest(Direction::In) + widest(Direction::Out);
    let name = text_width(&row.name, 15.0) + 30.0;
    let kind = text_width(row.kind.name, 11.0);
    let safe = row.actuators.iter().map(|actuator| {
        let safe = row.kind.ports[actuator.port].safe[actuator.safe].name;
        text_width(safe, 10.0) + 60.0
    });
    let safe = safe.fold(0.0, f64::max);
    let fits = [name + 24.0, kind + 50.0, ports + 48.0, safe + 24.0];
    fits.into_iter().fold(NODE_WIDTH_MIN, f64::max)
}

/// Gives each column its place from left to right, and each domain its place around them.
fn place_columns(plan: &Plan, columns: &mut [Column], layout: &mut Layout<'_>) {
    let mut x = MARGIN;
    for at in 0..columns.len() {
        let first = at == 0 || columns[at - 1].domain != columns[at].domain;
        if first {
            let is_service = |at: usize| plan.domains[columns[at].domain].service().is_some();
            x += match at.checked_sub(1) {
                None => 0.0,
                Some(before) if is_service(at) && !is_service(before) => {
                    layout.firewall_x = Some(x + FIREWALL_GAP / 2.0);
                    FIREWALL_GAP
                }
                Some(_) => DOMAIN_GAP,
            };
            layout.domains.push(Rect { x, y: MARGIN + TITLE_HEIGHT, ..Rect::default() });
            x += DOMAIN_PAD + THREAD_PAD;
        }
        let column = &mut columns[at];
        let widths = column.nodes.iter();
        let widths = widths.map(|&node| node_width(plan, node, &layout.ports[node]));
        column.node_width = widths.fold(NODE_WIDTH_MIN, f64::max);
        column.entry_x = x + TRACK / 2.0;
        x += TRACK * column.entries.len() as f64;
        column.node_x = x + column.label_width;
        x = column.end_x();
        let domain = &mut layout.domains[column.domain];
        let least = domain_width_min(plan, &plan.domains[column.domain]);
        domain.width = least.max(x + THREAD_PAD + DOMAIN_PAD - domain.x);
        for &node in &column.nodes {
            layout.nodes[node].x = column.node_x;
            layout.nodes[node].width = column.node_width;
        }
        if columns.get(at + 1).is_none_or(|next| next.domain != columns[at].domain) {
            x = layout.domains[columns[at].domain].right();
        }
    }
    layout.width = WIDTH_MIN.max(x + MARGIN);
}

/// Room for the facts about a domain and its threads.
fn domain_width_min(plan: &Plan, domain: &Domain) -> f64 {
    let facts = text_width(&domain_facts(plan, domain).join(SEPARATOR), 11.0);
    let threads = domain.threads().iter().enumerate();
    let heads = threads.map(|(at, thread)| text_width(&thread_head(plan, at, thread), 12.0));
    (heads.fold(0.0, f64::max) + 2.0 * DOMAIN_PAD).max(facts) + 36.0
}

impl Rect {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Gives threads and nodes their places from top to bottom.
fn place_rows(columns: &[Column], bands: &[usize], lanes: &Lanes, layout: &mut Layout<'_>) {
    let plan = layout.plan;
    for (at, domain) in plan.domains.iter().enumerate() {
        let frame = layout.domains[at];
        let mut y = frame.y + DOMAIN_HEADER;
        let mut threads = Vec::new();
        for (thread, nodes) in rows(domain).into_iter().enumerate() {
            let top = y;
            y += if domain.service().is_some() { 0.0 } else { THREAD_HEADER };
            let last = nodes.iter().map(|&node| bands[node]).max();
            for band in 0..=last.unwrap_or(0) {
                let mut bottom = y;
                for column in columns.iter().filter(|column| column.domain == at) {
                    let mut node_y = y;
                    for &node in &column.nodes {
                        if plan.nodes[node].thread != thread || bands[node] != band {
                            continue;
                        }
                        layout.nodes[node].y = node_y;
                        layout.nodes[node].height = layout.node_height(node);
                        node_y += layout.nodes[node].height + NODE_GAP;
                    }
                    bottom = bottom.max(node_y);
                }
                y = bottom;
            }
            y += THREAD_PAD - NODE_GAP + lanes.height(Level::Thread(at, thread));
            let width = frame.width - 2.0 * DOMAIN_PAD;
            threads.push(Rect { x: frame.x + DOMAIN_PAD, y: top, width, height: y - top });
            y += THREAD_GAP;
        }
        y += lanes.height(Level::Domain(at)) + DOMAIN_PAD - THREAD_GAP;
        layout.domains[at].height = y - frame.y;
        layout.threads.push(threads);
    }
    let bottom = layout.domains.iter().map(Rect::bottom).fold(0.0, f64::max);
    layout.legend_y = bottom + lanes.height(Level::Picture) + LEGEND_HEIGHT;
    layout.height = layout.legend_y + LEGEND_HEIGHT * notes(plan).len() as f64 + MARGIN + 4.0;
}
