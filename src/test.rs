//! `sinew test`: carries out the test nodes of a graph. Nothing else runs: no source is started, no
//! port is opened, and there is no core.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use sinew_flows::{Suite, TestOutcome};
use sinew_runtime::Kinds;
use sinew_spec::suggest;

use crate::answer::{FAULTED, print};
use crate::load::{LoadError, load_and_make, this_machine};
use crate::part::PartArgs;

/// Run the tests in a graph: its nodes of the kind 'test'.
///
/// The graph is checked first. Then each test sends its packet in a separate flow, and checks the
/// reply. Sources begin no flows, listeners open no port, and there is no core: nodes of the kinds
/// 'read' and 'send' fail with status 503.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// The spec of the graph
    file: PathBuf,
    /// Tests to run, by the names of their nodes. Default: all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    part: PartArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew test graphs/robot/api.yaml
  sinew test graphs/robot/api.yaml unknown_path wrong_body
  sinew test --json graphs/robot/api.yaml | jq '.tests[] | select(.passed | not)'

Exit status: 0 all tests have passed, 1 some have failed, 2 bad request or spec.";

/// A test, and how long it took.
type Timed = (TestOutcome, Duration);

/// Runs the command.
pub(crate) fn run(arguments: &TestArgs, nodes: &Kinds) -> ExitCode {
    match carry_out(arguments, nodes) {
        Ok(done) => {
            let failed = done.iter().any(|(outcome, _)| !outcome.passed);
            let status = if failed { ExitCode::from(FAULTED) } else { ExitCode::SUCCESS };
            print(&if arguments.json { to_json(&done) } else { to_text(&done) }, status)
        }
        Err(error) => error.answer(arguments.json),
    }
}

fn carry_out(arguments: &TestArgs, nodes: &Kinds) -> Result<Vec<Timed>, LoadError> {
    let loaded = load_and_make(&arguments.file, &arguments.part, nodes, &this_machine()?)?;
    let suite = Suite::new(&Arc::new(loaded.plan), &nodes.flows, &loaded.spec.base).map_err(
        |refusals| {
            // The nodes could be made a moment ago, so the files that they read have changed
            // meanwhile.
            let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            LoadError::Request(format!("{}: {}", loaded.spec.file, texts.join("; ")))
        },
    )?;
    if suite.names().next().is_none() {
        let text =
            "there is no test in it; write a node of the kind 'test', see docs/flow-tests.md";
        return Err(LoadError::Request(format!("{}: {text}", loaded.spec.file)));
    }
    if let Some(unknown) = arguments.names.iter().find(|name| !suite.names().any(|it| it == *name))
    {
        let known: Vec<&str> = suite.names().collect();
        let instead = suggest(unknown, known.iter().copied());
        return Err(LoadError::Request(format!(
            "{}: no test '{unknown}'; {instead}",
            loaded.spec.file
        )));
    }
    let is_wanted =
        |name: &&str| arguments.names.is_empty() || arguments.names.iter().any(|it| it == name);
    let timed = |name: &str| {
        let begun = Instant::now();
        suite.run(name).map(|outcome| (outcome, begun.elapsed()))
    };
    Ok(suite.names().filter(is_wanted).filter_map(timed).collect())
}

fn to_text(done: &[Timed]) -> String {
    let mut text = String::new();
    for (outcome, _) in done {
        text += &format!("{outcome}\n");
    }
    let passed = done.iter().filter(|(outcome, _)| outcome.passed).count();
    text + &format!("{passed} passed, {} failed\n", done.len() - passed)
}

fn to_json(done: &[Timed]) -> String {
    let passed = done.iter().filter(|(outcome, _)| outcome.passed).count();
    let tests: Vec<Value> = done.iter().map(test_to_json).collect();
    let answer = json!({ "passed": passed, "failed": done.len() - passed, "tests": tests });
    format!("{answer:#}\n")
}

fn test_to_json((outcome, took): &Timed) -> Value {
    let TestOutcome { name, expected, reason, reply, passed } = outcome;
    let (reply, error) = match reply {
        Ok(None) => (Value::Null, Value::Null),
        Ok(Some(reply)) => (reply.to_json().unwrap_or_default(), Value::Null),
        Err(error) => (Value::Null, error.to_value().to_json().unwrap_or_default()),
    };
    json!({
        "name": name,
        "passed": passed,
        "expected": expected,
        "reason": reason,
        "reply": reply,
        "error": error,
        "took_us": u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    })
}
