//! TLS: which servers the client trusts.

use std::io::Write;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio_rustls::TlsAcceptor;

use super::server::{Server, echo_on};
use super::{body, fail, get, run};

/// A server with a certificate for `name`, and the file with the authority that signed it.
async fn server(name: &str) -> (Server, NamedTempFile) {
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let signed = authority.self_signed(&authority_key).expect("a certificate");
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(signed.pem().as_bytes()).expect("room in it");

    let key = KeyPair::generate().expect("a key");
    let issuer = Issuer::new(authority, authority_key);
    let parameters = CertificateParams::new([name.to_owned()]).expect("parameters");
    let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has all versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a key that matches");
    settings.alpn_protocols = vec![b"h2".into(), b"http/1.1".into()];
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let server = Server::raw(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            echo_on(acceptor.accept(stream).await?).await;
            Ok(())
        }
    })
    .await;
    (server, file)
}

#[test]
fn a_server_of_a_known_authority_is_asked_over_http_2_where_it_offers_that() {
    run(async {
        let (server, file) = server("localhost").await;
        let url = format!("url: 'https://localhost:{}/'", server.address.port());
        let url = format!("{url}, ca: '{}'", file.path().display());
        assert_eq!(body(&get(&url).await)["protocol"], "HTTP/2.0");
        assert_eq!(body(&get(&format!("{url}, protocol: http1")).await)["protocol"], "HTTP/1.1");
        assert_eq!(body(&get(&format!("{url}, protocol: h2")).await)["protocol"], "HTTP/2.0");
    });
}

#[test]
fn a_server_of_another_name_or_an_unknown_authority_is_not_asked() {
    run(async {
        let (stranger, file) = server("elsewhere").await;
        let url = format!("url: 'https://localhost:{}/'", stranger.address.port());
        let error = fail(&format!("{url}, ca: '{}'", file.path().display())).await;
        assert_eq!(error.status(), 502);
        assert!(error.text().contains("not valid for name"), "{error}");
        let (unknown, _file) = server("localhost").await;
        let error = fail(&format!("url: 'https://localhost:{}/'", unknown.address.port())).await;
        assert!(error.text().contains("UnknownIssuer"), "{error}");
    });
}

#[test]
fn a_file_without_certificates_is_refused() {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(b"nothing").expect("room in it");
    let graph = super::graph(&format!("url: 'https://h/', ca: '{}'", file.path().display()));
    let refusals = super::refusals(&graph);
    assert!(refusals[0].message.contains("has no certificate in PEM"), "{refusals:?}");
}
