//! What a cyclic node prints.

use std::time::Duration;

use sinew_control::status::EventKind;
use sinew_runtime::run::Outcome;

use crate::{request, two_domains, watch};

/// The lines of a run to its end: domain and text.
fn printed(source: &str) -> Vec<(String, String)> {
    let text = two_domains(source, "delivery: latest");
    let seen = watch(request(&text), Duration::from_secs(5), |_, _| ());
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let lines = seen.run.events().after(0).filter(|event| event.what == EventKind::Output);
    lines.map(|line| (line.domain.clone().expect("a domain"), line.text.clone())).collect()
}

pub(crate) fn what_a_cyclic_node_prints_is_an_event() {
    let lines = printed("finish_at: 100, fail_at: 50, failure: print,");
    let control = |text: &str| ("control".to_owned(), text.to_owned());
    assert_eq!(lines, [control("line one"), control("line two")]);
}

/// The reader relies on it that written bytes stay.
pub(crate) fn what_was_printed_cannot_be_taken_back() {
    let lines = printed("finish_at: 70, fail_at: 50, failure: take_back,");
    assert!(lines.len() > 20 && lines.iter().all(|(_, text)| text == "line"), "{lines:?}");
}

/// The run neither waits nor fails because of it.
pub(crate) fn a_flood_of_output_is_cut_and_counted() {
    let lines = printed("finish_at: 600, fail_at: 1, failure: flood,");
    let lost = "bytes of its output came too fast and are lost";
    assert!(lines.iter().any(|(_, text)| text.ends_with(lost)));
    let whole = lines.iter().filter(|(_, text)| text.starts_with("---") && text.len() == 500);
    assert!(whole.count() > 10, "the newest lines are kept");
}
