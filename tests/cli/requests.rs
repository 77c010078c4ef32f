//! Bad requests, files that are no specs, and output without running anything.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use xml::reader::{EventReader, XmlEvent};

use crate::program::{Running, SINEW, arm, edited, folder, graph_in, ours, refused, sinew};

#[test]
fn every_command_shows_examples_and_what_its_status_means() {
    let all = "run list top log restart halt reset stop replay check test graph lab drill doctor";
    for command in all.split(' ').chain([""]) {
        let help = sinew(command.split_whitespace().chain(["--help"])).ended_with(0).out;
        let example = format!("  sinew {}", command);
        assert!(help.contains("Usage: sinew") && help.contains("Examples:\n"), "{help}");
        assert!(help.contains(&example) && help.contains("Exit status: 0 "), "{help}");
    }
    assert!(sinew(["--version"]).ended_with(0).out.starts_with("sinew "));
}

#[test]
fn a_bad_request_is_status_2_and_says_what_is_expected() {
    let arm = arm();
    let said = |arguments: &[&str], expected: &str| refused(arguments, expected);
    said(&[], "Usage: sinew [OPTIONS] <COMMAND>");
    said(&["rum"], "'run'");
    said(&["run"], "<FILE>");
    said(&["run", &arm, "--durations", "1s"], "'--duration'");
    said(&["check", &arm, "--bogus"], "unexpected argument '--bogus'");
    for bad in ["0", "0s", "-1s", "5", "s", "1e300h", "1 day", ""] {
        said(&["run", &arm, &format!("--duration={bad}")], "expected");
    }
    said(&["run", &arm, "--duration", "-1s"], "'-1s' is not a duration");
    said(&["stop", "--timeout", "-1s"], "'-1s' is not a duration");
    let expected = "expected NODE.PARAMETER=VALUE";
    for bad in ["planner", "planner.laps", "=1", "planner=1"] {
        for command in ["run", "check", "graph"] {
            said(&[command, &arm, "--set", bad], expected);
        }
    }
    said(&["run", &arm, "--set", "planer.laps=1"], "did you mean 'planner'?");
    said(&["run", &arm, "--set", "planner.lap=1"], "did you mean 'laps'?");
    said(&["run", &arm, "--set", "planner.laps=many"], "a whole number from 0 to");
    said(&["run", &arm, "--set", "planner.laps="], "'planner.laps' gets no value");
    said(&["run", &arm, "--set", "planner.laps=[1"], "in --set planner.laps=[1");
    said(&["run", &arm, "--csv", "/no/such/folder/run.csv"], "cannot write '/no/such/folder/");
    said(&["graph", &arm, "--svg", "/no/such/folder/arm.svg"], "cannot write /no/such/folder/");
    said(&["__domain", "3"], "");
    said(&["__domain", "three"], "");
}

#[test]
fn a_bad_request_is_one_json_object_if_one_is_wanted() {
    let arm = arm();
    let said = |arguments: &[&str], expected: &str| {
        let answer = sinew(arguments).ended_with(2);
        let message = answer.json()["errors"][0]["message"].to_string();
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_eq!(answer.err, "", "{arguments:?}");
    };
    said(&["run", "--json"], "were not provided: <FILE>");
    said(&["check", &arm, "--bogus", "--json"], "unexpected argument '--bogus' found");
    said(&["run", "--json", &arm, "--durations", "1s"], "a similar argument exists: '--duration'");
    said(&["lab", "pipelines", "--json"], "no scenario 'pipelines'");
    said(&["doctor", "--json", "--cpus", "8191"], "no CPU 8191");
    said(&["stop", "--json", "no-such-graph"], "no run 'no-such-graph'");
    said(&["check", "--json", "/no/such/file"], "cannot read the spec");
    // Help is no error and is text for people. What follows '--' is a name.
    assert!(sinew(["run", "--json", "--help"]).ended_with(0).out.contains("Usage: sinew run"));
    assert_eq!(sinew(["run", "--bogus", "--", "--json"]).ended_with(2).out, "");
}

#[test]
fn what_is_no_spec_is_refused_by_every_command() {
    let folder = folder("no_spec");
    let odd = folder.join("odd.yaml").display().to_string();
    fs::write(&odd, b"name: arm\nnodes: \xff\n").expect("a file");
    let missing = folder.join("missing.yaml").display().to_string();
    let here = folder.display().to_string();
    for command in ["run", "check", "graph"] {
        for (file, expected) in [
            (missing.as_str(), "cannot read the spec: No such file"),
            (&here, "cannot read the spec: Is a directory"),
            (&odd, "line 2 is not UTF-8; save the spec as UTF-8"),
            ("/proc/self/mem", "cannot read the spec: Input/output error"),
            ("/dev/null", "the file holds no graph"),
        ] {
            refused(&[command, file], file);
            refused(&[command, file], expected);
        }
    }
}

#[test]
fn a_port_in_use_is_an_error_before_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let source = |name: &str| format!("- {{kind: listener, name: {name}, port: {port}}}\n");
    let graph = graph_in("port_in_use", &source("one"));
    refused(&["run", &graph], &format!("cannot listen at 127.0.0.1:{port}"));
    refused(&["run", &graph], "graph.yaml:1:");
    // Once the other program is gone, one listener can have the port, but not two of the same
    // graph.
    drop(taken);
    let graph = graph_in("port_in_use", &(source("one") + &source("two")));
    refused(&["run", &graph], "graph.yaml:2:");
}

#[test]
fn spans_that_cannot_be_written_are_an_error_before_the_start() {
    let nowhere = folder("no_spans").join("gone/spans");
    let mut command = Command::new(SINEW);
    command.arg("run").arg(ours("graphs/http/ping.yaml")).args(["--set", "listener.port=0"]);
    command.env("SINEW_TRACE", nowhere);
    let err = Running::start(command).answer().ended_with(2).err;
    assert!(err.contains("SINEW_TRACE: cannot write to"), "{err}");
    assert!(err.contains("name another file"), "{err}");
}

#[test]
fn a_collector_that_cannot_be_meant_is_an_error_before_the_start() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (name, value, part) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "'grpc' is not supported; write http/protobuf"),
        ("OTEL_TRACES_SAMPLER_ARG", "2", "'2' is not a number from 0 to 1"),
    ] {
        let mut command = Command::new(SINEW);
        command.arg("run").arg(ours("graphs/http/ping.yaml")).args(["--set", "listener.port=0"]);
        command.envs([endpoint, ("OTEL_TRACES_SAMPLER", "traceidratio"), (name, value)]);
        let err = Running::start(command).answer().ended_with(2).err;
        assert!(err.contains(&format!("{name}: {part}")), "{err}");
    }
}

#[test]
fn a_spec_that_is_too_large_is_refused_without_reading_it_whole() {
    let large = folder("too_large").join("large.yaml");
    let file = File::create(&large).expect("a file");
    let large = large.display().to_string();
    // If the program read all of these files, only the second size or an endless device would show
    // it.
    for size in [100 << 20, 1 << 40] {
        if file.set_len(size).is_err() {
            continue; // A file system with a lower limit.
        }
        refused(&["check", &large], "larger than 16 MiB, the limit");
    }
    refused(&["run", "/dev/zero"], "larger than 16 MiB, the limit");
}

#[test]
fn a_file_may_have_any_name() {
    let folder = folder("any_name");
    for name in [OsStr::from_bytes(b"odd\xff.yaml"), OsStr::new("--json"), OsStr::new("a b\n")] {
        let graph = folder.join(name);
        fs::copy(arm(), &graph).expect("a copy");
        let answer = sinew([OsStr::new("graph"), graph.as_os_str()]).ended_with(0);
        assert!(answer.out.starts_with("arm (2 domains"), "{}", answer.out);
    }
}

#[test]
fn what_is_written_does_not_take_the_place_of_what_the_graph_is_made_of() {
    let folder = folder("overwritten");
    let (graph, path) = (folder.join("arm.yaml"), folder.join("square.csv"));
    for (file, copy) in [("arm.yaml", &graph), ("square.csv", &path)] {
        fs::copy(ours("graphs/arm").join(file), copy).expect("a copy");
    }
    fs::copy(ours("graphs/arm/irb120.urdf"), folder.join("irb120.urdf")).expect("a copy");
    let texts = || [&graph, &path].map(|file| fs::read(file).expect("a file"));
    let before = texts();
    for (command, option) in [("run", "--csv"), ("run", "--profile"), ("graph", "--svg")] {
        for (file, what) in [(&graph, "is the spec"), (&path, "is a file of node 'planner'")] {
            let words = [command, option].map(OsStr::new);
            let answer = sinew(words.into_iter().chain([file.as_os_str(), graph.as_os_str()]));
            let err = answer.ended_with(2).err;
            assert!(err.contains(&format!("{what}; name another file")), "{err}");
            assert!(texts() == before, "{option} has written {}", file.display());
        }
    }
}

#[test]
fn a_spec_may_come_through_a_pipe() {
    let pipe = folder("through_a_pipe").join("spec");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    let mut command = Command::new(SINEW);
    command.arg("graph").arg(&pipe);
    let running = Running::start(command);
    fs::write(&pipe, fs::read(arm()).expect("the arm's spec")).expect("somebody reads it");
    assert!(running.answer().ended_with(0).out.contains("planner  (path_planner)"));
}

#[test]
fn a_spec_through_a_pipe_is_not_watched() {
    let pipe = folder("watched_pipe").join("spec");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    let mut command = Command::new(SINEW);
    command.args(["run", "--watch", "--set", "listener.port=0"]).arg(&pipe);
    let running = Running::start(command);
    fs::write(&pipe, fs::read(ours("graphs/http/ping.yaml")).expect("a spec")).expect("read");
    let err = running.answer().ended_with(2).err;
    assert!(err.contains("is not a file that could be edited"), "{err}");
}

#[test]
fn check_shows_the_plan_and_its_json_says_the_same() {
    let arm = arm();
    let answer = sinew(["check", &arm]).ended_with(0);
    assert!(answer.out.starts_with("arm: 2 domains, 2 threads, 4 nodes, 5 links\n"));
    assert!(answer.out.ends_with("\nno errors\n"), "{}", answer.out);
    let json = sinew(["check", "--json", &arm]).ended_with(0).json();
    assert_eq!(json["errors"].as_array().map(Vec::len), Some(0));
    let plan = sinew(["graph", "--json", &arm]).ended_with(0).json();
    assert_eq!(json["plan"], plan);
    assert_eq!(plan["links"].as_array().map(Vec::len), Some(5));
    let schema = sinew(["check", "--schema"]).ended_with(0).json();
    assert!(schema["$schema"].is_string(), "{schema}");
}

#[test]
fn graph_draws_the_plan_as_text_and_as_well_formed_xml() {
    let arm = arm();
    let text = sinew(["graph", &arm]).ended_with(0).out;
    let svg = sinew(["graph", "--svg", "-", &arm]).ended_with(0).out;
    let file = folder("graph").join("arm.svg");
    let path = file.display().to_string();
    assert_eq!(sinew(["graph", "--svg", &path, &arm]).ended_with(0).out, "");
    assert_eq!(fs::read_to_string(file).expect("the picture"), svg);
    let mut words = String::new();
    for event in EventReader::from_str(&svg) {
        if let XmlEvent::Characters(part) = event.expect("well-formed XML") {
            words += &part;
        }
    }
    for word in ["control", "plant", "planner", "ethercat", "drives", "shared_memory", "Frame"] {
        assert!(text.contains(word), "no '{word}' in:\n{text}");
        assert!(words.contains(word), "no '{word}' in:\n{words}");
    }
}

#[test]
fn a_name_cannot_break_the_picture() {
    let graph = edited("name", &[("name: calm", "name: \"</svg><script>&amp;\\\"'\"")]);
    let answer = sinew(["graph", "--svg", "-", &graph]);
    match answer.status {
        Some(2) => assert!(answer.err.contains("name"), "{}", answer.err),
        _ => EventReader::from_str(&answer.ended_with(0).out)
            .into_iter()
            .for_each(|event| drop(event.expect("well-formed XML"))),
    }
}

#[test]
fn output_that_is_closed_ends_a_command_in_order() {
    let arm = arm();
    for arguments in [
        vec!["--help"],
        vec!["run", "--help"],
        vec!["check", &arm],
        vec!["check", "--json", &arm],
        vec!["check", "--schema"],
        vec!["graph", &arm],
        vec!["graph", "--svg", "-", &arm],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(SINEW);
        command.args(&arguments);
        Running::start_into(command, Some(writer.into())).answer().ended_with(0);
    }
}

#[test]
fn output_that_is_full_is_not_taken_for_good() {
    let arm = arm();
    for arguments in [["check", &arm], ["graph", &arm]] {
        let full = File::options().write(true).open("/dev/full").expect("the full device");
        let mut command = Command::new(SINEW);
        command.args(arguments);
        let answer = Running::start_into(command, Some(full.into())).answer().ended_with(1);
        assert!(answer.err.contains("cannot write to standard output: No space"), "{}", answer.err);
    }
}

#[test]
fn errors_that_nobody_reads_still_end_with_their_status() {
    let mut child = Command::new(SINEW)
        .args(["check", "/no/such/spec.yaml"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}
