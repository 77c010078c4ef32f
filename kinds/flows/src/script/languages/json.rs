//! `json`: a JSON text whose strings may be templates. The text is read first, so that a value that
//! is put in can never become syntax.

use serde_json::Value as Json;
use sinew_core::{Made, Refusal};
use sinew_spec::plan::SpecText;
use sinew_spec::{Data, Entry, Item, Span};

use super::{Limits, Script, code};
use crate::script::line_start;
use crate::script::template::Template;

pub(super) fn compile(item: &Item, _: &Limits, _: Option<&SpecText>) -> Made<dyn Script> {
    if !matches!(item.data, Data::Scalar { .. }) {
        return Ok(Box::new(Template::compile(item)?));
    }
    let text = code(item)?;
    let json = serde_json::from_str(text).map_err(|error| {
        let help = "an expression stands in a string: \"{{ packet.name }}\"";
        // A column counts bytes, from 1.
        let offset = line_start(text, error.line()) + error.column().saturating_sub(1);
        let place = item.span_at(offset);
        vec![Refusal::new(place, format!("not JSON: {error}"), help)]
    })?;
    Ok(Box::new(Template::compile(&tree(&json, text, item))?))
}

/// JSON as a piece of the spec, so that each template knows its place.
fn tree(json: &Json, text: &str, code: &Item) -> Item {
    let data = match json {
        Json::Array(items) => Data::List(items.iter().map(|item| tree(item, text, code)).collect()),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| {
                let span = place(key, text, code);
                Entry { key: key.clone(), span, value: tree(value, text, code) }
            };
            Data::Map(entries.iter().map(entry).collect())
        }
        Json::String(string) => {
            let data = Data::Scalar { text: string.clone(), plain: false };
            return Item::new(place(string, text, code), data);
        }
        // Numbers, booleans and null are written in YAML as in JSON.
        other => Data::Scalar { text: other.to_string(), plain: true },
    };
    Item::new(code.span, data)
}

/// The place of a string that holds a template: that of the first string that is written in the
/// same way.
fn place(string: &str, text: &str, code: &Item) -> Span {
    let written = Json::from(string).to_string();
    let found = string.contains("{{").then(|| text.find(&written)).flatten();
    let place = found.map(|offset| code.span_at(offset)).filter(|place| place.len == 1);
    place.map_or(code.span, |place| Span { len: written.len() as u32, ..place })
}
