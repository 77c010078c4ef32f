//! `sinew drill`: makes every fault happen that a graph must survive, one run for each, and
//! measures how soon the machine was safe.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, value_parser};
use serde_json::json;
use sinew_core::privileges;
use sinew_lab::drill::{
    self, Drill, DrillReport, DrillRequest, Files, Network, Only, all, of_services, short, table,
};
use sinew_lab::harness::process::FarSide;
use sinew_lab::rounds::Session;
use sinew_lab::scenario;
use sinew_runtime::{Kinds, run};
use sinew_services::recorder;
use sinew_spec::plan::{Node, Plan};

use crate::answer::{FAULTED, print, refuse, say};
use crate::lab::output::Outputs;
use crate::load::{LoadError, load, load_and_make, of_one_host, this_machine};
use crate::part::PartArgs;
use crate::progress::Bar;
use crate::signals::stop_on_signals;

/// Inject faults on purpose, and measure how soon the machine is safe.
///
/// Every node, every domain and every link between threads gets every fault that it can have, each
/// in a separate run under the supervisor of `sinew run`. With --host the other hosts run on this
/// machine, too: the connections to them are cut, they are killed, run twice or with another graph,
/// and a stranger connects. Without GRAPH the drills run on the arm, and
/// three more runs stop its inverse kinematics: in one process, next to a master that extrapolates
/// its commands, and under Sinew. Ctrl-C ends after the current drill, a second Ctrl-C ends at
/// once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DrillArgs {
    /// The graph's YAML file. Default: the arm, whose files are part of this program
    graph: Option<PathBuf>,
    /// Run the same drills on this graph too, to compare the two
    #[arg(long, value_name = "GRAPH", requires = "graph")]
    beside: Option<PathBuf>,
    /// Only these drills: node=NAME, domain=NAME, link=FROM->TO, host=NAME, fault=WORD; several
    /// with commas. The words 'cut' and 'freeze' stand for all faults that begin so
    #[arg(long, value_name = "AXIS=VALUE[,...]")]
    only: Vec<String>,
    /// The short form: each fault once in each domain
    #[arg(long)]
    quick: bool,
    /// How often each drill runs
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=ROUNDS_MAX))]
    rounds: u32,
    /// Seed of the random cycles in which the faults come
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the report as one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Write the report as one page that needs no other file, with the picture and the raw data
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Write the picture as SVG to this folder; it is created if missing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// List the drills, the limit of each, and why some cannot run; run nothing
    #[arg(long)]
    list: bool,
    /// Only the three runs in which the inverse kinematics stops: what a partial failure costs
    #[arg(long, conflicts_with_all = ["graph", "only", "quick", "list", "set"])]
    article: bool,
    #[command(flatten)]
    part: PartArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew drill --quick
  sinew drill --only node=ik,fault=panic,kill --rounds 5
  sinew drill graphs/arm/arm.yaml --only domain=control --json
  sinew drill graphs/dual_os/arm.yaml --beside graphs/arm/arm.yaml --only node=ik,fault=stop
  sinew drill graphs/cell/cell.yaml --host cell --only host=office
  sinew drill graphs/cell/cell.yaml --host cell --only host=office,fault=cut,twin
  sinew drill --list
  sinew drill --article --report partial-failure.html

Exit status: 0 all as expected, 1 a drill did not end as expected or could not run, 2 bad request
or spec.";

/// More rounds take days.
const ROUNDS_MAX: i64 = 10_000;

/// Carries out the command.
pub(crate) fn run(args: &DrillArgs, nodes: &Kinds) -> ExitCode {
    match prepare(args, nodes) {
        Ok(prepared) if args.list => list(&prepared, args.json),
        Ok(prepared) => prepared.carry_out(args.json),
        Err(error) => error.answer(args.json),
    }
}

/// A request that is good as far as can be known before drilling.
struct Prepared {
    request: DrillRequest,
    outputs: Outputs,
    /// The arm's files, kept as long as they are needed.
    files: Option<Files>,
}

fn prepare(args: &DrillArgs, nodes: &Kinds) -> Result<Prepared, LoadError> {
    args.part.speaks_of(args.graph.as_ref()).map_err(LoadError::Request)?;
    let (graph, network, files) = match &args.graph {
        Some(path) => {
            let part = recording_apart(path, &args.part, nodes)?;
            let (graph, network) = given_part(path, &part, args.list, nodes)?;
            (graph, network, None)
        }
        None => {
            let (graph, files) = arm().map_err(LoadError::Request)?;
            (graph, None, Some(files))
        }
    };
    let drills = choose(args, &graph.plan).map_err(LoadError::Request)?;
    let outputs = Outputs::open(args.report.as_deref(), args.svg.as_deref());
    let outputs = outputs.map_err(LoadError::Request)?;
    let whole = args.graph.is_none() && args.only.is_empty();
    let (rounds, seed) = (args.rounds, args.seed);
    let beside = match &args.beside {
        Some(path) => {
            let part = recording_apart(path, &PartArgs::default(), nodes)?;
            let other = given(path, &part, nodes)?;
            let drills = choose(args, &other.plan).map_err(LoadError::Request)?;
            Some((other, drills))
        }
        None if whole && !args.article => beside(nodes, &graph.spec.machine.cpus),
        None => None,
    };
    let graphs = [(graph, drills)].into_iter().chain(beside).collect();
    let article = whole && !args.list;
    let request = DrillRequest { graphs, network, rounds, seed, article };
    Ok(Prepared { request, outputs, files })
}

/// The far sides of drills: processes that send what a host has sent, or garbage.
#[cfg(feature = "hosts")]
pub(crate) const PARTS: &[FarSide] = &[
    FarSide {
        name: drill::SEND_AGAIN,
        run: |text, _| sinew_zenoh::send_again(text).map_err(sinew_lab::harness::Gone),
    },
    FarSide {
        name: drill::MISPLACE,
        run: |text, _| sinew_zenoh::misplace(text).map_err(sinew_lab::harness::Gone),
    },
    FarSide {
        name: drill::STRANGER,
        run: |text, _| sinew_zenoh::send_garbage(text).map_err(sinew_lab::harness::Gone),
    },
];
#[cfg(not(feature = "hosts"))]
pub(crate) const PARTS: &[FarSide] = &[];

/// The user's graph. In a graph with hosts: the part of one host, and the other hosts, which run
/// beside it on this machine.
fn given_part(
    path: &Path,
    part: &PartArgs,
    list: bool,
    nodes: &Kinds,
) -> Result<(run::RunRequest, Option<Network>), LoadError> {
    let graph = given(path, part, nodes)?;
    let Some(own) = graph.plan.own_host().filter(|_| !list) else { return Ok((graph, None)) };
    let network = Network::new(&graph.plan, &own.name, path, &part.set);
    let machine = this_machine()?;
    let second = |host: &str| {
        let part = PartArgs { host: Some(host.into()), ..part.clone() };
        // What is wrong with that part is seen when it is started.
        load(path, &part, nodes, &machine).map_or(vec![], |loaded| other_ports(&loaded.plan))
    };
    let network = network.map_err(LoadError::Request)?.with_second(second);
    let set = [part.set.clone(), network.settings()].concat();
    let graph = given(path, &PartArgs { set, ..part.clone() }, nodes)?;
    Ok((graph, Some(network)))
}

/// The settings with which a second program of the same host finds its ports free.
fn other_ports(plan: &Plan) -> Vec<String> {
    let has_port = |node: &&Node| node.kind.parameters.iter().any(|it| it.name == "port");
    plan.nodes.iter().filter(has_port).map(|node| format!("{}.port=0", node.name)).collect()
}

/// The same part, in which the recorders of all hosts write into a folder in their own one: a
/// recorder removes its oldest files, and those of runs are not a drill's to remove.
fn recording_apart(path: &Path, part: &PartArgs, nodes: &Kinds) -> Result<PartArgs, LoadError> {
    let machine = this_machine()?;
    let plan = |part: &PartArgs| load(path, part, nodes, &machine).map(|loaded| loaded.plan);
    // What is wrong with the graph is reported when it is made.
    let Ok(own) = plan(part) else { return Ok(part.clone()) };
    let others = own.hosts.all.iter().filter(|host| part.host.as_ref() != Some(&host.name));
    let others = others.map(|host| PartArgs { host: Some(host.name.clone()), ..part.clone() });
    let others: Vec<_> = others.filter_map(|other| plan(&other).ok()).collect();
    let apart = others.iter().chain([&own]).flat_map(apart);
    Ok(PartArgs { set: part.set.iter().cloned().chain(apart).collect(), ..part.clone() })
}

/// The settings that move the recorders of a plan.
fn apart(plan: &Plan) -> impl Iterator<Item = String> {
    let recorders = plan.nodes.iter().filter(|node| node.kind.name == recorder::INFO.name);
    recorders.map(|node| {
        let folder = Path::new(recorder::folder_in(node)).join("drills");
        format!("{}.folder={}", node.name, json!(folder.to_string_lossy()))
    })
}

/// The graph that the user gave.
fn given(path: &Path, part: &PartArgs, nodes: &Kinds) -> Result<run::RunRequest, LoadError> {
    let loaded = load_and_make(path, part, nodes, &this_machine()?)?;
    of_one_host(&loaded.plan)?;
    Ok(run::RunRequest::new(loaded.spec, loaded.plan))
}

/// The arm, and its files.
fn arm() -> Result<(run::RunRequest, Files), String> {
    let cpus = privileges::cpus();
    let cpus = cpus.map_err(|error| format!("cannot read this process's CPUs: {error}"))?;
    let files = Files::write()?;
    Ok((drill::arm(&table(&scenario::table(&Kinds::default())), &cpus)?, files))
}

/// The arm with services beside it, and what happens to these services from outside. `None`, with a
/// message, if the program was built without the kinds of these services.
fn beside(nodes: &Kinds, cpus: &[u32]) -> Option<(run::RunRequest, Vec<Drill>)> {
    match drill::beside(&table(&scenario::table(nodes)), cpus) {
        Ok(graph) => {
            let drills = of_services(&graph.plan);
            Some((graph, drills))
        }
        Err(why) => {
            say(&format!(
                "note: the drills that flood a service or fill a disk are left out: {why}"
            ));
            None
        }
    }
}

fn choose(args: &DrillArgs, plan: &Plan) -> Result<Vec<Drill>, String> {
    if args.article {
        return Ok(vec![]);
    }
    if plan.domains.iter().all(|domain| domain.realtime().is_none()) {
        return Err("this graph has no realtime domain; name a graph with a core".into());
    }
    let drills = Only::parse(&args.only, plan)?.pick(all(plan), plan)?;
    Ok(if args.quick { short(drills, plan) } else { drills })
}

/// The table of all drills.
fn list(prepared: &Prepared, as_json: bool) -> ExitCode {
    let report = DrillReport::planned(&prepared.request);
    let text = match as_json {
        true => format!("{:#}\n", json!({ "graph": report.graph, "drills": report.rows })),
        false => drill::to_list(&report),
    };
    print(&text, ExitCode::SUCCESS)
}

impl Prepared {
    fn carry_out(self, as_json: bool) -> ExitCode {
        let Prepared { request, outputs, files } = self;
        let stop = match stop_on_signals(Files::remove) {
            Ok(stop) => stop,
            Err(error) => {
                let why = format!("cannot watch for signals: {error}");
                return refuse(&why, FAULTED, as_json);
            }
        };
        let bar = Bar::rows();
        let answer = drill::run(&request, &Session { stop: &stop, progress: &bar });
        drop((bar, files));
        let report = match answer {
            Ok(report) => report,
            Err(why) => return refuse(&why, FAULTED, as_json),
        };
        let written = outputs.write(|| drill::to_page(&report), || drill::plots(&report));
        if let Err(why) = &written {
            say(&format!("error: {why}"));
        }
        let good = written.is_ok() && report.is_good();
        let status = if good { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
        let text = match as_json {
            true => {
                let mut value = json!(report);
                value["good"] = report.is_good().into();
                format!("{value}\n")
            }
            false => drill::to_text(&report),
        };
        print(&text, status)
    }
}
