//! The way to a collector: spans wait in a bounded queue, and a thread sends them, many at a time.
//!
//! Who makes spans never waits for it. What finds no room, or what the collector does not take, is
//! lost, counted and told on standard error, which is the log of a service.

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

/// The first pause after a collector could not take a batch; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest one, also if the collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A batch that was not taken for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often at most it is told how many spans were lost.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read.
const ANSWER_LEN_MAX: usize = 64 << 10;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("sinew/", env!("CARGO_PKG_VERSION")));

/// Where spans go.
pub struct Collector {
    shared: Arc<Shared>,
    spans: UnboundedSender<Vec<SpanRecord>>,
    queue_max: usize,
    batch_max: usize,
    /// Until when the rest must be gone.
    end: watch::Sender<Option<Instant>>,
    /// Says that it is. Behind a lock that only the end takes.
    ended: std::sync::Mutex<mpsc::Receiver<()>>,
}

#[derive(Default)]
struct Shared {
    /// Spans in the queue.
    waiting: AtomicUsize,
    /// Spans that found no room.
    lost: AtomicU64,
    /// A batch is full.
    full: Notify,
}

impl Collector {
    /// Begins a thread that sends what comes.
    ///
    /// # Errors
    /// What the kernel says of a thread more.
    pub fn begin(settings: TraceSettings) -> io::Result<Collector> {
        Collector::begin_telling(settings, |line| {
            // Nobody listens: then there is no one to tell.
            let _ = writeln!(stderr(), "{line}");
        })
    }

    /// The same; `tells` hears what is to be known.
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
            // What still looks for a name is left alone.
            runtime.shutdown_background();
            // Whoever waited may have gone.
            let _ = says.send(());
        })?;
        Ok(Collector { shared, spans, queue_max, batch_max, end, ended })
    }

    /// Puts spans into the queue, if there is room for all of them. Never waits.
    pub fn send(&self, spans: Vec<SpanRecord>) {
        let count = spans.len();
        // Relaxed: numbers; the queue itself orders what goes through it.
        let before = self.shared.waiting.fetch_add(count, Ordering::Relaxed);
        if before + count > self.queue_max || self.spans.send(spans).is_err() {
            // Relaxed: as above.
            self.shared.waiting.fetch_sub(count, Ordering::Relaxed);
            self.shared.lost.fetch_add(count as u64, Ordering::Relaxed);
        } else if before < self.batch_max && before + count >= self.batch_max {
            self.shared.full.notify_one();
        }
    }

    /// Sends what is left, until then at most. Blocks.
    pub fn end(&self, until: std::time::Instant) {
        self.end.send_replace(Some(until.into()));
        // A thread that is gone, or too slow, has lost what it had.
        if let Ok(ended) = self.ended.lock() {
            let _ = ended.recv_timeout(until.saturating_duration_since(std::time::Instant::now()));
        }
    }
}

/// The thread's part.
struct Sending {
    settings: TraceSettings,
    shared: Arc<Shared>,
    queue: UnboundedReceiver<Vec<SpanRecord>>,
    ends: watch::Receiver<Option<Instant>>,
    tells: Box<dyn Fn(&str) + Send>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Taken from the queue, but not yet sent.
    next: Vec<SpanRecord>,
    /// Not taken, since the beginning, and as many of them as were told, and when.
    refused: u64,
    told: u64,
    told_at: Option<Instant>,
    /// Whether something is wrong since the last batch that was taken.
    is_in_trouble: bool,
}

/// What became of a request.
enum Came {
    /// All but so many spans were taken.
    Taken(u64),
    /// It makes no sense to send it again.
    Refused(String),
    /// It may be taken later; perhaps the collector says when.
    Later(String, Option<Duration>),
    /// Nobody answers.
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

    /// The next spans to go together, if any wait.
    fn batch(&mut self) -> Option<Vec<SpanRecord>> {
        let max = self.settings.batch_max;
        while self.next.len() < max
            && let Ok(more) = self.queue.try_recv()
        {
            self.next.extend(more);
        }
        let batch: Vec<_> = self.next.drain(..self.next.len().min(max)).collect();
        // Relaxed: as above.
        self.shared.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch until it is taken, or there is no sense in it any more.
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
            // By chance a little more or less: not all come again at once.
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
                // One last time then.
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
        // A vector takes all that is written to it.
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
            // Those that the specification names.
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

    /// Says what is wrong, once for as long as it is.
    fn fails(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_in_trouble, true) {
            self.say(format_args!("does not take spans: {why}"));
        }
    }

    fn lost(&self) -> u64 {
        // Relaxed: as above.
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

    /// What its path and query say may be secret.
    fn say(&self, what: fmt::Arguments<'_>) {
        let authority = self.settings.url.authority().map_or("", |it| it.as_str());
        (self.tells)(&format!("the collector at {authority} {what}"));
    }
}

/// Waits until the end is said, and gives until when all must be gone.
async fn ended(mut ends: watch::Receiver<Option<Instant>>) -> Instant {
    // Who could say it is gone: that is the end too.
    ends.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or_else(Instant::now)
}

/// Waits until there is no more time.
async fn too_late(ends: watch::Receiver<Option<Instant>>) {
    sleep_until(ended(ends).await).await;
}

/// An error with what it comes from.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(reason) = next {
        text = format!("{text}: {reason}");
        next = reason.source();
    }
    text
}
