//! The languages of `snippet`: one file and one row of [`LANGUAGES`] each.

mod cel;
mod html;
#[cfg(feature = "javascript")]
mod javascript;
mod json;
#[cfg(feature = "lua")]
mod lua;
#[cfg(any(feature = "javascript", feature = "lua"))]
mod origin;
mod text;
mod yaml;

use std::time::Duration;

use sinew_core::{Made, Refusal};
use sinew_flow::{Error, Flow, Step, Value};
use sinew_spec::plan::SpecText;
use sinew_spec::{Data, Item};

/// The output of `snippet`, index into its ports.
pub(crate) const OUT: usize = 1;

/// A language.
pub(crate) struct Language {
    /// What the spec calls it.
    pub(crate) name: &'static str,
    /// Compiles a script of this spec, without side effects.
    pub(crate) compile: Compile,
}

type Compile = fn(&Item, &Limits, Option<&SpecText>) -> Made<dyn Script>;

/// All languages.
pub(crate) const LANGUAGES: &[Language] = &[
    Language { name: "text", compile: text::compile },
    Language { name: "html", compile: html::compile },
    Language { name: "json", compile: json::compile },
    Language { name: "yaml", compile: yaml::compile },
    Language { name: "cel", compile: cel::compile },
    Language { name: "lua", compile: LUA },
    Language { name: "javascript", compile: JAVASCRIPT },
];

const LUA: Compile = cfg_select! {
    feature = "lua" => { lua::compile }
    _ => { |code, _, _| Err(without(code, "Lua", "lua")) }
};

const JAVASCRIPT: Compile = cfg_select! {
    feature = "javascript" => { javascript::compile }
    _ => { |code, _, _| Err(without(code, "JavaScript", "javascript")) }
};

/// The refusal of a script whose language this program was built without.
#[cfg(not(all(feature = "javascript", feature = "lua")))]
fn without(code: &Item, language: &str, feature: &str) -> Vec<Refusal> {
    vec![crate::without(language, feature).at(code.span).into()]
}

/// What a script may take for one packet.
#[cfg_attr(
    not(any(feature = "javascript", feature = "lua")),
    expect(dead_code, reason = "only languages that are built on demand can exceed them")
)]
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
    /// Runs it for a packet; the step is that of [`made`].
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a>;
}

/// The step for the value that a script made. The script may have failed, or been stopped at a
/// limit.
pub(crate) fn made<'a>(value: Result<Value, Error>) -> Step<'a> {
    Step::pass(OUT, value)
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
