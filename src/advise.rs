//! `sinew advise`: measures what a graph could be on this machine, and says what it should be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::{Value, json};
use sinew_figures::Machine;
use sinew_lab::advise::{Advice, Alternatives, ExecutionTimes, ROUNDS, Receipt, observe};
use sinew_lab::rounds::Session;
use sinew_lab::scenario::CannotRun;
use sinew_lab::show;
use sinew_report::Earlier;
use sinew_runtime::Kinds;
use sinew_runtime::replace::replace;
use sinew_runtime::run::RunRequest;
use sinew_spec::edit::{Change, PathStep};

use crate::answer::{FAULTED, print, say};
use crate::duration::duration;
use crate::lab::output::Outputs;
use crate::load::{LoadError, Loaded, load_part, load_to_run};
use crate::machine::MachineArgs;
use crate::overwrite;
use crate::part::PartArgs;
use crate::progress::Bar;
use crate::signals::stop_on_signals;

/// Measure the possible layouts and links of a graph on this machine, and recommend the best.
///
/// First the graph runs as it is, and its actuators MOVE: this measures how long its nodes compute.
/// Then every sensible thread layout, transport, sync, wait and delivery is measured in turns,
/// without services. Stand-ins run in place of the nodes: they compute as long and move nothing.
/// At the end the best alternative runs with the graph's own nodes, and its actuators MOVE again.
/// It is recommended only if it keeps what the graph requires (`requires:`) and is better than the
/// graph as it is. The report says why the other alternatives were not chosen. Ctrl-C ends early.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// The graph's YAML file
    file: PathBuf,
    #[command(flatten)]
    part: PartArgs,
    /// Take the execution times of nodes from this report of 'sinew run --json', so that nothing
    /// moves
    #[arg(long, value_name = "RUN.json", conflicts_with = "watch")]
    run: Option<PathBuf>,
    /// How long to run the graph as it is
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    watch: Duration,
    /// How often each alternative is measured
    #[arg(long, default_value_t = ROUNDS, value_parser = value_parser!(u32).range(3..=1000))]
    rounds: u32,
    /// Write the recommendation into the YAML file; comments and order stay
    #[arg(long)]
    apply: bool,
    /// Write the basis of the recommendation to this file: machine, graph, figures. 'sinew check
    /// --receipt' reads it
    #[arg(long, value_name = "RECEIPT.json")]
    receipt: Option<PathBuf>,
    /// Write the report as one page that needs no other file
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

const EXAMPLES: &str = "Examples:
  sinew advise graphs/arm/arm.yaml
  sinew run --json --duration 10s graphs/arm/arm.yaml > run.json
  sinew advise --run run.json --report advice.html graphs/arm/arm.yaml    # nothing moves
  sinew advise --apply --receipt advice.json my.yaml
  sinew check --receipt advice.json my.yaml    # fails when the machine or the graph has changed

Exit status: 0 good, 1 no alternative was shown to keep the requirements, or Ctrl-C came,
2 bad request or spec.";

/// Runs the command.
pub(crate) fn run(args: &AdviseArgs, nodes: &Kinds) -> ExitCode {
    match carry_out(args, nodes) {
        Ok(status) => status,
        Err(error) => error.answer(args.json),
    }
}

fn carry_out(args: &AdviseArgs, nodes: &Kinds) -> Result<ExitCode, LoadError> {
    let machine = args.machine.get()?;
    let loaded = match &args.run {
        Some(_) => load_part(&args.file, &args.part, nodes, &machine)?,
        None => load_to_run(&args.file, &args.part, nodes, &machine)?,
    };
    for (option, file) in [("--receipt", &args.receipt), ("--report", &args.report)] {
        file.iter().try_for_each(|it| overwrite::check(option, it, &args.file, &loaded))?;
    }
    if args.apply {
        check_writable(&args.file)?;
    }
    let outputs = Outputs::open(args.report.as_deref(), None).map_err(LoadError::Request)?;
    let stop = stop_on_signals(|| {})
        .map_err(|error| LoadError::Request(format!("cannot watch for signals: {error}")))?;
    let kinds = nodes.catalogue();
    let alternatives = Alternatives::of(&loaded.spec, &loaded.plan, &kinds).map_err(cannot_run)?;
    let bar = Bar::rows();
    let session = Session { stop: &stop, progress: &bar };
    let times = execution_times(args, &loaded, &session)?;
    let advice = alternatives.measure(&times, args.rounds, &session);
    drop(bar);
    Ok(answer(args, &loaded, nodes, outputs, &advice))
}

fn cannot_run(CannotRun(why): CannotRun) -> LoadError {
    LoadError::Request(why)
}

/// How long the nodes compute: taken from a report (`--run`), or measured now.
fn execution_times(
    args: &AdviseArgs,
    loaded: &Loaded,
    session: &Session<'_>,
) -> Result<ExecutionTimes, LoadError> {
    if let Some(report) = &args.run {
        let earlier = Earlier::read(report, &loaded.plan).map_err(LoadError::Request)?;
        return Ok(ExecutionTimes::Reported(earlier.executions_ns()));
    }
    let seconds = args.watch.as_secs_f64();
    say(&format!(
        "running the graph as it is for {seconds} s, and at the end as recommended: its actuators \
         move"
    ));
    let request = RunRequest::new(loaded.spec.clone(), loaded.plan.clone());
    observe(request, args.watch, session).map(ExecutionTimes::Observed).map_err(cannot_run)
}

/// Whether the spec can be written to. Nothing is measured for a file that cannot.
fn check_writable(file: &Path) -> Result<(), LoadError> {
    let cannot = |why: String| {
        let file = file.display();
        LoadError::Request(format!(
            "--apply: cannot write '{file}': {why}; make it writable, or leave --apply out"
        ))
    };
    let found = fs::metadata(file).map_err(|error| cannot(error.to_string()))?;
    if found.permissions().readonly() {
        return Err(cannot("it is read-only".into()));
    }
    fs::OpenOptions::new().append(true).open(file).map_err(|error| cannot(error.to_string()))?;
    Ok(())
}

fn answer(
    args: &AdviseArgs,
    loaded: &Loaded,
    nodes: &Kinds,
    outputs: Outputs,
    advice: &Advice,
) -> ExitCode {
    let mut failed = advice.report.partial || advice.choice.chosen.is_none();
    let mut said = vec![];
    let written = outputs.write(|| show::to_page(&advice.report), Vec::new);
    let applied = apply(args, &loaded.spec.text, advice, failed);
    let receipt = receipt(args, loaded, nodes, advice);
    for outcome in [written.map(|()| None), applied, receipt] {
        match outcome {
            Ok(text) => said.extend(text),
            Err(why) => {
                say(&format!("error: {why}"));
                failed = true;
            }
        }
    }
    let status = if failed { ExitCode::from(FAULTED) } else { ExitCode::SUCCESS };
    match args.json {
        true => print(&format!("{}\n", to_json(advice)), status),
        false => print(&(to_text(advice) + &said.concat()), status),
    }
}

/// Writes the choice into the spec. A new file replaces the old one, so nobody sees half of it.
fn apply(
    args: &AdviseArgs,
    read: &str,
    advice: &Advice,
    failed: bool,
) -> Result<Option<String>, String> {
    let file = args.file.display();
    if !args.apply || failed {
        return Ok(args.apply.then(|| format!("nothing was written to {file}\n")));
    }
    if advice.changes.is_empty() {
        return Ok(Some(format!("{file} stays as it is\n")));
    }
    let cannot = |error: std::io::Error| format!("cannot write '{file}': {error}");
    let there = args.file.canonicalize().map_err(cannot)?;
    if fs::read(&there).map_err(cannot)? != read.as_bytes() {
        return Err(format!(
            "'{file}' was edited during the measurement, so nothing was written; run 'sinew \
             advise' again"
        ));
    }
    replace(&there, &advice.text).map_err(cannot)?;
    Ok(Some(format!("{file} was changed: 'git diff' shows how\n")))
}

/// Writes the receipt: of the graph with the choice if that was applied, otherwise of the graph as
/// it is.
fn receipt(
    args: &AdviseArgs,
    loaded: &Loaded,
    nodes: &Kinds,
    advice: &Advice,
) -> Result<Option<String>, String> {
    let Some(path) = &args.receipt else { return Ok(None) };
    let again = args.apply.then(|| load_part(&args.file, &args.part, nodes, &loaded.spec.machine));
    let again = again.transpose().map_err(|_| "the changed graph cannot be read".to_owned())?;
    let plan = again.as_ref().map_or(&loaded.plan, |again| &again.plan);
    let receipt = Receipt::of(plan, &loaded.spec.base, &advice.report);
    let name = path.display();
    fs::write(path, receipt.to_text())
        .map_err(|error| format!("cannot write the receipt '{name}': {error}"))?;
    Ok(Some(format!("receipt: {name}\n")))
}

/// What has changed since a receipt was written, one sentence each. Empty without a receipt.
pub(crate) fn changed(receipt: Option<&Path>, loaded: &Loaded) -> Result<Vec<String>, LoadError> {
    let Some(path) = receipt else { return Ok(vec![]) };
    let receipt = Receipt::read(path).map_err(LoadError::Request)?;
    let name = path.display();
    let say = |text: String| format!("the receipt '{name}' does not hold: {text}");
    let mut all: Vec<_> =
        receipt.differences(&loaded.plan, &Machine::read()).into_iter().map(say).collect();
    if !all.is_empty() {
        all.push("run 'sinew advise' again".into());
    }
    Ok(all)
}

/// Most rows of a table on a terminal. The page and the JSON have all rows.
const ROWS_MAX: usize = 40;

/// The choice in words, below the tables.
fn to_text(advice: &Advice) -> String {
    let mut report = advice.report.clone();
    for table in report.tables.iter_mut().filter(|table| table.rows.len() > ROWS_MAX) {
        let (all, title) = (table.rows.len(), &table.title);
        table.title = format!("{title} ({ROWS_MAX} of {all} rows; --report and --json have all)");
        table.rows.truncate(ROWS_MAX);
    }
    let mut text = show::tables(&report);
    for note in &advice.report.notes {
        text += &format!("note: {note}\n");
    }
    text + &verdict(advice)
}

fn verdict(advice: &Advice) -> String {
    let rows = &advice.report.rows;
    let choice = &advice.choice;
    let mut text = String::new();
    match choice.chosen {
        None => {
            text += "no alternative was shown to keep what the graph requires\n";
            choice.contradictions.iter().for_each(|it| text += &format!("  - {it}\n"));
        }
        Some(0) => text += "advice: the graph stays as it is\n",
        Some(at) => {
            text += &format!("advice: {}\n", rows[at].id());
            for change in &advice.changes {
                text += &format!("  {}\n", show_change(change));
            }
        }
    }
    if !choice.alike.is_empty() {
        let alike: Vec<_> = choice.alike.iter().map(|&at| rows[at].id()).collect();
        text += &format!("not distinguishable from it: {}\n", alike.join(", "));
    }
    text
}

fn show_change(change: &Change) -> String {
    let step = |step: &PathStep| match step {
        PathStep::Key(key) => format!(".{key}"),
        PathStep::Index(at) => format!("[{at}]"),
    };
    let place: String = change.to.iter().map(step).collect();
    let value = change.value.as_deref().unwrap_or("(remove it)");
    format!("{}: {}: {value}", place.trim_start_matches('.'), change.key)
}

fn to_json(advice: &Advice) -> Value {
    let choice = &advice.choice;
    let chosen = choice.chosen.map(|at| advice.report.rows[at].id());
    json!({
        "chosen": chosen,
        "stays": choice.chosen == Some(0),
        "changes": advice.changes.iter().map(show_change).collect::<Vec<_>>(),
        "why": choice.words,
        "alike": choice.alike.iter().map(|&at| advice.report.rows[at].id()).collect::<Vec<_>>(),
        "contradictions": choice.contradictions,
        "own_nodes": advice.own_nodes,
        "report": advice.report,
    })
}
