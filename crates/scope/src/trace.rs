//! Which numbers of a run are looked at: a name becomes a trace.

use sinew_control::traces::{
    FieldLayout, NodeLayout, PortLayout, RunLayout, SignalLayout, ThreadLayout,
};
use sinew_core::trace::{Record, ThreadId};
use sinew_spec::suggest;

/// A number of the records, cycle by cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// `node.signal`, `node.signal[i]`, `node.port`, `node.port.field` or `node.port.field[i]`.
    pub name: String,
    /// Unit, or empty.
    pub unit: String,
    /// What it is, one sentence.
    pub doc: String,
    /// Not empty: the number is an index into these words.
    pub labels: Vec<String>,
    /// In whose records it stands.
    pub thread: ThreadId,
    source: Source,
}

/// Where in a record.
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

    /// Whether it is what a port brings, so that a cycle may have no new value.
    pub fn is_message(&self) -> bool {
        matches!(self.source, Source::Message { .. })
    }

    /// Its name with its unit, as in `motor.speed_rad_per_s (rad/s)`.
    pub fn title(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }

    /// The word for a value, if it is a state.
    pub fn label(&self, value: f64) -> Option<&str> {
        let is_index = value >= 0.0 && value.fract() == 0.0;
        // A greater number than there are words has none.
        is_index.then(|| self.labels.get(value as usize).map(String::as_str)).flatten()
    }
}

/// Every trace of a run, in the order of threads and nodes. Of a run that nobody observes those of
/// signals only.
pub fn all(layout: &RunLayout) -> Vec<Trace> {
    let nodes = layout.threads.iter().flat_map(|thread| {
        thread.nodes.iter().flat_map(|node| {
            let signals = node.signals.iter().flat_map(|it| of_signal(thread, node, it));
            let ports = node.ports.iter().flat_map(|it| of_port(thread, node, it));
            signals.chain(ports).collect::<Vec<_>>()
        })
    });
    nodes.collect()
}

/// The traces that a name stands for: several if it names a signal or field of several numbers, or
/// a port whose message has several.
///
/// # Errors
/// There is none: why, and what there is.
pub fn find(layout: &RunLayout, name: &str) -> Result<Vec<Trace>, String> {
    let Some((node, rest)) = name.split_once('.') else {
        let known = layout.threads.iter().flat_map(|thread| &thread.nodes);
        let hint = match known.clone().find(|node| node.name == name) {
            Some(node) => format!("of '{name}': {}", parts(node)),
            None => suggest(name, known.map(|node| node.name.as_str())),
        };
        return Err(format!("'{name}' is no trace; expected NODE.SIGNAL or NODE.PORT; {hint}"));
    };
    let mut there = layout
        .threads
        .iter()
        .flat_map(|thread| thread.nodes.iter().map(move |node| (thread, node)));
    let Some((thread, node)) = there.clone().find(|(_, it)| it.name == node) else {
        if layout.services.iter().any(|service| service == node) {
            return Err(format!(
                "'{name}': node '{node}' is of a service; only nodes of realtime domains leave \
                 their numbers every cycle"
            ));
        }
        let hint = suggest(
            node,
            there.by_ref().map(|(_, it)| it.name.as_str()).collect::<Vec<_>>().into_iter(),
        );
        return Err(format!("'{name}': there is no node '{node}'; {hint}"));
    };
    // A message may hold thousands of numbers: those of others are not looked at.
    let is_meant = |of: &str| {
        let after = rest.strip_prefix(of);
        after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
    };
    let signals = node.signals.iter().filter(|it| is_meant(&it.name));
    let ports = node.ports.iter().filter(|it| is_meant(&it.name));
    let traces: Vec<Trace> = signals
        .flat_map(|it| of_signal(thread, node, it))
        .chain(ports.flat_map(|it| of_port(thread, node, it)))
        .collect();
    if let Some(found) = traces.iter().find(|trace| trace.name == name) {
        return Ok(vec![found.clone()]);
    }
    let begins = |trace: &&Trace| {
        let rest = trace.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let several: Vec<Trace> = traces.iter().filter(begins).cloned().collect();
    if !several.is_empty() {
        return Ok(several);
    }
    let port = node.ports.iter().find(|port| {
        let after = rest.strip_prefix(port.name.as_str());
        after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
    });
    Err(match port.filter(|port| port.tap.is_none()) {
        Some(port) => no_messages(layout, name, port),
        None => {
            let signals = node.signals.iter().map(|it| &it.name);
            let names = signals.chain(node.ports.iter().map(|it| &it.name));
            let names: Vec<_> = match traces.is_empty() {
                true => names.map(|it| format!("{}.{it}", node.name)).collect(),
                false => traces.into_iter().map(|trace| trace.name).collect(),
            };
            let hint = match names.is_empty() {
                true => "it has none".into(),
                false => suggest(name, names.iter().map(String::as_str)),
            };
            format!("'{name}': node '{}' has no such signal or port; {hint}", node.name)
        }
    })
}

/// The one trace that a name stands for.
///
/// # Errors
/// As for [`find`]; or the name stands for several.
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
    format!("'{name}': the messages of port '{}' stand in no record", port.name)
}

/// What of a node can be looked at, in words.
fn parts(node: &NodeLayout) -> String {
    let signals = node.signals.iter().map(|it| it.name.as_str());
    let ports = node.ports.iter().filter(|port| port.linked).map(|it| it.name.as_str());
    let all: Vec<&str> = signals.chain(ports).collect();
    match all.is_empty() {
        true => "no signals and no linked ports".into(),
        false => all.join(", "),
    }
}

fn of_signal(thread: &ThreadLayout, node: &NodeLayout, signal: &SignalLayout) -> Vec<Trace> {
    let name = format!("{}.{}", node.name, signal.name);
    let trace = |at: usize| Trace {
        name: element(&name, at, signal.count),
        unit: signal.unit.clone(),
        doc: signal.doc.clone(),
        labels: signal.labels.clone(),
        thread: thread.id(),
        source: Source::Signal(signal.first + at),
    };
    (0..signal.count).map(trace).collect()
}

fn of_port(thread: &ThreadLayout, node: &NodeLayout, port: &PortLayout) -> Vec<Trace> {
    let Some(tap) = port.tap else { return vec![] };
    let trace = |field: &FieldLayout, at: u32| {
        let whole = match field.name.as_str() {
            "" => format!("{}.{}", node.name, port.name),
            name => format!("{}.{}.{name}", node.name, port.name),
        };
        Trace {
            name: element(&whole, at as usize, field.count as usize),
            unit: field.unit.clone(),
            doc: port.doc.clone(),
            labels: vec![],
            thread: thread.id(),
            source: Source::Message { tap, field: field.clone(), at },
        }
    };
    let numbers = port.fields.iter().flat_map(|field| (0..field.count).map(move |at| (field, at)));
    numbers.map(|(field, at)| trace(field, at)).collect()
}

fn element(name: &str, at: usize, count: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}[{at}]") }
}
