//! Pictures of a scope on an in-memory terminal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sinew_control::traces::{NodeLayout, RunLayout, SignalLayout, ThreadLayout};
use sinew_core::trace::CycleHead;
use sinew_scope::{Scope, ScopeSettings, find};

use super::*;
use crate::screen::picture;

fn scope() -> Scope {
    let signal =
        SignalLayout { name: "x_v".into(), unit: "V".into(), count: 1, ..Default::default() };
    let node = NodeLayout { name: "a".into(), signals: vec![signal], ..Default::default() };
    let thread = ThreadLayout { period_ns: 1_000_000, nodes: vec![node], ..Default::default() };
    let layout = RunLayout { threads: vec![thread], ..Default::default() };
    let traces = find(&layout, "a.x_v").expect("it is there");
    let settings = ScopeSettings { window_ns: 100_000_000, ..ScopeSettings::default() };
    let mut scope = Scope::new(&layout, traces, settings).expect("good settings");
    let mut record = layout.threads[0].record();
    for number in 0..100 {
        let start_ns = number * 1_000_000;
        let head = CycleHead { number, start_ns, ..CycleHead::default() };
        record.head(&head, &[(number as f64 / 8.0).sin()]);
        scope.take(layout.threads[0].id(), &record);
    }
    scope
}

fn drawn(scope: &Scope, look: &Look, size: (u16, u16)) -> String {
    let capture = scope.capture();
    picture(size, |frame| draw(frame, scope, &capture, look, Theme { color: false })).0
}

#[test]
fn a_screen_of_80_by_24_has_picture_scale_and_keys() {
    let scope = scope();
    let look = Look { graph: "g".into(), ..Look::default() };
    let text = drawn(&scope, &look, (80, 24));
    assert!(text.starts_with("g  rolling  100 ms"), "{text}");
    assert!(text.contains(">[1] a.x_v") && text.contains("q quits"), "{text}");
    assert!(
        text.chars().filter(|it| ('\u{2801}'..='\u{28ff}').contains(it)).count() > 80,
        "{text}"
    );
}

#[test]
fn a_small_screen_marks_what_it_cuts_and_a_trace_has_its_number_in_the_picture() {
    let scope = scope();
    let mut look = Look { graph: "g".into(), ..Look::default() };
    let text = drawn(&scope, &look, (80, 24));
    let in_picture =
        |text: &str| text.lines().skip(2).take(19).any(|row| row.trim_end().ends_with('1'));
    assert!(in_picture(&text), "{text}");
    let text = drawn(&scope, &look, (30, 10));
    assert!(text.lines().any(|row| row.starts_with(">[1] a.x_v") && row.ends_with('…')), "{text}");
    look.pane = Pane::Help;
    let text = drawn(&scope, &look, (40, 10));
    assert!(text.contains("\n… ") && text.contains(" more rows on a higher"), "{text}");
    assert!(text.contains("window;\n               with cursors: move one\n"), "{text}");
}

#[test]
fn a_core_that_stands_is_said_on_top_and_below_until_somebody_looks_closer() {
    let scope = scope();
    let silence = Some("the core has stopped: faulted".to_owned());
    let mut look = Look { graph: "g".into(), silence, ..Look::default() };
    let text = drawn(&scope, &look, (80, 24));
    assert!(text.starts_with("g  NO CYCLES  100 ms"), "{text}");
    assert!(text.contains("the core has stopped: faulted"), "{text}");
    look.cursors = Some(([0.2, 0.8], 0));
    let text = drawn(&scope, &look, (80, 24));
    assert!(text.contains("NO CYCLES") && text.contains("difference"), "{text}");
}

#[test]
fn every_key_draws_something_on_every_size() {
    let mut scope = scope();
    let mut look = Look { graph: "g".into(), ..Look::default() };
    let keys = "?xfrbnctgsp tt c".chars().map(KeyCode::Char);
    let more =
        [KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Tab, KeyCode::Esc];
    for key in keys.chain(more) {
        let capture = scope.capture();
        let wish = look.press(KeyEvent::new(key, KeyModifiers::NONE), &mut scope, &capture);
        assert!(wish.is_none(), "{key:?}");
        for size in [(80, 24), (20, 3), (1, 1), (200, 60)] {
            let text = drawn(&scope, &look, size);
            assert!(size.0 < 20 || text.contains('g'), "{key:?}: {text}");
        }
    }
    let capture = scope.capture();
    let quit =
        look.press(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE), &mut scope, &capture);
    assert!(matches!(quit, Some(ScopeWish::Quit)));
}
