//! Both sides of a registry, in one process.

use std::string::String;
use std::vec::Vec;

use fastrand::Rng;
use sinew_core::sys::Region;

use super::*;
use crate::{Letters, SHARED_BYTES_MAX};

type Side = Registry<Region>;

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

fn both(size: usize) -> (Side, Side) {
    let memory = Region::anonymous(size).expect("memory");
    CarveOut::create(memory.clone()).expect("long enough").begin(3, &[], &[]);
    let side = |me| {
        let (carve_out, header) = CarveOut::open(memory.clone()).expect("made");
        Registry::new(carve_out, &header, me)
    };
    (side(MadeBy::Linux), side(MadeBy::Guest))
}

const LARGE: usize = 16 << 20;

#[test]
fn what_one_side_makes_the_other_finds_and_both_reach_the_same_bytes() {
    let (mut linux, mut guest) = both(LARGE);
    let wish = SharedWish::region(4096, 7);
    let made = [
        linux.get(name("a"), &wish, false).expect("made"),
        guest.get(name("b"), &wish, false).expect("made"),
    ];
    assert_eq!((guest.find(name("a")), linux.find(name("b"))), (Some(made[0]), Some(made[1])));
    assert_eq!(guest.get(name("a"), &wish, false), Ok(made[0]), "it is there already");
    for text in ["a", "b"] {
        linux.attach(name(text)).expect("there");
        guest.attach(name(text)).expect("there");
        linux.region(name(text)).expect("held").write(8, b"hello");
        let mut bytes = [0; 5];
        guest.region(name(text)).expect("held").read(8, &mut bytes);
        assert_eq!(&bytes, b"hello");
    }
    let all: Vec<_> = linux.list().map(|it| (it.entry.maker, it.linux, it.guest)).collect();
    assert_eq!(all, [(MadeBy::Linux, 1, 1), (MadeBy::Guest, 1, 1)]);
    assert!(linux.list().eq(guest.list()));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let (mut linux, mut guest) = both(LARGE);
    let region = |bytes| SharedWish::region(bytes, 0);
    let mut get = |text: &str, wish| linux.get(name(text), &wish, false).map(drop);
    assert_eq!(get("big", region(SHARED_BYTES_MAX)), Ok(()));
    assert_eq!(get("more", region(SHARED_BYTES_MAX + 1)), Err(SharedRefusal::BadSize));
    assert_eq!(get("none", region(0)), Err(SharedRefusal::BadSize));
    assert_eq!(get("", region(8)), Err(SharedRefusal::BadName));
    assert_eq!(get("big", region(8)), Err(SharedRefusal::Taken));
    assert_eq!(get("big", SharedWish::semaphore(1)), Err(SharedRefusal::Taken));
    for (message, capacity) in [(0, 4), (4097, 4), (8, 3), (8, 0), (8, 512)] {
        assert_eq!(get("q", SharedWish::queue(message, capacity, 0)), Err(SharedRefusal::BadSize));
    }
    for at in 0..3 {
        assert_eq!(get(&std::format!("r{at}"), region(SHARED_BYTES_MAX)), Ok(()));
    }
    assert_eq!(get("r4", region(1)), Err(SharedRefusal::Quota), "4 MiB are given out");
    assert_eq!(linux.remove(name("r0")), Ok(()));
    let mut fill = (0..32).map(|at| linux.get(name(&std::format!("s{at}")), &region(8), false));
    assert_eq!(fill.find_map(Result::err), Some(SharedRefusal::TooMany));
    assert_eq!(guest.get(name("g"), &region(8), false).map(|it| it.index), Ok(0), "its own");
    assert_eq!(linux.remove(name("g")), Err(SharedRefusal::Unknown), "the guest's to remove");
    let (mut small, _) = both(128 << 10);
    let full = small.get(name("x"), &region(40 << 10), false);
    assert_eq!(full, Err(SharedRefusal::NoRoom));
}

#[test]
fn what_is_held_stays_and_what_is_removed_makes_room() {
    let (mut linux, mut guest) = both(128 << 10);
    let half = SharedWish::region(32 << 10, 0);
    for round in 0..5 {
        let made = linux.get(name("a"), &half, false).expect("room");
        assert_eq!(made.offset, 0x10000, "round {round}");
        assert_eq!(linux.get(name("b"), &half, false), Err(SharedRefusal::NoRoom));
        assert_eq!(guest.detach(name("a")), Err(SharedRefusal::Detached));
        assert_eq!(guest.attach(name("a")).and(guest.attach(name("a"))), Ok(made));
        guest.detach(name("a")).expect("held twice");
        assert_eq!(linux.remove(name("a")), Err(SharedRefusal::Attached));
        guest.detach(name("a")).expect("held once");
        linux.attach(name("a")).expect("there");
        assert_eq!(linux.remove(name("a")), Err(SharedRefusal::Attached), "by ourselves");
        linux.detach(name("a")).expect("held");
        linux.remove(name("a")).expect("free");
        assert_eq!(guest.attach(name("a")), Err(SharedRefusal::Unknown));
        assert_eq!(guest.detach(name("a")), Err(SharedRefusal::Unknown));
    }
}

#[test]
fn a_semaphore_and_a_queue_cross_by_name() {
    let (mut linux, mut guest) = both(LARGE);
    linux.get(name("s"), &SharedWish::semaphore(1), false).expect("made");
    guest.get(name("q"), &SharedWish::queue(5, 2, 9), false).expect("made");
    assert!(linux.send(name("q"), b"hello").is_err(), "not held");
    for side in [&mut linux, &mut guest] {
        side.attach(name("s")).expect("there");
        side.attach(name("q")).expect("there");
        assert_eq!(side.region(name("s")).map(drop), Err(SharedRefusal::WrongClass));
    }
    let semaphores = [&linux, &guest].map(|side| side.semaphore(name("s")).expect("held"));
    assert_eq!(semaphores[1].try_take(), Ok(false), "it is Linux's");
    semaphores[1].begin_wait();
    assert_eq!((linux.serve_semaphores(), semaphores[1].try_take()), (1, Ok(true)));
    assert_eq!(linux.send(name("q"), b"hell"), Err(SharedRefusal::BadSize));
    for (from, to) in [(&linux, &guest), (&guest, &linux)] {
        let mut message = [0; 5];
        assert_eq!(to.receive(name("q"), &mut message), Ok(false));
        assert_eq!(from.send(name("q"), b"hello"), Ok(true));
        assert_eq!(from.send(name("q"), b"world"), Ok(true));
        assert_eq!(from.send(name("q"), b"again"), Ok(false), "it is full");
        assert_eq!(to.receive(name("q"), &mut message), Ok(true));
        assert_eq!(&message, b"hello");
    }
}

/// Each side may own 2^30 tokens of a semaphore, so four invented counts exceed a u32.
#[test]
fn lies_about_tokens_are_handed_over_without_an_overflow() {
    let (mut linux, guest) = both(LARGE);
    for text in ["a", "b", "c", "d", "e"] {
        linux.get(name(text), &SharedWish::semaphore(0), false).expect("room");
        let at = linux.find(name(text)).expect("there").offset as usize;
        // The tokens that Linux made, and the number for which the guest waits.
        guest.carve_out.words.set(at, sinew_link::semaphore::TOKENS_MAX);
        guest.carve_out.words.set(at + 128 + 12, u32::MAX);
    }
    assert_eq!(linux.serve_semaphores(), u32::MAX);
    assert_eq!(linux.serve_semaphores(), 0, "none is left");
}

#[test]
fn letters_carry_what_is_asked_and_answered() {
    let (linux, mut guest) = both(LARGE);
    let mut ours = Letters::open(&linux.carve_out, MadeBy::Linux).expect("made");
    let mut theirs = Letters::open(&guest.carve_out, MadeBy::Guest).expect("made");
    let get = AgentLetter::ask(Ask::Get, name("r")).numbered([1, 64, 5, 0, 0]);
    assert_eq!(ours.ask(&get.as_request(9)), Ok(true));
    let asked = theirs.asked().expect("whole").expect("one");
    assert_eq!(theirs.answer(&guest.answer(&asked).expect("the registry's")), Ok(true));
    let answer = ours.answers().expect("whole").expect("one");
    assert_eq!((answer.id, answer.outcome(), answer.numbers[0]), (9, Ok(()), 32));
    assert_eq!(linux.find(name("r")).map(|it| it.wish), Some(SharedWish::region(64, 5)));
    let bad = guest.answer(&get.numbered([77, 64, 0, 0, 0])).expect("an answer");
    assert_eq!(bad.outcome(), Err(SharedRefusal::BadRequest));
    let mut odd = get;
    odd.what = 4711;
    assert_eq!(guest.answer(&odd), None);
    let long = get.with(&[b'x'; 100]);
    assert_eq!(long.text().len(), 64);
    let full = (0..17).map(|_| ours.ask(&long)).find(|sent| *sent != Ok(true));
    assert_eq!(full, Some(Ok(false)));
}

/// Every word of the carve-out is garbage, again and again, while Linux does all it can. Each
/// answer must be a valid one, what is found is inside the memory, and nothing panics or hangs.
#[test]
fn garbage_over_the_whole_carve_out_is_refused_or_lies_inside() {
    let mut rng = Rng::with_seed(16);
    let mut broken = 0;
    for _ in 0..40 {
        let (mut linux, mut guest) = both(128 << 10);
        let mut letters = Letters::open(&linux.carve_out, MadeBy::Linux).expect("made");
        let wishes = [
            ("s", SharedWish::semaphore(1)),
            ("q", SharedWish::queue(8, 2, 0)),
            ("r", SharedWish::region(8, 0)),
        ];
        for (text, wish) in wishes {
            let side = if rng.bool() { &mut linux } else { &mut guest };
            side.get(name(text), &wish, false).expect("room");
            linux.attach(name(text)).expect("there");
        }
        for at in (0..128 << 10).step_by(4) {
            let word = if rng.bool() { rng.u32(0..12) } else { rng.u32(..) };
            linux.carve_out.words.set(at, word);
        }
        for found in linux.list() {
            let end = found.entry.offset + found.entry.wish.size;
            assert!(found.entry.offset >= 0x10000 && end <= 128 << 10);
        }
        broken += u32::from(letters.asked().is_err()) + u32::from(letters.answers().is_err());
        let _ = letters.ask(&AgentLetter::ask(Ask::List, name("x")));
        let semaphore = linux.semaphore(name("s")).expect("its own copy says that it is held");
        let _ = (semaphore.try_take(), semaphore.post(), linux.serve_semaphores());
        let _ = (linux.send(name("q"), &[0; 8]), linux.receive(name("q"), &mut [0; 8]));
        let _ = (linux.detach(name("r")), linux.remove(name("r")));
        let texts: Vec<_> = (0..4).map(|at| std::format!("n{at}")).collect::<Vec<String>>();
        for text in texts {
            let _ = linux.get(name(&text), &SharedWish::region(4096, 0), false);
            let _ = (linux.attach(name(&text)), linux.detach(name(&text)));
        }
    }
    assert!(broken > 20, "garbage passed for letters: the test saw nothing");
}
