//! `sinew test`: what passes, what fails, and which requests are bad.

use crate::program::{arm, graph_in, refused, sinew};

const GRAPH: &str = "
- kind: test
  name: same
  packet: {n: 1}
  expect: reply.n == 1
  ports: {out: [{name: nop, port: in}]}
- kind: test
  name: other
  packet: {n: 1}
  expect: reply.n == 2
  ports: {out: [{name: nop, port: in}]}
- kind: test
  name: late
  deadline: 20ms
  expect: error.status == 504
  ports: {out: [{name: sleep, port: in}]}
- kind: test
  name: slow
  deadline: 20ms
  ports: {out: [{name: sleep, port: in}]}
- {kind: nop, name: nop}
- {kind: sleep, name: sleep, duration: 600s}
";

#[test]
fn a_test_that_fails_says_what_came() {
    let graph = graph_in("test_fails", GRAPH);
    let answer = sinew(["test", &graph]).ended_with(1);
    let lines: Vec<&str> = answer.out.lines().collect();
    assert_eq!(lines[0], "ok      same");
    assert_eq!(lines[1..4], ["FAILED  other", "  expected: reply.n == 2", "  came: {\"n\":1}"]);
    assert_eq!(lines[4..7], ["ok      late", "FAILED  slow", "  expected: true"]);
    assert!(answer.out.contains("came: error 504: "), "{}", answer.out);
    assert_eq!(lines.last(), Some(&"2 passed, 2 failed"));
}

#[test]
fn tests_are_chosen_by_name_and_told_as_json() {
    let graph = graph_in("test_chosen", GRAPH);
    let answer = sinew(["test", "--json", &graph, "late", "same"]).ended_with(0).json();
    assert_eq!((&answer["passed"], &answer["failed"]), (&2.into(), &0.into()));
    let names: Vec<_> =
        answer["tests"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["same", "late"], "in the order of the spec");
    let failed = sinew(["test", "--json", &graph, "other"]).ended_with(1).json();
    let test = &failed["tests"][0];
    assert_eq!((&test["passed"], &test["reply"]["n"]), (&false.into(), &1.into()));
    assert!(test["took_us"].is_u64() && test["error"].is_null(), "{test}");
}

#[test]
fn a_parameter_may_be_set() {
    let graph = graph_in("test_set", GRAPH);
    let set = ["test", "--set", "other.expect=reply.n == 1", &graph, "other"];
    sinew(set).ended_with(0);
}

#[test]
fn what_cannot_be_tested_is_a_bad_request() {
    let graph = graph_in("test_bad", GRAPH);
    let bad = graph_in("test_bad_spec", &GRAPH.replace("reply.n == 2", "reply.n =="));
    let without = arm();
    let cases = [
        (vec!["test", &graph, "samee"], "no test 'samee'; did you mean 'same'?"),
        (vec!["test", &without], "there is no test in it; write a node of the kind 'test'"),
        (vec!["test", "missing.yaml"], "missing.yaml: cannot read the spec"),
        (vec!["test", &bad], "not an expression"),
    ];
    for (arguments, expected) in cases {
        refused(&arguments, expected);
        let json = sinew([&["test", "--json"], &arguments[1..]].concat()).ended_with(2).json();
        assert!(json["errors"][0]["message"].is_string(), "{json}");
    }
}

#[test]
fn a_job_that_is_done_ends_the_run_and_its_status_is_the_runs() {
    // A second domain, which would run for ever.
    let graph = |kind: &str| {
        format!(
            "name: job
domains: {{beside: {{}}}}
nodes:
  - {{kind: once, name: once, packet: 7, ports: {{out: [{{name: next, port: in}}]}}}}
  - {{kind: {kind}, name: next}}
  - kind: timer
    name: timer
    domain: beside
    interval: 1h
    ports: {{out: [{{name: nop, port: in}}]}}
  - {{kind: nop, name: nop, domain: beside}}
"
        )
    };
    let done = sinew(["run", "--json", &graph_in("job_done", &graph("nop"))]).ended_with(0).json();
    assert_eq!(done["outcome"], "finished", "{done}");
    let failed =
        sinew(["run", &graph_in("job_failed", &graph("throw, status: 418"))]).ended_with(1);
    assert!(failed.err.contains("node 'next': thrown"), "{}", failed.err);
}
