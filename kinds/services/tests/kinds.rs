//! Rows of kinds for tests, without what no test looks at.

use sinew_core::catalogue::{Direction, Kind, MessageType, Port, RunsIn, Signal};

pub(crate) const fn kind(name: &'static str, runs_in: RunsIn, ports: &'static [Port]) -> Kind {
    Kind { name, runs_in, doc: "", ports, parameters: &[], signals: &[] }
}

pub(crate) const fn port(
    name: &'static str,
    direction: Direction,
    message: &'static MessageType,
) -> Port {
    Port { name, doc: "", direction, message, optional: false, safe: &[] }
}

pub(crate) const fn signal(
    name: &'static str,
    count: usize,
    labels: &'static [&'static str],
) -> Signal {
    Signal { name, doc: "", unit: "", count, labels }
}
