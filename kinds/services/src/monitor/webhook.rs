//! Sends messages to another program over HTTP, without ever making the rules wait: messages wait
//! in a short queue, and each is tried a few times.

#[cfg(test)]
mod tests;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::http::uri::{Scheme, Uri};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use sinew_runtime::service::tell;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::figures::Labels;

/// Most messages that wait; if it is full, the newest is dropped and counted.
const WAITING_MAX: usize = 64;
/// Most attempts for a message.
const ATTEMPTS_MAX: u32 = 5;
/// How long an attempt may take, from the look-up of the name to the answer.
const ATTEMPT_DEADLINE: Duration = Duration::from_secs(5);
/// Pause after the first attempt; it doubles.
const BACKOFF: Duration = Duration::from_millis(500);

/// The address to send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Webhook {
    host: String,
    port: u16,
    path: String,
}

impl Webhook {
    /// Reads an address.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn parse(text: &str) -> Result<Webhook, String> {
        let expected = "expected an address such as http://127.0.0.1:9093/hook";
        let uri: Uri = text.parse().map_err(|error| format!("'{text}': {error}; {expected}"))?;
        match (uri.scheme(), uri.authority()) {
            (_, Some(authority)) if authority.as_str().contains('@') => {
                Err(format!("'{text}': a user and a password are not supported; {expected}"))
            }
            (Some(scheme), Some(authority)) if *scheme == Scheme::HTTP => Ok(Webhook {
                host: authority.host().into(),
                port: authority.port_u16().unwrap_or(80),
                path: uri.path_and_query().map_or("/".into(), ToString::to_string),
            }),
            (Some(scheme), _) if *scheme == Scheme::HTTPS => Err(format!(
                "'{text}': only http is supported; for https use a relay on this machine"
            )),
            _ => Err(format!("'{text}': {expected}")),
        }
    }
}

/// The messages to be sent, and counters of their `outcome`: delivered, failed, dropped.
pub(super) struct Outbox {
    waiting: Sender<String>,
    outcomes: Family<Labels, Counter>,
}

/// Sends the messages.
pub(super) struct Delivery {
    webhook: Webhook,
    waiting: Receiver<String>,
    outcomes: Family<Labels, Counter>,
    /// Closed when all messages are sent.
    _ends: mpsc::Sender<()>,
}

/// Tells when all messages of a dropped outbox are sent.
pub(super) struct AllTold(mpsc::Receiver<()>);

/// An empty outbox for a webhook.
pub(super) fn outbox(
    webhook: Webhook,
    outcomes: Family<Labels, Counter>,
) -> (Outbox, Delivery, AllTold) {
    let (put, waiting) = tokio::sync::mpsc::channel(WAITING_MAX);
    let (ends, told) = mpsc::channel();
    let outbox = Outbox { waiting: put, outcomes: outcomes.clone() };
    (outbox, Delivery { webhook, waiting, outcomes, _ends: ends }, AllTold(told))
}

impl Outbox {
    /// Takes a message; never waits. Returns whether there was room.
    pub(super) fn put(&self, body: String) -> bool {
        let has_room = self.waiting.try_send(body).is_ok();
        if !has_room {
            count(&self.outcomes, "dropped");
        }
        has_room
    }
}

impl AllTold {
    /// Waits until all messages are sent, at most for `time`; returns whether they are.
    pub(super) fn within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

impl Delivery {
    /// Sends what is put in, until the outbox is dropped.
    pub(super) async fn run(mut self) {
        while let Some(body) = self.waiting.recv().await {
            match insist(&self.webhook, &body).await {
                Ok(()) => count(&self.outcomes, "delivered"),
                Err(reason) => {
                    count(&self.outcomes, "failed");
                    let Webhook { host, port, .. } = &self.webhook;
                    tell(format_args!("webhook {host}:{port}: {reason}"));
                }
            }
        }
    }
}

fn count(outcomes: &Family<Labels, Counter>, outcome: &str) {
    outcomes.get_or_create(&vec![("outcome", outcome.to_owned())]).inc();
}

/// Tries several times.
async fn insist(webhook: &Webhook, body: &str) -> Result<(), String> {
    let mut pause = BACKOFF;
    let mut attempt = 1;
    loop {
        let outcome = timeout(ATTEMPT_DEADLINE, post(webhook, body)).await;
        let reason = match outcome {
            Ok(Ok(status)) if status.is_success() => return Ok(()),
            Ok(Ok(status)) if !is_passing(status) => return Err(format!("answered {status}")),
            Ok(Ok(status)) => format!("answered {status}"),
            Ok(Err(error)) => error,
            Err(_) => format!("no answer within {} s", ATTEMPT_DEADLINE.as_secs()),
        };
        if attempt == ATTEMPTS_MAX {
            return Err(format!("given up after {attempt} attempts: {reason}"));
        }
        attempt += 1;
        sleep(pause).await;
        pause *= 2;
    }
}

/// Whether another attempt may succeed.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

async fn post(webhook: &Webhook, body: &str) -> Result<StatusCode, String> {
    let Webhook { host, port, path } = webhook;
    let name = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((name, *port)).await.map_err(|error| error.to_string())?;
    let spoken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = spoken.map_err(|error| error.to_string())?;
    // It ends with the sender, and its error is then also the sender's.
    tokio::spawn(connection);
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "sinew-monitor")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok(response.status())
}
