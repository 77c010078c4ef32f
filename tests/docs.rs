//! Checks the guides: their graphs compile, the tests in them pass, and the files that they name
//! exist. The files in README.md and ARCHITECTURE.md are checked too. Each page is in the index,
//! each command is in the list of commands, and each test that is said to hold a promise exists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sinew_control::outside;
use sinew_flows::{FLOWS, Suite};
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{SpecSource, compile, render, wanted_of};

/// The beginnings of a path in this repository.
const FOLDERS: [&str; 9] =
    ["crates/", "docs/", "examples/", "fuzz/", "gates/", "graphs/", "kinds/", "src/", "tests/"];

/// Every page in a folder, with its name.
fn pages(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).expect("pages").map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let page =
        |path: PathBuf| (path.display().to_string(), fs::read_to_string(&path).expect("UTF-8"));
    pages.map(page).collect()
}

/// Every piece of YAML in the guides and in README.md with this beginning, with the name of its
/// page.
fn blocks(beginning: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (page, text) in [pages("docs"), pages("")].concat() {
        let blocks = text.split("```yaml\n").skip(1);
        let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or(rest));
        let blocks = blocks.filter(|block| block.starts_with(beginning));
        found.extend(blocks.map(|block| (page.clone(), block.to_owned())));
    }
    assert!(!found.is_empty(), "no guide shows a graph that begins with '{beginning}'");
    found
}

/// The plan of a piece of YAML.
fn plan(page: &str, text: &str) -> Plan {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let outside = outside::bring(wanted_of(text, &[]), &folder);
    outside::know(&outside);
    let source = SpecSource { outside: &outside, ..SpecSource::of(page, text) };
    let plan = compile(&source, &sinew::kinds().catalogue(), &TargetMachine::of(vec![0, 1]));
    plan.unwrap_or_else(|errors| panic!("{}", render(&errors, text, false)))
}

#[test]
fn every_graph_in_a_guide_compiles() {
    let needs_ros2 = |page: &str| page.ends_with("docs/ros2.md");
    for (page, text) in blocks("name:") {
        // Only in a program with this feature: '.ci/run' builds one.
        if cfg!(feature = "ros2") || !needs_ros2(&page) {
            plan(&page, &text);
        }
    }
}

#[test]
fn every_list_of_nodes_in_a_guide_can_be_made_and_passes_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut tests = 0;
    for (page, text) in blocks("- kind:") {
        let plan = Arc::new(plan(&page, &text));
        for node in 0..plan.nodes.len() {
            let refusals =
                sinew::kinds().check_node(&plan, node, &folder).err().unwrap_or_default();
            assert!(refusals.is_empty(), "{page}: {refusals:?} in:\n{text}");
        }
        let suite = Suite::new(&plan, FLOWS, &folder).expect("its nodes could be made");
        for name in suite.names() {
            let outcome = suite.run(name).expect("a test of this name");
            assert!(outcome.passed, "{page}: {outcome}\n{text}");
            tests += 1;
        }
    }
    assert!(tests > 0, "no guide shows a test");
}

#[test]
fn every_file_that_a_guide_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, text) in [pages("docs"), pages("docs/figures"), pages("")].concat() {
        // Every second part is between backticks.
        let quoted = text.split('`').skip(1).step_by(2);
        for path in quoted.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder))) {
            let file = path.split("::").next().unwrap_or(path);
            assert!(root.join(file).exists(), "{page} names `{path}`, which is not there");
        }
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let path = match file {
                "" => PathBuf::from(&page),
                file => Path::new(&page).with_file_name(file),
            };
            assert!(path.exists(), "{page} links to {link}");
            let there = section.is_empty() || sections(&path).any(|there| there == section);
            assert!(there, "{page} links to {link}, and there is no such section");
        }
    }
}

#[test]
fn every_page_is_in_the_index_once() {
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/README.md");
    let text = fs::read_to_string(&index).expect("UTF-8");
    let folder = index.with_file_name("");
    for (page, _) in [pages("docs"), pages("docs/figures")].concat() {
        let name = Path::new(&page).strip_prefix(&folder).expect("a page of docs").display();
        let rows = text.lines().filter(|line| line.starts_with("| ["));
        let rows = rows.filter(|line| line.contains(&format!("]({name}) |"))).count();
        let expected = usize::from(Path::new(&page) != index);
        assert_eq!(rows, expected, "docs/README.md has {rows} rows for {name}");
    }
}

#[test]
fn every_command_is_in_the_list_of_commands() {
    let help = Command::new(env!("CARGO_BIN_EXE_sinew")).arg("--help").output().expect("sinew");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let commands = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let commands = commands.expect("a list of commands").lines();
    let commands: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"run"), "{help}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let page = fs::read_to_string(page).expect("UTF-8");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let is_there = page.contains(&format!("`sinew {command}"));
        assert!(is_there, "docs/commands.md does not name 'sinew {command}'");
    }
}

#[test]
fn every_test_and_drill_that_holds_a_promise_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| {
        fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let drills = read("crates/lab/src/drill/fault.rs");
    let text = read("SPECIFICATION.md");
    let promises: Vec<&str> = text.split("\n**P").skip(1).collect();
    assert!(promises.len() > 10, "SPECIFICATION.md has {} promises", promises.len());
    for (at, promise) in promises.into_iter().enumerate() {
        let name = format!("P{}", at + 1);
        assert!(promise.starts_with(&format!("{}. ", at + 1)), "{name} is not where it belongs");
        let (mut file, mut tests) = ("", 0);
        for word in promise.split('`').skip(1).step_by(2) {
            for fault in word.strip_prefix("fault=").into_iter().flat_map(|it| it.split(',')) {
                let is_there = drills.contains(&format!(" = \"{fault}\","));
                assert!(is_there, "{name} names drill '{fault}', which is not there");
            }
            // A test without a file is in the file of the test before it.
            let Some((path, test)) = word.split_once("::") else { continue };
            file = if path.is_empty() { file } else { path };
            let is_there = read(file).contains(&format!("fn {test}("));
            assert!(is_there, "{name} names `{file}::{test}`, which is not there");
            tests += 1;
        }
        assert!(tests > 0, "no test holds {name}");
    }
}

/// The sections of a page, by the names that links use.
fn sections(page: &Path) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(page).expect("UTF-8");
    let name = |heading: &str| heading.trim_start_matches(['#', ' ']).to_lowercase();
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with('#')).map(name).collect();
    heads.into_iter().map(|head| head.replace('`', "").replace(' ', "-"))
}
