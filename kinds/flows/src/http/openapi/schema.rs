//! A JSON Schema as a part of a larger document.

use serde_json::Value as Json;

/// Keys whose values are data, not schemas.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];
/// Keys whose values are mappings of schemas, by names that the author may choose.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The schema for a place in a document. There `#` would be that document, so the schema's
/// references are made to lead to `place`. A schema with an `$id` of its own is not changed.
pub(super) fn placed(schema: Json, place: &str) -> Json {
    if schema.get("$id").is_some() { schema } else { moved(schema, place) }
}

fn moved(schema: Json, place: &str) -> Json {
    match schema {
        Json::Object(fields) => {
            let field = |(key, value): (String, Json)| {
                let value = match value {
                    Json::String(to) if key == "$ref" => Json::String(reference(to, place)),
                    Json::Object(named) if NAMED.contains(&&*key) => {
                        named.into_iter().map(|(name, it)| (name, moved(it, place))).collect()
                    }
                    data if DATA.contains(&&*key) => data,
                    other => moved(other, place),
                };
                (key, value)
            };
            fields.into_iter().map(field).collect()
        }
        Json::Array(items) => items.into_iter().map(|item| moved(item, place)).collect(),
        other => other,
    }
}

fn reference(to: String, place: &str) -> String {
    match to.strip_prefix('#') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{place}{rest}"),
        _ => to,
    }
}

/// The properties of a schema of mappings: name, schema, and whether it must be there.
pub(super) fn properties(schema: &Json) -> impl Iterator<Item = (&str, &Json, bool)> {
    let required = schema["required"].as_array();
    let is_required =
        move |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let named = schema["properties"].as_object().into_iter().flatten();
    named.map(move |(name, schema)| (&**name, schema, is_required(name)))
}
