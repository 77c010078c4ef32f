//! Which drills are wanted: `node=ik,fault=panic`.

use sinew_spec::plan::Plan;

use super::fault::{DrilledFault, FAMILIES};
use super::table::{Drill, Subject};

/// A choice of drills; an empty one is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Sort and name of subjects: a drill with any of them is wanted.
    subjects: Vec<(String, String)>,
    faults: Vec<DrilledFault>,
}

/// What a drill can be chosen by.
const AXES: [&str; 5] = ["node", "domain", "link", "host", "fault"];

impl Only {
    /// Reads the values of `--only`: `AXIS=VALUE`, more of them after commas. A value alone belongs
    /// to the axis before it. A drill is wanted if its subject is one of those named and its fault
    /// is one of those named. `cut` and `freeze` stand for all
    /// faults whose words begin so.
    ///
    /// # Errors
    /// What is wrong, and which values there are.
    pub fn parse(texts: &[String], plan: &Plan) -> Result<Only, String> {
        let mut only = Only::default();
        for text in texts {
            let mut axis = "";
            for part in text.split(',') {
                let value = match part.split_once('=') {
                    Some((name, value)) => {
                        axis = name;
                        value
                    }
                    None => part,
                };
                only.add(axis, value, plan).map_err(|why| format!("--only '{text}': {why}"))?;
            }
        }
        Ok(only)
    }

    fn add(&mut self, axis: &str, value: &str, plan: &Plan) -> Result<(), String> {
        if !AXES.contains(&axis) {
            return Err(format!("expected AXIS=VALUE with one of {}", AXES.join(", ")));
        }
        if axis == "fault" {
            match FAMILIES.into_iter().find(|(family, _)| *family == value) {
                Some((_, faults)) => self.faults.extend_from_slice(faults),
                None => self.faults.push(value.parse()?),
            }
            return Ok(());
        }
        let mut names: Vec<String> = super::table::all(plan)
            .iter()
            .filter(|drill| drill.subject.sort() == axis)
            .map(|drill| drill.subject.name(plan))
            .collect();
        names.dedup();
        if !names.iter().any(|name| name == value) {
            let names = names.join(", ");
            return Err(format!("no {axis} '{value}' that can be drilled; there are: {names}"));
        }
        self.subjects.push((axis.into(), value.into()));
        Ok(())
    }

    /// The drills that are wanted.
    ///
    /// # Errors
    /// If there is none.
    pub fn pick(&self, drills: Vec<Drill>, plan: &Plan) -> Result<Vec<Drill>, String> {
        let is_subject = |subject: Subject| {
            let name = subject.name(plan);
            let mut subjects = self.subjects.iter();
            self.subjects.is_empty()
                || subjects.any(|(sort, value)| sort == subject.sort() && *value == name)
        };
        let is_fault = |fault| self.faults.is_empty() || self.faults.contains(&fault);
        let wanted = |drill: &Drill| is_subject(drill.subject) && is_fault(drill.fault);
        let picked: Vec<_> = drills.into_iter().filter(wanted).collect();
        match picked.is_empty() {
            true => Err("--only: no drill matches all of it; see --list".into()),
            false => Ok(picked),
        }
    }

    /// Whether everything is wanted.
    pub fn is_all(&self) -> bool {
        *self == Only::default()
    }
}

/// The drills of a short form: every fault of nodes once in each domain, and all drills of domains
/// and links.
pub fn short(drills: Vec<Drill>, plan: &Plan) -> Vec<Drill> {
    let mut seen: Vec<(usize, DrilledFault)> = vec![];
    let is_first = |drill: &Drill| {
        if !matches!(drill.subject, Subject::Node(_)) {
            return true;
        }
        let what = (drill.subject.domain(plan), drill.fault);
        let is_new = drill.obstacle.is_none() && !seen.contains(&what);
        if is_new {
            seen.push(what);
        }
        is_new
    };
    drills.into_iter().filter(is_first).collect()
}
