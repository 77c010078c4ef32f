//! Repositories that the tests make with git.

use std::fmt::Write as _;

use super::*;
use crate::history::{Progression, to_page, to_text};

/// A repository that is removed when the test is over.
struct Repository(PathBuf);

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Repository {
    fn new(name: &str) -> Repository {
        let folder = std::env::temp_dir().join(format!("sinew-gate-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let repository = Repository(folder);
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(&self.0).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        git.args(["-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"]).args(words);
        // All commits have the same time, so that time cannot be what orders them.
        git.env("GIT_AUTHOR_DATE", "@1000 +0000").env("GIT_COMMITTER_DATE", "@1000 +0000");
        let output = git.output().expect("git");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    fn commit(&self, file: &str, text: &str) -> PathBuf {
        let path = self.write(file, text);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
        path
    }
}

/// The gate's file, counted with this compiler.
fn book(compiler: &str, verbs: &[(&str, u64, &str)]) -> String {
    let mut rows = String::new();
    for (verb, instructions, why) in verbs {
        let gap = if rows.is_empty() { "" } else { ",\n" };
        let _ = write!(
            rows,
            r#"{gap}{{"verb": "{verb}", "instructions": {instructions}, "why": "{why}"}}"#
        );
    }
    format!(
        r#"{{"about": "of a thousand", "tools": {{"compiler": "{compiler}", "valgrind": "v",
        "libc": "l", "machine": "m"}}, "verbs": [
        {rows}
        ]}}"#
    )
}

/// The figures of each series and the indices of its changes.
fn drawn(of: &Progression) -> Vec<(&str, &str, Vec<f64>, Vec<usize>)> {
    let series = of.series.iter().map(|it| {
        let changes = it.changes.iter().map(|change| change.at).collect();
        (it.of.as_str(), it.headline.row.as_str(), it.figures.clone(), changes)
    });
    series.collect()
}

fn history(file: &Path) -> Progression {
    let (seen, notes) = gate_sightings(file).expect("a history");
    Progression::of(seen, notes)
}

#[test]
fn each_step_of_a_figure_is_a_change_with_its_commit_and_reason() {
    let repository = Repository::new("steps");
    let first = ("flow/open", 1000, "the first");
    repository.commit("old.json", &book("r", &[first, ("plan", 50, "the first")]));
    // On a side branch, so that its changes are attributed to the merge.
    repository.git(&["checkout", "-q", "-b", "side"]);
    let more = ("plan", 53, "one more <key>");
    repository.commit("old.json", &book("r", &[first, ("plan", 52, "half of it")]));
    repository.commit("old.json", &book("r", &[first, more]));
    repository.git(&["checkout", "-q", "main"]);
    repository.commit("other", "x");
    repository.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    repository.write("below/new.json", "");
    repository.git(&["mv", "-f", "old.json", "below/new.json"]);
    let again = ("flow/open", 900, "copies less");
    let file = repository.commit("below/new.json", &book("r", &[again, more]));
    let found = history(&file);
    assert_eq!(found.notes, [""; 0]);
    let expected = [
        ("gate: r; l; m; v", "flow/open", vec![1000.0, 1000.0, 900.0], vec![2]),
        ("gate: r; l; m; v", "plan", vec![50.0, 53.0, 53.0], vec![1]),
    ];
    assert_eq!(drawn(&found), expected);
    let last = history(&repository.write("below/new.json", &book("r", &[again, ("plan", 53, "")])));
    let names = |of: &Progression| {
        let origins = of.series[1].origins.iter();
        origins.map(|it| it.commit.clone().expect("a commit")).collect::<Vec<_>>()
    };
    let (before, after) = (names(&found), names(&last));
    assert_eq!(after[..3], before);
    assert_eq!(after[3], format!("{}+", before[2]), "it is changed and not committed");

    let text = to_text(&found);
    let begin = "lab history: 2 figures of 3 versions of the gate, 2 changes of the gate\n";
    assert!(text.starts_with(begin), "{text}");
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        format!("{} plan 50 53 +6.00 % worse", before[1]),
        format!("{}: one more <key> (plan)", before[1]),
        format!("{}: copies less (flow/open)", before[2]),
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    let of_plan = text.find(&format!("{}  plan", before[1]));
    assert!(of_plan < text.find(&format!("{}  flow/open", before[2])), "git's order: {text}");
    assert!(!text.contains("E-divisive"), "nothing was tested: {text}");
    let page = to_page(&found);
    let cells = "<td>worse</td><td>one more &lt;key&gt;</td>";
    assert!(page.contains(cells) && page.matches("curve s1 dashed").count() == 2, "{page}");
}

#[test]
fn other_tools_begin_other_series_and_verbs_that_left_are_named() {
    let repository = Repository::new("tools");
    repository.commit("g.json", &book("r 1", &[("a", 10, "x"), ("b", 10, "x")]));
    let file = repository.commit("g.json", &book("r 2", &[("a", 20, "new compiler")]));
    let found = history(&file);
    let expected = [
        ("gate: r 1; l; m; v", "a", vec![10.0], vec![]),
        ("gate: r 1; l; m; v", "b", vec![10.0], vec![]),
        ("gate: r 2; l; m; v", "a", vec![20.0], vec![]),
    ];
    assert_eq!(drawn(&found), expected);
    let [tools, gone] = found.notes.as_slice() else { panic!("{:?}", found.notes) };
    assert!(tools.contains("tools changed") && tools.contains("first [r 1; l; m; v], at "));
    assert!(gone.starts_with("no longer in the gate's file: 'b' (last at "), "{gone}");
    assert!(to_page(&found).contains("<p>none</p>"), "no change across tools");
}

#[test]
fn a_version_that_cannot_be_read_is_left_out_and_said() {
    let repository = Repository::new("broken");
    let good = book("r", &[("a", 10, "x")]);
    repository.commit("g.json", &good);
    repository.commit("g.json", "{\n<<<<<<< HEAD");
    repository.commit("g.json", &book("r", &[("a", 10, "x"), ("a", 11, "x")]));
    let long = " ".repeat(VERSION_LEN_MAX as usize) + &good;
    repository.commit("g.json", &long);
    repository.git(&["rm", "-q", "g.json"]);
    repository.git(&["commit", "-q", "-m", "gone for a while"]);
    let file = repository.commit("g.json", &book("r", &[("a", 12, "y")]));
    let found = history(&file);
    assert_eq!(found.series[0].figures, [10.0, 12.0]);
    let expected = [
        "is not a file of the gate (docs/gate.md): key must be a string at line 2 column 1",
        "has 'a' twice; take one row out",
        "is larger than 64 KiB, the limit",
    ];
    assert_eq!(found.notes.len(), expected.len(), "{:?}", found.notes);
    for (note, why) in found.notes.iter().zip(expected) {
        assert!(note.starts_with("left out: the gate's file at ") && note.ends_with(why), "{note}");
    }
    // The file in the working tree is the one that was asked for.
    repository.write("g.json", "{");
    let why = gate_sightings(&file).expect_err("it is broken");
    assert!(why.contains("g.json' is not a file of the gate") && why.contains("line 1"), "{why}");
}

#[test]
fn a_shallow_clone_says_so() {
    let repository = Repository::new("deep");
    repository.commit("g.json", &book("r", &[("a", 10, "x")]));
    repository.commit("g.json", &book("r", &[("a", 12, "y")]));
    let clone = repository.0.join("clone");
    let from = format!("file://{}", repository.0.display());
    repository.git(&["clone", "-q", "--depth", "1", &from, &clone.display().to_string()]);
    let found = history(&clone.join("g.json"));
    assert_eq!(found.series[0].figures, [12.0]);
    assert!(found.notes[0].contains("shallow clone"), "{:?}", found.notes);
    assert!(to_text(&found).contains("1 figure of 1 version of the gate, 0 changes of the gate"));
}

#[test]
fn more_versions_than_are_read_leave_the_oldest_out() {
    let repository = Repository::new("many");
    // Git's own format for importing many commits at once.
    let mut commits = String::new();
    for at in 0..=VERSIONS_MAX {
        let text = book("r", &[("a", at as u64, "x")]);
        let _ = write!(
            commits,
            "commit refs/heads/main\ncommitter a <a@example.org> {at} +0000\ndata 1\nx\n\
             M 644 inline g.json\ndata {}\n{text}\n",
            text.len()
        );
    }
    let commits = repository.write("commits", &commits);
    let import = Command::new("git")
        .current_dir(&repository.0)
        .args(["fast-import", "--quiet"])
        .stdin(File::open(commits).expect("a file"))
        .status();
    assert!(import.expect("git").success());
    repository.git(&["reset", "-q", "--hard"]);
    let found = history(&repository.0.join("g.json"));
    assert_eq!(found.series[0].figures.len(), VERSIONS_MAX);
    assert_eq!(found.series[0].figures[0], 1.0);
    assert_eq!(found.series[0].changes.len(), VERSIONS_MAX - 1);
    assert!(found.notes[0].contains("more than 500 versions"), "{:?}", found.notes);
}

#[test]
fn what_has_no_history_is_refused_with_what_to_do() {
    let repository = Repository::new("none");
    let good = book("r", &[("a", 10, "x")]);
    let refuses = |file: &Path, expected: &str| {
        let why = gate_sightings(file).expect_err(expected);
        assert!(why.contains(expected), "{why}");
    };
    let new = repository.write("new.json", &good);
    refuses(&new, "does not have any commits yet");
    let empty = repository.commit("empty.json", &book("r", &[]));
    refuses(&empty, "empty.json' never had a verb");
    let newer = repository.write("newer.json", &good);
    refuses(&newer, "newer.json' was never committed, so it has no history; commit it first");
    refuses(&repository.0, "is not a file; expected that of the gate");
    refuses(&repository.0.join("missing"), "missing': No such file");
    refuses(Path::new("/dev/zero"), "'/dev/zero' is not a file");
    fs::remove_dir_all(repository.0.join(".git")).expect("removed");
    refuses(&new, "has no history that git can read: git ended with");
    refuses(&new, "not a git repository");
}
