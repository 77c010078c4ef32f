//! `http`: sends requests to another server.

mod answer;
mod ask;
pub(super) mod connect;
mod proxy;
mod spec;
mod target;
mod targets;
#[cfg(test)]
mod tests;
mod websocket;

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use answer::Answer;
use ask::{ClientRequest, Form};
pub(crate) use connect::roots;
use connect::{Answered, Connector, Names};
use hyper::body::Incoming;
use hyper::http::Extensions;
use hyper::{Response, StatusCode};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};
use targets::{Balance, Health, Targets};
use tokio::time::{Instant, timeout_at};

use super::body::Body;

/// This node's row in the table.
pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

/// The other server cannot be reached, or its answer is not valid.
const BAD_GATEWAY: u16 = 502;
/// No server is left that can be asked.
const UNAVAILABLE: u16 = 503;
/// The other server does not answer in time.
const GATEWAY_TIMEOUT: u16 = 504;

/// How often a request is sent again because the kept connection that it went over turned out to be
/// closed. After that it is an error. Each try takes a dead connection out of the pool.
const REPEATS_MAX: u32 = 3;

const SECOND_NS: u64 = 1_000_000_000;

const fn yaml(name: &'static str, doc: &'static str, default: Option<&'static str>) -> Parameter {
    Parameter { default, ..Parameter::new(name, ParameterType::Yaml).doc(doc) }
}

const fn flag(name: &'static str, doc: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Bool).or("false").doc(doc)
}

static INFO: Kind = Kind {
    name: "http",
    doc: "Sends a request to another server over HTTP, and passes its answer on as {status, \
          header, body}. An answer with any status is a reply, unless 'fail' is set. If the server \
          cannot be reached, or its answer is not HTTP, it fails with status 502; if the answer is \
          late, with 504. Connections are kept and used again, HTTP/2 where the server offers it \
          over TLS.",
    ports: &[input("in", "The packet, for the templates."), output("out", "The answer."), error()],
    parameters: &[
        yaml(
            "url",
            "The URL, such as http://host/path; a template. With 'targets' a path; with 'proxy' \
             the path of the packet follows, unless it is a template.",
            Some("''"),
        ),
        yaml("method", "A template.", Some("GET")),
        yaml("query", "What is added to the url's query: a mapping; a template.", Some("{}")),
        yaml("header", "Headers by name: a mapping; a template.", Some("{}")),
        yaml(
            "body",
            "A template: text, bytes, a stream, a listener's request (its body as it came), or \
             nothing; any other value becomes JSON.",
            Some("null"),
        ),
        Parameter::new("hosts", ParameterType::Texts { max: 1024 }).or("[]").doc(
            "Where requests and redirects may go: hosts with or without a port, or '*' for all. \
             Without it only the host in the url, which then must not be a template.",
        ),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("30s")
        .doc(
            "Longest time until the whole answer is there; with 'stream' until it begins, and then \
             for each part.",
        ),
        Parameter::new("redirects", ParameterType::Integer { min: 0, max: 20 }).or("0").doc(
            "How many redirects are followed, to the same scheme only. With 0 a redirect is the \
             answer.",
        ),
        flag("stream", "Whether the body is passed on while it comes, instead of gathered."),
        flag("fail", "Whether an answer with a status of 400 or more is an error (502)."),
        Parameter::new(
            "body_size_max",
            ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 30 },
        )
        .or("8MiB")
        .doc("Longest body that is gathered."),
        Parameter::new("protocol", ParameterType::Choice(&["auto", "http1", "h2"]))
            .or("auto")
            .doc("auto: HTTP/2 where TLS agrees on it, else HTTP/1.1. h2: HTTP/2 without asking."),
        Parameter::new("ca", ParameterType::Text).or("''").doc(
            "A PEM file with the authorities to trust, instead of those that browsers trust; \
             empty: those.",
        ),
        Parameter::new("idle_connections_max", ParameterType::Integer { min: 0, max: 100_000 })
            .or("32")
            .doc("Most unused connections that each worker keeps for a host."),
        Parameter::new(
            "idle_max",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("60s")
        .doc("How long an unused connection is kept."),
        flag(
            "proxy",
            "Whether it is a proxy: passes on method, path, query, headers and body of the \
             request, and the answer while it comes; a websocket too. 'header' adds to the \
             headers.",
        ),
        Parameter::new("forwarded", ParameterType::Choice(&["set", "append", "keep"]))
            .or("set")
            .doc(
                "x-forwarded-for, -proto and -host of a proxy. set: what it knows itself; append: \
                 the same behind the client's, if the client is a trusted proxy; keep: the \
                 client's.",
            ),
        Parameter::new("targets", ParameterType::Texts { max: TARGETS_MAX }).or("[]").doc(
            "Several servers, such as [http://10.0.0.1:9000, http://10.0.0.2:9000]: one of them \
             is asked, and 'url' is the path behind it.",
        ),
        Parameter::new("balance", ParameterType::Choice(&["round_robin", "least_requests"]))
            .or("round_robin")
            .doc("Which target is asked: the next one, or that with the fewest requests."),
        Parameter::new(
            "rest",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("10s")
        .doc("How long a target that could not be reached is left out."),
        Parameter::new("health", ParameterType::Text).or("''").doc(
            "A path for health checks of each target, such as /health; empty: none. An answer with \
             a status of 400 or more is a bad one, and so is none.",
        ),
        Parameter::new(
            "health_every",
            ParameterType::Duration { min_ns: 10_000_000, max_ns: 86_400 * SECOND_NS },
        )
        .or("5s")
        .doc("Time between two health checks."),
        Parameter::new(
            "health_deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600 * SECOND_NS },
        )
        .or("2s")
        .doc("How long the answer to a health check may take."),
        Parameter::new("health_fails", ParameterType::Integer { min: 1, max: 1000 })
            .or("3")
            .doc("After this many bad answers in a row a target is left out."),
        Parameter::new("health_passes", ParameterType::Integer { min: 1, max: 1000 })
            .or("2")
            .doc("After this many good answers in a row it is back."),
    ],
    ..FLOW
};

const OUT: usize = 1;
/// Most targets of a node.
const TARGETS_MAX: usize = 64;

type HttpClient = Client<Connector, Body<()>>;

struct Http {
    form: Form,
    client: HttpClient,
    /// For websockets that are passed on: they go over HTTP/1.1 only.
    over_http1: Option<HttpClient>,
    names: Names,
    patience: Duration,
    redirects_max: i64,
    body_size_max: u64,
    streams: bool,
    fails: bool,
    bases: Vec<String>,
    balance: Balance,
    rest: Duration,
    /// Shared by all workers. `None` if the spec has no targets, and before the node is attached.
    targets: Option<Arc<Targets>>,
    health: Option<Health>,
    /// The health checks of the targets stop when this is dropped.
    owner: Rc<()>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let form = spec::form(parameters, &mut refusals);
    let names = Names::default();
    let clients = clients(parameters, &names).map_err(|message| {
        let help = "write the path of a PEM file, from the folder of the spec";
        refusals.push(Refusal::new(parameters.span("ca"), message, help));
    });
    match (form, clients) {
        (Some(form), Ok((client, over_http1))) if refusals.is_empty() => Ok(Box::new(Http {
            form,
            client,
            over_http1,
            names,
            patience: parameters.duration("deadline"),
            redirects_max: parameters.integer("redirects"),
            body_size_max: parameters.size("body_size_max"),
            streams: parameters.bool("stream") || parameters.bool("proxy"),
            fails: parameters.bool("fail"),
            bases: parameters.texts("targets").to_vec(),
            balance: spec::balance(parameters),
            rest: parameters.duration("rest"),
            targets: None,
            health: spec::health(parameters),
            owner: Rc::default(),
        })),
        _ => Err(refusals),
    }
}

/// The client, and the one for websockets if the node passes them on.
fn clients(
    parameters: &Parameters<'_>,
    names: &Names,
) -> Result<(HttpClient, Option<HttpClient>), String> {
    let client = |protocol| client(parameters, names.clone(), protocol);
    let over_http1 = parameters.bool("proxy").then(|| client("http1")).transpose()?;
    Ok((client(parameters.text("protocol"))?, over_http1))
}

/// A client with its pool of connections. Connections are made when they are needed.
fn client(parameters: &Parameters<'_>, names: Names, protocol: &str) -> Result<HttpClient, String> {
    let ca = (!parameters.text("ca").is_empty()).then(|| parameters.path("ca"));
    let roots = roots(ca.as_deref())?;
    let connector = connect::connector(roots, names, protocol != "http1");
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(parameters.duration("idle_max"))
        .pool_max_idle_per_host(parameters.integer("idle_connections_max") as usize)
        .http2_only(protocol == "h2")
        .build(connector))
}

impl FlowNode for Http {
    fn attach(&mut self, site: &NodeContext) {
        self.names.attach(site.pool.clone());
        if !self.bases.is_empty() {
            // The targets are part of the name: after an edit that changes them, no old state is
            // used.
            let name =
                format!("{} {:?} {:?}", site.plan.nodes[site.node].name, self.bases, self.rest);
            let make = || Targets::new(&self.bases, self.balance, self.rest);
            self.targets = Some(site.resources.share(&name, make));
        }
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.ask(at, &packet).await {
                Ok(mut answer) => {
                    if let Some(upgraded) = answer.take_upgraded()
                        && let Err(error) = websocket::pass_on(at, upgraded)
                    {
                        return Step::Fail(error);
                    }
                    let packet = Value::Document(Arc::new(answer));
                    let prepared = at.flow().prepare(&packet).await;
                    prepared.map_or_else(Step::Fail, |()| Step::Pass(OUT, packet))
                }
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Http {
    /// Sends a request, and waits for the answer as long as the spec says. If one of several
    /// targets cannot be reached, another one is asked.
    async fn ask(&self, at: At<'_>, packet: &Value) -> Result<Answer, Error> {
        let until = Instant::now() + self.patience;
        let Some(targets) = &self.targets else {
            return self.ask_at(at, packet, None, until).await.map_err(|(error, _)| error);
        };
        if let Some(health) = &self.health {
            targets.watch(health, &self.client, &self.owner);
        }
        let mut tries = 1;
        loop {
            let outcome = match targets.pick() {
                None => Err((none_left(targets), Next::Nobody)),
                Some(turn) => {
                    let outcome = self.ask_at(at, packet, Some(turn.base()), until).await;
                    match &outcome {
                        Ok(_) => turn.reached(),
                        Err((error, Next::Another | Next::Unsent)) => turn.unreached(error.text()),
                        Err(_) => {}
                    }
                    outcome
                }
            };
            targets.news().iter().for_each(|line| at.say(format_args!("{line}")));
            match outcome {
                Err((_, Next::Another)) if tries < targets.count() => tries += 1,
                other => return other.map_err(|(error, _)| error),
            }
        }
    }

    /// The same for one target.
    async fn ask_at(
        &self,
        at: At<'_>,
        packet: &Value,
        base: Option<&str>,
        until: Instant,
    ) -> Result<Answer, (Error, Next)> {
        let context = at.context();
        let filled = self.form.fill(at.flow(), packet, base, context.as_ref()).await;
        let mut ask = filled.map_err(|error| (error, Next::Nobody))?;
        let can_move = ask.can_move();
        match timeout_at(until, self.exchange(&mut ask)).await {
            Ok(outcome) => outcome.map_err(|Unanswered { text, is_unreached }| {
                let next = match (is_unreached, can_move) {
                    (true, true) => Next::Another,
                    (true, false) => Next::Unsent,
                    (false, _) => Next::Nobody,
                };
                (failed(&ask, &text).with_status(BAD_GATEWAY), next)
            }),
            Err(_) => {
                let text = format!("no answer within {:?}; raise 'deadline'", self.patience);
                Err((failed(&ask, &text).with_status(GATEWAY_TIMEOUT), Next::Nobody))
            }
        }
    }

    /// Sends a request, and follows redirects.
    async fn exchange(&self, ask: &mut ClientRequest) -> Result<Answer, Unanswered> {
        let mut redirects = 0;
        let mut response = loop {
            let response = self.send(ask).await?;
            if self.redirects_max == 0 {
                break response;
            }
            let Some(next) = ask.redirected(&response, &self.form.hosts)? else { break response };
            if redirects == self.redirects_max {
                return Err(format!("more than {redirects} redirects; raise 'redirects'").into());
            }
            redirects += 1;
            *ask = next;
        };
        if ask.upgrades() && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(&mut response);
            let (mut parts, _) = response.into_parts();
            proxy::without_named(&mut parts.headers);
            return Ok(Answer::switching(parts, upgraded));
        }
        let (mut parts, body) = response.into_parts();
        if self.fails && parts.status >= StatusCode::BAD_REQUEST {
            return Err(format!("answered {}", parts.status).into());
        }
        if self.form.proxied.is_some() {
            proxy::without_named(&mut parts.headers);
        }
        let body = if self.streams {
            answer::ReplyBody::Stream(answer::stream(body, self.patience))
        } else {
            let bytes = answer::gather(body, self.body_size_max).await?;
            answer::ReplyBody::Whole(bytes, OnceLock::new())
        };
        Ok(Answer::new(parts, body))
    }

    /// Sends a request; sends it again if the connection that it went over was closed meanwhile.
    async fn send(&self, ask: &mut ClientRequest) -> Result<Response<Incoming>, Unanswered> {
        let mut repeats = 0;
        let over_http1 = self.over_http1.as_ref().filter(|_| ask.upgrades());
        let client = over_http1.unwrap_or(&self.client);
        loop {
            match client.request(ask.request()).await {
                Ok(response) => {
                    if let Some(answered) = response.extensions().get::<Answered>() {
                        answered.store(true, Ordering::Relaxed);
                    }
                    return Ok(response);
                }
                Err(error) if ask.can_repeat() && repeats < REPEATS_MAX && was_kept(&error) => {
                    repeats += 1;
                }
                Err(error) => {
                    return Err(Unanswered {
                        text: chain(&error),
                        is_unreached: error.is_connect(),
                    });
                }
            }
        }
    }
}

/// Why there is no answer.
struct Unanswered {
    text: String,
    /// No connection was made, so no server has begun to handle the request.
    is_unreached: bool,
}

impl From<String> for Unanswered {
    fn from(text: String) -> Unanswered {
        Unanswered { text, is_unreached: false }
    }
}

/// Which server may be asked after an error.
enum Next {
    Another,
    /// Another server could be asked, but the body was a stream, and is gone.
    Unsent,
    Nobody,
}

#[cold]
fn none_left(targets: &Targets) -> Error {
    let count = targets.count();
    Error::new(format_args!("none of the {count} targets can be reached"))
        .with_status(UNAVAILABLE)
        .with_header("retry-after", targets.wait_s().to_string())
}

/// Whether an answer had come over the connection before, and it broke without a malformed message.
fn was_kept(error: &ClientError) -> bool {
    let mut extensions = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    let reason = std::error::Error::source(error).and_then(|it| it.downcast_ref::<hyper::Error>());
    let is_nonsense = reason.is_some_and(|it| it.is_parse() || it.is_user());
    extensions.get::<Answered>().is_some_and(|it| it.load(Ordering::Relaxed)) && !is_nonsense
}

#[cold]
fn failed(ask: &ClientRequest, text: &str) -> Error {
    Error::new(format_args!("{}: {text}", ask.shown()))
}

/// An error with all its reasons, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(reason) = next {
        let reason_text = reason.to_string();
        if !text.ends_with(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        next = reason.source();
    }
    text
}
