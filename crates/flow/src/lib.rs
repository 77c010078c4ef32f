//! Flows: what runs the flow nodes of a service domain.
//!
//! A [`Source`] begins a [`Flow`] with a packet. Each node answers every packet that it gets: by
//! itself, or with the reply of the node that it passed the packet to. So a path is a loop of calls
//! in one future ([`Flow`]). A node costs a call, and only a node that waits costs an allocation.
//!
//! Flows are divided among workers. Each worker is a thread with nodes, sources and figures of its
//! own. Workers share only the queue before the threads that block ([`Pool`]), the ends of links to
//! the core ([`MessageInput`], [`MessageOutput`]) and the queue of lines for the log. Only a flow
//! that needs one of these uses it. Other flows take no lock that another worker could hold.

mod across;
mod at_work;
mod budget;
mod crew;
mod ends;
mod entry;
mod figures;
mod make;
mod message;
mod path;
mod pool;
mod resource;
mod spans;
mod tell;
pub mod testing;
mod value;
mod values;

pub use across::{Arriving, Leaving, RELAYED_MAX, Relay, RelayDoors};
pub use budget::{FlowLimits, SLICE, WORK_DEFAULT};
pub use crew::Crew;
pub use crew::reload::is_same;
pub use crew::shared::Setup;
pub use ends::{LastMessage, MessageInput, MessageOutput};
pub use entry::{FlowEntry, Make};
pub use figures::{Figures, NodeFigures};
pub use make::FlowFixture;
pub use message::{from_message, to_message};
pub use path::beside::Offshoot;
pub use path::outlet::{Begun, Outlet, StopSignal, Stopper};
pub use path::program::Program;
pub use path::run::taps::{Lens, PacketFilter};
pub use path::run::{Flow, join_replies};
pub use path::{
    Ahead, At, Beginning, FlowNode, Held, Local, NodeContext, Opened, OwnFlow, Reply, Source, Step,
};
pub use pool::{Pool, queued_elsewhere};
pub use resource::{OpenResource, Resource, Resources};
pub use sinew_otlp::SpanContext;
pub use spans::try_spans;

pub use tell::one_line;
pub use value::cbor;
pub use value::error::Error;
pub use value::{AskedFor, BytesToCome, Document, Map, Stream, Value};
pub use values::FlowValues;

use sinew_spec::catalogue::{Kind, PACKET, Port, RunsIn};

/// The fields that are the same in all kinds whose nodes take packets; a kind gives the rest
/// itself.
pub const FLOW: Kind =
    Kind { name: "", runs_in: RunsIn::Flow, doc: "", ports: &[], parameters: &[], signals: &[] };

/// An input for packets. Some link must lead to it.
pub const fn input(name: &'static str, doc: &'static str) -> Port {
    Port::input(name, doc, &PACKET)
}

/// An output for packets. If it leads nowhere, a packet that is sent there is the reply.
pub const fn output(name: &'static str, doc: &'static str) -> Port {
    Port::output(name, doc, &PACKET).optional()
}

/// The `error` port: if it leads somewhere, the reply from there replaces the node's error.
pub const fn error() -> Port {
    output("error", "Gets {error, status, node} when this node fails; its reply is used instead.")
}
