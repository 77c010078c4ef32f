//! Messages of ROS that become messages of the graph.

use ros2_client::qos::QosProfile;
use serde::de::DeserializeOwned;
use sinew_core::Fault;

use super::{JOINTS, POSE, TWIST, normalise};
use crate::definition::{Definition, RosMessage};
use crate::fields::{Mapping, Slot, Width};
use crate::messages::{
    Duration, Header, JointState, JointTrajectory, Pose, PoseStamped, Twist, TwistStamped, Vector3,
};
use crate::session::{Origin, Received, Session, TopicReader};

/// A type that can be subscribed.
pub(crate) struct InwardType {
    /// What the spec calls it.
    pub(crate) name: &'static str,
    /// Its parts that are numbers.
    pub(crate) slots: &'static [Slot],
    /// Its definition.
    pub(crate) definition: &'static Definition,
    /// Listens to it at a topic.
    pub(crate) open: OpenIntake,
}

/// Most joints of a message. No machine has more, and a search through more names would hold up the
/// heartbeat.
const JOINTS_MAX: usize = 4096;

/// Begins to listen at a topic.
type OpenIntake = fn(&Session, &str, &QosProfile) -> Result<Box<dyn Intake>, Fault>;

const TRAJECTORY: &[Slot] = &[
    Slot { name: "positions", width: Width::JointPoints, usual: &["position_rad", "position_m"] },
    Slot {
        name: "velocities",
        width: Width::JointPoints,
        usual: &["velocity_rad_per_s", "velocity_m_per_s"],
    },
    Slot { name: "accelerations", width: Width::JointPoints, usual: &["acceleration_rad_per_s2"] },
    Slot { name: "effort", width: Width::JointPoints, usual: &["effort_nm", "torque_nm"] },
    Slot { name: "time_from_start", width: Width::Points, usual: &["time_from_start_s"] },
    Slot { name: "points", width: Width::One, usual: &["points"] },
];

const fn row<M: Inward>(name: &'static str, slots: &'static [Slot]) -> InwardType {
    InwardType { name, slots, definition: M::DEFINITION, open: open::<M> }
}

/// All of them, one row each.
pub(crate) const INWARD: &[InwardType] = &[
    row::<Twist>("geometry_msgs/msg/Twist", TWIST),
    row::<TwistStamped>("geometry_msgs/msg/TwistStamped", TWIST),
    row::<Pose>("geometry_msgs/msg/Pose", POSE),
    row::<PoseStamped>("geometry_msgs/msg/PoseStamped", POSE),
    row::<JointState>("sensor_msgs/msg/JointState", JOINTS),
    row::<JointTrajectory>("trajectory_msgs/msg/JointTrajectory", TRAJECTORY),
];

/// Why a message does not enter the graph. The order is that of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is of another type.
    Type,
    /// Its bytes are no message of this type.
    Bytes,
    /// A number is not finite.
    NotFinite,
    /// A rotation is not as long as 1.
    NoRotation,
    /// It is given in another frame.
    Frame,
    /// It is of other joints, or lacks some that the graph wants.
    Joints,
    /// It has more points than there is room for, or none.
    Points,
    /// It was too old when its turn came.
    Late,
    /// A newer one was there already.
    Overtaken,
}

impl Refused {
    /// The words for the refusals, each at the number of its variant.
    pub(crate) const WORDS: [&str; 9] = [
        "of another type",
        "not readable",
        "not finite",
        "no rotation",
        "of another frame",
        "of other joints",
        "with too many points or none",
        "too late",
        "overtaken",
    ];
}

/// What a message of ROS holds.
pub(crate) struct Heard {
    /// The frame in which all values are given; empty: not said.
    pub(crate) frame_id: String,
    /// For each slot its numbers; empty if the message has none.
    pub(crate) numbers: Vec<Vec<f64>>,
}

/// What the spec wants of a message.
pub(crate) struct Wanted {
    /// The joints, in the order of the graph.
    pub(crate) names: Vec<String>,
    /// Points that there is room for. With 1, only the last one is taken, as the goal.
    pub(crate) points: usize,
}

/// A message type with parts that are numbers.
pub(crate) trait Inward: RosMessage + DeserializeOwned + Send + 'static {
    /// What it holds.
    ///
    /// # Errors
    /// It is not what the spec wants.
    fn heard(self, wanted: &Wanted) -> Result<Heard, Refused>;
}

/// Where messages come in.
pub(crate) trait Intake: Send {
    /// The next message, with where it comes from and when it came.
    ///
    /// # Errors
    /// The network has failed.
    fn take(&self, wanted: &Wanted) -> Result<Taken, Fault>;
}

/// What a poll of a topic finds.
pub(crate) enum Taken {
    /// Nothing new.
    Nothing,
    /// Bytes that are no message of this type.
    Unreadable,
    /// A message.
    Message(Result<Heard, Refused>, Origin),
}

impl<M: Inward> Intake for TopicReader<M> {
    fn take(&self, wanted: &Wanted) -> Result<Taken, Fault> {
        Ok(match TopicReader::take(self)? {
            Received::Nothing => Taken::Nothing,
            Received::Unreadable => Taken::Unreadable,
            Received::Other(origin) => Taken::Message(Err(Refused::Type), origin),
            Received::Message(message, origin) => Taken::Message(message.heard(wanted), origin),
        })
    }
}

fn open<M: Inward>(
    session: &Session,
    topic: &str,
    qos: &QosProfile,
) -> Result<Box<dyn Intake>, Fault> {
    Ok(Box::new(session.subscribe::<M>(topic, qos)?))
}

/// Writes what was heard into a message of the graph. Fields without a mapping stay as they are.
///
/// # Errors
/// It may not enter the graph.
pub(crate) fn write(
    mut heard: Heard,
    mapping: &Mapping,
    slots: &[Slot],
    message: &mut [u8],
) -> Result<(), Refused> {
    if !heard.numbers.iter().flatten().all(|number| number.is_finite()) {
        return Err(Refused::NotFinite);
    }
    for ((places, slot), numbers) in mapping.slots.iter().zip(slots).zip(&mut heard.numbers) {
        if places.is_empty() {
            continue;
        }
        if numbers.len() != places.len() {
            return Err(Refused::Joints);
        }
        if slot.width == Width::Xyzw && !normalise(numbers) {
            return Err(Refused::NoRotation);
        }
        for (place, number) in places.iter().zip(numbers) {
            if place.is_some_and(|place| !place.write(message, *number)) {
                return Err(Refused::NotFinite);
            }
        }
    }
    Ok(())
}

fn xyz(vector: Vector3) -> Vec<f64> {
    vec![vector.x, vector.y, vector.z]
}

/// Where each joint of the graph stands in a message.
struct Order {
    places: Vec<usize>,
    /// How many joints the message has.
    joints: usize,
}

impl Order {
    fn of(wanted: &Wanted, names: &[String]) -> Result<Order, Refused> {
        if names.len() > JOINTS_MAX {
            return Err(Refused::Joints);
        }
        let place = |name: &String| names.iter().position(|it| it == name).ok_or(Refused::Joints);
        let places = wanted.names.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Order { places, joints: names.len() })
    }

    /// A list in the order of the graph; an empty one stays empty. A list that is not as long as
    /// the names is refused: nobody knows which number is of which joint.
    fn list(&self, list: &[f64]) -> Result<Vec<f64>, Refused> {
        match list.len() {
            0 => Ok(Vec::new()),
            joints if joints == self.joints => Ok(self.places.iter().map(|&at| list[at]).collect()),
            _ => Err(Refused::Joints),
        }
    }
}

fn framed(header: Header, heard: Heard) -> Heard {
    Heard { frame_id: header.frame_id, ..heard }
}

impl Inward for Twist {
    fn heard(self, _: &Wanted) -> Result<Heard, Refused> {
        let numbers = vec![xyz(self.linear), xyz(self.angular)];
        Ok(Heard { frame_id: String::new(), numbers })
    }
}

impl Inward for TwistStamped {
    fn heard(self, wanted: &Wanted) -> Result<Heard, Refused> {
        Ok(framed(self.header, self.twist.heard(wanted)?))
    }
}

impl Inward for Pose {
    fn heard(self, _: &Wanted) -> Result<Heard, Refused> {
        let (place, turned) = (self.position, self.orientation);
        let numbers =
            vec![vec![place.x, place.y, place.z], vec![turned.x, turned.y, turned.z, turned.w]];
        Ok(Heard { frame_id: String::new(), numbers })
    }
}

impl Inward for PoseStamped {
    fn heard(self, wanted: &Wanted) -> Result<Heard, Refused> {
        Ok(framed(self.header, self.pose.heard(wanted)?))
    }
}

impl Inward for JointState {
    fn heard(self, wanted: &Wanted) -> Result<Heard, Refused> {
        let order = Order::of(wanted, &self.name)?;
        let lists = [&self.position, &self.velocity, &self.effort];
        let numbers = lists.map(|list| order.list(list));
        let numbers = numbers.into_iter().collect::<Result<_, _>>()?;
        Ok(Heard { frame_id: self.header.frame_id, numbers })
    }
}

/// The points in order; the last one is repeated to fill the room. With room for one point only,
/// the last one.
impl Inward for JointTrajectory {
    fn heard(self, wanted: &Wanted) -> Result<Heard, Refused> {
        let order = Order::of(wanted, &self.joint_names)?;
        let room = wanted.points;
        let points = match &self.points[..] {
            [] => return Err(Refused::Points),
            [.., last] if room <= 1 => std::slice::from_ref(last),
            points if points.len() > room => return Err(Refused::Points),
            points => points,
        };
        let mut numbers = vec![Vec::new(); TRAJECTORY.len()];
        for at in 0..room.max(1) {
            let point = &points[at.min(points.len() - 1)];
            let lists = [&point.positions, &point.velocities, &point.accelerations, &point.effort];
            for (all, list) in numbers.iter_mut().zip(lists) {
                all.extend(order.list(list)?);
            }
            numbers[lists.len()].push(seconds(point.time_from_start));
        }
        numbers[TRAJECTORY.len() - 1].push(points.len() as f64);
        Ok(Heard { frame_id: self.header.frame_id, numbers })
    }
}

fn seconds(time: Duration) -> f64 {
    f64::from(time.sec) + f64::from(time.nanosec) / 1e9
}

#[cfg(test)]
mod tests;
