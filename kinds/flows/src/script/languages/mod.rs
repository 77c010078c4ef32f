//! The languages of `snippet`: one file and one row of [`LANGUAGES`] each.

mod cel;
mod html;
mod javascript;
mod json;
mod lua;
mod text;
mod yaml;

use std::iter;
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
    /// Compiles a script of this spec; without effect.
    pub(crate) compile: fn(&Item, &Limits, Option<&SpecText>) -> Made<dyn Script>,
}

/// All of them.
pub(crate) const LANGUAGES: &[Language] = &[
    Language { name: "text", compile: text::compile },
    Language { name: "html", compile: html::compile },
    Language { name: "json", compile: json::compile },
    Language { name: "yaml", compile: yaml::compile },
    Language { name: "cel", compile: cel::compile },
    Language { name: "lua", compile: lua::compile },
    Language { name: "javascript", compile: javascript::compile },
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
    /// What it makes of a packet, as [`made`] says it.
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a>;
}

/// Where the lines of a script stand: what goes wrong in one at run time is said of the spec.
#[derive(Default)]
struct Origin {
    file: String,
    /// The line of the spec of each.
    lines: Box<[u32]>,
}

impl Origin {
    fn of(item: &Item, code: &str, spec: Option<&SpecText>) -> Origin {
        let starts = iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
        let line = |start| Some(spec?.line(item.span_at(start))? as u32);
        let lines = starts.map_while(line).collect();
        Origin { file: spec.map_or(String::new(), |spec| spec.file.clone()), lines }
    }

    /// `graph.yaml:23` for a line of the script, counted from 1; `code:3` if it stands in no line
    /// of the spec.
    fn place(&self, line: usize) -> String {
        match line.checked_sub(1).and_then(|at| self.lines.get(at)) {
            Some(line) => format!("{}:{line}", self.file),
            None => format!("code:{line}"),
        }
    }
}

/// What comes of what a script made; it may have failed, or been stopped at a limit.
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
