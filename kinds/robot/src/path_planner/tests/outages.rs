//! The planner on another host than limiter and `ik`: an outage of the network between them ends
//! neither, and then the path goes on.

use std::collections::VecDeque;

use fastrand::Rng;

use super::*;
use crate::messages::JointTargets;
use crate::{ik, pose_limiter};

/// Periods of the planner per ms.
const PLANNER_MS: u64 = 10;
/// From the targets of the joints to the feedback that answers them.
const DRIVES_MS: usize = 3;
/// Messages older than this are not obeyed, as `after` says by default.
const AFTER_MS: u64 = 100;
/// Far more than a lap takes, ms.
const LAP_MS: u64 = 60_000;

/// A message on its way. A receiver knows the age of a message by the time that the sender had
/// last heard from it.
struct Sent<T> {
    arrives_ms: u64,
    sent_ms: u64,
    echo_ms: u64,
    message: T,
}

/// One direction of the network, and what its receiver has last heard of the sender's time.
struct Way<T> {
    under_way: VecDeque<Sent<T>>,
    heard_ms: u64,
    /// Nothing arrives before this.
    cut_until_ms: u64,
}

impl<T> Way<T> {
    fn new() -> Way<T> {
        Way { under_way: VecDeque::new(), heard_ms: 0, cut_until_ms: 0 }
    }

    /// Messages keep their order. What is sent during an outage arrives all at once after it.
    fn send(&mut self, now_ms: u64, delay_ms: u64, echo_ms: u64, message: T) {
        let before_ms = self.under_way.back().map_or(0, |sent| sent.arrives_ms);
        let arrives_ms = (now_ms + delay_ms).max(before_ms);
        self.under_way.push_back(Sent { arrives_ms, sent_ms: now_ms, echo_ms, message });
    }

    /// The last message that has arrived and is young enough.
    fn receive(&mut self, now_ms: u64) -> Option<T> {
        let mut last = None;
        while now_ms >= self.cut_until_ms
            && self.under_way.front().is_some_and(|sent| sent.arrives_ms <= now_ms)
        {
            let sent = self.under_way.pop_front()?;
            self.heard_ms = sent.sent_ms;
            let is_young = now_ms - sent.echo_ms <= AFTER_MS;
            last = if is_young { Some(sent.message) } else { last };
        }
        last
    }
}

/// Planner here, limiter, `ik` and drives without errors of their own there.
struct Cell {
    planner: NodeFixture,
    limiter: NodeFixture,
    ik: NodeFixture,
    to_cell: Way<CartesianTarget>,
    to_office: Way<AxisFeedback>,
    drives: VecDeque<JointTargets>,
    random: Rng,
    now_ms: u64,
    /// Cycles of the limiter with a pose to go to that was not near, and greatest turn behind.
    far: u64,
    turn_behind_rad: f64,
}

impl Cell {
    fn new(mut planner: NodeFixture, seed: u64) -> Cell {
        planner.cycle.period_ns = PLANNER_MS * 1_000_000;
        let arm = [("arm", "irb120.urdf")];
        let limited = [("arm", "irb120.urdf"), ("hold_after", "150ms")];
        Cell {
            planner,
            limiter: fixture(&pose_limiter::NODE, &graph(), &limited).expect("makes"),
            ik: fixture(&ik::NODE, &graph(), &arm).expect("makes"),
            to_cell: Way::new(),
            to_office: Way::new(),
            drives: VecDeque::new(),
            random: Rng::with_seed(seed),
            now_ms: 0,
            far: 0,
            turn_behind_rad: 0.0,
        }
    }

    fn millisecond(&mut self) {
        self.now_ms += 1;
        self.cell();
        if self.now_ms.is_multiple_of(PLANNER_MS) {
            self.office();
        }
    }

    fn cell(&mut self) {
        if let Some(target) = self.to_cell.receive(self.now_ms) {
            self.limiter.put(0, &target);
        }
        self.limiter.update().expect("never faults");
        let target = self.limiter.get::<CartesianTarget>(1).expect("sends every cycle");
        let [_, holds, _, turn_behind_rad, ..] =
            std::array::from_fn::<_, 6, _>(|i| self.limiter.signal(i)[0]);
        self.far += u64::from(holds == 0.0 && target.sequence == 0);
        self.turn_behind_rad = self.turn_behind_rad.max(turn_behind_rad);
        self.ik.put(0, &target);
        self.ik.update().unwrap_or_else(|fault| panic!("at {} ms: {fault}", self.now_ms));
        self.drives.push_back(self.ik.get::<JointTargets>(1).expect("sends"));
        if self.drives.len() <= DRIVES_MS {
            return;
        }
        let reached = self.drives.pop_front().expect("some");
        let feedback = AxisFeedback {
            position_rad: reached.position_rad,
            velocity_rad_per_s: reached.velocity_rad_per_s,
            sequence: reached.sequence,
            ..at_home(0)
        };
        let delay_ms = self.random.u64(1..4);
        self.to_office.send(self.now_ms, delay_ms, self.to_cell.heard_ms, feedback);
    }

    fn office(&mut self) {
        if let Some(feedback) = self.to_office.receive(self.now_ms) {
            self.planner.put(FEEDBACK, &feedback);
        }
        self.planner.update().unwrap_or_else(|fault| panic!("at {} ms: {fault}", self.now_ms));
        let delay_ms = self.random.u64(1..4);
        let target = target(&self.planner);
        self.to_cell.send(self.now_ms, delay_ms, self.to_office.heard_ms, target);
    }

    /// Runs a while, and then through an outage of one direction or of both.
    fn outage(&mut self) {
        for _ in 0..self.random.u64(100..2_000) {
            self.millisecond();
        }
        let until_ms = self.now_ms + self.random.u64(50..2_000);
        match self.random.u32(0..3) {
            0 => self.to_cell.cut_until_ms = until_ms,
            1 => self.to_office.cut_until_ms = until_ms,
            _ => (self.to_cell.cut_until_ms, self.to_office.cut_until_ms) = (until_ms, until_ms),
        }
        while self.now_ms < until_ms {
            self.millisecond();
        }
    }

    /// Goes on until the next lap but one begins.
    fn complete_a_lap(&mut self) {
        let until_ms = self.now_ms + LAP_MS;
        let lap = self.planner.signal(LAP)[0];
        while self.planner.signal(LAP)[0] < lap + 2.0 {
            assert!(self.now_ms < until_ms, "in lap {lap} it does not go on");
            self.millisecond();
        }
    }
}

/// How many outages of each path variable `SINEW_OUTAGES` says.
fn outages() -> u64 {
    let given = std::env::var("SINEW_OUTAGES").ok();
    given.map_or(20, |count| count.parse().expect("a number of outages"))
}

/// The tool turns by 100 degrees on each side.
const TURNS: &str = "302,-60,450,180,0,180,250\n302,60,450,180,0,80,250\n";
/// The square of `graphs/arm`, around which the tool tilts.
const SQUARE: &str = "275,-75,350,180,0,180,250\n425,-75,350,180,10,180,250\n\
                      425,75,350,170,0,180,250\n275,75,350,180,0,180,250\n\
                      275,-75,350,180,0,180,250\n";

/// As in `graphs/cell`.
const GIVEN: [(&str, &str); 3] = [("laps", "0"), ("following_mm", "60"), ("following_deg", "20")];

#[test]
fn an_outage_at_any_moment_ends_nothing_and_the_path_goes_on() {
    for (name, rows, behind_deg_min) in [("turns", TURNS, 20.0), ("square", SQUARE, 5.0)] {
        let mut cell = Cell::new(planner(name, rows, &GIVEN).expect("makes"), 21);
        cell.complete_a_lap();
        assert_eq!(cell.far, 0, "without an outage it is always near");
        for _ in 0..outages() {
            cell.outage();
        }
        cell.complete_a_lap();
        let behind_deg = cell.turn_behind_rad.to_degrees();
        assert!(cell.far > outages(), "not shown: not near in {} cycles", cell.far);
        assert!(behind_deg > behind_deg_min, "not shown: only {behind_deg} deg behind");
    }
}

#[test]
fn an_arm_that_does_not_follow_the_limiter_is_a_fault() {
    let mut cell = Cell::new(planner("stuck", TURNS, &GIVEN).expect("makes"), 22);
    cell.complete_a_lap();
    let stuck = cell.drives[0].position_rad;
    for _ in 0..LAP_MS / PLANNER_MS {
        let sequence = target(&cell.planner).sequence;
        let feedback = AxisFeedback { position_rad: stuck, ..at_home(sequence) };
        cell.planner.put(FEEDBACK, &feedback);
        let Err(fault) = cell.planner.update() else { continue };
        return assert!(fault.text().contains("following error"), "{fault}");
    }
    panic!("no fault");
}
