//! The sizer on a simulated machine: what a pool does with a load is computed from the numbers of
//! threads, CPUs and connections.

use super::*;

/// How often the sizer looks, ns.
const LOOK_NS: u64 = 100_000_000;

/// A load with work that always waits for a thread. Times are per piece, ns.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// On a CPU.
    cpu: f64,
    /// Asleep.
    asleep: f64,
    /// Time that others spend for this piece, on the same CPUs.
    others: f64,
    /// Under a lock that one thread at a time has; the thread sleeps then.
    locked: f64,
    /// Connections of another pool; `None` if the work needs none.
    connections: Option<f64>,
    /// Threads that hang.
    hanging: f64,
    /// Threads of others that want a CPU all the time.
    hogs: f64,
}

const CPU_ONLY: Load = Load {
    cpu: 300e3,
    asleep: 0.0,
    others: 50e3,
    locked: 0.0,
    connections: None,
    hanging: 0.0,
    hogs: 0.0,
};
const SLEEP_1MS: Load = Load { asleep: 1.06e6, ..CPU_ONLY };
const SLEEP_3MS: Load = Load { asleep: 3.06e6, ..CPU_ONLY };
const QUERY: Load = Load { asleep: 60e3, others: 200e3, connections: Some(10.0), ..CPU_ONLY };
const FEW_CONNECTIONS: Load = Load { asleep: 1e6, connections: Some(4.0), ..CPU_ONLY };

/// What a pool did, and what the sizer sees of it.
struct Seen {
    pieces_per_s: f64,
    sight: Sight,
}

/// How many CPUs there are.
const CPUS: f64 = 2.0;

impl Load {
    /// What a pool of this many threads does between two looks; `noise` is around 1. By Little's
    /// law, the rest of a piece's time is spent where the queue is.
    fn on(&self, threads: u32, noise: f64) -> Seen {
        let whole = f64::from(threads) * LOOK_NS as f64;
        let threads = (f64::from(threads) - self.hanging).max(0.0);
        let least = self.cpu + self.asleep + self.locked + self.others;
        let connected = self.asleep + self.others;
        let of_connections = self.connections.map_or(f64::INFINITY, |held| held / connected);
        let of_lock = if self.locked > 0.0 { 1.0 / self.locked } else { f64::INFINITY };
        // Each thread of others gets the same share as each ready thread of ours.
        let cpus = CPUS * threads / (threads + self.hogs);
        let of_cpus = cpus / (self.cpu + self.others);
        let rate = (threads / least).min(of_connections).min(of_lock).min(of_cpus) * noise;
        let (mut ready, mut elsewhere, mut wall) = (0.0, 0.0, 0.0);
        if rate > 0.0 {
            wall = threads / rate;
            let rest = (wall - least).max(0.0);
            if rate >= of_cpus * noise * 0.999 {
                ready = rest * self.cpu / (self.cpu + self.others);
                // At most as many threads as there are connections can wait there.
                let room = self.connections.map_or(f64::INFINITY, |held| held / rate - connected);
                elsewhere = (rest - ready - room.max(0.0)).max(0.0);
            } else if rate < of_lock * noise * 0.999 {
                elsewhere = rest;
            }
        }
        let pieces = rate * LOOK_NS as f64;
        let of_all = |each: f64| (each * pieces) as u64;
        let spent = Spent {
            pieces: pieces.round() as u64,
            wall_ns: of_all(wall),
            cpu_ns: of_all(self.cpu),
            ready_ns: of_all(ready),
            queued_ns: of_all(400e9 / (rate * 1e9) - wall),
        };
        let busy = (rate * (self.cpu + self.others)).min(CPUS);
        let busy = if self.hogs > 0.0 { CPUS } else { busy };
        let sight = Sight {
            span_ns: LOOK_NS,
            spent,
            occupied_ns: whole as u64,
            elsewhere_ns: of_all(elsewhere),
            peak: 1000,
            waiting: 99,
            idle_ns: Some(((CPUS - busy) * LOOK_NS as f64) as u64),
        };
        Seen { pieces_per_s: rate * 1e9, sight }
    }

    /// The highest throughput of any size.
    fn best(&self) -> f64 {
        (1..=512).map(|threads| self.on(threads, 1.0).pieces_per_s).fold(0.0, f64::max)
    }
}

/// A sizer at work.
struct Bench {
    sizer: Sizer,
    random: fastrand::Rng,
    now_ns: u64,
    /// When the size changed, and to what.
    changes: Vec<(u64, u32)>,
}

impl Bench {
    fn of(start: u32, min: u32, max: u32) -> Bench {
        let sizer = Sizer::new(PoolSize { start, min, max }, 2);
        Bench { sizer, random: fastrand::Rng::with_seed(7), now_ns: 0, changes: Vec::new() }
    }

    /// Goes on for this many seconds with a load.
    fn run(&mut self, load: Load, seconds: u64) {
        let until_ns = self.now_ns + seconds * 1_000_000_000;
        while self.now_ns < until_ns {
            self.now_ns += LOOK_NS;
            let noise = 0.97 + 0.06 * self.random.f64();
            let sight = load.on(self.sizer.size(), noise).sight;
            if let Some(size) = self.sizer.look(sight) {
                self.changes.push((self.now_ns, size));
            }
        }
    }

    /// How far the throughput with this size is below the best one.
    fn below_best(&self, load: Load) -> f64 {
        1.0 - load.on(self.sizer.size(), 1.0).pieces_per_s / load.best()
    }

    fn changes_since(&self, from_ns: u64) -> usize {
        self.changes.iter().filter(|(at_ns, _)| *at_ns > from_ns).count()
    }
}

#[test]
fn each_load_has_its_size_within_three_seconds_and_keeps_it() {
    let loads =
        [CPU_ONLY, SLEEP_1MS, SLEEP_3MS, CPU_ONLY, QUERY, FEW_CONNECTIONS, SLEEP_3MS, QUERY];
    let mut bench = Bench::of(8, 2, 512);
    for load in loads {
        let begun_ns = bench.now_ns;
        bench.run(load, 3);
        let below = bench.below_best(load);
        assert!(below < 0.05, "{load:?}: {below} with {} threads", bench.sizer.size());
        let settled_ns = bench.now_ns;
        bench.run(load, 40);
        let late = bench.changes_since(settled_ns);
        assert_eq!(late, 0, "{load:?} from {begun_ns}: {:?}", bench.changes);
    }
    let gaps = bench.changes.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.min() >= Some(PAUSE_NS), "{:?}", bench.changes);
}

#[test]
fn more_threads_than_needed_are_given_back() {
    let mut bench = Bench::of(400, 2, 512);
    bench.run(CPU_ONLY, 3);
    assert!(bench.sizer.size() <= 5, "{}", bench.sizer.size());
    let mut bench = Bench::of(200, 2, 512);
    bench.run(QUERY, 4);
    assert!(bench.sizer.size() <= 10, "{:?}", bench.changes);
    assert!(bench.below_best(QUERY) < 0.05);
}

#[test]
fn a_lock_that_all_work_needs_does_not_draw_thread_after_thread() {
    let locked = Load { cpu: 100e3, locked: 900e3, ..CPU_ONLY };
    let mut bench = Bench::of(8, 2, 512);
    bench.run(locked, 50);
    assert!(bench.sizer.size() <= 10, "{:?}", bench.changes);
    assert!(bench.changes.len() <= 4, "{:?}", bench.changes);
    assert!(bench.sizer.why().contains("did not help"), "{}", bench.sizer.why());
}

#[test]
fn where_what_is_waited_for_has_the_cpus_it_tries_once_and_goes_back() {
    let database = Load { cpu: 100e3, others: 600e3, ..CPU_ONLY };
    let mut bench = Bench::of(8, 2, 512);
    bench.run(database, 60);
    assert_eq!((bench.sizer.size(), bench.changes.len()), (8, 2), "{:?}", bench.changes);
    assert_eq!(bench.sizer.why(), "more threads did not help");
    let mut bench = Bench::of(8, 2, 512);
    bench.run(Load { others: 100e3, ..CPU_ONLY }, 60);
    assert!(bench.sizer.size() < 8 && bench.changes.len() <= 2, "{:?}", bench.changes);
}

#[test]
fn where_others_have_the_cpus_it_takes_its_share() {
    let crowded = Load { hogs: 2.0, others: 0.0, ..SLEEP_3MS };
    let mut bench = Bench::of(8, 2, 512);
    bench.run(crowded, 5);
    assert!(bench.sizer.size() > 16, "{:?} {}", bench.changes, bench.sizer.why());
}

#[test]
fn busy_cpus_are_no_matter_to_work_that_hardly_needs_them() {
    let asleep = Load { cpu: 20e3, others: 0.0, asleep: 100e6, ..CPU_ONLY };
    let mut bench = Bench::of(8, 2, 64);
    for _ in 0..50 {
        let mut sight = asleep.on(bench.sizer.size(), 1.0).sight;
        sight.idle_ns = Some(0);
        sight.spent.ready_ns = sight.occupied_ns / 50;
        bench.sizer.look(sight);
    }
    assert_eq!(bench.sizer.size(), 64, "{}", bench.sizer.why());
}

#[test]
fn threads_that_hang_are_replaced_unless_all_do() {
    let mut bench = Bench::of(4, 2, 32);
    bench.run(Load { hanging: 1000.0, ..CPU_ONLY }, 30);
    assert_eq!((bench.sizer.size(), bench.changes.len()), (4, 2), "{:?}", bench.changes);
    let mut bench = Bench::of(4, 2, 32);
    bench.run(Load { hanging: 3.0, ..SLEEP_1MS }, 10);
    assert!(bench.sizer.size() > 8, "{:?}", bench.changes);
    let size = bench.sizer.size();
    bench.run(Load { hanging: 1000.0, ..SLEEP_1MS }, 10);
    assert_eq!(bench.sizer.size(), size, "{:?}", bench.changes);
    assert_eq!(bench.sizer.why(), "more threads did not help");
}

#[test]
fn who_else_wants_the_cpus_does_not_push_it_down() {
    let crowded = Load { hogs: 2.0, others: 0.0, ..CPU_ONLY };
    let mut bench = Bench::of(8, 2, 512);
    bench.run(crowded, 50);
    assert_eq!(bench.sizer.size(), 8, "{:?}", bench.changes);
    assert!(bench.changes.len() <= 2, "{:?}", bench.changes);
}

#[test]
fn long_work_under_way_counts_as_long_as_it_lasts() {
    // Half of the threads wait for seconds, the others have short work and all CPUs.
    let mut bench = Bench::of(16, 2, 512);
    for _ in 0..200 {
        let mut sight = CPU_ONLY.on(bench.sizer.size() - 8, 1.0).sight;
        sight.occupied_ns += 8 * LOOK_NS;
        bench.sizer.look(sight);
    }
    assert!(bench.sizer.size() >= 11, "{}", bench.sizer.why());
}

#[test]
fn a_pause_says_nothing_of_what_comes_after_it() {
    let nothing = Sight { span_ns: LOOK_NS, idle_ns: Some(2 * LOOK_NS), ..Sight::default() };
    let mut bench = Bench::of(8, 2, 512);
    for _ in 0..33 {
        assert_eq!(bench.sizer.look(nothing), None);
    }
    bench.run(CPU_ONLY, 3);
    let sizes: Vec<_> = bench.changes.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [4]);
}

#[test]
fn a_pool_that_has_long_been_too_large_gives_threads_back() {
    let mut bench = Bench::of(8, 2, 512);
    bench.run(SLEEP_3MS, 3);
    assert!(bench.sizer.size() > 20);
    let few = Sight { span_ns: LOOK_NS, occupied_ns: LOOK_NS, peak: 3, ..Sight::default() };
    let changes = (0..1300).filter_map(|_| bench.sizer.look(few)).collect::<Vec<_>>();
    assert_eq!(changes, [8], "no fewer than at the start");
}

#[test]
fn more_connections_are_another_load() {
    let mut bench = Bench::of(8, 2, 512);
    let few = Load { connections: Some(2.0), ..FEW_CONNECTIONS };
    bench.run(few, 10);
    let many = Load { connections: Some(100.0), ..FEW_CONNECTIONS };
    bench.run(many, 3);
    assert!(bench.below_best(many) < 0.05, "{:?}", bench.changes);
}

#[test]
fn bounds_hold() {
    let mut bench = Bench::of(3, 3, 5);
    bench.run(SLEEP_3MS, 5);
    assert_eq!(bench.sizer.size(), 5);
    bench.run(Load { others: 0.0, ..CPU_ONLY }, 5);
    assert_eq!(bench.sizer.size(), 3);
    let mut fixed = Bench::of(6, 6, 6);
    fixed.run(SLEEP_3MS, 5);
    assert_eq!((fixed.changes.len(), fixed.sizer.why()), (0, "it is fixed"));
}

#[test]
fn without_work_it_stays_as_it_is() {
    let mut bench = Bench::of(8, 2, 512);
    bench.run(SLEEP_3MS, 3);
    let size = bench.sizer.size();
    let nothing = Sight { span_ns: LOOK_NS, idle_ns: Some(2 * LOOK_NS), ..Sight::default() };
    for _ in 0..500 {
        assert_eq!(bench.sizer.look(nothing), None);
    }
    assert_eq!(bench.sizer.size(), size);
    // If work finds a thread at once, the pool needs neither more threads nor fewer.
    let mut few = SLEEP_1MS.on(size, 1.0).sight;
    (few.spent.queued_ns, few.waiting) = (0, 0);
    for _ in 0..600 {
        assert_eq!(bench.sizer.look(few), None);
    }
    assert_eq!(bench.sizer.why(), "no work waits for a thread");
}

#[test]
fn where_nobody_says_whether_cpus_idle_what_growth_brings_decides() {
    let mut bench = Bench::of(8, 2, 512);
    let mut look = |seconds: u64| {
        for _ in 0..seconds * 10 {
            let sight = SLEEP_1MS.on(bench.sizer.size(), 1.0).sight;
            bench.sizer.look(Sight { idle_ns: None, ..sight });
        }
        bench.sizer.size()
    };
    let settled = look(6);
    assert!((8..=14).contains(&settled), "{settled}");
    assert_eq!(look(30), settled);
}

#[test]
fn a_kernel_that_gives_no_more_threads_is_believed() {
    let mut bench = Bench::of(8, 2, 512);
    bench.run(SLEEP_3MS, 1);
    bench.sizer.refused(10, "no room");
    assert!(bench.sizer.why().contains("no more than 10 threads: no room"));
    bench.run(SLEEP_3MS, 20);
    assert_eq!(bench.sizer.size(), 10);
}
