//! Plans of good specs.

use crate::kinds::{ARM, KINDS, compile_on, domains, plan, set};
use sinew_spec::catalogue::{ParameterValue, Scalar};
use sinew_spec::plan::{Delivery, Link, Overrun, Release, Sync, TargetMachine, Transport, Wait};
use sinew_spec::{SpecSource, compile, picture};

#[test]
fn the_arm_becomes_two_domains_in_stop_order() {
    let plan = plan(ARM);
    assert_eq!(plan.name, "arm");
    assert_eq!(domains(&plan), ["control", "plant"]);
    let control = plan.domains[0].realtime().expect("realtime");
    assert_eq!(
        (control.period_ns, control.deadline_ns, control.priority),
        (1_000_000, 1_000_000, 80)
    );
    assert_eq!(control.overrun, Overrun::Stop { consecutive_max: 50 });
    assert_eq!(control.threads.len(), 1);
    assert_eq!(control.threads[0].nodes, [0, 1, 2]);
    assert_eq!(control.threads[0].release, Release::Timer);
    assert_eq!(control.threads[0].cpu, Some(3));
    let plant = plan.domains[1].realtime().expect("realtime");
    assert_eq!((plant.period_ns, plant.deadline_ns), (1_000_000, 1_000_000));
    assert_eq!(plant.threads[0].cpu, Some(2));
    let Release::Input(link) = plant.threads[0].release else { panic!("{plant:?}") };
    assert_eq!((plan.links[link].from.node, plan.links[link].to.node), (2, 3));
    assert_eq!(plan.notes, [""; 0]);
}

#[test]
fn the_links_of_the_arm_are_decided() {
    let plan = plan(ARM);
    assert_eq!(plan.links.len(), 5);
    let fused: Vec<bool> = plan.links.iter().map(|link| link.fused).collect();
    assert_eq!(fused, [true, true, false, true, false]);
    let out = &plan.links[2];
    assert_eq!((out.transport, out.sync), (Transport::SharedMemory, Sync::LockFree));
    assert_eq!((out.delivery, out.wait, out.delay), (Delivery::Latest, Wait::Spin, false));
    assert_eq!(out.message.name, "Frame");
    assert_eq!((plan.links[0].delivery, plan.links[0].capacity), (Delivery::Queue, 8));
    let back = &plan.links[4];
    assert_eq!((back.transport, back.delay), (Transport::SharedMemory, true));
    assert_eq!(plan.port(back.to).name, "frame");
}

#[test]
fn nodes_carry_their_values_and_lines() {
    let plan = plan(ARM);
    let planner = &plan.nodes[0];
    assert_eq!(planner.values[0], ParameterValue::Text("square.csv".to_owned()));
    assert_eq!(planner.values[1..], [ParameterValue::Integer(2), ParameterValue::Number(0.5)]);
    assert_eq!(plan.nodes[1].values, [ParameterValue::Numbers(vec![0.0; 3])]);
    assert_eq!(plan.nodes[2].values[2], ParameterValue::Text(String::new()));
    assert_eq!(plan.nodes.iter().map(|node| node.line).collect::<Vec<_>>(), [7, 8, 9, 15]);
    let drives = &plan.nodes[3];
    assert_eq!((drives.actuators[0].port, drives.actuators[0].after), (0, 50));
}

#[test]
fn the_command_line_changes_parameters() {
    let set = |path: &str, value: &str| set(ARM, path, value);
    assert_eq!(set("planner.laps", "0").unwrap().nodes[0].values[1], ParameterValue::Integer(0));
    let speed = set("planner.speed_max_m_per_s", "1.5").unwrap();
    assert_eq!(speed.nodes[0].values[2], ParameterValue::Number(1.5));
    for (path, value, message, help) in [
        ("planer.laps", "0", "there is no node 'planer'", "did you mean 'planner'?"),
        ("planner.lap", "0", "unknown key 'lap' in a node", "did you mean 'laps'?"),
        ("planner.laps", "x", "laps cannot be 'x'", "write a whole number from 0 to 1000"),
        ("laps", "0", "'laps' names no parameter", "write node.parameter=value"),
    ] {
        let errors = set(path, value).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:#?}");
        assert_eq!((errors[0].message.as_str(), errors[0].help.as_str()), (message, help));
        assert_eq!(
            (errors[0].file.as_str(), errors[0].line),
            (&*format!("--set {path}={value}"), 0)
        );
    }
}

#[test]
fn with_one_cpu_nothing_spins() {
    let plan = compile_on(1, ARM).unwrap();
    assert!(plan.links.iter().filter(|link| !link.fused).all(|l| l.wait == Wait::SpinThenPark));
    assert_eq!(plan.domains[0].threads()[0].cpu, None);
    assert_eq!(plan.notes.len(), 2);
    assert!(plan.notes[1].starts_with("2 threads of 2 would spin on 1 CPU"), "{:?}", plan.notes);
}

#[test]
fn with_one_cpu_threads_of_one_priority_may_yield() {
    let yielding = ARM.replace("wait: spin", "wait: yield");
    let waits = |text: &str| {
        let plan = compile_on(1, text).unwrap();
        let crossing = plan.links.iter().filter(|link| !link.fused);
        crossing.filter(|link| link.wait == Wait::Yield).count()
    };
    assert_eq!(waits(ARM), 0);
    assert_eq!(waits(&yielding), yielding.matches("wait: yield").count());
    let notes = compile_on(1, &yielding).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("1 thread of 2 would spin")), "{notes:?}");
    let apart = yielding.replace("{trigger: input}", "{trigger: input, priority: 70}");
    assert_eq!(waits(&apart), 0);
}

#[test]
fn two_threads_on_one_cpu_do_not_spin() {
    let text = ARM
        .replace(
            "  plant: {",
            "    threads: [{cpu: 1, nodes: [planner, ik, ethercat]}]\n  plant: {",
        )
        .replace("{trigger: input}}", "{trigger: input}, threads: [{cpu: 1, nodes: [drives]}]}");
    let plan = plan(&text);
    assert!(plan.links.iter().filter(|link| !link.fused).all(|l| l.wait == Wait::SpinThenPark));
    assert!(plan.notes[0].starts_with("a thread would spin on CPU 1"), "{:?}", plan.notes);
}

/// Three threads: the clock releases the first; the others are released by what it and its
/// successor write.
const THREADS: &str = "
domains:
  a:
    realtime: {period: 2ms, deadline: 500us, overrun: {policy: count}}
    threads: [{nodes: [x]}, {nodes: [y]}, {nodes: [z], trigger: timer}]
  b: {realtime: {trigger: input, deadline: 400us}}
nodes:
  - kind: filter
    name: v
    domain: b
    ports: {out: [{name: x, port: in, delay: 1, transport: unix}]}
  - kind: filter
    name: x
    domain: a
    ports: {out: [{name: y, port: in, wait: park, capacity: 2}]}
  - kind: filter
    name: y
    domain: a
    ports:
      out:
        - {name: z, port: in, sync: mutex, full: drop}
        - {name: v, port: in}
        - {name: u, port: in}
  - {kind: filter, name: z, domain: a}
  - {kind: filter, name: u, domain: b}
";

#[test]
fn a_graph_without_a_name_is_called_as_its_file() {
    for (file, name) in [
        ("ping.yaml", "ping"),
        ("graphs/http/ping.v2.yaml", "ping-v2"),
        ("../\u{fc}ber uns", "-ber-uns"),
        ("/", "graph"),
        ("", "graph"),
    ] {
        let source = SpecSource::of(file, THREADS);
        let plan = compile(&source, KINDS, &TargetMachine::of(vec![0]));
        assert_eq!(plan.expect("a plan").name, name, "{file}");
    }
    assert_eq!(plan(&format!("name: own\n{THREADS}")).name, "own");
}

#[test]
fn threads_are_released_by_who_writes_to_them() {
    let plan = plan(THREADS);
    assert_eq!(domains(&plan), ["a", "b"]);
    let realtime = |at: usize| plan.domains[at].realtime().expect("realtime");
    let (a, b) = (realtime(0), realtime(1));
    assert_eq!((a.period_ns, a.deadline_ns, a.overrun), (2_000_000, 500_000, Overrun::Count));
    assert_eq!((b.period_ns, b.deadline_ns), (2_000_000, 400_000));
    let by = |thread: &sinew_spec::plan::Thread| match thread.release {
        Release::Timer => "timer",
        Release::Input(link) => plan.nodes[plan.links[link].to.node].name.as_str(),
    };
    let releases: Vec<&str> = a.threads.iter().chain(&b.threads).map(by).collect();
    assert_eq!(releases, ["timer", "y", "timer", "v"]);
    assert_eq!(plan.notes.len(), 1);
    assert!(plan.notes[0].starts_with("2 links from other domains could release domain 'b'"));
    assert_eq!(a.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [Some(3), Some(2), Some(1)]);
}

#[test]
fn options_of_links_stay_as_written() {
    let plan = plan(THREADS);
    let link = |name: &str| {
        let to = |link: &&Link| plan.nodes[link.to.node].name == name;
        plan.links.iter().find(to).unwrap()
    };
    assert_eq!((link("x").transport, link("x").delay), (Transport::Unix, true));
    assert_eq!((link("y").transport, link("y").wait), (Transport::InProcess, Wait::Park));
    assert_eq!((link("y").capacity, link("y").fused), (2, false));
    assert_eq!(link("z").sync, Sync::Mutex);
    assert_eq!(link("v").transport, Transport::SharedMemory);
}

#[test]
fn nodes_of_a_thread_run_in_the_order_of_their_links() {
    let text = "
domains: {d: {realtime: {period: 1ms}}}
nodes:
  - {kind: filter, name: last, ports: {out: [{name: first, port: extra, delay: 1}]}}
  - {kind: filter, name: alone}
  - {kind: filter, name: middle, ports: {out: [{name: last, port: in, transport: tcp}]}}
  - {kind: filter, name: first, ports: {out: [{name: middle, port: in}]}}
";
    let plan = plan(text);
    assert_eq!(plan.domains[0].threads()[0].nodes, [1, 3, 2, 0]);
    let note = "link 'middle.out' -> 'last.in' stays inside one thread: a plain slot takes the \
                place of tcp";
    assert_eq!(plan.notes, [note]);
    assert!(plan.links.iter().all(|link| link.fused && link.transport == Transport::InProcess));
}

#[test]
fn aliases_and_quotes_are_yaml_as_usual() {
    let text = ARM
        .replace("domain: control, path: square.csv", "domain: &c control, path: 'a b.csv'")
        .replace("name: ik, domain: control", "name: \"ik\", domain: *c");
    let plan = plan(&text);
    assert_eq!(plan.nodes[0].values[0], ParameterValue::Text("a b.csv".to_owned()));
    assert_eq!(plan.nodes[1].domain, 0);
}

/// A message declared by the graph, put together and taken apart again.
pub(crate) const AXIS: &str = "name: axis
messages: {axis: {enabled: bool, position_rad: f64, force_n: 'f32[3]', count: u16}}
domains: {control: {realtime: {period: 1ms}}}
nodes:
  - kind: packer
    name: axis
    domain: control
    message: axis
    ports:
      out:
        - {name: loop, port: measured, field: position_rad}
        - {name: loop, port: enabled, field: enabled}
        - {name: sum, port: a, field: 'force_n[1]'}
  - {kind: controller, name: loop, domain: control, ports: {out: [{name: sum, port: b}]}}
  - {kind: adder, name: sum, domain: control, inputs: [a, b, c]}
  - {kind: number, name: flag, domain: control, ports: {holds: [{name: sum, port: c}]}}
";

#[test]
fn a_declared_message_is_laid_out_as_c_lays_out_a_struct() {
    let plan = plan(AXIS);
    let message = plan.nodes[0].kind.ports.last().expect("it has ports").message;
    let fields = message.fields.iter();
    let fields: Vec<_> = fields.map(|it| (it.name, it.offset, it.scalar, it.count)).collect();
    assert_eq!(
        fields,
        [
            ("enabled", 0, Scalar::Bool, 1),
            ("position_rad", 8, Scalar::F64, 1),
            ("force_n", 16, Scalar::F32, 3),
            ("count", 28, Scalar::U16, 1),
        ]
    );
    assert_eq!((message.size, message.align), (32, 8));
    let again = self::plan(AXIS);
    assert!(std::ptr::eq(again.nodes[0].kind, plan.nodes[0].kind), "made once");
}

#[test]
fn parameters_of_a_node_name_its_ports() {
    let plan = plan(AXIS);
    let ports = |node: usize| plan.nodes[node].kind.ports.iter().map(|port| port.name);
    let packer =
        ["enabled", "position_rad", "force_n[0]", "force_n[1]", "force_n[2]", "count", "out"];
    assert_eq!(ports(0).collect::<Vec<_>>(), packer);
    assert_eq!(ports(2).collect::<Vec<_>>(), ["a", "b", "c", "out"]);
    assert_eq!(plan.nodes[0].kind.ports[0].message.name, "Flag");
}

#[test]
fn a_link_takes_one_number_and_converts_it_where_a_number_is_read() {
    let plan = plan(AXIS);
    let shown = |link: &Link| {
        let part = link.part.clone().map(|part| (part.field, part.offset, part.scalar));
        (plan.end_name(link.to), part, link.message.name)
    };
    let parts: Vec<_> = plan.links.iter().map(shown).collect();
    let expected = [
        ("loop.measured", Some(("position_rad", 8, Scalar::F64)), "Real"),
        ("loop.enabled", Some(("enabled", 0, Scalar::Bool)), "Flag"),
        ("sum.a", Some(("force_n[1]", 20, Scalar::F32)), "Real"),
        ("sum.b", None, "Real"),
        ("sum.c", Some(("value", 0, Scalar::Bool)), "Real"),
    ];
    let expected = expected.map(|(to, part, message)| {
        let part = part.map(|(field, offset, scalar)| (field.to_owned(), offset, scalar));
        (to.to_owned(), part, message)
    });
    assert_eq!(parts, expected);
    let json = picture::json(&plan);
    assert_eq!(json["links"][0]["field"], "position_rad");
}
