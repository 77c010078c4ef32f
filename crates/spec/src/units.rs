//! Checks that the units of the numbers that cross links agree. A port's unit comes from its kind
//! or from a text of its node. Most kinds only say that two of their ports have the same unit, so
//! units are carried along the links and through such nodes.

use std::collections::{HashMap, HashSet};

use sinew_plan::catalogue::{ParameterValue, Unit, unit_of_name};
use sinew_plan::plan::End;

use crate::draft::{Draft, Node};
use crate::join::{Joined, lone, show};

/// A unit, and the port or field that is known to have it.
#[derive(Clone)]
struct Known {
    unit: String,
    by: String,
}

/// Ports that have the same unit: sets that are merged, with the known unit of each.
#[derive(Default)]
struct Sets {
    places: HashMap<End, usize>,
    parents: Vec<usize>,
    known: Vec<Option<Known>>,
}

/// Reports links whose ends have different units.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>]) {
    let mut sets = Sets::default();
    for (at, node) in draft.nodes.iter().enumerate() {
        of_node(draft, at, node, &mut sets);
    }
    // Other messages have their units in the names of their fields.
    let numbers = joined.iter().filter(|joined| lone(joined.message).is_some());
    // A second writer of a port is reported as such elsewhere.
    let mut written = HashSet::new();
    for Joined { from, to, part, link, .. } in numbers.filter(|joined| written.insert(joined.to)) {
        let field = part.as_ref().filter(|_| link.field.is_some());
        let refused = match field {
            Some(part) => {
                let by = format!("field '{}' of {}", part.field, show(draft, *from));
                let unit = unit_of_name(&part.field).map(str::to_owned);
                unit.and_then(|unit| sets.know(*to, Known { unit, by }))
            }
            None => sets.join(*from, *to),
        };
        if let Some([one, other]) = refused {
            let place = |known: &Known| format!("{} is in {}", known.by, word(&known.unit));
            let text = format!("units do not fit: {}, {}", place(&one), place(&other));
            let help = "put a node of kind 'scale' with the unit of the reader between them, or \
                        correct the unit of one";
            draft.report.error(link.port.span, text, help);
        }
    }
}

/// Adds the known units of the ports of a node.
fn of_node(draft: &Draft<'_>, at: usize, node: &Node<'_>, sets: &mut Sets) {
    let Some(kind) = node.kind else { return };
    let text = |parameter: &str| {
        let place = kind.parameters.iter().position(|row| row.name == parameter)?;
        match node.values.get(place) {
            Some(ParameterValue::Text(text)) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    };
    for (port, row) in kind.ports.iter().enumerate() {
        let end = End { node: at, port };
        let unit = match row.unit {
            Unit::Any => continue,
            Unit::Of(unit) => Some(unit.to_owned()),
            Unit::Parameter(parameter) => text(parameter),
            Unit::As(other) => {
                let port = kind.ports.iter().position(|port| port.name == other);
                // If both are known and differ, the table of the kind is wrong.
                port.map(|port| sets.join(End { node: at, port }, end));
                continue;
            }
        };
        if let Some(unit) = unit {
            sets.know(end, Known { unit, by: show(draft, end) });
        }
    }
}

fn word(unit: &str) -> &str {
    if unit.is_empty() { "no unit" } else { unit }
}

impl Sets {
    /// The set of a port.
    fn set(&mut self, end: End) -> usize {
        let next = self.parents.len();
        let mut at = *self.places.entry(end).or_insert(next);
        if at == next {
            self.parents.push(next);
            self.known.push(None);
        }
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    /// Records that a port has a unit. Returns both units if a different one was known before.
    fn know(&mut self, end: End, known: Known) -> Option<[Known; 2]> {
        let set = self.set(end);
        match &self.known[set] {
            Some(before) if before.unit != known.unit => Some([known, before.clone()]),
            Some(_) => None,
            None => {
                self.known[set] = Some(known);
                None
            }
        }
    }

    /// Records that two ports have the same unit. If theirs differ, both are returned and not
    /// merged.
    fn join(&mut self, one: End, other: End) -> Option<[Known; 2]> {
        let (one, other) = (self.set(one), self.set(other));
        match (self.known[one].clone(), self.known[other].clone()) {
            (Some(a), Some(b)) if a.unit != b.unit => return Some([a, b]),
            (Some(known), None) | (None, Some(known)) => self.known[one] = Some(known),
            _ => {}
        }
        self.parents[other] = one;
        None
    }
}
