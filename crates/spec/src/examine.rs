//! All steps of the compiler, one after the other.

use sinew_plan::catalogue::Kind;
use sinew_plan::plan::{Plan, TargetMachine};
use sinew_plan::{Item, LineStarts, Span};

use crate::diagnostic::{Diagnostic, Finding, Report};
use crate::fields::Named;
use crate::firewall::Firewall;
use crate::parts::parts;
use crate::place::{Graph, Home};
use crate::yaml::{self, TEXT_LEN_MAX};
use crate::{SpecSource, assemble, draft, flows, guest, hosts, join, limits, options, outside};
use crate::{place, requires, units};

/// The tree of a text, independent of its meaning.
///
/// # Errors
/// The text is not YAML, holds a key twice, or exceeds a limit of [`compile`]: all errors, with
/// their places.
pub fn read(source: &SpecSource<'_>) -> Result<Item, Vec<Diagnostic>> {
    let report = Report::default();
    let root = match within_limit(source, &report) {
        true => yaml::parse(source.text, 0, &report),
        false => None,
    };
    match root {
        Some(root) if report.is_empty() => Ok(root),
        _ => Err(report.diagnostics(source, [])),
    }
}

/// Whether the text is short enough to be read; reports one that is not.
fn within_limit(source: &SpecSource<'_>, report: &Report) -> bool {
    let len = source.text.len();
    if len > TEXT_LEN_MAX {
        let help = format!("at most {TEXT_LEN_MAX}; split the graph");
        report.error(
            Span { source: 0, start: 0, len: 1 },
            format!("the spec has {len} bytes"),
            help,
        );
    }
    len <= TEXT_LEN_MAX
}

/// Compiles a spec for a machine. Linear in the length of the text, except for the logarithm of a
/// heap.
///
/// # Errors
/// All errors of the spec, in the order of the text (at most
/// [`DIAGNOSTICS_MAX`](crate::diagnostic::DIAGNOSTICS_MAX)).
///
/// # Panics
/// If a kind of the catalogue has a default that its own parameter refuses.
pub fn compile(
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    machine: &TargetMachine,
) -> Result<Plan, Vec<Diagnostic>> {
    examine(source, catalogue, machine).finish(source, [])
}

/// Like [`compile`], for a caller that looks for further errors in the result.
///
/// # Panics
/// Like [`compile`].
pub fn examine(
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    machine: &TargetMachine,
) -> Examined {
    let report = Report::default();
    let plan = build(source, catalogue, machine, &report);
    Examined { plan, report }
}

/// The result of compiling a spec, good or not.
pub struct Examined {
    /// The plan; for a faulty graph its parts ([`Plan::left_out`]) or `None`.
    pub plan: Option<Plan>,
    report: Report,
}

impl Examined {
    /// Whether the compiler found nothing wrong.
    pub fn is_good(&self) -> bool {
        self.report.is_empty()
    }

    /// The plan, if neither the compiler nor anything else found an error.
    ///
    /// # Errors
    /// All errors that were found, as in [`compile`].
    pub fn finish(
        self,
        source: &SpecSource<'_>,
        found: impl IntoIterator<Item = Finding>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let mut found = found.into_iter().peekable();
        match self.plan {
            Some(plan) if self.report.is_empty() && found.peek().is_none() => Ok(plan),
            _ => Err(self.report.diagnostics(source, found)),
        }
    }
}

fn build(
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    machine: &TargetMachine,
    report: &Report,
) -> Option<Plan> {
    if !within_limit(source, report) {
        return None;
    }
    let mut root = yaml::parse(source.text, 0, report)?;
    draft::set(&mut root, source.overrides, report);
    outside::put(&mut root, source, catalogue, report);
    let (name, lines) = (draft::of_file(source.file), LineStarts::new(source.text));
    let draft = draft::read(&root, source, &name, catalogue, &lines, report)?;
    let (joined, joined_all) = join::join(&draft);
    let homes = place::homes(&draft);
    let on = hosts::of_domains(&draft, catalogue);
    let own = own_host(&draft, source);
    let (of_packets, joined) = flows::split(&draft, joined);
    hosts::check_packets(&draft, &of_packets, &homes, &on);
    let flow_links = flows::check(&draft, &of_packets);
    let (remote, joined) = hosts::split(joined, &homes, &on);
    hosts::check(&draft, (&remote, &joined), &homes, &on);
    let serves = |home: Home| draft.domains[home.domain].is_service();
    let order = join::order(&draft, &joined, |node| !homes[node].is_some_and(serves));
    units::check(&draft, &joined);
    options::check(&draft, &joined, &homes);
    requires::check(&draft, &joined, &homes);
    limits::check(&draft, &joined, &homes);
    place::check_cpus(&draft, machine, |domain| on[domain] == own);
    let all_homes: Option<Vec<Home>> = homes.iter().copied().collect();
    let Some(all_homes) = all_homes.filter(|_| joined_all) else {
        return Some(parts(&draft, &homes, &joined));
    };
    let graph =
        Graph { draft: &draft, joined, flow_links, homes: all_homes, remote, hosts: on, order };
    let Some(plan) = assemble::plan(&graph) else {
        return Some(parts(&draft, &homes, &graph.joined));
    };
    for (span, message, help) in guest::too_small(&plan) {
        report.error(span, message, help);
    }
    let Some(template) = hosts::template_of(catalogue).filter(|_| !plan.hosts.all.is_empty())
    else {
        return Some(settled(plan, machine, report));
    };
    if let Some(own) = own {
        return Some(settled(hosts::part(&plan, own, template), machine, report));
    }
    for host in 0..plan.hosts.all.len() {
        let part = hosts::part(&plan, host, template);
        let machine = roomy(&part);
        settled(part, &machine, report);
    }
    Some(plan)
}

/// The host whose part is wanted; reports a name that is not a host of the graph.
fn own_host(draft: &draft::Draft<'_>, source: &SpecSource<'_>) -> Option<usize> {
    let name = source.host?;
    let found = draft.hosts.iter().position(|host| host.name.text == name);
    if found.is_none() {
        let span = draft::place_of_hosts(&draft.hosts);
        draft::unknown_host(Named { text: name, span }, &draft.hosts, draft.report);
    }
    found
}

/// A plan with everything that depends on the machine, checked by the firewall.
fn settled(mut plan: Plan, machine: &TargetMachine, report: &Report) -> Plan {
    assemble::settle(&mut plan, machine);
    for what in Firewall::of(&plan, machine).violations {
        let message = format!("the plan breaks the firewall of the core: {what}");
        let help = "this is a bug of the compiler; please report it with the graph";
        report.error(Span { source: 0, start: 0, len: 1 }, message, help);
    }
    plan
}

/// A machine that has everything a part asks for: only the host itself knows what its machine has.
fn roomy(part: &Plan) -> TargetMachine {
    let threads = part.domains.iter().flat_map(|domain| domain.threads());
    let named: Vec<u32> = threads.clone().filter_map(|thread| thread.cpu).collect();
    let more = threads.count() as u32 + 1;
    let mut cpus: Vec<u32> = (0..more).chain(named).collect();
    cpus.sort_unstable();
    cpus.dedup();
    TargetMachine::of(cpus)
}
