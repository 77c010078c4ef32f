//! A plan of two domains and the records of its cycles, for tests of reports.

pub mod status;

use sinew_core::catalogue::{Kind, MessageType, Port, RunsIn, Signal};
use sinew_core::trace::ThreadId;
use sinew_core::trace::Totals;
use sinew_spec::plan::{
    Delivery, Domain, End, Full, Link, Node, Overrun, Plan, Realtime, Release, Role, SpecText,
    Sync, Thread, Transport, Wait,
};

use super::{Observed, Stats};

static TARGET: MessageType =
    MessageType { name: "target", size: 8, align: 8, hash: 1, fields: &[] };

static PLANNER: Kind = Kind {
    signals: &[Signal::new("tracking_error_m", "", "m", 1), Signal::new("target_m", "", "m", 3)],
    ..Kind::new("path_planner", RunsIn::Realtime, &[Port::output("out", "", &TARGET)])
};

static DRIVES: Kind = Kind {
    signals: &[
        Signal { labels: &["disabled", "enabled", "fault"], ..Signal::new("state", "", "", 6) },
        Signal { labels: &["open", "closed"], ..Signal::new("brake", "", "", 6) },
        Signal::new("position_rad", "", "rad", 6),
    ],
    ..Kind::new("drives", RunsIn::Realtime, &[Port::input("in", "", &TARGET)])
};

fn domain(name: &str, release: Release, node: usize) -> Domain {
    Domain {
        name: name.into(),
        user: None,
        user_span: Default::default(),
        host: None,
        role: Role::Realtime(Realtime {
            period_ns: 1_000_000,
            deadline_ns: 1_000_000,
            priority: 80,
            overrun: Overrun::Count,
            threads: vec![Thread { cpu: Some(1), release, nodes: vec![node] }],
        }),
    }
}

fn node(name: &str, kind: &'static Kind, domain: usize) -> Node {
    Node {
        name: name.into(),
        kind,
        domain,
        thread: 0,
        values: vec![],
        spans: vec![],
        entries: vec![],
        written: vec![],
        actuators: vec![],
        tuning: None,
        line: 1,
    }
}

/// The control thread runs `planner`, the other one `drives`.
pub fn plan() -> Plan {
    Plan {
        name: "arm".into(),
        hold: false,
        observe: false,
        domains: vec![domain("control", Release::Timer, 0), domain("plant", Release::Input(0), 1)],
        nodes: vec![node("planner", &PLANNER, 0), node("drives", &DRIVES, 1)],
        links: vec![],
        flow_links: vec![],
        hosts: Default::default(),
        requirements: vec![],
        notes: vec!["domain 'plant' shares CPU 1 with 'control'".into()],
        left_out: None,
        text: SpecText::default(),
    }
}

/// A link from the first port of one node to the first port of another: a queue in shared memory.
pub fn link(from: usize, to: usize) -> Link {
    let end = |node| End { node, port: 0 };
    Link {
        from: end(from),
        to: end(to),
        message: &TARGET,
        part: None,
        fused: false,
        transport: Transport::SharedMemory,
        sync: Sync::LockFree,
        delivery: Delivery::Queue,
        wait: Wait::Spin,
        capacity: 8,
        full: Full::Fault,
        delay: false,
        tuning: None,
        after_ns: None,
    }
}

/// The thread of `planner`.
pub const CONTROL: ThreadId = ThreadId { domain: 0, thread: 0 };
/// The thread of `drives`.
pub const PLANT: ThreadId = ThreadId { domain: 1, thread: 0 };

/// A cycle of the control thread: 2 us late, 9 us long, 8 of them in its node.
pub fn observed(cycle: u64) -> Observed {
    Observed {
        cycle,
        totals: Totals { cycles: cycle + 1, ..Totals::default() },
        release_ns: cycle * 1_000_000,
        start_ns: cycle * 1_000_000 + 2_000,
        latency_ns: 9_000,
        execution_ns: vec![8_000],
        signals: vec![0.001, 0.4, 0.1, 0.3],
        ..Observed::default()
    }
}

/// A cycle of the drives, five of them enabled with open brakes.
pub fn observed_plant(cycle: u64) -> Observed {
    let states = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0];
    let brakes = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
    let positions = [0.0, -0.5, 0.5, 0.0, 1.25, 0.0];
    let start_ns = cycle * 1_000_000 + 7_000;
    Observed {
        release_ns: start_ns,
        start_ns,
        latency_ns: 4_000,
        execution_ns: vec![3_000],
        signals: [states, brakes, positions].concat(),
        ..observed(cycle)
    }
}

/// Both threads after `cycles` cycles.
pub fn stats(cycles: u64) -> Stats {
    let mut stats = Stats::new(&plan());
    for cycle in 0..cycles {
        stats.add(CONTROL, &observed(cycle));
        stats.add(PLANT, &observed_plant(cycle));
    }
    stats
}
