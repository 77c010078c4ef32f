//! The languages of `snippet`: one file and one row of [`LANGUAGES`] each.

mod cel;
mod json;
mod lua;
mod text;
mod yaml;

use std::time::Duration;

use sinew_runtime::flow::{Error, Flow, Value};
use sinew_runtime::{Made, Refusal};
use sinew_spec::{Data, Item};

/// A language.
pub(crate) struct Language {
    /// What the spec calls it.
    pub(crate) name: &'static str,
    /// Compiles a script; without effect.
    pub(crate) compile: fn(&Item, &Limits) -> Made<dyn Script>,
}

/// All of them.
pub(crate) const LANGUAGES: &[Language] = &[
    Language { name: "text", compile: text::compile },
    Language { name: "json", compile: json::compile },
    Language { name: "yaml", compile: yaml::compile },
    Language { name: "cel", compile: cel::compile },
    Language { name: "lua", compile: lua::compile },
];

/// What a script may take for one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long it may run.
    pub(crate) time: Duration,
    /// How many instructions it may carry out.
    pub(crate) instructions_max: u64,
    /// How much memory it may take.
    pub(crate) memory_bytes: usize,
}

/// A compiled script.
pub(crate) trait Script {
    /// The value, if it is the same for every packet.
    fn constant(&self) -> Option<&Value> {
        None
    }

    /// The value for a packet.
    ///
    /// # Errors
    /// The script failed, or was stopped at a limit.
    fn run(&self, flow: &Flow, packet: &Value) -> Result<Value, Error>;
}

/// The code of a language that is written as text.
fn code(item: &Item) -> Result<&str, Vec<Refusal>> {
    match &item.data {
        Data::Scalar { text, .. } => Ok(text),
        _ => {
            let message = format!("code is a text, found {}", item.sort());
            Err(vec![Refusal::new(item.span, message, "write it after '|', or in quotes")])
        }
    }
}
