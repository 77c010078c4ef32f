//! What partial failure costs: the inverse kinematics dies in the middle of a move, (a) fused with
//! the rest of the controller, (b) in a process of its own before a naive master that goes on with
//! the last speed, (c) in a process of its own under Sinew.
//!
//! In (a) and (c) the node sends SIGKILL to its own process in the middle of a cycle. In (b) this
//! is not possible: Sinew's supervisor would see the death and stop the machine, which no naive
//! system would do. So in (b) the link from the inverse kinematics falls silent at the same cycle.
//! A reader of shared memory sees nothing else of a writer that was killed.

use serde::{Deserialize, Serialize};
use sinew_core::Cause;
use sinew_runtime::Kinds;
use sinew_runtime::inject::{InjectedFault, Target};
use sinew_spec::plan::Plan;

use super::carry_out::{Carried, Timing, carry_out};
use super::fault::DrilledFault;
use super::machine::Moment;
use super::stop::Stop;
use super::table::{Drill, Expected, Rule, Subject};
use crate::graph::{ARM, compiled, joint_limits_rad};

/// The cycle of the death: on the first long side of the square, at full speed.
const DEATH: u64 = 1650;
/// How long nobody intervenes in (b), unless a joint reaches its limit before.
const UNCONTROLLED_NS: u64 = 3_000_000_000;
/// How much of the time before the death is kept.
const BEFORE_NS: u64 = 100_000_000;
/// How many times as far as in (c) the arm must move in (b); otherwise the scenario shows nothing.
const COST_MIN: f64 = 2.0;

/// The scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Article {
    /// The three variants.
    pub variants: Vec<Variant>,
    /// The axis that moved furthest without control, from 1.
    pub axis: usize,
    /// Its speed when the inverse kinematics died.
    pub speed_rad_per_s: f64,
    /// What was not as expected.
    pub failures: Vec<String>,
}

/// One way to build the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Variant {
    /// `fused`, `naive`, `apart`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What was done to it, to make it fail.
    pub done: String,
    /// Time from the death to the first cycle in which no drive followed commands.
    pub safe_ns: Option<u64>,
    /// Time from the death until nothing moved and all brakes were closed.
    pub still_ns: Option<u64>,
    /// How far each axis moved from the death until all stood still, or until somebody stopped the
    /// run.
    pub moved_rad: Vec<f64>,
    /// How long after the death a joint reached its limit, and which joint, from 1.
    pub limit: Option<(u64, usize)>,
    /// How the run ended.
    pub ending: String,
    /// The worst axis, cycle by cycle.
    pub points: Vec<AxisPoint>,
}

impl Variant {
    /// The longest way of any axis.
    pub fn moved_rad_max(&self) -> f64 {
        self.moved_rad.iter().copied().fold(0.0, f64::max)
    }
}

/// An axis at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisPoint {
    /// Time since the death; negative before it.
    pub time_ms: f64,
    /// Distance from where it was at the death.
    pub way_rad: f64,
    /// Whether its brake is closed.
    pub braked: bool,
}

/// One way to build the controller, to be carried out.
struct Build {
    name: &'static str,
    about: &'static str,
    done: &'static str,
    file: &'static str,
    text: &'static str,
    overrides: &'static [(&'static str, &'static str)],
    silent: bool,
}

const BUILDS: [Build; 3] = [
    Build {
        name: "fused",
        about: "one process: planner, inverse kinematics and master fused, fail-stop",
        done: "SIGKILL in the middle of the node's cycle: the whole controller is dead",
        file: "arm.yaml",
        text: ARM,
        overrides: &[("planner.laps", "0")],
        silent: false,
    },
    Build {
        name: "naive",
        about: "a process each; a naive master goes on with the last commanded speed",
        done: "the node's output falls silent, as a killed writer's does; nothing watches it",
        file: "naive.yaml",
        text: include_str!("naive.yaml"),
        overrides: &[],
        silent: true,
    },
    Build {
        name: "apart",
        about: "a process each, under Sinew: its supervisor sees the death, safe values are ready",
        done: "SIGKILL in the middle of the node's cycle: its process is dead",
        file: "apart.yaml",
        text: include_str!("apart.yaml"),
        overrides: &[],
        silent: false,
    },
];

/// A variant that was carried out.
struct Played {
    build: &'static Build,
    carried: Carried,
    struck_ns: u64,
    moments: Vec<Moment>,
    stop: Stop,
}

/// Carries out all three; the arm's [`Files`](super::Files) must be there.
pub(super) fn run(cpus: &[u32]) -> Result<Article, String> {
    let played = BUILDS.iter().map(|build| play(build, cpus)).collect::<Result<Vec<_>, _>>()?;
    let naive = &played[1].stop.moved_rad;
    let axis = (0..naive.len()).max_by(|&a, &b| naive[a].total_cmp(&naive[b])).unwrap_or_default();
    let at = played[1].moments.partition_point(|it| it.start_ns <= played[1].struck_ns);
    let speed = played[1].moments[..at].last().map_or(0.0, |it| it.velocity_rad_per_s[axis]);
    let variants: Vec<_> = played.iter().map(|played| played.variant(axis)).collect();
    let failures = failures(&played, &variants);
    Ok(Article { variants, axis: axis + 1, speed_rad_per_s: speed.abs(), failures })
}

fn play(build: &'static Build, cpus: &[u32]) -> Result<Played, String> {
    let kinds = super::table(&crate::scenario::table(&Kinds::default())).catalogue();
    let overrides = build.overrides.iter().map(|&(name, value)| (name.into(), value.into()));
    let text = build.text.to_string();
    let graph = compiled(build.file, text, overrides.collect(), &kinds, cpus)?;
    let drill = drill(build, &graph.plan)?;
    let limits_rad = if build.silent { joint_limits_rad() } else { vec![] };
    let after_ns = UNCONTROLLED_NS;
    let timing = Timing { cycle: Some(DEATH), chance: 0, after_ns, limits_rad };
    let carried = carry_out((&graph, None), &drill, &timing)?;
    let struck_ns = carried.struck_ns.filter(|_| carried.proof.is_some());
    let struck_ns = struck_ns.ok_or_else(|| {
        format!("the article's scenario, {}: nothing shows the death", build.name)
    })?;
    let (_, moments) = carried.recording.machines.first().ok_or("the scenario has no drives")?;
    // What happens after our own order to stop is not part of the variant.
    let until_ns = carried.told_ns.unwrap_or(u64::MAX);
    let moments: Vec<_> = moments.iter().filter(|it| it.start_ns < until_ns).cloned().collect();
    let stop = Stop::of(&moments, struck_ns, false);
    Ok(Played { build, carried, struck_ns, moments, stop })
}

fn drill(build: &Build, plan: &Plan) -> Result<Drill, String> {
    let ik = plan.nodes.iter().position(|node| node.name == "ik").ok_or("there is no node 'ik'")?;
    let link = plan.links.iter().position(|link| link.from.node == ik);
    let link = link.ok_or("node 'ik' has no link")?;
    Ok(match build.silent {
        true => Drill {
            subject: Subject::Link(link),
            fault: DrilledFault::Stalled,
            obstacle: None,
            rule: Rule::GoesOn,
            expected: Expected::GoesOn { comes_back: false },
            is_in_guest: false,
            injected: Some((Target::Link(link), InjectedFault::Stalled { messages: u64::MAX })),
        },
        false => Drill {
            subject: Subject::Node(ik),
            fault: DrilledFault::Kill,
            obstacle: None,
            rule: Rule::NotMeasured("judged by the scenario"),
            expected: Expected::Faulted(Some(Cause::Died)),
            is_in_guest: false,
            injected: Some((Target::Node(ik), InjectedFault::Kill)),
        },
    })
}

impl Played {
    fn variant(&self, axis: usize) -> Variant {
        let first = self.moments.partition_point(|it| it.start_ns <= self.struck_ns);
        let origin_rad = self.moments[..first].last().map_or(0.0, |it| it.position_rad[axis]);
        let from_ns = self.struck_ns - BEFORE_NS;
        let kept = self.moments.iter().filter(|it| it.start_ns >= from_ns);
        let point = |moment: &Moment| AxisPoint {
            time_ms: (moment.start_ns as f64 - self.struck_ns as f64) / 1e6,
            way_rad: moment.position_rad[axis] - origin_rad,
            braked: moment.braked[axis],
        };
        let faults = self.carried.faults.iter().map(|(_, at)| at.fault.to_string());
        let faults = faults.collect::<Vec<_>>().join("; ");
        let ending = match self.carried.told_ns {
            Some(_) => "nothing stopped it but the drill".into(),
            None => faults,
        };
        Variant {
            name: self.build.name.into(),
            about: self.build.about.into(),
            done: self.build.done.into(),
            safe_ns: self.stop.safe_ns,
            still_ns: self.stop.still_ns,
            moved_rad: self.stop.moved_rad.clone(),
            limit: self.limit(first),
            ending,
            points: kept.map(point).collect(),
        }
    }

    /// The first joint past its limit since moment `first`.
    fn limit(&self, first: usize) -> Option<(u64, usize)> {
        let limits = joint_limits_rad();
        self.moments[first..].iter().find_map(|moment| {
            let mut joints = moment.position_rad.iter().zip(&limits);
            let joint = joints.position(|(at, (low, high))| at < low || at > high)?;
            Some((moment.start_ns - self.struck_ns, joint + 1))
        })
    }
}

fn failures(played: &[Played], variants: &[Variant]) -> Vec<String> {
    let mut failures = vec![];
    for (played, variant) in played.iter().zip(variants).filter(|(it, _)| !it.build.silent) {
        let machine = &played.carried.recording.machines[0].0;
        let bar = Rule::Guard(machine.after).cycles();
        let name = &variant.name;
        match played.stop.safe_cycles {
            None => failures.push(format!("{name}: the drives never got their safe value")),
            cycles if cycles > bar => {
                let (cycles, bar) = (cycles.unwrap_or_default(), bar.unwrap_or_default());
                failures.push(format!("{name}: safe after {cycles} cycles, the bar is {bar}"));
            }
            _ => {}
        }
        if variant.still_ns.is_none() {
            failures.push(format!("{name}: the arm did not come to rest"));
        }
        let left = played.carried.left.iter();
        failures.extend(left.map(|what| format!("{name}: left behind: {what}")));
    }
    for (played, variant) in played.iter().zip(variants).filter(|(it, _)| it.build.silent) {
        if played.carried.told_ns.is_none() {
            let (name, ending) = (&variant.name, &variant.ending);
            failures.push(format!("{name}: it was to go on, and ended by itself: {ending}"));
        }
    }
    let [_, naive, apart] = variants else { return failures };
    if naive.moved_rad_max() < COST_MIN * apart.moved_rad_max() {
        failures.push("the naive master moved the arm no further than Sinew did".into());
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_compiles_and_has_an_inverse_kinematics_that_can_die() {
        for build in &BUILDS {
            let kinds = crate::drill::table(&crate::scenario::table(&Kinds::default())).catalogue();
            let graph = compiled(build.file, build.text.into(), vec![], &kinds, &[0, 1]);
            let graph = graph.unwrap_or_else(|why| panic!("{}: {why}", build.name));
            let drill = drill(build, &graph.plan).expect("it can die");
            let domains = graph.plan.domains.len();
            assert_eq!(domains, if build.name == "fused" { 2 } else { 4 }, "{}", build.name);
            assert_eq!(matches!(drill.subject, Subject::Link(_)), build.silent);
        }
    }
}
