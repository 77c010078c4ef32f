//! The other side of a link, in a process of its own: this test binary again, told by an
//! environment variable to play a part instead of testing.

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio, exit};
use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use sinew_core::sys::{Locked, Region, adopt, keep_open};
use sinew_core::transport::{Carrier, Received, TRANSPORTS};
use sinew_spec::plan::{Delivery, Sync, Wait};

use super::in_place::send_in_place;
use super::{Case, limit, mutex_of, number, receive, region, send, tunings};

const VARIABLE: &str = "SINEW_CONFORMANCE";

/// Messages that the parts of `hold` and `claim` send before they stop.
pub(super) const HELD_AFTER: u32 = 3;

/// What a child does with its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Sends this many messages, then closes the link.
    Write(u32),
    /// Receives to the end of the link.
    Read,
    /// Sends [`HELD_AFTER`] messages, takes the lock of a mutex region, writes rubbish where the
    /// next message would go, and stops itself.
    Hold,
    /// Sends [`HELD_AFTER`] messages in place, writes rubbish over half of the next place, and
    /// stops itself before it commits.
    Claim,
}

/// A child that plays a part. Dropped, it is killed.
pub(super) struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a child with `carrier`, which is gone from here afterwards.
    pub(super) fn start(case: &Case, part: Part, carrier: Carrier) -> Peer {
        let descriptor = match &carrier {
            Carrier::Stream(stream) => stream.as_raw_fd(),
            other => {
                let region = other.region().expect("it is not a stream");
                region.file().expect("it crosses processes").as_raw_fd()
            }
        };
        let shape = &case.shape;
        let (part, count) = match part {
            Part::Write(count) => ("write", count),
            Part::Read => ("read", 0),
            Part::Hold => ("hold", 0),
            Part::Claim => ("claim", 0),
        };
        let mut command = Command::new(env::current_exe().expect("our own path"));
        command.args(["child::plays_its_part", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(
            VARIABLE,
            format!(
                "{part} {count} {} {} {} {} {} {descriptor} {}",
                case.row.transport.word(),
                shape.sync.word(),
                shape.delivery.word(),
                shape.wait.word(),
                shape.message_size,
                tunings().position(|tuning| tuning == shape.tuning).expect("one of these"),
            ),
        );
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        keep_open(&mut command, vec![descriptor]);
        let mut child = command.spawn().expect("a child");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Peer { child, output }
    }

    /// Waits until the child has attached.
    pub(super) fn attached(&mut self) {
        let mut line = String::new();
        while !line.ends_with("attached\n") {
            assert_ne!(self.output.read_line(&mut line).expect("its output"), 0, "it died: {line}");
        }
    }

    /// Waits until the child has stopped itself.
    pub(super) fn stopped(&self) {
        let pid = Some(Pid::from_child(&self.child));
        let (_, status) =
            waitpid(pid, WaitOptions::UNTRACED).expect("it is ours").expect("it was waited for");
        assert!(status.stopped(), "it ended before it stopped");
    }

    /// Kills the child and proves that this, and nothing else, was its end.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("it was not waited for");
        let status = self.child.wait().expect("it is ours");
        assert_eq!(
            status.signal(),
            Some(Signal::KILL.as_raw()),
            "it ended before the kill: {status}"
        );
    }

    /// Waits for the child to end by itself, in order.
    pub(super) fn join(mut self) {
        let status = self.child.wait().expect("it is ours");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // After a failed test; an error says that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The entry of `table` with this word.
fn by_word<T: Copy>(table: &[(T, &str)], word: &str) -> T {
    table.iter().find(|row| row.1 == word).expect("a word of the plan").0
}

/// Plays the part if there is one; as a test it passes at once.
#[test]
fn plays_its_part() {
    let Ok(told) = env::var(VARIABLE) else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let row = TRANSPORTS.iter().find(|row| row.transport.word() == words[2]).expect("a transport");
    let mut case = super::cases(by_word(Delivery::ALL, words[4]), Wait::Park, 1)
        .find(|case| case.row.transport == row.transport)
        .expect("a row");
    case.shape.sync = by_word(Sync::ALL, words[3]);
    case.shape.wait = by_word(Wait::ALL, words[5]);
    case.shape.message_size = words[6].parse().expect("a size");
    let tuning = tunings().nth(words[8].parse().expect("a place")).expect("one of these");
    case.shape.tuning = tuning;
    let file = adopt(words[7].parse().expect("a descriptor")).expect("left open for us");
    let carrier = match case.is_region() {
        true => Carrier::Region(Region::map(file).expect("a region")),
        false => Carrier::Stream(file),
    };
    match words[0] {
        "write" => write(&case, carrier, words[1].parse().expect("a count")),
        "read" => read(&case, carrier),
        "claim" => claim(&case, carrier),
        _ => hold(&case, carrier),
    }
    exit(0);
}

fn say_attached() {
    stdout().write_all(b"\nattached\n").expect("the parent listens");
}

fn write(case: &Case, carrier: Carrier, count: u32) {
    let mut sender = case.sender(carrier);
    say_attached();
    for number in 0..count {
        send(case, &mut *sender, number);
    }
    sender.close();
}

fn read(case: &Case, carrier: Carrier) {
    let mut receiver = case.receiver(carrier);
    say_attached();
    let mut message = case.buffer();
    let mut next = 0;
    while let Received::New { lost } = receive(case, &mut *receiver, &mut message) {
        let found = number(&message, next + lost).expect("a whole message");
        assert!(found == next + lost || case.shape.delivery == Delivery::Latest && found >= next);
        next = found + 1;
    }
}

fn hold(case: &Case, carrier: Carrier) -> ! {
    let region = region(&carrier).clone();
    let mut sender = case.sender(carrier);
    for number in 0..HELD_AFTER {
        send(case, &mut *sender, number);
    }
    assert_eq!(mutex_of(region.clone()).lock(limit()), Locked::Clean);
    // With four slots in two pairs, the second pair is written until the reader is in it.
    let next = if case.shape.delivery == Delivery::Latest { 2 } else { HELD_AFTER as usize };
    // The slots of messages this small take a line each, from byte 640 on
    // (`crates/link/src/lib.rs`).
    let (slot, size) = (640 + next * 128, case.shape.message_size as usize);
    for word in &region.words()[slot / 4..][..size / 4] {
        word.store(0xa5a5_a5a5, Ordering::Relaxed);
    }
    stop()
}

fn claim(case: &Case, carrier: Carrier) -> ! {
    let mut sender = case.sender(carrier);
    for number in 0..HELD_AFTER {
        send_in_place(case, &mut *sender, number);
    }
    let mut claim = sender.claim().expect("no fault").expect("there is room");
    let half = claim.len() / 2;
    claim.write_at(0, &vec![0xa5; half]);
    stop()
}

fn stop() -> ! {
    kill_process(getpid(), Signal::STOP).expect("we may stop ourselves");
    // The signal may be taken by another thread first: this one must not go on meanwhile.
    loop {
        std::thread::park();
    }
}
