//! What a machine profile makes of a plan's links, and what the plan says of it.

use crate::kinds::{ARM, KINDS};
use sinew_spec::plan::{LinkProfile, LinkTuning, Plan, SlotLayout, TargetMachine, TunedPair};
use sinew_spec::{SpecSource, compile, picture, render};

/// Three threads on CPUs of their own; of the links only the first two are of use here: one is
/// short, one long. The others stand behind a mutex, go through the kernel, or stay in a thread.
const THREADS: &str = "
name: threads
domains:
  a:
    realtime: {period: 1ms}
    threads: [{cpu: 2, nodes: [v]}, {cpu: 0, nodes: [w, x]}, {cpu: 1, nodes: [y]}]
nodes:
  - {kind: filter, name: v, ports: {out: [{name: w, port: in, capacity: 16}, {name: y, port: in}]}}
  - kind: filter
    name: w
    ports:
      out:
        - {name: y, port: extra, capacity: 32}
        - {name: x, port: in, capacity: 32}
        - {name: v, port: in, delay: 1, sync: mutex}
        - {name: v, port: extra, delay: 1, transport: pipe}
  - {kind: filter, name: x}
  - {kind: filter, name: y}
";

const SHORT: LinkTuning = LinkTuning {
    layout: SlotLayout::Sequence,
    eager_polls: 0,
    gap_ns: 200,
    fetches_ahead: true,
    hands_over: false,
};
const LONG: LinkTuning = LinkTuning { layout: SlotLayout::Index, gap_ns: 1000, ..SHORT };

fn plan(profile: LinkProfile) -> Plan {
    let source = SpecSource { file: "graph.yaml", text: THREADS, overrides: &[] };
    let machine = TargetMachine { cpus: vec![0, 1, 2], profile };
    compile(&source, KINDS, &machine).unwrap_or_else(|e| panic!("{}", render(&e, THREADS, false)))
}

fn measured(cpus: &[[u32; 2]]) -> LinkProfile {
    let (short, long) = (Some(SHORT), Some(LONG));
    let pair = |&cpus| TunedPair { cpus, distance_changed: false, short, long };
    let (file, time) = ("machine.json".into(), "today".into());
    LinkProfile::Measured { file, time, pairs: cpus.iter().map(pair).collect() }
}

fn tunings(plan: &Plan) -> Vec<Option<LinkTuning>> {
    plan.links.iter().map(|link| link.tuning).collect()
}

#[test]
fn a_link_gets_what_was_measured_between_its_cpus_for_its_length() {
    let plan = plan(measured(&[[0, 2], [0, 1], [1, 2]]));
    let none = None;
    assert_eq!(tunings(&plan), [Some(SHORT), Some(SHORT), Some(LONG), none, none, none]);
    let notes = [
        "links between CPUs 0 and 1 are shaped by the machine profile machine.json of today: long \
         ones: index layout, between polls 1000 ns, fetches ahead, does not hand over",
        "links between CPUs 0 and 2 are shaped by the machine profile machine.json of today: \
         short ones: sequence layout, between polls 200 ns, fetches ahead, does not hand over",
        "links between CPUs 1 and 2 are shaped by the machine profile machine.json of today: \
         short ones: sequence layout, between polls 200 ns, fetches ahead, does not hand over",
    ];
    assert_eq!(plan.notes[plan.notes.len() - 3..], notes);
    let json = picture::json(&plan);
    assert_eq!(json["links"][2]["tuning"]["gap_ns"], 1000);
    assert!(json["links"][3]["tuning"].is_null());
}

#[test]
fn a_note_says_the_default_and_a_changed_distance_and_no_layout_but_of_queues() {
    let pair = |cpus| TunedPair { cpus, distance_changed: true, short: None, long: Some(LONG) };
    let pairs = vec![pair([0, 1]), TunedPair { short: Some(SHORT), ..pair([0, 2]) }];
    let (file, time) = ("a.json".into(), "today".into());
    let machine =
        TargetMachine { cpus: vec![0, 1, 2], profile: LinkProfile::Measured { file, time, pairs } };
    let text = THREADS
        .replace("{name: y, port: extra, capacity: 32}", "{name: y, port: extra}")
        .replace("{name: w, port: in, capacity: 16}", "{name: w, port: in, delivery: latest}");
    let source = SpecSource { file: "graph.yaml", text: &text, overrides: &[] };
    let plan = compile(&source, KINDS, &machine)
        .unwrap_or_else(|errors| panic!("{}", render(&errors, &text, false)));
    let told = |words: &str| plan.notes.iter().filter(|note| note.contains(words)).count();
    let moved = "; their distance changed while they were measured: 'sinew tune' measures anew";
    assert_eq!(told(&format!("today: short ones: the default, as measured{moved}")), 1);
    assert_eq!(told("today: short ones: between polls 200 ns, fetches ahead"), 1);
    let json = picture::json(&plan);
    assert_eq!(json["links"][0]["tuning"]["gap_ns"], 200);
    assert!(json["links"][0]["tuning"]["layout"].is_null());
}

#[test]
fn a_pair_that_was_not_measured_keeps_the_default_and_is_named() {
    let plan = plan(measured(&[[0, 2], [5, 6]]));
    let none = None;
    assert_eq!(tunings(&plan), [Some(SHORT), none, none, none, none, none]);
    assert_eq!(
        plan.notes.last().expect("a note"),
        "2 pairs of CPUs not in the machine profile machine.json, whose links have the default \
         shape: 0 and 1, 1 and 2; 'sinew tune' with this graph's file measures them"
    );
}

#[test]
fn a_profile_that_is_refused_is_told_where_a_link_would_have_used_it() {
    let without = plan(LinkProfile::None).notes;
    let refused = LinkProfile::Refused("not ours".into());
    let plan = plan(refused.clone());
    assert_eq!(tunings(&plan), [None; 6]);
    assert_eq!(plan.notes, [without, vec!["not ours".into()]].concat());
    // The arm on one CPU has no link between two.
    let source = SpecSource { file: "graph.yaml", text: ARM, overrides: &[] };
    let machine = TargetMachine { cpus: vec![0], profile: refused };
    let arm = compile(&source, KINDS, &machine).expect("a good graph");
    assert!(!arm.notes.contains(&"not ours".into()), "{:?}", arm.notes);
}
