//! JSON Web Tokens (RFC 7519) in their compact form (RFC 7515). They use one algorithm, which the
//! spec names and the token only repeats. So no token chooses how it is checked.

mod keys;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RsaParameters, VerificationAlgorithm,
};
use serde_json::{Map, Value as Json};

pub(super) use self::keys::Keys;

/// Longest token, in bytes. A longer one does not fit into a request's head of the default size.
pub(super) const LEN_MAX: usize = 16 << 10;

/// A way to sign.
pub(super) struct Algorithm {
    /// What tokens and the spec call it (RFC 7518, 3.1; RFC 8037).
    pub(super) word: &'static str,
    pub(super) way: Way,
}

/// How a signature is made and checked.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// By a secret of at least so many bytes (RFC 7518, 3.2).
    Secret(hmac::Algorithm, usize),
    /// RSA, from 2048 bits on.
    Rsa(&'static RsaParameters),
    /// A curve: its name, its object identifier in a key, the length of a key.
    Curve(&'static Curve),
}

/// A curve.
pub(super) struct Curve {
    name: &'static str,
    object: &'static [u8],
    key_len: usize,
    verifier: &'static dyn VerificationAlgorithm,
}

const P256: Curve = Curve {
    name: "P-256",
    object: b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    key_len: 65,
    verifier: &ECDSA_P256_SHA256_FIXED,
};
const P384: Curve = Curve {
    name: "P-384",
    object: b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22",
    key_len: 97,
    verifier: &ECDSA_P384_SHA384_FIXED,
};
const EDWARDS: Curve =
    Curve { name: "Ed25519", object: b"\x06\x03\x2b\x65\x70", key_len: 32, verifier: &ED25519 };

/// All algorithms.
pub(super) const ALGORITHMS: &[Algorithm] = &[
    Algorithm { word: "HS256", way: Way::Secret(hmac::HMAC_SHA256, 32) },
    Algorithm { word: "HS384", way: Way::Secret(hmac::HMAC_SHA384, 48) },
    Algorithm { word: "HS512", way: Way::Secret(hmac::HMAC_SHA512, 64) },
    Algorithm { word: "RS256", way: Way::Rsa(&RSA_PKCS1_2048_8192_SHA256) },
    Algorithm { word: "RS384", way: Way::Rsa(&RSA_PKCS1_2048_8192_SHA384) },
    Algorithm { word: "RS512", way: Way::Rsa(&RSA_PKCS1_2048_8192_SHA512) },
    Algorithm { word: "PS256", way: Way::Rsa(&RSA_PSS_2048_8192_SHA256) },
    Algorithm { word: "ES256", way: Way::Curve(&P256) },
    Algorithm { word: "ES384", way: Way::Curve(&P384) },
    Algorithm { word: "EdDSA", way: Way::Curve(&EDWARDS) },
];

/// The words of all algorithms, for tables of parameters.
pub(super) const WORDS: &[&str] =
    &["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"];

/// The algorithm of a word of that list.
pub(super) fn algorithm(word: &str) -> &'static Algorithm {
    let found = ALGORITHMS.iter().find(|row| row.word == word);
    found.expect("the table of parameters names the algorithms")
}

/// Why a token is not valid: a fixed text, which its sender may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid(pub(super) &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What a token must say of itself.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Who made it.
    pub(super) issuer: Option<String>,
    /// Whom it is for.
    pub(super) audience: Option<String>,
    /// How far clocks may be apart, in seconds.
    pub(super) leeway_s: f64,
    /// Whether a token that never expires is valid.
    pub(super) is_endless: bool,
}

/// Makes a token of claims.
pub(super) fn sign(word: &str, key: &hmac::Key, claims: &[u8]) -> String {
    let header = format!(r#"{{"alg":"{word}","typ":"JWT"}}"#);
    let mut token = BASE64.encode(header);
    token.push('.');
    BASE64.encode_string(claims, &mut token);
    let tag = hmac::sign(key, token.as_bytes());
    token.push('.');
    BASE64.encode_string(tag, &mut token);
    token
}

/// The claims of a token that is signed by one of these keys and is valid at this time.
///
/// # Errors
/// Why it is not valid. Its signature is checked before its claims are read.
pub(super) fn claims(
    token: &str,
    word: &str,
    keys: &Keys,
    rules: &Rules,
    now_s: i64,
) -> Result<Json, Invalid> {
    const MALFORMED: Invalid = Invalid("it is malformed");
    if token.len() > LEN_MAX {
        return Err(Invalid("it is too long"));
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
    let (header, payload) = signed.split_once('.').ok_or(MALFORMED)?;
    let decode = |part| BASE64.decode(part).map_err(|_| MALFORMED);
    let mapping = |bytes: Vec<u8>| match serde_json::from_slice(&bytes) {
        Ok(Json::Object(map)) => Ok(map),
        _ => Err(MALFORMED),
    };
    let header = mapping(decode(header)?)?;
    if header.get("alg").and_then(Json::as_str) != Some(word) {
        return Err(Invalid("it is signed by another algorithm"));
    }
    if header.contains_key("crit") {
        return Err(Invalid("it needs an extension that is not known here"));
    }
    let kid = header.get("kid").and_then(Json::as_str);
    if !keys.verify(kid, signed.as_bytes(), &decode(signature)?) {
        return Err(Invalid("its signature is not of a key that is known here"));
    }
    let claims = mapping(decode(payload)?)?;
    rules.check(&claims, now_s as f64)?;
    Ok(Json::Object(claims))
}

impl Rules {
    fn check(&self, claims: &Map<String, Json>, now_s: f64) -> Result<(), Invalid> {
        let time = |name| match claims.get(name) {
            None => Ok(None),
            Some(Json::Number(time)) => Ok(time.as_f64()),
            Some(_) => Err(Invalid("a time in it is not a number")),
        };
        match time("exp")? {
            Some(end) if now_s >= end + self.leeway_s => return Err(Invalid("it has expired")),
            None if !self.is_endless => return Err(Invalid("it never expires")),
            _ => {}
        }
        let begins = [time("nbf")?, time("iat")?];
        if begins.into_iter().flatten().any(|begin| now_s + self.leeway_s < begin) {
            return Err(Invalid("it is not valid yet"));
        }
        let text = |name| claims.get(name).and_then(Json::as_str);
        if self.issuer.as_deref().is_some_and(|issuer| text("iss") != Some(issuer)) {
            return Err(Invalid("it is of another issuer"));
        }
        let is_for = |audience: &str| match claims.get("aud") {
            Some(Json::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
            one => one.and_then(Json::as_str) == Some(audience),
        };
        if !self.audience.as_deref().is_none_or(is_for) {
            return Err(Invalid("it is for another audience"));
        }
        Ok(())
    }
}
