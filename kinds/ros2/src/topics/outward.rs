//! Messages of the graph that become messages of ROS.

use std::time::{SystemTime, UNIX_EPOCH};

use ros2_client::qos::QosProfile;
use serde::Serialize;
use sinew_core::Fault;

use super::{JOINTS, POSE, TWIST, normalise};
use crate::definition::{Definition, RosMessage};
use crate::fields::{Mapping, Slot, Width};
use crate::messages::{
    Header, Image, JointState, Point, Pose, PoseStamped, Quaternion, TFMessage, Time, Transform,
    TransformStamped, Twist, TwistStamped, Vector3,
};
use crate::session::{Session, TopicWriter};

/// A type that can be published.
pub(crate) struct OutwardType {
    /// What the spec calls it.
    pub(crate) name: &'static str,
    /// Its parts that are numbers; a picture has none.
    pub(crate) slots: &'static [Slot],
    /// Its definition.
    pub(crate) definition: &'static Definition,
    /// Publishes it at a topic.
    pub(crate) open: OpenOutlet,
}

/// Begins to publish at a topic.
type OpenOutlet = fn(&Session, &str, &QosProfile) -> Result<Box<dyn Outlet>, Fault>;

const TRANSFORM: &[Slot] = &[
    Slot { name: "translation", width: Width::Xyz, usual: &["position_m"] },
    Slot { name: "rotation", width: Width::Xyzw, usual: &["orientation_xyzw"] },
];

const fn row<M: Outward>(name: &'static str, slots: &'static [Slot]) -> OutwardType {
    OutwardType { name, slots, definition: M::DEFINITION, open: open::<M> }
}

/// All of them, one row each.
pub(crate) const OUTWARD: &[OutwardType] = &[
    row::<JointState>("sensor_msgs/msg/JointState", JOINTS),
    row::<TFMessage>("tf2_msgs/msg/TFMessage", TRANSFORM),
    row::<PoseStamped>("geometry_msgs/msg/PoseStamped", POSE),
    row::<Pose>("geometry_msgs/msg/Pose", POSE),
    row::<TwistStamped>("geometry_msgs/msg/TwistStamped", TWIST),
    row::<Twist>("geometry_msgs/msg/Twist", TWIST),
    row::<Image>("sensor_msgs/msg/Image", &[]),
];

/// What a message has beside its numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    /// Names of the joints.
    pub(crate) names: Vec<String>,
    /// The frame in which all values are given.
    pub(crate) frame_id: String,
    /// The frame that a transform leads to.
    pub(crate) child_frame_id: String,
}

/// What is published.
pub(crate) enum Content {
    /// For each slot its numbers; empty if no field stands for it.
    Numbers(Vec<Vec<f64>>),
    /// A picture; its header is filled in later.
    Picture(Image),
}

/// A message type with parts that are numbers, or a picture.
pub(crate) trait Outward: RosMessage + Serialize + Send + 'static {
    /// A message of this content.
    fn of(content: Content, labels: &Labels, stamp: Time) -> Self;
}

/// Where messages go out.
pub(crate) trait Outlet: Send {
    /// Sends one message. Returns whether there was room for it.
    ///
    /// # Errors
    /// The network has failed.
    fn send(&self, content: Content, labels: &Labels, stamp: Time) -> Result<bool, Fault>;
}

impl<M: Outward> Outlet for TopicWriter<M> {
    fn send(&self, content: Content, labels: &Labels, stamp: Time) -> Result<bool, Fault> {
        self.publish(M::of(content, labels, stamp))
    }
}

fn open<M: Outward>(
    session: &Session,
    topic: &str,
    qos: &QosProfile,
) -> Result<Box<dyn Outlet>, Fault> {
    Ok(Box::new(session.publish::<M>(topic, qos)?))
}

/// The time now, as ROS writes it.
pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // ROS cannot write a time after 2038.
    Time { sec: i32::try_from(now.as_secs()).unwrap_or(i32::MAX), nanosec: now.subsec_nanos() }
}

/// Why a message is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// A number is not finite.
    NotFinite,
    /// A rotation is not as long as 1.
    NoRotation,
}

/// The numbers of a message of the graph.
///
/// # Errors
/// They are not fit to be published.
pub(crate) fn numbers(
    mapping: &Mapping,
    slots: &[Slot],
    message: &[u8],
) -> Result<Vec<Vec<f64>>, Unfit> {
    let mut all = Vec::with_capacity(slots.len());
    for (places, slot) in mapping.slots.iter().zip(slots) {
        let read = |place: &Option<crate::fields::Place>| place.map_or(0.0, |it| it.read(message));
        let mut numbers: Vec<f64> = places.iter().map(read).collect();
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(Unfit::NotFinite);
        }
        let is_rotation = slot.width == Width::Xyzw && !numbers.is_empty();
        if is_rotation && !normalise(&mut numbers) {
            return Err(Unfit::NoRotation);
        }
        all.push(numbers);
    }
    Ok(all)
}

fn header(labels: &Labels, stamp: Time) -> Header {
    Header { stamp, frame_id: labels.frame_id.clone() }
}

/// The numbers of the slots; any other content is a bug of the table.
fn slots<const N: usize>(content: Content) -> [Vec<f64>; N] {
    let Content::Numbers(numbers) = content else { panic!("a picture where numbers were meant") };
    numbers.try_into().expect("as many as the type has slots")
}

/// At the origin, or at rest, if no field stands for it.
fn vector(numbers: &[f64]) -> Vector3 {
    let &[x, y, z] = numbers else { return Vector3::default() };
    Vector3 { x, y, z }
}

/// Not turned, if no field stands for it.
fn rotation(numbers: &[f64]) -> Quaternion {
    let &[x, y, z, w] = numbers else { return Quaternion { w: 1.0, ..Quaternion::default() } };
    Quaternion { x, y, z, w }
}

impl Outward for JointState {
    fn of(content: Content, labels: &Labels, stamp: Time) -> JointState {
        let [position, velocity, effort] = slots(content);
        let name = labels.names.clone();
        JointState { header: header(labels, stamp), name, position, velocity, effort }
    }
}

impl Outward for TFMessage {
    fn of(content: Content, labels: &Labels, stamp: Time) -> TFMessage {
        let [translation, turned] = slots(content);
        let (translation, rotation) = (vector(&translation), rotation(&turned));
        let transform = TransformStamped {
            header: header(labels, stamp),
            child_frame_id: labels.child_frame_id.clone(),
            transform: Transform { translation, rotation },
        };
        TFMessage { transforms: vec![transform] }
    }
}

impl Outward for Pose {
    fn of(content: Content, _: &Labels, _: Time) -> Pose {
        let [place, turned] = slots(content);
        let Vector3 { x, y, z } = vector(&place);
        Pose { position: Point { x, y, z }, orientation: rotation(&turned) }
    }
}

impl Outward for PoseStamped {
    fn of(content: Content, labels: &Labels, stamp: Time) -> PoseStamped {
        PoseStamped { header: header(labels, stamp), pose: Pose::of(content, labels, stamp) }
    }
}

impl Outward for Twist {
    fn of(content: Content, _: &Labels, _: Time) -> Twist {
        let [linear, angular] = slots(content);
        Twist { linear: vector(&linear), angular: vector(&angular) }
    }
}

impl Outward for TwistStamped {
    fn of(content: Content, labels: &Labels, stamp: Time) -> TwistStamped {
        TwistStamped { header: header(labels, stamp), twist: Twist::of(content, labels, stamp) }
    }
}

impl Outward for Image {
    fn of(content: Content, labels: &Labels, stamp: Time) -> Image {
        let Content::Picture(image) = content else { panic!("numbers where a picture was meant") };
        Image { header: header(labels, stamp), ..image }
    }
}
