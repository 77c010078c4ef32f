//! Kind `ros2_publisher`: publishes messages of the graph at a topic of ROS.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_core::catalogue::{ANY_MESSAGE, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};
use sinew_spec::plan::Plan;

use crate::fields::Mapping;
use crate::picture::{self, image};
use crate::session::{NOTE, Session};
use crate::topic::{DEPTH, Delivery, FIELDS, NAMES, PORT, TOPIC, Topic, frameless};
use crate::topics::outward::{Content, Labels, OUTWARD, Outlet, OutwardType, Unfit, now, numbers};

/// Time between two polls of the link, where every message is to be published.
const LOOK: Duration = Duration::from_millis(1);
/// Most messages taken in one poll: the heartbeat must come, however many there are.
const TAKEN_MAX: usize = 10_000;
/// The names of `OUTWARD`, for the table of parameters.
const TYPES: [&str; OUTWARD.len()] = {
    let mut names = [""; OUTWARD.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = OUTWARD[at].name;
        at += 1;
    }
    names
};

/// What the compiler knows of the kind.
pub(crate) const INFO: Kind = Kind {
    name: "ros2_publisher",
    runs_in: RunsIn::Service,
    doc: "Publishes what comes over a link at a topic of ROS 2: the newest message once in \
          'every', stamped with the time (UTC) at which it was taken from the link. A message with \
          a number that is not finite, or an invalid rotation, is dropped and counted. Without a \
          new message nothing goes out. Its domain needs a node of kind 'ros2_node'. \
          docs/ros2.md.",
    ports: &[Port::input("in", "The message of the graph.", &ANY_MESSAGE)],
    parameters: &[
        TOPIC,
        Parameter::new("type", ParameterType::Choice(&TYPES)).doc("The type of its messages."),
        FIELDS,
        NAMES,
        Parameter::new("frame_id", ParameterType::Text)
            .or("")
            .doc("The frame of all values; of a transform its parent frame."),
        Parameter::new("child_frame_id", ParameterType::Text)
            .or("")
            .doc("Of a transform: its child frame."),
        Parameter::new("every", ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 })
            .or("10ms")
            .doc(
                "At most one message in this time; 0s: each that the link still holds, 1 ms late.",
            ),
        Parameter::new("reliable", ParameterType::Bool).or("true").doc(
            "Whether lost messages are sent again (reliable). A reader that is reliable hears only \
             such writers. Pictures are never sent again.",
        ),
        Parameter::new("keep", ParameterType::Bool)
            .or("false")
            .doc("Whether a reader that comes later gets the last messages (transient local)."),
        DEPTH,
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let ty = OUTWARD.iter().find(|row| row.name == parameters.text("type"));
    let ty = ty.ok_or_else(|| fault!("a type that is not in the table"))?;
    let labels = Labels {
        names: parameters.texts("names").to_vec(),
        frame_id: parameters.text("frame_id").to_owned(),
        child_frame_id: parameters.text("child_frame_id").to_owned(),
    };
    let wrong = frames(parameters, ty, &labels).into_iter();
    let wrong = wrong.chain(frameless(parameters, ty.definition)).chain(link(parameters, ty));
    let wrong = wrong.collect();
    // Reliable delivery would keep thousands of pictures that no reader fetches.
    let is_reliable = parameters.bool("reliable") && !is_picture(ty);
    let delivery = Delivery { is_reliable, is_kept: parameters.bool("keep") };
    Ok(Box::new(Publisher {
        topic: Topic::of(parameters, ty.slots, delivery),
        ty,
        wrong,
        labels,
        every: parameters.duration("every"),
        publishing: None,
    }))
}

fn is_picture(ty: &OutwardType) -> bool {
    ty.slots.is_empty()
}

/// What is wrong with the frames.
fn frames(parameters: &Parameters<'_>, ty: &OutwardType, labels: &Labels) -> Option<Refusal> {
    let Labels { frame_id, child_frame_id, .. } = labels;
    let is_transform = ty.definition.name == "TFMessage";
    let refuse =
        |name, message: &str, help: &str| Some(Refusal::new(parameters.span(name), message, help));
    let slashed = [("frame_id", frame_id), ("child_frame_id", child_frame_id)];
    if let Some((name, _)) = slashed.iter().find(|(_, frame)| frame.starts_with('/')) {
        return refuse(
            name,
            "a frame begins with a slash",
            "tf2 does not take such frames; remove the slash",
        );
    }
    match (is_transform, child_frame_id.is_empty()) {
        (true, true) => refuse("child_frame_id", "the transform leads nowhere", "name a frame"),
        (true, false) if frame_id.is_empty() || frame_id == child_frame_id => {
            refuse("frame_id", "the transform begins nowhere", "name another frame")
        }
        (false, false) => {
            refuse("child_frame_id", "only a transform leads to a frame", "leave it out")
        }
        _ => None,
    }
}

/// What is wrong with the link of a picture.
fn link(parameters: &Parameters<'_>, ty: &OutwardType) -> Option<Refusal> {
    let (_, message) = parameters.messages.first().filter(|_| is_picture(ty))?;
    (!picture::is_picture(message)).then(|| {
        let message = format!("message {} is not a picture", message.name);
        Refusal::of_node(message, "link it with a camera, or with a player's decoder")
    })
}

struct Publisher {
    topic: Topic,
    ty: &'static OutwardType,
    /// What is wrong with the node, apart from its topic.
    wrong: Vec<Refusal>,
    labels: Labels,
    every: Duration,
    /// Present from start to stop.
    publishing: Option<Publishing>,
}

impl Service for Publisher {
    fn check(&self, _: &Plan, _: usize) -> Result<(), Vec<Refusal>> {
        let topic = self.topic.check().err().unwrap_or_default();
        let wrong: Vec<_> = self.wrong.iter().cloned().chain(topic).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn start(&mut self) -> Result<(), Fault> {
        if let Some(wrong) = self.wrong.first() {
            return Err(fault!("{wrong}"));
        }
        let (session, message, mapping) = self.topic.join()?;
        let outlet = (self.ty.open)(&session, &self.topic.name, &self.topic.qos)?;
        let (ty, labels) = (self.ty, self.labels.clone());
        let bytes = vec![0; message.size as usize];
        let tally = Tally::default();
        self.publishing = Some(Publishing { session, ty, outlet, mapping, labels, bytes, tally });
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let publishing = self.publishing.as_mut().expect("a service is started before it runs");
        publishing.begin(&self.topic.name)?;
        let (mut due, mut noted) = (Instant::now(), Instant::now());
        while io.wait(due.saturating_duration_since(Instant::now())) {
            match self.every.is_zero() {
                true => publishing.each(io)?,
                false => publishing.newest(io)?,
            }
            let pause = if self.every.is_zero() { LOOK } else { self.every };
            // After a delay, what was missed is not caught up.
            due = (due + pause).max(Instant::now());
            if noted.elapsed() > NOTE {
                noted = Instant::now();
                publishing.note(io.name())?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.publishing = None;
    }
}

/// A topic that is published.
struct Publishing {
    session: Arc<Session>,
    ty: &'static OutwardType,
    outlet: Box<dyn Outlet>,
    mapping: Mapping,
    labels: Labels,
    /// The message that was taken last.
    bytes: Vec<u8>,
    tally: Tally,
}

/// What became of the messages.
#[derive(Default)]
struct Tally {
    sent: u64,
    /// The network had no room.
    full: u64,
    not_finite: u64,
    no_rotation: u64,
    no_picture: u64,
    /// The sum of what was dropped, when it was last told.
    told: u64,
}

impl Publishing {
    fn begin(&self, topic: &str) -> Result<(), Fault> {
        let (name, ty) = (self.session.name_of(topic)?, self.ty);
        let (node, hash) = (self.session.node_name(), ty.definition.hash());
        tell(format_args!("{node} publishes at {name}, {}, {hash}", ty.name));
        Ok(())
    }

    /// Publishes all messages that the link holds, until the network has no room. A message without
    /// room waits for it, and thousands of such waits would hold up the heartbeat.
    fn each(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let full = self.tally.full;
        for _ in 0..TAKEN_MAX {
            if self.tally.full > full || !io.receive_bytes(PORT, &mut self.bytes)? {
                break;
            }
            self.send()?;
        }
        Ok(())
    }

    /// Publishes the newest message of the link, if there is one.
    fn newest(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut found = 0;
        while found < TAKEN_MAX && io.receive_bytes(PORT, &mut self.bytes)? {
            found += 1;
        }
        if found > 0 { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), Fault> {
        let stamp = now();
        let content = if is_picture(self.ty) {
            match image(&self.bytes) {
                Some(image) => Content::Picture(image),
                None => {
                    self.tally.no_picture += 1;
                    return Ok(());
                }
            }
        } else {
            match numbers(&self.mapping, self.ty.slots, &self.bytes) {
                Ok(numbers) => Content::Numbers(numbers),
                Err(unfit) => {
                    let tally = &mut self.tally;
                    *match unfit {
                        Unfit::NotFinite => &mut tally.not_finite,
                        Unfit::NoRotation => &mut tally.no_rotation,
                    } += 1;
                    return Ok(());
                }
            }
        };
        let is_sent = self.outlet.send(content, &self.labels, stamp)?;
        *(if is_sent { &mut self.tally.sent } else { &mut self.tally.full }) += 1;
        Ok(())
    }

    /// Hands over the figures. Prints what was dropped, if that has grown since it was last
    /// printed.
    fn note(&mut self, node: &str) -> Result<(), Fault> {
        let Tally { sent, full, not_finite, no_rotation, no_picture, told } = self.tally;
        let dropped = full + not_finite + no_rotation + no_picture;
        if dropped > told {
            self.tally.told = dropped;
            tell(format_args!(
                "dropped since the start: {full} without room, {not_finite} not finite, \
                 {no_rotation} no rotation, {no_picture} no picture"
            ));
        }
        let figures = vec![
            ("sent", sent),
            ("no room", full),
            ("not finite", not_finite),
            ("no rotation", no_rotation),
            ("no picture", no_picture),
        ];
        self.session.note(node, figures)
    }
}
