//! What the nodes of a thread log becomes events, up to a quota. What a process has left in the
//! region may be anything, and is there after its death.

use std::io;
use std::os::fd::RawFd;

use sinew_control::status::{Events, Logged};
use sinew_core::clock::now_ns;
use sinew_core::log;
use sinew_core::sys::Region;

use crate::run::doors::number;
use crate::run::quota::Quota;

/// How many lines of one node are kept in this time: enough for lines on a change, not for a line
/// in every cycle. Further lines are counted, and the count is reported when the time is over.
const OF_NODE_MAX: u64 = 10;
const OF_NODE_NS: u64 = 10_000_000_000;

const S_NS: u64 = 1_000_000_000;

/// The lines of one thread.
pub(super) struct Lines {
    region: Region,
    reader: log::Reader,
    /// Its nodes by their places, each with its quota.
    nodes: Vec<(String, Quota)>,
    /// The quota of all nodes together.
    all: Quota,
    /// Lines that could not be read.
    lost: Quota,
    lost_before: u64,
}

impl Lines {
    /// With a region for nodes of these names.
    pub(super) fn open<'a>(nodes: impl Iterator<Item = &'a str>) -> io::Result<Lines> {
        let (region, reader) = log::open()?;
        let node = |name: &str| {
            let what = format!("lines of node '{name}'");
            (name.to_owned(), Quota::new(what, OF_NODE_MAX, OF_NODE_NS))
        };
        Ok(Lines {
            region,
            reader,
            nodes: nodes.map(node).collect(),
            all: Quota::of("lines of nodes"),
            lost: Quota::new("lines of nodes, lost because they came too fast".into(), 0, S_NS),
            lost_before: 0,
        })
    }

    /// The descriptor of the region, to write to.
    pub(super) fn region(&self) -> RawFd {
        number(&self.region)
    }

    /// Makes events of the lines since the last call; `name` is that of the domain. If it has
    /// ended, nothing more comes, and the count of lines that were left out is reported at once.
    pub(super) fn read(&mut self, name: &str, has_ended: bool, events: &mut Events) {
        let Lines { reader, nodes, all, lost, lost_before, .. } = self;
        let now_ns = now_ns();
        let mut no_node = 0;
        quotas(nodes, all, lost).for_each(|quota| quota.look(now_ns, name, events));
        reader.read(&mut |line| {
            let Some((node, quota)) = nodes.get_mut(line.place()) else {
                no_node += 1;
                return;
            };
            if quota.takes_one() && all.takes_one() {
                let (level, cycle) = (line.level(), line.cycle());
                let logged = Logged { node: node.clone(), level, cycle };
                events.add_logged(name, logged, line);
            }
        });
        lost.count(reader.lost() - *lost_before + no_node);
        *lost_before = reader.lost();
        if has_ended {
            quotas(nodes, all, lost).for_each(|quota| quota.tell(name, events));
        }
    }
}

fn quotas<'a>(
    nodes: &'a mut [(String, Quota)],
    all: &'a mut Quota,
    lost: &'a mut Quota,
) -> impl Iterator<Item = &'a mut Quota> {
    nodes.iter_mut().map(|(_, quota)| quota).chain([all, lost])
}

#[cfg(test)]
mod tests {
    use sinew_control::status::EventKind;
    use sinew_core::{Cycle, Level};

    use super::*;

    fn lines() -> (Lines, Cycle) {
        let lines = Lines::open(["one", "two"].into_iter()).expect("memfd");
        let writer = log::Writer::attach(lines.region.clone()).expect("its own");
        (lines, Cycle::new(41, 1_000_000).logging(writer))
    }

    fn read(lines: &mut Lines, has_ended: bool) -> Vec<(EventKind, String)> {
        let mut events = Events::new();
        lines.read("control", has_ended, &mut events);
        assert!(events.after(0).all(|event| event.domain.as_deref() == Some("control")));
        events.after(0).map(|event| (event.what, event.text.clone())).collect()
    }

    #[test]
    fn a_line_is_an_event_with_its_node_and_its_cycle() {
        let (mut lines, cycle) = lines();
        cycle.log(Level::Warning, "{:.1} deg C\x1b[2J", &[38.04]);
        let mut events = Events::new();
        lines.read("control", false, &mut events);
        let event = events.after(0).next().expect("an event");
        let text = "warning: cycle 41: in node 'one': 38.0 deg C\u{fffd}[2J";
        assert_eq!((event.what, &*event.text), (EventKind::Log, text));
        let logged = Logged { node: "one".into(), level: Level::Warning, cycle: 41 };
        assert_eq!(event.logged, Some(logged));
        let json = serde_json::to_value(event).expect("JSON");
        assert_eq!(json["logged"]["level"], "warning");
        assert_eq!(serde_json::from_value(json).ok().as_ref(), Some(event));
    }

    #[test]
    fn a_node_that_never_stops_talking_is_cut_short_and_counted() {
        let (mut lines, cycle) = lines();
        let most = OF_NODE_MAX as usize;
        (0..most + 7).for_each(|_| cycle.log(Level::Info, "again", &[]));
        let said = read(&mut lines, false);
        assert_eq!(said.len(), most, "{said:?}");
        cycle.log(Level::Info, "again", &[]);
        assert_eq!(read(&mut lines, false), []);
        let told = read(&mut lines, true);
        let text = "8 more lines of node 'one', which are not kept".to_owned();
        assert_eq!(told, [(EventKind::Note, text)]);
        assert_eq!(read(&mut lines, true), [], "once");
        cycle.log(Level::Info, "again", &[]);
        assert_eq!(read(&mut lines, false).len(), 1, "a new life says what it has to say");
    }

    #[test]
    fn lines_that_were_lost_are_counted() {
        let (mut lines, cycle) = lines();
        (0..log::LINES_MAX + 5).for_each(|_| cycle.log(Level::Info, "again", &[]));
        let mut told = read(&mut lines, true);
        let text = "5 more lines of nodes, lost because they came too fast, which are not kept";
        assert_eq!(told.pop(), Some((EventKind::Note, text.to_owned())));
        let over = u64::from(log::LINES_MAX) - OF_NODE_MAX;
        let text = format!("{over} more lines of node 'one', which are not kept");
        assert_eq!(told.pop(), Some((EventKind::Note, text)));
    }

    /// A process that lies makes up nodes; and lines that it makes up for others do not drive out
    /// all else.
    #[test]
    fn a_line_of_no_node_is_lost() {
        let (mut lines, cycle) = lines();
        lines.nodes.clear();
        cycle.log(Level::Error, "of nobody", &[]);
        let text = "1 more lines of nodes, lost because they came too fast, which are not kept";
        assert_eq!(read(&mut lines, true), [(EventKind::Note, text.to_owned())]);
    }
}
