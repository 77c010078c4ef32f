//! The report for people: 80 columns, with a unit and a count for every figure.

use std::fmt::Write;

use sinew_control::status::FlowStatus;
use sinew_core::board::FaultAt;
use sinew_figures::Distribution;
use sinew_figures::short::{mean_micros, micros};
use sinew_figures::units::counted;
use sinew_figures::wrap::wrap_narrow;

use super::{Ending, Report};
use crate::links::LinkStats;
use crate::stats::ThreadStats;

impl Report<'_> {
    /// The faults, one line each, for standard error.
    pub fn faults_text(&self) -> String {
        let mut text = String::new();
        for (domain, at) in &self.faults {
            text += &format!("error: {}\n", self.fault_text(*domain, at));
        }
        text
    }

    fn fault_text(&self, domain: usize, at: &FaultAt) -> String {
        let mut text = format!("{}: ", self.plan.domains[domain].name);
        text += &at.cycle.map(|cycle| format!("cycle {cycle}: ")).unwrap_or_default();
        let node = self.node_name(at).map(|node| format!("in node '{node}': "));
        text += &node.unwrap_or_default();
        text + at.fault.text()
    }

    /// How long the last stop took, and how the earlier lives ended.
    fn stop_text(&self) -> String {
        let mut text = String::new();
        if let Some(stop) = &self.stop {
            // Without a core there are no outputs to make safe.
            let has_core = !self.stats.threads.is_empty();
            let words = if has_core { stop.to_string() } else { stop.reason.clone() };
            wrap_narrow(&mut text, "stop: ", &words);
        }
        if self.resets > 0 {
            let _ = writeln!(text, "the core started again {}", counted(self.resets, "time"));
        }
        for (life, domain, at) in &self.earlier_faults {
            wrap_narrow(
                &mut text,
                &format!("  fault of life {life}: "),
                &self.fault_text(*domain, at),
            );
        }
        text
    }

    /// The whole report except its faults.
    pub fn to_text(&self) -> String {
        let mut text = self.head();
        for thread in &self.stats.threads {
            text += &thread_text(thread);
        }
        text += &self.links_text();
        text += &self.requirements_text();
        text += &self.flows_text();
        text += &self.services_text();
        text += &self.late_text();
        text += &self.signals_text();
        text += &self.privileges_text();
        if !self.plan.notes.is_empty() {
            text += "\nnotes of the plan\n";
            for note in &self.plan.notes {
                wrap_narrow(&mut text, "  - ", note);
            }
        }
        text.push('\n');
        wrap_narrow(&mut text, "machine: ", &self.machine.to_line());
        wrap_narrow(&mut text, "", &self.verdict());
        text
    }

    /// The result in a sentence, with the exit status.
    fn verdict(&self) -> String {
        let given_up: Vec<_> = self.given_up().collect();
        let not_kept: Vec<_> = self.not_kept().collect();
        let how = match (self.faults.first(), self.ending) {
            (_, Ending::Killed) => "killed before the graph had stopped".into(),
            (Some((domain, at)), _) => format!("faulted: {}", self.fault_text(*domain, at)),
            (None, ending)
                if given_up.is_empty() && self.lacks.is_empty() && not_kept.is_empty() =>
            {
                format!("{ending}, good")
            }
            (None, ending) => {
                let mut how = ending.to_string();
                if !given_up.is_empty() {
                    how += &format!(", without {}, given up", given_up.join(", "));
                }
                if !not_kept.is_empty() {
                    how += &format!(
                        ", but {} not kept",
                        counted(not_kept.len() as u64, "requirement")
                    );
                }
                if !self.lacks.is_empty() {
                    how += &format!(", but {}", self.lacks.join("; "));
                }
                how
            }
        };
        format!("{how}; exit status {}", self.exit_status())
    }

    fn head(&self) -> String {
        let mut text =
            format!("{}: {} after {:.1} s", self.plan.name, self.ending, self.duration_s);
        if let Some(control) = self.stats.control() {
            let totals = control.totals();
            let cycles = counted(totals.cycles, "cycle");
            let overruns = counted(totals.overruns, "overrun");
            let _ = write!(text, ", {cycles}, {overruns}, {} skipped", totals.skipped);
        }
        let lost = self.stats.records_lost();
        if lost > 0 {
            let _ = write!(text, ", {} lost", counted(lost, "record"));
        }
        let nodes = self.services.iter().flat_map(|service| &service.flows);
        let sources: Vec<_> = nodes.filter(|node| node.is_source).collect();
        if !sources.is_empty() {
            let sum =
                |of: fn(&FlowStatus) -> u64| sources.iter().map(|it| of(&it.status)).sum::<u64>();
            let (flows, errors) = (sum(|status| status.packets), sum(|status| status.errors));
            let _ = write!(text, ", {}, {}", counted(flows, "flow"), counted(errors, "error"));
            let refused = sum(|status| status.refused);
            if refused > 0 {
                let _ = write!(text, ", {refused} refused: no room");
            }
        }
        text.push('\n');
        if lost > 0 {
            let words = "sinew run read these cycles of its threads too late: they are counted, \
                         but in no other figure; give it more CPU time, or make the period longer";
            wrap_narrow(&mut text, "records lost: ", words);
        }
        if let Some(error) = self.stats.tracking_error_m() {
            let max_mm = error.max * 1e3;
            let _ = writeln!(text, "tracking error: {max_mm:.4} mm at most");
        }
        if let Some(ms) = self.start_to_first_cycle_ms {
            let _ = writeln!(text, "first cycle: {ms:.1} ms after the start");
        }
        let memory =
            self.plan.domains.iter().zip(&self.processes).filter_map(|(domain, process)| {
                let mib = process.resident_kib_max? as f64 / 1024.0;
                Some(format!("{} {mib:.1} MiB", domain.name))
            });
        let memory: Vec<_> = memory.collect();
        if !memory.is_empty() {
            wrap_narrow(&mut text, "resident at most: ", &memory.join(", "));
        }
        let given_up: Vec<_> = self.given_up().collect();
        if !given_up.is_empty() {
            wrap_narrow(&mut text, "given up, the graph went on without: ", &given_up.join(", "));
        }
        text + &self.stop_text()
    }

    fn links_text(&self) -> String {
        if self.links.rows.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "\nlinks, from the end of the writer's update to the start of the reader's; times in \
             us\n\
             {:<20}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
            "", "n", "mean", "p50", "p99", "p99.9", "max"
        );
        let name = |row: &LinkStats| self.plan.link_name(row.link);
        self.links.rows.iter().for_each(|it| named_row(&mut text, &name(it), &it.latency));
        text
    }

    fn requirements_text(&self) -> String {
        let mut text = String::new();
        self.judged.iter().for_each(|it| wrap_narrow(&mut text, "  - ", &it.to_line()));
        if text.is_empty() { text } else { format!("\nrequirements\n{text}") }
    }

    /// What the flow nodes have done in the last life of their domain.
    fn flows_text(&self) -> String {
        let nodes = self.services.iter().flat_map(|service| &service.flows);
        let mut text = String::new();
        for node in nodes {
            let FlowStatus { packets, errors, .. } = node.status;
            let FlowStatus { time_ns_p50, time_ns_p99, time_ns_max, .. } = node.status;
            let short: String = node.name.chars().take(21).collect();
            let _ = write!(text, "  {short:<22}{packets:>12}{errors:>9}");
            for ns in [time_ns_p50, time_ns_p99, time_ns_max] {
                let _ = write!(text, "{:>10}", micros(ns));
            }
            text.push('\n');
        }
        if text.is_empty() {
            return text;
        }
        let head = format!(
            "  {:<22}{:>12}{:>9}{:>10}{:>10}{:>10}",
            "", "n", "errors", "p50", "p99", "max"
        );
        format!("\nflow nodes; times in us, in the node itself and where it waits\n{head}\n{text}")
    }

    /// The state of the services.
    fn services_text(&self) -> String {
        let mut text = String::new();
        for service in &self.services {
            let name = format!("  {:<13} ", self.plan.domains[service.domain].name);
            let restarts = counted(service.restarts, "restart");
            let state = service.state.word().replace('_', " ");
            let reason = service.last_reason.as_deref().unwrap_or("never ended");
            wrap_narrow(&mut text, &name, &format!("{state}, {restarts}; last end: {reason}"));
        }
        self.broken_links.iter().for_each(|link| wrap_narrow(&mut text, "  - ", link));
        if text.is_empty() { text } else { format!("\nservices\n{text}") }
    }

    /// Why cycles were late, and the worst ones.
    fn late_text(&self) -> String {
        let mut causes: Vec<_> = self.late.causes().collect();
        if causes.is_empty() {
            return String::new();
        }
        let mut text =
            format!("\n{}, the worst first\n", counted(self.late.cycles(), "late cycle"));
        causes[0].insert_str(0, "by cause: ");
        wrap_narrow(&mut text, "  ", &causes.join(", "));
        self.late.worst().for_each(|late| wrap_narrow(&mut text, "  - ", late));
        text
    }

    /// The last states that were seen. For a domain that died, those before its death.
    fn signals_text(&self) -> String {
        let mut text = String::new();
        for signal in self.stats.signals().filter(|signal| signal.is_state()) {
            let name = format!("  {:<21} ", format!("{}.{}", signal.node, signal.signal.name));
            wrap_narrow(&mut text, &name, &signal.words());
        }
        if text.is_empty() { text } else { format!("\nstates as last seen\n{text}") }
    }

    fn privileges_text(&self) -> String {
        if self.privileges.is_empty() {
            return String::new();
        }
        let mut text = "\nprivileges\n".to_string();
        for (id, _, obtained) in &self.privileges {
            let name = format!("{}, thread {}", self.plan.domains[id.domain].name, id.thread);
            let cpu = match obtained.cpu {
                Some(cpu) => format!("CPU {cpu}"),
                None => "any CPU".into(),
            };
            let (policy, priority) = (obtained.policy_name(), obtained.priority);
            let locked_mib = f64::from(obtained.locked_kib) / 1024.0;
            let got = format!("{policy} {priority}, {cpu}, {locked_mib:.1} MiB locked");
            wrap_narrow(&mut text, &format!("  {name:<21} "), &got);
        }
        // What one thread lacks, most others lack too. It is enough to say it once.
        let rows = self.privileges.iter();
        let mut missing: Vec<_> =
            rows.flat_map(|(_, asked, obtained)| obtained.missing(asked)).collect();
        missing.sort();
        missing.dedup();
        missing.iter().for_each(|missing| wrap_narrow(&mut text, "  missing: ", missing));
        text
    }
}

fn thread_text(thread: &ThreadStats) -> String {
    let title = format!(
        "{}, thread {}, every {} us; times in us",
        thread.domain,
        thread.id.thread,
        thread.period_ns / 1000
    );
    if thread.totals().cycles == 0 {
        return format!("\n{title}\n  no cycle ran\n");
    }
    let mut text = format!(
        "\n{title}\n  {:<18}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
        "", "n", "mean", "p50", "p99", "p99.9", "max"
    );
    row(&mut text, "cycle latency", &thread.latency);
    if thread.is_timer_released() {
        row(&mut text, "activation jitter", &thread.jitter);
        row(&mut text, "release to end", &thread.response);
    }
    for node in &thread.nodes {
        row(&mut text, &node.name, &node.execution);
    }
    let left_us = |ns: f64| (thread.period_ns as f64 - ns) / 1e3;
    if let (Some(max), Some(mean)) = (thread.latency.max(), thread.latency.mean()) {
        let (least_us, mean_us) = (left_us(max as f64), left_us(mean));
        let _ = writeln!(text, "  slack: least {least_us:.1} us, mean {mean_us:.1} us");
    }
    text += &losses(thread);
    text += &allocations(thread);
    text
}

/// The same for something with a long name. The name then has a line of its own.
fn named_row(text: &mut String, name: &str, times: &Distribution) {
    match name.chars().count() {
        0..=17 => row(text, name, times),
        _ => {
            let _ = writeln!(text, "  {name}");
            row(text, "", times);
        }
    }
}

fn row(text: &mut String, name: &str, times: &Distribution) {
    let short: String = name.chars().take(17).collect();
    let mean = mean_micros(times.mean());
    let _ = write!(text, "  {short:<18}{:>9}{mean:>9}", times.n());
    for share in [0.5, 0.99, 0.999] {
        let _ = write!(text, "{:>9}", micros(times.quantile(share)));
    }
    let _ = writeln!(text, "{:>9}", micros(times.max()));
}

/// What did not go as planned. Empty if everything did.
fn losses(thread: &ThreadStats) -> String {
    let mut parts = Vec::new();
    let (by, totals) = (thread.overruns_by, thread.totals());
    let unread = totals.overruns.saturating_sub(by.late_start + by.feedback + by.nodes);
    let overruns = [
        (by.late_start, "late start (kernel or host)"),
        (by.feedback, "outside the nodes (feedback, links, preemption)"),
        (by.nodes, "executing nodes"),
        (unread, "in records that were lost"),
    ];
    let why = overruns.iter().filter(|row| row.0 > 0).map(|(n, why)| format!("{n} {why}"));
    if totals.overruns > 0 {
        let why: Vec<_> = why.collect();
        parts.push(format!("{}: {}", counted(totals.overruns, "overrun"), why.join(", ")));
    }
    let counts = [
        (totals.skipped, "period", "skipped"),
        (totals.without_input, "cycle", "without input"),
        (totals.without_feedback, "cycle", "without feedback"),
        (thread.records_lost, "record", "lost"),
        (totals.messages_lost, "message", "lost"),
        (totals.messages_dropped, "message", "dropped"),
    ];
    let counts = counts.into_iter().filter(|row| row.0 > 0);
    parts.extend(counts.map(|(n, what, how)| format!("{} {how}", counted(n, what))));
    let mut text = String::new();
    if !parts.is_empty() {
        wrap_narrow(&mut text, "  ", &parts.join("; "));
    }
    text
}

/// The nodes that have allocated in their cycles, if any.
fn allocations(thread: &ThreadStats) -> String {
    let nodes = thread.nodes.iter().filter_map(|node| {
        let count = node.allocations().filter(|&count| count > 0)?;
        Some(format!("{} {count}", node.name))
    });
    let nodes: Vec<_> = nodes.collect();
    let mut text = String::new();
    if !nodes.is_empty() {
        let words = format!(
            "{}; a cycle must not wait for the allocator: make room in 'make' or 'start'",
            nodes.join(", ")
        );
        wrap_narrow(&mut text, "  allocations in cycles: ", &words);
    }
    text
}
