//! Checks this host's own certificate before anybody else sees it. With a wrong one no host would
//! join, and zenoh would try again for ever, without an error.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate};

use crate::setting::TlsFiles;

/// Checks that a host may show its certificate. It must be valid now and signed by the authority,
/// bear one of the host's `names`, and belong to the host's key. If the host listens, it must be
/// valid for an address, too.
pub(crate) fn check(files: &TlsFiles, names: &[String], listens: bool) -> Result<(), String> {
    let authority = certificates(&files.authority)?;
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| format!("no key in '{}': {error}", files.key.display()))?;
    let shown = files.certificate.display();
    let (_, leaf) = X509Certificate::from_der(&chain[0])
        .map_err(|error| format!("no certificate in '{shown}': {error}"))?;
    named(&leaf, names).map_err(|error| format!("'{shown}': {error}"))?;
    in_time(&leaf).map_err(|error| format!("'{shown}': {error}"))?;

    let mut roots = RootCertStore::empty();
    let (_, refused) = roots.add_parsable_certificates(authority);
    if refused > 0 {
        return Err(format!(
            "'{}': {refused} certificates are not of an authority",
            files.authority.display()
        ));
    }
    let (roots, provider) = (Arc::new(roots), Arc::new(default_provider()));
    let (now, rest) = (UnixTime::now(), &chain[1..]);
    let unknown = |error: rustls::Error| {
        format!("'{shown}' and the authority '{}': {error}", files.authority.display())
    };
    let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
    let verifier = builder.build().map_err(|error| format!("'{shown}': {error}"))?;
    verifier.verify_client_cert(&chain[0], rest, now).map_err(unknown)?;
    if listens {
        let name = address(&leaf).ok_or_else(|| {
            format!(
                "'{shown}' names no address, so no host can connect to this one; sign it with its \
                 address as subject alternative name"
            )
        })?;
        let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
        let verifier = builder.build().map_err(|error| format!("'{shown}': {error}"))?;
        verifier.verify_server_cert(&chain[0], rest, &name, &[], now).map_err(unknown)?;
    }
    CertifiedKey::from_der(chain, key, &provider)
        .map(|_| ())
        .map_err(|error| format!("'{}' is not the key of '{shown}': {error}", files.key.display()))
}

/// All certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| format!("no certificate in '{}': {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if found.is_empty() {
        return Err(format!("no certificate in '{}'", path.display()));
    }
    Ok(found)
}

/// Checks the CN of the subject, by which the other hosts, and a router, know a host.
fn named(leaf: &X509Certificate<'_>, names: &[String]) -> Result<(), String> {
    let host = &names[0];
    let name = leaf.subject().iter_common_name().next().and_then(|it| it.as_str().ok());
    match name {
        Some(name) if names.iter().any(|it| it == name) => Ok(()),
        Some(name) => Err(format!("its subject's CN is '{name}', this host is '{host}'")),
        None => Err(format!("it has no CN; sign one for '{host}'")),
    }
}

fn in_time(leaf: &X509Certificate<'_>) -> Result<(), String> {
    let validity = leaf.validity();
    let now = x509_parser::time::ASN1Time::now();
    if now > validity.not_after {
        return Err(format!("it was valid until {}; sign a new one", validity.not_after));
    }
    if now < validity.not_before {
        return Err(format!("it is valid from {}; is the clock right?", validity.not_before));
    }
    Ok(())
}

/// The first address or name that the certificate is valid for.
fn address(leaf: &X509Certificate<'_>) -> Option<ServerName<'static>> {
    let names = leaf.extensions().iter().filter_map(|it| match it.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    names.flatten().find_map(|name| match name {
        GeneralName::DNSName(name) => ServerName::try_from((*name).to_owned()).ok(),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(Into::into));
            address.ok().map(|it| ServerName::IpAddress(it.into()))
        }
        _ => None,
    })
}
