//! Texts for other places: Base64 and HTML.

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sinew_flow::Value;

use super::Given;

/// Takes Base64 as others write it, and is as lenient as CEL's own library: missing padding is not
/// an error.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const FOR_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT.with_encode_padding(false));

pub(super) fn encode(given: &Given<'_>) -> Result<Value, String> {
    Ok(Value::text(PADDED.encode(given.bytes(0)?)))
}

pub(super) fn encode_url(given: &Given<'_>) -> Result<Value, String> {
    Ok(Value::text(FOR_URL.encode(given.bytes(0)?)))
}

pub(super) fn decode(given: &Given<'_>) -> Result<Value, String> {
    decoded(given.bytes(0)?, &PADDED, &STANDARD)
}

pub(super) fn decode_url(given: &Given<'_>) -> Result<Value, String> {
    decoded(given.bytes(0)?, &FOR_URL, &URL_SAFE)
}

fn decoded(text: &[u8], engine: &GeneralPurpose, alphabet: &Alphabet) -> Result<Value, String> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let bytes = match text.iter().any(is_break) {
        true => engine.decode(text.iter().copied().filter(|it| !is_break(it)).collect::<Vec<_>>()),
        false => engine.decode(text),
    };
    let signs = &alphabet.as_str()[62..];
    bytes
        .map(|bytes| Value::Bytes(bytes.into()))
        .map_err(|error| format!("not Base64 with '{signs}': {}", error.to_string().to_lowercase()))
}

pub(super) fn html_escape(given: &Given<'_>) -> Result<Value, String> {
    let text = given.text(0)?;
    let mut escaped = String::with_capacity(text.len());
    escape_html(&mut escaped, text);
    Ok(Value::text(escaped))
}

/// Writes text so that a browser shows it as text, between tags and in an attribute with quotes.
pub(crate) fn escape_html(to: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        *to += &rest[..at];
        *to += match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        };
        rest = &rest[at + 1..];
    }
    *to += rest;
}
