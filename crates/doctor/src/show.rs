//! The answer, for people and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use sinew_figures::Distribution;
use sinew_figures::Interval;
use sinew_figures::Machine;
use sinew_figures::units::counted;
use sinew_figures::wrap::{NARROW, wrap_narrow};
use sinew_spec::duration_text;

use crate::cpus;
use crate::findings::{Aim, Found, Grade, PRIORITY};
use crate::latency::{Beside, Latency, Seen};
use crate::place::Place;
use crate::verdict::Verdict;

/// The percentiles that are printed: name and share. Those with too few wake-ups are left out.
const PERCENTILES: [(&str, f64); 4] =
    [("P50", 0.5), ("P99", 0.99), ("P99.9", 0.999), ("P99.99", 0.9999)];
/// Widths of a count and of a figure, in columns. A line with all of them is at most [`NARROW`]
/// wide.
const COUNT: usize = 10;
const COLUMN: usize = 7;

/// The whole answer.
#[derive(Debug)]
pub struct Examination {
    pub(crate) machine: Machine,
    pub(crate) aim: Aim,
    pub(crate) place: Place,
    pub(crate) found: Vec<Found>,
    pub(crate) latency: Latency,
    pub(crate) verdict: Verdict,
}

impl Examination {
    /// Whether the machine can do it.
    pub fn is_yes(&self) -> bool {
        self.verdict.is_yes()
    }

    /// As text, for people.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "doctor: can this machine run a graph every {} on {}?\n",
            duration_text(self.aim.period_ns),
            cpus::named(&self.aim.cpus)
        );
        wrap_narrow(&mut text, "machine: ", &self.machine.to_line());
        text += &table(&self.found);
        text += &remedies(&self.found, self.place);
        text += &wake_ups(&self.aim, &self.latency);
        let (words, why) = (self.verdict.words(), self.verdict.text());
        text.push('\n');
        wrap_narrow(&mut text, "verdict: ", &format!("{words}: {why}"));
        text
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let (room_ns, tight_ns) = self.verdict.periods_ns();
        json!({
            "period_ns": self.aim.period_ns,
            "cpus": self.aim.cpus,
            "machine": self.machine.to_json(),
            "findings": self.found.iter().map(finding_json).collect::<Vec<_>>(),
            "latency": latency_json(&self.aim, &self.latency),
            "verdict": {
                "can": self.verdict.is_yes(),
                "words": self.verdict.words(),
                "why": self.verdict.text(),
                "wake_ups": self.verdict.n,
                "late_ns_max": self.verdict.max_ns,
                "period_with_room_ns_min": room_ns,
                "period_tight_ns_min": tight_ns,
            },
        })
    }
}

/// A line or two for each finding.
fn table(found: &[Found]) -> String {
    let count = |grade: Grade| found.iter().filter(|row| row.finding.grade == grade).count();
    let counts = Grade::ALL.map(|grade| format!("{} {}", count(grade), grade.words()));
    let mut text = format!("\nfindings: {}\n", counts.join(", "));
    let wide = |words: &mut dyn Iterator<Item = &str>| words.map(str::len).max().unwrap_or(0);
    let grades = wide(&mut Grade::ALL.iter().map(|grade| grade.words()));
    let names = wide(&mut found.iter().map(|row| row.name));
    for Found { name, finding, .. } in found {
        let before = format!("  {:<grades$}  {name:<names$}  ", finding.grade.words());
        let from = format!("[{}]", finding.from.join(", "));
        let len = |words: &str| words.chars().count();
        if len(&before) + len(&finding.read) + 1 + len(&from) <= NARROW {
            let _ = writeln!(text, "{before}{} {from}", finding.read);
        } else {
            wrap_narrow(&mut text, &before, &finding.read);
            // A path is too long to share a line with other words.
            wrap_narrow(&mut text, "      ", &from);
        }
    }
    text
}

/// What to do about the findings that are not good.
fn remedies(found: &[Found], place: Place) -> String {
    let mut text = String::new();
    for grade in Grade::ALL.into_iter().filter(|&grade| grade != Grade::Good) {
        for Found { name, why, finding } in found.iter().filter(|row| row.finding.grade == grade) {
            text.push('\n');
            wrap_narrow(&mut text, &format!("{name}: "), why);
            if let Some(remedy) = &finding.remedy {
                let _ = writeln!(text, "  mend  {}\n  undo  {}", remedy.mend, remedy.undo);
            } else if finding.show.is_none() && finding.note.is_none() {
                let what = if grade == Grade::Unknown { "shows" } else { "mends" };
                let _ = writeln!(text, "  no command on this machine {what} it");
            }
            finding.show.iter().for_each(|show| text += &format!("  show  {show}\n"));
            finding.note.iter().for_each(|note| wrap_narrow(&mut text, "  note  ", note));
        }
    }
    if text.is_empty() {
        return text;
    }
    let mut before = String::from("\n");
    let place = if place.is_container() {
        "on the machine itself, outside this container, where the kernel's settings are"
    } else {
        "on this machine"
    };
    let how = format!(
        "(nothing was changed; run 'mend' and 'undo' as root {place}. Unless they say otherwise, \
         they last until the next boot)"
    );
    wrap_narrow(&mut before, "what to do ", &how);
    before + &text
}

fn wake_ups(aim: &Aim, latency: &Latency) -> String {
    let mut text = format!(
        "\nwake-ups every {}, {} of {} on each CPU: how late, us\n",
        duration_text(aim.period_ns),
        counted(latency.rounds.rounds, "round"),
        latency.rounds.count,
    );
    // A percentile for which even all wake-ups together are too few has no column.
    let known = |(_, share): &(&str, f64)| latency.seen.all.quantile(*share).is_some();
    let percentiles: Vec<_> = PERCENTILES.into_iter().filter(known).collect();
    let names = percentiles.iter().map(|(name, _)| *name);
    let names = ["n", "min", "mean"].into_iter().chain(names).chain(["max"]);
    text += &line("", names.map(String::from).collect());
    let mut rows = |by: &str, seen: &Seen| {
        let all = (aim.cpus.len() > 1).then_some(("all".to_string(), &seen.all));
        let each = aim.cpus.iter().map(|cpu| format!("CPU {cpu}")).zip(&seen.cpus);
        for (of, late) in each.chain(all) {
            text += &line(&format!("{by} {of}"), figures(late, &percentiles));
        }
    };
    rows("sinew", &latency.seen);
    if let Ok(beside) = &latency.beside {
        rows("cyclictest", &beside.seen);
    }
    notes(latency).iter().for_each(|note| wrap_narrow(&mut text, "  ", note));
    text
}

/// A line of the table.
fn line(name: &str, cells: Vec<String>) -> String {
    let mut text = format!("  {name:<17}");
    for (at, cell) in cells.iter().enumerate() {
        // A cell that is wider than its column is still separated by a space.
        let width = if at == 0 { COUNT } else { COLUMN } - 1;
        text += &format!(" {cell:>width$}");
    }
    text.push('\n');
    text
}

fn figures(late: &Distribution, percentiles: &[(&str, f64)]) -> Vec<String> {
    let us = |ns: Option<f64>| match ns {
        None => "-".into(),
        // At this size a tenth of a microsecond is of no use.
        Some(ns) if ns >= 1e7 => format!("{:.0}", ns / 1e3),
        Some(ns) => format!("{:.1}", ns / 1e3),
    };
    let whole = |ns: Option<u64>| us(ns.map(|ns| ns as f64));
    let mut cells = vec![late.n().to_string(), whole(late.min()), us(late.mean())];
    cells.extend(percentiles.iter().map(|(_, share)| whole(late.quantile(*share))));
    cells.push(whole(late.max()));
    cells
}

/// What a reader of the figures must know.
fn notes(latency: &Latency) -> Vec<String> {
    let mut notes = latency.missing.clone();
    match latency.is_realtime {
        true => notes.push(format!("SCHED_FIFO {PRIORITY}, one thread on each CPU, read back")),
        false => notes.push("the threads did not run as they would in a graph".into()),
    }
    if let Some(share) = latency.stolen_share {
        notes.push(format!("the host took {:.2} % of the CPUs' time meanwhile", share * 100.0));
    }
    match &latency.beside {
        Ok(beside) => notes.extend(agreement(beside)),
        Err(absent) => notes.push(absent.clone()),
    }
    notes.push(
        "this is what happened in these seconds, under the load of now; a rarer cause of delay \
         shows only in a longer run, --duration 1h, with the machine doing what it will do"
            .into(),
    );
    notes
}

/// The ratios of our figures to those of cyclictest.
fn agreement(beside: &Beside) -> Vec<String> {
    let said = |what: &str, ratio: &Interval| {
        let same = ratio.is_firm() && !ratio.differs_from_one();
        let same = if same { ", not distinguishable" } else { "" };
        format!("{what} of sinew over that of {}, round by round: {ratio}{same}", beside.version)
    };
    let both = beside.agreement().into_iter();
    both.filter_map(|(what, ratio)| Some(said(what, &ratio?))).collect()
}

fn finding_json(found: &Found) -> Value {
    let Found { name, why, finding } = found;
    json!({
        "name": name,
        "grade": finding.grade.words(),
        "read": finding.read,
        "from": finding.from,
        "why": why,
        "mend": finding.remedy.as_ref().map(|remedy| &remedy.mend),
        "undo": finding.remedy.as_ref().map(|remedy| &remedy.undo),
        "show": finding.show,
        "note": finding.note,
    })
}

fn latency_json(aim: &Aim, latency: &Latency) -> Value {
    let cpus = |seen: &Seen| -> Vec<Value> {
        let rows = aim.cpus.iter().zip(&seen.cpus);
        rows.map(|(cpu, late)| json!({"cpu": cpu, "late_ns": late.to_json()})).collect()
    };
    let of = |seen: &Seen| json!({"all": seen.all.to_json(), "cpus": cpus(seen)});
    let beside = match &latency.beside {
        Ok(beside) => {
            let [(_, max_ratio), (_, p99_ratio)] = beside.agreement();
            json!({
                "version": beside.version,
                "late_ns": of(&beside.seen),
                "max_ratio": max_ratio,
                "p99_ratio": p99_ratio,
            })
        }
        Err(absent) => json!({ "absent": absent }),
    };
    json!({
        "rounds": latency.rounds.rounds,
        "wake_ups_per_round": latency.rounds.count,
        "policy": if latency.is_realtime { "SCHED_FIFO" } else { "other" },
        "missing": latency.missing,
        "stolen_share": latency.stolen_share,
        "late_ns": of(&latency.seen),
        "cyclictest": beside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Finding;

    #[test]
    fn a_finding_with_a_long_path_fits_a_narrow_terminal() {
        let finding = Finding {
            read: "no governor here: the firmware or the hypervisor sets the frequency".into(),
            from: vec!["/sys/devices/system/clocksource/clocksource0/current_clocksource".into()],
            grade: Grade::Unknown,
            remedy: None,
            show: None,
            note: None,
        };
        let text = table(&[Found { name: "cgroup CPU limit", why: "", finding }]);
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
        assert!(text.contains("\n      [/sys/devices/"), "{text}");
    }

    #[test]
    fn a_line_of_all_figures_fits_a_narrow_terminal() {
        let mut late = Distribution::new();
        (0..200_000_u64).for_each(|at| late.add(17_000 + at * 60));
        let cells = figures(&late, &PERCENTILES);
        assert_eq!(cells.len(), 4 + PERCENTILES.len());
        assert!(cells.iter().all(|cell| cell != "-"), "{cells:?}");
        let text = line("cyclictest CPU 63", cells);
        assert!(text.trim_end().chars().count() <= NARROW, "{text}");
        assert!(text.contains(" 200000 ") && text.contains(" 12017\n"), "{text}");
    }
}
