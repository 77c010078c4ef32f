//! A peer writes false values into every word of the carve-out, again and again, while Linux uses
//! everything in it. There must be no panic, no call without an end, and no access outside of the
//! memory: it lies between two guard pages. An idle process runs instead of the emulator; the peer
//! is a thread of the test.

mod peer;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use sinew_agent::boards::ElfMachine;
use sinew_agent::{
    BoardRow, GuestBells, GuestProgress, GuestSession, GuestSetup, Keeper, SessionError,
};
use sinew_carve_out::{
    CarveOut, DATA, Delivery, Direction, Letters, LinkRow, MadeBy, NODES_MAX, Name, NodeRow, Order,
    PAGE, ROWS_MAX, RegionRow, SIZE_MIN, SharedRefusal, SharedWish, Trial, VALUES_MAX,
};
use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::Doorbell;
use sinew_link::{Memory, PieceMemory, Wait, broadcast, latest, queue};
use sinew_plan::plan::Board;

use peer::{AIMS, Peer, any_name, any_wish, is_lie};

const SIZE: usize = SIZE_MIN;
/// Deadline of each call.
const SOON: Duration = Duration::from_millis(1);
/// A call that has not returned after this time hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Least count of lives with the same aim.
const LIVES: usize = 4;
/// Calls of Linux in a life.
const STEPS: usize = 40;
/// Count of calls that never wait, between two calls that may wait.
const LOOKS_AT_A_TIME: usize = 15;
/// Count of words that a peer writes at a time, by its life.
const BURSTS: [usize; 4] = [1, 4, 32, 512];

const IDLE: BoardRow = BoardRow {
    board: Board::Virt,
    doc: "For tests.",
    machine: ElfMachine { family: 40, bits: 32, is_little_endian: true },
    memory_bytes: SIZE..=SIZE,
    command: |_| {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    },
    missing: || None,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

/// One link of each delivery, with sides that sleep.
fn rows() -> Vec<RegionRow> {
    let row = |at: usize, text: &str, delivery, message_size, capacity| {
        let (node, port, bell) = (0, at as u32, 1 + at as u32);
        let direction = Direction::In;
        let link = LinkRow { node, port, direction, delivery, capacity, message_size, bell };
        let offset = (DATA + at * PAGE) as u32;
        let row = RegionRow { name: name(text), offset, size: 0, hash: 9, link };
        RegionRow { size: row.shape().region_len() as u32, ..row }
    };
    vec![
        row(0, "latest", Delivery::Latest, 200, 4),
        row(1, "queue", Delivery::Queue, 21, 8),
        row(2, "broadcast", Delivery::Broadcast, 40, 4),
    ]
}

type Piece = PieceMemory<Region>;

/// Both ends of each link.
struct Links {
    latest: (latest::Writer<Piece>, latest::Reader<Piece>),
    queue: (queue::Writer<Piece>, queue::Reader<Piece>),
    broadcast: (broadcast::Writer<Piece>, broadcast::Reader<Piece>),
}

impl Links {
    /// `None` if one of the ends is refused.
    fn attach(memory: &Region, rows: &[RegionRow]) -> Option<Links> {
        let piece = |at: usize| {
            let (offset, size) = (rows[at].offset as usize, rows[at].size as usize);
            PieceMemory::new(memory.clone(), offset, size).expect("inside")
        };
        let shapes: Vec<_> = rows.iter().map(RegionRow::shape).collect();
        Some(Links {
            latest: (
                latest::Writer::attach(piece(0), &shapes[0]).ok()?,
                latest::Reader::attach(piece(0), &shapes[0]).ok()?,
            ),
            queue: (
                queue::Writer::attach(piece(1), &shapes[1]).ok()?,
                queue::Reader::attach(piece(1), &shapes[1]).ok()?,
            ),
            broadcast: (
                broadcast::Writer::attach(piece(2), &shapes[2]).ok()?,
                broadcast::Reader::attach(piece(2), &shapes[2]).ok()?,
            ),
        })
    }
}

/// Linux in one life of the guest.
struct Linux<'a> {
    memory: Region,
    rows: Vec<RegionRow>,
    session: GuestSession,
    links: Option<Links>,
    rng: Rng,
    seen: &'a mut Seen,
}

/// Count of each outcome, in words.
type Seen = BTreeMap<&'static str, u32>;

impl Linux<'_> {
    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn note<T>(&mut self, outcome: Result<T, SessionError>) {
        self.saw(match outcome {
            Ok(_) => "a call that was done",
            Err(SessionError::Refused(why, _)) if is_lie(why) => "a lie that was seen through",
            Err(SessionError::Refused(SharedRefusal::Late, _)) => "a deadline",
            Err(SessionError::Refused(..)) => "a refusal",
            Err(SessionError::Over(GuestProgress::Faulted(_))) => "a fault",
            Err(SessionError::Over(GuestProgress::Nonsense(_))) => "nonsense",
            Err(SessionError::Over(_)) => "another end",
        });
    }

    fn side(&mut self) -> MadeBy {
        if self.rng.bool() { MadeBy::Linux } else { MadeBy::Guest }
    }
}

type Use = fn(&mut Linux<'_>);

/// Everything that Linux does with a carve-out and that may wait, a row each.
const CALLS: &[(&str, Use)] = &[
    ("order", |it| {
        let outcome = it.session.order(Order::Run, GuestProgress::Running, SOON);
        it.note(outcome);
    }),
    ("get", |it| {
        let (name, wish, side) = (any_name(&mut it.rng), any_wish(&mut it.rng), it.side());
        let outcome = it.session.get(name, &wish, side, SOON);
        it.note(outcome);
    }),
    ("attach", |it| {
        let (name, side) = (any_name(&mut it.rng), it.side());
        let outcome = it.session.attach(name, side, SOON);
        it.note(outcome);
    }),
    ("detach", |it| {
        let (name, side) = (any_name(&mut it.rng), it.side());
        let outcome = it.session.detach(name, side, SOON);
        it.note(outcome);
    }),
    ("remove", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.remove(name, SOON);
        it.note(outcome);
    }),
    ("take", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.take(name, SOON);
        it.note(outcome);
    }),
    ("send", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.send(name, &[7; 8], SOON);
        it.note(outcome);
    }),
    ("receive", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.receive(name, &mut [0; 8], SOON);
        it.note(outcome);
    }),
    ("call", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.call(name, [1; 5], b"data", SOON);
        it.note(outcome.map(|answer| answer.text().len()));
    }),
    ("ask for jobs", |it| {
        let outcome = it.session.jobs(SOON);
        it.note(outcome);
    }),
    ("ask for nodes", |it| {
        let outcome = it.session.nodes(SOON);
        it.note(outcome);
    }),
    ("stop a node", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.stop_node(name, SOON);
        it.note(outcome);
    }),
    ("ask for the guest's view", |it| {
        let outcome = it.session.view(SOON);
        it.note(outcome);
    }),
    ("wait at latest", |it| {
        let Some(Links { latest: (_, reader), .. }) = &mut it.links else { return };
        reader.wait(Wait::Park, soon(), &doorbell(&it.session, 1));
    }),
    ("wait at a queue", |it| {
        let Some(Links { queue: (writer, reader), .. }) = &mut it.links else { return };
        let bell = doorbell(&it.session, 2);
        writer.wait_room(Wait::SpinThenPark, soon(), &bell);
        reader.wait(Wait::Park, soon(), &bell);
    }),
    ("wait at a broadcast", |it| {
        let Some(Links { broadcast: (_, reader), .. }) = &mut it.links else { return };
        reader.wait(Wait::Park, soon(), &doorbell(&it.session, 3));
    }),
];

fn doorbell(session: &GuestSession, number: usize) -> Doorbell {
    session.keeper.bells().doorbell(number).expect("descriptors")
}

/// Calls that never wait. Many of them are made between two calls that may wait.
const LOOKS: &[(&str, Use)] = &[
    ("look after the guest", |it| {
        let progress = it.session.keeper.look(&mut |_| {});
        it.saw(match progress {
            GuestProgress::Nonsense(_) => "nonsense",
            GuestProgress::Faulted(_) => "a fault",
            _ => "a guest that seems to be well",
        });
    }),
    ("read the tables", read_tables),
    ("list", |it| {
        for found in it.session.list() {
            let (from, size) = (found.entry.offset as usize, found.entry.wish.size as usize);
            assert!(from >= DATA && from + size <= SIZE, "outside: {found:?}");
        }
    }),
    ("attach to what is named and let go of it", |it| {
        let (name, registry) = (any_name(&mut it.rng), &mut it.session.keeper.desk.registry);
        let _ = (registry.attach(name), registry.attach(name), registry.detach(name));
    }),
    ("make and remove", |it| {
        let (name, wish) = (any_name(&mut it.rng), any_wish(&mut it.rng));
        let registry = &mut it.session.keeper.desk.registry;
        let _ = (registry.get(name, &wish, false), registry.remove(name));
    }),
    ("reach named bytes", |it| {
        let name = any_name(&mut it.rng);
        let Ok(words) = it.session.keeper.desk.registry.region(name) else { return };
        let mut bytes = vec![0; words.memory().len()];
        words.read(0, &mut bytes);
        words.write(0, &bytes);
    }),
    ("use a semaphore and a queue", |it| {
        let name = any_name(&mut it.rng);
        let outcome = it.session.post(name);
        it.note(outcome);
        let registry = &it.session.keeper.desk.registry;
        let _ = (registry.send(name, &[7; 8]), registry.receive(name, &mut [0; 8]));
        let _ = registry.serve_semaphores();
    }),
    ("read letters", |it| {
        // New ends, as the desk's ends are given up for good at the first false value.
        let Ok((carve_out, _)) = CarveOut::open(it.memory.clone()) else { return };
        let Ok(mut letters) = Letters::open(&carve_out, MadeBy::Linux) else { return };
        for letter in [letters.asked(), letters.answers()].into_iter().flatten().flatten() {
            assert!(letter.text().len() <= letter.data().len());
            let _ = (letter.outcome(), letters.answer(&letter.done()));
        }
    }),
    ("use links", |it| {
        let Some(Links { latest, queue, broadcast }) = &mut it.links else { return };
        let bell = doorbell(&it.session, 1);
        latest.0.send(&[5; 200]);
        broadcast.0.send(&[5; 40]);
        let _ = (latest.1.has_new(), latest.1.read(&mut [0; 200]));
        let _ = (queue.0.try_send(&[5; 21]), queue.1.try_receive(&mut [0; 21]));
        let _ = broadcast.1.receive(&mut [0; 40]);
        latest.0.wake(&bell);
        broadcast.0.wake(&bell);
        queue.0.wake(&bell);
        queue.1.wake(&bell);
    }),
    ("attach links again", |it| {
        it.links = None;
        it.links = Links::attach(&it.memory, &it.rows);
        it.saw(if it.links.is_some() { "links" } else { "links that were refused" });
    }),
];

/// The present call of Linux, for the watchdog, and the count of calls before it.
#[derive(Default)]
struct Doing(Mutex<(&'static str, u64)>);

impl Doing {
    fn begin(&self, what: &'static str) {
        let mut now = self.0.lock().expect("nobody panics with it");
        *now = (what, now.1 + 1);
    }
}

fn soon() -> Option<u64> {
    Some(now_ns() + 100_000)
}

/// The tables that Linux and `sinew guest` read outside of a session, and those that only a guest
/// reads.
fn read_tables(it: &mut Linux<'_>) {
    let Ok((carve_out, header)) = CarveOut::open(it.memory.clone()) else {
        return it.saw("a header that was refused");
    };
    assert!(header.nodes as usize <= NODES_MAX && header.rows as usize <= ROWS_MAX);
    let _ = (carve_out.state(header.epoch), carve_out.ordered(), carve_out.beats_of_guest());
    if let Some(fault) = carve_out.fault() {
        assert!(!fault.to_string().is_empty());
    }
    for node in 0..=NODES_MAX {
        let row = carve_out.node(node);
        assert!(row.is_none_or(|row| row.value_count as usize <= VALUES_MAX));
    }
    let cycles = (0..NODES_MAX).map(|node| u64::from(it.session.keeper.tally(node).cycles));
    assert!(cycles.sum::<u64>() <= NODES_MAX as u64 * u64::from(u32::MAX));
    for at in 0..ROWS_MAX {
        let _ = carve_out.side(at);
        let Some(row) = carve_out.row(at) else { continue };
        assert!(row.lies_in(SIZE), "{row:?}");
        let (offset, size) = (row.offset as usize, row.size as usize);
        let piece = PieceMemory::new(it.memory.clone(), offset, size).expect("inside");
        let _ = latest::Reader::attach(piece.clone(), &row.shape());
        let _ = queue::Reader::attach(piece.clone(), &row.shape());
        let _ = broadcast::Reader::attach(piece, &row.shape());
    }
}

/// One life: Linux uses everything while the peer attacks one part.
fn live(
    memory: &Region,
    peer: &Mutex<Peer>,
    (aim, life): (usize, usize),
    doing: &Doing,
    seen: &mut Seen,
) {
    let (rows, lock) = (rows(), || peer.lock().expect("the peer panicked"));
    rows.iter().for_each(|row| row.create(memory.clone()).expect("room"));
    let (kind, node) = (name("probe"), name("node"));
    let (values, trial) = ([0.0; VALUES_MAX], (Trial::None, 0));
    let node = NodeRow { kind, name: node, period_us: 1000, values, value_count: 1, trial };
    let setup = || GuestSetup {
        image: Path::new("/nowhere"),
        board: &IDLE,
        carve_out: memory.clone(),
        nodes: std::slice::from_ref(&node),
        rows: &rows,
        bells: GuestBells::of(&rows).expect("bells"),
    };
    // A peer that attacks from the first moment can make the start fail, but nothing worse.
    lock().aim = Some(aim).filter(|_| life % 4 == 3);
    drop(Keeper::start(setup()));
    lock().aim = None;
    rows.iter().for_each(|row| row.create(memory.clone()).expect("room"));
    let mut session = GuestSession::new(Keeper::start(setup()).expect("nobody lies"));
    let wishes = [SharedWish::region(4096, 7), SharedWish::semaphore(1), peer::queue()];
    for (text, wish) in peer::NAMES.iter().zip(&wishes) {
        session.get(name(text), wish, MadeBy::Linux, PATIENCE).expect("room");
        session.attach(name(text), MadeBy::Linux, PATIENCE).expect("there");
    }
    let links = Links::attach(memory, &rows);
    assert!(links.is_some(), "nobody lies yet");
    let (memory, rng) = (memory.clone(), Rng::with_seed(life as u64 * 100 + aim as u64));
    let mut linux = Linux { memory, rows, session, links, rng, seen };
    {
        let mut peer = lock();
        peer.begin();
        (peer.aim, peer.burst) = (Some(aim), BURSTS[life % BURSTS.len()]);
    }
    for step in 0..STEPS {
        let call = linux.rng.usize(..CALLS.len());
        let looks = LOOKS.iter().cycle().skip(step).take(LOOKS_AT_A_TIME);
        for (what, begin) in looks.chain([&CALLS[call]]) {
            doing.begin(what);
            begin(&mut linux);
        }
    }
    lock().aim = None;
}

/// The whole attack. Returns what Linux saw of it, and which words were overwritten.
fn attack(memory: &Region, doing: &Doing) -> (Seen, Vec<bool>) {
    /// Ends the peer also if Linux panics, so that the test fails and does not hang.
    struct End<'a>(&'a Mutex<Peer>);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.lock().unwrap_or_else(|broken| broken.into_inner()).is_over = true;
        }
    }
    let (peer, mut seen) = (Mutex::new(Peer::new(memory.clone())), Seen::new());
    thread::scope(|threads| {
        threads.spawn(|| {
            loop {
                let mut peer = peer.lock().expect("Linux does not panic with the lock");
                if peer.is_over {
                    break;
                }
                peer.act();
                drop(peer);
                thread::yield_now();
            }
        });
        let _end = End(&peer);
        let is_whole = || peer.lock().is_ok_and(|peer| peer.written.iter().all(|it| *it));
        for life in 0..LIVES {
            (0..AIMS.len()).for_each(|aim| live(memory, &peer, (aim, life), doing, &mut seen));
        }
        // The last aim is the whole memory, and the last life has the longest bursts.
        while !is_whole() {
            live(memory, &peer, (AIMS.len() - 1, LIVES - 1), doing, &mut seen);
        }
    });
    (seen, peer.into_inner().expect("no panic").written)
}

#[test]
fn linux_survives_lies_in_every_word_of_the_carve_out_while_it_uses_them() {
    let memory = Region::guarded("test", SIZE).expect("memory");
    let doing = Arc::new(Doing::default());
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn({
        let doing = Arc::clone(&doing);
        move || done.send(attack(&memory, &doing))
    });
    let mut before = 0;
    let (seen, written) = loop {
        match ended.recv_timeout(PATIENCE) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => {
                resume_unwind(thread.join().expect_err("it ends with a result or a panic"))
            }
            Err(RecvTimeoutError::Timeout) => {
                let (what, now) = *doing.0.lock().expect("nobody panics with it");
                assert!(now != before, "Linux does not come back from '{what}'");
                before = now;
            }
        }
    };
    assert!(written.iter().all(|it| *it), "not every word was lied in");
    for what in ["a call that was done", "a lie that was seen through", "a fault", "nonsense"] {
        assert!(seen.contains_key(what), "Linux has never met {what}: {seen:?}");
    }
}

/// A guest that always has one more job, and answers slowly.
#[test]
fn a_list_without_an_end_ends_at_the_deadline() {
    let memory = Region::guarded("test", SIZE).expect("memory");
    let setup = GuestSetup {
        image: Path::new("/nowhere"),
        board: &IDLE,
        carve_out: memory.clone(),
        nodes: &[],
        rows: &[],
        bells: GuestBells::of(&[]).expect("bells"),
    };
    let mut session = GuestSession::new(Keeper::start(setup).expect("a life"));
    let (carve_out, _) = CarveOut::open(memory).expect("just made");
    let mut guest = Letters::open(&carve_out, MadeBy::Guest).expect("just made");
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                if let Ok(Some(asked)) = guest.asked() {
                    thread::sleep(Duration::from_millis(20));
                    let _ = guest.answer(&asked.done().named(name("one more")));
                }
                thread::yield_now();
            }
        });
        // Time for a few answers, and far too little for all that a session may ask for.
        let outcome = session.jobs(Duration::from_millis(200));
        is_over.store(true, Relaxed);
        assert_eq!(outcome, Err(SessionError::Refused(SharedRefusal::Late, String::new())));
    });
}
