//! Flows in a process of their own: workers that hang, and edits that come while one is swapped in.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::EventKind;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Fault, Parameters};
use sinew_flow::{
    At, FLOW, FlowNode, Local, Opened, Outlet, Source, Step, StopSignal, Value, input, output,
};
use sinew_runtime::Edition;
use tokio::time::sleep;

use crate::stage::{QUICK, Stage};
use crate::{Test, request};

pub(crate) const TESTS: &[Test] = tests![
    a_worker_that_hangs_is_told_by_the_node_that_keeps_it,
    a_worker_with_much_to_do_is_alive_though_its_clocks_wait,
    an_edit_waits_for_the_one_that_is_swapped_in,
    files_that_no_edit_took_in_count_with_the_next_one,
    a_domain_that_does_not_swap_blocks_no_edit,
    a_pool_grows_with_work_that_waits_within_its_bounds,
];

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);
/// This many flows are ready at once, and each computes for [`TOIL`]. tokio looks at its clocks
/// after 61 of them, which takes longer than a domain may show no sign of life. One of them takes
/// far less, even where the machine delays its worker.
const BATCH: u64 = 150;
const TOIL: Duration = Duration::from_millis(40);
/// A piece of work that blocks. A few threads have enough of them for seconds.
const NAP: Duration = Duration::from_millis(100);
const PATIENT: &str = "heartbeat: 2s";
/// Between two flows.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) static BEAT: Kind = Kind {
    name: "beat",
    doc: "Begins a flow every other millisecond.",
    ports: &[output("out", "Nothing.")],
    ..FLOW
};

pub(crate) struct Beat;

impl Source for Beat {
    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(vec![self])
    }
}

impl Opened for Beat {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        Box::pin(async move {
            while !stop.is_set() {
                // Its outcome is seen in the figures.
                let _ = outlet.open(0, Value::Null, LONG).await;
                sleep(PAUSE).await;
            }
            Ok(())
        })
    }
}

/// What else a step does, as it gets a packet or as it is dropped.
const DEEDS: &[&str] = &[
    "pass",
    "hang",
    "hang_later",
    "hang_after_call",
    "fork",
    "toil",
    "nap",
    "linger_at_end",
    "stay_at_end",
];

pub(crate) static STEP: Kind = Kind {
    name: "step",
    doc: "Passes packets on, but for what it is told.",
    ports: &[input("in", "The packet."), output("out", "The same packet.")],
    parameters: &[Parameter::new("does", ParameterType::Choice(DEEDS)).or("pass")],
    ..FLOW
};

const OUT: usize = 1;

pub(crate) struct Acts(String, Cell<bool>);

impl Acts {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Acts {
        Acts(parameters.text("does").to_owned(), Cell::new(false))
    }
}

impl FlowNode for Acts {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match &*self.0 {
            "hang" => thread::sleep(LONG),
            "fork" => {
                let begins = if self.1.replace(true) { 0 } else { BATCH };
                let mut children = (0..begins).map(|_| at.fork(OUT, Value::Null, LONG));
                return children.find_map(Result::err).map_or(Step::Reply(None), Step::Fail);
            }
            "toil" => {
                let begun = Instant::now();
                while begun.elapsed() < TOIL {}
            }
            "nap" => {
                return Step::wait(async move {
                    let slept = at.pool().run(|| thread::sleep(NAP)).await;
                    slept.map_or_else(Step::Fail, |()| Step::Reply(None))
                });
            }
            "hang_later" => {
                return Step::wait(async move {
                    sleep(PAUSE).await;
                    thread::sleep(LONG);
                    Step::Pass(OUT, packet)
                });
            }
            "hang_after_call" => {
                return Step::wait(async move {
                    let reply = at.call(OUT, packet).await;
                    thread::sleep(LONG);
                    Step::answer(reply)
                });
            }
            _ => {}
        }
        Step::Pass(OUT, packet)
    }
}

impl Drop for Acts {
    fn drop(&mut self) {
        match &*self.0 {
            "linger_at_end" => thread::sleep(Duration::from_secs(1)),
            "stay_at_end" => thread::sleep(LONG),
            _ => {}
        }
    }
}

/// A domain of flows with this policy: `beat`, then `door`, then a node with this name that does
/// this, then `last`.
fn graph(policy: &str, name: &str, does: &str) -> String {
    format!(
        "
name: test
domains: {{web: {{{policy}, flows: {{workers: 1}}}}}}
nodes:
  - {{kind: beat, name: beat, domain: web, ports: {{out: [{{name: door, port: in}}]}}}}
  - {{kind: step, name: door, domain: web, ports: {{out: [{{name: {name}, port: in}}]}}}}
  - kind: step
    name: {name}
    domain: web
    does: {does}
    ports: {{out: [{{name: last, port: in}}]}}
  - {{kind: step, name: last, domain: web}}
"
    )
}

fn edition(text: String) -> Edition {
    let plan = request(&text).plan;
    Edition { text, plan, touched: vec![], outside: vec![] }
}

/// How many packets a node has finished.
fn packets(stage: &Stage, name: &str) -> u64 {
    let nodes = stage.status("web").nodes;
    let flow = nodes.iter().find(|node| node.name == name).and_then(|node| node.flow);
    flow.map_or(0, |flow| flow.packets)
}

fn until_packets(stage: &mut Stage, name: &str) {
    stage.until(&format!("packets in '{name}'"), |stage| packets(stage, name) > 0);
}

fn end(mut stage: Stage) {
    stage.run.stop();
    stage.end();
}

fn a_worker_that_hangs_is_told_by_the_node_that_keeps_it() {
    for does in ["hang", "hang_later", "hang_after_call"] {
        let mut stage = Stage::start(&graph(QUICK, "stuck", does));
        stage.until_event("web", EventKind::Faulted, 1);
        let said = stage.texts("web", EventKind::Faulted);
        assert_eq!(said[0], "no heartbeat of node 'stuck' for 500 ms: it hangs", "{does}");
        end(stage);
    }
    // The process has no heartbeat of its own for a node that an edit brought.
    let mut stage = Stage::start(&graph(QUICK, "a", "pass"));
    until_packets(&mut stage, "a");
    stage.run.edit(edition(graph(QUICK, "stuck", "hang")));
    stage.until_event("web", EventKind::Faulted, 1);
    let said = stage.texts("web", EventKind::Faulted)[0].to_owned();
    assert!(said.ends_with("more for 500 ms: one of them hangs"), "{said}");
    end(stage);
}

fn a_worker_with_much_to_do_is_alive_though_its_clocks_wait() {
    let text = format!(
        "
name: test
domains: {{web: {{{PATIENT}, flows: {{workers: 1}}}}}}
nodes:
  - {{kind: beat, name: beat, domain: web, ports: {{out: [{{name: fan, port: in}}]}}}}
  - {{kind: step, name: fan, domain: web, does: fork, ports: {{out: [{{name: toil, port: in}}]}}}}
  - {{kind: step, name: toil, domain: web, does: toil}}
"
    );
    let mut stage = Stage::start(&text);
    stage.until("all flows, and no end before", |stage| {
        assert_eq!(stage.texts("web", EventKind::Faulted).len(), 0, "{:#?}", stage.story());
        packets(stage, "toil") == BATCH
    });
    end(stage);
}

fn an_edit_waits_for_the_one_that_is_swapped_in() {
    let policy = "heartbeat: 20s";
    let mut stage = Stage::start(&graph(policy, "a", "linger_at_end"));
    until_packets(&mut stage, "a");
    stage.run.edit(edition(graph(policy, "b", "pass")));
    let is_accepted = |stage: &Stage| stage.run.plan().nodes.iter().any(|node| node.name == "b");
    stage.until("the first edit", is_accepted);
    assert_eq!(stage.told(EventKind::Edited).len(), 0, "it is swapped in now");
    stage.run.edit(edition(graph(policy, "c", "pass")));
    stage.run.edit(edition(graph(policy, "d", "pass")));
    stage.until("two edits", |stage| stage.told(EventKind::Edited).len() == 2);
    let told = stage.told(EventKind::Edited);
    assert!(told[0].contains("(a, b, door)"), "{told:?}");
    assert!(told[1].contains("(b, d, door)"), "of those that waited the newest counts: {told:?}");
    until_packets(&mut stage, "d");
    assert_eq!(stage.texts("web", EventKind::Faulted).len(), 0, "{:#?}", stage.story());
    end(stage);
}

fn files_that_no_edit_took_in_count_with_the_next_one() {
    let policy = "heartbeat: 20s";
    let text = |name: &str| graph(policy, name, "pass");
    let touched = |text| Edition { touched: vec!["last".into()], ..edition(text) };
    let mut stage = Stage::start(&graph(policy, "a", "linger_at_end"));
    until_packets(&mut stage, "a");
    stage.run.edit(edition(text("b")));
    let is_accepted = |stage: &Stage| stage.run.plan().nodes.iter().any(|node| node.name == "b");
    stage.until("the first edit", is_accepted);
    // A newer edit comes before this one is looked at.
    stage.run.edit(touched(text("c")));
    stage.run.edit(edition(text("d")));
    stage.until("two edits", |stage| stage.told(EventKind::Edited).len() == 2);
    let told = stage.told(EventKind::Edited);
    assert!(told[1].contains("(b, d, door, last)"), "{told:?}");
    // It is refused.
    stage.run.edit(touched(text("d").replace("name: test", "name: other")));
    stage.until("no edit", |stage| stage.told(EventKind::EditRefused).len() == 1);
    stage.run.edit(edition(text("d")));
    stage.until("three edits", |stage| stage.told(EventKind::Edited).len() == 3);
    stage.run.edit(edition(text("d")));
    stage.until("four edits", |stage| stage.told(EventKind::Edited).len() == 4);
    let told = stage.told(EventKind::Edited);
    assert!(told[2].contains("1 node changed (last)"), "{told:?}");
    assert_eq!(told[3], "only its text changed, not the graph");
    end(stage);
}

fn a_domain_that_does_not_swap_blocks_no_edit() {
    let policy = "heartbeat: 60s, stop_deadline: 300ms, restart: {policy: always, backoff: 1ms}";
    let mut stage = Stage::start(&graph(policy, "a", "stay_at_end"));
    until_packets(&mut stage, "a");
    stage.run.edit(edition(graph(policy, "b", "pass")));
    stage.until_event("web", EventKind::Faulted, 1);
    let said = stage.texts("web", EventKind::Faulted);
    assert_eq!(said, ["did not take over the edited graph within 5 s"]);
    // It starts again in the edited graph, and takes the next one.
    until_packets(&mut stage, "b");
    stage.run.edit(edition(graph(policy, "c", "pass")));
    stage.until("two edits", |stage| stage.told(EventKind::Edited).len() == 2);
    until_packets(&mut stage, "c");
    end(stage);
}

fn a_pool_grows_with_work_that_waits_within_its_bounds() {
    let text = format!(
        "
name: test
domains: {{web: {{{PATIENT}, flows: {{workers: 1, blocking: {{max: 20}}}}}}}}
nodes:
  - {{kind: beat, name: beat, domain: web, ports: {{out: [{{name: fan, port: in}}]}}}}
  - {{kind: step, name: fan, domain: web, does: fork, ports: {{out: [{{name: nap, port: in}}]}}}}
  - {{kind: step, name: nap, domain: web, does: nap}}
"
    );
    let mut stage = Stage::start(&text);
    let pool = |stage: &Stage| stage.status("web").pool.unwrap_or_default();
    stage.until("a larger pool", |stage| pool(stage).changes > 0);
    let grown = pool(&stage);
    assert_eq!((grown.threads, grown.min, grown.max), (20, 2, 20), "{grown:?}");
    let change = grown.last_change.expect("it changed");
    assert_eq!((change.before, change.after), (8, 20), "{change:?}");
    assert!(change.why.contains("are enough"), "{change:?}");
    stage.until("all of it done", |stage| pool(stage).done == BATCH);
    assert_eq!(stage.texts("web", EventKind::Faulted).len(), 0, "{:#?}", stage.story());
    end(stage);
}
