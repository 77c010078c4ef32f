//! What a context switch costs: directly, and indirectly by data that leaves the caches. Two sides
//! on one CPU take turns; each walks an array of its own at every turn. A turn is compared with the
//! same walk through the same pages without a switch.

mod array;
mod baton;
mod case;
mod claims;
mod others;
mod sides;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sinew_core::clock::Clock;
use sinew_core::privileges::Obtained;
use sinew_core::sys::Region;
use sinew_figures::{Distribution, Machine};

use self::case::{AXES, SwitchCase};
use self::others::{OTHERS, OtherRow};
pub(crate) use self::sides::PART;
use self::sides::{Order, PRIORITY, SideCount, Told};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::process::Process;
use crate::harness::{Gone, Life, Placement};
use crate::report::{Figure, Row, ScenarioReport};
use crate::rounds::{Contender, Contenders, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "switch",
    about: "what a context switch costs, directly and through cold caches, compared with the \
            same walk through memory without a switch",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

/// Rounds, if no other number is requested: each has new processes, and so new pages.
const ROUNDS: u32 = 7;
/// How long a row is measured in each of them; half of that time is with switches.
const BUDGET: Duration = Duration::from_millis(160);
/// The same for the short form, which has as many rounds.
const QUICK_BUDGET: Duration = Duration::from_millis(60);
/// Time to start both sides and to end them.
const AROUND: Duration = Duration::from_millis(40);
/// A round that takes this long hangs: the largest array takes far less.
const ROUND_MAX: Duration = Duration::from_secs(40);
/// How often the lab checks whether a side is alive.
const LOOK: Duration = Duration::from_millis(100);

/// Name of the figure: switches, as counted by the kernel, over turns, of the side and round with
/// the fewest. Below one, some turn was without a switch.
const SWITCHES: &str = "switches_per_turn_min";

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    // Interrupts often go to the first CPU.
    let cpu = *request.cpus.last().ok_or_else(|| CannotRun("there is no CPU".into()))?;
    let bench = Bench {
        cpu,
        clock: Clock::calibrate(),
        budget: if request.quick { QUICK_BUDGET } else { BUDGET },
        got: RefCell::default(),
    };
    let cases = if request.quick { case::quick() } else { case::all() };
    let mut rows: Contenders<'_> = vec![];
    for case in cases {
        rows.push((case.row(), Box::new(Switching { bench: &bench, case, rounds: 0 })));
    }
    for other in &OTHERS {
        rows.push((other.row(), Box::new(OtherRow { other, cpu })));
    }
    let rows = request.only.pick(rows, |(row, _)| &row.axes)?;
    let rounds = request.rounds_or(ROUNDS, ROUNDS);
    let mut report = measure(SCENARIO.name, request.quick, rounds, rows, session);
    let l2 = l2(&report.machine);
    report.tables = claims::tables(&report.rows, l2);
    report.verdicts = claims::verdicts(&report.rows, l2);
    report.notes = notes(&bench, l2);
    Ok(report)
}

/// Bytes of a CPU's second-level cache for data.
fn l2(machine: &Machine) -> Option<usize> {
    let is_l2 = |level: u32, ty: &str| level == 2 && ty != "Instruction";
    let cache = machine.caches.iter().find(|cache| is_l2(cache.level, &cache.ty))?;
    Some(cache.size_kib as usize * 1024)
}

fn notes(bench: &Bench, l2: Option<usize>) -> Vec<String> {
    let got: Vec<_> = bench.got.borrow().iter().cloned().collect();
    let refused = got.iter().any(|words| *words != format!("SCHED_FIFO {PRIORITY}"));
    let mut got = if got.is_empty() { "nothing ran".into() } else { got.join(" and ") };
    if refused {
        got.push_str(
            " (refused: other work on this CPU affects the figures; allow it with 'rtprio 10' in \
             /etc/security/limits.conf or CAP_SYS_NICE)",
        );
    }
    let l2 = l2.map_or("unknown".into(), |l2| sinew_figures::units::size(l2 as f64));
    let mut notes = vec![
        format!(
            "both sides on CPU {}; asked for SCHED_FIFO {PRIORITY}, the kernel says: {got}; this \
             CPU's L2 by the kernel: {l2}, the source's machine had 512 KiB",
            bench.cpu
        ),
        "turn: from the moment that a side has the turn, through its walk and the hand-over, until \
         the other side has the turn; walk alone: the same walk through the same pages by the same \
         thread, without a switch, in between; calls alone: the calls of a hand-over and of a \
         wait, without another side"
            .into(),
        "every round has new processes, and so other pages; ratios are of medians of one round: \
         the turn over the walk alone"
            .into(),
        "every turn walks all words of an array, as in the source's program: a stride of 128 B \
         takes 16 passes; random: one word of every line, which names the next line"
            .into(),
        "switches per turn: switches by the kernel's count, voluntary or not, divided by \
         hand-overs, of the side and the round with the fewest; for yield, every call of \
         sched_yield is a hand-over. A row below one is marked, and no verdict uses it"
            .into(),
        "the source: a talk on Li, Ding and Shen, 'Quantifying The Cost of Context Switch', 2007; \
         their cost is a turn minus the walk and minus the calls of the pipe in a single process"
            .into(),
    ];
    notes.extend(OTHERS.iter().map(|other| other.about.into()));
    notes
}

/// What all rows share.
struct Bench {
    cpu: u32,
    clock: Clock,
    budget: Duration,
    /// The scheduling that the kernel gave the sides, in words.
    got: RefCell<BTreeSet<String>>,
}

/// A row.
struct Switching<'a> {
    bench: &'a Bench,
    case: SwitchCase,
    /// Rounds before this one.
    rounds: u64,
}

impl Contender for Switching<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Bench { cpu, clock, budget, .. } = *self.bench;
        let seed = self.rounds;
        let order = Order { is_near: true, case: self.case, cpu, budget, clock, seed };
        self.rounds += 1;
        let told = both(order).map_err(|Gone(why)| why)?;
        self.bench.got.borrow_mut().extend([told.near, told.far].map(in_words));
        add(row, &told, self.case.array > 0, clock)
    }

    fn takes(&self) -> Duration {
        self.bench.budget + AROUND
    }
}

fn in_words(side: SideCount) -> String {
    let SideCount { policy, priority, .. } = side;
    let obtained = Obtained { policy, priority, ..Obtained::default() };
    format!("{} {priority}", obtained.policy_name())
}

/// Adds a round, with the proof that its turns were switches.
fn add(row: &mut Row, told: &Told, has_array: bool, clock: Clock) -> Result<(), String> {
    let collect = |values: &[u64]| {
        let mut all = Distribution::new();
        values.iter().for_each(|ns| all.add(*ns));
        let median = all.median_of_steps(clock.step_ns());
        median.map(|median| (all, median)).ok_or("too few turns; measure when the CPU is less busy")
    };
    let (walks, walk_ns) = collect(&told.walks)?;
    let (turns, turn_ns) = collect(&told.turns)?;
    row.measure_mut("turn").add_round(&turns, turn_ns, None);
    row.measure_mut("walk_alone").add_round(&walks, walk_ns, None);
    if !told.calls.is_empty() {
        let (calls, calls_ns) = collect(&told.calls)?;
        row.measure_mut("calls_alone").add_round(&calls, calls_ns, None);
    }
    let share = |side: SideCount| side.switches as f64 / side.handed.max(1) as f64;
    let least = share(told.near).min(share(told.far));
    let before = row.figure(SWITCHES).unwrap_or(f64::INFINITY);
    row.figures = vec![Figure::of(SWITCHES, "", least.min(before))];
    if has_array {
        let ratio = row.measure("turn").zip(row.measure("walk_alone"));
        let ratio = ratio.and_then(|(turn, walk)| turn.over(walk));
        row.figures.extend(ratio.map(|it| Figure::of("turn_over_walk_alone", "", it.median)));
    }
    if least < 1.0 && before >= 1.0 {
        row.notes.push(
            "not every turn was a switch, by the kernel's count: no table or verdict uses this row"
                .into(),
        );
    }
    Ok(())
}

/// Starts both sides, waits for the result of the near one, and ends both.
fn both(order: Order) -> Result<Told, Gone> {
    let failed = |error: std::io::Error| Gone(format!("cannot open the turn: {error}"));
    let words = Region::shared("sinew-lab-switch", 4096).map_err(failed)?;
    let file = words.file().ok_or_else(|| Gone("the turn has no file".into()))?;
    let [here, there] = baton::open(order.case.by).map_err(failed)?;
    let (mut lab, end) = UnixStream::pair().map_err(failed)?;
    let near_ends: Vec<BorrowedFd<'_>> = here.iter().map(AsFd::as_fd).collect();
    let far_ends: Vec<BorrowedFd<'_>> = there.iter().map(AsFd::as_fd).collect();
    let start = |order: Order, descriptors: &[BorrowedFd<'_>]| {
        Process::start(PART.name, &order.to_text(), descriptors, order.cpu)
    };
    let (near, far) = match order.case.between {
        Placement::Threads => {
            let all = [&[file, end.as_fd()][..], &near_ends, &far_ends].concat();
            (start(order, &all)?, None)
        }
        Placement::Processes => {
            let other = Order { is_near: false, seed: !order.seed, ..order };
            let far = start(other, &[&[file][..], &far_ends].concat())?;
            (start(order, &[&[file, end.as_fd()][..], &near_ends].concat())?, Some(far))
        }
    };
    drop((end, here, there));
    let told = listen(&mut lab, far.as_ref().map(Process::life));
    let told = near.named("the near side").join(told);
    match far {
        Some(far) => far.join(told),
        None => told,
    }
}

/// The whole result of the near side. An error if the near side ends early, if the far side ends,
/// or if neither says anything.
fn listen(lab: &mut UnixStream, far: Option<&Life>) -> Result<Told, Gone> {
    let failed = |error: std::io::Error| Gone(format!("cannot hear the near side: {error}"));
    lab.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let (began, mut text, mut part, mut is_over) = (Instant::now(), vec![], [0; 1 << 14], false);
    loop {
        match lab.read(&mut part) {
            Ok(0) => break,
            Ok(bytes) => text.extend_from_slice(&part[..bytes]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // The far side ends before the near side sends its result, so look once more.
                if is_over {
                    return Err(Gone("the far side has ended".into()));
                }
                is_over = far.is_some_and(Life::is_over);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if began.elapsed() > ROUND_MAX {
            return Err(Gone(format!("nothing came within {} s", ROUND_MAX.as_secs())));
        }
    }
    if text.is_empty() {
        return Err(Gone("the near side has ended".into()));
    }
    serde_json::from_slice(&text).map_err(|error| Gone(format!("the near side said: {error}")))
}

#[cfg(test)]
mod tests;
