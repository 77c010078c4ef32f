//! What a flow costs in memory: nothing for a node on its path, little while it waits.

use std::fmt::Write;
use std::hint::black_box;

use allocation_counter::measure;
use sinew_flow::{FlowFixture, Value};
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::kinds::{LONG, fixture, run, waiting};

/// Bytes of a flow that waits, beyond its packet.
const FLOW_LEN_MAX: u64 = 2304;

/// This many nodes in a row; the last one does `does`.
fn chain(nodes: usize, does: &str) -> FlowFixture {
    let mut text = String::new();
    for at in 1..nodes {
        let ports = format!("{{out: [{{name: n{}, port: in}}]}}", at + 1);
        writeln!(text, "- {{kind: act, name: n{at}, ports: {ports}}}").expect("memory");
    }
    writeln!(text, "- {{kind: act, name: n{nodes}, does: {does}}}").expect("memory");
    fixture(&text)
}

#[test]
fn a_node_on_the_path_allocates_nothing() {
    let allocations = [1, 10, 100].map(|nodes| {
        let chain = chain(nodes, "pass");
        let mut counted = 0;
        run(async {
            let packet = || Value::Bytes(bytes::Bytes::from_static(b"x"));
            // The first flow may make things that stay.
            chain.open("begin", 0, packet(), LONG).await.expect("a reply");
            let mut flow = Box::pin(chain.open("begin", 0, packet(), LONG));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let info = measure(|| {
                assert!(black_box(flow.as_mut().poll(&mut context)).is_ready());
            });
            counted = info.count_total;
        });
        counted
    });
    assert_eq!(allocations, [0, 0, 0]);
}

#[test]
fn a_flow_that_waits_is_small() {
    const FLOWS: usize = 10_000;
    let chain = std::rc::Rc::new(chain(10, "wait"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let set = LocalSet::new();
    let info = measure(|| {
        set.block_on(&runtime, async {
            for _ in 0..FLOWS {
                let chain = std::rc::Rc::clone(&chain);
                spawn_local(async move { chain.open("begin", 0, Value::Null, LONG).await });
            }
            while waiting() < FLOWS {
                yield_now().await;
            }
        });
    });
    let each = info.bytes_current as u64 / FLOWS as u64;
    assert!(each <= FLOW_LEN_MAX, "{each} bytes of a flow that waits, {FLOW_LEN_MAX} at most");
    drop(set);
    assert_eq!((waiting(), chain.flows()), (0, 0));
}
