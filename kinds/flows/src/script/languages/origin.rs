//! Where a script stands in its spec.

use std::iter;

use sinew_spec::Item;
use sinew_spec::plan::SpecText;

/// Where the lines of a script stand: what goes wrong in one at run time is said of the spec.
#[derive(Default)]
pub(super) struct ScriptLines {
    file: String,
    /// The line of the spec of each.
    lines: Box<[u32]>,
}

impl ScriptLines {
    /// Of this code.
    pub(super) fn of(item: &Item, code: &str, spec: Option<&SpecText>) -> ScriptLines {
        let starts = iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
        let line = |start| Some(spec?.line(item.span_at(start))? as u32);
        let lines = starts.map_while(line).collect();
        ScriptLines { file: spec.map_or(String::new(), |spec| spec.file.clone()), lines }
    }

    /// `graph.yaml:23` for a line of the script, counted from 1; `code:3` if it stands in no line
    /// of the spec.
    pub(super) fn place(&self, line: usize) -> String {
        match line.checked_sub(1).and_then(|at| self.lines.get(at)) {
            Some(line) => format!("{}:{line}", self.file),
            None => format!("code:{line}"),
        }
    }
}
