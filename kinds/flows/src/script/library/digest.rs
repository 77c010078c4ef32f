//! Digests, and what is made of them.

use std::fmt::Write;

use ring::{digest, hmac};
use sinew_flow::Value;
use subtle::ConstantTimeEq;

use super::Given;

/// A digest by its name.
struct Algorithm {
    name: &'static str,
    hash: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
}

static ALGORITHMS: [Algorithm; 4] = [
    Algorithm { name: "sha256", hash: &digest::SHA256, hmac: hmac::HMAC_SHA256 },
    Algorithm { name: "sha384", hash: &digest::SHA384, hmac: hmac::HMAC_SHA384 },
    Algorithm { name: "sha512", hash: &digest::SHA512, hmac: hmac::HMAC_SHA512 },
    Algorithm {
        name: "sha1",
        hash: &digest::SHA1_FOR_LEGACY_USE_ONLY,
        hmac: hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
    },
];

fn algorithm(given: &Given<'_>) -> Result<&'static Algorithm, String> {
    let name = given.text(0)?;
    ALGORITHMS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names = ALGORITHMS.each_ref().map(|row| row.name).join(", ");
        let shown: String = name.chars().take(20).collect();
        format!("there is no algorithm '{shown}'; there are {names}")
    })
}

pub(super) fn hash(given: &Given<'_>) -> Result<Value, String> {
    let digest = digest::digest(algorithm(given)?.hash, given.bytes(1)?);
    Ok(Value::text(hex(digest.as_ref())))
}

pub(super) fn hmac(given: &Given<'_>) -> Result<Value, String> {
    let key = hmac::Key::new(algorithm(given)?.hmac, given.bytes(1)?);
    Ok(Value::text(hex(hmac::sign(&key, given.bytes(2)?).as_ref())))
}

pub(super) fn same_secret(given: &Given<'_>) -> Result<Value, String> {
    Ok(Value::Bool(given.bytes(0)?.ct_eq(given.bytes(1)?).into()))
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
