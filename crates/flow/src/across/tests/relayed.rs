//! Two domains with two relays between them, as on two machines; and a relay whose other side sends
//! false data.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use crate::across::leaving::only;
use crate::{Arriving, Leaving, RELAYED_MAX, Relay, RelayDoors};

/// The relay of the machine that calls, and the domain that calls it.
async fn leaving(take: impl Fn(Leaving) + Send + 'static) -> (Here, Relay) {
    let (out, into) = door();
    let doors = RelayDoors { called: vec![into], ..RelayDoors::default() };
    let relay = Relay::begin(doors, take).expect("a thread");
    let here = Here::begin(&plan(), out);
    here.connected().await;
    (here, relay)
}

/// The relay of the machine that is called, and the end of its door.
fn arriving() -> (Relay, OwnedFd) {
    let (out, into) = door();
    let calls = BTreeMap::from([("there".to_owned(), out)]);
    let relay = Relay::begin(RelayDoors { calls, called: vec![] }, |_| unreachable!("it calls"));
    (relay.expect("a thread"), into)
}

/// A packet for the node there.
fn packet(bytes: Vec<u8>, answer: impl FnOnce(Vec<u8>) + Send + 'static) -> Arriving {
    let [domain, node, input] = ["there", "far", "in"].map(str::to_owned);
    Arriving { domain, node, input, wait: LIMIT, bytes, answer: Box::new(answer) }
}

fn carry(mut it: Leaving, to: &Relay) {
    let (bytes, wait) = (std::mem::take(&mut it.bytes), it.wait);
    to.arrive(Arriving { wait, ..packet(bytes, move |bytes| it.answer(bytes)) });
}

/// Both machines.
async fn two() -> (Here, Rc<Program>, Relay) {
    let (there, into) = arriving();
    let program = program(&plan(), THERE, Callers::new());
    Called::new(Rc::clone(&program), Teller::direct()).begin(into);
    let (here, relay) = leaving(move |it| carry(it, &there)).await;
    // The relay of the other machine may not be connected yet.
    while here.send(Value::Null).await.is_err() {
        yield_now().await;
    }
    (here, program, relay)
}

#[test]
fn a_packet_crosses_two_machines_and_what_comes_of_it_comes_back() {
    run(async {
        let (here, there, _relay) = two().await;
        let expected = Value::list([long(), Value::Integer(7)]);
        assert_eq!(here.send(long()).await, Ok(Some(expected)));
        assert_eq!(here.send(Value::text("nothing")).await, Ok(None));
        let of_document = here.send(Value::Document(Arc::new(Asked(true)))).await;
        let known = [5, 5, 418].map(Value::Integer);
        let sent = [false, true, false].map(Value::Bool);
        assert_eq!(of_document, Ok(Some(Value::list(known.into_iter().chain(sent)))));
        let error = here.send(Value::text("fail")).await.expect_err("a failure");
        let said = (error.text(), error.status(), error.shown(), error.headers());
        let failure = failure();
        assert_eq!(said, (failure.text(), 418, failure.shown(), failure.headers()));
        let flow = here.flow(LIMIT, 5000);
        assert!(here.send_in(&flow, Value::text("work")).await.is_ok());
        assert!(flow.work_left() < 4000, "{} left", flow.work_left());
        let flow = here.flow(Duration::from_millis(100), 100_000);
        let error = here.send_in(&flow, Value::text("wait")).await.expect_err("late");
        assert_eq!(error.status(), 504);
        while there.flows() > 0 {
            yield_now().await;
        }
    });
}

#[test]
fn what_is_too_long_to_leave_is_refused_both_ways() {
    run(async {
        let (here, _there, _relay) = two().await;
        let text = |len: usize| Value::text("x".repeat(len));
        let error = here.send(text(RELAYED_MAX)).await.expect_err("too long");
        assert_eq!(error.status(), 413, "{error}");
        // The packet may be short enough to go, and its reply too long to come back.
        let (mut may, mut must_not) = (RELAYED_MAX / 2, RELAYED_MAX);
        let mut last = 0;
        while may + 1 < must_not {
            let len = usize::midpoint(may, must_not);
            match here.send(text(len)).await {
                Ok(_) => may = len,
                Err(error) => (must_not, last) = (len, error.status()),
            }
        }
        assert_eq!(last, 413);
        assert!(here.send(text(may)).await.is_ok());
    });
}

/// The packets that leave, for a carrier that the test plays.
async fn by_hand() -> (Rc<Here>, Relay, Receiver<Leaving>) {
    let (take, taken): (Sender<Leaving>, _) = mpsc::channel();
    let (here, relay) = leaving(move |it| take.send(it).expect("the test runs")).await;
    (Rc::new(here), relay, taken)
}

async fn next(taken: &Receiver<Leaving>) -> Leaving {
    loop {
        match taken.try_recv() {
            Ok(it) => return it,
            Err(_) => yield_now().await,
        }
    }
}

#[test]
fn whatever_comes_back_the_packet_is_answered() {
    type Act = fn(Leaving);
    let acts: [(Act, u16, &str); 5] = [
        (drop, 502, "the node that carries packets to other hosts dropped it"),
        (|it| it.fail(503, "its host 'b' is silent".into()), 503, "its host 'b' is silent"),
        (|it| it.answer(vec![]), 502, "is not a reply"),
        (|it| it.answer(b"\x01\0\0\0\xff".into()), 502, "is not a reply"),
        // A frame, but not a reply.
        (|it| it.answer(Frame::Hello.bytes().expect("short").into()), 502, "is not a reply"),
    ];
    run(async {
        let (here, _relay, taken) = by_hand().await;
        for (act, status, text) in acts {
            let sends = Rc::clone(&here);
            let waits = spawn_local(async move { sends.send(Value::text("x")).await });
            let it = next(&taken).await;
            assert_eq!((&*it.input, it.is_over()), ("in", false));
            assert!(it.wait <= LIMIT, "{:?}", it.wait);
            act(it);
            let error = waits.await.expect("no panic").expect_err("no reply");
            assert_eq!(error.status(), status, "{error}");
            assert!(error.text().contains(text), "{error}");
        }
        let flow = here.flow(Duration::from_millis(50), 100_000);
        assert_eq!(here.send_in(&flow, Value::Null).await.expect_err("late").status(), 504);
        let late = next(&taken).await;
        while !late.is_over() {
            yield_now().await;
        }
        late.answer(vec![]);
    });
}

/// The reply of the other machine's relay to a packet.
async fn answer(
    relay: &Relay,
    arriving: impl FnOnce(Box<dyn FnOnce(Vec<u8>) + Send>) -> Arriving,
) -> Reply {
    let (say, said) = tokio::sync::oneshot::channel();
    relay.arrive(arriving(Box::new(move |bytes| say.send(bytes).expect("the test waits"))));
    match only(&said.await.expect("an answer")) {
        Some(Frame::Reply { reply, .. }) => reply,
        other => panic!("{other:?}"),
    }
}

/// A call of a node that must not be called from elsewhere.
fn call(text: &str) -> Vec<u8> {
    let call = SentPacket {
        id: 7,
        node: "begin".into(),
        input: "out".into(),
        deadline_ms: 20_000,
        work: 100_000,
        context: None,
        packet: Value::text(text),
    };
    Frame::Call(call).bytes().expect("short").into()
}

#[test]
fn what_comes_from_elsewhere_is_believed_in_nothing_but_its_packet() {
    run(async {
        let (relay, into) = arriving();
        let status = |reply: Reply| reply.expect_err("refused").status();
        let absent = answer(&relay, |answer| packet(call("x"), answer)).await;
        assert_eq!(status(absent), 503, "nobody is there");
        let program = program(&plan(), THERE, Callers::new());
        Called::new(program, Teller::direct()).begin(into);
        // The packet names another node; the node that `Arriving` names gets it.
        let expected = Value::list([Value::text("x"), Value::Integer(7)]);
        while answer(&relay, |answer| packet(call("x"), answer)).await != Ok(Some(expected.clone()))
        {
            yield_now().await;
        }
        let twice = [call("x"), call("x")].concat();
        let hello = Frame::Hello.bytes().expect("short").into();
        for bytes in [vec![], vec![0xff; 40], twice, hello, call("x")[..9].to_vec()] {
            assert_eq!(status(answer(&relay, |answer| packet(bytes, answer)).await), 502);
        }
        let nowhere = |answer| Arriving { domain: "core".into(), ..packet(call("x"), answer) };
        assert_eq!(status(answer(&relay, nowhere).await), 502);
        let wait = Duration::from_millis(20);
        let soon = |answer| Arriving { wait, ..packet(call("wait"), answer) };
        assert_eq!(status(answer(&relay, soon).await), 504, "not as long as it says");
        // As many packets as may wait, and one more.
        for _ in 0..crate::across::CALLS_MAX {
            relay.arrive(packet(call("wait"), drop));
        }
        assert_eq!(status(answer(&relay, |answer| packet(call("x"), answer)).await), 503);
    });
}

#[test]
fn a_domain_that_ends_while_it_has_a_packet_from_elsewhere_is_told() {
    run(async {
        let (relay, into) = arriving();
        let mut there = ByHand { door: into, stream: None };
        there.take().await;
        there.say(&Frame::Hello.bytes().expect("short"));
        let relay = Rc::new(relay);
        let asks = Rc::clone(&relay);
        let reply = spawn_local(async move {
            loop {
                // 503 until the relay has received the domain's hello.
                match answer(&asks, |answer| packet(call("x"), answer)).await {
                    Err(error) if error.status() == 503 => yield_now().await,
                    reply => return reply,
                }
            }
        });
        assert!(matches!(there.hear().await, Frame::Call(call) if call.node == "far"));
        there.stream.take();
        assert_eq!(reply.await.expect("no panic").expect_err("its end").status(), 502);
        assert!(!relay.has_ended());
    });
}
