//! Two domains in one process, and one domain whose other side the test plays.

mod relayed;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::BytesMut;
use bytestring::ByteString;
use sinew_core::clock::Clock;
use sinew_core::{Made, Parameters};
use sinew_otlp::SpanContext;
use sinew_spec::catalogue::{Kind, Parameter, ParameterType};
use sinew_spec::plan::Plan;
use tokio::task::{spawn_local, yield_now};

use super::called::{Called, receive};
use super::caller::{Caller, Callers, stand_in};
use super::frame::{Frame, SentPacket};
use crate::at_work::AtWork;
use crate::path::program::Base;
use crate::resource::Resources;
use crate::tell::Teller;
use crate::testing::{BEGIN, run, try_plan};
use crate::{
    At, Document, Error, FLOW, Figures, Flow, FlowEntry, FlowLimits, FlowNode, Make, NodeContext,
    Pool, Program, Reply, Step, Value, input, make,
};

/// Longest that a flow may take; past it the flow hangs.
const LIMIT: Duration = Duration::from_secs(20);

static ACT: Kind = Kind {
    name: "act",
    doc: "Does what the packet says.",
    ports: &[input("in", "The packet.")],
    parameters: &[Parameter::new("value", ParameterType::Integer { min: 0, max: 9 }).or("7")],
    ..FLOW
};

struct Act(i64);

fn act(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Act(parameters.integer("value"))))
}

impl FlowNode for Act {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match packet.as_text() {
            Some("fail") => Step::Fail(failure()),
            None if matches!(packet, Value::Document(_)) => Step::answer(read(&packet)),
            Some("nothing") => Step::Reply(None),
            Some("wait") => Step::wait(std::future::pending()),
            Some("work") => match at.flow().spend(1000) {
                Ok(()) => Step::Reply(Some(Value::Integer(self.0))),
                Err(error) => Step::Fail(error),
            },
            _ => Step::Reply(Some(Value::list([packet, Value::Integer(self.0)]))),
        }
    }
}

/// What can be read of a document: its number, the number of the document in it, why a field of
/// that one is broken, and which fields were sent.
fn read(packet: &Value) -> Reply {
    let Value::Document(document) = packet else { panic!("no document") };
    let sent = document.names().iter().map(|name| Value::Bool(document.is_sent(name)));
    let inner = packet.field("inner")?;
    let broken = inner.field("broken").expect_err("broken").status();
    let numbers = [packet.field("number")?, inner.field("number")?];
    let known = numbers.into_iter().chain([Value::Integer(broken.into())]);
    Ok(Some(Value::list(known.chain(sent))))
}

/// A request of which one field cannot be made. The flag says whether it contains another request.
#[derive(Debug)]
struct Asked(bool);

impl Document for Asked {
    fn field(&self, name: &str) -> Result<Value, Error> {
        match name {
            "number" => Ok(Value::Integer(5)),
            "inner" if self.0 => Ok(Value::Document(Arc::new(Asked(false)))),
            "inner" => Ok(Value::Null),
            _ => Err(failure()),
        }
    }

    fn names(&self) -> &[ByteString] {
        static NAMES: LazyLock<[ByteString; 3]> =
            LazyLock::new(|| ["number", "broken", "inner"].map(ByteString::from_static));
        &*NAMES
    }

    fn is_sent(&self, name: &str) -> bool {
        name == "broken"
    }
}

fn failure() -> Error {
    let error = Error::new("as it was told").with_status(418).with_header("x-tea", "pot");
    error.with_shown(Value::map([("tea", Value::Bytes(b"\xff".as_slice().into()))]))
}

/// The domains of [`GRAPH`]: they stop in this order.
const HERE: usize = 0;
const THERE: usize = 1;

const GRAPH: &str = "
domains: {here: {}, there: {}}
domain: here
nodes:
  - {kind: begin, name: begin, ports: {out: [{name: far, port: in}]}}
  - {kind: act, name: far, domain: there}
";

fn plan() -> Arc<Plan> {
    let plan = try_plan(GRAPH, &[BEGIN.kind, &ACT]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((&*plan.domains[HERE].name, &*plan.domains[THERE].name), ("here", "there"));
    assert_eq!(plan.doors().into_iter().collect::<Vec<_>>(), [(HERE, THERE)]);
    plan
}

fn program(plan: &Arc<Plan>, domain: usize, callers: Callers) -> Rc<Program> {
    let nodes: Vec<usize> =
        (0..plan.nodes.len()).filter(|&node| plan.nodes[node].domain == domain).collect();
    let (clock, figures) = (Clock::calibrate(), Arc::<Figures>::default());
    let mut base = Base::new((0, 1), clock, figures, Teller::direct(), AtWork::new());
    base.stand_in = stand_in(&callers);
    let (pool, resources) = (Pool::start(1).expect("a thread"), Resources::of_trial());
    let site = |node| NodeContext::alone(node, plan, &pool, (&resources, &Arc::default()));
    let table = [BEGIN, FlowEntry { kind: &ACT, make: Make::Node(act) }];
    let made = make::program(plan, &nodes, &table, Path::new("."), &base, site);
    Rc::new(made.unwrap_or_else(|(_, refusals)| panic!("{refusals:?}")))
}

fn door() -> (OwnedFd, OwnedFd) {
    let (out, into) = UnixDatagram::pair().expect("sockets");
    (out.into(), into.into())
}

/// The side that calls.
struct Here {
    program: Rc<Program>,
    caller: Rc<Caller>,
}

impl Here {
    fn begin(plan: &Arc<Plan>, door: OwnedFd) -> Here {
        let caller = Rc::new(Caller::new("there", door, Teller::direct()));
        let callers = Callers::from([(THERE, Rc::clone(&caller))]);
        caller.begin();
        Here { program: program(plan, HERE, callers), caller }
    }

    async fn connected(&self) {
        self.caller.connected().await;
    }

    fn flow(&self, deadline: Duration, work: u64) -> Flow {
        let flow = Flow::new(Rc::clone(&self.program));
        flow.limit(FlowLimits { deadline, work });
        flow
    }

    async fn send(&self, packet: Value) -> Reply {
        self.send_in(&self.flow(LIMIT, 100_000), packet).await
    }

    async fn send_in(&self, flow: &Flow, packet: Value) -> Reply {
        flow.open(self.program.find("begin").expect("the source"), 0, packet).await
    }
}

/// Both sides.
async fn both() -> (Here, Rc<Program>, Called) {
    let (plan, (out, into)) = (plan(), door());
    let there = program(&plan, THERE, Callers::new());
    let called = Called::new(Rc::clone(&there), Teller::direct());
    called.begin(into);
    let here = Here::begin(&plan, out);
    here.connected().await;
    (here, there, called)
}

#[test]
fn a_packet_crosses_and_what_comes_of_it_comes_back() {
    run(async {
        let (here, there, _called) = both().await;
        let packet = Value::map([
            ("bytes", Value::Bytes(b"\0\xff".as_slice().into())),
            ("number", Value::Integer(i64::MIN)),
            ("list", Value::list([Value::Null, Value::Number(0.1)])),
        ]);
        let expected = Value::list([packet.clone(), Value::Integer(7)]);
        assert_eq!(here.send(packet).await, Ok(Some(expected)));
        assert_eq!(here.send(Value::text("nothing")).await, Ok(None));
        let of_document = here.send(Value::Document(Arc::new(Asked(true)))).await;
        let known = [5, 5, 418].map(Value::Integer);
        let sent = [false, true, false].map(Value::Bool);
        assert_eq!(of_document, Ok(Some(Value::list(known.into_iter().chain(sent)))));
        let error = here.send(Value::text("fail")).await.expect_err("a failure");
        let said = (error.text(), error.status(), error.shown(), error.headers());
        let failure = failure();
        assert_eq!(said, (failure.text(), 418, failure.shown(), failure.headers()));
        assert_eq!(error.node().map(|name| &**name), Some("far"));
        assert_eq!((here.program.flows(), there.flows()), (0, 0));
    });
}

#[test]
fn deadline_work_and_cancel_hold_on_both_sides() {
    run(async {
        let (here, there, _called) = both().await;
        let flow = here.flow(Duration::from_millis(100), 100_000);
        let error = here.send_in(&flow, Value::text("wait")).await.expect_err("late");
        let named = error.node().map(|name| &**name);
        assert_eq!((error.status(), named), (504, Some("far")));
        let flow = here.flow(LIMIT, 500);
        let error = here.send_in(&flow, Value::text("work")).await.expect_err("too much work");
        assert_eq!(error.status(), 503);
        let flow = here.flow(LIMIT, 5000);
        assert!(here.send_in(&flow, Value::text("work")).await.is_ok());
        assert!(flow.work_left() < 4000, "{} left", flow.work_left());
        let begun = here.flow(LIMIT, 100_000);
        let waits = here.send_in(&begun, Value::text("wait"));
        tokio::select! {
            reply = waits => panic!("{reply:?}"),
            () = async { while there.flows() == 0 { yield_now().await } } => {}
        }
        while there.flows() > 0 {
            yield_now().await;
        }
    });
}

#[test]
fn after_a_close_packets_are_refused_and_what_is_under_way_is_answered() {
    run(async {
        let (here, _, called) = both().await;
        called.close();
        let error = here.send(Value::Null).await.expect_err("closed");
        assert_eq!((error.status(), error.text()), (503, "its domain stops"));
        called.all_said().await;
    });
}

/// The other side, played by the test.
struct ByHand {
    door: OwnedFd,
    stream: Option<UnixStream>,
}

impl ByHand {
    async fn take(&mut self) {
        self.stream = loop {
            match receive(&self.door) {
                Ok(stream) => break Some(stream),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let stream = self.stream.as_ref().expect("just taken");
        stream.set_nonblocking(true).expect("a socket");
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.as_mut().expect("taken").write_all(bytes).expect("room");
    }

    async fn hear(&mut self) -> Frame {
        let (mut come, mut bytes) = (BytesMut::new(), [0; 4096]);
        loop {
            if let Some(frame) = Frame::take(&mut come).expect("a frame") {
                return frame;
            }
            match self.stream.as_mut().expect("taken").read(&mut bytes) {
                Ok(len) => come.extend_from_slice(&bytes[..len]),
                Err(_) => yield_now().await,
            }
        }
    }
}

#[test]
fn when_the_other_side_ends_who_waits_hears_it_and_the_next_process_is_found() {
    run(async {
        let (plan, (out, into)) = (plan(), door());
        let here = Rc::new(Here::begin(&plan, out));
        let mut there = ByHand { door: into, stream: None };
        let hello = Frame::Hello.bytes().expect("short");
        let error = here.send(Value::Null).await.expect_err("nobody is there");
        assert_eq!(error.status(), 503);
        // Garbage, a false length, and a plain end.
        for end in [&b"\x01\0\0\0\xff"[..], b"\xff\xff\xff\xff", b""] {
            there.take().await;
            there.say(&hello);
            here.connected().await;
            let sends = Rc::clone(&here);
            let waits = spawn_local(async move { sends.send(Value::text("x")).await });
            let Frame::Call(SentPacket { node, input, .. }) = there.hear().await else {
                panic!("a call")
            };
            assert_eq!((&*node, &*input), ("far", "in"));
            there.say(end);
            there.stream.take();
            let error = waits.await.expect("no panic").expect_err("its end");
            assert_eq!(error.status(), 502, "{error}");
            assert_eq!(here.send(Value::Null).await.expect_err("gone").status(), 503);
        }
    });
}

/// A value whose texts are copied out of its frame.
fn long() -> Value {
    Value::list([Value::text("x".repeat(5000)), Value::Bytes(vec![7; 5000].into())])
}

#[test]
fn frames_are_what_they_were_and_nothing_else_is_one() {
    let call = SentPacket {
        id: 7,
        node: "a/b".into(),
        input: "in".into(),
        deadline_ms: u64::MAX,
        work: 3,
        context: None,
        packet: Value::text("x"),
    };
    let context = SpanContext { trace: 1, span: 2, is_sampled: true, state: Some("a=1".into()) };
    let sent = [
        Frame::Hello,
        Frame::Call(SentPacket { deadline_ms: i64::MAX as u64, ..call.clone() }),
        Frame::Call(SentPacket { deadline_ms: 1, context: Some(context), ..call.clone() }),
        Frame::Call(SentPacket { deadline_ms: 2, packet: long(), ..call.clone() }),
        Frame::Cancel { id: 1 },
        Frame::Reply { id: 1, work: 2, reply: Ok(None) },
        Frame::Reply { id: 1, work: 2, reply: Err(Error::joined(vec![failure(), failure()])) },
    ];
    let mut come = BytesMut::new();
    for frame in sent.clone() {
        come.extend_from_slice(&frame.bytes().expect("short"));
    }
    for (at, frame) in sent.into_iter().enumerate() {
        assert_eq!(Frame::take(&mut come), Ok(Some(frame)), "{at}");
    }
    assert_eq!(Frame::take(&mut come), Ok(None));
    let mut random = fastrand::Rng::with_seed(5);
    let document = Value::Document(Arc::new(Asked(true)));
    let whole = Frame::Call(SentPacket { packet: document, ..call }).bytes().expect("short");
    for _ in 0..10_000 {
        let mut bytes = BytesMut::from(&*whole);
        let at = random.usize(4..bytes.len());
        bytes[at] = random.u8(..);
        bytes.truncate(random.usize(at..=bytes.len()));
        // The result is a frame, no frame or an error, never a panic; reading the packet later must
        // not panic either.
        if let Ok(Some(Frame::Call(SentPacket { packet, .. }))) = Frame::take(&mut bytes) {
            let _ = packet.resolve();
        }
    }
}
