//! What is wrong with a spec, where, and what to write instead.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value as Json, json};
use sinew_plan::{Data, Item, LineStarts, Secrets, Span};

use crate::SpecSource;

/// Most diagnostics of one spec; further ones are only counted, so that a hostile spec cannot cause
/// endless searches for similar names.
pub const DIAGNOSTICS_MAX: usize = 200;

/// Longest message and longest help, in characters: both quote the spec, and a hostile quote is cut
/// here.
const WORDS_LEN_MAX: usize = 1000;

/// One error in a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it, or the option that holds the error.
    pub file: String,
    /// Line from 1; 0 if the error is not in a line of the file.
    pub line: usize,
    /// Column from 1, in characters; 0 like `line`.
    pub column: usize,
    /// Length in characters, at least 1; never past the end of the line.
    pub length: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead; empty if there is no advice.
    pub help: String,
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Diagnostic { file, line, column, message, help, .. } = self;
        match line {
            0 => write!(f, "{file}: error: {message}")?,
            _ => write!(f, "{file}:{line}:{column}: error: {message}")?,
        }
        if help.is_empty() { Ok(()) } else { write!(f, "; help: {help}") }
    }
}

impl Diagnostic {
    /// The same as a JSON object.
    pub fn to_json(&self) -> Json {
        json!({
            "file": self.file, "line": self.line, "column": self.column, "length": self.length,
            "message": self.message, "help": self.help,
        })
    }
}

/// An error in a spec that the compiler did not find: where, what, and what to write instead.
pub type Finding = (Span, String, String);

/// Errors that others found in a spec that the compiler accepts, as the compiler would show them:
/// in the order of the text, at most [`DIAGNOSTICS_MAX`].
pub fn diagnose(
    source: &SpecSource<'_>,
    found: impl IntoIterator<Item = Finding>,
) -> Vec<Diagnostic> {
    Report::default().diagnostics(source, found)
}

/// The diagnostics with the lines that they refer to, as rustc shows them. `text` is the spec.
pub fn render(diagnostics: &[Diagnostic], text: &str, color: bool) -> String {
    render_each(diagnostics, text, color).collect()
}

/// The same, one by one.
pub fn render_each<'a>(
    diagnostics: &'a [Diagnostic],
    text: &'a str,
    color: bool,
) -> impl Iterator<Item = String> + 'a {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let lines: Vec<&str> = text.split('\n').collect();
    diagnostics.iter().map(move |diagnostic| {
        let line = diagnostic.line.checked_sub(1).and_then(|at| lines.get(at));
        let line = line.map(|line| line.trim_end_matches('\r'));
        renderer.render(&[show(diagnostic, line)]) + "\n\n"
    })
}

fn show<'a>(diagnostic: &'a Diagnostic, line: Option<&'a str>) -> Group<'a> {
    let title = Level::ERROR.primary_title(&diagnostic.message);
    let help = Some(&diagnostic.help).filter(|help| !help.is_empty());
    let help = help.map(|help| Level::HELP.message(help));
    let Some(line) = line else {
        let group = title.element(Level::NOTE.message(format!("in {}", diagnostic.file)));
        return group.elements(help);
    };
    let byte = |column| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let start = byte(diagnostic.column - 1);
    let end = byte(diagnostic.column - 1 + diagnostic.length);
    let snippet = Snippet::source(line)
        .path(&diagnostic.file)
        .line_start(diagnostic.line)
        .annotation(AnnotationKind::Primary.span(start..end));
    title.element(snippet).elements(help)
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Problem {
    span: Span,
    message: String,
    help: String,
}

/// Collects problems; shared by everything that reads the spec.
#[derive(Default)]
pub(crate) struct Report {
    problems: RefCell<Vec<Problem>>,
    left_out: Cell<usize>,
    /// Values that came from outside of the spec, by their place: the text of the spec, and the
    /// value that was read. If the value is `None`, that is reported already.
    taken: RefCell<HashMap<Span, (String, Option<String>)>>,
}

impl Report {
    /// Adds a problem.
    pub(crate) fn error(&self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.error_with(span, || (message.into(), help.into()));
    }

    /// Adds a problem whose texts need a search among names; past the limit they are not made.
    pub(crate) fn error_with(&self, span: Span, texts: impl FnOnce() -> (String, String)) {
        if self.problems.borrow().len() == DIAGNOSTICS_MAX {
            self.left_out.update(|count| count + 1);
            return;
        }
        let (mut message, mut help) = texts();
        match self.taken.borrow().get(&span) {
            Some((_, None)) => return,
            Some((written, Some(value))) => {
                message = message.replace(&format!("'{value}'"), &format!("'{written}'"));
                let given = "; the value that stands for it is not shown";
                help = (help + given).trim_start_matches("; ").to_owned();
            }
            None => {}
        }
        self.problems.borrow_mut().push(Problem { span, message: cut(message), help: cut(help) });
    }

    /// Records that a single value was filled from outside of the spec.
    pub(crate) fn took(&self, span: Span, written: String, value: Option<String>) {
        self.taken.borrow_mut().insert(span, (written, value));
    }

    /// Whether a piece refers to something outside of the spec that does not exist.
    pub(crate) fn lacks(&self, item: &Item) -> bool {
        let taken = self.taken.borrow();
        match &item.data {
            _ if taken.is_empty() => false,
            Data::Scalar { .. } => matches!(taken.get(&item.span), Some((_, None))),
            Data::List(items) => items.iter().any(|item| self.lacks(item)),
            Data::Map(entries) => entries.iter().any(|entry| self.lacks(&entry.value)),
        }
    }

    /// The text of a value in the spec, if some of it came from outside.
    pub(crate) fn written(&self, item: &Item) -> Option<String> {
        match &item.data {
            Data::Scalar { .. } => Some(self.taken.borrow().get(&item.span)?.0.clone()),
            Data::List(items) => {
                let all: Vec<_> = items.iter().map(|item| self.written(item)).collect();
                all.iter().any(Option::is_some).then(|| {
                    let texts = all.into_iter().zip(items);
                    let text = texts.map(|(written, item)| {
                        written.unwrap_or_else(|| item.text().unwrap_or("...").to_owned())
                    });
                    format!("[{}]", text.collect::<Vec<_>>().join(", "))
                })
            }
            Data::Map(entries) => entries.iter().find_map(|entry| self.written(&entry.value)),
        }
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    /// All problems and what others found, in the order of the text.
    pub(crate) fn diagnostics(
        self,
        source: &SpecSource<'_>,
        found: impl IntoIterator<Item = Finding>,
    ) -> Vec<Diagnostic> {
        for (span, message, help) in found {
            self.error(span, message, help);
        }
        let secrets = Secrets::of(source.outside);
        let mut problems = self.problems.into_inner();
        for problem in &mut problems {
            problem.message = secrets.hide(&problem.message).into_owned();
            problem.help = secrets.hide(&problem.help).into_owned();
        }
        problems.sort_by_key(|problem| (problem.span.source, problem.span.start));
        // A link into a block stands for several links: its error is shown once.
        let mut said = HashSet::new();
        problems.retain(|problem| said.insert(problem.clone()));
        let lines = LineStarts::new(source.text);
        let mut all: Vec<Diagnostic> =
            problems.into_iter().map(|problem| problem.place(source, &lines)).collect();
        let left_out = self.left_out.get();
        if left_out > 0 {
            all.push(Diagnostic {
                file: source.file.to_owned(),
                length: 1,
                message: format!("{left_out} more errors are not shown"),
                help: "correct the ones above first".to_owned(),
                ..Diagnostic::default()
            });
        }
        all
    }
}

/// The text, cut if it is too long.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(WORDS_LEN_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Problem {
    fn place(self, source: &SpecSource<'_>, lines: &LineStarts) -> Diagnostic {
        let Problem { span, message, help } = self;
        if let Some(at) = span.source.checked_sub(1) {
            let (name, value) = &source.overrides[at as usize];
            let file = format!("--set {name}={value}");
            return Diagnostic { file, line: 0, column: 0, length: 1, message, help };
        }
        let start = source.text.floor_char_boundary(span.start as usize);
        let line = lines.line(start);
        let line_start = lines.start(line);
        let rest = source.text[start..].lines().next().unwrap_or_default();
        let marked = &rest[..rest.floor_char_boundary(span.len as usize)];
        Diagnostic {
            file: source.file.to_owned(),
            line,
            column: source.text[line_start..start].chars().count() + 1,
            length: marked.chars().count().max(1),
            message,
            help,
        }
    }
}
