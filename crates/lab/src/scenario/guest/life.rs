//! A guest with nodes for all the ways of one size.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use sinew_agent::{GuestBells, GuestProgress, GuestSetup, Keeper};
use sinew_carve_out::{Order, RegionRow};
use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_link::{Shape, create};

use super::Bench;
use super::case::{Carriage, GuestCase, Over, Waiting};
use super::ends::{Linked, NearSide};
use super::plan::Plan;
use super::ring::{RingEnd, ring_len};

/// Longest time until a guest is up, ns.
const UP_NS_MAX: u64 = 30_000_000_000;

/// A guest that runs.
pub(super) struct Life {
    keeper: Keeper,
    memory: Region,
    plan: Plan,
    links: Vec<Option<Linked>>,
    /// Positions of both ends of each pair of rings.
    rings: Vec<u32>,
    up_ns: u64,
    printed: String,
}

impl Life {
    /// Starts a guest for payloads of this many bytes, and waits for its first answer.
    pub(super) fn start(bench: &Bench<'_>, bytes: usize) -> Result<Life, String> {
        let plan = Plan::of(bytes, &bench.image)?;
        let (memory, rows) = (bench.memory.clone(), plan.rows());
        let bells =
            GuestBells::of(&rows).map_err(|error| format!("cannot open the doorbells: {error}"))?;
        let mut links = vec![];
        for way in &plan.ways {
            clear(&memory, way.rings_at, bytes);
            links.push(linked(&memory, &way.rows, &bells)?);
        }
        let begun_ns = now_ns();
        let keeper = Keeper::start(GuestSetup {
            image: bench.path,
            board: bench.board,
            carve_out: memory.clone(),
            nodes: &plan.nodes,
            rows: &rows,
            bells,
        });
        let keeper = keeper.map_err(|error| format!("the guest does not start: {error}"))?;
        let rings = plan.ways.iter().map(|_| 0).collect();
        let mut life =
            Life { keeper, memory, plan, links, rings, up_ns: 0, printed: String::new() };
        life.until(begun_ns, GuestProgress::Ready)?;
        life.keeper.order(Order::Run);
        life.until(begun_ns, GuestProgress::Running)?;
        let first = GuestCase {
            crossing: Carriage::Descriptor,
            over: Over::Link,
            wait: Waiting::Polling,
            on_two: true,
            bytes,
        };
        life.ends(first).trip().map_err(|gone| gone.0)?;
        life.up_ns = now_ns() - begun_ns;
        Ok(life)
    }

    /// Bytes of a payload.
    pub(super) fn bytes(&self) -> usize {
        self.plan.bytes
    }

    /// Time from the start of the emulator to the first answer, ns.
    pub(super) fn up_ns(&self) -> u64 {
        self.up_ns
    }

    /// The state of the guest, and what it has printed.
    pub(super) fn progress(&mut self) -> String {
        let progress = self.look();
        format!("{progress}; it printed: {}", self.printed)
    }

    /// Linux's side of the way that a case takes.
    pub(super) fn ends(&mut self, case: GuestCase) -> NearSide<'_> {
        let at = self.plan.ways.iter().position(|way| way.suits(case));
        let at = at.expect("every case has a way: both come from the same few words");
        let way = &self.plan.ways[at];
        let words = self.memory.words();
        match &mut self.links[at] {
            Some(links) => {
                let buffer = &words[self.plan.buffer_at / 4..][..case.bytes / 4];
                let buffer_at = self.plan.buffer_at;
                NearSide::over_link(case, links, (buffer_at, buffer))
            }
            None => {
                let len = ring_len(case.bytes) / 4;
                let (there, back) = words[way.rings_at / 4..][..2 * len].split_at(len);
                let position = &mut self.rings[at];
                let stands = *position;
                let end = |words| RingEnd::resume(words, case.bytes, (), stands);
                NearSide::over_ring(case, (end(there), end(back)), position)
            }
        }
    }

    /// Moves all threads of the emulator to this CPU.
    pub(super) fn move_to(&self, cpu: u32) -> Result<(), String> {
        let process = self.keeper.process();
        let moved = || -> std::io::Result<()> {
            let mut cpus = CpuSet::new();
            cpus.set(cpu as usize);
            for thread in fs::read_dir(format!("/proc/{process}/task"))? {
                let number = thread?.file_name().to_str().and_then(|it| it.parse().ok());
                if let Some(thread) = number.and_then(Pid::from_raw) {
                    sched_setaffinity(Some(thread), &cpus)?;
                }
            }
            Ok(())
        };
        moved().map_err(|error| format!("the emulator cannot be kept on CPU {cpu}: {error}"))
    }

    fn look(&mut self) -> GuestProgress {
        let printed = &mut self.printed;
        self.keeper.look(&mut |line| {
            printed.push_str(line);
            printed.push_str("; ");
        })
    }

    fn until(&mut self, begun_ns: u64, wanted: GuestProgress) -> Result<(), String> {
        loop {
            match self.look() {
                found if found == wanted => return Ok(()),
                GuestProgress::Starting | GuestProgress::Ready
                    if now_ns() - begun_ns < UP_NS_MAX => {}
                _ => return Err(format!("the guest does not start: {}", self.progress())),
            }
            self.keeper.wait(Duration::from_millis(100));
        }
    }
}

/// Clears two rings.
fn clear(memory: &Region, at: usize, bytes: usize) {
    if at > 0 {
        let words = &memory.words()[at / 4..][..2 * ring_len(bytes) / 4];
        // Relaxed: the guest starts later.
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Makes links anew, and Linux's ends of them.
fn linked(
    memory: &Region,
    rows: &[RegionRow],
    bells: &GuestBells,
) -> Result<Option<Linked>, String> {
    let [there, back] = rows else { return Ok(None) };
    let part = |row: &RegionRow| -> Result<(Region, Shape), String> {
        let file = memory.file().ok_or("the carve-out has no descriptor")?;
        let file = file.try_clone_to_owned().map_err(|error| error.to_string())?;
        let region = Region::map_part(file, row.offset as usize, row.size as usize);
        let (region, shape) = (region.map_err(|error| error.to_string())?, row.shape());
        create(&region, &shape).map_err(|error| error.to_string())?;
        Ok((region, shape))
    };
    let doorbell = |row: &RegionRow| bells.doorbell(row.link.bell as usize);
    let doorbell = |row| doorbell(row).map_err(|error| error.to_string());
    let (bells, there, back) = ([doorbell(there)?, doorbell(back)?], part(there)?, part(back)?);
    let linked = Linked::attach(there, back, bells).map_err(|error| error.to_string())?;
    Ok(Some(linked))
}
