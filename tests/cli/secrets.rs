//! Values from the environment and from files are read at the start, and never shown in any output
//! of a run.

use std::fs;
use std::process::Command;

use crate::program::{Answer, Running, SINEW, graph_in};

const TOKEN: &str = "t0ken\"with/signs";
const KEY: &str = "contents-of-the-key-file";

const GRAPH: &str = r#"
- kind: timer
  name: begin
  interval: "{{ env.SINEW_TEST_MS or '50' }}ms"
  ports: {out: [{name: keep, port: in}]}
- kind: set
  name: keep
  values: {token: "{{ env.SINEW_TEST_TOKEN }}", key: '{{ file.secrets/key }}'}
  packet: {header: {Authorization: Bearer abcdef, cookie: [abcdef], accept: text/html}}
  ports: {out: [{name: say, port: in}]}
- kind: print
  name: say
  format:
    - "{{ values.token }} and {{ values.key }}"
    - '{{ packet }}'
    - "{{ size(packet.header.cookie) }}: {{ packet.header.cookie }}"
    - "is {{ packet.header.Authorization }}"
    - "{{ file['secrets/key'] + hash('sha256', file['secrets/key']) }}"
  ports: {out: [{name: script, port: in}]}
- kind: snippet
  name: script
  language: lua
  code: |
    error('failed with ' .. env.SINEW_TEST_TOKEN .. ' and ' .. values.key)
  ports: {error: [{name: sorry, port: in}]}
- kind: print
  name: sorry
  format: 'sorry: {{ packet.error }}'
  ports: {out: [{name: fail, port: in}]}
- {kind: throw, name: fail, message: "{{ values.token }} was wrong"}
- {kind: test, name: shows, expect: reply == 1, ports: {out: [{name: reply, port: in}]}}
- {kind: snippet, name: reply, language: cel, code: "{'a': env.SINEW_TEST_TOKEN}"}
"#;

fn command(graph: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(SINEW);
    command.args(arguments).arg(graph).env("SINEW_TEST_TOKEN", TOKEN);
    command
}

/// Checks that no part of it is shown; it is shown as `***`.
fn without(what: &str, text: &str) {
    for part in ["t0ken", "with/signs", KEY, "wrong-value"] {
        assert!(!text.contains(part), "{what} shows '{part}':\n{text}");
    }
}

fn answer(command: Command) -> Answer {
    let answer = Running::start(command).answer();
    without("standard output", &answer.out);
    without("standard error", &answer.err);
    answer
}

#[test]
fn no_way_out_of_a_run_shows_a_secret() {
    let graph = graph_in("secrets", GRAPH);
    let folder = graph.trim_end_matches("graph.yaml").to_owned();
    fs::create_dir_all(format!("{folder}secrets")).expect("a folder");
    fs::write(format!("{folder}secrets/key"), format!("{KEY}\n")).expect("a file");
    let trace = format!("{folder}trace.jsonl");
    let mut run = command(&graph, &["run", "--duration", "1s"]);
    run.env("SINEW_TRACE", &trace).env("SINEW_TEST_MS", "20");
    let answer = answer(run);
    let said = answer.out + &answer.err;
    assert!(!said.contains("abcdef"), "it shows a header:\n{said}");
    let thrown = GRAPH.lines().position(|line| line.contains("error(")).expect("a script") + 1;
    let thrown = format!("sorry: lua: {graph}:{thrown}: failed with *** and ***");
    for line in [
        &*thrown,
        "\"*** and ***\"",
        r#"{"header":{"Authorization":"***","cookie":"***","accept":"text/html"}}"#,
        "\"1: ***\",\"is ***\"",
        "*** was wrong",
    ] {
        assert!(said.contains(line), "it does not say {line}:\n{said}");
    }
    let trace = fs::read_to_string(trace).expect("spans");
    without("the trace", &trace);
    assert!(trace.contains("\"node\":\"say\""), "{trace}");
}

#[test]
fn what_reads_a_graph_shows_no_secret_and_tells_what_is_missing() {
    let graph = graph_in("secrets_read", &GRAPH.replace("secrets/key", "key"));
    let file = graph.replace("graph.yaml", "key");
    fs::write(&file, KEY).expect("a file");
    answer(command(&graph, &["check"])).ended_with(0);
    answer(command(&graph, &["check", "--json"])).ended_with(0);
    let plan = answer(command(&graph, &["graph", "--json"])).ended_with(0).json();
    let node = &plan["nodes"][0];
    assert_eq!(node["parameters"]["interval"], "{{ env.SINEW_TEST_MS or '50' }}ms", "{node}");
    let failed = answer(command(&graph, &["test"])).ended_with(1);
    assert!(failed.out.contains(r#"came: {"a":"***"}"#), "{}", failed.out);
    // A wrong value is reported by its name.
    let mut wrong = command(&graph, &["check"]);
    wrong.env("SINEW_TEST_MS", "wrong-value");
    let wrong = answer(wrong).ended_with(2);
    assert!(wrong.err.contains("interval cannot be '{{ env.SINEW_TEST_MS"), "{}", wrong.err);
    assert!(wrong.err.contains("graph.yaml:4:13"), "{}", wrong.err);
    // Without the values the graph does not start, and everything that is missing is reported at
    // once.
    fs::remove_file(&file).expect("it goes");
    for request in ["check", "run"] {
        let mut bare = command(&graph, &[request]);
        bare.env_remove("SINEW_TEST_TOKEN");
        let bare = answer(bare).ended_with(2);
        let wanted = ["the environment has no variable SINEW_TEST_TOKEN", "graph.yaml:8:20"];
        for part in wanted.into_iter().chain(["'key' cannot be read", "graph.yaml:8:55"]) {
            assert!(bare.err.contains(part), "{request} does not say {part}:\n{}", bare.err);
        }
    }
}
