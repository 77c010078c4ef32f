//! The flow nodes that come with Sinew: one file and one row of [`FLOWS`] each.

mod batch;
mod bridge;
mod check;
mod data;
mod framing;
mod http;
mod json;
mod lens;
mod path;
mod script;
mod streams;
#[cfg(test)]
mod testing;
mod work;

use sinew_flow::FlowEntry;

pub use check::{Suite, TestOutcome};
pub use http::decode;
pub use http::router::{RouteMatch, Routes};
pub use lens::LENS;

/// The error of a node that needs `what` (such as 'databases'), which this program was built
/// without.
#[cfg(not(all(feature = "javascript", feature = "lua", feature = "schema", feature = "sql")))]
fn without(what: &str, feature: &str) -> sinew_core::Fault {
    sinew_core::fault!(
        "this program was built without {what}; build it with 'cargo build --release --features \
         {feature}', or with 'full' in its place for all of them"
    )
}

/// All flow nodes.
pub const FLOWS: &[FlowEntry] = &[
    // HTTP: listeners, routes, clients.
    http::listener::NODE,
    http::router::NODE,
    http::client::NODE,
    http::openapi::NODE,
    http::websocket::server::NODE,
    http::websocket::client::NODE,
    // Who may send a request, and what it may hold.
    http::guard::validate::NODE,
    http::guard::jwt::NODE,
    http::guard::jwt_sign::NODE,
    http::guard::verify::NODE,
    http::guard::basic::NODE,
    http::guard::password::NODE,
    http::guard::cors::NODE,
    http::cookie::NODE,
    http::multipart::NODE,
    http::static_files::NODE,
    // Paths: where a packet goes, and what becomes of the reply.
    path::pipe::NODE,
    path::for_each::NODE,
    path::split::NODE,
    path::merge::NODE,
    path::fork::NODE,
    path::attempt::NODE,
    path::throw::NODE,
    path::retry::NODE,
    path::sleep::NODE,
    path::print::NODE,
    path::nop::NODE,
    path::serial::NODE,
    path::limit::NODE,
    path::timer::NODE,
    // Work that has an end.
    batch::once::NODE,
    batch::file::NODE,
    batch::dir::NODE,
    batch::append::NODE,
    path::batch::NODE,
    // Streams, and messages from one to many.
    streams::stream::NODE,
    streams::topic::NODE,
    streams::publish::NODE,
    streams::subscribe::NODE,
    // Data that outlives a flow.
    data::store::NODE,
    data::state::NODE,
    data::cache::NODE,
    data::session::NODE,
    data::sql::SQL,
    data::sql::QUERY,
    data::sql::TRANSACTION,
    // Scripts: nodes that make packets, set values and decide by expressions.
    script::snippet::NODE,
    script::branch::NODE,
    script::switch::NODE,
    script::set::NODE,
    // The bridge to the core.
    bridge::read::NODE,
    bridge::send::NODE,
    bridge::set_parameters::NODE,
    bridge::halt::NODE,
    bridge::reset::NODE,
    bridge::status::NODE,
    // Tests in the graph itself.
    check::test::NODE,
    check::assert::NODE,
];
