//! The JSON schema (draft 2020-12) for editors, from the tables of keys and the catalogue.

use serde_json::{Map, Value as Json, json};
use sinew_plan::catalogue::{Direction, Kind, Parameter, ParameterType, Port};

use crate::keys::{
    BLOCK, BLOCK_DOC, BLOCK_KIND, GRAPH, INNER, Key, LINK, NAME_LEN_MAX, NODE, SAFE, Shape, Table,
};
use crate::ports::crossing;
use crate::value::expected;

/// The schema of a spec with these kinds of nodes.
pub fn schema(catalogue: &[&'static Kind]) -> Json {
    let mut root = table(&GRAPH);
    root.insert("properties".to_owned(), properties(&GRAPH, catalogue));
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("Sinew graph"));
    // The whole graph, or only its nodes; an editor shows the errors of the one that was begun.
    schema.insert("if".into(), json!({"type": "array"}));
    let list = "The nodes of one service domain.";
    let items = json!({"$ref": "#/else/properties/nodes/items"});
    schema.insert("then".into(), json!({"description": list, "minItems": 1, "items": items}));
    schema.insert("else".into(), Json::Object(root));
    let definitions = catalogue.iter().map(|kind| (kind.name.to_owned(), node(kind)));
    let definitions = definitions.chain([(BLOCK_KIND.to_owned(), block())]);
    schema.insert("$defs".into(), Json::Object(definitions.collect()));
    Json::Object(schema)
}

/// A block: its nodes are like those of the graph.
fn block() -> Json {
    let mut object = table(&BLOCK);
    object.insert("description".into(), json!(BLOCK_DOC));
    object["properties"]["kind"] = json!({"const": BLOCK_KIND, "description": BLOCK_DOC});
    let items = json!({"$ref": "#/else/properties/nodes/items"});
    object["properties"]["nodes"]["items"] = items;
    Json::Object(object)
}

fn table(table: &Table) -> Map<String, Json> {
    let required = table.keys.iter().filter(|key| key.required).map(|key| key.name);
    let mut object = Map::new();
    object.insert("type".into(), json!("object"));
    object.insert("additionalProperties".into(), json!(false));
    object.insert("required".into(), required.collect());
    object.insert("properties".into(), properties(table, &[]));
    object
}

fn properties(table: &Table, catalogue: &[&'static Kind]) -> Json {
    Json::Object(
        table.keys.iter().map(|key| (key.name.to_owned(), property(key, catalogue))).collect(),
    )
}

fn property(key: &Key, catalogue: &[&'static Kind]) -> Json {
    let mut object = shape(&key.shape, catalogue);
    object.insert("description".into(), json!(key.doc));
    if let Some(default) = key.default {
        let value = match key.shape {
            Shape::Truth => json!(default == "true"),
            _ => default.parse::<i64>().map_or(json!(default), |number| json!(number)),
        };
        object.insert("default".into(), value);
    }
    Json::Object(object)
}

fn shape(shape: &Shape, catalogue: &[&'static Kind]) -> Map<String, Json> {
    let json = match shape {
        Shape::Name => json!({"type": "string", "pattern": name_pattern()}),
        Shape::Duration { .. } => {
            json!({"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *(ns|us|µs|ms|s|m|h)$"})
        }
        Shape::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Size { .. } => json!({"type": "string", "pattern": "^[0-9]+ *(KiB|MiB|GiB)$"}),
        Shape::Percent { .. } => json!({"type": "string", "pattern": "^[0-9]+ *%$"}),
        Shape::PowerOfTwo { max } => {
            let powers: Vec<u32> = (0..=max.ilog2()).map(|power| 1 << power).collect();
            json!({"enum": powers})
        }
        Shape::Words(words) => json!({"enum": words}),
        Shape::Truth => json!({"type": "boolean"}),
        Shape::Names => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        Shape::Fields(inner) => Json::Object(table(inner)),
        Shape::ListOf(inner) if std::ptr::eq(*inner, &NODE) => {
            json!({"type": "array", "minItems": 1, "items": nodes(catalogue)})
        }
        Shape::ListOf(inner) => json!({"type": "array", "items": table(inner)}),
        Shape::MapOf(inner) => json!({"type": "object", "additionalProperties": table(inner)}),
        Shape::MapOfLists(inner) => {
            let list = json!({"type": "array", "items": table(inner)});
            json!({"type": "object", "additionalProperties": list})
        }
    };
    if let Json::Object(object) = json { object } else { Map::new() }
}

/// Any node. The kind decides by itself which definition holds, so that an editor shows the errors
/// of that one and not that none fits.
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

fn shape_json(of: &Shape) -> Json {
    Json::Object(shape(of, &[]))
}

fn name_pattern() -> String {
    format!("^[A-Za-z0-9_-]{{1,{NAME_LEN_MAX}}}$")
}

/// A node of one kind: the keys of every node, its own parameters and its own ports.
fn node(kind: &Kind) -> Json {
    let mut object = table(&NODE);
    object.insert("description".into(), json!(kind.doc));
    let mut all = Map::new();
    for key in NODE.keys {
        let mut property = property(key, &[]);
        match key.name {
            "kind" => property = json!({"const": kind.name, "description": kind.doc}),
            "ports" => {
                let outputs = outputs(kind);
                let elements = elements(&outputs);
                if !elements.is_empty() {
                    property["patternProperties"] = Json::Object(elements);
                }
                property["properties"] = Json::Object(single(outputs));
            }
            "safe" => property["properties"] = actuators(kind),
            _ => {}
        }
        if matches!(key.name, "ports" | "safe") {
            property["additionalProperties"] = json!(false);
        }
        all.insert(key.name.to_owned(), property);
    }
    all.extend(kind.parameters.iter().map(|row| (row.name.to_owned(), parameter(row))));
    object.insert("properties".into(), Json::Object(all));
    let needs_safe = kind.ports.iter().any(|port| !port.safe.is_empty());
    let own = kind.parameters.iter().filter(|row| row.default.is_none()).map(|row| row.name);
    let required = ["kind"].into_iter().chain(needs_safe.then_some("safe")).chain(own);
    object.insert("required".into(), required.collect());
    Json::Object(object)
}

fn outputs(kind: &Kind) -> Json {
    let outputs = kind.ports.iter().filter(|port| port.direction == Direction::Out);
    let row = |port: &Port| {
        let items = if port.is_flow() { table(&INNER) } else { table(&LINK) };
        let crosses = match crossing(port.message) {
            words @ ("packets" | "messages") => words.to_owned(),
            name => format!("{name} ({} bytes)", port.message.size),
        };
        let doc = format!("{} Sends {crosses}.", port.doc);
        let list = json!({"type": "array", "items": items, "description": doc});
        (port.name.to_owned(), list)
    };
    Json::Object(outputs.map(row).collect())
}

/// The ports that are no elements.
fn single(outputs: Json) -> Map<String, Json> {
    let rows = if let Json::Object(rows) = outputs { rows } else { Map::new() };
    rows.into_iter().filter(|(name, _)| !name.ends_with("[]")).collect()
}

/// For `out[]`: the form of the names of its elements, with the same list.
fn elements(outputs: &Json) -> Map<String, Json> {
    let rows = outputs.as_object().into_iter().flatten();
    let element = |(name, list): (&String, &Json)| {
        let name = name.strip_suffix("[]")?;
        Some((format!("^{name}\\[(0|[1-9][0-9]{{0,3}})\\]$"), list.clone()))
    };
    rows.filter_map(element).collect()
}

fn actuators(kind: &Kind) -> Json {
    let actuators = kind.ports.iter().filter(|port| !port.safe.is_empty());
    let row = |port: &Port| {
        let mut object = table(&SAFE);
        let choices = port.safe.iter();
        let choices: Vec<Json> =
            choices.map(|safe| json!({"const": safe.name, "description": safe.doc})).collect();
        object["properties"]["value"] = json!({"oneOf": choices});
        object.insert("description".into(), json!(port.doc));
        (port.name.to_owned(), Json::Object(object))
    };
    Json::Object(actuators.map(row).collect())
}

fn parameter(row: &Parameter) -> Json {
    let mut json = match row.ty {
        ParameterType::Bool => json!({"type": "boolean"}),
        ParameterType::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ParameterType::Number { min, max } => {
            json!({"type": "number", "minimum": min, "maximum": max})
        }
        ParameterType::Numbers { count, min, max } => json!({
            "type": "array", "minItems": count, "maxItems": count,
            "items": {"type": "number", "minimum": min, "maximum": max},
        }),
        ParameterType::Text | ParameterType::Path => json!({"type": "string"}),
        ParameterType::Choice(words) => json!({"enum": words}),
        ParameterType::Texts { max } | ParameterType::Paths { max } => json!({
            "type": "array", "maxItems": max, "items": {"type": "string"},
        }),
        ParameterType::Duration { .. } => shape_json(&Shape::Duration { min_ns: 0, max_ns: 0 }),
        ParameterType::Size { .. } => shape_json(&Shape::Size { min_bytes: 0, max_bytes: 0 }),
        ParameterType::Yaml => json!({}),
    };
    json["description"] = match row.ty {
        ParameterType::Yaml => json!(row.doc),
        _ => json!(format!("{} Write {}.", row.doc, expected(row))),
    };
    if let Some(default) = row.default {
        let parsed: Result<Json, _> = serde_json::from_str(default);
        json["default"] = parsed.unwrap_or_else(|_| json!(default));
    }
    json
}
