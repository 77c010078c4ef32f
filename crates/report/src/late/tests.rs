//! Late cycles of threads that the kernel does not know, or of this test's own thread.

use sinew_core::catalogue::MessageType;
use sinew_spec::plan::{Delivery, End, Full, Link, Sync, Transport, Wait};

use super::*;
use crate::stats::fixture::{self, CONTROL, PLANT};

/// The fixture's plan, where `planner` awaits feedback from `drives`.
fn plan() -> Plan {
    static TYPE: MessageType =
        MessageType { name: "state", size: 8, align: 8, fields: &[], hash: 0 };
    let mut plan = fixture::plan();
    plan.links.push(Link {
        from: End { node: 1, port: 0 },
        to: End { node: 0, port: 0 },
        message: &TYPE,
        part: None,
        fused: false,
        transport: Transport::SharedMemory,
        sync: Sync::LockFree,
        delivery: Delivery::Latest,
        wait: Wait::Spin,
        capacity: 1,
        full: Full::Drop,
        delay: true,
        tuning: None,
        after_ns: None,
    });
    plan
}

/// A cycle whose node took `over_ns` longer than the deadline.
fn late(cycle: u64, over_ns: u64) -> Observed {
    let mut observed = fixture::observed(cycle);
    (observed.is_overrun, observed.latency_ns) = (true, 1_000_000 + over_ns);
    observed.execution_ns = vec![1_000_000];
    observed
}

fn unwatched(plan: &Plan, cycles: impl IntoIterator<Item = Observed>) -> Late {
    let mut late = Late::new(plan);
    cycles.into_iter().for_each(|observed| late.take(CONTROL, &observed));
    late.look(Vec::new);
    late
}

#[test]
fn a_late_cycle_is_told_once_with_its_node() {
    let mut late = unwatched(&plan(), [fixture::observed(0), late(1, 98_000)]);
    let text = late.tell().expect("it was late");
    assert_eq!(
        text,
        "control: cycle 1 late by 100 us, in node 'planner' (1.00 ms): what the \
         kernel did meanwhile is not known: its thread was not watched yet"
    );
    assert_eq!((late.tell(), late.cycles()), (None, 1));
    late.look(Vec::new);
    assert_eq!((late.tell(), late.cycles()), (None, 1));
}

#[test]
fn a_flood_of_late_cycles_is_one_line_and_a_count() {
    let mut late = unwatched(&plan(), (0..5000).map(|cycle| late(cycle, cycle)));
    let text = late.tell().expect("they were late");
    assert!(text.starts_with("control: cycle 4999 late"), "{text}");
    assert!(text.ends_with("; 4999 more late cycles"), "{text}");
    assert_eq!(late.tell(), None);
}

#[test]
fn the_worst_ones_stand_in_the_report_by_lateness() {
    let over_ns = [5, 1, 9, 3, 7, 2, 8, 4, 6, 0, 11, 10];
    let cycles = over_ns.iter().zip(0..).map(|(over_us, cycle)| late(cycle, over_us * 1000));
    let late = unwatched(&plan(), cycles);
    let json = late.to_json();
    let worst: Vec<_> = json["worst"].as_array().expect("a list").iter().collect();
    let late_us: Vec<_> =
        worst.iter().map(|row| row["late_ns"].as_u64().expect("a number") / 1000).collect();
    assert_eq!(late_us, [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]);
    assert_eq!((&json["cycles"], &json["by_cause"]["unread"]), (&json!(12), &json!(12)));
    assert_eq!((&worst[0]["domain"], &worst[0]["cycle"]), (&json!("control"), &json!(10)));
    assert_eq!((&worst[0]["node"], &worst[0]["place"]), (&json!("planner"), &json!("node")));
    assert!(worst[0]["meanwhile"].is_null());
    assert_eq!(late.causes().collect::<Vec<_>>(), ["12 counters unreadable"]);
    assert_eq!(late.worst().count(), WORST_MAX);
}

#[test]
fn missing_feedback_names_the_node_that_was_silent() {
    let mut silent = fixture::observed(3);
    (silent.is_overrun, silent.is_feedback_missing) = (true, true);
    silent.latency_ns = 1_000_000;
    let late = unwatched(&plan(), [silent]);
    let text = late.worst().next().expect("a late cycle");
    assert!(
        text.contains("cycle 3 late without feedback from 'drives', awaiting it (992 us): "),
        "{text}"
    );
    assert_eq!(late.to_json()["worst"][0]["node"], "drives");
}

#[test]
fn the_thread_of_the_silent_node_is_looked_at_first() {
    let late = Late::new(&plan());
    let suspects =
        |place| late.threads[0].suspects(place).into_iter().map(|row| row.1).collect::<Vec<_>>();
    assert_eq!(suspects(Place::Feedback), [PLANT, CONTROL]);
    assert_eq!(suspects(Place::Outside), [CONTROL, PLANT]);
    assert_eq!(suspects(Place::BeforeFirstNode), [CONTROL]);
    assert_eq!(late.threads[1].suspects(Place::Outside).len(), 1, "it awaits no feedback");
}

#[test]
fn a_late_cycle_of_a_watched_thread_tells_its_window() {
    let plan = plan();
    let mut watching = Late::new(&plan);
    // The first thread of this process plays both threads.
    let (process, mut asked) = (std::process::id(), 0);
    for _ in 0..2 {
        watching.look(|| {
            asked += 1;
            vec![(CONTROL, process, process), (PLANT, process, process)]
        });
    }
    assert_eq!(asked, 1, "who is watched need not be asked for");
    watching.take(CONTROL, &late(7, 0));
    watching.take(CONTROL, &late(8, 0));
    watching.look(Vec::new);
    let json = watching.to_json();
    let meanwhile = &json["worst"][0]["meanwhile"];
    assert!(meanwhile["window_ns"].is_u64() && meanwhile["minor_faults"].is_u64(), "{json:#}");
    assert_eq!(json["worst"][0]["late_cycles_in_window"], 2);
    assert_eq!(meanwhile["of"], "the thread");
    // Its release is long ago: no reading is older.
    assert_eq!(meanwhile["window_is_cut"], true);
    let text = watching.worst().next().expect("a late cycle");
    assert!(text.contains(" with 2 late cycles, begun after it was due)"), "{text}");
}

#[test]
fn a_cycle_of_a_thread_that_is_not_planned_is_none() {
    let mut late = Late::new(&plan());
    late.take(ThreadId { domain: 9, thread: 0 }, &self::late(1, 5));
    late.look(Vec::new);
    assert_eq!(late.cycles(), 0);
}
