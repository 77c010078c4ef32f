//! One viewer: what it is shown, and what it asks for. The two are independent, so that an order to
//! stop is carried out even while the viewer's network is slow.

use std::error::Error as _;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use axum::Error;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::select;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tungstenite::Error as Refusal;

use super::hub::{Closing, Hub, Seat};
use super::orders::{self, Ears, Reply, TapChange, Told};
use super::protocol::{ORDER_LEN_MAX, STALLED_MAX, Text, WRONG_TOKENS_MAX};
use super::tapped::{TapSaid, Tapped};

/// Answers that may wait to be sent.
const ANSWERS_MAX: usize = 32;
/// Lines of a tap that may wait to be sent; others wait in the domain.
const TAP_LINES_MAX: usize = 32;
/// Interval between two pings. A viewer whose browser answers none for [`STALLED_MAX`] is gone, or
/// reads nothing of what it is sent: the answer comes only after that.
const PING_SPACING: Duration = Duration::from_secs(1);
/// Pause after a wrong token.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(1);
/// Messages that are not orders, until a viewer is closed: an outdated page sends a few.
const MALFORMED_MAX: u32 = 20;
/// Messages per second that a viewer may send continuously, including pings; faster ones wait. A
/// page sends two or three.
const MESSAGES_PER_S: f64 = 50.0;
/// How long a closing viewer may take to answer.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// Why a viewer is closed: its code and a sentence.
type End = (u16, String);

/// Shows the run to a viewer until it goes.
pub(super) async fn serve(socket: WebSocket, hub: &Hub) {
    let (mut sink, mut stream) = socket.split();
    let Some(seat) = hub.seat() else {
        let text = "as many pages as 'viewers_max' allows are open already";
        return close(&mut sink, &mut stream, (close_code::AGAIN, text.into())).await;
    };
    let (answers, replies) = mpsc::channel(ANSWERS_MAX);
    let (lines, tapped) = mpsc::channel(TAP_LINES_MAX);
    let wants = [const { AtomicBool::new(false) }; 2];
    let pictures = watch::Sender::default();
    let heard = Heard { replies, tapped, pictures: pictures.subscribe() };
    let ears = Ears { key: seat.key, answers, lines, pictures };
    let reading = Reading { hub, ears, seat, wants: &wants, tap: None };
    let end = select! {
        end = reading.listen(&mut stream) => end,
        end = show(&mut sink, hub, heard, &wants) => end,
    };
    if let Some(end) = end {
        close(&mut sink, &mut stream, end).await;
    }
}

/// The results of the viewer's orders.
struct Heard {
    replies: Receiver<Utf8Bytes>,
    tapped: Receiver<TapSaid>,
    pictures: watch::Receiver<Utf8Bytes>,
}

/// Sends the reason, and waits a short time until the other side has received it.
async fn close(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    (code, text): End,
) {
    let frame = CloseFrame { code, reason: text.into() };
    let said = async {
        // A viewer that is gone needs no closing message.
        let _ = sink.send(Message::Close(Some(frame))).await;
        while let Some(Ok(_)) = stream.next().await {}
    };
    let _ = timeout(CLOSING_MAX, said).await;
}

/// Sends everything that the viewer sees; messages that are ready at the same time are sent in one
/// piece. `None`: the viewer is gone.
async fn show(
    sink: &mut SplitSink<WebSocket, Message>,
    hub: &Hub,
    mut heard: Heard,
    wants: &[AtomicBool; 2],
) -> Option<End> {
    let mut view = hub.view();
    for text in std::mem::take(&mut view.greeting) {
        sink.feed(Message::Text(text)).await.ok()?;
    }
    let mut ping_at = Instant::now() + PING_SPACING;
    // Whether something has not been passed to the kernel yet.
    let mut is_held = true;
    loop {
        let message = select! {
            biased;
            Some(reply) = heard.replies.recv() => Message::Text(reply),
            closing = last_word(&mut view.closing) => {
                let closing = closing?;
                let text = Text::Ended { text: closing.text }.json();
                sink.send(Message::Text(text.into())).await.ok()?;
                return Some((closing.code, closing.text.into()));
            }
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + PING_SPACING;
                Message::Ping(Bytes::new())
            }
            text = view.texts.recv() => match text {
                Ok(text) => Message::Text(text),
                Err(RecvError::Lagged(_)) => return Some(stalled()),
                Err(RecvError::Closed) => return None,
            },
            Some(said) = heard.tapped.recv() => Message::Text(match &said {
                TapSaid::Line(line) => hub.encode(&Text::Tap { line }),
                TapSaid::End(text) => hub.encode(&Text::Untapped { text }),
            }),
            bytes = newest(&mut view.motion) => Message::Binary(bytes?),
            bytes = newest(&mut view.image) => match wants[0].load(Relaxed) {
                true => Message::Binary(bytes?),
                false => continue,
            },
            bytes = newest(&mut view.values) => match wants[1].load(Relaxed) {
                true => Message::Binary(bytes?),
                false => continue,
            },
            picture = newest(&mut heard.pictures) => Message::Text(picture?),
            () = ready(()), if is_held => {
                sink.flush().await.ok()?;
                is_held = false;
                continue;
            }
        };
        sink.feed(message).await.ok()?;
        is_held = true;
    }
}

/// The last word, once it is set.
async fn last_word(closing: &mut watch::Receiver<Option<Closing>>) -> Option<Closing> {
    *closing.wait_for(Option::is_some).await.ok()?
}

/// The newest frame, once there is one that was not seen yet.
async fn newest<T: Clone>(frames: &mut watch::Receiver<T>) -> Option<T> {
    frames.changed().await.ok()?;
    Some(frames.borrow_and_update().clone())
}

fn stalled() -> End {
    let s = STALLED_MAX.as_secs();
    (close_code::AGAIN, format!("this viewer read nothing for {s} s; open the page again"))
}

/// Reads the orders of a viewer.
struct Reading<'a> {
    hub: &'a Hub,
    ears: Ears,
    seat: Seat<'a>,
    /// Read by [`show`]; it orders no other memory.
    wants: &'a [AtomicBool; 2],
    tap: Option<Tapped>,
}

impl Reading<'_> {
    /// Carries orders out, as long as the viewer is there. `None`: it is gone.
    async fn listen(mut self, stream: &mut SplitStream<WebSocket>) -> Option<End> {
        let (mut wrong, mut malformed) = (0, 0);
        let mut pace = Pace::new();
        loop {
            let Ok(message) = timeout(STALLED_MAX, stream.next()).await else {
                return Some(stalled());
            };
            pace.wait().await;
            let text = match message? {
                Ok(Message::Text(text)) => text,
                Ok(Message::Binary(_)) => {
                    let text = "orders are text, and this was binary";
                    return Some((close_code::UNSUPPORTED, text.into()));
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => continue,
                Ok(Message::Close(_)) => return None,
                Err(error) => return refused(&error),
            };
            let reply = orders::carry_out(self.hub, &text, &self.ears).await;
            match reply.told {
                Told::Done => {}
                Told::Malformed => malformed += 1,
                Told::WrongToken => {
                    wrong += 1;
                    sleep(WRONG_TOKEN_PAUSE).await;
                }
            }
            self.take(reply);
            if wrong >= WRONG_TOKENS_MAX {
                return Some((close_code::POLICY, "too many wrong tokens".into()));
            }
            if malformed >= MALFORMED_MAX {
                return Some((close_code::POLICY, "too much that is not an order".into()));
            }
        }
    }

    fn take(&mut self, reply: Reply) {
        if let Some(wants) = reply.wants {
            self.seat.want(wants);
            // Relaxed: see the field.
            self.wants.iter().zip(wants).for_each(|(to, wanted)| to.store(wanted, Relaxed));
        }
        match reply.tap {
            TapChange::None => {}
            TapChange::Begins(tap) => self.tap = Some(tap),
            TapChange::Ends => self.tap = None,
        }
        if let Some(text) = reply.text {
            // If it is full, the viewer takes no answers, and is closed soon.
            let _ = self.ears.answers.try_send(text);
        }
    }
}

/// Why a message could not be read. `None`: the viewer is gone.
fn refused(error: &Error) -> Option<End> {
    match error.source()?.downcast_ref()? {
        Refusal::Capacity(_) => {
            let text = format!("a message is longer than {ORDER_LEN_MAX} bytes");
            Some((close_code::SIZE, text))
        }
        Refusal::Utf8(_) => Some((close_code::INVALID, "a text is not UTF-8".into())),
        Refusal::Protocol(error) => Some((close_code::PROTOCOL, error.to_string())),
        _ => None,
    }
}

/// The rate limit of messages: so many per second, and as many at once.
struct Pace {
    left: f64,
    since: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace { left: MESSAGES_PER_S, since: Instant::now() }
    }

    /// Waits, if messages came too fast.
    async fn wait(&mut self) {
        let earned = self.since.elapsed().as_secs_f64() * MESSAGES_PER_S;
        self.since = Instant::now();
        self.left = (self.left + earned).min(MESSAGES_PER_S) - 1.0;
        if self.left < 0.0 {
            sleep(Duration::from_secs_f64(-self.left / MESSAGES_PER_S)).await;
        }
    }
}
