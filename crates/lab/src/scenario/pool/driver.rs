//! Runs a row: starts a graph whose pool has this many threads, puts the load on it, and measures
//! what all of that took.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sinew_core::catalogue::Kind;
use sinew_core::clock::now_ns;
use sinew_figures::Distribution;
use sinew_figures::process::{Switches, children, cpu, threads_named, user_and_system};
use sinew_runtime::run::Run;

use super::case::{AFTER, AUTO, Arriving, PoolCase, PoolLoad};
use super::database::DatabaseServer;
use super::kind::Database;
use super::place::Place;
use super::request::COUNTED;
use super::sizes::{SizeSeen, Sizes, settled};
use crate::graph::compiled;
use crate::report::{Figure, Row};
use crate::rounds::{Contender, Session};
use crate::scenario::load::{Answered, Arrivals, Demand, Enough, ask_once, drive};
use crate::scenario::serving::{Serving, free_address, serve_graph};

/// Users of the closed loop, and most requests under way of the open one.
const USERS: usize = 400;
/// Requests before anything counts: with the largest pool, each thread gets one or two.
const WARM_UP: u64 = 2 * USERS as u64;
/// The time that a pool that finds its own size gets for that, before anything counts. Warming up
/// is part of it.
pub(super) const SETTLE: Duration = Duration::from_secs(4);
/// How many queries that never return are sent, and how long they are left unanswered before the
/// graph is told to stop.
const HUNG: u64 = 8;
const HANG: Duration = Duration::from_millis(500);
/// The file name of the lab's spec in messages.
const FILE: &str = "lab pool";
/// About how long starting, warming up and stopping a graph takes.
const START: Duration = Duration::from_millis(600);
/// The name of the pool's threads.
const THREAD: &str = "blocking";

/// What all rows share.
pub(super) struct PoolBench<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) cpus: &'a [u32],
    pub(super) kinds: &'a [&'static Kind],
    pub(super) share: Duration,
    /// Units of CPU work of a request.
    pub(super) units: u64,
    /// The databases that rows use.
    pub(super) databases: Vec<(Database, DatabaseServer)>,
    /// Requests a second of the closed loop with [`AFTER`] threads, as first measured, so that all
    /// rounds have the same rates.
    pub(super) rates: RefCell<Vec<((PoolLoad, Database), f64)>>,
    /// What was seen under `steps`, in each round.
    pub(super) steps: RefCell<Vec<Vec<Step>>>,
}

/// What a pool that finds its own size did under one load, with other loads before and after it on
/// the same graph.
pub(super) struct Step {
    pub(super) load: PoolLoad,
    /// The sizes that were seen; the first is the size at the beginning.
    pub(super) sizes: Vec<SizeSeen>,
    /// How long it took to settle, if it did.
    pub(super) settled: Option<Duration>,
}

/// What a round found.
struct Served {
    answered: Answered,
    took: Took,
    /// Threads of the pool at the end.
    threads: usize,
    /// From when to when it could settle, ns.
    settling: (u64, u64),
}

/// CPU time and switches that server and database used.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    user: Duration,
    system: Duration,
    database: Duration,
    switches: Switches,
}

impl Took {
    /// All that was used until now.
    fn by(server: u32, database: Option<u32>) -> io::Result<Took> {
        let (user, system) = user_and_system(server)?;
        let mut all = Took { user, system, switches: Switches::of(server)?, ..Took::default() };
        if let Some(parent) = database {
            for process in [vec![parent], children(parent)?].concat() {
                // A process that has ended meanwhile did no query. The time is read to the
                // nanosecond, because each process does little.
                all.database += cpu(process).unwrap_or_default();
            }
        }
        Ok(all)
    }

    fn since(self, before: Took) -> Took {
        Took {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            database: self.database.saturating_sub(before.database),
            switches: self.switches.since(before.switches),
        }
    }
}

impl PoolBench<'_> {
    /// The spec of a row.
    fn text(&self, case: PoolCase, port: u16) -> String {
        let place = self.databases.iter().find(|(it, _)| *it == case.database);
        let folder = place.map_or(Path::new(""), |(_, server)| match &server.place {
            Place::Postgres(folder) | Place::Sqlite(folder) => folder,
        });
        let (threads, units) = (case.threads, self.units);
        let (database, folder) = (case.database.word(), folder.display());
        format!(
            "name: pool\n\
             domains: {{service: {{stop_deadline: 1s, \
                 flows: {{workers: 1, blocking: {threads}}}}}}}\n\
             nodes:\n\
             - {{kind: listener, name: listener, port: {port}, \
                 ports: {{out: [{{name: request, port: in}}]}}}}\n\
             - {{kind: lab_request, name: request, units: {units}, database: '{database}', \
                 folder: '{folder}'}}\n"
        )
    }

    /// Runs the graph of a row while `work` runs, and watches the size of its pool if the size can
    /// change.
    fn serve<T: Send>(
        &self,
        case: PoolCase,
        sizes: &Sizes,
        work: impl FnOnce(&Serving) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let text = self.text(case, address.port());
        let graph = compiled(FILE, text, Vec::new(), self.kinds, self.cpus)?;
        let mut look = |run: &Run| {
            if case.threads == AUTO {
                sizes.look(run);
            }
        };
        serve_graph(graph, address, &mut look, work)
    }

    /// Makes every thread of a row wait for a query that never returns, and tells the graph to
    /// stop. Returns how long stopping took, ns.
    fn hang(&self, case: PoolCase) -> Result<u64, String> {
        let on = self.on(case, Arrivals::Closed);
        let told_ns = self.serve(case, &Sizes::default(), |serving| {
            let until_ns = now_ns() + HANG.as_nanos() as u64;
            let is_over = || now_ns() >= until_ns;
            let answered = on.drive(serving, on.arrivals, Enough::Requests(HUNG), &is_over)?;
            match answered.answers {
                0 => Ok(now_ns()),
                answers => Err(format!("{answers} of the queries that never return were answered")),
            }
        })?;
        Ok(now_ns() - told_ns)
    }

    fn on(&self, case: PoolCase, arrivals: Arrivals) -> On {
        let server = self.databases.iter().find(|(it, _)| *it == case.database);
        let database = server.and_then(|(_, server)| server.process());
        let (load, units, share) = (case.load, self.units, self.share);
        On { load, arrivals, settles: case.threads == AUTO, units, share, database }
    }

    /// Measures a row once.
    fn run(&self, case: PoolCase, arrivals: Arrivals, sizes: &Sizes) -> Result<Served, String> {
        let on = self.on(case, arrivals);
        let stop = self.session.stop;
        // Relaxed: the flag carries no other data with it.
        let is_stopped = || stop.load(Ordering::Relaxed);
        self.serve(case, sizes, |serving| on.measure(serving, &is_stopped))
    }

    /// Puts one load after the other on one graph; returns what its pool did.
    fn step(&self, case: PoolCase, sizes: &Sizes) -> Result<Vec<Step>, String> {
        let stop = self.session.stop;
        // Relaxed: the flag carries no other data with it.
        let is_stopped = || stop.load(Ordering::Relaxed);
        let on = PoolLoad::STEPS.map(|load| self.on(PoolCase { load, ..case }, Arrivals::Closed));
        let times = self.serve(case, sizes, |serving| {
            let step = |on: &On| on.settle(serving, &is_stopped);
            on.iter().map(step).collect::<Result<Vec<_>, _>>()
        })?;
        let step = |(load, (from_ns, to_ns))| {
            let sizes = sizes.between(from_ns, to_ns);
            Step { load, settled: settled(&sizes, to_ns), sizes }
        };
        Ok(PoolLoad::STEPS.into_iter().zip(times).map(step).collect())
    }

    /// The rate of the closed loop with the number of threads that the source has after its change.
    fn rate(&self, case: PoolCase) -> Result<f64, String> {
        let key = (case.load, case.database);
        let known = self.rates.borrow().iter().find(|(it, _)| *it == key).map(|(_, rate)| *rate);
        if let Some(rate) = known {
            return Ok(rate);
        }
        let closed = PoolCase { arriving: Arriving::Closed, threads: AFTER, ..case };
        let served = self.run(closed, Arrivals::Closed, &Sizes::default())?;
        Ok(self.learn(closed, &served))
    }

    /// Remembers the rate that this round reached, unless an earlier one is known.
    fn learn(&self, case: PoolCase, served: &Served) -> f64 {
        let rate = served.answered.answers as f64 / served.answered.time.as_secs_f64();
        let is_reference = case.arriving == Arriving::Closed && case.threads == AFTER;
        let key = (case.load, case.database);
        let mut rates = self.rates.borrow_mut();
        if is_reference && rates.iter().all(|(it, _)| *it != key) {
            rates.push((key, rate));
        }
        rate
    }
}

/// The load of a row, for the thread that makes it.
struct On {
    load: PoolLoad,
    arrivals: Arrivals,
    /// Whether the pool finds its own size.
    settles: bool,
    units: u64,
    share: Duration,
    /// The database's process.
    database: Option<u32>,
}

impl On {
    fn measure(&self, serving: &Serving, is_stopped: &dyn Fn() -> bool) -> Result<Served, String> {
        let failed = |error: io::Error| format!("cannot read what the server took: {error}");
        let settling = match self.settles {
            true => self.settle(serving, is_stopped)?,
            false => {
                self.drive(serving, Arrivals::Closed, Enough::Requests(WARM_UP), is_stopped)?;
                (0, 0)
            }
        };
        let counted = |serving: &Serving| -> Result<u64, String> {
            let count = ask_once(serving.address, COUNTED)?;
            count.parse().map_err(|_| format!("it counted '{count}'"))
        };
        let (counted_before, before) =
            (counted(serving)?, Took::by(serving.process, self.database).map_err(failed)?);
        let answered = self.drive(serving, self.arrivals, Enough::After(self.share), is_stopped)?;
        let took = Took::by(serving.process, self.database).map_err(failed)?.since(before);
        let threads = threads_named(serving.process, THREAD).map_err(failed)?;
        let (done, told) = (counted(serving)? - counted_before, answered.answers * self.units);
        if done != told && !is_stopped() {
            return Err(format!("the server did {done} units of work, and answered for {told}"));
        }
        Ok(Served { answered, took, threads, settling })
    }

    /// Gives the pool time to find its size; returns from when to when, ns.
    fn settle(
        &self,
        serving: &Serving,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(u64, u64), String> {
        let from_ns = now_ns();
        self.drive(serving, self.arrivals, Enough::After(SETTLE), is_stopped)?;
        Ok((from_ns, now_ns()))
    }

    /// Puts the load on a server; each answer says how many units were done for it.
    fn drive(
        &self,
        serving: &Serving,
        arrivals: Arrivals,
        enough: Enough,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Answered, String> {
        let (path, expected) = (self.load.asked().to_string(), self.units.to_string().into_bytes());
        let (address, connections) = (serving.address, USERS);
        let demand = Demand { address, path, connections, expected, arrivals, enough };
        let answered = drive(&demand, is_stopped)?;
        match &answered.failure {
            Some(why) => Err(format!("{} requests failed: {why}", answered.failed)),
            None => Ok(answered),
        }
    }
}

/// A row that can be run.
pub(super) struct PoolRun<'a> {
    bench: &'a PoolBench<'a>,
    case: PoolCase,
    all: Totals,
}

/// What was found in all rounds.
#[derive(Default)]
struct Totals {
    answers: f64,
    time: Duration,
    took: Took,
    client: Duration,
    /// For a pool that finds its own size: rounds in which it had not settled in time, changes
    /// during a measurement, the least time between two changes.
    unsettled: u32,
    changes: u64,
    least_between: Option<Duration>,
}

impl<'a> PoolRun<'a> {
    pub(super) fn new(bench: &'a PoolBench<'a>, case: PoolCase) -> PoolRun<'a> {
        PoolRun { bench, case, all: Totals::default() }
    }

    fn add(&mut self, row: &mut Row, served: &Served) {
        let Served { answered, took, threads, .. } = served;
        let answers = answered.answers.max(1) as f64;
        let round = row.measure("time_per_request").map_or(0, |measure| measure.rounds.len());
        let latency = &answered.latency;
        let median = latency.quantile(0.5).unwrap_or_default();
        row.measure_mut("latency").add_round(latency, median as f64, None);
        let mut add = |name: &str, ns: f64| {
            row.measure_mut(name).add_round(&Distribution::new(), ns, None);
        };
        for (name, time) in [
            ("time_per_request", answered.time),
            ("cpu_user", took.user),
            ("cpu_system", took.system),
            ("cpu_database", took.database),
            ("cpu_client", answered.taken.cpu),
        ] {
            add(name, time.as_nanos() as f64 / answers);
        }
        for (name, share) in [("latency_p95", 0.95), ("latency_p99", 0.99)] {
            let measure = row.measure_mut(name);
            // Only if every round so far had it: rounds of two rows are compared one by one.
            if let Some(ns) = latency.quantile(share).filter(|_| measure.rounds.len() == round) {
                measure.add_round(&Distribution::new(), ns as f64, None);
            }
        }
        let (all, more) = (&mut self.all, took);
        all.answers += answers;
        all.time += answered.time;
        all.client += answered.taken.cpu;
        all.took.user += more.user;
        all.took.system += more.system;
        all.took.database += more.database;
        let (switches, more) = (&mut all.took.switches, more.switches);
        switches.voluntary += more.voluntary;
        switches.involuntary += more.involuntary;
        switches.migrations =
            more.migrations.map(|more| more + switches.migrations.unwrap_or_default());
        row.figures = all.figures(*threads);
    }

    /// Adds how the size of an automatic pool moved: times to settle.
    fn add_sizes(&mut self, row: &mut Row, settled: &[Option<Duration>], sizes: &Sizes) {
        let mut values = Distribution::new();
        for time in settled {
            self.all.unsettled += u32::from(time.is_none());
            values.add(time.unwrap_or(SETTLE).as_nanos() as u64);
        }
        let most = values.max().unwrap_or_default();
        row.measure_mut("settling").add_round(&values, most as f64, None);
        let least = [self.all.least_between, sizes.least_between()].into_iter().flatten().min();
        self.all.least_between = least;
        row.figures.push(Figure::of("not_settled", "", f64::from(self.all.unsettled)));
        row.figures.push(Figure::of("changes_while_measured", "", self.all.changes as f64));
        let least = least.map(|it| Figure::of("least_between_changes", "s", it.as_secs_f64()));
        row.figures.extend(least);
    }

    fn steps(&mut self, row: &mut Row) -> Result<(), String> {
        let sizes = Sizes::default();
        let steps = self.bench.step(self.case, &sizes)?;
        if !self.bench.session.is_stopped() {
            row.figures.clear();
            let settled: Vec<_> = steps.iter().map(|step| step.settled).collect();
            self.add_sizes(row, &settled, &sizes);
            self.bench.steps.borrow_mut().push(steps);
        }
        Ok(())
    }

    fn hang(&self, row: &mut Row) -> Result<(), String> {
        let ns = self.bench.hang(self.case)?;
        let mut values = Distribution::new();
        values.add(ns);
        row.measure_mut("end_after_hang").add_round(&values, ns as f64, None);
        Ok(())
    }
}

impl Totals {
    fn figures(&self, threads: usize) -> Vec<Figure> {
        let Took { user, system, database, switches } = self.took;
        let us = |name: &str, time: Duration| {
            Figure::of(name, "us", time.as_secs_f64() * 1e6 / self.answers)
        };
        let each = |name: &str, count: u64| Figure::of(name, "", count as f64 / self.answers);
        let rate = self.answers / self.time.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut figures = vec![
            Figure::of("requests", "1/s", rate),
            us("cpu_user", user),
            us("cpu_system", system),
            us("cpu_database", database),
            us("cpu_client", self.client),
            each("voluntary_switches", switches.voluntary),
            each("involuntary_switches", switches.involuntary),
        ];
        figures.extend(switches.migrations.map(|count| each("migrations", count)));
        figures.push(Figure::of("threads_at_end", "", threads as f64));
        figures
    }
}

impl Contender for PoolRun<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        match self.case.load {
            PoolLoad::Hang => return self.hang(row),
            PoolLoad::Steps => return self.steps(row),
            _ => {}
        }
        let arrivals = match self.case.arriving.share() {
            None => Arrivals::Closed,
            Some(share) => Arrivals::Every(1e9 / (share * self.bench.rate(self.case)?)),
        };
        // A rate from an interrupted measurement is not used.
        if self.bench.session.is_stopped() {
            return Ok(());
        }
        let sizes = Sizes::default();
        let served = self.bench.run(self.case, arrivals, &sizes)?;
        // An interrupted measurement is not a round.
        if !self.bench.session.is_stopped() {
            self.bench.learn(self.case, &served);
            self.add(row, &served);
            if self.case.threads == AUTO {
                let (from_ns, to_ns) = served.settling;
                self.all.changes += sizes.changes_after(to_ns);
                let settled = settled(&sizes.between(from_ns, to_ns), to_ns);
                self.add_sizes(row, &[settled], &sizes);
            }
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        let steps = PoolLoad::STEPS.len() as u32;
        match (self.case.load, self.case.threads) {
            (PoolLoad::Hang, _) => START + HANG,
            (PoolLoad::Steps, _) => START + SETTLE * steps,
            (_, AUTO) => START + SETTLE + self.bench.share,
            _ => START + self.bench.share,
        }
    }
}
