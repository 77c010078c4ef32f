//! The plan in box drawing, for a terminal of any width.

use sinew_plan::plan::{Domain, Link, Plan, Thread};
use unicode_width::UnicodeWidthStr;

use crate::picture::{counts, domain_facts, message_text, notes, option_texts, thread_facts};

/// Narrowest picture; in a narrower terminal its lines wrap.
const WIDTH_MIN: usize = 40;
/// Widest picture; a wider one is harder to read.
const WIDTH_MAX: usize = 110;

/// The picture, `width` columns wide within the limits above.
pub fn text(plan: &Plan, width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut lines = vec![format!("{} ({})", plan.name, counts(plan))];
    let mut in_core = false;
    for domain in &plan.domains {
        lines.push(String::new());
        if std::mem::replace(&mut in_core, domain.service().is_none()) && !in_core {
            lines.extend([firewall(width), String::new()]);
        }
        lines.extend(domain_box(plan, domain, width));
    }
    lines.push(String::new());
    let mut legend = Vec::new();
    if !plan.links.is_empty() || plan.flow_links.is_empty() {
        legend.push("──▶ inside a thread   ══▶ between threads   ┄┄▶ one cycle later");
    }
    if !plan.flow_links.is_empty() {
        legend.push("──▷ a packet, and its reply");
    }
    lines.extend(within("", &legend.join("   "), width));
    for note in notes(plan) {
        let (head, rest) = note.split_once(": ").unwrap_or(("", &note));
        lines.extend(within(&format!("{head}: "), rest, width));
    }
    lines.join("\n") + "\n"
}

/// The plan in a few lines: domains, threads and the names of their nodes in order, and the notes.
pub fn summary(plan: &Plan) -> String {
    let mut lines = vec![format!("{}: {}", plan.name, counts(plan))];
    for domain in &plan.domains {
        lines.push(format!("  {}: {}", domain.name, domain_facts(plan, domain).join(", ")));
        for (at, thread) in domain.threads().iter().enumerate() {
            let names = thread.nodes.iter().map(|&node| plan.nodes[node].name.as_str());
            let names = names.collect::<Vec<_>>().join(" -> ");
            let facts = thread_facts(plan, thread).join(", ");
            lines.push(format!("    thread {at}, {facts}: {names}"));
        }
        if let Some(service) = domain.service() {
            let names = service.nodes.iter().map(|&node| plan.nodes[node].name.as_str());
            lines.push(format!("    {}", names.collect::<Vec<_>>().join(", ")));
        }
    }
    lines.extend(notes(plan).iter().map(|note| format!("  {note}")));
    lines.join("\n") + "\n"
}

/// The plan in lines without boxes and arrows, for a screen reader: the summary, the safe values,
/// and each link.
pub fn lines(plan: &Plan) -> String {
    let mut text = summary(plan);
    for node in &plan.nodes {
        for actuator in &node.actuators {
            let port = &node.kind.ports[actuator.port];
            let (safe, after) = (port.safe[actuator.safe].name, actuator.after);
            text += &format!(
                "  {}.{} is safe: {safe} after {after} cycles without a command\n",
                node.name, port.name
            );
        }
    }
    for link in &plan.links {
        let how = if link.fused { "inside a thread" } else { "between threads" };
        let options = option_texts(plan, link).into_iter().flatten();
        let facts = [how.to_owned(), message_text(link)].into_iter().chain(options);
        let facts = facts.collect::<Vec<_>>().join(", ").replace(" · ", ", ");
        let (from, to) = (plan.end_name(link.from), plan.end_name(link.to));
        text += &format!("  link from {from} to {to}: {facts}\n");
    }
    for link in &plan.flow_links {
        let (from, to) = (plan.end_name(link.from), plan.end_name(link.to));
        text += &format!("  packets from {from} to {to}, and their replies back\n");
    }
    text
}

/// A frame in a terminal: its upper and lower corners, and the lines between them.
struct Frame {
    upper: [&'static str; 2],
    lower: [&'static str; 2],
    across: &'static str,
    side: &'static str,
}

/// For what stops as a whole: the core, and threads in it.
const SOLID: Frame =
    Frame { upper: ["╭", "╮"], lower: ["╰", "╯"], across: "─", side: "│" };
/// For what is restarted alone: services.
const DASHED: Frame =
    Frame { upper: ["┌", "┐"], lower: ["└", "┘"], across: "╌", side: "╎" };

/// The border between the core and the services.
fn firewall(width: usize) -> String {
    let words = "▓▓ firewall: below, each fails alone, and none makes the core wait ";
    let short = "▓▓ firewall ";
    let words = if words.width() <= width { words } else { short };
    format!("{words}{}", "▓".repeat(width.saturating_sub(words.width())))
}

fn domain_box(plan: &Plan, domain: &Domain, width: usize) -> Vec<String> {
    let inner = width - 4;
    let mut body = Vec::new();
    for (at, thread) in domain.threads().iter().enumerate() {
        body.extend(thread_box(plan, at, thread, inner));
    }
    let facts = domain_facts(plan, domain);
    let Some(service) = domain.service() else {
        return boxed(&SOLID, &domain.name, &facts, body, width);
    };
    for &node in &service.nodes {
        body.extend(node_lines(plan, node, "", inner));
    }
    boxed(&DASHED, &domain.name, &facts, body, width)
}

fn thread_box(plan: &Plan, at: usize, thread: &Thread, width: usize) -> Vec<String> {
    let inner = width - 4;
    let mut body = Vec::new();
    for (place, &node) in thread.nodes.iter().enumerate() {
        body.extend(node_lines(plan, node, &format!("{} ", place + 1), inner));
    }
    boxed(&SOLID, &format!("thread {at}"), &thread_facts(plan, thread), body, width)
}

/// A node, its safe values and the links that it writes to.
fn node_lines(plan: &Plan, node: usize, order: &str, width: usize) -> Vec<String> {
    let row = &plan.nodes[node];
    let mut lines = vec![cut(&format!("{order}{}  ({})", row.name, row.kind.name), width)];
    for actuator in &row.actuators {
        let port = &row.kind.ports[actuator.port];
        let safe = port.safe[actuator.safe].name;
        let safe = format!("{safe} after {} cycles without a command", actuator.after);
        lines.extend(within(&format!("    {} is safe: ", port.name), &safe, width));
    }
    for link in plan.links.iter().filter(|link| link.from.node == node) {
        lines.extend(link_lines(plan, link, width));
    }
    for link in plan.flow_links_of(node) {
        let (port, to) = (row.kind.port_name(link.from.port), plan.end_name(link.to));
        lines.push(cut(&format!("    {port} ──▷ {to}"), width));
    }
    lines
}

fn link_lines(plan: &Plan, link: &Link, width: usize) -> Vec<String> {
    let arrow = match (link.delay, link.fused) {
        (true, _) => "┄┄▶",
        (false, true) => "──▶",
        (false, false) => "══▶",
    };
    let head = format!(
        "    {} {arrow} {}",
        plan.nodes[link.from.node].kind.port_name(link.from.port),
        plan.end_name(link.to)
    );
    let mut facts = vec![message_text(link)];
    facts.extend(option_texts(plan, link).into_iter().flatten());
    let facts = facts.join(" · ");
    let one = format!("{head}   {facts}");
    if one.width() <= width {
        return vec![one];
    }
    let mut lines = vec![cut(&head, width)];
    lines.extend(within("        ", &facts, width));
    lines
}

/// A box with a title in its upper line; facts that do not fit there are put below it.
fn boxed(
    frame: &Frame,
    title: &str,
    facts: &[String],
    body: Vec<String>,
    width: usize,
) -> Vec<String> {
    let inner = width - 4;
    let Frame { upper, lower, across, side } = frame;
    let mut head = format!("{}{across} {title} {across}", upper[0]);
    let mut rest = String::new();
    for fact in facts {
        let more = format!(" {fact} {across}");
        if rest.is_empty() && head.width() + more.width() < width {
            head += &more;
        } else {
            rest += if rest.is_empty() { "" } else { " · " };
            rest += fact;
        }
    }
    head += &across.repeat(width.saturating_sub(head.width() + 1));
    let mut lines = vec![head + upper[1]];
    let rest = if rest.is_empty() { Vec::new() } else { within("", &rest, inner) };
    for line in rest.into_iter().chain(body) {
        let fill = " ".repeat(inner.saturating_sub(line.width()));
        lines.push(format!("{side} {line}{fill} {side}"));
    }
    lines.push(format!("{}{}{}", lower[0], across.repeat(width - 2), lower[1]));
    lines
}

/// Breaks text between words into lines of `width` columns; further lines are indented to its first
/// word. A word that is longer than a line is not broken.
pub fn wrap(lead: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = lead.to_owned();
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(lead.width())));
        } else if at > 0 {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

/// The same, but words that are longer than a line are cut.
fn within(lead: &str, text: &str, width: usize) -> Vec<String> {
    wrap(lead, text, width).iter().map(|line| cut(line, width)).collect()
}

/// Cuts a text that is too long, and marks the cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let ends = text.char_indices().map(|(at, _)| at);
    let end = ends.take_while(|&end| text[..end].width() < width).last().unwrap_or_default();
    format!("{}…", &text[..end])
}
