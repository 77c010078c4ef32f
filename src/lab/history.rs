//! `sinew lab history`: figures over commits, and where they change.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_lab::history::{
    Progression, Sighting, gate_sightings, read, sightings, to_page, to_text,
};

use super::output::Outputs;
use crate::answer::{BAD_REQUEST, FAULTED, print, refuse, say};

/// Show figures over commits, and where their level changes.
///
/// Each report gives one figure for each row: the median of a time, its P99, or requests per
/// second. Reports are ordered by the commit of the program that measured. Different machines,
/// scenarios and forms have separate plots. The gate's file gives the instructions of each verb,
/// from all its versions in git.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HistoryArgs {
    /// Reports (the JSON of 'sinew lab SCENARIO --json'), or folders with such files, *.json
    #[arg(required_unless_present = "gate", value_name = "FILE|FOLDER")]
    reports: Vec<PathBuf>,
    /// The file of the gate of instruction counts: shows all its versions in git, and the reason of
    /// each change of a figure
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Print the history as one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Write the history as one page that needs no other file, with a plot for each row
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sinew lab link --quick --json > reports/$(git rev-parse --short HEAD).json
  sinew lab history reports --report history.html
  sinew lab history a.json b.json c.json --json
  sinew lab history --gate gates/instructions.json --report history.html

Exit status: 0 good, 1 the page could not be written, 2 bad request, or a file that is not a report
or has no history in git.";

/// One report has no history.
const REPORTS_MIN: usize = 2;

/// Carries out the command.
pub(crate) fn run(args: &HistoryArgs) -> ExitCode {
    match history(args) {
        Ok((history, outputs)) => show(&history, outputs, args.json),
        Err(why) => refuse(&why, BAD_REQUEST, args.json),
    }
}

fn history(args: &HistoryArgs) -> Result<(Progression, Outputs), String> {
    let outputs = Outputs::open(args.report.as_deref(), None)?;
    let (mut seen, mut notes) = match args.reports.as_slice() {
        [] => (vec![], vec![]),
        reports => of_reports(reports)?,
    };
    if let Some(gate) = &args.gate {
        let (more, of_gate) = gate_sightings(gate).map_err(|why| format!("--gate: {why}"))?;
        seen.extend(more);
        notes.extend(of_gate);
    }
    Ok((Progression::of(seen, notes), outputs))
}

fn of_reports(paths: &[PathBuf]) -> Result<(Vec<Sighting>, Vec<String>), String> {
    let reports = read(paths)?;
    if reports.len() < REPORTS_MIN {
        let file = &reports[0].file;
        return Err(format!(
            "'{file}' is the only report; a history needs {REPORTS_MIN} at least, and a change \
             point needs several on each side"
        ));
    }
    let (seen, notes) = sightings(&reports);
    if seen.is_empty() {
        return Err("no report has a row that was measured".into());
    }
    Ok((seen, notes))
}

fn show(history: &Progression, outputs: Outputs, as_json: bool) -> ExitCode {
    let written = outputs.write(|| to_page(history), Vec::new);
    if let Err(why) = &written {
        say(&format!("error: {why}"));
    }
    let status = if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = if as_json { format!("{}\n", json!(history)) } else { to_text(history) };
    print(&text, status)
}
