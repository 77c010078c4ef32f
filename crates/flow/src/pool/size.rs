//! How many threads a pool should have, from what its work took. There is no clock and no thread
//! here: observations go in, a size and a reason come out.
//!
//! While a piece of work waits for something outside, its thread needs no CPU, and another thread
//! can have it. So with time W on a CPU and time C of waiting, `CPUs x (1 + C/W)` threads keep idle
//! CPUs busy (Goetz et al., Java Concurrency in Practice, 2006, section 8.2). If all CPUs are busy
//! already, the threads that run or wait outside are enough. Three things change this, and each has
//! its rule:
//!
//! - Waiting for a CPU, or for room in another pool, does not count as C. More threads would only
//!   wait there.
//! - The thing that is waited for may run on the same CPUs, as a database does. Then the number of
//!   threads at work grows with the size of the pool. Two sizes give a line, and from it follows
//!   the size at which exactly the threads at work, with headroom, are there.
//! - A trial shows more than a computation. If more threads did not do more work, nor did it
//!   sooner, or if fewer threads did less, the pool goes back to the size before. It stays there
//!   until the load changes or some time has passed.
//!
//! Between changes the size stays, however the throughput moves.

use sinew_figures::units::time;
use sinew_spec::plan::PoolSize;

use super::piece::Spent;

/// Shortest time from one change to the next, ns.
pub(super) const PAUSE_NS: u64 = 1_000_000_000;
/// A decision rests on observations over this time, ns.
const EVIDENCE_NS: u64 = 500_000_000;
/// Looks after a pause that do not count, because queues are still filling.
const FILLING: u32 = 2;
/// Factor of threads above what the mean needs, because work comes unevenly.
const HEADROOM: f64 = 1.25;
/// A pool grows to at most this many times its size at once.
const GROWTH_MAX: u32 = 4;
/// CPUs that idle for more than this part of the time are not busy.
const IDLE_MAX: f64 = 0.05;
/// Work that waits for a CPU for more than this part of its time needs CPUs, not threads.
const READY_MIN: f64 = 0.05;
/// If all CPUs are busy and work has less than this part of them, others have taken the rest.
const OWN_MIN: f64 = 0.5;
/// Work that waits for a thread for more than this part of its whole time needs more threads.
const QUEUED_MIN: f64 = 0.1;
/// If more than this part of the threads wait for other pools, those pools are too small.
const ELSEWHERE_MIN: f64 = 0.25;
/// A pool that is larger than needed by at most this part of its size stays so.
const PLATEAU: f64 = 0.3;
/// Two sizes must differ by this factor for a line through the observations at both.
const APART_MIN: f64 = 1.5;
/// The line's result may be smaller than the observed threads at work by at most this factor.
const LINE_MAX: f64 = 4.0;
/// Work whose times differ by more than this factor is another load ...
const OTHER_LOAD: f64 = 1.5;
/// ... if at least this many pieces ended in both observations. `SMALL_NS` is added to both times,
/// so that differences of very short times do not count, ns.
const OTHER_LOAD_PIECES: u64 = 100;
const SMALL_NS: f64 = 50_000.0;
/// A change smaller than this part, or smaller than twice the standard error of the counts, does
/// not count.
const CHANCE: f64 = 0.03;
/// How long the result of a trial counts, ns; after each further trial that fails, twice as long.
const FORGETS_AFTER_NS: u64 = 60_000_000_000;
const FORGETS_AFTER_NS_MAX: u64 = 3_600_000_000_000;
/// A pool of which at most half was at work for this long gives threads back, ns.
const REST_NS: u64 = 60_000_000_000;

/// What was seen of a pool in a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    pub(super) span_ns: u64,
    /// Of the pieces that ended in it.
    pub(super) spent: Spent,
    /// Summed times of all threads that had work, ended or not; and the part of it in which they
    /// waited for other pools.
    pub(super) occupied_ns: u64,
    pub(super) elsewhere_ns: u64,
    /// Most threads that had work at once.
    pub(super) peak: u32,
    /// Pieces that wait for a thread at its end.
    pub(super) waiting: u64,
    /// CPU time in which the pool's CPUs had nothing to do; `None` if it is unknown.
    pub(super) idle_ns: Option<u64>,
}

/// Finds a size.
pub(super) struct Sizer {
    bounds: PoolSize,
    cpus: f64,
    size: u32,
    since_change_ns: u64,
    /// Since the last decision.
    seen: Sight,
    /// How many of the [`FILLING`] looks after the last pause have been skipped.
    skipped: u32,
    /// What the last decision rested on.
    known: Option<Known>,
    /// Whether the last decision found the size too large.
    was_too_large: bool,
    tried: Tried,
    rest: Rest,
    /// The last decision's reason.
    why: String,
}

/// A load, observed at a size.
#[derive(Clone, Copy, Debug)]
struct Known {
    size: u32,
    pieces: u64,
    pieces_per_s: f64,
    /// Of a piece: from the moment that it was queued to its end.
    latency_ns: f64,
    /// Of a piece: on a CPU, and waiting outside.
    cpu_ns: f64,
    outside_ns: f64,
    /// Threads that run or wait outside, on average.
    at_work: f64,
    /// Parts of the time in which CPUs had nothing to do, and in which threads with work waited for
    /// another pool.
    idle: f64,
    elsewhere: f64,
    /// The part of all CPUs that work had.
    own: f64,
    /// CPUs are busy, and work waits for them.
    is_busy: bool,
    work_waited: bool,
}

/// Sizes that trials have shown to be wrong for this load.
#[derive(Clone, Copy, Debug)]
struct Tried {
    too_small: u32,
    too_large: u32,
    /// Why `too_large` is too large.
    no_more: &'static str,
    age_ns: u64,
    forgets_after_ns: u64,
}

const NOTHING_TRIED: Tried = Tried {
    too_small: 0,
    too_large: u32::MAX,
    no_more: "",
    age_ns: 0,
    forgets_after_ns: FORGETS_AFTER_NS,
};

/// How long at most half of the threads have been at work, and how many those were.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    span_ns: u64,
    peak: u32,
}

impl Sizer {
    pub(super) fn new(bounds: PoolSize, cpus: usize) -> Sizer {
        let why = if bounds.is_fixed() { "it is fixed" } else { "nothing is known yet" };
        Sizer {
            bounds,
            cpus: cpus.max(1) as f64,
            size: bounds.start,
            since_change_ns: 0,
            seen: Sight::default(),
            skipped: 0,
            known: None,
            was_too_large: false,
            tried: NOTHING_TRIED,
            rest: Rest::default(),
            why: why.into(),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Why the size is what it is.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// The kernel gives no more threads than these.
    pub(super) fn refused(&mut self, threads: u32, why: &str) {
        self.size = threads;
        self.tried.is_too_large(threads + 1, "the kernel gave no more threads");
        self.why = format!("the kernel gives no more than {threads} threads: {why}");
    }

    /// Takes in the observations since the last call; returns a new size, if it is time for one.
    pub(super) fn look(&mut self, sight: Sight) -> Option<u32> {
        if self.bounds.is_fixed() {
            return None;
        }
        self.since_change_ns += sight.span_ns;
        self.tried.age_ns += sight.span_ns;
        self.rest.add(&sight, self.size);
        if sight.occupied_ns == 0 && sight.waiting == 0 {
            // Work after a pause is judged without what was seen before.
            (self.seen, self.known, self.skipped) = (Sight::default(), None, 0);
        } else if self.skipped < FILLING {
            self.skipped += 1;
        } else {
            self.seen.add(sight);
        }
        let is_time = self.since_change_ns >= PAUSE_NS;
        if !is_time && self.seen.span_ns >= EVIDENCE_NS {
            // Only the newest observations count: directly after a change, queues still fill or
            // empty.
            self.seen = Sight::default();
        }
        let (size, why) = if is_time && self.rest.span_ns >= REST_NS {
            self.rested()
        } else if is_time && self.seen.span_ns >= EVIDENCE_NS {
            self.decide(sight.has_queue())
        } else {
            return None;
        };
        let is_at_bound = size == self.bounds.max && self.size == size && self.seen.waiting > 0;
        self.why = if is_at_bound { format!("{why}; at its bound max: {size}") } else { why };
        self.seen = Sight::default();
        if size == self.size {
            return None;
        }
        (self.size, self.since_change_ns, self.rest) = (size, 0, Rest::default());
        self.was_too_large = false;
        Some(size)
    }

    /// Enough threads for those that were at work recently, and no fewer than at the start.
    fn rested(&mut self) -> (u32, String) {
        let Rest { peak, .. } = std::mem::take(&mut self.rest);
        let enough = with_headroom(peak.into()).max(self.bounds.start);
        (enough.min(self.size), format!("no more than {peak} threads were at work for a minute"))
    }

    /// The size that the load asks for, and why. If the load has just ended (no `has_queue`), no
    /// work waits any more.
    fn decide(&mut self, has_queue: bool) -> (u32, String) {
        let mut now = self.seen.load(self.size, self.cpus);
        now.work_waited &= has_queue;
        if self.known.is_some_and(|known| known.is_other_than(&now)) {
            (self.known, self.tried) = (None, NOTHING_TRIED);
        }
        if self.tried.age_ns > self.tried.forgets_after_ns {
            self.tried = Tried { forgets_after_ns: self.tried.forgets_after_ns, ..NOTHING_TRIED };
        }
        let before = self.known.filter(|known| known.work_waited && now.work_waited);
        let decided = match before {
            _ if !now.work_waited => (self.size, "no work waits for a thread".into()),
            Some(before) if before.size < now.size && !now.is_better_than(&before) => {
                let Known { size, .. } = before;
                self.tried.is_too_large(size + 1, "more threads did not help");
                (
                    size,
                    format!("{} threads did not more work than {size}, and not sooner", now.size),
                )
            }
            Some(before) if before.size > now.size && before.is_better_than(&now) => {
                self.tried.is_too_small(before.size - 1);
                (before.size, format!("{} threads did less work than {}", now.size, before.size))
            }
            _ => self.fitting(&now),
        };
        // Going back is not a trial: later observations are not compared with this one.
        let goes_back = before.is_some_and(|before| before.size == decided.0);
        self.known = Some(now).filter(|_| !goes_back || decided.0 == now.size);
        decided
    }

    /// The size for this load, some of which waits for a thread.
    fn fitting(&mut self, now: &Known) -> (u32, String) {
        let Known { size, is_busy, .. } = *now;
        let is_short_elsewhere = now.elsewhere > ELSEWHERE_MIN;
        let at_work = with_headroom(self.on_the_line(now).unwrap_or(now.at_work));
        let is_too_large = is_busy && at_work < size && !is_near(size, at_work);
        // One half second in which less was done than usual is no reason to shrink; two are. But if
        // a pool looks at least twice as large as needed, one is enough.
        let was_too_large = std::mem::replace(&mut self.was_too_large, is_too_large);
        // If others have the CPUs, more threads get more CPU time, or a trial shows that they do
        // not.
        let may_grow = !is_busy || now.own < OWN_MIN;
        let enough = match is_too_large || !may_grow {
            true => at_work,
            false => with_headroom(self.cpus * (1.0 + now.outside_ns / now.cpu_ns.max(1.0))),
        };
        let enough = enough.min(self.bounds.max);
        let wanted = match is_busy || is_short_elsewhere {
            true => enough,
            // A quarter more for what the means do not show, such as threads that hang.
            false => enough.max(with_headroom(size.into())),
        };
        let wanted = wanted.min(size.saturating_mul(GROWTH_MAX));
        let wanted = self.bounded(wanted);
        let idle = format!("{:.0} % of {} CPUs idle", 100.0 * now.idle.clamp(0.0, 1.0), self.cpus);
        let (cpu, outside) = (time(now.cpu_ns), time(now.outside_ns));
        let why = match now.pieces {
            0 => format!("{idle}, work waits, and none has ended"),
            _ => {
                format!("{idle}, work takes {cpu} on one and waits {outside}: {enough} are enough")
            }
        };
        let hold = if wanted > size && !may_grow {
            "all CPUs are busy: more threads would wait for them"
        } else if wanted > size && wanted >= self.tried.too_large {
            self.tried.no_more
        } else if wanted < size && wanted > size / 2 && is_too_large && !was_too_large {
            &why
        } else if wanted <= size && is_near(size, wanted) {
            let waits = "work waits for another pool: more threads would, too";
            if is_short_elsewhere { waits } else { &why }
        } else {
            return (wanted, why);
        };
        (size, hold.to_owned())
    }

    /// Threads at work if their number grows with the size of the pool. It is the point at which
    /// the line through the observations at two sizes, while CPUs were busy, gives the threads at
    /// work of a pool that is just large enough for them. `None` if the line does not rise, or only
    /// one size was seen.
    fn on_the_line(&self, now: &Known) -> Option<f64> {
        let apart = |size: u32| f64::from(size.max(now.size)) / f64::from(size.min(now.size));
        let fits = |known: &Known| known.is_busy && apart(known.size) >= APART_MIN;
        let before = self.known.filter(fits)?;
        let slope = (now.at_work - before.at_work) / (f64::from(now.size) - f64::from(before.size));
        let alone = now.at_work - slope * f64::from(now.size);
        let right = alone.max(0.0) / (1.0 - HEADROOM * slope);
        let foretells = slope > 0.0 && HEADROOM * slope < 1.0;
        foretells.then(|| right.clamp(now.at_work / LINE_MAX, now.at_work))
    }

    fn bounded(&self, size: u32) -> u32 {
        let tried = (self.tried.too_small + 1).min(self.size);
        size.max(tried).clamp(self.bounds.min, self.bounds.max)
    }
}

impl Tried {
    fn is_too_large(&mut self, size: u32, why: &'static str) {
        (self.too_large, self.no_more) = (size, why);
        self.counts_anew();
    }

    fn is_too_small(&mut self, size: u32) {
        self.too_small = size;
        self.counts_anew();
    }

    fn counts_anew(&mut self) {
        self.age_ns = 0;
        self.forgets_after_ns = (2 * self.forgets_after_ns).min(FORGETS_AFTER_NS_MAX);
    }
}

impl Rest {
    fn add(&mut self, sight: &Sight, size: u32) {
        let is_rest = sight.peak <= size / 2;
        let Rest { span_ns, peak } = *self;
        let longer = Rest { span_ns: span_ns + sight.span_ns, peak: peak.max(sight.peak) };
        *self = if is_rest { longer } else { Rest::default() };
    }
}

impl Known {
    /// Whether `now` is another load, not only another size.
    fn is_other_than(&self, now: &Known) -> bool {
        let differs = |one_ns: f64, other_ns: f64| {
            let (less, more) = (one_ns.min(other_ns) + SMALL_NS, one_ns.max(other_ns) + SMALL_NS);
            more > OTHER_LOAD * less
        };
        // If the thing that is waited for is shared, waiting may grow with the number of threads.
        let grown = f64::from(now.size) / f64::from(self.size);
        let moved = |then_ns: f64, now_ns: f64| {
            let (low, high) = (then_ns.min(then_ns * grown), then_ns.max(then_ns * grown));
            differs(now_ns.clamp(low, high), now_ns)
        };
        self.pieces.min(now.pieces) >= OTHER_LOAD_PIECES
            && (differs(self.cpu_ns, now.cpu_ns)
                || moved(self.outside_ns, now.outside_ns)
                || (self.elsewhere - now.elsewhere).abs() > ELSEWHERE_MIN)
    }

    /// Whether this size did more work than the other, or did it sooner, by more than chance
    /// explains.
    fn is_better_than(&self, other: &Known) -> bool {
        let of = |pieces: u64| 1.0 / pieces.max(1) as f64;
        let chance = CHANCE.max(2.0 * (of(self.pieces) + of(other.pieces)).sqrt());
        let has_more = self.pieces_per_s > (1.0 + chance) * other.pieces_per_s;
        has_more || (1.0 + chance) * self.latency_ns < other.latency_ns
    }
}

impl Sight {
    fn add(&mut self, more: Sight) {
        self.idle_ns = match self.span_ns {
            0 => more.idle_ns,
            // If one part is unknown, the sum is.
            _ => self.idle_ns.zip(more.idle_ns).map(|(one, other)| one + other),
        };
        // Work waits if it did so at every look.
        self.waiting =
            if self.span_ns == 0 { more.waiting } else { self.waiting.min(more.waiting) };
        self.span_ns += more.span_ns;
        self.spent.add(more.spent);
        self.occupied_ns += more.occupied_ns;
        self.elsewhere_ns += more.elsewhere_ns;
        self.peak = self.peak.max(more.peak);
    }

    /// Whether work waited for threads: at every look, or for a considerable part of its time.
    fn has_queue(&self) -> bool {
        let Spent { wall_ns, queued_ns, .. } = self.spent;
        self.waiting > 0 || queued_ns as f64 > QUEUED_MIN * (queued_ns + wall_ns) as f64
    }

    /// Time neither on a CPU nor waiting for one, nor waiting for another pool.
    fn outside_ns(&self) -> u64 {
        let Spent { cpu_ns, ready_ns, .. } = self.spent;
        self.occupied_ns.saturating_sub(cpu_ns + ready_ns + self.elsewhere_ns)
    }

    fn load(&self, size: u32, cpus: f64) -> Known {
        let Spent { pieces, wall_ns, cpu_ns, ready_ns, queued_ns } = self.spent;
        let of_piece = |ns: u64| ns as f64 / pieces.max(1) as f64;
        let whole_ns = queued_ns + wall_ns;
        // A thread that waits for a CPU inside a wait for another pool is counted in both times,
        // hence the lower bound of the CPU time.
        let at_work_ns = self.occupied_ns.saturating_sub(ready_ns + self.elsewhere_ns).max(cpu_ns);
        // If it is unknown whether CPUs idle, a pool may grow, and the result of that decides.
        let idle = self.idle_ns.map_or(1.0, |idle_ns| idle_ns as f64 / self.span(cpus));
        let of_occupied = |ns: u64| ns as f64 / self.occupied_ns.max(1) as f64;
        Known {
            size,
            pieces,
            pieces_per_s: pieces as f64 * 1e9 / self.span(1.0),
            latency_ns: if pieces > 0 { of_piece(whole_ns) } else { f64::INFINITY },
            cpu_ns: of_piece(cpu_ns),
            outside_ns: of_piece(self.outside_ns()),
            at_work: at_work_ns as f64 / self.span(1.0),
            idle,
            elsewhere: of_occupied(self.elsewhere_ns),
            own: cpu_ns as f64 / self.span(cpus),
            // Busy CPUs do not matter to work that hardly waits for them.
            is_busy: idle <= IDLE_MAX && of_occupied(ready_ns) > READY_MIN,
            work_waited: self.has_queue(),
        }
    }

    fn span(&self, times: f64) -> f64 {
        self.span_ns.max(1) as f64 * times
    }
}

/// At least one more: with few threads a quarter would round to none.
fn with_headroom(threads: f64) -> u32 {
    ((HEADROOM * threads).ceil() as u32).max((threads.ceil() as u32).saturating_add(1))
}

/// Whether a pool of this size need not shrink to the other one.
fn is_near(size: u32, smaller: u32) -> bool {
    f64::from(size.saturating_sub(smaller)) <= (PLATEAU * f64::from(size)).max(1.0)
}

#[cfg(test)]
mod tests;
