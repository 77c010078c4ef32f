//! TLS: good certificates, and bad ones.

use std::fs::write;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::server::{Client, Server, get, source};

struct Files {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn good() -> Files {
        Files::with(|_| ())
    }

    /// A certificate for this machine, changed by `change`, and its key.
    fn with(change: impl FnOnce(&mut CertificateParams)) -> Files {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path().join("cert.pem"), certificate.pem()).expect("written");
        write(folder.path().join("key.pem"), key.serialize_pem()).expect("written");
        Files { folder, certificate: certificate.der().clone() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self) -> String {
        options(&self.path("cert.pem"), &self.path("key.pem"))
    }

    /// A connection of a client that trusts this certificate.
    fn connect(
        &self,
        server: &Server,
        protocols: &[&[u8]],
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().expect("versions");
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let name = "localhost".try_into().expect("a name");
        let tls = ClientConnection::new(Arc::new(client), name).expect("a client");
        StreamOwned::new(tls, server.client().stream.into_inner())
    }

    fn ask(&self, server: &Server) -> Result<String, std::io::Error> {
        let mut stream = self.connect(server, &[b"http/1.1"]);
        let request = get("/json").replace("Host: test\r\n", "Host: test\r\nConnection: close\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

fn options(certificate: &Path, key: &Path) -> String {
    format!("certificate: {}, key: {}", certificate.display(), key.display())
}

#[test]
fn a_request_over_tls_is_answered() {
    let files = Files::good();
    let server = Server::start(&files.options());
    let answer = files.ask(&server).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"scheme\":\"https\""), "{answer}");
}

#[test]
fn a_client_chooses_http2_in_the_handshake() {
    let files = Files::good();
    let server = Server::start(&files.options());
    let mut stream = files.connect(&server, &[b"h2", b"http/1.1"]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).expect("sent");
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("a frame");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(head[3], 4, "its settings");
}

#[test]
fn what_is_no_tls_is_refused_and_others_are_served() {
    let files = Files::good();
    let server = Server::start(&files.options());
    for garbage in [&get("/text"), "\x16\x03\x01\0\x05hello", &"\0".repeat(1000)] {
        let mut client = server.client();
        client.send(garbage);
        let mut rest = Vec::new();
        // The alert, if it came before the end.
        let _ = client.stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP"), "{garbage:?}");
    }
    assert!(files.ask(&server).is_ok());
}

#[test]
fn a_handshake_that_does_not_end_is_closed() {
    let files = Files::good();
    let server = Server::start(&format!("{}, head_deadline: 300ms", files.options()));
    let mut client: Client = server.client();
    client.send("\x16\x03");
    assert!(client.is_closed());
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let (one, other) = (Files::good(), Files::good());
    let options = options(&one.path("cert.pem"), &other.path("key.pem"));
    let refusals = source(&options).err().expect("refused");
    assert!(refusals[0].message.contains("key.pem"), "{refusals:?}");
    assert!(refusals[0].help.contains("must be that of this key"), "{refusals:?}");
    assert!(refusals[0].span.is_some());
}

#[test]
fn files_that_are_missing_or_no_pem_are_refused() {
    let files = Files::good();
    let (certificate, key) = (files.path("cert.pem"), files.path("key.pem"));
    let refused = |certificate: &Path, key: &Path| {
        let refusals = source(&options(certificate, key)).err().expect("refused");
        refusals[0].to_string()
    };
    let missing = refused(&files.path("none.pem"), &key);
    assert!(missing.contains("none.pem"), "{missing}");
    let swapped = refused(&key, &certificate);
    assert!(swapped.contains("there is no certificate in it"), "{swapped}");
    let alone = source(&format!("key: {}", key.display())).err().expect("refused");
    assert_eq!(alone[0].message, "there is a 'key', and no 'certificate'");
}

#[test]
fn an_expired_certificate_is_served_and_refused_by_clients() {
    let files = Files::with(|params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let server = Server::start(&files.options());
    let error = files.ask(&server).expect_err("expired");
    assert!(error.to_string().contains("xpired"), "{error}");
}
