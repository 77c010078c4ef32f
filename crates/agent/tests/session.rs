//! A session with a real guest under QEMU: named memory, semaphores, queues, jobs, a stopped node,
//! garbage, a storm of bells.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sinew_agent::{
    BoardRow, GuestBells, GuestProgress, GuestSession, GuestSetup, Keeper, SessionError,
};
use sinew_carve_out::{
    CarveOut, MadeBy, Name, NodeRow, Order, SharedClass, SharedRefusal, SharedWish, Trial,
    VALUES_MAX,
};
use sinew_core::sys::Region;
use sinew_plan::plan::Board;

/// Deadline for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Deadline for what must not come.
const SOON: Duration = Duration::from_millis(100);
const MEMORY: usize = 16 << 20;

/// Says that a test cannot run here. With `CI=true` that is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

fn image() -> Option<PathBuf> {
    if let Some(lack) = (BoardRow::of(Board::Virt).missing)() {
        skip(&lack);
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("guest/target/armv7a-none-eabi/release/trials");
    if !image.is_file() {
        skip("there is no image of a guest: cargo build --release in guest/");
        return None;
    }
    Some(image)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

/// A node of the kind `probe`, which needs no links.
fn probe(node: &str, trial: (Trial, u32)) -> NodeRow {
    let mut values = [0.0; VALUES_MAX];
    // It reads the first word of the image.
    values[0] = f64::from(0x4010_0000);
    let (kind, name) = (name("probe"), name(node));
    NodeRow { kind, name, period_us: 1000, values, value_count: 1, trial }
}

/// A session with a guest whose nodes run.
fn running(nodes: &[NodeRow]) -> Option<GuestSession> {
    let image = image()?;
    let carve_out = Region::shared("test", MEMORY).expect("memory");
    let board = BoardRow::of(Board::Virt);
    let bells = GuestBells::of(&[]).expect("bells");
    let setup = GuestSetup { image: &image, board, carve_out, nodes, rows: &[], bells };
    let mut session = GuestSession::new(Keeper::start(setup).expect("a life"));
    session.order(Order::Wait, GuestProgress::Ready, PATIENCE).expect("it gets ready");
    session.order(Order::Run, GuestProgress::Running, PATIENCE).expect("it runs");
    Some(session)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, SessionError>, why: SharedRefusal) {
    match outcome {
        Err(SessionError::Refused(found, _)) => assert_eq!(found, why),
        other => panic!("expected '{why}', found {other:?}"),
    }
}

/// Checks that a job of the guest was refused with these words.
#[track_caller]
fn job_refused(session: &mut GuestSession, job: &str, numbers: [u32; 5], on: &str, words: &str) {
    let outcome = session.call(name(job), numbers, on.as_bytes(), PATIENCE);
    let Err(SessionError::Refused(SharedRefusal::JobFailed, text)) = outcome else {
        panic!("expected '{words}', found {outcome:?}");
    };
    assert!(text.contains(words), "expected '{words}', found '{text}'");
}

#[test]
fn regions_of_either_side_are_found_by_name_at_different_addresses() {
    let Some(mut it) = running(&[]) else { return };
    let view = it.view(PATIENCE).expect("an answer");
    let ours = it.keeper.memory().words().as_ptr().addr() as u64;
    let theirs = [u64::from(view.virtual_address), view.physical_address];
    assert!(view.size as usize == MEMORY && !theirs.contains(&ours) && theirs[0] != theirs[1]);
    for (text, maker) in [("of_linux", MadeBy::Linux), ("of_guest", MadeBy::Guest)] {
        let wish = SharedWish::region(4096, 77);
        let entry = it.get(name(text), &wish, maker, PATIENCE).expect("made");
        assert_eq!((entry.maker, entry.wish), (maker, wish));
        assert_eq!(it.get(name(text), &wish, maker.other(), PATIENCE), Ok(entry), "it is there");
        it.attach(name(text), MadeBy::Linux, PATIENCE).expect("there");
        it.attach(name(text), MadeBy::Guest, PATIENCE).expect("there");
        let holds = it.list().into_iter().find(|holds| holds.entry == entry).expect("listed");
        assert_eq!((holds.linux, holds.guest), (1, 1));
        refused(it.remove(name(text), PATIENCE), SharedRefusal::Attached);
        it.detach(name(text), MadeBy::Linux, PATIENCE).expect("held");
        refused(it.remove(name(text), PATIENCE), SharedRefusal::Attached);
        it.detach(name(text), MadeBy::Guest, PATIENCE).expect("held");
        refused(it.detach(name(text), MadeBy::Guest, PATIENCE), SharedRefusal::Detached);
        it.remove(name(text), PATIENCE).expect("nobody holds it");
        refused(it.attach(name(text), MadeBy::Guest, PATIENCE), SharedRefusal::Unknown);
    }
    // The same from the guest's side: with its own allocator, and with ours by a request.
    for (text, maker) in [("a", MadeBy::Linux), ("b", MadeBy::Guest)] {
        let numbers = [64, maker as u32, 0, 0, 0];
        it.call(name("get"), numbers, text.as_bytes(), PATIENCE).expect("made");
        assert_eq!(it.list().iter().map(|it| it.entry.maker).collect::<Vec<_>>(), [maker]);
        it.call(name("remove"), [0; 5], text.as_bytes(), PATIENCE).expect("removed");
        assert_eq!(it.list(), []);
    }
    let tally = it.keeper.desk.tally();
    assert_eq!((tally.answered, tally.refused), (2, 0), "one get, one remove");
}

#[test]
fn a_node_gets_a_region_of_linux_while_it_runs_and_linux_reads_what_it_writes() {
    let mut node = probe("sharer", (Trial::None, 0));
    (node.kind, node.value_count) = (name("sharer"), 0);
    let Some(mut it) = running(&[node]) else { return };
    let begun = Instant::now();
    while it.attach(name("cycles"), MadeBy::Linux, PATIENCE).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the node has made no region");
        it.turn(SOON).expect("it lives");
    }
    assert_eq!(it.list()[0].entry.maker, MadeBy::Linux);
    let words = it.keeper.desk.registry.region(name("cycles")).expect("held");
    while words.get(0) < 100 {
        assert!(begun.elapsed() < PATIENCE, "the node writes nothing");
        it.turn(SOON).expect("it lives");
    }
}

#[test]
fn a_pattern_crosses_both_ways_from_eight_bytes_to_a_mebibyte() {
    let Some(mut it) = running(&[]) else { return };
    for maker in [MadeBy::Linux, MadeBy::Guest] {
        for size in [8, 4096, 65_536, 1 << 20] {
            let region = name("pattern");
            it.get(region, &SharedWish::region(size, 0), maker, PATIENCE).expect("room");
            it.attach(region, MadeBy::Linux, PATIENCE).expect("there");
            let words = it.keeper.desk.registry.region(region).expect("held");
            let sent: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
            words.write(0, &sent);
            let mut back = vec![0; size as usize];
            it.call(name("invert"), [0; 5], b"pattern", PATIENCE).expect("done");
            words.read(0, &mut back);
            assert!(back.iter().zip(&sent).all(|(back, sent)| *back == !sent), "{size}");
            it.call(name("fill"), [9, 0, 0, 0, 0], b"pattern", PATIENCE).expect("done");
            let word = |at: usize| words.get(at * 4);
            let expected = |at: usize| 9_u32.wrapping_add((at as u32).wrapping_mul(0x9e37_79b9));
            assert!((0..size as usize / 4).all(|at| word(at) == expected(at)), "{size}");
            it.detach(region, MadeBy::Linux, PATIENCE).expect("held");
            it.remove(region, PATIENCE).expect("free");
        }
    }
}

#[test]
fn what_cannot_be_is_refused_on_both_sides() {
    let Some(mut it) = running(&[]) else { return };
    for maker in [MadeBy::Linux, MadeBy::Guest] {
        let mut get = |text: &str, bytes| {
            it.get(name(text), &SharedWish::region(bytes, 0), maker, PATIENCE).map(drop)
        };
        refused(get("large", (1 << 20) + 1), SharedRefusal::BadSize);
        refused(get("none", 0), SharedRefusal::BadSize);
        (0..4).for_each(|at| get(&format!("r{at}"), 1 << 20).expect("within the quota"));
        refused(get("r4", 1), SharedRefusal::Quota);
        (0..4).for_each(|at| it.remove(name(&format!("r{at}")), PATIENCE).expect("free"));
        let mut get = |text: &str, bytes| {
            it.get(name(text), &SharedWish::region(bytes, 0), maker, PATIENCE).map(drop)
        };
        (0..32).for_each(|at| get(&format!("s{at}"), 1).expect("an entry"));
        refused(get("s32", 1), SharedRefusal::TooMany);
        refused(get("s0", 2), SharedRefusal::Taken);
        (0..32).for_each(|at| it.remove(name(&format!("s{at}")), PATIENCE).expect("free"));
    }
    refused(it.remove(name("nothing"), PATIENCE), SharedRefusal::Unknown);
    refused(it.attach(name("nothing"), MadeBy::Guest, PATIENCE), SharedRefusal::Unknown);
    job_refused(&mut it, "get", [(1 << 20) + 1, 0, 0, 0, 0], "x", "the size is not valid");
    job_refused(&mut it, "invert", [0; 5], "nothing", "nothing has this name");
}

#[test]
fn semaphores_and_queues_cross_with_deadlines() {
    let Some(mut it) = running(&[]) else { return };
    for maker in [MadeBy::Linux, MadeBy::Guest] {
        let (semaphore, queue) = (name("turn"), name("letters"));
        it.get(semaphore, &SharedWish::semaphore(1), maker, PATIENCE).expect("made");
        it.get(queue, &SharedWish::queue(11, 4, 5), maker, PATIENCE).expect("made");
        for shared in [semaphore, queue] {
            it.attach(shared, MadeBy::Linux, PATIENCE).expect("there");
        }
        // The one token is first ours, then the guest's, then nobody has one.
        it.take(semaphore, PATIENCE).expect("ours");
        refused(it.take(semaphore, SOON), SharedRefusal::Late);
        job_refused(&mut it, "take", [50, 0, 0, 0, 0], "turn", "within the deadline");
        it.post(semaphore).expect("room");
        it.call(name("take"), [10_000, 0, 0, 0, 0], b"turn", PATIENCE).expect("handed over");
        refused(it.take(semaphore, SOON), SharedRefusal::Late);
        it.call(name("post"), [0; 5], b"turn", PATIENCE).expect("room");
        it.take(semaphore, PATIENCE).expect("handed back");
        // A receive without an answer, and a message that the guest passes back.
        let mut message = [0; 11];
        refused(it.receive(queue, &mut message, SOON), SharedRefusal::Late);
        it.send(queue, b"hello there", PATIENCE).expect("room");
        it.call(name("pass"), [11, 1000, 0, 0, 0], b"letters", PATIENCE).expect("passed");
        it.receive(queue, &mut message, PATIENCE).expect("passed back");
        assert_eq!(&message, b"hello there");
        job_refused(&mut it, "pass", [11, 50, 0, 0, 0], "letters", "within the deadline");
        (0..4).for_each(|_| it.send(queue, &message, PATIENCE).expect("room"));
        refused(it.send(queue, &message, SOON), SharedRefusal::Late);
        refused(it.send(queue, b"short", SOON), SharedRefusal::BadSize);
        for shared in [semaphore, queue] {
            it.detach(shared, MadeBy::Linux, PATIENCE).expect("held");
            it.remove(shared, PATIENCE).expect("free");
        }
    }
}

#[test]
fn a_job_answers_fails_or_is_late_and_one_node_stops_alone() {
    let nodes = [probe("first", (Trial::None, 0)), probe("second", (Trial::None, 0))];
    let Some(mut it) = running(&nodes) else { return };
    let jobs = it.jobs(PATIENCE).expect("a list");
    assert!(jobs.iter().any(|(job, doc)| job == "nap" && doc.contains("sleeps")), "{jobs:?}");
    let echoed = it.call(name("echo"), [1, 2, 3, 4, 5], b"text", PATIENCE).expect("an answer");
    assert_eq!((echoed.numbers, echoed.text()), ([1, 2, 3, 4, 5], "text"));
    let twice = it.call(name("twice"), [21, 0, 0, 0, 0], b"", PATIENCE).expect("an answer of C");
    assert_eq!(twice.numbers[0], 42);
    job_refused(&mut it, "twice", [0; 5], "text", "it takes a number and no text");
    job_refused(&mut it, "nap", [0; 5], "", "a nap of 0 ms");
    refused(it.call(name("nothing"), [0; 5], b"", PATIENCE), SharedRefusal::NoJob);
    // The job goes on sleeping, so the guest is busy. Its answer comes too late and is counted.
    refused(it.call(name("nap"), [1000, 0, 0, 0, 0], b"", SOON), SharedRefusal::Late);
    refused(it.call(name("echo"), [0; 5], b"", PATIENCE), SharedRefusal::Busy);
    // Meanwhile the agent answers, and the nodes run.
    let before = it.nodes(PATIENCE).expect("a list");
    assert_eq!(before.iter().map(|it| it.state).collect::<Vec<_>>(), ["runs", "runs"]);
    let until = |it: &mut GuestSession, done: &dyn Fn(&GuestSession) -> bool| {
        let begun = Instant::now();
        while !done(it) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain");
            it.turn(SOON).expect("it lives");
        }
    };
    until(&mut it, &|it| it.keeper.desk.tally().stale == 1);
    refused(it.stop_node(name("third"), PATIENCE), SharedRefusal::NoNode);
    it.stop_node(name("first"), PATIENCE).expect("told");
    let begun = Instant::now();
    let stopped = loop {
        let nodes = it.nodes(PATIENCE).expect("a list");
        if nodes[0].state == "has stopped" {
            break nodes;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not stop: {nodes:?}");
    };
    assert_eq!(stopped[1].state, "runs");
    let goes_on = |it: &GuestSession| it.keeper.tally(1).cycles > stopped[1].cycles + 100;
    until(&mut it, &goes_on);
    assert_eq!(it.keeper.tally(0).cycles, stopped[0].cycles, "it stands");
    it.order(Order::Stop, GuestProgress::Stopped, PATIENCE).expect("it stops in order");
}

#[test]
fn a_storm_of_bells_stops_neither_nodes_nor_agent() {
    let Some(mut it) = running(&[probe("node", (Trial::None, 0))]) else { return };
    let before = (it.keeper.tally(0).cycles, it.view(PATIENCE).expect("an answer").bells);
    let begun = Instant::now();
    while it.keeper.tally(0).cycles < before.0 + 200 {
        it.keeper.ring(1000);
        it.turn(Duration::ZERO).expect("it lives");
        assert!(begun.elapsed() < PATIENCE, "its node does not run any more");
    }
    assert!(it.view(PATIENCE).expect("an answer").bells.wrapping_sub(before.1) > 100);
}

#[test]
fn a_guest_that_writes_garbage_over_everything_is_survived() {
    let Some(mut it) = running(&[probe("node", (Trial::Garbage, 300))]) else { return };
    let region = name("here");
    it.get(region, &SharedWish::region(4096, 0), MadeBy::Linux, PATIENCE).expect("room");
    it.attach(region, MadeBy::Linux, PATIENCE).expect("there");
    it.get(name("s"), &SharedWish::semaphore(3), MadeBy::Guest, PATIENCE).expect("room");
    it.get(name("q"), &SharedWish::queue(8, 4, 0), MadeBy::Guest, PATIENCE).expect("room");
    let mine: Vec<_> = ["s", "q"].map(name).into();
    for shared in &mine {
        it.attach(*shared, MadeBy::Linux, PATIENCE).expect("there");
    }
    // All of it is read while it is overwritten; any answer is right.
    let begun = Instant::now();
    loop {
        let over = it.turn(Duration::from_millis(1)).is_err();
        let _ = (it.list(), it.post(name("s")), it.take(name("s"), Duration::ZERO));
        let _ = it.send(name("q"), &[1; 8], Duration::ZERO);
        let _ = it.receive(name("q"), &mut [0; 8], Duration::ZERO);
        let found = it.keeper.desk.registry.held(region, SharedClass::Region);
        assert_eq!(found.map(|it| it.name), Ok(region), "our own copy stays");
        if over {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody noticed");
    }
    refused_or_over(it.view(SOON));
    assert!(CarveOut::open(it.keeper.memory().clone()).is_err(), "it was all written over");
    // The memory can be used for another life.
    let memory = it.keeper.memory().clone();
    drop(it);
    let image = image().expect("it was there");
    let board = BoardRow::of(Board::Virt);
    let bells = GuestBells::of(&[]).expect("bells");
    let carve_out = memory;
    let setup = GuestSetup { image: &image, board, carve_out, nodes: &[], rows: &[], bells };
    let mut it = GuestSession::new(Keeper::start(setup).expect("a life"));
    it.order(Order::Wait, GuestProgress::Ready, PATIENCE).expect("it gets ready");
    assert_eq!((it.list(), it.view(PATIENCE).map(|it| it.size as usize)), (vec![], Ok(MEMORY)));
}

#[track_caller]
fn refused_or_over<T: std::fmt::Debug>(outcome: Result<T, SessionError>) {
    assert!(outcome.is_err(), "answered: {outcome:?}");
}
