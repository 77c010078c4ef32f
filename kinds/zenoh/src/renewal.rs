//! Whether the files of this host's certificate were replaced while it runs. Zenoh reads them when
//! a session is opened, and a port of QUIC is not free at once when one is closed. So a host with
//! new files ends its process; the supervisor starts it again at once.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use crate::certificate;
use crate::setting::{Setting, TlsFiles};

/// The files are judged when they have not changed for this long: they are replaced one by one.
const SETTLES: Duration = Duration::from_secs(1);

/// What a file is now: its number, length, and when it was written.
type Version = Option<(u64, u64, i64, i64)>;

/// The files, and what they were when they were looked at last.
pub(crate) struct Renewal {
    files: Option<TlsFiles>,
    names: Vec<String>,
    listens: bool,
    versions: [Version; 3],
    /// Since when there are new ones that were not judged.
    changed: Option<Instant>,
}

impl Renewal {
    /// With the files as they are now.
    pub(crate) fn new(setting: &Setting) -> Renewal {
        let files = setting.tls.clone();
        let versions = files.as_ref().map(versions).unwrap_or_default();
        let (names, listens) = (setting.own_names(), setting.listen.is_some());
        Renewal { files, names, listens, versions, changed: None }
    }

    /// One look. Returns whether there is a new certificate that is good.
    ///
    /// # Errors
    /// There is a new one that is not good, and why: once.
    pub(crate) fn look(&mut self, now: Instant) -> Result<bool, String> {
        let Some(files) = &self.files else { return Ok(false) };
        let versions = versions(files);
        if versions != self.versions {
            (self.versions, self.changed) = (versions, Some(now));
        }
        if self.changed.take_if(|since| now.duration_since(*since) >= SETTLES).is_none() {
            return Ok(false);
        }
        certificate::check(files, &self.names, self.listens)?;
        Ok(true)
    }
}

fn versions(TlsFiles { authority, certificate, key }: &TlsFiles) -> [Version; 3] {
    [authority, certificate, key].map(|file| {
        let it = fs::metadata(file).ok()?;
        Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    use super::*;
    use crate::setting::Peer;

    /// An authority, and the files of a host that it has signed.
    fn write(folder: &Path, host: &str) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let authority = authority.expect("an authority");
        let mut params = CertificateParams::new(vec!["a.local".into()]).expect("a name");
        // The CN of the subject, by its number.
        params.distinguished_name.push(DnType::from_oid(&[2, 5, 4, 3]), host);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &authority).expect("a certificate");
        let put = |name: &str, text: String| fs::write(folder.join(name), text).expect("a file");
        put("ca.pem", authority.pem());
        put("a.pem", signed.pem());
        put("a.key", key.serialize_pem());
    }

    #[test]
    fn a_new_certificate_is_seen_once_it_is_whole_and_a_wrong_one_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "a");
        let file = |name: &str| folder.path().join(name);
        let tls =
            TlsFiles { authority: file("ca.pem"), certificate: file("a.pem"), key: file("a.key") };
        let setting = Setting {
            graph: "g".into(),
            host: "a".into(),
            version: 1,
            listen: None,
            router: None,
            peers: vec![Peer { name: "b".into(), address: None, calls_router: false }],
            tls: Some(tls),
            secret: None,
            outgoing: vec![],
            incoming: vec![],
            calls: vec![],
            called: vec![],
            now_ns: || 0,
        };
        let (mut renewal, start) = (Renewal::new(&setting), Instant::now());
        let mut at = |s: u64| renewal.look(start + Duration::from_secs(s));
        assert_eq!(at(1), Ok(false));
        write(folder.path(), "b");
        assert_eq!(at(2), Ok(false), "it may not be whole");
        let said = at(3).expect_err("of another host");
        assert!(said.contains("CN is 'b', this host is 'a'"), "{said}");
        assert_eq!(at(4), Ok(false), "told once");
        fs::remove_file(file("a.key")).expect("it is there");
        assert_eq!(at(5), Ok(false));
        write(folder.path(), "a");
        assert_eq!([at(6), at(7), at(8)], [Ok(false), Ok(true), Ok(false)]);
    }
}
