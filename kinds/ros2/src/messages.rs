//! The messages of ROS that can be published and subscribed, from the public definitions.
//! `tests` compares names, hashes and bytes with those of `rosbags`.

use serde::Deserialize;

use crate::definition::{Byte, Bytes, ros_messages};

ros_messages! {
    /// A point in time by the wall clock, UTC.
    #[derive(Copy, Deserialize)]
    "builtin_interfaces" Time {
        sec: i32,
        nanosec: u32,
    }
    /// A span of time.
    #[derive(Copy, Deserialize)]
    "builtin_interfaces" Duration {
        sec: i32,
        nanosec: u32,
    }
    /// The time of a message, and the frame in which its values are given.
    #[derive(Deserialize)]
    "std_msgs" Header {
        stamp: Time,
        frame_id: String,
    }
    /// Joints: each list is as long as `name`, or empty.
    #[derive(Deserialize)]
    "sensor_msgs" JointState {
        header: Header,
        name: Vec<String>,
        position: Vec<f64>,
        velocity: Vec<f64>,
        effort: Vec<f64>,
    }
    /// A picture, row by row.
    "sensor_msgs" Image {
        header: Header,
        height: u32,
        width: u32,
        encoding: String,
        is_bigendian: u8,
        step: u32,
        data: Bytes,
    }
    /// A place.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Point {
        x: f64,
        y: f64,
        z: f64,
    }
    /// A vector.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Vector3 {
        x: f64,
        y: f64,
        z: f64,
    }
    /// A rotation.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Quaternion {
        x: f64,
        y: f64,
        z: f64,
        w: f64,
    }
    /// Where something is, and how it is turned.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Pose {
        position: Point,
        orientation: Quaternion,
    }
    /// A pose with its header.
    #[derive(Deserialize)]
    "geometry_msgs" PoseStamped {
        header: Header,
        pose: Pose,
    }
    /// How fast it moves and turns.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Twist {
        linear: Vector3,
        angular: Vector3,
    }
    /// A twist with its header.
    #[derive(Deserialize)]
    "geometry_msgs" TwistStamped {
        header: Header,
        twist: Twist,
    }
    /// The transform from one frame to another.
    #[derive(Copy, Deserialize)]
    "geometry_msgs" Transform {
        translation: Vector3,
        rotation: Quaternion,
    }
    /// A transform with its header, and the frame that it leads to.
    #[derive(Deserialize)]
    "geometry_msgs" TransformStamped {
        header: Header,
        child_frame_id: String,
        transform: Transform,
    }
    /// Several transforms.
    #[derive(Deserialize)]
    "tf2_msgs" TFMessage {
        transforms: Vec<TransformStamped>,
    }
    /// Where joints are to be at a time.
    #[derive(Deserialize)]
    "trajectory_msgs" JointTrajectoryPoint {
        positions: Vec<f64>,
        velocities: Vec<f64>,
        accelerations: Vec<f64>,
        effort: Vec<f64>,
        time_from_start: Duration,
    }
    /// Where joints are to be, point after point.
    #[derive(Deserialize)]
    "trajectory_msgs" JointTrajectory {
        header: Header,
        joint_names: Vec<String>,
        points: Vec<JointTrajectoryPoint>,
    }
    /// A figure and its name.
    #[derive(Deserialize)]
    "diagnostic_msgs" KeyValue {
        key: String,
        value: String,
    }
    /// The state of one part.
    #[derive(Deserialize)]
    "diagnostic_msgs" DiagnosticStatus {
        level: Byte,
        name: String,
        message: String,
        hardware_id: String,
        values: Vec<KeyValue>,
    }
    /// The states of all parts.
    #[derive(Deserialize)]
    "diagnostic_msgs" DiagnosticArray {
        header: Header,
        status: Vec<DiagnosticStatus>,
    }
}

/// The request of a service without arguments. By the rules of ROS it is one byte, not nothing.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, Deserialize)]
pub(crate) struct TriggerRequest {
    pub(crate) structure_needs_at_least_one_member: u8,
}

/// The answer of such a service.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, Deserialize)]
pub(crate) struct TriggerResponse {
    pub(crate) success: bool,
    pub(crate) message: String,
}

impl ros2_client::Message for TriggerRequest {}
impl ros2_client::Message for TriggerResponse {}

#[cfg(test)]
mod tests;
