//! What a drill found, as text, as a page and as pictures, made with the lab's own functions.

mod picture;

use std::ops::Range;

use sinew_figures::units::{counted, time};
use sinew_figures::wrap::wrap_narrow;

use super::article::{Article, Variant};
use super::report::{Core, DrillReport, DrillRow, Round};
use super::seen::SeenHost;
use crate::report::Table;
use crate::show::Plot;
use crate::show::page;
use crate::show::svg::Escaped;

/// A value that is not known or was not required.
const NONE: &str = "-";

/// The report for a terminal.
pub fn to_text(report: &DrillReport) -> String {
    let mut text = format!("{}\n", headline(report));
    wrap_narrow(&mut text, "machine: ", &report.machine.to_line());
    for (table, columns) in tables(report) {
        text += &stacked(&table, columns);
    }
    if !report.rows.is_empty() {
        text.push('\n');
        wrap_narrow(&mut text, "", READ);
    }
    for (title, lines) in remarks(report) {
        text += &format!("\n{title}\n");
        for (what, why) in lines {
            wrap_narrow(&mut text, "  ", &format!("{what}: {why}"));
        }
    }
    if let Some(article) = &report.article {
        text.push('\n');
        article_lines(article).iter().for_each(|line| wrap_narrow(&mut text, "", line));
    }
    text += &format!("\n{}\n", verdict(report));
    text
}

/// What would be carried out.
pub fn to_list(report: &DrillReport) -> String {
    let mut text = headline(report) + "\n";
    for row in &report.rows {
        let bar = row.bar_cycles.map(|n| format!(", bar {n}")).unwrap_or_default();
        wrap_narrow(&mut text, "  ", &format!("{} {}, {}{bar}", row.sort, row.subject, row.fault));
        match &row.skipped {
            Some(why) => wrap_narrow(&mut text, "      ", &format!("not carried out: {why}")),
            None => wrap_narrow(&mut text, "      ", &row.rule),
        }
    }
    text
}

/// A table for a terminal: the words fill lines of their own, and these columns are below them. The
/// last word of each title is on a line of its own.
fn stacked(table: &Table, figures: Range<usize>) -> String {
    let word = |row: usize, at: usize| table.rows[row].get(at).map_or("", String::as_str);
    let titles: Vec<(&str, &str)> = table.columns[figures.clone()]
        .iter()
        .map(|title| title.rsplit_once(' ').unwrap_or(("", title)))
        .collect();
    let len = |text: &str| text.chars().count();
    let widths: Vec<usize> = (figures.clone().zip(&titles))
        .map(|(at, (upper, lower))| {
            let cells = (0..table.rows.len()).map(|row| len(word(row, at)));
            cells.chain([len(upper), len(lower)]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        format!("      {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned() + "\n"
    };
    let mut text = format!("\n{}\n", table.title);
    text += &line(&mut titles.iter().map(|title| title.0));
    text += &line(&mut titles.iter().map(|title| title.1));
    for row in 0..table.rows.len() {
        let others = (0..table.columns.len()).filter(|at| !figures.contains(at));
        let said = |at: usize| match at < figures.start {
            true => word(row, at).to_owned(),
            false => format!("{} {}", table.columns[at], word(row, at)),
        };
        let others: Vec<_> = others.filter(|&at| word(row, at) != NONE).map(said).collect();
        wrap_narrow(&mut text, "  ", &others.join(", "));
        text += &line(&mut figures.clone().map(|at| word(row, at)));
    }
    text
}

const READ: &str = "safe: from the fault to the machine's first cycle from which on no actuator \
    follows a command; cycles: those of the machine until then (bar: at most so many); moved: the \
    greatest way of an axis from the fault until all stood with closed brakes, after still. Of \
    several rounds the worst is shown. Core: cycle latency before the fault / after it. Of other \
    hosts, silent: from the fault until that is told; heard: from its end until that is told; \
    late, lost, refused, misplaced (under the key of another port or host), early (before both \
    hosts had heard each other): messages of that host that were not obeyed, in the whole drill";

/// The report as one page that needs no other file.
pub fn to_page(report: &DrillReport) -> String {
    let mut text = page::head(&format!("Sinew drill: {}", report.graph));
    let class = if report.is_good() { "yes" } else { "no" };
    text += &format!(
        "<p class=\"form\">{}</p>\n<p><span class=\"holds {class}\">{}</span></p>\n\
         <p class=\"form\">{}</p>\n",
        Escaped(&headline(report)),
        Escaped(&verdict(report)),
        Escaped(&report.machine.to_line())
    );
    let plots = plots(report);
    let figure = |plot: &Plot| format!("<figure tabindex=\"0\">\n{}</figure>\n", plot.to_element());
    if let Some(article) = &report.article {
        let lines = article_lines(article);
        let lines = lines.iter().map(|line| format!("<p>{}</p>\n", Escaped(line)));
        let content = lines.chain(plots.iter().map(figure)).collect::<String>();
        text += &page::section("The inverse kinematics dies", &content);
    }
    let mut all: Vec<Table> = tables(report).into_iter().map(|(table, _)| table).collect();
    let mut read = String::new();
    if !report.rows.is_empty() {
        all.push(endings(report));
        read = format!("<p class=\"form\">{}</p>\n", Escaped(READ));
    }
    let tables: String = all.iter().map(page::words_table).collect();
    text += &page::section("Tables", &(read + &tables));
    let mut notes = String::new();
    for (title, lines) in remarks(report) {
        let line = |(what, why): &(String, String)| {
            format!("<li>{}: {}</li>\n", Escaped(what), Escaped(why))
        };
        let lines: String = lines.iter().map(line).collect();
        notes += &format!("<h3>{}</h3>\n<ul>\n{lines}</ul>\n", Escaped(title));
    }
    text += &page::section("Notes", &notes);
    text + &page::foot(&serde_json::json!(report))
}

/// The pictures of the article's scenario, if it was carried out.
pub fn plots(report: &DrillReport) -> Vec<Plot> {
    report.article.iter().map(picture::of).collect()
}

fn headline(report: &DrillReport) -> String {
    let carried = report.rows.iter().filter(|row| row.skipped.is_none()).count();
    let DrillReport { graph, file, seed, .. } = report;
    let (drills, rounds) = (counted(carried, "drill"), counted(report.rounds as usize, "round"));
    match report.rows.is_empty() {
        true => format!("drill of '{graph}' ({file}): only the death of its inverse kinematics"),
        false => format!("drill of '{graph}' ({file}): {drills}, {rounds}, seed {seed}"),
    }
}

fn verdict(report: &DrillReport) -> String {
    let of = |verdict| report.rows.iter().filter(|row| row.verdict() == verdict).count();
    let article = report.article.as_ref().map_or(0, |article| article.failures.len());
    match (report.partial, of(Judged::No) + article, of(Judged::NotShown)) {
        (true, ..) => "PARTIAL: it was interrupted, so it proves nothing".into(),
        (false, 0, 0) => "all as expected".into(),
        (false, 0, unseen) => format!("NOT SHOWN: {}, see above", counted(unseen, "drill")),
        (false, n, 0) => format!("NOT AS EXPECTED: {}, see above", counted(n, "failure")),
        (false, n, unseen) => {
            format!("NOT AS EXPECTED: {}, {unseen} not shown, see above", counted(n, "failure"))
        }
    }
}

/// Whether a drill was as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Yes,
    No,
    NotShown,
}

impl Judged {
    fn word(self) -> &'static str {
        match self {
            Judged::Yes => "yes",
            Judged::No => "NO",
            Judged::NotShown => "not shown",
        }
    }
}

impl DrillRow {
    fn verdict(&self) -> Judged {
        match self.rounds.as_slice() {
            rounds if rounds.iter().any(|round| !round.failures.is_empty()) => Judged::No,
            rounds if rounds.iter().any(|round| !round.is_good()) => Judged::NotShown,
            _ => Judged::Yes,
        }
    }

    /// The worst of all rounds.
    fn worst<T: PartialOrd>(&self, of: impl Fn(&Round) -> Option<T>) -> Option<T> {
        let values = self.rounds.iter().filter_map(of);
        values.reduce(|worst, value| if value > worst { value } else { worst })
    }

    /// A time of the core, before the fault and after it, in microseconds.
    fn core(&self, of: impl Fn(&Core) -> Option<u64>) -> String {
        let micros = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        let before = self.worst(|round| round.core_before.as_ref().and_then(&of));
        let after = self.worst(|round| round.core_after.as_ref().and_then(&of));
        match (before, after) {
            (before, Some(after)) => format!("{} / {}", or_none(before, micros), micros(after)),
            (before, None) => or_none(before, micros),
        }
    }
}

fn or_none<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or(NONE.into(), shown)
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// The tables, each with the range of columns that are figures.
fn tables(report: &DrillReport) -> Vec<(Table, Range<usize>)> {
    let sorts = [("node", "nodes"), ("domain", "processes of domains"), ("link", "links")];
    let of_hosts = report.rows.iter().filter(|row| row.sort == "host" && row.skipped.is_none());
    let of_hosts: Vec<Vec<String>> = of_hosts.map(cells_of_host).collect();
    let table = |(sort, title): (&str, &str)| {
        let rows = report.rows.iter().filter(|row| row.sort == sort && row.skipped.is_none());
        let mut rows: Vec<&DrillRow> = rows.collect();
        // Rows of the same drill of two graphs are next to each other.
        let order: Vec<_> = rows.iter().map(|row| (&row.subject, &row.fault)).collect();
        let place = |row: &&DrillRow| order.iter().position(|it| *it == (&row.subject, &row.fault));
        rows.sort_by_cached_key(place);
        let table = Table::of(title, columns(sort), rows.into_iter().map(cells).collect());
        (!table.rows.is_empty()).then_some((table, 2..9))
    };
    let mut tables: Vec<_> = sorts.into_iter().filter_map(table).collect();
    if !of_hosts.is_empty() {
        tables.push((Table::of("other hosts", COLUMNS_OF_HOSTS, of_hosts), 2..9));
    }
    tables.extend(report.article.as_ref().map(|article| (article_table(article), 2..6)));
    tables
}

fn columns(sort: &str) -> [&str; 11] {
    [
        sort,
        "fault",
        "safe ms",
        "cycles",
        "bar",
        "still ms",
        "moved mrad",
        "core P50 us",
        "core max us",
        "came back",
        "as expected",
    ]
}

/// Columns for drills that strike another host.
const COLUMNS_OF_HOSTS: [&str; 12] = [
    "host",
    "fault",
    "silent ms",
    "heard ms",
    "late",
    "lost",
    "refused",
    "core P50 us",
    "core max us",
    "misplaced",
    "early",
    "as expected",
];

fn cells_of_host(row: &DrillRow) -> Vec<String> {
    let worst = |of: &dyn Fn(&SeenHost) -> Option<u64>| {
        or_none(row.worst(|round| round.host.as_ref().and_then(of)), |n| n.to_string())
    };
    vec![
        row.subject.clone(),
        row.fault.clone(),
        worst(&|seen| seen.silent_ms),
        worst(&|seen| seen.heard_ms),
        worst(&|seen| Some(seen.late)),
        worst(&|seen| Some(seen.lost)),
        worst(&|seen| Some(seen.refused)),
        row.core(|core| core.latency_ns_p50),
        row.core(|core| core.latency_ns_max),
        worst(&|seen| Some(seen.misplaced).filter(|n| *n > 0)),
        worst(&|seen| Some(seen.early).filter(|n| *n > 0)),
        row.verdict().word().into(),
    ]
}

fn cells(row: &DrillRow) -> Vec<String> {
    let told = row.rounds.iter().flat_map(|round| &round.restarted);
    let back = told.filter(|what| what.starts_with("ready again")).count();
    vec![
        row.of.as_ref().map_or(row.subject.clone(), |graph| format!("{} of {graph}", row.subject)),
        row.fault.clone(),
        or_none(row.worst(|round| round.stop.safe_ns), ms),
        or_none(row.worst(|round| round.stop.safe_cycles), |n| n.to_string()),
        or_none(row.bar_cycles, |n| n.to_string()),
        or_none(row.worst(|round| round.stop.still_ns), ms),
        or_none(row.worst(|round| round.stop.moved_rad_max()), |rad| format!("{:.2}", rad * 1e3)),
        row.core(|core| core.latency_ns_p50),
        row.core(|core| core.latency_ns_max),
        if back > 0 { counted(back, "time") } else { NONE.into() },
        row.verdict().word().into(),
    ]
}

/// A title, and below it lines with a subject and a reason each.
type Remarks = Vec<(&'static str, Lines)>;
type Lines = Vec<(String, String)>;

fn remarks(report: &DrillReport) -> Remarks {
    let (mut failures, mut unseen): (Lines, Lines) = (vec![], vec![]);
    for row in &report.rows {
        for round in &row.rounds {
            failures.extend(round.failures.iter().map(|why| (row.id(), why.clone())));
            unseen.extend(round.not_shown.iter().map(|why| (row.id(), why.clone())));
        }
    }
    unseen.dedup();
    let article = report.article.iter().flat_map(|article| &article.failures);
    failures.extend(article.map(|why| ("article".into(), why.clone())));
    failures.dedup();
    let mut held_up: Lines = vec![];
    for row in &report.rows {
        let periods = row.worst(|round| Some(round.stop.held_up_periods)).unwrap_or_default();
        if periods > 0 {
            let why = format!("{} in the time, not among the cycles", counted(periods, "period"));
            held_up.push((row.id(), why));
        }
    }
    let mut rules: Lines = vec![];
    for row in report.rows.iter().filter(|row| row.skipped.is_none()) {
        match rules.iter_mut().find(|(_, rule)| *rule == row.rule) {
            Some((rows, _)) => *rows += &format!(", {}", row.id()),
            None => rules.push((row.id(), row.rule.clone())),
        }
    }
    let rules = rules.into_iter().map(|(rows, rule)| (rule, rows)).collect();
    let skipped = report.rows.iter().filter_map(|row| Some((row.id(), row.skipped.clone()?)));
    let all = [
        ("not as expected", failures),
        ("not shown", unseen),
        ("held up: periods that the kernel lost before the safe output", held_up),
        ("bars", rules),
        ("not carried out", skipped.collect()),
    ];
    all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// What shows that each fault occurred, and how its run ended: too wide for a terminal.
fn endings(report: &DrillReport) -> Table {
    let row = |row: &DrillRow| {
        let id = row.id();
        let line = move |round: &Round| {
            vec![
                id.clone(),
                round.proof.clone().unwrap_or_else(|| NONE.into()),
                round.ending.clone(),
                round.restarted.join("; "),
            ]
        };
        row.rounds.iter().map(line).collect::<Vec<_>>()
    };
    let rows = report.rows.iter().flat_map(row).collect();
    let title = "what shows that the fault came, and how the run ended";
    Table::of(title, ["drill", "proof", "end", "supervisor"], rows)
}

fn article_table(article: &Article) -> Table {
    let columns =
        ["variant", "what it is", "safe ms", "still ms", "moved rad", "joint at its limit"];
    let row = |variant: &Variant| {
        let limit = |(ns, joint): (u64, usize)| format!("joint {joint} after {}", time(ns as f64));
        vec![
            variant.name.clone(),
            variant.about.clone(),
            or_none(variant.safe_ns, ms),
            or_none(variant.still_ns, ms),
            format!("{:.4}", variant.moved_rad_max()),
            or_none(variant.limit, limit),
        ]
    };
    let rows = article.variants.iter().map(row).collect();
    Table::of("the inverse kinematics dies in the middle of a move", columns, rows)
}

/// What the scenario shows, in sentences.
fn article_lines(article: &Article) -> Vec<String> {
    let mut lines = vec![];
    if let [fused, naive, apart] = article.variants.as_slice() {
        let end = match (naive.limit, naive.points.last()) {
            (Some((ns, joint)), _) => {
                format!("until joint {joint} came to its limit after {}", time(ns as f64))
            }
            (None, last) => {
                let ms = last.map_or(0.0, |point| point.time_ms);
                format!("until the drill stopped it after {}", time(ms * 1e6))
            }
        };
        let still = |variant: &Variant| or_none(variant.still_ns, |ns| time(ns as f64));
        lines.push(format!(
            "What partial failure costs: with axis {} at {:.2} rad/s, a naive master moved an \
             axis {:.3} rad without control, {end}. Fused and fail-stop it moved {:.4} rad and \
             stood after {}; in a process of its own under Sinew {:.4} rad and {}.",
            article.axis,
            article.speed_rad_per_s,
            naive.moved_rad_max(),
            fused.moved_rad_max(),
            still(fused),
            apart.moved_rad_max(),
            still(apart),
        ));
    }
    let done = article.variants.iter();
    lines.extend(done.map(|it| format!("{}: {}; then: {}", it.name, it.done, it.ending)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_figures::wrap::NARROW;

    #[test]
    fn a_table_stands_at_80_columns() {
        let row = [
            "control",
            "late by more than anybody bears",
            "1234.56",
            "10052",
            "52",
            "10234.56",
            "12.34",
            "123.4 / 234.5",
            "12345.6 / 12345.6",
            "1 time",
            "NO",
        ];
        let rows = vec![row.map(String::from).to_vec(), vec![NONE.to_owned(); 11]];
        let table = Table::of("processes", columns("domain"), rows);
        let text = stacked(&table, 2..9);
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
        let words =
            "  control, late by more than anybody bears, came back 1 time, as expected NO\n";
        assert!(text.contains(words), "{text}");
        assert!(text.contains("12345.6 / 12345.6\n"), "{text}");
    }
}
