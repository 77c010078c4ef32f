//! How a machine profile shapes a plan's links, and the notes about it in the plan.

use crate::kinds::{ARM, KINDS, message};
use sinew_spec::catalogue::{Kind, MessageType, Port, RunsIn};
use sinew_spec::plan::{LinkProfile, LinkTuning, Plan, SlotLayout, TargetMachine, TunedPair};
use sinew_spec::{SpecSource, compile, picture, render};

static WIDE_MESSAGE: MessageType = message("Wide", 10, &[]);

/// A kind whose messages are longer than 60 B.
static WIDE: Kind = Kind::new(
    "wide",
    RunsIn::Realtime,
    &[
        Port::input("in", "", &WIDE_MESSAGE).optional(),
        Port::output("out", "", &WIDE_MESSAGE).optional(),
    ],
);

/// Three threads on CPUs of their own. Two of the links are small, one is long, and the last one is
/// short. The others have a mutex, go through the kernel, or stay in a thread.
const THREADS: &str = "
name: threads
domains:
  a:
    realtime: {period: 1ms}
    threads: [{cpu: 2, nodes: [v, t]}, {cpu: 0, nodes: [w, x]}, {cpu: 1, nodes: [y, u]}]
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
  - {kind: wide, name: t, ports: {out: [{name: u, port: in}]}}
  - {kind: wide, name: u}
";

const SHORT: LinkTuning = LinkTuning {
    layout: SlotLayout::Sequence,
    eager_polls: 0,
    gap_ns: 200,
    fetches_ahead: true,
    hands_over: false,
};
const SMALL: LinkTuning = LinkTuning { gap_ns: 100, ..SHORT };
const LONG: LinkTuning = LinkTuning { layout: SlotLayout::Index, gap_ns: 1000, ..SHORT };

fn plan(profile: LinkProfile) -> Plan {
    plan_of(THREADS, profile)
}

fn plan_of(text: &str, profile: LinkProfile) -> Plan {
    let source = SpecSource::of("graph.yaml", text);
    let machine = TargetMachine { cpus: vec![0, 1, 2], profile };
    let kinds = [KINDS, &[&WIDE]].concat();
    compile(&source, &kinds, &machine).unwrap_or_else(|e| panic!("{}", render(&e, text, false)))
}

fn measured(cpus: &[[u32; 2]]) -> LinkProfile {
    let suited = [Some(SMALL), Some(SHORT), Some(LONG)];
    let pair = |&cpus| TunedPair { cpus, distance_changed: false, suited };
    let (file, time) = ("machine.json".into(), "today".into());
    LinkProfile::Measured { file, time, pairs: cpus.iter().map(pair).collect() }
}

fn tunings(plan: &Plan) -> Vec<Option<LinkTuning>> {
    plan.links.iter().map(|link| link.tuning).collect()
}

#[test]
fn a_link_gets_what_was_measured_between_its_cpus_for_its_class() {
    let plan = plan(measured(&[[0, 2], [0, 1], [1, 2]]));
    let (none, small) = (None, Some(SMALL));
    assert_eq!(tunings(&plan), [small, small, Some(LONG), none, none, none, Some(SHORT)]);
    let notes = [
        "links between CPUs 0 and 1 are shaped by the machine profile machine.json of today: long \
         ones: index layout, between polls 1000 ns, fetches ahead, does not hand over",
        "links between CPUs 0 and 2 are shaped by the machine profile machine.json of today: \
         small ones: sequence layout, between polls 100 ns, fetches ahead, does not hand over",
        "links between CPUs 1 and 2 are shaped by the machine profile machine.json of today: \
         small ones: sequence layout, between polls 100 ns, fetches ahead, does not hand over; \
         short ones: sequence layout, between polls 200 ns, fetches ahead, does not hand over",
    ];
    assert_eq!(plan.notes[plan.notes.len() - 3..], notes);
    let json = picture::json(&plan);
    assert_eq!(json["links"][2]["tuning"]["gap_ns"], 1000);
    assert!(json["links"][3]["tuning"].is_null());
}

#[test]
fn a_note_says_the_default_and_a_changed_distance_and_no_layout_but_of_queues() {
    let pair = |cpus, small| {
        let suited = [small, None, Some(LONG)];
        TunedPair { cpus, distance_changed: true, suited }
    };
    let pairs = vec![pair([0, 1], None), pair([0, 2], Some(SMALL))];
    let (file, time) = ("a.json".into(), "today".into());
    let text = THREADS
        .replace("{name: y, port: extra, capacity: 32}", "{name: y, port: extra}")
        .replace("{name: w, port: in, capacity: 16}", "{name: w, port: in, delivery: latest}");
    let plan = plan_of(&text, LinkProfile::Measured { file, time, pairs });
    let told = |words: &str| plan.notes.iter().filter(|note| note.contains(words)).count();
    let moved = "; their distance changed while they were measured: 'sinew tune' measures again";
    assert_eq!(told(&format!("today: small ones: the default, as measured{moved}")), 1);
    assert_eq!(told("today: small ones: between polls 100 ns, fetches ahead"), 1);
    let json = picture::json(&plan);
    assert_eq!(json["links"][0]["tuning"]["gap_ns"], 100);
    assert!(json["links"][0]["tuning"]["layout"].is_null());
}

#[test]
fn a_pair_that_was_not_measured_keeps_the_default_and_is_named() {
    let plan = plan(measured(&[[0, 2], [5, 6]]));
    let none = None;
    assert_eq!(tunings(&plan), [Some(SMALL), none, none, none, none, none, none]);
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
    assert_eq!(tunings(&plan), [None; 7]);
    assert_eq!(plan.notes, [without, vec!["not ours".into()]].concat());
    // On one CPU the arm has no link between two CPUs.
    let source = SpecSource::of("graph.yaml", ARM);
    let machine = TargetMachine { cpus: vec![0], profile: refused };
    let arm = compile(&source, KINDS, &machine).expect("a good graph");
    assert!(!arm.notes.contains(&"not ours".into()), "{:?}", arm.notes);
}
