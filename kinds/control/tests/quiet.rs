//! Makes every kind from its example. Its updates call neither the kernel nor the allocator.

#![expect(clippy::print_stdout, reason = "a test says so where it cannot look")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use sinew_control_kinds::NODES;
use sinew_core::catalogue::{Direction, Form};
use sinew_core::{Message, NodeEntry, NodeFixture, Parameters, Real};
use sinew_spec::alone;

/// Set when this program starts itself again under strace: `updates`, or `yields` to prove that a
/// call is noticed.
const TRACED: &str = "SINEW_TEST_TRACED";
const UPDATES: u32 = 1000;
const PERIOD: Duration = Duration::from_millis(1);
/// Files that do not exist. The calls between the looks at these two are the calls of the updates.
const BEGIN: &str = "/no/begin";
const END: &str = "/no/end";

/// A node of the kind, with the values of its example.
fn fixture(row: &NodeEntry) -> NodeFixture {
    let rows = row.kind.parameters.iter().filter(|row| !row.example.is_empty());
    let given: Vec<_> = rows.map(|row| (row.name, row.example)).collect();
    let graph = "messages: {axis: {position_rad: f64, is_enabled: bool}}";
    let node = alone(row.kind, &given, graph).unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters::alone(node.kind, &node.values, PERIOD);
    NodeFixture::new(&NodeEntry { kind: node.kind, ..*row }, &parameters).expect("it is made")
}

/// Updates nodes of all kinds with numbers at their inputs.
fn update(nodes: &mut [(&'static NodeEntry, NodeFixture)], mut also: impl FnMut()) {
    for number in 0..UPDATES {
        for (row, node) in nodes.iter_mut() {
            node.update().unwrap_or_else(|fault| panic!("{} at {number}: {fault}", row.kind.name));
            also();
        }
    }
}

fn nodes() -> Vec<(&'static NodeEntry, NodeFixture)> {
    let made = |row: &'static NodeEntry| {
        let mut node = fixture(row);
        for (port, it) in row.kind.ports.iter().enumerate() {
            let is_number = it.message.hash == Real::TYPE.hash;
            if it.direction == Direction::In && is_number && it.form == Form::One {
                node.put(port, &Real { value: 0.25 });
            }
        }
        (row, node)
    };
    NODES.iter().map(made).collect()
}

#[test]
fn every_kind_is_made_by_its_example_and_updates_without_allocating() {
    let mut nodes = nodes();
    assert!(nodes.len() > 20, "{} kinds", nodes.len());
    let measured = allocation_counter::measure(|| update(&mut nodes, || ()));
    assert_eq!(measured.count_total, 0);
    let noticed = allocation_counter::measure(|| {
        update(&mut nodes, || drop(std::hint::black_box(Box::new(7))));
    });
    assert_eq!(noticed.count_total, u64::from(UPDATES) * nodes.len() as u64);
}

#[test]
fn no_update_calls_the_kernel() {
    if let Ok(what) = env::var(TRACED) {
        let mut nodes = nodes();
        let _ = fs::metadata(BEGIN);
        match what.as_str() {
            "yields" => update(&mut nodes, std::thread::yield_now),
            _ => update(&mut nodes, || ()),
        }
        let _ = fs::metadata(END);
        return;
    }
    if Command::new("strace").arg("--version").output().is_err() {
        assert!(env::var("CI").is_err(), "CI must have strace");
        return println!("skipped: it needs strace (package 'strace')");
    }
    assert_eq!(traced("updates"), Vec::<String>::new());
    let noticed = traced("yields");
    assert!(noticed.len() > 100 && noticed[0].contains("sched_yield"), "{noticed:?}");
}

/// The system calls of the updating thread between the two marks.
fn traced(what: &str) -> Vec<String> {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("strace-{what}"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg(env::current_exe().expect("this program"));
    strace.args(["--exact", "no_update_calls_the_kernel"]).env(TRACED, what);
    let output = strace.output().expect("strace starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read_to_string(&log).expect("strace wrote its log");
    let place = |path: &str| text.lines().position(|line| line.contains(path)).expect(path);
    let (begin, end) = (place(BEGIN), place(END));
    let of = |line: &str| line.split_once(' ').map(|(thread, _)| thread.to_owned());
    let thread = of(text.lines().nth(begin).expect("it is there"));
    let calls = text.lines().take(end).skip(begin + 1).filter(|line| of(line) == thread);
    calls.map(str::to_owned).collect()
}
