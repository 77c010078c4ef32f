//! Measures one alternative: with stand-ins that compute as long as the nodes do and move nothing,
//! or with its own nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_core::trace::{Record, ThreadId};
use sinew_figures::{Distribution, process};
use sinew_report::Links;
use sinew_runtime::run::{Outcome, Run, RunRequest};
use sinew_spec::plan::{Plan, Release, RequiredOf};

use crate::graph::{faults, leader};
use crate::report::{Figure, Row};
use crate::rounds::{Contender, Session};
use crate::scenario::cycles::Cycles;

/// Cycles after each start that do not count.
const WARM_UP: u64 = 20;
/// About how long starting and stopping takes.
pub(super) const START: Duration = Duration::from_millis(210);
/// Longest pause between two looks at the run.
const LOOK: Duration = Duration::from_millis(100);

/// The measure of the cycles that go around the whole loop.
pub(super) const CYCLE: &str = "cycle_latency";
/// The figure of the CPU time of all domains.
pub(super) const CPU: &str = "cpu";

/// The measure of the cycles of a domain.
pub(super) fn cycles_of(domain: &str) -> String {
    format!("cycles of {domain}")
}

/// The figure of the CPU time of a domain.
pub(super) fn cpu_of(domain: &str) -> String {
    format!("{CPU} of {domain}")
}

/// A graph that is measured, round by round.
pub(super) struct Trial<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) request: RunRequest,
    pub(super) share: Duration,
    /// CPU time of each domain and wall time, over all rounds, ns.
    used: BTreeMap<usize, u64>,
    wall_ns: u64,
    overruns: u64,
    /// Records that were overwritten before they were read.
    unread: u64,
}

/// What was seen of a round.
struct Seen {
    leader: ThreadId,
    cycles: Cycles,
    /// The cycles of the domains of which a latency is required.
    of_domains: Vec<(usize, ThreadId, Distribution)>,
    links: Links,
}

impl Seen {
    fn new(plan: &Plan) -> Option<Seen> {
        let (cycles, links) = (Cycles::default(), Links::new(plan));
        let domains = plan.requirements.iter().filter_map(|requirement| match requirement.of {
            RequiredOf::Domain(domain) => Some(domain),
            _ => None,
        });
        let of_domain = |domain: usize| {
            let mut threads = ThreadId::all_of(plan, domain);
            let by_timer =
                |id: &ThreadId| plan.domains[domain].threads()[id.thread].release == Release::Timer;
            let first = ThreadId { domain, thread: 0 };
            (domain, threads.find(by_timer).unwrap_or(first), Distribution::new())
        };
        let domains: BTreeSet<_> = domains.collect();
        let of_domains = domains.into_iter().map(of_domain).collect();
        Some(Seen { leader: leader(plan)?, cycles, of_domains, links })
    }

    fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        if record.number() < WARM_UP {
            return;
        }
        self.links.take(id, record, clock);
        if record.is_stopping() {
            return;
        }
        for (.., times) in self.of_domains.iter_mut().filter(|row| row.1 == id) {
            times.add(clock.ns(record.latency_ticks()));
        }
        if id == self.leader {
            self.cycles.take(record, clock);
        }
    }
}

impl<'a> Trial<'a> {
    pub(super) fn new(session: &'a Session<'a>, request: RunRequest, share: Duration) -> Trial<'a> {
        let (used, wall_ns, overruns, unread) = (BTreeMap::new(), 0, 0, 0);
        Trial { session, request, share, used, wall_ns, overruns, unread }
    }

    /// One start, with `also` told of every record; adds what was seen as a round.
    pub(super) fn add_round(
        &mut self,
        row: &mut Row,
        also: &mut dyn FnMut(ThreadId, &Record, Clock),
    ) -> Result<(), String> {
        let seen = self.run(also)?;
        seen.cycles.add_to(row, None, true);
        for link in &seen.links.rows {
            let measure = row.measure_mut(&self.request.plan.link_name(link.link));
            match link.latency.quantile(0.5) {
                Some(median) => measure.add_round(&link.latency, median as f64, None),
                None => measure.distribution.merge(&link.latency),
            }
        }
        for (domain, _, times) in &seen.of_domains {
            let name = cycles_of(&self.request.plan.domains[*domain].name);
            row.measure_mut(&name).distribution.merge(times);
        }
        row.figures = self.figures();
        Ok(())
    }

    fn run(&mut self, also: &mut dyn FnMut(ThreadId, &Record, Clock)) -> Result<Seen, String> {
        let plan = &self.request.plan;
        let mut seen = Seen::new(plan).ok_or("no clock releases a cycle")?;
        let run = Run::start(self.request.clone());
        let mut run = run.map_err(|error| format!("it cannot be started: {error}"))?;
        let clock = run.clock();
        let mut begun: Option<(u64, Vec<u64>)> = None;
        // What had been used at the last look: a process that ends by itself is gone when the run
        // is over.
        let mut used = (0, vec![]);
        let look = LOOK.min(self.share / 4);
        let mut take = |seen: &mut Seen, id: ThreadId, record: &Record| {
            seen.take(id, record, clock);
            also(id, record, clock);
        };
        while run.poll(look, &mut |id, record| take(&mut seen, id, record)) {
            if run.is_ending() {
                continue;
            }
            let now = cpu_ns(&run.pids());
            if begun.is_none() && seen.cycles.latency.n() > 0 {
                begun = Some((now_ns(), now.clone()));
            }
            let Some((begun_ns, before)) = &begun else {
                if self.session.is_stopped() {
                    run.stop();
                }
                continue;
            };
            let since = |(now, before): (&u64, &u64)| now.saturating_sub(*before);
            used =
                (now_ns().saturating_sub(*begun_ns), now.iter().zip(before).map(since).collect());
            if u128::from(used.0) >= self.share.as_nanos() || self.session.is_stopped() {
                run.stop_for("it was watched for long enough");
            }
        }
        if run.outcome() == Outcome::Faulted {
            return Err(faults(&run));
        }
        self.wall_ns += used.0;
        for (domain, ns) in used.1.into_iter().enumerate() {
            *self.used.entry(domain).or_default() += ns;
        }
        self.overruns += seen.cycles.overruns;
        self.unread += run.records_lost();
        Ok(seen)
    }

    /// The figures of all rounds. CPU time that was not read twice is not among them.
    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![];
        if self.wall_ns > 0 {
            let share = |ns: u64| ns as f64 / self.wall_ns as f64 * 100.0;
            figures.push(Figure::of(CPU, "%", share(self.used.values().sum())));
            let domains = &self.request.plan.domains;
            let used = self.used.iter();
            figures.extend(
                used.map(|(&at, &ns)| Figure::of(&cpu_of(&domains[at].name), "%", share(ns))),
            );
        }
        figures.push(Figure::of("overruns", "", self.overruns as f64));
        figures.push(Figure::of("unread", "", self.unread as f64));
        figures
    }
}

/// CPU time of each domain's process so far; 0 for a domain that has ended.
fn cpu_ns(pids: &[Option<u32>]) -> Vec<u64> {
    let used = |pid: &Option<u32>| pid.and_then(|pid| process::cpu(pid).ok());
    pids.iter().map(|pid| used(pid).unwrap_or_default().as_nanos() as u64).collect()
}

impl Contender for Trial<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        self.add_round(row, &mut |_, _, _| {})
    }

    fn takes(&self) -> Duration {
        START + self.share
    }
}
