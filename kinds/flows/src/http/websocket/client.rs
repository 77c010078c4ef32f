//! `websocket_client`: a websocket to another server, which is kept open.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::fault::Fault;
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, Local, Make, Opened, Outlet, Source, StopSignal, Value, output,
};
use sinew_spec::Item;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tower_service::Service;

use super::session::{
    AS, CONCURRENCY, DEADLINE, MESSAGE_SIZE_MAX, Manners, OpenSocket, PING, SocketSession,
};
use crate::http::client::connect::{Connector, Names, connector, roots};
use crate::http::response::plain_text;
use crate::http::upgrade::Duplex;
use crate::script::taken;
use crate::script::template::Template;
use crate::work::WORK_MAX;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Source(make) };

static INFO: Kind = Kind {
    name: "websocket_client",
    doc: "Keeps a websocket to another server. Each message begins a flow at 'out', and its reply \
          is sent back; a reply of nothing sends nothing. When the connection ends, it is opened \
          again after a pause.",
    ports: &[
        output("out", "A message: a text, bytes, or the value of its JSON."),
        output(
            "send",
            "{url}, when the connection is open: its reply is sent; of a stream each element, \
             while it comes.",
        ),
    ],
    parameters: &[
        Parameter::new("url", ParameterType::Yaml)
            .doc("The URL, such as wss://host/path; a text in which only env and file stand."),
        Parameter::new("header", ParameterType::Yaml)
            .or("{}")
            .doc("Headers of the request by name: a mapping in which only env and file stand."),
        Parameter::new("ca", ParameterType::Text).or("''").doc(
            "A PEM file with the authorities to trust, instead of those that browsers trust; \
             empty: those.",
        ),
        Parameter::new(
            "backoff",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 },
        )
        .or("1s")
        .doc("Pause before the connection is opened again; it doubles each time, up to a minute."),
        AS,
        CONCURRENCY,
        MESSAGE_SIZE_MAX,
        DEADLINE,
        WORK_MAX,
        PING,
    ],
    ..FLOW
};

const OUT: usize = 0;
const SEND: usize = 1;

/// Longest that it may take until the connection is open.
const OPEN_DEADLINE: Duration = Duration::from_secs(30);
/// Longest pause between attempts, unless the first one is longer. After a connection that was open
/// for so long, the pauses begin with the first one again.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

struct Kept {
    url: String,
    /// The same server, in the form that the connector takes.
    uri: Uri,
    headers: HeaderMap,
    ca: Option<PathBuf>,
    connector: Connector,
    names: Names,
    backoff: Duration,
    manners: Manners,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Source> {
    let mut refusals = Vec::new();
    let url = taken(url(parameters.yaml("url")), &mut refusals);
    let headers = taken(headers(parameters.yaml("header")), &mut refusals);
    let ca = (!parameters.text("ca").is_empty()).then(|| parameters.path("ca"));
    let roots = roots(ca.as_deref()).map_err(|message| {
        let help = "write the path of a PEM file, from the folder of the spec";
        vec![Refusal::new(parameters.span("ca"), message, help)]
    });
    let roots = taken(roots, &mut refusals);
    let (Some((url, uri)), Some(headers), Some(roots)) = (url, headers, roots) else {
        return Err(refusals);
    };
    let names = Names::default();
    Ok(Box::new(Kept {
        url,
        uri,
        headers,
        ca,
        connector: connector(roots, names.clone(), false),
        names,
        backoff: parameters.duration("backoff"),
        manners: Manners::of(parameters),
    }))
}

/// The value of a template that does not depend on a packet.
fn constant(item: &Item) -> Result<Value, Vec<Refusal>> {
    let template = Template::compile(item)?;
    template.constant().cloned().ok_or_else(|| {
        let help = "only env.NAME and file.NAME can stand in it: there is no packet yet";
        vec![Refusal::new(item.span, "no packet can change it", help)]
    })
}

fn url(item: &Item) -> Result<(String, Uri), Vec<Refusal>> {
    let refuse = |message: String| {
        vec![Refusal::new(item.span, message, "write a url such as wss://host/path")]
    };
    let value = constant(item)?;
    let url = value.as_text().ok_or_else(|| refuse(format!("the url is {}", value.sort())))?;
    let uri: Uri = url.parse().map_err(|error| refuse(format!("'{url}' is not a url: {error}")))?;
    let scheme = match uri.scheme_str() {
        Some("ws") => "http",
        Some("wss") => "https",
        _ => return Err(refuse(format!("'{url}' is neither ws nor wss"))),
    };
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    if authority.contains('@') {
        return Err(refuse("there is a user in the url".to_owned()));
    }
    let reached = Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build();
    let reached = reached.map_err(|error| refuse(format!("'{url}' is not a url: {error}")))?;
    Ok((url.to_owned(), reached))
}

fn headers(item: &Item) -> Result<HeaderMap, Vec<Refusal>> {
    let refuse = |message: String| {
        vec![Refusal::new(item.span, message, "write names and texts: {authorization: ...}")]
    };
    let mut headers = HeaderMap::new();
    match constant(item)? {
        Value::Map(map) => {
            for (name, value) in &*map {
                let key = HeaderName::from_bytes(name.as_bytes());
                let text = plain_text(value).and_then(|text| HeaderValue::try_from(text).ok());
                let (Ok(key), Some(text)) = (key, text) else {
                    return Err(refuse(format!("'{name}' is not a header of one text")));
                };
                headers.insert(key, text);
            }
            Ok(headers)
        }
        other => Err(refuse(format!("header is {}, expected a mapping", other.sort()))),
    }
}

impl Source for Kept {
    fn files(&self) -> Vec<PathBuf> {
        self.ca.iter().cloned().collect()
    }

    fn open(self: Box<Self>, _workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault> {
        Ok(vec![self])
    }
}

impl Opened for Kept {
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        mut stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>> {
        async move {
            let mut pause = self.backoff;
            while !stop.is_set() {
                let begun = Instant::now();
                match outlet.beside(self.manners.work_max()) {
                    Ok(beside) => beside.run(async |at: At<'_>| self.speak(at).await).await,
                    Err(error) => outlet.tell(&error),
                }
                if begun.elapsed() > BACKOFF_MAX {
                    pause = self.backoff;
                }
                tokio::select! {
                    biased;
                    () = stop.wait() => break,
                    () = sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)) => {}
                }
                pause = (pause * 2).min(BACKOFF_MAX.max(self.backoff));
            }
            Ok(())
        }
        .boxed_local()
    }
}

impl Kept {
    /// Makes the connection, and serves it until its end.
    async fn speak(&self, at: At<'_>) -> Result<(), Error> {
        self.names.attach(at.pool().clone());
        let socket = tokio::select! {
            biased;
            () = at.retired() => return Ok(()),
            socket = timeout(OPEN_DEADLINE, self.connect()) => socket.unwrap_or_else(|_| {
                Err(format!("it was not open within {OPEN_DEADLINE:?}"))
            }),
        };
        let socket = socket.map_err(|text| {
            let text =
                format_args!("no websocket to {}: {text}; the node goes on trying", self.uri);
            Error::new(text).with_status(502)
        })?;
        let url = Value::map([("url", Value::text(self.url.clone()))]);
        let opening = at.is_linked(SEND).then_some((SEND, url));
        SocketSession::over(at, OUT, self.manners, socket).run(opening).await
    }

    async fn connect(&self) -> Result<OpenSocket, String> {
        let mut request = (&*self.url).into_client_request().map_err(|error| error.to_string())?;
        request.headers_mut().extend(self.headers.clone());
        let stream = self.connector.clone().call(self.uri.clone()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let wire: Box<dyn Duplex> = Box::new(TokioIo::new(stream));
        let opened = client_async_with_config(request, wire, Some(self.manners.config())).await;
        opened.map(|(socket, _)| socket).map_err(|error| error.to_string())
    }
}
