//! A way for each link: what the figures of every link of a layout say about each way that all
//! links were measured with. A link that must be fast may spin where the others sleep.

use std::collections::BTreeMap;

use sinew_report::Kept;
use sinew_spec::plan::{RequiredOf, Requirement};

use super::alternatives::{LinkWay, core_links};
use super::choose::{By, Measured, Objective, beside, best, judge};
use super::trial::cpu_of;

/// A link, compared in all ways.
pub(super) struct OfLink {
    /// Its name.
    pub(super) link: String,
    /// The figure of the CPU time of its reader's domain.
    pub(super) cpu: String,
    /// Index of the way that serves it best; `None` if none was measured.
    pub(super) best: Option<usize>,
    /// What is said of each way.
    pub(super) words: Vec<String>,
}

/// For all links that leave a thread, in a layout whose links were measured with one way after the
/// other. A way must keep what is required of the link, and of its reader's domain if anything is
/// required of that.
pub(super) fn of_layout(
    ways: &[Measured<'_>],
    objective: Objective,
    period_ns: u64,
) -> Vec<OfLink> {
    let Some(first) = ways.first() else { return vec![] };
    let plan = first.plan;
    let judged: Vec<_> = ways.iter().map(judge).collect();
    let breaks = |way: usize, of: RequiredOf| {
        let rows = plan.requirements.iter().zip(&judged[way]);
        rows.filter(|(it, _)| it.of == of).find(|(_, (kept, _))| *kept != Kept::Yes)
    };
    let of_link = |at: usize| {
        let domain = plan.nodes[plan.links[at].to.node].domain;
        let (link, cpu) = (plan.link_name(at), cpu_of(&plan.domains[domain].name));
        let seen = |way: &usize| {
            let measure = ways[*way].row.measure(&link);
            ways[*way].row.skipped.is_none() && measure.is_some_and(|it| !it.rounds.is_empty())
        };
        let keeps = |some: Vec<usize>, of: RequiredOf| {
            let kept: Vec<_> =
                some.iter().copied().filter(|&way| breaks(way, of).is_none()).collect();
            if kept.is_empty() { some } else { kept }
        };
        let seen: Vec<usize> = (0..ways.len()).filter(seen).collect();
        let some = keeps(keeps(seen, RequiredOf::Link(at)), RequiredOf::Domain(domain));
        let alike = best(ways, some, &By { objective, latency: &link, cpu: &cpu, period_ns });
        let best = alike.first().copied();
        let words = |way: usize| {
            let broken = breaks(way, RequiredOf::Link(at))
                .or_else(|| breaks(way, RequiredOf::Domain(domain)));
            match (&ways[way].row.skipped, broken) {
                (Some(why), _) => format!("not possible: {why}"),
                (None, Some((Requirement { bound, line, .. }, (kept, seen)))) => {
                    format!("{}: {bound} (line {line}): {seen}", kept.word())
                }
                _ if Some(way) == best => "the best for this link".into(),
                _ if alike.contains(&way) => "not distinguishable from the best".into(),
                _ => beside(ways[way].row, ways[best.unwrap_or(way)].row, &link, &cpu),
            }
        };
        let words = (0..ways.len()).map(words).collect();
        OfLink { link: link.clone(), cpu: cpu.clone(), best, words }
    };
    core_links(plan).filter(|(_, link)| !link.fused).map(|(at, _)| of_link(at)).collect()
}

/// The best way of each link; `None` if all links take the same.
pub(super) fn mixed(crossings: &[LinkWay], links: &[OfLink]) -> Option<BTreeMap<String, LinkWay>> {
    let taken = links.iter().filter_map(|it| Some((it.link.clone(), crossings[it.best?])));
    let taken: BTreeMap<_, _> = taken.collect();
    let mut ways = taken.values();
    let first = ways.next()?;
    ways.any(|way| way != first).then_some(taken)
}

#[cfg(test)]
mod tests {
    use sinew_spec::plan::{Sync, Wait};

    use super::super::trial::CPU;
    use super::*;
    use crate::graph::compiled;
    use crate::report::{Figure, Row};
    use crate::scenario::table;
    use sinew_figures::Distribution;
    use sinew_runtime::Kinds;

    const SPEC: &str = "name: three
domains:
  a: {realtime: {period: 1ms}}
  b: {realtime: {trigger: input}}
  c: {realtime: {trigger: input}, requires: {cpu: 20%}}
nodes:
  - kind: lab_stage
    name: a
    domain: a
    leads: true
    ports: {out: [{name: b, port: in, requires: {latency: 20us}}]}
  - {kind: lab_stage, name: b, domain: b, ports: {out: [{name: c, port: in}]}}
  - {kind: lab_stage, name: c, domain: c, ports: {out: [{name: a, port: in, delay: 1}]}}
";

    const PARK: LinkWay = LinkWay::Memory(Sync::LockFree, Wait::Park);
    const SPIN: LinkWay = LinkWay::Memory(Sync::LockFree, Wait::Spin);

    /// All links take this long, and every reader takes this share of a CPU.
    fn row(us: u64, cpu: f64) -> Row {
        let mut row = Row::of(&[("wait", "any")]);
        for link in ["a.out -> b.in", "b.out -> c.in", "c.out -> a.in"] {
            let mut times = Distribution::new();
            (0..2000).for_each(|_| times.add(us * 1000));
            (0..5).for_each(|_| row.measure_mut(link).add_round(&times, us as f64 * 1e3, None));
        }
        row.figures = vec![Figure::of(CPU, "%", 3.0 * cpu)];
        row.figures.extend(["a", "b", "c"].map(|it| Figure::of(&cpu_of(it), "%", cpu)));
        row
    }

    #[test]
    fn a_link_that_must_be_fast_spins_and_the_others_sleep() {
        let kinds = table(&Kinds::default()).catalogue();
        let made = compiled("three.yaml", SPEC.into(), vec![], &kinds, &[0, 1]);
        let plan = made.expect("it compiles").plan;
        let rows = [row(60, 5.0), row(2, 90.0)];
        let ways: Vec<_> =
            rows.iter().map(|row| Measured { row, plan: &plan, changes_meaning: false }).collect();
        let links = of_layout(&ways, Objective::CpuTime, 1_000_000);
        let best = mixed(&[PARK, SPIN], &links).expect("they differ");
        assert_eq!(best.into_values().collect::<Vec<_>>(), [SPIN, PARK, PARK]);
        let said: Vec<_> = links.iter().map(|it| it.words.concat()).collect();
        assert!(said[0].starts_with("broken: latency 20 us (line 11): p99 60"), "{}", said[0]);
        assert!(said[1].contains("broken: cpu 20 % (line 5): 90.0 %"), "{}", said[1]);
        assert!(said[2].contains("+85 % of a CPU"), "{}", said[2]);
        assert!(mixed(&[PARK, PARK], &links).is_none());
    }
}
