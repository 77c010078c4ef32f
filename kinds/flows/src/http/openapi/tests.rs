//! The description says what the graph does, and other tools can read it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use sinew_flow::Value;

use crate::testing::{python, refusals, reply};

/// The hash of some password.
const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$HLct6btup/ArUnuX2XhBpQ$AChaOSfTNp/Vdl/9x/6daMFLgi\
                    43oY331I6I3fmoQPw";
/// An interface with all that can be described.
const GRAPH: &str = "
- {kind: begin, name: begin, ports: {out: [{name: described, port: in}]}}
- {kind: openapi, name: described, title: Users, version: 2.1.0, servers: [https://api.example]}
- kind: listener
  name: listener
  port: 8000
  ports: {out: [{name: slow_down, port: in}]}
- kind: limit
  name: slow_down
  key: packet.remote
  rate: 5
  ports: {out: [{name: api, port: in}]}
- kind: router
  name: api
  routes:
    - {method: GET, path: /users, port: 'out[0]', summary: All users}
    - {method: GET, path: '/users/:id', port: 'out[1]'}
    - {method: POST, path: /users, port: 'out[2]'}
    - {method: [PUT, DELETE], path: '/users/{name}', port: 'out[3]'}
    - {method: ANY, path: '/files/*rest', port: 'out[4]'}
    - {method: GET, path: '/files/*rest', port: 'out[5]'}
    - {method: POST, path: '/hooks/{{x}}', port: 'out[6]'}
    - {method: POST, path: /upload, port: 'out[7]'}
    - {method: GET, path: /echo, port: 'out[8]'}
  ports:
    'out[0]': [{name: paged, port: in}]
    'out[1]': [{name: find, port: in}]
    'out[2]': [{name: who, port: in}]
    'out[3]': [{name: staff, port: in}]
    'out[4]': [{name: gone, port: in}]
    'out[5]': [{name: files, port: in}]
    'out[6]': [{name: signed, port: in}]
    'out[7]': [{name: form, port: in}]
- kind: validate
  name: paged
  value: packet.query
  schema:
    type: object
    required: [after]
    properties: {after: {$ref: '#/$defs/name'}, limit: {type: string, pattern: '^[0-9]+$'}}
    $defs: {name: {type: string, maxLength: 80}}
  ports: {out: [{name: list, port: in}]}
- {kind: query, name: list, sql: db, text: SELECT 1 AS one}
- {kind: query, name: find, sql: db, rows: one, text: SELECT 1 AS one}
- kind: if
  name: who
  when: has(packet.header.authorization)
  ports: {'out[0]': [{name: bearer, port: in}], 'out[1]': [{name: staff_too, port: in}]}
- kind: jwt
  name: bearer
  secret: an example of 32 bytes or more, not for use
  require: claims.admin
  ports: {out: [{name: valid, port: in}]}
- kind: basic
  name: staff_too
  users: {ada: 'HASH'}
  ports: {out: [{name: valid, port: in}]}
- kind: validate
  name: valid
  schema:
    type: object
    required: [name]
    properties: {name: {$ref: '#/$defs/name'}, friend: {$ref: '#'}, $ref: {const: {$ref: '#/x'}}}
    $defs: {name: {type: string, maxLength: 80}}
  ports: {out: [{name: create, port: in}]}
- kind: query
  name: create
  sql: db
  rows: one
  text: INSERT INTO users VALUES ($1) RETURNING id
  args: [packet.body.name]
  ports: {out: [{name: created, port: in}]}
- {kind: snippet, name: created, language: yaml, code: {status: 201, body: {id: '{{ packet.id }}'}}}
- kind: basic
  name: staff
  users: {ada: 'HASH'}
  ports: {out: [{name: begun, port: in}]}
- kind: nop
  name: begun
  ports: {out: [{name: later, port: in}, {name: accepted, port: in}]}
- {kind: fork, name: later, ports: {out: [{name: gone, port: in}]}}
- {kind: snippet, name: accepted, language: yaml, code: {status: 202}}
- {kind: throw, name: gone, status: 410, body: {why: gone}}
- {kind: static, name: files, folder: ., path: packet.params.rest}
- kind: verify
  name: signed
  secret: a secret that both know
  header: X-Signature
  ports: {out: [{name: guarded, port: in}], error: [{name: teapot, port: in}]}
- {kind: throw, name: teapot, status: 418}
- kind: try
  name: guarded
  ports: {out: [{name: gone, port: in}], error: [{name: sorry, port: in}]}
- {kind: snippet, name: sorry, language: text, code: sorry}
- {kind: multipart, name: form, ports: {out: [{name: late, port: in}]}}
- {kind: fork, name: late}
- {kind: sql, name: db, database: 'sqlite://:memory:'}
";

fn described(graph: &str) -> Json {
    let made = reply(&graph.replace("HASH", HASH), Value::Null).expect("a reply").expect("a value");
    made.to_json().expect("JSON")
}

fn statuses(operation: &Json) -> String {
    let responses = operation["responses"].as_object().expect("a mapping");
    responses.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_route_has_its_operation_with_the_statuses_that_may_come() {
    let document = described(GRAPH);
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("a name");
            found.push(format!("{method} {path} {id}: {}", statuses(operation)));
        }
    }
    let expected = [
        "get /users paged: 200 422 429",
        "post /users who: 201 401 403 404 409 422 429",
        "get /users/{id} find: 200 404 429",
        "put /users/{id} staff: 202 401 429",
        "delete /users/{id} staff_delete: 202 401 429",
        "put /files/{rest} gone: 410 429",
        "post /files/{rest} gone_post: 410 429",
        "patch /files/{rest} gone_patch: 410 429",
        "delete /files/{rest} gone_delete: 410 429",
        "get /files/{rest} files: 200 206 304 404 416 429",
        "post /hooks/%7Bx%7D signed: 200 418 429",
        "post /upload form: 204 400 413 415 429",
        "get /echo echo: 200 429",
    ];
    assert_eq!(found, expected);
    let info = json!({"title": "Users", "version": "2.1.0"});
    assert_eq!((&document["openapi"], &document["info"]), (&json!("3.1.0"), &info));
    assert_eq!(document["servers"], json!([{"url": "https://api.example"}]));
    assert_eq!(document["paths"]["/users"]["get"]["summary"], "All users");
}

#[test]
fn who_may_ask_is_one_of_the_ways_that_lead_there() {
    let document = described(GRAPH);
    let paths = &document["paths"];
    let both = json!([{"bearer": []}, {"staff_too": []}]);
    assert_eq!(paths["/users"]["post"]["security"], both);
    // The same guard with another name asks for the same.
    assert_eq!(paths["/users/{id}"]["put"]["security"], json!([{"staff_too": []}]));
    assert_eq!(paths["/users"]["get"].get("security"), None);
    let schemes = json!({
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "staff_too": {"type": "http", "scheme": "basic"},
        "signed": {
            "type": "apiKey", "in": "header", "name": "x-signature",
            "description": "An HMAC of the body, made with a secret that both sides know.",
        },
    });
    assert_eq!(document["components"]["securitySchemes"], schemes);
    let text = document.to_string();
    assert!(!text.contains("an example of") && !text.contains("argon2"), "no secrets: {text}");
}

#[test]
fn a_guard_before_the_router_holds_for_all_routes() {
    let graph = "
    - {kind: begin, name: begin, ports: {out: [{name: d, port: in}]}}
    - {kind: openapi, name: d, title: t}
    - {kind: listener, name: l, port: 8000, ports: {out: [{name: j, port: in}]}}
    - kind: jwt
      name: j
      secret: an example of 32 bytes or more yes
      token: packet.header['x-key']
      ports: {out: [{name: r, port: in}]}
    - {kind: router, name: r, routes: [{method: GET, path: /a, port: 'out[0]'}]}
    - {kind: test, name: t, packet: 1, expect: true, ports: {out: [{name: r, port: in}]}}
    ";
    let document = described(graph);
    let operation = &document["paths"]["/a"]["get"];
    assert_eq!(statuses(operation), "200 401");
    assert_eq!(operation["security"], json!([{"j": []}]));
    let scheme = json!({"type": "apiKey", "in": "header", "name": "x-key"});
    assert_eq!(document["components"]["securitySchemes"]["j"], scheme);
}

#[test]
fn schemas_say_what_a_request_must_be() {
    let document = described(GRAPH);
    let paths = &document["paths"];
    let body = json!({
        "required": true,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/valid"}}},
    });
    assert_eq!(paths["/users"]["post"]["requestBody"], body);
    let properties = &document["components"]["schemas"]["valid"]["properties"];
    let name = "#/components/schemas/valid/$defs/name";
    let expected = json!({
        "name": {"$ref": name},
        "friend": {"$ref": "#/components/schemas/valid"},
        "$ref": {"const": {"$ref": "#/x"}},
    });
    assert_eq!(properties, &expected);
    let after = json!({
        "name": "after", "in": "query", "required": true,
        "schema": {"$ref": "#/components/schemas/paged/$defs/name"},
    });
    let limit = json!({
        "name": "limit", "in": "query", "required": false,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    });
    assert_eq!(paths["/users"]["get"]["parameters"], json!([after, limit]));
    let id = json!([{
        "name": "id", "in": "path", "required": true, "schema": {"type": "string"},
    }]);
    assert_eq!(paths["/users/{id}"]["get"]["parameters"], id);
    let form = &paths["/upload"]["post"]["requestBody"]["content"];
    assert_eq!(form, &json!({"multipart/form-data": {"schema": {"type": "object"}}}));
    assert_eq!(
        paths["/users"]["post"]["responses"]["422"],
        json!({"$ref": "#/components/responses/invalid"})
    );
}

#[test]
fn a_validator_that_is_not_ours_finds_nothing_wrong() {
    let Some(python) = python("openapi_spec_validator") else { return };
    let script = "import sys, json\n\
                  from openapi_spec_validator import OpenAPIV31SpecValidator\n\
                  for error in OpenAPIV31SpecValidator(json.load(sys.stdin)).iter_errors():\n\
                  \x20   print(list(error.absolute_path), error.message)\n";
    let wrong = |document: &Json| {
        let mut command = Command::new(&python);
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python");
        let text = document.to_string();
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let mut document = described(GRAPH);
    assert_eq!(wrong(&document), "");
    document["paths"]["/users"]["get"]["responses"] = json!([]);
    assert_ne!(wrong(&document), "", "it looks");
}

#[test]
fn a_router_behind_another_is_described_in_its_place() {
    let graph = |which: &str| {
        format!(
            "
- {{kind: begin, name: begin, ports: {{out: [{{name: d, port: in}}]}}}}
- {{kind: openapi, name: d, title: t{which}}}
- {{kind: listener, name: l, port: 8000, ports: {{out: [{{name: front, port: in}}]}}}}
- kind: router
  name: front
  routes:
  - {{method: GET, path: /, port: 'out[0]'}}
  - {{method: ANY, path: /a/*rest, port: 'out[1]'}}
  ports: {{'out[1]': [{{name: j, port: in}}]}}
- kind: jwt
  name: j
  secret: an example of 32 bytes or more yes
  ports: {{out: [{{name: back, port: in}}]}}
- {{kind: router, name: back, routes: [{{method: GET, path: '/a/:id', port: 'out[0]'}}]}}
"
        )
    };
    let paths = |which: &str| {
        let document = described(&graph(which));
        let paths = document["paths"].as_object().expect("a mapping").clone();
        (paths.keys().cloned().collect::<Vec<_>>().join(" "), document)
    };
    let (all, document) = paths("");
    assert_eq!(all, "/ /a/{id}");
    assert_eq!(document["paths"]["/a/{id}"]["get"]["security"], json!([{"j": []}]));
    assert_eq!(document["paths"]["/"]["get"]["security"], Json::Null);
    assert_eq!(paths(", routers: [back]").0, "/a/{id}");
    assert_eq!(paths(", routers: [front]").0, "/ /a/{rest}");
}

#[test]
fn a_router_that_is_not_there_is_refused() {
    let graph = |parameters: &str, router: &str| {
        format!(
            "- {{kind: begin, name: begin, ports: {{out: [{{name: d, port: in}}]}}}}\n\
             - {{kind: openapi, name: d, title: t{parameters}}}\n{router}"
        )
    };
    let router = "- {kind: listener, name: l, port: 8000, ports: {out: [{name: a, port: in}]}}\n\
                  - {kind: router, name: a, routes: [{method: GET, path: /a, port: 'out[0]'}]}\n";
    for (parameters, router, expected) in [
        ("", "", "no router in this domain"),
        (", routers: [d]", "", "no router in this domain"),
        (", routers: [a, c]", router, "no router 'c'"),
        (", routers: [d]", router, "no router 'd'"),
    ] {
        let refusals = refusals(&graph(parameters, router));
        assert!(refusals[0].message.contains(expected), "{refusals:?}");
    }
}

#[test]
fn a_graph_with_many_ways_is_described_in_no_time() {
    let mut graph = String::from(
        "
- {kind: begin, name: begin, ports: {out: [{name: d, port: in}]}}
- {kind: openapi, name: d, title: t}
- {kind: listener, name: l, port: 8000, ports: {out: [{name: r, port: in}]}}
- kind: router
  name: r
  routes: [{method: GET, path: /a, port: 'out[0]'}]
  ports: {'out[0]': [{name: n0, port: in}]}
",
    );
    for at in 0..40 {
        let next = format!("{{name: n{}, port: in}}", at + 1);
        graph += &format!(
            "- {{kind: if, name: n{at}, when: packet,\n   \
             ports: {{'out[0]': [{next}], 'out[1]': [{next}]}}}}\n"
        );
    }
    graph += "- {kind: throw, name: n40, status: 409}\n";
    assert_eq!(statuses(&described(&graph)["paths"]["/a"]["get"]), "409");
}
