//! From a file's name to a plan: reads the spec, within its limit, and compiles it.

use std::fs::File;
use std::io::{Read, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use sinew_agent::{BoardRow, image};
use sinew_control::{Spec, outside};
use sinew_core::privileges;
use sinew_flow::try_spans;
use sinew_runtime::Kinds;
use sinew_runtime::confine::check_user;
use sinew_spec::catalogue::Kind;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{
    Diagnostic, Finding, GuestImage, SpecSource, TEXT_LEN_MAX, compile, diagnose, examine,
    images_of, kinds_of_image, render_each, wanted_of,
};
use sinew_view::paints;

use crate::answer::{BAD_REQUEST, error_json, print};
use crate::part::PartArgs;

/// A spec, compiled.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) spec: Spec,
    pub(crate) plan: Plan,
}

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// Something wrong with the file, the machine or the command line. The text has no place in the
    /// spec.
    Request(String),
    /// The spec's text, the errors at places in it, and the nodes that cannot be made for a reason
    /// outside the spec.
    Spec(String, Vec<Diagnostic>, Vec<Refusal>),
}

/// A node that cannot be made, for a reason that has no place in the spec.
#[derive(Debug)]
pub(crate) struct Refusal {
    file: String,
    line: u32,
    node: String,
    text: String,
}

/// This machine, of which only the CPUs are known.
pub(crate) fn this_machine() -> Result<TargetMachine, LoadError> {
    let cpus = privileges::cpus()
        .map_err(|error| LoadError::Request(format!("cannot read this process's CPUs: {error}")))?;
    Ok(TargetMachine::of(cpus))
}

/// Reads and compiles the spec in `path`, with the changes from the command line.
pub(crate) fn load(
    path: &Path,
    part: &PartArgs,
    nodes: &Kinds,
    machine: &TargetMachine,
) -> Result<Loaded, LoadError> {
    let spec = read_spec(path, part, machine)?;
    match compile(&source(&spec), &nodes.catalogue(), machine) {
        Ok(plan) => Ok(Loaded { spec, plan }),
        Err(diagnostics) => Err(LoadError::Spec(spec.text, diagnostics, vec![])),
    }
}

/// [`load`]s what can run: a graph without hosts, or the part of one.
pub(crate) fn load_part(
    path: &Path,
    part: &PartArgs,
    nodes: &Kinds,
    machine: &TargetMachine,
) -> Result<Loaded, LoadError> {
    let loaded = load(path, part, nodes, machine)?;
    of_one_host(&loaded.plan).map(|()| loaded)
}

/// Refuses a plan that is of all hosts.
pub(crate) fn of_one_host(plan: &Plan) -> Result<(), LoadError> {
    if !plan.is_whole() {
        return Ok(());
    }
    let hosts = plan.hosts.all.iter().map(|host| format!("'--host {}'", host.name));
    let hosts: Vec<String> = hosts.collect();
    Err(LoadError::Request(format!(
        "graph '{}' runs on several hosts, and this machine is one of them; add {}",
        plan.name,
        hosts.join(" or ")
    )))
}

/// The spec in `path`, with everything that is read for it.
fn read_spec(path: &Path, part: &PartArgs, machine: &TargetMachine) -> Result<Spec, LoadError> {
    let file = path.display().to_string();
    let text = read(path).map_err(|error| LoadError::Request(format!("{file}: {error}")))?;
    let overrides = part.set.iter().map(|text| split(text)).collect::<Result<Vec<_>, _>>()?;
    let base = folder_of(path);
    let images = read_images(&text, &base);
    let outside = outside::bring(wanted_of(&text, &overrides), &base);
    outside::know(&outside);
    let (host, machine) = (part.host.clone(), machine.clone());
    let observe = false;
    Ok(Spec { file, text, base, overrides, images, outside, host, observe, machine })
}

/// The spec as the compiler takes it.
fn source(spec: &Spec) -> SpecSource<'_> {
    let Spec { file, text, overrides, images, outside, host, .. } = spec;
    let host = host.as_deref();
    SpecSource { overrides, images, outside, host, ..SpecSource::of(file, text) }
}

/// The tables of kinds from the images that a spec names. For an image that cannot be read: why
/// not.
fn read_images(text: &str, base: &Path) -> Vec<GuestImage> {
    let read = |(image, board)| {
        let table = image::read(&base.join(&image), BoardRow::of(board));
        GuestImage { image, board, table: table.map(|image| image.table().to_vec()) }
    };
    images_of(text).into_iter().map(read).collect()
}

/// The catalogue with the kinds of the images that the spec in `path` names, whether or not the
/// spec is good.
pub(crate) fn kinds_of(path: &Path, nodes: &Kinds) -> Result<Vec<&'static Kind>, LoadError> {
    let text =
        read(path).map_err(|error| LoadError::Request(format!("{}: {error}", path.display())))?;
    let mut all = nodes.catalogue();
    for GuestImage { image, table, .. } in read_images(&text, &folder_of(path)) {
        let kinds = table.and_then(|table| kinds_of_image(&table));
        let kinds = kinds.map_err(|why| LoadError::Request(format!("image '{image}': {why}")))?;
        for kind in kinds {
            // Two images may have the same kind.
            if !all.iter().any(|known| known.name == kind.name) {
                all.push(kind);
            }
        }
    }
    Ok(all)
}

/// [`load`]s the spec, makes every node as a domain would at its start, and drops it again. So it
/// also checks the files that nodes read and the users that domains run as. If the compiler refuses
/// the graph, its parts are checked all the same.
pub(crate) fn load_and_make(
    path: &Path,
    part: &PartArgs,
    nodes: &Kinds,
    machine: &TargetMachine,
) -> Result<Loaded, LoadError> {
    let spec = read_spec(path, part, machine)?;
    let examined = examine(&source(&spec), &nodes.catalogue(), machine);
    let (mut placed, mut others) = (Vec::new(), Vec::new());
    if let Some(plan) = &examined.plan {
        placed = refused_domains(plan);
        let refused = |at: usize| {
            let refused = nodes.check_node(plan, at, &spec.base).err().unwrap_or_default();
            refused.into_iter().map(move |refusal| (at, refusal))
        };
        let mut refused: Vec<_> = (0..plan.nodes.len()).flat_map(refused).collect();
        // Errors that only follow from others are shown only if there are no others.
        let is_cause = |(_, it): &(usize, sinew_core::Refusal)| !it.follows;
        if !examined.is_good() || refused.iter().any(is_cause) {
            refused.retain(is_cause);
        }
        for (at, refusal) in refused {
            match refusal.span {
                Some(span) => placed.push((span, refusal.message, refusal.help)),
                None => others.push(Refusal {
                    file: spec.file.clone(),
                    line: plan.nodes[at].line,
                    node: plan.nodes[at].name.clone(),
                    text: refusal.to_string(),
                }),
            }
        }
    }
    match examined.finish(&source(&spec), placed) {
        Ok(plan) if others.is_empty() => Ok(Loaded { spec, plan }),
        made => Err(LoadError::Spec(spec.text, made.err().unwrap_or_default(), others)),
    }
}

/// What is wrong with domains: users and boards that this machine lacks.
fn refused_domains(plan: &Plan) -> Vec<Finding> {
    let apart = |span, text: &str| {
        let (message, help) = text.split_once("; ").unwrap_or((text, ""));
        (span, message.to_owned(), help.to_owned())
    };
    let mut refused = Vec::new();
    for domain in &plan.domains {
        let user = check_user(domain).err();
        refused.extend(user.map(|error| apart(domain.user_span, &error.to_string())));
        let Some(guest) = domain.guest() else { continue };
        let missing = (BoardRow::of(guest.board).missing)();
        refused.extend(missing.map(|missing| apart(guest.image_span, &missing)));
    }
    refused
}

/// [`load_and_make`]s the spec, then tries whether the sources can have what they open, such as a
/// port. They release it when all have tried. If spans of flows are asked for, it also checks that
/// their file can be written.
pub(crate) fn load_to_run(
    path: &Path,
    part: &PartArgs,
    nodes: &Kinds,
    machine: &TargetMachine,
) -> Result<Loaded, LoadError> {
    let loaded = load_and_make(path, part, nodes, machine)?;
    of_one_host(&loaded.plan)?;
    let Loaded { spec, plan } = &loaded;
    if (0..plan.nodes.len()).any(|node| plan.is_flow(node)) {
        try_spans().map_err(|error| LoadError::Request(error.to_string()))?;
    }
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    for index in 0..plan.nodes.len() {
        match nodes.try_open(plan, index, &spec.base) {
            Ok(open) => held.extend(open),
            Err(refusal) => refused.push(refusal),
        }
    }
    if refused.is_empty() {
        return Ok(loaded);
    }
    let placed = refused.into_iter().map(|it| (it.span.unwrap_or_default(), it.message, it.help));
    let diagnostics = diagnose(&source(spec), placed);
    Err(LoadError::Spec(loaded.spec.text, diagnostics, vec![]))
}

/// The folder that paths in a spec start from.
pub(crate) fn folder_of(spec: &Path) -> PathBuf {
    let folder = spec.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}

/// The text of the file. Never reads more than the limit.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let cannot = |error| format!("cannot read the spec: {error}; give the graph's YAML file");
    let file = File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(TEXT_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > TEXT_LEN_MAX {
        let limit = TEXT_LEN_MAX >> 20;
        return Err(format!("the spec is larger than {limit} MiB, the limit; split the graph"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line} is not UTF-8; save the spec as UTF-8")
    })
}

/// Splits `node.parameter=value`.
pub(crate) fn split(text: &str) -> Result<(String, String), LoadError> {
    let parts = text.split_once('=').filter(|(name, _)| name.contains('.'));
    let (name, value) = parts.ok_or_else(|| {
        LoadError::Request(format!("'{text}' after --set: expected NODE.PARAMETER=VALUE"))
    })?;
    Ok((name.into(), value.into()))
}

impl LoadError {
    /// The error as a JSON object: `{"errors": [...]}`.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            LoadError::Request(text) => error_json(text),
            LoadError::Spec(_, diagnostics, refusals) => {
                let diagnostics = hidden(diagnostics);
                let shown = diagnostics.iter().map(Diagnostic::to_json);
                let errors = in_order(&diagnostics, shown, refusals, Refusal::to_json);
                json!({ "errors": errors })
            }
        }
    }

    /// Reports the errors, on standard error or as the one JSON object that was asked for. Returns
    /// the exit status that goes with them.
    pub(crate) fn answer(&self, as_json: bool) -> ExitCode {
        match as_json {
            true => print(&format!("{:#}\n", self.to_json()), ExitCode::from(BAD_REQUEST)),
            false => self.report(),
        }
    }

    /// Reports the errors on standard error. Returns the exit status that goes with them.
    pub(crate) fn report(&self) -> ExitCode {
        let color = paints(&stderr());
        let text = match self {
            LoadError::Request(text) => format!("error: {text}\n"),
            LoadError::Spec(text, diagnostics, refusals) => {
                let diagnostics = hidden(diagnostics);
                let shown = render_each(&diagnostics, text, color);
                in_order(&diagnostics, shown, refusals, Refusal::to_line).concat()
            }
        };
        // If standard error is closed, nobody reads the text. The exit status still tells.
        let _ = stderr().write_all(text.as_bytes());
        ExitCode::from(BAD_REQUEST)
    }
}

/// The text of all errors, in the order of the spec.
fn in_order<T>(
    diagnostics: &[Diagnostic],
    shown: impl IntoIterator<Item = T>,
    refusals: &[Refusal],
    show: impl Fn(&Refusal) -> T,
) -> Vec<T> {
    // Errors without a line come last.
    let line = |it: &Diagnostic| if it.line == 0 { usize::MAX } else { it.line };
    let refusals = refusals.iter().map(|it| (it.line as usize, show(it)));
    let mut all: Vec<_> = diagnostics.iter().map(line).zip(shown).chain(refusals).collect();
    all.sort_by_key(|(line, _)| *line);
    all.into_iter().map(|(_, shown)| shown).collect()
}

/// The errors with secrets hidden: what a node says of its parameters may contain some.
fn hidden(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let hide = |text: &str| outside::hide(text).into_owned();
    let one = |it: &Diagnostic| Diagnostic {
        message: hide(&it.message),
        help: hide(&it.help),
        ..it.clone()
    };
    diagnostics.iter().map(one).collect()
}

impl Refusal {
    fn to_json(&self) -> Value {
        let Refusal { file, line, node, text } = self;
        let text = outside::hide(text);
        json!({ "file": file, "line": line, "node": node, "message": text })
    }

    fn to_line(&self) -> String {
        let Refusal { file, line, node, text } = self;
        let text = outside::hide(text);
        format!("{file}:{line}: error: node '{node}': {text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_the_node_begins() {
        let text = "no such file; write its name".into();
        let refusal = Refusal { file: "arm.yaml".into(), line: 8, node: "ik".into(), text };
        let expected = "arm.yaml:8: error: node 'ik': no such file; write its name\n";
        assert_eq!(refusal.to_line(), expected);
    }
}
