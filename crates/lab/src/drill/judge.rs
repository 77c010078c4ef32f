//! Makes figures from a recording, and judges whether they are as expected.

use sinew_control::status::EventKind;
use sinew_figures::Distribution;
use sinew_runtime::run::Outcome;
use sinew_spec::plan::Plan;

use super::carry_out::Carried;
use super::machine::Moment;
use super::recording::CycleSeen;
use super::report::{Core, Round};
use super::stop::Stop;
use super::table::{Drill, Expected, Rule, Subject};
use crate::graph::leader;

/// The beginning of a run says nothing about the core: caches are cold, and the machine is being
/// switched on.
const WARM_UP_NS: u64 = 150_000_000;

/// The figures of a drill, and what is wrong with them.
pub(super) fn judge(plan: &Plan, drill: &Drill, carried: &Carried) -> Round {
    let drill = &settled(drill, carried);
    let mut round = Round {
        proof: carried.proof.clone(),
        ending: ending(plan, carried),
        left: carried.left.clone(),
        restarted: restarted(plan, drill, carried),
        ..Round::default()
    };
    if carried.proof.is_none() {
        round.not_shown.push("not carried out: nothing shows that the fault came".into());
    }
    if let (Some(asked_ns), Some(frozen_ns)) = (drill.fault.frozen_ns(), carried.frozen_ns)
        && frozen_ns > asked_ns + asked_ns / 5
        && drill.rule == Rule::GoesOn
    {
        let [asked_ms, frozen_ms] = [asked_ns, frozen_ns].map(|ns| ns / 1_000_000);
        let why = format!("this machine is too busy: frozen for {frozen_ms} ms, not {asked_ms}");
        round.not_shown.push(why);
    }
    if carried.unread > 0 {
        let unread = carried.unread;
        round.not_shown.push(format!("{unread} records were not read in time: no figures"));
    }
    if let Some(struck_ns) = carried.struck_ns {
        judge_machine(drill, carried, struck_ns, &mut round);
        judge_core(plan, drill, carried, struck_ns, &mut round);
    } else if drill.rule.cycles().is_some() {
        let why = "the time of the fault is not known, so it is not known how soon the machine was \
                   safe";
        round.not_shown.push(why.into());
    }
    judge_end(plan, drill, carried, &mut round);
    if let Some(seen) = &carried.outside {
        round.failures.extend(seen.failures.iter().cloned());
        round.not_shown.extend(seen.not_shown.iter().cloned());
        round.failures.extend(more_overruns(&round));
        round.host = seen.host;
    }
    let left = carried.left.iter().map(|what| format!("left behind: {what}"));
    round.failures.extend(left);
    round
}

/// Time that a guest's message may take to reach the supervisor, through its console and its agent.
const WORD_NS: u64 = 20_000_000;

/// The drill as its run has decided it, if either end is good.
fn settled(drill: &Drill, carried: &Carried) -> Drill {
    let mut drill = drill.clone();
    if let Rule::Either(after) = drill.rule {
        (drill.rule, drill.expected) = match carried.outcome {
            Outcome::Faulted => (Rule::Guard(after), Expected::Faulted(None)),
            _ => (Rule::NotMeasured("it went on"), Expected::GoesOn { comes_back: false }),
        };
    }
    drill
}

fn judge_machine(drill: &Drill, carried: &Carried, struck_ns: u64, round: &mut Round) {
    for (machine, moments) in &carried.recording.machines {
        match drill.rule {
            Rule::NotMeasured(_) => {}
            Rule::GoesOn => {
                let until_ns = carried.told_ns.unwrap_or(u64::MAX);
                let within = |it: &&Moment| (struck_ns..until_ns).contains(&it.start_ns);
                // A service may be struck before the drives are switched on.
                let up = moments.iter().skip_while(|it| !it.is_commanded);
                if up.filter(within).any(|it| !it.is_commanded) {
                    round.failures.push("the machine stopped, and was to go on".into());
                }
            }
            rule => {
                let mut stop = Stop::of(moments, struck_ns, drill.fault.comes_back());
                if drill.is_in_guest {
                    let word_ns = struck_ns.saturating_sub(WORD_NS)..=struck_ns;
                    stop.followed |=
                        moments.iter().any(|it| it.is_commanded && word_ns.contains(&it.start_ns));
                }
                let sent_ns = carried.sent_ns.unwrap_or(struck_ns);
                stop.safe_cycles = stop.safe_cycles.map(|cycles| {
                    let early = |it: &&Moment| (struck_ns + 1..=sent_ns).contains(&it.start_ns);
                    cycles.saturating_sub(moments.iter().filter(early).count() as u64)
                });
                if !machine.is_shown() {
                    // A machine that was at rest before the fault, and did not move after it, took
                    // no time.
                    stop.still_ns = carried.rest_ns.map(|ns| ns.saturating_sub(struck_ns));
                }
                round.failures.extend(stop.failures(rule));
                if !stop.followed {
                    let why = "no actuator had a command when the fault came, so nothing shows \
                               that the fault takes it away";
                    round.not_shown.push(why.into());
                }
                round.stop.add(&stop);
            }
        }
    }
}

fn judge_core(plan: &Plan, drill: &Drill, carried: &Carried, struck_ns: u64, round: &mut Round) {
    let Some(id) = leader(plan) else { return };
    let cycles = carried.recording.cycles(id);
    let told_ns = carried.told_ns.unwrap_or(u64::MAX);
    let warm_ns = cycles.first().map_or(0, |first| first.start_ns + WARM_UP_NS);
    let counts = |seen: &&CycleSeen| seen.start_ns >= warm_ns && !seen.stopping;
    let before = cycles.iter().filter(counts).filter(|seen| seen.start_ns < struck_ns);
    let after = cycles.iter().filter(counts).filter(|seen| seen.start_ns >= struck_ns);
    round.core_before = core(before);
    // If the graph has to stop, what is left of the core is not measured as a core.
    if matches!(drill.expected, Expected::GoesOn { .. }) {
        round.core_after = core(after.filter(|seen| seen.start_ns < told_ns));
    }
}

/// Whether the core was late more often during a lasting fault than before it: twice as often, and
/// in at least one of twenty cycles, so that a machine that is busy for other reasons does not
/// decide it.
fn more_overruns(round: &Round) -> Option<String> {
    let (before, after) = (round.core_before.as_ref()?, round.core_after.as_ref()?);
    let share = |core: &Core| core.overruns as f64 / core.cycles.max(1) as f64;
    let (is, was) = (share(after), share(before));
    (is > 2.0 * was + 0.05).then(|| {
        format!(
            "{:.1} % of the core's cycles were late during it ({} of {}), {:.1} % before",
            100.0 * is,
            after.overruns,
            after.cycles,
            100.0 * was
        )
    })
}

fn core<'a>(cycles: impl Iterator<Item = &'a CycleSeen>) -> Option<Core> {
    let (mut latency, mut jitter) = (Distribution::new(), Distribution::new());
    let mut overruns = 0;
    for seen in cycles {
        latency.add(seen.latency_ns);
        jitter.add(seen.start_ns.saturating_sub(seen.release_ns));
        overruns += u64::from(seen.overrun) + seen.skipped;
    }
    (latency.n() > 0).then(|| Core {
        cycles: latency.n(),
        latency_ns_p50: latency.quantile(0.5),
        latency_ns_p99: latency.quantile(0.99),
        latency_ns_max: latency.max(),
        jitter_ns_p50: jitter.quantile(0.5),
        jitter_ns_p99: jitter.quantile(0.99),
        jitter_ns_max: jitter.max(),
        overruns,
    })
}

/// How the run ended, in a line.
fn ending(plan: &Plan, carried: &Carried) -> String {
    let fault = carried.faults.iter().map(|(domain, at)| {
        // The faulting domain wrote the board itself, so the index may be any number.
        let node = at.node.and_then(|node| plan.nodes.get(node));
        let node = node.map(|node| format!(", node '{}'", node.name)).unwrap_or_default();
        format!("{}{node}: {}: {}", plan.domains[*domain].name, at.fault.cause.word(), at.fault)
    });
    let faults: Vec<_> = fault.collect();
    match faults.is_empty() {
        true => carried.outcome.to_string(),
        false => faults.join("; "),
    }
}

/// What the supervisor did about the struck service, and how long that took.
fn restarted(plan: &Plan, drill: &Drill, carried: &Carried) -> Vec<String> {
    let name = &plan.domains[drill.subject.domain(plan)].name;
    let (mut told, mut ended_ns) = (vec![], None);
    for event in carried.events.iter().filter(|event| event.domain.as_ref() == Some(name)) {
        match event.what {
            EventKind::Faulted | EventKind::Ended => ended_ns = Some(event.time_ns),
            EventKind::Restarting | EventKind::GivenUp => {
                told.push(format!("{}: {}", event.what, event.text));
            }
            EventKind::Ready => {
                let after_ms = ended_ns.take().map(|ns| (event.time_ns - ns) / 1_000_000);
                told.extend(after_ms.map(|ms| format!("ready again after {ms} ms")));
            }
            _ => {}
        }
    }
    told
}

fn judge_end(plan: &Plan, drill: &Drill, carried: &Carried, round: &mut Round) {
    let mut fail = |text: String| round.failures.push(text);
    if !carried.ended {
        fail("the run did not end and was killed".into());
    }
    match drill.expected {
        Expected::Faulted(cause) => {
            let struck = drill.subject.domain(plan);
            let node = |at: Option<usize>| match (drill.subject, at) {
                (Subject::Node(node), Some(at)) => node == at,
                _ => true,
            };
            let is_it = |cause| {
                let mut faults = carried.faults.iter().filter(|(domain, _)| *domain == struck);
                faults.any(|(_, at)| at.fault.cause == cause && node(at.node))
            };
            if carried.outcome != Outcome::Faulted {
                fail(format!("the run ended as '{}'; it was to fault", carried.outcome));
            } else if let Some(cause) = cause.filter(|&cause| !is_it(cause)) {
                let name = &plan.domains[struck].name;
                let ending = ending(plan, carried);
                fail(format!("expected '{}' of domain '{name}', found: {ending}", cause.word()));
            }
        }
        Expected::Either => {}
        Expected::GoesOn { comes_back } => {
            if carried.outcome == Outcome::Faulted {
                fail(format!("the graph was to go on, and faulted: {}", ending(plan, carried)));
            }
            let name = &plan.domains[drill.subject.domain(plan)].name;
            let told = |what| {
                let mut events = carried.events.iter();
                events.any(|event| event.what == what && event.domain.as_ref() == Some(name))
            };
            if comes_back && !told(EventKind::Restarting) {
                fail(format!("service '{name}' did not come back"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
