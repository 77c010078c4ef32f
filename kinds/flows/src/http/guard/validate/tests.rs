//! Schemas compared with another library, and errors in schemas and in values.

use serde_json::{Value as Json, from_str, json};
use sinew_flow::{Error, Value};

use crate::testing::{refusals, reply};

fn graph(schema: &str) -> String {
    format!("- {{kind: validate, name: v, value: packet, schema: {schema}}}")
}

fn refused(schema: &str, value: Json) -> Error {
    reply(&graph(schema), Value::from(value)).expect_err("an error")
}

/// The places that an answer names.
fn places(error: &Error) -> Vec<String> {
    let shown = error.shown().expect("shown").to_json().expect("JSON");
    let fields = shown["fields"].as_array().expect("fields").iter();
    let mut places: Vec<_> =
        fields.map(|field| field["path"].as_str().expect("a path").to_owned()).collect();
    places.sort();
    places.dedup();
    places
}

/// The examples of json-schema.org, judged by the Python library jsonschema 4.26; a part that is
/// missing or not expected is listed there by its own place.
#[test]
fn the_drafts_own_examples_are_judged_as_another_library_judges_them() {
    let rows: Vec<Json> = from_str(include_str!("draft_examples.json")).expect("JSON");
    assert!(rows.len() > 20);
    for row in rows {
        let wrong: Vec<&str> =
            row["wrong"].as_array().expect("a list").iter().filter_map(Json::as_str).collect();
        let schema = row["schema"].to_string();
        match reply(&graph(&schema), Value::from(row["value"].clone())) {
            Ok(passed) => {
                assert!(wrong.is_empty(), "{row}");
                assert_eq!(passed, Some(Value::from(row["value"].clone())));
            }
            Err(error) => {
                assert_eq!(error.status(), 422, "{row}: {error}");
                assert_eq!(places(&error), wrong, "{row}: {error}");
            }
        }
    }
}

#[test]
fn an_answer_names_each_place_and_what_was_expected_but_not_what_came() {
    let schema = "{type: object, required: [mail], properties: {mail: {format: email}, code: \
                  {type: string, maxLength: 4}, age: {anyOf: [{type: integer}, {const: none}]}}}";
    let error = refused(schema, json!({"mail": "ada", "code": "secret-code", "age": 1.5}));
    let shown = error.shown().expect("shown").to_json().expect("JSON");
    let expected = json!({"error": "packet is not what was expected", "fields": [
        {"path": "/age", "why": "it is not of type \"integer\", and \"none\" was expected"},
        {"path": "/code", "why": "it is longer than 4 characters"},
        {"path": "/mail", "why": "it is not a \"email\""},
    ]});
    assert_eq!(shown, expected);
    assert!(!error.text().contains("secret-code"), "{error}");
    let many = json!({"items": [1, 2]});
    let all = refused("{items: {type: string}, type: array}", many);
    assert_eq!(places(&all), [""]);
    let long: Vec<_> = (0..50).collect();
    assert_eq!(places(&refused("{items: {type: string}}", json!(long))).len(), 20);
    let large: Vec<_> = (0..30_000).collect();
    assert_eq!(places(&refused("{items: {type: string}}", json!(large))), ["/0"]);
}

#[test]
fn a_schema_that_is_none_is_shown_where_it_is_wrong() {
    for (schema, word, expected) in [
        ("{properties: {a: {type: objet}}}", "objet", "\"object\""),
        ("{properties: {a: {minimum: x}}}", "x}", "\"number\""),
        ("{properties: {a: {pattern: '(?=x)'}}}", "'(?=x)'", "regex"),
        ("{items: [{type: string}]}", "[{type", "not of types"),
        ("{properties: {a: {$ref: 'http://127.0.0.1:1/x.json'}}}", "", "http://127.0.0.1:1"),
        ("{$ref: 'file:///etc/passwd'}", "", "file"),
        ("{$ref: '#/$defs/none'}", "", "does not exist"),
        ("5", "5", "not of types"),
        ("", "", "neither"),
    ] {
        let text = graph(schema);
        let refusals = refusals(&text);
        assert!(refusals[0].message.contains(expected), "{schema}: {refusals:?}");
        let start = refusals[0].span.expect("a place").start as usize;
        assert!(text[start..].starts_with(word), "{schema}: points at {:?}", &text[start..]);
    }
    let both = refusals("- {kind: validate, name: v, schema: true, schema_file: a.json}");
    assert!(both[0].message.contains("leave one") || both[0].help.contains("leave one"));
    let missing = refusals("- {kind: validate, name: v, schema_file: none.json}");
    assert!(missing[0].message.contains("none.json"), "{missing:?}");
}

#[test]
fn a_schema_that_refers_to_itself_takes_no_time_without_end() {
    // Each level of the value would be gone through twice: 2^100 times in all.
    let schema = "{anyOf: [{type: array, items: {$ref: '#'}}, {type: array, maxItems: 2, \
                  items: {$ref: '#'}}, {type: string}]}";
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let error = refused(schema, nested(100));
    assert!(error.status() == 422 && error.text().contains("nested too deep"), "{error}");
    assert_eq!(places(&error), [""]);
    assert!(!refused(schema, nested(2)).text().contains("nested too deep"));
    // No reference leads back to itself: however many there are, the exact errors are told.
    let defs: Vec<_> = (0..20).map(|n| format!("d{n}: {{$ref: '#/$defs/d{}'}}", n + 1)).collect();
    let chain =
        format!("{{$ref: '#/$defs/d0', $defs: {{{}, d20: {{type: array}}}}}}", defs.join(", "));
    assert!(refused(&chain, json!({"a": {"b": {"c": 1}}})).text().contains("\"array\""));
}

#[test]
fn a_body_that_is_none_and_work_that_is_not_left_are_told_apart() {
    let body = |value| Value::map([("body", value)]);
    let graph = "- {kind: validate, name: v, schema: {type: object, required: [name]}}";
    let error = reply(graph, body(Value::Null)).expect_err("nothing");
    assert_eq!((error.status(), places(&error)), (422, vec![String::new()]));
    let named = body(Value::map([("name", Value::text("ada"))]));
    assert_eq!(reply(graph, named.clone()), Ok(Some(named)));
    let large = body(Value::list((0..4_000_000).map(Value::Integer)));
    assert_eq!(reply(graph, large).expect_err("work").status(), 503);
}
