//! The seal of the hosts that share a secret: behind each message stands a keyed hash of it,
//! HMAC-SHA-256 (RFC 2104). Who does not have the secret can neither make a message nor change one.

use std::fs;
use std::path::Path;

use ring::hmac;

use crate::not_taken::NotTaken;

/// Shortest secret, in bytes.
const SECRET_MIN: usize = 32;
/// Longest one: more is the wrong file.
const SECRET_MAX: u64 = 4096;
/// Bytes of a seal.
const SEAL_LEN: usize = 32;

/// Seals what is sent, and opens what comes. Without a secret it does nothing.
pub(crate) struct Seal(Option<hmac::Key>);

impl Seal {
    /// With the secret in a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no secret.
    pub(crate) fn read(file: Option<&Path>) -> Result<Seal, String> {
        let Some(file) = file else { return Ok(Seal(None)) };
        let shown = file.display();
        let wrong = |error| format!("no secret in '{shown}': {error}");
        let length = fs::metadata(file).map_err(wrong)?.len();
        if length > SECRET_MAX {
            return Err(format!("'{shown}' has {length} bytes; a secret has {SECRET_MAX} at most"));
        }
        let secret = fs::read(file).map_err(wrong)?;
        if secret.len() < SECRET_MIN {
            return Err(format!(
                "'{shown}' has {} bytes; a secret has {SECRET_MIN} at least: make one with \
                 'openssl rand -hex 32'",
                secret.len()
            ));
        }
        Ok(Seal(Some(hmac::Key::new(hmac::HMAC_SHA256, &secret))))
    }

    /// Bytes that it adds.
    pub(crate) fn len(&self) -> usize {
        if self.0.is_some() { SEAL_LEN } else { 0 }
    }

    /// The bytes with their seal.
    pub(crate) fn close(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(key) = &self.0 {
            bytes.extend_from_slice(hmac::sign(key, &bytes).as_ref());
        }
        bytes
    }

    /// The bytes without their seal.
    ///
    /// # Errors
    /// They are not what somebody with the secret has sealed.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], NotTaken> {
        let Some(key) = &self.0 else { return Ok(bytes) };
        let at = bytes.len().checked_sub(SEAL_LEN).ok_or(NotTaken::Unsealed)?;
        let (bytes, seal) = bytes.split_at(at);
        hmac::verify(key, bytes, seal).map_err(|_| NotTaken::Unsealed)?;
        Ok(bytes)
    }
}

impl std::fmt::Debug for Seal {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seal({})", if self.0.is_some() { "with a secret" } else { "without" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_secret_makes_or_changes_a_message() {
        let key = |secret: &[u8]| Seal(Some(hmac::Key::new(hmac::HMAC_SHA256, secret)));
        let (ours, theirs) = (key(&[1; 32]), key(&[2; 32]));
        let sealed = ours.close(b"message".to_vec());
        assert_eq!(sealed.len(), 7 + ours.len());
        assert_eq!(ours.open(&sealed), Ok(&b"message"[..]));
        assert_eq!(theirs.open(&sealed), Err(NotTaken::Unsealed));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(ours.open(&changed), Err(NotTaken::Unsealed), "byte {at}");
            assert_eq!(ours.open(&sealed[..at]), Err(NotTaken::Unsealed), "{at} bytes");
        }
        let none = Seal(None);
        assert_eq!(none.open(&none.close(b"message".to_vec())), Ok(&b"message"[..]));
        assert_eq!(format!("{ours:?}"), "Seal(with a secret)");
    }

    /// The test vector of RFC 4231, test case 2, with its short key.
    #[test]
    fn the_seal_is_that_of_the_rfc() {
        let key = Seal(Some(hmac::Key::new(hmac::HMAC_SHA256, b"Jefe")));
        let sealed = key.close(b"what do ya want for nothing?".to_vec());
        let seal: String = sealed[28..].iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(seal, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_file_without_a_secret_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hosts.key");
        let said = |file: &Path| Seal::read(Some(file)).expect_err("no secret");
        assert!(said(&file).contains("no secret in"));
        for (bytes, words) in [(31, "has 31 bytes"), (5000, "4096 at most")] {
            fs::write(&file, vec![1; bytes]).expect("written");
            assert!(said(&file).contains(words), "{}", said(&file));
        }
        fs::write(&file, [1; 32]).expect("written");
        assert_eq!(Seal::read(Some(&file)).map(|it| it.len()), Ok(SEAL_LEN));
    }
}
