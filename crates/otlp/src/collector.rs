//! The connection to a collector: spans wait in a bounded queue, and a thread sends them in
//! batches.
//!
//! Code that makes spans never waits for the collector. Spans that find no room, or that the
//! collector does not take, are lost and counted. The count is printed to standard error, which is
//! the log of a service.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::message::{ExportAnswer, ExportRequest};
use crate::{SpanRecord, TraceSettings};

/// The first pause after a collector could not take a batch. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, even if the collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A batch that was not taken within this time is lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// Least time between two reports about lost spans.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// Most bytes of an answer that are read.
const ANSWER_LEN_MAX: usize = 64 << 10;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("sinew/", env!("CARGO_PKG_VERSION")));

/// The destination of spans.
pub struct Collector {
    shared: Arc<Shared>,
    spans: UnboundedSender<Vec<SpanRecord>>,
    queue_max: usize,
    batch_max: usize,
    /// The deadline for sending the rest, once the end was requested.
    end: watch::Sender<Option<Instant>>,
    /// Receives a message when the rest was sent. The lock is taken only at the end.
    ended: std::sync::Mutex<mpsc::Receiver<()>>,
}

#[derive(Default)]
struct Shared {
    /// Spans in the queue.
    waiting: AtomicUsize,
    /// Spans that found no room.
    lost: AtomicU64,
    /// Signals that a batch is full.
    full: Notify,
}

impl Collector {
    /// Starts a thread that sends the spans.
    ///
    /// # Errors
    /// The kernel refused one more thread.
    pub fn begin(settings: TraceSettings) -> io::Result<Collector> {
        Collector::begin_telling(settings, |line| {
            // If standard error is closed, nobody can be told.
            let _ = writeln!(stderr(), "{line}");
        })
    }

    /// The same with `tells`, which is called with each line for the user.
    fn begin_telling(
        settings: TraceSettings,
        tells: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Collector> {
        let (spans, queue) = unbounded_channel();
        let (end, ends) = watch::channel(None);
        let (says, ended) = mpsc::sync_channel(1);
        let (shared, ended) = (Arc::<Shared>::default(), std::sync::Mutex::new(ended));
        let (queue_max, batch_max) = (settings.queue_max, settings.batch_max);
        let sending = Arc::clone(&shared);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("spans".into()).spawn(move || {
            runtime.block_on(Sending::new(settings, sending, queue, ends, Box::new(tells)).run());
            // A name lookup that is still running is abandoned.
            runtime.shutdown_background();
            // The waiting thread may have ended.
            let _ = says.send(());
        })?;
        Ok(Collector { shared, spans, queue_max, batch_max, end, ended })
    }

    /// Puts spans into the queue, if there is room for all of them. Never blocks.
    pub fn send(&self, spans: Vec<SpanRecord>) {
        let count = spans.len();
        // Relaxed: these are only counts. The queue itself orders the spans.
        let before = self.shared.waiting.fetch_add(count, Ordering::Relaxed);
        if before + count > self.queue_max || self.spans.send(spans).is_err() {
            // Relaxed: only counts, too.
            self.shared.waiting.fetch_sub(count, Ordering::Relaxed);
            self.shared.lost.fetch_add(count as u64, Ordering::Relaxed);
        } else if before < self.batch_max && before + count >= self.batch_max {
            self.shared.full.notify_one();
        }
    }

    /// Sends the remaining spans, until `until` at most. Blocks.
    pub fn end(&self, until: std::time::Instant) {
        self.end.send_replace(Some(until.into()));
        // A thread that has ended, or is too slow, loses its spans.
        if let Ok(ended) = self.ended.lock() {
            let _ = ended.recv_timeout(until.saturating_duration_since(std::time::Instant::now()));
        }
    }
}

/// The state of the sending thread.
struct Sending {
    settings: TraceSettings,
    shared: Arc<Shared>,
    queue: UnboundedReceiver<Vec<SpanRecord>>,
    ends: watch::Receiver<Option<Instant>>,
    tells: Box<dyn Fn(&str) + Send>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Spans taken from the queue, but not sent yet.
    next: Vec<SpanRecord>,
    /// Spans not taken since the beginning, how many of them were reported, and when.
    refused: u64,
    told: u64,
    told_at: Option<Instant>,
    /// Whether there was an error since the last batch that was taken.
    is_in_trouble: bool,
}

/// The result of a request.
enum Came {
    /// All spans were taken, except this many.
    Taken(u64),
    /// It is useless to send the batch again.
    Refused(String),
    /// The batch may be taken later. The collector may have said when.
    Later(String, Option<Duration>),
    /// The collector does not answer.
    Nobody(String),
}

impl Sending {
    fn new(
        settings: TraceSettings,
        shared: Arc<Shared>,
        queue: UnboundedReceiver<Vec<SpanRecord>>,
        ends: watch::Receiver<Option<Instant>>,
        tells: Box<dyn Fn(&str) + Send>,
    ) -> Sending {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has all versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        Sending {
            settings,
            shared,
            queue,
            ends,
            tells,
            client: Client::builder(TokioExecutor::new()).build(connector.build()),
            next: Vec::new(),
            refused: 0,
            told: 0,
            told_at: None,
            is_in_trouble: false,
        }
    }

    /// Sends until the end.
    async fn run(mut self) {
        let mut is_over = false;
        while !is_over {
            tokio::select! {
                () = sleep(self.settings.delay) => {}
                () = self.shared.full.notified() => {}
                _ = ended(self.ends.clone()) => is_over = true,
            }
            while let Some(batch) = self.batch() {
                self.send(batch).await;
            }
        }
        let lost = self.lost();
        if lost > 0 {
            self.say(format_args!("ends without {lost} spans, all in all"));
        }
    }

    /// The next batch of spans, if any wait.
    fn batch(&mut self) -> Option<Vec<SpanRecord>> {
        let max = self.settings.batch_max;
        while self.next.len() < max
            && let Ok(more) = self.queue.try_recv()
        {
            self.next.extend(more);
        }
        let batch: Vec<_> = self.next.drain(..self.next.len().min(max)).collect();
        // Relaxed: only a count.
        self.shared.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch until it is taken, or until it is useless to go on.
    async fn send(&mut self, batch: Vec<SpanRecord>) {
        let (count, begun, mut pause) = (batch.len() as u64, Instant::now(), PAUSE);
        let body = self.body(batch);
        loop {
            let is_over = self.ends.borrow().is_some();
            let came = tokio::select! {
                biased;
                () = too_late(self.ends.clone()) => Came::Refused("no time is left".to_owned()),
                came = self.ask(body.clone()) => came,
            };
            let (why, after) = match came {
                Came::Taken(rejected) => return self.taken(rejected),
                Came::Refused(why) => return self.refuse(count, &why),
                Came::Nobody(why) if is_over => return self.refuse(count, &why),
                Came::Nobody(why) => (why, None),
                Came::Later(why, after) => (why, after),
            };
            // A random variation: not all clients retry at the same time.
            let chosen =
                after.unwrap_or(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).min(PAUSE_MAX);
            pause = (pause * 2).min(PAUSE_MAX);
            let ends_in =
                self.ends.borrow().map(|end| end.saturating_duration_since(Instant::now()));
            if begun.elapsed() + chosen > PATIENCE || ends_in.is_some_and(|left| left <= chosen) {
                return self.refuse(count, &why);
            }
            self.fails(&why);
            tokio::select! {
                () = sleep(chosen) => {}
                // At the end, one last attempt.
                _ = ended(self.ends.clone()), if !is_over => {}
            }
        }
    }

    fn body(&self, batch: Vec<SpanRecord>) -> Bytes {
        let plain = ExportRequest::of(&self.settings.resource, batch).encode_to_vec();
        if !self.settings.is_gzip {
            return plain.into();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to a vector cannot fail.
        encoder.write_all(&plain).and_then(|()| encoder.finish()).unwrap_or_default().into()
    }

    async fn ask(&self, body: Bytes) -> Came {
        let settings = &self.settings;
        let mut request = Request::post(settings.url.clone()).body(Full::new(body));
        if let Ok(request) = &mut request {
            let headers = request.headers_mut();
            headers.extend(settings.headers.clone());
            headers.insert(CONTENT_TYPE, PROTOBUF);
            headers.entry(USER_AGENT).or_insert(AGENT);
            if settings.is_gzip {
                headers.insert(CONTENT_ENCODING, GZIP);
            }
        }
        let request = match request {
            Ok(request) => request,
            Err(error) => return Came::Refused(error.to_string()),
        };
        let asks = async {
            let answer = self.client.request(request).await.map_err(|error| reasons(&error))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_LEN_MAX).collect().await;
            Ok::<_, String>((parts, body.map(|body| body.to_bytes()).unwrap_or_default()))
        };
        let (parts, body) = match timeout(settings.timeout, asks).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Came::Nobody(why),
            Err(_) => {
                return Came::Nobody(format!("no answer within {:?}", settings.timeout));
            }
        };
        let why = || format!("it answers {}", parts.status);
        match parts.status {
            status if status.is_success() => {
                let partial = ExportAnswer::decode(body).ok().and_then(|answer| answer.partial);
                let rejected = partial.map_or(0, |partial| partial.rejected);
                Came::Taken(u64::try_from(rejected).unwrap_or(0))
            }
            // The status codes that the specification names.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let after = parts.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok());
                Came::Later(why(), after.and_then(|it| it.parse().ok()).map(Duration::from_secs))
            }
            _ => Came::Refused(why()),
        }
    }

    fn taken(&mut self, rejected: u64) {
        self.refused += rejected;
        if std::mem::take(&mut self.is_in_trouble) {
            self.say(format_args!("takes spans again"));
        }
        self.tell_lost();
    }

    fn refuse(&mut self, count: u64, why: &str) {
        self.refused += count;
        self.fails(why);
        self.tell_lost();
    }

    /// Reports an error, once until a batch is taken again.
    fn fails(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_in_trouble, true) {
            self.say(format_args!("does not take spans: {why}"));
        }
    }

    fn lost(&self) -> u64 {
        // Relaxed: only a count.
        self.refused + self.shared.lost.load(Ordering::Relaxed)
    }

    fn tell_lost(&mut self) {
        let (lost, now) = (self.lost(), Instant::now());
        let is_early = self.told_at.is_some_and(|told| now - told < TOLD_EVERY);
        if lost > self.told && !is_early {
            let more = lost - self.told;
            self.say(format_args!(
                "did not get {more} spans, which are lost; make fewer with OTEL_TRACES_SAMPLER, or \
                 queue more with OTEL_BSP_MAX_QUEUE_SIZE"
            ));
            (self.told, self.told_at) = (lost, Some(now));
        }
    }

    /// Prints only the host: the path and query of the URL may be secret.
    fn say(&self, what: fmt::Arguments<'_>) {
        let authority = self.settings.url.authority().map_or("", |it| it.as_str());
        (self.tells)(&format!("the collector at {authority} {what}"));
    }
}

/// Waits for the request to end, and returns its deadline.
async fn ended(mut ends: watch::Receiver<Option<Instant>>) -> Instant {
    // If the sender is gone, this counts as the end too.
    ends.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or_else(Instant::now)
}

/// Waits until the deadline has passed.
async fn too_late(ends: watch::Receiver<Option<Instant>>) {
    sleep_until(ended(ends).await).await;
}

/// An error with its causes.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(reason) = next {
        text = format!("{text}: {reason}");
        next = reason.source();
    }
    text
}
