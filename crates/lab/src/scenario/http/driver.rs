//! Runs a row: starts its server, puts the load on it, and measures what both used.

use std::io;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use sinew_figures::Distribution;
use sinew_figures::process::{cpu, resident_kib};

use super::elements::pour;
use super::idle::IdleSockets;
use super::row::{BEGIN, Load};
use super::server::ServerRun;
use crate::harness::{Gone, stay_on};
use crate::report::{Figure, Row};
use crate::rounds::Contender;
use crate::scenario::load::{Answered, Arrivals, Demand, Enough, drive};
use crate::scenario::serving::Serving;

/// Connections of the steady loads.
const CONNECTIONS: usize = 64;
/// The load of the source.
const SOURCE_CONNECTIONS: usize = 1024;
const SOURCE_REQUESTS: u64 = 102_400;
/// Requests before anything counts; for elements, the time before anything counts.
const WARM_UP: u64 = 2000;
const WARM_UP_TIME: Duration = Duration::from_millis(100);
/// About how long starting and stopping a server takes.
const START: Duration = Duration::from_millis(400);

/// What a round found.
struct Served {
    answered: Answered,
    cpu: Duration,
    resident_max_kib: u64,
    /// Bytes that one sleeping flow took.
    flow_bytes: Option<f64>,
}

impl ServerRun<'_> {
    /// The CPU on which the load runs; `None` for all.
    fn load_cpu(&self) -> Option<u32> {
        matches!(self.load, Load::Ping | Load::Elements)
            .then(|| self.cpus.last().copied())
            .flatten()
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: the flag carries no other data with it.
        self.stop.load(Ordering::Relaxed)
    }

    fn run(&self) -> Result<Served, String> {
        self.serve(|serving| {
            if let Some(cpu) = self.load_cpu() {
                stay_on(cpu).map_err(|Gone(why)| why)?;
            }
            match self.load {
                Load::Elements => self.pour(serving),
                _ => self.measure(serving),
            }
        })
    }

    /// Measures with a load of elements.
    fn pour(&self, serving: &Serving) -> Result<Served, String> {
        let [path, _] = self.graph.asked();
        let pour = |share| pour(serving.address, path, share, || self.is_stopped());
        pour(WARM_UP_TIME)?;
        let before = cpu(serving.process).map_err(unread)?;
        let answered = pour(self.share)?;
        let after = cpu(serving.process).map_err(unread)?;
        let resident_max_kib = resident_kib(serving.process).map_err(unread)?.1;
        let cpu = after.saturating_sub(before);
        Ok(Served { answered, cpu, resident_max_kib, flow_bytes: None })
    }

    /// Opens websockets and leaves them idle. Returns the bytes that each takes, how many there
    /// are, and how many are lost.
    fn idle(&self) -> Result<(f64, usize, usize), String> {
        self.serve(|serving| {
            let before_kib = resident_kib(serving.process).map_err(unread)?.0;
            let sockets = IdleSockets::open(serving.address, self.graph.asked()[0])?;
            sleep(self.share);
            let after_kib = resident_kib(serving.process).map_err(unread)?.0;
            let grown = after_kib.saturating_sub(before_kib) as f64 * 1024.0;
            Ok((grown / sockets.count() as f64, sockets.count(), sockets.lost()))
        })
    }

    /// Puts the load on a server that listens.
    fn measure(&self, serving: &Serving) -> Result<Served, String> {
        let [asked, answer] = self.graph.asked();
        self.drive(serving, [asked, answer], CONNECTIONS, Enough::Requests(WARM_UP))?;
        let sleepers = self.graph.sleepers();
        let mut flow_bytes = None;
        if sleepers > 0 {
            let before_kib = resident_kib(serving.process).map_err(unread)?.0;
            let enough = Enough::Requests(sleepers);
            let begun = self.drive(serving, [BEGIN, answer], CONNECTIONS, enough)?;
            if begun.failed > 0 {
                let why = begun.failure.unwrap_or_default();
                return Err(format!("{} flows did not begin: {why}", begun.failed));
            }
            let after_kib = resident_kib(serving.process).map_err(unread)?.0;
            let grown = after_kib.saturating_sub(before_kib) as f64 * 1024.0;
            flow_bytes = Some(grown / sleepers as f64);
        }
        let (connections, enough) = match self.load {
            Load::Source => (SOURCE_CONNECTIONS, Enough::Requests(SOURCE_REQUESTS)),
            Load::Alone => (1, Enough::After(self.share)),
            _ => (CONNECTIONS, Enough::After(self.share)),
        };
        let before = cpu(serving.process).map_err(unread)?;
        let answered = self.drive(serving, [asked, answer], connections, enough)?;
        let after = cpu(serving.process).map_err(unread)?;
        let resident_max_kib = resident_kib(serving.process).map_err(unread)?.1;
        Ok(Served { answered, cpu: after.saturating_sub(before), resident_max_kib, flow_bytes })
    }

    fn drive(
        &self,
        serving: &Serving,
        [path, answer]: [&str; 2],
        connections: usize,
        enough: Enough,
    ) -> Result<Answered, String> {
        let (address, path) = (serving.address, path.to_owned());
        let (expected, arrivals) = (answer.as_bytes().to_vec(), Arrivals::Closed);
        let load = Demand { address, path, connections, expected, arrivals, enough };
        drive(&load, || self.is_stopped())
    }
}

fn unread(error: io::Error) -> String {
    format!("cannot read what the server took: {error}")
}

/// The greatest value of all rounds.
fn most(row: &Row, name: &str, value: f64) -> f64 {
    row.figure(name).map_or(value, |old| old.max(value))
}

/// Adds a round of websockets to a row.
fn add_idle(row: &mut Row, (bytes, count, lost): (f64, usize, usize)) {
    row.figures = vec![
        Figure::of("failed", "", row.figure("failed").unwrap_or_default() + lost as f64),
        Figure::of("connections", "", count as f64),
        Figure::of("memory_per_connection", "B", most(row, "memory_per_connection", bytes)),
    ];
}

impl Contender for ServerRun<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        if self.load == Load::Idle {
            let found = self.idle()?;
            if !self.is_stopped() {
                add_idle(row, found);
            }
            return Ok(());
        }
        let found = self.run()?;
        if self.is_stopped() {
            return Ok(());
        }
        let answered = &found.answered;
        let answers = answered.answers.max(1) as f64;
        let mut add = |name: &str, ns: f64| {
            let mut values = Distribution::new();
            values.add(ns as u64);
            row.measure_mut(name).add_round(&values, ns, None);
        };
        add("cpu_per_request", found.cpu.as_nanos() as f64 / answers);
        add("client_cpu_per_request", answered.taken.cpu.as_nanos() as f64 / answers);
        add("client_wait_per_request", answered.taken.waited.as_nanos() as f64 / answers);
        add("time_per_request", answered.time.as_nanos() as f64 / answers);
        if let Some(median) = answered.latency.quantile(0.5) {
            row.measure_mut("latency").add_round(&answered.latency, median as f64, None);
        }
        let failed = row.figure("failed").unwrap_or_default() + answered.failed as f64;
        let resident = most(row, "resident_max", found.resident_max_kib as f64 / 1024.0);
        let flow = found.flow_bytes.map(|bytes| most(row, "memory_per_flow", bytes));
        row.figures =
            vec![Figure::of("failed", "", failed), Figure::of("resident_max", "MiB", resident)];
        row.figures.extend(flow.map(|bytes| Figure::of("memory_per_flow", "B", bytes)));
        if let Some(why) = &answered.failure {
            row.notes.push(format!("a request failed: {why}"));
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        START + self.share
    }
}
