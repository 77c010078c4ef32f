//! Parameters that change while the core runs: new values are checked against the limits of the
//! table, then by the node's kind, which sees all values of the node together. Only then are they
//! written where the node's thread looks between two cycles. All new values of a node arrive at
//! once; those of several nodes may arrive in different cycles.
//!
//! The newest values outlive the core: after a reset the first cycle of the core begins with them,
//! also with those that were set while there was no core.

mod save;

use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, mem, thread};

use sinew_control::status::EventKind;
use sinew_control::{SETTINGS_MAX, Tunable};
use sinew_core::bell::Bell;
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

/// Requests that wait for the disk; one more is refused.
const SAVES_MAX: usize = 16;

/// What the supervisor knows of the nodes that can be tuned.
#[derive(Default)]
pub(super) struct Tunings {
    all: Vec<Tuned>,
    /// Asks the code that makes nodes, and so knows what they accept.
    try_values: Option<TryValues>,
    /// Set once something was to be written to the spec.
    saver: Option<Saver>,
}

/// Tells whether a node of the plan, with the folder of the spec, takes these values of all of its
/// parameters together.
pub type TryValues =
    Box<dyn Fn(&Plan, usize, &Path, &[ParameterValue]) -> Result<(), Fault> + Send>;

/// The name of a node, and where its new values go.
struct Tuned {
    node: String,
    /// Not the sender of a link: that would take nothing while there is no core, and the next life
    /// of the core must find the newest values.
    writer: latest::Writer<Region>,
    reader: Carrier,
    /// What the text of the spec says, as far as is known here: an edited one that still says it
    /// changes nothing of what was set.
    written: Vec<ParameterValue>,
    /// What the text said before, by the place of the parameter, until an edit contains what it
    /// says now: a reader of the file may have read it between two saves.
    older: Vec<(usize, ParameterValue)>,
    /// What the text of the edit under way says.
    offered: Vec<ParameterValue>,
}

/// Values that were to be written, and, if they were not, why.
type Saved = (Vec<String>, Result<(), String>);

/// The thread that writes values to the spec, in the order in which they were set.
struct Saver {
    settings: SyncSender<Vec<String>>,
    saved: Receiver<Saved>,
}

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
            // The same layout as the receiver's: without parking, nothing else follows from the
            // shape.
            let layout = Shape::latest(port.message.size, port.message.hash);
            let writer = latest::Writer::attach(region.clone(), &layout);
            let writer = writer.map_err(|error| io::Error::other(error.to_string()))?;
            let (node, written) = (node.name.clone(), node.values.clone());
            all.push(Tuned { node, writer, reader, written, older: vec![], offered: vec![] });
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

    /// Puts what was set since into an edited graph, where the text says the same as before.
    pub(super) fn carry(&mut self, now: &Plan, edited: &mut Plan) {
        for tuned in &mut self.all {
            let Some((now, edited)) = in_both(&tuned.node, now, edited) else { continue };
            tuned.offered.clone_from(&edited.values);
            for (at, (value, now)) in edited.values.iter_mut().zip(&now.values).enumerate() {
                if *value == tuned.written[at] {
                    tuned.older.retain(|(of, _)| *of != at);
                } else if tuned.older.iter().any(|(of, older)| *of == at && older == value) {
                    tuned.offered[at].clone_from(&tuned.written[at]);
                } else {
                    continue;
                }
                value.clone_from(now);
            }
        }
    }

    /// The edited graph is that of the run now, with what was set meanwhile.
    pub(super) fn adopt(&mut self, now: &Plan, edited: &mut Plan) {
        for tuned in &mut self.all {
            let Some((now, edited)) = in_both(&tuned.node, now, edited) else { continue };
            tuned.written.clone_from(&tuned.offered);
            let values = edited.values.iter_mut().zip(&now.values).zip(now.kind.parameters);
            for ((value, now), _) in values.filter(|(_, row)| row.tunable) {
                value.clone_from(now);
            }
        }
    }

    /// Notes that these values are in the text of the spec now.
    fn wrote(&mut self, plan: &Plan, settings: &[String]) {
        for (name, parameter, text) in settings.iter().filter_map(|setting| parts(setting).ok()) {
            let node = plan.nodes.iter().find(|node| node.name == name);
            let tuned = self.all.iter_mut().find(|tuned| tuned.node == name);
            let Some((node, tuned)) = node.zip(tuned) else { continue };
            let Ok(at) = find_parameter(node, parameter) else { continue };
            if let Ok(value) = read_parameter(&node.kind.parameters[at], text) {
                let before = mem::replace(&mut tuned.written[at], value);
                if tuned.older.len() == SAVES_MAX {
                    tuned.older.remove(0);
                }
                if before != tuned.written[at] {
                    tuned.older.push((at, before));
                }
            }
        }
    }
}

/// The node of this name in the graph that runs and in an edited one.
fn in_both<'a>(
    name: &str,
    now: &'a Plan,
    edited: &'a mut Plan,
) -> Option<(&'a Node, &'a mut Node)> {
    let now = now.nodes.iter().find(|node| node.name == name)?;
    let edited = edited.nodes.iter_mut().find(|node| node.name == name)?;
    Some((now, edited))
}

impl Saver {
    /// Starts the thread that writes to this spec what it is told, and rings when that is done or
    /// has failed.
    fn start(file: PathBuf, bell: Bell) -> io::Result<Saver> {
        let (settings, wanted) = mpsc::sync_channel::<Vec<String>>(SAVES_MAX);
        let (outlet, saved) = mpsc::channel();
        let work = move || {
            for settings in wanted {
                let outcome = save::to_spec(&file, &settings);
                // If the run is gone, nobody reads the outcome.
                let _ = outlet.send((settings, outcome));
                bell.ring();
            }
        };
        thread::Builder::new().name("save".into()).spawn(work)?;
        Ok(Saver { settings, saved })
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

    /// Sets parameters: `NODE.PARAMETER=VALUE` each. All of them are set, or none; returns what was
    /// changed, in words. With `save` they are also written to the spec, on a separate thread: an
    /// event tells the outcome.
    ///
    /// # Errors
    /// The first setting that is wrong, and what to do.
    pub(super) fn set(&mut self, settings: &[String], save: bool) -> Result<String, String> {
        if self.is_ending() {
            return Err("the graph is stopping, and its core takes no new values".into());
        }
        let wanted = self.wanted(settings)?;
        for wanted in &wanted {
            self.try_values(wanted)?;
        }
        if save {
            self.save(settings)?;
        }
        let mut said = Vec::new();
        for wanted in wanted {
            said.extend(self.send(wanted)?);
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
        made.map_err(|fault| format!("node '{name}' refuses the new values: {fault}"))
    }

    /// Hands new values to the node; returns what changed, a piece for each.
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

    /// Has another thread change the spec's file: this one does not wait for a disk.
    fn save(&mut self, settings: &[String]) -> Result<(), String> {
        if self.links.tunings.saver.is_none() {
            let file = PathBuf::from(&self.request.spec.file);
            let saver = self.core.bell.try_clone().and_then(|bell| Saver::start(file, bell));
            let saver = saver.map_err(|error| format!("it cannot be saved: {error}"))?;
            self.links.tunings.saver = Some(saver);
        }
        let saver = self.links.tunings.saver.as_ref().ok_or("a bug: nobody saves")?;
        saver.settings.try_send(settings.to_vec()).map_err(|_| {
            format!(
                "{SAVES_MAX} other changes already wait to be saved; check the disk, or leave out \
                 --save"
            )
        })
    }

    /// Makes events of what became of values that were to be written to the spec.
    pub(super) fn tell_saved(&mut self) {
        let Some(saver) = &self.links.tunings.saver else { return };
        let all: Vec<Saved> = saver.saved.try_iter().collect();
        let file = &self.request.spec.file;
        for (settings, outcome) in all {
            let set = settings.join(", ");
            match outcome {
                Ok(()) => {
                    self.links.tunings.wrote(&self.request.plan, &settings);
                    let text = format!("{set} written to '{file}'");
                    self.events.add(EventKind::Saved, None, text);
                }
                Err(why) => {
                    let text = format!("{set} not written to '{file}': {why}");
                    self.events.add(EventKind::NotSaved, None, text);
                }
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

/// The value as the spec writes it.
fn value_text(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Number(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}
