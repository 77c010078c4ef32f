//! `openapi`: answers with a description of the interface, made from the graph itself.

mod behind;
mod document;
mod known;
mod schema;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use sinew_spec::plan::Node;
use sinew_spec::suggest;

use self::document::Document;
use super::router;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "openapi",
    doc: "Answers with a description of the routes of routers, by OpenAPI 3.1: paths and methods, \
          bodies and parameters by the schemas of 'validate', who may send requests, and the \
          statuses of answers, as far as the graph shows them. It is made once, with the node.",
    ports: &[input("in", "Any packet."), output("out", "The description, a mapping."), error()],
    parameters: &[
        Parameter::new("title", ParameterType::Text).doc("Name of the interface."),
        Parameter::new("version", ParameterType::Text).or("'1'").doc("Version of the interface."),
        Parameter::new("description", ParameterType::Text)
            .or("")
            .doc("Description of the interface, as Markdown."),
        Parameter::new("routers", ParameterType::Texts { max: ROUTERS_MAX }).or("[]").doc(
            "The nodes of the kind router. Default: all of the domain. A route that leads to \
             another one of them is described there.",
        ),
        Parameter::new("servers", ParameterType::Texts { max: SERVERS_MAX }).or("[]").doc(
            "URL of the interface, such as https://api.example/v1. Default: where this answer is.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 1;

/// Most routers that are named.
const ROUTERS_MAX: usize = 256;
/// Most servers of a description.
const SERVERS_MAX: usize = 16;

struct OpenApi {
    document: Value,
    /// The files of schemas.
    files: Vec<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let routers = routers_of(parameters)?;
    let mut lines = Vec::new();
    for router in routers {
        let found = parameters.of_neighbour(router).and_then(|it| router::lines(&it).ok());
        let Some(found) = found else {
            let text = format!("the node '{}' cannot be made", router.name);
            let refusal = Refusal::new(parameters.span("routers"), text, "correct that node");
            return Err(vec![refusal.following(true)]);
        };
        lines.push((router, found));
    }
    let (plan, _) = parameters.home.expect("a node with neighbours has a home");
    let document = Document::of(plan, &lines, parameters.base);
    let (json, files) = document.finish(parameters);
    Ok(Box::new(OpenApi { document: Value::from(json), files }))
}

/// The routers that are described: those that are named, or all.
fn routers_of<'a>(parameters: &Parameters<'a>) -> Result<Vec<&'a Node>, Vec<Refusal>> {
    let all: Vec<&Node> = parameters.neighbours().filter(|it| it.kind.name == "router").collect();
    let refuse = |name: Option<&str>, text: &str, help: String| {
        let follows = parameters.is_left_out("router", name);
        Refusal::new(parameters.span("routers"), text, help).following(follows)
    };
    if all.is_empty() {
        let text = "there is no router in this domain to be described";
        return Err(vec![refuse(None, text, "add a node of the kind 'router'".into())]);
    }
    let names = parameters.texts("routers");
    if names.is_empty() {
        return Ok(all);
    }
    let named = |name: &String| {
        all.iter().find(|router| router.name == *name).copied().ok_or_else(|| {
            let text = format!("there is no router '{name}' in this domain");
            refuse(Some(name), &text, suggest(name, all.iter().map(|router| &*router.name)))
        })
    };
    names.iter().map(|name| named(name).map_err(|refusal| vec![refusal])).collect()
}

impl FlowNode for OpenApi {
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        Step::Pass(OUT, self.document.clone())
    }
}
