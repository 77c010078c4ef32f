//! A connection of which enough has been read to tell HTTP/2 from HTTP/1. What is read from HTTP/1
//! passes through its framing.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;

/// What a client of HTTP/2 begins with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose first bytes are read twice: by us, and by the code that serves the client.
pub(super) struct Begun<W> {
    wire: W,
    first: [u8; PREFACE.len()],
    /// How many first bytes there are.
    len: usize,
    /// None for HTTP/2.
    framing: Option<Framing>,
}

impl<W: AsyncRead + Unpin> Begun<W> {
    /// A connection of which nothing has been read.
    pub(super) fn new(wire: W) -> Begun<W> {
        Begun { wire, first: [0; PREFACE.len()], len: 0, framing: None }
    }

    /// The connection itself, for another protocol from here on.
    pub(super) fn into_wire(self) -> W {
        self.wire
    }

    /// Whether it begins as HTTP/2 does.
    pub(super) async fn is_http2(&mut self) -> io::Result<bool> {
        while self.len < PREFACE.len() && PREFACE.starts_with(&self.first[..self.len]) {
            let mut room = ReadBuf::new(&mut self.first[self.len..]);
            poll_fn(|context| Pin::new(&mut self.wire).poll_read(context, &mut room)).await?;
            let read = room.filled().len();
            if read == 0 {
                break;
            }
            self.len += read;
        }
        let is_http2 = self.first[..self.len] == *PREFACE;
        self.framing = (!is_http2).then(Framing::new);
        Ok(is_http2)
    }

    /// Gives the first bytes and what comes after them in one read. For a head that comes in two
    /// reads, hyper makes the buffer twice as large until the connection ends.
    fn poll_all(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.len == 0 {
            return Pin::new(&mut self.wire).poll_read(context, buffer);
        }
        let now = self.len.min(buffer.remaining());
        buffer.put_slice(&self.first[..now]);
        self.first.copy_within(now.., 0);
        self.len -= now;
        if self.len == 0 && buffer.remaining() > 0 {
            // If nothing more has come, or the end has, the next read says so.
            let _ = Pin::new(&mut self.wire).poll_read(context, buffer)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncRead + Unpin> AsyncRead for Begun<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if !self.framing.as_ref().is_some_and(Framing::has_refused) {
            ready!(self.poll_all(context, buffer))?;
        }
        if let Some(framing) = &mut self.framing {
            framing.pass(buffer, before);
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Begun<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::runtime::Builder;

    use super::*;

    /// Whether what comes in these pieces is HTTP/2; and what is read after that.
    fn told(pieces: &[&[u8]]) -> (bool, Vec<u8>) {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (mut client, server) = duplex(1024);
            let (mut server, mut all) = (Begun::new(server), Vec::new());
            let writes = async {
                for piece in pieces {
                    client.write_all(piece).await.expect("room");
                    tokio::task::yield_now().await;
                }
                drop(client);
            };
            let reads = async {
                let is_http2 = server.is_http2().await.expect("no error");
                server.read_to_end(&mut all).await.expect("no error");
                is_http2
            };
            let (is_http2, ()) = futures_util::future::join(reads, writes).await;
            (is_http2, all)
        })
    }

    #[test]
    fn the_preface_tells_and_nothing_is_lost() {
        let http2 = [PREFACE, b"rest"].concat();
        assert_eq!(told(&[&http2]), (true, http2.clone()));
        assert_eq!(told(&[&http2[..3], &http2[3..20], &http2[20..]]), (true, http2));
        for text in
            ["", "P", "PRI", "GET / HTTP/1.1\r\nhost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX"]
        {
            assert_eq!(told(&[text.as_bytes()]), (false, text.as_bytes().to_vec()), "{text}");
        }
    }
}
