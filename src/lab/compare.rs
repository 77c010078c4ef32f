//! `sinew lab compare`: compares two programs in turns, or two reports: which rows became slower.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, value_parser};
use serde_json::json;
use sinew_lab::compare::{
    CannotCompare, Comparison, Input, ROUNDS_MIN, Shift, Turns, read, to_page, to_text,
};
use sinew_lab::rounds::Session;
use sinew_spec::decimal_comma;

use super::ROUNDS_MAX;
use super::output::Outputs;
use crate::answer::{BAD_REQUEST, FAULTED, print, refuse, say};
use crate::progress::Bar;
use crate::signals::stop_on_signals;

/// Compare two programs, or two reports, row by row: which became slower.
///
/// Programs (two builds of sinew, or one twice) run the quick form of each scenario in turns: old,
/// new, new, old. Reports are compared by their rounds; both must have the same scenario, format
/// and machine. Ctrl-C ends after the current row and shows the results so far, marked as partial.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// A program, or a report: the JSON of 'sinew lab SCENARIO --json'
    old: PathBuf,
    /// The program or report to compare with OLD; must be of the same sort
    new: PathBuf,
    /// Scenario that the programs run; may be repeated. Default: link
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// With programs: only rows with one of these values on this axis; may be given once for each
    /// axis
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]")]
    only: Vec<String>,
    /// How often each program runs each scenario. Default: 9
    #[arg(long, value_parser = value_parser!(u32).range(ROUNDS_MIN as i64..=ROUNDS_MAX))]
    rounds: Option<u32>,
    /// A smaller difference than this counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    threshold: f64,
    /// Print the comparison as one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Write the comparison as one page that needs no other file
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sinew lab compare before/sinew target/release/sinew
  sinew lab compare before/sinew target/release/sinew --scenario sync --scenario link
  sinew lab compare target/release/sinew target/release/sinew --scenario mistakes
  sinew lab compare before.json after.json --threshold 10% --report compare.html

Exit status: 0 no row is slower; 1 a row is slower or has no verdict, or the comparison is partial;
2 bad request, or a program gave no report.";

/// From this many rounds on the interval leaves out the smallest and the greatest value, so that
/// one disturbed round does not decide.
const ROUNDS: u32 = 9;
/// The scenario that programs run if none is named.
const SCENARIO: &str = "link";

/// Carries out the command.
pub(crate) fn run(args: &CompareArgs) -> ExitCode {
    let outputs = match Outputs::open(args.report.as_deref(), None) {
        Ok(outputs) => outputs,
        Err(why) => return refuse(&why, BAD_REQUEST, args.json),
    };
    let comparison = match compare(args) {
        Ok(comparison) => comparison,
        Err(CannotCompare(why)) => return refuse(&why, BAD_REQUEST, args.json),
    };
    let written = outputs.write(|| to_page(&comparison), Vec::new);
    if let Err(why) = &written {
        say(&format!("error: {why}"));
    }
    let status = match written.is_ok() && comparison.is_good() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAULTED),
    };
    let text = match args.json {
        true => {
            let mut json = json!(comparison);
            let count = |change| (words_of(change), json!(comparison.count(change)));
            json["rows_that_are"] = Shift::ALL.map(count).into_iter().collect();
            format!("{json}\n")
        }
        false => to_text(&comparison),
    };
    print(&text, status)
}

fn words_of(change: Shift) -> String {
    change.words().replace(' ', "_")
}

fn compare(args: &CompareArgs) -> Result<Comparison, CannotCompare> {
    let files = [&args.old, &args.new];
    let [old, new] = files.map(|file| read(file));
    let names = files.map(|file| file.display().to_string());
    let [old_name, new_name] = &names;
    let threshold = args.threshold;
    match (old?, new?) {
        (Input::Report(old), Input::Report(new)) => {
            let unused = [
                ("--scenario", !args.scenario.is_empty()),
                ("--only", !args.only.is_empty()),
                ("--rounds", args.rounds.is_some()),
            ];
            if let Some((option, _)) = unused.iter().find(|(_, given)| *given) {
                return Err(CannotCompare(format!(
                    "{option} is for programs only; leave it out with reports"
                )));
            }
            Comparison::of_reports([old_name, new_name], [&old, &new], threshold)
        }
        (Input::Program(old), Input::Program(new)) => {
            let scenarios = match args.scenario.as_slice() {
                [] => vec![SCENARIO.to_owned()],
                given => given.to_vec(),
            };
            let (only, rounds) = (args.only.clone(), args.rounds.unwrap_or(ROUNDS));
            let turns = Turns { programs: [old, new], scenarios, only, rounds };
            let stop = stop_on_signals(|| ())
                .map_err(|error| CannotCompare(format!("cannot watch for signals: {error}")))?;
            let bar = Bar::rows();
            let found = turns.run(&Session { stop: &stop, progress: &bar })?;
            drop(bar);
            Comparison::of_programs([old_name, new_name], &found, threshold)
        }
        (old, _) => {
            let is = |is_program| if is_program { "a program" } else { "a report" };
            let is_program = matches!(old, Input::Program(_));
            Err(CannotCompare(format!(
                "'{old_name}' is {} and '{new_name}' {}; expected two programs or two reports",
                is(is_program),
                is(!is_program)
            )))
        }
    }
}

/// A fraction, written in percent.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(decimal_comma(text, |point| share(point).is_ok())
            .unwrap_or_else(|| "expected a number above 0 and below 100 with %: 5%".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_number_with_percent() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("2.5 %"), Ok(0.025));
        assert!(share("2,5%").unwrap_err().starts_with("write 2.5%: "));
        for bad in ["", "5", "%", "0%", "-1%", "100%", "NaN%", "inf%", "5%%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
