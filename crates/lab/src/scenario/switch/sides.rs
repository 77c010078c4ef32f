//! Both sides, in processes of their own. The near side measures its turns and, in between, the
//! same walk through the same pages without a switch. The far side takes its turns until it is told
//! to end. The results go to the lab, which walks through nothing itself.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_core::clock::{Clock, now_ns};
use sinew_core::privileges::{Asked, obtain};
use sinew_core::sys::Region;
use sinew_figures::process::switches_of_this_thread;

use super::array::WalkedArray;
use super::baton::{Baton, CallsAlone, TurnWord, TurnWords};
use super::case::SwitchCase;
use crate::harness::process::FarSide;
use crate::harness::{Gone, Placement};

/// Both sides, each in its process; or the near side with the far side on a thread.
pub(crate) const PART: FarSide = FarSide { name: "switch", run };

/// SCHED_FIFO priority of both sides: above everything that is not realtime, below everything else
/// that is.
pub(super) const PRIORITY: u8 = 10;
/// How many times a block of turns and a block of walks without a switch follow one another.
const BLOCKS: u32 = 4;
/// Fewest values of a block: the median of a round needs ten on either side.
const VALUES_MIN: usize = 6;
/// Most values of a block: more would show nothing more.
const VALUES_MAX: usize = 20_000;
/// Fewest values of what takes only a call or two.
const CALLS: usize = 2_000;

/// What a side is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    pub(super) is_near: bool,
    pub(super) case: SwitchCase,
    pub(super) cpu: u32,
    /// The time for all blocks of the near side.
    pub(super) budget: Duration,
    pub(super) clock: Clock,
    /// The seed of random walks.
    pub(super) seed: u64,
}

impl Order {
    /// As text, for another process.
    pub(super) fn to_text(self) -> String {
        let Order { is_near, case, cpu, budget, clock, seed } = self;
        let (rate, ns) = (clock.rate().to_bits(), budget.as_nanos());
        format!("{is_near} {cpu} {ns} {rate} {seed} {}", case.to_text())
    }

    fn parse(text: &str) -> Option<Order> {
        let words: Vec<_> = text.split(' ').collect();
        let [is_near, cpu, ns, rate, seed, case @ ..] = &words[..] else { return None };
        Some(Order {
            is_near: is_near.parse().ok()?,
            case: SwitchCase::parse(case)?,
            cpu: cpu.parse().ok()?,
            budget: Duration::from_nanos(ns.parse().ok()?),
            clock: Clock::from_rate(f64::from_bits(rate.parse().ok()?)),
            seed: seed.parse().ok()?,
        })
    }
}

/// What the kernel counted for a side, and the scheduling that it gave the side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SideCount {
    /// How often it handed the CPU over, or should have.
    pub(super) handed: u64,
    /// How often it lost the CPU, as counted by the kernel.
    pub(super) switches: u64,
    /// The number of its SCHED_* policy.
    pub(super) policy: i32,
    pub(super) priority: u8,
}

/// What the near side found; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Time from when the near side had the turn until the far side had it.
    pub(super) turns: Vec<u64>,
    /// Times of the walk alone.
    pub(super) walks: Vec<u64>,
    /// Times of the calls alone; only without an array, and not for all ways.
    pub(super) calls: Vec<u64>,
    pub(super) near: SideCount,
    pub(super) far: SideCount,
}

fn run(text: &str, mut descriptors: Vec<OwnedFd>) -> Result<(), Gone> {
    let order = Order::parse(text).ok_or_else(|| Gone(format!("'{text}' is not an order")))?;
    let failed = |error: std::io::Error| Gone(format!("cannot map the turn: {error}"));
    let mut next = || match descriptors.is_empty() {
        true => Err(Gone("too few descriptors".into())),
        false => Ok(descriptors.remove(0)),
    };
    let words = TurnWords(Region::map(next()?).map_err(failed)?);
    if !order.is_near {
        return far(order, words, descriptors);
    }
    let mut lab = UnixStream::from(next()?);
    let ends = descriptors.len() / 2;
    let told = match order.case.between {
        Placement::Processes => near(order, words, descriptors)?,
        Placement::Threads => {
            let theirs = descriptors.split_off(ends);
            let (order_there, words_there) = (Order { seed: !order.seed, ..order }, words.clone());
            let other = thread::spawn(move || far(order_there, words_there, theirs));
            let told = near(order, words, descriptors)?;
            other.join().map_err(|_| Gone("the far side panicked".into()))??;
            told
        }
    };
    let text = serde_json::to_vec(&told).map_err(|error| Gone(error.to_string()))?;
    lab.write_all(&text).map_err(|error| Gone(format!("cannot tell the lab: {error}")))
}

/// The policy and the priority that the kernel gave, as read back.
fn scheduled(cpu: u32) -> (i32, u8) {
    let obtained = obtain(&Asked { priority: PRIORITY, cpu: Some(cpu) });
    (obtained.policy, obtained.priority)
}

fn switches() -> Result<u64, Gone> {
    switches_of_this_thread().map_err(|error| Gone(error.to_string()))
}

fn far(order: Order, words: TurnWords, descriptors: Vec<OwnedFd>) -> Result<(), Gone> {
    let (policy, priority) = scheduled(order.cpu);
    let mut array = WalkedArray::new(&order.case, order.seed);
    let mut baton = Baton::new(order.case.by, words.clone(), 1, descriptors)?;
    words.say(TurnWord::Ready);
    words.hear(TurnWord::Go)?;
    baton.take()?;
    // Whatever came before the first turn does not count.
    baton.handed = 0;
    let before = switches()?;
    loop {
        let now = order.clock.ticks();
        words.set(TurnWord::ArrivedLow, now as u32);
        words.set(TurnWord::ArrivedHigh, (now >> 32) as u32);
        if words.get(TurnWord::Stop) == 1 {
            break;
        }
        array.walk();
        baton.pass()?;
    }
    words.set(TurnWord::Handed, baton.handed as u32);
    words.set(TurnWord::Switches, (switches()? - before) as u32);
    words.set(TurnWord::Policy, policy as u32);
    words.set(TurnWord::Priority, u32::from(priority));
    words.say(TurnWord::Done);
    Ok(())
}

fn near(order: Order, words: TurnWords, descriptors: Vec<OwnedFd>) -> Result<Told, Gone> {
    let (policy, priority) = scheduled(order.cpu);
    let baton = Baton::new(order.case.by, words.clone(), 0, descriptors)?;
    let array = WalkedArray::new(&order.case, order.seed);
    let mut near = Near { clock: order.clock, words, baton, array };
    let mut told = Told::default();
    told.near = SideCount { policy, priority, ..told.near };
    near.words.hear(TurnWord::Ready)?;
    near.words.say(TurnWord::Go);
    let share_ns = order.budget.as_nanos() as u64 / u64::from(2 * BLOCKS);
    for _ in 0..BLOCKS {
        near.turns(share_ns, &mut told)?;
        near.walks(share_ns, &mut told)?;
    }
    if order.case.array == 0
        && let Some(mut alone) = CallsAlone::new(order.case.by)?
    {
        for _ in 0..CALLS {
            told.calls.push(near.timed(|_| alone.call())?);
        }
    }
    near.words.set(TurnWord::Stop, 1);
    near.baton.give()?;
    near.words.hear(TurnWord::Done)?;
    let word = |word| near.words.get(word);
    told.far = SideCount {
        handed: u64::from(word(TurnWord::Handed)),
        switches: u64::from(word(TurnWord::Switches)),
        policy: word(TurnWord::Policy) as i32,
        priority: word(TurnWord::Priority) as u8,
    };
    Ok(told)
}

/// The side that measures.
struct Near {
    clock: Clock,
    words: TurnWords,
    baton: Baton,
    array: WalkedArray,
}

impl Near {
    /// Measures turns for this long.
    fn turns(&mut self, share_ns: u64, told: &mut Told) -> Result<(), Gone> {
        let (handed, switched) = (self.baton.handed, switches()?);
        // After this turn, data of the work in between is out of the caches.
        self.turn()?;
        let (until_ns, all) = (now_ns() + share_ns, told.turns.len());
        told.turns.reserve(VALUES_MAX);
        while is_more(told.turns.len() - all, until_ns) {
            told.turns.push(self.turn()?);
        }
        told.near.handed += self.baton.handed - handed;
        told.near.switches += switches()? - switched;
        Ok(())
    }

    /// Time from having the turn until the other side has it, ns; returns when this side has it
    /// again.
    fn turn(&mut self) -> Result<u64, Gone> {
        let began = self.clock.ticks();
        self.array.walk();
        self.baton.pass()?;
        let low = u64::from(self.words.get(TurnWord::ArrivedLow));
        let arrived = u64::from(self.words.get(TurnWord::ArrivedHigh)) << 32 | low;
        Ok(self.clock.ns(arrived.wrapping_sub(began)))
    }

    /// Measures the same walk without a switch, for this long.
    fn walks(&mut self, share_ns: u64, told: &mut Told) -> Result<(), Gone> {
        // This walk brings back what the other side drove out of the caches.
        self.array.walk();
        let (until_ns, all) = (now_ns() + share_ns, told.walks.len());
        told.walks.reserve(VALUES_MAX);
        while is_more(told.walks.len() - all, until_ns) {
            let ns = self.timed(|near| {
                near.array.walk();
                Ok(())
            })?;
            told.walks.push(ns);
        }
        Ok(())
    }

    fn timed(&mut self, what: impl FnOnce(&mut Near) -> Result<(), Gone>) -> Result<u64, Gone> {
        let began = self.clock.ticks();
        what(self)?;
        Ok(self.clock.ns(self.clock.ticks().wrapping_sub(began)))
    }
}

fn is_more(values: usize, until_ns: u64) -> bool {
    values < VALUES_MIN || values < VALUES_MAX && now_ns() < until_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::switch::case::SOURCE;

    #[test]
    fn an_order_survives_the_way_to_another_process() {
        let order = Order {
            is_near: true,
            case: SOURCE,
            cpu: 1,
            budget: Duration::from_millis(7),
            clock: Clock::from_rate(0.4166),
            seed: u64::MAX,
        };
        assert_eq!(Order::parse(&order.to_text()).map(Order::to_text), Some(order.to_text()));
        assert_eq!(Order::parse("true 1 pipe").map(Order::to_text), None);
    }
}
