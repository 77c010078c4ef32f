//! An open websocket, at either end: each message is a packet, and the reply is its answer.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, FuturesOrdered, try_unfold};
use futures_util::{SinkExt, StreamExt};
use sinew_core::Parameters;
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_flow::{At, Error, Local, Stream as Coming, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error as SocketError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::framing::{ElementFormat, Framer, NextElement};
use crate::http::upgrade::Duplex;
use crate::json;
use crate::work::WORK_MAX;

const SECOND_NS: u64 = 1_000_000_000;

/// What a message costs, in units of work, without what its nodes do.
const MESSAGE_WORK: u64 = 3;
/// Bytes that are read at a time, unless a message is known to be longer. An idle connection holds
/// a buffer of this size.
const READ_SIZE: usize = 512;
/// Longest that the other side may take to answer a close, and to read what was sent before it.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// Most bytes that are read after a close, so that the other side gets to see the close.
const LINGER_BYTES_MAX: usize = 16 << 20;

/// The parameters of both ends.
pub(super) const AS: Parameter = Parameter::new("as", ParameterType::Choice(&["message", "json"]))
    .or("message")
    .doc("What a packet is: a text or bytes, as the message is, or the value of its JSON.");
pub(super) const CONCURRENCY: Parameter =
    Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 })
        .or("1")
        .doc("Most messages of a connection that are under way at once; answers keep their order.");
pub(super) const MESSAGE_SIZE_MAX: Parameter =
    Parameter::new("message_size_max", ParameterType::Size { min_bytes: 16, max_bytes: 64 << 20 })
        .or("64KiB")
        .doc("Longest message that is taken; a longer one closes the connection (1009).");
pub(super) const DEADLINE: Parameter = Parameter::new(
    "deadline",
    ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400 * SECOND_NS },
)
.or("30s")
.doc("Longest that a message may take.");
pub(super) const PING: Parameter = Parameter::new(
    "ping",
    ParameterType::Duration { min_ns: 10_000_000, max_ns: 86_400 * SECOND_NS },
)
.or("30s")
.doc(
    "After this long without a message the other side gets a ping; after twice this long the \
     connection is closed.",
);

/// Settings of all connections of a node.
#[derive(Clone, Copy)]
pub(super) struct Manners {
    is_json: bool,
    concurrency: usize,
    message_size_max: usize,
    patience: Duration,
    work_max: u64,
    ping: Duration,
}

impl Manners {
    /// The settings that the parameters say.
    pub(super) fn of(parameters: &Parameters<'_>) -> Manners {
        Manners {
            is_json: parameters.text(AS.name) == "json",
            concurrency: parameters.integer(CONCURRENCY.name) as usize,
            message_size_max: parameters.size(MESSAGE_SIZE_MAX.name) as usize,
            patience: parameters.duration(DEADLINE.name),
            work_max: parameters.integer(WORK_MAX.name).unsigned_abs(),
            ping: parameters.duration(PING.name),
        }
    }

    /// Most work of a message.
    pub(super) fn work_max(self) -> u64 {
        self.work_max
    }

    /// The same settings for the library.
    pub(super) fn config(self) -> WebSocketConfig {
        WebSocketConfig::default()
            .read_buffer_size(READ_SIZE)
            .write_buffer_size(0)
            .max_message_size(Some(self.message_size_max))
            .max_frame_size(Some(self.message_size_max))
    }
}

/// Why a connection ends: the code of its close, and the error to report.
struct Ending {
    code: CloseCode,
    error: Option<Error>,
}

impl Ending {
    fn of(code: CloseCode) -> Ending {
        Ending { code, error: None }
    }

    /// A flow has failed. What the error says is not sent.
    fn failed(error: Error) -> Ending {
        let code = match error.status() {
            400 => CloseCode::Invalid,
            401..500 => CloseCode::Policy,
            _ => CloseCode::Error,
        };
        Ending { code, error: Some(error) }
    }

    /// The other side has sent something that is not allowed; `None` if it is gone.
    fn met(error: &SocketError) -> Option<Ending> {
        Some(Ending::of(match error {
            SocketError::Protocol(_) => CloseCode::Protocol,
            SocketError::Utf8(_) => CloseCode::Invalid,
            SocketError::Capacity(CapacityError::MessageTooLong { .. }) => CloseCode::Size,
            _ => return None,
        }))
    }
}

/// Messages that are sent beside answers.
type Feed = BoxStream<'static, Result<Message, Error>>;

/// The messages of a value that is to be sent beside answers.
///
/// # Errors
/// It is a stream that was read before, or cannot be written as a message.
async fn feed(at: At<'_>, value: Option<Value>) -> Result<Option<Feed>, Error> {
    match value {
        Some(Value::Stream(stream)) => parts(&stream).map(Some),
        other => {
            let message = message(at, other).await?;
            Ok(message.map(|message| futures_util::stream::iter([Ok(message)]).boxed()))
        }
    }
}

/// The elements of a stream: its lines if it has lines, else the pieces as they come.
fn parts(stream: &Coming) -> Result<Feed, Error> {
    let gone = "the stream was read before; it passes once";
    let source = stream.take().ok_or_else(|| Error::new(gone))?;
    let has_lines = stream.content_type().is_some_and(|it| {
        it == "application/x-ndjson" || it.starts_with("text/plain") || it.starts_with("text/csv")
    });
    let format = if has_lines { ElementFormat::Lines } else { ElementFormat::Bytes };
    let framer = Framer::new("the stream, ".to_owned(), format, 1 << 20);
    Ok(try_unfold((source, framer), |(mut source, mut framer)| async move {
        loop {
            match framer.next()? {
                NextElement::Element(element) => {
                    let message = match element.value? {
                        Value::Text(text) => Message::Text(as_text(&text)),
                        _ => Message::Binary(element.raw),
                    };
                    return Ok(Some((message, (source, framer))));
                }
                NextElement::End => return Ok(None),
                NextElement::More => match source.next().await {
                    Some(bytes) => framer.give(&bytes?),
                    None => framer.end(),
                },
            }
        }
    })
    .boxed())
}

/// A value as a message; null gives none.
async fn message(at: At<'_>, value: Option<Value>) -> Result<Option<Message>, Error> {
    Ok(Some(match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Text(text)) => Message::Text(as_text(&text)),
        Some(Value::Bytes(bytes)) => Message::Binary(bytes),
        Some(Value::Stream(_)) => {
            let text = "a message is a value, this is a stream; reply with 'as: counts', or let \
                        the port 'send' have it";
            return Err(Error::new(text));
        }
        Some(other) => Message::Text(json::text(at.flow(), &other).await?.into()),
    }))
}

fn as_text(text: &str) -> Utf8Bytes {
    Utf8Bytes::from(text)
}

/// A connection that carries frames.
pub(super) type OpenSocket = WebSocketStream<Box<dyn Duplex>>;

/// A websocket, and the node that uses it.
pub(super) struct SocketSession<'a> {
    at: At<'a>,
    out: usize,
    manners: Manners,
    socket: OpenSocket,
    under_way: FuturesOrdered<Local<'a, Result<Option<Message>, Error>>>,
    /// A message that has been read, and is begun when there is room.
    ahead: Option<Value>,
    heard: Instant,
    has_pinged: bool,
}

impl<'a> SocketSession<'a> {
    /// A session over an open websocket; messages go to the output `out`.
    pub(super) fn over(
        at: At<'a>,
        out: usize,
        manners: Manners,
        socket: OpenSocket,
    ) -> SocketSession<'a> {
        let (under_way, heard) = (FuturesOrdered::new(), Instant::now());
        let (ahead, has_pinged) = (None, false);
        SocketSession { at, out, manners, socket, under_way, ahead, heard, has_pinged }
    }

    /// Serves the websocket until its end, and closes it in order. The reply of the output in
    /// `opening` to its packet is sent beside answers.
    ///
    /// # Errors
    /// What has failed in this graph.
    pub(super) async fn run(mut self, opening: Option<(usize, Value)>) -> Result<(), Error> {
        let at = self.at;
        let fed = match opening {
            Some((port, packet)) => match at.call(port, packet).await {
                Ok(reply) => feed(at, reply).await,
                Err(error) => Err(error),
            },
            None => Ok(None),
        };
        let ending = match fed {
            Ok(mut feed) => self.converse(&mut feed).await,
            Err(error) => Some(Ending::failed(error)),
        };
        let Some(Ending { code, error }) = ending else { return Ok(()) };
        self.under_way.clear();
        // An error means that the other side is gone, and needs no close.
        let _ = timeout(CLOSE_DEADLINE, self.close(code)).await;
        error.map_or(Ok(()), Err)
    }

    /// Serves the websocket until something ends it; `None` if the other side has ended it.
    async fn converse(&mut self, feed: &mut Option<Feed>) -> Option<Ending> {
        let mut retired = pin!(self.at.retired());
        loop {
            self.begin();
            let reads = self.ahead.is_none();
            let silent = self.heard + self.manners.ping * if self.has_pinged { 2 } else { 1 };
            let step = tokio::select! {
                biased;
                () = &mut retired => return Some(Ending::of(CloseCode::Away)),
                Some(made) = self.under_way.next() => Heard::Made(made),
                heard = self.socket.next(), if reads => Heard::Message(heard),
                part = next_of(feed) => match part {
                    Some(part) => Heard::Made(part.map(Some)),
                    None => Heard::FeedOver,
                },
                () = sleep_until(silent) => Heard::Nothing,
            };
            let done = match step {
                Heard::Message(None) => return None,
                Heard::Message(Some(heard)) => self.take(heard),
                Heard::Made(made) => self.send(made).await,
                Heard::FeedOver => {
                    *feed = None;
                    Ok(())
                }
                Heard::Nothing if self.has_pinged => return None,
                Heard::Nothing => {
                    self.has_pinged = true;
                    self.put(Message::Ping(Bytes::new())).await
                }
            };
            if let Err(ending) = done {
                return ending;
            }
        }
    }

    /// Begins the message that was read ahead, if there is room.
    fn begin(&mut self) {
        if self.under_way.len() >= self.manners.concurrency {
            return;
        }
        let Some(packet) = self.ahead.take() else { return };
        let (at, out, Manners { patience, work_max, .. }) = (self.at, self.out, self.manners);
        self.under_way.push_back(Box::pin(async move {
            at.flow().allow(work_max);
            at.flow().spend(MESSAGE_WORK)?;
            let made = async { message(at, at.call(out, packet).await?).await };
            timeout(patience, made).await.unwrap_or_else(|_| {
                let text = format_args!("a message has taken {patience:?}; raise 'deadline'");
                Err(Error::new(text).with_status(504))
            })
        }));
    }

    /// Takes in what was read.
    fn take(&mut self, heard: Result<Message, SocketError>) -> Result<(), Option<Ending>> {
        self.heard = Instant::now();
        self.has_pinged = false;
        let packet = match heard.map_err(|error| Ending::met(&error))? {
            Message::Text(text) => Value::text(text.as_str()),
            Message::Binary(bytes) => Value::Bytes(bytes),
            // The library itself answers pings and a close.
            _ => return Ok(()),
        };
        self.ahead = Some(match self.manners.is_json {
            false => packet,
            true => self.json(&packet).map_err(|error| Some(Ending::failed(error)))?,
        });
        Ok(())
    }

    fn json(&self, packet: &Value) -> Result<Value, Error> {
        let bytes: &[u8] = match packet {
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
            _ => &[],
        };
        self.at.flow().allow(self.manners.work_max);
        self.at.flow().spend(ElementFormat::Ndjson.price(bytes.len()))?;
        let wrong = |error| Error::new(format_args!("a message is not JSON: {error}"));
        serde_json::from_slice(bytes).map_err(|error| wrong(error).with_status(400))
    }

    async fn send(&mut self, made: Result<Option<Message>, Error>) -> Result<(), Option<Ending>> {
        match made {
            Ok(Some(message)) => self.put(message).await,
            Ok(None) => Ok(()),
            Err(error) => Err(Some(Ending::failed(error))),
        }
    }

    /// Sends a message once all before it have been taken.
    async fn put(&mut self, message: Message) -> Result<(), Option<Ending>> {
        self.socket.send(message).await.map_err(|error| Ending::met(&error))
    }

    /// Sends the close with its code, and waits until the other side has answered it or is gone.
    async fn close(&mut self, code: CloseCode) -> Result<(), SocketError> {
        self.socket.close(Some(CloseFrame { code, reason: Utf8Bytes::default() })).await?;
        while let Some(Ok(_)) = self.socket.next().await {}
        // Reads on: otherwise the kernel would answer what still comes with a reset, which may
        // overtake the close.
        let wire = self.socket.get_mut();
        wire.shutdown().await?;
        let mut bytes = vec![0; 4096];
        let mut read = 0;
        while read < LINGER_BYTES_MAX {
            match wire.read(&mut bytes).await? {
                0 => break,
                len => read += len,
            }
        }
        Ok(())
    }
}

/// What a wait ends with.
enum Heard {
    Message(Option<Result<Message, SocketError>>),
    /// An answer, or a message that is sent beside answers.
    Made(Result<Option<Message>, Error>),
    FeedOver,
    Nothing,
}

async fn next_of(feed: &mut Option<Feed>) -> Option<Result<Message, Error>> {
    match feed {
        Some(feed) => feed.next().await,
        None => pending().await,
    }
}
