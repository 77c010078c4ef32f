//! Files that a command writes: never a file that the graph is made of.

use std::path::Path;

use sinew_spec::catalogue::{ParameterType, ParameterValue};

use crate::load::{LoadError, Loaded};

/// Refuses a file, named by `option`, that is the spec itself or a file of a node.
pub(crate) fn check(
    option: &str,
    file: &Path,
    spec: &Path,
    loaded: &Loaded,
) -> Result<(), LoadError> {
    // If the path is no file, such as a device, nothing is lost.
    let Ok(there) = file.canonicalize() else { return Ok(()) };
    if !there.is_file() {
        return Ok(());
    }
    let is_it = |other: &Path| other.canonicalize().is_ok_and(|other| other == there);
    let refuse = |what: &str| {
        let file = file.display();
        Err(LoadError::Request(format!("{option}: '{file}' is {what}; name another file")))
    };
    if is_it(spec) {
        return refuse("the spec");
    }
    for node in &loaded.plan.nodes {
        let mut values = node.kind.parameters.iter().zip(&node.values);
        if values.any(|(row, value)| {
            files(row.ty, value).iter().any(|it| is_it(&loaded.spec.base.join(it)))
        }) {
            return refuse(&format!("a file of node '{}'", node.name));
        }
    }
    Ok(())
}

/// The files that a parameter's value names.
fn files(ty: ParameterType, value: &ParameterValue) -> &[String] {
    match (ty, value) {
        (ParameterType::Path, ParameterValue::Text(file)) => std::slice::from_ref(file),
        (ParameterType::Paths { .. }, ParameterValue::Texts(files)) => files,
        _ => &[],
    }
}
