//! The longest chain of a graph, as text for people and as JSON, with the execution times of a run
//! if its report is given.

mod earlier;

use std::fmt::Write;

use serde_json::{Value, json};
use sinew_figures::Machine;
use sinew_figures::wrap::wrap_at;
use sinew_spec::chain::Chain;
use sinew_spec::plan::Plan;

pub use self::earlier::Earlier;
use self::earlier::Figures;

/// Columns of a line.
const WIDTH: usize = 100;
/// Says what a maximum means.
const OBSERVED: &str = "maxima are observed values, not a proof that nothing takes longer";

/// The longest chain of a plan, with the figures that a run observed.
#[derive(Debug)]
pub struct Chained<'a> {
    plan: &'a Plan,
    report: Option<&'a Earlier>,
    chain: Chain,
}

impl<'a> Chained<'a> {
    /// Finds the chain that takes longest, with the execution times of `report`.
    pub fn new(plan: &'a Plan, report: Option<&'a Earlier>) -> Chained<'a> {
        let execution = |node: usize| report.and_then(|report| report.executions[node]);
        let time_ns = |node: usize| execution(node).map_or(0, |execution| execution.max_ns);
        Chained { plan, report, chain: Chain::longest(plan, time_ns) }
    }

    /// As text for people. Empty if there is no core.
    pub fn text(&self) -> String {
        if self.chain.nodes.is_empty() {
            return String::new();
        }
        let mut text = self.names();
        if let Some(report) = self.report {
            text += &self.table(report);
            text += &self.jitters_text(report);
            let place = format!("{OBSERVED}; taken on {}", report.machine.to_line());
            wrap_at(&mut text, "  ", &place, WIDTH);
            for difference in Machine::read().differences(&report.machine) {
                wrap_at(&mut text, "  taken on another machine: ", &difference, WIDTH);
            }
        }
        text
    }

    /// The names of the nodes, with a mark for each link that leaves a thread.
    fn names(&self) -> String {
        let mut names = String::new();
        for (at, &node) in self.chain.nodes.iter().enumerate() {
            if let Some(&link) = at.checked_sub(1).and_then(|before| self.chain.links.get(before)) {
                names += if self.plan.links[link].fused { " -> " } else { " => " };
            }
            names += &self.plan.nodes[node].name;
        }
        let crosses = self.chain.links.iter().any(|&link| !self.plan.links[link].fused);
        let legend = if crosses { " (=> between threads)" } else { "" };
        let mut text = String::new();
        wrap_at(&mut text, &format!("longest chain of a cycle{legend}: "), &names, WIDTH);
        text
    }

    /// The observed execution times of the chain's nodes. Every node of the chain has one.
    fn executions(&self, report: &Earlier) -> Vec<(usize, Figures)> {
        let nodes = self.chain.nodes.iter();
        nodes.filter_map(|&node| Some((node, report.executions[node]?))).collect()
    }

    fn table(&self, report: &Earlier) -> String {
        let rows = self.executions(report);
        let name = |node: usize| self.plan.nodes[node].name.as_str();
        let width = rows.iter().map(|(node, _)| name(*node).len()).max().unwrap_or(0).max(4);
        let mut text = format!(
            "  {:width$}  {:>10}  {:>10}  {:>10}  {:>8}   execution times of {}\n",
            "node", "p50, us", "max, us", "of period", "cycles", report.file
        );
        let mut line = |name: &str, p50_ns: Option<u64>, max_ns: u64, share: f64, count: &str| {
            let p50 = p50_ns.map_or("-".into(), micros);
            let (max, share) = (micros(max_ns), format!("{:.1} %", share * 100.0));
            let _ = writeln!(
                text,
                "{}",
                format!("  {name:width$}  {p50:>10}  {max:>10}  {share:>10}  {count:>8}")
                    .trim_end()
            );
        };
        for (node, observed) in &rows {
            let Figures { p50_ns, max_ns, count } = *observed;
            let share = max_ns as f64 / self.period_ns(*node) as f64;
            line(name(*node), p50_ns, max_ns, share, &count.to_string());
        }
        let (p50_ns, max_ns) = sums(&rows);
        let share = max_ns as f64 / self.period_ns(self.chain.nodes[0]) as f64;
        line("sum", p50_ns, max_ns, share, "");
        text
    }

    /// The period of a node's domain; never 0.
    fn period_ns(&self, node: usize) -> u64 {
        let domain = &self.plan.domains[self.plan.nodes[node].domain];
        domain.realtime().map_or(1, |realtime| realtime.period_ns.max(1))
    }

    /// The threads of the chain, each once: domain and thread.
    fn threads(&self) -> Vec<(usize, usize)> {
        let home = |&node: &usize| (self.plan.nodes[node].domain, self.plan.nodes[node].thread);
        let mut threads: Vec<_> = self.chain.nodes.iter().map(home).collect();
        let mut seen = std::collections::HashSet::new();
        threads.retain(|&thread| seen.insert(thread));
        threads
    }

    fn jitters_text(&self, report: &Earlier) -> String {
        let mut text = String::new();
        for (domain, thread) in self.threads() {
            let Some(jitter) = report.jitters[domain][thread] else { continue };
            let name = &self.plan.domains[domain].name;
            let p50 = jitter.p50_ns.map_or("-".into(), micros);
            let _ = writeln!(
                text,
                "  activation jitter of {name}, thread {thread}: p50 {p50} us, max {} us",
                micros(jitter.max_ns)
            );
        }
        text
    }

    /// As one JSON object. Figures are null without a report.
    pub fn to_json(&self) -> Value {
        let nodes = self.chain.nodes.iter().map(|&node| {
            let row = &self.plan.nodes[node];
            let execution = self.report.and_then(|report| report.executions[node]);
            let share = execution.map(|row| row.max_ns as f64 / self.period_ns(node) as f64);
            json!({
                "name": row.name,
                "domain": self.plan.domains[row.domain].name,
                "thread": row.thread,
                "period_ns": self.period_ns(node),
                "execution_ns": execution,
                "period_share_max": share,
            })
        });
        let sum = self.report.map(|report| {
            let (p50_ns, max_ns) = sums(&self.executions(report));
            json!({ "p50": p50_ns, "max": max_ns })
        });
        let jitters = self.report.map(|report| {
            let row = |(domain, thread): (usize, usize)| {
                let jitter = report.jitters[domain][thread];
                let name = &self.plan.domains[domain].name;
                json!({ "domain": name, "thread": thread, "activation_jitter_ns": jitter })
            };
            self.threads().into_iter().map(row).collect::<Value>()
        });
        json!({
            "nodes": nodes.collect::<Value>(),
            "sum_ns": sum,
            "threads": jitters,
            "figures": self.report.map(|_| OBSERVED),
            "machine": self.report.map(|report| report.machine.to_json()),
        })
    }
}

/// The sum of the medians, if every row has one, and the sum of the maxima.
fn sums(rows: &[(usize, Figures)]) -> (Option<u64>, u64) {
    let p50_ns = rows.iter().map(|(_, row)| row.p50_ns).sum();
    (p50_ns, rows.iter().fold(0, |sum: u64, (_, row)| sum.saturating_add(row.max_ns)))
}

fn micros(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}
