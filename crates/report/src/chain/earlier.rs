//! The observations of a run, read from the report that `sinew run --json` wrote.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sinew_figures::Machine;
use sinew_spec::plan::Plan;

/// Largest report, in bytes. The report of a thousand nodes is smaller than one MB.
const LEN_MAX: u64 = 64 << 20;
/// What to do about a report of another version of the graph.
const AGAIN: &str = "the graph was changed, or the run was too short: run it again";
/// How to get a report.
const HOW: &str = "write one with 'sinew run --json GRAPH > run.json'";

/// A distribution as summed up in the report, ns. `None` is used where nothing was observed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Cycles.
    #[serde(rename = "n")]
    pub(crate) count: u64,
    /// `None` if too few cycles were observed.
    #[serde(rename = "p50")]
    pub(crate) p50_ns: Option<u64>,
    #[serde(rename = "max")]
    pub(crate) max_ns: u64,
}

/// A report of a run of this graph.
#[derive(Debug)]
pub struct Earlier {
    /// The file as the user named it.
    pub(crate) file: String,
    /// One for each node of the plan; `None` for a service.
    pub(crate) executions: Vec<Option<Figures>>,
    /// For each domain of the plan, one for each realtime thread.
    pub(crate) jitters: Vec<Vec<Option<Figures>>>,
    /// The machine of the run.
    pub(crate) machine: Machine,
}

/// The part of the file that is read.
#[derive(Deserialize)]
struct Written {
    graph: String,
    threads: Vec<WrittenThread>,
    machine: Machine,
}

#[derive(Deserialize)]
struct WrittenThread {
    domain: String,
    thread: usize,
    #[serde(default, deserialize_with = "observed")]
    activation_jitter_ns: Option<Figures>,
    /// Each is a [`WrittenNode`].
    nodes: Value,
}

#[derive(Deserialize)]
struct WrittenNode {
    name: String,
    #[serde(default, deserialize_with = "observed")]
    execution_ns: Option<Figures>,
}

/// A distribution without a maximum means that nothing was observed.
fn observed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Figures>, D::Error> {
    let written = Option::<Map<String, Value>>::deserialize(from)?;
    let observed = written.filter(|it| it.get("max").is_some_and(|max| !max.is_null()));
    observed.map(|it| Figures::deserialize(Value::Object(it)).map_err(D::Error::custom)).transpose()
}

impl Earlier {
    /// Median execution time of each node of the plan, ns. If too few cycles were observed for a
    /// median, the maximum. `None` for a service.
    pub fn executions_ns(&self) -> Vec<Option<u64>> {
        let median = |figures: &Figures| figures.p50_ns.unwrap_or(figures.max_ns);
        self.executions.iter().map(|figures| figures.as_ref().map(median)).collect()
    }

    /// Reads the report in `path`.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do: it does not exist, is no report, or is not of
    /// this graph.
    pub fn read(path: &Path, plan: &Plan) -> Result<Earlier, String> {
        let file = path.display().to_string();
        let wrong = |what: String| format!("{file}: {what}");
        let written: Written = serde_json::from_value(json(path).map_err(wrong)?)
            .map_err(|_| wrong(format!("this is not a report of a run; {HOW}")))?;
        if written.graph != plan.name {
            let Written { graph, .. } = written;
            let text = format!("the report is of graph '{graph}', and this is '{}'", plan.name);
            return Err(wrong(format!("{text}; run this graph for a report of it")));
        }
        let (mut executions, mut jitters) = (vec![None; plan.nodes.len()], vec![]);
        for domain in &plan.domains {
            let mut threads = vec![];
            for (number, thread) in domain.threads().iter().enumerate() {
                let place = format!("thread {number} of domain '{}'", domain.name);
                let is_it =
                    |row: &&WrittenThread| row.domain == domain.name && row.thread == number;
                let row = written.threads.iter().find(is_it);
                let row = row.ok_or_else(|| wrong(format!("the report lacks {place}; {AGAIN}")))?;
                threads.push(row.activation_jitter_ns);
                for &node in &thread.nodes {
                    let name = &plan.nodes[node].name;
                    executions[node] = Some(row.execution(name).map_err(|what| {
                        wrong(format!("the report {what} node '{name}' in {place}; {AGAIN}"))
                    })?);
                }
            }
            jitters.push(threads);
        }
        Ok(Earlier { executions, jitters, machine: written.machine, file: file.clone() })
    }
}

impl WrittenThread {
    /// The execution time of a node. The error is a verb that says what is wrong with the report.
    fn execution(&self, name: &str) -> Result<Figures, &'static str> {
        let nodes = Vec::<WrittenNode>::deserialize(&self.nodes).map_err(|_| "lacks")?;
        let node = nodes.iter().find(|node| node.name == name).ok_or("lacks")?;
        node.execution_ns.ok_or("has no execution time of")
    }
}

fn json(path: &Path) -> Result<Value, String> {
    let cannot = |error| format!("cannot read the report: {error}");
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(format!("the report is larger than {} MiB, the limit; {HOW}", LEN_MAX >> 20));
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("this is not JSON: {error}; {HOW}"))
}
