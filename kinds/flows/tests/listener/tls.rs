//! TLS: certificates that are right, and those that are not.

use std::fs::write;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd, generate_simple_self_signed};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::server::{Client, Server, get, source};

struct Files {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn of(certificate: &rcgen::Certificate, key: &KeyPair) -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path().join("cert.pem"), certificate.pem()).expect("written");
        write(folder.path().join("key.pem"), key.serialize_pem()).expect("written");
        Files { folder, certificate: certificate.der().clone() }
    }

    fn good() -> Files {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Files::of(&cert, &signing_key)
    }

    fn expired() -> Files {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        let key = KeyPair::generate().expect("a key");
        Files::of(&params.self_signed(&key).expect("a certificate"), &key)
    }

    fn options(&self) -> String {
        options(&self.folder.path().join("cert.pem"), &self.folder.path().join("key.pem"))
    }

    fn client(&self, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().expect("versions");
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        Arc::new(client)
    }
}

fn options(certificate: &Path, key: &Path) -> String {
    format!("certificate: {}, key: {}", certificate.display(), key.display())
}

fn ask(server: &Server, files: &Files) -> Result<String, std::io::Error> {
    let name = "localhost".try_into().expect("a name");
    let tls = ClientConnection::new(files.client(&[b"http/1.1"]), name).expect("a client");
    let mut stream = StreamOwned::new(tls, server.client().stream.into_inner());
    let request = get("/json").replace("Host: test\r\n", "Host: test\r\nConnection: close\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_request_over_tls_is_answered() {
    let files = Files::good();
    let server = Server::start(&files.options());
    let answer = ask(&server, &files).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"scheme\":\"https\""), "{answer}");
}

#[test]
fn a_client_chooses_http2_in_the_handshake() {
    let files = Files::good();
    let server = Server::start(&files.options());
    let name = "localhost".try_into().expect("a name");
    let tls = ClientConnection::new(files.client(&[b"h2", b"http/1.1"]), name).expect("a client");
    let mut stream = StreamOwned::new(tls, server.client().stream.into_inner());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    std::io::Write::write_all(&mut stream, preface).expect("sent");
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
    assert!(ask(&server, &files).is_ok());
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
    let certificate = one.folder.path().join("cert.pem");
    let options = options(&certificate, &other.folder.path().join("key.pem"));
    let refusals = source(&options).err().expect("refused");
    assert!(refusals[0].message.contains("key.pem"), "{refusals:?}");
    assert!(refusals[0].help.contains("must be that of this key"), "{refusals:?}");
    assert!(refusals[0].span.is_some());
}

#[test]
fn files_that_are_missing_or_no_pem_are_refused() {
    let files = Files::good();
    let (certificate, key) =
        (files.folder.path().join("cert.pem"), files.folder.path().join("key.pem"));
    let refused = |certificate: &Path, key: &Path| {
        let refusals = source(&options(certificate, key)).err().expect("refused");
        refusals[0].to_string()
    };
    let missing = refused(&files.folder.path().join("none.pem"), &key);
    assert!(missing.contains("none.pem"), "{missing}");
    let swapped = refused(&key, &certificate);
    assert!(swapped.contains("there is no certificate in it"), "{swapped}");
    let alone = source(&format!("key: {}", key.display())).err().expect("refused");
    assert_eq!(alone[0].message, "there is a 'key', and no 'certificate'");
}

#[test]
fn an_expired_certificate_is_served_and_refused_by_clients() {
    let files = Files::expired();
    let server = Server::start(&files.options());
    let error = ask(&server, &files).expect_err("expired");
    assert!(error.to_string().contains("xpired"), "{error}");
}
