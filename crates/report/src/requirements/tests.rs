//! Results for requirements, from made-up figures.

use super::*;
use crate::stats::fixture;

fn times(n: u64, ns: u64, max_ns: u64) -> Distribution {
    let mut times = Distribution::new();
    (1..n).for_each(|_| times.add(ns));
    times.add(max_ns);
    times
}

#[test]
fn a_latency_is_kept_broken_or_not_shown() {
    let kept = |most_ns, of_all, times: &Distribution| judge_latency(most_ns, of_all, times).0;
    let (few, many) = (times(20, 1_000, 9_000), times(5_000, 1_000, 9_000));
    for (most_ns, of_all, times, expected) in [
        (10_000, false, &few, Kept::Yes),
        (2_000, false, &few, Kept::NotShown),
        (2_000, false, &many, Kept::Yes),
        (500, false, &many, Kept::No),
        (2_000, true, &many, Kept::No),
        (9_000, true, &few, Kept::Yes),
        (9_000, true, &Distribution::new(), Kept::NotShown),
    ] {
        assert_eq!(kept(most_ns, of_all, times), expected, "{most_ns} {of_all} {}", times.n());
    }
    let (_, seen) = judge_latency(500, false, &many);
    assert_eq!(seen, "p99 1 us of 5000");
}

#[test]
fn cpu_time_that_nobody_read_is_not_shown() {
    assert_eq!(judge_cpu(20, Some(19.9)).0, Kept::Yes);
    assert_eq!(judge_cpu(20, Some(20.1)), (Kept::No, "20.1 %".into()));
    assert_eq!(judge_cpu(20, None).0, Kept::NotShown);
}

#[test]
fn every_requirement_of_a_plan_gets_a_line() {
    let mut plan = fixture::plan();
    plan.links.push(fixture::link(0, 1));
    let require = |of, bound| Requirement { of, bound, line: 7 };
    plan.requirements = vec![
        require(RequiredOf::Graph, Bound::LatencyMax(9_000)),
        require(RequiredOf::Domain(1), Bound::LatencyMax(1)),
        require(RequiredOf::Domain(0), Bound::Cpu(5)),
        require(RequiredOf::Link(0), Bound::Isolation(Isolation::Process)),
        require(RequiredOf::Graph, Bound::Isolation(Isolation::Host)),
        require(RequiredOf::Link(0), Bound::Latency(1_000)),
    ];
    let (stats, links) = (fixture::stats(10), Links::new(&plan));
    let judged = judge(&plan, &stats, &links, &[]);
    let kept: Vec<_> = judged.iter().map(|it| it.kept).collect();
    use Kept::{No, NotShown, Yes};
    assert_eq!(kept, [Yes, No, NotShown, Yes, No, NotShown]);
    assert_eq!(
        judged[4].to_line(),
        "the graph requires isolation host (line 7): broken, link planner.out -> drives.in has \
         process"
    );
}
