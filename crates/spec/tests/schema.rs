//! The JSON schema agrees with the compiler.

use crate::kinds::{ARM, KINDS, compile_on};
use serde_json::{Value as Json, json};
use sinew_spec::catalogue::RunsIn;
use sinew_spec::schema;

#[test]
fn the_schema_knows_every_kind_with_its_parameters() {
    let schema = schema(KINDS);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["else"]["required"], json!(["domains", "nodes"]));
    let domain = &schema["else"]["properties"]["domains"]["additionalProperties"]["properties"];
    let restart = &domain["restart"]["properties"];
    assert_eq!(restart["policy"]["enum"], json!(["never", "on_failure", "always"]));
    assert_eq!(
        (&restart["restarts_max"]["default"], &domain["heartbeat"]["default"]),
        (&json!(10), &json!("2s"))
    );
    let hold = &schema["else"]["properties"]["hold"];
    assert_eq!((&hold["type"], &hold["default"]), (&json!("boolean"), &json!(false)));
    let memory = domain["limits"]["properties"]["memory"]["pattern"].as_str().unwrap();
    assert_eq!(memory, "^[0-9]+ *(KiB|MiB|GiB)$");
    let cpus = &domain["cpus"];
    assert_eq!((&cpus["minItems"], &cpus["uniqueItems"]), (&json!(1), &json!(true)));
    assert_eq!(cpus["items"], json!({"type": "integer", "minimum": 0, "maximum": 65_535}));
    let planner = &schema["$defs"]["path_planner"];
    assert_eq!(planner["required"], json!(["kind", "path"]));
    assert_eq!(planner["properties"]["laps"]["maximum"], 1000);
    assert_eq!(planner["properties"]["laps"]["default"], 1);
    let laps = &planner["properties"]["laps"];
    assert_eq!(laps["type"], json!(["integer", "string"]), "a number, or braces around its name");
    let speed = planner["properties"]["speed_max_m_per_s"]["description"].as_str().unwrap();
    assert_eq!(speed, "A parameter. Write a number from 0.001 to 5 (m/s).");
    let drives = &schema["$defs"]["drives"]["properties"];
    let safe = &drives["safe"]["properties"]["in"]["properties"]["value"]["oneOf"];
    assert_eq!(safe[0]["const"], "quick_stop");
    assert_eq!(drives["ports"]["properties"].as_object().unwrap().len(), 1);
}

#[test]
fn references_of_the_schema_lead_somewhere() {
    let schema = schema(KINDS);
    let list = schema["then"]["items"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
    assert!(schema.pointer(list).is_some(), "{list}");
    let rules = &schema["else"]["properties"]["nodes"]["items"]["allOf"];
    // A spec never has a node that stands for other hosts; it may have blocks.
    let written = KINDS.iter().filter(|kind| kind.runs_in != RunsIn::Hosts).count();
    assert_eq!(rules.as_array().unwrap().len(), written + 1);
    for rule in rules.as_array().unwrap() {
        let path = rule["then"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        assert!(schema.pointer(path).is_some(), "{path}");
    }
}

#[test]
fn the_schema_knows_blocks_and_links_that_carry_packets() {
    let schema = schema(KINDS);
    let block = &schema["$defs"]["block"];
    assert_eq!(block["required"], json!(["kind", "nodes"]));
    let inner = block["properties"]["nodes"]["items"]["$ref"].as_str().unwrap();
    assert!(schema.pointer(inner.strip_prefix('#').unwrap()).is_some(), "{inner}");
    let ports = &schema["$defs"]["fan"]["properties"]["ports"];
    let list = &ports["patternProperties"]["^out\\[(0|[1-9][0-9]{0,3})\\]$"];
    assert_eq!(list["items"]["required"], json!(["name", "port"]));
    assert_eq!(list["items"]["properties"].as_object().unwrap().len(), 2, "no options");
    let body = &schema["$defs"]["step"]["properties"]["body"];
    assert_eq!(body, &json!({"description": "A parameter.", "default": ""}));
}

/// The default that the schema gives for a link option is the compiler's default.
#[test]
fn defaults_of_the_schema_are_those_of_the_compiler() {
    let schema = schema(KINDS);
    let link = &schema["$defs"]["ik"]["properties"]["ports"]["properties"]["out"]["items"];
    let default = |option: &str| match &link["properties"][option]["default"] {
        Json::String(word) => word.clone(),
        other => other.to_string(),
    };
    let written = ["sync", "delivery", "wait", "capacity", "full", "delay"]
        .map(|option| format!("{option}: {}", default(option)));
    let explicit = format!("{{name: ethercat, port: in, {}}}", written.join(", "));
    let text = ARM.replace("{name: ethercat, port: in}", &explicit);
    let (implied, written) = (compile_on(4, ARM).unwrap(), compile_on(4, &text).unwrap());
    assert_eq!(format!("{:?}", implied.links), format!("{:?}", written.links));
}
