//! TLS to a PostgreSQL server, by rustls. The server's certificate is always checked.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use crate::http::client::roots;

/// The authorities to trust.
#[derive(Clone)]
pub(super) struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Trusts the authorities in a file, or those that browsers trust.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificates.
    pub(super) fn new(ca: Option<&Path>) -> Result<ClientTls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has all versions")
            .with_root_certificates(roots(ca)?)
            .with_no_client_auth();
        Ok(ClientTls(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for ClientTls {
    type Stream = Encrypted<S>;
    type TlsConnect = ToServer;
    type Error = Infallible;

    /// Also called without TLS. A local socket has a path, which is not a valid server name, so the
    /// error is kept for later.
    fn make_tls_connect(&mut self, host: &str) -> Result<ToServer, Infallible> {
        Ok(ToServer(self.0.clone().into(), ServerName::try_from(host.to_owned())))
    }
}

/// A TLS connection to this server that is to be made.
pub(super) struct ToServer(TlsConnector, Result<ServerName<'static>, InvalidDnsNameError>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToServer {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let ToServer(connector, name) = self;
        Box::pin(async move {
            let name = name.map_err(io::Error::other)?;
            connector.connect(name, stream).await.map(Encrypted)
        })
    }
}

/// A connection with TLS.
pub(super) struct Encrypted<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
