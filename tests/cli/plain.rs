//! What commands write to a terminal: pictures, or with `--plain` lines that can be read aloud. The
//! terminal is made by `script`.

use std::process::{Command, Stdio};

use crate::control::Place;
use crate::program::{SINEW, arm, calm, skip, wait_until};

/// What is written to a terminal of 80x24, including standard error.
fn on_terminal(environment: &[(&str, &str)], arguments: &str) -> Option<String> {
    let mut command = Command::new("script");
    let inner = format!("stty cols 80 rows 24; exec {SINEW} {arguments}");
    command.args(["-qec", &inner, "/dev/null"]).stdin(Stdio::null());
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(environment.iter().copied());
    let Ok(output) = command.output() else {
        skip("no 'script'; install bsdutils");
        return None;
    };
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Characters that no line of text has: those that move a cursor or set colours, boxes, bars.
fn strange(text: &str) -> Vec<char> {
    text.chars().filter(|c| !c.is_ascii() || c.is_ascii_control() && !"\r\n".contains(*c)).collect()
}

#[test]
fn plain_is_lines_of_text_where_a_terminal_would_get_a_picture() {
    let (calm, arm) = (calm(), arm());
    let run = format!("run {calm} --duration 200ms");
    let graph = format!("graph {arm}");
    let bad = "check tests/graphs/unknown_key/graph.yaml";
    for (command, words) in [
        (run.as_str(), "runs every"),
        (&graph, "link from ethercat.out to drives.in: between threads"),
        (bad, "unknown key"),
        ("doctor --duration 100ms", "rounds"),
    ] {
        let Some(drawn) = on_terminal(&[], command) else { return };
        assert_ne!(strange(&drawn), [], "nothing is drawn, so nothing can be plain: {command}");
        for text in [
            on_terminal(&[], &format!("--plain {command}")),
            on_terminal(&[], &format!("{command} --plain")),
        ] {
            let text = text.expect("just used");
            assert_eq!(strange(&text), [], "{command}:\n{text}");
            assert!(text.contains(words), "{command}:\n{text}");
        }
    }
}

#[test]
fn a_terminal_that_cannot_draw_gets_lines_too() {
    let run = format!("run {} --duration 200ms", calm());
    let Some(text) = on_terminal(&[("TERM", "dumb")], &run) else { return };
    assert_eq!(strange(&text), [], "{text}");
    assert!(text.contains("runs every"), "{text}");
}

#[test]
fn no_color_draws_without_colour() {
    let run = format!("run {} --duration 200ms", calm());
    let colours = |text: &str| text.matches("\x1b[38;").count();
    let Some(text) = on_terminal(&[], &run) else { return };
    assert!(colours(&text) > 0, "{text}");
    let text = on_terminal(&[("NO_COLOR", "1")], &run).expect("just used");
    assert!(text.contains("\x1b[?1049h"), "it draws: {text}");
    assert_eq!(colours(&text), 0, "{text}");
}

#[test]
fn tables_and_a_scope_need_no_terminal() {
    let place = Place::new("plain");
    let (running, pid) = place.run(&[&calm()]);
    let tables = place.sinew(&["top", &pid]).ended_with(0).out;
    assert!(tables.contains("domain  "), "{tables}");
    let mut figures = String::new();
    wait_until("a signal has figures", || {
        let scope = ["scope", "drives.position_rad[0]", "--run", &pid, "--window", "50ms"];
        figures = place.sinew(&scope).out;
        figures.contains("drives.position_rad[0]")
    });
    assert_eq!([strange(&tables), strange(&figures)], [[], []], "{tables}{figures}");
    place.stop(running);
}
