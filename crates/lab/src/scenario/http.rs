//! What a request costs whoever serves it: our graph of listener, router and answer beside bare
//! servers with the same answer, with more nodes on the path, and beside flows that sleep.

mod driver;
mod load;
mod row;
mod server;
mod verdicts;

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Machine;

use self::driver::Driver;
use self::row::{Load, Server, Shape};
use super::{Refusal, Request, Scenario};
use crate::report::{Axis, Report, Row, Timer};
use crate::rounds::{Contender, Session, interleave};

/// Rounds, if nobody asks for another number, and how long a row is measured in each.
const ROUNDS: u32 = 9;
const SHARE: Duration = Duration::from_secs(4);
/// The same of the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_secs(1);

const AXES: &[Axis] = &[
    Axis { name: "server", values: &["sinew", "hyper", "axum", "hyper_shared", "axum_shared"] },
    Axis {
        name: "graph",
        values: &["ping", "nop_1", "nop_10", "nop_100", "sleep_10", "sleep_1k", "sleep_10k"],
    },
    Axis { name: "load", values: &["ping", "source", "one_worker", "two_workers"] },
];

/// The kinds that its graphs need.
const KINDS: [&str; 6] = ["listener", "router", "snippet", "nop", "fork", "sleep"];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "http",
    about: "what an HTTP request costs a graph and bare servers: CPU time, requests a second, \
            latency; more nodes on the path; sleeping flows beside it",
    axes: AXES,
    takes_rivals: false,
    run,
};

/// What is asked of whom, and how.
const ROWS: &[(Server, Shape, Load)] = &[
    (Server::Sinew, Shape::Ping, Load::Ping),
    (Server::Hyper, Shape::Ping, Load::Ping),
    (Server::Axum, Shape::Ping, Load::Ping),
    (Server::HyperShared, Shape::Ping, Load::Ping),
    (Server::AxumShared, Shape::Ping, Load::Ping),
    (Server::Sinew, Shape::Nop1, Load::Ping),
    (Server::Sinew, Shape::Nop10, Load::Ping),
    (Server::Sinew, Shape::Nop100, Load::Ping),
    (Server::Sinew, Shape::Sleep10, Load::Ping),
    (Server::Sinew, Shape::Sleep1k, Load::Ping),
    (Server::Sinew, Shape::Sleep10k, Load::Ping),
    (Server::Sinew, Shape::Ping, Load::Source),
    (Server::Hyper, Shape::Ping, Load::Source),
    (Server::Axum, Shape::Ping, Load::Source),
    (Server::Sinew, Shape::Ping, Load::OneWorker),
    (Server::Sinew, Shape::Ping, Load::TwoWorkers),
];

fn run(request: &Request, session: &Session<'_>) -> Result<Report, Refusal> {
    let has = |name: &&&str| !request.kinds.iter().any(|kind| kind.name == **name);
    if let Some(missing) = KINDS.iter().find(has) {
        let why = format!("this program has no kind '{missing}'; give the lab the flow nodes");
        return Err(Refusal(why));
    }
    let rounds = request.rounds.unwrap_or(if request.quick { QUICK_ROUNDS } else { ROUNDS });
    let share = if request.quick { QUICK_SHARE } else { SHARE };
    let rows = ROWS.iter().map(|&(server, graph, load)| {
        let axes = [("server", server.word()), ("graph", graph.word()), ("load", load.word())];
        let axes = axes.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        ((server, graph, load), Row { axes, ..Row::default() })
    });
    let rows = request.only.pick(rows.collect::<Vec<_>>(), |(_, row)| &row.axes)?;
    let contender = |((server, graph, load), row)| {
        let (stop, cpus, kinds) = (session.stop, &request.cpus[..], &request.kinds[..]);
        let driver = Driver { stop, share, server, graph, load, cpus, kinds };
        (row, Box::new(driver) as Box<dyn Contender>)
    };
    let mut contenders: Vec<_> = rows.into_iter().map(contender).collect();
    let (machine, timer) = (Machine::read(), Timer::measure(Clock::calibrate()));
    let partial = interleave(&mut contenders, rounds, session);
    let rows: Vec<Row> = contenders.into_iter().map(|(row, _)| row).collect();
    Ok(Report {
        scenario: SCENARIO.name.into(),
        machine,
        timer,
        quick: request.quick,
        partial,
        rounds,
        tables: vec![verdicts::ratios(&rows)],
        verdicts: verdicts::verdicts(&rows, request.cpus.len()),
        rows,
        notes: NOTES.map(Into::into).to_vec(),
    })
}

const NOTES: [&str; 4] = [
    "cpu_per_request is CPU time of the server's process by the kernel's count, user and system, \
     over the answers: the one figure here that who else is on the machine hardly moves",
    "load 'ping': 64 connections that stay open; one worker on the first CPU, the load on the \
     last. load 'source': 102400 requests on 1024 connections, as `ab -n 102400 -c 1024 -k`, \
     server and load on all CPUs. With two CPUs the load takes what a second worker would need: \
     client_cpu_per_request is the CPU time of the thread that makes it, over the answers, and \
     client_wait_per_request how long that thread could have run, but others had the CPUs",
    "hyper and axum: each worker has connections of its own, as ours has; the shared ones are what \
     tokio does unless told otherwise",
    "memory_per_flow: what the process took more with so many flows asleep, over their number; \
     their packet is a word",
];
