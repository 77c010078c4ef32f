//! A graph with `hold: true`, from the command line: halted, reset, faulted, and the reports about
//! it.

use std::fs;

use rustix::process::Signal;

use crate::control::Place;
use crate::program::{Running, arm, edited, folder, graph_in, is_alive, refused, send, wait_until};

/// The calm graph with `hold: true`.
pub(crate) fn holding(name: &str) -> String {
    edited(name, &[("name: calm", "hold: true\nname: calm")])
}

#[test]
fn a_core_is_halted_held_and_reset() {
    let place = Place::new("halted");
    let rows = folder("halted_rows").join("run.csv").display().to_string();
    let (running, pid) = place.run(&["--csv", &rows, &holding("halted")]);
    wait_until("the arm moves", || place.domain(&pid, "plant")["threads"][0]["cycles"] != 0);
    let halt = place.sinew(&["halt", &pid, "--reason", "a hand in the cell"]).ended_with(0).out;
    let (safe, held) = (": stopped; safe outputs after ", "held, 'sinew reset' starts");
    assert!(halt.contains(safe) && halt.contains(held), "{halt}");
    assert_eq!(place.listed(running.pid()).expect("it is there")["phase"], "held");
    let top = place.sinew(&["top", &pid, "--once"]).ended_with(0).out;
    for part in ["last stop\n    halt: a hand in the cell, by process ", "'sinew reset' starts"] {
        assert!(top.contains(part), "{part}:\n{top}");
    }
    let again = place.sinew(&["halt", &pid, "--json"]).ended_with(0).json();
    assert_eq!(again["held"], true);
    assert!(again["stop"]["at_rest_us"].is_u64(), "{again}");
    let reset = place.sinew(&["reset", &pid, "--json"]).ended_with(0).json();
    assert!(reset["runs_after_ms"].is_number(), "{reset}");
    assert_eq!(place.domain(&pid, "control")["restarts"], 1);
    wait_until("the arm moves", || place.domain(&pid, "plant")["threads"][0]["cycles"] != 0);
    let stop = place.sinew(&["stop", &pid, "--json"]).ended_with(0).json();
    assert!(stop["stop"]["safe_output_us"].is_u64(), "{stop}");
    let report = running.answer().ended_with(0).json();
    assert_eq!((&report["outcome"], &report["resets"]), (&"stopped".into(), &1.into()));
    assert!(report["stop"]["reason"].as_str().expect("a text").starts_with("stop, by process "));
    let rows = fs::read_to_string(rows).expect("the rows of both lives");
    let firsts = rows.lines().filter(|row| row.starts_with("control,0,0,")).count();
    assert_eq!(firsts, 2, "cycles are counted from 0 in each life");
}

/// A run whose core is held after a fault: its process `control` was killed.
fn held_by_a_fault(place: &Place, name: &str) -> (Running, String, u32) {
    let (running, pid) = place.run(&[&holding(name)]);
    let control = place.domain(&pid, "control")["pid"].as_u64().expect("a process") as u32;
    send(control, Signal::KILL);
    wait_until("it is held", || {
        place.listed(running.pid()).expect("it is there")["phase"] == "held"
    });
    (running, pid, control)
}

#[test]
fn a_fault_is_held_and_named_after_a_reset() {
    let place = Place::new("fault_held");
    let (running, pid, control) = held_by_a_fault(&place, "fault_held");
    let domain = place.domain(&pid, "control");
    assert_eq!(domain["last_reason"], "its process was ended by signal 9");
    place.sinew(&["reset", &pid]).ended_with(0);
    assert!(!is_alive(control));
    // Only the last life counts.
    let report = place.stop(running).json();
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(0));
    let earlier = &report["earlier_faults"][0];
    assert_eq!((&earlier["life"], &earlier["domain"]), (&1.into(), &"control".into()));
}

#[test]
fn a_faulted_core_that_is_held_makes_the_run_a_fault() {
    let place = Place::new("fault_ends");
    let (running, pid, _) = held_by_a_fault(&place, "fault_ends");
    let stop = place.sinew(&["stop", &pid]).ended_with(1);
    assert!(
        stop.out.contains("faulted: control: its process was ended by signal 9"),
        "{}",
        stop.out
    );
    assert_eq!(running.answer().ended_with(1).json()["outcome"], "faulted");
}

#[test]
fn a_reset_that_cannot_be_says_why() {
    let place = Place::new("reset_refused");
    let (holds, pid) = place.run(&[&holding("reset_refused")]);
    let refused = place.sinew(&["reset", &pid]).ended_with(1).err;
    assert!(refused.contains("the graph is running, expected held"), "{refused}");
    place.stop(holds);
    let (ends, pid) = place.run(&[&crate::program::calm()]);
    let refused = place.sinew(&["reset", &pid, "--json"]).ended_with(1).json();
    let text = refused["errors"][0]["message"].as_str().expect("a text");
    assert!(text.contains("write 'hold: true' at its top"), "{text}");
    let halt = place.sinew(&["halt", &pid]).ended_with(0).out;
    assert!(halt.contains("the graph has no 'hold: true' and ends"), "{halt}");
    ends.answer().ended_with(0);
    for command in ["halt", "reset"] {
        // With a name: without one, any other run on this machine would be meant.
        let nothing = place.sinew(&[command, "nowhere"]).ended_with(2).err;
        assert!(nothing.contains("no run 'nowhere'"), "{nothing}");
    }
}

#[test]
fn a_graph_that_holds_by_mistake_is_refused() {
    let text = fs::read_to_string(arm()).expect("a spec");
    let graph = graph_in("holds_by_mistake", &format!("hold: perhaps\n{text}"));
    refused(&["check", &graph], "hold cannot be 'perhaps'");
    refused(&["check", &graph], "write true or false");
}
