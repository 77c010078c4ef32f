//! From YAML to a checked graph to a plan. Pure: no IO, no threads, no clock.
//!
//! [`compile`] is the whole of it: text -> tree (`yaml`) -> what the user wrote (`draft`) -> joined
//! links (`join`) -> homes and releases (`place`) -> [`plan::Plan`] (`assemble`). All steps report
//! into one list, so that a user sees every error of a spec at once.

mod assemble;
mod blocks;
pub mod chain;
mod core_only;
pub mod diagnostic;
mod draft;
pub mod edit;
mod fields;
pub mod firewall;
mod flows;
pub mod guest;
mod images;
mod join;
pub mod keys;
mod limits;
mod nearest;
mod options;
mod order;
mod outside;
pub mod picture;
mod place;
mod ports;
mod requires;
mod rules;
mod schema;
mod shapes;
mod value;
mod yaml;

pub use core_only::core_of;
pub use diagnostic::{Diagnostic, diagnose, render};
pub use images::{images_of, kinds as kinds_of_image};
pub use nearest::suggest;
pub use outside::{
    BROUGHT_MAX, TextSlot, slot_at, slots as text_slots, value as value_of, wanted_of,
};
pub use rules::catalogue_errors;
pub use schema::schema;
pub use sinew_plan::{
    Brought, Data, Entry, GuestImage, HIDDEN, Item, Secrets, Span, Wanted, catalogue, plan,
};
pub use value::{duration_ns, duration_text, expected};
pub use yaml::{COPIES_MAX, DEPTH_MAX, ITEMS_MAX, TEXT_LEN_MAX, item_json};

use catalogue::Kind;
use diagnostic::{Lines, Report};
use firewall::Firewall;
use place::{Graph, Home};
use plan::{Plan, TargetMachine};

/// A spec and what the command line changes in it.
#[derive(Clone, Copy, Debug)]
pub struct SpecSource<'a> {
    /// The file as the user named it; shown in diagnostics, not opened.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// `node.parameter` and the YAML value that takes the place of the spec's.
    pub overrides: &'a [(String, String)],
    /// The images that [`images_of`] found in the text, read.
    pub images: &'a [GuestImage],
    /// What [`wanted_of`] found in the text and the overrides, read.
    pub outside: &'a [Brought],
}

/// Compiles a spec for a machine. Linear in the length of the text, apart from a heap's logarithm.
///
/// # Errors
/// Everything that is wrong with the spec, in the order of the text (at most
/// [`diagnostic::DIAGNOSTICS_MAX`]).
///
/// # Panics
/// If a kind of the catalogue has a default that its own parameter refuses.
pub fn compile(
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    machine: &TargetMachine,
) -> Result<Plan, Vec<Diagnostic>> {
    let report = Report::default();
    let plan = build(source, catalogue, machine, &report);
    match plan {
        Some(plan) if report.is_empty() => Ok(plan),
        _ => Err(report.diagnostics(source)),
    }
}

fn build(
    source: &SpecSource<'_>,
    catalogue: &[&'static Kind],
    machine: &TargetMachine,
    report: &Report,
) -> Option<Plan> {
    if source.text.len() > TEXT_LEN_MAX {
        let message = format!("the spec has {} bytes", source.text.len());
        let help = format!("at most {TEXT_LEN_MAX}; split the graph");
        report.error(Span { source: 0, start: 0, len: 1 }, message, help);
        return None;
    }
    let mut root = yaml::parse(source.text, 0, report)?;
    draft::set(&mut root, source.overrides, report);
    outside::put(&mut root, source, catalogue, report);
    let (name, lines) = (draft::of_file(source.file), Lines::new(source.text));
    let draft = draft::read(&root, &name, catalogue, &lines, report, source.images)?;
    let (joined, joined_all) = join::join(&draft);
    let homes = place::homes(&draft);
    let (of_packets, joined) = flows::split(&draft, joined);
    let flow_links = flows::check(&draft, &of_packets);
    let serves = |home: Home| draft.domains[home.domain].is_service();
    let order = join::order(&draft, &joined, |node| !homes[node].is_some_and(serves));
    options::check(&draft, &joined, &homes);
    requires::check(&draft, &joined, &homes);
    limits::check(&draft, &joined, &homes);
    place::check_cpus(&draft, machine);
    let homes: Vec<_> = homes.into_iter().collect::<Option<_>>().filter(|_| joined_all)?;
    let graph = Graph { draft: &draft, joined, flow_links, homes, order };
    let plan = assemble::plan(graph, machine)?;
    for (span, message, help) in guest::too_small(&plan) {
        report.error(span, message, help);
    }
    for what in Firewall::of(&plan, machine).violations {
        let message = format!("the plan breaks the firewall of the core: {what}");
        let help = "this is a bug of the compiler; please report it with the graph";
        report.error(Span { source: 0, start: 0, len: 1 }, message, help);
    }
    Some(plan)
}
