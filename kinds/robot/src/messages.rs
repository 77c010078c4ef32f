//! What crosses the links of the arm, and of the base.

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;

/// Bytes that a [`Frame`] can hold.
pub const FRAME_BYTES_MAX: usize = 184;

/// [`CartesianTarget::flags`]: the tool is under way, else it holds its place.
pub const TARGET_MOVING: u64 = 1;

/// [`AxisFeedback::flags`]: the values came with this cycle's frame.
pub const FEEDBACK_VALID: u32 = 1;
/// [`AxisFeedback::flags`]: every drive was brought to `operation enabled` and is told to follow
/// its targets; not while the graph stops.
pub const FEEDBACK_OPERATIONAL: u32 = 2;

/// [`PlannerCommand::what`]: take the path with number `path`, once this lap is done.
pub const PLANNER_CHOOSE: u32 = 1;
/// [`PlannerCommand::what`]: slow down on the path to a standstill, and wait there.
pub const PLANNER_PAUSE: u32 = 2;
/// [`PlannerCommand::what`]: go on.
pub const PLANNER_RESUME: u32 = 3;

/// Most obstacles of a [`PlaneMap`].
pub const OBSTACLES_MAX: usize = 64;

/// Most points of [`PathPoints`].
pub const POINTS_MAX: usize = 64;

/// [`PathProgress::state`]: it does not know where it is, or how far it can see, and stands.
pub const FOLLOWER_WAITS: u32 = 0;
/// [`PathProgress::state`]: it drives as fast as the path allows.
pub const FOLLOWER_DRIVES: u32 = 1;
/// [`PathProgress::state`]: something is near; it slows down, or stands.
pub const FOLLOWER_SLOWED: u32 = 2;
/// [`PathProgress::state`]: it is at the end of the path.
pub const FOLLOWER_ARRIVED: u32 = 3;

sinew_core::message! {
    /// Where the tool flange shall be at the end of this cycle.
    pub struct CartesianTarget {
        /// Place in the arm's base frame, m.
        pub position_m: [f64; 3],
        /// Orientation in the arm's base frame, unit quaternion x, y, z, w.
        pub orientation_xyzw: [f64; 4],
        /// Speed along the path.
        pub path_speed_m_per_s: f64,
        /// Counts the targets, from 1; the feedback names the one that it answers.
        pub sequence: u64,
        /// A sum of `TARGET_*`.
        pub flags: u64,
    }

    /// What people ask of the path planner.
    pub struct PlannerCommand {
        /// Counts the commands of who sends them, from 1.
        pub sequence: u64,
        /// One of `PLANNER_*`.
        pub what: u32,
        /// Number of a path, by the planner's parameters; 0 is the first.
        pub path: u32,
    }

    /// Where the joints shall be at the end of this cycle.
    pub struct JointTargets {
        /// Axis 1 to 6, rad.
        pub position_rad: [f64; 6],
        /// Axis 1 to 6, rad/s.
        pub velocity_rad_per_s: [f64; 6],
        /// [`CartesianTarget::sequence`] of the target that these joints reach.
        pub sequence: u64,
    }

    /// An Ethernet frame without its check sequence.
    pub struct Frame {
        /// The bytes; only the first `length` mean something.
        pub bytes: [u8; FRAME_BYTES_MAX],
        /// How many.
        pub length: u32,
        /// Zero.
        pub reserved: u32,
    }

    /// What the drives say of themselves.
    pub struct AxisFeedback {
        /// Axis 1 to 6, rad.
        pub position_rad: [f64; 6],
        /// Axis 1 to 6, rad/s.
        pub velocity_rad_per_s: [f64; 6],
        /// [`CartesianTarget::sequence`] of the target that the drives had been told to reach by
        /// the moment when the positions were taken; 0 while they had none, and when they were told
        /// to stop.
        pub sequence: u64,
        /// CiA 402 status words.
        pub status: [u16; 6],
        /// A sum of `FEEDBACK_*`.
        pub flags: u32,
    }

    /// How fast something shall move and turn, seen from itself: x ahead, y to the left, z up.
    pub struct TwistTarget {
        /// Along x, y and z, m/s.
        pub linear_m_per_s: [f64; 3],
        /// Around x, y and z, rad/s.
        pub angular_rad_per_s: [f64; 3],
    }

    /// What a base with a left and a right wheel knows of itself.
    pub struct BaseState {
        /// Where it is, seen from where it began or from the origin of its plane: x, y and z, m.
        pub position_m: [f64; 3],
        /// How it is turned there: unit quaternion x, y, z, w.
        pub orientation_xyzw: [f64; 4],
        /// How fast it moves along its own x, y and z, m/s.
        pub linear_m_per_s: [f64; 3],
        /// How fast it turns around its own x, y and z, rad/s.
        pub angular_rad_per_s: [f64; 3],
        /// How far the left and the right wheel have turned, rad.
        pub wheel_position_rad: [f64; 2],
        /// How fast they turn, rad/s.
        pub wheel_velocity_rad_per_s: [f64; 2],
    }

    /// How far it is to whatever comes next, as sensors of a base see it.
    pub struct Ranges {
        /// Straight ahead, to the left and to the right of that, m.
        pub range_m: [f64; 3],
    }

    /// What stands on a plane, and what drives there.
    pub struct PlaneMap {
        /// Of the fence: least x and y, greatest x and y, m.
        pub fence_m: [f64; 4],
        /// Of each round obstacle x, y and radius, m.
        pub obstacles_m: [f64; 3 * OBSTACLES_MAX],
        /// How many obstacles there are; numbers behind them mean nothing.
        pub count: u64,
        /// Radius of the base that drives there, m.
        pub base_radius_m: f64,
    }

    /// The path that is followed.
    pub struct PathPoints {
        /// Of each point x and y, m.
        pub points_m: [f64; 2 * POINTS_MAX],
        /// How many points there are; numbers behind them mean nothing.
        pub count: u32,
        /// Whether it goes on from the last to the first: 1.
        pub repeats: u32,
    }

    /// How far somebody is on a path.
    pub struct PathProgress {
        /// Where to it drives: x and y, m.
        pub goal_m: [f64; 2],
        /// Along the path since its first point, m.
        pub way_m: f64,
        /// Along the path to its last point, m.
        pub left_m: f64,
        /// Rounds that are done.
        pub rounds: u32,
        /// One of `FOLLOWER_*`.
        pub state: u32,
    }
}

impl CartesianTarget {
    /// The pose. Numbers that are no rotation give the unit rotation.
    pub fn pose(&self) -> Pose {
        let [x, y, z, w] = self.orientation_xyzw;
        let rotation = DQuat::from_xyzw(x, y, z, w);
        let rotation = if rotation.length_squared() > 0.5 { rotation } else { DQuat::IDENTITY };
        Pose { translation: DVec3::from_array(self.position_m), rotation: rotation.normalize() }
    }

    /// Sets the pose.
    pub fn set_pose(&mut self, pose: &Pose) {
        self.position_m = pose.translation.to_array();
        self.orientation_xyzw = pose.rotation.to_array();
    }
}

impl Frame {
    /// The bytes that mean something; a length past the buffer is cut.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[..(self.length as usize).min(FRAME_BYTES_MAX)]
    }

    /// As [`Frame::payload`], to be changed.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..(self.length as usize).min(FRAME_BYTES_MAX)]
    }
}
