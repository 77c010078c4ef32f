//! The spec of a run, to make the same plan again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The spec of the run, to make the same plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The file, as the user named it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The folder that paths in it start from.
    pub base: PathBuf,
    /// `node.parameter` and the value that takes the place of the spec's.
    pub overrides: Vec<(String, String)>,
    /// The CPUs that the plan was made for.
    pub cpus: Vec<u32>,
}
