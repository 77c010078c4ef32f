//! What a realtime thread asks of the kernel, and what it got: everything is read back, because a
//! call that returned without an error does not prove that the thread runs as it should.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity, sched_setaffinity};

use crate::mappings;
use crate::sys;

/// What a thread is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// SCHED_FIFO priority.
    pub priority: u8,
    /// The one CPU to run on, if the plan names one.
    pub cpu: Option<u32>,
}

/// What the kernel says that a thread has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Obtained {
    /// SCHED_* number.
    pub policy: i32,
    /// Realtime priority, 0 without one.
    pub priority: u8,
    /// The CPU it is pinned to, if it is pinned to one.
    pub cpu: Option<u32>,
    /// Memory of the process that is resident and locked, KiB.
    pub locked_kib: u32,
}

impl Obtained {
    /// The policy by its name in the manual.
    pub fn policy_name(&self) -> &'static str {
        match self.policy {
            libc::SCHED_OTHER => "SCHED_OTHER",
            libc::SCHED_FIFO => "SCHED_FIFO",
            libc::SCHED_RR => "SCHED_RR",
            libc::SCHED_BATCH => "SCHED_BATCH",
            libc::SCHED_IDLE => "SCHED_IDLE",
            libc::SCHED_DEADLINE => "SCHED_DEADLINE",
            _ => "unknown",
        }
    }

    /// What is missing, in words that say how to get it; empty if nothing is.
    pub fn missing(&self, asked: &Asked) -> Vec<String> {
        let mut missing = Vec::new();
        if (self.policy, self.priority) != (libc::SCHED_FIFO, asked.priority) {
            missing.push(format!(
                "SCHED_FIFO {} refused, runs as {}: it needs a limit 'rtprio {}' or CAP_SYS_NICE; \
                 'sinew doctor' says how to get that here",
                asked.priority,
                self.policy_name(),
                asked.priority
            ));
        }
        if self.locked_kib == 0 {
            missing.push(
                "mlockall refused, memory may be paged: it needs a limit 'memlock unlimited' or \
                 CAP_IPC_LOCK; 'sinew doctor' says how to get that here"
                    .into(),
            );
        }
        match asked.cpu {
            Some(cpu) if self.cpu != Some(cpu) => {
                missing.push(format!("pinning to CPU {cpu} refused: see the process's cpuset"));
            }
            _ => {}
        }
        missing
    }
}

/// Whether the kernel would give a thread of this process that SCHED_FIFO priority.
pub fn may_have(priority: u8) -> bool {
    let held =
        capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_NICE));
    held || getrlimit(Resource::Rtprio).current.is_none_or(|limit| limit >= u64::from(priority))
}

/// Locks the memory that this process runs on: all that it may write to and its libraries, present
/// and future. Of the program's own code, which many other processes use too, it locks the pieces
/// that the process has partly needed or that hold an address of `of_faults`, and any further page
/// once it is needed. [`obtain`] shows whether it worked.
///
/// It does nothing under a limit: if what is mapped now fits in the limit and what is mapped later
/// does not, threads cannot start and the heap cannot grow.
pub fn lock_memory(of_faults: &[usize]) {
    let unlimited = getrlimit(Resource::Memlock).current.is_none();
    let held =
        capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::IPC_LOCK));
    if !unlimited && !held {
        return;
    }
    // Refusals are seen when the locked size is read back. The second call leaves the effect of the
    // first one as it is: later mappings are brought into memory at once, not when they are
    // touched. A right from another user namespace does not count: then the first call fails, and
    // nothing may be asked for later mappings.
    if mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT).is_err() {
        return;
    }
    let _ = mlockall(MlockAllFlags::FUTURE);
    for mapping in mappings::all() {
        // Where it is not known what is needed, all of it is locked.
        let needed =
            mapping.is_code.then(|| mappings::needed(&mapping, of_faults)).and_then(Result::ok);
        for piece in needed.unwrap_or_else(|| vec![mapping.addresses]) {
            // The lock is refused for room that is reserved without access rights, and for the
            // kernel's own mappings.
            let _ = sys::lock(&piece);
        }
    }
}

/// Asks the kernel on behalf of the calling thread, then reads back what the thread has.
pub fn obtain(asked: &Asked) -> Obtained {
    if let Some(cpu) = asked.cpu {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // A refusal is seen when the affinity is read back.
        let _ = sched_setaffinity(None, &set);
    }
    // A refusal is seen when the policy is read back.
    let _ = sys::set_fifo(asked.priority);
    let (policy, priority) = sys::scheduling().unwrap_or((-1, 0));
    Obtained {
        policy,
        priority: u8::try_from(priority).unwrap_or(0),
        cpu: pinned_to(),
        locked_kib: locked_kib(),
    }
}

/// The CPUs that this process may use, ascending.
///
/// # Errors
/// sched_getaffinity fails.
pub fn cpus() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

fn pinned_to() -> Option<u32> {
    match cpus().ok()?.as_slice() {
        [cpu] => Some(*cpu),
        _ => None,
    }
}

fn locked_kib() -> u32 {
    // Only resident memory counts: the kernel's own sum also counts room that is only reserved.
    let locked = mappings::all().into_iter().filter(|mapping| mapping.is_locked);
    locked.map(|mapping| mapping.resident_kib).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let asked = Asked { priority: 80, cpu: Some(1) };
        let all = Obtained { policy: libc::SCHED_FIFO, priority: 80, cpu: Some(1), locked_kib: 9 };
        assert!(all.missing(&asked).is_empty());
        let missing = Obtained::default().missing(&asked);
        assert_eq!(missing.len(), 3, "{missing:?}");
        assert!(missing[0].contains("runs as SCHED_OTHER"), "{missing:?}");
    }

    #[test]
    fn a_thread_reads_back_what_it_has() {
        let cpu = cpus().expect("affinity")[0];
        let obtained = std::thread::spawn(move || obtain(&Asked { priority: 1, cpu: Some(cpu) }));
        let obtained = obtained.join().expect("no panic");
        assert_eq!(obtained.cpu, Some(cpu));
        assert_ne!(obtained.policy_name(), "unknown");
    }
}
