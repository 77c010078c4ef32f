//! The rows of the scenario, and the graphs that are run for them.

use std::fmt::Write;

use crate::words::words;

/// The path that is requested, and the answer.
const PING: [&str; 2] = ["/ping", "pong"];
/// The same for a row in a database.
const ROW: [&str; 2] = ["/items/7", r#"{"id":7,"text":"item 7"}"#];
/// The path that takes lines, and answers with them.
const LINES: &str = "/lines";
/// The same, if each stage is spawned by itself.
const LINES_TASKS: &str = "/lines/tasks";
/// The path that becomes a websocket.
const WEBSOCKET: &str = "/websocket";
/// The path that begins a flow that sleeps for the whole measurement.
pub(super) const BEGIN: &str = "/begin";

words! {
    /// The program that serves.
    pub(super) enum Server {
        /// A graph.
        Sinew = "sinew",
        /// hyper with nothing around it; each worker has connections of its own.
        Hyper = "hyper",
        /// axum; each worker has connections of its own.
        Axum = "axum",
        /// hyper on tokio's workers, which share all connections.
        HyperShared = "hyper_shared",
        /// axum on tokio's workers, which share all connections.
        AxumShared = "axum_shared",
    }
}

words! {
    /// The load that is measured.
    pub(super) enum Load {
        /// 64 connections; the server has one CPU and one worker, the load the other CPU.
        Ping = "ping",
        /// The load of the source: 102 400 requests on 1024 connections; load and server may use
        /// all CPUs.
        Source = "source",
        /// One worker, the load on all CPUs.
        OneWorker = "one_worker",
        /// Two workers, the load on all CPUs.
        TwoWorkers = "two_workers",
        /// One request whose body is elements; load and server have separate CPUs, as with `ping`.
        Elements = "elements",
        /// Idle websockets.
        Idle = "idle",
        /// One connection, one request after the other; load and server may use all CPUs. Each end
        /// sleeps until the other has done its part.
        Alone = "alone",
    }
}

words! {
    /// The path of a request through the graph.
    pub(super) enum Shape {
        /// listener, router, snippet.
        Ping = "ping",
        /// One node more.
        Nop1 = "nop_1",
        /// Ten nodes more.
        Nop10 = "nop_10",
        /// A hundred nodes more.
        Nop100 = "nop_100",
        /// Beside ten flows that sleep.
        Sleep10 = "sleep_10",
        /// Beside a thousand flows that sleep.
        Sleep1k = "sleep_1k",
        /// Beside ten thousand flows that sleep, which is also the most children that a worker may
        /// have.
        Sleep10k = "sleep_10k",
        /// One row of a table in SQLite by its key, as JSON.
        RowSqlite = "row_sqlite",
        /// The same with PostgreSQL, over its socket.
        RowPostgres = "row_postgres",
        /// Lines of JSON, each through three nodes; in the program by hand, one loop.
        Lines = "lines",
        /// The same by hand in three tasks with queues between them.
        LinesTasks = "lines_tasks",
        /// A websocket that stays idle.
        Websocket = "websocket",
        /// As `ping`, with the snippet in another domain.
        Apart = "apart",
    }
}

impl Server {
    /// The arguments for the program of the bare servers.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Server::Sinew => &[],
            Server::Hyper => &["hyper"],
            Server::Axum => &["axum"],
            Server::HyperShared => &["hyper", "--shared"],
            Server::AxumShared => &["axum", "--shared"],
        }
    }
}

impl Shape {
    /// Nodes that do nothing, between router and answer.
    pub(super) fn nops(self) -> usize {
        match self {
            Shape::Nop1 => 1,
            Shape::Nop10 => 10,
            Shape::Nop100 => 100,
            _ => 0,
        }
    }

    /// Flows that sleep during the measurement.
    pub(super) fn sleepers(self) -> u64 {
        match self {
            Shape::Sleep10 => 10,
            Shape::Sleep1k => 1000,
            Shape::Sleep10k => 10_000,
            _ => 0,
        }
    }

    /// The path that is asked for, and the body of each answer.
    pub(super) fn asked(self) -> [&'static str; 2] {
        match self {
            Shape::RowSqlite | Shape::RowPostgres => ROW,
            Shape::Lines => [LINES, ""],
            Shape::LinesTasks => [LINES_TASKS, ""],
            Shape::Websocket => [WEBSOCKET, ""],
            _ => PING,
        }
    }

    /// The graph: graphs/http/ping.yaml with more nodes, one that asks this database, or one with
    /// streams.
    pub(super) fn text(self, port: u16, workers: usize, database: Option<&str>) -> String {
        let nodes = match (self, database) {
            (_, Some(database)) => row_of(database, port),
            (Shape::Lines | Shape::LinesTasks, _) => lines(port),
            (Shape::Websocket, _) => websocket(port),
            _ => self.pong(port),
        };
        let more = if self == Shape::Apart { ", beside: {}" } else { "" };
        format!(
            "name: http\n\
             domains: {{flows: {{flows: {{workers: {workers}}}}}{more}}}\n\
             domain: flows\n\
             nodes:\n{nodes}"
        )
    }

    /// Nodes that answer with one word.
    fn pong(self, port: u16) -> String {
        let nops = self.nops();
        let name = |at: usize| if at < nops { format!("nop{at}") } else { "pong".to_owned() };
        let domain = if self == Shape::Apart { ", domain: beside" } else { "" };
        let mut text = format!(
            "- kind: listener\n  name: listener\n  port: {port}\n  \
               ports: {{out: [{{name: router, port: in}}]}}\n\
             - kind: router\n  name: router\n  \
               routes: [{{method: GET, path: {}, port: 'out[0]'}}, \
                        {{method: GET, path: {BEGIN}, port: 'out[1]'}}]\n  \
               ports:\n    \
                 'out[0]': [{{name: {}, port: in}}]\n    \
                 'out[1]': [{{name: pong, port: in}}, {{name: begin, port: in}}]\n\
             - {{kind: fork, name: begin, deadline: 10m, \
                 ports: {{out: [{{name: word, port: in}}]}}}}\n\
             - {{kind: snippet, name: word, language: text, code: word, \
                 ports: {{out: [{{name: sleep, port: in}}]}}}}\n\
             - {{kind: sleep, name: sleep, duration: 5m}}\n\
             - {{kind: snippet, name: pong, language: text, code: pong{domain}}}\n",
            PING[0],
            name(0)
        );
        for at in 0..nops {
            let (this, next) = (name(at), name(at + 1));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "- {{kind: nop, name: {this}, ports: {{out: [{{name: {next}, port: in}}]}}}}"
            );
        }
        text
    }
}

/// Nodes that answer with a row of a database.
fn row_of(database: &str, port: u16) -> String {
    format!(
        "- {{kind: listener, name: listener, port: {port}, \
             ports: {{out: [{{name: router, port: in}}]}}}}\n\
         - kind: router\n  name: router\n  \
           routes: [{{method: GET, path: '/items/:id', port: 'out[0]'}}]\n  \
           ports: {{'out[0]': [{{name: item, port: in}}]}}\n\
         - kind: query\n  name: item\n  sql: db\n  rows: one\n  \
           text: SELECT id, text FROM items WHERE id = $1\n  args: [int(packet.params.id)]\n\
         - {{kind: sql, name: db, database: '{database}'}}\n"
    )
}

/// Nodes that send each line through three nodes that do nothing.
fn lines(port: u16) -> String {
    format!(
        "- {{kind: listener, name: listener, port: {port}, stream: true, body_size_max: 100GiB, \
             deadline: 1h, work_max: 1000000000000, \
             ports: {{out: [{{name: router, port: in}}]}}}}\n\
         - kind: router\n  name: router\n  \
           routes: [{{method: POST, path: {LINES}, port: 'out[0]'}}]\n  \
           ports: {{'out[0]': [{{name: lines, port: in}}]}}\n\
         - {{kind: stream, name: lines, of: packet.body, framing: ndjson, \
             ports: {{out: [{{name: one, port: in}}]}}}}\n\
         - {{kind: nop, name: one, ports: {{out: [{{name: two, port: in}}]}}}}\n\
         - {{kind: nop, name: two, ports: {{out: [{{name: three, port: in}}]}}}}\n\
         - {{kind: nop, name: three}}\n"
    )
}

/// Nodes that turn requests into websockets.
fn websocket(port: u16) -> String {
    format!(
        "- {{kind: listener, name: listener, port: {port}, \
             ports: {{out: [{{name: socket, port: in}}]}}}}\n\
         - {{kind: websocket, name: socket, ports: {{out: [{{name: echo, port: in}}]}}}}\n\
         - {{kind: nop, name: echo}}\n"
    )
}
