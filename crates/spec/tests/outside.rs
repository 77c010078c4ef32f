//! Values from outside of the spec: where they are allowed, which type they are read as, and that
//! they are never shown.

use crate::kinds::{ARM, KINDS, plan};
use sinew_spec::catalogue::ParameterValue;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{
    BROUGHT_MAX, Brought, Diagnostic, SpecSource, Wanted, compile, item_json, picture, wanted_of,
};

/// The contents of the environment and the files of these tests.
fn value(wanted: &Wanted) -> Result<String, String> {
    let text = match wanted {
        Wanted::Variable(name) => match name.as_str() {
            "TIME" => "90",
            "COUNT" => "7",
            "SIZE" => "8KiB",
            "NO" => "",
            "WORD" => "hunter2-and-more",
            "BRACES" => "{{ 1 + 1 }}",
            _ => return Err(format!("no {name}; set it")),
        },
        Wanted::File(path) if path == "secrets/key" => "contents-of-a-file",
        Wanted::File(path) => return Err(format!("no file {path}; write it")),
    };
    Ok(text.to_owned())
}

fn compiled(text: &str, overrides: &[(&str, &str)]) -> Result<Plan, Vec<Diagnostic>> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let overrides: Vec<_> = overrides.iter().map(owned).collect();
    let brought = |wanted: Wanted| Brought { value: value(&wanted), wanted };
    let outside: Vec<_> = wanted_of(text, &overrides).into_iter().map(brought).collect();
    let (file, overrides) = ("graph.yaml", &*overrides);
    let source = SpecSource { overrides, outside: &outside, ..SpecSource::of(file, text) };
    compile(&source, KINDS, &TargetMachine::of(vec![0, 1]))
}

fn errors(text: &str) -> Vec<String> {
    let errors = compiled(text, &[]).map(|_| ()).expect_err(text);
    errors.iter().map(ToString::to_string).collect()
}

/// A node with these parameters behind a source.
fn step(parameters: &str) -> String {
    format!(
        "- {{kind: begin, ports: {{out: [{{name: step, port: in}}]}}}}\n\
         - {{kind: step, code: x, {parameters}}}\n"
    )
}

fn parameter(plan: &Plan, name: &str) -> ParameterValue {
    let node = plan.nodes.iter().find(|node| node.kind.name == "step").expect("the node");
    let place = node.kind.parameters.iter().position(|row| row.name == name).expect("a parameter");
    node.values[place].clone()
}

#[test]
fn a_value_is_read_as_its_parameter_is() {
    let text = step("pause: '{{ env.TIME }}s', body_max: '{{ env.SIZE }}'");
    let plan = compiled(&text, &[]).expect("a good graph");
    assert_eq!(parameter(&plan, "pause"), ParameterValue::Duration(90_000_000_000));
    assert_eq!(parameter(&plan, "body_max"), ParameterValue::Size(8192));
    let text = step("pause: \"{{ env.UNSET or '2s' }}\"");
    let plan = compiled(&text, &[]).expect("a good graph");
    assert_eq!(parameter(&plan, "pause"), ParameterValue::Duration(2_000_000_000));
    // In quotes it is a number too, and domains also get values.
    let text = ARM.replace("period: 1ms", "period: '{{ env.COUNT }}ms'");
    let plan = compiled(&text, &[("planner.laps", "'{{ env.COUNT }}'")]).expect("a good graph");
    assert_eq!(plan.domains[0].realtime().expect("a core").period_ns, 7_000_000);
    assert!(plan.nodes[0].values.contains(&ParameterValue::Integer(7)), "{:?}", plan.nodes[0]);
    let overridden = compiled(&step("pause: 1s"), &[("step.pause", "'{{ env.TIME }}ms'")]);
    let overridden = parameter(&overridden.expect("a good graph"), "pause");
    assert_eq!(overridden, ParameterValue::Duration(90_000_000));
}

#[test]
fn a_template_of_a_flow_node_stays_for_its_kind() {
    let plan = compiled(&step("body: {a: '{{ env.WORD }}'}"), &[]).expect("a good graph");
    let ParameterValue::Yaml(body) = parameter(&plan, "body") else { panic!("YAML") };
    assert_eq!(item_json(&body).to_string(), r#"{"a":"{{ env.WORD }}"}"#);
}

#[test]
fn what_is_missing_or_wrong_is_said_where_it_stands_and_not_shown() {
    let table = [
        ("pause: '{{ env.UNSET }}'", "2:33: error: no UNSET; help: set it"),
        ("pause: '1{{ file.no/such }}'", "2:34: error: no file no/such; help: write it"),
        ("pause: '{{ 1 + 1 }}'", "2:33: error: no expression can stand here"),
        ("pause: '{{ env.WORD }}'", "2:32: error: pause cannot be '{{ env.WORD }}'"),
        ("pause: '{{ env.COUNT }}'", "2:32: error: pause cannot be '{{ env.COUNT }}'"),
        (
            "pause: '{{ file.secrets/key }}'",
            "2:32: error: pause cannot be '{{ file.secrets/key }}'",
        ),
        // Braces inside a value are not replaced again.
        ("pause: '{{ env.BRACES }}'", "2:32: error: pause cannot be '{{ env.BRACES }}'"),
    ];
    for (parameter, expected) in table {
        let errors = errors(&step(parameter));
        assert_eq!(errors.len(), 1, "{parameter}: {errors:?}");
        assert!(
            errors[0].starts_with(&format!("graph.yaml:{expected}")),
            "{parameter}: {errors:?}"
        );
        for secret in ["hunter2", "contents", "1 + 1 }}'; help: write a"] {
            assert!(!errors[0].contains(secret), "{errors:?}");
        }
    }
    let without_quotes = errors(&step("pause: {{ env.TIME }}"));
    assert!(without_quotes[0].contains("stand in quotes"), "{without_quotes:?}");
    let many: String = (0..=BROUGHT_MAX).map(|at| format!("{{{{ env.A{at} or 'a' }}}}")).collect();
    let many = errors(&step(&format!("pause: \"{many}\"")));
    assert!(many[0].contains("more than 256 values"), "{many:?}");
}

#[test]
fn no_picture_shows_a_value() {
    let text = step("pause: '{{ env.TIME }}s', body: 1");
    let compiled = compiled(&text, &[]).expect("a good graph");
    let json = picture::json(&compiled).to_string();
    assert!(json.contains("{{ env.TIME }}s") && !json.contains("\"90s\""), "{json}");
    let plain = plan(&step("pause: 90s"));
    assert!(picture::json(&plain).to_string().contains("\"90s\""));
}
