//! Writes values into the text of a spec: nothing else in it changes, not even comments.

use std::fs;
use std::io;
use std::path::Path;

use sinew_spec::edit::{Change, Places, edit};

use super::parts;
use crate::replace::replace;

/// Writes values, `NODE.PARAMETER=VALUE` each, into the spec `file`; one call at a time, because it
/// reads what it changes. Blocks on the disk.
pub(super) fn to_spec(file: &Path, settings: &[String]) -> Result<(), String> {
    let say = |error: io::Error| error.to_string();
    let old = fs::read_to_string(file).map_err(say)?;
    let places = Places::of(&old).ok_or("the file is no longer YAML")?;
    let mut changes = Vec::new();
    for setting in settings {
        let (node, key, value) = parts(setting)?;
        let to = places.node(node).ok_or_else(|| format!("it has no node '{node}' any more"))?;
        changes.push(Change { to, key: key.to_owned(), value: Some(value.to_owned()) });
    }
    let new = edit(&old, &changes).map_err(|error| error.to_string())?;
    replace(file, &new).map_err(say)
}
