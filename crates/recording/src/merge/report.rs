//! The result of a merge as text and as JSON: how certain the order of the messages is.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::causality::{LinkOrder, Moment};
use super::clocks::Clocks;
use super::survey::{Survey, Time};

/// The report of a finished merge.
#[derive(Debug)]
pub struct MergeReport {
    file: String,
    graph: String,
    /// The host whose clock the file has.
    clock: String,
    hosts: Vec<HostOrder>,
    links: Vec<LinkOrder>,
    /// Counts of neighbours in the file that are of different hosts: all, those closer together
    /// than the possible error of their clocks, and those for which the error is unknown.
    neighbours: u64,
    unsure: u64,
    not_shown: u64,
    pub(super) notes: Vec<String>,
    pub(super) missing: Vec<String>,
}

/// The result for one host.
#[derive(Debug)]
pub(super) struct HostOrder {
    name: String,
    file: String,
    parts: usize,
    messages: u64,
    how: How,
    /// Its wall clock minus that of the file, at its first message.
    ahead_ns: Option<i64>,
    /// The possible error of times of messages: least and greatest.
    uncertainty_ns: Option<(i64, i64)>,
}

/// How a host's times were converted to those of the file.
#[derive(Debug)]
enum How {
    Clock,
    Estimates { count: usize, set_aside: usize, over: Option<String> },
    Trusted,
}

impl HostOrder {
    pub(super) fn of(at: usize, surveys: &[Survey<'_>], clocks: &Clocks) -> HostOrder {
        let Survey { name, recording, .. } = surveys[at];
        let how = match clocks.over(at) {
            Some((nearer, line)) => How::Estimates {
                count: line.estimates,
                set_aside: line.set_aside,
                over: (nearer > 0).then(|| surveys[nearer].name.to_owned()),
            },
            None if clocks.is_trusted(at) => How::Trusted,
            None => How::Clock,
        };
        HostOrder {
            name: name.to_owned(),
            file: recording.file.display().to_string(),
            parts: recording.parts.len(),
            messages: 0,
            how,
            ahead_ns: None,
            uncertainty_ns: None,
        }
    }

    /// Counts a message of the host, and the error of its time.
    pub(super) fn take(&mut self, moment: Moment, time: Time) {
        self.messages += 1;
        self.ahead_ns.get_or_insert(time.unix_ns.saturating_sub(moment.ns));
        if let Some(ns) = moment.uncertainty_ns {
            let (least, most) = self.uncertainty_ns.unwrap_or((ns, ns));
            self.uncertainty_ns = Some((least.min(ns), most.max(ns)));
        }
    }

    fn row(&self) -> [String; 5] {
        let us = |ns: i64| (ns as f64 / 1000.0).round();
        let ahead = self.ahead_ns.map_or("-".into(), |ns| format!("{:+}", us(ns)));
        let (ahead, within, by) = match (&self.how, self.uncertainty_ns) {
            (How::Clock, _) => ("-".into(), "-".into(), "it is the clock of the file".into()),
            (How::Estimates { count, set_aside, over }, Some((least, most))) => {
                let over = over.as_ref().map_or(String::new(), |over| format!(", over {over}"));
                let aside = match set_aside {
                    0 => String::new(),
                    _ => format!(", {set_aside} of another start of a machine left out"),
                };
                let by = format!("{count} estimates{over}{aside}");
                (ahead, format!("{} to {}", us(least), us(most)), by)
            }
            _ => ("-".into(), "not shown".into(), "clocks of day are trusted (PTP, NTP)".into()),
        };
        [self.name.clone(), self.messages.to_string(), ahead, within, by]
    }

    fn to_json(&self) -> Value {
        let uncertainty =
            self.uncertainty_ns.map(|(least, most)| json!({"least": least, "most": most}));
        let mut value = json!({
            "name": self.name,
            "file": self.file,
            "parts": self.parts,
            "messages": self.messages,
            "clock": match self.how {
                How::Clock => "own",
                How::Estimates { .. } => "estimated",
                How::Trusted => "trusted",
            },
            "ahead_ns": self.ahead_ns.filter(|_| !matches!(self.how, How::Trusted)),
            "uncertainty_ns": uncertainty,
        });
        if let How::Estimates { count, set_aside, over } = &self.how {
            value["estimates"] = (*count).into();
            value["set_aside"] = (*set_aside).into();
            value["over"] = over.clone().into();
        }
        value
    }
}

impl MergeReport {
    pub(super) fn of(graph: &str, clock: &str) -> MergeReport {
        MergeReport {
            file: String::new(),
            graph: graph.into(),
            clock: clock.into(),
            hosts: Vec::new(),
            links: Vec::new(),
            neighbours: 0,
            unsure: 0,
            not_shown: 0,
            notes: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Counts a message. `before` is the previous one if it is of another host.
    pub(super) fn take(&mut self, moment: Moment, before: Option<Moment>) {
        let Some(before) = before else { return };
        self.neighbours += 1;
        let apart_ns = moment.ns.saturating_sub(before.ns);
        match moment.uncertainty_with(before) {
            Some(uncertainty_ns) => self.unsure += u64::from(apart_ns <= uncertainty_ns),
            None => self.not_shown += 1,
        }
    }

    pub(super) fn end(&mut self, file: &Path, hosts: Vec<HostOrder>, links: Vec<LinkOrder>) {
        self.file = file.display().to_string();
        (self.hosts, self.links) = (hosts, links);
    }

    /// Whether everything that was recorded is present, and nothing contradicts the stated order.
    pub fn is_good(&self) -> bool {
        self.missing.is_empty() && self.links.iter().all(|link| link.beyond == 0)
    }

    fn messages(&self) -> u64 {
        self.hosts.iter().map(|host| host.messages).sum()
    }

    /// The report as text for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text).expect("a string takes all");
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let MergeReport { file, graph, clock, neighbours, unsure, not_shown, .. } = self;
        let (hosts, messages) = (self.hosts.len(), self.messages());
        writeln!(
            text,
            "{file}: graph '{graph}', {hosts} hosts, {messages} messages by the clock of {clock}"
        )?;
        let head = ["host", "messages", "clock ahead us", "order sure to us", "by"];
        let rows: Vec<[String; 5]> = self.hosts.iter().map(HostOrder::row).collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].len());
            cells.chain([head[at].len()]).max().unwrap_or(0)
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(width);
        for [host, messages, ahead, within, by] in
            [head.map(str::to_owned)].into_iter().chain(rows.iter().cloned())
        {
            writeln!(text, "  {host:a$}  {messages:>b$}  {ahead:>c$}  {within:>d$}  {by}")?;
        }
        let shown = neighbours - not_shown;
        if shown > 0 {
            writeln!(
                text,
                "of {shown} neighbours of different hosts {unsure} are closer in time than that: \
                 their order is not sure"
            )?;
        }
        if *not_shown > 0 {
            writeln!(
                text,
                "of {not_shown} neighbours of different hosts the order is not shown: no estimate \
                 ties their clocks together"
            )?;
        }
        self.links.iter().try_for_each(|link| writeln!(text, "{}", said(link)))?;
        if self.links.is_empty() {
            writeln!(
                text,
                "no link between these hosts is recorded on both sides: whether all was sent \
                 before it was received is not shown"
            )?;
        }
        self.missing.iter().try_for_each(|it| writeln!(text, "not merged: {it}"))?;
        self.notes.iter().try_for_each(|it| writeln!(text, "note: {it}"))
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> Value {
        let link = |link: &LinkOrder| {
            json!({
                "link": link.name,
                "received": link.received,
                "found": link.judged,
                "before_sent": link.before,
                "beyond_uncertainty": link.beyond,
            })
        };
        json!({
            "file": self.file,
            "graph": self.graph,
            "clock": self.clock,
            "messages": self.messages(),
            "hosts": self.hosts.iter().map(HostOrder::to_json).collect::<Vec<_>>(),
            "neighbours": self.neighbours,
            "unsure": self.unsure,
            "not_shown": self.not_shown,
            "links": self.links.iter().map(link).collect::<Vec<_>>(),
            "missing": self.missing,
            "notes": self.notes,
        })
    }
}

/// The result for a link, in words.
fn said(link: &LinkOrder) -> String {
    let LinkOrder { name, received, judged, before, beyond } = link;
    if *judged == 0 {
        return format!(
            "{name}: {received} messages received, none that could be found where it was sent: \
             their order is not shown"
        );
    }
    let found = format!("{name}: {judged} of {received} messages found where they were sent");
    match (before, beyond) {
        (0, _) => format!("{found}, none received before that"),
        (_, 0) => {
            format!("{found}, {before} received before that, within the error of the clocks")
        }
        _ => format!(
            "{found}, {before} received before that, {beyond} of them by more than the error of \
             the clocks: do not trust the order"
        ),
    }
}
