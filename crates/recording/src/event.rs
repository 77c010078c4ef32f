//! The events of a run, including what nodes logged, as the supervisor reports them (`sinew log`).
//! They have the form of ROS 2's log, which viewers can show.
//!
//! `log_time` is when the supervisor learned of the event, `sequence` the low half of its number.
//! `name` is the domain, followed by a dot and the node if a node has logged it. `function` is the
//! kind of the event.

use sinew_control::status::{Event, EventKind};
use sinew_core::Level;

use super::format::CDR_HEAD;

/// The topic. No node has such a name.
pub const TOPIC: &str = "/@events";
/// Name of the schema.
pub(crate) const SCHEMA: &str = "rcl_interfaces/msg/Log";
/// Its fields, as in ROS 2.
pub(crate) const SCHEMA_TEXT: &str = "\
builtin_interfaces/Time stamp
uint8 level
string name
string msg
string file
string function
uint32 line
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
";

const INFO: u8 = 20;
const WARN: u8 = 30;
const ERROR: u8 = 40;

/// The message of an event that happened at this time since 1970.
pub fn write(event: &Event, unix_ns: u64) -> Vec<u8> {
    let node = event.logged.iter().map(|logged| logged.node.as_str());
    let name: Vec<&str> = event.domain.as_deref().into_iter().chain(node).collect();
    let mut data = CDR_HEAD.to_vec();
    // It overflows in 2038, as in ROS 2.
    data.extend(((unix_ns / 1_000_000_000) as i32).to_le_bytes());
    data.extend(((unix_ns % 1_000_000_000) as u32).to_le_bytes());
    data.push(level(event));
    for text in [name.join(".").as_str(), &event.text, "", event.what.word()] {
        align(&mut data);
        data.extend((text.len() as u32 + 1).to_le_bytes());
        // A text ends with a zero and contains none: an event has no control characters.
        data.extend(text.as_bytes());
        data.push(0);
    }
    align(&mut data);
    data.extend(0u32.to_le_bytes());
    data
}

/// The next number has four bytes, so it must be aligned.
fn align(data: &mut Vec<u8>) {
    data.resize(data.len().next_multiple_of(4), 0);
}

fn level(event: &Event) -> u8 {
    use EventKind::{Alarm, EditRefused, Ended, Faulted, GivenUp, Late, Restarting};
    match (&event.logged, event.what) {
        (Some(logged), _) => match logged.level {
            Level::Info => INFO,
            Level::Warning => WARN,
            Level::Error => ERROR,
        },
        (None, Faulted | GivenUp) => ERROR,
        (None, Alarm | EditRefused | Ended | Late | Restarting) => WARN,
        (None, _) => INFO,
    }
}

#[cfg(test)]
mod tests {
    use sinew_control::status::{Events, Logged};

    use super::*;

    #[test]
    fn an_event_is_a_log_of_ros_2() {
        let mut events = Events::new();
        let logged = Logged { node: "pid".into(), level: Level::Warning, cycle: 7 };
        events.add_logged("arm", logged, "hot");
        let data = write(events.after(0).next().expect("an event"), 1_500_000_000);
        let text = "warning: cycle 7: in node 'pid': hot";
        let expected = [
            &[0, 1, 0, 0, 1, 0, 0, 0][..],
            &500_000_000u32.to_le_bytes(),
            &[30, 0, 0, 0, 8, 0, 0, 0],
            b"arm.pid\0",
            &[text.len() as u8 + 1, 0, 0, 0],
            text.as_bytes(),
            &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0],
            b"log\0\0\0\0\0",
        ];
        assert_eq!(data, expected.concat());
    }
}
