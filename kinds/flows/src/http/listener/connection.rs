//! A connection: its socket, which notes what the client does, and what is spoken over it.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::mem::{MaybeUninit, replace};
use std::net::SocketAddr;
use std::ops::DerefMut;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::server::conn::http1::Parts;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sinew_flow::Local;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::begun::Begun;
use super::exchange::exchange;
use super::life::{Life, Round, Verdict};
use super::worker::Worker;

/// Most bytes that are read of a body that was refused, so that the client gets to read why.
const LINGER_BYTES_MAX: usize = 16 << 20;

/// An answer of at most so many bytes is copied, and goes to the kernel in one piece. The copy
/// costs less than a second piece would.
const JOINED_LEN_MAX: usize = 2048;

/// A socket that notes what the client does.
pub(super) struct Wire {
    stream: TcpStream,
    life: Rc<Life>,
    now: Rc<Cell<Round>>,
    /// Whether incoming bytes can be seen before they are read: not under TLS.
    watches: bool,
    /// The client sends no more.
    has_ended: bool,
    /// Bytes that may still be read after the end.
    linger_bytes: usize,
}

impl Wire {
    /// A connection's socket.
    pub(super) fn new(
        stream: TcpStream,
        life: Rc<Life>,
        now: Rc<Cell<Round>>,
        watches: bool,
    ) -> Wire {
        Wire { stream, life, now, watches, has_ended: false, linger_bytes: LINGER_BYTES_MAX }
    }

    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(_) => self.life.wrote(self.now.get()),
            Poll::Pending => self.life.stalls(self.now.get()),
        }
        polled
    }

    /// Reads on after the end. Otherwise the kernel would answer what the client still sends with a
    /// reset, which may overtake the answer.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        while self.linger_bytes > 0 {
            self.life.stalls(self.now.get());
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let read = buffer.filled().len();
            if read == 0 {
                break;
            }
            self.linger_bytes = self.linger_bytes.saturating_sub(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.life.read(self.now.get());
        if buffer.filled().len() == before && !self.has_ended {
            // The end is reported one turn later: hyper drops a request whose client has closed its
            // side, even one whose answer it would be given in this turn.
            self.has_ended = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let polled = if len <= JOINED_LEN_MAX {
            let mut room = [MaybeUninit::uninit(); JOINED_LEN_MAX];
            let mut joined = ReadBuf::uninit(&mut room);
            parts.iter().for_each(|part| joined.put_slice(part));
            Pin::new(&mut self.stream).poll_write(context, joined.filled())
        } else {
            Pin::new(&mut self.stream).poll_write_vectored(context, parts)
        };
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this when it has done all that it can. It reads nothing while a flow runs, so it
    /// is found out here whether the client has left and nobody waits for the answer.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.life.is_writing.set(false);
        if self.watches && self.life.awaits_answer() {
            let mut next = [MaybeUninit::uninit()];
            let seen = self.stream.poll_peek(context, &mut ReadBuf::uninit(&mut next))?;
            if seen == Poll::Ready(0) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        if self.life.unread.get() { self.linger(context) } else { Poll::Ready(Ok(())) }
    }
}

/// Goes on with a handshake, unless its connection is to end.
pub(super) async fn unless_ended<T>(
    worker: &Worker,
    life: &Life,
    handshake: impl Future<Output = T>,
) -> Option<T> {
    until_end(worker, life, pin!(handshake), |_| life.end_with(Verdict::Close)).await
}

/// Serves a connection until its end, or until another protocol goes on with it.
pub(super) async fn serve<W>(
    worker: &Rc<Worker>,
    life: &Rc<Life>,
    peer: SocketAddr,
    wire: W,
) -> Option<Local<'static, ()>>
where
    W: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut wire = Begun::new(wire);
    let Some(Ok(is_http2)) = unless_ended(worker, life, wire.is_http2()).await else { return None };
    let (wire, servers) = (TokioIo::new(wire), &worker.servers);
    let service = service_fn(|request| exchange(worker, life, peer, request));
    // An error at the end of a connection is not reported: it is the client's affair, and malformed
    // requests have had their answer.
    if is_http2 {
        // Boxed, so that a connection of HTTP/1 has no room for it.
        let connection = Box::pin(servers.http2.serve_connection(wire, service));
        until_end(worker, life, connection, |connection| connection.graceful_shutdown()).await;
    } else {
        let mut connection = servers.http1.serve_connection(wire, service);
        let served = until_end(worker, life, Pin::new(&mut connection), |it| {
            it.graceful_shutdown();
        });
        if let Some(Ok(())) = served.await
            && let Some(upgrade) = life.upgrade.take()
        {
            let Parts { io, read_buf, .. } = connection.into_parts();
            // The connection counts as a request that is under way, and holds no place among
            // requests.
            life.begin(false);
            // A copy, because otherwise the buffer of the head would be kept as long as the
            // connection.
            let first = read_buf.to_vec();
            return Some(upgrade.begin(Box::new(io.into_inner().into_wire()), first));
        }
    }
    None
}

/// Goes on with a connection over which another protocol is spoken.
pub(super) async fn serve_upgraded(worker: &Worker, life: &Life, goes_on: Local<'static, ()>) {
    until_end(worker, life, goes_on, |_| {}).await;
    life.end(true, worker.now());
}

/// Goes on with a connection until its end, or until its `life` closes it; `drain` lets it take no
/// more requests.
async fn until_end<C: Future + ?Sized>(
    worker: &Worker,
    life: &Life,
    mut connection: Pin<impl DerefMut<Target = C>>,
    drain: impl Fn(Pin<&mut C>),
) -> Option<C::Output> {
    let mut draining = false;
    poll_fn(|context| {
        let mut verdict = life.verdict(context);
        if verdict == Verdict::Drain && !replace(&mut draining, true) {
            drain(connection.as_mut());
            verdict = life.verdict(context);
        }
        if verdict == Verdict::Close {
            return Poll::Ready(None);
        }
        let polled = connection.as_mut().poll(context).map(Some);
        // To read, write and compress is a sign of the worker's life too.
        worker.outlet.lives();
        polled
    })
    .await
}
