//! The description of an interface in OpenAPI 3.1.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hyper::StatusCode;
use serde_json::{Map, Value as Json, json};
use sinew_core::Parameters;
use sinew_spec::plan::{Node, Plan};

use super::super::guard::validate;
use super::super::router::{ANY, RouteLine};
use super::behind::{self, Behind, Statuses, Walk};
use super::{known, schema};

/// The methods that ANY stands for. Such a route takes others too, such as OPTIONS, but it is of no
/// use to describe them.
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "PATCH", "DELETE"];
/// Headers that OpenAPI describes in another way.
const OWN_HEADERS: [&str; 3] = ["accept", "authorization", "content-type"];

/// A description that is being made.
pub(super) struct Document<'a> {
    walk: Walk<'a>,
    paths: Map<String, Json>,
    schemas: Map<String, Json>,
    schemes: Map<String, Json>,
    /// Whether some answer is an error of 'validate'.
    has_complaints: bool,
    ids: BTreeSet<String>,
    files: Vec<PathBuf>,
}

impl<'a> Document<'a> {
    /// Describes what the routes of routers lead to.
    pub(super) fn of(
        plan: &'a Plan,
        routers: &[(&Node, Vec<RouteLine>)],
        base: &'a Path,
    ) -> Document<'a> {
        let mut document = Document {
            walk: Walk::new(plan, base),
            paths: Map::new(),
            schemas: Map::new(),
            schemes: Map::new(),
            has_complaints: false,
            ids: BTreeSet::new(),
            files: Vec::new(),
        };
        let index = |router: &Node| {
            let found = plan.nodes.iter().position(|node| std::ptr::eq(node, router));
            found.expect("a neighbour is a node of the plan")
        };
        let all: Vec<usize> = routers.iter().map(|(router, _)| index(router)).collect();
        for (router, (_, lines)) in all.iter().zip(routers) {
            document.add_router(plan, *router, lines, &all);
        }
        document
    }

    /// Describes what the routes of a router lead to. A route that leads to another router is
    /// described there.
    fn add_router(&mut self, plan: &Plan, router: usize, lines: &[RouteLine], all: &[usize]) {
        let before = self.walk.before(router);
        for line in lines {
            if self.walk.leads_to(router, line.port, all) {
                continue;
            }
            let is_taken = |method: &&str| {
                lines.iter().any(|other| other.path == line.path && other.method == *method)
            };
            let methods: Vec<&str> = match line.method {
                ANY => METHODS.into_iter().filter(|method| !is_taken(method)).collect(),
                one => vec![one],
            };
            let mut behind: Behind = self.walk.output(router, line.port);
            behind.also(&before);
            behind::join(&mut behind.answers, &before.answers);
            for method in methods {
                self.add(plan, router, line, method, &behind);
            }
        }
    }

    /// The description, and the files that it was made of.
    pub(super) fn finish(self, parameters: &Parameters<'_>) -> (Json, Vec<PathBuf>) {
        let text = |name| parameters.text(name);
        let mut info = json!({"title": text("title"), "version": text("version")});
        if !text("description").is_empty() {
            info["description"] = text("description").into();
        }
        let mut made = json!({"openapi": "3.1.0", "info": info});
        let servers = parameters.texts("servers").iter();
        let servers: Vec<Json> = servers.map(|url| json!({"url": url})).collect();
        if !servers.is_empty() {
            made["servers"] = servers.into();
        }
        made["paths"] = self.paths.into();
        let mut components = Map::new();
        if !self.schemas.is_empty() {
            components.insert("schemas".into(), self.schemas.into());
        }
        if self.has_complaints {
            components.insert("responses".into(), json!({"invalid": complaints()}));
        }
        if !self.schemes.is_empty() {
            components.insert("securitySchemes".into(), self.schemes.into());
        }
        if !components.is_empty() {
            made["components"] = components.into();
        }
        (made, self.files)
    }

    fn add(&mut self, plan: &Plan, router: usize, line: &RouteLine, method: &str, behind: &Behind) {
        let mut made = Map::new();
        let first = plan.flow_links_of(router).iter().find(|link| link.from.port == line.port);
        let name = first.map_or("echo", |link| &plan.nodes[link.to.node].name);
        made.insert("operationId".into(), self.id(name, method).into());
        if let Some(summary) = &line.summary {
            made.insert("summary".into(), (**summary).into());
        }
        let asked = self.asked(line, behind);
        if !asked.parameters.is_empty() {
            made.insert("parameters".into(), asked.parameters.into());
        }
        if let Some(body) = asked.body.filter(|_| !["GET", "HEAD", "TRACE"].contains(&method)) {
            made.insert("requestBody".into(), body);
        }
        made.insert("responses".into(), self.responses(behind));
        if let Some(security) = self.security(&behind.access) {
            made.insert("security".into(), security);
        }
        let path = self.paths.entry(line.path.clone()).or_insert_with(|| json!({}));
        path[method.to_ascii_lowercase()] = made.into();
    }

    /// A name for an operation that no other has.
    fn id(&mut self, node: &str, method: &str) -> String {
        let method = method.to_ascii_lowercase();
        let names = [node.to_owned(), format!("{node}_{method}")].into_iter();
        let numbered = (2..).map(|number| format!("{node}_{method}_{number}"));
        let free = names.chain(numbered).find(|name| !self.ids.contains(name));
        let free = free.expect("there is always one more number");
        self.ids.insert(free.clone());
        free
    }

    fn asked(&mut self, line: &RouteLine, behind: &Behind) -> Asked {
        let path_parameter = |(at, name): (usize, &bytestring::ByteString)| {
            let schema = json!({"type": "string"});
            let mut made = json!({"name": &**name, "in": "path", "required": true});
            if line.has_rest && at + 1 == line.names.len() {
                made["description"] = "All that follows, slashes too.".into();
            }
            made["schema"] = schema;
            made
        };
        let mut asked = Asked {
            parameters: line.names.iter().enumerate().map(path_parameter).collect(),
            body: None,
        };
        let mut bodies = Vec::new();
        for &check in &behind.checks {
            let parameters = self.walk.parameters(check);
            if parameters.kind.name == "multipart" {
                bodies.push(("multipart/form-data", json!({"type": "object"})));
                continue;
            }
            let Some((value, schema)) = validate::described(&parameters) else { continue };
            if !parameters.text("schema_file").is_empty() {
                self.files.push(parameters.path("schema_file"));
            }
            let name = self.walk.name(check).to_owned();
            let place = format!("#/components/schemas/{name}");
            let schema = schema::placed(schema, &place);
            match value.trim() {
                "packet.body" => bodies.push((known::JSON, json!({"$ref": place}))),
                "packet.params" => asked.refine(&schema),
                "packet.query" => asked.add("query", &schema, behind.is_checked),
                "packet.header" => asked.add("header", &schema, behind.is_checked),
                _ => continue,
            }
            self.schemas.insert(name, schema);
        }
        asked.body = body(bodies, behind.is_checked);
        asked
    }

    fn responses(&mut self, behind: &Behind) -> Json {
        let mut made = Map::new();
        let is_silent = behind.is_silent && behind.answers.is_empty();
        let mut answers = behind.answers.clone();
        if is_silent {
            answers.insert(204, BTreeSet::new());
        }
        let errors = behind.errors.iter().filter(|(status, _)| !answers.contains_key(status));
        let all: Statuses = errors.map(|(status, types)| (*status, types.clone())).collect();
        let has_check = |kind: &str| {
            behind.checks.iter().any(|check| self.walk.parameters(*check).kind.name == kind)
        };
        let is_complaint = has_check("validate");
        for (status, types) in all.into_iter().chain(answers) {
            let response = match status == 422 && is_complaint {
                true => {
                    self.has_complaints = true;
                    json!({"$ref": "#/components/responses/invalid"})
                }
                false => response(status, &types),
            };
            made.insert(status.to_string(), response);
        }
        made.sort_keys();
        if behind.is_open || made.is_empty() {
            made.insert("default".into(), json!({"description": "What else the graph answers."}));
        }
        made.into()
    }

    /// Who may ask; `None`: anybody.
    fn security(&mut self, access: &BTreeSet<BTreeSet<usize>>) -> Option<Json> {
        if access.iter().all(BTreeSet::is_empty) {
            return None;
        }
        let mut one = |guards: &BTreeSet<usize>| -> Json {
            guards
                .iter()
                .map(|guard| (self.scheme(*guard), json!([])))
                .collect::<Map<_, _>>()
                .into()
        };
        let alternatives: Vec<Json> = access.iter().map(&mut one).collect();
        Some(alternatives.into())
    }

    /// The name of a guard's scheme; guards that ask for the same share one.
    fn scheme(&mut self, guard: usize) -> String {
        let scheme = known::scheme(&self.walk.parameters(guard)).unwrap_or_default();
        if let Some((name, _)) = self.schemes.iter().find(|(_, known)| **known == scheme) {
            return name.clone();
        }
        let name = self.walk.name(guard).to_owned();
        self.schemes.insert(name.clone(), scheme);
        name
    }
}

/// What a request must have.
struct Asked {
    parameters: Vec<Json>,
    body: Option<Json>,
}

impl Asked {
    /// Adds parameters that are not in the path.
    fn add(&mut self, place: &str, schema: &Json, is_checked: bool) {
        for (name, schema, is_required) in schema::properties(schema) {
            let is_known =
                self.parameters.iter().any(|known| known["name"] == name && known["in"] == place);
            if is_known || (place == "header" && OWN_HEADERS.contains(&name)) {
                continue;
            }
            let required = is_required && is_checked;
            let made = json!({"name": name, "in": place, "required": required, "schema": schema});
            self.parameters.push(made);
        }
    }

    /// Sets the schemas of parameters of the path.
    fn refine(&mut self, schema: &Json) {
        for (name, schema, _) in schema::properties(schema) {
            let known = self.parameters.iter_mut().find(|it| it["name"] == name);
            if let Some(known) = known.filter(|known| known["in"] == "path") {
                known["schema"] = schema.clone();
            }
        }
    }
}

/// The body that a request must have. It must match one of several schemas.
fn body(bodies: Vec<(&'static str, Json)>, is_required: bool) -> Option<Json> {
    let mut content = Map::new();
    for (content_type, _) in &bodies {
        let of_type = bodies.iter().filter(|(other, _)| other == content_type);
        let schemas: Vec<Json> = of_type.map(|(_, schema)| schema.clone()).collect();
        let schema = match &*schemas {
            [one] => one.clone(),
            several => json!({"anyOf": several}),
        };
        content.insert((*content_type).to_owned(), json!({"schema": schema}));
    }
    (!content.is_empty()).then(|| json!({"required": is_required, "content": content}))
}

fn response(status: u16, types: &BTreeSet<&'static str>) -> Json {
    let reason = StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason());
    let mut made = json!({"description": reason.unwrap_or("Answer")});
    let content: Map<String, Json> =
        types.iter().map(|content_type| ((*content_type).to_owned(), json!({}))).collect();
    if !content.is_empty() {
        made["content"] = content.into();
    }
    made
}

/// What `validate` answers.
fn complaints() -> Json {
    let field = json!({
        "type": "object",
        "required": ["path", "why"],
        "properties": {"path": {"type": "string"}, "why": {"type": "string"}},
    });
    let schema = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "string"}, "fields": {"type": "array", "items": field}},
    });
    json!({
        "description": "What was sent is not what was expected; which parts, and why.",
        "content": {known::JSON: {"schema": schema}},
    })
}
