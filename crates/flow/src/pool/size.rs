//! How many threads a pool should have, from what its work took. No clock, no threads: what was
//! seen comes in, a size and a reason come out.
//!
//! While a piece of work waits for something outside, its thread needs no CPU, and another thread
//! can have it. So with W on a CPU and C of waiting, `CPUs x (1 + C/W)` threads keep idle CPUs busy
//! (Goetz et al., Java Concurrency in Practice, 2006, section 8.2). Where all are busy already, the
//! threads that are on one or wait outside are enough: pieces a second times W + C (Little's law).
//! Three things bend this, and each has its rule:
//!
//! - Waiting for a CPU, or for room in another pool, is not C. More threads would only wait there.
//! - What is waited for may run on the same CPUs, as a database does. Then C grows with the
//!   number of threads. Two sizes with their C give a line, and the size at which both agree
//!   follows from it. A pool does not grow while its CPUs are busy and its work waits for them.
//! - What was tried shows more than what was computed. A smaller size with which CPUs idled while
//!   work waited was too small; a larger one with which no more work was done is given up. Both
//!   hold until the load changes.
//!
//! It climbs no hill: between changes it holds still, however the throughput moves.

use sinew_spec::plan::PoolSize;

use super::piece::Spent;

/// From one change to the next, at least, ns.
pub(super) const PAUSE_NS: u64 = 1_000_000_000;
/// A decision rests on what was seen for so long, ns, ...
const EVIDENCE_NS: u64 = 500_000_000;
/// ... and on so many pieces of work. Fewer in [`PATIENCE_NS`] are too few to say anything.
const PIECES_MIN: u64 = 20;
const PATIENCE_NS: u64 = 5_000_000_000;
/// Threads more than the mean needs: work comes unevenly.
const HEADROOM: f64 = 1.25;
/// A pool grows to no more than so many times its size at once.
const GROWTH_MAX: u32 = 4;
/// CPUs that idle for a larger part of the time are not busy.
const IDLE_MAX: f64 = 0.05;
/// Work that waits for a CPU for a larger part of its time needs no more threads, but CPUs.
const READY_MIN: f64 = 0.05;
/// Work that waits for a thread for a larger part of its whole time needs more of them.
const QUEUED_MIN: f64 = 0.1;
/// A pool that is larger than needed by no more than this part of it stays so.
const PLATEAU: f64 = 0.3;
/// A line may foretell this part of what was seen, and no less.
const LINE_MAX: f64 = 4.0;
/// Sizes must be so many times apart for a line through what was seen with them.
const APART_MIN: f64 = 1.5;
/// Work that took so many times as long, or as short, is another load.
const OTHER_LOAD: f64 = 1.5;
/// Times below are as good as none when loads are compared, ns.
const SMALL_NS: f64 = 50_000.0;
/// A larger size must bring so many times the work.
const GAIN_MIN: f64 = 1.03;
/// What was tried counts for so long, ns.
const FORGETS_AFTER_NS: u64 = 60_000_000_000;

/// What was seen of a pool in a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    pub(super) span_ns: u64,
    /// Of the pieces that ended in it.
    pub(super) spent: Spent,
    /// Pieces that wait for a thread at its end.
    pub(super) waiting: u64,
    /// CPU time in which the pool's CPUs had nothing to do; `None` if nobody says.
    pub(super) idle_ns: Option<u64>,
}

/// Finds a size.
pub(super) struct Sizer {
    bounds: PoolSize,
    cpus: f64,
    size: u32,
    /// The size before the last change.
    came_from: u32,
    since_change_ns: u64,
    /// Since the last decision or change.
    seen: Sight,
    tried: Tried,
    /// What the last decision rested on.
    known: Option<Known>,
    /// Its reason.
    why: String,
}

/// A load, at a size.
#[derive(Clone, Copy, Debug)]
struct Known {
    size: u32,
    /// On a CPU and waiting outside, per piece.
    cpu_ns: f64,
    waiting_ns: f64,
    pieces_per_s: f64,
    /// Whether more threads came after it.
    grew: bool,
}

/// What sizes have shown of themselves with this load.
#[derive(Clone, Copy, Debug)]
struct Tried {
    too_small: u32,
    too_large: u32,
    age_ns: u64,
}

const NOTHING_TRIED: Tried = Tried { too_small: 0, too_large: u32::MAX, age_ns: 0 };

impl Sizer {
    pub(super) fn new(bounds: PoolSize, cpus: usize) -> Sizer {
        let why = match bounds.is_fixed() {
            true => "as the spec says",
            false => "nothing is known yet",
        };
        Sizer {
            bounds,
            cpus: cpus.max(1) as f64,
            size: bounds.start,
            came_from: bounds.start,
            since_change_ns: 0,
            seen: Sight::default(),
            tried: NOTHING_TRIED,
            known: None,
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
        self.tried.too_large = threads + 1;
        self.why = format!("the kernel gives no more than {threads} threads: {why}");
    }

    /// Takes in what was seen since the last call; a new size, if it is time for one.
    pub(super) fn look(&mut self, sight: Sight) -> Option<u32> {
        if self.bounds.is_fixed() {
            return None;
        }
        self.since_change_ns += sight.span_ns;
        self.tried.age_ns += sight.span_ns;
        self.seen.add(sight);
        if self.since_change_ns < PAUSE_NS || self.seen.span_ns < EVIDENCE_NS {
            return None;
        }
        let (size, why) = match self.seen.spent.pieces {
            0 if self.seen.waiting > 0 && self.seen.span_ns >= PAUSE_NS => {
                let why = "work waits, and for a second none has ended".to_owned();
                (self.bounded(self.size.saturating_mul(2)), why)
            }
            PIECES_MIN.. => self.decide(),
            _ if self.seen.span_ns < PATIENCE_NS => return None,
            _ => (self.size, "too little work to judge by".into()),
        };
        let is_at_bound = size == self.bounds.max && self.size == size && self.seen.waiting > 0;
        self.why = if is_at_bound { format!("{why}; at its bound max: {size}") } else { why };
        self.seen = Sight::default();
        if size == self.size {
            return None;
        }
        (self.came_from, self.size, self.since_change_ns) = (self.size, size, 0);
        Some(size)
    }

    /// What the load asks for, and why.
    fn decide(&mut self) -> (u32, String) {
        let now = self.seen.load(self.size);
        self.forget(&now);
        let idle = self.seen.idle(self.cpus);
        let spent = self.seen.spent;
        let work_waits =
            spent.queued_ns as f64 > QUEUED_MIN * (spent.queued_ns + spent.wall_ns) as f64;
        let (size, why) = if !work_waits {
            (self.size, "no work waits for a thread".into())
        } else if let Some(before) = self.in_vain(&now) {
            self.tried.too_large = before + 1;
            self.tried.too_small = self.tried.too_small.min(before.saturating_sub(1));
            let why = format!("{} threads did no more work than {before}", self.size);
            (self.bounded(before), why)
        } else {
            self.fitting(&now, idle)
        };
        self.known = Some(Known { grew: size > self.size, ..now });
        (size, why)
    }

    /// Forgets what was tried if this is another load, or if that is long ago.
    fn forget(&mut self, now: &Known) {
        let is_other = self.known.is_some_and(|known| {
            // Where what is waited for is shared, waiting may grow as the number of threads does.
            let scaled_ns = known.waiting_ns * f64::from(now.size) / f64::from(known.size);
            let nearest_ns = now
                .waiting_ns
                .clamp(known.waiting_ns.min(scaled_ns), known.waiting_ns.max(scaled_ns));
            differs(known.cpu_ns, now.cpu_ns) || differs(nearest_ns, now.waiting_ns)
        });
        if is_other {
            self.known = None;
        }
        if is_other || self.tried.age_ns > FORGETS_AFTER_NS {
            self.tried = NOTHING_TRIED;
        }
    }

    /// The size before, if more threads have done no more work than those, for a time no shorter.
    fn in_vain(&self, now: &Known) -> Option<u32> {
        let before = self.known.filter(|known| known.grew && known.size < now.size)?;
        (now.pieces_per_s < GAIN_MIN * before.pieces_per_s).then_some(before.size)
    }

    /// The size for this load, of which some waits for a thread.
    fn fitting(&mut self, now: &Known, idle: f64) -> (u32, String) {
        // Where CPUs are busy with other things, but work hardly waits for them, it is no matter.
        let is_busy = idle <= IDLE_MAX && self.seen.spent.ready_share() > READY_MIN;
        let right = match is_busy {
            true => {
                let right = now.at_work(now.waiting_ns);
                self.on_the_line(now).map_or(right, |line| line.clamp(right / LINE_MAX, right))
            }
            false => self.cpus * (1.0 + now.waiting_ns / now.cpu_ns.max(1.0)),
        };
        let enough = (HEADROOM * right).ceil() as u32;
        let elsewhere = self.seen.spent.elsewhere_ns > self.seen.spent.wall_ns / 4;
        let why = format!(
            "{} of {} CPUs idle, a piece takes {} on one and waits {}: {enough} threads are enough",
            percent(idle),
            self.cpus,
            sinew_figures::units::time(now.cpu_ns),
            sinew_figures::units::time(now.waiting_ns),
        );
        let mut size = enough;
        if !is_busy && !elsewhere {
            // What the means do not show, as threads that hang.
            size = size.max((f64::from(self.size) * HEADROOM).ceil() as u32);
            size = size.min(self.size.saturating_mul(GROWTH_MAX));
        }
        let hold = match size > self.size {
            true if is_busy => Some("all CPUs are busy: more threads would wait for them"),
            true if elsewhere => Some("work waits for another pool: more threads would, too"),
            true if size >= self.tried.too_large => Some("more threads did no more work"),
            true => {
                if self.came_from > self.size {
                    self.tried.too_small = self.tried.too_small.max(self.size);
                }
                None
            }
            false if is_near(self.size, size) => Some(why.as_str()),
            false => None,
        };
        match hold {
            Some(why) => (self.size, why.to_owned()),
            None => (self.bounded(size), why),
        }
    }

    /// Threads at work where waiting grows with their number: the size at which what a line through
    /// two sizes foretells is that size. `None` if it does not grow, or one size only was seen.
    fn on_the_line(&self, now: &Known) -> Option<f64> {
        let apart = |size: u32| f64::from(size.max(now.size)) / f64::from(size.min(now.size));
        let before = self.known.filter(|known| apart(known.size) >= APART_MIN)?;
        let slope_ns =
            (now.waiting_ns - before.waiting_ns) / (f64::from(now.size) - f64::from(before.size));
        let alone_ns = (now.waiting_ns - slope_ns * f64::from(now.size)).max(0.0);
        let gain = HEADROOM * (now.at_work(slope_ns) - now.at_work(0.0));
        let right = now.at_work(alone_ns) / (1.0 - gain);
        (slope_ns > 0.0 && gain < 1.0).then_some(right)
    }

    fn bounded(&self, size: u32) -> u32 {
        size.max(self.tried.too_small + 1).clamp(self.bounds.min, self.bounds.max)
    }
}

impl Known {
    /// Threads that are on a CPU or wait so long for each piece: by Little's law, what comes in a
    /// second times how long it stays.
    fn at_work(&self, waiting_ns: f64) -> f64 {
        self.pieces_per_s * (self.cpu_ns + waiting_ns) * 1e-9
    }
}

impl Sight {
    fn add(&mut self, more: Sight) {
        self.span_ns += more.span_ns;
        self.spent.add(more.spent);
        self.waiting = more.waiting;
        self.idle_ns = more.idle_ns.map(|idle_ns| idle_ns + self.idle_ns.unwrap_or_default());
    }

    fn load(&self, size: u32) -> Known {
        let of_piece = |ns: u64| ns as f64 / self.spent.pieces.max(1) as f64;
        Known {
            size,
            cpu_ns: of_piece(self.spent.cpu_ns),
            waiting_ns: of_piece(self.spent.waiting_ns()),
            pieces_per_s: self.spent.pieces as f64 * 1e9 / self.span_ns.max(1) as f64,
            grew: false,
        }
    }

    /// The part of the time in which CPUs had nothing to do. Where nobody says, all of it: then a
    /// pool may grow, and what that brings decides.
    fn idle(&self, cpus: f64) -> f64 {
        let whole_ns = self.span_ns.max(1) as f64 * cpus;
        self.idle_ns.map_or(1.0, |idle_ns| idle_ns as f64 / whole_ns)
    }
}

fn differs(one_ns: f64, other_ns: f64) -> bool {
    let (less, more) = (one_ns.min(other_ns) + SMALL_NS, one_ns.max(other_ns) + SMALL_NS);
    more > OTHER_LOAD * less
}

/// Whether a pool of this size need not shrink to the other one.
fn is_near(size: u32, smaller: u32) -> bool {
    f64::from(size.saturating_sub(smaller)) <= (PLATEAU * f64::from(size)).max(1.0)
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;
