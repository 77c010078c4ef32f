//! Calls between two hosts: their answers, and what callers get where there can be none.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use sinew_hosts::{Echo, MessageHeader, call_key, number};
use sinew_zenoh::{
    CallFailure, CallPort, Exchange, HostState, IncomingCall, Mirror, NotTaken, Peer, Setting,
};
use zenoh::{Session, Wait};

use crate::proxy::Proxy;
use crate::router::{guarded_with, router};
use crate::stage::{connected, dials, free_address, header, not_taken, setting, stranger, until};
use crate::tls::Authority;

/// A longer wait for an answer is a hang.
const LIMIT: Duration = Duration::from_secs(30);

type Answered = Result<Vec<u8>, CallFailure>;

fn port(host: &str) -> CallPort {
    CallPort { host: host.into(), node: "block/n".into(), input: "in".into() }
}

/// The key of the questions of b to a.
fn key() -> String {
    call_key("g", "a", "b", "block/n", "in")
}

/// Host `a`, which listens at the address, and `b`, which calls a node of it and dials `dialled`.
fn settings(address: &str, dialled: &str) -> (Setting, Setting) {
    let mut a = setting("a", Some(address), &[("b", None)]);
    let mut b = setting("b", None, &[("a", Some(dialled))]);
    a.called = vec![port("b")];
    b.calls = vec![port("a")];
    (a, b)
}

/// Both mirrors, open.
struct Two {
    a: Mirror,
    b: Mirror,
}

impl Two {
    fn open((a, b): (Setting, Setting)) -> Two {
        Two { a: Mirror::open(&a).expect("a"), b: Mirror::open(&b).expect("b") }
    }

    fn joined(settings: (Setting, Setting)) -> Two {
        let two = Two::open(settings);
        two.is_joined();
        two
    }

    fn is_joined(&self) {
        until("both are heard", || {
            [&self.a, &self.b].into_iter().all(|it| it.hosts()[0].state == HostState::Heard)
        });
    }

    /// Lets a answer with what it got and its name. Calls that begin with `keep` are handed out
    /// instead.
    fn serve(&self) -> Receiver<IncomingCall> {
        let (keep, kept) = mpsc::channel();
        let answer = move |call: IncomingCall| match call.packet.starts_with(b"keep") {
            // If nobody receives the call, it is dropped.
            true => keep.send(call).unwrap_or_default(),
            false => {
                let reply = [&call.packet[..], b" of a"].concat();
                call.answer(reply);
            }
        };
        assert!(self.a.exchange().take(answer));
        kept
    }

    /// The answer that b gets.
    fn ask(&self, packet: &[u8]) -> Answered {
        ask(&self.b.exchange(), packet, LIMIT).recv_timeout(LIMIT * 2).expect("an answer")
    }

    /// Asks until there is a reply: what was said just before both had joined may be lost.
    fn answered(&self) {
        until("a reply", || self.ask(b"x") == Ok(b"x of a".into()));
    }
}

fn ask(of: &Exchange, packet: &[u8], wait: Duration) -> Receiver<Answered> {
    let (say, said): (Sender<Answered>, _) = mpsc::channel();
    of.ask(0, wait, packet.into(), Box::new(move |answer| say.send(answer).unwrap_or_default()));
    said
}

/// The same two, who both call a router: `cell` is called, `office` calls.
fn behind_a_router(address: &str) -> (Setting, Setting) {
    let host = |own: &str, other: &str| {
        let mut it = setting(own, None, &[(other, None)]);
        it.router = Some(address.into());
        it.peers[0].calls_router = true;
        it
    };
    let (mut cell, mut office) = (host("cell", "office"), host("office", "cell"));
    cell.called = vec![port("office")];
    office.calls = vec![port("cell")];
    (cell, office)
}

#[test]
fn a_call_goes_through_a_router() {
    let address = free_address();
    let _router = router(&address);
    let two = Two::joined(behind_a_router(&address));
    let _kept = two.serve();
    two.answered();
}

/// As docs/hosts.md says it: who asks may ask, who answers may answer, and nobody else.
#[test]
fn a_guarded_router_lets_through_what_its_rules_name() {
    let (address, authority) = (free_address(), Authority::new());
    let rule = |id: &str, flow: &str, messages: &str| {
        format!(
            "{{ id: '{id}', permission: 'allow', flows: ['{flow}'], messages: [{messages}], \
             key_exprs: ['sinew$*/g/cell/@call/office/**'] }},"
        )
    };
    let answers = "'reply', 'declare_queryable'";
    let rules = [
        rule("asks", "ingress", "'query'"),
        rule("is_asked", "egress", "'query'"),
        rule("answers", "ingress", answers),
        rule("hears", "egress", answers),
    ];
    let policies = "{ rules: ['asks', 'hears'], subjects: ['office'] }, \
                    { rules: ['is_asked', 'answers'], subjects: ['cell'] },";
    let edits = [
        ("rules: [\n", format!("rules: [\n{}", rules.concat())),
        ("policies: [\n", format!("policies: [\n{policies}")),
    ];
    let _router = guarded_with(&address, "g", &authority, &edits);
    let (mut cell, mut office) = behind_a_router(&address);
    cell.tls = Some(authority.sign("g@cell", "cell", 2100));
    office.tls = Some(authority.sign("g@office", "office", 2100));
    let two = Two::joined((cell, office));
    let _kept = two.serve();
    two.answered();
    // The observer of the rules may not ask, though it sends the same question.
    let shown = authority.sign("g@observer", "observer", 2100);
    let observer = dials(&address, &shown.authority, Some(&shown), "client");
    let key = call_key("g", "cell", "office", "block/n", "in");
    let before = two.a.exchange().counted()[0];
    let asked = observer.get(&key).payload("x").timeout(Duration::from_secs(1)).wait();
    let replies: Vec<_> = asked.expect("it is asked").into_iter().collect();
    assert!(replies.iter().all(|it| it.result().is_err()), "{replies:?}");
    assert_eq!(two.a.exchange().counted()[0], before);
}

#[test]
fn a_call_is_answered_and_so_is_one_that_is_dropped() {
    let address = free_address();
    let two = Two::joined(settings(&address, &address));
    assert_eq!(two.ask(b"x"), Err(CallFailure::Full), "nobody serves yet");
    let kept = two.serve();
    two.answered();
    let long = vec![7; 1 << 20];
    let reply = two.ask(&long).expect("a reply");
    assert_eq!((reply.len(), &reply[..9]), (long.len() + 5, &long[..9]));
    let waits = ask(&two.b.exchange(), b"keep", LIMIT);
    drop(kept.recv_timeout(LIMIT).expect("the call"));
    assert_eq!(waits.recv_timeout(LIMIT), Ok(Err(CallFailure::Lost)));
    let counted = two.a.exchange().counted()[0];
    assert_eq!((counted.late, counted.lost, counted.full), (0, 0, 1));
    assert_eq!(two.a.not_taken()[0].refused(), 0, "{:?}", two.a.not_taken());
    assert!(counted.taken >= 3, "{counted:?}");
}

#[test]
fn who_is_not_there_or_has_another_graph_is_told_at_once() {
    let address = free_address();
    let (a, b) = settings(&address, &address);
    let alone = Mirror::open(&b).expect("b");
    let asked = ask(&alone.exchange(), b"x", LIMIT);
    assert_eq!(asked.try_recv(), Ok(Err(CallFailure::Unheard)));
    alone.close();
    let two = Two::open((a, Setting { version: 2, ..b }));
    let kept = two.serve();
    until("b sees that a is of another version", || {
        two.b.hosts()[0].state == HostState::OtherVersion(1)
    });
    let asked = ask(&two.b.exchange(), b"keep", LIMIT);
    assert_eq!(asked.try_recv(), Ok(Err(CallFailure::OtherVersion)));
    assert!(kept.try_recv().is_err());
}

#[test]
fn in_an_outage_who_waits_hears_it_and_no_call_is_made_twice() {
    let address = free_address();
    let proxy = Proxy::to(&address);
    let two = Two::joined(settings(&address, &proxy.address));
    let kept = two.serve();
    two.answered();
    let under_way = ask(&two.b.exchange(), b"keep 1", LIMIT);
    let call = kept.recv_timeout(LIMIT).expect("the call");
    proxy.set_open([false; 2]);
    // This question is held in the line, and may come out of it later.
    let in_the_line = ask(&two.b.exchange(), b"keep 2", Duration::from_millis(1));
    for waits in [under_way, in_the_line] {
        assert_eq!(waits.recv_timeout(LIMIT), Ok(Err(CallFailure::Lost)));
    }
    until("a is silent", || two.b.hosts()[0].state == HostState::Silent);
    assert_eq!(two.ask(b"keep 3"), Err(CallFailure::Silent));
    call.answer(b"too late".into());
    proxy.set_open([true; 2]);
    two.is_joined();
    two.answered();
    assert!(kept.try_recv().is_err(), "a call whose caller has given up");
}

#[test]
fn as_many_calls_as_may_are_under_way_and_one_more_is_refused() {
    let address = free_address();
    let two = Two::joined(settings(&address, &address));
    let kept = two.serve();
    two.answered();
    let exchange = two.b.exchange();
    let waiting: Vec<_> = (0..256).map(|_| ask(&exchange, b"keep", LIMIT)).collect();
    assert_eq!(ask(&exchange, b"x", LIMIT).try_recv(), Ok(Err(CallFailure::Full)));
    assert_eq!(exchange.counted()[0].full, 1);
    for waits in waiting {
        kept.recv_timeout(LIMIT).expect("a call").answer(b"now".into());
        assert_eq!(waits.recv_timeout(LIMIT), Ok(Ok(b"now".into())));
    }
    two.answered();
}

#[test]
fn a_call_that_takes_longer_than_it_may_has_no_reply() {
    let address = free_address();
    let two = Two::joined(settings(&address, &address));
    let kept = two.serve();
    two.answered();
    let waits = ask(&two.b.exchange(), b"keep", Duration::from_millis(200));
    let call = kept.recv_timeout(LIMIT).expect("the call");
    assert!(call.wait <= Duration::from_millis(200), "{:?}", call.wait);
    assert_eq!(waits.recv_timeout(LIMIT), Ok(Err(CallFailure::Lost)));
    // Its place is free again, and its late answer disturbs nobody.
    call.answer(b"late".into());
    two.answered();
}

/// How many answers a question of a session gets.
fn replies(session: &Session, bytes: Vec<u8>) -> usize {
    let replies = session.get(key()).payload(bytes).timeout(LIMIT).wait().expect("it is sent");
    replies.iter().filter(|it| it.result().is_ok()).count()
}

#[test]
fn a_stranger_can_neither_call_nor_repeat_a_call_nor_answer_one() {
    let address = free_address();
    let relayed = free_address();
    let (a, mut b) = settings(&address, &address);
    // b listens, so that the stranger hears its questions and can answer them wrongly.
    b.listen = Some(relayed.clone());
    let two = Two::joined((a, b));
    let kept = two.serve();
    two.answered();
    let session = stranger(&[&format!("tcp/{address}"), &format!("tcp/{relayed}")], "");
    let (say, said) = mpsc::channel();
    let lie = MessageHeader { sequence: u64::MAX, ..header("a", two.a.life(), &key()) };
    let listens = session.declare_queryable(key()).callback(move |query| {
        let heard = query.payload().map(|it| it.to_bytes().into_owned()).unwrap_or_default();
        query.reply(query.key_expr().clone(), lie.write(b"a lie")).wait().unwrap_or_default();
        say.send(heard).unwrap_or_default();
    });
    let listens = listens.wait().expect("declared");
    until("the stranger is connected to both", || connected(&session) == 2);
    let mut heard = vec![];
    until("it has heard a question, and its answer was looked at", || {
        two.answered();
        heard.extend(said.try_iter());
        !heard.is_empty() && not_taken(&two.b, 0, NotTaken::Again) > 0
    });
    listens.undeclare().wait().expect("undeclared");

    let (before, taken) = (two.a.not_taken()[0], two.a.exchange().counted()[0].taken);
    let mut forged = header("b", two.b.life(), &key());
    let unstamped = [forged.write(b""), b"keep".to_vec()].concat();
    forged.echoes.push(Echo { host: number("a"), life: two.a.life(), stamp_ns: u64::MAX });
    let to_come = forged.write(b"\xff\0\0\0\0\0\0\0keep");
    // As long as zenoh itself lets pass.
    let flood = vec![0; 1_051_000];
    let words = [heard[0].clone(), unstamped, to_come, b"keep".to_vec(), vec![], flood];
    let count = words.len() as u64;
    for bytes in words {
        assert_eq!(replies(&session, bytes), 0);
    }
    let refused = two.a.not_taken()[0].refused() - before.refused();
    assert_eq!((refused, two.a.exchange().counted()[0].taken), (count, taken));
    assert!(kept.try_recv().is_err());
    two.answered();
}

#[test]
fn with_certificates_who_is_linked_may_call_and_nobody_else() {
    let (authority, address) = (Authority::new(), free_address());
    let (mut a, mut b) = settings(&address, &address);
    a.peers.push(Peer { name: "c".into(), address: None, calls_router: false });
    a.tls = Some(authority.sign("a", "a", 2100));
    b.tls = Some(authority.sign("b", "b", 2100));
    let two = Two::joined((a, b));
    let kept = two.serve();
    two.answered();
    // Another host of the graph, without a link to a, sends what a caller would.
    let root = authority.path("authority.pem");
    let member = dials(&address, &root, Some(&authority.sign("c", "c", 2100)), "peer");
    until("another member is connected", || connected(&member) == 1);
    let before = two.a.not_taken();
    assert_eq!(replies(&member, b"keep".into()), 0);
    assert_eq!(two.a.not_taken(), before, "its question came through");
    // The same question with the certificate of b comes as far as the judge.
    let real = dials(&address, &root, Some(&authority.sign("b", "real", 2100)), "peer");
    until("it is connected", || connected(&real) == 1);
    until("its question came through", || {
        replies(&real, b"keep".into());
        two.a.not_taken()[0] != before[0]
    });
    assert!(kept.try_recv().is_err());
}
