//! The process of a guest domain: the agent. It starts the guest's board, passes on what the
//! supervisor orders and what the guest says about itself, and ends with the guest.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use sinew_agent::{BoardRow, GuestBells, GuestProgress, GuestSetup, Keeper};
use sinew_carve_out::{GuestState, NodeRow, NodeTally, Order, image};
use sinew_control::counters::{BEATS, DROPPED, LOST, RECEIVED, SENT};
use sinew_core::bell::Bell;
use sinew_core::board::{BoardState, DomainOrder, FaultAt};
use sinew_core::clock::now_ns;
use sinew_core::fault::{Cause, Fault};
use sinew_core::sys::{Region, adopt};
use sinew_link::counter;
use sinew_spec::guest::{node_rows, rows};
use sinew_spec::plan::{Guest, ServiceDomain as Domain};

use super::service::{counters, keep_away_from_core};
use super::{Process, at_start, is_orphan, system};
use crate::confine::kill_strays;
use crate::inject;
use crate::service::tell;

/// How often it looks at the guest, whether or not a bell rings.
const LOOK: Duration = Duration::from_millis(20);
/// How often it prints what the nodes have counted.
const SAY_NS: u64 = 1_000_000_000;

/// Runs the guest until it is told to stop, faults or ends.
pub(super) fn run(process: &Process<'_>, domain: &Domain, guest: &Guest) -> Result<(), FaultAt> {
    // The emulator, which is started from this thread, runs on the same CPUs.
    keep_away_from_core(process, domain);
    process.heed_signal()?;
    let memory = adopt(process.launch.open.carve_out.unwrap_or(-1)).and_then(Region::map);
    let memory = memory.map_err(system("cannot map the guest's memory"))?;
    let rows: Vec<_> =
        rows(process.plan, process.launch.domain).into_iter().map(|(_, row)| row).collect();
    let board = BoardRow::of(guest.board);
    let mut nodes = node_rows(process.plan, process.launch.domain);
    let watched = domain.nodes.iter().zip(&process.launch.open.counters).enumerate();
    let watched = watched.map(|(place, (&index, &file))| {
        Watched::open(process, guest, place, index, file, &mut nodes[place])
    });
    let watched = watched.collect::<Result<Vec<_>, _>>()?;
    let setup = GuestSetup {
        image: &process.launch.spec.base.join(&guest.image),
        board,
        carve_out: memory,
        nodes: &nodes,
        rows: &rows,
        bells: bells(process).map_err(system("cannot open the doorbells of the guest"))?,
    };
    let keeper = Keeper::start(setup).map_err(system("cannot start the guest"))?;
    tell(format_args!("life {}, emulated by process {}", keeper.epoch(), keeper.process()));
    let ended = Agent { process, keeper, nodes: watched, ordered: Order::Wait, say_ns: 0 }.serve();
    kill_strays(&process.launch.marker);
    ended
}

/// The keeper's bells, and those of the links, which are numbered in the order of the plan.
fn bells(process: &Process<'_>) -> io::Result<GuestBells> {
    let mut bells = GuestBells::of(&[])?;
    for &(_, linux, guest) in &process.launch.open.bells {
        bells.of_linux.push(Bell::adopt(adopt(linux)?));
        bells.of_guest.push(Bell::adopt(adopt(guest)?));
    }
    Ok(bells)
}

struct Agent<'a> {
    process: &'a Process<'a>,
    keeper: Keeper,
    nodes: Vec<Watched>,
    /// What the guest was told last.
    ordered: Order,
    /// When to print next what the nodes have counted.
    say_ns: u64,
}

impl Agent<'_> {
    fn serve(mut self) -> Result<(), FaultAt> {
        loop {
            self.pass_on_order();
            self.keeper.wait(LOOK);
            let progress = self.keeper.look(&mut |line| tell(line));
            self.nodes.iter_mut().for_each(|node| node.look(&self.keeper));
            if now_ns() >= self.say_ns {
                self.say_ns = now_ns() + SAY_NS;
                self.nodes.iter_mut().for_each(Watched::say);
            }
            match progress {
                GuestProgress::Starting => {}
                GuestProgress::Ready => self.process.halt.reached(BoardState::Ready),
                GuestProgress::Running => self.process.halt.reached(BoardState::Running),
                // Also one that was too slow for its last act.
                _ if self.ordered == Order::Stop => return Ok(()),
                end => return Err(self.fault(end)),
            }
        }
    }

    fn pass_on_order(&mut self) {
        let halt = self.process.halt;
        let order = match self.process.board.current_order() {
            _ if halt.is_stopping() || is_orphan(self.process.launch.parent) => Order::Stop,
            DomainOrder::Run => Order::Run,
            _ => Order::Wait,
        };
        if order != self.ordered {
            self.keeper.order(order);
            self.ordered = order;
        }
    }

    /// Why the guest has ended though nobody told it to.
    fn fault(&mut self, end: GuestProgress) -> FaultAt {
        self.nodes.iter_mut().for_each(Watched::say);
        match end {
            GuestProgress::Faulted(fault) => {
                let node = self.nodes.iter().find(|node| node.name == fault.who.as_str());
                let fault = Fault::new(Cause::Died, format_args!("the guest: {fault}"));
                FaultAt { fault, node: node.map(|node| node.index), cycle: None }
            }
            // A guest that stops ends its emulator too, and which of both is seen first is chance.
            GuestProgress::Ended(status)
                if status.success() && self.keeper.state() == Some(GuestState::Stopped) =>
            {
                self.fault(GuestProgress::Stopped)
            }
            // It may have read an order that nobody gave, from memory that it has spoiled itself.
            end => at_start(Fault::new(Cause::Died, format_args!("{end} without being told to"))),
        }
    }
}

/// A node of the guest, and what was seen of it.
struct Watched {
    index: usize,
    place: usize,
    name: String,
    counters: counter::Writer<Region>,
    /// Names of what its kind counts.
    counts: Vec<String>,
    seen: NodeTally,
    said: NodeTally,
    /// The signal that a drill sends to the emulator, once the node has reached this cycle.
    signal: Option<(Signal, u64)>,
}

impl Watched {
    fn open(
        process: &Process<'_>,
        guest: &Guest,
        place: usize,
        index: usize,
        file: i32,
        row: &mut NodeRow,
    ) -> Result<Watched, FaultAt> {
        let node = &process.plan.nodes[index];
        let (counters, beats) = counters(Some(file)).map_err(at_start)?;
        let injections = &process.launch.injections;
        row.trial = inject::trial(injections, index, beats);
        let images = process.launch.spec.images.iter();
        let mut images = images.filter(|it| (&it.image, it.board) == (&guest.image, guest.board));
        let table = images.find_map(|image| image.table.as_deref().ok()).unwrap_or_default();
        let kind = image::records(table).ok().into_iter().flatten();
        let kind = { kind }.find(|kind| kind.name() == node.kind.name);
        let counts = kind.map(|kind| kind.counters().map(str::to_owned).collect());
        Ok(Watched {
            index,
            place,
            name: node.name.clone(),
            counters,
            counts: counts.unwrap_or_default(),
            seen: NodeTally::default(),
            said: NodeTally::default(),
            signal: inject::signal(injections, index, beats),
        })
    }

    /// Passes on what the guest says about the node: its cycles are its heartbeat. The guest may
    /// have written anything, so each figure is only raised by its growth, modulo 2^32.
    fn look(&mut self, keeper: &Keeper) {
        let now = keeper.tally(self.place);
        let mut grow = |counter, now: u32, before: u32| {
            let grown = now.wrapping_sub(before);
            if grown > 0 {
                self.counters.add(counter, grown.into());
            }
        };
        grow(BEATS, now.cycles, self.seen.cycles);
        for (i, counter) in [RECEIVED, LOST, SENT, DROPPED].into_iter().enumerate() {
            grow(counter, now.messages[i], self.seen.messages[i]);
        }
        self.seen = now;
        if let Some((signal, _)) = self.signal.take_if(|(_, cycle)| u64::from(now.cycles) >= *cycle)
        {
            tell(format_args!("injected by a drill: signal {signal:?} to the emulator"));
            keeper.signal(signal);
        }
    }

    /// Prints what the node has counted since the last print, if anything.
    fn say(&mut self) {
        let (now, said) = (self.seen, self.said);
        let named = self.counts.iter().zip(now.counters.iter().zip(said.counters));
        let mut parts: Vec<String> = named
            .filter(|(_, (now, said))| **now != *said)
            .map(|(name, (now, _))| format!("{name} {now}"))
            .collect();
        if now.overruns != said.overruns {
            parts.push(format!(
                "overruns {}, longest cycle {} us",
                now.overruns, now.execution_us_max
            ));
        }
        if !parts.is_empty() {
            tell(format_args!("{}: {}", self.name, parts.join(", ")));
        }
        self.said = now;
    }
}
