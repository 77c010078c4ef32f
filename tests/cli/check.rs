//! The output of `sinew check` for a good graph: its firewall, and its longest chain with the times
//! of a run.

use std::fs;

use serde_json::{Value, json};

use crate::program::{self, arm, calm, folder, graph_in, sinew};

/// A report such as `sinew run --json` writes for the arm, with the parts that `check` reads.
fn report() -> Value {
    let figures = |n: u64, p50: Option<u64>, max: u64| json!({"n": n, "p50": p50, "max": max});
    let node =
        |name: &str, max| json!({"name": name, "execution_ns": figures(900, Some(500), max)});
    json!({
        "graph": "arm",
        "threads": [
            {
                "domain": "control", "thread": 0,
                "activation_jitter_ns": figures(900, Some(39_000), 501_000),
                "nodes": [node("planner", 70_000), node("ik", 9_000), node("ethercat", 3_000)],
            },
            {
                "domain": "plant", "thread": 0, "activation_jitter_ns": null,
                "nodes": [json!({"name": "drives", "execution_ns": figures(5, None, 8_000)})],
            },
        ],
        "machine": {
            "cpu": "a processor of this test", "cpus_online": "0-1", "cpus_allowed": [0, 1],
            "kernel": "1.2.3", "preemption": "none", "governor": null, "caches": [],
            "load_average": [0.25], "clock_source": "tsc", "virtualised": false,
        },
    })
}

#[test]
fn check_counts_threads_that_poll_and_shows_the_longest_chain() {
    let answer = sinew(["check", &arm()]).ended_with(0).out;
    let chain =
        "longest chain of a cycle (=> between threads): planner -> ik -> ethercat => drives";
    assert!(answer.contains(chain), "{answer}");
    assert!(answer.contains("of 2 realtime threads, on "), "{answer}");
    let json = sinew(["check", "--json", &arm()]).ended_with(0).json();
    assert_eq!(json["firewall"]["violations"], json!([]));
    assert_eq!(json["firewall"]["threads"][0]["waits_for"][1]["from"], "drives.out");
    assert_eq!(json["longest_chain"]["nodes"][3]["name"], "drives");
    assert_eq!(json["longest_chain"]["nodes"][3]["execution_ns"], Value::Null);
}

#[test]
fn check_sums_up_the_longest_chain_of_a_report_and_says_whose_it_is() {
    let file = folder("check_report").join("run.json").display().to_string();
    fs::write(&file, report().to_string()).expect("a report");
    let answer = sinew(["check", "--report", &file, &arm()]).ended_with(0).out;
    let lines: Vec<String> =
        answer.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "planner 0.50 70.00 7.0 % 900",
        "drives - 8.00 0.8 % 5",
        "sum - 90.00 9.0 %",
        "activation jitter of control, thread 0: p50 39.00 us, max 501.00 us",
    ] {
        assert!(lines.iter().any(|line| line == expected), "no '{expected}' in:\n{answer}");
    }
    let words = lines.join(" ");
    assert!(
        words.contains("not a proof that nothing takes longer; taken on a processor of this test")
    );
    assert!(words.contains("taken on another machine: cpu is 'a processor of this test' there"));
    let json = sinew(["check", "--json", "--report", &file, &arm()]).ended_with(0).json();
    let chain = &json["longest_chain"];
    assert_eq!(chain["sum_ns"], json!({"p50": null, "max": 90_000}));
    assert_eq!(chain["nodes"][0]["period_share_max"], 0.07);
    assert_eq!(chain["threads"][0]["activation_jitter_ns"]["max"], 501_000);
    assert_eq!(chain["machine"]["kernel"], "1.2.3");
}

#[test]
fn check_reads_what_run_writes() {
    let file = folder("check_run").join("run.json").display().to_string();
    let run = sinew(["run", "--json", "--duration", "300ms", &calm()]).ended_with(0);
    fs::write(&file, run.out).expect("a report");
    let json = sinew(["check", "--json", "--report", &file, &calm()]).ended_with(0).json();
    let nodes = json["longest_chain"]["nodes"].as_array().expect("a chain");
    assert!(!nodes.is_empty() && nodes.iter().all(|row| row["execution_ns"]["max"].is_u64()));
}

#[test]
fn a_report_that_is_none_or_of_another_graph_is_refused_with_a_remedy() {
    let file = folder("check_bad").join("run.json").display().to_string();
    let refused = |text: &str, expected: &str| {
        fs::write(&file, text).expect("a file");
        for part in [&file, expected] {
            program::refused(&["check", "--report", &file, &arm()], part);
        }
    };
    refused("", "this is not JSON: EOF while parsing");
    refused("name: arm", "write one with 'sinew run --json GRAPH > run.json'");
    for text in ["[]", "{}", "null", "\"arm\"", r#"{"graph": "arm", "threads": 3}"#] {
        refused(text, "this is not a report of a run; write one with");
    }
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut report = report();
        change(&mut report);
        report.to_string()
    };
    let other = changed(&|report| report["graph"] = json!("leg"));
    refused(&other, "the report is of graph 'leg', and this is 'arm'");
    let renamed = changed(&|report| report["threads"][0]["nodes"][1]["name"] = json!("ki"));
    refused(&renamed, "the report lacks node 'ik' in thread 0 of domain 'control'");
    let short = changed(&|report| report["threads"].as_array_mut().expect("two").truncate(1));
    refused(&short, "the report lacks thread 0 of domain 'plant'; the graph was changed");
    let empty = json!({"n": 0, "p50": null, "max": null});
    let idle = changed(&|report| report["threads"][1]["nodes"][0]["execution_ns"] = empty.clone());
    refused(&idle, "the report has no execution time of node 'drives'");
    let strange = changed(&|report| report["threads"][0]["nodes"] = json!({"planner": 3}));
    refused(&strange, "the report lacks node 'planner'");
    let no_machine = changed(&|report| report["machine"] = json!("mine"));
    refused(&no_machine, "this is not a report of a run");
    for (file, expected) in [
        ("/no/such/run.json", "/no/such/run.json: cannot read the report: No such file"),
        ("/dev/zero", "the report is larger than 64 MiB, the limit"),
    ] {
        program::refused(&["check", "--report", file, &arm()], expected);
    }
}

#[test]
fn a_user_that_this_machine_lacks_is_no_surprise_at_the_start() {
    let spec = std::path::PathBuf::from(arm());
    let home = spec.parent().expect("a folder").display().to_string();
    let text = fs::read_to_string(&spec).expect("a spec");
    let text = text.replace("  plant: {realtime", "  plant: {user: nobody_of_that_name, realtime");
    let text = text.replace("irb120.urdf", &format!("{home}/irb120.urdf"));
    let text = text.replace("square.csv", &format!("{home}/square.csv"));
    let (at, line) = text.lines().enumerate().find(|(_, it)| it.contains("user:")).expect("a user");
    let column = line.find("nobody").expect("a user") + 1;
    let graph = graph_in("check_user", &text);
    let answers = ["check", "run"].map(|command| {
        let answer = sinew([command, &graph]).ended_with(2);
        for expected in [
            "domain 'plant': user 'nobody_of_that_name' does not exist",
            "create it with 'useradd --system nobody_of_that_name', or remove 'user'",
            &format!("{graph}:{}:{column}", at + 1),
        ] {
            assert!(answer.err.contains(expected), "{expected}: {}", answer.err);
        }
        let answer = sinew([command, "--json", &graph]).ended_with(2).json();
        assert_eq!(answer["errors"][0]["line"], at + 1, "{answer}");
        answer
    });
    assert_eq!(answers[0], answers[1]);
}
