//! STYLE.md as a test. Every rule is a function from a file to what is wrong with it, and is shown
//! a file that violates it.

use std::fs;
use std::path::Path;

mod tidy_rules;
use tidy_rules::{File, RULES, WALK, WALK_LINES_MAX, WORDS, code_lines};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 5] = [".git", "target", "corpus", "artifacts", "node_modules"];
/// What is looked at; all else is data.
const ENDINGS: [&str; 7] = ["rs", "toml", "md", "yaml", "yml", "sh", "css"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of ours below `folder`.
fn files(folder: &Path, found: &mut Vec<File>) {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().expect("a name").to_string_lossy();
        if path.is_dir() {
            if !SKIPPED.contains(&&*name) {
                files(&path, found);
            }
        } else if name == "run" || path.extension().is_some_and(|e| ENDINGS.iter().any(|x| e == *x))
        {
            let text = fs::read_to_string(&path).expect("UTF-8");
            let path = path.strip_prefix(root()).expect("below the root");
            found.push(File { path: path.to_string_lossy().replace('\\', "/"), text });
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
            let file = files.iter().find(|file| file.path == *path);
            let used = file.is_some_and(|file| file.has_word(word.word));
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
