//! Bare HTTP servers that answer `GET /ping` with `pong`, as graphs/http/ping.yaml does.
//!
//! ```text
//! sinew-rivals-http hyper|axum --port 8001 [--workers 2 | --shared] [--database URL]
//! ```
//!
//! axum also answers lines of JSON with lines of JSON (`POST /lines`). With a database, it answers
//! `GET /items/7` with that row of its table `items`.
//!
//! Each worker is a thread with connections of its own, which the kernel divides among them. Ours
//! works in this way, and it is the cheapest way to serve. With `--shared` all workers take
//! connections from one another, as tokio does by default. Nothing limits what clients may do.

mod lines;
mod rows;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::process::ExitCode;
use std::{io, thread};

use axum::routing::get;
use clap::{Parser, ValueEnum};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// Most connections that may wait to be accepted: the load source opens 1024 at once.
const BACKLOG: i32 = 4096;

/// Serve `GET /ping` until killed.
#[derive(Parser)]
struct Arguments {
    /// Which server
    server: Server,
    /// Port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Threads
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Let the threads share all connections
    #[arg(long)]
    shared: bool,
    /// Answer with rows of this database, too: sqlite://PATH or postgres://...
    #[arg(long)]
    database: Option<String>,
}

/// A server.
#[derive(Clone, Copy, ValueEnum)]
enum Server {
    /// hyper, and nothing else
    Hyper,
    /// axum
    Axum,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let &Arguments { server, port, workers, shared, ref database } = arguments;
    let database = database.as_deref();
    if shared {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        return runtime.block_on(serve(server, listen(port)?, database));
    }
    let listeners = (0..workers).map(|_| listen(port)).collect::<io::Result<Vec<_>>>()?;
    let serving = listeners.into_iter().map(|listener| {
        let database = database.map(str::to_owned);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(server, listener, database.as_deref()))
        })
    });
    let serving: Vec<_> = serving.collect();
    serving.into_iter().try_for_each(|thread| {
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))
    })
}

fn listen(port: u16) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn serve(server: Server, listener: StdListener, database: Option<&str>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    match server {
        Server::Hyper => loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(pong));
                // The server ignores a client that leaves.
                let _ = connection.await;
            });
        },
        Server::Axum => {
            let pong = || async { "pong" };
            let mut router = axum::Router::new().route("/ping", get(pong)).merge(lines::router());
            if let Some(url) = database {
                router = router.merge(rows::router(url).await?);
            }
            axum::serve(listener, router).await
        }
    }
}

async fn pong(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
    let is_ping = request.method() == Method::GET && request.uri().path() == "/ping";
    let mut response = Response::new(Full::new(Bytes::from_static(b"pong")));
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    if !is_ping {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}
