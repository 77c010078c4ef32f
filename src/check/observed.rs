//! What a run observed, read from the report that `sinew run --json` wrote.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use sinew_figures::Machine;
use sinew_spec::plan::Plan;

/// Largest report, bytes; that of a thousand nodes has less than one.
const LEN_MAX: u64 = 64 << 20;
/// What to do about a report of another state of the graph.
const AGAIN: &str = "the graph was changed, or the run was too short: run it again";
/// How to get a report.
const HOW: &str = "write one with 'sinew run --json GRAPH > run.json'";

/// A distribution as the report sums it up, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Cycles.
    pub(crate) count: u64,
    /// `None` where too few were observed.
    pub(crate) p50_ns: Option<u64>,
    pub(crate) max_ns: u64,
}

/// A report of a run of this graph.
#[derive(Debug)]
pub(crate) struct Report {
    /// The file as the user named it.
    pub(crate) file: String,
    /// One for each node of the plan; `None` for a service.
    pub(crate) executions: Vec<Option<Observed>>,
    /// For each domain of the plan, one for each realtime thread.
    pub(crate) jitters: Vec<Vec<Option<Observed>>>,
    /// Where the run took place.
    pub(crate) machine: Machine,
}

impl Report {
    /// Reads the report in `path`.
    ///
    /// # Errors
    /// What is wrong with it, and what to do: not there, no report, or not of this graph.
    pub(crate) fn read(path: &Path, plan: &Plan) -> Result<Report, String> {
        let file = path.display().to_string();
        let wrong = |what: String| format!("{file}: {what}");
        let report = json(path).map_err(wrong)?;
        let machine = report.get("machine").cloned().unwrap_or_default();
        let threads = report.get("threads").and_then(Value::as_array);
        let (Some(graph), Some(threads), Ok(machine)) =
            (report.get("graph").and_then(Value::as_str), threads, serde_json::from_value(machine))
        else {
            return Err(wrong(format!("this is no report of a run; {HOW}")));
        };
        if graph != plan.name {
            let text = format!("the report is of graph '{graph}', and this is '{}'", plan.name);
            return Err(wrong(format!("{text}; run this graph for a report of it")));
        }
        let mut read = Report {
            file: file.clone(),
            executions: vec![None; plan.nodes.len()],
            jitters: vec![],
            machine,
        };
        for domain in &plan.domains {
            let mut jitters = vec![];
            for (number, thread) in domain.threads().iter().enumerate() {
                let place = format!("thread {number} of domain '{}'", domain.name);
                let row = row(threads, &domain.name, number);
                let row = row.ok_or_else(|| wrong(format!("the report lacks {place}; {AGAIN}")))?;
                jitters.push(row.get("activation_jitter_ns").and_then(observed));
                for &node in &thread.nodes {
                    let name = &plan.nodes[node].name;
                    read.executions[node] = Some(execution(row, name).map_err(|what| {
                        wrong(format!("the report {what} node '{name}' in {place}; {AGAIN}"))
                    })?);
                }
            }
            read.jitters.push(jitters);
        }
        Ok(read)
    }
}

/// The row of a thread.
fn row<'a>(threads: &'a [Value], domain: &str, thread: usize) -> Option<&'a Value> {
    threads.iter().find(|row| row["domain"] == domain && row["thread"] == thread)
}

/// The execution time of a node of a thread; the error is what the report does with it.
fn execution(row: &Value, name: &str) -> Result<Observed, &'static str> {
    let nodes = row.get("nodes").and_then(Value::as_array).ok_or("lacks")?;
    let node = nodes.iter().find(|node| node["name"] == name).ok_or("lacks")?;
    node.get("execution_ns").and_then(observed).ok_or("has no execution time of")
}

/// A distribution; `None` if nothing was observed.
fn observed(json: &Value) -> Option<Observed> {
    let count = json.get("n")?.as_u64()?;
    Some(Observed { count, p50_ns: json.get("p50")?.as_u64(), max_ns: json.get("max")?.as_u64()? })
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
