//! The plan that was recorded, made again to know what the messages are, and the plan that is
//! replayed: the same one, unless parameters or the spec are others.

use std::path::{Path, PathBuf};

use sinew_runtime::NodeEntry;
use sinew_spec::plan::{Machine, Plan};
use sinew_spec::{Source, compile};

use super::ReplayArgs;
use super::files::{Unpacked, changed};
use super::recording::Recording;
use crate::load::{LoadError, folder_of, read, split};

/// Both plans, and where the paths of the one that is replayed start.
#[derive(Debug)]
pub(super) struct Graphs {
    pub(super) recorded: Plan,
    pub(super) now: Plan,
    pub(super) base: PathBuf,
    /// Removed when the replay is over.
    _unpacked: Option<Unpacked>,
}

impl Graphs {
    /// Compiles both. What is to be known of data files goes to `notes`.
    pub(super) fn make(
        args: &ReplayArgs,
        recording: &Recording,
        nodes: &[NodeEntry],
        notes: &mut Vec<String>,
    ) -> Result<Graphs, LoadError> {
        let head = recording.head();
        let set = args.overrides.iter().map(|text| split(text)).collect::<Result<Vec<_>, _>>()?;
        let kinds: Vec<_> = nodes.iter().map(|row| row.kind).collect();
        let machine = Machine { cpus: head.cpus.clone() };
        let make = |file: &str, text: &str, overrides: &[(String, String)]| {
            let source = Source { file, text, overrides };
            compile(&source, &kinds, &machine)
                .map_err(|diagnostics| LoadError::Spec(text.to_owned(), diagnostics))
        };
        let recorded = make(&head.file, &recording.spec, &head.overrides)?;
        let now = match &args.spec {
            Some(path) => {
                let file = path.display().to_string();
                let text =
                    read(path).map_err(|text| LoadError::Request(format!("{file}: {text}")))?;
                make(&file, &text, &set)?
            }
            None => {
                let mut overrides = head.overrides.clone();
                overrides.retain(|(name, _)| !set.iter().any(|(other, _)| other == name));
                overrides.extend(set);
                make(&head.file, &recording.spec, &overrides)?
            }
        };
        let own = args.base.clone().or(args.spec.as_deref().map(folder_of));
        let (base, unpacked) = match own {
            Some(base) => (base, None),
            None => {
                let unpacked = Unpacked::new(&recording.files).map_err(LoadError::Request)?;
                (unpacked.base.clone(), Some(unpacked))
            }
        };
        note_files(recording, unpacked.is_none().then_some(&base), notes);
        Ok(Graphs { recorded, now, base, _unpacked: unpacked })
    }
}

/// Says which data files are others than the recorded ones: in the folder that is used or, if they
/// are used as they were recorded, where they came from.
fn note_files(recording: &Recording, used: Option<&PathBuf>, notes: &mut Vec<String>) {
    let from = &recording.head().base;
    let folder: &Path = used.unwrap_or(from);
    // The recording may be from another machine, and its folder no business of this one; and what
    // an older one calls '.' is the folder of who recorded, which nobody knows.
    if used.is_none() && !(folder.is_absolute() && folder.is_dir()) {
        return;
    }
    for (name, what) in changed(&recording.files, folder) {
        let path = folder.join(&name);
        let path = path.display();
        notes.push(match used {
            Some(_) => format!("'{path}' {what}: it is not what was recorded"),
            None if Path::new(&name).is_absolute() => {
                format!("'{path}' {what}, and its path is absolute: the recorded one is not used")
            }
            None => format!("'{path}' {what}; the recorded one is used, see --base"),
        });
    }
}
