//! What published and subscribed topics share: name, delivery, and the mapping of the fields.

use std::sync::Arc;

use ros2_client::qos::{Durability, History, QosProfile, WhenFull};
use sinew_core::catalogue::{Direction, MessageType, Parameter, ParameterType};
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_spec::Data;

use crate::definition::Definition;
use crate::fields::{Mapping, Slot, Width, map};
use crate::in_one;
use crate::session::{Session, name_of};
use crate::settings::Settings;

/// The one port.
pub(crate) const PORT: usize = 0;
/// Most joints of a topic.
const NAMES_MAX: usize = 256;
/// How long a new message waits for room. For a reliable reader that does not acknowledge, `depth`
/// messages are kept. When these are full, a new one waits this long; then it is dropped, and
/// counted.
const ROOM_WAIT: std::time::Duration = std::time::Duration::from_millis(10);

pub(crate) const TOPIC: Parameter = Parameter::new("topic", ParameterType::Text).doc(
    "Its name: '/tf' stands for itself, 'joint_states' is in the node's namespace, '~/state' below \
     the node's name.",
);
pub(crate) const FIELDS: Parameter = Parameter::new("fields", ParameterType::Yaml).or("{}").doc(
    "Which field of the graph's message stands for which part of ROS's: {position: position_rad}; \
     {linear.x: speed_m_per_s} for one number, {position: [a_m, b_m[0], 'c_m[1]']} for several \
     fields, {position: {field: place_mm, scale: 0.001}} for other units. Without it, fields with \
     the usual names.",
);
pub(crate) const NAMES: Parameter =
    Parameter::new("names", ParameterType::Texts { max: NAMES_MAX })
        .or("[]")
        .doc("Of a type with joints: their names in URDF, in the order of the fields.");
pub(crate) const DEPTH: Parameter =
    Parameter::new("depth", ParameterType::Integer { min: 1, max: 1000 })
        .or("10")
        .unit("messages")
        .doc("Messages that are kept for readers, or for this node between two looks.");

/// What is known of a topic before it begins.
pub(crate) struct Topic {
    /// The name as the spec writes it.
    pub(crate) name: String,
    /// The identity of the domain. `None`: it is wrong, which is reported elsewhere.
    settings: Option<Settings>,
    /// The fields, and the message of the graph that has them; or what is wrong.
    mapped: Result<Option<(&'static MessageType, Mapping)>, Vec<Refusal>>,
    /// How it is delivered.
    pub(crate) qos: QosProfile,
}

/// How messages are delivered. Reliable: each is sent until the reader has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) is_reliable: bool,
    /// Whether readers that come later get the last messages.
    pub(crate) is_kept: bool,
}

impl Topic {
    /// Reads the parameters of a node with these slots.
    pub(crate) fn of(parameters: &Parameters<'_>, slots: &[Slot], delivery: Delivery) -> Topic {
        let name = parameters.text("topic").to_owned();
        let mut wrong = Vec::new();
        let settings = Settings::of_domain(parameters).unwrap_or_else(|refusal| {
            wrong.push(refusal);
            None
        });
        if let Some(Err(fault)) = settings.as_ref().map(|it| is_name(it, &name)) {
            wrong.push(Refusal::new(parameters.span("topic"), fault.text(), ""));
        }
        let message = message(parameters).unwrap_or_else(|refusal| {
            wrong.push(refusal);
            None
        });
        let mapped = message.map(|message| (message, mapping(parameters, slots, message)));
        let mapped = match mapped {
            Some((_, Err(refusals))) => {
                wrong.extend(refusals);
                None
            }
            Some((message, Ok(mapping))) => Some((message, mapping)),
            None => None,
        };
        let mapped = if wrong.is_empty() { Ok(mapped) } else { Err(wrong) };
        let qos = qos(delivery, parameters.integer("depth") as usize);
        Topic { name, settings, mapped, qos }
    }

    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), Vec<Refusal>> {
        self.mapped.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Takes part in the session of the domain.
    ///
    /// # Errors
    /// The topic is not as it should be, or the network refuses it.
    pub(crate) fn join(&self) -> Result<(Arc<Session>, &'static MessageType, Mapping), Fault> {
        let wrong = |refusals: &Vec<Refusal>| fault!("{}", in_one(refusals));
        let mapped = self.mapped.as_ref().map_err(wrong)?;
        let (message, mapping) = mapped.clone().ok_or_else(|| fault!("nothing is linked to it"))?;
        let settings = self.settings.as_ref();
        let settings = settings.ok_or_else(|| fault!("its domain is not a node of ROS"))?;
        Ok((Session::join(settings)?, message, mapping))
    }
}

/// Refuses a frame for a type whose messages name none.
pub(crate) fn frameless(parameters: &Parameters<'_>, definition: &Definition) -> Option<Refusal> {
    let is_lost = !definition.has_frame() && !parameters.text("frame_id").is_empty();
    is_lost.then(|| {
        let message = format!("a {} names no frame", definition.name);
        let help = "leave it out, or take a type with a header, such as those that end in Stamped";
        Refusal::new(parameters.span("frame_id"), message, help)
    })
}

fn is_name(settings: &Settings, topic: &str) -> Result<(), Fault> {
    name_of(&settings.node_name()?, topic).map(|_| ())
}

/// The one message type that crosses the links of the port; `None`: there is no link.
fn message(parameters: &Parameters<'_>) -> Result<Option<&'static MessageType>, Refusal> {
    let mut messages = parameters.messages.iter().map(|(_, message)| *message);
    let first = messages.next();
    if let Some((first, other)) = first.zip(messages.find(|it| Some(*it) != first)) {
        let (first, other) = (first.name, other.name);
        let port = parameters.kind.port(PORT);
        let way = if port.direction == Direction::In { "from" } else { "to" };
        let message = format!("links {way} '{}' carry {first} and {other}", port.name);
        return Err(Refusal::of_node(
            message,
            "one topic is one message: add a node for the other",
        ));
    }
    Ok(first)
}

/// The places of all parts, or what is wrong with them.
fn mapping(
    parameters: &Parameters<'_>,
    slots: &[Slot],
    message: &MessageType,
) -> Result<Mapping, Vec<Refusal>> {
    let names = parameters.texts("names");
    let has_joints =
        slots.iter().any(|slot| matches!(slot.width, Width::Joints | Width::JointPoints));
    let span = parameters.span("names");
    if has_joints == names.is_empty() {
        let (message, help) = match has_joints {
            true => ("it does not know the names of the joints", "write names: [a, b], as in URDF"),
            false => ("this type has no joints", "leave 'names' out"),
        };
        return Err(vec![Refusal::new(span, message, help)]);
    }
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    if let Some(at) = twice {
        let message = format!("two joints are named '{}'", names[at]);
        return Err(vec![Refusal::new(span, message, "each joint has a name of its own")]);
    }
    let fields = parameters.yaml("fields");
    if slots.is_empty() && matches!(&fields.data, Data::Map(entries) if entries.is_empty()) {
        return Ok(Mapping::default());
    }
    map(slots, fields, message, names.len())
}

fn qos(delivery: Delivery, depth: usize) -> QosProfile {
    let Delivery { is_reliable, is_kept } = delivery;
    let durability = if is_kept { Durability::TransientLocal } else { Durability::Volatile };
    let qos = QosProfile::default().durability(durability).history(History::KeepLast { depth });
    match is_reliable {
        true => qos.reliability_reliable(WhenFull::Wait(ROOM_WAIT)),
        false => qos.reliability_best_effort(),
    }
}
