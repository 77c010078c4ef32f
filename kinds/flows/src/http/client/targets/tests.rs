//! Which server is asked next, and which is not.

use super::*;

const HEALTH: Health = Health {
    path: String::new(),
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(1),
    fails: 2,
    passes: 2,
};

fn targets(balance: Balance, rest: Duration) -> Targets {
    let bases = ["http://a", "http://b/", "http://c/api/"].map(str::to_owned);
    Targets::new(&bases, balance, rest)
}

fn names(targets: &Targets, count: usize) -> String {
    let name = |_| targets.pick().map_or("-".to_owned(), |turn| turn.base()[7..8].to_owned());
    (0..count).map(name).collect()
}

#[test]
fn one_is_asked_after_the_other_and_who_rests_is_left_out() {
    let targets = targets(Balance::RoundRobin, Duration::from_secs(3600));
    assert_eq!(names(&targets, 6), "abcabc");
    assert_eq!(targets.pick().expect("one").base(), "http://a");
    let unreached = |name: &str| {
        let turn = std::iter::repeat_with(|| targets.pick().expect("one"));
        let turn = turn.into_iter().find(|turn| turn.base().contains(name)).expect("it is there");
        turn.unreached("connection refused");
        turn
    };
    let b = unreached("//b");
    assert_eq!(names(&targets, 30).matches('b').count(), 0);
    assert_eq!(targets.news().len(), 1, "it is told once");
    b.unreached("connection refused");
    assert!(targets.news().is_empty());
    unreached("//a");
    unreached("//c");
    assert_eq!(names(&targets, 2), "--");
    assert!((3590..=3600).contains(&targets.wait_s()), "{}", targets.wait_s());
    b.reached();
    assert_eq!(names(&targets, 2), "bb");
    let news = targets.news();
    assert!(news[2].contains("http://b answers again"), "{news:?}");
}

#[test]
fn who_rests_is_asked_again_after_a_while() {
    let targets = targets(Balance::RoundRobin, Duration::ZERO);
    for _ in 0..3 {
        targets.pick().expect("one").unreached("late");
    }
    assert_eq!(names(&targets, 3).len(), 3);
    assert!(!names(&targets, 3).contains('-'));
}

#[test]
fn who_has_the_fewest_requests_is_asked() {
    let targets = targets(Balance::LeastRequests, Duration::ZERO);
    let held: Vec<_> = (0..3).map(|_| targets.pick().expect("one")).collect();
    let busy: Vec<&str> = held.iter().map(|turn| turn.base()).collect();
    assert_eq!(busy, ["http://a", "http://b", "http://c/api"]);
    let more: Vec<_> = (0..3).map(|_| targets.pick().expect("one")).collect();
    drop(more);
    let mut held = held.into_iter();
    drop(held.next());
    for _ in 0..5 {
        assert_eq!(targets.pick().expect("one").base(), "http://a");
    }
}

#[test]
fn looking_takes_a_target_out_and_brings_it_back() {
    let targets = targets(Balance::RoundRobin, Duration::from_secs(3600));
    let bad = || Err("answers 500".to_owned());
    targets.looked(1, bad(), &HEALTH);
    targets.looked(1, Ok(()), &HEALTH);
    targets.looked(1, bad(), &HEALTH);
    assert!(names(&targets, 6).contains('b'), "two in a row");
    targets.looked(1, bad(), &HEALTH);
    assert_eq!(names(&targets, 6).matches('b').count(), 0);
    targets.looked(1, Ok(()), &HEALTH);
    assert_eq!(names(&targets, 6).matches('b').count(), 0);
    targets.looked(1, Ok(()), &HEALTH);
    assert!(names(&targets, 6).contains('b'));
    let news = targets.news();
    assert_eq!(news.len(), 2, "{news:?}");
    for at in 0..3 {
        (0..2).for_each(|_| targets.looked(at, bad(), &HEALTH));
    }
    assert!(targets.pick().is_none());
}
