//! Rules, correct and wrong: how they are read, what they watch, and when they fire.

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::Plan;

use super::quantity::QUANTITIES;
use super::*;
use crate::monitor::figures::Cycle;
use crate::monitor::robot;

const MS: u64 = 1_000_000;

fn rule(text: &str) -> Rule {
    Rule::parse(1, text).unwrap_or_else(|wrong| panic!("{}", wrong.of(1, text)))
}

fn sources(text: &str, plan: &Plan) -> Vec<String> {
    let watched = Watched::bind(&[rule(text)], plan).unwrap_or_else(|wrong| panic!("{wrong}"));
    watched.of(0).map(|it| it.source.clone()).collect()
}

#[test]
fn a_rule_is_read_as_it_is_written() {
    let it = rule("overruns > 0 for 1s: event");
    assert_eq!(
        (it.for_ns, it.within_ns, it.webhook, it.stop),
        (1000 * MS, 1000 * MS, false, false)
    );
    let it = rule("  cycle_latency_us_max>=9.5e2 for 500ms :stop,webhook \"too slow: stop\" ");
    assert_eq!((it.comparison.word, &it.bound), (">=", &Bound::Number(950.0)));
    assert_eq!((it.for_ns, it.within_ns, it.webhook, it.stop), (500 * MS, 500 * MS, true, true));
    assert_eq!(it.say.as_deref(), Some("too slow: stop"));
    let it = rule("restarts{domain=camera} > 3 within 2min for 1.5s: event");
    assert_eq!((it.for_ns, it.within_ns), (1500 * MS, 120_000 * MS));
    let Quantity::Known { selector, .. } = it.quantity else { panic!("no signal") };
    assert_eq!(selector, [("domain", "camera".to_owned())]);
    let it = rule("|drives.torque_n_m[2]| > 8_0: event");
    assert_eq!(it.bound, Bound::Number(80.0));
    let Quantity::Signal { node, signal, element, absolute } = it.quantity else { panic!("one") };
    assert_eq!(
        (node.as_str(), signal.as_str(), element, absolute),
        ("drives", "torque_n_m", Some(2), true)
    );
    let it = rule("drives.state != \"operation enabled\" for 2s: event");
    assert_eq!(it.bound, Bound::Word("operation enabled".into()));
    assert_eq!(rule("overruns > 0: event").within_ns, 1000 * MS, "without a time");
}

/// A wrong rule, and the error for it.
const BAD: &[(&str, &str)] = &[
    ("", "column 1, at its end: expected a quantity, such as overruns, or node.signal"),
    ("> 0: event", "column 1, at '> 0: event': expected a quantity"),
    ("overrun > 0: event", "no quantity 'overrun'; did you mean 'overruns'?, or node.signal"),
    ("xyzzy > 0: event", "no quantity 'xyzzy'; known: cycle_latency_us, "),
    ("overruns 0: event", "column 10, at '0: event': expected a comparison: >, >=, <, <="),
    ("overruns => 0: event", "column 10, at '=> 0: event': expected a comparison"),
    ("overruns < 1: event", "expected > or >= instead of <: a count or a maximum"),
    ("overruns > many: event", "column 12, at 'many: event': expected a number"),
    ("overruns > 1e999: event", "expected a number"),
    ("overruns > 3,5: event", "expected a decimal point, such as 3.5, not a comma"),
    ("overruns > 0", "column 13, at its end: expected ':' and an action"),
    ("overruns > 0 for: event", "column 17, at ': event': expected a time above 0"),
    ("overruns > 0 for 1: event", "expected a time above 0, a day at most, such as 500ms"),
    ("overruns > 0 for 1 fortnight: event", "expected a time above 0"),
    ("overruns > 0 for 25h: event", "expected a time above 0, a day at most"),
    ("overruns > 0 for 1s for 2s: event", "column 21, at 'for 2s: event': stands here twice"),
    ("overruns > 0 fro 1s: event", "'fro' is not a time of a rule; did you mean 'for'?"),
    ("cycle_latency_us > 9 within 1s: event", "no 'within' here"),
    ("restarts > 3 within 10ms: event", "expected 1s at least: it is looked at twice a second"),
    (
        "restarts{domian=camera} > 3: event",
        "'domian' is not a selector of 'restarts'; did you mean",
    ),
    ("restarts{domain=camera > 3: event", "expected ',' and a further selector, or '}'"),
    ("restarts{domain=} > 3: event", "expected a value for 'domain'"),
    ("link_lost{to=ik,to=ik} > 3: event", "'to' stands here twice"),
    ("overruns > 0: evnt", "'evnt' is not an action; did you mean 'event'?"),
    ("overruns > 0: reboot", "'reboot' is not an action; known: event, webhook, stop"),
    ("overruns > 0: event,", "column 21, at its end: expected an action: event, webhook, stop"),
    ("overruns > 0: event now", "at 'now': expected the end of the rule, or a text"),
    ("overruns > 0: event \"now", "expected a closing '\"'"),
    ("drives. > 0: event", "expected the name of a signal of 'drives'"),
    ("drives.state[x] > 0: event", "expected an index from 0"),
    ("drives.state[1 > 0: event", "expected ']' after the index"),
    ("|drives.state > 0: event", "expected '|', as before the signal"),
    ("|overruns| > 0: event", "expected a signal, node.signal, between '|' and '|'"),
    ("drives.state > fault: event", "expected a number"),
    ("µ.µ > µ: event", "column 7, at 'µ: event': expected a number"),
];

#[test]
fn a_bad_rule_is_refused_with_its_place_and_what_was_expected() {
    for (text, expected) in BAD {
        let wrong = Rule::parse(7, text).expect_err(text).of(7, text);
        assert!(
            wrong.starts_with("rule 7, column ") && wrong.contains(expected),
            "{text}: {wrong}"
        );
    }
}

#[test]
fn a_rule_is_one_line_that_an_alarm_can_repeat() {
    let long = format!("overruns > 0: event \"{}\"", "x".repeat(LEN_MAX));
    for text in [&long, "overruns > 0:\nevent", "overruns > 0: event \"\u{1}\""] {
        let wrong = Rule::parse(7, text).expect_err(text).of(7, text);
        assert!(wrong.contains("expected one line of 500 bytes at most"), "{wrong}");
    }
}

#[test]
fn no_text_makes_the_grammar_panic() {
    let good = "|drives.torque_n_m[2]| >= 8e1 for 5ms, within 1s: event, stop \"µ\"";
    for (start, _) in good.char_indices() {
        for (end, _) in good.char_indices().filter(|it| it.0 >= start) {
            let _ = Rule::parse(1, &good[start..end]);
            let _ = Rule::parse(1, &format!("{}{}", &good[..start], &good[end..]));
        }
    }
}

#[test]
fn every_quantity_of_the_table_is_found_in_the_robot_and_stands_in_the_guide() {
    let guide = include_str!("../../../../../docs/monitor.md");
    let plan = robot();
    for known in QUANTITIES {
        assert!(!sources(&format!("{} > 0: event", known.name), &plan).is_empty());
        let row = format!("| `{}` |", known.name);
        assert!(guide.contains(&row) && guide.contains(known.doc), "docs/monitor.md: {row}");
    }
}

#[test]
fn a_selector_chooses_and_each_source_is_watched_alone() {
    let plan = robot();
    assert_eq!(sources("overruns > 0: event", &plan), ["control, thread 0", "plant, thread 0"]);
    assert_eq!(sources("overruns{domain=plant} > 0: event", &plan), ["plant, thread 0"]);
    assert_eq!(sources("execution_time_us{node=ik} > 9: event", &plan), ["node 'ik'"]);
    assert_eq!(sources("messages_lost{node=recorder} > 0: event", &plan), ["node 'recorder'"]);
    assert_eq!(sources("down{domain=camera} > 0 for 5s: event", &plan), ["domain 'camera'"]);
    let of_node = sources("link_lost{from=planner} > 0: event", &plan);
    assert_eq!(of_node, sources("link_lost{from=planner.out} > 0: event", &plan));
    assert!(of_node[0].starts_with("link planner.out > ik.in"), "{of_node:?}");
}

#[test]
fn a_name_that_the_plan_does_not_have_is_refused() {
    let plan = robot();
    for (text, expected) in [
        ("drive.state == fault: event", "no node 'drive'; did you mean 'drives'?"),
        ("drives.stat == fault: event", "'drives' has no signal 'stat'; did you mean 'state'?"),
        ("drives.state == asleep: event", "no state 'asleep' of 'state'; known: "),
        ("drives.state[6] == fault: event", "'drives.state' has no element 6, only 0 to 5"),
        (
            "ik.joint_rad == home: event",
            "'joint_rad' is not a state: expected a number, not 'home'",
        ),
        ("overruns{domain=camera} > 0: event", "no domain 'camera' that has 'overruns'"),
        ("restarts{domain=camra} > 0: event", "did you mean 'camera'?"),
        ("link_lost{from=planner,to=nowhere} > 0: event", "no to 'nowhere'"),
        ("link_lost{from=planner,to=drives} > 0: event", "nothing in this graph has 'link_lost'"),
    ] {
        let wrong = Watched::bind(&[rule(text)], &plan).err().expect(text);
        let whole = format!("rule 1 '{text}': ");
        assert!(wrong.starts_with(&whole) && wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn a_cycle_is_judged_by_the_rules_of_its_thread() {
    let plan = robot();
    let rules = [
        rule("drives.state == \"not ready to switch on\": event"),
        rule("ik.joint_rad <= 0: event"),
        rule("cycle_latency_us < 1: stop"),
    ];
    let mut watched = Watched::bind(&rules, &plan).expect("they fit");
    let domain = plan.domains.iter().position(|it| it.name == "control").expect("control");
    let thread = ThreadId { domain, thread: 0 };
    // Every figure in it is 0.
    let record = Record::of(&plan, &plan.domains[domain].threads()[0].nodes);
    let cycle = Cycle::new(&record, None, Clock::from_rate(1.0));
    let at = At { thread, life: 0, number: 0, start_ns: 0 };
    let changes = |news: Vec<News>| news.iter().map(|it| (it.rule, it.change)).collect::<Vec<_>>();
    let fired = [(1, Change::Fired(0.0)), (2, Change::Fired(0.0))];
    assert_eq!(changes(watched.cycle(at, &cycle)), fired);
    assert_eq!(changes(watched.cycle(at, &cycle)), []);
    let forgotten = Change::Forgotten { after_ns: 0 };
    let over = watched.reset(|it| it.thread == Some(thread));
    assert_eq!(changes(over), [(1, forgotten), (2, forgotten)]);
    assert_eq!(changes(watched.cycle(at, &cycle)), fired, "the core has begun anew");
}

/// The changes if a value comes each ms: `value(ms)`; each with its time.
fn story(text: &str, cycles: u64, value: impl Fn(u64) -> f64) -> Vec<(u64, Change)> {
    let it = rule(text);
    let Bound::Number(bound) = it.bound else { panic!("a number") };
    let mut judge = Judge::new(&it, bound);
    let change = |ms: u64| Some((ms, judge.take(1_000_000 * MS + ms * MS, value(ms))?));
    (0..cycles).filter_map(change).collect()
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[test]
fn without_for_a_rule_fires_at_once_and_once() {
    let changes =
        story("cycle_latency_us > 5: event", 5000, |ms| flag((100..2000).contains(&ms)) * 9.0);
    let resolved = Change::Resolved { after_ns: 1900 * MS };
    assert_eq!(changes, [(100, Change::Fired(9.0)), (3000, resolved)]);
}

#[test]
fn with_for_it_fires_only_after_it_has_held_so_long() {
    let text = "cycle_latency_us > 5 for 100ms: event";
    assert_eq!(story(text, 1000, |ms| flag(ms % 100 != 99) * 9.0), []);
    assert_eq!(story(text, 1000, |ms| flag(ms >= 50) * 9.0), [(150, Change::Fired(9.0))]);
}

#[test]
fn a_value_that_flickers_is_one_alarm() {
    let text = "cycle_latency_us > 5: event";
    let changes = story(text, 10_000, |ms| flag(ms % 2 == 1 && ms < 5000) * 9.0);
    let resolved = Change::Resolved { after_ns: 4999 * MS };
    assert_eq!(changes, [(1, Change::Fired(9.0)), (6000, resolved)]);
    let calm = story(text, 10_000, |ms| flag(ms % 3000 < 10) * 9.0);
    assert_eq!(calm.iter().filter(|it| matches!(it.1, Change::Fired(_))).count(), 4);
}

#[test]
fn a_count_is_that_of_its_window() {
    let text = "overruns > 2 within 100ms: event";
    assert_eq!(story(text, 5000, |ms| flag(ms % 60 == 0)), [], "never three");
    assert_eq!(story(text, 5000, |ms| flag(ms % 30 == 0))[0], (60, Change::Fired(3.0)));
    let burst = story(text, 5000, |ms| flag((10..20).contains(&ms)));
    assert_eq!(burst[0], (12, Change::Fired(3.0)));
    assert!(matches!(burst[1].1, Change::Resolved { .. }) && burst.len() == 2);
}

#[test]
fn one_overrun_alone_does_not_meet_overruns_for_a_second() {
    let text = "overruns > 0 for 1s: event";
    assert_eq!(story(text, 10_000, |ms| flag(ms == 100 || ms == 5000)), []);
    let often = story(text, 10_000, |ms| flag(ms % 900 == 100));
    assert_eq!(often, [(1100, Change::Fired(1.0))]);
}

#[test]
fn the_greatest_of_a_window_leaves_it_in_time() {
    let text = "cycle_latency_us_max > 5 for 500ms: stop";
    assert_eq!(story(text, 5000, |ms| flag(ms == 1000) * 9.0), [], "one peak alone");
    let peaks = story(text, 5000, |ms| flag(ms % 400 == 0) * 9.0 + 1.0);
    assert_eq!(peaks[0], (500, Change::Fired(10.0)));
}

#[test]
fn a_rule_does_not_go_on_over_a_gap() {
    let it = rule("cycle_latency_us > 5 for 100ms: event");
    let mut judge = Judge::new(&it, 5.0);
    assert_eq!(judge.take(MS, 9.0), None);
    // The core was stopped in between: this is the first cycle in which the rule holds again.
    assert_eq!(judge.take(60_000 * MS, 9.0), None);
    assert_eq!(judge.take(60_100 * MS, 9.0), Some(Change::Fired(9.0)));
}

#[test]
fn a_long_window_is_held_in_few_pieces() {
    let it = rule("overruns > 1e12 within 24h: event");
    let mut judge = Judge::new(&it, 1e12);
    (0..100_000).for_each(|ms| assert_eq!(judge.take(ms * 1000 * MS, 1.0), None));
    assert!(judge.pieces() <= 101, "{}", judge.pieces());
}

#[test]
fn of_the_elements_of_a_signal_any_may_meet_the_bound() {
    for (text, values, holds) in [
        ("a.b > 5: event", [1.0, 6.0, -9.0], true),
        ("a.b < -5: event", [1.0, 6.0, -9.0], true),
        ("a.b == 6: event", [1.0, 6.0, -9.0], true),
        ("a.b != 1: event", [1.0, 1.0, 1.0], false),
        ("a.b != 1: event", [1.0, 1.0, 2.0], true),
        ("a.b >= 7: event", [1.0, 6.0, -9.0], false),
        ("a.b > 5: event", [f64::NAN, 6.0, f64::NAN], true),
        ("a.b < -5: event", [f64::NAN, -9.0, 1.0], true),
        ("a.b > 5: event", [f64::NAN; 3], false),
        ("a.b != 1: event", [1.0, f64::NAN, 1.0], true),
    ] {
        let it = rule(text);
        let Bound::Number(bound) = it.bound else { panic!("a number") };
        let value = it.comparison.foremost(values.into_iter(), bound);
        assert_eq!((it.comparison.holds)(&value, &bound), holds, "{text}");
    }
}
