//! From YAML to a checked graph to a plan. Pure: no IO, no threads, no clock.
//!
//! [`compile`] does all of it: text -> tree (`yaml`) -> what the user wrote (`draft`) -> joined
//! links (`join`) -> homes and releases (`place`) -> [`plan::Plan`] (`assemble`). All steps report
//! into one list, so that a user sees every error of a spec at once.

mod alone;
mod assemble;
mod blocks;
pub mod chain;
mod core_only;
pub mod diagnostic;
mod draft;
pub mod edit;
mod examine;
mod fields;
pub mod firewall;
mod flows;
mod form;
pub mod guest;
mod hosts;
mod images;
mod join;
pub mod keys;
mod limits;
mod made;
mod messages;
mod nearest;
mod options;
mod order;
mod outside;
mod parts;
pub mod picture;
mod place;
mod ports;
mod requires;
mod rules;
mod schema;
mod shapes;
mod units;
mod value;
mod yaml;

pub use alone::alone;
pub use core_only::core_of;
pub use diagnostic::{Diagnostic, Finding, diagnose, render, render_each};
pub use examine::{Examined, compile, examine, read};
pub use images::{images_of, kinds as kinds_of_image};
pub use nearest::{near, suggest};
pub use outside::{
    BROUGHT_MAX, TextSlot, slot_at, slots as text_slots, value as value_of, wanted_of,
};
pub use rules::catalogue_errors;
pub use schema::schema;
pub use sinew_plan::{
    Brought, Data, Entry, GuestImage, HIDDEN, Item, LineStarts, Secrets, Span, Wanted, catalogue,
    decimal_comma, duration_ns, duration_text, plan,
};
pub use value::{expected, read_parameter};
pub use yaml::{COPIES_MAX, DEPTH_MAX, ITEMS_MAX, TEXT_LEN_MAX, item_json};

/// A spec, and what the command line changes in it.
#[derive(Clone, Copy, Debug)]
pub struct SpecSource<'a> {
    /// The file as the user named it; shown in diagnostics, not opened.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// `node.parameter` and the YAML value that replaces the one in the spec.
    pub overrides: &'a [(String, String)],
    /// The contents of the images that [`images_of`] found in the text.
    pub images: &'a [GuestImage],
    /// The values that [`wanted_of`] found in the text and the overrides.
    pub outside: &'a [Brought],
    /// The host whose part is wanted; `None`: the whole graph.
    pub host: Option<&'a str>,
}

impl<'a> SpecSource<'a> {
    /// A text without overrides, images and values from outside.
    pub const fn of(file: &'a str, text: &'a str) -> SpecSource<'a> {
        SpecSource { file, text, overrides: &[], images: &[], outside: &[], host: None }
    }
}
