//! What an edit changes, and what it leaves alone.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// A path as `nodes.0.ports`.
pub(super) fn steps(path: &str) -> Vec<PathStep> {
    let step = |part: &str| match part.parse() {
        Ok(index) => PathStep::Index(index),
        Err(_) => PathStep::Key(part.to_owned()),
    };
    path.split('.').filter(|part| !part.is_empty()).map(step).collect()
}

fn set(to: &str, key: &str, value: &str) -> Change {
    Change { to: steps(to), key: key.to_owned(), value: Some(value.to_owned()) }
}

fn remove(to: &str, key: &str) -> Change {
    Change { to: steps(to), key: key.to_owned(), value: None }
}

fn check(rows: &[(&str, Change, &str)]) {
    for (text, change, expected) in rows {
        let edited = edit(text, std::slice::from_ref(change));
        assert_eq!(edited.as_deref(), Ok(*expected), "{text}\n{change:?}");
        // The same with the other sort of line breaks, in a file that begins with a byte-order
        // mark.
        if !text.contains('\n') {
            continue;
        }
        let other = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let edited = edit(&other(text), std::slice::from_ref(change));
        assert_eq!(edited, Ok(other(expected)), "{text}\n{change:?}");
    }
}

#[test]
fn a_value_gives_way_to_another_and_nothing_else_changes() {
    check(&[
        ("a: 1 # one\nb: 2\n", set("", "a", "3"), "a: 3 # one\nb: 2\n"),
        ("a: 1", set("", "a", "[2, 3]"), "a: [2, 3]"),
        ("---\n'a' :   \"x\"  # one\n", set("", "a", "y"), "---\n'a' :   y  # one\n"),
        ("µ: é # ü\nname: ü # é\n", set("", "name", "\"ø\""), "µ: é # ü\nname: \"ø\" # é\n"),
        ("a:\n  b: {c: µ, d: 2} # x\n", set("a.b", "d", "z"), "a:\n  b: {c: µ, d: z} # x\n"),
        ("a: {\"b\":1}\n", set("a", "b", "2"), "a: {\"b\":2}\n"),
        ("a: # c\nb: 2\n", set("", "a", "1"), "a: 1 # c\nb: 2\n"),
        ("a: # c\n", set("", "a", "1"), "a: 1 # c\n"),
        ("a:", set("", "a", "1"), "a: 1"),
        ("a: {b, c: }\n", set("a", "b", "1"), "a: {b: 1, c: }\n"),
        ("a: {b, c: }\n", set("a", "c", "1"), "a: {b, c: 1 }\n"),
        ("a: ~ # c\n", set("", "a", "1"), "a: 1 # c\n"),
        ("a:\n  1 # c\nb: 2\n", set("", "a", "3"), "a:\n  3 # c\nb: 2\n"),
        ("- kind: a\n  domain: x\t# t\n", set("0", "domain", "y"), "- kind: a\n  domain: y\t# t\n"),
        ("- - {a: 1}\n", set("0.0", "a", "2"), "- - {a: 2}\n"),
        ("a: &x 1 # c\n", set("", "a", "2"), "a: &x 2 # c\n"),
        ("a: &x 1\nb: *x # c\n", set("", "b", "2"), "a: &x 1\nb: 2 # c\n"),
    ]);
}

#[test]
fn a_value_of_several_lines_gives_way_as_a_whole() {
    check(&[
        (
            "a: # c\n  b: 1 # d\n  e: [2,\n    3] # f\n# g\nh: 4\n",
            set("", "a", "x"),
            "a: x # c\n# g\nh: 4\n",
        ),
        ("a:\n- b\n- c # d\nh: 4", set("", "a", "[c]"), "a: [c]\nh: 4"),
        ("a:\n- b\n-\nh: 4", set("", "a", "[c]"), "a: [c]\nh: 4"),
        ("h: 4\na:\n  - b: {c: 1}\n  - d:", set("", "a", "[c]"), "h: 4\na: [c]"),
        ("a: | # c\n  one\n   two # d\n\nb: 2\n", set("", "a", "x"), "a: x # c\n\nb: 2\n"),
        ("a: |2-\n    one\n  two", set("", "a", "x"), "a: x"),
        ("a: >-\n\n  one\n\n  two\n# c\nb: 2\n", set("", "a", "x"), "a: x\n# c\nb: 2\n"),
        (
            "a:\n  b: |+\n    one\n\n  # c\n  d: 1\n",
            set("a", "b", "x"),
            "a:\n  b: x\n  # c\n  d: 1\n",
        ),
        ("a: |\nb: 2\n", set("", "a", "x"), "a: x\nb: 2\n"),
        ("a: [1, # c\n  2] # d\nb: 2\n", set("", "a", "x"), "a: x # d\nb: 2\n"),
        ("a: one\n  two # d\nb: 2\n", set("", "a", "x"), "a: x # d\nb: 2\n"),
        ("a: \"one\n\n  two\" # d\nb: 2\n", set("", "a", "x"), "a: x # d\nb: 2\n"),
        ("{a: {b: 1,\n  c: 2}, # d\n d: 3}\n", set("", "a", "x"), "{a: x, # d\n d: 3}\n"),
        ("a: &x # c\n  b: 1\nd: 2\n", set("", "a", "x"), "a: &x x # c\nd: 2\n"),
    ]);
}

#[test]
fn a_new_key_stands_on_a_line_behind_the_others() {
    check(&[
        ("a: 1 # c\n\n# d\n", set("", "b", "2"), "a: 1 # c\nb: 2\n\n# d\n"),
        ("a: 1", set("", "b", "2"), "a: 1\nb: 2"),
        (
            "c:\n  a: 1\n  # of a\n\n# of d\nd: 4\n",
            set("c", "b", "2"),
            "c:\n  a: 1\n  b: 2\n  # of a\n\n# of d\nd: 4\n",
        ),
        (
            "- kind: x # c\n- kind: y\n",
            set("0", "name", "z"),
            "- kind: x # c\n  name: z\n- kind: y\n",
        ),
        ("- - kind: x", set("0.0", "name", "z"), "- - kind: x\n    name: z"),
        ("-   kind: x\n    a: 1\n", set("0", "name", "z"), "-   kind: x\n    a: 1\n    name: z\n"),
        ("- &n\n  kind: x\n", set("0", "name", "z"), "- &n\n  kind: x\n  name: z\n"),
        (
            "- kind: x\n  p:\n    q:\n    - r: 1 # c\n- d\n",
            set("0", "name", "z"),
            "- kind: x\n  p:\n    q:\n    - r: 1 # c\n  name: z\n- d\n",
        ),
        ("a: |\n  one\n  two\n\n# c\n", set("", "b", "2"), "a: |\n  one\n  two\nb: 2\n\n# c\n"),
        ("a: |+\n  one\n\n\n# c\n", set("", "b", "2"), "a: |+\n  one\n\n\nb: 2\n# c\n"),
        ("a: |+\n  one\n\n", set("", "b", "2"), "a: |+\n  one\n\nb: 2\n"),
        ("a: |\n  one", set("", "b", "2"), "a: |\n  one\nb: 2"),
        ("a: >\n  µ\n   two\n", set("", "b", "2"), "a: >\n  µ\n   two\nb: 2\n"),
        ("a: # c\n", set("", "b", "2"), "a: # c\nb: 2\n"),
        ("a:\n- 1\n-\n# c\n", set("", "b", "2"), "a:\n- 1\n-\nb: 2\n# c\n"),
        ("a: &x\n# c\n", set("", "b", "2"), "a: &x\nb: 2\n# c\n"),
        ("a: one\n  two # d\n", set("", "b", "2"), "a: one\n  two # d\nb: 2\n"),
        ("a: {b: 1,\n  c: 2} # d\n", set("", "b", "2"), "a: {b: 1,\n  c: 2} # d\nb: 2\n"),
    ]);
}

#[test]
fn a_new_key_between_braces_stands_behind_the_last_one() {
    check(&[
        ("- {a: 1} # c\n", set("0", "b", "x"), "- {a: 1, b: x} # c\n"),
        ("[{a: 1,}]\n", set("0", "b", "x"), "[{a: 1, b: x,}]\n"),
        ("{}\n", set("", "b", "x"), "{b: x}\n"),
        ("c: { } # d", set("c", "b", "x"), "c: {b: x} # d"),
        ("c: { # d\n  }\n", set("c", "b", "x"), "c: {b: x # d\n  }\n"),
        (
            "c: {\n  a: 1, # one\n  d: 2 # two\n}\n",
            set("c", "b", "x"),
            "c: {\n  a: 1, # one\n  d: 2, b: x # two\n}\n",
        ),
        (
            "c: {a: 'µ', d: [1, {e: f}]}\n",
            set("c", "b", "x"),
            "c: {a: 'µ', d: [1, {e: f}], b: x}\n",
        ),
        ("c: {a}\n", set("c", "b", "x"), "c: {a, b: x}\n"),
        ("c: {a: }\n", set("c", "b", "x"), "c: {a:, b: x }\n"),
        ("--- {a: 1}\n", set("", "b", "x"), "--- {a: 1, b: x}\n"),
    ]);
}

#[test]
fn a_key_goes_away_with_its_lines_and_its_comment() {
    check(&[
        ("a: 1\n# of b\nb: 2 # c\nd: 4\n", remove("", "b"), "a: 1\n# of b\nd: 4\n"),
        ("a: 1\nb: 2", remove("", "b"), "a: 1"),
        ("a: |+\n  one\n\n\nb: 2", remove("", "b"), "a: |+\n  one\n\n\n"),
        ("a: 1\nb: 2\n", remove("", "b"), "a: 1\n"),
        ("a: 1\nb: 2\n", remove("", "a"), "b: 2\n"),
        (
            "a: 1\nb:\n  - c # d\n  - e: |\n      f\n\n# of g\ng: 1\n",
            remove("", "b"),
            "a: 1\n\n# of g\ng: 1\n",
        ),
        ("- kind: a # c\n  name: b\n", remove("0", "kind"), "- name: b\n"),
        ("- kind: a # c\n  # of b\n  name: b\n", remove("0", "kind"), "-\n  # of b\n  name: b\n"),
        ("- kind: a\n  name: b\n- c\n", remove("0", "name"), "- kind: a\n- c\n"),
        ("{a: 1, b: 2, c: 3}\n", remove("", "a"), "{b: 2, c: 3}\n"),
        ("{a: 1, b: 2, c: 3}\n", remove("", "b"), "{a: 1, c: 3}\n"),
        ("{a: 1, b: 2, c: 3}\n", remove("", "c"), "{a: 1, b: 2}\n"),
        ("{a: 1, b: 2,}\n", remove("", "b"), "{a: 1,}\n"),
        ("x: {a: 1} # c\n", remove("x", "a"), "x: {} # c\n"),
        (
            "{\n  a: 1, # one\n  b: 2, # two\n  c: 3 # three\n}\n",
            remove("", "b"),
            "{\n  a: 1, # one\n  c: 3 # three\n}\n",
        ),
        ("{\n  a: 1, # one\n  c: 3 # three\n}\n", remove("", "c"), "{\n  a: 1 # one\n}\n"),
        ("{a: 1, b: 2,\n c: 3}\n", remove("", "b"), "{a: 1,\n c: 3}\n"),
        ("{a: 1,\n c: 3}\n", remove("", "c"), "{a: 1\n }\n"),
        ("a: 1 # c\n", remove("", "b"), "a: 1 # c\n"),
        ("a: &x 1\nb: 2\n", remove("", "a"), "b: 2\n"),
    ]);
}

#[test]
fn changes_are_made_one_after_the_other() {
    let text = "# head\n- {kind: a} # one\n- kind: b\n  wait: spin # two\n";
    let changes = [
        set("0", "domain", "x"),
        set("0", "domain", "y"),
        set("1", "threads", "[{cpu: 1, nodes: [a, b]}]"),
        remove("1", "wait"),
        set("1.threads.0", "cpu", "2"),
    ];
    let expected =
        "# head\n- {kind: a, domain: y} # one\n- kind: b\n  threads: [{cpu: 2, nodes: [a, b]}]\n";
    assert_eq!(edit(text, &changes).as_deref(), Ok(expected));
}

/// The error for a change that is refused.
fn refused(text: &str, changes: &[Change]) -> String {
    edit(text, changes).unwrap_err().to_string()
}

#[test]
fn what_other_places_say_too_is_refused() {
    let of_an_alias = "a: &x\n  b: 1\nc: *x\n";
    for change in [set("c", "b", "2"), remove("c", "b"), set("c", "d", "2")] {
        let why = "line 3: '*x' repeats the value of '&x' on line 1, which would change too; write \
                   the value out here by hand";
        assert_eq!(refused(of_an_alias, &[change]), why);
    }
    let at = |line: usize| {
        format!(
            "line {line}: the value of '&x' on line 1 is repeated on line 3 by '*x', and would \
             change there too; write it out there by hand"
        )
    };
    for change in [set("a", "b", "2"), set("a", "d", "2")] {
        assert_eq!(refused(of_an_alias, &[change]), at(2));
    }
    assert_eq!(refused(of_an_alias, &[set("", "a", "2")]), at(2));
    assert_eq!(refused(of_an_alias, &[remove("", "a")]), at(2));
    for text in ["a: &x 1\nb: 2\nc: *x\n", "? &x a\n: 1\nc: *x\n", "a: [{b: &x 1}]\nd: 1\nc: *x\n"]
    {
        let why = refused(text, &[remove("", "a")]);
        assert!(why.ends_with(&at(1)["line 1: ".len()..]), "{why}");
    }
    // Pieces below it in the tree are reported too.
    assert_eq!(refused("a: &x {b: {c: 1}}\n\nd: *x\n", &[set("a.b", "c", "2")]), at(1));
    // An anchor that is only used inside the removed piece does not prevent the change.
    let inner = edit("a: {b: &x 1, c: *x}\nd: *x\n", &[set("", "a", "2")]);
    assert!(inner.is_err());
    assert_eq!(edit("a: {b: &x 1, c: *x}\n", &[set("", "a", "2")]).as_deref(), Ok("a: 2\n"));
}

#[test]
fn what_cannot_be_changed_is_refused_with_its_line() {
    let rows = [
        (
            "a: 1\nb: c\n",
            set("b", "d", "2"),
            "line 2: 'd' belongs in a mapping, found a single value; write it as one",
        ),
        (
            "a: 1\nb: [c]\n",
            set("b", "d", "2"),
            "line 2: 'd' belongs in a mapping, found a list; write it as one",
        ),
        ("a: 1\nb: {}\n", set("b.c", "d", "2"), "line 2: there is no 'c' here, found a mapping"),
        ("a:\n  - b\n", set("a.3", "d", "2"), "line 2: there is no entry 3 here, found a list"),
        (
            "b:\n  a: 1\n",
            remove("b", "a"),
            "line 2: 'a' is the only key here; remove the mapping by hand",
        ),
        (
            "a: 1\nb: {c: 1}\n",
            set("b", "c", "x, y"),
            "line 2: this mapping cannot be edited by a program; write 'c: x, y' there by hand",
        ),
        (
            "a: 1\nb: {c: 1}\n",
            set("b", "d", "x # y"),
            "line 2: this mapping cannot be edited by a program; write 'd: x # y' there by hand",
        ),
        (
            "? a\nb: 1\n",
            set("", "a", "2"),
            "line 1: this mapping cannot be edited by a program; write 'a: 2' there by hand",
        ),
        (
            "[a: 1]\n",
            set("0", "b", "2"),
            "line 1: this mapping cannot be edited by a program; write 'b: 2' there by hand",
        ),
        (
            "a: 1\n",
            set("", "b: c", "2"),
            "line 1: this mapping cannot be edited by a program; write 'b: c: 2' there by hand",
        ),
        (
            "a: 1\n",
            set("", "b", "|\n c"),
            "line 1: the value of 'b' has several lines; write it on one, as [a, b]",
        ),
    ];
    for (text, change, why) in rows {
        assert_eq!(refused(text, &[change]), why, "{text}");
    }
    assert!(refused("a: 1\n", &[set("", "a", "{")]).contains("'a' cannot be '{': not YAML"));
    assert!(refused("a: 1\n", &[set("", "a", "")]).contains("'a' cannot be ''"));
    assert!(refused("a: 1\nb: [\n", &[]).contains(": not YAML: "));
    assert!(refused("a: 1\na: 2\n", &[]).starts_with("line 2: key 'a' appears twice"));
}

#[test]
fn an_error_names_the_line_as_it_was_before_all_changes() {
    let text = "a:\n  b: 1\n  c:\n    d: 1\n    e: 2\n  f: 3\ng: &x 1\nh: *x\n";
    let first = [set("a", "i", "1"), set("a.c", "j", "1"), set("a", "c", "1"), remove("a", "b")];
    assert!(edit(text, &first).is_ok());
    let refused = refused(text, &[&first[..], &[set("", "g", "2")]].concat());
    assert!(
        refused.starts_with("line 7: the value of '&x' on line 7 is repeated on line 8"),
        "{refused}"
    );
}

/// The graphs of this repository that are valid YAML, each with its name.
fn graphs() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("../../graphs"), root.join("tests/graphs")];
    let mut graphs = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = fs::read_to_string(&path).unwrap();
                graphs.extend(tree(&text).is_ok().then_some((path, text)));
            }
        }
    }
    assert!(graphs.len() > 20, "{} graphs", graphs.len());
    graphs.sort();
    graphs
}

/// The paths of all mappings of a tree.
fn mappings(item: &Item, path: &[PathStep], found: &mut Vec<(Vec<PathStep>, Vec<String>)>) {
    let below = |step| [path, &[step]].concat();
    match &item.data {
        Data::Map(entries) => {
            let keys = entries.iter().map(|entry| entry.key.clone()).collect();
            found.push((path.to_vec(), keys));
            for Entry { key, value, .. } in entries {
                mappings(value, &below(PathStep::Key(key.clone())), found);
            }
        }
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                mappings(item, &below(PathStep::Index(index)), found);
            }
        }
        Data::Scalar { .. } => {}
    }
}

/// The mappings of a text, each with its keys.
fn all_mappings(text: &str) -> Vec<(Vec<PathStep>, Vec<String>)> {
    let mut found = Vec::new();
    mappings(&tree(text).unwrap(), &[], &mut found);
    found
}

fn is_link((path, _): &(Vec<PathStep>, Vec<String>)) -> bool {
    let ports = PathStep::Key("ports".to_owned());
    path.len() > 3
        && path[path.len() - 3] == ports
        && matches!(path.last(), Some(PathStep::Index(_)))
}

/// The text after the first ` #` of each line.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| Some(line.split_once('#')?.1)).collect()
}

#[test]
fn an_option_of_a_link_changes_one_line_of_any_graph_here() {
    let mut links = 0;
    for (path, text) in graphs() {
        for (to, keys) in all_mappings(&text).into_iter().filter(is_link) {
            let options = [("wait", "park"), ("capacity", "16"), ("transport", "tcp")];
            for (key, value) in options {
                let change = Change { to: to.clone(), ..set("", key, value) };
                let new = edit(&text, &[change]).unwrap_or_else(|why| panic!("{path:?}: {why}"));
                let (old_lines, lines): (Vec<_>, Vec<_>) =
                    (text.lines().collect(), new.lines().collect());
                let first =
                    old_lines.iter().zip(&lines).take_while(|(old, new)| old == new).count();
                let is_added = lines.len() > old_lines.len();
                let rest = &old_lines[(first + usize::from(!is_added)).min(old_lines.len())..];
                assert_eq!(&lines[(first + 1).min(lines.len())..], rest, "{path:?} {to:?}");
                assert!(!is_added || !keys.iter().any(|known| known == key), "{path:?} {to:?}");
                assert_eq!(comments(&new), comments(&text), "{path:?} {to:?}");
                // And back.
                let old = Change { to: to.clone(), ..remove("", key) };
                if !keys.iter().any(|known| known == key) {
                    assert_eq!(edit(&new, &[old]).as_ref(), Ok(&text), "{path:?} {to:?}");
                }
                links += 1;
            }
        }
    }
    assert!(links > 300, "{links}");
}

#[test]
fn keys_of_any_graph_here_can_be_removed_and_set() {
    for (path, text) in graphs() {
        for (to, keys) in all_mappings(&text) {
            for (at, key) in keys.iter().enumerate() {
                // Set and remove alternate: both for every key would take too long.
                let value = ((at + to.len()) % 2 == 0).then(|| "{a: [1, b]}".to_owned());
                let change = Change { to: to.clone(), key: key.clone(), value };
                let Err(why) = edit(&text, &[change]) else { continue };
                let why = why.to_string();
                let is_known = why.contains("the only key") || why.contains("'&");
                assert!(is_known, "{path:?} {to:?} {key}: {why}");
            }
        }
    }
}

/// Difficult pieces of YAML, each to be put after a colon or a `- `.
const VALUES: &[&str] = &[
    "1",
    "x # c",
    "'it''s'",
    "\"a\\n\"",
    "{}",
    "{a: 1}",
    "{a: 1, b: {c: 2},}",
    "[1, 2]",
    "~",
    "",
    "&x 1",
    "*x",
    "{a: &x 1, b: *x}",
    "|\n        one\n        two\n\n",
    ">-\n        µ\n",
    "|+\n        one\n\n\n",
    "\n      a: 1 # c\n      b: 2",
    "\n      - a: 1\n      -\n      - c",
    "{\n      a: 1, # one\n      b: 2 # two\n    }",
    "one\n        two",
    "# c\n      a:\n      b: |\n       x",
];

/// Characters that mean something to the parser.
const SIGNS: &[&str] = &[
    "a", "b", "a: ", "b: ", ": ", "- ", "\n", "\n", "  ", "\n  ", "{", "}", "[", "]", ", ", "? ",
    "#", " ", "|", ">", "+", "'", "\"", "&x ", "*x", "---", "\u{feff}", "µ", "\r\n", "\t", "~",
    "\u{a0}",
];

/// The new value of a changed key, or `None` if the key is removed.
const CHANGED: [Option<&str>; 6] =
    [Some("2"), Some("[a, {b: c}]"), Some("'x'"), Some("{}"), Some("\"µ\""), None];

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_change_of_any_text_is_exact_or_refused(
        values in prop::collection::vec((0..VALUES.len(), 0..4u8), 1..6),
        (is_crlf, is_cut) in any::<(bool, bool)>(),
        (mapping, key, value) in (0..64usize, 0..8usize, 0..CHANGED.len()),
    ) {
        let mut pieces = vec!["# head\nroot: # r\n  - &x start\n".to_owned()];
        for (at, (value, sort)) in values.into_iter().enumerate() {
            let value = VALUES[value];
            pieces.push(match sort {
                0 => format!("  - {value}\n"),
                1 => format!("  # of it\n  - k{at}: {value}\n    z: 1\n"),
                2 => format!("  - z: 1\n    k{at}: {value}\n\n"),
                _ => format!("  - z:\n      k{at}: {value}\n"),
            });
        }
        let last = pieces.last_mut().unwrap();
        if is_cut {
            last.truncate(last.trim_end().len());
        }
        if is_crlf {
            pieces.iter_mut().for_each(|piece| *piece = piece.replace('\n', "\r\n"));
        }
        let text = pieces.concat();
        let Ok(mut expected) = tree(&text) else { return Ok(()) };
        let all = all_mappings(&text);
        let (to, keys) = &all[mapping % all.len()];
        let key = keys.get(key).map_or("new", String::as_str).to_owned();
        let change = Change { to: to.clone(), key, value: CHANGED[value].map(str::to_owned) };
        let new = match edit(&text, std::slice::from_ref(&change)) {
            Ok(new) => new,
            Err(why) => {
                let why = why.to_string();
                prop_assert!(why.contains("the only key") || why.contains("'&x'"), "{why}\n{text}");
                return Ok(());
            }
        };
        let value = change.value.as_deref().map(|value| tree(value).unwrap());
        change_tree(&mut expected, &change, value).unwrap();
        prop_assert!(same(&tree(&new).unwrap(), &expected));
        // The pieces before and after the changed one are the same.
        if let [_, PathStep::Index(changed), ..] = to[..] {
            let (front, back) = (pieces[..changed].concat(), pieces[changed + 1..].concat());
            prop_assert!(new.starts_with(&front) && new.ends_with(&back), "{text}\n{new}");
        }
        prop_assert!(!is_crlf || new.matches('\n').count() == new.matches("\r\n").count());
    }

    #[test]
    fn nothing_panics_on_any_signs(signs in prop::collection::vec(0..SIGNS.len(), 1..24)) {
        let text: String = signs.into_iter().map(|sign| SIGNS[sign]).collect();
        if tree(&text).is_err() {
            return Ok(());
        }
        for (to, mut keys) in all_mappings(&text) {
            keys.push("new".to_owned());
            for (key, value) in keys.iter().flat_map(|key| CHANGED.map(|value| (key, value))) {
                let value = value.map(str::to_owned);
                let _ = edit(&text, &[Change { to: to.clone(), key: key.clone(), value }]);
            }
        }
    }
}
