//! What a link to a guest costs: round trips by how the payload crosses, how both sides wait and on
//! how many CPUs. Beside them are a raw ring in the same emulator and a table from the literature.

mod case;
mod ends;
mod life;
mod paper;
mod plan;
#[path = "../../../../guest/trials/src/ring.rs"]
mod ring;
mod verdicts;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew_agent::boards::BoardRow;
use sinew_agent::image;
use sinew_core::clock::Clock;
use sinew_core::sys::Region;
use sinew_figures::Distribution;
use sinew_spec::plan::Board;

use self::case::{AXES, GuestCase, QUICK_SIZES};
use self::life::Life;
use super::jung_kim::{PAPER, SIZES};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::{Cpus, Gone, on_thread};
use crate::report::{Measure, Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "guest",
    about: "round trips over a link to an emulated guest: ratios by size, copy, wait and CPUs",
    axes: AXES,
    takes_rivals: false,
    takes_image: true,
    run,
};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 7;
/// How long a row is measured in each round, after the same time again that does not count.
const SHARE: Duration = Duration::from_millis(60);
/// The same of the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_millis(40);
/// Pause before a row, ns: nodes of earlier rows still poll for a while.
const SETTLE_NS: u64 = 50_000_000;
/// About how long a start of the guest takes, spread over the rows of a size.
const START: Duration = Duration::from_millis(50);

/// The path of the image from the top of the repository.
const IMAGE: &str = "guest/target/armv7a-none-eabi/release/trials";
/// Bytes of the carve-out.
const CARVE_OUT: usize = 64 << 20;

/// The first words of the report.
const WARNING: &str = "the guest is emulated: ratios count here, not times";

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let board = BoardRow::of(Board::Virt);
    let path = request.image.clone().unwrap_or_else(|| PathBuf::from(IMAGE));
    let image = image::read(&path, board)
        .map_err(|why| CannotRun(format!("{why}; --image names another one")))?;
    if let Some(missing) = (board.missing)() {
        return Err(CannotRun(missing));
    }
    let (Some(&near), Some(&far)) = (request.cpus.first(), request.cpus.last()) else {
        return Err(CannotRun("there is no CPU".into()));
    };
    let bench = Bench {
        path: &path,
        board,
        image,
        memory: Region::shared("sinew-lab-guest", CARVE_OUT)
            .map_err(|error| CannotRun(format!("no memory for the carve-out: {error}")))?,
        cpus: Cpus { near, far },
        clock: Clock::calibrate(),
        share: if request.quick { QUICK_SHARE } else { SHARE },
        life: RefCell::default(),
        up: RefCell::default(),
    };
    let sizes = if request.quick { &QUICK_SIZES[..] } else { &SIZES[..] };
    let rows = GuestCase::all(sizes).into_iter().map(|case| (case, case.row())).collect();
    let rows = request.only.pick(rows, |(_, row)| &row.axes)?;
    let contenders = rows.into_iter().map(|(case, row)| bench.contender(case, row)).collect();
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let mut report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    report.rows.push(bench.up());
    report.warning = Some(WARNING.into());
    report.tables = paper::tables(&report.rows, sizes);
    report.verdicts = verdicts::of(&report.rows);
    report.notes = NOTES.map(Into::into).to_vec();
    report.notes.push(format!(
        "two CPUs: Linux's side on CPU {near}, the emulator on CPU {far}; one: both on CPU {near}, \
         where neither can poll, so both sleep"
    ));
    Ok(report)
}

const NOTES: [&str; 6] = [
    "the emulator cannot show a cache that was not cleaned or invalidated, because its memory is \
     always coherent, nor a load or store out of order where x86 keeps the order. Tests show \
     these: the same links under loom (cargo test -p sinew-link, see there), and counts of the \
     barriers in the guest's code and of the cache operations in its port layer (cargo test -p \
     sinew-agent --test trials)",
    "round trip: Linux sends, the guest answers, Linux has the answer; descriptor: offset and \
     length of a buffer that neither side reads; read: the guest adds up the words of the buffer; \
     copied: the payload is copied into the link and out of it, and both again on the way back",
    "ring: two positions, acquire and release, nothing else. link and ring: the guest cleans and \
     invalidates its caches of shared memory, as in every graph; a link also goes through the \
     ports of its node. bare_link and bare_ring: without both, which is right on this board and \
     wrong on a chip without coherent memory",
    "polling: no side sleeps; doorbell: both sides sleep at once, Linux in poll on an eventfd, \
     FreeRTOS until an interrupt; spin_then_doorbell, the default: both sides poll for about 20 us \
     first",
    "links and rings hold two messages; only one is on its way at a time",
    PAPER,
];

/// What all rows share.
struct Bench<'a> {
    path: &'a Path,
    board: &'static BoardRow,
    image: image::ImageFile,
    memory: Region,
    cpus: Cpus,
    clock: Clock,
    share: Duration,
    /// The running guest of the size that was measured last.
    life: RefCell<Option<Life>>,
    /// Time from each start to the first answer, ns.
    up: RefCell<Vec<u64>>,
}

impl<'a> Bench<'a> {
    fn contender(&'a self, case: GuestCase, mut row: Row) -> (Row, Box<dyn Contender + 'a>) {
        let alone = case.polls() && !self.cpus.are_two();
        let why = || "both sides poll: that needs two CPUs, and there is one".into();
        row.skipped = alone.then(why);
        (row, Box::new(Contending { bench: self, case }))
    }

    /// How soon the guest was up, for all starts.
    fn up(&self) -> Row {
        let mut row = Row::of(&[("access", "start")]);
        let measure = row.measure_mut("guest_up");
        for &ns in self.up.borrow().iter() {
            add(measure, &[ns]);
        }
        row
    }

    /// Trips of a case in the guest of its size, ns.
    fn trips(&self, case: GuestCase) -> Result<Vec<u64>, String> {
        let mut held = self.life.borrow_mut();
        if held.as_ref().is_none_or(|life| life.bytes() != case.bytes) {
            // The old guest must end first: two emulators would share the CPUs.
            *held = None;
            let life = Life::start(self, case.bytes)?;
            self.up.borrow_mut().push(life.up_ns());
            *held = Some(life);
        }
        let life = held.as_mut().ok_or("it has just started")?;
        let Cpus { near, far } = self.cpus;
        life.move_to(if case.on_two { far } else { near })?;
        let (clock, share) = (self.clock, self.share);
        let mut ends = life.ends(case);
        let trips = on_thread(near, || {
            ends.trips(clock, SETTLE_NS.max(share.as_nanos() as u64))?;
            ends.trips(clock, share.as_nanos() as u64)
        });
        drop(ends);
        trips.map_err(|Gone(why)| format!("{why}; {}", life.progress()))
    }
}

/// Adds a round.
fn add(measure: &mut Measure, trips: &[u64]) {
    let mut sorted = trips.to_vec();
    sorted.sort_unstable();
    let (last, mut all) = (sorted.len() - 1, Distribution::new());
    sorted.iter().for_each(|&ns| all.add(ns));
    let median = u64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]);
    measure.add_round(&all, median as f64, None);
}

struct Contending<'a> {
    bench: &'a Bench<'a>,
    case: GuestCase,
}

impl Contender for Contending<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let trips = self.bench.trips(self.case)?;
        add(row.measure_mut("round_trip"), &trips);
        Ok(())
    }

    fn takes(&self) -> Duration {
        START + Duration::from_nanos(SETTLE_NS) + self.bench.share
    }
}
