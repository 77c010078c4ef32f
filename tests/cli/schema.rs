//! The JSON schema for editors, read by an independent validator: it reports nothing for our
//! graphs, and reports wrong ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{folder, graph_in, ours, refused, sinew, skip};

/// Prints the errors of a graph according to a schema.
const SCRIPT: &str = "
import json, sys, jsonschema, yaml
schema, graph = json.load(open(sys.argv[1])), yaml.safe_load(open(sys.argv[2]))
for error in jsonschema.Draft202012Validator(schema).iter_errors(graph):
    print(list(error.absolute_path), error.message)
";

/// What an editor would underline in a graph. `None` without a validator.
fn underlined(schema: &Path, graph: &Path) -> Option<String> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let imports = Command::new(&python).args(["-c", "import jsonschema, yaml"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        skip(&format!("'{python}' cannot import jsonschema and yaml; see tests/python"));
        return None;
    }
    let mut command = Command::new(python);
    let output = command.args(["-c", SCRIPT]).args([schema, graph]).output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// The schema that `sinew check --schema` prints with these arguments.
fn schema(name: &str, graph: &[&str]) -> PathBuf {
    let path = folder(name).join("schema.json");
    let printed = sinew([&["check", "--schema"], graph].concat()).ended_with(0).out;
    fs::write(&path, printed).expect("room");
    path
}

#[test]
fn the_schema_underlines_no_graph_of_ours() {
    let schema = schema("schema", &[]);
    let mut seen = 0;
    for of in ["arm", "robot", "http", "flows"] {
        for file in fs::read_dir(ours("graphs").join(of)).expect("graphs").flatten() {
            if file.path().extension().is_some_and(|end| end == "yaml") {
                let Some(wrong) = underlined(&schema, &file.path()) else { return };
                assert_eq!(wrong, "", "{}", file.path().display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 7, "only {seen} graphs were found");
    let text = fs::read_to_string(ours("graphs/arm/arm.yaml")).expect("the arm");
    let wrong = graph_in("schema_wrong", &text.replace("kind: ik", "kind: ki"));
    let wrong = underlined(&schema, Path::new(&wrong)).expect("python");
    assert!(wrong.contains("['nodes', 1, 'kind'] 'ki' is not one of"), "{wrong}");
}

#[test]
fn the_schema_of_a_graph_knows_the_kinds_of_its_images() {
    if !ours("guest/target/armv7a-none-eabi/release/guard").exists() {
        skip("the guest was not built; cd guest && cargo build --release");
        return;
    }
    let graph = ours("graphs/dual_os/arm.yaml");
    let shown = graph.display().to_string();
    let with = schema("schema_guest", &[&shown]);
    let Some(wrong) = underlined(&with, &graph) else { return };
    assert_eq!(wrong, "");
    // Without the graph these kinds are unknown. With it, their parameters are checked against the
    // kinds' table.
    let without = underlined(&schema("schema_bare", &[]), &graph).expect("python");
    assert!(without.contains("'guard' is not one of"), "{without}");
    let text = fs::read_to_string(&graph).expect("the graph");
    let wrong = graph_in("schema_guest_wrong", &text.replace("after: 10 ", "after: ten "));
    let wrong = underlined(&with, Path::new(&wrong)).expect("python");
    // A text is allowed there only as a value from outside, in braces.
    assert!(wrong.contains(r"'after'] 'ten' does not match '\\{\\{'"), "{wrong}");
    let nowhere = graph_in("schema_nowhere", "domains: {g: {guest: {image: nowhere.elf}}}");
    refused(&["check", "--schema", &nowhere], "image 'nowhere.elf'");
}
