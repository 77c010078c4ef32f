//! The command line: the table of its commands.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::json;
use sinew_runtime::Kinds;
use sinew_runtime::domain;
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_view::want_plain;

use crate::answer::{BAD_REQUEST, print, refuse, say};
use crate::steer::{halt, reset, restart, set, stop};
use crate::{
    advise, check, doctor, drill, graph, guest, import, kinds, lab, list, log, new, replay, run,
    scope, shell, tap, test, top, tune,
};

/// A dataflow runtime for machines: a fail-stop realtime core, services and links in one graph.
#[derive(Debug, Parser)]
#[command(name = "sinew", version, about, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print lines of text where a terminal would get pictures, boxes, bars or colour
    #[arg(long, global = true)]
    plain: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew check graphs/arm/arm.yaml
  sinew test graphs/robot/api.yaml
  sinew graph graphs/arm/arm.yaml
  sinew kinds pid
  sinew new my_machine
  sinew run graphs/arm/arm.yaml
  sinew top
  sinew tap greet
  sinew halt arm
  sinew stop arm
  sinew lab pipeline --quick
  sinew advise graphs/arm/arm.yaml
  sinew drill --quick
  sinew guest graphs/dual_os/arm.yaml
  sinew import uniflow old.yaml --out new.yaml
  sinew doctor
  sinew tune

Exit status: 0 good, 1 the graph faulted or a gate failed, 2 bad request or spec.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    List(list::ListArgs),
    Top(top::TopArgs),
    Scope(scope::ScopeArgs),
    Tap(tap::TapArgs),
    Log(log::LogArgs),
    Set(set::SetArgs),
    Restart(restart::RestartArgs),
    Halt(halt::HaltArgs),
    Reset(reset::ResetArgs),
    Stop(stop::StopArgs),
    Replay(replay::ReplayArgs),
    Check(check::CheckArgs),
    Test(test::TestArgs),
    Graph(graph::GraphArgs),
    Kinds(kinds::KindsArgs),
    New(new::NewArgs),
    Import(import::ImportArgs),
    Guest(guest::GuestArgs),
    Lab(lab::LabArgs),
    Advise(advise::AdviseArgs),
    Drill(drill::DrillArgs),
    Doctor(doctor::DoctorArgs),
    Tune(tune::TuneArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

impl Command {
    /// Whether the command makes nodes, and so relies on the tables of their kinds. Commands that
    /// end a run do not: they must work whatever somebody has just built.
    fn makes_nodes(&self) -> bool {
        use Command::{
            Completions, Doctor, Halt, Import, List, Log, Man, New, Reset, Restart, Scope, Set,
            Stop, Tap, Top,
        };
        !matches!(
            self,
            List(_)
                | Top(_)
                | Scope(_)
                | Tap(_)
                | Log(_)
                | New(_)
                | Set(_)
                | Restart(_)
                | Halt(_)
                | Reset(_)
                | Stop(_)
                | Doctor(_)
                | Import(_)
                | Completions(_)
                | Man(_)
        )
    }
}

/// Runs the command line of this process with these kinds of nodes. All errors in the tables of
/// kinds are printed first. They end any command that would make nodes, with exit status 2.
///
/// The parent of a run starts this same program again for each domain. The lab does so for the far
/// side of a link. That second start ends up here too, so a program with a `main` of its own must
/// call this before anything else.
pub fn main(nodes: &Kinds) -> ExitCode {
    // As raw OS strings: a file's name need not be UTF-8.
    let arguments: Vec<_> = std::env::args_os().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return match descriptor.to_str().and_then(|number| number.parse().ok()) {
            Some(descriptor) => domain::main(descriptor, &lab::with_kinds(nodes)),
            None => ExitCode::from(BAD_REQUEST),
        };
    }
    if let Some(status) = lab::far_side(&arguments, drill::PARTS) {
        return status;
    }
    let command = match Arguments::try_parse_from(&arguments) {
        Ok(Arguments { command, plain }) => {
            if plain {
                want_plain();
            }
            command
        }
        Err(error) => return answer_arguments(&error, wants_json(&arguments)),
    };
    if command.makes_nodes() {
        // With the kinds of the lab and the drill, as a domain has them.
        let errors = lab::with_kinds(nodes).errors();
        if !errors.is_empty() {
            return refuse_all(&errors, wants_json(&arguments));
        }
    }
    match command {
        Command::Run(arguments) => run::run(&arguments, nodes),
        Command::List(arguments) => list::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Scope(arguments) => scope::run(&arguments),
        Command::Tap(arguments) => tap::run(&arguments),
        Command::Log(arguments) => log::run(&arguments),
        Command::Set(arguments) => set::run(&arguments),
        Command::Restart(arguments) => restart::run(&arguments),
        Command::Halt(arguments) => halt::run(&arguments),
        Command::Reset(arguments) => reset::run(&arguments),
        Command::Stop(arguments) => stop::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments, nodes),
        Command::Check(arguments) => check::run(&arguments, nodes),
        Command::Test(arguments) => test::run(&arguments, nodes),
        Command::Graph(arguments) => graph::run(&arguments, nodes),
        Command::Kinds(arguments) => kinds::run(&arguments, nodes),
        Command::New(arguments) => new::run(&arguments),
        Command::Import(arguments) => import::run(&arguments, nodes),
        Command::Guest(arguments) => guest::run(&arguments, nodes),
        Command::Lab(arguments) => lab::run(&arguments, nodes),
        Command::Advise(arguments) => advise::run(&arguments, nodes),
        Command::Drill(arguments) => drill::run(&arguments, nodes),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments, nodes),
        Command::Completions(arguments) => shell::completions::<Arguments>(&arguments),
        Command::Man(arguments) => shell::man::<Arguments>(&arguments),
    }
}

/// Whether one JSON object is wanted, also when the arguments are not understood.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// What to answer to arguments that are no command: help, the version, or what is wrong.
fn answer_arguments(error: &clap::Error, as_json: bool) -> ExitCode {
    if !as_json || !error.use_stderr() {
        // If standard error is closed, nobody reads the text. The exit status still tells.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(BAD_REQUEST) } else { ExitCode::SUCCESS };
    }
    let text = error.render().to_string();
    // The error itself, without the usage text.
    let paragraphs = text.split("\n\n").take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = paragraphs.map(words).collect::<Vec<_>>().join("; ");
    refuse(text.strip_prefix("error: ").unwrap_or(&text), BAD_REQUEST, true)
}

/// Says all that is wrong with the kinds of this program, as [`refuse`] does.
fn refuse_all(errors: &[String], as_json: bool) -> ExitCode {
    let status = ExitCode::from(BAD_REQUEST);
    if as_json {
        let errors: Vec<_> = errors.iter().map(|why| json!({ "message": why })).collect();
        return print(&format!("{:#}\n", json!({ "errors": errors })), status);
    }
    errors.iter().for_each(|why| say(&format!("error: {why}")));
    say("these tables of kinds are part of this program: correct them, and build it again");
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_tables_are_good() {
        let ours = kinds();
        assert!(ours.catalogue().len() > 20, "{} kinds", ours.catalogue().len());
        assert_eq!(lab::with_kinds(&ours).errors(), Vec::<String>::new());
    }
}
