//! The connections of the people who look, in the first worker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_control::tap::{self, TapLine, TapSocket};
use sinew_control::{Answer, REQUEST_LEN_MAX, Request};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Figures;

use super::{Tap, Taps};

/// How long a connection may take to send its request, and to take a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at once: more than taps, so that one too many is told why it is refused.
const CONNECTIONS_MAX: usize = 16;
/// Pause after the kernel refused to accept a connection.
const DEAF: Duration = Duration::from_millis(100);

/// Serves the taps of a domain whose nodes have these figures, until this is dropped.
pub(crate) async fn serve(
    socket: TapSocket,
    taps: Arc<Taps>,
    figures: Arc<Figures>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(socket.listener()?)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                // The folder's permissions keep other users out; this is a second check.
                Ok((stream, _)) if tap::is_ours(&stream) => {
                    let (taps, figures) = (Arc::clone(&taps), Arc::clone(&figures));
                    connections.spawn_local(attend(stream, taps, figures));
                }
                Ok(_) => {}
                Err(_) => sleep(DEAF).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A tap that is open until this is dropped.
struct Open {
    taps: Arc<Taps>,
    tap: Arc<Tap>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.taps.close(&self.tap);
    }
}

/// Serves one connection: reads the request, and shows what it asks for until the other end is
/// gone.
async fn attend(stream: UnixStream, taps: Arc<Taps>, figures: Arc<Figures>) {
    let (input, mut output) = stream.into_split();
    let mut orders = Orders { input: BufReader::new(input), line: Vec::new() };
    let is_node = |name: &str| figures.has(name);
    let asked = match timeout(PATIENCE, orders.next()).await {
        Ok(Some(Ok(Request::Tap(asked)))) => taps.open(asked, is_node),
        Ok(Some(Ok(_))) => {
            Err(r#"expected {"sinew": 1, "request": "tap", "node": …} first"#.into())
        }
        Ok(Some(Err(text))) => Err(text),
        // The other end has sent no request, or is gone.
        Ok(None) | Err(_) => return,
    };
    let (tap, mut lines) = match asked {
        Ok(opened) => opened,
        Err(text) => {
            say(&mut output, &Answer::Error(text)).await;
            return;
        }
    };
    let open = Open { taps, tap };
    let opened = Answer::Done { text: "the tap is open".into(), newest: 0 };
    if say(&mut output, &opened).await.is_none() {
        return;
    }
    loop {
        let answer = tokio::select! {
            Some(line) = lines.recv() => Answer::Tap(line),
            order = orders.next() => match order {
                None => return,
                Some(Ok(order)) => match carry_out(&open.tap, &order) {
                    Ok(()) => continue,
                    Err(text) => Answer::Error(text),
                },
                Some(Err(text)) => Answer::Error(text),
            },
        };
        let lost = open.tap.take_lost();
        let said = match lost {
            0 => say(&mut output, &answer).await,
            lost => {
                let first = say(&mut output, &Answer::Tap(TapLine::Lost(lost))).await;
                if first.is_some() { say(&mut output, &answer).await } else { None }
            }
        };
        if said.is_none() {
            return;
        }
    }
}

fn carry_out(tap: &Tap, order: &Request) -> Result<(), String> {
    let is_held = match order {
        Request::Step {} => tap.go_on(true),
        Request::Go {} => tap.go_on(false),
        _ => return Err("this tap is open; expected a request 'step' or 'go'".into()),
    };
    if is_held { Ok(()) } else { Err("no packet is held".into()) }
}

/// Sends a line; `None` if the other end does not take it.
async fn say(output: &mut OwnedWriteHalf, answer: &Answer) -> Option<()> {
    timeout(PATIENCE, output.write_all(&tap::line(answer))).await.ok()?.ok()
}

/// The lines that the other end sends.
struct Orders {
    input: BufReader<OwnedReadHalf>,
    /// The bytes of a line that is not complete yet.
    line: Vec<u8>,
}

impl Orders {
    /// The next line; `None` at the end. The future may be dropped while it waits.
    async fn next(&mut self) -> Option<Result<Request, String>> {
        let room = (REQUEST_LEN_MAX - self.line.len()) as u64;
        (&mut self.input).take(room).read_until(b'\n', &mut self.line).await.ok()?;
        if self.line.last() != Some(&b'\n') {
            return None;
        }
        Some(tap::read(&std::mem::take(&mut self.line)))
    }
}
