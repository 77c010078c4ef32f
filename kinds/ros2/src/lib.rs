//! Makes Sinew a part of a ROS 2 network, over DDS or Zenoh, without ROS itself. A service domain
//! with a node of kind `ros2_node` is one node of ROS; each `ros2_publisher` and `ros2_subscriber`
//! in it is one topic. The guide is docs/ros2.md.

mod definition;
mod diagnostics;
mod fields;
mod messages;
mod node;
mod picture;
mod publisher;
mod session;
mod settings;
mod subscriber;
mod topic;
mod topics;
mod transforms;
mod triggers;
mod values;

use sinew_core::Refusal;
use sinew_runtime::ServiceEntry;

/// Every kind, one row each.
pub const SERVICES: &[ServiceEntry] = &[node::NODE, publisher::NODE, subscriber::NODE];

/// All refusals in one text.
fn in_one(refusals: &[Refusal]) -> String {
    let texts: Vec<_> = refusals.iter().map(Refusal::to_string).collect();
    texts.join("; ")
}
