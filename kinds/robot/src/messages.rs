//! The messages on the links of the arm, and of the base.

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;

/// Bytes that a [`Frame`] can hold.
pub const FRAME_BYTES_MAX: usize = 184;

/// [`CartesianTarget::flags`]: the tool is under way. Otherwise it holds its place.
pub const TARGET_MOVING: u64 = 1;

/// [`AxisFeedback::flags`]: the values came with this cycle's frame.
pub const FEEDBACK_VALID: u32 = 1;
/// [`AxisFeedback::flags`]: every drive was brought to `operation enabled` and is told to follow
/// its targets. Not set while the graph stops.
pub const FEEDBACK_OPERATIONAL: u32 = 2;

/// [`PlannerCommand::what`]: take the path with number `path` after this lap.
pub const PLANNER_CHOOSE: u32 = 1;
/// [`PlannerCommand::what`]: slow down on the path to a standstill, and wait there.
pub const PLANNER_PAUSE: u32 = 2;
/// [`PlannerCommand::what`]: go on.
pub const PLANNER_RESUME: u32 = 3;

/// How far the length of a quaternion may be from 1. Rounded figures such as 0.7 for √½ are within
/// it; zeros, and figures of something else than a rotation, are not.
pub const ROTATION_TOLERANCE: f64 = 0.1;

/// Most obstacles of a [`PlaneMap`].
pub const OBSTACLES_MAX: usize = 64;

/// Most points of [`PathPoints`].
pub const POINTS_MAX: usize = 64;

/// [`PathProgress::state`]: its place or its ranges are unknown, and it stands.
pub const FOLLOWER_WAITS: u32 = 0;
/// [`PathProgress::state`]: it drives as fast as the path allows.
pub const FOLLOWER_DRIVES: u32 = 1;
/// [`PathProgress::state`]: something is near, so it slows down or stands.
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
        /// Counts the targets, from 1. The feedback names the target that it answers.
        pub sequence: u64,
        /// A sum of `TARGET_*`.
        pub flags: u64,
    }

    /// A command to the path planner, from a person or a program.
    pub struct PlannerCommand {
        /// Counts the commands of a sender, from 1.
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
        /// The bytes. Only the first `length` are valid.
        pub bytes: [u8; FRAME_BYTES_MAX],
        /// Count of valid bytes.
        pub length: u32,
        /// Always zero.
        pub reserved: u32,
    }

    /// The state of the drives, as they report it.
    pub struct AxisFeedback {
        /// Axis 1 to 6, rad.
        pub position_rad: [f64; 6],
        /// Axis 1 to 6, rad/s.
        pub velocity_rad_per_s: [f64; 6],
        /// [`CartesianTarget::sequence`] of the target that the drives had been told to reach by
        /// the moment when the positions were taken. 0 while they had no target, when they were
        /// told to stop, and while a limiter before them is not near to its target.
        pub sequence: u64,
        /// CiA 402 status words.
        pub status: [u16; 6],
        /// A sum of `FEEDBACK_*`.
        pub flags: u32,
    }

    /// How fast something shall move and turn, in its own frame: x ahead, y to the left, z up.
    pub struct TwistTarget {
        /// Along x, y and z, m/s.
        pub linear_m_per_s: [f64; 3],
        /// Around x, y and z, rad/s.
        pub angular_rad_per_s: [f64; 3],
    }

    /// The state of a base with a left and a right wheel, as it measures or computes it.
    pub struct BaseState {
        /// Position relative to its start or to the origin of its plane: x, y and z, m.
        pub position_m: [f64; 3],
        /// Orientation in the same frame: unit quaternion x, y, z, w.
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

    /// Distances to the nearest thing in each direction, as sensors of a base measure them.
    pub struct Ranges {
        /// Straight ahead, to the left and to the right of that, m.
        pub range_m: [f64; 3],
    }

    /// The obstacles on a plane, and the size of the base that drives there.
    pub struct PlaneMap {
        /// The fence: least x and y, greatest x and y, m.
        pub fence_m: [f64; 4],
        /// The round obstacles: x, y and radius of each, m.
        pub obstacles_m: [f64; 3 * OBSTACLES_MAX],
        /// Count of obstacles. Numbers after them have no meaning.
        pub count: u64,
        /// Radius of the base that drives there, m.
        pub base_radius_m: f64,
    }

    /// The path to follow.
    pub struct PathPoints {
        /// x and y of each point, m.
        pub points_m: [f64; 2 * POINTS_MAX],
        /// Count of points. Numbers after them have no meaning.
        pub count: u32,
        /// 1 if the path goes on from its last point to the first.
        pub repeats: u32,
    }

    /// The progress of a base on a path.
    pub struct PathProgress {
        /// Where it drives to: x and y, m.
        pub goal_m: [f64; 2],
        /// Way along the path since its first point, m.
        pub way_m: f64,
        /// Way along the path to its last point, m.
        pub left_m: f64,
        /// Count of complete rounds.
        pub rounds: u32,
        /// One of `FOLLOWER_*`.
        pub state: u32,
    }
}

impl CartesianTarget {
    /// The pose; `None` if its orientation is no rotation: if the length of the quaternion is not 1
    /// within [`ROTATION_TOLERANCE`].
    pub fn pose(&self) -> Option<Pose> {
        let [x, y, z, w] = self.orientation_xyzw;
        let rotation = DQuat::from_xyzw(x, y, z, w);
        // NaN is not within it either.
        let is_rotation = (rotation.length() - 1.0).abs() <= ROTATION_TOLERANCE;
        is_rotation.then(|| Pose {
            translation: DVec3::from_array(self.position_m),
            rotation: rotation.normalize(),
        })
    }

    /// Sets the pose.
    pub fn set_pose(&mut self, pose: &Pose) {
        self.position_m = pose.translation.to_array();
        self.orientation_xyzw = pose.rotation.to_array();
    }
}

impl Frame {
    /// The valid bytes. A length past the buffer is cut.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[..(self.length as usize).min(FRAME_BYTES_MAX)]
    }

    /// Like [`Frame::payload`], mutable.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..(self.length as usize).min(FRAME_BYTES_MAX)]
    }
}
