//! `sinew run`: starts a graph, watches it from outside, stops it in order and reports.

mod arguments;
mod audience;
mod edits;

use std::fs::File;
use std::io::{self, Write, stdout};
use std::path::{Path, absolute};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sinew_control::Spec;
use sinew_control::status::EventKind;
use sinew_core::clock::now_ns;
use sinew_doctor::Neighbours;
use sinew_figures::Machine;
use sinew_report::{Csv, Ending, Report, Stats, Usage, judge};
use sinew_runtime::Kinds;
use sinew_runtime::profile::Profile;
use sinew_runtime::run::{Run, RunRequest, ServiceState};
use sinew_spec::plan::{LinkProfile, Plan};
use sinew_view::{Scene, Systemd, View};

pub(crate) use self::arguments::RunArgs;
use self::audience::Audience;
use self::edits::Edits;
use crate::answer::{FAULTED, is_quiet, refuse, say};
use crate::load::{LoadError, Loaded, load_to_run};
use crate::overwrite;
use crate::signals::{self, Heard, Signals, Wish};

/// How long the loop sleeps at most. Events of a domain wake it at once, and [`Run`] wakes before a
/// trace is full. Each wake-up costs some tenths of a millisecond, because what the loop needs is
/// no longer in a cache.
const POLL: Duration = Duration::from_secs(1);
/// The same with a live view, which changes this often.
const POLL_LIVE: Duration = Duration::from_millis(20);
/// Least seconds between two events about late cycles. Each event covers all late cycles since the
/// last.
const LATE_SPACING_S: f64 = 1.0;

/// Carries out the command.
pub(crate) fn run(args: &RunArgs, nodes: &Kinds) -> ExitCode {
    let begun_ns = now_ns();
    match prepare(args, nodes) {
        Err(error) => error.answer(args.json),
        Ok((loaded, audience, edits)) => match Session::start(args, loaded, nodes, audience, edits)
        {
            Ok(session) => session.carry_out(begun_ns),
            Err(error) => refuse(&format!("cannot start the graph: {error}"), FAULTED, args.json),
        },
    }
}

/// Checks everything that can be wrong with the request, before a process is started.
fn prepare(args: &RunArgs, nodes: &Kinds) -> Result<(Loaded, Audience, Option<Edits>), LoadError> {
    let machine = args.machine.get()?;
    let loaded = load_to_run(&args.file, &args.part, nodes, &machine)?;
    let plan = &loaded.plan;
    if let LinkProfile::Refused(why) = &machine.profile
        && plan.notes.contains(why)
    {
        say(&format!("warning: {why}"));
    }
    for (option, file) in [("--csv", &args.csv), ("--profile", &args.profile)] {
        file.iter().try_for_each(|it| overwrite::check(option, it, &args.file, &loaded))?;
    }
    // Files are created last: a request that is refused leaves existing files unchanged.
    let edits = || Edits::watch(&args.file, &args.part, nodes, &loaded);
    let edits = args.watch.then(edits).transpose()?;
    if let Some(file) = &args.profile {
        check_profile(file, plan)?;
    }
    let stats = Stats::new(plan);
    let csv = args.csv.as_deref().map(|path| Csv::create(path, plan, &stats)).transpose();
    let audience = Audience::new(plan, stats, csv.map_err(LoadError::Request)?);
    Ok((loaded, audience, edits))
}

/// Whether there is something to profile, and the file can be written.
fn check_profile(file: &Path, plan: &Plan) -> Result<(), LoadError> {
    if !sinew_runtime::profile::IS_BUILT {
        return Err(LoadError::Request(
            "--profile: this program was built without profiles; build it with 'cargo build \
             --release --features profile', or leave --profile out"
                .into(),
        ));
    }
    if !(0..plan.nodes.len()).any(|node| plan.is_flow(node)) {
        return Err(LoadError::Request(
            "--profile: this graph has no flows, and only processes with flows are profiled: the \
             signals of a profile would disturb a core; leave --profile out, or use 'perf record'"
                .into(),
        ));
    }
    let made = File::create(file).map(drop);
    made.map_err(|error| {
        let file = file.display();
        LoadError::Request(format!("--profile: cannot write '{file}': {error}; name another file"))
    })
}

/// A run under way.
struct Session {
    run: Run,
    audience: Audience,
    signals: Signals,
    usage: Usage,
    machine: Machine,
    duration: Option<Duration>,
    json: bool,
    strict: bool,
    heard: Heard,
    /// Whether the time that was asked for is over.
    is_over: bool,
    /// How often the core has started again, as far as the figures have taken it in.
    resets: u32,
    neighbours: Neighbours,
    /// Whether the user was told what the kernel refused.
    is_refusal_told: bool,
    systemd: Option<Systemd>,
    edits: Option<Edits>,
    /// Why standard output was closed.
    closed: Option<io::Error>,
}

impl Session {
    fn start(
        args: &RunArgs,
        loaded: Loaded,
        nodes: &Kinds,
        mut audience: Audience,
        edits: Option<Edits>,
    ) -> io::Result<Session> {
        let signals = signals::hear()?;
        let machine = Machine::read();
        let spec = Spec { observe: args.observe, ..loaded.spec };
        let request = RunRequest::new(spec, loaded.plan);
        let mut run = Run::start(RunRequest { strict: args.strict, ..request })?;
        let kinds = nodes.clone();
        run.tune_by(Box::new(move |plan, node, base, values| {
            kinds.try_values(plan, node, base, values)
        }));
        run.wake_by(signals.get_read().try_clone()?.into());
        if let Some(file) = &args.profile {
            run.profile(Profile { file: absolute(file)?, frequency_hz: args.profile_hz });
        }
        audience.view = View::open(args.json, &audience.stats);
        let systemd = Systemd::open().unwrap_or_else(|text| {
            audience.notice(text);
            None
        });
        Ok(Session {
            usage: Usage::new(run.plan().domains.len()),
            neighbours: Neighbours::seek(run.plan()),
            is_refusal_told: false,
            run,
            audience,
            signals,
            machine,
            duration: args.duration,
            json: args.json,
            strict: args.strict,
            heard: Heard::default(),
            is_over: false,
            resets: 0,
            systemd,
            edits,
            closed: None,
        })
    }

    fn carry_out(mut self, begun_ns: u64) -> ExitCode {
        let ending = self.watch_over();
        self.audience.finish_csv();
        let duration_s = self.elapsed_s();
        self.audience.close_view();
        let Session { run, audience, machine, usage, json, strict, closed, .. } = self;
        let plan = run.plan().clone();
        let (faults, privileges, services) = (run.faults(), run.privileges(), run.services());
        let earlier_faults = run.earlier_faults().to_vec();
        let (stop, resets, broken_links) = (run.stop_status(), run.resets(), run.broken_links());
        let mut lacks = run.profiles_lack();
        lacks.extend(audience.csv.as_ref().and_then(Csv::lacks));
        // What was not stopped is killed here, before a report that the reader may be slow to take.
        drop(run);
        let first_ns = audience.stats.control().and_then(|control| control.first_start_ns);
        let since_begun_ms = |ns: u64| (ns.saturating_sub(begun_ns) / 1000) as f64 / 1e3;
        let judged = judge(&plan, &audience.stats, &audience.links, &usage.processes);
        let report = Report {
            plan: &plan,
            stats: &audience.stats,
            links: &audience.links,
            judged,
            strict,
            late: &audience.late,
            ending,
            faults,
            earlier_faults,
            stop,
            resets,
            privileges,
            processes: usage.processes,
            services,
            broken_links,
            start_to_first_cycle_ms: first_ns.map(since_begun_ms),
            duration_s,
            csv: audience.csv.as_ref().map(Csv::to_json),
            lacks,
            machine: &machine,
        };
        let written = match closed {
            Some(error) => Err(error),
            None => write(&report, json),
        };
        ExitCode::from(if is_quiet(written) { report.exit_status() } else { FAULTED })
    }

    /// Runs until the last process has ended, or until the user will not wait for that.
    fn watch_over(&mut self) -> Ending {
        let clock = self.run.clock();
        // The first pass starts services and must not wait: nothing would wake it.
        let mut nap = Duration::ZERO;
        loop {
            let audience = &mut self.audience;
            let running = self.run.poll(nap, &mut |id, record| audience.take(id, record, clock));
            if self.run.resets() > self.resets {
                self.resets = self.run.resets();
                audience.late.begin_life();
            }
            audience.stats.read_losses(|thread| self.run.records_lost_of(thread));
            audience.late.look(|| self.run.threads());
            if let Some(edits) = &mut self.edits {
                edits.go_on(&mut self.run, audience);
            }
            let of_systemd = self
                .systemd
                .as_mut()
                .and_then(|it| it.tell(self.run.is_ending(), || self.run.status()));
            let warnings = self.neighbours.warnings().into_iter().chain(of_systemd);
            warnings.for_each(|text| audience.notice(text));
            self.tell_refusal();
            if !running {
                return Ending::Ended(self.run.outcome());
            }
            let order = match self.wish() {
                Some(Wish::EndAtOnce) => return Ending::Killed,
                Some(Wish::End) => Some("Ctrl-C or a signal"),
                None => self.has_run_out().then_some("--duration is over"),
            };
            if let Some(reason) = order {
                self.usage.read_now(self.elapsed_s(), self.run.pids());
                self.run.stop_for(reason);
                // The stop is carried out at once. The rest of this pass can wait.
                nap = Duration::ZERO;
                continue;
            }
            let elapsed_s = self.elapsed_s();
            self.usage.read(elapsed_s, || self.run.pids());
            nap = self.nap();
            if let Err(error) = self.refresh(elapsed_s) {
                self.audience.view = View::none();
                self.closed = Some(error);
                self.run.stop_for("standard output was closed");
                nap = Duration::ZERO;
            }
        }
    }

    /// Says once, when all threads of the core run, what the kernel refused them: the report comes
    /// only at the end. The live view shows what each thread got.
    fn tell_refusal(&mut self) {
        if self.is_refusal_told || self.audience.view.is_live() {
            return;
        }
        let (privileges, stats) = (self.run.privileges(), &self.audience.stats);
        let begun = |id| stats.thread(id).is_some_and(|thread| thread.first_start_ns.is_some());
        if !privileges.iter().all(|(id, ..)| begun(*id)) {
            return;
        }
        self.is_refusal_told = true;
        let lacks = privileges.iter().filter(|(_, asked, got)| !got.missing(asked).is_empty());
        let (lacks, all) = (lacks.count(), privileges.len());
        if lacks > 0 {
            self.audience.notice(format!(
                "the kernel refused SCHED_FIFO, locked memory or a CPU to {lacks} of {all} \
                 realtime threads, so cycles may be late: 'sinew top' shows what, and 'sinew \
                 doctor' how to get it here"
            ));
        }
    }

    /// What signals since the last call ask for.
    fn wish(&mut self) -> Option<Wish> {
        // All pending signals count as one.
        let came = self.signals.pending().count() > 0;
        came.then(|| self.heard.signal(Instant::now())).flatten()
    }

    /// Whether the time that was asked for is over. True only once.
    fn has_run_out(&mut self) -> bool {
        let was_over = self.is_over;
        self.is_over |= self.duration.is_some_and(|all| self.elapsed_s() >= all.as_secs_f64());
        self.is_over && !was_over
    }

    /// Time until something is due that does not wake the loop: each second a line of the view, the
    /// end of the duration, a message to systemd.
    fn nap(&self) -> Duration {
        if self.audience.view.is_live() {
            return POLL_LIVE;
        }
        let elapsed_s = self.elapsed_s();
        let left = self.duration.filter(|_| !self.is_over);
        let left_s = left.map_or(1.0, |duration| duration.as_secs_f64() - elapsed_s);
        let left_s = left_s.min(1.0 - elapsed_s.fract()).clamp(1e-3, 1.0);
        let for_systemd = self.systemd.as_ref().map_or(POLL, Systemd::spacing);
        let for_edits = if self.edits.is_some() { Edits::spacing() } else { POLL };
        Duration::from_secs_f64(left_s).min(for_systemd).min(for_edits)
    }

    /// Time since the first release, rounded to a millisecond.
    fn elapsed_s(&self) -> f64 {
        (now_ns().saturating_sub(self.run.started_ns()) / 1_000_000) as f64 / 1e3
    }

    fn refresh(&mut self, elapsed_s: f64) -> io::Result<()> {
        let audience = &mut self.audience;
        let news = audience.news.of(self.run.events());
        audience.view.tell(&news)?;
        audience.told = audience.news.newest().or(audience.told.take());
        if elapsed_s >= audience.late_due_s {
            audience.late_due_s = elapsed_s + LATE_SPACING_S;
            audience.late_line = audience.late.tell();
            if let Some(text) = &audience.late_line {
                self.run.note(EventKind::Late, None, text);
            }
        }
        if !audience.view.is_due(elapsed_s) {
            return Ok(());
        }
        let late = audience.late_line.take();
        audience.told = late.clone().or(audience.told.take());
        let name =
            |service: ServiceState| (self.run.plan().domains[service.domain].name.clone(), service);
        let scene = Scene {
            graph: &self.run.plan().name,
            stats: &audience.stats,
            privileges: &self.run.privileges(),
            services: &self.run.services().into_iter().map(name).collect::<Vec<_>>(),
            phase: self.run.phase(),
            elapsed_s,
            duration_s: self.duration.map(|duration| duration.as_secs_f64()),
            late: late.as_deref(),
            notice: audience.notices.last().or(audience.told.as_ref()).map(String::as_str),
        };
        audience.view.show(&scene)
    }
}

/// Writes the report to standard output. Faults also go to standard error.
fn write(report: &Report<'_>, json: bool) -> io::Result<()> {
    let faults = report.faults_text();
    if report.ending == Ending::Killed {
        say("error: killed before the graph had stopped; the machine's own watchdog must act");
    }
    if !faults.is_empty() {
        say(faults.trim_end());
    }
    let level = if report.strict { "error" } else { "warning" };
    report.not_kept().for_each(|it| say(&format!("{level}: {}", it.to_line())));
    let mut out = stdout().lock();
    match json {
        true => writeln!(out, "{}", report.to_json())?,
        false => out.write_all(report.to_text().as_bytes())?,
    }
    out.flush()
}
