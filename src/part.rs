//! What the command line says of a graph beside its file: which parameters have other values, and
//! of which host it is the part.

use std::path::PathBuf;

use clap::Args;

/// The changes, and the host.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PartArgs {
    /// Replace a value of the spec: of a parameter, or of a host's address with
    /// hosts.NAME.address=HOST:PORT; may be repeated
    #[arg(long, value_name = "NODE.PARAMETER=VALUE")]
    pub(crate) set: Vec<String>,
    /// In a graph with hosts: use the part of this host
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}

impl PartArgs {
    /// Refuses these options if no file of a graph is given.
    ///
    /// # Errors
    /// What to do about it.
    pub(crate) fn speaks_of(&self, graph: Option<&PathBuf>) -> Result<(), String> {
        match graph.is_some() || (self.set.is_empty() && self.host.is_none()) {
            true => Ok(()),
            false => Err("--set and --host need a graph; name its file".into()),
        }
    }
}
