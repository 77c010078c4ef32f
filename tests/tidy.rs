//! STYLE.md as a test. Every rule is a function that returns what is wrong with a file. Each rule
//! is tested with a file that violates it.

use std::fs;
use std::path::Path;

mod tidy_rules;
use tidy_rules::arrows::{FLOORS, wrong};
use tidy_rules::names::{SHARED, shared};
use tidy_rules::{File, RULES, WALK, WALK_LINES_MAX, WORDS, code_lines};

/// Folders without files of ours.
const SKIPPED: [&str; 4] = [".git", "target", "corpus", "artifacts"];
/// The endings of files that are checked. All other files are data.
const ENDINGS: [&str; 7] = ["rs", "toml", "md", "yaml", "yml", "sh", "css"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_looked_at(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    path.ends_with(".ci/run") || ENDINGS.iter().any(|looked_at| ending == *looked_at)
}

/// Finds every file of ours below `folder`.
fn files(folder: &Path, found: &mut Vec<File>) {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
                files(&path, found);
            }
        } else if is_looked_at(&path) {
            // A graph that tests bad input may be invalid UTF-8.
            let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
            let path = path.strip_prefix(root()).expect("below the root");
            found.push(File { path: path.display().to_string(), text });
        }
    }
}

fn all() -> Vec<File> {
    let mut found = vec![];
    files(root(), &mut found);
    assert!(found.len() > 50, "the files are not where this test looks");
    found
}

#[test]
fn the_house_is_tidy() {
    let files = all();
    let wrong: Vec<_> =
        RULES.iter().flat_map(|rule| files.iter().flat_map(|file| (rule.check)(file))).collect();
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn arrows_between_modules_run_down() {
    let files = all();
    let crates = fs::read_dir(root().join("crates")).expect("a folder").count();
    let kinds = fs::read_dir(root().join("kinds")).expect("a folder").count();
    assert_eq!(FLOORS.len(), crates + kinds + 1, "each crate has its floors, and the root");
    let wrong: Vec<_> =
        FLOORS.iter().flat_map(|(folder, floors)| wrong(folder, floors, &files)).collect();
    assert!(wrong.is_empty(), "{} arrows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn one_name_stands_for_one_type() {
    let shared = shared(&all());
    let allowed = |name: &str| SHARED.iter().any(|(allowed, _)| *allowed == name);
    let wrong: Vec<_> = shared.iter().filter(|(name, _)| !allowed(name)).collect();
    assert!(wrong.is_empty(), "names that several types bear: {wrong:#?}");
    let idle: Vec<_> = SHARED.iter().filter(|(name, _)| !shared.contains_key(*name)).collect();
    assert!(idle.is_empty(), "no longer shared; take the exceptions back: {idle:#?}");
}

#[test]
fn every_rule_can_fail() {
    for rule in RULES {
        for (path, text) in rule.violations {
            let file = File { path: (*path).into(), text: (rule.grow)(text) };
            assert!(!(rule.check)(&file).is_empty(), "'{}' bears {path}:\n{text}", rule.name);
        }
    }
}

#[test]
fn every_exception_is_needed() {
    let files = all();
    for word in WORDS {
        for (path, _) in word.exceptions {
            let used = files.iter().any(|file| file.is_at(path) && file.has_word(word.word));
            assert!(used, "'{}' no longer stands in {path}; take the exception back", word.word);
        }
    }
}

#[test]
fn the_whole_is_read_in_five_minutes() {
    let lines = WALK.map(|path| {
        code_lines(&fs::read_to_string(root().join(path)).expect("a step of the walk")).len()
    });
    let sum: usize = lines.iter().sum();
    assert!(sum <= WALK_LINES_MAX, "{WALK:?} have {lines:?} lines of code, {sum} in all");
}
