//! Specs that are refused. Each folder of `tests/graphs` has a `graph.yaml`, the files that it
//! names, and in `expected.txt` the output of `sinew check`. `SINEW_BLESS=1` writes the current
//! output; read the difference as a newcomer would.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::program::{Running, SINEW, arm, graph_in, ours, sinew};

/// The part of the answer about this machine.
const CPUS: &str = "this process may use: ";

#[test]
fn every_bad_graph_is_answered_as_written_down() {
    let mut cases: Vec<_> = fs::read_dir(ours("tests/graphs"))
        .expect("the folder of cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    assert!(cases.len() > 25, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let mut command = Command::new(SINEW);
        command.args(["check", "graph.yaml"]).current_dir(case);
        let answer = Running::start(command).answer();
        let text = without_cpus(&answer.err);
        let expected = case.join("expected.txt");
        if std::env::var_os("SINEW_BLESS").is_some() {
            fs::write(&expected, &text).expect("a place for the answer");
        }
        let as_expected = fs::read_to_string(&expected).is_ok_and(|expected| expected == text);
        if !as_expected || answer.status != Some(2) || !answer.out.is_empty() {
            let (case, status) = (case.display(), answer.status);
            writeln!(wrong, "{case}: {status:?} {}\n{text}", answer.out).expect("to a string");
        }
    }
    assert!(wrong.is_empty(), "not status 2, or not as in expected.txt:\n{wrong}");
}

fn without_cpus(text: &str) -> String {
    let line = |line: &str| match line.split_once(CPUS) {
        Some((before, _)) => format!("{before}{CPUS}(those of this machine)\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn run_refuses_what_check_refuses_with_the_same_words() {
    for case in ["unknown_kind", "waypoints_malformed", "path_out_of_reach"] {
        let graph = ours(&format!("tests/graphs/{case}/graph.yaml")).display().to_string();
        let checked = sinew(["check", &graph]).ended_with(2);
        let run = sinew(["run", &graph]).ended_with(2);
        assert_eq!((run.err, run.out), (checked.err, String::new()));
        let checked = sinew(["check", "--json", &graph]).ended_with(2).json();
        let run = sinew(["run", "--json", &graph]).ended_with(2).json();
        assert!(run["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{run}");
        assert_eq!(run, checked);
    }
}

#[test]
fn all_errors_stand_in_one_answer() {
    let text = fs::read_to_string(arm()).expect("the arm's spec");
    let text = text.replace("kind: ik", "kind: ikk").replace("deadline:", "dedline:");
    let graph = graph_in("all_errors", &text);
    let answer = sinew(["check", "--json", &graph]).ended_with(2).json();
    let help = |error: &serde_json::Value| error["help"].as_str().map(str::to_owned);
    let help: Vec<_> = answer["errors"].as_array().expect("a list").iter().map(help).collect();
    let wanted = |text: &str| help.contains(&Some(format!("did you mean '{text}'?")));
    assert!(wanted("ik") && wanted("deadline"), "{answer:#}");
}

/// Five nodes. `AT` is replaced by their number.
const FIVE: &str = "\
- {kind: timer, name: beginsAT, interval: 1h, ports: {out: [{name: asksAT, port: in}]}}
- kind: if
  name: asksAT
  when: packet.count > AT
  ports:
    out[0]: [{name: setsAT, port: in}]
    out[1]: [{name: countsAT, port: in}]
- kind: set
  name: setsAT
  values: {x: '{{ packet.count + 1 }}'}
  ports: {out: [{name: greetsAT, port: in}]}
- kind: snippet
  name: countsAT
  language: lua
  code: |
    local count = 1
    return packet.count + count
  ports: {out: [{name: greetsAT, port: in}]}
- {kind: snippet, name: greetsAT, language: text, code: 'hello {{ packet.name }}'}
";

/// Possible mistakes in them: a text, and what replaces it.
const MISTAKES: &[(&str, &str)] = &[
    ("packet.count > ", "packte.count > "),
    ("packet.count > ", "packet.count > > "),
    ("packet.count + 1 }}", "packet.count + }}"),
    ("{{ packet.name", "{{ paket.name"),
    ("return packet", "return pakcet"),
    ("return packet", "return = packet"),
    ("name: greets", "name: nobody"),
    ("port: in}]}}", "port: inn}]}}"),
    ("interval: 1h", "interval: never"),
    ("interval: 1h", "intervall: 1h, interval: 1h"),
];

/// 1000 flow nodes in groups of five, with a mistake in every fourth group. Also the wrong lines.
fn large() -> (String, Vec<u64>) {
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for at in 0..200 {
        let five = FIVE.replace("AT", &at.to_string());
        let (from, to) = MISTAKES[at / 4 % MISTAKES.len()];
        if at % 4 == 0 {
            let place = five.find(from).expect("something to get wrong");
            wrong.push((text.lines().count() + 1 + five[..place].matches('\n').count()) as u64);
            text += &five.replacen(from, to, 1);
        } else {
            text += &five;
        }
    }
    (text, wrong)
}

#[test]
fn all_fifty_mistakes_among_a_thousand_nodes_stand_in_one_answer() {
    let (text, wrong) = large();
    assert_eq!((text.matches("kind:").count(), wrong.len()), (1000, 50));
    let graph = graph_in("thousand_nodes", &text);
    let answer = sinew(["check", "--json", &graph]).ended_with(2).json();
    let errors = answer["errors"].as_array().expect("a list").iter();
    let lines: Vec<_> = errors.map(|error| error["line"].as_u64().expect("a line")).collect();
    assert_eq!(lines, wrong, "{answer:#}");
}

#[test]
fn what_kinds_find_stands_beside_what_the_compiler_finds_and_nothing_follows() {
    let text = "
name: parts
domains: {a: {}, b: {user: nobody_of_that_name}}
nodes:
  - {kind: timer, name: begins, domain: a, interval: 1h, ports: {out: [{name: asks, port: in}]}}
  - {kind: store, name: faulty, domain: a, entries_max: many}
  - {kind: stroe, name: misspelt, domain: a}
  - {kind: store, name: homeless, domain: c}
  - {kind: sql, name: unreachable, domain: a, database: 'mysql://x'}
  - {kind: topic, name: loose, domain: a, path: x}
  - kind: state
    name: asks
    domain: a
    store: faulty
    key: packet.a
    ports: {out: [{name: b1, port: in}]}
  - kind: state
    name: b1
    domain: a
    store: misspelt
    key: packet.a
    ports: {out: [{name: b2, port: in}]}
  - kind: state
    name: b2
    domain: a
    store: homeless
    key: packet.a
    ports: {out: [{name: b3, port: in}]}
  - kind: state
    name: b3
    domain: d
    store: faulty
    key: packte.a
    ports: {out: [{name: b4, port: in}]}
  - kind: state
    name: b4
    domain: a
    store: absent
    key: packet.a
    ports: {out: [{name: b5, port: in}]}
  - kind: publish
    name: b5
    domain: a
    topic: loose
    ports: {out: [{name: b6, port: in}]}
  - {kind: query, name: b6, domain: a, sql: unreachable, text: 'SELECT 1', args: [pakcet]}
";
    let graph = graph_in("parts", text);
    let answer = sinew(["check", "--json", &graph]).ended_with(2).json();
    let said = |error: &serde_json::Value| {
        let message = error["message"].as_str().expect("a message");
        format!("{}: {message}", error["line"])
    };
    let said: Vec<_> = answer["errors"].as_array().expect("a list").iter().map(said).collect();
    let expected = [
        "3: domain 'b': user 'nobody_of_that_name' does not exist",
        "6: entries_max cannot be 'many'",
        "7: there is no kind of node 'stroe'",
        "8: there is no domain 'c'",
        "9: this is not a URL of a database",
        "10: unknown key 'path' in a node",
        "31: there is no domain 'd'",
        "33: there is no variable 'packte'",
        "38: there is no store 'absent' in this domain",
        "46: there is no variable 'pakcet'",
    ];
    assert_eq!(said, expected, "{said:#?}");
}

#[test]
fn two_listeners_at_one_port_are_an_error_of_check() {
    let text = "
name: listeners
domains: {a: {}, b: {}}
nodes:
  - {kind: snippet, name: one, domain: a, language: text, code: one}
  - {kind: snippet, name: two, domain: b, language: text, code: two}
  - kind: listener
    name: first
    domain: a
    port: 8123
    ports: {out: [{name: one, port: in}]}
  - kind: listener
    name: second
    domain: b
    port: 8123
    host: 0.0.0.0
    ports: {out: [{name: two, port: in}]}
";
    let graph = graph_in("listeners", text);
    let answer = sinew(["check", &graph]).ended_with(2).err;
    for expected in [
        "port 8123 is that of 'first' on line 7, which listens at 127.0.0.1".to_owned(),
        format!("{graph}:15:11"),
    ] {
        assert!(answer.contains(&expected), "no {expected}: {answer}");
    }
    for other in ["second.port=8124", "second.host=127.0.0.2"] {
        sinew(["check", "--set", other, &graph]).ended_with(0);
    }
    sinew(["check", "--set", "first.port=0", "--set", "second.port=0", &graph]).ended_with(0);
}
