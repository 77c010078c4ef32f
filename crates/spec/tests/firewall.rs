//! A compiled plan, changed by hand so that it breaks each rule.

use sinew_spec::catalogue::{Direction, Kind, Port, RunsIn, SafeValue};
use sinew_spec::firewall::{Firewall, On, WaitsFor};
use sinew_spec::plan::{
    Delivery, Full, Link, Plan, Release, Role, Sync, TargetMachine, Transport, Wait,
};
use sinew_spec::{SpecSource, compile};

use crate::kinds::{WORD, free};

const STOP: &[SafeValue] = &[SafeValue { name: "stop", doc: "Stands still." }];
const PORTS: &[Port] = &[
    free("in", Direction::In, &WORD),
    free("more", Direction::In, &WORD),
    Port { safe: STOP, ..free("drive", Direction::In, &WORD) },
    free("out", Direction::Out, &WORD),
];

static CYCLIC: Kind = Kind::new("cyclic", RunsIn::Realtime, PORTS);
static SERVICE: Kind = Kind::new("service", RunsIn::Service, PORTS);
static HOSTS: Kind = Kind::new("hosts", RunsIn::Hosts, PORTS);
static OBSERVER: Kind = Kind::new("observer", RunsIn::Observer, &[]);

/// Three realtime threads in two domains, and a service.
const TEXT: &str = "
domains:
  core:
    realtime: {period: 1ms}
    threads: [{nodes: [a]}, {nodes: [b]}]
  plant: {realtime: {trigger: input}}
  screen: {}
nodes:
  - kind: cyclic
    name: a
    domain: core
    safe: {drive: {value: stop, after: 3}}
    ports:
      out:
        - {name: b, port: in, full: wait}
        - {name: plant, port: in, sync: mutex}
        - {name: screen, port: in}
        - {name: other, port: in, delivery: broadcast}
  - {kind: cyclic, name: b, domain: core, safe: {drive: {value: stop, after: 3}}}
  - kind: cyclic
    name: plant
    domain: plant
    safe: {drive: {value: stop, after: 3}}
    ports: {out: [{name: a, port: in, delay: 1}]}
  - kind: service
    name: screen
    domain: screen
    safe: {drive: {value: stop, after: 3}}
    ports: {out: [{name: a, port: more, full: drop}, {name: other, port: more}]}
  - {kind: service, name: other, domain: screen, safe: {drive: {value: stop, after: 3}}}
";

/// Links of the plan, in the order of the text.
const A_TO_SCREEN: usize = 2;
const A_TO_OTHER: usize = 3;
const SCREEN_TO_A: usize = 5;
const SCREEN_TO_OTHER: usize = 6;

fn machine() -> TargetMachine {
    TargetMachine::of(vec![0, 1, 2, 3])
}

fn plan() -> Plan {
    let source = SpecSource::of("graph.yaml", TEXT);
    compile(&source, &[&CYCLIC, &SERVICE], &machine()).expect("a good graph")
}

#[test]
fn the_firewall_lists_what_leaves_the_core_and_what_each_thread_waits_for() {
    let firewall = Firewall::of(&plan(), &machine());
    assert_eq!(firewall.violations, [""; 0]);
    assert_eq!(firewall.crossings, [A_TO_SCREEN, A_TO_OTHER, SCREEN_TO_A]);
    let json = firewall.json(&plan());
    let directions = [0, 1, 2].map(|at| json["links"][at]["direction"].as_str());
    assert_eq!(directions, [Some("out"), Some("out"), Some("in")]);
    let waits: Vec<_> = firewall.threads.iter().map(|thread| thread.waits.as_slice()).collect();
    let a = [
        WaitsFor::Clock,
        WaitsFor::Link(On::Room, 0),
        WaitsFor::Link(On::Mutex, 1),
        WaitsFor::Link(On::Feedback, 4),
    ];
    assert_eq!(
        waits,
        [
            &a[..],
            &[WaitsFor::Link(On::Message, 0)],
            &[WaitsFor::Link(On::Message, 1), WaitsFor::Link(On::Mutex, 1)]
        ]
    );
    assert_eq!((firewall.polling(), firewall.cpus), (3, 4));
}

#[test]
fn the_firewall_reads_as_a_table() {
    let plan = plan();
    let text = Firewall::of(&plan, &machine()).text(&plan);
    let expected = "\
firewall: 3 links between the core and services, the core never waits on them
  out a.out -> screen.in    latest                  8 B  the core overwrites the last value, \
                    read or not
  out a.out -> other.in     broadcast 8             8 B  the core overwrites the oldest message, \
                    read or not
  in  screen.out -> a.more  queue 8 (drop if full)  8 B  the core takes one a cycle at most; full, \
                    the service drops
what each realtime thread can wait for, without any service:
  core, thread 0: the clock; room in the queue to 'b' (core, thread 1), until the deadline; the \
                    mutex of a.out -> plant.in, for a copy; feedback from 'plant' (plant, thread \
                    0), until the deadline
  core, thread 1: a message from 'a' (core, thread 0), at most half a period past its time
  plant, thread 0: a message from 'a' (core, thread 0), at most half a period past its time; the \
                    mutex of a.out -> plant.in, for a copy
polling while they wait: 3 of 3 realtime threads, on 4 CPUs
";
    assert_eq!(text, expected);
    let json = Firewall::of(&plan, &machine()).json(&plan);
    assert_eq!(json["links"][2]["full"], "drop");
    assert_eq!(json["threads"][0]["waits_for"][3]["from"], "plant.out");
    assert_eq!((&json["threads_polling"], &json["cpus"]), (&3.into(), &4.into()));
}

#[test]
fn a_graph_of_services_has_no_core_to_look_at() {
    let text = "- {kind: service, safe: {drive: {value: stop, after: 3}}}\n";
    let source = SpecSource::of("graph.yaml", text);
    let plan = compile(&source, &[&SERVICE], &machine()).expect("a good graph");
    let text = Firewall::of(&plan, &machine()).text(&plan);
    assert_eq!(text, "firewall: services only, no core that could wait for them\n");
}

#[test]
fn who_observes_the_core_is_listed() {
    let text = TEXT.replace("  screen: {}\n", "  screen: {}\n  eye: {}\n");
    let text = text + "  - {kind: observer, name: eye, domain: eye}\n";
    let compiled = |text: &str| {
        let source = SpecSource::of("graph.yaml", text);
        compile(&source, &[&CYCLIC, &SERVICE, &OBSERVER], &machine())
    };
    let plan = compiled(&text).expect("a good graph");
    let firewall = Firewall::of(&plan, &machine());
    let line = "observing: eye; they read the records of the core's cycles, in memory that they \
                cannot write; the core never waits for them\n";
    assert!(firewall.text(&plan).contains(line), "{}", firewall.text(&plan));
    assert_eq!(firewall.json(&plan)["observers"][0]["domain"], "eye");
    assert_eq!(firewall.violations, [""; 0]);
    let wrong = found(|plan| plan.nodes[1].kind = &OBSERVER);
    assert_eq!(wrong, ["node 'b' (observer) has no place in domain 'core'"]);
    let errors = compiled(&text.replace("name: eye, domain: eye", "name: eye, domain: core"));
    let errors = errors.expect_err("it is not a node of the core");
    assert!(errors[0].message.contains("'eye'"), "{errors:#?}");
}

/// The violations after `change`.
fn found(change: impl FnOnce(&mut Plan)) -> Vec<String> {
    let mut plan = plan();
    change(&mut plan);
    Firewall::of(&plan, &machine()).violations
}

#[test]
fn every_rule_finds_the_plan_that_breaks_it() {
    let out = |what: &str| [format!("link 'a.out' -> 'screen.in': {what}")];
    let into = |what: &str| [format!("link 'screen.out' -> 'a.more': {what}")];
    let link = |at: usize, change: fn(&mut Link)| found(|plan| change(&mut plan.links[at]));
    let lies = "it must lie in bytes that outlive a service";
    assert_eq!(link(A_TO_SCREEN, |link| link.transport = Transport::Tcp), out(lies));
    assert_eq!(link(SCREEN_TO_A, |link| link.transport = Transport::InProcess), into(lies));
    let loses = "with its delivery the core waits for the service, or loses its messages";
    assert_eq!(link(A_TO_SCREEN, |link| link.delivery = Delivery::Queue), out(loses));
    assert_eq!(link(SCREEN_TO_A, |link| link.delivery = Delivery::Broadcast), into(loses));
    let sleeps = "the core would sleep on it, or would have to wake a service";
    assert_eq!(link(A_TO_SCREEN, |link| link.wait = Wait::Park), out(sleeps));
    assert_eq!(link(SCREEN_TO_A, |link| link.capacity = 0), into("it has no bound"));
    assert_eq!(link(SCREEN_TO_A, |link| link.capacity = u32::MAX), into("it has no bound"));
    let slot = "a slot of a thread cannot leave the core";
    assert_eq!(link(A_TO_SCREEN, |link| link.fused = true), out(slot));
    let polls = "link 'screen.out' -> 'other.more': a service would poll on it";
    assert_eq!(link(SCREEN_TO_OTHER, |link| link.wait = Wait::Yield), [polls]);
    let stamp = "messages have a stamp, but no other host writes it";
    assert_eq!(link(SCREEN_TO_A, |link| link.after_ns = Some(1)), into(stamp));
    assert_eq!(link(A_TO_SCREEN, |link| link.after_ns = Some(1)), out(stamp));
    let remote = found(|plan| {
        let screen = plan.links[SCREEN_TO_A].from.node;
        plan.nodes[screen].kind = &HOSTS;
    });
    let bare = "messages from another host have no stamp".to_owned();
    let moves = "another host writes to a node that moves an actuator".to_owned();
    assert_eq!(remote, [bare, moves].map(|what| into(&what).concat()));
    let commanded = found(|plan| plan.links[SCREEN_TO_A].to.port = 2);
    assert_eq!(commanded, ["link 'screen.out' -> 'a.drive': a service commands an actuator"]);
}

#[test]
fn a_thread_that_waits_for_a_service_is_found_by_what_it_waits_for() {
    let name = "link 'screen.out' -> 'a.more'";
    let thread = format!("thread 0 of domain 'core' can wait for a service, on {name}");
    let delayed = format!("{name}: it is delayed, and a service is not part of the cycle");
    assert_eq!(found(|plan| plan.links[SCREEN_TO_A].delay = true), [delayed]);
    let locked = format!("{name}: a service that holds a lock would hold up the core");
    let mutex = found(|plan| plan.links[SCREEN_TO_A].sync = Sync::Mutex);
    assert_eq!(mutex, [locked, thread.clone()]);
    let released = found(|plan| {
        let Role::Realtime(core) = &mut plan.domains[0].role else { panic!("{plan:?}") };
        core.threads[0].release = Release::Input(SCREEN_TO_A);
    });
    assert_eq!(released, [thread]);
    let room = found(|plan| {
        plan.links[A_TO_SCREEN].delivery = Delivery::Queue;
        plan.links[A_TO_SCREEN].full = Full::Wait;
    });
    assert_eq!(room.len(), 2, "{room:?}");
    assert!(room[1].ends_with("can wait for a service, on link 'a.out' -> 'screen.in'"));
}

#[test]
fn a_node_in_the_wrong_sort_of_domain_is_found() {
    let wrong = found(|plan| plan.nodes[1].kind = &SERVICE);
    assert_eq!(wrong, ["node 'b' (service) has no place in domain 'core'"]);
    let wrong = found(|plan| plan.nodes[4].kind = &CYCLIC);
    assert_eq!(wrong, ["node 'other' (cyclic) has no place in domain 'screen'"]);
}

#[test]
fn more_threads_that_poll_than_cpus_are_found() {
    let plan = plan();
    for (cpus, expected) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
        let firewall = Firewall::of(&plan, &TargetMachine::of((0..cpus).collect()));
        assert_eq!(firewall.violations.len(), expected, "{cpus}");
    }
    let text = Firewall::of(&plan, &TargetMachine::of(vec![0])).text(&plan);
    assert!(text.ends_with("  violated: 3 of 3 realtime threads poll, on 1 CPU\n"), "{text}");
}
