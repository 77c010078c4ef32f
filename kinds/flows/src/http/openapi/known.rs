//! What is known of a kind without running it: which requests a guard lets pass, and the statuses
//! that a node itself answers with.

use serde_json::{Value as Json, json};
use sinew_core::Parameters;
use sinew_spec::{Data, item_json};

/// Statuses, each with the type of the answer's body; `None` if the type is not known.
pub(super) type Answers = Vec<(u16, Option<&'static str>)>;

pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const HTML: &str = "text/html";

/// The errors of a node itself.
pub(super) fn errors(parameters: &Parameters<'_>) -> Answers {
    let plain = |statuses: &[u16]| statuses.iter().map(|status| (*status, None)).collect();
    let text = |name| parameters.text(name);
    match parameters.kind.name {
        "validate" => vec![(422, Some(JSON))],
        "jwt" if item_json(parameters.yaml("require")).is_null() => plain(&[401]),
        "jwt" => plain(&[401, 403]),
        "basic" | "verify" => plain(&[401]),
        "session" if text("do") == "find" => plain(&[401, 403]),
        "session" => plain(&[403]),
        "password" if item_json(parameters.yaml("hash")).is_null() => {
            vec![(400, Some(JSON)), (422, Some(JSON))]
        }
        "password" => vec![(400, Some(JSON)), (401, Some(JSON))],
        "multipart" => plain(&[400, 413, 415]),
        "static" => plain(&[404, 416]),
        "limit" => vec![(429, Some(JSON))],
        "state" if text("do") == "replace" => vec![(409, Some(JSON))],
        "query" => query(parameters),
        "throw" => {
            let body = !item_json(parameters.yaml("body")).is_null();
            let status = status(&item_json(parameters.yaml("status")));
            status.map(|status| vec![(status, body.then_some(JSON))]).unwrap_or_default()
        }
        _ => vec![],
    }
}

/// The errors of `query`: 404 without a row where one is wanted, 409 for a row that is there
/// already, 422 for a row that breaks another rule of its table.
fn query(parameters: &Parameters<'_>) -> Answers {
    let text = parameters.yaml("text");
    let text = match &text.data {
        Data::Map(entries) => entries.first().and_then(|entry| entry.value.text()),
        _ => text.text(),
    };
    let text = text.unwrap_or_default().to_ascii_uppercase();
    let changes = text.split(|sign: char| !sign.is_ascii_alphabetic());
    let changes = changes.into_iter().any(|word| ["INSERT", "UPDATE", "MERGE"].contains(&word));
    let mut statuses = vec![];
    if parameters.text("rows") == "one" {
        statuses.push((404, None));
    }
    if changes {
        statuses.extend([(409, None), (422, None)]);
    }
    statuses
}

/// Whether a node may answer with a status that is not known here.
pub(super) fn is_open(parameters: &Parameters<'_>) -> bool {
    match parameters.kind.name {
        "throw" => status(&item_json(parameters.yaml("status"))).is_none(),
        "http" => true,
        _ => false,
    }
}

/// The answers of a node that is linked to no further one; `None` if any may come.
pub(super) fn answers(parameters: &Parameters<'_>) -> Option<Answers> {
    match parameters.kind.name {
        "snippet" => match parameters.text("language") {
            "text" => Some(vec![(200, Some(TEXT))]),
            "html" => Some(vec![(200, Some(HTML))]),
            "json" | "yaml" => answer(&item_json(parameters.yaml("code"))),
            _ => None,
        },
        "query" if parameters.text("rows") == "stream" => Some(vec![(200, None)]),
        "query" | "openapi" => Some(vec![(200, Some(JSON))]),
        "jwt_sign" | "password" => Some(vec![(200, Some(TEXT))]),
        "static" => Some(vec![(200, None), (206, None), (304, None)]),
        "http" => None,
        _ => Some(vec![(200, None)]),
    }
}

/// The answer that a tree of YAML makes; `None` if it may be any.
fn answer(code: &Json) -> Option<Answers> {
    let Json::Object(fields) = code else {
        // A text, whose tree is not known, or a list.
        return if code.is_array() { Some(vec![(200, Some(JSON))]) } else { None };
    };
    let is_answer = fields.keys().all(|key| ["status", "header", "body"].contains(&&**key));
    if fields.is_empty() || !is_answer {
        return Some(vec![(200, Some(JSON))]);
    }
    let body = match &code["body"] {
        _ if code["header"].get("content-type").is_some() => None,
        Json::Object(_) | Json::Array(_) => Some(JSON),
        _ => None,
    };
    let by_body = if code["body"].is_null() { 204 } else { 200 };
    match &code["status"] {
        Json::Null => Some(vec![(by_body, body)]),
        given => status(given).map(|status| vec![(status, body)]),
    }
}

/// A status; `None` if it depends on the packet.
fn status(given: &Json) -> Option<u16> {
    let number = given.as_u64()?;
    u16::try_from(number).ok().filter(|status| (200..600).contains(status))
}

/// The security scheme of a guard; `None` if the node is not a guard, or one that OpenAPI cannot
/// describe.
pub(super) fn scheme(parameters: &Parameters<'_>) -> Option<Json> {
    let text = |name| parameters.text(name);
    match parameters.kind.name {
        "basic" => Some(json!({"type": "http", "scheme": "basic"})),
        "session" if text("do") == "find" => {
            Some(json!({"type": "apiKey", "in": "cookie", "name": text("cookie")}))
        }
        "verify" => {
            let why = "An HMAC of the body, made with a secret that both sides know.";
            let name = text("header").to_ascii_lowercase();
            Some(json!({"type": "apiKey", "in": "header", "name": name, "description": why}))
        }
        "jwt" => match item_json(parameters.yaml("token")).as_str() {
            None => Some(json!({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})),
            Some(expression) => {
                let rest = expression.trim().strip_prefix("packet.")?;
                let (part, name) = rest.split_once(['.', '['])?;
                let name = name.trim_end_matches(']').trim_matches(['\'', '"']);
                let place = match part {
                    "header" => "header",
                    "query" => "query",
                    "cookies" => "cookie",
                    _ => return None,
                };
                let is_name = |sign: char| sign.is_ascii_alphanumeric() || "_-".contains(sign);
                (!name.is_empty() && name.chars().all(is_name))
                    .then(|| json!({"type": "apiKey", "in": place, "name": name}))
            }
        },
        _ => None,
    }
}
