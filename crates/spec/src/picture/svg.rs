//! The plan as an SVG, light or dark as the viewer prefers, in the system's fonts.

use std::fmt::{self, Display, Write};

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{End, Link, Plan};

use crate::picture::layout::{
    LEGEND_HEIGHT, Layout, NODE_HEADER, Rect, TITLE_Y, Way, layout, text_width,
};
use crate::picture::line::Line;
use crate::picture::{
    SEPARATOR, counts, domain_facts, message_text, notes, option_texts, thread_head,
};

/// Colours and fonts. Each domain has a hue of its own; colours that depend on the theme are
/// variables.
const STYLE: &str = include_str!("picture.css");
/// Hues that are given to domains in turn.
const HUES: usize = 6;
/// Radius of the corners of a link, px.
const CORNER: f64 = 8.0;

/// The picture as one self-contained SVG document.
pub fn svg(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = draw(&mut out, plan, &layout(plan));
    out
}

fn draw(out: &mut String, plan: &Plan, layout: &Layout) -> fmt::Result {
    let Layout { width, height, .. } = layout;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">"
    )?;
    writeln!(out, "<title>{}</title>\n<style>\n{STYLE}</style>", Escaped(&plan.name))?;
    writeln!(out, "<rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\"/>")?;
    let (x, y) = (layout.domains.first().map_or(0.0, |domain| domain.x), TITLE_Y);
    let counts_x = x + 1.15 * text_width(&plan.name, 22.0) + 14.0;
    label(out, "title", (x, y), "start", &plan.name)?;
    label(out, "fact", (counts_x, y), "start", &counts(plan))?;
    for at in 0..plan.domains.len() {
        draw_domain(out, plan, layout, at)?;
    }
    if let Some(x) = layout.firewall_x {
        draw_firewall(out, layout, x)?;
    }
    for (line, way) in layout.lines.iter().zip(&layout.ways) {
        draw_way(out, plan, line, way)?;
    }
    for node in 0..plan.nodes.len() {
        draw_node(out, plan, layout, node)?;
    }
    for (line, way) in layout.lines.iter().zip(&layout.ways) {
        if let Some(link) = line.link(plan) {
            draw_label(out, plan, link, way)?;
        }
    }
    legend(out, plan, layout)?;
    writeln!(out, "</svg>")
}

/// A text between tags or in quotes. Characters that XML does not allow become replacement
/// characters.
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                c if c.is_control() && !c.is_whitespace() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

fn rect(out: &mut String, class: &str, frame: Rect, radius: f64) -> fmt::Result {
    let Rect { x, y, width, height } = frame;
    writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"{radius}\"/>"
    )
}

fn label(
    out: &mut String,
    class: &str,
    (x, y): (f64, f64),
    anchor: &str,
    text: &str,
) -> fmt::Result {
    let text = Escaped(text);
    writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    )
}

/// The frame of a domain and of its threads; a service's frame looks different and has no threads.
fn draw_domain(out: &mut String, plan: &Plan, layout: &Layout<'_>, at: usize) -> fmt::Result {
    let (domain, frame) = (&plan.domains[at], layout.domains[at]);
    writeln!(out, "<g class=\"d{}\">", at % HUES)?;
    match domain.service() {
        None => rect(out, "domain", frame, 16.0)?,
        Some(_) => rect(out, "domain service", frame, 4.0)?,
    }
    label(out, "domain-name", (frame.x + 18.0, frame.y + 27.0), "start", &domain.name)?;
    let facts = domain_facts(plan, domain).join(SEPARATOR);
    label(out, "fact", (frame.x + 18.0, frame.y + 45.0), "start", &facts)?;
    for (thread, row) in domain.threads().iter().enumerate() {
        let frame = layout.threads[at][thread];
        rect(out, "thread", frame, 10.0)?;
        let head = thread_head(plan, thread, row);
        label(out, "thread-head", (frame.x + 14.0, frame.y + 21.0), "start", &head)?;
    }
    writeln!(out, "</g>")
}

/// The border of the core. Its word is at the height of the domains' heads, where no link runs.
fn draw_firewall(out: &mut String, layout: &Layout<'_>, x: f64) -> fmt::Result {
    let top = layout.domains.first().map_or(0.0, |domain| domain.y);
    let bottom = layout.legend_y - LEGEND_HEIGHT;
    writeln!(out, "<path class=\"firewall\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>")?;
    let (x, y) = (x - 6.0, top + 2.0);
    writeln!(
        out,
        "<text class=\"firewall-name\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" \
         transform=\"rotate(-90 {x:.1} {y:.1})\">firewall</text>"
    )
}

fn draw_way(out: &mut String, plan: &Plan, line: &Line, way: &Way) -> fmt::Result {
    let class = format!("{}{}", line.reach(plan), if line.delay { " delayed" } else { "" });
    let (from, to) = (plan.end_name(line.from), plan.end_name(line.to));
    writeln!(out, "<g class=\"{class}\"><title>{from} to {to}</title>")?;
    writeln!(out, "<path class=\"way\" d=\"{}\"/>", rounded(&way.points))?;
    let (x, y) = (way.end.0 - 4.0, way.end.1);
    writeln!(out, "<path class=\"head\" d=\"M{x:.1} {y:.1}l-9 -4.5l2 4.5l-2 4.5z\"/>\n</g>")
}

/// A path of horizontal and vertical pieces with rounded corners, up to the arrow's head.
fn rounded(points: &[(f64, f64)]) -> String {
    let mut corners = points.to_vec();
    corners.dedup_by(|b, a| (a.0 - b.0).abs() + (a.1 - b.1).abs() < 0.5);
    // A corner between two pieces of the same direction is removed.
    let mut at = 1;
    while at + 1 < corners.len() {
        let (a, b, c) = (corners[at - 1], corners[at], corners[at + 1]);
        let straight = (a.1 == b.1 && b.1 == c.1) || (a.0 == b.0 && b.0 == c.0);
        if straight {
            corners.remove(at);
        } else {
            at += 1;
        }
    }
    let mut path = String::new();
    for (at, &(x, y)) in corners.iter().enumerate() {
        let _ = match (at, corners.get(at + 1)) {
            (0, _) => write!(path, "M{x:.1} {y:.1}"),
            (_, None) => write!(path, "L{:.1} {y:.1}", x - 10.0),
            (_, Some(&next)) => {
                let (before, after) = (toward((x, y), corners[at - 1]), toward((x, y), next));
                write!(
                    path,
                    "L{:.1} {:.1}Q{x:.1} {y:.1} {:.1} {:.1}",
                    before.0, before.1, after.0, after.1
                )
            }
        };
    }
    path
}

/// The point one corner's radius away, or half-way if that is nearer.
fn toward(from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.abs() + dy.abs();
    let share = if length > 0.0 { (CORNER / length).min(0.5) } else { 0.0 };
    (from.0 + dx * share, from.1 + dy * share)
}

fn draw_label(out: &mut String, plan: &Plan, link: &Link, way: &Way) -> fmt::Result {
    let (x, y) = (way.end.0 - way.label_width / 2.0 - 4.0, way.end.1);
    label(out, "message", (x, y - 6.0), "middle", &message_text(link))?;
    for (at, text) in option_texts(plan, link).iter().flatten().enumerate() {
        label(out, "option", (x, y + 13.0 + 12.5 * at as f64), "middle", text)?;
    }
    Ok(())
}

fn draw_node(out: &mut String, plan: &Plan, layout: &Layout<'_>, node: usize) -> fmt::Result {
    let row = &plan.nodes[node];
    let frame = layout.nodes[node];
    writeln!(out, "<g class=\"d{}\">", row.domain % HUES)?;
    rect(out, "node", frame, 9.0)?;
    let mut x = frame.x + 14.0;
    // The nodes of a service have no order: each runs on a thread of its own.
    if let Some(thread) = plan.domains[row.domain].threads().get(row.thread) {
        let order = thread.nodes.iter().position(|&other| other == node).unwrap_or(0) + 1;
        let (cx, cy) = (frame.x + 20.0, frame.y + 24.0);
        writeln!(out, "<circle class=\"badge\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"10\"/>")?;
        label(out, "order", (cx, cy + 3.8), "middle", &order.to_string())?;
        x = frame.x + 38.0;
    }
    label(out, "name", (x, frame.y + 22.0), "start", &row.name)?;
    label(out, "fact", (x, frame.y + 37.0), "start", row.kind.name)?;
    let line_y = frame.y + NODE_HEADER;
    writeln!(out, "<path class=\"rule\" d=\"M{:.1} {line_y:.1}H{:.1}\"/>", frame.x, frame.right())?;
    for &port in &layout.ports[node] {
        draw_port(out, plan, layout, End { node, port })?;
    }
    for actuator in &row.actuators {
        let safe = row.kind.ports[actuator.port].safe[actuator.safe].name;
        let text = format!("{safe} after {}", actuator.after);
        let y = layout.port_y(End { node, port: actuator.port }) + 17.0;
        label(out, "safe", (frame.x + 12.0, y), "start", &text)?;
    }
    writeln!(out, "</g>")
}

fn draw_port(out: &mut String, plan: &Plan, layout: &Layout<'_>, end: End) -> fmt::Result {
    let (frame, y) = (layout.nodes[end.node], layout.port_y(end));
    let (x, text_x, anchor) = match plan.port(end).direction {
        Direction::In => (frame.x, frame.x + 12.0, "start"),
        Direction::Out => (frame.right(), frame.right() - 12.0, "end"),
    };
    let class = if layout.linked.contains(&end) { "port" } else { "port open" };
    writeln!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>")?;
    let name = plan.nodes[end.node].kind.port_name(end.port);
    label(out, "port-name", (text_x, y + 3.8), anchor, &name)
}

/// What the lines mean, and the notes of the plan.
fn legend(out: &mut String, plan: &Plan, layout: &Layout) -> fmt::Result {
    let mut x = layout.domains.first().map_or(0.0, |domain| domain.x);
    let mut y = layout.legend_y;
    let has = |flow: bool| layout.lines.iter().any(|line| line.link.is_none() == flow);
    let messages = [
        ("fused", "inside a thread"),
        ("threads", "between threads"),
        ("domains", "between domains"),
        ("fused delayed", "one cycle later"),
    ];
    let packets = has(true).then_some(("flow", "a packet, and its reply"));
    let messages = messages.into_iter().filter(|_| has(false) || packets.is_none());
    for (class, text) in messages.chain(packets) {
        writeln!(out, "<g class=\"{class}\"><path class=\"way\" d=\"M{x:.1} {y:.1}h26\"/></g>")?;
        label(out, "fact", (x + 33.0, y + 3.8), "start", text)?;
        x += 33.0 + text_width(text, 12.0) + 18.0;
    }
    for note in notes(plan) {
        y += LEGEND_HEIGHT;
        let x = layout.domains.first().map_or(0.0, |domain| domain.x);
        label(out, "note", (x, y + 6.0), "start", &note)?;
    }
    Ok(())
}
