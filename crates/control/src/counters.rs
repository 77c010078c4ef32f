//! Counters of each node of a service domain: its process writes them, the supervisor reads them.

use sinew_core::sys::Region;
use sinew_link::counter;

/// What is counted for each node of a service domain. The counters outlive the service's process.
pub const COUNTERS: [&str; 6] = ["beats", "received", "lost", "sent", "dropped", "ended"];
/// Heartbeats.
pub const BEATS: u32 = 0;
/// Messages received.
pub const RECEIVED: u32 = 1;
/// Messages lost on the way in.
pub const LOST: u32 = 2;
/// Messages sent.
pub const SENT: u32 = 3;
/// Messages that found no room.
pub const DROPPED: u32 = 4;
/// How often the node has ended.
pub const ENDED: u32 = 5;

/// Distinguishes the counters of a service from other regions.
const NAMES_HASH: u32 = u32::from_le_bytes(*b"serv");

/// The layout of a service node's counters.
pub const fn counters_shape() -> sinew_link::Shape {
    counter::shape(COUNTERS.len() as u32, NAMES_HASH)
}

/// Makes the counters of a service node.
pub fn open_counters() -> std::io::Result<Region> {
    let region = Region::shared("sinew-counters", counters_shape().region_len())?;
    let made = counter::Writer::create(region.clone(), &COUNTERS, NAMES_HASH);
    made.map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(region)
}

/// The supervisor's view of a service node's counters.
pub struct Counted(counter::Reader<Region>);

impl Counted {
    /// Reads the counters in this region.
    pub fn attach(region: Region) -> std::io::Result<Counted> {
        let reader = counter::Reader::attach(region, &counters_shape());
        reader.map(Counted).map_err(|error| std::io::Error::other(error.to_string()))
    }

    /// The value of a counter; 0 if the service has written nonsense over it.
    fn get(&self, counter: u32) -> u64 {
        self.0.read(counter).unwrap_or(0)
    }

    /// Heartbeats.
    pub fn beats(&self) -> u64 {
        self.get(BEATS)
    }

    /// How often the node has ended, over all restarts of its domain.
    pub fn ends(&self) -> u64 {
        self.get(ENDED)
    }

    /// Messages received, lost, sent and dropped.
    pub fn messages(&self) -> [u64; 4] {
        [RECEIVED, LOST, SENT, DROPPED].map(|counter| self.get(counter))
    }
}
