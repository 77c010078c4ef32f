//! The recorded plan, made again to know its messages, and the plan that is replayed. Both are the
//! same unless parameters or the spec were changed.

use std::path::{Path, PathBuf};

use sinew_control::outside;
use sinew_runtime::Kinds;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{Diagnostic, SpecSource, compile, wanted_of};

use super::files::{Unpacked, changed};
use crate::recording::Recording;

/// Changes from the recorded run.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// `node.parameter` and another value.
    pub overrides: Vec<(String, String)>,
    /// Another spec: its file, its text, and the folder that its paths start from.
    pub spec: Option<(String, String, PathBuf)>,
    /// The folder at which paths start. Default: the folder of the other spec or, without one, a
    /// folder with the recorded files.
    pub base: Option<PathBuf>,
}

/// Why nothing can be replayed.
#[derive(Debug)]
pub enum Refused {
    /// The reason in words.
    Words(String),
    /// The text of a spec, and all its errors.
    Spec(String, Vec<Diagnostic>),
}

/// Both plans, and the folder at which the paths of the replayed one start.
#[derive(Debug)]
pub struct Graphs {
    /// The recorded one.
    pub recorded: Plan,
    /// The one that is replayed.
    pub now: Plan,
    pub(super) base: PathBuf,
    /// Notes about data files.
    pub(super) notes: Vec<String>,
    /// Removed when the replay is over.
    _unpacked: Option<Unpacked>,
}

impl Graphs {
    /// The folder at which the paths of the replayed graph start.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Compiles both.
    ///
    /// # Errors
    /// One of them is no graph of this program, or the recorded files cannot be unpacked.
    pub fn make(recording: &Recording, nodes: &Kinds, changes: Changes) -> Result<Graphs, Refused> {
        let head = recording.head();
        let Changes { overrides: set, spec, base } = changes;
        let kinds = nodes.catalogue();
        let machine = TargetMachine::of(head.cpus.clone());
        let make = |file: &str, text: &str, overrides: &[(String, String)]| {
            // Recordings do not contain values from outside of the spec, so these are read again.
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

/// Notes which data files differ from the recorded ones. It compares the files in the folder that
/// is used or, if the recorded files are used, the files at their original place.
fn note_files(recording: &Recording, used: Option<&PathBuf>) -> Vec<String> {
    let from = &recording.head().base;
    let folder: &Path = used.unwrap_or(from);
    // If the recording is from another machine, its folder means nothing here. In an older
    // recording '.' means the folder of the user who recorded, which is unknown.
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
