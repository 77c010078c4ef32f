//! What a merge keeps of a flow, and for how long.

use std::time::Duration;

use sinew_flow::Value;

use super::*;
use crate::testing::try_plan;

fn brought(merge: &Merge, flow: u64, place: usize) -> Option<Brought<'_>> {
    merge.put(flow, place, Value::Integer(place as i64))
}

fn merge() -> Merge {
    Merge { inputs: vec![IN, IN + 3], ..Merge::default() }
}

#[test]
fn nothing_is_kept_of_a_flow_that_was_cancelled() {
    let merge = merge();
    let (first, other) = (brought(&merge, 1, 0), brought(&merge, 2, 1));
    assert_eq!(merge.gatherings.borrow().len(), 2);
    drop(first);
    assert_eq!(merge.gatherings.borrow().keys().copied().collect::<Vec<_>>(), [2]);
    drop(other);
    assert!(merge.gatherings.borrow().is_empty());
}

#[test]
fn nothing_is_kept_of_a_list_that_is_complete() {
    let merge = merge();
    let _both = (brought(&merge, 1, 0), brought(&merge, 1, 1));
    assert!(merge.gatherings.borrow().is_empty());
}

#[test]
fn a_place_can_be_taken_once() {
    let merge = merge();
    let first = brought(&merge, 1, 0);
    assert!(first.is_some() && brought(&merge, 1, 0).is_none());
    drop(first);
    assert!(brought(&merge, 1, 0).is_some(), "a branch that was cancelled leaves its place");
}

#[test]
fn a_merge_without_inputs_is_refused() {
    let graph = "
        - {kind: begin, name: begin}
        - {kind: merge, name: m}
    ";
    assert!(try_plan(graph).is_err());
}

#[test]
fn a_flow_that_waits_for_more_than_a_branch_ends_by_its_deadline() {
    let fixture = crate::testing::fixture(
        "
        - {kind: begin, name: begin, ports: {out: [{name: m, port: 'in[0]'}, {name: s, port: in}]}}
        - {kind: sleep, name: s, duration: 60s, ports: {out: [{name: m, port: 'in[1]'}]}}
        - {kind: merge, name: m}
        ",
    );
    let reply =
        crate::testing::run(fixture.open("begin", 0, Value::Null, Duration::from_millis(20)));
    assert_eq!(reply.expect_err("too late").status(), 504);
    assert_eq!(fixture.figures("m").waiting(), 0);
}
