//! Kind `recorder`: writes every message and every cycle of the core to MCAP files.
//!
//! `gather` takes cycles from the run and makes batches of messages; `writer`, a thread of its own,
//! writes them into parts; `earlier` mends parts that were not finished because of a kill. The
//! contents of the files are described in `sinew_recording::format`.

mod earlier;
mod folder;
mod gather;
mod opening;
mod told;
mod writer;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, ParameterValue, RunsIn};
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_recording::cycle::CycleLayout;
use sinew_recording::topics::cycle_topic;
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo, Watch};
use sinew_spec::plan::{Node, Plan};

use self::earlier::{CycleTopic, Earlier};
use self::folder::{Folder, Refused};
use self::gather::Gather;
use self::opening::opening;
use self::told::{Beside, Row};
use self::writer::{Parts, Rotation, SLOW, Writer};

/// Interval between two polls of the core.
const LOOK: Duration = Duration::from_millis(20);
/// Most polls at the end: for a core at 1 kHz one of them takes everything that the core keeps, two
/// seconds.
const LAST_LOOKS_MAX: usize = 16;
/// Shortest interval between two lines about lost cycles.
const LINE: Duration = Duration::from_secs(1);

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "recorder",
    runs_in: RunsIn::Observer,
    doc: "Writes every message of every link of the core, every cycle of every realtime thread, \
          and the events of the run, to MCAP files, which Foxglove opens and 'sinew replay' feeds \
          back. The core never waits for it: it reads the records of the cycles, which last for \
          two seconds. Cycles that are lost, because it was too slow or the disk full, are \
          counted, logged and marked in the file. A file without an end is mended at the next \
          start. A folder that cannot be written is a fault, and the domain's restart policy \
          decides.",
    ports: &[],
    parameters: &[
        Parameter::new("folder", ParameterType::Path).or("recordings").doc(
            "The folder of the files, relative to the folder of the spec; created if missing. The \
             name of each file has the graph, its time of beginning and its number in the run. \
             Each recorder needs a folder of its own.",
        ),
        Parameter::new("part_mib", ParameterType::Integer { min: 1, max: 65_536 })
            .or("256")
            .unit("MiB")
            .doc("A file of this length is finished, and the next one is begun."),
        Parameter::new("keep", ParameterType::Integer { min: 0, max: 1_000_000 })
            .or("32")
            .unit("files")
            .doc(
                "Most files of this graph that are kept in the folder, those of earlier runs \
                 included; the oldest are removed first. 0 keeps all.",
            ),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let rotation = Rotation {
        part_bytes: (parameters.integer("part_mib") as u64) << 20,
        keep: parameters.integer("keep") as usize,
    };
    Ok(Box::new(Recorder { folder: parameters.path("folder"), rotation, taken: None }))
}

struct Recorder {
    folder: PathBuf,
    rotation: Rotation,
    /// Held from the start on: while it is open, no other recorder gets the folder.
    taken: Option<File>,
}

impl Service for Recorder {
    fn check(&self, plan: &Plan, node: usize) -> Result<(), Vec<Refusal>> {
        let (before, this) = (&plan.nodes[..node], &plan.nodes[node]);
        let is_same =
            |other: &&Node| other.kind.name == INFO.name && folder_of(other) == folder_of(this);
        let Some(other) = before.iter().find(is_same) else { return Ok(()) };
        let message = format!("node '{}' records into this folder already", other.name);
        Err(vec![Refusal::new(
            this.span_of("folder"),
            message,
            "give each recorder a separate folder",
        )])
    }

    fn start(&mut self) -> Result<(), Fault> {
        let wrong = |error| unwritable(&self.folder, &error);
        fs::create_dir_all(&self.folder).map_err(wrong)?;
        let may = access(&self.folder, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|error| wrong(error.into()))?;
        self.taken = Some(folder::take(&self.folder).map_err(|refused| match refused {
            Refused::Unusable(error) => wrong(error),
            Refused::Taken(by) => taken(&self.folder, by),
        })?);
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut ongoing = Ongoing::begin(&self.folder, self.rotation, io)?;
        while io.wait(LOOK) {
            ongoing.look(io.watch());
        }
        // If the run ends, the core has ended before, and its last cycles are taken here. If only
        // the recorder ends, cycles keep coming, hence the limit.
        for _ in 0..LAST_LOOKS_MAX {
            if !ongoing.look(io.watch()) {
                break;
            }
            io.beat();
        }
        ongoing.end(|| io.beat());
        Ok(())
    }
}

fn unwritable(folder: &Path, error: &io::Error) -> Fault {
    fault!(
        "cannot write recordings to '{}': {error}; make it writable, or name another 'folder'",
        folder.display()
    )
}

fn taken(folder: &Path, by: Option<u32>) -> Fault {
    let by = by.map_or(String::new(), |process| format!(", process {process},"));
    fault!(
        "another recorder{by} writes into '{}'; end that run, or name another 'folder'",
        folder.display()
    )
}

/// The folder of a recorder's node, as it is written.
pub fn folder_in(node: &Node) -> &str {
    let place = INFO.parameters.iter().position(|row| row.name == "folder");
    match place.and_then(|at| node.values.get(at)) {
        Some(ParameterValue::Text(path)) => path,
        _ => "",
    }
}

/// The folder of a recorder's node, as a normalised path.
fn folder_of(node: &Node) -> PathBuf {
    let mut folder = PathBuf::new();
    for step in Path::new(folder_in(node)).iter().filter(|step| *step != ".") {
        match step == ".." && folder.file_name().is_some_and(|name| name != "..") {
            true => drop(folder.pop()),
            false => folder.push(step),
        }
    }
    folder
}

/// A recording while it is made.
struct Ongoing {
    gather: Gather,
    told_by: Beside,
    writer: Writer,
    /// Cycles that were dropped because the disk was too slow. `told` holds the cycles dropped and
    /// lost (because this process was too slow) that were last reported, and `told_at` the time.
    dropped: u64,
    told: (u64, u64),
    told_at: Instant,
}

impl Ongoing {
    /// Continues after the recordings of earlier lives, if there are any.
    fn begin(path: &Path, rotation: Rotation, io: &mut ServiceIo) -> Result<Ongoing, Fault> {
        let (mut opening, lines) = opening(io.watch());
        let folder = Folder::new(path, &io.watch().plan().name);
        let wrong = |error| unwritable(path, &error);
        let threads = cycles(io.watch());
        let earlier = Earlier::find(&folder, &opening.head.run, &threads, || io.beat());
        let earlier = earlier.map_err(wrong)?;
        lines.iter().chain(&earlier.lines).for_each(tell);
        opening.head.part = earlier.part;
        let known = earlier.last.iter().flatten().map(|mark| mark.life).max().unwrap_or(0);
        let mut gather = Gather::new(io.watch(), opening.head.clock_offset_ns, earlier.last);
        // Cycles that the core overwrote before the first poll are either on the disk, or a gap
        // reports them.
        gather.look(io.watch());
        let told = (0, lost(io.watch()));
        let mut parts = Parts::new(opening, folder, rotation);
        parts.begin_first(gather.life().unwrap_or(known)).map_err(wrong)?;
        let writer = Writer::start(parts).map_err(wrong)?;
        let told_by = Beside::begin(io.watch(), earlier.event).map_err(wrong)?;
        Ok(Ongoing { gather, told_by, writer, dropped: 0, told, told_at: Instant::now() })
    }

    /// Takes what has come since the last call; returns whether there was anything.
    fn look(&mut self, watch: &mut Watch) -> bool {
        let any = self.gather.look(watch);
        self.told_by.rows().for_each(|row| note(&mut self.gather, &row));
        self.hand_over();
        if self.told_at.elapsed() >= LINE {
            self.tell(watch);
        }
        any
    }

    fn hand_over(&mut self) {
        while let Some(batch) = self.gather.ready(false) {
            if let Some(batch) = self.writer.write(batch) {
                self.dropped += batch.cycles();
                self.gather.missed(batch.life, batch.missing(SLOW));
                return;
            }
        }
    }

    /// Reports what was lost since the last report.
    fn tell(&mut self, watch: &Watch) {
        let now = (self.dropped, lost(watch));
        let (dropped, lost) = (now.0 - self.told.0, now.1 - self.told.1);
        if dropped > 0 {
            tell(format_args!(
                "{dropped} cycles dropped, the disk is too slow; record to a faster one"
            ));
        }
        if lost > 0 {
            tell(format_args!(
                "{lost} cycles lost: this process read them too late; give it more CPU time"
            ));
        }
        (self.told, self.told_at) = (now, Instant::now());
    }

    /// Writes the rest and finishes the part.
    fn end(mut self, beat: impl FnMut()) {
        self.told_by.end().for_each(|row| note(&mut self.gather, &row));
        let last = std::iter::from_fn(|| self.gather.ready(true));
        self.writer.end(last, beat);
    }
}

fn note(gather: &mut Gather, row: &Row) {
    match row {
        Row::Event(event) => gather.note_event(event),
        Row::Clock(host, clock) => gather.note_clock(host, *clock),
    }
}

/// Cycles that the core overwrote before they were read.
fn lost(watch: &Watch) -> u64 {
    watch.threads().map(|id| watch.lost(id)).sum()
}

/// Topic and layout of each thread's cycles.
fn cycles(watch: &Watch) -> Vec<CycleTopic> {
    let plan = watch.plan();
    watch.threads().map(|id| (cycle_topic(plan, id), CycleLayout::of(plan, id))).collect()
}
