//! `docs/tutorial.md` as a new user follows it: every file is saved, every command is typed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::control::Place;
use crate::program::{Answer, Running, SINEW, folder, is_alive, ours, wait_until};

/// What a reader does.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    /// Saves this as `axis.yaml`.
    Save(&'a str),
    /// Types this command; whether it must fail.
    Type(&'a str, bool),
}

/// The steps of a page, in order: its YAML, and its indented lines that begin with `sinew`.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for (index, part) in page.split("```").enumerate() {
        // Every second part is between fences.
        if index % 2 == 1 {
            steps.extend(part.strip_prefix("yaml\n").map(Step::Save));
            continue;
        }
        let lines = part.lines().filter_map(|line| line.strip_prefix("    sinew "));
        steps.extend(lines.map(|line| {
            let (command, remark) = line.split_once(" # ").unwrap_or((line, ""));
            Step::Type(command.trim_end(), remark == "fails")
        }));
    }
    steps
}

/// A reader, with a folder and a shell in it.
struct Reader {
    place: Place,
    folder: PathBuf,
    /// A program that runs until it is told to stop.
    running: Option<Running>,
}

impl Reader {
    /// Saves the graph, changed so that no cycle is too late on a machine that other tests keep
    /// busy.
    fn save(&self, text: &str) {
        let text = text.replace("consecutive_max: 50", "consecutive_max: 1000000");
        // The usual port may be in use.
        let text = text.replace("domain: dashboard}", "domain: dashboard, listen: '127.0.0.1:0'}");
        let graph = self.folder.join("axis.yaml");
        // The next graph starts with the values that were tuned and written into the file.
        let before = fs::read_to_string(&graph).unwrap_or_default();
        let is_gain = |line: &&str| ["kp:", "kd:"].iter().any(|key| line.trim().starts_with(key));
        for line in before.lines().filter(is_gain) {
            assert!(text.contains(line), "'{line}' was tuned, and is not in:\n{text}");
        }
        fs::write(graph, text).expect("a place for it");
    }

    fn start(&self, command: &str) -> Running {
        let mut shell = Command::new("sh");
        // `exec` keeps the process, so its number is known.
        shell.args(["-c", &format!("exec '{SINEW}' {command}")]).current_dir(&self.folder);
        shell.env("XDG_RUNTIME_DIR", &self.place.0).env_remove("RUNTIME_DIRECTORY");
        Running::start(shell)
    }

    /// How many recordings are in this folder.
    fn recordings(&self, folder: &str) -> usize {
        let files = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|it| it == "mcap")).count()
    }

    fn type_in(&mut self, command: &str, fails: bool) {
        let of_runs = self.recordings("recordings");
        let running = self.start(command);
        if command == "run axis.yaml" {
            wait_until("the graph runs", || {
                assert!(is_alive(running.pid()), "the run ended at once");
                self.place.listed(running.pid()).is_some_and(|run| run["phase"] == "running")
            });
            self.running = Some(running);
            return;
        }
        let Answer { status, out, err, .. } = running.answer();
        assert!(!err.contains("panicked"), "{command}: {err}");
        if command.starts_with("drill") {
            // Whether a limit is kept depends on how busy the machine is.
            assert!(matches!(status, Some(0 | 1)), "{command}: {out}\n{err}");
            let is_told = |fault: &&str| out.contains(&format!("pid, {fault}, "));
            assert!(["panic", "kill"].iter().all(is_told), "{out}");
            let now = self.recordings("recordings");
            assert!(of_runs > 0 && now == of_runs, "{of_runs} recordings of runs, then {now}");
            assert!(self.recordings("recordings/drills") > 0, "{out}");
        } else {
            assert_eq!(status != Some(0), fails, "{command}: {status:?}\n{out}\n{err}");
        }
        if command == "stop" {
            self.running.take().expect("a run to stop").answer().ended_with(0);
        }
    }
}

#[test]
fn the_first_machine_is_built_as_the_tutorial_says() {
    let place = Place::new("tutorial");
    let mut reader = Reader { place, folder: folder("tutorial"), running: None };
    let page = fs::read_to_string(ours("docs/tutorial.md")).expect("it is ours");
    let mut commands = vec![];
    for step in steps(&page) {
        match step {
            Step::Save(text) => reader.save(text),
            Step::Type(command, fails) => {
                reader.type_in(command, fails);
                commands.extend(command.split(' ').next());
            }
        }
    }
    assert!(reader.running.is_none(), "the tutorial leaves a run behind");
    for told in ["check", "graph", "run", "scope", "set", "replay", "drill", "stop"] {
        assert!(commands.contains(&told), "no 'sinew {told}' in {commands:?}");
    }
}

#[test]
fn steps_are_files_and_commands_and_nothing_else() {
    let text = "a\n\n```yaml\nname: a\n```\n\n    sinew run a.yaml --x 1   # fails\n    cat a\n\n\
        ```sh\n    sinew no\n```\n\n    sinew stop\n";
    let expected =
        [Step::Save("name: a\n"), Step::Type("run a.yaml --x 1", true), Step::Type("stop", false)];
    assert_eq!(steps(text), expected);
}
