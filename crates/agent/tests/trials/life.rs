//! A life of an image with one node, and the Linux ends of its links.

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
/// Prints a text for a user who runs the test with `--nocapture`.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Says that a test cannot run here. With `CI=true` that is a failure.
pub(crate) fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    say(&format!("skipped: {lack}"));
}

/// An image, if it was built.
pub(crate) fn image(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = root.join("guest/target/armv7a-none-eabi/release").join(name);
    if !image.is_file() {
        skip(&format!("there is no image '{name}': cargo build --release in guest/"));
        return None;
    }
    Some(image)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("short")
}

/// A guest that is to run one node, with a link at each of its ports in `links`.
pub(crate) struct NodeLife<'a> {
    /// The image.
    pub(crate) image: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) values: &'a [f64],
    /// Ports with delivery and capacity of their links. The link of port i has bell i + 1.
    pub(crate) links: &'a [(u32, Delivery, u32)],
    /// Size of the carve-out, a power of two.
    pub(crate) bytes: usize,
}

/// A guest that runs one node.
pub(crate) struct Life {
    pub(crate) memory: Region,
    pub(crate) keeper: Keeper,
    rows: Vec<RegionRow>,
    printed: String,
}

impl Life {
    /// A guest of the image `trials`; both ports of its node are linked to queues of this capacity.
    /// `None` if something is missing here.
    pub(crate) fn start(kind: &str, values: &[f64], capacity: u32) -> Option<Life> {
        let both = [(0, Delivery::Queue, capacity), (1, Delivery::Queue, capacity)];
        // The kind `ring` has no ports.
        let links = if kind == "ring" { &[][..] } else { &both };
        Life::of(&NodeLife { image: "trials", kind, values, links, bytes: 1 << 20 })
    }

    /// A guest that runs; `None` if something is missing here.
    pub(crate) fn of(of: &NodeLife<'_>) -> Option<Life> {
        let board = BoardRow::of(Board::Virt);
        if let Some(lack) = (board.missing)() {
            skip(&lack);
            return None;
        }
        let path = image(of.image)?;
        let image = image::read(&path, board).expect("an image");
        let memory = Region::shared("test", of.bytes).expect("memory");
        let rows = rows(&image, of);
        for row in &rows {
            create(&part(&memory, row), &row.shape()).expect("it is long enough");
        }
        let mut all = [0.0; VALUES_MAX];
        all[..of.values.len()].copy_from_slice(of.values);
        let node = NodeRow {
            kind: name(of.kind),
            name: name("node"),
            period_us: 1000,
            values: all,
            value_count: of.values.len() as u32,
            trial: (Trial::None, 0),
        };
        let bells = GuestBells::of(&rows).expect("bells");
        let (carve_out, nodes) = (memory.clone(), &[node][..]);
        let setup = GuestSetup { image: &path, board, carve_out, nodes, rows: &rows, bells };
        let keeper = Keeper::start(setup).expect("a life");
        let mut life = Life { memory, keeper, rows, printed: String::new() };
        life.until(|progress| progress == GuestProgress::Ready);
        life.keeper.order(Order::Run);
        life.until(|progress| progress == GuestProgress::Running);
        Some(life)
    }

    /// The region of a port's link, and its shape.
    pub(crate) fn link(&self, port: u32) -> (Region, Shape) {
        let row = self.rows.iter().find(|row| row.link.port == port).expect("it is linked");
        (part(&self.memory, row), row.shape())
    }

    /// The queue that port 0 reads.
    pub(crate) fn writer(&self) -> Writer<Region> {
        let (region, shape) = self.link(0);
        Writer::attach(region, &shape).expect("a link")
    }

    /// The queue that port 1 writes.
    pub(crate) fn reader(&self) -> Reader<Region> {
        let (region, shape) = self.link(1);
        Reader::attach(region, &shape).expect("a link")
    }

    /// Looks after the guest, which must still run.
    pub(crate) fn look(&mut self) {
        let progress = self.keeper.look(&mut |line| self.printed += &format!("{line}\n"));
        let printed = &self.printed;
        assert_eq!(progress, GuestProgress::Running, "{progress}; printed:\n{printed}");
    }

    fn until(&mut self, is_it: impl Fn(GuestProgress) -> bool) -> GuestProgress {
        let begun = Instant::now();
        loop {
            let progress = self.keeper.look(&mut |line| self.printed += &format!("{line}\n"));
            if is_it(progress) {
                return progress;
            }
            let printed = &self.printed;
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {progress}; printed:\n{printed}");
            self.keeper.wait(Duration::from_millis(100));
        }
    }

    /// The fault that ended the guest.
    pub(crate) fn fault(mut self) -> String {
        self.until(|progress| matches!(progress, GuestProgress::Faulted(_))).to_string()
    }

    /// Stops the guest. Returns all that it has printed.
    pub(crate) fn stop(mut self) -> String {
        self.keeper.order(Order::Stop);
        self.until(|progress| matches!(progress, GuestProgress::Ended(_)));
        self.printed
    }
}

/// The region of a row.
fn part(memory: &Region, row: &RegionRow) -> Region {
    let file = memory.file().expect("a descriptor").try_clone_to_owned().expect("a descriptor");
    Region::map_part(file, row.offset as usize, row.size as usize).expect("inside")
}

fn rows(image: &ImageFile, of: &NodeLife<'_>) -> Vec<RegionRow> {
    let kind = image.kinds().find(|it| it.name() == of.kind).expect("the image has it");
    let mut offset = DATA as u32;
    let mut row = |&(at, delivery, capacity): &(u32, Delivery, u32)| {
        let port = kind.ports().nth(at as usize).expect("the kind has it");
        let link = LinkRow {
            node: 0,
            port: at,
            direction: if port.writes() { Direction::Out } else { Direction::In },
            delivery,
            capacity,
            message_size: port.size(),
            bell: at + 1,
        };
        let mut row =
            RegionRow { name: name(port.name()), offset, size: 0, hash: port.hash(), link };
        row.size = row.shape().region_len().next_multiple_of(PAGE) as u32;
        offset += row.size;
        row
    };
    of.links.iter().map(&mut row).collect()
}
