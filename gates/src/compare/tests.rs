//! What rings, and what does not.

use super::*;

fn tools(compiler: &str) -> Tools {
    let text = |it: &str| it.to_owned();
    Tools {
        compiler: text(compiler),
        valgrind: text("valgrind"),
        libc: text("libc"),
        machine: text("here"),
    }
}

fn book(rows: &[(&str, u64, &str)]) -> Book {
    let row = |(name, instructions, why): &(&str, u64, &str)| {
        ((*name).to_owned(), Row { instructions: *instructions, why: (*why).to_owned() })
    };
    Book { tools: tools("one"), verbs: rows.iter().map(row).collect() }
}

fn counts(rows: &[(&str, u64)]) -> Counts {
    rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// The findings as text, each with whether it rings.
fn found(book: &Book, compiler: &str, rows: &[(&str, u64)]) -> Vec<(bool, String)> {
    let findings = compare(book, &tools(compiler), &counts(rows), |_| true);
    findings.iter().map(|finding| (finding.rings(), finding.to_string())).collect()
}

#[test]
fn a_verb_rings_above_two_per_cent_and_not_below() {
    let book = book(&[("send", 100_000, "first")]);
    for silent in [100_000, 101_900, 102_000, 98_100, 98_000] {
        assert_eq!(found(&book, "one", &[("send", silent)]), [], "{silent}");
    }
    let [(true, why)] = &found(&book, "one", &[("send", 102_100)])[..] else { panic!("silent") };
    assert!(why.starts_with("'send' takes 102100 instructions, and took 100000: +2.1 %"), "{why}");
    assert!(why.contains("--bless"), "{why}");
    let fell = found(&book, "one", &[("send", 97_900)]);
    assert!(matches!(&fell[..], [(false, why)] if why.contains("-2.1 %")), "{fell:?}");
}

#[test]
fn what_is_not_shown_rings() {
    type Case = (&'static [(&'static str, u64, &'static str)], &'static [(&'static str, u64)]);
    let table: [(Case, &str); 4] = [
        ((&[], &[("send", 1)]), "'send' has no figure in the file"),
        ((&[("send", 1, "first")], &[]), "'send' stands in the file and was not counted"),
        ((&[("send", 1, " ")], &[("send", 1)]), "'send' has an empty 'why'"),
        ((&[("send", 0, "first")], &[("send", 1)]), "'send' takes 1 instructions, and took 0"),
    ];
    for ((rows, fresh), expected) in table {
        let found = found(&book(rows), "one", fresh);
        assert!(matches!(&found[..], [(true, why)] if why.starts_with(expected)), "{found:?}");
    }
}

#[test]
fn figures_of_another_compiler_are_not_compared_and_count_as_failed() {
    let found = found(&book(&[("send", 100, "first")]), "two", &[("send", 200)]);
    let [(true, why)] = &found[..] else { panic!("{found:?}") };
    assert!(why.starts_with("the figures are not comparable"), "{why}");
    assert!(why.contains("made with [one; ") && why.contains("here are [two; "), "{why}");
}

#[test]
fn verbs_that_were_not_asked_for_are_left_out() {
    let book = book(&[("send", 1, "first"), ("receive", 1, "first")]);
    let findings = compare(&book, &tools("one"), &counts(&[("send", 1)]), |verb| verb == "send");
    assert_eq!(findings, []);
}

#[test]
fn a_figure_that_rises_in_the_file_needs_a_new_reason() {
    let before = book(&[("send", 100, "first"), ("receive", 100, "first"), ("open", 100, "a")]);
    let now = book(&[("send", 103, "first"), ("receive", 103, "it must"), ("open", 90, "a")]);
    assert_eq!(unexplained(&before, &now), [Finding::OldReason("send".into())]);
}

#[test]
fn a_blessing_needs_a_reason_and_leaves_alone_what_has_not_changed() {
    let old = book(&[("send", 100, "first"), ("receive", 100, "first"), ("gone", 1, "first")]);
    let fresh = counts(&[("send", 101), ("receive", 103), ("new", 5)]);
    assert!(check(" ").is_err() && check("it must").is_ok());
    let new = blessed(Some(&old), &tools("one"), &fresh, "it must");
    assert_eq!(
        new,
        book(&[("send", 100, "first"), ("receive", 103, "it must"), ("new", 5, "it must")])
    );
    let other = blessed(Some(&old), &tools("two"), &fresh, "compiler");
    assert!(other.verbs.values().all(|row| row.why == "compiler"), "{other:?}");
    assert_eq!(other.verbs["send"].instructions, 101);
}
