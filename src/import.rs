//! `sinew import`: rewrites a workflow file of another engine as a graph, and lists what it cannot
//! rewrite.

mod uniflow;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use sinew_runtime::Kinds;
use sinew_spec::Diagnostic;

use crate::answer::{BAD_REQUEST, FAULTED, print, refuse, say};
use crate::load::{LoadError, read};

/// Rewrite a workflow file of another engine as a graph, and list what is left to do by hand.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    from: Origin,
}

#[derive(Debug, Subcommand)]
enum Origin {
    Uniflow(UniflowArgs),
}

/// Rewrite a file of uniflow (nodes as YAML or JSON). Comments and order stay.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct UniflowArgs {
    /// The workflow file.
    file: PathBuf,
    /// Write the graph to this file instead of standard output.
    #[arg(long, value_name = "GRAPH.yaml")]
    out: Option<PathBuf>,
    /// Print one JSON object: the graph, what is left to do, and notes.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  sinew import uniflow ping.yaml > graph.yaml
  sinew import uniflow ping.yaml --out graph.yaml && PORT=8000 sinew check graph.yaml
  sinew import uniflow --json ping.yaml | jq '.left[]'

docs/uniflow.md says what each kind of node is rewritten to.

Exit status: 0 everything was rewritten, 1 something is left to do by hand, 2 bad request or file.";

/// Runs the command.
pub(crate) fn run(arguments: &ImportArgs, kinds: &Kinds) -> ExitCode {
    let Origin::Uniflow(arguments) = &arguments.from;
    match import(arguments, kinds) {
        Ok(status) => status,
        Err(error) => error.answer(arguments.json),
    }
}

fn import(arguments: &UniflowArgs, kinds: &Kinds) -> Result<ExitCode, LoadError> {
    let UniflowArgs { file, out, json } = arguments;
    let name = file.display().to_string();
    let text = read(file).map_err(|error| LoadError::Request(format!("{name}: {error}")))?;
    if let Some(out) = out.as_ref().filter(|out| is_same(out, file)) {
        let why = format!("--out: '{}' is the file that is read; name another", out.display());
        return Err(LoadError::Request(why));
    }
    let imported = uniflow::import(&name, &text, kinds)
        .map_err(|wrong| LoadError::Spec(text.clone(), wrong, vec![]))?;
    if let Some(out) = out
        && let Err(error) = fs::write(out, &imported.graph)
    {
        let why = format!("cannot write {}: {error}; name another file", out.display());
        return Ok(refuse(&why, BAD_REQUEST, *json));
    }
    let status = ExitCode::from(if imported.left.is_empty() { 0 } else { FAULTED });
    if *json {
        let all = |them: &[Diagnostic]| them.iter().map(Diagnostic::to_json).collect::<Vec<_>>();
        let graph = out.is_none().then_some(&imported.graph);
        let answer = json!({
            "out": out, "graph": graph, "left": all(&imported.left), "notes": all(&imported.notes),
        });
        return Ok(print(&format!("{answer:#}\n"), status));
    }
    imported.notes.iter().for_each(|note| say(&line(note, "note")));
    imported.left.iter().for_each(|left| say(&line(left, "left")));
    match (out, imported.left.len()) {
        (Some(out), 0) => {
            say(&format!("everything is rewritten; check it: sinew check {}", out.display()))
        }
        (None, 0) => say("everything is rewritten; write it to a file, and check it: sinew check \
                          FILE"),
        (_, left) => say(&format!("{left} to do by hand, each marked 'left'")),
    }
    Ok(if out.is_some() { status } else { print(&imported.graph, status) })
}

/// One message of an import, as a line.
fn line(said: &Diagnostic, sort: &str) -> String {
    let Diagnostic { file, line, column, message, help, .. } = said;
    let help = if help.is_empty() { String::new() } else { format!("; {help}") };
    match line {
        0 => format!("{file}: {sort}: {message}{help}"),
        _ => format!("{file}:{line}:{column}: {sort}: {message}{help}"),
    }
}

/// Whether two names mean the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
