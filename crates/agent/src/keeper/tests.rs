//! Lives of guests. In most of them the test plays the guest, with an idle process instead of the
//! emulator; in the last ones QEMU runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Instant;

use rustix::process::{Pid, test_kill_process};
use sinew_carve_out::{Delivery, Direction, FaultKind, LinkRow, Name, Trial};
use sinew_core::bell::Bell;
use sinew_plan::plan::Board;

use super::*;
use crate::boards::ElfMachine;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Index of a guest's state, in words.
const STATE: usize = 0x100 / 4;

/// A board on which this command runs instead of the emulator.
const fn fake(command: fn(&EmulatorStart<'_>) -> Command) -> BoardRow {
    BoardRow {
        board: Board::Virt,
        doc: "For tests.",
        machine: ElfMachine { family: 40, bits: 32, is_little_endian: true },
        memory_bytes: 128 << 10..=1 << 20,
        command,
        missing: || Some("'nothing' is not on the PATH".into()),
    }
}

const IDLE: BoardRow = fake(|_| shell("exec sleep 1000"));

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn memory() -> Region {
    Region::shared("test", 128 << 10).expect("memory")
}

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

fn setup<'a>(board: &'a BoardRow, carve_out: &Region) -> GuestSetup<'a> {
    let (image, carve_out) = (Path::new("/nowhere/guard"), carve_out.clone());
    GuestSetup {
        image,
        board,
        carve_out,
        nodes: &[],
        rows: &[],
        bells: GuestBells::of(&[]).expect("bells"),
    }
}

fn start(board: &BoardRow, carve_out: &Region) -> Keeper {
    Keeper::start(setup(board, carve_out)).expect("a life")
}

/// The guest's side of the memory.
fn guest(memory: &Region) -> CarveOut<Region> {
    CarveOut::open(memory.clone()).expect("a carve-out").0
}

fn look(keeper: &mut Keeper) -> GuestProgress {
    keeper.look(&mut |line| panic!("it printed: {line}"))
}

/// Looks until the guest has this progress. Returns the progress and what the guest has printed
/// meanwhile.
fn until(keeper: &mut Keeper, is_it: impl Fn(GuestProgress) -> bool) -> (GuestProgress, String) {
    let (begun, mut printed) = (Instant::now(), String::new());
    loop {
        let progress = keeper.look(&mut |line| printed += &format!("{line}\n"));
        if is_it(progress) {
            return (progress, printed);
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain; now {progress}; printed:\n{printed}");
        keeper.wait(Duration::from_millis(100));
    }
}

fn until_ended(keeper: &mut Keeper) -> (ExitStatus, String) {
    match until(keeper, |progress| matches!(progress, GuestProgress::Ended(_))) {
        (GuestProgress::Ended(status), printed) => (status, printed),
        (other, _) => panic!("{other}"),
    }
}

#[test]
fn a_guest_is_followed_from_its_start_to_its_stop() {
    let memory = memory();
    let mut keeper = start(&IDLE, &memory);
    let (guest, epoch) = (guest(&memory), keeper.epoch());
    assert_eq!((epoch, guest.ordered()), (1, Order::Wait));
    let steps = [
        (Order::Wait, GuestState::Starting, GuestProgress::Starting),
        (Order::Wait, GuestState::Ready, GuestProgress::Ready),
        (Order::Run, GuestState::Running, GuestProgress::Running),
        (Order::Stop, GuestState::Stopped, GuestProgress::Stopped),
    ];
    assert_eq!(look(&mut keeper), GuestProgress::Starting);
    for (order, state, progress) in steps {
        keeper.order(order);
        assert_eq!(guest.ordered(), order);
        guest.reached(state, epoch);
        let beats = guest.beats_of_linux();
        assert_eq!(look(&mut keeper), progress);
        assert_eq!((keeper.state(), guest.beats_of_linux()), (Some(state), beats + 1));
    }
    guest.beat_of_guest(1000);
    guest.set_side(3, SideState::Attached);
    guest.set_tally(2, &NodeTally { cycles: 7, ..NodeTally::default() });
    assert_eq!(keeper.beats_of_guest(), 1);
    assert_eq!(keeper.side(3), Some(SideState::Attached));
    assert_eq!(keeper.tally(2).cycles, 7);
}

#[test]
fn an_order_and_an_answer_ring() {
    let memory = memory();
    let keeper = start(&IDLE, &memory);
    let rings = |bell: &Bell| {
        poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timespec(0))).expect("poll") == 1
    };
    let GuestBells { of_linux, of_guest } = keeper.bells();
    assert!(!rings(&of_guest[0]));
    keeper.order(Order::Run);
    assert!(rings(&of_guest[0]));
    let answered = AtomicBool::new(false);
    scope(|threads| {
        threads.spawn(|| {
            sleep(Duration::from_millis(20));
            answered.store(true, Relaxed);
            of_linux[0].ring();
        });
        let begun = Instant::now();
        keeper.wait(PATIENCE);
        assert!(answered.load(Relaxed) && begun.elapsed() < PATIENCE, "woken by the ring");
    });
    assert!(!rings(&of_linux[0]), "it is silent again");
}

#[test]
fn a_fault_that_is_recorded_counts_more_than_the_end_of_the_process() {
    let memory = memory();
    let board = fake(|_| shell("exit 3"));
    let mut keeper = start(&board, &memory);
    let (status, _) = until_ended(&mut keeper);
    assert_eq!(status.code(), Some(3));
    let fault = GuestFault::new(FaultKind::StackOverflow, name("guard"));
    guest(&memory).set_fault(&fault);
    assert_eq!(look(&mut keeper), GuestProgress::Faulted(fault));
    drop(keeper);
    // The next life does not see this.
    let mut keeper = start(&IDLE, &memory);
    assert_eq!((look(&mut keeper), keeper.epoch()), (GuestProgress::Starting, 2));
}

#[test]
fn what_is_printed_is_heard_to_the_last_word() {
    let board = fake(|_| shell("echo one; echo two >&2; head -c 50000 /dev/zero; printf three"));
    let mut keeper = start(&board, &memory());
    let (_, printed) = until_ended(&mut keeper);
    let (first, last) = printed.split_once('\u{fffd}').expect("the long line");
    assert_eq!(first, "one\ntwo\n");
    // The rest of an overlong line is dropped with it.
    assert!(!last.contains("three") && last.len() < 5000, "{} bytes", last.len());
    let board = fake(|_| shell("printf 'without an end'"));
    let mut keeper = start(&board, &memory());
    assert_eq!(until_ended(&mut keeper).1, "without an end\n");
}

#[test]
fn a_guest_that_prints_or_rings_without_end_does_not_hold_the_keeper() {
    let board = fake(|_| shell("exec yes"));
    let memory = memory();
    let mut keeper = start(&board, &memory);
    let guest = guest(&memory);
    let (mut lines, begun_ns) = (0, now_ns());
    for looks in 0..100 {
        keeper.bells().of_linux[0].ring();
        keeper.wait(Duration::from_millis(100));
        let progress = keeper.look(&mut |_| lines += 1);
        assert_eq!(progress, GuestProgress::Starting, "look {looks}");
        assert_eq!(guest.beats_of_linux(), looks + 1);
    }
    assert!(lines > 0);
    // It does not take a whole CPU either.
    assert!(now_ns() - begun_ns >= 99 * PAUSE_NS, "it was looked at more often than it may be");
}

#[test]
fn nonsense_is_told_from_states() {
    let spoil = |word: usize, value: u32, words: &str| {
        let memory = memory();
        let mut keeper = start(&IDLE, &memory);
        guest(&memory).reached(GuestState::Running, keeper.epoch());
        assert_eq!(look(&mut keeper), GuestProgress::Running);
        memory.words()[word].store(value, Relaxed);
        let GuestProgress::Nonsense(what) = look(&mut keeper) else { panic!("believed {value}") };
        assert!(what.contains(words), "{what}");
    };
    spoil(STATE, 77, "without a meaning");
    spoil(STATE, GuestState::Ready as u32, "changed backwards");
    // The state of another life.
    spoil(STATE + 1, 9, "changed backwards");
    spoil(STATE, GuestState::Faulted as u32, "a fault without a text");
}

#[test]
fn a_guest_that_has_spoilt_all_its_memory_is_followed_by_another_life() {
    let memory = memory();
    let mut keeper = start(&IDLE, &memory);
    for garbage in [0, 1, 0x8000_0000, u32::MAX] {
        memory.words().iter().for_each(|word| word.store(garbage, Relaxed));
        // Any result is right.
        let _ = (look(&mut keeper), keeper.state(), keeper.side(63), keeper.tally(15));
        drop(keeper);
        keeper = start(&IDLE, &memory);
        assert_eq!(look(&mut keeper), GuestProgress::Starting);
        guest(&memory).reached(GuestState::Ready, keeper.epoch());
        assert_eq!(look(&mut keeper), GuestProgress::Ready);
    }
    // The number of a life wraps around, and is never 0.
    memory.words()[3].store(u32::MAX, Relaxed);
    drop(keeper);
    assert_eq!(start(&IDLE, &memory).epoch(), 1);
}

#[test]
fn who_drops_the_keeper_ends_the_emulator() {
    let keeper = start(&IDLE, &memory());
    let process = Pid::from_raw(keeper.process() as i32).expect("a number");
    assert!(test_kill_process(process).is_ok());
    drop(keeper);
    assert!(test_kill_process(process).is_err(), "it is gone, and was waited for");
}

#[track_caller]
fn refuses(setup: GuestSetup<'_>, words: &str) {
    let why = Keeper::start(setup).expect_err("refused").to_string();
    assert!(why.contains(words), "expected '{words}', found: {why}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let memory = memory();
    let node = NodeRow {
        kind: name("guard"),
        name: name("g"),
        period_us: 1000,
        values: [0.0; sinew_carve_out::VALUES_MAX],
        value_count: 0,
        trial: (Trial::None, 0),
    };
    let link = LinkRow {
        node: 0,
        port: 0,
        direction: Direction::In,
        delivery: Delivery::Latest,
        capacity: 1,
        message_size: 8,
        bell: 0,
    };
    let row = RegionRow { name: name("in"), offset: 0x10000, size: 4096, hash: 0, link };
    let with = |row: RegionRow, words: &str| {
        let (nodes, rows) = (&[node], &[row]);
        refuses(GuestSetup { nodes, rows, ..setup(&IDLE, &memory) }, words);
    };
    with(RegionRow { offset: 0x1000, ..row }, "row 'in' has 4096 bytes from 0x1000");
    with(RegionRow { size: 128 << 10, ..row }, "row 'in' has 131072 bytes from 0x10000");
    let link = |bell, node| LinkRow { bell, node, ..link };
    with(RegionRow { link: link(1, 0), ..row }, "row 'in' has bell 1, expected 0 to 0");
    with(RegionRow { link: link(0, 1), ..row }, "row 'in' is for node 1, which does not exist");
    let nodes = &[node; NODES_MAX + 1];
    let words = "the guest has 17 nodes, at most 16";
    refuses(GuestSetup { nodes, ..setup(&IDLE, &memory) }, words);
    let bells = GuestBells::of(&[RegionRow { link: link(32, 0), ..row }]).expect("bells");
    refuses(GuestSetup { bells, ..setup(&IDLE, &memory) }, "the guest has 33 bells, at most 32");
    let odd = Region::shared("test", 96 << 10).expect("memory");
    refuses(setup(&IDLE, &odd), "the carve-out has 98304 bytes");
    let nameless = Region::anonymous(128 << 10).expect("memory");
    refuses(setup(&IDLE, &nameless), "the carve-out has no descriptor");
    let board = fake(|_| Command::new("/nowhere/nothing"));
    refuses(setup(&board, &memory), "'nothing' is not on the PATH");
}

/// Says that a test cannot run here. With `CI=true` that is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

/// The board, if its emulator is here.
fn virt() -> Option<&'static BoardRow> {
    let board = BoardRow::of(Board::Virt);
    let missing = (board.missing)();
    missing.iter().for_each(|lack| skip(lack));
    missing.is_none().then_some(board)
}

/// A complete guest: it does not search for its device but knows where it is, rings bell 0 of Linux
/// and switches itself off.
#[rustfmt::skip]
const RINGER: [u32; 13] = [
    0xe3a0_143f, // mov  r1, #0x3f000000    the configuration space of PCI
    0xe381_1902, // orr  r1, r1, #0x8000    device 1
    0xe3a0_0201, // mov  r0, #0x10000000
    0xe581_0010, // str  r0, [r1, #0x10]    where its registers go
    0xe3a0_0002, // mov  r0, #2
    0xe581_0004, // str  r0, [r1, #4]       memory on
    0xe3a0_1201, // mov  r1, #0x10000000
    0xe3a0_0000, // mov  r0, #0             peer 0, bell 0
    0xe581_000c, // str  r0, [r1, #12]      rings
    0xe3a0_0008, // mov  r0, #8
    0xe380_0484, // orr  r0, r0, #0x84000000
    0xe140_0070, // hvc  #0                 PSCI: system off
    0xeaff_fffe, // b    .
];

/// The ringer as an ELF file that is loaded where QEMU's `virt` has memory.
fn ringer() -> Vec<u8> {
    const AT: u32 = 0x4010_0000;
    let bytes = size_of_val(&RINGER) as u32;
    let ident = [0x464c_457f, 0x0001_0101, 0, 0];
    // Linked program for Arm, version, entry, one program header at 52.
    let header = [0x0028_0002, 1, AT, 52, 0, 0x0500_0400, 0x0020_0034, 0x0000_0001, 0];
    let program = [1, 84, AT, AT, bytes, bytes, 5, 4];
    let words = ident.into_iter().chain(header).chain(program).chain(RINGER);
    words.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn qemu_takes_memory_and_bells_and_its_guests_first_ring_is_heard() {
    let Some(board) = virt() else { return };
    let path = std::env::temp_dir().join(format!("sinew-ringer-{}", std::process::id()));
    fs::write(&path, ringer()).expect("a file");
    let memory = memory();
    let keeper = Keeper::start(GuestSetup { image: &path, ..setup(board, &memory) });
    let mut keeper = keeper.expect("a life");
    let (begun, mut printed) = (Instant::now(), String::new());
    // Not by `wait`, which would clear the bell.
    let status = loop {
        match keeper.look(&mut |line| printed += line) {
            GuestProgress::Ended(status) => break status,
            _ => assert!(begun.elapsed() < PATIENCE, "it does not end; it printed: {printed}"),
        }
        sleep(Duration::from_millis(5));
    };
    fs::remove_file(&path).expect("it is ours");
    assert_eq!((status.code(), printed.as_str()), (Some(0), ""));
    let bell = &keeper.bells().of_linux[0];
    let rung = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timespec(0)));
    assert_eq!(rung.expect("poll"), 1, "a ring was lost");
}

/// The guest that comes with Sinew, if it was built.
fn guard() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("guest/target/armv7a-none-eabi/release/guard");
    if !image.is_file() {
        skip("there is no image of a guest: cargo build --release in guest/");
        return None;
    }
    Some(image)
}

#[test]
fn the_real_image_gets_ready_runs_and_stops() {
    let (Some(board), Some(image)) = (virt(), guard()) else { return };
    assert!(crate::image::read(&image, board).expect("an image").kinds().count() > 0);
    let memory = Region::shared("test", 1 << 20).expect("memory");
    let mut keeper =
        Keeper::start(GuestSetup { image: &image, ..setup(board, &memory) }).expect("a life");
    until(&mut keeper, |progress| progress == GuestProgress::Ready);
    keeper.order(Order::Run);
    until(&mut keeper, |progress| progress == GuestProgress::Running);
    let beats = keeper.beats_of_guest();
    let begun = Instant::now();
    while keeper.beats_of_guest() == beats {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for its heart to beat");
        assert_eq!(keeper.look(&mut |_| {}), GuestProgress::Running);
        keeper.wait(Duration::from_millis(10));
    }
    keeper.order(Order::Stop);
    let over = |progress| matches!(progress, GuestProgress::Stopped | GuestProgress::Ended(_));
    let (last, printed) = until(&mut keeper, over);
    assert_eq!(keeper.state(), Some(GuestState::Stopped), "{last}; it printed:\n{printed}");
}
