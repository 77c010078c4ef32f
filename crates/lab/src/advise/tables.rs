//! The advice as tables: each link and each thread as it is and as it would be, and what was said
//! about each alternative.

use sinew_figures::Distribution;
use sinew_figures::units::time;
use sinew_spec::plan::{Link, Plan};

use super::choose::{Choice, Measured};
use super::each::OfLink;
use super::trial::{CPU, CYCLE, cpu_of};
use crate::report::{Measure, Row, Table};

/// All tables but that of the ways.
pub(super) fn all(measured: &[Measured<'_>], choice: &Choice, own_nodes: &[Row]) -> Vec<Table> {
    let Some(stands) = measured.first() else { return vec![] };
    let chosen = choice.chosen.and_then(|at| measured.get(at)).unwrap_or(stands);
    let mut all =
        vec![alternatives(measured, choice), links(stands, chosen), domains(stands, chosen)];
    if let [stands, others @ ..] = own_nodes {
        all.push(own(stands, chosen, others.first().unwrap_or(stands)));
    }
    all
}

/// What the figures of each link of a layout say about each way that all links were measured with.
/// `measured` holds the ways in the order of the words.
pub(super) fn ways(measured: &[Measured<'_>], links: &[OfLink]) -> Table {
    let row = |of: &OfLink, way: usize| {
        let Measured { row, .. } = &measured[way];
        let mark = if of.best == Some(way) { "-> " } else { "   " };
        let [p50, p99, max] = times(row, &of.link);
        let cpu = percent(row.figure(&of.cpu));
        let ways: Vec<_> =
            ["transport", "sync", "wait"].iter().filter_map(|it| row.axis(it)).collect();
        let way_word = format!("{mark}{}", ways.join("/"));
        vec![of.link.clone(), way_word, p50, p99, max, cpu, of.words[way].clone()]
    };
    let of_link = |of: &OfLink| (0..measured.len()).map(|way| row(of, way)).collect::<Vec<_>>();
    let title = "Each link in each way, in the layout of the advice; CPU of its reader's domain";
    let columns = ["link", "way", "p50", "p99", "max", "CPU", "why"];
    Table::of(title, columns, links.iter().flat_map(of_link).collect())
}

/// What was predicted for the choice, beside what was seen with the graph's own nodes.
fn own(stands: &Row, chosen: &Measured<'_>, seen: &Row) -> Table {
    let links = chosen.plan.links.iter().enumerate().map(|(at, _)| chosen.plan.link_name(at));
    let p50 = |row: &Row, name: &str| row.measure(name)?.distribution.quantile(0.5);
    let row = |name: String| {
        let (predicted, seen_ns) = (p50(chosen.row, &name), p50(seen, &name));
        let over = predicted.zip(seen_ns).map(|(was, is)| is as f64 / was.max(1) as f64);
        let shown = |ns: Option<u64>| ns.map_or("-".into(), |ns| time(ns as f64));
        let over = over.map_or("-".into(), |over| format!("{over:.2}"));
        let stood = shown(p50(stands, &name));
        let starts = seen.measure(&name).and_then(Measure::spread);
        let starts =
            starts.map_or("-".into(), |it| format!("{} to {}", time(it.low), time(it.high)));
        vec![name.replace('_', " "), stood, shown(predicted), shown(seen_ns), starts, over]
    };
    let rows = std::iter::once(CYCLE.to_owned()).chain(links).map(row).collect();
    let title = "P50 with the graph's own nodes: as it stands, and as it would be";
    let columns =
        ["", "as it is", "stand-ins", "its own nodes", "in each start", "own over stand-ins"];
    Table::of(title, columns, rows)
}

fn alternatives(measured: &[Measured<'_>], choice: &Choice) -> Table {
    let row = |(at, measured): (usize, &Measured<'_>)| {
        let mark = match (choice.chosen == Some(at), at) {
            (true, _) => "-> ",
            (false, 0) => "=  ",
            _ => "   ",
        };
        let [p50, p99, max] = times(measured.row, CYCLE);
        let cpu = percent(measured.row.figure(CPU));
        vec![format!("{mark}{}", measured.row.id()), p50, p99, max, cpu, choice.words[at].clone()]
    };
    let rows = measured.iter().enumerate().map(row).collect();
    let title = "Alternatives: cycle latency and CPU time of the core (= as it is, -> chosen)";
    Table::of(title, ["alternative", "p50", "p99", "max", "CPU", "why"], rows)
}

fn links(stands: &Measured<'_>, chosen: &Measured<'_>) -> Table {
    let row = |at: usize| {
        let name = stands.plan.link_name(at);
        let now = times(stands.row, &name);
        let then = times(chosen.row, &name);
        let same = (0..chosen.plan.links.len()).find(|&it| chosen.plan.link_name(it) == name);
        let options = same.map_or("-".into(), |it| options(&chosen.plan.links[it]));
        let saves = saves(stands.row, chosen.row, &name);
        let mut cells = vec![name, self::options(&stands.plan.links[at])];
        cells.extend(now);
        cells.push(options);
        cells.extend(then);
        cells.push(saves);
        cells
    };
    let rows = (0..stands.plan.links.len()).map(row).collect();
    let title = "Links: from the end of the writer's update to the start of the reader's";
    let columns =
        ["link", "as it is", "p50", "p99", "max", "best", "p50", "p99", "max", "saves at p50"];
    Table::of(title, columns, rows)
}

/// The options of a link, in words.
pub(super) fn options(link: &Link) -> String {
    if link.fused {
        return "fused: a plain slot".into();
    }
    let words = [link.transport.word(), link.sync.word(), link.wait.word(), link.delivery.word()];
    words.join(" ")
}

fn domains(stands: &Measured<'_>, chosen: &Measured<'_>) -> Table {
    let mut rows: Vec<Vec<String>> = vec![];
    for (what, of) in [("as it is", stands), ("best", chosen)] {
        for domain in &of.plan.domains {
            let threads: Vec<_> =
                domain.threads().iter().map(|it| names(of.plan, &it.nodes)).collect();
            let cpu = percent(of.row.figure(&cpu_of(&domain.name)));
            rows.push(vec![what.into(), domain.name.clone(), threads.join(" | "), cpu]);
        }
    }
    Table::of("Threads", ["", "domain", "nodes of each thread", "CPU"], rows)
}

fn names(plan: &Plan, nodes: &[usize]) -> String {
    let names: Vec<_> = nodes.iter().map(|&node| plan.nodes[node].name.as_str()).collect();
    names.join(" ")
}

fn times(row: &Row, measure: &str) -> [String; 3] {
    let of = row.measure(measure).map(|measure| &measure.distribution);
    let shown = |ns: Option<u64>| ns.map_or("-".into(), |ns| time(ns as f64));
    let quantile = |share| shown(of.and_then(|it| it.quantile(share)));
    [quantile(0.5), quantile(0.99), shown(of.and_then(Distribution::max))]
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1} %"))
}

/// How much of a link's latency the choice saves, if that can be told.
fn saves(stands: &Row, chosen: &Row, measure: &str) -> String {
    let pair = chosen.measure(measure).zip(stands.measure(measure));
    match pair.and_then(|(chosen, stands)| Some((chosen.over(stands)?, stands.spread()?))) {
        Some((over, was)) if over.differs_from_one() => {
            let saved = was.median * (1.0 - over.median);
            match saved < 0.0 {
                true => format!("costs {} more", time(-saved)),
                false => format!("{} ({:.0} %)", time(saved), (1.0 - over.median) * 100.0),
            }
        }
        Some(_) => "not distinguishable".into(),
        None => "-".into(),
    }
}
