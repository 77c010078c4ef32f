//! The keys by which tokens are checked: a secret, or public keys from PEM or JSON (RFC 7517).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use ring::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value as Json;

use super::{Algorithm, Curve, Way};

/// Most keys of a set. Each may have to be tried for a token that names no key.
const KEYS_MAX: usize = 16;

/// The object identifier of RSA in a key, with its parameters, in DER.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
/// Least length of RSA's modulus, in bytes.
const MODULUS_LEN_MIN: usize = 256;

/// Keys for one algorithm.
pub(in super::super) enum Keys {
    /// What both sides know.
    Secret(hmac::Key),
    /// What everybody may know.
    Public(Vec<PublicKey>),
}

/// A public key.
pub(in super::super) struct PublicKey {
    /// The name by which tokens ask for it.
    kid: Option<String>,
    form: Form,
    way: Way,
}

enum Form {
    /// A point of a curve, or RSA's key as it is in PEM.
    Bytes(Vec<u8>),
    /// RSA's modulus and exponent.
    Numbers(RsaPublicKeyComponents<Vec<u8>>),
}

impl Keys {
    /// Reads public keys: one in PEM, or one or a set of them in JSON.
    ///
    /// # Errors
    /// There is no key for the algorithm or there are too many, or the text is malformed.
    pub(in super::super) fn public(algorithm: &Algorithm, text: &[u8]) -> Result<Keys, String> {
        let way = algorithm.way;
        let word = algorithm.word;
        if !text.trim_ascii_start().starts_with(b"{") {
            let der = SubjectPublicKeyInfoDer::from_pem_slice(text);
            let der = der.map_err(|_| "expected '-----BEGIN PUBLIC KEY-----', or JSON")?;
            let bytes = unpacked(&der, way).ok_or_else(|| format!("no key for {word}"))?;
            return Ok(Keys::Public(vec![PublicKey { kid: None, form: Form::Bytes(bytes), way }]));
        }
        let json: Json = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let all = match json.get("keys") {
            Some(keys) => keys.as_array().ok_or("'keys' is not a list")?.as_slice(),
            None => std::slice::from_ref(&json),
        };
        let keys: Vec<PublicKey> =
            all.iter().filter_map(|key| of_json(key, algorithm)).take(KEYS_MAX + 1).collect();
        match keys.len() {
            0 => Err(format!("no key for {word}")),
            1..=KEYS_MAX => Ok(Keys::Public(keys)),
            _ => Err(format!("more than {KEYS_MAX} keys for {word}")),
        }
    }

    /// Whether one of the keys made this signature. A key with another name than `kid` is not
    /// tried.
    pub(super) fn verify(&self, kid: Option<&str>, signed: &[u8], signature: &[u8]) -> bool {
        match self {
            Keys::Secret(key) => hmac::verify(key, signed, signature).is_ok(),
            Keys::Public(keys) => {
                let is_meant = |key: &&PublicKey| match (kid, &key.kid) {
                    (Some(asked), Some(own)) => asked == own,
                    _ => true,
                };
                keys.iter().filter(is_meant).any(|key| key.verify(signed, signature))
            }
        }
    }

    /// How many keys may have to be tried.
    pub(in super::super) fn count(&self) -> usize {
        if let Keys::Public(keys) = self { keys.len() } else { 0 }
    }
}

impl PublicKey {
    fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        match (&self.form, self.way) {
            (Form::Bytes(bytes), Way::Rsa(way)) => {
                UnparsedPublicKey::new(way, bytes).verify(signed, signature).is_ok()
            }
            (Form::Bytes(bytes), Way::Curve(curve)) => {
                UnparsedPublicKey::new(curve.verifier, bytes).verify(signed, signature).is_ok()
            }
            (Form::Numbers(numbers), Way::Rsa(way)) => {
                numbers.verify(way, signed, signature).is_ok()
            }
            (Form::Numbers(_), Way::Curve(_)) | (_, Way::Secret(..)) => false,
        }
    }
}

/// A key of JSON, if it is for this algorithm and for signatures.
fn of_json(key: &Json, algorithm: &Algorithm) -> Option<PublicKey> {
    let text = |name| key.get(name).and_then(Json::as_str);
    let number = |name| BASE64.decode(text(name)?).ok();
    let is_other = |name, own: &str| text(name).is_some_and(|given| given != own);
    if is_other("alg", algorithm.word) || is_other("use", "sig") {
        return None;
    }
    let form = match (text("kty")?, algorithm.way) {
        ("RSA", Way::Rsa(_)) => {
            let (n, e) = (number("n")?, number("e")?);
            (n.len() >= MODULUS_LEN_MIN).then_some(Form::Numbers(RsaPublicKeyComponents { n, e }))
        }
        ("EC", Way::Curve(curve)) if text("crv")? == curve.name => {
            let point = [vec![4], number("x")?, number("y")?].concat();
            (point.len() == curve.key_len).then_some(Form::Bytes(point))
        }
        ("OKP", Way::Curve(curve)) if text("crv")? == curve.name => {
            number("x").filter(|x| x.len() == curve.key_len).map(Form::Bytes)
        }
        _ => None,
    }?;
    Some(PublicKey { kid: text("kid").map(str::to_owned), form, way: algorithm.way })
}

/// The key in a `SubjectPublicKeyInfo` (RFC 5280, 4.1), if it is a key for `way`.
fn unpacked(der: &[u8], way: Way) -> Option<Vec<u8>> {
    const SEQUENCE: u8 = 0x30;
    const BITS: u8 = 0x03;
    let (all, _) = element(der, SEQUENCE)?;
    let (object, rest) = element(all, SEQUENCE)?;
    let (bits, _) = element(rest, BITS)?;
    // The leading 0 says that no bit of the last byte is unused.
    let key = bits.strip_prefix(&[0])?;
    let is_right = match way {
        Way::Rsa(_) => object == RSA && key.len() > MODULUS_LEN_MIN,
        Way::Curve(Curve { object: own, key_len, .. }) => object == *own && key.len() == *key_len,
        Way::Secret(..) => false,
    };
    is_right.then(|| key.to_vec())
}

/// The content of the DER element at the beginning, if it has this tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        ..=0x7f => (usize::from(first), rest),
        0x81 | 0x82 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0xf))?;
            (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(len)).flatten()
}
