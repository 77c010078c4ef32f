//! Why a cycle was late, as far as the kernel's counters show it. No sentence claims more than they
//! show. A time that they do not explain is called unknown.

use sinew_figures::short::span;
use sinew_figures::units::counted;
use sinew_runtime::observer::Meanwhile;

use super::place::Place;

/// Every page fault takes some time that is not counted. For one that needs no disk this time is
/// assumed, when it is judged whether many of them explain a delay.
const MINOR_FAULT_NS: u64 = 1_000;

/// What explains at least half of the lost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The thread could run and had no CPU.
    WaitedForCpu,
    /// The host had taken the CPU.
    Host,
    /// The kernel loaded pages.
    PageFaults,
    /// The kernel saw the node running on its CPU all the time.
    NodeOnCpu,
    /// The node was neither running nor waiting for a CPU.
    NodeAsleep,
    /// The cycle before was late.
    CycleBefore,
    /// Nothing that the counters show.
    Unknown,
    /// The counters could not be read.
    Unread,
}

impl Cause {
    /// Every cause with its word in JSON and its words in the report.
    pub(crate) const ALL: [(Cause, &str, &str); 8] = [
        (Cause::WaitedForCpu, "waited_for_cpu", "waited for a CPU"),
        (Cause::Host, "host", "host took the CPU"),
        (Cause::PageFaults, "page_faults", "page faults"),
        (Cause::NodeOnCpu, "node_on_cpu", "node on its CPU"),
        (Cause::NodeAsleep, "node_asleep", "node asleep"),
        (Cause::CycleBefore, "cycle_before", "cycle before was late"),
        (Cause::Unknown, "unknown", "unknown"),
        (Cause::Unread, "unread", "counters unreadable"),
    ];

    /// The word in JSON.
    pub(crate) fn word(self) -> &'static str {
        Cause::ALL[self as usize].1
    }

    /// The cause, according to the counters of a thread that lost `part_ns` at `place`.
    pub(crate) fn of(place: Place, part_ns: u64, meanwhile: Option<&Meanwhile>) -> Cause {
        if let Place::CycleBefore(_) = place {
            return Cause::CycleBefore;
        }
        let Some(meanwhile) = meanwhile else { return Cause::Unread };
        let half_ns = part_ns.div_ceil(2).max(1);
        let most = |counted: Option<u64>| counted.is_some_and(|ns| ns >= half_ns);
        let beyond = meanwhile.beyond_usual();
        let brought = beyond.minor_faults.map(|n| n.saturating_mul(MINOR_FAULT_NS));
        match place {
            _ if most(beyond.run_delay_ns) => Cause::WaitedForCpu,
            _ if most(beyond.steal_ns) => Cause::Host,
            _ if beyond.major_faults > Some(0) || most(brought) => Cause::PageFaults,
            Place::Node(_) if most(beyond.cpu_ns) => Cause::NodeOnCpu,
            Place::Node(_) if at_most(meanwhile, half_ns) => Cause::NodeAsleep,
            _ => Cause::Unknown,
        }
    }
}

/// Whether the thread certainly used its CPU for less than this time.
fn at_most(meanwhile: &Meanwhile, ns: u64) -> bool {
    let is_complete = meanwhile.is_asleep && !meanwhile.is_cut;
    is_complete && meanwhile.counted.cpu_ns.is_some_and(|cpu_ns| cpu_ns < ns)
}

/// The cause in words, and what else was counted beyond the usual. `who` is the thread whose
/// counters were read. An error says why they could not be read.
pub(crate) fn words(
    cause: Cause,
    place: Place,
    who: &str,
    meanwhile: Result<&Meanwhile, &str>,
) -> String {
    let meanwhile = match meanwhile {
        _ if cause == Cause::CycleBefore => return "see that cycle".into(),
        Err(why) => return format!("what the kernel did meanwhile is not known: {why}"),
        Ok(meanwhile) => meanwhile,
    };
    let mut facts = vec![];
    match cause {
        Cause::WaitedForCpu => facts.push(waited(who, meanwhile)),
        Cause::NodeOnCpu => facts.push(on_cpu(who, meanwhile)),
        Cause::NodeAsleep => facts.push(asleep(who, meanwhile)),
        Cause::Unknown => facts.push(unknown(place, who)),
        Cause::Host | Cause::PageFaults | Cause::CycleBefore | Cause::Unread => {}
    }
    let beyond = meanwhile.beyond_usual();
    if beyond.steal_ns > Some(0) {
        let steal_ms = meanwhile.counted.steal_ns.unwrap_or(0) / 1_000_000;
        facts.push(format!("the host took the CPU for {steal_ms} ms (steal)"));
    }
    let faults = [(beyond.minor_faults, "minor"), (beyond.major_faults, "major")];
    for (n, kind) in faults.into_iter().filter(|fault| fault.0 > Some(0)) {
        facts.push(counted(n.unwrap_or(0), &format!("{kind} page fault")));
    }
    facts.join("; ")
}

fn waited(who: &str, Meanwhile { counted: seen, usual, .. }: &Meanwhile) -> String {
    let wait = span(seen.run_delay_ns.unwrap_or(0));
    let mut text = format!("{who} was runnable but waited {wait} for its CPU");
    // The usual value is shown only if it is a large part of the whole.
    if let Some(usual_ns) = usual.run_delay_ns.filter(|&ns| Some(ns * 10) >= seen.run_delay_ns) {
        text += &format!(" ({} is usual)", span(usual_ns));
    }
    if let Some(n) = seen.involuntary_switches.filter(|&n| n > 0) {
        text += &format!(", which was taken from it {}", counted(n, "time"));
    }
    text
}

fn on_cpu(who: &str, meanwhile: &Meanwhile) -> String {
    let cpu = span(meanwhile.beyond_usual().cpu_ns.unwrap_or(0));
    format!(
        "{who} was on its CPU for {cpu} more than usual: the node itself, interrupts, or a host \
         that counts no steal"
    )
}

fn asleep(who: &str, meanwhile: &Meanwhile) -> String {
    let cpu = span(meanwhile.counted.cpu_ns.unwrap_or(0));
    format!(
        "{who} was on its CPU for {cpu} only and did not wait for it: the node slept in the \
         kernel, or the process was stopped"
    )
}

/// A cause that no counter shows, and what would look the same.
fn unknown(place: Place, who: &str) -> String {
    let like = match place {
        Place::BeforeFirstNode => {
            " (a late timer interrupt, a host that counts no steal, SIGSTOP?)"
        }
        Place::Node(_) => " (sleep in the kernel, interrupts, a host that counts no steal?)",
        Place::CycleBefore(_) | Place::Feedback | Place::Outside => "",
    };
    format!("unknown, no counter of {who} accounts for it{like}")
}

#[cfg(test)]
mod tests;
