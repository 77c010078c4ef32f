//! Bad specs: each folder of `tests/graphs` holds a `graph.yaml` and, in `expected.txt`, the
//! diagnostics that it must get, as a user sees them. `BLESS=1` writes the current answers; read
//! the difference.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::kinds::{ARM, compile_on};
use sinew_spec::{COPIES_MAX, DEPTH_MAX, TEXT_LEN_MAX, render};

#[test]
fn every_bad_graph_is_answered_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs");
    let mut cases: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()).collect();
    cases.sort_by_key(|case| case.file_name());
    let mut wrong = String::new();
    for case in &cases {
        let text = fs::read_to_string(case.path().join("graph.yaml")).unwrap();
        let answer = match compile_on(4, &text) {
            Ok(plan) => format!("{plan:#?}"),
            Err(errors) => render(&errors, &text, false),
        };
        let expected = case.path().join("expected.txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &answer).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != answer {
            writeln!(wrong, "{}:\n{answer}", case.path().display()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "not as in expected.txt:\n{wrong}");
    assert!(cases.len() > 20, "{} cases", cases.len());
}

#[test]
fn a_diagnostic_has_a_plain_form_and_a_json_form() {
    let errors = compile_on(4, &ARM.replace("priority", "priorty")).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "graph.yaml:4:44: error: unknown key 'priorty' in a realtime domain; help: did you mean \
         'priority'?"
    );
    let json = errors[0].to_json();
    assert_eq!((json["line"].as_u64(), json["length"].as_u64()), (Some(4), Some(7)));
    assert_eq!(json["help"], "did you mean 'priority'?");
}

#[test]
fn a_spec_past_the_limit_is_refused_unread() {
    let text = "#".repeat(TEXT_LEN_MAX + 1);
    let errors = compile_on(4, &text).unwrap_err();
    assert_eq!(errors[0].message, format!("the spec has {} bytes", TEXT_LEN_MAX + 1));
}

#[test]
fn what_is_quoted_of_a_spec_is_never_long() {
    let word = "µ".repeat(1_000_000);
    for spec in [ARM.replace("priority", &word), format!("- kind: {word}"), format!("a: *{word}")] {
        for error in compile_on(4, &spec).unwrap_err() {
            let longest = error.message.chars().count().max(error.help.chars().count());
            assert!(longest < 1100, "{longest} characters");
        }
    }
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let alias = format!("*a{}", i - 1);
        writeln!(bomb, "a{i}: &a{i} [{}]", [alias.as_str(); 10].join(", ")).unwrap();
    }
    let errors = compile_on(4, &bomb).unwrap_err();
    assert_eq!(errors.len(), 1);
    let expected = format!("anchors and aliases copy more than {COPIES_MAX} values");
    assert_eq!(errors[0].message, expected);
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [DEPTH_MAX + 1, 200] {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "x")] {
            let text = open.repeat(depth) + &close.repeat(depth);
            let errors = compile_on(4, &text).unwrap_err();
            assert!(errors[0].message.contains("nested deeper"), "{errors:#?}");
        }
    }
    assert_eq!(compile_on(4, &"[".repeat(1 << 20)).unwrap_err().len(), 1);
}

#[test]
fn a_thousand_errors_are_counted_not_listed() {
    let mut text = ARM.to_owned();
    for i in 0..1000 {
        writeln!(text, "  - {{kind: nothing, name: n{i}, domain: control}}").unwrap();
    }
    let errors = compile_on(4, &text).unwrap_err();
    assert_eq!(errors.len(), 201);
    assert_eq!(errors[200].message, "800 more errors are not shown");
}

#[test]
fn a_thread_has_as_many_nodes_as_a_record_can_name() {
    let compiled = |count: usize| {
        let mut text = "domains: {core: {realtime: {period: 1s}}}\nnodes:\n".to_owned();
        for at in 0..count {
            writeln!(text, "  - {{kind: filter, name: n{at}, domain: core}}").unwrap();
        }
        compile_on(1, &text).map(|plan| plan.nodes.len())
    };
    assert_eq!(compiled(65_534).ok(), Some(65_534));
    let errors = compiled(65_535).unwrap_err();
    assert!(errors[0].message.contains("has 65535 nodes"), "{}", errors[0].message);
}

#[test]
fn a_key_that_stands_twice_is_found_among_many() {
    let mut text = "domains:\n".to_owned();
    for i in (0..40).chain([3, 39, 39]) {
        writeln!(text, "  d{i}: {{realtime: {{period: 1ms}}}}").unwrap();
    }
    let errors = compile_on(4, &text).unwrap_err();
    let twice = errors.iter().filter(|error| error.message.contains("appears twice"));
    assert_eq!(twice.map(|error| error.line).collect::<Vec<_>>(), [42, 43, 44]);
}
