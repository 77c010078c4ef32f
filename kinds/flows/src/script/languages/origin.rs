//! Where a script is in its spec.

use std::iter;

use sinew_spec::Item;
use sinew_spec::plan::SpecText;

/// Where the lines of a script are in the spec, so that errors at run time can name these places.
#[derive(Default)]
pub(super) struct ScriptLines {
    file: String,
    /// The line in the spec of each line of the script.
    lines: Box<[u32]>,
}

impl ScriptLines {
    /// The lines of this code.
    pub(super) fn of(item: &Item, code: &str, spec: Option<&SpecText>) -> ScriptLines {
        let starts = iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
        let line = |start| Some(spec?.line(item.span_at(start))? as u32);
        let lines = starts.map_while(line).collect();
        ScriptLines { file: spec.map_or(String::new(), |spec| spec.file.clone()), lines }
    }

    /// `graph.yaml:23` for a line of the script, counted from 1; `code:3` if it is in no line of
    /// the spec.
    pub(super) fn place(&self, line: usize) -> String {
        match line.checked_sub(1).and_then(|at| self.lines.get(at)) {
            Some(line) => format!("{}:{line}", self.file),
            None => format!("code:{line}"),
        }
    }
}
