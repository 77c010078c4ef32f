//! `validate`: lets a packet pass whose value a JSON Schema allows. The check itself is built with
//! the feature `schema`.

#[cfg(feature = "schema")]
mod check;
#[cfg(feature = "schema")]
mod schema;
#[cfg(all(test, feature = "schema"))]
mod tests;

use std::fmt;
use std::fs;

use serde_json::Value as Json;
use sinew_core::Parameters;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_flow::{FLOW, FlowEntry, Make, error, input, output};
use sinew_spec::item_json;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: MAKE };

const MAKE: Make = cfg_select! {
    feature = "schema" => { Make::Node(check::make) }
    _ => { Make::Node(|_| Err(vec![crate::without("JSON Schema", "schema").into()])) }
};

static INFO: Kind = Kind {
    name: "validate",
    doc: "Passes a packet on if a value in it, usually the body, matches a JSON Schema. Else it \
          answers 422 with the wrong places and what was expected there. Patterns are linear, \
          formats are checked, and no schema is fetched from elsewhere.",
    ports: &[
        input("in", "The packet."),
        output("out", "The same packet, if the schema allows the value."),
        error(),
    ],
    parameters: &[
        Parameter::new("schema", ParameterType::Yaml)
            .or("null")
            .doc("A JSON Schema, written as YAML. Without '$schema' it is of draft 2020-12."),
        Parameter::new("schema_file", ParameterType::Text)
            .or("")
            .doc("A JSON file with the schema, in place of 'schema'."),
        Parameter::new("value", ParameterType::Yaml)
            .or("packet.body")
            .doc("An expression over packet: the value that is checked."),
    ],
    ..FLOW
};

/// Longest file that holds a schema, in bytes. A longer one is refused.
const FILE_LEN_MAX: u64 = 4 << 20;

/// The expression that the node with these parameters checks, and its schema; `None` if one of them
/// cannot be read.
pub(crate) fn described<'a>(parameters: &'a Parameters<'_>) -> Option<(&'a str, Json)> {
    let value = parameters.yaml("value").text()?;
    Some((value, json(parameters)?))
}

/// The schema in the spec, or else in a file; `None` if it cannot be read.
fn json(parameters: &Parameters<'_>) -> Option<Json> {
    match item_json(parameters.yaml("schema")) {
        Json::Null => from_file(parameters).ok(),
        json => Some(json),
    }
}

fn from_file(parameters: &Parameters<'_>) -> Result<Json, String> {
    let file = parameters.path("schema_file");
    let said = |what: &dyn fmt::Display| format!("{}: {what}", file.display());
    let len = fs::metadata(&file).map_err(|error| said(&error))?.len();
    if len > FILE_LEN_MAX {
        return Err(said(&format_args!("{len} bytes; at most {FILE_LEN_MAX}")));
    }
    let text = fs::read(&file).map_err(|error| said(&error))?;
    serde_json::from_slice(&text).map_err(|error| said(&format_args!("not JSON: {error}")))
}
