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
    doc: "Answers with a description of what a router leads to, by OpenAPI 3.1: paths and methods, \
          what the schemas of 'validate' say of bodies and parameters, who may ask, and the \
          statuses of answers, as far as the graph says them. It is made once, with the node.",
    ports: &[input("in", "Any packet."), output("out", "The description, a mapping."), error()],
    parameters: &[
        Parameter::new("title", ParameterType::Text).doc("What the interface is called."),
        Parameter::new("version", ParameterType::Text).or("'1'").doc("Which version of it."),
        Parameter::new("description", ParameterType::Text)
            .or("")
            .doc("What it is for, as Markdown."),
        Parameter::new("router", ParameterType::Text)
            .or("")
            .doc("The node of the kind router. Default: the only one of the domain."),
        Parameter::new("servers", ParameterType::Texts { max: SERVERS_MAX }).or("[]").doc(
            "Where it is found, such as https://api.example/v1. Default: where this answer is.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 1;

/// Most servers of a description.
const SERVERS_MAX: usize = 16;

struct OpenApi {
    document: Value,
    /// Those of schemas.
    files: Vec<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let router = router_of(parameters).map_err(|refusal| vec![refusal])?;
    let lines = parameters.of_neighbour(router).and_then(|it| router::lines(&it).ok());
    let (Some(lines), Some((plan, _))) = (lines, parameters.home) else {
        let text = format!("the node '{}' cannot be made", router.name);
        return Err(vec![Refusal::new(parameters.span("router"), text, "mend that node")]);
    };
    let document = Document::of(plan, router, lines, parameters.base);
    let (json, files) = document.finish(parameters);
    Ok(Box::new(OpenApi { document: Value::from(json), files }))
}

/// The router that is described.
fn router_of<'a>(parameters: &Parameters<'a>) -> Result<&'a Node, Refusal> {
    let name = parameters.text("router");
    let routers = parameters.neighbours().filter(|node| node.kind.name == "router");
    let refuse = |text, help| Err(Refusal::new(parameters.span("router"), text, help));
    let named = routers.clone().find(|node| node.name == name);
    match (named, routers.clone().collect::<Vec<_>>().as_slice()) {
        (Some(router), _) => Ok(router),
        (None, []) => {
            let text = "there is no router in this domain to be described".to_owned();
            refuse(text, "add a node of the kind 'router'".to_owned())
        }
        (None, [router]) if name.is_empty() => Ok(router),
        (None, several) if name.is_empty() => {
            let names: Vec<&str> = several.iter().map(|router| &*router.name).collect();
            let text = format!("the domain has {} routers", several.len());
            refuse(text, format!("write router: and one of {}", names.join(", ")))
        }
        _ => {
            let text = format!("there is no router '{name}' in this domain");
            refuse(text, suggest(name, routers.map(|router| &*router.name)))
        }
    }
}

impl FlowNode for OpenApi {
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, _packet: Value) -> Step<'a> {
        Step::Pass(OUT, self.document.clone())
    }
}
