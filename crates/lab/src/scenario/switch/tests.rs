//! Whether the proof of switches counts, and what is said about a side that says nothing.

use super::*;

fn told(handed: u64, switches: u64) -> Told {
    let side = SideCount { handed, switches, ..SideCount::default() };
    Told { turns: vec![3000; 40], walks: vec![1000; 40], calls: vec![], near: side, far: side }
}

#[test]
fn a_round_in_which_a_turn_was_no_switch_marks_the_row() {
    let mut row = Row::default();
    let clock = Clock::from_rate(0.0);
    add(&mut row, &told(40, 41), true, clock).expect("turns enough");
    assert!(row.notes.is_empty() && row.figure(SWITCHES) > Some(1.0));
    add(&mut row, &told(40, 39), true, clock).expect("turns enough");
    add(&mut row, &told(40, 40), true, clock).expect("turns enough");
    assert_eq!((row.notes.len(), row.figure(SWITCHES)), (1, Some(0.975)));
    assert_eq!(row.figure("turn_over_walk_alone"), Some(3.0));
    let few = Told { turns: vec![3000; 5], ..told(5, 5) };
    assert!(add(&mut row, &few, true, clock).is_err());
}

#[test]
fn the_near_side_that_says_nothing_is_an_error() {
    let (mut lab, end) = UnixStream::pair().expect("sockets");
    drop(end);
    assert_eq!(listen(&mut lab, None), Err(Gone("the near side has ended".into())));
    let (mut lab, mut end) = UnixStream::pair().expect("sockets");
    std::io::Write::write_all(&mut end, b"{}").expect("it is open");
    drop(end);
    let Gone(why) = listen(&mut lab, None).expect_err("it is not all");
    assert!(why.starts_with("the near side said: missing field"), "{why}");
    let (mut lab, _end) = UnixStream::pair().expect("sockets");
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let far = Life::Thread(ended);
    assert_eq!(listen(&mut lab, Some(&far)), Err(Gone("the far side has ended".into())));
}

#[test]
fn the_second_cache_is_that_of_data() {
    use sinew_figures::machine::Cache;
    let cache = |level, ty: &str, size_kib| Cache { level, ty: ty.into(), size_kib };
    let caches = vec![cache(1, "Data", 48), cache(2, "Instruction", 9), cache(2, "Unified", 2048)];
    assert_eq!(l2(&Machine { caches, ..Machine::default() }), Some(2 << 20));
    assert_eq!(l2(&Machine::default()), None);
}
