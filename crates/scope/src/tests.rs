//! Synthetic captures, compared with formulas and with scipy.

#[path = "../../../tests/python/scipy.rs"]
mod scipy;

use std::f64::consts::{PI, TAU};
use std::io::{Cursor, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use sinew_control::traces::{NodeLayout, RunLayout, SignalLayout, ThreadLayout};
use sinew_core::trace::{CycleHead, Record};

use self::scipy::reference;
use super::*;

const PERIOD_NS: u64 = 1_000_000;

/// A run with one node 'node', which has the signals 'in_v' and 'out[0]', 'out[1]'.
fn layout() -> RunLayout {
    let signal = |name: &str, unit: &str, first, count| SignalLayout {
        name: name.into(),
        unit: unit.into(),
        first,
        count,
        ..SignalLayout::default()
    };
    let signals = vec![signal("in_v", "V", 0, 1), signal("out", "", 1, 2)];
    let node = NodeLayout { name: "node".into(), signals, ..NodeLayout::default() };
    let thread =
        ThreadLayout { period_ns: PERIOD_NS, nodes: vec![node], ..ThreadLayout::default() };
    RunLayout { threads: vec![thread], services: vec!["page".into()], ..RunLayout::default() }
}

fn scope(settings: ScopeSettings) -> Scope {
    let traces = ["node.in_v", "node.out"].map(|name| find(&layout(), name).expect("it is there"));
    Scope::new(&layout(), traces.concat(), settings).expect("good settings")
}

/// Feeds cycle `number`, at its time.
fn feed(scope: &mut Scope, number: u64, values: [f64; 3]) {
    feed_at(scope, number, (0, number), values);
}

/// Feeds a cycle of a life, `periods` periods after the beginning.
fn feed_at(scope: &mut Scope, periods: u64, (life, number): (u32, u64), values: [f64; 3]) {
    let thread = &layout().threads[0];
    let mut record: Record = thread.record();
    record.begin_life(life);
    let start_ns = 1_000_000_000 + periods * PERIOD_NS;
    record.head(&CycleHead { number, start_ns, ..CycleHead::default() }, &values);
    scope.take(thread.id(), &record);
}

/// A trace with these values, one for each cycle.
fn captured(values: Vec<f64>, period_s: f64) -> Captured {
    let trace = find(&layout(), "node.in_v").expect("it is there").remove(0);
    let count = values.len();
    let at_s = (0..count).map(|at| at as f64 * period_s).collect();
    let (slots, lives) = ((0..count as u64).collect(), vec![0; count]);
    let times = Times { at_s, slots, lives, period_s, missing: vec![] };
    Captured { trace, times: Arc::new(times), values }
}

fn of(period_s: f64, count: usize, value: impl Fn(f64) -> f64) -> Captured {
    captured((0..count).map(|at| value(at as f64 * period_s)).collect(), period_s)
}

fn hold(what: &str, ours: &[f64], theirs: &[f64], within: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (at, (our, their)) in ours.iter().zip(theirs).enumerate() {
        assert!((our - their).abs() <= within, "{what}: number {at} is {our}, scipy: {their}");
    }
}

#[test]
fn a_name_finds_its_traces_or_says_what_there_is() {
    let layout = layout();
    let names = |name| find(&layout, name).map(|it| it.into_iter().map(|it| it.name).collect());
    assert_eq!(names("node.out"), Ok(vec!["node.out[0]".to_owned(), "node.out[1]".to_owned()]));
    assert_eq!(find_one(&layout, "node.in_v").map(|it| it.title()), Ok("node.in_v (V)".into()));
    let cases = [
        ("node.inv", "did you mean 'node.in_v'?"),
        ("nodes.in_v", "did you mean 'node'?"),
        ("page.x", "is in a service"),
        ("node", "expected NODE.SIGNAL"),
        ("node.out[2]", "no such signal"),
        ("", "is not a trace"),
    ];
    for (name, expected) in cases {
        let error = find(&layout, name).expect_err(name);
        assert!(error.contains(expected), "{error}");
    }
    assert!(find_one(&layout, "node.out").is_err_and(|error| error.contains("2 numbers")));
}

#[test]
fn settings_beyond_their_limits_are_refused() {
    let good = ScopeSettings { sweep: Sweep::Normal, ..ScopeSettings::default() };
    assert_eq!(good.check(1, PERIOD_NS), Ok(()));
    let trigger = |level, hysteresis| Trigger { level, hysteresis, ..Trigger::default() };
    let cases = [
        (ScopeSettings { window_ns: u64::MAX, ..good }, "change the window"),
        (ScopeSettings { window_ns: 0, ..good }, "change the window"),
        (ScopeSettings { pre: 1.1, ..good }, "expected 0 to 1"),
        (ScopeSettings { pre: f64::NAN, ..good }, "expected 0 to 1"),
        (ScopeSettings { trigger: trigger(f64::NAN, 0.0), ..good }, "finite"),
        (ScopeSettings { trigger: trigger(0.0, -1.0), ..good }, "hysteresis"),
        (ScopeSettings { trigger: Trigger { trace: 1, ..good.trigger }, ..good }, "there are 1"),
    ];
    for (settings, expected) in cases {
        let error = settings.check(1, PERIOD_NS).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
    assert!(good.check(17, PERIOD_NS).is_err() && good.check(0, PERIOD_NS).is_err());
}

#[test]
fn a_single_capture_begins_before_its_trigger_and_stays() {
    let trigger = Trigger { level: 0.5, ..Trigger::default() };
    let window_ns = 100 * PERIOD_NS;
    let settings = ScopeSettings { window_ns, pre: 0.2, sweep: Sweep::Single, trigger };
    let mut scope = scope(settings);
    for number in 0..1000 {
        let value = f64::from(u8::from(number % 300 >= 150));
        feed(&mut scope, number, [value, number as f64, 0.0]);
    }
    let capture = scope.capture();
    assert_eq!((scope.doing(), capture.triggered, capture.number), (Doing::Done, true, 0));
    let numbers = &capture.traces[1].values;
    assert_eq!((numbers[0], numbers[20], numbers.len()), (130.0, 150.0, 100));
    assert_eq!((capture.from_s, capture.traces[0].times.at_s[20]), (-0.02, 0.0));
    scope.arm();
    (1000..1300).for_each(|number| {
        feed(&mut scope, number, [f64::from(u8::from(number > 1100)), number as f64, 0.0])
    });
    assert_eq!(scope.capture().traces[1].values[20], 1101.0);
}

#[test]
fn cycles_that_are_missing_are_counted_and_no_value_stands_in_for_them() {
    let mut scope = scope(ScopeSettings { window_ns: 10 * PERIOD_NS, ..ScopeSettings::default() });
    for number in [0, 1, 2, 6, 7] {
        feed(&mut scope, number, [number as f64, 0.0, 0.0]);
    }
    let capture = scope.capture();
    let first = &capture.traces[0];
    assert_eq!((scope.lost(), first.times.lost()), (3, 3));
    assert_eq!(first.times.missing, [Missing { before: 3, cycles: 3 }]);
    let between_s = (first.times.at_s[2] + first.times.at_s[3]) / 2.0;
    assert_eq!(first.value_at(between_s), None);
    assert!(first.even().is_err_and(|why| why.to_string().contains("3 cycles")));
    let drawn = columns(first, capture.from_s, capture.until_s, 100);
    assert!(drawn[50].is_none() && drawn[95].is_some(), "{drawn:?}");
    let mut csv = Vec::new();
    write_csv(&capture, &mut csv).expect("memory");
    let csv = String::from_utf8(csv).expect("text");
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!(rows[0], "time_s,node.in_v (V),node.out[0],node.out[1],missing_cycles,life");
    assert!(rows.len() == 6 && rows[4].ends_with(",6,0,0,3,1"), "{csv}");
}

#[test]
fn the_lives_of_a_core_are_told_apart() {
    let trigger = Trigger { level: 5.0, ..Trigger::default() };
    let window_ns = 100 * PERIOD_NS;
    let settings = ScopeSettings { window_ns, pre: 0.5, sweep: Sweep::Single, trigger };
    let mut scope = scope(settings);
    (0..60).for_each(|number| feed(&mut scope, number, [1.0, number as f64, 0.0]));
    // From 1 to 9, but not in one life, so it is no rise. The first two cycles came too late.
    (2..20).for_each(|number| feed_at(&mut scope, 80 + number, (1, number), [9.0, 0.0, 0.0]));
    assert_eq!((scope.doing(), scope.life(), scope.lost()), (Doing::Waiting, 1, 2));
    feed_at(&mut scope, 100, (1, 20), [1.0, 0.0, 0.0]);
    (21..80).for_each(|number| feed_at(&mut scope, 80 + number, (1, number), [9.0, 0.0, 0.0]));
    assert_eq!(scope.doing(), Doing::Done);
    let capture = scope.capture();
    let (first, second) = (&capture.traces[0], &capture.traces[1]);
    assert_eq!(first.times.missing, [Missing { before: 9, cycles: 2 }]);
    assert_eq!((capture.resets(), &first.times.lives[8..10]), (1, &[0, 1][..]));
    assert_eq!((first.values[8], first.values[9]), (1.0, 9.0));
    // The part after the gap is complete by itself.
    let after = scope.window(1_000_000_000 + 81 * PERIOD_NS);
    assert_eq!(after.traces[0].times.missing, [Missing { before: 0, cycles: 2 }]);
    assert_eq!((after.resets(), spectrum(&after.traces[0]).is_ok()), (0, true));
    let (before_s, after_s) = (first.times.at_s[8], first.times.at_s[9]);
    assert_eq!(first.value_at((before_s + after_s) / 2.0), None);
    assert_eq!(xy(first, second).iter().position(Option::is_none), Some(9));
    assert_eq!(figures(first).expect("values").frequency_hz, None);
    for error in [spectrum(first).map(|_| ()), step_response(first, 0.0, 0.02).map(|_| ())] {
        assert!(error.is_err_and(|why| why.0.contains("the core was started again")));
    }
    let mut csv = Vec::new();
    write_csv(&capture, &mut csv).expect("memory");
    let csv = String::from_utf8(csv).expect("text");
    let rows: Vec<_> = csv.lines().collect();
    assert!(rows[9].ends_with(",1,59,0,0,1") && rows[10].ends_with(",9,0,0,2,2"), "{csv}");
}

#[test]
fn a_capture_whose_core_stops_is_done_when_its_window_is_over() {
    let trigger = Trigger { level: 5.0, ..Trigger::default() };
    let window_ns = 2000 * PERIOD_NS;
    let mut scope = scope(ScopeSettings { window_ns, pre: 0.0, sweep: Sweep::Single, trigger });
    assert!(!scope.idle(0) && scope.idle(u64::MAX));
    (0..100).for_each(|at| feed(&mut scope, at, [if at < 50 { 0.0 } else { 9.0 }, 0.0, 0.0]));
    // The core may start again meanwhile.
    assert!(scope.idle(1900 * PERIOD_NS));
    assert_eq!(scope.doing(), Doing::Filling);
    scope.idle(2000 * PERIOD_NS);
    let capture = scope.capture();
    assert_eq!((scope.doing(), capture.triggered), (Doing::Done, true));
    assert_eq!((capture.traces[0].values.len(), capture.window_s()), (50, 2.0));
}

#[test]
fn a_column_is_empty_for_a_gap_of_any_length() {
    // Gaps at the end of a column, within one, two in one, and at the beginning.
    for gaps in [vec![500], vec![505], vec![500, 505], vec![1]] {
        let mut it = of(0.001, 1000, |t| (t * 1000.0).round());
        let times = Arc::get_mut(&mut it.times).expect("its own");
        times.missing = gaps.iter().map(|&at| Missing { before: at as usize, cycles: 1 }).collect();
        let drawn = columns(&it, 0.0, 1.0, 50);
        assert_eq!(drawn.iter().filter(|it| it.is_none()).count(), 1, "{gaps:?}: {drawn:?}");
        let whole: Vec<_> = drawn.iter().flatten().collect();
        let gap = f64::from(gaps[0]);
        assert!(whole.iter().all(|it| it.min >= gap || it.max < gap), "{gaps:?}: {drawn:?}");
        assert_eq!((whole[0].min, whole[whole.len() - 1].max), (0.0, 999.0));
    }
    // However many gaps there are, a value is at most two columns too late.
    let mut it = of(0.001, 1000, |t| t);
    Arc::get_mut(&mut it.times).expect("its own").missing =
        (1..1000).map(|before| Missing { before, cycles: 1 }).collect();
    for (at, column) in columns(&it, 0.0, 1.0, 50).iter().enumerate() {
        let late_s = |value: f64| at as f64 * 0.02 - value;
        assert!(column.is_none_or(|it| late_s(it.min) <= 0.041 && late_s(it.max) > -0.021));
    }
}

#[test]
fn a_spike_of_one_cycle_is_in_its_column() {
    let spike = of(0.001, 10_000, |t| if (t - 5.0).abs() < 1e-9 { 9.0 } else { 0.0 });
    let drawn = columns(&spike, 0.0, 10.0, 80);
    let most: Vec<_> = drawn.iter().map(|it| it.map_or(0.0, |it| it.max)).collect();
    assert_eq!((most[40], most.iter().sum::<f64>()), (9.0, 9.0));
}

#[test]
fn figures_and_cursors_read_a_sine() {
    let sine = of(0.001, 1000, |t| 1.0 + 2.0 * (TAU * 10.0 * t).sin());
    let read = figures(&sine).expect("values");
    assert!((read.mean - 1.0).abs() < 1e-9 && (read.rms - 3f64.sqrt()).abs() < 1e-9, "{read:?}");
    assert!((read.frequency_hz.expect("it goes round") - 10.0).abs() < 1e-6, "{read:?}");
    let two = cursors(&sine, [0.1, 0.125]);
    assert!((two.difference.expect("both") - 2.0).abs() < 1e-9, "{two:?}");
    assert!((two.apart_hz.expect("apart") - 40.0).abs() < 1e-9, "{two:?}");
    assert_eq!(figures(&captured(vec![f64::NAN; 3], 0.001)), None);
}

#[test]
fn a_step_response_of_second_order_is_that_of_the_formula() {
    for z in [0.2, 0.5, 0.7] {
        let damped = (1.0f64 - z * z).sqrt();
        // The peak, half a turn after the step, falls on a cycle.
        let period_s = PI / damped / 2000.0;
        let response = |t: f64| {
            let t = t - 100.0 * period_s;
            let phase = damped * t;
            if t < 0.0 {
                2.0
            } else {
                5.0 - 3.0 * (-z * t).exp() * (phase.cos() + z / damped * phase.sin())
            }
        };
        let count = (60.0 / z / period_s) as usize;
        let step = step_response(&of(period_s, count, response), 100.0 * period_s, 0.02);
        let step = step.expect("a step");
        let expected = 100.0 * (-PI * z / damped).exp();
        assert!((step.overshoot_percent - expected).abs() < 1e-9 * 100.0, "{z}: {step:?}");
        assert!((step.peak_s - PI / damped).abs() < 1e-9, "{z}: {step:?}");
        let settled = response(100.0 * period_s + step.settling_s);
        assert!(((settled - 5.0).abs() / 3.0 - 0.02).abs() < 1e-5, "{z}: {step:?} {settled}");
    }
    // A first-order response, whose rise and settling times are known.
    let first = of(1e-4, 200_000, |t| if t < 1.0 { 0.0 } else { 1.0 - (1.0 - t).exp() });
    let step = step_response(&first, 1.0, 0.02).expect("a step");
    assert!((step.rise_s - 9f64.ln()).abs() < 1e-6 && step.overshoot_percent < 1e-5, "{step:?}");
    assert!((step.settling_s - 50f64.ln()).abs() < 1e-5, "{step:?}");
}

#[test]
fn what_is_no_step_response_says_why() {
    let ramp = of(0.001, 1000, |t| t);
    let flat = of(0.001, 1000, |_| 1.0);
    let late = of(0.001, 1000, |t| if t < 0.5 { 0.0 } else { t });
    let said = |it: &Captured| step_response(it, 0.5, 0.02).expect_err("none").to_string();
    assert!(said(&ramp).contains("has no step") && said(&flat).contains("has no step"));
    assert!(said(&late).contains("has not settled"), "{}", said(&late));
    let input = |it: &Captured| step_of(it).expect_err("none").to_string();
    assert!(input(&ramp).contains("takes") && input(&flat).contains("ends where it began"));
    assert_eq!(step_of(&of(0.001, 1000, |t| f64::from(u8::from(t >= 0.5)))), Ok(0.5));
}

#[test]
fn a_spectrum_is_that_of_scipy_and_a_sine_has_its_amplitude() {
    for count in [1000, 999] {
        let it = of(0.001, count, |t| {
            3.0 + 2.0 * (TAU * 50.0 * t).sin() + 0.5 * (TAU * 121.3 * t).cos()
        });
        let ours = spectrum(&it).expect("even");
        let with = json!({"values": it.values, "period_s": 0.001});
        if let Some(theirs) = reference("spectrum", &with) {
            hold("spectrum", &ours.amplitudes[1..], &theirs, 1e-9);
        }
        assert!((ours.amplitudes[0] - 3.0).abs() < 0.01);
    }
    let sine = spectrum(&of(0.001, 1000, |t| 2.0 * (TAU * 50.0 * t).sin())).expect("even");
    let (hz, amplitude) = sine.peaks(1)[0];
    assert!((hz - 50.0).abs() < 1e-9 && (amplitude - 2.0).abs() < 1e-9, "{hz} {amplitude}");
}

#[test]
fn a_frequency_response_is_that_of_scipy() {
    let Some(both) = reference("chirp", &json!({"seconds": 8, "period_s": 0.001})) else { return };
    let (x, y) = both.split_at(both.len() / 2);
    let (input, output) = (captured(x.to_vec(), 0.001), captured(y.to_vec(), 0.001));
    let with = json!({"x": x, "y": y, "period_s": 0.001, "segment": 1000});
    let theirs = reference("response", &with).expect("it was there");
    let output = Captured { times: Arc::clone(&input.times), ..output };
    let settings = FrequencySettings { segment: Some(1000), coherence_min: 0.9 };
    let ours = frequency_response(&input, &output, &settings).expect("excited");
    assert_eq!(theirs.len(), 4 * ours.points.len());
    // Points that are not shown were not excited: there both results are only rounding errors.
    for (it, theirs) in ours.points.iter().zip(theirs.chunks(4)).filter(|(it, _)| it.shown) {
        let flat = [it.frequency_hz, it.gain_db, it.phase_deg, it.coherence];
        hold("response", &flat, theirs, 1e-9);
    }
    let shown = ours.points.iter().filter(|it| it.shown).count();
    assert!((20..400).contains(&shown), "{shown} are shown; beyond the chirp is only noise");
    let silent = of(0.001, x.len(), |_| 1.0);
    let none = frequency_response(&silent, &output, &settings).expect_err("nothing excites it");
    assert!(none.to_string().contains("chirp"), "{none}");
}

#[test]
fn a_foreign_reader_reads_the_mcap() {
    let mut scope = scope(ScopeSettings { window_ns: 50 * PERIOD_NS, ..ScopeSettings::default() });
    (0..50).for_each(|number| feed(&mut scope, number, [number as f64, 0.5, f64::NAN]));
    let mut file = Cursor::new(Vec::new());
    write_mcap(&scope.capture(), &mut file).expect("memory");
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = "import json,sys\nfrom mcap.reader import make_reader\n\
                  for s,c,m in make_reader(sys.stdin.buffer).iter_messages(['/node/in_v']):\n \
                  print(c.metadata['unit'], m.log_time, json.loads(m.data)['value'])";
    let has = Command::new(&python).args(["-c", "import mcap"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "'{python}' cannot import mcap");
        let _ = writeln!(std::io::stderr(), "skipped: '{python}' cannot import mcap");
        return;
    }
    let mut child = Command::new(&python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    child.stdin.take().expect("piped").write_all(file.get_ref()).expect("python reads");
    let output = child.wait_with_output().expect("python ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[7]), (50, "V 1007000000 7.0"), "{text}");
}
