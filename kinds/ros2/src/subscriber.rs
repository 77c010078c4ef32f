//! Kind `ros2_subscriber`: a topic of ROS whose newest message goes into the graph.

mod hearing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_core::catalogue::{ANY_MESSAGE, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};
use sinew_spec::plan::Plan;

use self::hearing::Hearing;
use crate::session::{NOTE, Session};
use crate::topic::{DEPTH, Delivery, FIELDS, NAMES, PORT, TOPIC, Topic, frameless};
use crate::topics::inward::{INWARD, InwardType, Wanted};

/// Time between two polls of the topic: a message may be taken this much late.
const LOOK: Duration = Duration::from_millis(2);
/// The names of `INWARD`, for the table of parameters.
const TYPES: [&str; INWARD.len()] = {
    let mut names = [""; INWARD.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = INWARD[at].name;
        at += 1;
    }
    names
};

/// What the compiler knows of the kind.
pub(crate) const INFO: Kind = Kind {
    name: "ros2_subscriber",
    runs_in: RunsIn::Service,
    doc: "Subscribes to a topic of ROS 2. Of what has come since the last look, every 2 ms, the \
          newest message goes into the graph, if it arrived here no longer than 'after' ago. A \
          message of another type, frame or joints, with a number that is not finite or an invalid \
          rotation, is dropped and counted. Whoever reaches the network can send: link it with \
          a node of the core that limits what it takes and stops when nothing comes, never with an \
          actuator. Its domain needs a node of kind 'ros2_node'. docs/ros2.md.",
    ports: &[Port::output("out", "The message of the graph.", &ANY_MESSAGE)],
    parameters: &[
        TOPIC,
        Parameter::new("type", ParameterType::Choice(&TYPES)).doc("The type of its messages."),
        FIELDS,
        NAMES,
        Parameter::new("frame_id", ParameterType::Text)
            .or("")
            .doc("Messages of other frames are dropped; nothing: those of all frames are taken."),
        Parameter::new(
            "after",
            ParameterType::Duration { min_ns: 10_000_000, max_ns: 60_000_000_000 },
        )
        .or("100ms")
        .doc("Older messages do not enter the graph. By the time at which they arrived here."),
        Parameter::new("reliable", ParameterType::Bool).or("false").doc(
            "Whether lost messages are sent again (reliable); then messages from an outage of the \
             network come later. Only reliable writers are heard.",
        ),
        DEPTH,
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let ty = INWARD.iter().find(|row| row.name == parameters.text("type"));
    let ty = ty.ok_or_else(|| fault!("a type that is not in the table"))?;
    let delivery = Delivery { is_reliable: parameters.bool("reliable"), is_kept: false };
    Ok(Box::new(Subscriber {
        topic: Topic::of(parameters, ty.slots, delivery),
        wrong: frameless(parameters, ty.definition),
        ty,
        names: parameters.texts("names").to_vec(),
        frame_id: parameters.text("frame_id").to_owned(),
        after: parameters.duration("after"),
        live: None,
    }))
}

struct Subscriber {
    topic: Topic,
    /// What is wrong with the node, apart from its topic.
    wrong: Option<Refusal>,
    ty: &'static InwardType,
    names: Vec<String>,
    frame_id: String,
    after: Duration,
    /// Present from start to stop.
    live: Option<(Arc<Session>, Hearing)>,
}

impl Service for Subscriber {
    fn check(&self, _: &Plan, _: usize) -> Result<(), Vec<Refusal>> {
        let topic = self.topic.check().err().unwrap_or_default();
        let wrong: Vec<_> = self.wrong.iter().cloned().chain(topic).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn start(&mut self) -> Result<(), Fault> {
        if let Some(wrong) = &self.wrong {
            return Err(fault!("{wrong}"));
        }
        let (session, message, mapping) = self.topic.join()?;
        let intake = (self.ty.open)(&session, &self.topic.name, &self.topic.qos)?;
        let wanted = Wanted { names: self.names.clone(), points: mapping.points };
        let (bytes, asked) = (message.size as usize, Arc::clone(&session));
        let ask = Box::new(move |gid| asked.writer(gid));
        let hearing = Hearing::new(self.ty, ask, intake, wanted, mapping, bytes)
            .of_frame(self.frame_id.clone())
            .no_older_than(self.after);
        self.live = Some((session, hearing));
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let (session, hearing) = self.live.as_mut().expect("a service is started before it runs");
        let (node, topic, ty) = (session.node_name(), &self.topic.name, self.ty.name);
        tell(format_args!(
            "{node} listens to {}, {ty}, {}",
            session.name_of(topic)?,
            hearing.hash()
        ));
        let mut noted = Instant::now();
        while io.wait(LOOK) {
            hearing.look()?;
            if io.has_room(PORT)
                && let Some(message) = hearing.next()
            {
                io.send_bytes(PORT, &message)?;
            }
            hearing.report();
            if noted.elapsed() > NOTE {
                noted = Instant::now();
                session.note(io.name(), hearing.figures())?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.live = None;
    }
}
