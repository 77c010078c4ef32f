//! A profile is read as it was written. Anything else in a file is refused.

use std::cell::Cell;

use super::*;
use crate::search::search;

/// A profile of this machine in which messages take the same time for every candidate.
pub(crate) fn profile() -> MachineProfile {
    let interval = |ns| Interval::of(&[ns; 3]).expect("three");
    let suited = |class| {
        let found = search(class, 3, |_| Ok(()), |_, _| Ok(100.0));
        found.unwrap_or_else(|_| panic!("no side fails")).settle(None)
    };
    let pair = |cpus| MeasuredPair {
        cpus,
        pause_ns: [20, 21],
        token_ns: interval(140.0),
        token_range_ns: [130.0, 150.0],
        distance_changed: false,
        pair_ns: interval(170.0),
        small: suited(LinkClass::Small),
        short: suited(LinkClass::Short),
        long: suited(LinkClass::Long),
    };
    let mut profile = MachineProfile::new("2026-01-02T03:04:05Z".into(), Machine::read());
    profile.pairs = vec![pair([0, 1]), pair([0, 2])];
    profile
}

#[track_caller]
fn refused(text: &str, words: &str) {
    let error = MachineProfile::parse(text.as_bytes()).expect_err("it is bad");
    assert!(error.contains(words) && error.contains("run 'sinew tune'"), "{error}");
}

/// Checks that a profile with this value in this place is refused with these words.
#[track_caller]
fn bad(place: &str, value: Value, words: &str) {
    let mut json = json!(profile());
    *json.pointer_mut(place).expect("a place in it") = value;
    refused(&json.to_string(), words);
}

#[test]
fn a_profile_is_read_as_it_was_written() {
    let profile = profile();
    let read = MachineProfile::parse(profile.to_json().as_bytes()).expect("it is good");
    assert_eq!(read, profile);
    let LinkProfile::Measured { file, pairs, .. } = read.links("a.json".into()) else {
        panic!("it was measured")
    };
    assert_eq!((file.as_str(), pairs.len(), pairs[1].cpus), ("a.json", 2, [0, 2]));
    // The default was chosen.
    assert_eq!(pairs[0].suited, [None; 3]);
}

#[test]
fn what_is_out_of_range_is_refused_with_its_place_and_what_to_do() {
    refused("", "not a machine profile: EOF");
    refused("[1]", "not a machine profile");
    bad("/format", "tea".into(), "expected the format 'sinew machine profile', it is 'tea'");
    bad("/version", 1.into(), "it is of version 1, expected 3");
    bad("/time", "\u{1b}[2J".into(), "time: expected a line");
    bad("/machine/kernel", "x".repeat(201).into(), "machine.kernel: expected a line of 200 bytes");
    bad("/pairs/1/cpus", json!([1, 1]), "pairs[1].cpus is [1, 1], expected two different CPUs");
    bad("/pairs/1/cpus", json!([2, 1]), "the lower one first");
    bad("/pairs/1/cpus", json!([0, 1]), "pairs[1].cpus is [0, 1] once more");
    bad("/pairs/0/cpus/0", json!(-1), "invalid value");
    let gap = "pairs[0].long.chosen.gap_ns is 1000001, expected 1000000 at most";
    bad("/pairs/0/long/chosen/gap_ns", 1_000_001.into(), gap);
    bad("/pairs/1/short/chosen/eager_polls", 1001.into(), "pairs[1].short.chosen.eager_polls");
    bad("/pairs/1/short/chosen/layout", "round".into(), "unknown variant `round`");
    bad(
        "/machine/caches",
        json!([{"level": 1, "type": "\u{202e}x", "size_kib": 1}]),
        "machine.caches[0].type: expected a line",
    );
    let mut typed = json!(profile());
    typed["pairs"][0]["short"]["chosen"]["gab_ns"] = 7.into();
    refused(&typed.to_string(), "unknown field `gab_ns`");
    let mut many = profile();
    many.pairs[0].small.tried.clear();
    many.pairs[0].short.tried.clear();
    many.pairs[0].long.tried.clear();
    many.pairs = (1..=PAIRS_MAX as u32 + 1)
        .map(|far| MeasuredPair { cpus: [0, far], ..many.pairs[0].clone() })
        .collect();
    refused(&many.to_json(), "it has 1025 pairs, expected 1024 at most");
}

#[test]
fn words_of_a_file_that_is_refused_are_cut_and_cannot_move_the_cursor() {
    for place in ["/format", "/pairs/0/short/chosen/layout"] {
        let mut json = json!(profile());
        *json.pointer_mut(place).expect("a place in it") = "\u{1b}[2Jé\u{202e}".repeat(99).into();
        let error = MachineProfile::parse(json.to_string().as_bytes()).expect_err("it is bad");
        assert!(error.contains("\\u{1b}[2Jé\\u{202e}") && error.contains("...; run"), "{error}");
        assert!(!error.contains(['\u{1b}', '\u{202e}']) && error.len() < 400, "{error}");
    }
}

#[test]
fn a_file_of_all_pairs_is_not_too_long_to_be_read() {
    // Figures with as many digits as possible, for every candidate.
    let ns = Cell::new(100.0);
    let measure = |_: &LinkTuning, _| Ok(ns.replace(ns.get() * 1.000_123_456_789));
    let suited = |class| {
        let found = search(class, 21, |_| Ok(()), measure);
        found.unwrap_or_else(|_| panic!("no side fails")).settle(None)
    };
    let mut pair = profile().pairs.remove(0);
    (pair.small, pair.short) = (suited(LinkClass::Small), suited(LinkClass::Short));
    pair.long = suited(LinkClass::Long);
    let bytes = json!(pair).to_string().len();
    assert!((PAIR_BYTES_MAX / 8..PAIR_BYTES_MAX * 3 / 4).contains(&bytes), "{bytes}");
}

#[test]
fn whatever_the_bytes_are_reading_them_panics_nowhere() {
    let good = profile().to_json().into_bytes();
    let mut chance = fastrand::Rng::with_seed(14);
    let (here, mut taken) = (Machine::read(), 0);
    for _ in 0..500 {
        let mut bytes = good.clone();
        for _ in 0..chance.usize(1..4) {
            let at = chance.usize(..bytes.len());
            match chance.u8(..4) {
                0 => bytes[at] = chance.u8(..),
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..(at + chance.usize(..40)).min(bytes.len()))),
                _ => bytes.insert(at, *chance.choice(b"0123456789-e.{}[]\",").expect("some")),
            }
            if bytes.is_empty() {
                break;
            }
        }
        if let Ok(profile) = MachineProfile::parse(&bytes) {
            // A profile that was accepted is within its limits and can be used.
            profile.check().expect("it was checked");
            profile.refused_on(&here);
            profile.links("a.json".into());
            crate::to_text(&profile);
            taken += 1;
        }
    }
    assert!((1..500).contains(&taken), "{taken} of 500 were taken");
}

#[test]
fn pairs_that_were_measured_before_are_kept() {
    let (mut new, mut earlier) = (profile(), profile());
    new.pairs.truncate(1);
    new.pairs[0].pause_ns = [7, 7];
    assert_eq!(new.clone().keep(earlier.clone()), 1);
    earlier.machine.cpu = "Foo 9000".into();
    assert_eq!(new.clone().keep(earlier), 0);
    new.keep(profile());
    let pairs: Vec<_> = new.pairs.iter().map(|pair| (pair.cpus, pair.pause_ns)).collect();
    assert_eq!(pairs, [([0, 1], [7, 7]), ([0, 2], [20, 21])]);
    let pair = new.pairs[0].clone();
    let pairs = |first| (first..first + PAIRS_MAX as u32).map(move |far| [0, far]);
    new.pairs = pairs(1).map(|cpus| MeasuredPair { cpus, ..pair.clone() }).collect();
    assert_eq!(new.keep(profile()), 0);
    new.pairs.truncate(PAIRS_MAX - 1);
    new.pairs.remove(0);
    new.pairs.remove(0);
    assert_eq!((new.keep(profile()), new.pairs.len()), (2, PAIRS_MAX - 1));
}

#[test]
fn a_profile_of_another_machine_is_refused_with_the_differences() {
    let mut profile = profile();
    assert_eq!(profile.refused_on(&Machine::read()), None);
    profile.machine.load = vec![99.0];
    profile.machine.governor = Some("another".into());
    assert_eq!(profile.refused_on(&Machine::read()), None);
    profile.machine.cpu = "Foo 9000".into();
    let why = profile.refused_on(&Machine::read()).expect("another one");
    assert!(why.starts_with("it is of another machine: cpu is 'Foo 9000' there and '"), "{why}");
}
