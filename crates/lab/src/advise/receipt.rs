//! What a choice rests on: the machine, the graph and the figures, kept in a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sinew_figures::Machine;
use sinew_spec::picture;
use sinew_spec::plan::Plan;

use crate::report::ScenarioReport;

/// The version of the form of a receipt; any other is refused.
const FORM: u32 = 1;
/// Largest receipt, bytes.
const LEN_MAX: u64 = 64 << 20;

/// The measurement behind a choice.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    receipt: u32,
    /// Version of the program that measured.
    program: String,
    /// The commit that the graph's folder was at, if it is in a repository.
    commit: Option<String>,
    /// The graph as it was advised: its plan without notes.
    graph: Map<String, Value>,
    /// The machine and the figures.
    report: ScenarioReport,
}

impl Receipt {
    /// The receipt of a graph that was advised to be `plan`, in this folder.
    pub fn of(plan: &Plan, folder: &Path, report: &ScenarioReport) -> Receipt {
        let commit = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(folder).output();
        let commit = commit.ok().filter(|output| output.status.success());
        let commit = commit.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
        let (program, report) = (env!("CARGO_PKG_VERSION").into(), report.clone());
        Receipt { receipt: FORM, program, commit, graph: graph(plan), report }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read, or is no receipt; the error says what to do instead.
    pub fn read(path: &Path) -> Result<Receipt, String> {
        let name = path.display();
        let how = "write one with 'sinew advise --receipt FILE GRAPH'";
        let len = fs::metadata(path).map(|it| it.len());
        let len =
            len.map_err(|error| format!("cannot read the receipt '{name}': {error}; {how}"))?;
        if len > LEN_MAX {
            return Err(format!("'{name}' is larger than {} MiB, the limit; {how}", LEN_MAX >> 20));
        }
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| format!("cannot read the receipt '{name}': {error}"))?;
        let receipt: Receipt = serde_json::from_str(&text)
            .map_err(|error| format!("'{name}' is not a receipt: {error}; {how}"))?;
        match receipt.receipt {
            FORM => Ok(receipt),
            other => {
                Err(format!("'{name}' has format {other}, and this program reads {FORM}; {how}"))
            }
        }
    }

    /// As text for a file.
    pub fn to_text(&self) -> String {
        format!("{}\n", serde_json::json!(self))
    }

    /// What has changed since then in the machine and in the graph. Empty if the receipt still
    /// holds.
    pub fn differences(&self, plan: &Plan, machine: &Machine) -> Vec<String> {
        let mut all = machine.is_another(&self.report.machine);
        let now = graph(plan);
        let parts: BTreeSet<&String> =
            [&self.graph, &now].into_iter().flat_map(Map::keys).collect();
        let part =
            |map: &Map<String, Value>, name: &String| map.get(name).cloned().unwrap_or_default();
        all.extend(
            parts
                .into_iter()
                .filter_map(|name| part_differs(name, &part(&self.graph, name), &part(&now, name))),
        );
        all
    }
}

/// The plan without its notes and without its places in the text: a comment in the spec changes
/// nothing.
fn graph(plan: &Plan) -> Map<String, Value> {
    let Value::Object(mut graph) = picture::json(plan) else { return Map::new() };
    graph.remove("notes");
    let nodes = graph.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.into_iter().flatten().filter_map(Value::as_object_mut) {
        node.remove("line");
    }
    graph
}

/// The first difference of a part of the graph, in words.
fn part_differs(part: &str, before: &Value, now: &Value) -> Option<String> {
    if before == now {
        return None;
    }
    let (Some(old), Some(new)) = (before.as_array(), now.as_array()) else {
        return Some(format!("graph: {part} was {before}, is {now}"));
    };
    if old.len() != new.len() {
        return Some(format!("graph: it had {} {part}, and has {}", old.len(), new.len()));
    }
    let (old, new) = old.iter().zip(new).find(|(old, new)| old != new)?;
    let keys = old.as_object().zip(new.as_object());
    let key = keys.and_then(|(old, new)| {
        old.keys().chain(new.keys()).find(|key| old.get(*key) != new.get(*key))
    });
    let Some(key) = key else { return Some(format!("graph: {part}: {old} was there, {new} is")) };
    let name = ["name", "from", "of"].iter().find_map(|it| old[*it].as_str()).unwrap_or("?");
    Some(format!("graph: {part}: '{name}': {key} was {}, is {}", old[key], new[key]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_difference_of_a_graph_is_told() {
        let before = json!([{"name": "a", "wait": "spin"}, {"name": "b"}]);
        assert_eq!(part_differs("links", &before, &before), None);
        for (now, expected) in [
            (json!([{"name": "a", "wait": "park"}, {"name": "b"}]), "'a': wait was \"spin\", is"),
            (json!([{"name": "a", "wait": "spin"}, {"name": "b", "cpu": 1}]), "'b': cpu was null"),
            (json!([{"name": "a", "wait": "spin"}, 7]), "{\"name\":\"b\"} was there, 7 is"),
            (json!([{"name": "a"}]), "it had 2 links, and has 1"),
            (json!("none"), "is \"none\""),
        ] {
            let told = part_differs("links", &before, &now).expect("they differ");
            assert!(told.contains(expected), "{told}");
        }
    }
}
