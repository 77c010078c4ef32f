//! `sinew tap`: shows the packets of a running graph, and can hold one of them.

use std::io::{self, ErrorKind, Write, stdin, stdout};
use std::process::{ExitCode, exit};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use clap::Args;
use serde_json::json;
use sinew_control::client::Connection;
use sinew_control::tap::{PER_S_MAX, TapLine, TapPacket, TapRequest, TapStep, socket_of};
use sinew_control::{Answer, Request};
use sinew_spec::suggest;
use sinew_view::printable;

use crate::answer::{FAULTED, is_quiet, say};
use crate::reach::{Failure, Reached, choose};

/// Show the packets that pass a flow node, or hold one of them.
///
/// The flows do not wait for the tap: packets that come too fast are left out and counted. Values
/// from outside of the graph, and headers with passwords or tokens, are hidden.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TapArgs {
    /// The flow node
    node: String,
    /// Process number or graph of the run. May be left out if there is only one run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only packets for which this CEL expression is true
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Most packets that are shown per second
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(PER_S_MAX))
    )]
    per_s: u32,
    /// Show all steps of each flow that comes to the node, from its beginning to its end
    #[arg(long, conflicts_with = "pause")]
    way: bool,
    /// Hold a packet before the node; then show it, let it go on by one node, or to its end
    #[arg(long)]
    pause: bool,
    /// Print each line as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew tap greet
  sinew tap greet --filter \"packet.method == 'POST'\" --per-s 1
  sinew tap listen --way
  sinew tap --pause greet
  sinew tap greet --json | jq .packet

With --pause one packet at a time is held, and the others pass. Type a letter and Enter:
  s  one step: it is held again before its next node
  g  go on: the next packet that comes to the node is held
  i  inspect: the whole packet, one value a line
  q  quit; the held packet goes on (also if this command is killed)

The deadline of a flow does not run while its packet is held. --pause works only if every listener
of the graph has a loopback address. Flows that began before are not shown.
Exit status: 0 good, 1 the run does not answer or refuses, 2 no such run or node.";

const KEYS: &str = "s step, g go on, i inspect, q quit";

/// Carries out the command.
pub(crate) fn run(args: &TapArgs) -> ExitCode {
    match open(args) {
        Err(failure) => failure.report(args.json),
        Ok(tap) => match show(tap, args) {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(failure)) => failure.report(args.json),
            Err(error) => match is_quiet(Err(error)) {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(FAULTED),
            },
        },
    }
}

/// Opens the tap at the domain of the node.
fn open(args: &TapArgs) -> Result<Connection, Failure> {
    let run = choose(args.run.as_deref())?;
    let pid = domain_of(&run, &args.node)?;
    let asked = Request::Tap(TapRequest {
        node: Some(args.node.clone()),
        filter: args.filter.clone(),
        per_s: args.per_s,
        way: args.way,
        pause: args.pause,
    });
    let opened = Connection::open(&socket_of(&run.socket, pid)).and_then(|mut tap| {
        let answer = tap.ask(&asked)?;
        Ok((tap, answer))
    });
    match opened {
        Ok((tap, Answer::Done { .. })) => Ok(tap),
        Ok((_, Answer::Error(text))) => Err(Failure::request(text)),
        Ok((_, other)) => Err(Failure::run(format!("the domain answers {other:?}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::request(format!(
            "the domain of '{}' has no flows to look at, or has just been started",
            args.node
        ))),
        Err(error) => {
            let text = format!("the domain of '{}' does not answer: {error}", args.node);
            Err(Failure::run(text))
        }
    }
}

/// The process of a flow node. It is known which nodes belong to flows once they have sent figures;
/// until then the domain itself reports that a node does not.
fn domain_of(run: &Reached, node: &str) -> Result<u32, Failure> {
    let nodes = run
        .status
        .domains
        .iter()
        .flat_map(|domain| domain.nodes.iter().map(move |node| (domain, node)));
    let Some((domain, _)) = nodes.clone().find(|(_, it)| it.name == node) else {
        let flows = nodes.filter(|(_, node)| node.flow.is_some());
        let hint = suggest(node, flows.map(|(_, node)| node.name.as_str()));
        return Err(Failure::request(format!("{} has no flow node '{node}'; {hint}", run.name())));
    };
    domain.pid.ok_or_else(|| {
        let (domain, state) = (&domain.name, domain.state);
        Failure::run(format!("domain '{domain}' has no process, it is {state}; see 'sinew top'"))
    })
}

/// Prints packets until the run ends. The outer error is an error of standard output.
fn show(mut tap: Connection, args: &TapArgs) -> io::Result<Result<(), Failure>> {
    let held = Arc::new(Mutex::new(None));
    if args.pause {
        say(&format!("waiting for a packet at '{}' ({KEYS})", args.node));
        let (orders, held) = (tap.to_ask()?, Arc::clone(&held));
        thread::spawn(move || obey(orders, &held));
    }
    let mut begun_us = None;
    loop {
        let line = match tap.next(None) {
            Ok(Some(Answer::Tap(line))) => line,
            Ok(Some(Answer::Error(text))) => {
                say(&format!("error: {text}"));
                continue;
            }
            Ok(Some(other)) => {
                return Ok(Err(Failure::run(format!("the domain answers {other:?}"))));
            }
            Ok(None) => {
                say(&format!("the domain of '{}' has ended", args.node));
                return Ok(Ok(()));
            }
            Err(error) => return Ok(Err(Failure::run(format!("the domain is gone: {error}")))),
        };
        if let TapLine::Held { packet, .. } = &line {
            *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(packet.clone());
        }
        let mut out = stdout().lock();
        match args.json {
            true => writeln!(out, "{}", json!(line))?,
            false => writeln!(out, "{}", to_text(&line, &mut begun_us))?,
        }
        out.flush()?;
    }
}

/// A line for people, with the time since the first packet.
fn to_text(line: &TapLine, begun_us: &mut Option<u64>) -> String {
    let mut since = |at_us: u64| {
        let us = at_us.saturating_sub(*begun_us.get_or_insert(at_us));
        format!("{:>12}", format!("{:.6}", us as f64 / 1e6))
    };
    match line {
        TapLine::Packet(TapPacket { flow, node, at_us, input, packet }) => {
            let dot = if input.is_empty() { "" } else { "." };
            let (at, packet) = (since(*at_us), printable(packet));
            format!("{at}  flow {flow}  {node}{dot}{input}  {packet}")
        }
        TapLine::Step(TapStep { flow, node, at_us, took_us, outcome, packet }) => {
            let (at, packet) = (since(*at_us), printable(packet));
            format!("{at}  flow {flow}  {node} -> {outcome} after {took_us} us  {packet}")
        }
        TapLine::Held { packet, passed } => {
            let TapPacket { flow, node, at_us, input, packet } = packet;
            let (at, packet) = (since(*at_us), printable(packet));
            let others = match passed {
                0 => String::new(),
                passed => format!("; {passed} others have passed meanwhile"),
            };
            format!("{at}  flow {flow}  {node}.{input}  {packet}\n  held ({KEYS}){others}")
        }
        TapLine::Ended(flow) => format!("              flow {flow} has ended"),
        TapLine::Lost(lost) => format!("              {lost} lines were left out: too fast"),
    }
}

/// Sends the orders that the user types. The end of input or of the connection ends the command.
fn obey(mut orders: Connection, held: &Mutex<Option<TapPacket>>) {
    for line in stdin().lines() {
        let Ok(line) = line else { break };
        let asked = match line.trim() {
            "s" | "step" => Request::Step {},
            "g" | "go" => Request::Go {},
            "i" | "inspect" => {
                let held = held.lock().unwrap_or_else(PoisonError::into_inner);
                say(&held.as_ref().map_or_else(|| "no packet is held".into(), inspected));
                continue;
            }
            "q" | "quit" => break,
            "" => continue,
            other => {
                say(&format!("'{}' is not a command; expected {KEYS}", printable(other)));
                continue;
            }
        };
        if orders.send(&asked).is_err() {
            break;
        }
    }
    exit(0);
}

/// A packet with each value on a line of its own, as far as the packet is complete.
fn inspected(held: &TapPacket) -> String {
    let TapPacket { flow, node, input, packet, .. } = held;
    let value: Result<serde_json::Value, _> = serde_json::from_str(packet);
    let text = value.map_or_else(|_| printable(packet), |value| format!("{value:#}"));
    format!("flow {flow} before {node}.{input}:\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(at_us: u64) -> TapPacket {
        let (node, input, packet) = ("greet".into(), "in".into(), r#"{"a":"\u001b[31m"}"#.into());
        TapPacket { flow: 7, node, at_us, input, packet }
    }

    #[test]
    fn a_line_says_when_where_and_what() {
        let mut begun_us = None;
        let first = to_text(&TapLine::Packet(packet(1_000_000)), &mut begun_us);
        assert_eq!(first, r#"    0.000000  flow 7  greet.in  {"a":"\u001b[31m"}"#);
        let held = TapLine::Held { packet: packet(2_500_000), passed: 3 };
        let held = to_text(&held, &mut begun_us);
        assert!(held.starts_with("    1.500000  flow 7  greet.in"), "{held}");
        assert!(held.ends_with("quit); 3 others have passed meanwhile"), "{held}");
    }

    #[test]
    fn an_inspected_packet_has_its_values_apart() {
        let text = inspected(&packet(0));
        assert_eq!(text, "flow 7 before greet.in:\n{\n  \"a\": \"\\u001b[31m\"\n}");
        let cut = TapPacket { packet: "{\"a\":\u{1b}…".into(), ..packet(0) };
        assert_eq!(inspected(&cut), "flow 7 before greet.in:\n{\"a\":\u{fffd}…");
    }
}
