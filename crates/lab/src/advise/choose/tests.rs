//! Choices from made-up figures.

use std::collections::BTreeMap;

use sinew_figures::Distribution;
use sinew_spec::plan::{Isolation, SpecText};

use super::*;
use crate::report::Figure;

/// One hundredth of it, 1 us, does not justify more CPU time.
const PERIOD_NS: u64 = 100_000;

/// A plan without nodes that requires this of the graph.
fn plan(bounds: &[Bound]) -> Plan {
    let require = |(at, &bound): (usize, &Bound)| Requirement {
        of: RequiredOf::Graph,
        bound,
        line: at as u32 + 1,
    };
    Plan {
        name: "test".into(),
        hold: false,
        observe: false,
        domains: vec![],
        nodes: vec![],
        links: vec![],
        flow_links: vec![],
        hosts: Default::default(),
        requirements: bounds.iter().enumerate().map(require).collect(),
        notes: vec![],
        left_out: None,
        text: SpecText::default(),
    }
}

/// A row whose cycles take this long in each round, with this much CPU time.
fn row(name: &str, us: [u64; 5], cpu: f64) -> Row {
    let mut row = Row::of(&[("layout", name)]);
    for us in us {
        let mut times = Distribution::new();
        (0..1000).for_each(|_| times.add(us * 1000));
        row.measure_mut(CYCLE).add_round(&times, us as f64 * 1e3, None);
    }
    row.figures = vec![Figure::of(CPU, "%", cpu)];
    row
}

fn chosen(rows: &[Row], plan: &Plan) -> Choice {
    let measured: Vec<_> =
        rows.iter().map(|row| Measured { row, plan, changes_meaning: false }).collect();
    choose(&measured, &RuledOut::new(), objective(plan), PERIOD_NS)
}

#[test]
fn what_stands_there_stays_unless_something_is_shown_to_be_better() {
    let free = plan(&[]);
    let stands = row("stands", [20, 21, 20, 22, 20], 50.0);
    let alike = row("alike", [19, 21, 20, 23, 19], 50.0);
    let hardly = row("hardly", [19, 20, 19, 21, 19], 50.0);
    let better = row("better", [10, 11, 10, 12, 10], 90.0);
    let choice = chosen(&[stands.clone(), alike.clone()], &free);
    assert_eq!((choice.chosen, &*choice.alike), (Some(0), &[1][..]));
    assert_eq!(choice.words[1], "not distinguishable from the choice");
    // A gain of five hundredths is not worth a change.
    assert_eq!(chosen(&[stands.clone(), hardly], &free).chosen, Some(0));
    let choice = chosen(&[stands, alike, better], &free);
    assert_eq!((choice.chosen, choice.alike.len()), (Some(2), 0));
    assert_eq!(choice.words[0], "-40 % of a CPU; cycle 2.00 (1.83 to 2.00) times as long");
}

#[test]
fn of_equal_latencies_the_least_cpu_time_is_taken() {
    let spins = row("spins", [10, 11, 10, 12, 10], 52.0);
    let fused = row("fused", [11, 11, 10, 11, 11], 4.0);
    let choice = chosen(&[spins, fused], &plan(&[]));
    assert_eq!((choice.chosen, choice.alike.len()), (Some(1), 0));
    assert_eq!(choice.words[0], "+48 % of a CPU; cycle not distinguishable");
}

#[test]
fn a_hundredth_of_the_period_is_not_worth_cpu_time_but_what_costs_nothing_is_taken() {
    let rows = |fused_cpu| {
        [row("spins", [9; 5], 52.0), row("fused", [10; 5], fused_cpu), row("slow", [12; 5], 1.0)]
    };
    assert_eq!(chosen(&rows(4.0), &plan(&[])).chosen, Some(1));
    assert_eq!(chosen(&rows(52.0), &plan(&[])).chosen, Some(0));
}

#[test]
fn a_bounded_latency_takes_the_least_cpu_time_that_keeps_it() {
    let rows = [
        row("spins", [10; 5], 50.0),
        row("sleeps", [80; 5], 5.0),
        row("sleeps_too", [78; 5], 6.0),
        row("late", [120; 5], 1.0),
    ];
    let bound = |us: u64| plan(&[Bound::Latency(us * 1000)]);
    assert_eq!(chosen(&rows, &bound(100)).chosen, Some(1));
    assert_eq!(chosen(&rows, &bound(20)).chosen, Some(0));
    let choice = chosen(&rows, &bound(100));
    assert_eq!(choice.alike, [2]);
    assert!(choice.words[3].starts_with("broken: the graph, latency 100 us (line 1): p99 120"));
    assert!(choice.words[0].starts_with("+45 % of a CPU"), "{}", choice.words[0]);
}

#[test]
fn requirements_that_contradict_each_other_are_named_both() {
    let rows = [row("spins", [10; 5], 50.0), row("sleeps", [80; 5], 5.0)];
    let choice = chosen(&rows, &plan(&[Bound::Latency(20_000), Bound::Cpu(10)]));
    assert_eq!(choice.chosen, None);
    assert_eq!(
        choice.contradictions,
        ["'latency 20 us' of the graph (line 1) and 'cpu 10 %' of the graph (line 2) contradict \
             each other here: no alternative keeps both"]
    );
    let choice = chosen(&rows, &plan(&[Bound::Latency(1_000), Bound::Cpu(10)]));
    assert_eq!(choice.contradictions.len(), 1);
    assert!(choice.contradictions[0].starts_with(
        "no alternative here was shown to keep 'latency 1 us' of the graph (line 1): p99 10"
    ));
}

#[test]
fn what_was_not_seen_is_not_kept() {
    let mut few = row("few", [10; 5], 50.0);
    few.measures[0].distribution = Distribution::new();
    few.measures[0].distribution.add(90_000);
    few.figures.clear();
    let words = |bound| chosen(&[few.clone()], &plan(&[bound])).words[0].clone();
    assert!(words(Bound::Latency(20_000)).starts_with("not shown: "));
    assert!(words(Bound::Cpu(20)).starts_with("not shown: "));
    // If no link leaves a domain, there is nothing to isolate.
    assert_eq!(words(Bound::Isolation(Isolation::Host)), "chosen: the graph stays as it is");
    let mut skipped = few.clone();
    skipped.skipped = Some("it faulted".into());
    let choice = chosen(&[skipped], &plan(&[]));
    assert_eq!((choice.chosen, &*choice.words[0]), (None, "not possible: it faulted"));
}

#[test]
fn noise_changes_a_graph_less_than_once_in_a_hundred_times() {
    let mut random = fastrand::Rng::with_seed(18);
    let mut taken = BTreeMap::new();
    for _ in 0..500 {
        let mut noisy = |name| row(name, std::array::from_fn(|_| random.u64(95..=105)), 50.0);
        let rows = [noisy("stands"), noisy("a"), noisy("b"), noisy("c")];
        *taken.entry(chosen(&rows, &plan(&[])).chosen).or_insert(0) += 1;
    }
    assert!(taken.get(&Some(0)).is_some_and(|&stays| stays > 495), "{taken:?}");
}

#[test]
fn a_choice_must_hold_with_the_graphs_own_nodes() {
    let (bounded, free) = (plan(&[Bound::Latency(30_000)]), plan(&[]));
    let of = |row, plan| Measured { row, plan, changes_meaning: false };
    let [stands, fast, late] =
        [("stands", 20), ("fast", 10), ("late", 40)].map(|(name, us)| row(name, [us; 5], 50.0));
    let (cheap, same) = (row("cheap", [20; 5], 5.0), row("same", [20; 5], 49.0));
    for good in [&fast, &cheap] {
        assert_eq!(why_not(&of(good, &bounded), &of(&stands, &bounded)), None);
    }
    let why = why_not(&of(&late, &bounded), &of(&stands, &bounded)).expect("it is late");
    assert!(why.starts_with("with its own nodes broken: the graph, latency 30 us"), "{why}");
    let why = why_not(&of(&same, &free), &of(&stands, &free)).expect("it is not better");
    assert!(why.starts_with("with its own nodes no better than the graph as it is"), "{why}");
    // The graph as it is breaks what is required: an alternative need not be better than that.
    assert_eq!(why_not(&of(&stands, &bounded), &of(&late, &bounded)), None);
    let unseen = Row::of(&[("layout", "unseen")]);
    let why = why_not(&of(&unseen, &free), &of(&stands, &free)).expect("nothing was seen");
    assert!(why.contains("not shown"), "{why}");
    // An alternative that is ruled out is not chosen, and the reason is told.
    let rows = [stands.clone(), fast.clone()];
    let all: Vec<_> = rows.iter().map(|row| of(row, &free)).collect();
    let out = RuledOut::from([(1, why)]);
    let choice = choose(&all, &out, Objective::Latency, PERIOD_NS);
    assert_eq!((choice.chosen, choice.words[1].contains("not shown")), (Some(0), true));
}
