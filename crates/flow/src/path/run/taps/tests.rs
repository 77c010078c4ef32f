//! Taps look at packets; for that a flow only shows them, or waits.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use sinew_core::{Made, Parameters};
use sinew_spec::catalogue::{Parameter, ParameterType};
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use super::*;
use crate::testing::{fixture, run, try_plan};
use crate::{At, FLOW, FlowEntry, FlowFixture, FlowNode, Make, Reply, Step, error, input, output};

const LIMIT: Duration = Duration::from_secs(20);

/// Passes on its packet, at once or later; or fails.
static ACT: Kind = Kind {
    name: "act",
    ports: &[input("in", ""), error(), output("out", "")],
    parameters: &[
        Parameter::new("does", ParameterType::Choice(&["pass", "wait", "fail", "panic"]))
            .or("pass"),
        Parameter::new("host", ParameterType::Text).or("127.0.0.1"),
    ],
    ..FLOW
};

struct Act(String);

impl FlowNode for Act {
    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match &*self.0 {
            "wait" => Step::wait(async move {
                yield_now().await;
                Step::Pass(2, packet)
            }),
            "fail" => Step::Fail(Error::new("as it was told")),
            "panic" => panic!("as it was told"),
            _ => Step::Pass(2, packet),
        }
    }
}

fn act(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(Act(parameters.text("does").to_owned())))
}

const TABLE: &[FlowEntry] = &[FlowEntry { kind: &ACT, make: Make::Node(act) }];

/// A filter is a number and wants packets equal to it. Packets are shown as they are.
const LENS: Lens = Lens { filter, show: |_, value| format!("{value:?}") };

fn filter(text: &str) -> Result<PacketFilter, String> {
    let wanted: i64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    Ok(Box::new(move |_, packet| match packet {
        Value::Integer(number) => Ok(*number == wanted),
        _ => Err(Error::new("no number")),
    }))
}

/// Two nodes in a row, `a` (which does `first`) and `b` (which waits).
fn graph(first: &str) -> (FlowFixture, Arc<Taps>) {
    let text = format!(
        "- {{kind: act, name: a, does: {first}, ports: {{out: [{{name: b, port: in}}]}}}}\n\
         - {{kind: act, name: b, does: wait}}\n"
    );
    let mut graph = fixture(&text, TABLE);
    let taps =
        Arc::new(Taps { lens: Some(LENS), sources: vec!["begin".into()], ..Taps::default() });
    graph.show_to(&taps);
    (graph, taps)
}

fn is_node(name: &str) -> bool {
    ["a", "b", "begin"].contains(&name)
}

fn at(node: &str) -> TapRequest {
    let (node, filter) = (Some(node.into()), None);
    TapRequest { node, filter, per_s: PER_S_MAX, way: false, pause: false }
}

/// A tap, and its lines in short form.
struct Look {
    tap: Arc<Tap>,
    lines: mpsc::Receiver<TapLine>,
}

impl Look {
    fn open(taps: &Taps, asked: TapRequest) -> Look {
        let (tap, lines) = taps.open(asked, is_node).expect("a good request");
        Look { tap, lines }
    }

    /// The lines that have come.
    fn take(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).map(|line| short(&line)).collect()
    }

    /// Waits for the next line.
    async fn next(&mut self) -> String {
        short(&self.lines.recv().await.expect("the tap is open"))
    }
}

fn short(line: &TapLine) -> String {
    match line {
        TapLine::Packet(it) => format!("{}.{} {}", it.node, it.input, it.packet),
        TapLine::Step(it) => format!("{} -> {} {}", it.node, it.outcome, it.packet),
        TapLine::Held { packet: it, passed } => {
            format!("held {}.{} {} passed {passed}", it.node, it.input, it.packet)
        }
        TapLine::Ended(_) => "ended".into(),
        TapLine::Lost(lost) => format!("lost {lost}"),
    }
}

async fn send(graph: &FlowFixture, number: i64) -> Reply {
    graph.open("begin", 0, Value::Integer(number), LIMIT).await
}

#[test]
fn a_tap_shows_what_comes_to_its_node_and_what_becomes_of_it() {
    run(async {
        let (graph, taps) = graph("pass");
        assert!(!taps.is_on.load(Ordering::Relaxed));
        let mut all = Look::open(&taps, at("b"));
        let mut one = Look::open(&taps, TapRequest { filter: Some("2".into()), ..at("a") });
        assert_eq!(send(&graph, 1).await, Ok(Some(Value::Integer(1))));
        assert_eq!(send(&graph, 2).await, Ok(Some(Value::Integer(2))));
        let lines = ["b.in Integer(1)", "b -> out Integer(1)"];
        assert_eq!(all.take(), [lines, ["b.in Integer(2)", "b -> out Integer(2)"]].concat());
        assert_eq!(one.take(), ["a.in Integer(2)", "a -> out Integer(2)"]);
        // A packet on which the filter fails is not wanted.
        graph.open("begin", 0, Value::text("2"), LIMIT).await.expect("a reply");
        assert_eq!(one.take(), Vec::<String>::new());
        all.take();
        taps.close(&all.tap);
        send(&graph, 2).await.expect("a reply");
        assert_eq!((all.take().len(), one.take().len()), (0, 2));
        taps.close(&one.tap);
        assert!(!taps.is_on.load(Ordering::Relaxed));
    });
}

#[test]
fn a_failure_of_a_node_is_shown_and_stays_one() {
    run(async {
        for does in ["fail", "panic"] {
            let (graph, taps) = graph(does);
            let mut look = Look::open(&taps, at("a"));
            let failed = send(&graph, 1).await.expect_err("it fails");
            assert!(failed.text().contains("as it was told"), "{failed}");
            let lines = look.take();
            // A node that panics shows nothing more.
            let expected = if does == "fail" { 2 } else { 1 };
            assert_eq!(lines.len(), expected, "{lines:?}");
        }
    });
}

#[test]
fn of_a_way_all_nodes_are_shown_from_the_beginning() {
    run(async {
        let (graph, taps) = graph("pass");
        let way = |node: &str| TapRequest { way: true, ..at(node) };
        let mut of_b = Look::open(&taps, TapRequest { filter: Some("7".into()), ..way("b") });
        let mut of_begin = Look::open(&taps, way("begin"));
        let mut of_all = Look::open(&taps, TapRequest { node: None, ..way("b") });
        send(&graph, 1).await.expect("a reply");
        send(&graph, 7).await.expect("a reply");
        let lines = |number: i64| {
            let lines = ["begin. N", "a.in N", "a -> out N", "b.in N", "b -> out N", "ended"];
            lines.map(|line| line.replace('N', &format!("Integer({number})")))
        };
        assert_eq!(of_b.take(), lines(7));
        assert_eq!(of_begin.take(), [lines(1), lines(7)].concat());
        assert_eq!(of_all.take(), [lines(1), lines(7)].concat());
    });
}

#[test]
fn a_way_that_does_not_come_to_the_node_is_not_shown() {
    run(async {
        let (graph, taps) = graph("fail");
        let mut look = Look::open(&taps, TapRequest { way: true, ..at("b") });
        send(&graph, 1).await.expect_err("it fails before");
        assert_eq!(look.take(), Vec::<String>::new());
    });
}

#[test]
fn so_many_are_shown_in_a_second_and_what_nobody_reads_is_counted() {
    run(async {
        let (graph, taps) = graph("pass");
        let mut slow = Look::open(&taps, TapRequest { per_s: 1, ..at("a") });
        let mut fast = Look::open(&taps, at("a"));
        const SENT: usize = 300;
        for number in 0..SENT {
            send(&graph, number as i64).await.expect("a reply");
        }
        // Some seconds may have passed.
        assert!(slow.take().len() < SENT, "one a second");
        assert_eq!(slow.tap.take_lost(), 0);
        let (shown, lost) = (fast.take().len(), fast.tap.take_lost() as usize);
        assert_eq!((shown, shown + lost), (LINES_MAX, 2 * SENT));
        assert_eq!(fast.tap.take_lost(), 0);
    });
}

#[test]
fn one_packet_is_held_and_goes_on_by_steps_while_others_pass() {
    run(async {
        let (graph, taps) = graph("pass");
        let graph = Rc::new(graph);
        let mut look = Look::open(&taps, TapRequest { pause: true, ..at("a") });
        assert!(!look.tap.go_on(false), "nothing is held");
        let held = spawn_local({
            let graph = Rc::clone(&graph);
            async move { send(&graph, 1).await }
        });
        assert_eq!(look.next().await, "held a.in Integer(1) passed 0");
        for number in 2..4 {
            send(&graph, number).await.expect("others pass");
        }
        assert!(look.tap.go_on(true));
        assert_eq!(look.next().await, "a -> out Integer(1)");
        assert_eq!(look.next().await, "held b.in Integer(1) passed 2");
        assert!(!held.is_finished());
        assert!(look.tap.go_on(true));
        assert_eq!(look.next().await, "b -> out Integer(1)");
        assert_eq!(look.next().await, "ended");
        assert_eq!(held.await.expect("it ends"), Ok(Some(Value::Integer(1))));
        // The next one is held again.
        let next = spawn_local(async move { send(&graph, 4).await });
        assert_eq!(look.next().await, "held a.in Integer(4) passed 0");
        assert!(look.tap.go_on(false));
        assert_eq!(next.await.expect("it ends"), Ok(Some(Value::Integer(4))));
        assert_eq!(look.take(), ["a -> out Integer(4)"]);
    });
}

#[test]
fn the_end_of_a_tap_lets_go_of_what_it_holds() {
    run(async {
        let (graph, taps) = graph("pass");
        let mut look = Look::open(&taps, TapRequest { pause: true, ..at("b") });
        let held = spawn_local(async move { send(&graph, 1).await });
        assert_eq!(look.next().await, "held b.in Integer(1) passed 0");
        taps.close(&look.tap);
        assert_eq!(held.await.expect("it ends"), Ok(Some(Value::Integer(1))));
    });
}

#[test]
fn a_flow_that_is_dropped_makes_room_for_another_one() {
    run(async {
        let (graph, taps) = graph("pass");
        let mut look = Look::open(&taps, TapRequest { pause: true, ..at("a") });
        let mut held = Box::pin(send(&graph, 1));
        poll_fn(|context| Poll::Ready(held.as_mut().poll(context).is_pending())).await;
        assert_eq!(look.next().await, "held a.in Integer(1) passed 0");
        drop(held);
        assert_eq!(look.next().await, "ended");
        let mut next = Box::pin(send(&graph, 2));
        poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await;
        assert_eq!(look.next().await, "held a.in Integer(2) passed 0");
    });
}

#[test]
fn no_time_of_a_flow_passes_while_it_is_held() {
    run(async {
        let (graph, taps) = graph("pass");
        let mut look = Look::open(&taps, TapRequest { pause: true, ..at("a") });
        let deadline = Duration::from_secs(2);
        let held =
            spawn_local(async move { graph.open("begin", 0, Value::Integer(1), deadline).await });
        assert_eq!(look.next().await, "held a.in Integer(1) passed 0");
        sleep(deadline + deadline / 4).await;
        assert!(!held.is_finished(), "it is held");
        assert!(look.tap.go_on(false));
        assert_eq!(held.await.expect("it ends"), Ok(Some(Value::Integer(1))));
    });
}

#[test]
fn a_request_that_cannot_be_meant_is_refused() {
    let (_, taps) = graph("pass");
    let cases = [
        (TapRequest { node: Some("c".into()), ..at("a") }, "no flow node 'c'"),
        (TapRequest { node: None, ..at("a") }, "'node' is missing"),
        (TapRequest { node: None, way: true, pause: true, ..at("a") }, "'node' is missing"),
        (TapRequest { per_s: 0, ..at("a") }, "expected 1 to 1000"),
        (TapRequest { per_s: 1001, ..at("a") }, "expected 1 to 1000"),
        (TapRequest { way: true, pause: true, ..at("a") }, "exclude each other"),
        (TapRequest { pause: true, ..at("begin") }, "begins flows"),
        (TapRequest { filter: Some("x".into()), ..at("a") }, "'x' is not a number"),
    ];
    for (asked, expected) in cases {
        let error = taps.open(asked, is_node).err().expect(expected);
        assert!(error.contains(expected), "{error}");
    }
    assert!(!taps.is_on.load(Ordering::Relaxed));
    let open: Vec<_> = (0..TAPS_MAX).map(|_| taps.open(at("a"), is_node).expect("room")).collect();
    let error = taps.open(at("a"), is_node).err().expect("no room");
    assert!(error.contains("8 taps"), "{error}");
    taps.close(&open[0].0);
    assert!(taps.open(at("a"), is_node).is_ok());
}

#[test]
fn nothing_is_held_where_others_than_this_machine_may_wait() {
    for (host, is_refused) in [
        ("127.0.0.1", false),
        ("'::1'", false),
        ("localhost", false),
        ("'[::1]:80'", false),
        ("127.0.0.1:80", false),
        ("0.0.0.0", true),
        ("'::'", true),
        ("192.168.0.7:80", true),
        ("cell.example", true),
    ] {
        let text = format!(
            "- {{kind: begin, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n\
             - {{kind: act, name: a, host: {host}}}\n"
        );
        let kinds = [crate::testing::BEGIN.kind, &ACT];
        let plan = try_plan(&text, &kinds).unwrap_or_else(|errors| panic!("{errors}"));
        let taps = Taps::new(&plan, Some(LENS));
        let opened = taps.open(TapRequest { pause: true, ..at("a") }, is_node);
        assert_eq!(opened.is_err(), is_refused, "{host}");
        assert!(taps.open(at("a"), is_node).is_ok(), "to look is allowed");
    }
}
