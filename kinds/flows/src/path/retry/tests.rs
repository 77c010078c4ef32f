//! Attempts, pauses, and which errors are worth another attempt.

use sinew_flow::Value;

use super::*;
use crate::testing::{fixture, refusals, run};

fn retry(parameters: &str) -> String {
    format!(
        "- {{kind: retry, name: retry{parameters}, ports: {{out: [{{name: throw, port: in}}]}}}}\n\
         - {{kind: throw, name: throw, status: 503, message: again}}"
    )
}

/// How often a packet was sent on within `limit`, and the error that came back.
fn attempts(parameters: &str, limit: Duration) -> (u64, String) {
    let fixture = fixture(&retry(parameters));
    let reply = run(fixture.open("begin", 0, Value::Null, limit));
    let error = reply.expect_err("it never works");
    (fixture.figures("throw").packets(), error.to_string())
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn the_threshold_counts_the_first_attempt_too() {
    let again = || "node 'throw': again".to_owned();
    assert_eq!(attempts(", backoff: 0s", LONG), (3, again()));
    assert_eq!(attempts(", backoff: 1ms, threshold: 5", LONG), (5, again()));
    assert_eq!(attempts(", threshold: 1", LONG), (1, again()));
}

#[test]
fn an_error_that_is_not_worth_it_is_the_answer() {
    let when = ", backoff: 0s, when: error.status == 502 || packet != null";
    assert_eq!(attempts(when, LONG).0, 1);
    assert_eq!(attempts(", backoff: 0s, when: error.status == 503", LONG).0, 3);
    let (attempts, error) = attempts(", backoff: 0s, when: error.status", LONG);
    assert!(attempts == 1 && error.contains("not true or false"), "{error}");
}

#[test]
fn a_pause_past_the_deadline_is_not_begun() {
    let (attempts, error) =
        attempts(", backoff: 60s, backoff_max: 60s, jitter: 0", Duration::from_secs(10));
    assert_eq!((attempts, error.as_str()), (1, "node 'throw': again"));
}

#[test]
fn pauses_double_up_to_the_longest_and_jitter_only_shortens_them() {
    let when = Expression::compile("true", Default::default()).expect("an expression");
    let (backoff, backoff_max) = (Duration::from_millis(100), Duration::from_secs(1));
    let retry = Retry { threshold: 9, backoff, backoff_max, jitter: 0.5, when };
    let ms = |attempt, chance| retry.pause(attempt, chance).as_millis();
    assert_eq!([ms(1, 0.0), ms(2, 0.0), ms(4, 0.0), ms(5, 0.0)], [100, 200, 800, 1000]);
    assert_eq!([ms(1, 1.0), ms(1000, 1.0)], [50, 500]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for bad in [", when: 'error.'", ", backoff: 11s"] {
        assert_eq!(refusals(&retry(bad)).len(), 1, "{bad}");
    }
    assert_eq!(refusals(&retry(", when: 'error.', backoff: 11s")).len(), 2);
}
