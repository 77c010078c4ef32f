//! TLS: the certificate and its key, read and checked before the start.

use std::fmt::Display;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use sinew_core::{Parameters, Refusal};
use tokio_rustls::TlsAcceptor;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error as Invalid, KeyUsage};

/// The protocols spoken after the handshake, best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

const DAY_S: u64 = 86_400;

/// TLS as the spec says; there is none if the spec names no certificate.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// The files that it was read from.
    pub(super) files: [PathBuf; 2],
    /// What the user must know of the certificate.
    note: Option<String>,
}

impl Tls {
    /// Reads certificate and key.
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Option<Tls>, Vec<Refusal>> {
        let given = |name| !parameters.text(name).is_empty();
        match (given("certificate"), given("key")) {
            (false, false) => Ok(None),
            (true, true) => read(parameters).map(Some).map_err(|refusal| vec![refusal]),
            (has_certificate, _) => {
                let (there, missing) = match has_certificate {
                    true => ("certificate", "key"),
                    false => ("key", "certificate"),
                };
                let text = format!("there is a '{there}', and no '{missing}'");
                let help = format!("TLS needs both: add '{missing}', a PEM file");
                Err(vec![Refusal::new(parameters.span(there), text, help)])
            }
        }
    }

    /// Prints what the user must know of the certificate.
    pub(super) fn tell(&self) {
        if let Some(note) = &self.note {
            // If stderr is closed, the clients will say it.
            let _ = writeln!(stderr(), "{note}");
        }
    }
}

fn read(parameters: &Parameters<'_>) -> Result<Tls, Refusal> {
    let refused = |name: &str, error: &dyn Display, help: &str| {
        let file = parameters.path(name);
        Refusal::new(parameters.span(name), format!("{}: {error}", file.display()), help)
    };
    let chain = chain(&parameters.path("certificate"));
    let chain = chain.map_err(|error| refused("certificate", &error, "expected PEM"))?;
    let key = PrivateKeyDer::from_pem_file(parameters.path("key"));
    let key = key.map_err(|error| refused("key", &error, "expected a private key in PEM"))?;
    let note = note(&parameters.path("certificate"), &chain);
    let provider = Arc::new(ring::default_provider());
    let versions =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let made = versions.and_then(|it| it.with_no_client_auth().with_single_cert(chain, key));
    let mut server = made.map_err(|error| {
        let help = "the first certificate of the file must be that of this key";
        refused("key", &error, help)
    })?;
    server.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    let files = ["certificate", "key"].map(|name| parameters.path(name));
    Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(server)), files, note })
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| error.to_string())?;
    match chain.is_empty() {
        true => Err("there is no certificate in it".to_owned()),
        false => Ok(chain),
    }
}

/// A note if the certificate is not valid at this time. The rest of its path is for clients to
/// judge.
fn note(file: &Path, chain: &[CertificateDer<'_>]) -> Option<String> {
    let certificate = EndEntityCert::try_from(chain.first()?).ok()?;
    let usage = KeyUsage::server_auth();
    let now = UnixTime::now();
    let verified =
        certificate.verify_for_usage(ALL_VERIFICATION_ALGS, &[], &[], now, usage, None, None);
    let days = |from: UnixTime, to: UnixTime| to.as_secs().saturating_sub(from.as_secs()) / DAY_S;
    let what = match verified.err()? {
        Invalid::CertExpired { not_after, .. } => {
            format!("expired {} days ago", days(not_after, now))
        }
        Invalid::CertNotValidYet { not_before, .. } => {
            format!("is valid in {} days only", days(now, not_before))
        }
        _ => return None,
    };
    let file = file.display();
    Some(format!("the certificate {file} {what}: clients will refuse it; renew it"))
}
