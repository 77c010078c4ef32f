//! The part of a plan that is placed in the memory that a guest and Linux share.

use sinew_carve_out::{
    BELLS_MAX, DATA, Direction as Way, LinkRow, Name, NodeRow, PAGE, ROWS_MAX, RegionRow, Trial,
    VALUES_MAX,
};
use sinew_plan::Span;
use sinew_plan::catalogue::ParameterValue;
use sinew_plan::plan::{Delivery, Link, Plan, Wait};

/// The layout of the memory that a guest and Linux share: `.1` is the row for the region of link
/// `.0` of the plan. Empty for a domain that is not a guest.
pub fn rows(plan: &Plan, domain: usize) -> Vec<(usize, RegionRow)> {
    let mut offset = DATA;
    let mut rows = Vec::new();
    // The first bell is the keeper's.
    let mut bells = 0;
    if plan.domains[domain].guest().is_none() {
        return rows;
    }
    let places = plan.domains[domain].service().map_or(&[][..], |service| &service.nodes);
    let links =
        plan.links.iter().enumerate().filter(|(_, link)| plan.carve_out(link) == Some(domain));
    for (at, link) in links {
        let is_in = plan.nodes[link.to.node].domain == domain;
        let (end, direction) = if is_in { (link.to, Way::In) } else { (link.from, Way::Out) };
        let node = places.iter().position(|&node| node == end.node).unwrap_or_default();
        let bell = if has_bell(plan, link) {
            bells += 1;
            bells
        } else {
            0
        };
        let mut row = RegionRow {
            // The name is only for people; it is cut if it is too long.
            name: cut(&format!("{}>{}", plan.end_name(link.from), plan.end_name(link.to))),
            offset: offset as u32,
            size: 0,
            hash: link.message.hash,
            link: LinkRow {
                node: node as u32,
                port: end.port as u32,
                direction,
                delivery: delivery(link),
                capacity: link.capacity,
                message_size: link.message.size,
                bell,
            },
        };
        row.size = row.shape().region_len() as u32;
        offset += (row.size as usize).next_multiple_of(PAGE);
        rows.push((at, row));
    }
    rows
}

/// Whether the ends of a link to a guest sleep until a bell rings. The core never sleeps on such a
/// link and never rings.
pub fn has_bell(plan: &Plan, link: &Link) -> bool {
    plan.carve_out(link).is_some() && matches!(link.wait, Wait::Park | Wait::SpinThenPark)
}

/// The nodes that a guest has to run. Empty for a domain that is not a guest.
pub fn node_rows(plan: &Plan, domain: usize) -> Vec<NodeRow> {
    let Some(guest) = plan.domains[domain].guest() else { return Vec::new() };
    let nodes = plan.domains[domain].service().map_or(&[][..], |service| &service.nodes);
    let row = |&node: &usize| {
        let node = &plan.nodes[node];
        let mut values = [0.0; VALUES_MAX];
        let given: Vec<f64> = node.values.iter().flat_map(numbers).collect();
        for (place, value) in values.iter_mut().zip(&given) {
            *place = *value;
        }
        NodeRow {
            kind: cut(node.kind.name),
            name: cut(&node.name),
            period_us: (guest.period_ns / 1000) as u32,
            values,
            value_count: given.len().min(VALUES_MAX) as u32,
            trial: (Trial::None, 0),
        }
    };
    nodes.iter().map(row).collect()
}

fn numbers(value: &ParameterValue) -> Vec<f64> {
    match value {
        ParameterValue::Bool(value) => vec![f64::from(u8::from(*value))],
        ParameterValue::Integer(value) => vec![*value as f64],
        ParameterValue::Number(value) => vec![*value],
        ParameterValue::Numbers(values) => values.clone(),
        // The kinds of an image have no other parameters.
        _ => Vec::new(),
    }
}

fn delivery(link: &Link) -> sinew_carve_out::Delivery {
    match link.delivery {
        Delivery::Queue => sinew_carve_out::Delivery::Queue,
        Delivery::Latest => sinew_carve_out::Delivery::Latest,
        Delivery::Broadcast => sinew_carve_out::Delivery::Broadcast,
    }
}

fn cut(text: &str) -> Name {
    let ends = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    ends.filter_map(|end| Name::new(&text[..end])).next().expect("no text is a name")
}

/// Errors if a plan needs more room than the memory of its guests has.
pub(crate) fn too_small(plan: &Plan) -> Vec<(Span, String, String)> {
    let mut found = Vec::new();
    for (at, domain) in plan.domains.iter().enumerate() {
        let Some(guest) = domain.guest() else { continue };
        let rows = rows(plan, at);
        let end = rows.last().map_or(DATA, |(_, row)| (row.offset + row.size) as usize);
        let bells = rows.iter().filter(|(_, row)| row.link.bell != 0).count();
        if bells >= BELLS_MAX {
            let message = format!("guest '{}' has {bells} links to services", domain.name);
            let help = format!("at most {}; make a second guest", BELLS_MAX - 1);
            found.push((guest.image_span, message, help));
        } else if rows.len() > ROWS_MAX {
            let message = format!("guest '{}' has {} links", domain.name, rows.len());
            found.push((
                guest.image_span,
                message,
                format!("at most {ROWS_MAX}; make a second guest"),
            ));
        } else if end as u64 > guest.memory_bytes {
            let message = format!(
                "the links of guest '{}' need {end} bytes, and its memory has {}",
                domain.name, guest.memory_bytes
            );
            let help = format!("write memory: {} or more", end.next_power_of_two());
            found.push((guest.image_span, message, help));
        }
    }
    found
}
