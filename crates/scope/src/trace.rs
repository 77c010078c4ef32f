//! Which numbers of a run are shown: from a name to a trace.

use std::ops::Range;

use sinew_control::traces::{
    FieldLayout, NodeLayout, PortLayout, RunLayout, SignalLayout, ThreadLayout,
};
use sinew_core::trace::{Record, ThreadId};
use sinew_spec::suggest;

use crate::settings::TRACES_MAX;

/// One number of the records, cycle by cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// `node.signal`, `node.signal[i]`, `node.port`, `node.port.field` or `node.port.field[i]`.
    pub name: String,
    /// Unit, or empty.
    pub unit: String,
    /// What it is, one sentence.
    pub doc: String,
    /// If not empty, the number is an index into these words.
    pub labels: Vec<String>,
    /// The thread whose records contain it.
    pub thread: ThreadId,
    source: Source,
}

/// The place in a record.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Signal(usize),
    Message { tap: usize, field: FieldLayout, at: u32 },
}

impl Trace {
    /// Its value in a cycle; `None` in a cycle without a new message.
    ///
    /// # Panics
    /// If the record is not of the thread's layout.
    pub fn value(&self, record: &Record) -> Option<f64> {
        match &self.source {
            Source::Signal(at) => record.signals().nth(*at),
            Source::Message { tap, field, at } => field.number(*at, record.message(*tap)?),
        }
    }

    /// Its name with its unit, as in `motor.speed_rad_per_s (rad/s)`.
    pub fn title(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }

    /// The word for a value, if the number is a state.
    pub fn label(&self, value: f64) -> Option<&str> {
        let is_index = value >= 0.0 && value.fract() == 0.0;
        // A number beyond the words has none.
        let label = || self.labels.get(value as usize).map(String::as_str);
        is_index.then(label).flatten().filter(|label| !label.is_empty())
    }
}

/// All traces of a run, in the order of threads and nodes. If no node observes the run, only traces
/// of signals.
pub fn all(layout: &RunLayout) -> Vec<Trace> {
    let nodes = layout.threads.iter().flat_map(|thread| {
        let each = |_: &str, count: usize| 0..count;
        thread.nodes.iter().flat_map(move |node| of_node(thread, node, &each).collect::<Vec<_>>())
    });
    nodes.collect()
}

/// The traces that a name stands for: several if it names a signal or field of several numbers, or
/// a port whose message has several. Traces of other numbers are not made: a message may have a
/// million.
///
/// # Errors
/// There is none, or there are more than [`TRACES_MAX`]. The error says why, and what exists.
pub fn find(layout: &RunLayout, name: &str) -> Result<Vec<Trace>, String> {
    let Some((node, rest)) = name.split_once('.') else {
        let known = layout.threads.iter().flat_map(|thread| &thread.nodes);
        let hint = match known.clone().find(|node| node.name == name) {
            Some(node) => format!("of '{name}': {}", parts(node)),
            None => suggest(name, known.map(|node| node.name.as_str())),
        };
        return Err(format!("'{name}' is not a trace; expected NODE.SIGNAL or NODE.PORT; {hint}"));
    };
    let mut there = layout
        .threads
        .iter()
        .flat_map(|thread| thread.nodes.iter().map(move |node| (thread, node)));
    let Some((thread, node)) = there.clone().find(|(_, it)| it.name == node) else {
        if layout.services.iter().any(|service| service == node) {
            return Err(format!(
                "'{name}': node '{node}' is in a service; only nodes of realtime domains leave \
                 their numbers every cycle"
            ));
        }
        let hint = suggest(
            node,
            there.by_ref().map(|(_, it)| it.name.as_str()).collect::<Vec<_>>().into_iter(),
        );
        return Err(format!("'{name}': there is no node '{node}'; {hint}"));
    };
    let named = |whole: &str, count: usize| named(name, whole, count);
    let found: Vec<Trace> = of_node(thread, node, &named).take(TRACES_MAX + 1).collect();
    if let Some(exact) = found.iter().find(|trace| trace.name == name) {
        return Ok(vec![exact.clone()]);
    }
    match found.as_slice() {
        [] => Err(nothing(layout, (thread, node), name, rest)),
        [first, ..] if found.len() > TRACES_MAX => Err(format!(
            "'{name}' stands for more than {TRACES_MAX} numbers; name one of them, such as '{}'",
            first.name
        )),
        _ => Ok(found),
    }
}

/// The numbers of `whole` that a name stands for. `whole` has `count` numbers.
fn named(name: &str, whole: &str, count: usize) -> Range<usize> {
    let is_all = whole
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let place = name.strip_prefix(whole).and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']'));
    let place =
        place.and_then(|text| text.parse().ok().filter(|at: &usize| at.to_string() == text));
    match place {
        Some(at) if count > 1 && at < count => at..at + 1,
        _ if is_all => 0..count,
        _ => 0..0,
    }
}

/// Why a name stands for nothing of a node. In the name, `rest` follows the node's name.
fn nothing(
    layout: &RunLayout,
    (thread, node): (&ThreadLayout, &NodeLayout),
    name: &str,
    rest: &str,
) -> String {
    let port = node.ports.iter().find(|port| {
        let after = rest.strip_prefix(port.name.as_str());
        after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
    });
    if let Some(port) = port.filter(|port| port.tap.is_none()) {
        return no_messages(layout, name, port);
    }
    let first = |_: &str, count: usize| 0..count.min(1);
    let known: Vec<String> = of_node(thread, node, &first).map(|trace| trace.name).collect();
    let hint = match known.is_empty() {
        true => format!("it has {}", parts(node)),
        false => suggest(name, known.iter().map(String::as_str)),
    };
    format!("'{name}': node '{}' has no such signal or port; {hint}", node.name)
}

/// The one trace that a name stands for.
///
/// # Errors
/// As for [`find`], or the name stands for several traces.
pub fn find_one(layout: &RunLayout, name: &str) -> Result<Trace, String> {
    let mut found = find(layout, name)?;
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let (first, last) = (&found[0].name, &found[found.len() - 1].name);
    Err(format!("'{name}' stands for {} numbers; name one, '{first}' to '{last}'", found.len()))
}

fn no_messages(layout: &RunLayout, name: &str, port: &PortLayout) -> String {
    if !port.linked {
        return format!("'{name}': port '{}' has no link, so no messages", port.name);
    }
    if !layout.observed {
        return format!(
            "'{name}': the records of this run hold no messages, only signals; start it with \
             'sinew run --observe', or put a node of kind 'dashboard' or 'recorder' into the graph"
        );
    }
    format!("'{name}': the messages of port '{}' are in no record", port.name)
}

/// The numbers of a node that can be shown, in words.
fn parts(node: &NodeLayout) -> String {
    let signals = node.signals.iter().map(|it| it.name.as_str());
    let ports = node.ports.iter().filter(|port| port.linked).map(|it| it.name.as_str());
    let all: Vec<&str> = signals.chain(ports).collect();
    match all.is_empty() {
        true => "no signals and no linked ports".into(),
        false => all.join(", "),
    }
}

/// Selects numbers, given a name and how many numbers it has.
type Places<'a> = &'a dyn Fn(&str, usize) -> Range<usize>;

fn of_node<'a>(
    thread: &'a ThreadLayout,
    node: &'a NodeLayout,
    places: Places<'a>,
) -> impl Iterator<Item = Trace> + 'a {
    let signals = node.signals.iter().flat_map(move |it| of_signal(thread, node, it, places));
    let ports = node.ports.iter().flat_map(move |it| of_port(thread, node, it, places));
    signals.chain(ports)
}

fn of_signal<'a>(
    thread: &'a ThreadLayout,
    node: &'a NodeLayout,
    signal: &'a SignalLayout,
    places: Places<'a>,
) -> impl Iterator<Item = Trace> + 'a {
    let name = format!("{}.{}", node.name, signal.name);
    places(&name, signal.count).map(move |at| Trace {
        name: element(&name, at, signal.count),
        unit: signal.unit.clone(),
        doc: signal.doc.clone(),
        labels: signal.labels.clone(),
        thread: thread.id(),
        source: Source::Signal(signal.first + at),
    })
}

fn of_port<'a>(
    thread: &'a ThreadLayout,
    node: &'a NodeLayout,
    port: &'a PortLayout,
    places: Places<'a>,
) -> impl Iterator<Item = Trace> + 'a {
    let fields = port.tap.into_iter().flat_map(move |tap| {
        let fields = port.fields.iter();
        fields.map(move |field| (tap, field))
    });
    fields.flat_map(move |(tap, field)| {
        let whole = match field.name.as_str() {
            "" => format!("{}.{}", node.name, port.name),
            name => format!("{}.{}.{name}", node.name, port.name),
        };
        let count = field.count as usize;
        places(&whole, count).map(move |at| Trace {
            name: element(&whole, at, count),
            unit: field.unit.clone(),
            doc: port.doc.clone(),
            labels: field.labels.clone(),
            thread: thread.id(),
            source: Source::Message { tap, field: field.clone(), at: at as u32 },
        })
    })
}

fn element(name: &str, at: usize, count: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}[{at}]") }
}
