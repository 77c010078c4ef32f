//! Graphs with several hosts: the whole graph, and the part of each host.

use sinew_spec::catalogue::{Direction, RunsIn};
use sinew_spec::plan::{
    Delivery, FlowLink, Plan, Release, RequiredOf, RestartPolicy, TargetMachine, Wait,
};
use sinew_spec::{Brought, SpecSource, Wanted, compile};

use crate::kinds::{KINDS, compile_on, part, plan};

/// A controller that takes targets from another host and reports back; a local service also writes
/// to it.
const CELL: &str = "
name: cell
hosts:
  cell: {address: 'cell.local:7447'}
  office: {}
  hall: {address: '10.0.0.9:7447', listen: '10.0.0.9:7448'}
domains:
  control: {realtime: {period: 1ms}, host: cell, requires: {latency: 1ms}}
  other: {realtime: {trigger: input}, host: cell}
  far: {realtime: {period: 2ms}, host: hall, requires: {latency: 2ms}}
  screen: {host: office, restart: {policy: never}}
  log: {host: cell}
nodes:
  - kind: filter
    name: limiter
    domain: control
    ports:
      out:
        - {name: second, port: in}
        - {name: screen, port: in, delivery: queue, capacity: 64}
        - {name: log, port: in}
        - {name: far, port: in}
  - {kind: filter, name: second, domain: other}
  - kind: gauge
    name: screen
    domain: screen
    ports: {out: [{name: limiter, port: in, after: 50ms}, {name: log, port: extra}]}
  - {kind: filter, name: far, domain: far, ports: {out: [{name: limiter, port: extra}]}}
  - {kind: gauge, name: log, domain: log}
";

fn names(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|node| node.name.as_str()).collect()
}

/// Each link as `from -> to delivery`.
fn links(plan: &Plan) -> Vec<String> {
    let shown = |at: usize| format!("{} {}", plan.link_name(at), plan.links[at].delivery.word());
    (0..plan.links.len()).map(shown).collect()
}

#[test]
fn the_whole_graph_knows_all_and_runs_nowhere() {
    let whole = plan(CELL);
    assert!(whole.is_whole());
    assert_eq!(names(&whole), ["limiter", "second", "screen", "far", "log"]);
    assert_eq!(links(&whole), ["limiter.out -> second.in queue", "limiter.out -> log.in latest"]);
    let remote = whole.hosts.links.iter().map(|link| {
        let (from, to) = (whole.remote_name(&link.from), whole.remote_name(&link.to));
        format!("{from} -> {to} {} {:?}", link.delivery.word(), link.after_ns)
    });
    assert_eq!(
        remote.collect::<Vec<_>>(),
        [
            "limiter.out at cell -> screen.in at office queue None",
            "limiter.out at cell -> far.in at hall latest Some(100000000)",
            "screen.out at office -> limiter.in at cell queue Some(50000000)",
            "screen.out at office -> log.extra at cell queue None",
            "far.out at hall -> limiter.extra at cell latest Some(100000000)",
        ]
    );
}

#[test]
fn the_command_line_changes_where_hosts_are() {
    let set = |path: &str, value: &str| crate::kinds::set(CELL, path, value);
    let address = |plan: &Plan, host: usize| plan.hosts.all[host].address.clone();
    let moved = set("hosts.office.address", "127.0.0.1:7000").unwrap();
    assert_eq!(address(&moved, 1).as_deref(), Some("127.0.0.1:7000"));
    let moved = set("hosts.cell.address", "127.0.0.1:7001").unwrap();
    assert_eq!(address(&moved, 0).as_deref(), Some("127.0.0.1:7001"));
    // Overrides of another host do not change the version.
    assert_eq!(moved.hosts.version, plan(CELL).hosts.version);
    for (path, value, message) in [
        ("hosts.offise.address", "x:1", "there is no host 'offise'"),
        ("hosts.office.adress", "x:1", "unknown key 'adress' in a host"),
        ("hosts.office.address", "x", "'x' is not an address of a host"),
        ("hosts.office", "x", "there is no node 'hosts'"),
    ] {
        let errors = set(path, value).unwrap_err();
        assert_eq!(errors[0].message, message, "{errors:#?}");
        assert_eq!(errors[0].file, format!("--set {path}={value}"));
    }
}

#[test]
fn two_hosts_need_no_address_if_both_call_a_router() {
    let by_router = ["cell: {address: 'cell.local:7447'}", "office: {}"];
    let spec = by_router.iter().fold(CELL.to_owned(), |spec, host| {
        let name = host.split(':').next().expect("a name");
        spec.replace(host, &format!("{name}: {{router: 'router.local:7447'}}"))
    });
    let routers = |plan: &Plan| -> Vec<Option<String>> {
        plan.hosts.all.iter().map(|host| host.router.clone()).collect()
    };
    let plan_of = plan(&spec);
    let router = Some("router.local:7447".to_owned());
    assert_eq!(routers(&plan_of), [router.clone(), router, None]);
    assert_eq!(plan_of.hosts.all[0].listen, None);
    // The way in which hosts connect does not change the version.
    assert_eq!(plan_of.hosts.version, plan(CELL).hosts.version);
}

#[test]
fn the_part_of_a_host_has_its_nodes_and_one_for_all_others() {
    let cell = part(CELL, "cell");
    assert_eq!(names(&cell), ["limiter", "second", "log", "others"]);
    assert_eq!(
        links(&cell),
        [
            "limiter.out -> second.in queue",
            "limiter.out -> log.in latest",
            // The screen wants every message, so the node for all other hosts gets every message.
            "limiter.out -> others.limiter.out broadcast",
            "others.screen.out -> limiter.in queue",
            "others.screen.out -> log.extra queue",
            "others.far.out -> limiter.extra latest",
        ]
    );
    let [.., broadcast, command, to_service, far] = &cell.links[..] else { panic!() };
    assert_eq!((broadcast.capacity, broadcast.wait), (64, Wait::Spin));
    assert_eq!((command.after_ns, far.after_ns), (Some(50_000_000), Some(100_000_000)));
    assert_eq!((to_service.after_ns, to_service.wait), (None, Wait::Park));
    // It starts before all others, and stops after them.
    let last = cell.domains.last().expect("a domain");
    let service = last.service().expect("a service");
    assert_eq!((last.name.as_str(), &service.nodes[..]), ("others", &[3][..]));
    assert_eq!(service.restart.policy, RestartPolicy::Always);
    let kind = cell.nodes[3].kind;
    assert_eq!(kind.runs_in, RunsIn::Hosts);
    let ports: Vec<_> = kind.ports.iter().map(|port| (port.direction, port.name)).collect();
    let (way_in, way_out) = (Direction::In, Direction::Out);
    let expected = [(way_in, "limiter.out"), (way_out, "screen.out"), (way_out, "far.out")];
    assert_eq!(ports, expected);
    let ports: Vec<usize> = cell.hosts.links.iter().map(|link| link.port).collect();
    assert_eq!(ports, [0, 0, 1, 1, 2]);
    assert!(
        std::ptr::eq(kind, part(CELL, "cell").nodes[3].kind),
        "one table of ports is made once"
    );
}

#[test]
fn what_counts_in_indices_counts_in_those_of_the_part() {
    let cell = part(CELL, "cell");
    let other = cell.domains.iter().find(|domain| domain.name == "other").expect("a domain");
    assert_eq!(other.threads()[0].release, Release::Input(0));
    assert_eq!(other.threads()[0].nodes, [1]);
    let control = cell.domains.iter().position(|domain| domain.name == "control");
    let of: Vec<_> = cell.requirements.iter().map(|it| it.of).collect();
    assert_eq!(of, [RequiredOf::Domain(control.expect("a domain"))]);
    let hall = part(CELL, "hall");
    assert_eq!(names(&hall), ["far", "others"]);
    assert_eq!(hall.requirements.len(), 1);
    assert_eq!(
        links(&hall),
        ["others.limiter.out -> far.in latest", "far.out -> others.far.out latest"]
    );
}

#[test]
fn hosts_agree_on_a_number_that_changes_with_the_links_between_them() {
    let versions: Vec<u64> =
        ["cell", "office", "hall"].iter().map(|host| part(CELL, host).hosts.version).collect();
    assert_eq!(versions, [plan(CELL).hosts.version; 3]);
    // What only one host sees does not change the version, and neither does the order of the text.
    for (from, to) in [("period: 1ms", "period: 4ms"), ("after: 50ms", "after: 60ms")] {
        assert_eq!(part(&CELL.replace(from, to), "cell").hosts.version, versions[0], "{to}");
    }
    for (from, to) in [("port: in, after", "port: extra, after"), ("name: cell\n", "name: line\n")]
    {
        let text = CELL.replace("{name: limiter, port: extra}", "{name: second, port: extra}");
        assert_ne!(part(&text.replace(from, to), "cell").hosts.version, versions[0], "{to}");
    }
}

#[test]
fn one_host_and_no_link_is_the_graph_and_one_domain_more() {
    let text = "
hosts: {here: {}}
domains: {control: {realtime: {period: 1ms}}}
nodes: [{kind: filter, domain: control}]
";
    let here = part(text, "here");
    assert_eq!(names(&here), ["filter", "others"]);
    assert_eq!(here.links.len(), 0);
    let alone = plan(&text.replace("hosts: {here: {}}\n", ""));
    assert_eq!(format!("{:?}", here.domains[0].role), format!("{:?}", alone.domains[0].role));
}

#[test]
fn a_host_that_the_graph_lacks_is_told() {
    let source = SpecSource { host: Some("ofice"), ..SpecSource::of("graph.yaml", CELL) };
    let errors = compile(&source, KINDS, &TargetMachine::of(vec![0])).expect_err("no host");
    assert_eq!(errors[0].message, "there is no host 'ofice'");
    assert_eq!(errors[0].help, "did you mean 'office'?");
    let none = CELL.replace("hosts:", "hostses:");
    assert!(compile_on(4, &none).is_err());
}

#[test]
fn a_queue_between_hosts_takes_what_a_queue_takes() {
    let text = CELL
        .replace("{name: far, port: in}", "{name: far, port: in, delivery: queue, capacity: 128}");
    let cell = part(&text, "cell");
    let out = cell.links.iter().find(|link| link.to.node == 3).expect("a link");
    assert_eq!((out.delivery, out.capacity), (Delivery::Broadcast, 128));
}

/// Packets that go to another host and to a local node, from two hosts.
const CALLS: &str = "
hosts: {cell: {address: 'a:1'}, office: {}, hall: {}}
domains:
  web: {host: cell}
  far: {host: office}
  more: {host: hall}
nodes:
  - kind: fan
    domain: web
    ports: {'out[0]': [{name: far, port: in}, {name: near, port: in}, {name: far_too, port: in}]}
  - {kind: step, name: near, domain: web}
  - {kind: begin, domain: web, ports: {out: [{name: fan, port: in}, {name: far, port: in}]}}
  - {kind: trial, domain: web, ports: {out: [{name: far, port: in}]}}
  - {kind: step, name: far, domain: far}
  - {kind: step, name: far_too, domain: far, ports: {error: [{name: back, port: in}]}}
  - {kind: step, name: back, domain: web}
  - {kind: begin, name: other, domain: more, ports: {out: [{name: back, port: in}]}}
";

/// Each link that carries packets as `from -> to`.
fn flow_links(plan: &Plan) -> Vec<String> {
    let row = |it: &FlowLink| format!("{} -> {}", plan.end_name(it.from), plan.end_name(it.to));
    plan.flow_links.iter().map(row).collect()
}

#[test]
fn a_packet_for_another_host_goes_to_the_one_for_all_others() {
    let whole = plan(CALLS);
    // Tests of the whole graph run on one machine, so they need this link.
    assert!(flow_links(&whole).contains(&"fan.out[0] -> far.in".to_owned()));
    assert_eq!(whole.hosts.calls.len(), 5, "a test calls nobody in a run");
    let cell = part(CALLS, "cell");
    assert_eq!(
        flow_links(&cell),
        [
            // In the order of the spec, which is also the order of the replies.
            "fan.out[0] -> others.far.in",
            "fan.out[0] -> near.in",
            "fan.out[0] -> others.far_too.in",
            "begin.out -> fan.in",
            "begin.out -> others.far.in",
            // From two hosts.
            "others.back.in -> back.in",
        ]
    );
    let office = part(CALLS, "office");
    assert_eq!(
        flow_links(&office),
        [
            "far_too.error -> others.back.in",
            "others.far.in -> far.in",
            "others.far_too.in -> far_too.in"
        ]
    );
    let domain = |plan: &Plan, name| plan.domains.iter().position(|it| it.name == name).unwrap();
    let doors = [(domain(&cell, "web"), domain(&cell, "others"))];
    assert!(cell.doors().is_superset(&doors.into()) && cell.doors().len() == 2);
    assert!(cell.links.is_empty());
    let callers = cell.hosts.calls.iter().filter(|it| it.to.node == "back");
    let callers: Vec<_> = callers.map(|it| (it.from.host, it.port)).collect();
    assert_eq!(callers, [(1, 2), (2, 2)]);
    let other = CALLS.replace("{error: [{name: back", "{out: [{name: back");
    assert_ne!(plan(&other).hosts.version, whole.hosts.version);
}

#[test]
fn a_secret_of_another_host_is_not_wanted_here() {
    let block = "
  - kind: block
    name: door
    domain: screen
    nodes:
      - {kind: begin, ports: {out: [{name: step, port: in}]}}
      - {kind: step, code: '{{ env.KEY }}'}
";
    let text = CELL.to_owned() + block;
    let why = Err("the environment variable KEY is not set; set it".to_owned());
    let outside = [Brought { wanted: Wanted::Variable("KEY".into()), value: why }];
    let compiled = |host| {
        let source = SpecSource { host, outside: &outside, ..SpecSource::of("graph.yaml", &text) };
        compile(&source, KINDS, &TargetMachine::of(vec![0, 1, 2]))
    };
    for host in ["cell", "hall"] {
        assert!(compiled(Some(host)).is_ok(), "{host}");
    }
    for host in [None, Some("office")] {
        let errors = compiled(host).expect_err("it is wanted");
        assert!(errors[0].message.contains("KEY is not set"), "{errors:?}");
    }
}
