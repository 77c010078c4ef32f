//! Whole graphs in processes of their own: they finish, they fail in every way, they are killed;
//! each time the motor stops, the reason is known, and nothing is left behind.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

/// Tests, each by the name of its function.
macro_rules! tests {
    ($($test:path),* $(,)?) => { &[$((stringify!($test), $test as fn())),*] };
}

mod counted;
mod faults;
mod flows;
mod free;
mod guests;
mod hold;
mod hostile_services;
mod kinds;
mod links;
mod logged;
mod placed;
mod printed;
mod quiet;
mod service_kinds;
mod services;
mod stage;
mod supervisor_killed;
mod watch;
mod watcher;

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use rustix::process::{Pid, Signal, kill_process};
use sinew_agent::{BoardRow, image};
use sinew_control::Spec;
use sinew_control::place;
use sinew_core::board::FaultAt;
use sinew_core::sys::Counting;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_core::{Cause, privileges};
use sinew_runtime::domain;
use sinew_runtime::run::{DOMAIN_COMMAND, Outcome, Run, RunRequest};
use sinew_spec::plan::{Board, Plan, TargetMachine};
use sinew_spec::{GuestImage, SpecSource, compile, images_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A run that takes longer than this hangs.
const HANGS_AFTER: Duration = Duration::from_secs(20);

/// A test and its name.
type Test = (&'static str, fn());

/// All tests of services and their supervisor.
const SERVICES: &[&[Test]] = &[
    services::TESTS,
    hostile_services::TESTS,
    supervisor_killed::TESTS,
    placed::TESTS,
    hold::TESTS,
    watch::TESTS,
    flows::TESTS,
    guests::TESTS,
];

/// All tests of realtime domains; `cargo test` filters them by name as usual.
const TESTS: &[Test] = tests![
    a_graph_whose_job_is_done_finishes,
    a_graph_that_is_asked_to_stop_stops_in_order,
    every_failure_stops_the_motor_and_is_reported,
    a_killed_controller_leaves_a_motor_that_stops,
    a_killed_plant_stops_the_controller,
    a_domain_that_ends_by_itself_is_a_fault,
    every_transport_carries_commands_and_feedback,
    threads_of_one_domain_form_a_pipeline,
    one_cpu_is_enough,
    faults::a_fused_motor_stops_after_a_fault_beside_it,
    faults::records_say_what_an_actuator_holds,
    faults::a_failure_outside_of_a_cycle_is_reported,
    faults::a_fault_stops_what_other_threads_command,
    faults::a_thread_whose_peer_is_silent_leaves_its_cpu,
    faults::a_slow_domain_has_time_to_stop,
    faults::a_limit_of_locked_memory_is_no_fault,
    faults::a_start_that_takes_long_can_be_stopped,
    faults::a_start_that_fails_leaves_no_process,
    faults::a_motor_whose_link_lies_comes_to_rest,
    links::each_fused_motor_has_its_own_safe_value,
    links::each_motor_of_a_broadcast_has_its_own_safe_value,
    links::readers_of_a_broadcast_may_share_domains,
    links::a_fused_delay_is_one_cycle,
    links::a_full_queue_does_what_its_link_says,
    free::a_free_run_has_every_cycle_on_record,
    free::threads_and_one_cpu_run_freely_too,
    free::a_free_run_without_feedback_is_a_fault,
    free::a_free_run_can_be_stopped,
    free::a_free_run_of_more_than_a_trace_holds_is_refused,
    quiet::a_cycle_allocates_nothing,
    quiet::an_allocation_in_a_cycle_is_counted_for_its_node,
    printed::what_a_cyclic_node_prints_is_an_event,
    printed::what_was_printed_cannot_be_taken_back,
    printed::a_flood_of_output_is_cut_and_counted,
    logged::what_a_cyclic_node_logs_is_an_event,
    logged::a_line_names_its_node_among_those_of_its_thread,
    logged::what_was_logged_before_a_fault_stands_before_it,
    logged::a_flood_of_lines_is_cut_and_counted,
    logged::a_region_of_lines_that_is_overwritten_harms_nobody,
    counted::a_run_that_is_looked_at_seldom_loses_no_record,
    counted::cycles_are_counted_though_their_records_are_lost,
    counted::outputs_that_were_safe_before_say_so,
    counted::a_plant_that_is_gone_shows_no_safe_outputs,
    quiet::a_cycle_finds_its_memory,
    quiet::a_cycle_makes_no_system_call,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(descriptor.parse().expect("a number"), &kinds::all());
    }
    if let Ok(failure) = env::var(quiet::TRACED) {
        quiet::run_to_be_traced(&failure);
        return ExitCode::SUCCESS;
    }
    if let Ok(text) = env::var(supervisor_killed::SUPERVISOR) {
        supervisor_killed::run_to_be_killed(&text);
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let (mut passed, mut failed) = (0, 0);
    let tests = TESTS.iter().chain(SERVICES.iter().copied().flatten());
    for (name, test) in tests.filter(|(name, _)| chosen(name)) {
        let before = leftovers();
        let good = catch_unwind(|| {
            test();
            assert_eq!(leftovers(), before, "processes, descriptors or files are left");
        });
        println!("test {name} ... {}", if good.is_ok() { "ok" } else { "FAILED" });
        *(if good.is_ok() { &mut passed } else { &mut failed }) += 1;
    }
    println!("\n{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// What a run must not leave behind: open descriptors, mapped regions, children, processes of its
/// domains, files in /dev/shm, control sockets, cgroups.
fn leftovers() -> [usize; 7] {
    let own = process::id();
    let names = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let children = fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let ours = [format!("{own}.sock"), format!("{own}-")];
    let is_ours = |name: &String| ours.iter().any(|start| name.starts_with(start));
    let sockets = place::folders().iter().flat_map(|folder| names(folder)).filter(is_ours).count();
    [
        names(Path::new("/proc/self/fd")).len(),
        maps.lines().filter(|line| line.contains("memfd:sinew-")).count(),
        children.unwrap_or_default().split_whitespace().count(),
        stage::marked(&format!("test-{own}-")).len(),
        names(Path::new("/dev/shm")).iter().filter(|name| !is_of_browser(name)).count(),
        sockets,
        cgroups(Path::new("/sys/fs/cgroup"), &format!("test-{own}-")),
    ]
}

/// Whether a file in /dev/shm belongs to a browser that somebody uses meanwhile.
fn is_of_browser(name: &str) -> bool {
    [".org.chromium.", ".com.google.Chrome."].iter().any(|start| name.starts_with(start))
}

/// Cgroups below `folder` with these words in their names.
fn cgroups(folder: &Path, words: &str) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    let count = |entry: fs::DirEntry| {
        let is_it = entry.file_name().to_string_lossy().contains(words);
        usize::from(is_it) + cgroups(&entry.path(), words)
    };
    folders.map(count).sum()
}

/// What is known of a run after its end.
struct Seen {
    run: Run,
    outcome: Outcome,
    faults: Vec<(usize, FaultAt)>,
    records: BTreeMap<ThreadId, Vec<Record>>,
}

impl Seen {
    fn of(&self, domain: usize, thread: usize) -> &[Record] {
        self.records.get(&ThreadId { domain, thread }).map_or(&[], Vec::as_slice)
    }

    /// Velocity, whether it was a safe value, and number of the command, of a lone motor.
    fn motor(&self, domain: usize) -> Vec<(f64, bool, u64)> {
        let row = |record: &Record| {
            let signals: Vec<f64> = record.signals().collect();
            (signals[0], signals[1] == 1.0, signals[2] as u64)
        };
        self.of(domain, 0).iter().map(row).collect()
    }

    fn fault(&self) -> &FaultAt {
        &self.faults.first().expect("a fault").1
    }
}

/// The request for a run of a graph on all CPUs.
fn request(text: &str) -> RunRequest {
    request_on(text, &privileges::cpus().expect("affinity"))
}

fn request_on(text: &str, cpus: &[u32]) -> RunRequest {
    let machine = TargetMachine::of(cpus.to_vec());
    let (images, plan) = compiled(text, &machine);
    let plan = plan.unwrap_or_else(|errors| panic!("{errors}"));
    let (file, text, base) = ("test.yaml".into(), text.into(), PathBuf::from("."));
    RunRequest::new(Spec { file, text, base, images, machine, ..Spec::default() }, plan)
}

/// Why a graph is refused.
fn refused(text: &str) -> String {
    // Not `expect_err`: it prints the whole plan.
    match compiled(text, &TargetMachine::of(vec![0, 1])).1 {
        Ok(_) => panic!("it is to be refused:\n{text}"),
        Err(errors) => errors,
    }
}

fn compiled(text: &str, machine: &TargetMachine) -> (Vec<GuestImage>, Result<Plan, String>) {
    let read = |(image, board): (String, Board)| {
        let table = image::read(Path::new(&image), BoardRow::of(board));
        GuestImage { image, board, table: table.map(|image| image.table().to_vec()) }
    };
    let images: Vec<_> = images_of(text).into_iter().map(read).collect();
    let source = SpecSource { images: &images, ..SpecSource::of("test.yaml", text) };
    let plan = compile(&source, &kinds::all().catalogue(), machine).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("\n")
    });
    (images, plan)
}

/// Runs a graph to its end. `each_poll` sees the run and how many records of domain 0 there are.
fn run_with(text: &str, each_poll: impl FnMut(&mut Run, usize)) -> Seen {
    watch(request(text), Duration::from_millis(5), each_poll)
}

/// Runs a graph, and stops it once there are more than `records` records of domain 0.
fn run_past(text: &str, records: usize) -> Seen {
    run_with(text, |run, so_far| {
        if so_far > records {
            run.stop();
        }
    })
}

/// Runs two domains with links with these options, one of which gets a signal after fifty cycles.
fn run_and_signal(link: &str, domain: usize, name: Signal) -> Seen {
    let mut is_sent = false;
    run_with(&two_domains("", link), |run, cycles| {
        if cycles > 50 && !is_sent {
            is_sent = true;
            signal(name, run.processes()[domain]);
        }
    })
}

/// The same, with `pause` between two looks.
fn watch(request: RunRequest, pause: Duration, mut each_poll: impl FnMut(&mut Run, usize)) -> Seen {
    let mut run = Run::start(request).expect("the run starts");
    let mut records: BTreeMap<ThreadId, Vec<Record>> = BTreeMap::new();
    let started = Instant::now();
    let mut cycles = 0;
    while run.poll(pause, &mut |id, record| {
        cycles += usize::from(id.domain == 0);
        records.entry(id).or_default().push(record.clone());
    }) {
        each_poll(&mut run, cycles);
        assert!(started.elapsed() < HANGS_AFTER, "the run does not end");
    }
    assert_eq!(run.records_lost(), 0);
    Seen { outcome: run.outcome(), faults: run.faults(), run, records }
}

fn run(text: &str) -> Seen {
    run_with(text, |_, _| ())
}

/// A motor after a source, both on one thread. Its records hold the signal of the source before the
/// three of the motor.
fn fused(policy: &str, source: &str) -> String {
    format!(
        "name: test
domains: {{control: {{realtime: {{period: 2ms, overrun: {{policy: {policy}}}}}}}}}
nodes:
  - {{kind: source, {source} ports: {{out: [{{name: motor, port: in}}]}}}}
  - {{kind: motor, coast_cycles: 5, safe: {{in: {{value: halt, after: 10}}}}}}
"
    )
}

/// A controller and a motor in domains of their own. Periods are long enough for a busy machine.
fn two_domains(source: &str, link: &str) -> String {
    format!(
        "name: test
domains:
  control: {{realtime: {{period: 2ms, overrun: {{policy: stop, consecutive_max: 200}}}}}}
  plant: {{realtime: {{trigger: input, overrun: {{policy: count}}}}}}
nodes:
  - {{kind: source, domain: control, {source} ports: {{out: [{{name: motor, port: in, {link}}}]}}}}
  - kind: motor
    domain: plant
    coast_cycles: 5
    safe: {{in: {{value: halt, after: 10}}}}
    ports: {{out: [{{name: source, port: feedback, delay: 1, {link}}}]}}
"
    )
}

/// The motor ended with safe values, and stood still at the end.
fn assert_stopped(motor: &[(f64, bool, u64)]) {
    assert!(motor.iter().any(|&(velocity, ..)| velocity == 1.0), "it never ran: {motor:?}");
    let last = motor.last().expect("it ran");
    assert_eq!((last.0, last.1), (0.0, true), "it does not end with a safe value");
}

fn a_graph_whose_job_is_done_finishes() {
    let seen = run(&two_domains("finish_at: 100,", "delivery: latest"));
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let control = seen.of(0, 0);
    assert!(control.iter().enumerate().all(|(at, record)| record.number() == at as u64));
    assert!(control.len() > 100 && control.last().expect("records").is_stopping());
    assert_stopped(&seen.motor(1));
}

fn a_graph_that_is_asked_to_stop_stops_in_order() {
    let seen = run_past(&two_domains("", "delivery: latest"), 50);
    assert_eq!(seen.outcome, Outcome::Stopped, "{:?}", seen.faults);
    let last = |domain| seen.of(domain, 0).last().expect("records").start_ns();
    assert!(last(0) < last(1), "the motor must outlive who commands it");
    assert_stopped(&seen.motor(1));
}

fn every_failure_stops_the_motor_and_is_reported() {
    let rows = [
        ("error", Cause::Error, "told to fail in cycle 50"),
        ("panic", Cause::Panic, "told to panic"),
        ("nan", Cause::NotFinite, "port 'out' is not finite"),
        ("nan_signal", Cause::NotFinite, "signal 'feedback_number' is not finite"),
        ("slow", Cause::Overrun, "in a row"),
        ("stall", Cause::Overrun, "periods lost before this cycle"),
        ("abort", Cause::Died, "ended by signal 6"),
        ("hang", Cause::Died, "ran no cycle for 2000 ms: a node hangs, or the process was"),
    ];
    for (failure, cause, words) in rows {
        let source = format!("fail_at: 50, failure: {failure},");
        let mut text = two_domains(&source, "delivery: latest");
        if cause == Cause::Overrun {
            text = text.replace("200", "3");
        }
        let seen = run(&text);
        assert_eq!(seen.outcome, Outcome::Faulted, "{failure}");
        let (fault, text) = (seen.fault(), seen.fault().fault.text());
        assert_eq!((fault.fault.cause, seen.faults[0].0), (cause, 0), "{failure}: {text}");
        assert!(text.contains(words), "{failure}: {text}");
        if !matches!(cause, Cause::Died | Cause::Overrun) {
            assert_eq!((fault.node, fault.cycle), (Some(0), Some(50)), "{failure}");
        }
        assert_stopped(&seen.motor(1));
        // A value that is not a number must not even reach the motor.
        assert!(seen.motor(1).iter().all(|row| row.0.is_finite()));
    }
}

fn a_killed_controller_leaves_a_motor_that_stops() {
    for link in
        ["delivery: latest", "delivery: queue, capacity: 256", "delivery: latest, sync: mutex"]
    {
        let seen = run_and_signal(link, 0, Signal::KILL);
        assert_eq!(seen.fault().fault.text(), "its process was ended by signal 9", "{link}");
        let motor = seen.motor(1);
        assert_stopped(&motor);
        let last = seen.of(0, 0).last().expect("records").number();
        assert!(motor.iter().all(|row| row.2 <= last + 1), "a command that was never given");
    }
}

fn a_killed_plant_stops_the_controller() {
    for link in ["delivery: latest", "transport: pipe, delivery: latest"] {
        let seen = run_and_signal(link, 1, Signal::KILL);
        assert_eq!(seen.outcome, Outcome::Faulted);
        let words = "its process was ended by signal 9";
        assert!(seen.faults.iter().any(|(domain, at)| *domain == 1 && at.fault.text() == words));
    }
}

fn a_domain_that_ends_by_itself_is_a_fault() {
    let seen = run_and_signal("delivery: latest", 0, Signal::TERM);
    assert_eq!(seen.fault().fault.text(), "ended without being told to");
    assert_stopped(&seen.motor(1));
}

fn signal(signal: Signal, process: u32) {
    let process = Pid::from_raw(process as i32).expect("a process");
    kill_process(process, signal).expect("the signal lands");
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < HANGS_AFTER, "waited in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}

fn every_transport_carries_commands_and_feedback() {
    let rows = [
        "transport: shared_memory, delivery: latest",
        "transport: shared_memory, delivery: queue, wait: park, capacity: 256",
        "transport: shared_memory, sync: mutex, wait: park, capacity: 256",
        "transport: pipe, wait: park",
        "transport: unix, wait: spin_then_park",
        "transport: tcp, delivery: latest, wait: yield",
    ];
    for link in rows {
        let seen = run(&two_domains("finish_at: 100,", link));
        assert_eq!(seen.outcome, Outcome::Finished, "{link}: {:?}", seen.faults);
        assert_stopped(&seen.motor(1));
        let answered = |record: &&Record| record.signals().next().expect("a signal") > 90.0;
        assert!(seen.of(0, 0).iter().any(|record| answered(&record)), "{link}: no feedback");
    }
}

fn threads_of_one_domain_form_a_pipeline() {
    for link in
        ["sync: lock_free, wait: park, capacity: 256", "sync: mutex, wait: park, capacity: 256"]
    {
        let text = format!(
            "name: test
domains:
  control:
    realtime: {{period: 2ms, overrun: {{policy: stop, consecutive_max: 200}}}}
    threads: [{{nodes: [source]}}, {{nodes: [relay, motor]}}]
nodes:
  - {{kind: source, finish_at: 100, ports: {{out: [{{name: relay, port: in, {link}}}]}}}}
  - {{kind: relay, ports: {{out: [{{name: motor, port: in}}]}}}}
  - kind: motor
    safe: {{in: {{value: halt, after: 10}}}}
    ports: {{out: [{{name: source, port: feedback, delay: 1, {link}}}]}}
"
        );
        let seen = run(&text);
        assert_eq!(seen.outcome, Outcome::Finished, "{link}: {:?}", seen.faults);
        let answered = |record: &Record| record.signals().next().expect("a signal") > 90.0;
        assert!(seen.of(0, 0).iter().any(answered), "{link}: no feedback");
        let last = seen.of(0, 1).last().expect("records");
        assert_eq!(last.signals().next(), Some(0.0), "{link}");
    }
}

fn one_cpu_is_enough() {
    let cpu = privileges::cpus().expect("affinity")[0];
    let text = two_domains("finish_at: 50,", "delivery: latest, wait: spin");
    let seen = watch(request_on(&text, &[cpu]), Duration::from_millis(5), |_, _| ());
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    assert_stopped(&seen.motor(1));
}
