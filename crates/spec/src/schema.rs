//! The JSON schema (draft 2020-12) for editors, from the tables of keys and the catalogue.

use serde_json::{Map, Value as Json, json};
use sinew_plan::catalogue::{Direction, Kind, Parameter, ParameterType, RunsIn, SafeValue};

use crate::keys::{
    AUTO, BLOCK, BLOCK_DOC, BLOCK_KIND, GRAPH, INNER, Key, LINK, NAME_LEN_MAX, NODE, SAFE, Shape,
    Table,
};
use crate::ports::crossing;
use crate::value::expected;

/// The index of one element of a port that has several.
const ELEMENT: &str = "\\[(0|[1-9][0-9]{0,3})\\]";

/// The schema of a spec with these kinds of nodes. Kinds of a guest's image are known only if they
/// are among these.
pub fn schema(catalogue: &[&'static Kind]) -> Json {
    let mut root = table(&GRAPH);
    let catalogue: Vec<_> =
        catalogue.iter().copied().filter(|kind| kind.runs_in != RunsIn::Hosts).collect();
    root["properties"]["nodes"]["items"] = nodes(&catalogue);
    let definitions = catalogue.iter().map(|kind| (kind.name.to_owned(), node(kind)));
    let definitions = definitions.chain([(BLOCK_KIND.to_owned(), block())]);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sinew graph",
        // The whole graph, or only its nodes; an editor shows the errors of the form that was
        // begun.
        "if": {"type": "array"},
        "then": {
            "description": "The nodes of one service domain.",
            "minItems": 1,
            "items": {"$ref": "#/else/properties/nodes/items"},
        },
        "else": root,
        "$defs": definitions.collect::<Map<_, _>>(),
    })
}

/// A block: its nodes are like those of the graph.
fn block() -> Json {
    let mut object = table(&BLOCK);
    object["description"] = json!(BLOCK_DOC);
    object["properties"]["kind"] = json!({"const": BLOCK_KIND, "description": BLOCK_DOC});
    object["properties"]["nodes"]["items"] = json!({"$ref": "#/else/properties/nodes/items"});
    object
}

fn table(table: &Table) -> Json {
    let required = table.keys.iter().filter(|key| key.required).map(|key| key.name);
    let properties = table.keys.iter().map(|key| (key.name.to_owned(), property(key)));
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required.collect::<Json>(),
        "properties": properties.collect::<Map<_, _>>(),
    })
}

fn property(key: &Key) -> Json {
    described(shape(&key.shape), key.doc, key.default)
}

/// The schema of a value, with its description and its default.
fn described(mut json: Json, doc: &str, default: Option<&str>) -> Json {
    json["description"] = json!(doc);
    if let Some(default) = default {
        json["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    json
}

fn shape(shape: &Shape) -> Json {
    match shape {
        Shape::Name => {
            let pattern = format!("^[A-Za-z0-9_-]{{1,{NAME_LEN_MAX}}}$");
            json!({"type": "string", "pattern": pattern})
        }
        Shape::PortName => {
            let pattern = format!("^[A-Za-z0-9_-]{{1,{NAME_LEN_MAX}}}({ELEMENT})?$");
            json!({"type": "string", "pattern": pattern})
        }
        Shape::Value(ty) => value(*ty),
        Shape::Percent { .. } => json!({"type": "string", "pattern": "^[0-9]+ *%$"}),
        Shape::PowerOfTwo { max } => {
            let powers: Vec<u32> = (0..=max.ilog2()).map(|power| 1 << power).collect();
            json!({"enum": powers})
        }
        Shape::Names => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        Shape::Integers { min, max } => json!({
            "type": "array", "minItems": 1, "uniqueItems": true,
            "items": {"type": "integer", "minimum": min, "maximum": max},
        }),
        Shape::AutoOr { min, max, table: inner } => json!({"anyOf": [
            {"type": "integer", "minimum": min, "maximum": max}, {"const": AUTO}, table(inner),
        ]}),
        Shape::Fields(inner) => table(inner),
        // The schema of its items depends on the catalogue.
        Shape::ListOf(inner) if std::ptr::eq(*inner, &NODE) => {
            json!({"type": "array", "minItems": 1, "items": {}})
        }
        Shape::ListOf(inner) => json!({"type": "array", "items": table(inner)}),
        Shape::MapOf(inner) => json!({"type": "object", "additionalProperties": table(inner)}),
        Shape::Messages => json!({
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ]},
            },
        }),
        Shape::MapOfLists(inner) => {
            let list = json!({"type": "array", "items": table(inner)});
            json!({"type": "object", "additionalProperties": list})
        }
    }
}

/// Any node. The kind alone decides which definition applies, so that an editor shows the errors of
/// that definition and not that none applies.
fn nodes(catalogue: &[&'static Kind]) -> Json {
    let names: Vec<&str> = catalogue.iter().map(|kind| kind.name).chain([BLOCK_KIND]).collect();
    let rule = |name: &&str| {
        let is_kind = json!({"properties": {"kind": {"const": name}}, "required": ["kind"]});
        json!({"if": is_kind, "then": {"$ref": format!("#/$defs/{name}")}})
    };
    let rules: Vec<Json> = names.iter().map(rule).collect();
    let properties = json!({"kind": {"enum": names}});
    json!({"type": "object", "required": ["kind"], "properties": properties, "allOf": rules})
}

/// A node of one kind: the keys of every node, its own parameters and its own ports.
fn node(kind: &Kind) -> Json {
    let mut object = table(&NODE);
    object["description"] = json!(kind.doc);
    let properties = &mut object["properties"];
    properties["kind"] = json!({"const": kind.name, "description": kind.doc});
    let (elements, outputs): (Map<_, _>, Map<_, _>) =
        outputs(kind).partition(|(name, _)| name.starts_with('^'));
    if !elements.is_empty() {
        properties["ports"]["patternProperties"] = Json::Object(elements);
    }
    for (key, inner) in [("ports", outputs), ("safe", actuators(kind).collect())] {
        properties[key]["properties"] = Json::Object(inner);
        properties[key]["additionalProperties"] = json!(false);
    }
    for row in kind.parameters {
        properties[row.name] = parameter(row);
    }
    let needs_safe = kind.ports.iter().any(|port| !port.safe.is_empty());
    let own = kind.parameters.iter().filter(|row| row.default.is_none()).map(|row| row.name);
    let required = ["kind"].into_iter().chain(needs_safe.then_some("safe")).chain(own);
    object["required"] = required.collect();
    object
}

/// The outputs by their names; `out[]` becomes a pattern for the names of its elements.
fn outputs(kind: &Kind) -> impl Iterator<Item = (String, Json)> {
    let outputs = kind.ports.iter().filter(|port| port.direction == Direction::Out);
    outputs.map(|port| {
        let items = if port.is_flow() { table(&INNER) } else { table(&LINK) };
        let crosses = match crossing(port.message) {
            words @ ("packets" | "messages") => words.to_owned(),
            name => format!("{name} ({} bytes)", port.message.size),
        };
        let doc = format!("{} Sends {crosses}.", port.doc);
        let name = match port.name.strip_suffix("[]") {
            Some(name) => format!("^{name}{ELEMENT}$"),
            None => port.name.to_owned(),
        };
        (name, json!({"type": "array", "items": items, "description": doc}))
    })
}

fn actuators(kind: &Kind) -> impl Iterator<Item = (String, Json)> {
    let actuators = kind.ports.iter().filter(|port| !port.safe.is_empty());
    actuators.map(|port| {
        let mut object = table(&SAFE);
        let choice = |safe: &SafeValue| json!({"const": safe.name, "description": safe.doc});
        let choices = port.safe.iter().map(choice);
        object["properties"]["value"] = json!({"oneOf": choices.collect::<Json>()});
        object["description"] = json!(port.doc);
        (port.name.to_owned(), object)
    })
}

fn parameter(row: &Parameter) -> Json {
    let doc = match row.ty {
        ParameterType::Yaml => row.doc.to_owned(),
        _ => format!("{} Write {}.", row.doc, expected(row)),
    };
    described(or_braces(value(row.ty)), &doc, row.default)
}

/// The same schema, or a text with braces, for a value that is read from outside of the spec.
fn or_braces(mut json: Json) -> Json {
    const BRACES: &str = "\\{\\{";
    match (json["type"].as_str(), json["pattern"].as_str()) {
        (Some("string"), Some(pattern)) => json["pattern"] = json!(format!("{pattern}|{BRACES}")),
        (Some(ty @ ("boolean" | "integer" | "number")), _) => {
            (json["type"], json["pattern"]) = (json!([ty, "string"]), json!(BRACES));
        }
        (Some("array"), _) => json["items"] = or_braces(json["items"].take()),
        (None, _) if json["enum"].is_array() => {
            let braces = json!({"type": "string", "pattern": BRACES});
            json = json!({"anyOf": [json, braces]});
        }
        _ => {}
    }
    json
}

fn value(ty: ParameterType) -> Json {
    match ty {
        ParameterType::Bool => json!({"type": "boolean"}),
        ParameterType::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ParameterType::Number { min, max } => {
            json!({"type": "number", "minimum": min, "maximum": max})
        }
        ParameterType::Numbers { count_min, count_max, min, max } => json!({
            "type": "array", "minItems": count_min, "maxItems": count_max,
            "items": {"type": "number", "minimum": min, "maximum": max},
        }),
        ParameterType::Text | ParameterType::Path => json!({"type": "string"}),
        ParameterType::Choice(words) => json!({"enum": words}),
        ParameterType::Texts { max } | ParameterType::Paths { max } => json!({
            "type": "array", "maxItems": max, "items": {"type": "string"},
        }),
        ParameterType::Duration { .. } => {
            json!({"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *(ns|us|µs|ms|s|m|h)$"})
        }
        ParameterType::Size { .. } => {
            json!({"type": "string", "pattern": "^[0-9]+ *(KiB|MiB|GiB)$"})
        }
        ParameterType::Yaml => json!({}),
    }
}
