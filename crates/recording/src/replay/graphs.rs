//! The plan that was recorded, made again to know what the messages are, and the plan that is
//! replayed: the same one, unless parameters or the spec are others.

use std::path::{Path, PathBuf};

use sinew_control::outside;
use sinew_runtime::Kinds;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{Diagnostic, SpecSource, compile, wanted_of};

use super::files::{Unpacked, changed};
use crate::recording::Recording;

/// What is to be otherwise than it was.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// `node.parameter` and another value.
    pub overrides: Vec<(String, String)>,
    /// Another spec: its file, its text, and the folder that its paths start from.
    pub spec: Option<(String, String, PathBuf)>,
    /// The folder that paths start from; else that of the other spec or, if there is none, one that
    /// has the recorded files.
    pub base: Option<PathBuf>,
}

/// Why there is nothing to be replayed.
#[derive(Debug)]
pub enum Refused {
    /// In words.
    Words(String),
    /// The text of a spec, and all that is wrong with it.
    Spec(String, Vec<Diagnostic>),
}

/// Both plans, and where the paths of the one that is replayed start.
#[derive(Debug)]
pub struct Graphs {
    /// The recorded one.
    pub recorded: Plan,
    /// The one that is replayed.
    pub now: Plan,
    pub(super) base: PathBuf,
    /// What is to be known of data files.
    pub(super) notes: Vec<String>,
    /// Removed when the replay is over.
    _unpacked: Option<Unpacked>,
}

impl Graphs {
    /// Where the paths of the graph that is replayed start.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Compiles both.
    ///
    /// # Errors
    /// If one of them is no graph of this program, or the recorded files cannot be unpacked.
    pub fn make(recording: &Recording, nodes: &Kinds, changes: Changes) -> Result<Graphs, Refused> {
        let head = recording.head();
        let Changes { overrides: set, spec, base } = changes;
        let kinds = nodes.catalogue();
        let machine = TargetMachine::of(head.cpus.clone());
        let make = |file: &str, text: &str, overrides: &[(String, String)]| {
            // No recording holds what came from outside: it is read anew.
            let outside = outside::bring(wanted_of(text, overrides), &head.base);
            outside::know(&outside);
            let (images, host) = (&head.images, head.part_of.as_deref());
            let source = SpecSource {
                overrides,
                images,
                outside: &outside,
                host,
                ..SpecSource::of(file, text)
            };
            compile(&source, &kinds, &machine)
                .map_err(|diagnostics| Refused::Spec(text.to_owned(), diagnostics))
        };
        let recorded = make(&head.file, &recording.spec, &head.overrides)?;
        let now = match &spec {
            Some((file, text, _)) => make(file, text, &set)?,
            None => {
                let mut overrides = head.overrides.clone();
                overrides.retain(|(name, _)| !set.iter().any(|(other, _)| other == name));
                overrides.extend(set);
                make(&head.file, &recording.spec, &overrides)?
            }
        };
        let (base, unpacked) = match base.or(spec.map(|(.., folder)| folder)) {
            Some(base) => (base, None),
            None => {
                let unpacked = Unpacked::new(&recording.files).map_err(Refused::Words)?;
                (unpacked.base.clone(), Some(unpacked))
            }
        };
        let notes = note_files(recording, unpacked.is_none().then_some(&base));
        Ok(Graphs { recorded, now, base, notes, _unpacked: unpacked })
    }
}

/// Says which data files are others than the recorded ones: in the folder that is used or, if they
/// are used as they were recorded, where they came from.
fn note_files(recording: &Recording, used: Option<&PathBuf>) -> Vec<String> {
    let from = &recording.head().base;
    let folder: &Path = used.unwrap_or(from);
    // The recording may be from another machine, and its folder no business of this one; and what
    // an older one calls '.' is the folder of who recorded, which nobody knows.
    if used.is_none() && !(folder.is_absolute() && folder.is_dir()) {
        return Vec::new();
    }
    let note = |(name, what): (String, &'static str)| {
        let path = folder.join(&name);
        let path = path.display();
        match used {
            Some(_) => format!("'{path}' {what}: it is not what was recorded"),
            None if Path::new(&name).is_absolute() => {
                format!("'{path}' {what}, and its path is absolute: the recorded one is not used")
            }
            None => format!("'{path}' {what}; the recorded one is used, see --base"),
        }
    };
    changed(&recording.files, folder).into_iter().map(note).collect()
}
