//! One name for one type. A type that other files of its crate may use has a unique name in its
//! crate. A `pub` type has a unique name in all crates. Private types are free: a reader of the
//! file sees them. Tests, benches and examples are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, inline_tests};

/// Names that mean one thing on several levels, and what they mean.
pub(crate) const SHARED: &[(&str, &str)] = &[
    ("Ahead", "a message that is read before its turn: in a queue, a link"),
    ("Claim", "a place that is being written: in a queue, a link, all links of a port"),
    ("Connection", "one of two is built: with the drivers of databases, or without"),
    ("Profiler", "one of two is built: what takes profiles, or what says that it cannot"),
    ("Peek", "a message that is read where it stands: in a queue, a link, a port"),
    ("Fresh", "what a read says of its value; only a slot can hold the safe one"),
    ("Node", "the row of the plan, and the trait of what it names"),
    ("Reader", "the reading end of each shape of link, and of the trace that is such a link"),
    ("Writer", "the writing end of each shape of link, and of the trace that is such a link"),
];

/// A declaration: its crate, its file, whether it is `pub`, its name.
struct Declared<'a> {
    room: String,
    path: &'a str,
    is_public: bool,
    name: &'a str,
}

fn declared(file: &File) -> Vec<Declared<'_>> {
    let parts: Vec<_> = file.path.split('/').collect();
    let depth = match parts[0] {
        "crates" | "kinds" => 2,
        "src" => 1,
        _ => return vec![],
    };
    let is_left_out = |part: &&str| matches!(*part, "tests" | "tests.rs" | "benches" | "examples");
    if !file.is_rust() || parts.iter().any(is_left_out) {
        return vec![];
    }
    let (start, length) = inline_tests(&file.text);
    let lines = file.text.lines().enumerate();
    let lines = lines.filter(|(i, _)| !(start..start + length).contains(i)).map(|(_, line)| line);
    let row = |(is_public, name)| {
        let room = parts[..depth].join("/");
        Declared { room, path: &file.path, is_public, name }
    };
    lines.filter_map(declaration).map(row).collect()
}

/// For a line that declares a type for other files too: whether it is `pub`, and its name.
fn declaration(line: &str) -> Option<(bool, &str)> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let (visible, rest) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?,
        None => ("", rest.strip_prefix(' ')?),
    };
    let (sort, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next().filter(|it| !it.is_empty())?;
    ["struct", "enum", "trait", "type", "union"]
        .contains(&sort)
        .then_some((visible.is_empty(), name))
}

/// For each name that several types have, the files in which they are.
pub(crate) fn shared(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut bearers: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    let all: Vec<_> = files.iter().flat_map(declared).collect();
    for one in &all {
        let everywhere = one.is_public.then(String::new);
        for room in everywhere.into_iter().chain([one.room.clone()]) {
            bearers.entry((one.name, room)).or_default().insert(one.path);
        }
    }
    let mut shared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ((name, _), paths) in bearers.into_iter().filter(|(_, paths)| paths.len() > 1) {
        shared.entry(name.into()).or_default().extend(paths.into_iter().map(str::to_owned));
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        shared(&files.iter().map(file).collect::<Vec<_>>()).into_keys().collect()
    }

    #[test]
    fn a_name_is_shared_by_two_files_of_a_crate_or_by_two_public_types() {
        let inner = [
            ("crates/a/src/b.rs", "pub(super) struct A;\n"),
            ("crates/a/src/c.rs", "pub enum A {}\n"),
        ];
        assert_eq!(names(&inner), ["A"]);
        let outer =
            [("crates/a/src/b.rs", "pub trait A {\n"), ("kinds/b/src/c.rs", "pub type A = u8;\n")];
        assert_eq!(names(&outer), ["A"]);
    }

    #[test]
    fn private_types_and_tests_are_free() {
        let apart = [
            ("crates/a/src/b.rs", "pub struct A;\n"),
            ("crates/a/src/c.rs", "struct A;\n#[cfg(test)]\nmod tests {\n    pub struct A;\n}\n"),
            ("crates/a/src/c/tests.rs", "pub struct A;\n"),
            ("crates/b/src/c.rs", "pub(crate) struct A;\n"),
        ];
        assert_eq!(names(&apart), Vec::<String>::new());
    }
}
