//! `sinew guest`: the tester of a guest. It starts the guest alone, with its nodes and without a
//! core. Then it carries out commands from the command line, or lines of standard input.

mod commands;
mod named;
mod setup;
mod tester;

use std::io::{BufRead, IsTerminal, stdin};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use sinew_runtime::Kinds;

use self::commands::{Given, parse};
use self::setup::Bench;
use self::tester::{Tester, Wrong};
use crate::answer::{BAD_REQUEST, FAULTED, print, refuse, say};
use crate::duration::duration;
use crate::load::{load_part, this_machine};
use crate::part::PartArgs;

/// Try a guest: start it without the rest of its graph, and send it commands.
///
/// The guest's nodes run, but nothing runs at the other ends of their links, and there is no core.
/// Without COMMAND, each line of standard input is a command. The command 'help' lists all
/// commands.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GuestArgs {
    /// The spec of the graph
    file: PathBuf,
    /// Commands, separated by commas
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// The guest, by the name of its domain. Default: the first guest in the graph
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// How long to wait for each answer. 'within 50ms' at the end of a command overrides this
    #[arg(long, default_value = "5s", value_parser = duration)]
    within: Duration,
    #[command(flatten)]
    part: PartArgs,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew guest graphs/dual_os/arm.yaml
  sinew guest graphs/dual_os/arm.yaml open, run, test 1048576, shutdown
  sinew guest graphs/dual_os/arm.yaml shm get log 4096 guest, shm attach log, shm list
  sinew guest graphs/dual_os/arm.yaml run, node stop guard, wait 100ms, node list
  sinew guest graphs/dual_os/arm.yaml call nap 1000 within 50ms
  echo 'call echo hello' | sinew guest graphs/dual_os/arm.yaml --json

Exit status: 0 all commands were done, 1 one failed or the guest faulted, 2 bad request or spec.";

/// How long the tester waits for a line before it looks after the guest again.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command.
pub(crate) fn run(args: &GuestArgs, kinds: &Kinds) -> ExitCode {
    let loaded = match this_machine().and_then(|it| load_part(&args.file, &args.part, kinds, &it)) {
        Ok(loaded) => loaded,
        Err(error) => return error.answer(args.json),
    };
    let given = match commands_of(&args.words) {
        Ok(given) => given,
        Err(why) => return refuse(&why, BAD_REQUEST, args.json),
    };
    let bench = match Bench::new(&loaded, args.domain.as_deref()) {
        Ok(bench) => bench,
        Err(why) => return refuse(&why, BAD_REQUEST, args.json),
    };
    let mut work = Work { tester: Tester::new(bench, args.within), args, done: vec![], status: 0 };
    if given.is_empty() {
        work.lines()
    } else {
        work.all(&given)
    }
    work.end()
}

/// The commands between commas. All are parsed before anything starts.
fn commands_of(words: &[String]) -> Result<Vec<Given>, String> {
    let text = words.join(" ");
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(parse).collect()
}

/// What was done, and whether it went well.
struct Work<'a> {
    tester: Tester,
    args: &'a GuestArgs,
    done: Vec<Value>,
    status: u8,
}

impl Work<'_> {
    /// Carries out all commands, up to the first that fails.
    fn all(&mut self, given: &[Given]) {
        for command in given {
            if !self.carry_out(command) || self.tester.is_over() {
                break;
            }
        }
    }

    /// Carries out lines until there are no more. A line that fails does not end the loop.
    fn lines(&mut self) {
        let asks = stdin().is_terminal() && !self.args.json;
        let lines = read_lines();
        loop {
            if asks {
                print("guest> ", ExitCode::SUCCESS);
            }
            let Some(line) = self.next(&lines) else { break };
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            match parse(line) {
                Ok(command) => drop(self.carry_out(&command)),
                Err(why) => self.failed(line, &Wrong::Request(why)),
            }
            if self.tester.is_over() {
                break;
            }
        }
        if asks {
            // Whoever types has seen what failed.
            self.status = 0;
        }
    }

    /// The next line. While it waits for a line it looks after the guest.
    fn next(&mut self, lines: &Receiver<String>) -> Option<String> {
        loop {
            let wait = if self.tester.is_open() { Duration::ZERO } else { LOOK };
            match lines.recv_timeout(wait) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(why) = self.tester.look(LOOK) {
                        self.failed("", &why);
                    }
                    self.show_printed();
                }
            }
        }
    }

    fn carry_out(&mut self, command: &Given) -> bool {
        let outcome = command.carry_out(&mut self.tester);
        self.show_printed();
        match outcome {
            Ok(said) => {
                if !self.args.json {
                    print(&format!("{}\n", said.text), ExitCode::SUCCESS);
                }
                self.done.push(json!({ "command": command.text, "answer": said.value }));
                true
            }
            Err(why) => {
                self.failed(&command.text, &why);
                // If the command failed because the guest ended, the next command starts a new life
                // of it.
                if let Err(end) = self.tester.look(Duration::ZERO)
                    && end != why
                {
                    self.failed("", &end);
                }
                false
            }
        }
    }

    fn failed(&mut self, command: &str, why: &Wrong) {
        self.status = self.status.max(match why {
            Wrong::Request(_) => BAD_REQUEST,
            Wrong::Failed(_) => FAULTED,
        });
        let (Wrong::Request(why) | Wrong::Failed(why)) = why;
        if !self.args.json {
            let place = if command.is_empty() { String::new() } else { format!("'{command}': ") };
            say(&format!("error: {place}{why}"));
        }
        self.done.push(json!({ "command": command, "error": why }));
    }

    fn show_printed(&mut self) {
        let printed = self.tester.take_printed();
        if !self.args.json {
            printed.iter().for_each(|line| say(&format!("  | {line}")));
        }
    }

    fn end(mut self) -> ExitCode {
        self.tester.quit();
        let status = ExitCode::from(self.status);
        if self.args.json {
            return print(&format!("{:#}\n", json!({ "commands": self.done })), status);
        }
        status
    }
}

/// Reads standard input on a thread of its own. The thread ends with the process.
fn read_lines() -> Receiver<String> {
    let (to, from) = mpsc::channel();
    thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
    from
}
