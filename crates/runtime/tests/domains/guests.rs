//! A guest beside a core and a service: both sides sleep at links until a bell rings. Whichever is
//! killed, at whatever time, the others go on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use sinew_agent::BoardRow;
use sinew_control::status::EventKind;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, Message, Parameters, fault, privileges};
use sinew_runtime::{Service, ServiceIo};
use sinew_spec::plan::Board;

use crate::Test;
use crate::placed::allowed;
use crate::service_kinds::Numbered;
use crate::stage::{Stage, marked};

pub(crate) const TESTS: &[Test] = tests![
    a_service_and_a_guest_wake_each_other,
    an_emulator_runs_on_the_cpus_of_its_domain,
    a_guest_is_refused_what_it_cannot_have,
    two_hundred_kills_of_a_guest_and_beside_it_harm_nobody_else,
];

const IMAGE: &str = "../../guest/target/armv7a-none-eabi/release/trials";
/// Kills of all parties together, at random moments.
const KILLS: usize = 200;
/// Longest pause between two kills, ms.
const PAUSE_MS_MAX: u64 = 150;

pub(crate) static CALLER: Kind = Kind {
    name: "caller",
    runs_in: RunsIn::Service,
    doc: "Sends a number, and sleeps until it comes back.",
    ports: &[
        Port::input("in", "", Numbered::TYPE).optional(),
        Port::output("out", "", Numbered::TYPE).optional(),
    ],
    parameters: &[
        // The content of this file goes with one message.
        Parameter::new("orders", ParameterType::Text).or(""),
    ],
    signals: &[],
};

pub(crate) struct Caller {
    orders: PathBuf,
}

impl Caller {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Caller {
        Caller { orders: parameters.text("orders").into() }
    }

    /// What the guest is told to do.
    fn order(&self) -> f64 {
        let order = fs::read_to_string(&self.orders).ok().and_then(|text| text.parse().ok());
        let is_ours = order.is_some() && fs::remove_file(&self.orders).is_ok();
        order.filter(|_| is_ours).unwrap_or(1.0)
    }
}

impl Service for Caller {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        // A message of an earlier life may still come back, and one that was sent to a guest that
        // has died never does.
        let mut last = 0;
        loop {
            let sent = now_ns();
            let message = Numbered { number: sent, value: self.order(), again: [sent; 30] };
            io.send(1, &message)?;
            let patience = Duration::from_millis(50);
            while last != sent {
                let begun_ns = now_ns();
                if !io.wait_for(0, patience) {
                    return Ok(());
                }
                let Some(back) = io.receive::<Numbered>(0)? else {
                    if now_ns() - begun_ns >= 50_000_000 {
                        break;
                    }
                    continue;
                };
                let is_whole = back.again.iter().all(|&again| again == back.number);
                if !is_whole || back.number <= last || back.number > sent {
                    return Err(fault!("got {} after {last}, sent {sent}", back.number));
                }
                last = back.number;
            }
        }
    }
}

/// The graph: the core and a service, each with a node of the guest.
fn graph(orders: &Path) -> String {
    format!(
        "name: test
domains:
  core: {{realtime: {{period: 2ms, overrun: {{policy: count}}}}}}
  guest:
    guest: {{image: {image}, board: virt, memory: 1MiB}}
    {POLICY}
  caller: {{{POLICY_OF_CALLER}}}
nodes:
  - kind: hub
    domain: core
    ports: {{out: [{{name: passer, port: in, delivery: latest}}]}}
  - kind: passer
    domain: guest
    ports: {{out: [{{name: hub, port: first, delivery: latest}}]}}
  - kind: caller
    domain: caller
    orders: {orders}
    ports: {{out: [{{name: mirror, port: in, capacity: 4}}]}}
  - kind: mirror
    domain: guest
    ports: {{out: [{{name: caller, port: in, capacity: 4}}]}}
",
        image = image().display(),
        orders = orders.display()
    )
}

const POLICY: &str = "restart: {policy: always, backoff: 1ms, backoff_max: 5ms, restarts_max: \
                      1000}\n    heartbeat: 10s\n    stop_deadline: 5s";
const POLICY_OF_CALLER: &str = "restart: {policy: always, backoff: 1ms, backoff_max: 5ms, \
                                restarts_max: 1000}, heartbeat: 10s";

fn image() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(IMAGE)
}

/// Whether a guest can run here; says what is missing. With `CI=true` that is a failure.
fn has_guest() -> bool {
    let lack = (BoardRow::of(Board::Virt).missing)().or_else(|| {
        let is_built = image().is_file();
        (!is_built).then(|| "there is no image of trials: cargo build --release in guest/".into())
    });
    let Some(lack) = lack else { return true };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
    false
}

fn orders(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.order"));
    // What an earlier test has left is of no use.
    let _ = fs::remove_file(&file);
    file
}

/// Messages that came back to the caller, in all its lives.
fn answered(stage: &Stage) -> u64 {
    stage.status("caller").nodes[0].received
}

/// Looks until this many more answers have come, and something has come through the guest to the
/// core.
fn goes_on(stage: &mut Stage, answers: u64) {
    let (wanted, arrived) = (answered(stage) + answers, stage.arrived[0].len());
    stage.until("answers of the guest", |stage| {
        answered(stage) >= wanted && stage.arrived[0].len() > arrived
    });
}

fn a_service_and_a_guest_wake_each_other() {
    if !has_guest() {
        return;
    }
    // With the smallest limits that the check accepts.
    let graph = graph(&orders("wake"));
    let graph = graph.replace("caller: {", "caller: {limits: {descriptors: 22}, ");
    let graph =
        graph.replace("heartbeat: 10s\n", "heartbeat: 10s\n    limits: {descriptors: 38}\n");
    let mut stage = Stage::start(&graph);
    goes_on(&mut stage, 100);
    // A node that serves beats as one that has cycles does.
    stage.until("both nodes of the guest", |stage| {
        let nodes = stage.status("guest").nodes;
        nodes.iter().all(|node| node.beats > 10 && node.received > 10 && node.sent > 10)
    });
    stage.assert_in_order(0);
    stage.stop_unharmed();
}

fn an_emulator_runs_on_the_cpus_of_its_domain() {
    if !has_guest() {
        return;
    }
    // Also the core's CPU, which no service has by default.
    for cpu in privileges::cpus().expect("affinity") {
        let cpus = format!("heartbeat: 10s\n    cpus: [{cpu}]\n    stop");
        let mut stage =
            Stage::start(&graph(&orders("cpus")).replace("heartbeat: 10s\n    stop", &cpus));
        stage.until_event("guest", EventKind::Ready, 1);
        let agent = stage.process("guest");
        for pid in [agent, child(agent).expect("an emulator")] {
            assert_eq!(allowed(pid), BTreeSet::from([vec![cpu]]), "CPU {cpu}, process {pid}");
        }
        stage.stop_unharmed();
    }
}

fn a_guest_is_refused_what_it_cannot_have() {
    if !has_guest() {
        return;
    }
    let good = graph(Path::new("nowhere"));
    for (from, to, words) in [
        (
            "caller: {",
            "caller: {limits: {descriptors: 21}, ",
            "service 'caller' cannot run with descriptors: 21; it needs 22",
        ),
        (
            "heartbeat: 10s\n    stop",
            "limits: {descriptors: 37}\n    stop",
            "guest 'guest' cannot run with descriptors: 37; it needs 38",
        ),
        (
            "capacity: 4}]}\n  - kind: mirror",
            "wait: spin}]}\n  - kind: mirror",
            "services cannot wait with spin",
        ),
        (
            "{name: mirror, port: in, capacity: 4}",
            "{name: mirror, port: in, sync: mutex}",
            "two operating systems cannot share a mutex",
        ),
        (
            "{name: caller, port: in, capacity: 4}",
            "{name: passer, port: in}",
            "a guest has links to the core and to services only",
        ),
        (
            "{name: mirror, port: in, capacity: 4}",
            "{name: mirror, port: in, transport: unix}",
            "transport unix cannot cross to another operating system",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let errors = crate::refused(&good.replace(from, to));
        assert!(errors.contains(words), "expected '{words}' in:\n{errors}");
    }
}

/// Who is killed, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    /// The service, by SIGKILL.
    Caller,
    /// The agent, by SIGKILL.
    Agent,
    /// The emulator, by SIGKILL.
    Emulator,
    /// The guest: an undefined instruction, a data abort, a panic, an error.
    Guest(u32),
}

const VICTIMS: [Victim; 7] = [
    Victim::Caller,
    Victim::Agent,
    Victim::Emulator,
    Victim::Guest(2),
    Victim::Guest(3),
    Victim::Guest(4),
    Victim::Guest(5),
];

/// Kills the victim, if it is there; returns whether it was.
fn kill(stage: &Stage, victim: Victim, orders: &Path) -> bool {
    let process = |domain: &str| stage.status(domain).pid;
    let pid = match victim {
        Victim::Caller => process("caller"),
        Victim::Agent => process("guest"),
        Victim::Emulator => process("guest").and_then(child),
        Victim::Guest(order) => {
            // The file appears in one step, because the caller may look at any time.
            let draft = orders.with_extension("draft");
            let written = fs::write(&draft, order.to_string());
            return written.and_then(|()| fs::rename(draft, orders)).is_ok();
        }
    };
    let pid = pid.and_then(|pid| Pid::from_raw(pid as i32));
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

/// The only child of a process.
fn child(of: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn two_hundred_kills_of_a_guest_and_beside_it_harm_nobody_else() {
    if !has_guest() {
        return;
    }
    let orders = orders("kills");
    let mut stage = Stage::start(&graph(&orders));
    goes_on(&mut stage, 10);
    let seed = now_ns();
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let mut killed = [0; VICTIMS.len()];
    let mut back_ms = Vec::new();
    while killed.iter().sum::<usize>() < KILLS {
        let which = rng.usize(..VICTIMS.len());
        let begun = Instant::now();
        if !kill(&stage, VICTIMS[which], &orders) {
            stage.look();
            continue;
        }
        killed[which] += 1;
        let until = Duration::from_millis(rng.u64(..PAUSE_MS_MAX));
        while begun.elapsed() < until {
            assert!(stage.look(), "the run ended: {:#?}", stage.story());
        }
        // Now and then the next one dies before the last one is back.
        if rng.u32(..3) > 0 {
            goes_on(&mut stage, 3);
            if begun.elapsed() > until + Duration::from_millis(10) {
                back_ms.push(begun.elapsed().as_millis());
            }
        }
    }
    let _ = fs::remove_file(&orders);
    goes_on(&mut stage, 100);
    let restarts = |domain: &str| stage.status(domain).restarts as usize;
    println!(
        "killed {killed:?} of {VICTIMS:?}; restarts of the guest {}, of the caller {}",
        restarts("guest"),
        restarts("caller")
    );
    back_ms.sort_unstable();
    if let (Some(median), Some(max)) = (back_ms.get(back_ms.len() / 2), back_ms.last()) {
        println!("{} times somebody waited: {median} ms, at most {max}", back_ms.len());
    }
    // No party ended by itself or because another one did.
    let ours = ["signal 9", "signal: 9", "undefined instruction", "data abort", "told to"];
    for domain in ["guest", "caller"] {
        let faults = stage.texts(domain, EventKind::Faulted);
        let others = faults.iter().filter(|text| !ours.iter().any(|words| text.contains(words)));
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&&str>::new(), "{domain}");
        assert!(stage.texts(domain, EventKind::Ended).is_empty(), "{domain}");
    }
    assert_eq!(restarts("caller"), killed[0], "only who was killed came back");
    assert!(restarts("guest") > KILLS / 4, "the guest was hardly ever hit");
    stage.assert_in_order(0);
    assert!(stage.run.broken_links().is_empty(), "{:?}", stage.run.broken_links());
    stage.stop_unharmed();
    sleep(Duration::from_millis(1));
    assert_eq!(marked(&format!("test-{}-", std::process::id())), [0; 0]);
}
