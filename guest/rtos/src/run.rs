//! How a node runs: released once a period, it reads, updates and writes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;

use sinew_carve_out::{NodeRow, NodeTally, SideState, Trial};

use crate::io::Port;
use crate::{Cycle, Fault, GuestNode, Io, Serving, agent, cpu, guest, kernel, trial};

/// Time between two ticks of FreeRTOS. Periods are multiples of it.
pub(crate) const STEP_US: u32 = 1_000_000 / kernel::TICK_HZ;
/// Smallest stack: it holds saved registers, links and a fault's text. A kind that asks for less
/// gets this much.
pub(crate) const STACK_MIN: u32 = 8 * 1024;

/// A node with all that is needed to run it.
pub(crate) struct Runner {
    number: usize,
    period_us: u32,
    /// The failure on purpose, and the cycle before which it comes.
    trial: (Trial, u32),
    node: Box<dyn GuestNode>,
    ports: Vec<Port>,
    status: NodeTally,
}

impl Runner {
    pub(crate) fn new(
        number: usize,
        row: &NodeRow,
        node: Box<dyn GuestNode>,
        ports: Vec<Port>,
    ) -> Runner {
        let status = NodeTally::default();
        Runner { number, period_us: row.period_us, trial: row.trial, node, ports, status }
    }

    fn parts(&mut self) -> (&mut dyn GuestNode, Io<'_>) {
        (&mut *self.node, Io { ports: &mut self.ports, status: &mut self.status })
    }

    /// Reads, updates, writes.
    fn cycle(&mut self, cycle: &Cycle) -> Result<(), Fault> {
        if self.trial.0 != Trial::None && cycle.number == u64::from(self.trial.1) {
            trial::act(self.trial.0)?;
        }
        let start = cpu::counter();
        let (node, mut io) = self.parts();
        io.receive()?;
        node.update(&mut io, cycle)?;
        io.send()?;
        let took = (cpu::counter() - start) * 1_000_000 / u64::from(cpu::counter_hz());
        self.status.execution_us_max = self.status.execution_us_max.max(took as u32);
        Ok(())
    }

    /// The last act: sends the safe values, then closes the links.
    fn stop(&mut self) {
        let (node, mut io) = self.parts();
        node.stop(&mut io);
        // A link that cannot take the message is no longer reported.
        let _ = io.send();
        let carve_out = guest::get().map(|guest| &guest.carve_out);
        for link in self.ports.iter_mut().flat_map(|port| &mut port.links) {
            link.close();
            if let Some(carve_out) = carve_out {
                carve_out.set_side(link.number, SideState::Detached);
            }
        }
        self.show();
    }

    fn show(&self) {
        if let Some(guest) = guest::get() {
            guest.carve_out.set_tally(self.number, &self.status);
        }
    }

    /// Runs until the guest stops.
    fn run(&mut self) {
        let period = self.period_us / STEP_US;
        let mut release = agent::wait_for_run();
        let (number, trial) = (self.number, self.trial);
        let (node, io) = self.parts();
        if let Some(served) = node.serve(&mut Serving::new(io, number, trial)) {
            return served.unwrap_or_else(|fault| agent::failed(&fault));
        }
        self.ports.iter().for_each(Port::prepare);
        let mut number = 0;
        let mut spacing = Spacing::of(self.period_us);
        while !agent::is_to_stop(self.number) {
            let (period_us, skipped) = (self.period_us, spacing.skipped());
            let linux_silent_ms = agent::linux_silent_ms();
            let cycle = Cycle { number, period_us, skipped, linux_silent_ms };
            if let Err(fault) = self.cycle(&cycle) {
                agent::failed(&fault);
                break;
            }
            number += 1;
            self.status.cycles = self.status.cycles.wrapping_add(1);
            // Whole periods that are over are lost, and not caught up.
            let late = kernel::ticks().wrapping_sub(release);
            let lost = late.saturating_sub(1) / period;
            if late > period {
                self.status.overruns = self.status.overruns.wrapping_add(1);
            }
            release = release.wrapping_add(lost * period);
            self.show();
            kernel::sleep_until(&mut release, period);
        }
    }
}

/// The spacing of a node's cycles, by the counter: the kernel's clock does not advance while the
/// core sleeps through its interrupts.
struct Spacing {
    period: u64,
    before: Option<u64>,
}

impl Spacing {
    fn of(period_us: u32) -> Spacing {
        let period = u64::from(cpu::counter_hz()) * u64::from(period_us) / 1_000_000;
        Spacing { period: period.max(1), before: None }
    }

    /// Whole periods lost since the last call, which was a period ago.
    fn skipped(&mut self) -> u32 {
        let now = cpu::counter();
        let passed = self.before.replace(now).map_or(self.period, |before| now - before);
        u32::try_from((passed + self.period / 2) / self.period)
            .unwrap_or(u32::MAX)
            .saturating_sub(1)
    }
}

/// The thread of a node. Its argument is the runner.
pub(crate) extern "C" fn runner(argument: *mut c_void) {
    // SAFETY: the start gave each node a runner of its own.
    let mut runner = unsafe { Box::from_raw(argument.cast::<Runner>()) };
    runner.run();
    runner.stop();
    agent::done(runner.number);
    loop {
        kernel::sleep_forever();
    }
}
