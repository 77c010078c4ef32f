//! `sinew scope`: numbers of the core at full rate, on a terminal, as figures, as files.

mod answer;
mod arguments;
mod source;

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_control::traces::RunLayout;
use sinew_scope::{
    Capture, Doing, Scope, ScopeSettings, Sweep, Trace, all, find, write_csv, write_mcap,
};
use sinew_view::{ScopeScreen, ScopeWish, draws, printable};

pub(crate) use self::arguments::ScopeArgs;
use self::source::Source;
use crate::answer::{FAULTED, print, say};
use crate::reach::{Failure, choose};

/// Time between two reads of the traces, which hold a second of cycles at least.
const SPACING: Duration = Duration::from_millis(20);

/// Carries out the command.
pub(crate) fn run(args: &ScopeArgs) -> ExitCode {
    match carry_out(args) {
        Ok(status) => status,
        Err(failure) => failure.report(args.json),
    }
}

fn carry_out(args: &ScopeArgs) -> Result<ExitCode, Failure> {
    let on_screen = !args.is_answered_once() && draws(&stdout());
    let mut source = Source::open(choose(args.run.as_deref())?)?;
    if args.list {
        return Ok(list(&source.layout, args.json));
    }
    let chosen = Chosen::of(args, &source.layout)?;
    let settings = args.settings(&source.layout, &chosen, on_screen).map_err(Failure::request)?;
    // Records that are in the traces already are the past: they may precede a trigger, but do not
    // trigger.
    let rolling = ScopeSettings { sweep: Sweep::Roll, ..settings };
    let scope = Scope::new(&source.layout, chosen.traces.clone(), rolling);
    let mut scope = scope.map_err(Failure::request)?;
    // The settings are checked first, whether the past is shown or not.
    settings.check(scope.traces().len(), scope.period_ns()).map_err(Failure::request)?;
    source.read(&mut |thread, record| scope.take(thread, record));
    scope.set(settings).map_err(Failure::request)?;
    match on_screen {
        true => show(&mut source, &mut scope),
        false => answer_once(args, &mut source, &mut scope, &chosen),
    }
}

/// The traces, each once, and which of them are the input and the output of a response.
struct Chosen {
    traces: Vec<Trace>,
    input: Option<usize>,
    output: Option<usize>,
    trigger: Option<usize>,
}

impl Chosen {
    fn of(args: &ScopeArgs, layout: &RunLayout) -> Result<Chosen, Failure> {
        let mut traces: Vec<Trace> = Vec::new();
        for name in &args.traces {
            for found in find(layout, name).map_err(Failure::request)? {
                place_of(&mut traces, found);
            }
        }
        let mut one = |name: Option<&str>| -> Result<Option<usize>, Failure> {
            let found = name.map(|name| sinew_scope::find_one(layout, name)).transpose();
            let found = found.map_err(Failure::request)?;
            Ok(found.map(|found| place_of(&mut traces, found)))
        };
        let pair = args.bode.as_deref();
        let input = one(pair.map(|pair| pair[0].as_str()).or(args.input.as_deref()))?;
        let output = one(pair.map(|pair| pair[1].as_str()))?;
        let trigger = one(args.trigger().map_err(Failure::request)?.map(|it| it.0).as_deref())?;
        if traces.is_empty() {
            let text = "name what to show, such as NODE.SIGNAL or NODE.PORT; 'sinew scope --list' \
                        lists the names";
            return Err(Failure::request(text.into()));
        }
        Ok(Chosen { traces, input, output, trigger })
    }
}

fn place_of(traces: &mut Vec<Trace>, trace: Trace) -> usize {
    let known = traces.iter().position(|known| known.name == trace.name);
    known.unwrap_or_else(|| {
        traces.push(trace);
        traces.len() - 1
    })
}

/// Every trace of a run, a line each.
fn list(layout: &RunLayout, json: bool) -> ExitCode {
    let traces = all(layout);
    if json {
        return print(&format!("{:#}\n", answer::list(layout, &traces)), ExitCode::SUCCESS);
    }
    let width = traces.iter().map(|trace| trace.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for trace in &traces {
        let (name, unit) = (printable(&trace.name), printable(&trace.unit));
        text += &format!("{name:<width$}  {unit:<8}  {}\n", printable(&trace.doc));
    }
    if !layout.observed {
        say("the records of this run hold signals only; with 'sinew run --observe' messages too");
    }
    print(&text, ExitCode::SUCCESS)
}

/// Shows the scope until the run ends or somebody presses q.
fn show(source: &mut Source, scope: &mut Scope) -> Result<ExitCode, Failure> {
    let name = source.name.clone();
    let cannot = |error| Failure::run(format!("cannot go on showing {name}: {error}"));
    let mut screen = ScopeScreen::open(&source.graph).map_err(cannot)?;
    loop {
        source.read(&mut |thread, record| scope.take(thread, record));
        let silence = scope.idle(source.silent_ns()).then(|| source.why());
        match screen.show(scope, silence.as_deref()).map_err(cannot)? {
            Some(ScopeWish::Quit) => return Ok(ExitCode::SUCCESS),
            Some(ScopeWish::Export(capture)) => screen.say(export(&source.graph, &capture)),
            None => {}
        }
        if !source.wait(Duration::ZERO)? {
            drop(screen);
            return source.ended();
        }
    }
}

/// Writes a capture into the current folder, under a number that is free. Returns what became of
/// it.
fn export(graph: &str, capture: &Capture) -> String {
    let name = |number: u32, ending: &str| format!("{graph}-{number}.{ending}");
    let is_free =
        |number: &u32| ["csv", "mcap"].iter().all(|it| !Path::new(&name(*number, it)).exists());
    // If all numbers below 10000 are taken, 10000 is used, and may be overwritten.
    let number = (1..10_000).find(is_free).unwrap_or(10_000);
    let (csv, mcap) = (name(number, "csv"), name(number, "mcap"));
    match write_files(capture, Some(Path::new(&csv)), Some(Path::new(&mcap))) {
        Ok(()) => format!("written: {csv}, {mcap}"),
        Err(text) => text,
    }
}

fn write_files(capture: &Capture, csv: Option<&Path>, mcap: Option<&Path>) -> Result<(), String> {
    let cannot = |path: &Path, error: std::io::Error| {
        format!("cannot write '{}': {error}; name another file", path.display())
    };
    if let Some(path) = csv {
        let written = File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            write_csv(capture, &mut file)?;
            file.flush()
        });
        written.map_err(|error| cannot(path, error))?;
    }
    if let Some(path) = mcap {
        let written = File::create(path).and_then(|file| write_mcap(capture, BufWriter::new(file)));
        written.map_err(|error| cannot(path, error))?;
    }
    Ok(())
}

/// Takes one capture and answers with what was asked for.
fn answer_once(
    args: &ScopeArgs,
    source: &mut Source,
    scope: &mut Scope,
    chosen: &Chosen,
) -> Result<ExitCode, Failure> {
    let Taken { capture, lacks } = take_one(args, source, scope)?;
    let written = write_files(&capture, args.csv.as_deref(), args.mcap.as_deref());
    written.map_err(Failure::run)?;
    let answer = answer::Reading { args, graph: &source.graph, capture: &capture, chosen };
    let text = match args.json {
        true => format!("{:#}\n", answer.to_json(lacks.as_deref())),
        false => answer.to_text(),
    };
    let status = print(&text, ExitCode::SUCCESS);
    let Some(lacks) = lacks else { return Ok(status) };
    say(&format!("error: {lacks}"));
    Ok(ExitCode::from(FAULTED))
}

/// A capture. If the core stopped before its end, also why it is incomplete.
struct Taken {
    capture: Arc<Capture>,
    lacks: Option<String>,
}

/// Reads until the capture is there. A window stays open while the core is stopped: it may start
/// again.
fn take_one(args: &ScopeArgs, source: &mut Source, scope: &mut Scope) -> Result<Taken, Failure> {
    let window = Duration::from_nanos(scope.settings().window_ns);
    let begun = Instant::now();
    let limit = args.wait.saturating_add(window);
    let mut seen = Seen::default();
    loop {
        source.read(&mut |thread, record| {
            scope.take(thread, record);
            seen.take(record.start_ns());
        });
        let silence = scope.idle(source.silent_ns()).then(|| source.silent_ns());
        let is_full = match scope.settings().sweep {
            Sweep::Roll => seen.elapsed(silence) >= window,
            Sweep::Auto | Sweep::Normal => !scope.capture().is_empty(),
            Sweep::Single => scope.doing() == Doing::Done,
        };
        if is_full {
            return Ok(Taken {
                capture: seen.capture(scope),
                lacks: silence.map(|_| source.why()),
            });
        }
        let has_ended = !source.wait(SPACING)?;
        let is_late = begun.elapsed() >= limit && seen.is_waiting(scope);
        if has_ended {
            source.read(&mut |thread, record| scope.take(thread, record));
            scope.end();
        }
        if has_ended || is_late && silence.is_some() {
            let (capture, why) = (scope.capture(), source.why());
            return match capture.is_empty() {
                true => Err(Failure::run(why)),
                false => Ok(Taken { capture, lacks: Some(why) }),
            };
        }
        if is_late {
            return Err(Failure::run(too_late(args, scope)));
        }
    }
}

/// The start times of the cycles that were read.
#[derive(Default)]
struct Seen {
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Seen {
    fn take(&mut self, start_ns: u64) {
        self.first_ns.get_or_insert(start_ns);
        self.last_ns = self.last_ns.max(start_ns);
    }

    /// Time since the first cycle, including a silence after the last one.
    fn elapsed(&self, silence_ns: Option<u64>) -> Duration {
        let until_ns = self.last_ns.saturating_add(silence_ns.unwrap_or(0));
        Duration::from_nanos(self.first_ns.map_or(0, |first| until_ns.saturating_sub(first)))
    }

    /// Whether the capture has not begun yet.
    fn is_waiting(&self, scope: &Scope) -> bool {
        match scope.settings().sweep {
            Sweep::Roll => self.first_ns.is_none(),
            _ => scope.doing() == Doing::Waiting,
        }
    }

    /// Without a trigger the capture begins with the first cycle.
    fn capture(&self, scope: &Scope) -> Arc<Capture> {
        match (scope.settings().sweep, self.first_ns) {
            (Sweep::Roll, Some(first_ns)) => Arc::new(scope.window(first_ns)),
            _ => scope.capture(),
        }
    }
}

fn too_late(args: &ScopeArgs, scope: &mut Scope) -> String {
    let wait_s = args.wait.as_secs_f64();
    let trigger = scope.settings().trigger;
    let rolling = ScopeSettings { sweep: Sweep::Roll, ..*scope.settings() };
    let newest: Option<Arc<Capture>> = scope.set(rolling).ok().map(|()| scope.capture());
    let captured = newest.as_ref().and_then(|capture| capture.traces.get(trigger.trace));
    let was = captured.and_then(sinew_scope::figures).map_or("has no value".into(), |figures| {
        format!("was between {} and {} in the last window", figures.min, figures.max)
    });
    format!(
        "no trigger within {wait_s} s: '{}' {was}; expected {} {}; change --level, --slope or \
         --wait",
        scope.traces()[trigger.trace].name,
        trigger.slope.word(),
        trigger.level
    )
}
