//! The observer before files that are not the kernel's, and before threads of this test.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use sinew_core::privileges::cpus;

use super::*;

const ID: ThreadId = ThreadId { domain: 0, thread: 0 };

/// A folder in place of /proc, gone with the test.
struct Proc(PathBuf);

impl Proc {
    fn new(name: &str) -> Proc {
        let path = std::env::temp_dir().join(format!("sinew-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("7/task/8")).expect("a folder");
        Proc(path)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file");
    }

    /// All counters of the thread and of its CPU, each a multiple of `n`.
    fn count(&self, n: u64) {
        let [minor, major, turns] = [n, 2 * n, n + 1];
        self.write("7/task/8/schedstat", &format!("{} {} {turns}\n", 1000 * n, 300 * n));
        let rest = "0 ".repeat(26);
        let stat = format!("8 (a ) b) S 1 1 1 0 -1 64 {minor} 0 {major} {rest}1 0\n");
        self.write("7/task/8/stat", &stat);
        let status = format!("Name:\ta ) b\nnonvoluntary_ctxt_switches:\t{}\n", 4 * n);
        self.write("7/task/8/status", &status);
        self.write("stat", &format!("cpu  0 0 0 0 0 0 0 9 0 0\ncpu1 1 0 0 0 0 0 0 {n} 0 0\nintr"));
    }

    fn observer(&self) -> Observer {
        let mut observer = Observer::within(&self.0);
        observer.watch(ID, 7, 8);
        observer
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("it was ours");
    }
}

/// A thread of this process that does `work` until it is told to stop.
struct Worker {
    number: u32,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(mut work: impl FnMut() + Send + 'static, cpu: Option<u32>) -> Worker {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, (say, said)) = (Arc::clone(&is_over), sync_channel(0));
        let thread = thread::spawn(move || {
            if let Some(cpu) = cpu {
                let mut set = CpuSet::new();
                set.set(cpu as usize);
                sched_setaffinity(None, &set).expect("a CPU of ours");
            }
            say.send(gettid().as_raw_nonzero().get() as u32).expect("the test waits");
            // Relaxed: the flag orders nothing.
            while !over.load(Ordering::Relaxed) {
                work();
            }
        });
        let number = said.recv().expect("the thread says it");
        Worker { number, is_over, thread: Some(thread) }
    }

    fn watched(&self) -> Observer {
        let mut observer = Observer::default();
        observer.watch(ID, std::process::id(), self.number);
        observer.read();
        observer
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Relaxed: see above.
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it only works");
        }
    }
}

/// Reads until `found` finds what it waits for since `since_ns`.
fn await_counted(
    observer: &mut Observer,
    what: &str,
    found: impl Fn(&Counters) -> bool,
) -> Meanwhile {
    let since_ns = now_ns();
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(10));
        observer.read();
        let meanwhile = observer.meanwhile(ID, since_ns).expect("our own thread");
        if found(&meanwhile.counted) {
            return meanwhile;
        }
    }
    panic!("waited ten seconds for {what}")
}

#[test]
fn what_was_counted_since_the_reading_before_is_told() {
    let proc = Proc::new("counted");
    proc.count(100);
    let mut observer = proc.observer();
    observer.read();
    let since_ns = now_ns();
    proc.count(103);
    observer.read();
    let meanwhile = observer.meanwhile(ID, since_ns).expect("two readings");
    let counted = Counters {
        cpu_ns: Some(3000),
        run_delay_ns: Some(900),
        minor_faults: Some(3),
        major_faults: Some(6),
        involuntary_switches: Some(12),
        steal_ns: Some(30_000_000),
    };
    assert_eq!(meanwhile.counted, counted);
    assert!(meanwhile.is_asleep && !meanwhile.is_cut);
    assert_eq!(meanwhile.usual.run_delay_ns, Some(0), "nothing is known of the time before");
}

#[test]
fn what_is_usual_is_what_was_counted_before_in_the_same_time() {
    let mut watched = Proc::new("usual").observer().threads.remove(0);
    for (at_ns, run_delay_ns) in [(0, 0), (100, 40), (200, 60), (250, 900)] {
        let counters = Counters { run_delay_ns: Some(run_delay_ns), ..Counters::default() };
        watched.readings.push_back(Reading { at_ns, counters, cpu: None, is_asleep: true });
    }
    let meanwhile = watched.meanwhile(210).expect("readings");
    assert_eq!((meanwhile.window_ns, meanwhile.counted.run_delay_ns), (50, Some(840)));
    assert_eq!(meanwhile.usual.run_delay_ns, Some(15));
    let beyond = meanwhile.beyond_usual();
    assert_eq!((beyond.run_delay_ns, beyond.cpu_ns), (Some(825), None));
}

#[test]
fn a_window_that_begins_too_late_says_so() {
    let mut watched = Proc::new("cut").observer().threads.remove(0);
    assert!(watched.meanwhile(0).is_none());
    for at_ns in [1000, 2000] {
        assert!(watched.meanwhile(u64::MAX).is_none(), "one reading is not a difference");
        let (counters, cpu, is_asleep) = (Counters::default(), None, true);
        watched.readings.push_back(Reading { at_ns, counters, cpu, is_asleep });
    }
    let cut = |since_ns| watched.meanwhile(since_ns).expect("two readings").is_cut;
    assert!(cut(999) && !cut(1000) && !cut(3000));
}

#[test]
fn a_thread_that_moved_has_no_steal() {
    let counters = Counters { steal_ns: Some(7), ..Counters::default() };
    let reading = |cpu| Reading { at_ns: 0, counters, cpu, is_asleep: true };
    assert_eq!(reading(Some(1)).since(&reading(Some(1))).1.steal_ns, Some(0));
    assert_eq!(reading(Some(1)).since(&reading(Some(0))).1.steal_ns, None);
}

#[test]
fn only_so_many_readings_are_kept() {
    let proc = Proc::new("kept");
    proc.count(1);
    let mut observer = proc.observer();
    (0..KEPT + 3).for_each(|_| observer.read());
    assert_eq!(observer.threads[0].readings.len(), KEPT);
    assert_eq!(observer.threads[0].readings.capacity(), KEPT, "a reading allocates nothing");
}

#[test]
fn a_kernel_that_does_not_count_leaves_the_rest() {
    let proc = Proc::new("uncounted");
    proc.count(5);
    proc.write("7/task/8/schedstat", "0 0 0\n");
    proc.write("stat", "cpu0 1 2\n");
    let mut observer = proc.observer();
    observer.read();
    observer.read();
    let counted = observer.meanwhile(ID, 0).expect("two readings").counted;
    assert_eq!((counted.run_delay_ns, counted.cpu_ns, counted.steal_ns), (None, None, None));
    assert_eq!((counted.minor_faults, counted.involuntary_switches), (Some(0), Some(0)));
}

#[test]
fn garbage_counts_nothing() {
    let proc = Proc::new("garbage");
    for text in ["", "\n", "x", ")\n", "1 2\n", "cpu1 \u{7f} 99999999999999999999999\n"] {
        for name in ["7/task/8/schedstat", "7/task/8/stat", "7/task/8/status", "stat"] {
            proc.write(name, text);
        }
        let mut observer = proc.observer();
        observer.read();
        observer.read();
        let meanwhile = observer.meanwhile(ID, 0).expect("two readings");
        assert_eq!(meanwhile.counted, Counters::default(), "{text:?}");
    }
}

#[test]
fn who_may_not_look_learns_why() {
    let mut observer = Observer::default();
    assert!(observer.meanwhile(ID, 0).expect_err("nobody").contains("not watched"));
    observer.watch(ID, u32::MAX, 1);
    observer.read();
    let why = observer.meanwhile(ID, 0).expect_err("no such process");
    let expected = format!("cannot read /proc/{}/task/1/status: No such file", u32::MAX);
    assert!(why.starts_with(&expected), "{why}");
}

#[test]
fn a_thread_that_ended_is_not_mistaken_for_another() {
    let worker = Worker::start(|| thread::sleep(Duration::from_millis(1)), None);
    let mut observer = worker.watched();
    drop(worker);
    for _ in 0..1000 {
        observer.read();
        if let Err(why) = observer.meanwhile(ID, 0)
            && why.contains("the thread has ended")
        {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited ten seconds for the kernel to forget a thread");
}

#[test]
fn a_page_that_is_touched_first_is_a_minor_fault() {
    // More than the allocator keeps: each comes fresh from the kernel.
    let worker = Worker::start(|| drop(black_box(vec![1_u8; 64 << 20])), None);
    let mut observer = worker.watched();
    await_counted(&mut observer, "a page fault", |counted| counted.minor_faults > Some(0));
}

#[test]
fn two_threads_that_want_one_cpu_wait_for_it() {
    let cpu = cpus().expect("affinity")[0];
    let workers = [0; 2].map(|_| Worker::start(|| (), Some(cpu)));
    let mut observer = workers[0].watched();
    let counted = await_counted(&mut observer, "a switch against its will", |counted| {
        counted.involuntary_switches > Some(0)
    });
    // A kernel may be built without this count; then it is unknown, never zero.
    assert_ne!(counted.counted.run_delay_ns, Some(0));
    assert!(counted.window_ns > 0);
}

#[test]
fn the_baseline_is_read_when_it_is_due() {
    let proc = Proc::new("due");
    proc.count(1);
    let mut observer = proc.observer();
    let read = |observer: &mut Observer, due_ns| {
        observer.due_ns = due_ns;
        observer.read_if_due();
        observer.threads[0].readings.len()
    };
    assert_eq!(read(&mut observer, u64::MAX), 0);
    assert_eq!(read(&mut observer, 0), 1);
    let read_ns = observer.threads[0].readings[0].at_ns;
    assert!(observer.due_ns <= read_ns + SPACING_NS_MAX, "however dear a reading is");
}
