//! Edits of a graph that runs: each edit is compared with the running graph, prepared by every
//! domain whose flow nodes it changes, then swapped in everywhere or nowhere. A newer edit waits
//! until the one under way is over; of several that wait only the newest counts. No edit waits for
//! ever: if a domain does not prepare in time, the edit is refused; if one does not swap in time,
//! it is killed, and starts again in the edited graph.

use std::collections::BTreeSet;
use std::mem::take;

use sinew_control::Answer;
use sinew_control::status::EventKind;
use sinew_core::board::Wish;
use sinew_core::clock::now_ns;
use sinew_figures::units::counted;
use sinew_spec::plan::Plan;

use super::Run;
use super::services::Supervised;
use crate::edition::{Edition, changes};

/// How long a domain may take to prepare an edited graph. It takes milliseconds; past this the edit
/// is refused.
const PREPARE_NS_MAX: u64 = 10_000_000_000;
/// How long a domain may take to swap in what it has prepared. It takes microseconds; past this the
/// domain is killed: others may have swapped, and the edit is not taken back.
const SWAP_NS_MAX: u64 = 5_000_000_000;
/// How many names an event lists.
const NAMES_TOLD_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Edits {
    /// Number of the newest edit that was begun.
    number: u32,
    now: Option<UnderWay>,
    next: Option<Edition>,
    /// Nodes whose files were edited, in edits that were not taken: they count as changed in the
    /// next edit.
    untaken: BTreeSet<String>,
}

/// An edit that is prepared or swapped in.
struct UnderWay {
    /// `None` once it is accepted.
    edition: Option<Edition>,
    /// Names of the flow nodes that it changes.
    changed: Vec<String>,
    /// How long the domains have for what they do now.
    until_ns: u64,
    parts: Vec<Part>,
}

/// A domain that takes part.
struct Part {
    /// Its place among the services.
    service: usize,
    /// Its process: another process knows nothing of the edit.
    process: u32,
    said: Said,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Prepared,
    /// Its flows begin in the edited graph; this many flows end in the one before.
    Swapped(u64),
}

impl Edits {
    pub(super) fn due_ns(&self) -> u64 {
        self.now.as_ref().map_or(u64::MAX, |edit| edit.until_ns)
    }
}

impl Run {
    /// Offers an edited graph. [`Run::poll`] swaps it in, or refuses it and leaves everything as it
    /// is: an event says which of both, and why.
    pub fn edit(&mut self, mut edition: Edition) {
        edition.plan.leave_out_tests();
        if let Some(superseded) = self.edits.next.replace(edition) {
            self.edits.untaken.extend(superseded.touched);
        }
    }

    /// To be called whenever something may have happened.
    pub(super) fn go_on_editing(&mut self) {
        if self.is_ending() {
            self.edits.next = None;
            return;
        }
        match self.edits.now.take() {
            Some(edit) if edit.edition.is_some() => self.prepare(edit),
            Some(edit) => self.finish(edit),
            None => self.begin_edit(),
        }
    }

    fn begin_edit(&mut self) {
        let Some(mut edition) = self.edits.next.take() else { return };
        if self.services.iter().any(Supervised::is_changing) {
            self.edits.next = Some(edition);
            return;
        }
        edition.touched.extend(take(&mut self.edits.untaken));
        self.links.tunings.carry(&self.request.plan, &mut edition.plan);
        let changed = match changes(&self.request.plan, &edition) {
            Ok(changed) => changed,
            Err(text) => return self.refuse_edit(edition, &text),
        };
        self.edits.number += 1;
        let mut parts = Vec::new();
        for domain in domains_of(&changed, [&self.request.plan, &edition.plan]) {
            let service = domain - self.core.domains.len();
            // A service that does not run starts with the newest text, if it comes back.
            let Some(process) = self.services[service].running() else { continue };
            self.services[service].say_edition(self.edits.number, Wish::Prepare);
            parts.push(Part { service, process, said: Said::Nothing });
        }
        let until_ns = now_ns() + PREPARE_NS_MAX;
        self.prepare(UnderWay { edition: Some(edition), changed, until_ns, parts });
    }

    /// Waits until every domain is ready for the edit, or one cannot be.
    fn prepare(&mut self, mut edit: UnderWay) {
        let is_lost = |part: &&Part| self.services[part.service].running() != Some(part.process);
        if let Some(lost) = edit.parts.iter().find(is_lost) {
            let name = self.service_name(lost.service);
            let text = format!(
                "domain '{name}' ended while it prepared the edit; save the file once more"
            );
            return self.give_up(edit, &text);
        }
        let is_silent = |part: &&Part| part.said == Said::Nothing;
        if let Some(silent) = edit.parts.iter().find(is_silent) {
            if now_ns() > edit.until_ns {
                let (name, limit_s) =
                    (self.service_name(silent.service), PREPARE_NS_MAX / 1_000_000_000);
                let text = format!("domain '{name}' did not prepare the edit within {limit_s} s");
                return self.give_up(edit, &text);
            }
            self.edits.now = Some(edit);
            return;
        }
        for part in &edit.parts {
            self.services[part.service].say_edition(self.edits.number, Wish::Swap);
        }
        if let Some(edition) = edit.edition.take() {
            self.accept(edition);
        }
        edit.until_ns = now_ns() + SWAP_NS_MAX;
        self.finish(edit);
    }

    /// Waits until every domain has swapped. A domain that has ended meanwhile starts in the edited
    /// graph.
    fn finish(&mut self, edit: UnderWay) {
        let swaps = |part: &Part| {
            !matches!(part.said, Said::Swapped(_))
                && self.services[part.service].running() == Some(part.process)
        };
        if edit.parts.iter().any(swaps) {
            let late: Vec<_> = edit.parts.iter().filter(|part| swaps(part)).collect();
            let now_ns = now_ns();
            for part in late.into_iter().filter(|_| now_ns > edit.until_ns) {
                let limit_s = SWAP_NS_MAX / 1_000_000_000;
                let charge = format!("did not take over the edited graph within {limit_s} s");
                self.services[part.service].kill(charge, now_ns);
            }
            self.edits.now = Some(edit);
            return;
        }
        let flows = edit.parts.iter().map(|part| match part.said {
            Said::Swapped(flows) => flows,
            Said::Nothing | Said::Prepared => 0,
        });
        let text = told(&edit.changed, flows.sum());
        self.events.add(EventKind::Edited, None, text);
    }

    fn give_up(&mut self, edit: UnderWay, text: &str) {
        for part in &edit.parts {
            self.services[part.service].say_edition(self.edits.number, Wish::Withdraw);
        }
        if let Some(edition) = edit.edition {
            self.refuse_edit(edition, text);
        }
    }

    fn refuse_edit(&mut self, edition: Edition, text: &str) {
        self.edits.untaken.extend(edition.touched);
        self.events.add(EventKind::EditRefused, None, text);
    }

    /// From now on this is the graph of the run: what starts from now on starts with its text.
    fn accept(&mut self, edition: Edition) {
        let Edition { text, mut plan, outside, .. } = edition;
        plan.observe = self.request.spec.observe;
        self.links.tunings.adopt(&self.request.plan, &mut plan);
        self.core.adopt(&self.request.plan, &plan);
        for service in &mut self.services {
            service.adopt(&plan);
        }
        (self.request.spec.text, self.request.plan) = (text, plan);
        self.request.spec.outside = outside;
    }

    /// The edited graph, for a domain that is to prepare it.
    pub(super) fn edition_for(&self, service: usize) -> Result<Answer, String> {
        let now = self.edits.now.as_ref();
        let edit = now.filter(|edit| edit.parts.iter().any(|part| part.service == service));
        let edition = edit.and_then(|edit| edit.edition.as_ref());
        let Edition { text, touched, outside, .. } = edition.ok_or("no edit is to be prepared")?;
        let (text, touched, outside) = (text.clone(), touched.clone(), outside.clone());
        Ok(Answer::Edition { number: self.edits.number, text, touched, outside })
    }

    /// Keeps what a domain says about the edit under way, if it is about that edit and comes in its
    /// turn: an edit that is being swapped in cannot be refused any more. A refused edit is given
    /// up.
    pub(super) fn hear(&mut self, service: usize, number: u32, said: Said, refused: Option<&str>) {
        let in_turn = |edit: &&mut UnderWay| edit.edition.is_some() == (said == Said::Prepared);
        let now = self.edits.now.as_mut().filter(|_| number == self.edits.number);
        let mut parts = now.filter(in_turn).into_iter().flat_map(|edit| &mut edit.parts);
        let Some(part) = parts.find(|part| part.service == service) else { return };
        part.said = said;
        let Some(text) = refused else { return };
        if let Some(edit) = self.edits.now.take() {
            self.give_up(edit, text);
        }
    }

    fn service_name(&self, service: usize) -> &str {
        &self.services[service].name
    }
}

/// The domains that these nodes are in, or were.
fn domains_of(names: &[String], plans: [&Plan; 2]) -> BTreeSet<usize> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let nodes = plans.into_iter().flat_map(|plan| &plan.nodes);
    nodes.filter(|node| names.contains(&*node.name)).map(|node| node.domain).collect()
}

/// `2 nodes changed (pong, router); 37 flows finish on the old graph`.
fn told(changed: &[String], flows: u64) -> String {
    if changed.is_empty() {
        return "only its text changed, not the graph".into();
    }
    let mut names = changed[..changed.len().min(NAMES_TOLD_MAX)].join(", ");
    if changed.len() > NAMES_TOLD_MAX {
        names += ", ...";
    }
    let text = format!("{} changed ({names})", counted(changed.len(), "node"));
    match flows {
        0 => text,
        1 => format!("{text}; 1 flow finishes on the old graph"),
        n => format!("{text}; {n} flows finish on the old graph"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_in_a_line() {
        let names = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
        assert_eq!(told(&[], 5), "only its text changed, not the graph");
        assert_eq!(told(&names(1), 0), "1 node changed (n0)");
        assert_eq!(
            told(&names(2), 1),
            "2 nodes changed (n0, n1); 1 flow finishes on the old graph"
        );
        let many = told(&names(9), 37);
        assert!(
            many.starts_with("9 nodes changed (n0, n1,") && many.contains("n7, ...);"),
            "{many}"
        );
        assert!(many.ends_with("37 flows finish on the old graph"), "{many}");
    }
}
