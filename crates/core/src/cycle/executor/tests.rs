//! What happens to links after a fault, with links that only record what is asked of them.

use std::sync::{Arc, Mutex};

use sinew_plan::catalogue::{Kind, RunsIn};
use sinew_plan::plan::Full;

use super::super::step::Output;
use super::*;
use crate::node::{Node, Wiring};
use crate::transport::{Sender, Sent};

static KIND: Kind = Kind::new("idle", RunsIn::Realtime, &[]);

struct Idle;

impl Node for Idle {
    fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        Ok(())
    }
}

/// What was asked of the links, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A link whose lock is held for `held` tries.
struct Told {
    name: &'static str,
    held: u32,
    log: Log,
}

impl Told {
    fn say(&self, what: &str) {
        self.log.lock().expect("nobody panics").push(format!("{} {what}", self.name));
    }
}

impl Sender for Told {
    fn send(&mut self, _: &[u8]) -> Result<Sent, Fault> {
        self.say("waits");
        Ok(Sent::Done)
    }

    fn try_send(&mut self, _: &[u8]) -> Option<Result<Sent, Fault>> {
        if self.held > 0 {
            self.held -= 1;
            self.say("is held");
            return None;
        }
        self.say("has it");
        Some(Ok(Sent::Done))
    }

    fn wait_room(&mut self, _: u64) -> bool {
        true
    }

    fn close(&mut self) {
        self.say("closes");
    }

    fn hang_up(&mut self) {
        self.say("hangs up");
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.say("is dropped");
    }
}

/// A thread whose one node writes to these links, which command actuators.
fn executor(links: &[(&'static str, u32)], log: &Log) -> Executor {
    let mut slots = Slots::default();
    let output = |&(name, held): &(&'static str, u32)| Output {
        slot: slots.add(8),
        sender: Box::new(Told { name, held, log: Arc::clone(log) }),
        full: Full::Drop,
        safe: Some(vec![0; 8]),
        owes_safe: false,
        to: "motor".into(),
        closed: false,
        end: 0,
        to_service: false,
        broken: false,
    };
    let outputs = links.iter().map(output).collect();
    let step = Step {
        node: Box::new(Idle),
        name: "idle".into(),
        index: 0,
        place: 0,
        wiring: Wiring::new(&KIND, vec![], 0),
        around: Around::default(),
        inputs: vec![],
        guards: vec![],
        tuning: None,
        outputs,
        parts: Vec::new(),
        numbers: vec![],
        signals: &[],
    };
    Executor {
        steps: vec![step.settled()],
        given_up: Vec::with_capacity(1),
        slots,
        values: vec![],
        delayed: vec![],
        feedback: vec![],
        clock: Clock::from_rate(1.0),
        record: Record::new(1, 0, links.len(), &[]),
        taps: Taps::new([].into_iter()),
        at: None,
        updating: false,
        restless: None,
    }
}

fn said(log: &Log) -> Vec<String> {
    log.lock().expect("nobody panics").clone()
}

#[test]
fn a_link_whose_lock_is_held_keeps_no_other_from_its_safe_value() {
    let log = Log::default();
    executor(&[("one", 2), ("two", 0)], &log).safe_outputs();
    let said = said(&log);
    assert_eq!(
        said[..5],
        ["one is held", "two has it", "one is held", "one has it", "one is dropped"]
    );
}

#[test]
fn a_lock_that_is_never_let_go_keeps_the_fault_from_nothing() {
    let log = Log::default();
    executor(&[("one", u32::MAX), ("two", 0)], &log).safe_outputs();
    let said = said(&log);
    assert_eq!(said[..2], ["one is held", "two has it"]);
    assert!(!said.iter().any(|it| it == "one has it" || it == "one waits"), "{said:?}");
}

#[test]
fn links_of_a_step_that_is_given_up_hang_up_and_are_closed_after_the_actuators_rest() {
    let log = Log::default();
    let mut executor = executor(&[("one", 0)], &log);
    executor.keep_actuators().expect("no panic");
    assert_eq!(said(&log), ["one hangs up"]);
    drop(executor);
    assert_eq!(said(&log), ["one hangs up", "one is dropped"]);
}
