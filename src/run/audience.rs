//! Where the records of a run go: figures, CSV, the view, the search for late cycles.

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_report::{Csv, Late, Links, Observed, Stats};
use sinew_spec::plan::Plan;
use sinew_view::{News, View};

use crate::answer::say;

/// What receives the records of a run.
pub(super) struct Audience {
    pub(super) stats: Stats,
    pub(super) links: Links,
    pub(super) csv: Option<Csv>,
    pub(super) view: View,
    observed: Observed,
    pub(super) late: Late,
    /// When late cycles are reported next, and the last report.
    pub(super) late_due_s: f64,
    pub(super) late_line: Option<String>,
    pub(super) news: News,
    /// The event or late cycle that was reported last.
    pub(super) told: Option<String>,
    /// What went wrong outside the graph.
    pub(super) notices: Vec<String>,
}

impl Audience {
    /// An audience that has seen nothing yet, and shows nothing.
    pub(super) fn new(plan: &Plan, stats: Stats, csv: Option<Csv>) -> Audience {
        Audience {
            view: View::none(),
            csv,
            observed: Observed::default(),
            late: Late::new(plan),
            links: Links::new(plan),
            late_due_s: 0.0,
            late_line: None,
            news: News::default(),
            told: None,
            notices: vec![],
            stats,
        }
    }

    pub(super) fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        let Some(thread) = self.stats.thread(id) else { return };
        self.observed.read(record, thread.nodes.len(), clock);
        self.stats.add(id, &self.observed);
        self.late.take(id, &self.observed);
        self.links.take(id, record, clock);
        self.view.observe(id, &self.observed);
        if let Some(text) = self.csv.as_mut().and_then(|csv| csv.add(id, &self.observed)) {
            self.notice(text);
        }
    }

    /// Prints the text at once, unless a live view is open: that view shows it itself.
    pub(super) fn notice(&mut self, text: String) {
        if !self.view.is_live() {
            say(&format!("warning: {text}"));
        }
        self.notices.push(text);
    }

    pub(super) fn finish_csv(&mut self) {
        let stats = &self.stats;
        if let Some(text) = self.csv.as_mut().and_then(|csv| csv.finish(stats)) {
            self.notice(text);
        }
    }

    /// Leaves the live view, then prints what only the view has shown.
    pub(super) fn close_view(&mut self) {
        let was_live = self.view.is_live();
        self.view = View::none();
        if was_live {
            self.notices.iter().for_each(|text| say(&format!("warning: {text}")));
        }
    }
}
