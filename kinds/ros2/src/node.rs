//! Kind `ros2_node`: makes a domain a node of ROS, with its name and network, its parameters, its
//! services, and diagnostics of the run.

mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ros2_client::qos::{History, QosProfile};
use sinew_core::catalogue::{
    ANY_MESSAGE, Kind, MessageType, Parameter, ParameterType, Port, RunsIn,
};
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};
use sinew_spec::plan::Plan;

use self::told::Told;
use crate::diagnostics::{Seen, diagnose};
use crate::in_one;
use crate::messages::{DiagnosticArray, TFMessage, TransformStamped};
use crate::session::{NOTE, ParameterServices, Session, TopicWriter, name_of};
use crate::settings::{DOMAIN_MAX, KIND, MIDDLEWARE, Settings};
use crate::topics::outward::now;
use crate::transforms::{publish, transforms};
use crate::triggers::{Offered, Trigger, triggers};

const PARAMETERS: usize = 0;

/// Time between two polls. An order or a parameter may be noticed this much late.
const LOOK: Duration = Duration::from_millis(20);

/// What the compiler knows of the kind.
pub(crate) const INFO: Kind = Kind {
    name: KIND,
    runs_in: RunsIn::Observer,
    doc: "Makes its domain a node of ROS 2, over DDS or Zenoh and without ROS. Publishes the state \
          of the run at /diagnostics and transforms that never change at /tf_static, holds \
          parameters that 'ros2 param' reads and sets, and offers services (std_srvs/srv/Trigger) \
          that halt the core, start it again or restart a service. There is no password: everyone \
          who reaches the network can use all that is offered. The topics of the node are further \
          nodes of the domain, of kind 'ros2_publisher' and 'ros2_subscriber'. docs/ros2.md.",
    ports: &[Port::output(
        "parameters",
        "All parameters whenever one is set, and once a second: a message whose fields have their \
         names.",
        &ANY_MESSAGE,
    )
    .optional()],
    parameters: &[
        Parameter::new("ros_node", ParameterType::Text).or("sinew").doc("The node's name."),
        Parameter::new("namespace", ParameterType::Text)
            .or("/")
            .doc("Of the node, and of all names that do not begin with a slash."),
        Parameter::new("ros_domain", ParameterType::Integer { min: -1, max: DOMAIN_MAX as i64 })
            .or("-1")
            .doc("Its domain among those of ROS; -1: ROS_DOMAIN_ID of the environment, or 0."),
        Parameter::new("middleware", ParameterType::Choice(&MIDDLEWARE))
            .or(MIDDLEWARE[0])
            .doc("How it reaches others: by DDS, or by Zenoh as nodes with rmw_zenoh_cpp do."),
        Parameter::new("router", ParameterType::Text).or("").doc(
            "With zenoh: address and port of the router, which tells it of the others; nothing: \
             localhost:7447. The node goes on trying to reach it.",
        ),
        Parameter::new("network", ParameterType::Text).or("").doc(
            "With dds: address of the one interface at which others find it, such as 127.0.0.1; \
             nothing: all.",
        ),
        Parameter::new("parameters", ParameterType::Yaml).or("{}").doc(
            "Parameters that 'ros2 param' may read and set: {gain: 1.0, speed: {value: 0.5, min: \
             0, max: 2}}. The type is that of the first value.",
        ),
        Parameter::new("triggers", ParameterType::Yaml).or("{}").doc(
            "Services and what each does: {~/stop: halt, ~/camera: restart camera}; also reset \
             and stop.",
        ),
        Parameter::new("static_transforms", ParameterType::Yaml).or("[]").doc(
            "Frames that never move: [{frame_id: map, child_frame_id: base, translation: [0, 0, \
             1], rotation: [0, 0, 0, 1]}].",
        ),
        Parameter::new(
            "diagnostics",
            ParameterType::Duration { min_ns: 0, max_ns: 60_000_000_000 },
        )
        .or("1s")
        .doc("Between two messages at /diagnostics; 0s: none."),
        Parameter::new("hardware_id", ParameterType::Text)
            .or("")
            .doc("The machine, as diagnostics name it."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let mut wrong = Vec::new();
    let settings = or_wrong(Settings::of(parameters), &mut wrong);
    let triggers = or_wrong(triggers(parameters.yaml("triggers")), &mut wrong);
    let transforms = or_wrong(transforms(parameters.yaml("static_transforms")), &mut wrong);
    let triggers = triggers.unwrap_or_default();
    let mut told = None;
    if let Some(settings) = &settings {
        for trigger in &triggers {
            let name = settings.node_name().and_then(|node| name_of(&node, &trigger.name));
            if let Err(fault) = name {
                wrong.push(Refusal::new(parameters.span("triggers"), fault.text(), ""));
            }
        }
        if let Some((_, message)) = parameters.messages.first() {
            told = or_wrong(link(parameters, message, settings), &mut wrong);
        }
    }
    if parameters.neighbours().filter(|node| node.kind.name == KIND).count() > 1 {
        let help = "a domain is one node of ROS: give the other a separate domain";
        wrong.push(Refusal::of_node(format!("its domain has two nodes of kind '{KIND}'"), help));
    }
    let every = Some(parameters.duration("diagnostics")).filter(|it| !it.is_zero());
    let hardware_id = parameters.text("hardware_id").to_owned();
    let transforms = transforms.unwrap_or_default();
    let live = None;
    Ok(Box::new(RosNode { settings, triggers, transforms, told, every, hardware_id, wrong, live }))
}

fn or_wrong<T>(result: Result<T, Vec<Refusal>>, wrong: &mut Vec<Refusal>) -> Option<T> {
    result.map_err(|refusals| wrong.extend(refusals)).ok()
}

/// How the parameters become a message of the graph.
fn link(
    parameters: &Parameters<'_>,
    message: &'static MessageType,
    settings: &Settings,
) -> Result<Told, Vec<Refusal>> {
    if parameters.messages.iter().any(|(_, other)| *other != message) {
        let help = "link it with nodes that take the same message";
        return Err(vec![Refusal::of_node("its links carry different messages", help)]);
    }
    Told::of(message, &settings.declared, parameters.span("parameters"))
}

struct RosNode {
    settings: Option<Settings>,
    triggers: Vec<Trigger>,
    transforms: Vec<TransformStamped>,
    /// Present if the port is linked.
    told: Option<Told>,
    /// Time between two diagnoses, if there are any.
    every: Option<Duration>,
    hardware_id: String,
    wrong: Vec<Refusal>,
    /// Present from start to stop.
    live: Option<Live>,
}

/// What the node has in the network of ROS while it runs.
struct Live {
    session: Arc<Session>,
    offered: Vec<Offered>,
    parameters: Option<ParameterServices>,
    diagnostics: Option<TopicWriter<DiagnosticArray>>,
    /// Nodes that come later get the transforms from it.
    _transforms: Option<TopicWriter<TFMessage>>,
}

impl Live {
    /// Answers the calls that wait.
    fn look(&self, io: &mut ServiceIo) -> Result<(), Fault> {
        let watch = io.watch();
        self.offered.iter().try_for_each(|offered| offered.look(watch))?;
        self.parameters.as_ref().map_or(Ok(()), ParameterServices::answer)
    }

    /// Fails if the session has failed. Says so if the router has come or gone.
    fn check(&self, had_router: &mut Option<bool>) -> Result<(), Fault> {
        self.session.check()?;
        let Some((address, has_router)) = self.session.router() else { return Ok(()) };
        if had_router.replace(has_router) != Some(has_router) {
            tell(match has_router {
                true => format!("the router at {address} is there"),
                false => format!(
                    "no router at {address}; start one, such as 'ros2 run rmw_zenoh_cpp \
                     rmw_zenohd': the node goes on trying"
                ),
            });
        }
        Ok(())
    }
}

impl Service for RosNode {
    fn check(&self, plan: &Plan, _: usize) -> Result<(), Vec<Refusal>> {
        let triggers = self.triggers.iter().filter_map(|trigger| trigger.check(plan));
        let wrong: Vec<_> = self.wrong.iter().cloned().chain(triggers).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn start(&mut self) -> Result<(), Fault> {
        let settings = self.settings.as_ref().filter(|_| self.wrong.is_empty());
        let settings = settings.ok_or_else(|| fault!("{}", in_one(&self.wrong)))?;
        let session = Session::join(settings)?;
        let offered = self.triggers.iter().map(|trigger| trigger.offer(&session));
        let offered = offered.collect::<Result<_, _>>()?;
        let qos = QosProfile::publisher_default().history(History::KeepLast { depth: 1 });
        let diagnostics = self.every.map(|_| session.publish("/diagnostics", &qos)).transpose()?;
        let transforms = match &self.transforms[..] {
            [] => None,
            transforms => Some(publish(&session, transforms)?),
        };
        let parameters = session.parameters()?;
        let _transforms = transforms;
        self.live = Some(Live { session, offered, parameters, diagnostics, _transforms });
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let live = self.live.as_ref().expect("a service is started before it runs");
        tell(format_args!("is {} in {}", live.session.node_name(), live.session.place()));
        let (mut seen, mut due, mut checked) = (Seen::default(), Instant::now(), Instant::now());
        let mut had_router = None;
        while io.wait(LOOK) {
            live.look(io)?;
            if let Some(told) = &mut self.told {
                told.send(&live.session.values, |message| {
                    if io.has_room(PARAMETERS) {
                        io.send_bytes(PARAMETERS, message)
                    } else {
                        Ok(false)
                    }
                })?;
            }
            if checked.elapsed() > NOTE {
                checked = Instant::now();
                live.check(&mut had_router)?;
            }
            if let Some((every, publisher)) = self.every.zip(live.diagnostics.as_ref())
                && Instant::now() >= due
            {
                due = Instant::now() + every;
                let status = io.watch().supervisor().status()?;
                let diagnosis =
                    diagnose(&status, &live.session, &self.hardware_id, now(), &mut seen);
                // Without room no reader keeps up, and the next diagnosis is due soon.
                let _ = publisher.publish(diagnosis);
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.live = None;
    }
}
