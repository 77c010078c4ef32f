//! Parameters that change while the core runs: what is asked for is held against the limits of the
//! table, then against what the node's kind says to all of its values, and only then written where
//! the node's thread looks between two cycles. All new values of a node arrive at once; those of
//! several nodes may arrive in different cycles.
//!
//! The newest values outlive the core: after a reset its first cycle begins with them, also with
//! those that were set while there was none.

mod save;

use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use sinew_control::status::EventKind;
use sinew_control::{SETTINGS_MAX, Tunable};
use sinew_core::cycle::tuning::tuning_message;
use sinew_core::sys::Region;
use sinew_core::transport::{Carrier, LinkShape, row};
use sinew_core::{Fault, panics};
use sinew_link::{Shape, latest};
use sinew_spec::catalogue::{ParameterType, ParameterValue};
use sinew_spec::plan::{Node, Plan, Transport};
use sinew_spec::{expected, read_parameter, suggest};

use super::Run;
use super::doors::number;

/// What the supervisor knows of the nodes that can be tuned.
#[derive(Default)]
pub(super) struct Tunings {
    all: Vec<Tuned>,
    /// Who makes nodes, and so knows what they take.
    try_values: Option<TryValues>,
    /// What became of values that were to be written to the spec.
    saved: Option<(mpsc::Sender<Saved>, Receiver<Saved>)>,
}

/// Tells whether a node of the plan, with the folder of the spec, takes these values of all of its
/// parameters together.
pub type TryValues =
    Box<dyn Fn(&Plan, usize, &Path, &[ParameterValue]) -> Result<(), Fault> + Send>;

/// The name of a node, and where its new values go.
struct Tuned {
    node: String,
    /// Not that of a link: one would take nothing while no core is there, and the next life of the
    /// core is to find what came last.
    writer: latest::Writer<Region>,
    reader: Carrier,
}

/// What became of values that were to be written: that they are, or why not.
type Saved = Result<String, String>;

/// New values for a node of the plan.
struct Wanted {
    node: usize,
    values: Vec<ParameterValue>,
    /// Those that were asked for, by their place.
    changed: Vec<usize>,
}

impl Tunings {
    /// Memory for all nodes of the plan that can be tuned.
    pub(super) fn open(plan: &Plan) -> io::Result<Tunings> {
        let of_memory = row(Transport::SharedMemory);
        let mut all = Vec::new();
        for (index, node) in plan.nodes.iter().enumerate() {
            let Some((_, port)) = plan.tuning(index) else { continue };
            let shape = LinkShape::tuning(port.message);
            let (_, reader) = (of_memory.open)(&shape)?;
            let region = reader.region().ok_or_else(|| io::Error::other("a bug: no memory"))?;
            // As the receiver has it: without a park, nothing but this follows from the shape.
            let layout = Shape::latest(port.message.size, port.message.hash);
            let writer = latest::Writer::attach(region.clone(), &layout);
            let writer = writer.map_err(|error| io::Error::other(error.to_string()))?;
            all.push(Tuned { node: node.name.clone(), writer, reader });
        }
        Ok(Tunings { all, ..Tunings::default() })
    }

    /// The descriptors that a domain needs to hear of new values, by the nodes of the plan.
    pub(super) fn of_domain(&self, plan: &Plan, domain: usize) -> Vec<(usize, RawFd)> {
        let here = |tuned: &Tuned| {
            let is_it = |node: &Node| node.name == tuned.node && node.domain == domain;
            Some((plan.nodes.iter().position(is_it)?, number(tuned.reader.region()?)))
        };
        self.all.iter().filter_map(here).collect()
    }
}

impl Run {
    /// From now on parameters may be tuned; `try_values` is [`Kinds::try_values`] of the kinds that
    /// the plan was made of.
    ///
    /// [`Kinds::try_values`]: crate::Kinds::try_values
    pub fn tune_by(&mut self, try_values: TryValues) {
        self.links.tunings.try_values = Some(try_values);
    }

    /// All parameters that may change while the core runs, in the order of the plan.
    pub(super) fn tunables(&self) -> Vec<Tunable> {
        let plan = &self.request.plan;
        let nodes = (0..plan.nodes.len()).filter(|&node| plan.tuning(node).is_some());
        nodes.flat_map(|node| tunables_of(&plan.nodes[node])).collect()
    }

    /// Sets parameters: `NODE.PARAMETER=VALUE` each. All of them, or none; what was changed, in
    /// words. With `save` they are also written to the spec, on a thread of its own: an event tells
    /// what came of it.
    ///
    /// # Errors
    /// The first that is wrong, and what to do.
    pub(super) fn set(&mut self, settings: &[String], save: bool) -> Result<String, String> {
        let wanted = self.wanted(settings)?;
        for wanted in &wanted {
            self.try_values(wanted)?;
        }
        let mut said = Vec::new();
        for wanted in wanted {
            said.extend(self.send(wanted)?);
        }
        if save {
            self.save(settings)?;
        }
        Ok(said.join(", "))
    }

    /// What is asked for, node by node.
    fn wanted(&self, settings: &[String]) -> Result<Vec<Wanted>, String> {
        if settings.is_empty() || settings.len() > SETTINGS_MAX {
            return Err(format!(
                "{} parameters are to be set at once; name 1 to {SETTINGS_MAX}",
                settings.len()
            ));
        }
        let plan = &self.request.plan;
        let mut all: Vec<Wanted> = Vec::new();
        for setting in settings {
            let (node, name, text) = parts(setting)?;
            let node = find_node(plan, node)?;
            let at = find_parameter(&plan.nodes[node], name)?;
            let value = read_parameter(&plan.nodes[node].kind.parameters[at], text)?;
            let known = all.iter().position(|wanted| wanted.node == node);
            let known = known.unwrap_or_else(|| {
                let values = plan.nodes[node].values.clone();
                all.push(Wanted { node, values, changed: Vec::new() });
                all.len() - 1
            });
            let wanted = &mut all[known];
            if wanted.changed.contains(&at) {
                return Err(format!("'{}.{name}' is set twice", plan.nodes[node].name));
            }
            wanted.values[at] = value;
            wanted.changed.push(at);
        }
        Ok(all)
    }

    /// Whether the node's kind takes all of these values together.
    fn try_values(&self, wanted: &Wanted) -> Result<(), String> {
        let plan = &self.request.plan;
        let name = &plan.nodes[wanted.node].name;
        let try_values = self.links.tunings.try_values.as_ref().ok_or(
            "this run was started by a program that does not let its parameters be tuned; set \
             them in the spec and run it again",
        )?;
        let base = &self.request.spec.base;
        let made = panics::caught(|| try_values(plan, wanted.node, base, &wanted.values));
        let made = made.unwrap_or_else(Err);
        made.map_err(|fault| format!("node '{name}' does not take that: {fault}"))
    }

    /// Hands new values to the node; what changed, a piece for each.
    fn send(&mut self, wanted: Wanted) -> Result<Vec<String>, String> {
        let node = &mut self.request.plan.nodes[wanted.node];
        let port = node.tuning.ok_or("a bug: the node cannot be tuned")?;
        let tuned = self.links.tunings.all.iter_mut().find(|tuned| tuned.node == node.name);
        let tuned = tuned.ok_or("a bug: the node has no memory for new values")?;
        let message = tuning_message(node.kind, port, &wanted.values);
        tuned.writer.send(&message);
        let said = |&at: &usize| {
            let (old, new) = (value_text(&node.values[at]), value_text(&wanted.values[at]));
            format!("{}.{} {old} -> {new}", node.name, node.kind.parameters[at].name)
        };
        let said = wanted.changed.iter().map(said).collect();
        node.values = wanted.values;
        Ok(said)
    }

    /// Has the spec's file changed: nobody waits for a disk here.
    fn save(&mut self, settings: &[String]) -> Result<(), String> {
        let file = self.request.spec.file.clone();
        let (outlet, _) = self.links.tunings.saved.get_or_insert_with(mpsc::channel);
        let (outlet, settings) = (outlet.clone(), settings.to_vec());
        let bell =
            self.core.bell.try_clone().map_err(|error| format!("set, and not saved: {error}"))?;
        let work = move || {
            let saved = save::to_spec(Path::new(&file), &settings)
                .map_err(|why| format!("{} not written to '{file}': {why}", settings.join(", ")));
            // Who has no run any more reads no log of it.
            let _ = outlet.send(saved);
            bell.ring();
        };
        let spawned = thread::Builder::new().name("save".into()).spawn(work);
        spawned.map(drop).map_err(|error| format!("set, and not saved: no thread: {error}"))
    }

    /// Makes events of what became of values that were to be written to the spec.
    pub(super) fn tell_saved(&mut self) {
        let Some((_, saved)) = &self.links.tunings.saved else { return };
        for saved in saved.try_iter() {
            match saved {
                Ok(text) => self.events.add(EventKind::Saved, None, text),
                Err(text) => self.events.add(EventKind::NotSaved, None, text),
            }
        }
    }
}

/// Node, parameter and value of `NODE.PARAMETER=VALUE`.
fn parts(setting: &str) -> Result<(&str, &str, &str), String> {
    let parts = setting.split_once('=').and_then(|(name, value)| {
        let (node, parameter) = name.trim().rsplit_once('.')?;
        Some((node, parameter, value.trim()))
    });
    parts.ok_or_else(|| {
        format!("'{setting}' sets nothing; write NODE.PARAMETER=VALUE, such as pid.kp=2.5")
    })
}

fn find_node(plan: &Plan, name: &str) -> Result<usize, String> {
    let tuned: Vec<&str> = (0..plan.nodes.len())
        .filter(|&node| plan.tuning(node).is_some())
        .map(|node| &*plan.nodes[node].name)
        .collect();
    let found = plan.nodes.iter().position(|node| node.name == name);
    let found = found.ok_or_else(|| {
        format!("there is no node '{name}'; {}", suggest(name, tuned.iter().copied()))
    })?;
    if plan.nodes[found].tuning.is_some() {
        return Ok(found);
    }
    let kind = plan.nodes[found].kind.name;
    let others = match tuned.is_empty() {
        true => "nor has any other node of this graph".to_owned(),
        false => format!("these have: {}", tuned.join(", ")),
    };
    Err(format!("node '{name}' is a '{kind}', which has no tunable parameters; {others}"))
}

fn find_parameter(node: &Node, name: &str) -> Result<usize, String> {
    let rows = node.kind.parameters;
    let tunable: Vec<&str> = rows.iter().filter(|row| row.tunable).map(|row| row.name).collect();
    match rows.iter().position(|row| row.name == name) {
        Some(at) if rows[at].tunable => Ok(at),
        Some(_) => Err(format!(
            "'{}.{name}' is fixed while the graph runs; tunable are: {}. Change it in the spec and \
             run the graph again",
            node.name,
            tunable.join(", ")
        )),
        None => Err(format!(
            "'{}' has no parameter '{name}'; {}",
            node.kind.name,
            suggest(name, tunable.iter().copied())
        )),
    }
}

fn tunables_of(node: &Node) -> impl Iterator<Item = Tunable> + '_ {
    let rows = node.kind.parameters.iter().zip(&node.values).filter(|(row, _)| row.tunable);
    rows.map(|(row, value)| {
        let (min, max) = match row.ty {
            ParameterType::Number { min, max } => (Some(min), Some(max)),
            ParameterType::Integer { min, max } => (Some(min as f64), Some(max as f64)),
            _ => (None, None),
        };
        Tunable {
            node: node.name.clone(),
            parameter: row.name.to_owned(),
            value: value_text(value),
            unit: row.unit.to_owned(),
            takes: expected(row),
            min,
            max,
            doc: row.doc.to_owned(),
        }
    })
}

/// As the spec writes it.
fn value_text(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Number(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}
