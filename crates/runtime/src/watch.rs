//! What a service that observes sees of its run: the plan, every cycle of the core with its
//! messages, and the supervisor, which knows the status and the events and takes orders.
//!
//! It reads what the cycles leave behind, through memory that it cannot write: nothing that it does
//! or fails to do reaches the core. A service that reads too slowly loses cycles, and they are
//! counted.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use sinew_control::{Spec, Supervisor};
use sinew_core::clock::Clock;
use sinew_core::fault::{Cause, Fault};
use sinew_core::sys::{Region, adopt};
use sinew_core::trace::{Reader, Record, Tap, ThreadId, taps};
use sinew_spec::plan::Plan;

use crate::launch::Launch;

/// Records that one look takes from one thread: an observer must get to its other work, and to its
/// heartbeat, while the core writes without end.
const RECORDS_PER_LOOK_MAX: usize = 4096;

/// The run, as a service that observes sees it.
pub struct Watch {
    plan: Arc<Plan>,
    spec: Arc<Spec>,
    clock: Clock,
    life: u32,
    secret: String,
    threads: Vec<Thread>,
    supervisor: Supervisor,
}

struct Thread {
    id: ThreadId,
    taps: Vec<Tap>,
    reader: Reader,
}

impl Watch {
    /// What one node sees of it.
    pub(crate) fn open(launch: &Launch, shown: &Shown) -> Result<Watch, Fault> {
        let Shown { plan, supervisor, regions } = shown;
        let mut threads = Vec::new();
        for (id, region) in regions {
            let domain = &plan.domains[id.domain];
            let realtime = domain.realtime().expect("only realtime domains have traces");
            let nodes = &realtime.threads[id.thread].nodes;
            let record = Record::of(plan, nodes);
            let (region, period_ns) = (region.clone(), realtime.period_ns);
            let reader = Reader::attach(region, &record, period_ns, launch.pace);
            let reader =
                reader.map_err(|error| Fault::new(Cause::BadPeer, format_args!("{error}")))?;
            threads.push(Thread { id: *id, taps: taps(plan, nodes), reader });
        }
        Ok(Watch {
            plan: Arc::clone(plan),
            spec: Arc::new(launch.spec.clone()),
            clock: Clock::from_rate(f64::from_bits(launch.rate)),
            life: launch.life,
            secret: launch.secret.clone(),
            threads,
            supervisor: supervisor.clone(),
        })
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The spec that the plan was made from.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Turns the ticks of records into nanoseconds.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How often the core had been restarted when this process was started: cycles of earlier
    /// lives, as [`Record::life`] tells them, are of the past.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// 128 bits in hexadecimal digits, of this run alone and the same in all lives of the service:
    /// whoever knows it may command the run.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The supervisor.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The threads of the core, in the order of the plan.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = ThreadId> + '_ {
        self.threads.iter().map(|thread| thread.id)
    }

    /// Which messages are in the records of a thread, in the order of the places in
    /// [`Record::messages`].
    pub fn taps(&self, id: ThreadId) -> &[Tap] {
        self.threads.iter().find(|thread| thread.id == id).map_or(&[], |thread| &thread.taps)
    }

    /// Hands every cycle since the last call to `each`, thread by thread, some thousand of a thread
    /// at most; the first call begins with the oldest one kept, up to two seconds ago. Never waits.
    pub fn read(&mut self, each: &mut dyn FnMut(ThreadId, &Record)) {
        for thread in &mut self.threads {
            let mut left = RECORDS_PER_LOOK_MAX;
            while left > 0
                && let Some(record) = thread.reader.read()
            {
                each(thread.id, record);
                left -= 1;
            }
        }
    }

    /// Cycles of a thread that were overwritten before they were read.
    pub fn lost(&self, id: ThreadId) -> u64 {
        let thread = self.threads.iter().find(|thread| thread.id == id);
        thread.map_or(0, |thread| thread.reader.lost())
    }
}

/// What the supervisor has left open for a process whose nodes observe: they share it.
pub(crate) struct Shown {
    plan: Arc<Plan>,
    supervisor: Supervisor,
    regions: Vec<(ThreadId, Region)>,
}

impl Shown {
    /// The supervisor, for nodes that ask it without observing the core.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Takes it; `None` if no node of this process observes.
    pub(crate) fn adopt(launch: &Launch, plan: &Plan) -> io::Result<Option<Shown>> {
        let Some(supervisor) = launch.open.supervisor else { return Ok(None) };
        let supervisor = Supervisor::over(adopt(supervisor)?.into());
        let region = |&(domain, thread, descriptor): &(usize, usize, RawFd)| {
            let region = Region::map_read_only(adopt(descriptor)?)?;
            Ok((ThreadId { domain, thread }, region))
        };
        let regions = launch.open.observed.iter().map(region).collect::<io::Result<_>>()?;
        Ok(Some(Shown { plan: Arc::new(plan.clone()), supervisor, regions }))
    }
}
