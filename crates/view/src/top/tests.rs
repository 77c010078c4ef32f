//! The tables on an in-memory terminal.

use ratatui::style::Color;
use sinew_control::status::{
    DomainRole, DomainState, DomainStatus, EventKind, Events, FlowStatus, LimitStatus, LinkStatus,
    NodeStatus, PoolChange, PoolStatus, PrivilegesStatus, ThreadStatus,
};
use sinew_report::fixture::status as fixture;

use super::*;
use crate::screen;

fn domain(name: &str, role: DomainRole) -> DomainStatus {
    let domain = fixture::domain(name, role);
    DomainStatus { up_ms: 61_000, resident_kib: Some(8_900), ..domain }
}

fn control() -> DomainStatus {
    let privileges = PrivilegesStatus {
        asked: "SCHED_FIFO 80, CPU 1, locked".into(),
        obtained: "SCHED_OTHER 0, CPU 1, locked".into(),
        missing: vec!["SCHED_FIFO 80 refused".into()],
    };
    let thread = ThreadStatus {
        cycles: 123_456,
        overruns: 3,
        latency_ns_last: Some(9_320),
        latency_ns_max: Some(976_800),
        privileges,
        ..fixture::thread(1)
    };
    DomainStatus { threads: vec![thread], ..domain("control", DomainRole::Realtime) }
}

fn camera() -> DomainStatus {
    let node = NodeStatus {
        name: "eye".into(),
        kind: "camera".into(),
        beats: 17,
        received: 2,
        sent: 11,
        ..NodeStatus::default()
    };
    let limit = LimitStatus {
        what: "memory".into(),
        asked: "256 MiB".into(),
        got: "nothing".into(),
        enforced: false,
        remedy: Some("run it under systemd with Delegate=yes".into()),
    };
    DomainStatus {
        state: DomainState::Backoff,
        pid: None,
        restarts: 4,
        last_reason: Some("was ended by signal 9".into()),
        next_restart_ms: Some(400),
        resident_kib: None,
        nodes: vec![node],
        limits: vec![limit],
        ..domain("camera", DomainRole::Service)
    }
}

/// The same with a flow node. The other pictures have no room for it.
fn web() -> Status {
    let flow = FlowStatus {
        packets: 123_456,
        errors: 3,
        refused: 7,
        in_flight: 12,
        packets_per_s: 34_512.0,
        time_ns_p50: Some(11_200),
        time_ns_p99: None,
        time_ns_max: Some(1_384_000),
        ..FlowStatus::default()
    };
    let mut status = status();
    let node = &mut status.domains[1].nodes[0];
    (node.name, node.kind, node.flow) = ("pong".into(), "snippet".into(), Some(flow));
    status
}

fn status() -> Status {
    let link = |from: &str, to: &str, broken: bool| LinkStatus {
        from: from.into(),
        to: to.into(),
        transport: "shared_memory".into(),
        delivery: "latest".into(),
        capacity: 1,
        fill: (!broken).then_some(1),
        written: (!broken).then_some(3155),
        lost: Some(0),
        dropped: Some(7),
        broken,
    };
    Status {
        file: "graphs/arm/arm.yaml".into(),
        elapsed_ms: 62_000,
        links: vec![
            link("ethercat.out", "drives.in", false),
            link("ethercat.state", "eye.in", true),
        ],
        notes: vec!["2 realtime threads on 1 CPU".into()],
        ..fixture::status(vec![control(), camera()])
    }
}

fn picture(width: u16, height: u16, color: bool, mut scrolled: u16) -> (String, Vec<Color>) {
    let mut events = Events::new();
    (0..30).for_each(|at| events.add(EventKind::Restarting, Some("camera"), format!("no. {at}")));
    let events: VecDeque<_> = events.after(0).cloned().collect();
    let theme = Theme { color };
    screen::picture((width, height), |frame| {
        draw(frame, &status(), &events, theme, &mut scrolled);
    })
}

#[test]
fn everything_that_matters_is_on_a_small_terminal() {
    let (text, _) = picture(80, 24, true, 0);
    let parts = [
        "arm  running  1 min 2 s  process 4711",
        "arrows scroll, q quits",
        "control  realtime  running     4712  1 min 1 s         0   8.7 MiB  robot",
        "camera   service   backoff        -          -         4         -  robot",
        "    starts again in 0.4 s; last: was ended by signal 9",
        "control/0  123456         3        0     9.32   976.8  OTHER 0, CPU 1, locked",
        "    missing: SCHED_FIFO 80 refused",
        "eye   camera     17         2     0    11        0",
        "ethercat.out > drives.in  latest                 1/1     3155     0        7",
        "ethercat.state > eye.in   BROKEN shared_memory     -        -     0        7",
        "  camera      restarting  no. 29",
        "camera  memory  256 MiB  no",
        "    nothing; run it under systemd with Delegate=yes",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn a_pool_says_how_large_it_is_and_why() {
    let change = PoolChange { before: 8, after: 28, ago_ms: 62_000, why: "work waited".into() };
    let pool = PoolStatus {
        threads: 28,
        min: 2,
        max: 512,
        waiting: 371,
        done: 52_000,
        cpu_ns: Some(312_000),
        outside_ns: Some(3_060_000),
        queued_ns: None,
        changes: 1,
        last_change: Some(change),
        why: "no work waits for a thread".into(),
    };
    let mut status = status();
    status.domains[1].pool = Some(pool);
    let shown = |status: &Status| {
        let tables = tables::moving(status, Theme { color: false }, 80);
        let lines = tables.iter().flatten().map(|line| line.to_string().trim_end().to_owned());
        lines.collect::<Vec<_>>()
    };
    let lines = shown(&status);
    let at = lines.iter().position(|line| line.starts_with("pool ")).expect("a table");
    let expected = [
        "camera       28  2-512      371  52000   312.0      3060.0          -        1",
        "    no work waits for a thread",
        "    8 -> 28 1 min 2 s ago: work waited",
    ];
    assert_eq!(lines[at + 1..=at + 3], expected);
    // A fixed pool has no bounds and no reasons.
    let pool = status.domains[1].pool.as_mut().expect("it has one");
    (pool.min, pool.max, pool.last_change) = (28, 28, None);
    let lines = shown(&status);
    assert!(lines[at + 1].contains("28   -"), "{lines:#?}");
    assert!(!lines[at + 2].starts_with("    "), "{lines:#?}");
}

#[test]
fn a_node_of_flows_has_figures_of_its_own() {
    let tables = tables::moving(&web(), Theme { color: false }, 80);
    let lines: Vec<_> = tables.iter().flatten().map(Line::to_string).collect();
    let flow = "pong       snippet   123456  34.5k         12    11.2       -  1384.0       3";
    assert!(lines.iter().any(|line| line.trim_end() == flow), "{lines:#?}");
    let refused = lines.iter().any(|line| line.trim() == "refused 7: no room");
    assert!(refused, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.starts_with("node ")), "it has no other row: {lines:#?}");
}

#[test]
fn a_guest_is_called_so_and_its_nodes_have_the_figures_of_a_service() {
    let status = Status {
        domains: vec![DomainStatus { role: DomainRole::Guest, ..camera() }],
        ..fixture::status(vec![])
    };
    let tables = tables::moving(&status, Theme { color: false }, 80);
    let lines: Vec<_> = tables.iter().flatten().map(Line::to_string).collect();
    for words in ["camera  guest  backoff", "eye   camera     17"] {
        assert!(lines.iter().any(|line| line.starts_with(words)), "no '{words}' in {lines:#?}");
    }
}

#[test]
fn what_does_not_fit_can_be_scrolled_to() {
    let note = "    2 realtime threads on 1 CPU";
    let (text, _) = picture(80, 20, true, 0);
    assert!(text.contains("arrows scroll") && !text.contains(note), "{text}");
    let (text, _) = picture(80, 20, true, u16::MAX);
    assert!(text.contains("arm  running") && text.trim_end().ends_with(note), "{text}");
    let (text, _) = picture(120, 60, true, u16::MAX);
    assert!(text.contains("domain   role") && text.trim_end().ends_with(note), "{text}");
    assert!(text.contains("no. 0\n") && !text.contains("arrows"), "{text}");
}

#[test]
fn nothing_is_cut_or_covered_without_a_mark() {
    let (text, _) = picture(40, 10, true, 0);
    assert!(text.starts_with("arm  running  1…  arrows scroll, q quits\n"), "{text}");
    assert!(text.contains("control  realtime  running     4712  1 …\n"), "{text}");
    let (text, _) = picture(30, 60, true, 0);
    assert!(
        text.contains("\n    starts again in 0.4 s;\n    last: was ended by signal\n"),
        "{text}"
    );
    let is_cut = |line: &str| line.contains("  camera    ") && line.ends_with('…');
    assert!(text.lines().any(is_cut), "{text}");
}

#[test]
fn no_color_means_none() {
    let (_, colors) = picture(120, 40, false, 0);
    assert!(colors.iter().all(|color| *color == Color::Reset));
    let (_, colors) = picture(120, 40, true, 0);
    assert!(colors.iter().any(|color| *color != Color::Reset));
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (10, 3), (47, 5), (200, 8), (300, 100)] {
        picture(width, height, true, 3);
    }
}
