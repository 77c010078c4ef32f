//! A life of the image `trials` with one node, and Linux's ends of its links.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sinew_agent::boards::BoardRow;
use sinew_agent::image::{self, ImageFile};
use sinew_agent::{GuestBells, GuestProgress, GuestSetup, Keeper};
use sinew_carve_out::{
    DATA, Delivery, Direction, LinkRow, Name, NodeRow, Order, PAGE, RegionRow, Trial, VALUES_MAX,
};
use sinew_core::sys::Region;
use sinew_link::queue::{Reader, Writer};
use sinew_link::{Shape, create};
use sinew_plan::plan::Board;

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Of the carve-out.
const BYTES: usize = 1 << 20;
/// Where the region of a port begins.
const ROW: usize = 64 << 10;

/// Says that a test cannot run here. With `CI=true` that is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
pub(crate) fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

/// The image, if it was built.
pub(crate) fn trials() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("guest/target/armv7a-none-eabi/release/trials");
    if !image.is_file() {
        skip("there is no image of trials: cargo build --release in guest/");
        return None;
    }
    Some(image)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

/// A guest that runs one node.
pub(crate) struct Life {
    pub(crate) memory: Region,
    pub(crate) keeper: Keeper,
    shapes: Vec<Shape>,
    printed: String,
}

impl Life {
    /// One whose node is of this kind and has these values; its ports are linked to queues of this
    /// capacity, the one with index i with bell i + 1. `None` if something is missing here.
    pub(crate) fn start(kind: &str, values: &[f64], capacity: u32) -> Option<Life> {
        let board = BoardRow::of(Board::Virt);
        if let Some(lack) = (board.missing)() {
            skip(&lack);
            return None;
        }
        let path = trials()?;
        let image = image::read(&path, board).expect("an image");
        let memory = Region::shared("test", BYTES).expect("memory");
        let rows = rows(&image, kind, capacity);
        let shapes: Vec<_> = rows.iter().map(RegionRow::shape).collect();
        for (port, shape) in shapes.iter().enumerate() {
            create(&part(&memory, port, shape), shape).expect("it is long enough");
        }
        let mut all = [0.0; VALUES_MAX];
        all[..values.len()].copy_from_slice(values);
        let node = NodeRow {
            kind: name(kind),
            name: name("node"),
            period_us: 1000,
            values: all,
            value_count: values.len() as u32,
            trial: (Trial::None, 0),
        };
        let bells = GuestBells::of(&rows).expect("bells");
        let (carve_out, nodes, rows) = (memory.clone(), &[node][..], &rows[..]);
        let setup = GuestSetup { image: &path, board, carve_out, nodes, rows, bells };
        let keeper = Keeper::start(setup).expect("a life");
        let mut life = Life { memory, keeper, shapes, printed: String::new() };
        life.until(|progress| progress == GuestProgress::Ready);
        life.keeper.order(Order::Run);
        life.until(|progress| progress == GuestProgress::Running);
        Some(life)
    }

    /// The queue that port 0 reads.
    pub(crate) fn writer(&self) -> Writer<Region> {
        Writer::attach(part(&self.memory, 0, &self.shapes[0]), &self.shapes[0]).expect("a link")
    }

    /// The queue that port 1 writes.
    pub(crate) fn reader(&self) -> Reader<Region> {
        Reader::attach(part(&self.memory, 1, &self.shapes[1]), &self.shapes[1]).expect("a link")
    }

    fn until(&mut self, is_it: impl Fn(GuestProgress) -> bool) {
        let begun = Instant::now();
        loop {
            let progress = self.keeper.look(&mut |line| self.printed += &format!("{line}\n"));
            if is_it(progress) {
                return;
            }
            let printed = &self.printed;
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {progress}; printed:\n{printed}");
            self.keeper.wait(Duration::from_millis(100));
        }
    }

    /// Stops the guest; what it has printed in its life.
    pub(crate) fn stop(mut self) -> String {
        self.keeper.order(Order::Stop);
        self.until(|progress| matches!(progress, GuestProgress::Ended(_)));
        self.printed
    }
}

/// The region of a port.
fn part(memory: &Region, port: usize, shape: &Shape) -> Region {
    let file = memory.file().expect("a descriptor").try_clone_to_owned().expect("a descriptor");
    let len = shape.region_len().next_multiple_of(PAGE);
    Region::map_part(file, DATA + port * ROW, len).expect("inside")
}

fn rows(image: &ImageFile, kind: &str, capacity: u32) -> Vec<RegionRow> {
    let kind = image.kinds().find(|it| it.name() == kind).expect("the image has it");
    let ports = kind.ports().enumerate();
    let row = |(at, port): (usize, sinew_carve_out::image::ImagePort<'_>)| {
        let link = LinkRow {
            node: 0,
            port: at as u32,
            direction: if port.writes() { Direction::Out } else { Direction::In },
            delivery: Delivery::Queue,
            capacity,
            message_size: port.size(),
            bell: at as u32 + 1,
        };
        let offset = (DATA + at * ROW) as u32;
        let mut row =
            RegionRow { name: name(port.name()), offset, size: 0, hash: port.hash(), link };
        row.size = row.shape().region_len().next_multiple_of(PAGE) as u32;
        row
    };
    ports.map(row).collect()
}
