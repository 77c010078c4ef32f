//! A guest that writes anything anywhere in its carve-out, before and between the work of Linux
//! with tables, names, letters and links. There must be no panic, no access outside the memory (it
//! lies between two guard pages), and nothing found that is not inside.
#![no_main]

use std::sync::atomic::Ordering::Relaxed;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sinew_carve_out::{
    AgentLetter, Ask, CarveOut, DATA, Delivery, Direction, GuestState, Header, Letters, LinkRow,
    MadeBy, NODES_MAX, Name, NodeRow, PAGE, ROWS_MAX, RegionRow, Registry, SIZE_MIN, SharedWish,
    Trial, VALUES_MAX,
};
use sinew_core::sys::Region;
use sinew_link::{Memory, PieceMemory, broadcast, latest, queue};

/// The steps of a run, in sequence.
#[derive(Arbitrary, Debug)]
enum Step {
    /// The guest writes a word.
    Lie { word: u16, value: u32 },
    /// The guest changes a word by a little: to sizes and offsets that are almost right.
    Shift { word: u16, by: i8 },
    /// The guest writes the value of another word.
    Copy { word: u16, from: u16 },
    /// The guest writes a sequence of words.
    Noise { word: u16, values: Vec<u32> },
    /// A side makes a named thing.
    Make { side: Side, name: u8, wish: Wish },
    /// A side does one of the other operations on a name.
    Use { side: Side, name: u8, act: Act },
    /// A side sends any request to the other.
    Ask { side: Side, what: u8, name: u8, numbers: [u32; 5], data: Vec<u8> },
    /// A side answers the requests to it, and reads its answers.
    Answer { side: Side },
    /// Linux reads all tables.
    Tables,
    /// Linux uses both ends of each link.
    Links,
    /// Linux begins a new life in the memory as the guest has left it.
    Begin,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Side {
    Linux,
    Guest,
}

#[derive(Arbitrary, Debug)]
enum Wish {
    Region(u16),
    Semaphore(u16),
    Queue { message: u8, capacity_log2: u8 },
}

#[derive(Arbitrary, Debug)]
enum Act {
    Attach,
    Detach,
    Remove,
    Bytes,
    Post,
    Take,
    Send,
    Receive,
    List,
    Serve,
}

/// One of a few names, so that steps use the same names.
fn name(number: u8) -> Name {
    const NAMES: [&str; 6] = ["", "a", "b", "c", "d", "a name of more than thirty bytes"];
    Name::new(NAMES[usize::from(number) % NAMES.len()]).expect("short")
}

impl Wish {
    fn shared(&self) -> SharedWish {
        match *self {
            Wish::Region(size) => SharedWish::region(size.into(), 7),
            Wish::Semaphore(tokens) => SharedWish::semaphore(tokens.into()),
            Wish::Queue { message, capacity_log2 } => {
                SharedWish::queue(message.into(), 1 << (capacity_log2 % 10), 5)
            }
        }
    }
}

/// A life of the guest, with each side's own view.
struct Life {
    memory: Region,
    registries: [Registry<Region>; 2],
    /// `None` after they were refused or broken.
    letters: [Option<Letters<Region>>; 2],
}

impl Life {
    fn begin(memory: &Region, epoch: u32) -> Life {
        let carve_out = match CarveOut::open(memory.clone()) {
            Ok((carve_out, _)) => carve_out,
            Err(_) => CarveOut::create(memory.clone()).expect("long enough"),
        };
        let (values, trial) = ([0.5; VALUES_MAX], (Trial::None, 0));
        let (kind, name) = (name(1), name(2));
        let node = NodeRow { kind, name, period_us: 1000, values, value_count: 3, trial };
        carve_out.begin(epoch, &[node], &rows());
        rows().iter().for_each(|row| row.create(memory.clone()).expect("room"));
        carve_out.reached(GuestState::Running, epoch);
        let (_, header) = CarveOut::open(memory.clone()).expect("nobody has lied yet");
        let registry = |side| Registry::new(carve_out.clone(), &header, side);
        let letters = |side| Letters::open(&carve_out, side).ok();
        Life {
            memory: memory.clone(),
            registries: [registry(MadeBy::Linux), registry(MadeBy::Guest)],
            letters: [letters(MadeBy::Linux), letters(MadeBy::Guest)],
        }
    }

    /// Writes as the guest, if the step is one of the guest's writes. Returns whether it was.
    fn lie(&self, step: &Step) -> bool {
        let words = self.memory.words();
        let at = |word: u16| usize::from(word) % words.len();
        match step {
            Step::Lie { word, value } => words[at(*word)].store(*value, Relaxed),
            Step::Shift { word, by } => {
                words[at(*word)].fetch_add(i32::from(*by) as u32, Relaxed);
            }
            Step::Copy { word, from } => {
                words[at(*word)].store(words[at(*from)].load(Relaxed), Relaxed);
            }
            Step::Noise { word, values } => {
                let row = words[at(*word)..].iter().zip(values);
                row.for_each(|(word, value)| word.store(*value, Relaxed));
            }
            _ => return false,
        }
        true
    }

    /// Carries out a step. Any answer of the sides is right.
    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Make { side, name: number, wish } => {
                let _ = self.registries[*side as usize].get(name(*number), &wish.shared(), false);
            }
            Step::Use { side, name: number, act } => {
                use_name(&mut self.registries[*side as usize], name(*number), act);
            }
            Step::Ask { side, what, name: number, numbers, data } => {
                let mut letter = AgentLetter::ask(Ask::Get, name(*number));
                letter.what = (*what).into();
                let Some(letters) = &mut self.letters[*side as usize] else { return };
                let _ = letters.ask(&letter.numbered(*numbers).with(data));
            }
            Step::Answer { side } => self.answer(*side as usize),
            Step::Tables => read_tables(&self.memory),
            Step::Links => use_links(&self.memory),
            _ => {}
        }
    }

    fn answer(&mut self, side: usize) {
        let Some(letters) = &mut self.letters[side] else { return };
        if let Ok(Some(asked)) = letters.asked() {
            let _ = asked.text();
            let answer = self.registries[side].answer(&asked).unwrap_or_else(|| asked.done());
            let _ = letters.answer(&answer);
        }
        if let Ok(Some(answer)) = letters.answers() {
            let _ = (answer.outcome(), answer.text());
        }
    }
}

fn use_name(registry: &mut Registry<Region>, name: Name, act: &Act) {
    match act {
        Act::Attach => drop(registry.attach(name)),
        Act::Detach => drop(registry.detach(name)),
        Act::Remove => drop(registry.remove(name)),
        Act::Bytes => {
            let Ok(words) = registry.region(name) else { return };
            let mut bytes = vec![0; words.memory().len()];
            words.read(0, &mut bytes);
            words.write(0, &bytes);
        }
        Act::Post => drop(registry.semaphore(name).map(|it| it.post())),
        Act::Take => drop(registry.semaphore(name).map(|it| it.try_take())),
        Act::Send => drop(registry.send(name, &[1; 8])),
        Act::Receive => drop(registry.receive(name, &mut [0; 8])),
        Act::List => {
            for found in registry.list() {
                let (from, wish) = (found.entry.offset as usize, found.entry.wish);
                assert!(from >= DATA && from + wish.size as usize <= SIZE_MIN, "{found:?}");
            }
        }
        Act::Serve => drop(registry.serve_semaphores()),
    }
}

fn rows() -> [RegionRow; 3] {
    let row = |at: usize, delivery, message_size, capacity| {
        let (node, port, direction, bell) = (0, at as u32, Direction::Out, 0);
        let link = LinkRow { node, port, direction, delivery, capacity, message_size, bell };
        let offset = (DATA + at * PAGE) as u32;
        let row = RegionRow { name: name(at as u8), offset, size: 0, hash: 9, link };
        RegionRow { size: row.shape().region_len() as u32, ..row }
    };
    [
        row(0, Delivery::Latest, 40, 4),
        row(1, Delivery::Queue, 24, 4),
        row(2, Delivery::Broadcast, 40, 4),
    ]
}

fn piece(memory: &Region, row: &RegionRow) -> PieceMemory<Region> {
    let (offset, size) = (row.offset as usize, row.size as usize);
    PieceMemory::new(memory.clone(), offset, size).expect("inside")
}

fn read_tables(memory: &Region) {
    let Ok((carve_out, header)) = CarveOut::open(memory.clone()) else { return };
    let Header { nodes, rows, epoch, .. } = header;
    assert!(nodes as usize <= NODES_MAX && rows as usize <= ROWS_MAX);
    let _ = (carve_out.state(epoch), carve_out.ordered());
    let _ = carve_out.fault().map(|fault| fault.to_string());
    for node in 0..NODES_MAX {
        let _ = carve_out.tally(node);
        assert!(carve_out.node(node).is_none_or(|it| it.value_count as usize <= VALUES_MAX));
    }
    for at in 0..ROWS_MAX {
        let _ = carve_out.side(at);
        let Some(row) = carve_out.row(at) else { continue };
        assert!(row.lies_in(memory.size()));
        let _ = latest::Reader::attach(piece(memory, &row), &row.shape());
        let _ = queue::Reader::attach(piece(memory, &row), &row.shape());
        let _ = broadcast::Reader::attach(piece(memory, &row), &row.shape());
    }
}

fn use_links(memory: &Region) {
    let rows = rows();
    let [latest, queue, broadcast] = rows.map(|row| (piece(memory, &row), row.shape()));
    if let Ok(mut writer) = latest::Writer::attach(latest.0.clone(), &latest.1) {
        writer.send(&[1; 40]);
    }
    if let Ok(mut reader) = latest::Reader::attach(latest.0, &latest.1) {
        let _ = reader.read(&mut [0; 40]);
    }
    if let Ok(mut writer) = queue::Writer::attach(queue.0.clone(), &queue.1) {
        let _ = writer.try_send(&[1; 24]);
    }
    if let Ok(mut reader) = queue::Reader::attach(queue.0, &queue.1) {
        let _ = reader.try_receive(&mut [0; 24]);
    }
    if let Ok(mut writer) = broadcast::Writer::attach(broadcast.0.clone(), &broadcast.1) {
        writer.send(&[1; 40]);
    }
    if let Ok(mut reader) = broadcast::Reader::attach(broadcast.0, &broadcast.1) {
        let _ = reader.receive(&mut [0; 40]);
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let memory = Region::guarded("fuzz", SIZE_MIN).expect("memory");
    let (mut life, mut epoch) = (Life::begin(&memory, 1), 1);
    for step in &steps {
        if life.lie(step) {
            continue;
        }
        match step {
            Step::Begin => {
                epoch += 1;
                life = Life::begin(&memory, epoch);
            }
            step => life.carry_out(step),
        }
    }
});
