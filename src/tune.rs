//! `sinew tune`: measures which layout suits the links between CPUs, and stores it as the machine
//! profile. Other commands lay out links by this profile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;
use sinew_control::client::runs;
use sinew_doctor::cpus;
use sinew_runtime::Kinds;
use sinew_tune::{Effort, PAIRS_MAX, tune};

use crate::answer::{BAD_REQUEST, FAULTED, error_json, print, refuse, say};
use crate::load::{LoadError, load_part, this_machine};
use crate::part::PartArgs;
use crate::progress::Bar;

/// Measure which layout of links is fastest between your CPUs, and keep it for the next runs.
///
/// For each pair of CPUs, tune tries both layouts of a queue, several ways to poll, and two ways to
/// move cache lines, in turns with the default. It chooses what is faster beyond doubt. This takes
/// some seconds. Run nothing else on these CPUs meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    /// Measure the pairs of CPUs between which this graph has links
    #[arg(conflicts_with = "cpus")]
    graph: Option<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Measure all pairs of these CPUs, such as 0,1 or 2-4
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Measure about two seconds for each pair; the intervals are wider
    #[arg(long)]
    quick: bool,
    /// Write the profile to this file instead of the one in your cache folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew tune
  sinew tune graphs/arm/arm.yaml
  sinew tune --cpus 2,3 --out machine.json
  sinew run --profile-machine machine.json graphs/arm/arm.yaml
  sinew tune --quick --json | jq '.profile.pairs[].short.chosen'

Exit status: 0 good, 1 a pair could not be measured or the profile could not be written, 2 bad
request or spec.";

/// Most pairs that are measured if none are named. They take a minute.
const UNNAMED_MAX: usize = 8;

/// Runs the command.
pub(crate) fn run(arguments: &TuneArgs, nodes: &Kinds) -> ExitCode {
    let refused = |why: String| refuse(&why, BAD_REQUEST, arguments.json);
    let (pairs, left) = match pairs(arguments, nodes) {
        Ok(pairs) => pairs,
        Err(error) => return error.answer(arguments.json),
    };
    // Checked before the measurement, which would otherwise be wasted.
    let place = match &arguments.out {
        Some(file) => sinew_tune::check_named(file).map(|()| file.clone()),
        None => sinew_tune::cached(),
    };
    let file = match place.and_then(|file| sinew_tune::check_place(&file).map(|()| file)) {
        Ok(file) => file,
        Err(why) => return refused(why),
    };
    for run in runs() {
        say(&format!(
            "warning: process {0} is a run of sinew and disturbs the measurement on these CPUs; \
             stop it with 'sinew stop {0}', and measure again",
            run.pid
        ));
    }
    let effort = if arguments.quick { Effort::QUICK } else { Effort::WHOLE };
    let bar = Bar::rounds(pairs.len() * effort.rounds_of_a_pair());
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut profile = tune(&pairs, effort, time, &|round| bar.reach(round));
    drop(bar);
    let text = sinew_tune::to_text(&profile) + &left_out(&left);
    let written = match profile.pairs.is_empty() {
        true => None,
        false => {
            if let Ok(Some(earlier)) = sinew_tune::read(&file) {
                profile.keep(earlier);
            }
            Some(sinew_tune::write(&file, &profile))
        }
    };
    let good = profile.not_measured.is_empty() && matches!(written, Some(Ok(())));
    let status = if good { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    if arguments.json {
        let place = matches!(written, Some(Ok(()))).then_some(&file);
        let mut answer = json!({ "file": place, "left_out": left, "profile": profile });
        if let Some(Err(why)) = written {
            answer["errors"] = error_json(&why)["errors"].take();
        }
        return print(&format!("{answer:#}\n"), status);
    }
    let end = match (&written, &arguments.out) {
        (None, _) => "\nno pair was measured, so nothing was written\n".into(),
        (Some(Err(_)), _) => String::new(),
        (Some(Ok(())), Some(_)) => {
            format!("\nwritten to {}; use it with --profile-machine\n", file.display())
        }
        (Some(Ok(())), None) => {
            let file = file.display();
            format!("\nwritten to {file}; 'sinew run' and 'sinew check' use it from now on\n")
        }
    };
    let status = print(&(text + &end), status);
    if let Some(Err(why)) = written {
        say(&format!("error: {why}"));
    }
    status
}

fn left_out(left: &[[u32; 2]]) -> String {
    match left {
        [] => String::new(),
        [[one, other], ..] => format!(
            "\nnot measured: {} more pairs, such as CPUs {one} and {other}; name CPUs with --cpus, \
             or a graph\n",
            left.len()
        ),
    }
}

/// Pairs of CPUs.
type Pairs = Vec<[u32; 2]>;

/// The pairs to measure, and the pairs that are left out.
fn pairs(arguments: &TuneArgs, nodes: &Kinds) -> Result<(Pairs, Pairs), LoadError> {
    arguments.part.speaks_of(arguments.graph.as_ref()).map_err(LoadError::Request)?;
    let machine = this_machine()?;
    if let [cpu] = machine.cpus[..] {
        return Err(LoadError::Request(format!(
            "nothing is measured: this process may use CPU {cpu} only, and both sides of a link \
             poll; give it two CPUs"
        )));
    }
    if let Some(graph) = &arguments.graph {
        let plan = load_part(graph, &arguments.part, nodes, &machine)?.plan;
        let between = plan.links.iter().filter_map(|link| plan.shaped_between(link));
        let pairs: BTreeSet<_> = between.collect();
        return match pairs.len() {
            0 => Err(LoadError::Request(none_in(graph))),
            n => within(n).map(|()| (pairs.into_iter().collect(), vec![])),
        };
    }
    let named = arguments.cpus.as_deref().map(|list| named(list, &machine.cpus)).transpose();
    let named = named.map_err(LoadError::Request)?;
    let cpus = named.as_ref().unwrap_or(&machine.cpus);
    if named.is_some() {
        within(cpus.len() * (cpus.len() - 1) / 2)?;
    }
    let pair = |(at, &one): (usize, &u32)| cpus[at + 1..].iter().map(move |&other| [one, other]);
    let mut pairs: Vec<_> = cpus.iter().enumerate().flat_map(pair).collect();
    let most = if named.is_some() { pairs.len() } else { UNNAMED_MAX.min(pairs.len()) };
    let left = pairs.split_off(most);
    Ok((pairs, left))
}

/// Whether a profile has room for this many pairs. It is checked before hours are spent on them.
fn within(pairs: usize) -> Result<(), LoadError> {
    match pairs {
        ..=PAIRS_MAX => Ok(()),
        _ => Err(LoadError::Request(format!(
            "nothing is measured: these are {pairs} pairs of CPUs, and a profile holds {PAIRS_MAX} \
             at most; name fewer CPUs with --cpus"
        ))),
    }
}

fn none_in(graph: &Path) -> String {
    format!(
        "{}: nothing is measured: it has no lock-free link in memory between threads of the core \
         that have CPUs of their own; name CPUs with --cpus",
        graph.display()
    )
}

/// The CPUs in a list, which must be among those that exist.
fn named(list: &str, there: &[u32]) -> Result<Vec<u32>, String> {
    let bad = || format!("--cpus: '{list}' is not a list of CPUs; write it as 0,1 or 2-4");
    let found = cpus::parse(list).filter(|found| !found.is_empty()).ok_or_else(bad)?;
    match found.iter().find(|cpu| !there.contains(cpu)) {
        Some(cpu) => Err(format!(
            "--cpus: CPU {cpu} does not exist or may not be used; this process has {}",
            cpus::named(there)
        )),
        None if found.len() < 2 => Err(format!("--cpus: '{list}' is one CPU; name two CPUs")),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_cpus_that_there_are() {
        assert_eq!(named("2,0-1", &[0, 1, 2, 3]), Ok(vec![0, 1, 2]));
        let wrong = |list| named(list, &[0, 1]).expect_err("a bad list");
        assert!(wrong("0,9").contains("CPU 9 does not exist or may not be used; this process has"));
        assert!(wrong("1,1").contains("'1,1' is one CPU; name two CPUs"));
        assert!(
            wrong("x").contains("'x' is not a list of CPUs") && wrong("").contains("not a list")
        );
    }

    #[test]
    fn more_pairs_than_a_profile_holds_are_refused_before_they_are_measured() {
        within(PAIRS_MAX).expect("as many as there may be");
        let Err(LoadError::Request(why)) = within(PAIRS_MAX + 1) else { panic!("too many") };
        assert!(why.contains("these are 1025 pairs of CPUs, and a profile holds 1024"), "{why}");
    }
}
