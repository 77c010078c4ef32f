//! What a request costs the server: our graph of listener, router and answer beside bare servers
//! with the same answer, with more nodes on the path, and beside flows that sleep. Also what an
//! element of a stream costs, and how much an idle websocket takes.

mod driver;
mod elements;
mod idle;
mod row;
mod server;
mod verdicts;

use std::time::Duration;

use self::row::{Load, Server, Shape};
use self::server::ServerRun;
use super::pool::database::DatabaseServer;
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::graph::Files;
use crate::report::{Axis, Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};

/// Rounds, if no other number is requested, and how long a row is measured in each.
const ROUNDS: u32 = 9;
const SHARE: Duration = Duration::from_secs(4);
/// The same for the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_secs(1);

const AXES: &[Axis] = &[
    Axis { name: "server", values: Server::WORDS },
    Axis { name: "graph", values: Shape::WORDS },
    Axis { name: "load", values: Load::WORDS },
];

/// The kinds that its graphs need.
const KINDS: [&str; 10] = [
    "listener",
    "router",
    "snippet",
    "nop",
    "fork",
    "sleep",
    "sql",
    "query",
    "stream",
    "websocket",
];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "http",
    about: "what an HTTP request costs a graph and bare servers: CPU time, requests a second, \
            latency; more nodes on the path; other flows that sleep; streams and websockets; \
            a packet to another domain",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

/// Which server is measured with which graph and which load.
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
    (Server::Sinew, Shape::RowSqlite, Load::Ping),
    (Server::Axum, Shape::RowSqlite, Load::Ping),
    (Server::Sinew, Shape::RowPostgres, Load::Ping),
    (Server::Axum, Shape::RowPostgres, Load::Ping),
    (Server::Sinew, Shape::Lines, Load::Elements),
    (Server::Axum, Shape::Lines, Load::Elements),
    (Server::Axum, Shape::LinesTasks, Load::Elements),
    (Server::Sinew, Shape::Websocket, Load::Idle),
    (Server::Sinew, Shape::Ping, Load::Alone),
    (Server::Sinew, Shape::Apart, Load::Alone),
];

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    request.needs(&KINDS, "the flow nodes")?;
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let share = if request.quick { QUICK_SHARE } else { SHARE };
    let rows = ROWS.iter().map(|&(server, graph, load)| {
        let axes = [("server", server.word()), ("graph", graph.word()), ("load", load.word())];
        ((server, graph, load), Row::of(&axes))
    });
    let rows = request.only.pick(rows.collect::<Vec<_>>(), |(_, row)| &row.axes)?;
    let kinds = request.kinds.catalogue();
    let _files = Files::write().map_err(CannotRun)?;
    let databases = databases(rows.iter().map(|((_, graph, _), _)| *graph));
    let contender = |((server, graph, load), row)| {
        let (stop, cpus, kinds) = (session.stop, &request.cpus[..], &kinds[..]);
        let database = databases.iter().find(|(of, _)| *of == graph);
        let database =
            database.map(|(_, it)| it.as_ref().map(DatabaseServer::url).map_err(String::clone));
        let driver = ServerRun { stop, share, server, graph, load, cpus, kinds, database };
        (row, Box::new(driver) as Box<dyn Contender>)
    };
    let contenders = rows.into_iter().map(contender).collect();
    let report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    Ok(ScenarioReport {
        tables: vec![verdicts::ratios(&report.rows)],
        verdicts: verdicts::verdicts(&report.rows, request.cpus.len()),
        notes: NOTES.map(Into::into).to_vec(),
        ..report
    })
}

/// The databases that these shapes need, or why one cannot be had.
fn databases(
    shapes: impl Iterator<Item = Shape> + Clone,
) -> Vec<(Shape, Result<DatabaseServer, String>)> {
    let is_asked = |shape: Shape| shapes.clone().any(|it| it == shape);
    let mut databases = Vec::new();
    if is_asked(Shape::RowSqlite) {
        databases.push((Shape::RowSqlite, DatabaseServer::sqlite()));
    }
    if is_asked(Shape::RowPostgres) {
        databases.push((Shape::RowPostgres, DatabaseServer::postgres()));
    }
    databases
}

const NOTES: [&str; 7] = [
    "cpu_per_request: CPU time of the server's process, user and system, by the kernel's count, \
     divided by the answers; other programs on the machine hardly change it",
    "load 'ping': 64 connections that stay open; one worker on the first CPU, the load on the \
     last. load 'source': 102400 requests on 1024 connections, as `ab -n 102400 -c 1024 -k`, \
     server and load on all CPUs. With two CPUs the load uses the CPU that a second worker would \
     need: client_cpu_per_request is the CPU time of the thread that makes the load, divided by \
     the answers; client_wait_per_request is the time that this thread waited for a CPU, divided \
     by the answers",
    "hyper and axum: each worker has its own connections, as ours have; hyper_shared and \
     axum_shared: workers take work from each other, tokio's default",
    "memory_per_flow: the additional memory of the process with sleeping flows, divided by their \
     number; the packet of such a flow is one word",
    "row_sqlite, row_postgres: a row by its key, as JSON, through eight connections; axum's server \
     is written by hand on the same drivers. The CPU time of PostgreSQL's own processes is not \
     included",
    "lines: under load 'elements' a request is an element, a line of JSON; by hand it is one loop. \
     lines_tasks: by hand in three tasks with queues between them, as the graph has three nodes",
    "apart: the snippet of ping is in another domain, so in another process. load 'alone': one \
     request at a time, so all ends sleep in between",
];
