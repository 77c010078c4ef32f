//! Plans of graphs with services.

use crate::kinds::{ARM, compile_on, domains, plan, set};
use sinew_spec::chain::Chain;
use sinew_spec::plan::{
    Delivery, Full, Link, Plan, Release, Restart, RestartPolicy, ServiceLimits, Sync, Transport,
    Wait,
};

/// A core of two threads, and services before, after and between its nodes.
const TEXT: &str = "
name: beside
domains:
  log: {}
  screen:
    restart: {policy: always, backoff: 200ms, backoff_max: 1s, restarts_max: 5, window: 30s}
    start_deadline: 20s
    heartbeat: 5s
    stop_deadline: 1s
    limits: {memory: 256MiB, cpu: 50%, descriptors: 64, processes: 16}
    cpus: [3, 0]
    user: nobody
  core:
    realtime: {period: 1ms}
    threads: [{nodes: [a]}, {nodes: [b]}]
    user: robot
  pad: {restart: {policy: never}}
nodes:
  - {kind: gauge, name: log, domain: log}
  - {kind: gauge, name: screen, domain: screen, ports: {out: [{name: log, port: in}]}}
  - {kind: gauge, name: lamp, domain: screen}
  - kind: filter
    name: a
    domain: core
    ports:
      out:
        - {name: b, port: in}
        - {name: screen, port: in}
        - {name: lamp, port: in, delivery: broadcast, capacity: 16}
  - {kind: filter, name: b, domain: core}
  - kind: gauge
    name: pad
    domain: pad
    ports:
      out:
        - {name: a, port: in}
        - {name: b, port: extra, delivery: latest}
";

fn link<'a>(plan: &'a Plan, from: &str, to: &str) -> &'a Link {
    let name = |node: usize| plan.nodes[node].name.as_str();
    let wanted = |link: &&Link| name(link.from.node) == from && name(link.to.node) == to;
    plan.links.iter().find(wanted).expect("a link")
}

#[test]
fn the_core_stops_first_then_readers_before_writers_and_the_last_of_the_spec_before_the_first() {
    assert_eq!(domains(&plan(TEXT)), ["core", "pad", "log", "screen"]);
    let unlinked = TEXT.replace(", ports: {out: [{name: log, port: in}]}", "");
    assert_eq!(domains(&plan(&unlinked)), ["core", "pad", "screen", "log"]);
}

#[test]
fn a_service_has_what_its_keys_say() {
    let plan = plan(TEXT);
    let screen = &plan.domains[3];
    assert_eq!(screen.user.as_deref(), Some("nobody"));
    assert_eq!(plan.domains[0].user.as_deref(), Some("robot"));
    let service = screen.service().expect("a service");
    let restart = Restart {
        policy: RestartPolicy::Always,
        backoff_ns: 200_000_000,
        backoff_max_ns: 1_000_000_000,
        restarts_max: 5,
        window_ns: 30_000_000_000,
    };
    let limits = ServiceLimits {
        memory_bytes: Some(256 << 20),
        cpu_percent: Some(50),
        descriptors: Some(64),
        processes: Some(16),
    };
    assert_eq!((service.restart, service.limits), (restart, limits));
    assert_eq!(service.cpus, Some(vec![0, 3]));
    let times_s = [service.start_deadline_ns, service.heartbeat_ns, service.stop_deadline_ns];
    assert_eq!(times_s.map(|time_ns| time_ns / 1_000_000_000), [20, 5, 1]);
    assert_eq!(service.nodes, [1, 2]);
    assert_eq!((plan.nodes[2].domain, plan.nodes[2].thread), (3, 0));
    assert_eq!(plan.domains[1].service().expect("a service").restart.policy, RestartPolicy::Never);
    assert_eq!(plan.domains[1].service().expect("a service").cpus, None);
    assert!(screen.threads().is_empty() && plan.domains[0].service().is_none());
}

#[test]
fn links_that_leave_the_core_take_the_options_that_cannot_make_it_wait() {
    let plan = plan(TEXT);
    let out = link(&plan, "a", "screen");
    assert_eq!((out.transport, out.sync), (Transport::SharedMemory, Sync::LockFree));
    assert_eq!((out.delivery, out.wait, out.capacity), (Delivery::Latest, Wait::Spin, 1));
    let all = link(&plan, "a", "lamp");
    assert_eq!((all.delivery, all.capacity, all.wait), (Delivery::Broadcast, 16, Wait::Spin));
    let mailbox = link(&plan, "pad", "a");
    assert_eq!((mailbox.delivery, mailbox.capacity), (Delivery::Queue, 8));
    assert_eq!((mailbox.full, mailbox.wait), (Full::Drop, Wait::Spin));
    assert_eq!(link(&plan, "pad", "b").delivery, Delivery::Latest);
    assert!(plan.links.iter().all(|link| !link.fused && !link.delay));
    let leaving = plan.links.iter().filter(|link| plan.leaves_core(link));
    assert_eq!(leaving.count(), 4);
}

#[test]
fn links_between_services_sleep_and_drop() {
    let plan = plan(TEXT);
    let between = link(&plan, "screen", "log");
    assert_eq!((between.transport, between.wait), (Transport::SharedMemory, Wait::Park));
    assert_eq!((between.delivery, between.full), (Delivery::Queue, Full::Drop));
}

#[test]
fn a_bare_list_is_one_service_and_a_loop_in_it_needs_no_delay() {
    let plan = plan(
        "
- {kind: gauge, name: a, ports: {out: [{name: b, port: in, wait: spin_then_park}]}}
- {kind: gauge, name: b, ports: {out: [{name: a, port: in}]}}
",
    );
    assert_eq!((plan.links[0].transport, plan.links[0].fused), (Transport::InProcess, false));
    assert_eq!((plan.name.as_str(), plan.domains.len()), ("graph", 1));
    assert_eq!(plan.domains[0].name, "services");
    let service = plan.domains[0].service().expect("a service");
    assert_eq!(service.nodes, [0, 1]);
    let restart = service.restart;
    assert_eq!((restart.policy, restart.restarts_max), (RestartPolicy::OnFailure, 10));
    assert_eq!((restart.backoff_ns, service.limits), (100_000_000, ServiceLimits::default()));
    let times_s = [service.start_deadline_ns, service.heartbeat_ns, service.stop_deadline_ns];
    assert_eq!(times_s.map(|time_ns| time_ns / 1_000_000_000), [10, 2, 3]);
}

#[test]
fn the_command_line_finds_the_nodes_of_a_bare_list() {
    let list = "[{kind: gauge, name: a}]";
    let set = |path: &str| set(list, path, "1").unwrap_err()[0].message.clone();
    assert_eq!(set("a.lap"), "unknown key 'lap' in a node");
    assert_eq!(set("b.lap"), "there is no node 'b'");
}

#[test]
fn services_neither_release_a_thread_nor_spin() {
    let both = "domains: {d: {realtime: {period: 1ms}}, s: {}, f: {realtime: {trigger: input}}}
nodes:
  - {kind: gauge, name: s, domain: s, ports: {out: [{name: f, port: extra}]}}
  - {kind: filter, name: d, domain: d, ports: {out: [{name: f, port: in}, {name: s, port: in}]}}
  - {kind: filter, name: f, domain: f}
";
    for cpus in [1, 2, 4] {
        let plan = compile_on(cpus, both).expect("a plan");
        let follower = &plan.domains[1];
        assert_eq!(follower.name, "f");
        let Release::Input(release) = follower.threads()[0].release else { panic!("{follower:?}") };
        assert_eq!(plan.nodes[plan.links[release].from.node].name, "d");
        let leaving = plan.links.iter().filter(|link| plan.leaves_core(link));
        assert!(leaving.clone().count() == 2 && leaving.into_iter().all(|l| l.wait == Wait::Spin));
        assert_eq!(plan.notes.is_empty(), cpus > 1, "{:?}", plan.notes);
    }
}

#[test]
fn a_loop_through_a_service_needs_no_delay_and_is_no_feedback() {
    let text = "domains: {d: {realtime: {period: 1ms}}, s: {}}
nodes:
  - {kind: gauge, name: s, domain: s, ports: {out: [{name: d, port: in}]}}
  - {kind: filter, name: d, domain: d, ports: {out: [{name: s, port: in}]}}
";
    let plan = plan(text);
    assert_eq!(plan.domains[0].threads()[0].release, Release::Timer);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

#[test]
fn a_service_beside_the_arm_changes_nothing_in_its_core() {
    let beside = ARM.replace("domains:\n", "domains:\n  screen: {}\n").replace(
        "{name: ethercat, port: in}",
        "{name: ethercat, port: in}, {name: screen, port: in}",
    ) + "  - {kind: gauge, name: screen, domain: screen}\n";
    let (alone, beside) = (plan(ARM), plan(&beside));
    for (a, b) in alone.domains.iter().zip(&beside.domains) {
        assert_eq!(a.name, b.name);
        for (a, b) in a.threads().iter().zip(b.threads()) {
            assert_eq!((a.cpu, &a.nodes), (b.cpu, &b.nodes));
        }
    }
}

#[test]
fn the_longest_chain_follows_times_across_threads_and_leaves_services_out() {
    let names = |plan: &Plan, chain: &Chain| -> Vec<String> {
        chain.nodes.iter().map(|&node| plan.nodes[node].name.clone()).collect()
    };
    let arm = plan(ARM);
    let chain = Chain::longest(&arm, |_| 0);
    assert_eq!(names(&arm, &chain), ["planner", "ik", "ethercat", "drives"]);
    assert_eq!(chain.links.len(), 3);
    let beside = plan(TEXT);
    assert_eq!(names(&beside, &Chain::longest(&beside, |_| 1)), ["a", "b"]);
    // 'b' alone takes longer than any two others; at a fork the longer path is taken.
    let fork = plan(
        "domains: {d: {realtime: {period: 1ms}}}
nodes:
  - {kind: filter, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
  - {kind: filter, name: b}
  - {kind: filter, name: c, ports: {out: [{name: d, port: in}]}}
  - {kind: filter, name: d, ports: {out: [{name: a, port: in, delay: 1}]}}
",
    );
    let by_time = |times_ns: [u64; 4]| names(&fork, &Chain::longest(&fork, |node| times_ns[node]));
    assert_eq!(by_time([0; 4]), ["a", "c", "d"]);
    assert_eq!(by_time([1, 9, 1, 1]), ["a", "b"]);
    assert_eq!(by_time([u64::MAX; 4]), ["a", "c", "d"]);
    let alone = plan("[{kind: gauge}]");
    assert_eq!(Chain::longest(&alone, |_| 1), Chain::default());
}
