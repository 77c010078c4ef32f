//! Services and parameters, called by ros2-client. That is the same code on both sides, so a weak
//! test. There was no other client to use: Cyclone's Python package cannot say which request a
//! reply answers.

use std::time::{Duration, Instant};

use ros2_client::dds::rustdds::DomainParticipantBuilder;
use ros2_client::dds::{Client, Context, Node, ServiceMapping};
use ros2_client::qos::{History, QosProfile};
use ros2_client::{Message, Name, NodeName, NodeOptions, ServiceTypeName};
use serde::{Deserialize, Serialize};
use sinew_control::status::EventKind;

use crate::Test;
use crate::stage::{PATIENCE, Stage, domain};

pub(crate) const TESTS: &[Test] = &[
    ("a_trigger_restarts_a_service_and_another_halts_the_run", triggers_are_obeyed),
    ("a_parameter_is_read_and_set_within_its_limits", a_parameter_is_set),
];

const GAIN: usize = 3;
const LAMP: usize = 4;

const GRAPH: &str = "
name: cart
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  film: {heartbeat: 60s, start_deadline: 60s}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - {kind: cart, name: cart, domain: control, ports: {state: [{name: place, port: in}]}}
  - kind: film
    name: film
    domain: film
    ports: {out: [{name: images, port: in, delivery: queue, capacity: 4}]}
  - kind: ros2_node
    name: node
    domain: ros
    ros_node: cart
    ros_domain: DOMAIN
    network: 127.0.0.1
    parameters: {gain: {value: 1.5, min: 0, max: 2}, lamp: false, place: yard}
    triggers: {~/film: restart film, /halt: halt}
    ports: {parameters: [{name: cart, port: tuning}]}
  - {kind: ros2_publisher, name: place, domain: ros, topic: pose, type: geometry_msgs/msg/Pose}
  - {kind: ros2_publisher, name: images, domain: ros, topic: image_raw, type: sensor_msgs/msg/Image}
";

/// A node that calls the services of another node.
struct Caller {
    node: Node,
}

#[derive(Clone, Serialize, Deserialize)]
struct Nothing {
    structure_needs_at_least_one_member: u8,
}

#[derive(Debug, Serialize, Deserialize)]
struct Done {
    success: bool,
    message: String,
}

/// `rcl_interfaces/msg/ParameterValue`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Value {
    ty: u8,
    boolean: bool,
    integer: i64,
    double: f64,
    string: String,
    bytes: Vec<u8>,
    booleans: Vec<bool>,
    integers: Vec<i64>,
    doubles: Vec<f64>,
    strings: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct SetParameters {
    parameters: Vec<(String, Value)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct AreSet {
    results: Vec<(bool, String)>,
}

#[derive(Clone, Serialize, Deserialize)]
struct GetParameters {
    names: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Got {
    values: Vec<Value>,
}

impl Message for Nothing {}
impl Message for Done {}
impl Message for SetParameters {}
impl Message for AreSet {}
impl Message for GetParameters {}
impl Message for Got {}

impl Caller {
    fn new() -> Caller {
        let builder = DomainParticipantBuilder::new(domain().parse().expect("a number"));
        let participant = builder.with_only_networks([std::net::Ipv4Addr::LOCALHOST]).build();
        let context = Context::from_domain_participant(participant.expect("a participant"));
        let name = NodeName::new("/", "caller").expect("a name");
        let node = context.expect("a context").new_node(name, NodeOptions::new());
        Caller { node: node.expect("a node") }
    }

    fn client<Q, A>(&mut self, name: &str, package: &str, ty: &str) -> Client<Q, A>
    where
        Q: Message + Clone + 'static,
        A: Message + 'static,
    {
        let qos = QosProfile::publisher_default().history(History::KeepLast { depth: 10 });
        let (name, ty) = (Name::parse(name).expect("a name"), ServiceTypeName::new(package, ty));
        let mapping = ServiceMapping::Enhanced;
        self.node.create_client(mapping, &name, &ty, qos.clone(), qos).expect("a client")
    }
}

/// Asks until there is an answer: nothing tells when client and server have found each other.
fn call<Q, A>(stage: &mut Stage, client: &Client<Q, A>, question: &Q) -> A
where
    Q: Message + Clone + 'static,
    A: Message + 'static,
{
    let (mut asked, mut answer) = (None::<Instant>, None);
    stage.until("there is an answer", |_| {
        if asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(3)) {
            client.send_request(question.clone()).expect("it asks");
            asked = Some(Instant::now());
        }
        answer = client.receive_response().expect("it listens");
        answer.is_some()
    });
    answer.expect("just received").1
}

fn triggers_are_obeyed() {
    let mut stage = Stage::start(GRAPH);
    stage.until("it runs", |stage| stage.said("ros", "is /cart in domain"));
    let mut caller = Caller::new();
    let film = caller.client::<Nothing, Done>("/cart/film", "std_srvs", "Trigger");
    let nothing = Nothing { structure_needs_at_least_one_member: 0 };
    let done = call(&mut stage, &film, &nothing);
    assert!(done.success, "{done:?}");
    stage.until("the film is started again", |stage| {
        stage.texts(EventKind::Ready, "film").len() > 1
    });
    assert!(stage.said("ros", "ROS asked at '~/film': done"));
    let halt = caller.client::<Nothing, Done>("/halt", "std_srvs", "Trigger");
    halt.send_request(nothing.clone()).expect("it asks");
    let begun = Instant::now();
    while stage.goes_on() {
        assert!(begun.elapsed() < PATIENCE, "it does not halt");
        // The first requests may have been sent before the two had found each other.
        let _ = halt.send_request(nothing.clone());
    }
}

fn a_parameter_is_set() {
    let mut stage = Stage::start(GRAPH);
    stage.until("the core knows it", |stage| stage.signals.get(GAIN) == Some(&1.5));
    let mut caller = Caller::new();
    let get = caller.client::<GetParameters, Got>(
        "/cart/get_parameters",
        "rcl_interfaces",
        "GetParameters",
    );
    let names = ["gain", "lamp", "place", "nothing"].map(str::to_owned).to_vec();
    let got = call(&mut stage, &get, &GetParameters { names });
    let types: Vec<_> = got.values.iter().map(|value| value.ty).collect();
    assert_eq!(types, [3, 1, 4, 0], "{got:?}");
    assert_eq!((got.values[0].double, got.values[2].string.as_str()), (1.5, "yard"));

    let set = caller.client::<SetParameters, AreSet>(
        "/cart/set_parameters",
        "rcl_interfaces",
        "SetParameters",
    );
    let double = |double| Value { ty: 3, double, ..Value::default() };
    let lit = Value { ty: 1, boolean: true, ..Value::default() };
    let parameters = [
        ("gain", double(0.5)),
        ("lamp", lit.clone()),
        ("gain", double(2.5)),
        ("gain", double(f64::NAN)),
        ("gain", lit),
        ("unknown", double(1.0)),
        ("gain", Value::default()),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let are_set = call(&mut stage, &set, &SetParameters { parameters });
    let good: Vec<_> = are_set.results.iter().map(|(good, _)| *good).collect();
    assert_eq!(good, [true, true, false, false, false, false, false], "{are_set:?}");
    assert_eq!(are_set.results[2].1, "'gain' is from 0 to 2");
    stage.until("the core has them", |stage| {
        (stage.signals[GAIN], stage.signals[LAMP]) == (0.5, 1.0)
    });
    stage.stop();
}
