//! `sinew guest` for its user, with a real guest under QEMU.

use std::process::Command;

use serde_json::Value;

use crate::program::{Answer, Running, SINEW, calm, graph_in, ours, refused, sinew, skip};

/// The arm with a guard, if the guard's image was built and an emulator is installed.
fn graph() -> Option<String> {
    let has_qemu = Command::new("qemu-system-arm").arg("--version").output().is_ok();
    if !has_qemu {
        skip("'qemu-system-arm' is not on the PATH");
        return None;
    }
    for image in ["guard", "trials"] {
        if !ours(&format!("guest/target/armv7a-none-eabi/release/{image}")).is_file() {
            skip("there is no image of a guest: cargo build --release in guest/");
            return None;
        }
    }
    Some(ours("graphs/dual_os/arm.yaml").display().to_string())
}

fn guest(graph: &str, words: &str) -> Answer {
    sinew(["guest", graph, "--json"].into_iter().chain(words.split(' ')))
}

/// The answers of all commands.
#[track_caller]
fn answers(graph: &str, words: &str) -> Vec<Value> {
    let json = guest(graph, words).ended_with(0).json();
    let commands = json["commands"].as_array().expect("commands");
    commands.iter().map(|it| it["answer"].clone()).collect()
}

/// Checks that the last command is refused with these words.
#[track_caller]
fn fails(graph: &str, words: &str, status: i32, expected: &str) {
    let json = guest(graph, words).ended_with(status).json();
    let last = json["commands"].as_array().and_then(|it| it.last()).expect("commands");
    let why = last["error"].as_str().expect("an error");
    assert!(why.contains(expected), "expected '{expected}', found '{why}'");
}

#[test]
fn a_bad_request_to_the_tester_is_refused_before_anything_starts() {
    refused(&["guest", &calm(), "open"], "the graph has no guest domain");
    refused(&["guest", &calm(), "opne"], "did you mean 'open'?");
    refused(&["guest", &calm(), "open", ",", "test"], "expected test BYTES");
    let Some(graph) = graph() else { return };
    refused(&["guest", &graph, "--domain", "gard", "open"], "did you mean 'guard'?");
    fails(&graph, "test much", 2, "expected 0 to 2^32-1");
    fails(&graph, "shm get a 8 windows", 2, "expected linux or guest");
}

#[test]
fn the_tester_does_what_it_is_told() {
    let Some(graph) = graph() else { return };
    let all = answers(
        &graph,
        "open, run, test 8, test 1048576, shm get a 64 guest, shm attach a, shm attach a guest, \
         shm write a hello there, shm read a 16, shm list, states, doorbell 10, node list, \
         node stop guard, job list, call echo 7 hello, shutdown",
    );
    let [open, _, _, test, get, linux, guest, _, read, list, states, .., echo, shutdown] = &all[..]
    else {
        panic!("{all:#?}")
    };
    let address = |of: &Value, key: &str| of[key].as_u64().expect("an address");
    let offset = address(get, "offset");
    for (side, key) in [(linux, "linux_virtual"), (guest, "guest_virtual")] {
        assert_eq!(address(side, "address"), address(open, key) + offset);
    }
    assert_ne!(address(open, "guest_virtual"), address(open, "guest_physical"));
    assert_eq!(test["rounds"][1]["bytes"], 1_048_576);
    assert_eq!(read["data"], "'hello there'");
    assert_eq!(list["entries"][0]["held_by_guest"], 1);
    assert_eq!(states["links"][0]["guest"], "Attached");
    assert_eq!((&echo["numbers"][0], &echo["text"]), (&7.into(), &"hello".into()));
    assert_eq!(shutdown["stopped"], true);
}

#[test]
fn the_tester_says_what_cannot_be() {
    let Some(graph) = graph() else { return };
    fails(&graph, "test 1048577", 1, "1 B to 1 MiB");
    fails(&graph, "shm remove nothing", 1, "nothing has this name; get it first");
    fails(&graph, "shm get a 8, shm attach a, shm remove a", 1, "detach it there first");
    fails(&graph, "shm get a 8, shm get a 9", 1, "the name is taken");
    fails(&graph, "sem get s 0, sem take s within 50ms", 1, "within the deadline");
    fails(&graph, "queue get q 8 4, queue receive q within 50ms", 1, "within the deadline");
    fails(&graph, "call nap 1000 within 50ms", 1, "within the deadline");
    fails(&graph, "call nap 0", 1, "the job failed: a nap of 0 ms");
    fails(&graph, "call nonsense", 1, "no such job");
    fails(&graph, "node stop nobody", 1, "no such node");
}

#[test]
fn lines_are_commands_and_one_that_fails_does_not_keep_the_next_from_being_tried() {
    let Some(graph) = graph() else { return };
    let mut command = Command::new("sh");
    let lines = "sem get s 1 guest # a remark\\nopne\\nsem take s\\nsem remove s\\nquit\\nopen\\n";
    command.args(["-c", &format!("printf '{lines}' | \"$0\" guest \"$1\"")]).args([SINEW, &graph]);
    let answer = Running::start(command).answer().ended_with(2);
    assert!(answer.out.contains("taken; linux has 0 tokens, guest 0"), "{}", answer.out);
    assert!(answer.out.trim_end().ends_with("'s' is removed\nbye"), "{}", answer.out);
    assert!(answer.err.contains("no command 'opne'; did you mean 'open'?"), "{}", answer.err);
}

/// The process of a guest's domain also answers requests of the guest: a node gets memory from
/// Linux while the whole graph runs.
#[test]
fn a_node_of_a_guest_gets_memory_of_linux_while_the_graph_runs() {
    if graph().is_none() {
        return;
    }
    let image = ours("guest/target/armv7a-none-eabi/release/trials").display().to_string();
    let text = format!(
        "name: sharing\ndomains:\n  other:\n    guest: {{image: {image}}}\nnodes:\n  - \
         {{kind: sharer, name: sharer, domain: other}}\n"
    );
    let path = graph_in("sharing", &text);
    let mut command = Command::new(SINEW);
    command.args(["run", &path, "--duration=3s"]);
    let answer = Running::start(command).answer();
    let said = format!("{}{}", answer.out, answer.err);
    assert!(said.contains("sharer: held 1"), "{said}");
}
