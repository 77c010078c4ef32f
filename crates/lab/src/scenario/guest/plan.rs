//! What the carve-out holds for a size: a node of the guest for each way, its links or rings, and a
//! buffer.

use sinew_agent::image::ImageFile;
use sinew_carve_out::{
    DATA, Delivery, Direction, LinkRow, Name, NodeRow, PAGE, RegionRow, Trial, VALUES_MAX,
};

use super::case::{Carriage, GuestCase, Over, Waiting};
use super::ring::ring_len;

/// How often a node that polls looks before it only looks once a millisecond: enough for some
/// milliseconds. With a hundred thousand looks it was still polling while the next row was
/// measured, whose node then had to wait for its turn: 3 ms instead of 20 us.
const POLLS: f64 = 4000.0;
/// The same for a node that spins and then sleeps: about as long as Linux polls.
const POLLS_BEFORE_SLEEP: f64 = 100.0;
/// Longest sleep without another look, ms.
const PARK_MS: f64 = 50.0;
/// Messages that a link holds.
const CAPACITY: u32 = 2;

/// A way from Linux to the guest and back.
pub(super) struct Way {
    pub(super) over: Over,
    pub(super) wait: Waiting,
    /// Whether its messages say where a payload is.
    pub(super) by_reference: bool,
    /// The rows of its links: there and back.
    pub(super) rows: Vec<RegionRow>,
    /// Where its two rings begin, one after the other.
    pub(super) rings_at: usize,
}

impl Way {
    /// Whether a case takes it.
    pub(super) fn suits(&self, case: GuestCase) -> bool {
        let by_reference = case.crossing != Carriage::Copied;
        (self.over, self.wait, self.by_reference) == (case.over, case.wait, by_reference)
    }
}

/// The whole content of the carve-out.
pub(super) struct Plan {
    pub(super) bytes: usize,
    pub(super) nodes: Vec<NodeRow>,
    /// The ways, one for each node.
    pub(super) ways: Vec<Way>,
    /// Where the buffer begins.
    pub(super) buffer_at: usize,
    /// The first byte that is not used yet.
    end: usize,
    bells: u32,
}

impl Plan {
    /// The plan for payloads of this many bytes. An error if the image lacks a kind.
    pub(super) fn of(bytes: usize, image: &ImageFile) -> Result<Plan, String> {
        let mut plan =
            Plan { bytes, nodes: vec![], ways: vec![], buffer_at: DATA, end: DATA, bells: 0 };
        plan.end = (plan.buffer_at + bytes).next_multiple_of(PAGE);
        let answer = format!("answer_{bytes}");
        plan.add(image, "reader", Over::Link, Waiting::Polling)?;
        plan.add(image, &answer, Over::Link, Waiting::Polling)?;
        plan.add(image, &answer, Over::Link, Waiting::Doorbell)?;
        plan.add(image, &answer, Over::Link, Waiting::SpinThenDoorbell)?;
        plan.add(image, &answer, Over::BareLink, Waiting::Polling)?;
        plan.add_ring(Over::Ring)?;
        plan.add_ring(Over::BareRing)?;
        Ok(plan)
    }

    /// All rows of links.
    pub(super) fn rows(&self) -> Vec<RegionRow> {
        self.ways.iter().flat_map(|way| way.rows.iter().copied()).collect()
    }

    fn add(
        &mut self,
        image: &ImageFile,
        kind: &str,
        over: Over,
        wait: Waiting,
    ) -> Result<(), String> {
        let found = image.kinds().find(|it| it.name() == kind);
        let found = found.ok_or_else(|| {
            format!("the image has no kind '{kind}'; name the image 'trials' of guest/")
        })?;
        let mut rows = vec![];
        for (at, port) in found.ports().enumerate() {
            let bell = if wait == Waiting::Polling { 0 } else { self.next_bell() };
            let link = LinkRow {
                node: self.nodes.len() as u32,
                port: at as u32,
                direction: if port.writes() { Direction::Out } else { Direction::In },
                delivery: Delivery::Queue,
                capacity: CAPACITY,
                message_size: port.size(),
                bell,
            };
            let name = name(&format!("{kind}_{}.{}", self.nodes.len(), port.name()))?;
            let mut row = RegionRow { name, offset: 0, size: 0, hash: port.hash(), link };
            row.size = row.shape().region_len().next_multiple_of(PAGE) as u32;
            row.offset = self.place(row.size as usize) as u32;
            rows.push(row);
        }
        let by_reference = kind == "reader";
        self.ways.push(Way { over, wait, by_reference, rows, rings_at: 0 });
        let values = [polls(wait), PARK_MS, in_step(over), self.bytes as f64];
        self.node(kind, &values[..if by_reference { 2 } else { 4 }])
    }

    fn add_ring(&mut self, over: Over) -> Result<(), String> {
        let bytes = self.bytes;
        let rings_at = self.place(2 * ring_len(bytes));
        let (wait, by_reference) = (Waiting::Polling, false);
        self.ways.push(Way { over, wait, by_reference, rows: vec![], rings_at });
        self.node("ring", &[POLLS, rings_at as f64, bytes as f64, in_step(over)])
    }

    fn node(&mut self, kind: &str, given: &[f64]) -> Result<(), String> {
        let mut values = [0.0; VALUES_MAX];
        values[..given.len()].copy_from_slice(given);
        self.nodes.push(NodeRow {
            kind: name(kind)?,
            name: name(&format!("{kind}_{}", self.nodes.len()))?,
            period_us: 1000,
            values,
            value_count: given.len() as u32,
            trial: (Trial::None, 0),
        });
        Ok(())
    }

    fn place(&mut self, len: usize) -> usize {
        let at = self.end;
        self.end = (at + len).next_multiple_of(PAGE);
        at
    }

    fn next_bell(&mut self) -> u32 {
        self.bells += 1;
        self.bells
    }
}

fn polls(wait: Waiting) -> f64 {
    match wait {
        Waiting::Polling => POLLS,
        Waiting::Doorbell => 0.0,
        Waiting::SpinThenDoorbell => POLLS_BEFORE_SLEEP,
    }
}

/// Whether the guest keeps its caches in step, as the value of its parameter.
fn in_step(over: Over) -> f64 {
    match over {
        Over::Link | Over::Ring => 1.0,
        Over::BareLink | Over::BareRing => 0.0,
    }
}

fn name(text: &str) -> Result<Name, String> {
    Name::new(text).ok_or_else(|| format!("'{text}' is too long for a name in the carve-out"))
}
