//! `listener`: begins a flow for each HTTP request, and answers with its reply.
//!
//! Each worker has a socket and connections of its own. The kernel divides new connections among
//! the sockets.

mod accept;
mod begun;
mod bind;
mod body;
mod callers;
mod connection;
mod exchange;
mod framing;
mod gunzip;
mod gzip;
mod life;
mod log;
mod options;
mod room;
mod tls;
mod worker;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Cause, Fault, Made, Parameters};
use sinew_flow::{FLOW, FlowEntry, Held, Local, Make, Opened, Outlet, Source, StopSignal, output};

use log::AccessLog;
use options::Options;
use room::Room;
use worker::Worker;

/// This node's row in the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

static INFO: Kind = Kind {
    name: "listener",
    doc: "Begins a flow for each HTTP request (HTTP/1.1 and HTTP/2 on the same port) and answers \
          with its reply. A reply of nothing is 204; a text, bytes and streams are the body; a \
          mapping of 'status', 'header' and 'body' is the whole answer; anything else is JSON. An \
          error has its status, 500 if nobody gave it one.",
    ports: &[output(
        "out",
        "{method, scheme, host, path, query, protocol, header, body, params, remote}.",
    )],
    parameters: PARAMETERS,
    ..FLOW
};

const SECOND: u64 = 1_000_000_000;

static PARAMETERS: &[Parameter] = &[
    parameter("protocol", ParameterType::Choice(&["http"]), "http", "The protocol."),
    parameter(
        "host",
        ParameterType::Text,
        "127.0.0.1",
        "Address of this machine to listen at; 0.0.0.0 or '::' for all. The default is reached \
         from this machine alone.",
    ),
    Parameter::new("port", ParameterType::Integer { min: 0, max: 65535 })
        .doc("Port to listen at; 0: any free one, which is printed at the start."),
    parameter(
        "certificate",
        ParameterType::Text,
        "",
        "PEM file with this server's certificate, and after it those between it and its root. \
         With it and 'key' the listener speaks TLS.",
    ),
    parameter("key", ParameterType::Text, "", "PEM file with the certificate's private key."),
    time("deadline", 3600, "30s", "Longest that a flow may take; past it the answer is 504."),
    crate::work::WORK_MAX,
    time("head_deadline", 3600, "10s", "Longest that a request's head may take to come."),
    time(
        "body_deadline",
        3600,
        "30s",
        "Longest that a request's body may take to come (408); with 'stream' each part of it.",
    ),
    time("idle_max", 86400, "60s", "Longest that a connection may stay open without a request."),
    time("stall_max", 3600, "30s", "Longest that a client may read nothing of its answer."),
    size("head_size_max", 8 << 10, 1 << 20, "16KiB", "Largest head of a request (431)."),
    count("headers_max", 1000, "100", "Most headers of a request (431)."),
    size(
        "body_size_max",
        0,
        1 << 40,
        "1MiB",
        "Largest body of a request (413); 1GiB at most without 'stream'.",
    ),
    parameter(
        "stream",
        ParameterType::Bool,
        "false",
        "Whether a flow begins before its request's body has arrived: 'body' is a stream then, \
         which can be read once, and comes no faster than the flow reads it.",
    ),
    count(
        "connections_max",
        1_000_000,
        "16384",
        "Most connections, all workers together; a further one is answered with 503.",
    ),
    count(
        "requests_max",
        1_000_000,
        "16384",
        "Most requests under way, all workers together, in equal shares; a further one is answered \
         with 503.",
    ),
    time(
        "wait_max",
        3600,
        "2s",
        "Longest that requests wait for a busy worker; past it further ones are answered with 503.",
    ),
    size(
        "held_size_max",
        0,
        1 << 40,
        "128MiB",
        "Most bytes of bodies and answers that are held, all connections together; a request past \
         it is answered with 503, and connections that read their answer slowly are closed.",
    ),
    count("streams_max", 10_000, "100", "Most requests at a time on a connection of HTTP/2."),
    parameter(
        "compression",
        ParameterType::Bool,
        "false",
        "Compress (gzip) answers of 1 KiB or more, of types that compress well, if the client \
         accepts it.",
    ),
    parameter(
        "flow_id",
        ParameterType::Bool,
        "false",
        "Every answer has the number of its flow in the header 'x-flow-id'; one of status 500 or \
         more always has it.",
    ),
    texts(
        "hosts",
        "Further names of this server, such as api.example; '*' for any. At a loopback address, \
         and if any are given here, requests with other names are answered with 403.",
    ),
    texts(
        "origins",
        "Further sites whose pages may send requests, such as https://app.example; '*' for any. At \
         a loopback address, and if any are given here, other pages are answered with 403.",
    ),
    parameter(
        "access_log",
        ParameterType::Text,
        "",
        "File that gets a line for each request: time, client, request, status, bytes, time taken.",
    ),
];

const fn parameter(
    name: &'static str,
    ty: ParameterType,
    default: &'static str,
    doc: &'static str,
) -> Parameter {
    Parameter::new(name, ty).or(default).doc(doc)
}

const fn texts(name: &'static str, doc: &'static str) -> Parameter {
    parameter(name, ParameterType::Texts { max: 64 }, "[]", doc)
}

const fn time(
    name: &'static str,
    max_s: u64,
    default: &'static str,
    doc: &'static str,
) -> Parameter {
    let ty = ParameterType::Duration { min_ns: SECOND / 1000, max_ns: max_s * SECOND };
    parameter(name, ty, default, doc)
}

const fn size(
    name: &'static str,
    min_bytes: u64,
    max_bytes: u64,
    default: &'static str,
    doc: &'static str,
) -> Parameter {
    parameter(name, ParameterType::Size { min_bytes, max_bytes }, default, doc)
}

const fn count(
    name: &'static str,
    max: i64,
    default: &'static str,
    doc: &'static str,
) -> Parameter {
    parameter(name, ParameterType::Integer { min: 1, max }, default, doc)
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    Ok(Box::new(Options::of(parameters)?))
}

impl Source for Options {
    fn files(&self) -> Vec<PathBuf> {
        self.tls.as_ref().map_or_else(Vec::new, |tls| tls.files.to_vec())
    }

    fn try_open(&self) -> Result<Option<Held>, (&'static str, Fault)> {
        let sockets = bind::sockets(self.address, 1).map_err(|fault| ("port", fault))?;
        Ok(Some(Arc::new(sockets)))
    }

    fn open(self: Box<Self>, workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        self.open_after(workers, &[])
    }

    /// Takes over the sockets of an earlier listener at the same address, so that connections that
    /// wait there to be accepted are not lost.
    fn open_after(
        self: Box<Self>,
        workers: usize,
        held: &[Held],
    ) -> Result<Vec<Box<dyn Opened>>, Fault> {
        let mut options = *self;
        let log = options.access_log.as_deref().map(open_log).transpose()?;
        let sockets = match bind::taken_over(options.address, workers, held) {
            Some(sockets) => sockets,
            None => bind::sockets(options.address, workers)?,
        };
        // With port 0 the kernel has chosen a port.
        if let Some(Ok(address)) = sockets.first().map(|socket| socket.local_addr()) {
            options.callers.listen_at(address);
        }
        let options = Arc::new(options);
        let spare = workers.saturating_mul(room::SPARE_MAX);
        let connections_max = bind::allow_descriptors(options.connections_max, spare);
        let room = Arc::new(Room::new(connections_max, options.held_size_max, workers));
        let share = options.requests_max.div_ceil(workers.max(1));
        if let Some(tls) = &options.tls {
            tls.tell();
        }
        let part = |socket| {
            let (options, room, log) = (Arc::clone(&options), Arc::clone(&room), log.clone());
            Box::new(Socket { socket, options, room, share, log }) as Box<dyn Opened>
        };
        Ok(sockets.into_iter().map(part).collect())
    }
}

fn open_log(path: &Path) -> Result<AccessLog, Fault> {
    AccessLog::open(path).map_err(|error| {
        let path = path.display();
        Fault::new(Cause::System, format_args!("cannot open the access log {path}: {error}"))
    })
}

/// A listener's part in one worker.
struct Socket {
    socket: Arc<TcpListener>,
    options: Arc<Options>,
    room: Arc<Room>,
    /// Requests that it may have under way.
    share: usize,
    log: Option<AccessLog>,
}

impl Opened for Socket {
    fn held(&self) -> Option<Held> {
        Some(Arc::clone(&self.socket) as Held)
    }

    fn address(&self) -> Option<String> {
        let scheme = self.options.scheme();
        self.socket.local_addr().ok().map(|address| format!("{scheme}://{address}"))
    }

    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        let worker = Worker::new(self.options, self.room, self.share, self.log, outlet);
        Box::pin(Rc::new(worker).serve(self.socket, stop))
    }
}
