//! `router`: which output gets a request, by its method and path.

mod pattern;
mod routes;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

use bytestring::ByteString;
pub(super) use routes::{ANY, RouteLine};
pub use routes::{RouteMatch, Routes};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    Ahead, At, Document, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Map, Step, Value, error,
    input, output,
};

use super::request::Request;
use crate::script::template::filled;

/// This node's row in the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "router",
    doc: "Passes a request on by its method and path, with the parameters of the path in 'params'. \
          Without a route for its path it answers 404, without one for its method 405 with Allow; \
          both are errors of this node. OPTIONS is answered, and HEAD goes where GET does, unless \
          they have routes of their own.",
    ports: &[
        input("in", "An HTTP request, or any mapping with 'method' and 'path'."),
        error(),
        output("out[]", "Requests whose route names this port."),
    ],
    parameters: &[Parameter::new("routes", ParameterType::Yaml).doc(
        "A list of {method, path, port, reserved, summary}. method: one, a list of them, or ANY. \
         path: literal text, with :name or {name} for a segment and *name for all that follows; a \
         slash at the end counts. port: out[0], out[1] and so on. reserved: whether requests of \
         this route have a place that load cannot take; default: true where it leads to halt, \
         reset or status. summary: what it is for, for the node openapi.",
    )],
    ..FLOW
};

struct Router {
    routes: Routes,
}

/// The routes of the node with these parameters, as lines.
///
/// # Errors
/// All that is wrong with them.
pub(super) fn lines(parameters: &Parameters<'_>) -> Result<Vec<RouteLine>, Vec<Refusal>> {
    Routes::lines(&filled(parameters.yaml("routes"))?, &INFO)
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let routes = filled(parameters.yaml("routes"))?;
    Ok(Box::new(Router { routes: Routes::read(&routes, &INFO)? }))
}

impl FlowNode for Router {
    fn ahead(&self, packet: &Value) -> Ahead {
        let found = by_line(packet, |method, path| self.routes.foresee(method, path));
        match found.ok().flatten() {
            Some((_, Some(true))) => Ahead::Reserved,
            Some((port, None)) => Ahead::Output(port),
            Some((_, Some(false))) | None => Ahead::Ordinary,
        }
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let found = by_line(&packet, |method, path| self.routes.find(method, path));
        at.flow().routed(|| by_line(&packet, |_, path| self.routes.path_of(path)).ok().flatten());
        match found {
            Ok(RouteMatch::Route(port, None)) => Step::Pass(port, packet),
            Ok(RouteMatch::Route(port, Some(params))) => {
                let packet = with_params(at.flow(), packet, params);
                packet.map_or_else(Step::Fail, |packet| Step::Pass(port, packet))
            }
            Ok(RouteMatch::Options(allow)) => Step::Reply(Some(options(allow))),
            Ok(found) => {
                let why = by_line(&packet, |method, path| refused(&found, method, path));
                Step::Fail(why.unwrap_or_else(|error| error))
            }
            Err(error) => Step::Fail(error),
        }
    }
}

/// Calls `does` with the method and the path of a packet.
fn by_line<T>(packet: &Value, does: impl FnOnce(&str, &str) -> T) -> Result<T, Error> {
    if let Some(request) = Request::of(packet) {
        let parts = request.parts();
        return Ok(does(parts.method.as_str(), parts.uri.path()));
    }
    match (packet.field("method")?, packet.field("path")?) {
        (Value::Text(method), Value::Text(path)) => Ok(does(&method, &path)),
        (method, path) => Err(Error::new(format_args!(
            "a router takes a request, or a mapping with texts 'method' and 'path'; this is {} \
             whose 'method' is {} and whose 'path' is {}",
            packet.sort(),
            method.sort(),
            path.sort(),
        ))),
    }
}

/// The answer to OPTIONS.
fn options(allow: &ByteString) -> Value {
    let header = Value::map([("allow", Value::Text(allow.clone()))]);
    Value::map([("status", Value::Integer(204)), ("header", header)])
}

/// Why a request has no route.
#[cold]
fn refused(found: &RouteMatch<'_>, method: &str, path: &str) -> Error {
    match found {
        RouteMatch::NotAllowed(allow) => {
            Error::new(format_args!("no route for {method:?} {path:?}, only for {allow}"))
                .with_status(405)
                .with_header("allow", (*allow).clone())
        }
        RouteMatch::Malformed => {
            Error::new(format_args!("the escapes in the path {path:?} are not UTF-8"))
                .with_status(400)
        }
        _ => Error::new(format_args!("no route for {method:?} {path:?}")).with_status(404),
    }
}

/// The packet with the parameters of its path. It is the same packet if nobody else holds it, else
/// a copy.
fn with_params(flow: &Flow, mut packet: Value, params: Map) -> Result<Value, Error> {
    if let Value::Document(_) = packet
        && Request::of(&packet).is_none()
    {
        packet = flow.resolve(&packet)?;
    }
    match &mut packet {
        Value::Map(map) => drop(Arc::make_mut(map).insert(PARAMS, Value::Map(params.into()))),
        Value::Document(document) => set_params(document, params),
        other => return Err(Error::new(format_args!("{} has no parameters", other.sort()))),
    }
    Ok(packet)
}

const PARAMS: ByteString = ByteString::from_static("params");

/// Sets the parameters of a request, or of a copy of it.
fn set_params(document: &mut Arc<dyn Document>, params: Map) {
    let own = Arc::get_mut(document).map(|it| it as &mut dyn Any);
    if let Some(request) = own.and_then(|it| it.downcast_mut::<Request>()) {
        request.set_params(params);
    } else if let Some(request) = (&**document as &dyn Any).downcast_ref::<Request>() {
        let mut copy = request.clone();
        copy.set_params(params);
        *document = Arc::new(copy);
    }
}
