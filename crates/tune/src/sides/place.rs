//! Where both sides run: each on a thread that is bound to its CPU. They have no realtime priority:
//! two threads that poll above everything else would starve the machine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::thread::{CpuSet, sched_setaffinity};
use sinew_core::privileges;
use sinew_core::sys::Region;

use super::Gone;
use super::life::{Life, SaysEnd};

/// The CPUs of both sides. Both are the same if there is only one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The CPU of the side that measures.
    pub near: u32,
    /// The CPU of the side that answers.
    pub far: u32,
}

impl Cpus {
    /// The first and the last of these. Both are the same if there is only one. `None` if there are
    /// none.
    pub fn ends(cpus: &[u32]) -> Option<Cpus> {
        Some(Cpus { near: *cpus.first()?, far: *cpus.last()? })
    }

    /// The CPUs of this process.
    ///
    /// # Panics
    /// If the kernel does not say which CPUs it may use; for tests.
    pub fn of_this_process() -> Cpus {
        Cpus::ends(&privileges::cpus().expect("affinity")).expect("at least one")
    }

    /// Whether each side has a CPU to itself: only then may both spin.
    pub fn are_two(self) -> bool {
        self.near != self.far
    }
}

/// Binds the calling thread to `cpu`, and reads back that it is bound.
///
/// # Errors
/// The kernel refuses.
pub fn stay_on(cpu: u32) -> Result<(), Gone> {
    let refused = |why: String| {
        Gone(format!("cannot stay on CPU {cpu}: {why}; choose one of the CPUs of this process"))
    };
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(refused(format!("there are {} at most", CpuSet::MAX_CPU)));
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(|error| refused(error.to_string()))?;
    match privileges::cpus() {
        Ok(found) if found == [cpu] => Ok(()),
        found => Err(refused(format!("the kernel says that it may run on {found:?}"))),
    }
}

/// Runs `work` on a thread of its own that is bound to `cpu`. The caller's own CPUs do not change.
///
/// # Errors
/// The kernel refuses, or `work` fails or panics.
pub fn on_thread<T: Send>(
    cpu: u32,
    work: impl FnOnce() -> Result<T, Gone> + Send,
) -> Result<T, Gone> {
    let work = || stay_on(cpu).and_then(|()| work());
    thread::scope(|scope| joined(started(scope, work)))
}

/// Runs both sides, each on a thread of its own that is bound to its CPU, until both have ended.
/// Each gets a [`Life`] of the other. The near side must make sure that the far side ends.
///
/// # Errors
/// The kernel refuses, or one of them fails or panics.
pub fn on_threads<T: Send>(
    cpus: Cpus,
    near: impl FnOnce(&Life) -> Result<T, Gone> + Send,
    far: impl FnOnce(&Life) -> Result<(), Gone> + Send,
) -> Result<T, Gone> {
    run_both(cpus, Box::new(near), Box::new(far))
}

/// A side in a box: the code that starts threads is compiled once for each result, not for each
/// pair of sides.
type Side<'a, T> = Box<dyn FnOnce(&Life) -> Result<T, Gone> + Send + 'a>;

fn run_both<T: Send>(cpus: Cpus, near: Side<'_, T>, far: Side<'_, ()>) -> Result<T, Gone> {
    let ended = || Arc::new(AtomicBool::new(false));
    let (near_ended, far_ended) = (ended(), ended());
    let near_life = Life::Thread(Arc::clone(&near_ended));
    let far_life = Life::Thread(Arc::clone(&far_ended));
    let (near_ends, far_ends) = (SaysEnd(near_ended), SaysEnd(far_ended));
    let far = move || {
        let _ends = far_ends;
        stay_on(cpus.far)?;
        far(&near_life)
    };
    let near = move || {
        let _ends = near_ends;
        stay_on(cpus.near)?;
        near(&far_life)
    };
    let (near, far) = thread::scope(|scope| {
        let (far, near) = (started(scope, far), started(scope, near));
        (joined(near), joined(far))
    });
    match (near, far) {
        (Ok(found), Ok(())) => Ok(found),
        (Err(gone), Ok(())) | (Ok(_), Err(gone)) => Err(gone),
        (Err(near), Err(far)) => Err(Gone(format!("{}; the far side: {}", near.0, far.0))),
    }
}

/// Takes some pages, so that the links of each round are on other pages: the distance of a line to
/// both CPUs depends on its address, and the kernel first reuses what was freed last.
///
/// # Errors
/// There is not enough memory.
pub fn other_pages(rounds: usize) -> Result<Region, Gone> {
    const PAGE: usize = 4096;
    let region = Region::anonymous(PAGE * (1 + rounds % 16));
    let region = region.map_err(|error| Gone(format!("no memory: {error}")))?;
    // A page is allocated when it is first written.
    region.words().iter().step_by(PAGE / 4).for_each(|word| word.store(1, Ordering::Relaxed));
    Ok(region)
}

/// If a thread cannot be started, its side is dropped. From this the other side learns that it
/// ended.
fn started<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> Result<T, Gone> + Send + 'scope,
) -> io::Result<Joins<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, work)
}

fn joined<T>(thread: io::Result<Joins<'_, T>>) -> Result<T, Gone> {
    let thread = thread.map_err(|error| Gone(format!("cannot start a thread: {error}")))?;
    thread.join().unwrap_or_else(|_| Err(Gone("it panicked; that is a bug of ours".into())))
}

type Joins<'scope, T> = thread::ScopedJoinHandle<'scope, Result<T, Gone>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_its_cpu_and_its_parent_does_not() {
        let (cpus, before) = (Cpus::of_this_process(), privileges::cpus().expect("affinity"));
        let seen = on_threads(cpus, |_| Ok(privileges::cpus().expect("affinity")), |_| Ok(()));
        assert_eq!(seen, Ok(vec![cpus.near]));
        assert_eq!(privileges::cpus().expect("affinity"), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let Gone(why) = stay_on(1023).expect_err("not that many");
        assert!(why.starts_with("cannot stay on CPU 1023: "), "{why}");
        let Gone(why) = stay_on(u32::MAX).expect_err("not that many");
        assert!(why.contains("there are 1024 at most"), "{why}");
    }

    #[test]
    fn the_near_side_learns_that_the_far_side_ended() {
        let wait = |life: &Life| {
            let mut patience = life.patience();
            loop {
                patience.look()?;
                thread::yield_now();
            }
        };
        let far = |_: &Life| Err(Gone("broke".into()));
        let Gone(why) = on_threads::<()>(Cpus::of_this_process(), wait, far).expect_err("it ended");
        assert_eq!(why, "the other side has ended; the far side: broke");
    }
}
