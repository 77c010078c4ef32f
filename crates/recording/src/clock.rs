//! The difference between the clocks of other hosts and the clock of a recording: one row per
//! second, as sent by the service that handles the other hosts. Only for the part of one host.
//!
//! `log_time` is when it was measured, as for all times of the file. The message is three numbers.

use sinew_control::status::HostClock;

use super::format::{CDR_HEAD, message};

/// The beginning of its topics; the name of the host follows. No node has such a name.
const TOPICS: &str = "/@clock/";
/// Name of the schema.
pub(crate) const SCHEMA: &str = "sinew/msg/HostClock";
/// The fields: what to add to the clock here to get the other clock, and its possible error.
pub(crate) const SCHEMA_TEXT: &str =
    "int64 monotonic_offset_ns\nint64 day_offset_ns\nuint64 uncertainty_ns\n";

/// The topic of a host's clock.
pub fn topic(host: &str) -> String {
    format!("{TOPICS}{host}")
}

/// The host whose clock a topic is about.
pub(crate) fn host_of(topic: &str) -> Option<&str> {
    topic.strip_prefix(TOPICS)
}

/// The message of a row.
pub fn write(clock: HostClock) -> Vec<u8> {
    let HostClock { monotonic_offset_ns, day_offset_ns, uncertainty_ns, .. } = clock;
    let offsets = [monotonic_offset_ns, day_offset_ns].map(i64::to_le_bytes).concat();
    [&CDR_HEAD[..], &offsets, &uncertainty_ns.to_le_bytes()].concat()
}

/// Reads such a message, measured at this monotonic time. `None` if `data` is no such message.
pub fn read(data: &[u8], at_ns: u64) -> Option<HostClock> {
    let (words, rest) = message(data)?.as_chunks::<8>();
    let ([monotonic, of_day, uncertainty], []) = (words, rest) else { return None };
    Some(HostClock {
        at_ns,
        monotonic_offset_ns: i64::from_le_bytes(*monotonic),
        day_offset_ns: i64::from_le_bytes(*of_day),
        uncertainty_ns: u64::from_le_bytes(*uncertainty),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was_and_nothing_else_is_one() {
        let (monotonic_offset_ns, day_offset_ns) = (-1, i64::MIN);
        let clock =
            HostClock { at_ns: 7, monotonic_offset_ns, day_offset_ns, uncertainty_ns: 1 << 60 };
        let data = write(clock);
        assert_eq!(read(&data, 7), Some(clock));
        let longer = [&data[..], &[0]].concat();
        for bad in [&data[1..], &data[..data.len() - 1], &longer, b""] {
            assert_eq!(read(bad, 7), None);
        }
        assert_eq!(host_of(&topic("cell")), Some("cell"));
        assert_eq!(host_of("/clock/cell"), None);
    }
}
