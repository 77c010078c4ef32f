//! A supervisor that is killed, at each point of start and stop, whatever its services do: nothing
//! of the run is left, and the motor stands still.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, process};

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, getpid, set_child_subreaper, wait};
use sinew_control::status::{EventKind, Phase};
use sinew_core::Cause;
use sinew_runtime::run::Outcome;

use crate::stage::{Service, Stage, graph, marked};
use crate::{HANGS_AFTER, Test, await_that, signal};

pub(crate) const TESTS: &[Test] = tests![
    a_supervisor_killed_at_any_point_leaves_nothing,
    a_supervisor_killed_beside_a_held_core_leaves_nothing,
    no_domain_outlives_its_parent,
    no_service_outlives_a_killed_supervisor,
    many_kills_leave_nothing_and_never_a_motor_that_runs,
];

/// Set for a second start of this program, which is to be killed: the spec that it runs.
pub(crate) const SUPERVISOR: &str = "SINEW_TEST_SUPERVISOR";
/// How many kills a test makes in a row; 300 takes a minute.
const KILLS: &str = "SINEW_TEST_KILLS";
const KILLS_USUAL: u64 = 40;

/// Runs a graph for a while and stops it; a graph that holds is halted and reset before that.
/// Prints each event, and goes on when it is told to.
pub(crate) fn run_to_be_killed(text: &str) {
    let mut stage = Stage::start(text);
    let mut told = 0;
    loop {
        let lives = stage.look();
        let story = stage.story();
        for line in &story[told..] {
            writeln!(stdout(), "{line}").expect("the test reads it");
            stdin().read_exact(&mut [0]).expect("the test says when to go on");
        }
        told = story.len();
        let is_first = stage.run.plan().hold && stage.run.resets() == 0;
        match stage.cycles.len() > 30 {
            true if is_first => stage.run.halt("told to"),
            true => stage.run.stop(),
            false => {}
        }
        if is_first && stage.run.phase() == Phase::Held {
            stage.cycles.clear();
            stage.run.reset().expect("it is held");
        }
        if !lives {
            return;
        }
    }
}

/// A supervisor in a process of its own.
struct Supervisor {
    child: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
    /// What the motor did last.
    witness: PathBuf,
}

impl Supervisor {
    fn of(text: &str) -> Supervisor {
        let witness = env::temp_dir().join(format!("sinew-witness-{}", process::id()));
        fs::write(&witness, "").expect("a file can be made");
        let with_witness = format!("kind: motor, witness: {},", witness.display());
        let text = text.replace("kind: motor,", &with_witness);
        let mut child = Command::new(env::current_exe().expect("this program"))
            .env(SUPERVISOR, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the supervisor starts");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let told = child.stdin.take().expect("a pipe");
        Supervisor { child, said, told, witness }
    }

    /// The next event; none if there is no further one.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it speaks");
        (!line.is_empty()).then_some(line)
    }

    fn go_on(&mut self) {
        self.told.write_all(&[0]).expect("it hears");
    }

    /// Reads until an event with these words.
    fn until(&mut self, words: &str) {
        while !self.next().unwrap_or_else(|| panic!("no '{words}'")).contains(words) {
            self.go_on();
        }
    }

    /// The processes of its domains, and what these have started.
    fn all(&self) -> Vec<u32> {
        marked(&format!("test-{}-", self.child.id()))
    }

    /// What the motor did last; nothing before its first cycle.
    fn last_word(&self) -> String {
        let word = fs::read_to_string(&self.witness).expect("the motor's word");
        word.trim().to_owned()
    }

    /// Kills it, and waits until nothing is left. Returns whether the motor ever ran.
    fn kill(mut self, at: &str) -> bool {
        self.child.kill().expect("the kill lands");
        let status = self.child.wait().expect("it was ours");
        assert!(!status.success(), "{at}: it ended by itself");
        let killed = Instant::now();
        while !self.all().is_empty() {
            assert!(killed.elapsed() < HANGS_AFTER, "{at}: {} are left", names(&self.all()));
            sleep(Duration::from_millis(5));
        }
        let last = self.last_word();
        fs::remove_file(&self.witness).expect("ours");
        assert!(last.is_empty() || last == "0 Safe", "{at}: the motor's last word is '{last}'");
        !last.is_empty()
    }
}

/// What these processes are, to find out why they are left.
fn names(processes: &[u32]) -> String {
    let name = |process: &u32| {
        let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.replace('\0', " ")
    };
    processes.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn a_supervisor_killed_at_any_point_leaves_nothing() {
    let services = ["one", "two"].map(|name| Service { name, ..Service::ALONE });
    kill_at_each_point(&graph(true, &services), 15);
}

fn a_supervisor_killed_beside_a_held_core_leaves_nothing() {
    // Its core is halted, held, and starts again.
    let services = [Service { name: "one", ..Service::ALONE }];
    kill_at_each_point(&format!("hold: true\n{}", graph(true, &services)), 20);
}

/// Kills at each point; there must be more than `points` of them.
fn kill_at_each_point(text: &str, points: u32) {
    let (mut lived, mut motor_ran) = (0, 0);
    for point in 1.. {
        let mut supervisor = Supervisor::of(text);
        let reached = (1..=point).find_map(|event| {
            let line = supervisor.next();
            if line.is_none() || event == point {
                return Some(line);
            }
            supervisor.go_on();
            None
        });
        let Some(at) = reached.flatten() else {
            // There is no such point: the run has ended in order.
            assert!(supervisor.child.wait().expect("it was ours").success());
            fs::remove_file(&supervisor.witness).expect("ours");
            assert!(point > points, "only {point} points of start and stop");
            break;
        };
        lived += usize::from(!supervisor.all().is_empty());
        motor_ran += usize::from(supervisor.kill(at.trim()));
    }
    assert!(lived >= 12 && motor_ran >= 3, "{lived} kills found domains, {motor_ran} a motor");
}

fn no_domain_outlives_its_parent() {
    for (source, at, last) in [
        ("", "core ready: runs", "1 New"),
        ("fail_at: 50, failure: hang,", "core ready: runs", "0 Safe"),
        ("failure: hang_in_make,", "core started", ""),
    ] {
        let text = graph(true, &[]).replace("kind: source,", &format!("kind: source, {source}"));
        let mut supervisor = Supervisor::of(&text);
        supervisor.until(at);
        await_that("two domains", || supervisor.all().len() == 2);
        await_that(last, || supervisor.last_word() == last);
        supervisor.kill(source);
    }
}

fn no_service_outlives_a_killed_supervisor() {
    let running = "core ready: runs";
    let rows = [
        ("mood: deaf", "servant stopping", "core, its heirs", 1),
        ("mood: stop", running, "a stopped process", 3),
        ("mood: kill, after: 1", "servant restarting", "the others", 2),
        // The service, a shell, and what the shell has started: one of them in a session of its
        // own.
        ("mood: fork", running, "its children", 6),
        ("mood: hang_in_make", "servant started", "its process", 3),
        ("mood: hang_in_start", "servant started", "its process", 3),
        ("mood: fork_in_start", "servant started", "its children", 6),
    ];
    // If the new parent is of the same session, the kernel does not continue stopped processes.
    set_child_subreaper(Some(getpid())).expect("everyone may");
    for (node, at, what, processes) in rows {
        let mut supervisor = Supervisor::of(&graph(true, &[Service { node, ..Service::ALONE }]));
        supervisor.until(at);
        await_that(what, || supervisor.all().len() == processes);
        if node == "mood: stop" {
            await_that(what, || supervisor.all().into_iter().any(is_stopped));
        }
        supervisor.kill(node);
    }
    set_child_subreaper(None).expect("everyone may");
    await_that("the orphans", || wait(WaitOptions::NOHANG).err() == Some(Errno::CHILD));
}

fn many_kills_leave_nothing_and_never_a_motor_that_runs() {
    let kills = env::var(KILLS).map_or(KILLS_USUAL, |text| text.parse().expect("a number"));
    let services = [
        Service { name: "writer", node: "pause_us: 0", to: "first", ..Service::ALONE },
        Service {
            name: "reader",
            node: "passes_on: true",
            to: "second",
            from: "delivery: broadcast, capacity: 16",
            ..Service::ALONE
        },
        Service { name: "parent", node: "mood: fork, after: 1", ..Service::ALONE },
    ];
    let text = graph(true, &services);
    let (mut random, mut cores) = (fastrand::Rng::with_seed(0x5eed), 0);
    let mut stage = Stage::start(&text);
    for kill in 1..=kills {
        (0..random.u64(..8)).for_each(|_| assert!(stage.look(), "{:#?}", stage.story()));
        // One in sixteen hits the core.
        let victim = match random.u64(..16) {
            0 => ["core", "plant"][random.usize(..2)],
            _ => ["writer", "reader", "parent"][random.usize(..3)],
        };
        let process = stage.process(victim);
        let faults = stage.texts(victim, EventKind::Faulted).len();
        signal(Signal::KILL, process);
        if !["core", "plant"].contains(&victim) {
            stage.until_event(victim, EventKind::Faulted, faults + 1);
            let reason = *stage.texts(victim, EventKind::Faulted).last().expect("it has died");
            assert!(reason.starts_with("its process was ended by signal 9"), "{kill}: {reason}");
            continue;
        }
        cores += 1;
        let motor_ran = stage.motor.is_some();
        assert_eq!(stage.end(), Outcome::Faulted, "kill {kill} of {victim}");
        assert!(stage.run.faults().iter().all(|(_, at)| at.fault.cause == Cause::Died));
        if victim == "core" && motor_ran {
            assert_eq!(stage.motor, Some((0.0, true)), "kill {kill}: the motor runs on");
        }
        stage.assert_in_order(0);
        stage = Stage::start(&text);
    }
    stage.run_on(20);
    stage.stop_unharmed();
    stage.assert_in_order(0);
    println!("{kills} kills, {cores} of them of the core");
}

fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}
