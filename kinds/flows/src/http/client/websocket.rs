//! A websocket that a proxy passes on: bytes go both ways between two connections, whatever frames
//! they are.

use std::io;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sinew_flow::{At, Error};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::time::timeout;

use super::{BAD_GATEWAY, chain};
use crate::http::upgrade::{Upgrade, WEBSOCKET};

/// How long one side may still send after the other one has ended: a websocket does not stay half
/// open.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Has the listener pass on the bytes between its connection and `other`, until one of them ends or
/// the worker stops. Each direction holds 8 KiB, and reads no faster than it can write.
///
/// # Errors
/// Too many connections and streams of this worker are under way (503).
pub(super) fn pass_on(at: At<'_>, other: OnUpgrade) -> Result<(), Error> {
    let beside = at.beside(0)?;
    let upgrade = Upgrade::new(WEBSOCKET, move |wire, first| {
        Box::pin(beside.run(async move |at: At<'_>| {
            let other = other.await.map_err(|error| {
                let text = format_args!("the websocket did not begin: {}", chain(&error));
                Error::new(text).with_status(BAD_GATEWAY)
            })?;
            let (from_wire, to_wire) = split(wire);
            let (from_other, mut to_other) = split(TokioIo::new(other));
            let up = Box::pin(async {
                to_other.write_all(&first).await?;
                drop(first);
                pass(from_wire, to_other).await
            });
            let down = Box::pin(pass(from_other, to_wire));
            tokio::select! {
                () = at.retired() => {}
                () = until_one_ends(up, down) => {}
            }
            Ok(())
        }))
    });
    at.flow().leave(Box::new(upgrade));
    Ok(())
}

/// Passes on all bytes of one side, and then its end.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Runs both directions until one ends, and the other for a while longer. An error ends its
/// direction.
async fn until_one_ends(
    mut one: impl Future<Output = io::Result<()>> + Unpin,
    mut other: impl Future<Output = io::Result<()>> + Unpin,
) {
    let _ = tokio::select! {
        _ = &mut one => timeout(LAST_WORDS, other).await,
        _ = &mut other => timeout(LAST_WORDS, one).await,
    };
}
