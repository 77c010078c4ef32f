//! `sinew check`: is the graph good? The spec is compiled, then every node is made once, so that
//! the files it reads are checked too; nothing is run.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sinew_runtime::{NodeEntry, Parameters};
use sinew_spec::{picture, schema};

use crate::cli::BAD_REQUEST;
use crate::load::{Loaded, load};

/// Checks a graph: its spec, its links and the files that its nodes read; runs nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The spec of the graph.
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Takes the place of a parameter in the spec; may stand more than once.
    #[arg(long, value_name = "NODE.PARAMETER=VALUE")]
    set: Vec<String>,
    /// Prints one JSON object: the errors, or the plan.
    #[arg(long)]
    json: bool,
    /// Prints the JSON schema of a spec, for editors, and checks nothing.
    #[arg(long, conflicts_with_all = ["file", "set", "json"])]
    schema: bool,
}

const EXAMPLES: &str = "Examples:
  sinew check graphs/arm/arm.yaml
  sinew check --set planner.path=plate.gcode graphs/arm/arm.yaml
  sinew check --schema > sinew.schema.json    # '# yaml-language-server: $schema=sinew.schema.json'

Exit status: 0 good, 2 bad request or spec.";

/// Runs the command.
pub(crate) fn run(arguments: &CheckArgs, nodes: &[NodeEntry]) -> ExitCode {
    let Some(file) = &arguments.file else {
        let kinds: Vec<_> = nodes.iter().map(|row| row.kind).collect();
        print(&format!("{:#}\n", schema(&kinds)));
        return ExitCode::SUCCESS;
    };
    let loaded = match load(file, &arguments.set, nodes) {
        Ok(loaded) => loaded,
        Err(error) => {
            if arguments.json {
                print(&format!("{:#}\n", error.to_json()));
                return ExitCode::from(BAD_REQUEST);
            }
            return error.report();
        }
    };
    let refusals = refusals(&loaded, nodes);
    if arguments.json {
        print(&format!("{:#}\n", answer(&loaded, &refusals)));
    } else if refusals.is_empty() {
        print(&format!("{}no errors\n", picture::summary(&loaded.plan)));
    }
    if refusals.is_empty() {
        return ExitCode::SUCCESS;
    }
    if !arguments.json {
        let lines = refusals.iter().map(|refusal| refusal.line(&loaded.file));
        // If standard error is closed, nobody wants to know; the exit status still tells.
        let _ = stderr().write_all(lines.collect::<String>().as_bytes());
    }
    ExitCode::from(BAD_REQUEST)
}

/// A node that could not be made.
#[derive(Debug)]
struct Refusal<'a> {
    node: &'a str,
    line: u32,
    text: String,
}

impl Refusal<'_> {
    fn line(&self, file: &str) -> String {
        format!("{file}:{}: error: node '{}': {}\n", self.line, self.node, self.text)
    }
}

/// Makes every node, as a domain would at its start, and drops it again.
fn refusals<'a>(loaded: &'a Loaded, nodes: &[NodeEntry]) -> Vec<Refusal<'a>> {
    let make = |node: &'a sinew_spec::plan::Node| {
        let entry = nodes.iter().find(|entry| std::ptr::eq(entry.kind, node.kind))?;
        let parameters = Parameters {
            kind: node.kind,
            values: &node.values,
            base: &loaded.base,
            period_ns: loaded.plan.domains[node.domain].period_ns,
        };
        let fault = (entry.make)(&parameters).err()?;
        Some(Refusal { node: &node.name, line: node.line, text: fault.text().to_owned() })
    };
    loaded.plan.nodes.iter().filter_map(make).collect()
}

fn answer(loaded: &Loaded, refusals: &[Refusal<'_>]) -> Value {
    if refusals.is_empty() {
        return json!({"errors": [], "plan": picture::json(&loaded.plan)});
    }
    let errors = refusals.iter().map(|Refusal { node, line, text }| {
        json!({"file": loaded.file, "line": line, "node": node, "message": text})
    });
    json!({"errors": errors.collect::<Vec<_>>()})
}

/// Writes to standard output. If it is closed (`| head`), the rest is not wanted.
pub(crate) fn print(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_the_node_begins() {
        let refusal = Refusal { node: "ik", line: 8, text: "no such file; write its name".into() };
        let expected = "arm.yaml:8: error: node 'ik': no such file; write its name\n";
        assert_eq!(refusal.line("arm.yaml"), expected);
    }
}
