//! One false word at a time: in a carve-out in full use each word in turn is changed, and Linux
//! does everything that it does with a carve-out. A value that is used without a check always shows
//! here, while the random peer of crates/agent/tests/hostile finds it only by chance. The memory
//! lies between two guard pages.

use std::sync::atomic::Ordering::Relaxed;

use sinew_carve_out::{
    AgentLetter, Ask, CarveOut, DATA, Delivery, Direction, FaultKind, GuestFault, GuestState,
    Header, Letters, LinkRow, MadeBy, NODES_MAX, Name, NodeRow, NodeTally, PAGE, ROWS_MAX,
    RegionRow, Registry, SIZE_MIN, SharedWish, SideState, Trial, VALUES_MAX,
};
use sinew_core::sys::Region;
use sinew_link::{Memory, PieceMemory, broadcast, latest, queue};

const SIZE: usize = SIZE_MIN;
/// Near to each of these values a word often changes its meaning.
const LIES: [u32; 8] = [0, 1, 3, 4096, 1 << 30, i32::MAX as u32 + 1, u32::MAX - 1, u32::MAX];
const NAMES: [&str; 6] = ["r", "s", "q", "of_guest", "s_of_guest", "q_of_guest"];

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

fn rows() -> [RegionRow; 3] {
    let row = |at: usize, text: &str, delivery, message_size, capacity| {
        let (node, port, bell) = (0, at as u32, 0);
        let direction = Direction::Out;
        let link = LinkRow { node, port, direction, delivery, capacity, message_size, bell };
        let offset = (DATA + at * PAGE) as u32;
        let row = RegionRow { name: name(text), offset, size: 0, hash: 9, link };
        RegionRow { size: row.shape().region_len() as u32, ..row }
    };
    [
        row(0, "latest", Delivery::Latest, 40, 4),
        row(1, "queue", Delivery::Queue, 24, 4),
        row(2, "broadcast", Delivery::Broadcast, 40, 4),
    ]
}

fn wishes() -> [SharedWish; 3] {
    [SharedWish::region(64, 7), SharedWish::semaphore(2), SharedWish::queue(8, 4, 5)]
}

/// One side of the life.
struct Side {
    registry: Registry<Region>,
    letters: Letters<Region>,
}

impl Side {
    /// `None` if the letters are refused.
    fn open(memory: &Region, header: &Header, me: MadeBy) -> Option<Side> {
        let (carve_out, _) = CarveOut::open(memory.clone()).ok()?;
        let letters = Letters::open(&carve_out, me).ok()?;
        Some(Side { registry: Registry::new(carve_out, header, me), letters })
    }

    fn make(&mut self, names: &[&str]) {
        for (text, wish) in names.iter().zip(wishes()) {
            self.registry.get(name(text), &wish, false).expect("room");
        }
    }

    fn hold_all(&mut self) {
        for text in NAMES {
            let _ = self.registry.attach(name(text));
        }
    }
}

/// A guest in full use: everything has been made, and there is a message in everything.
fn in_use(memory: &Region) -> Header {
    let carve_out = CarveOut::create(memory.clone()).expect("long enough");
    let (values, trial) = ([0.5; VALUES_MAX], (Trial::None, 0));
    let (kind, node) = (name("guard"), name("node"));
    let node = NodeRow { kind, name: node, period_us: 1000, values, value_count: 3, trial };
    carve_out.begin(5, &[node], &rows());
    let (_, header) = CarveOut::open(memory.clone()).expect("made");
    rows().iter().for_each(|row| row.create(memory.clone()).expect("room"));
    let mut linux = Side::open(memory, &header, MadeBy::Linux).expect("made");
    let mut guest = Side::open(memory, &header, MadeBy::Guest).expect("made");
    linux.make(&NAMES[..3]);
    guest.make(&NAMES[3..]);
    guest.hold_all();
    for text in ["q", "q_of_guest"] {
        assert_eq!(guest.registry.send(name(text), &[1; 8]), Ok(true));
    }
    for text in ["s", "s_of_guest"] {
        guest.registry.semaphore(name(text)).expect("held").begin_wait();
    }
    let ask = AgentLetter::ask(Ask::Get, name("r")).numbered([1, 64, 7, 0, 0]).with(b"text");
    for id in 0..3 {
        assert_eq!(linux.letters.ask(&ask.as_request(id)), Ok(true));
        assert_eq!(guest.letters.ask(&ask.as_request(id)), Ok(true));
    }
    let asked = guest.letters.asked().expect("whole").expect("one");
    assert_eq!(guest.letters.answer(&asked.done().with(b"text")), Ok(true));
    carve_out.reached(GuestState::Running, 5);
    carve_out.set_fault(&GuestFault::new(FaultKind::DataAbort, name("node")));
    carve_out.set_tally(0, &NodeTally { cycles: 7, ..NodeTally::default() });
    (0..3).for_each(|row| carve_out.set_side(row, SideState::Attached));
    let (all, piece) = (rows(), |at| piece(memory, &rows()[at]));
    latest::Writer::attach(piece(0), &all[0].shape()).expect("made").send(&[1; 40]);
    queue::Writer::attach(piece(1), &all[1].shape())
        .expect("made")
        .try_send(&[1; 24])
        .expect("room");
    broadcast::Writer::attach(piece(2), &all[2].shape()).expect("made").send(&[1; 40]);
    header
}

fn piece(memory: &Region, row: &RegionRow) -> PieceMemory<Region> {
    let (offset, size) = (row.offset as usize, row.size as usize);
    PieceMemory::new(memory.clone(), offset, size).expect("inside")
}

fn read_tables(memory: &Region) {
    let Ok((carve_out, header)) = CarveOut::open(memory.clone()) else { return };
    assert!(header.nodes as usize <= NODES_MAX && header.rows as usize <= ROWS_MAX);
    let _ = (carve_out.state(5), carve_out.ordered(), carve_out.tally(0), carve_out.side(0));
    assert!(carve_out.fault().is_none_or(|fault| !fault.to_string().is_empty()));
    // After the last row there are zeros.
    for at in 0..4 {
        assert!(carve_out.node(at).is_none_or(|row| row.value_count as usize <= VALUES_MAX));
        let Some(row) = carve_out.row(at) else { continue };
        assert!(row.lies_in(SIZE), "{row:?}");
        let _ = latest::Reader::attach(piece(memory, &row), &row.shape());
        let _ = queue::Reader::attach(piece(memory, &row), &row.shape());
        let _ = broadcast::Reader::attach(piece(memory, &row), &row.shape());
    }
}

fn use_letters(linux: &mut Side) {
    for _ in 0..4 {
        if let Ok(Some(answer)) = linux.letters.answers() {
            let _ = (answer.outcome(), answer.text().len());
        }
        if let Ok(Some(asked)) = linux.letters.asked() {
            let answer = linux.registry.answer(&asked).unwrap_or_else(|| asked.done());
            let _ = (asked.text().len(), linux.letters.answer(&answer));
        }
    }
    let _ = linux.letters.ask(&AgentLetter::ask(Ask::Jobs, name("")));
}

fn use_names(linux: &mut Side) {
    let registry = &mut linux.registry;
    for found in registry.list() {
        let (from, size) = (found.entry.offset as usize, found.entry.wish.size as usize);
        assert!(from >= DATA && from + size <= SIZE && found.entry.wish.is_sound(), "{found:?}");
    }
    registry.serve_semaphores();
    for text in NAMES.map(name) {
        if let Ok(words) = registry.region(text) {
            let mut bytes = vec![0; words.memory().len()];
            words.read(0, &mut bytes);
            words.write(0, &bytes);
        }
        if let Ok(semaphore) = registry.semaphore(text) {
            let _ = (semaphore.try_take(), semaphore.post(), semaphore.tokens());
        }
        let _ = (registry.send(text, &[1; 8]), registry.receive(text, &mut [0; 8]));
        let _ = (registry.attach(text), registry.detach(text), registry.detach(text));
        let _ = registry.remove(text);
    }
    let _ = registry.get(name("new"), &SharedWish::region(64, 0), false);
}

fn use_links(memory: &Region) {
    let (rows, piece) = (rows(), |at| piece(memory, &rows()[at]));
    if let Ok(mut reader) = latest::Reader::attach(piece(0), &rows[0].shape()) {
        let _ = reader.read(&mut [0; 40]);
    }
    if let Ok(mut reader) = queue::Reader::attach(piece(1), &rows[1].shape()) {
        let _ = reader.try_receive(&mut [0; 24]);
    }
    if let Ok(mut writer) = queue::Writer::attach(piece(1), &rows[1].shape()) {
        let _ = writer.try_send(&[0; 24]);
    }
    if let Ok(mut reader) = broadcast::Reader::attach(piece(2), &rows[2].shape()) {
        let _ = reader.receive(&mut [0; 40]);
    }
}

/// Which words are changed at a time, and to what. A word that is not zero, or one of the four
/// after such a word, is changed alone; the length of an empty text is one of these. The other
/// words of a block are changed together.
fn cases(good: &[u32]) -> Vec<(Vec<usize>, u32)> {
    const BLOCK: usize = 64;
    let is_used = |at: &usize| good[at.saturating_sub(4)..=*at].iter().any(|word| *word != 0);
    let mut cases = Vec::new();
    for block in 0..good.len() / BLOCK {
        let words = block * BLOCK..(block + 1) * BLOCK;
        let (used, others): (Vec<_>, Vec<_>) = words.partition(is_used);
        cases.extend(used.iter().flat_map(|at| LIES.map(|lie| (vec![*at], lie))));
        cases.push((others, LIES[block % LIES.len()]));
    }
    cases
}

#[test]
fn any_word_may_be_a_lie() {
    let memory = Region::guarded("test", SIZE).expect("memory");
    let header = in_use(&memory);
    let words = memory.words();
    let good: Vec<u32> = words.iter().map(|word| word.load(Relaxed)).collect();
    let cases = cases(&good);
    let mut is_tried = vec![false; words.len()];
    for (case, (places, lie)) in cases.iter().enumerate() {
        words.iter().zip(&good).for_each(|(word, good)| word.store(*good, Relaxed));
        let mut linux = Side::open(&memory, &header, MadeBy::Linux).expect("still good");
        linux.make(&NAMES[..3]);
        // The word changes before Linux holds the things that it uses, or after that.
        if case.is_multiple_of(2) {
            linux.hold_all();
        }
        for at in places {
            words[*at].store(*lie, Relaxed);
            is_tried[*at] = true;
        }
        linux.hold_all();
        read_tables(&memory);
        use_letters(&mut linux);
        use_names(&mut linux);
        use_links(&memory);
    }
    assert!(is_tried.iter().all(|is_tried| *is_tried), "a word was never a lie");
}
