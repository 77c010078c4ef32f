//! Kinds for the tests of services: a servant that fails in every way it is told to, and a hub in
//! the core that keeps a record of what it got from servants.

use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::{Write, stdout};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::process::{Command as Program, abort, exit, id};
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Signal as Shown};
use sinew_core::clock::now_ns;
use sinew_core::{Cycle, Fault, Fresh, Io, Message, Node, Parameters, fault, message};
use sinew_runtime::{Service, ServiceIo};

use crate::kinds::whole;

pub(crate) const INPUTS: usize = 3;
/// Bytes of a block of memory that a servant fills, and how many blocks at most: nobody else must
/// suffer.
const BLOCK: usize = 4 << 20;
const BLOCKS_MAX: usize = 128;

/// What a servant says if it could fill all that it wanted.
pub(crate) const FILLED: &str = "filled all blocks";

message! {
    /// A number, repeated so often that half a message is noticed.
    pub struct Numbered {
        /// Rises with every message, over all lives of a writer.
        pub number: u64,
        /// May be not a number.
        pub value: f64,
        /// The number again.
        pub again: [u64; 30],
    }
}

impl Numbered {
    fn new(number: u64) -> Numbered {
        Numbered { number, value: 1.0, again: [number; 30] }
    }

    fn is_whole(&self) -> bool {
        self.value == 1.0 && self.again.iter().all(|&again| again == self.number)
    }
}

pub(crate) static HUB: Kind = Kind {
    name: "hub",
    runs_in: RunsIn::Realtime,
    doc: "Sends the number of its cycle to servants, and shows what each of them sent.",
    ports: &[
        Port::input("first", "", Numbered::TYPE).optional(),
        Port::input("second", "", Numbered::TYPE).optional(),
        Port::input("third", "", Numbered::TYPE).optional(),
        Port::output("out", "", Numbered::TYPE).optional(),
    ],
    parameters: &[],
    signals: &[Shown::new("arrived", "", "", INPUTS), Shown::new("torn", "", "", INPUTS)],
};

#[derive(Default)]
pub(crate) struct Hub {
    torn: [f64; INPUTS],
}

impl Node for Hub {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        for at in 0..INPUTS {
            let is_new = io.fresh(at) == Fresh::New;
            let message = io.read::<Numbered>(at);
            self.torn[at] += f64::from(u8::from(is_new && !message.is_whole()));
            let arrived = if is_new { message.number as f64 } else { 0.0 };
            io.signal(0)[at] = arrived;
        }
        io.signal(1).copy_from_slice(&self.torn);
        *io.write::<Numbered>(INPUTS) = Numbered::new(cycle.number + 1);
        Ok(())
    }
}

pub(crate) static SERVANT: Kind = Kind {
    name: "servant",
    runs_in: RunsIn::Service,
    doc: "Sends numbers, or passes on what it gets, until its mood strikes.",
    ports: &[
        Port::input("in", "", Numbered::TYPE).optional(),
        Port::output("out", "", Numbered::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("mood", ParameterType::Choice(MOODS)).or("serve"),
        // Turns until its mood strikes.
        whole("after", "20"),
        // Between two turns.
        whole("pause_us", "2000"),
        // Sends what it gets, and nothing else.
        Parameter::new("passes_on", ParameterType::Bool).or("false"),
    ],
    signals: &[],
};

/// What may happen to a servant. Unless its mood says otherwise, it goes on serving.
const MOODS: &[&str] = &[
    "serve",
    "finish",
    "panic",
    "error",
    "exit",
    "abort",
    "kill",
    "stop",
    "hang",
    "hang_in_make",
    "hang_in_start",
    "fail_in_start",
    "slow_start",
    "fork_in_start",
    "deaf",
    "fork",
    "fill_memory",
    "close_descriptors",
    "garble_links",
    "garble_board",
    "garble_counters",
    "shrink",
    "not_finite",
    "talk",
    "babble",
    "ring",
    "jam_bell",
    "burn",
];

pub(crate) struct Servant {
    mood: String,
    after: u64,
    pause: Duration,
    passes_on: bool,
}

impl Servant {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Servant {
        if parameters.text("mood") == "hang_in_make" {
            hang();
        }
        Servant {
            mood: parameters.text("mood").into(),
            after: parameters.integer("after") as u64,
            pause: Duration::from_micros(parameters.integer("pause_us") as u64),
            passes_on: parameters.bool("passes_on"),
        }
    }

    fn turn(&self, io: &mut ServiceIo, turn: u64) -> Result<(), Fault> {
        let mut last = 0;
        while let Some(message) = io.receive::<Numbered>(0)? {
            if !message.is_whole() || message.number <= last {
                return Err(fault!("got {} after {last}, or half of it", message.number));
            }
            last = message.number;
            if self.passes_on {
                io.send(1, &message)?;
            }
        }
        if !self.passes_on {
            let mut message = Numbered::new(now_ns());
            if self.mood == "not_finite" && turn >= self.after && turn.is_multiple_of(2) {
                message.value = f64::NAN;
            }
            io.send(1, &message)?;
        }
        Ok(())
    }
}

impl Service for Servant {
    fn start(&mut self) -> Result<(), Fault> {
        match self.mood.as_str() {
            "hang_in_start" => hang(),
            "fail_in_start" => return Err(fault!("told to fail in start")),
            "slow_start" => sleep(Duration::from_millis(150)),
            // As long as it starts, the supervisor listens to its bell.
            "ring" => {
                strike("ring")?;
                sleep(Duration::from_millis(50));
            }
            "jam_bell" => {
                each_bell(&jam);
                hang();
            }
            "fork_in_start" => {
                fork();
                hang();
            }
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut turn = 0;
        loop {
            self.turn(io, turn)?;
            if turn == self.after {
                if self.mood == "finish" {
                    return Ok(());
                }
                strike(&self.mood)?;
            }
            turn += 1;
            if !io.wait(self.pause) {
                if self.mood != "deaf" {
                    return Ok(());
                }
                sleep(Duration::from_millis(1));
            }
        }
    }
}

/// What happens once, or begins.
fn strike(mood: &str) -> Result<(), Fault> {
    match mood {
        "panic" => panic!("told to panic \u{1b}[2J"),
        "error" => return Err(fault!("told to fail")),
        "exit" => exit(0),
        "abort" => abort(),
        "kill" => raise(Signal::KILL),
        "stop" => raise(Signal::STOP),
        "hang" => hang(),
        "fork" => fork(),
        "fill_memory" => fill_memory(),
        "close_descriptors" => close_descriptors(),
        "garble_links" => without_end(|seed| garble("memfd:sinew-link", seed)),
        "garble_board" => garble("memfd:sinew-board", 1),
        "garble_counters" => garble("memfd:sinew-counters", 1),
        "shrink" => return shrink(),
        "talk" => without_end(|turn| print(format!("line {turn} of many\n").as_bytes())),
        "babble" => without_end(|seed| print(&noise(4096, seed))),
        "ring" => without_end(|_| each_bell(&ring)),
        "burn" => without_end(|turn| _ = black_box(turn)),
        _ => {}
    }
    Ok(())
}

fn hang() {
    sleep(Duration::from_secs(3600));
}

/// On a thread of its own; the heartbeat goes on.
fn without_end(mut body: impl FnMut(u64) + Send + 'static) {
    thread::spawn(move || {
        let mut turn = 0;
        loop {
            turn += 1;
            body(turn);
        }
    });
}

fn raise(signal: Signal) {
    let own = Pid::from_raw(id() as i32).expect("a process has a number");
    kill_process(own, signal).expect("the signal lands");
}

/// Children that hold none of our descriptors: one in our group, one in a session of its own.
fn fork() {
    let script = "exec </dev/null >/dev/null 2>&1; setsid sleep 1000 & sleep 1000 & wait";
    let mut shell = Program::new("sh").args(["-c", script]).spawn().expect("sh starts");
    // Whoever kills it, no zombie is left.
    thread::spawn(move || shell.wait());
}

fn fill_memory() {
    let blocks: Vec<Vec<u8>> = (0..BLOCKS_MAX).map(|_| black_box(vec![1; BLOCK])).collect();
    // If all of it fits, nothing has limited us.
    assert_eq!(blocks.len(), BLOCKS_MAX);
    print(format!("{FILLED}\n").as_bytes());
    hang();
}

/// Our open descriptors and what is behind them.
pub(crate) fn descriptors() -> Vec<(RawFd, String)> {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc is mounted").flatten();
    let behind = |number: RawFd| {
        let link = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        Some((number, link.to_string_lossy().into_owned()))
    };
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // The folder itself is closed by then.
    numbers.collect::<Vec<RawFd>>().into_iter().filter_map(behind).collect()
}

fn close_descriptors() {
    for (number, _) in descriptors() {
        // Whatever the descriptor is: this service is meant to be broken.
        let _ = nix::unistd::close(number);
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Writes noise over all of our regions with this name, through their descriptors.
fn garble(name: &str, seed: u64) {
    let regions: Vec<_> = descriptors().into_iter().filter(|row| row.1.contains(name)).collect();
    assert!(!regions.is_empty(), "there is no {name} to garble");
    for (number, _) in regions {
        let path = format!("/proc/self/fd/{number}");
        let file = OpenOptions::new().write(true).open(path).expect("our own region");
        let len = file.metadata().expect("its size").len() as usize;
        file.write_all_at(&noise(len, seed), 0).expect("we may write to it");
    }
}

/// Tries to take the memory away from those that have mapped it.
fn shrink() -> Result<(), Fault> {
    let regions = descriptors().into_iter().filter(|row| row.1.contains("memfd:sinew-link"));
    for (number, _) in regions {
        let path = format!("/proc/self/fd/{number}");
        let file = OpenOptions::new().write(true).open(path).expect("our own region");
        if file.set_len(0).is_ok() {
            return Err(fault!("a region could be shrunk"));
        }
    }
    Err(fault!("no region can be shrunk"))
}

fn print(bytes: &[u8]) {
    // A failed write is no matter.
    let _ = stdout().write_all(bytes);
}

/// Hands each of our bells to `body`.
fn each_bell(body: &dyn Fn(&OwnedFd)) {
    for (number, _) in descriptors().iter().filter(|row| row.1.contains("eventfd")) {
        body(&duplicate(*number));
    }
}

pub(crate) fn duplicate(number: RawFd) -> OwnedFd {
    let own = Pid::from_raw(id() as i32).expect("a process has a number");
    let own = pidfd_open(own, PidfdFlags::empty()).expect("we are there");
    pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).expect("it is open")
}

fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// Makes a read of a silent bell block.
fn jam(bell: &OwnedFd) {
    let flags = fcntl_getfl(bell).expect("it is open");
    fcntl_setfl(bell, flags - OFlags::NONBLOCK).expect("the flag is everybody's");
}
