//! From the first line of Rust to the scheduler: memory, devices, the carve-out, its nodes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt::Write as _;
use core::ptr::NonNull;

use sinew_carve_out::image::{self, ImageKind as Record, ImagePort as PortRecord};
use sinew_carve_out::{
    CarveOut, Direction, FaultKind, GuestFault, GuestState, NodeRow, RegionRow, SideState, Trial,
};
use sinew_link::RawMemory;
use sinew_link::message::{Field, type_hash};

use crate::io::Port;
use crate::link::Link;
use crate::node::Maker;
use crate::once::Once;
use crate::run::Runner;
use crate::{
    GuestNode, Parameters, agent, bells, board, c, fault, gic, jobs, kernel, memory, run, say,
    shared, trial,
};

/// What every part of the guest may use.
pub(crate) struct Guest {
    pub(crate) carve_out: CarveOut<RawMemory>,
    /// Number of this life.
    pub(crate) epoch: u32,
}

static GUEST: Once<Guest> = Once::new();

/// The guest; `None` while it has no carve-out yet.
pub(crate) fn get() -> Option<&'static Guest> {
    GUEST.get()
}

/// The start calls this, in supervisor mode, when only the stacks are set up.
#[unsafe(no_mangle)]
extern "C" fn sinew_main() -> ! {
    // SAFETY: nothing ran before, and translation is off.
    unsafe { memory::start(board::DEVICES) };
    gic::start();
    let guest = open();
    guest.carve_out.reached(GuestState::Starting, guest.epoch);
    shared::open(&guest.carve_out).unwrap_or_else(|why| refuse(format_args!("{why}")));
    let rows = rows(guest);
    let kinds = kinds();
    for at in 0..rows.nodes.len() {
        let node = &rows.nodes[at];
        let Some((record, maker)) =
            kinds.iter().find(|(kind, _)| kind.name() == node.kind.as_str())
        else {
            refuse(format_args!("this image has no kind '{}' (node '{}')", node.kind, node.name))
        };
        begin(guest, at, &rows, *record, maker);
    }
    jobs::begin();
    agent::begin(rows.nodes.len());
    say!("guest: life {}, {} nodes", guest.epoch, rows.nodes.len());
    kernel::run()
}

fn open() -> &'static Guest {
    let size = board::find().unwrap_or_else(|why| refuse(format_args!("{why}")));
    let base = NonNull::new(board::CARVE_OUT as *mut u8).expect("it does not begin at 0");
    // SAFETY: mapped for ever by `find`, and only used as atomics.
    let memory = unsafe { RawMemory::new(base, size) };
    match CarveOut::open(memory) {
        Ok((carve_out, header)) => GUEST.set(Guest { carve_out, epoch: header.epoch }),
        Err(why) => refuse(format_args!("{why}")),
    }
}

fn refuse(why: core::fmt::Arguments<'_>) -> ! {
    fault::end_with(FaultKind::Refused, why)
}

/// The tables of the carve-out, copied out.
struct Rows {
    nodes: Vec<NodeRow>,
    rows: Vec<RegionRow>,
}

fn rows(guest: &Guest) -> Rows {
    let header = match CarveOut::open(*guest.carve_out.memory()) {
        Ok((_, header)) => header,
        Err(why) => refuse(format_args!("{why}")),
    };
    let node = |at| {
        guest.carve_out.node(at).unwrap_or_else(|| refuse(format_args!("node {at} is nonsense")))
    };
    let row = |at| {
        guest.carve_out.row(at).unwrap_or_else(|| refuse(format_args!("row {at} is nonsense")))
    };
    Rows {
        nodes: (0..header.nodes as usize).map(node).collect(),
        rows: (0..header.rows as usize).map(row).collect(),
    }
}

/// How a node of a kind in this image is made.
pub(crate) enum How {
    Rust(&'static Maker),
    C(&'static c::Maker),
}

impl How {
    fn record(&self) -> *const u8 {
        match self {
            How::Rust(maker) => core::ptr::from_ref(maker.record).cast(),
            How::C(maker) => maker.record.cast(),
        }
    }

    fn make(&self, parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, crate::Fault> {
        match self {
            How::Rust(maker) => (maker.make)(parameters),
            How::C(maker) => c::make(maker, parameters),
        }
    }
}

unsafe extern "C" {
    static __sinew_kinds_start: u8;
    static __sinew_kinds_end: u8;
    static __sinew_makers_start: u8;
    static __sinew_makers_end: u8;
    static __sinew_c_makers_start: u8;
    static __sinew_c_makers_end: u8;
}

/// The array between two marks of the linker.
///
/// # Safety
/// It is an array of `T` that is never written.
pub(crate) unsafe fn section<T>(start: *const u8, end: *const u8) -> &'static [T] {
    let len = (end.addr() - start.addr()) / size_of::<T>();
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(start.cast(), len) }
}

/// The kinds of this image: the record as Linux reads it, and how a node is made.
fn kinds() -> Vec<(Record<'static>, How)> {
    // SAFETY: the linker script gathers nothing else between these marks.
    let (records, makers, c_makers): (&[u8], &[Maker], &[c::Maker]) = unsafe {
        (
            section(&raw const __sinew_kinds_start, &raw const __sinew_kinds_end),
            section(&raw const __sinew_makers_start, &raw const __sinew_makers_end),
            section(&raw const __sinew_c_makers_start, &raw const __sinew_c_makers_end),
        )
    };
    let found = match image::records(records) {
        Ok(found) => found,
        Err(why) => refuse(format_args!("{why}")),
    };
    let hows = || makers.iter().map(How::Rust).chain(c_makers.iter().map(How::C));
    let first = records.as_ptr().addr();
    let len = size_of::<image::KindRecord>();
    let with_how = |(at, record): (usize, Record<'static>)| {
        let how = hows().find(|how| how.record().addr() == first + at * len);
        match how {
            Some(how) => (record, how),
            None => refuse(format_args!("nothing makes kind '{}'", record.name())),
        }
    };
    found.enumerate().map(with_how).collect()
}

/// Makes a node with its ports, and the thread that runs it.
fn begin(guest: &Guest, node: usize, rows: &Rows, record: Record<'static>, how: &How) {
    let row = &rows.nodes[node];
    if row.period_us == 0 || !row.period_us.is_multiple_of(run::STEP_US) {
        refuse(format_args!(
            "node '{}' has a period of {} us, expected a multiple of {}",
            row.name,
            row.period_us,
            run::STEP_US
        ));
    }
    let values: u32 = record.parameters().map(|parameter| parameter.count()).sum();
    if row.value_count != values {
        refuse(format_args!(
            "node '{}' has {} values, its kind takes {values}",
            row.name, row.value_count
        ));
    }
    let port = |it: PortRecord<'static>| Port::new(hash_of(it), it.size() as usize, !it.writes());
    let mut ports: Vec<Port> = record.ports().map(port).collect();
    for (number, link) in rows.rows.iter().enumerate().filter(|it| it.1.link.node == node as u32) {
        attach(guest, &mut ports, number, link, record);
    }
    let refuses = if row.trial.0 == Trial::FailStart { trial::act(row.trial.0) } else { Ok(()) };
    let made = refuses.and_then(|()| how.make(&Parameters::new(row, record)));
    let made = made.unwrap_or_else(|why| {
        let mut fault = GuestFault::new(FaultKind::Node, row.name);
        let _ = write!(fault, "{why}");
        fault::end(&fault)
    });
    let stronger = |other: &&NodeRow| other.period_us < row.period_us;
    let rank = rows.nodes.iter().filter(stronger).count() as u32;
    let priority = kernel::PRIORITY_MAX.saturating_sub(1 + rank).max(1);
    let runner = Box::new(Runner::new(node, row, made, ports));
    let argument: *mut c_void = Box::into_raw(runner).cast();
    let stack = record.stack().max(run::STACK_MIN);
    match kernel::spawn(run::runner, row.name.as_str(), stack, argument, priority) {
        Some(it) => {
            agent::know(node, it);
            bells::know(node, it, rows.rows.iter().map(|row| row.link));
        }
        None => fault::out_of_memory(Some(stack as usize)),
    }
}

/// Attaches one row of a node.
fn attach(
    guest: &Guest,
    ports: &mut [Port],
    number: usize,
    row: &RegionRow,
    record: Record<'static>,
) {
    let refused = |why: core::fmt::Arguments<'_>| -> ! {
        guest.carve_out.set_side(number, SideState::Refused);
        refuse(format_args!("row '{}': {why}", row.name))
    };
    let at = row.link.port as usize;
    let Some(port) = record.ports().nth(at) else {
        refused(format_args!("kind '{}' has no port {at}", record.name()))
    };
    let direction = if port.writes() { Direction::Out } else { Direction::In };
    let hash = hash_of(port);
    if (direction, hash, port.size()) != (row.link.direction, row.hash, row.link.message_size) {
        refused(format_args!(
            "port '{}' takes {} ({hash:#x}, {} B), the row has {:#x}, {} B",
            port.name(),
            port.message(),
            port.size(),
            row.hash,
            row.link.message_size
        ))
    }
    if !port.writes() && !ports[at].links.is_empty() {
        refused(format_args!("port '{}' reads another row already", port.name()))
    }
    match Link::attach(number, *row) {
        Ok(link) => ports[at].links.push(link),
        Err(why) => refused(format_args!("{why}")),
    }
    guest.carve_out.set_side(number, SideState::Attached);
}

/// The hash of a port's messages, computed here: C writes no hash into its records.
fn hash_of(port: PortRecord<'static>) -> u32 {
    let fields: Vec<Field> = port
        .fields()
        .map(|it| Field {
            name: it.name,
            scalar: it.scalar,
            count: it.count,
            offset: it.offset,
            labels: &[],
        })
        .collect();
    type_hash(port.message(), port.size(), &fields)
}
