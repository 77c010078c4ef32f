//! The machine in a graph's records: the nodes with actuator ports. For each it is known what its
//! ports hold. For a node that shows state, brake, position and speed of each axis, as kind
//! `drives` does, it is also known what it did with the commands.

use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_spec::catalogue::{ParameterValue, Signal};
use sinew_spec::plan::Plan;

/// The state in which a drive follows its commands.
const FOLLOWS: &str = "operation enabled";
/// The brake's word for closed.
const CLOSED: &str = "closed";

/// A node that is the machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Index in the plan.
    pub(super) node: usize,
    /// The thread that it runs on.
    pub(super) thread: ThreadId,
    /// Cycles without a command after which the guard of its ports acts.
    pub(super) after: u64,
    /// Its own watchdog, in cycles, if it has one.
    pub(super) watchdog: Option<u64>,
    shown: Option<Shown>,
}

/// The signals by which a machine shows its axes.
#[derive(Clone, Debug)]
struct Shown {
    state: Axes,
    brake: Axes,
    position: Axes,
    velocity: Axes,
    follows: f64,
    closed: f64,
}

/// Where a signal is among those of the thread.
#[derive(Clone, Copy, Debug)]
struct Axes {
    first: usize,
    count: usize,
}

/// The machine in one cycle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) start_ns: u64,
    pub(super) skipped: u64,
    /// Whether any actuator obeys: it holds a command, and does not show that it ignores the
    /// command.
    pub(super) is_commanded: bool,
    /// Whether any of these commands differs from the safe value.
    pub(super) follows: bool,
    /// Whether each brake is closed.
    pub(super) braked: Vec<bool>,
    pub(super) position_rad: Vec<f64>,
    pub(super) velocity_rad_per_s: Vec<f64>,
}

impl Moment {
    /// Whether nothing moves and all brakes are closed.
    pub(super) fn is_still(&self) -> bool {
        self.braked.iter().all(|&closed| closed)
            && self.velocity_rad_per_s.iter().all(|&speed| speed == 0.0)
    }
}

impl Machine {
    /// All machines of a plan.
    pub(super) fn all(plan: &Plan) -> Vec<Machine> {
        (0..plan.nodes.len()).filter_map(|node| Machine::of(plan, node)).collect()
    }

    fn of(plan: &Plan, index: usize) -> Option<Machine> {
        let node = &plan.nodes[index];
        let realtime = plan.domains[node.domain].realtime()?;
        let after = node.actuators.iter().map(|actuator| u64::from(actuator.after)).max()?;
        let mut before = realtime.threads[node.thread].nodes.iter().take_while(|&&at| at != index);
        let signals_of = |at: usize| plan.nodes[at].kind.signals.iter().map(|signal| signal.count);
        let first: usize = before.by_ref().flat_map(|&at| signals_of(at)).sum();
        let find = |name: &str| -> Option<(Axes, &Signal)> {
            let place = node.kind.signals.iter().position(|signal| signal.name == name)?;
            let offset: usize = signals_of(index).take(place).sum();
            let signal = &node.kind.signals[place];
            Some((Axes { first: first + offset, count: signal.count }, signal))
        };
        let label = |signal: &Signal, word: &str| {
            signal.labels.iter().position(|label| *label == word).map(|at| at as f64)
        };
        let shown = || {
            let ((state, states), (brake, brakes)) = (find("state")?, find("brake")?);
            Some(Shown {
                state,
                brake,
                position: find("position_rad")?.0,
                velocity: find("velocity_rad_per_s")?.0,
                follows: label(states, FOLLOWS)?,
                closed: label(brakes, CLOSED)?,
            })
        };
        let watchdog_ms = node.kind.parameters.iter().zip(&node.values);
        let watchdog_ms = watchdog_ms.filter(|(parameter, _)| parameter.name == "watchdog_ms");
        let cycles = |ms: f64| (ms * 1e6 / realtime.period_ns as f64).ceil() as u64;
        Some(Machine {
            node: index,
            thread: ThreadId::of(node),
            after,
            watchdog: watchdog_ms.map(|(_, value)| value).find_map(|value| match value {
                ParameterValue::Number(ms) => Some(cycles(*ms)),
                _ => None,
            }),
            shown: shown(),
        })
    }

    /// Whether it shows how its axes move.
    pub(super) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// What a record of its thread says about the machine.
    pub(super) fn moment(&self, record: &Record) -> Moment {
        let mut moment = Moment {
            start_ns: record.start_ns(),
            skipped: record.skipped(),
            is_commanded: record.is_commanded(),
            follows: record.is_obeying(),
            braked: vec![],
            position_rad: vec![],
            velocity_rad_per_s: vec![],
        };
        let Some(shown) = &self.shown else { return moment };
        let all: Vec<f64> = record.signals().collect();
        let of = |axes: Axes| &all[axes.first..axes.first + axes.count];
        // What the drives do says more than what they were told: they have a watchdog of their own.
        moment.follows = of(shown.state).contains(&shown.follows);
        moment.is_commanded = moment.follows;
        moment.braked = of(shown.brake).iter().map(|&brake| brake == shown.closed).collect();
        moment.position_rad = of(shown.position).to_vec();
        moment.velocity_rad_per_s = of(shown.velocity).to_vec();
        moment
    }
}
