//! Connections to other servers, by name, over TCP with or without TLS. Each has a mark that says
//! whether an answer has come over it.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::vec;

use futures_util::TryFutureExt;
use futures_util::future::MapOk;
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use sinew_flow::{Error, Pool};
use tokio::net::TcpStream;
use tower_service::Service;

/// What makes connections.
pub(in crate::http) type Connector = HttpsConnector<Tcp>;

/// Whom to trust: the authorities in a file, or those that browsers trust.
///
/// # Errors
/// The file cannot be read, or has no certificates.
pub(crate) fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let shown = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    for certificate in certificates.map_err(|error| format!("cannot read '{shown}': {error}"))? {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| format!("'{shown}' has a bad certificate: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("'{shown}' has no certificate in PEM"));
    }
    Ok(roots)
}

/// A connector that looks names up with `names`. Over TLS it offers HTTP/2 if `with_h2`.
pub(in crate::http) fn connector(roots: RootCertStore, names: Names, with_h2: bool) -> Connector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has all versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new_with_resolver(names);
    // Lets https pass: the layer above handles it.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    match with_h2 {
        true => builder.enable_all_versions().wrap_connector(Tcp(tcp)),
        false => builder.enable_http1().wrap_connector(Tcp(tcp)),
    }
}

/// Looks up names. It is made before its node has a worker, and so has no threads at first.
#[derive(Clone, Default)]
pub(in crate::http) struct Names(Arc<OnceLock<Pool>>);

/// A look-up of addresses that is under way.
type Found = Pin<Box<dyn Future<Output = Result<vec::IntoIter<SocketAddr>, Error>> + Send>>;

impl Names {
    /// From now on names are looked up on these threads.
    pub(in crate::http) fn attach(&self, pool: Pool) {
        // A node is attached once; the threads of all workers are the same.
        let _ = self.0.set(pool);
    }
}

impl Service<Name> for Names {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Error;
    type Future = Found;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Found {
        let pool = self.0.get().cloned().expect("a node is attached before its first packet");
        // The port is not known here; the caller puts it in.
        let ask = move || (name.as_str(), 0).to_socket_addrs();
        Box::pin(async move { pool.run_slow(ask).await?.map_err(Error::new) })
    }
}

/// Whether an answer has come over a connection. The answers and errors of the connection carry
/// this mark. Accesses are relaxed: one worker's thread sets and reads it.
pub(super) type Answered = Arc<AtomicBool>;

/// Makes a marked stream of a TCP stream.
type OfStream = fn(TokioIo<TcpStream>) -> MarkedStream;

/// Makes connections over TCP.
#[derive(Clone)]
pub(in crate::http) struct Tcp(HttpConnector<Names>);

impl Service<Uri> for Tcp {
    type Response = MarkedStream;
    type Error = <HttpConnector<Names> as Service<Uri>>::Error;
    type Future = MapOk<<HttpConnector<Names> as Service<Uri>>::Future, OfStream>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        self.0.call(to).map_ok(MarkedStream::new as OfStream)
    }
}

/// A connection over TCP with its mark.
pub(in crate::http) struct MarkedStream {
    stream: TokioIo<TcpStream>,
    answered: Answered,
}

impl MarkedStream {
    fn new(stream: TokioIo<TcpStream>) -> MarkedStream {
        MarkedStream { stream, answered: Answered::default() }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Connection for MarkedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(Arc::clone(&self.answered))
    }
}

impl Read for MarkedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, room)
    }
}

impl Write for MarkedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }
}
