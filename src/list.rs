//! `sinew list`: lists the runs of this user.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sinew_control::place::folders_of_others;
use sinew_control::status::Status;
use sinew_view::{Cell, Rows, Theme, elapsed, plain};

use crate::answer::{FAULTED, print, say};
use crate::reach::{self, Reached, Silent};

/// List the runs of this user, with their process, graph and state.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew list
  sinew list --json

Exit status: 0 good, even without a run; 1 a run does not answer.";

/// Carries out the command.
pub(crate) fn run(args: &ListArgs) -> ExitCode {
    let (reached, silent) = reach::all();
    let status = if silent.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    if args.json {
        return print(&format!("{:#}\n", to_json(&reached, &silent)), status);
    }
    for run in &silent {
        say(&format!("error: process {}: {}", run.pid, run.error));
    }
    let text = match reached.is_empty() {
        true if silent.is_empty() => nothing(),
        true => String::new(),
        false => to_text(&reached),
    };
    print(&text, status)
}

/// Says where a run of another user may be.
fn nothing() -> String {
    let mut text = String::from("no run of this user\n");
    for (folder, uid) in folders_of_others() {
        let folder = folder.display();
        text += &format!(
            "  {folder} belongs to user {uid}: sudo -u '#{uid}' sinew list shows what runs there\n"
        );
    }
    text
}

fn restarts(status: &Status) -> u64 {
    status.domains.iter().map(|domain| u64::from(domain.restarts)).sum()
}

/// The addresses at which the services of a run are reached.
fn addresses(status: &Status) -> impl Iterator<Item = (&str, &str)> {
    status.domains.iter().filter_map(|domain| Some((&*domain.name, domain.address.as_deref()?)))
}

fn to_text(runs: &[Reached]) -> String {
    let theme = Theme { color: false };
    let mut rows = Rows::new(&["process", "graph", "phase", "up", "domains", "restarts", "file"]);
    for reached in runs {
        let run = &reached.status;
        rows.add([
            Cell::figure(run.pid),
            Cell::new(reached.graph()),
            Cell::new(run.phase.word()),
            Cell::figure(elapsed(run.elapsed_ms)),
            Cell::figure(run.domains.len()),
            Cell::count(restarts(run), theme),
            Cell::new(&run.file),
        ]);
        for (domain, address) in addresses(run) {
            rows.note(format!("{domain}: {address}"), theme.strong());
        }
    }
    plain(&rows.lines(theme, usize::MAX))
}

fn to_json(runs: &[Reached], silent: &[Silent]) -> Value {
    let run = |Reached { status: run, .. }: &Reached| {
        json!({
            "pid": run.pid,
            "graph": run.graph,
            "host": run.host,
            "file": run.file,
            "phase": run.phase,
            "elapsed_ms": run.elapsed_ms,
            "domains": run.domains.len(),
            "restarts": restarts(run),
            "addresses": addresses(run).collect::<BTreeMap<_, _>>(),
        })
    };
    let error = |run: &Silent| json!({ "pid": run.pid, "error": run.error });
    json!({
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
        "silent": silent.iter().map(error).collect::<Vec<_>>(),
    })
}
