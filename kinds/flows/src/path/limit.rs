//! `limit`: limits how many packets of a key pass in a time, and how many at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::clock::now_ns;
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::LIMIT_NS_MAX;
use super::lines::Lines;
use crate::script::key::Key;
use crate::script::refused_for_now;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "limit",
    doc: "Limits packets: of each key it passes on 'rate' packets in a time of 'per', and \
          'concurrency' at once, in all workers together. Packets over the limit go to 'over'; \
          without a link they fail with status 429, and 'retry-after' says after how many seconds \
          there is room.",
    ports: &[
        input("in", "The packet."),
        error(),
        output("out", "The packet, within the limit."),
        output("over", "The packet, over the limit."),
    ],
    parameters: &[
        Parameter::new("key", ParameterType::Yaml).doc(
            "Key of a packet, as an expression (CEL): a text or a whole number. Each key has \
             limits of its own.",
        ),
        Parameter::new("rate", ParameterType::Integer { min: 0, max: RATE_MAX })
            .or("0")
            .doc("Most packets of a key in a time of 'per'; 0: no limit."),
        Parameter::new("per", ParameterType::Duration { min_ns: 1_000_000, max_ns: LIMIT_NS_MAX })
            .or("1s")
            .doc("The time of 'rate'."),
        Parameter::new("burst", ParameterType::Integer { min: 0, max: RATE_MAX })
            .or("0")
            .doc("Most of them that may come at once after a pause; 0: as many as 'rate'."),
        Parameter::new("concurrency", ParameterType::Integer { min: 0, max: RATE_MAX })
            .or("0")
            .doc("Most packets of a key that are under way at once; 0: no limit."),
        Parameter::new("keys_max", ParameterType::Integer { min: 1, max: 10_000_000 })
            .or("100000")
            .doc("Most keys that are counted separately; all others share the rate of one key."),
    ],
    ..FLOW
};

const OUT: usize = 2;
const OVER: usize = 3;

/// Most packets of 'rate', 'burst' and 'concurrency': one each microsecond.
const RATE_MAX: i64 = 1_000_000;
/// How many keys at rest are forgotten at each packet: one more than can be added.
const FORGOTTEN_PER_TURN: usize = 2;

struct Limit {
    key: Key,
    rate: Option<Rate>,
    concurrency: Option<usize>,
    buckets: Arc<Buckets>,
    lines: Arc<Lines>,
}

/// How fast packets of a key may come.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// From one packet to the next.
    gap_ns: u64,
    /// How far ahead of that packets may come.
    slack_ns: u64,
    keys_max: usize,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let number = |name| parameters.integer(name).unsigned_abs();
    let (rate, burst, concurrency) = (number("rate"), number("burst"), number("concurrency"));
    if rate == 0 && (burst > 0 || concurrency == 0) {
        let help = "add 'rate: 10' (and 'per: 1s'), or 'concurrency: 2'";
        let message = if burst > 0 { "'burst' needs a 'rate'" } else { "it limits nothing" };
        return Err(vec![Refusal::new(parameters.span("rate"), message, help)]);
    }
    let key = Key::of(parameters.yaml("key"))?;
    let rate = (rate > 0).then(|| {
        // Rounded up, so that there are never more packets than 'rate' allows.
        let gap_ns = (parameters.duration("per").as_nanos() as u64).div_ceil(rate);
        let burst = if burst == 0 { rate } else { burst };
        let slack_ns = gap_ns.saturating_mul(burst - 1);
        Rate { gap_ns, slack_ns, keys_max: number("keys_max") as usize }
    });
    let concurrency = (concurrency > 0).then_some(concurrency as usize);
    let (buckets, lines) = (Arc::default(), Arc::default());
    Ok(Box::new(Limit { key, rate, concurrency, buckets, lines }))
}

impl FlowNode for Limit {
    fn attach(&mut self, site: &NodeContext) {
        self.buckets = site.share(Buckets::default);
        self.lines = site.share(Lines::default);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let key = match self.key.find(at.flow(), &packet) {
            Ok(key) => key,
            Err(error) => return Step::Fail(error),
        };
        // Checked first, so that a packet that finds no place uses nothing of the rate.
        let place = match self.concurrency.map(|max| self.lines.enter(&key, max, 0)) {
            Some(None) => return over(at, packet, 1_000_000_000),
            place => place.flatten(),
        };
        if let Some(rate) = self.rate
            && let Err(wait_ns) = self.buckets.take(&key, rate, now_ns())
        {
            return over(at, packet, wait_ns);
        }
        match place {
            None => Step::Pass(OUT, packet),
            Some(place) => Step::wait(async move {
                let _place = place;
                Step::answer(at.call(OUT, packet).await)
            }),
        }
    }
}

fn over(at: At<'_>, packet: Value, wait_ns: u64) -> Step<'_> {
    if at.is_linked(OVER) {
        return Step::Pass(OVER, packet);
    }
    let seconds = wait_ns.div_ceil(1_000_000_000).max(1);
    Step::Fail(refused_for_now(429, format!("over the limit; again in {seconds} s"), seconds))
}

/// For each key, when its next packet would be due if packets were evenly spread (the generic cell
/// rate algorithm of ITU-T I.371). A key whose due time has passed is the same as a new key, so to
/// forget it gives nobody more than before. No other key is ever forgotten.
#[derive(Default)]
struct Buckets(Mutex<Due>);

#[derive(Default)]
struct Due {
    by_key: HashMap<Arc<str>, u64>,
    by_time: BTreeSet<(u64, Arc<str>)>,
    /// The due time that all keys without room share.
    of_others: u64,
}

impl Buckets {
    /// Takes one packet of a key's rate.
    ///
    /// # Errors
    /// The rate is used up; the number is the nanoseconds until a packet may pass.
    fn take(&self, key: &str, rate: Rate, now_ns: u64) -> Result<(), u64> {
        // A poisoned lock is still good: a panic under it leaves nothing half done.
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Due { by_key, by_time, of_others } = &mut *due;
        for _ in 0..FORGOTTEN_PER_TURN {
            match by_time.first() {
                Some((at_ns, _)) if *at_ns <= now_ns => {
                    let gone = by_time.pop_first();
                    gone.map(|(_, key)| by_key.remove(&key));
                }
                _ => break,
            }
        }
        let known = by_key.get_key_value(key).map(|(key, at_ns)| (Arc::clone(key), *at_ns));
        let next = |due_ns: u64| {
            let ahead_ns = due_ns.saturating_sub(now_ns);
            match ahead_ns.checked_sub(rate.slack_ns) {
                Some(wait_ns) if wait_ns > 0 => Err(wait_ns),
                _ => Ok(due_ns.max(now_ns).saturating_add(rate.gap_ns)),
            }
        };
        if known.is_none() && by_key.len() >= rate.keys_max {
            *of_others = next(*of_others)?;
            return Ok(());
        }
        let (key, before_ns) = known.unwrap_or_else(|| (key.into(), 0));
        let due_ns = next(before_ns)?;
        by_time.remove(&(before_ns, Arc::clone(&key)));
        by_time.insert((due_ns, Arc::clone(&key)));
        by_key.insert(key, due_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
