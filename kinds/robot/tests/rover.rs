//! The core of graphs/rover/rover.yaml, unchanged: on one thread, with a page whose inputs the test
//! sets, and a witness of where the rover truly is.

use std::cell::RefCell;
use std::path::Path;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault, Flag, Fresh, Io, Message, Node, NodeEntry, Parameters};
use sinew_robot::NODES;
use sinew_robot::messages::{
    BaseState, FOLLOWER_WAITS, PathPoints, PathProgress, PlaneMap, TwistTarget,
};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

const PERIOD_NS: u64 = 5_000_000;
const PERIOD_S: f64 = 5e-3;

/// What the witness saw in a cycle.
#[derive(Clone, Copy, Default)]
struct Seen {
    truth: BaseState,
    odometry: BaseState,
    progress: PathProgress,
    is_bumped: bool,
    is_manual: bool,
    /// Distance from its rim to the nearest obstacle.
    gap_m: f64,
    /// Distance from its path.
    off_m: f64,
}

thread_local! {
    /// What the page sends in this cycle.
    static SAYS: RefCell<Option<TwistTarget>> = const { RefCell::new(None) };
    static SEEN: RefCell<Seen> = RefCell::default();
}

static PAGE: Kind = Kind {
    doc: "The page.",
    ..Kind::new("page", RunsIn::Realtime, &[Port::output("to", "What it says.", TwistTarget::TYPE)])
};

struct Page;

impl Node for Page {
    fn update(&mut self, io: &mut Io<'_>, _cycle: &Cycle) -> Result<(), Fault> {
        if let Some(says) = SAYS.take() {
            *io.write::<TwistTarget>(0) = says;
        }
        Ok(())
    }
}

static WITNESS: Kind = Kind {
    doc: "Looks on.",
    ..Kind::new(
        "witness",
        RunsIn::Realtime,
        &[
            Port::input("truth", "Place and speed of the base.", BaseState::TYPE),
            Port::input("place", "Where its wheels say it is.", BaseState::TYPE),
            Port::input("progress", "Of the path.", PathProgress::TYPE),
            Port::input("bumped", "Whether it is touched.", Flag::TYPE),
            Port::input("is_manual", "Whether people drive.", Flag::TYPE),
            Port::input("plane", "What is there.", PlaneMap::TYPE),
            Port::input("path", "The path.", PathPoints::TYPE),
        ],
    )
};

struct Witness;

impl Node for Witness {
    fn update(&mut self, io: &mut Io<'_>, _cycle: &Cycle) -> Result<(), Fault> {
        let truth = *io.read::<BaseState>(0);
        let [x, y, _] = truth.position_m;
        SEEN.set(Seen {
            truth,
            odometry: *io.read::<BaseState>(1),
            progress: *io.read::<PathProgress>(2),
            is_bumped: io.read::<Flag>(3).value.get(),
            is_manual: io.read::<Flag>(4).value.get(),
            gap_m: gap_m(x, y, io.read::<PlaneMap>(5)),
            off_m: if io.fresh(6) == Fresh::None { 0.0 } else { off_m(x, y, io.read(6)) },
        });
        Ok(())
    }
}

fn gap_m(x: f64, y: f64, map: &PlaneMap) -> f64 {
    let [x_min, y_min, x_max, y_max] = map.fence_m;
    let circles = map.obstacles_m.chunks_exact(3).take(map.count as usize);
    let gaps = circles.map(|circle| (x - circle[0]).hypot(y - circle[1]) - circle[2]);
    gaps.chain([x - x_min, x_max - x, y - y_min, y_max - y]).fold(f64::MAX, f64::min)
        - map.base_radius_m
}

/// Distance from the path, by trying 200 places on each line.
fn off_m(x: f64, y: f64, path: &PathPoints) -> f64 {
    let points: Vec<_> = path.points_m.chunks_exact(2).take(path.count as usize).collect();
    let mut nearest_m = f64::MAX;
    for (at, from) in points.iter().enumerate() {
        let to = points[(at + 1) % points.len()];
        for step in 0..200 {
            let part = f64::from(step) / 200.0;
            let [px, py] = [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * part);
            nearest_m = nearest_m.min((x - px).hypot(y - py));
        }
    }
    nearest_m
}

/// The graph's core alone. Its links to the API lead to the witness, and a page is linked to it.
fn core(text: &str) -> String {
    let (core, api) = text.split_once("  # The page, and what it asks for").expect("the API");
    assert!(api.contains("to: [{name: select, port: manual, capacity: 8}]"));
    let mut core = core.replace("domain: plant", "domain: control");
    for domain in ["  plant:", "  api:", "  dashboard:", "domain: api"] {
        let at = core.find(domain).expect("it is there");
        let end = at + core[at..].find('\n').expect("a line");
        core.replace_range(at..end, "");
    }
    for name in ["truth", "place", "progress", "bumped", "is_manual", "plane", "path"] {
        let link = format!("{{name: {name}, port: from}}");
        assert!(core.contains(&link), "{link}");
        core = core.replace(&link, &format!("{{name: witness, port: {name}}}"));
    }
    let ranges = "        - {name: ranges, port: from}\n";
    assert!(core.contains(ranges));
    core.replace(ranges, "")
        + "  - {kind: witness, domain: control}\n\
           \x20 - {kind: page, domain: control, ports: {to: [{name: select, port: manual}]}}\n"
}

struct Graph {
    executor: Executor,
    number: u64,
}

impl Graph {
    fn new() -> Graph {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/rover");
        let text = std::fs::read_to_string(folder.join("rover.yaml")).expect("the graph");
        let text = core(&text);
        let make_page = |_: &Parameters<'_>| -> Result<Box<dyn Node>, Fault> { Ok(Box::new(Page)) };
        let make_witness =
            |_: &Parameters<'_>| -> Result<Box<dyn Node>, Fault> { Ok(Box::new(Witness)) };
        let ours = [
            NodeEntry { kind: &PAGE, make: make_page, safe: None },
            NodeEntry { kind: &WITNESS, make: make_witness, safe: None },
        ];
        let table = [NODES, &ours].concat();
        let kinds: Vec<_> = table.iter().map(|entry| entry.kind).collect();
        let source = SpecSource::of("rover.yaml", &text);
        let plan = compile(&source, &kinds, &TargetMachine::of(vec![0]))
            .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)));
        let executor = Executor::fused(&plan, &table, &folder).expect("makes");
        Graph { executor, number: 0 }
    }

    fn cycle(&mut self) -> Seen {
        let cycle = Cycle::new(self.number, PERIOD_NS);
        self.number += 1;
        self.executor.cycle(&cycle, u64::MAX).expect("a cycle");
        SEEN.with_borrow(|seen| *seen)
    }

    /// Runs for so many seconds. The page sends `says` ten times a second.
    fn run_s(&mut self, seconds: f64, says: Option<[f64; 2]>) -> Seen {
        let mut seen = Seen::default();
        for at in 0..(seconds / PERIOD_S) as u64 {
            let says = says.filter(|_| at % 20 == 0);
            SAYS.set(says.map(|[speed, turn]| TwistTarget {
                linear_m_per_s: [speed, 0.0, 0.0],
                angular_rad_per_s: [0.0, 0.0, turn],
            }));
            seen = self.cycle();
        }
        seen
    }
}

#[test]
fn it_goes_round_its_path_and_touches_nothing() {
    let mut graph = Graph::new();
    let (mut gap_m, mut off_m) = (f64::MAX, 0f64);
    let mut seen = graph.run_s(4.0, None);
    while seen.progress.rounds < 2 {
        seen = graph.cycle();
        gap_m = gap_m.min(seen.gap_m);
        off_m = off_m.max(seen.off_m);
        assert!(!seen.is_bumped && !seen.is_manual, "at {:?}", seen.truth.position_m);
        assert!(seen.progress.state != FOLLOWER_WAITS);
        assert!(graph.number < 60_000, "two rounds of 24 m at 0.5 m/s: {:?}", seen.progress);
    }
    // It cuts corners by less than its lookahead.
    assert!(gap_m > 0.1 && off_m < 0.35, "{gap_m} m to the next, {off_m} m from its path");
    let [truth, wheels] = [seen.truth, seen.odometry].map(|it| it.position_m);
    let drift_m = (truth[0] - wheels[0]).hypot(truth[1] - wheels[1]);
    assert!(drift_m > 0.1, "wheels that slip do not know where they are: {drift_m} m off");
}

#[test]
fn people_drive_and_when_their_page_goes_away_it_brakes_and_later_goes_on() {
    let mut graph = Graph::new();
    assert!(graph.run_s(3.0, None).truth.linear_m_per_s[0] > 0.3, "it drives by itself");
    let seen = graph.run_s(3.0, Some([-0.1, 0.0]));
    // Its wheels slip a little.
    assert!(seen.is_manual && (seen.truth.linear_m_per_s[0] + 0.1).abs() < 1e-3);
    // The limiter counts it as silence after 300 ms, and brakes within 0.3 s.
    let seen = graph.run_s(1.0, None);
    assert!(seen.is_manual && seen.truth.linear_m_per_s[0].abs() < 1e-9, "{:?}", seen.truth);
    let stands_m = seen.truth.position_m;
    let seen = graph.run_s(3.5, None);
    assert_eq!((seen.is_manual, seen.truth.position_m), (true, stands_m));
    let seen = graph.run_s(6.0, None);
    assert!(!seen.is_manual && seen.truth.linear_m_per_s[0] > 0.1, "{:?}", seen.truth);
}

#[test]
fn people_who_drive_it_into_something_come_away_again() {
    let mut graph = Graph::new();
    graph.run_s(1.0, None);
    let seen = graph.run_s(20.0, Some([0.5, 0.0]));
    assert!(seen.is_bumped && seen.gap_m > -1e-9 && seen.gap_m < 1e-3, "{} m", seen.gap_m);
    let seen = graph.run_s(2.0, Some([-0.5, 0.0]));
    assert!(!seen.is_bumped && seen.gap_m > 0.1, "{} m", seen.gap_m);
}
