//! Three kinds for the tests: a source that can fail in every way, a relay, and a motor that must
//! never run on without a command.

use std::fs::{File, OpenOptions};
use std::io::{Write, stderr, stdout};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::ftruncate;
use rustix::mm::munlockall;
use rustix::process::{Signal as KernelSignal, getpid, kill_process};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, SafeValue, Signal};
use sinew_core::sys::let_go_of_code;
use sinew_core::{
    Cycle, Fault, Fresh, Io, Level, Message, Node, NodeEntry, Parameters, fault, message,
};
use sinew_flow::FlowEntry;
use sinew_flow::Make;
use sinew_runtime::Kinds;
use sinew_runtime::ServiceEntry;
use zerocopy::FromBytes;

use crate::flows::{Acts, BEAT, Beat, STEP};
use crate::guests::{CALLER, Caller};
use crate::service_kinds::{HUB, Hub, SERVANT, Servant};
use crate::watcher::{WATCHER, Watcher};

message! {
    /// A velocity, and the cycle in which it was commanded.
    pub struct Command {
        /// Anything but 0 moves the motor.
        pub velocity: f64,
        /// Number of the cycle.
        pub number: u64,
    }
}

pub(crate) fn all() -> Kinds {
    Kinds { nodes: NODES.to_vec(), services: SERVICES.to_vec(), flows: FLOWS.to_vec(), lens: None }
}

pub(crate) const NODES: &[NodeEntry] = &[
    NodeEntry { kind: &SOURCE, make: |p| Ok(Box::new(Source::new(p))), safe: None },
    NodeEntry { kind: &RELAY, make: |_| Ok(Box::new(Relay)), safe: None },
    NodeEntry { kind: &MOTOR, make: |p| Ok(Box::new(Motor::new(p))), safe: Some(safe) },
    NodeEntry { kind: &HUB, make: |_| Ok(Box::new(Hub::default())), safe: None },
];

const SERVICES: &[ServiceEntry] = &[
    ServiceEntry { kind: &SERVANT, make: |p| Ok(Box::new(Servant::new(p))) },
    ServiceEntry { kind: &CALLER, make: |p| Ok(Box::new(Caller::new(p))) },
    ServiceEntry { kind: &WATCHER, make: |p| Ok(Box::new(Watcher::new(p))) },
];

const FLOWS: &[FlowEntry] = &[
    FlowEntry { kind: &BEAT, make: Make::Source(|_| Ok(Box::new(Beat))) },
    FlowEntry { kind: &STEP, make: Make::Node(|p| Ok(Box::new(Acts::new(p)))) },
];

/// Cycles for which a source that lets go tells the motor to halt; after them it says nothing.
const HALTS: u64 = 10;
/// Cycles for which a source floods its lines.
const FLOODED: u64 = 100;

pub(crate) const fn whole(name: &'static str, default: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Integer { min: 0, max: 1_000_000 }).or(default)
}

const FAILURES: &[&str] = &[
    "error",
    "panic",
    "nan",
    "nan_signal",
    "let_go",
    "print",
    "take_back",
    "flood",
    "log",
    "log_flood",
    "log_and_fail",
    "log_and_panic",
    "log_and_abort",
    "log_and_kill",
    "spoil_lines",
    "slow",
    "stall",
    "abort",
    "hang",
    "yield",
    "allocate",
    "allocate_in_at_rest",
    "let_go_of_code",
    "silent",
    "panic_in_make",
    "hang_in_make",
    "error_in_start",
    "panic_in_start",
    "panic_in_at_rest",
    "panic_in_stop",
];

static SOURCE: Kind = Kind {
    name: "source",
    runs_in: RunsIn::Realtime,
    doc: "Commands velocity 1 and fails as told.",
    ports: &[
        Port::output("out", "", Command::TYPE),
        Port::input("feedback", "", Command::TYPE).optional(),
    ],
    parameters: &[
        whole("finish_at", "0"),
        whole("fail_at", "0"),
        Parameter::new("failure", ParameterType::Choice(FAILURES)).or("error"),
    ],
    signals: &[Signal::new("feedback_number", "", "", 1)],
};

struct Source {
    finish_at: u64,
    fail_at: u64,
    failure: String,
}

impl Source {
    fn new(parameters: &Parameters<'_>) -> Source {
        match parameters.text("failure") {
            "panic_in_make" => panic!("told to panic in make"),
            "hang_in_make" => std::thread::sleep(Duration::from_secs(3600)),
            // Without optimisation each text has code of its own. That code is this node's, so its
            // page is not among those that the core has in memory until the code has run.
            "error" => drop(told_to_fail(0)),
            "log" => says(&Cycle::default()),
            _ => {}
        }
        Source {
            finish_at: parameters.integer("finish_at") as u64,
            fail_at: parameters.integer("fail_at") as u64,
            failure: parameters.text("failure").into(),
        }
    }
}

fn told_to_fail(cycle: u64) -> Fault {
    fault!("told to fail in cycle {cycle}")
}

fn says(cycle: &Cycle) {
    cycle.log(Level::Warning, "told to log {:.1}", &[cycle.number as f64]);
}

/// What happens right after a line, by the failure's name.
fn end_after_line(failure: &str) -> Result<(), Fault> {
    match failure {
        "log_and_fail" => Err(fault!("told to fail after a line")),
        "log_and_panic" => panic!("told to panic after a line"),
        "log_and_abort" => std::process::abort(),
        "log_and_kill" => {
            kill_process(getpid(), KernelSignal::KILL).expect("it lands");
            unreachable!("it is dead");
        }
        _ => Ok(()),
    }
}

/// Overwrites what this process has of regions for lines.
fn spoil_lines() {
    for entry in std::fs::read_dir("/proc/self/map_files").into_iter().flatten().flatten() {
        let is_it = |path: &Path| path.to_string_lossy().contains("memfd:sinew-log");
        if std::fs::read_link(entry.path()).is_ok_and(|path| is_it(&path)) {
            let file = OpenOptions::new().write(true).open(entry.path()).expect("our own memory");
            file.write_all_at(&[0x5a; 8192], 0).expect("nothing refuses it");
        }
    }
}

impl Node for Source {
    fn start(&mut self) -> Result<(), Fault> {
        match self.failure.as_str() {
            "error_in_start" => Err(fault!("told to fail in start")),
            "panic_in_start" => panic!("told to panic in start"),
            _ => Ok(()),
        }
    }

    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let mut velocity = 1.0;
        let fails = self.fail_at > 0 && cycle.number >= self.fail_at;
        if fails {
            match self.failure.as_str() {
                "error" => return Err(told_to_fail(cycle.number)),
                "panic" => panic!("told to panic"),
                "nan" => velocity = f64::NAN,
                "silent" => return Ok(()),
                "nan_signal" | "let_go" => {}
                "print" if cycle.number == self.fail_at => {
                    println!("line one");
                    writeln!(stderr(), "line two").expect("nothing refuses it");
                }
                "print" => {}
                "take_back" => {
                    println!("line");
                    ftruncate(stdout(), 0).expect_err("what is written stays");
                }
                "flood" => (0..100).for_each(|at| println!("{at:->500}")),
                "log" if cycle.number > self.fail_at => {}
                "log_flood" if cycle.number < self.fail_at + FLOODED => {
                    (0..500).for_each(|_| says(cycle));
                }
                "log_flood" => {}
                "log" => says(cycle),
                said if said.starts_with("log") => {
                    says(cycle);
                    end_after_line(said)?;
                }
                "spoil_lines" => spoil_lines(),
                "abort" => std::process::abort(),
                "panic_in_at_rest" | "allocate_in_at_rest" | "panic_in_stop" => {}
                "yield" => std::thread::yield_now(),
                "allocate" => drop(std::hint::black_box(Box::new(cycle.number))),
                "let_go_of_code" => {
                    munlockall().expect("nothing refuses it");
                    let_go_of_code();
                }
                "hang" => std::thread::sleep(Duration::from_secs(3600)),
                "stall" if cycle.number == self.fail_at => {
                    std::thread::sleep(Duration::from_nanos(50 * cycle.period_ns));
                }
                "stall" => {}
                _ => std::thread::sleep(Duration::from_nanos(2 * cycle.period_ns)),
            }
        }
        if self.finish_at > 0 && cycle.number >= self.finish_at {
            cycle.finish();
        }
        io.signal(0)[0] = match fails && self.failure == "nan_signal" {
            true => f64::NAN,
            false => io.read::<Command>(1).number as f64,
        };
        let lets_go = fails && self.failure == "let_go";
        if lets_go && cycle.number >= self.fail_at + HALTS {
            return Ok(());
        }
        *io.write::<Command>(0) = match lets_go {
            true => Command { velocity: 0.0, number: 0 },
            false => Command { velocity, number: cycle.number },
        };
        Ok(())
    }

    fn at_rest(&self) -> bool {
        assert!(self.failure != "panic_in_at_rest", "told to panic in at_rest");
        if self.failure == "allocate_in_at_rest" {
            drop(std::hint::black_box(Box::new(self.fail_at)));
        }
        true
    }

    fn stop(&mut self) {
        assert!(self.failure != "panic_in_stop", "told to panic in stop");
    }
}

/// Passes on.
static RELAY: Kind = Kind::new(
    "relay",
    RunsIn::Realtime,
    &[Port::input("in", "", Command::TYPE), Port::output("out", "", Command::TYPE)],
);

struct Relay;

impl Node for Relay {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if io.fresh(0) == Fresh::New {
            *io.write::<Command>(1) = *io.read::<Command>(0);
        }
        Ok(())
    }
}

static MOTOR: Kind = Kind {
    name: "motor",
    runs_in: RunsIn::Realtime,
    doc: "Runs at the commanded velocity; needs some cycles to come to rest.",
    ports: &[
        Port {
            safe: &[
                SafeValue { name: "halt", doc: "Velocity 0." },
                SafeValue {
                    name: "hold",
                    doc: "Velocity -0: as still as 'halt', but not the same.",
                },
            ],
            ..Port::input("in", "", Command::TYPE)
        },
        Port::output("out", "", Command::TYPE).optional(),
    ],
    parameters: &[
        whole("coast_cycles", "0"),
        whole("exit_at", "0"),
        whole("log_at", "0"),
        // File that holds what the motor did last; for when nobody else is left to say so.
        Parameter::new("witness", ParameterType::Text).or(""),
    ],
    signals: &[
        Signal::new("velocity", "", "", 1),
        Signal::new("is_safe", "", "", 1),
        Signal::new("number", "", "", 1),
    ],
};

struct Motor {
    coast_cycles: u64,
    exit_at: u64,
    log_at: u64,
    still_for: u64,
    witness: Option<File>,
}

impl Motor {
    fn new(parameters: &Parameters<'_>) -> Motor {
        let witness = parameters.text("witness");
        let open = |path| OpenOptions::new().write(true).open(path).expect("the test made it");
        Motor {
            coast_cycles: parameters.integer("coast_cycles") as u64,
            exit_at: parameters.integer("exit_at") as u64,
            log_at: parameters.integer("log_at") as u64,
            still_for: 0,
            witness: (!witness.is_empty()).then(|| open(witness)),
        }
    }
}

impl Node for Motor {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if self.exit_at > 0 && cycle.number >= self.exit_at {
            std::process::exit(0);
        }
        let command = *io.read::<Command>(0);
        if self.log_at > 0 && cycle.number == self.log_at {
            cycle.log(Level::Info, "moves with {}", &[command.velocity]);
        }
        self.still_for = if command.velocity == 0.0 { self.still_for + 1 } else { 0 };
        io.signal(0)[0] = command.velocity;
        io.signal(1)[0] = f64::from(u8::from(io.fresh(0) == Fresh::Safe));
        io.signal(2)[0] = command.number as f64;
        if io.fresh(0) == Fresh::New {
            *io.write::<Command>(1) = command;
        }
        if let Some(witness) = &self.witness {
            let line = format!("{} {:?}\n", command.velocity, io.fresh(0));
            witness.write_all_at(format!("{line:24}").as_bytes(), 0).expect("it is a file");
        }
        Ok(())
    }

    fn at_rest(&self) -> bool {
        self.still_for > self.coast_cycles
    }
}

fn safe(_: usize, safe: usize, message: &mut [u8]) {
    let command = Command::mut_from_bytes(message).expect("the port's message type");
    command.velocity = [0.0, -0.0][safe];
}
