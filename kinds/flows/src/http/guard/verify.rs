//! `verify`: lets a request pass that is signed by a secret that both sides know, as webhooks are.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use bytestring::ByteString;
use ring::hmac;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Step, Value, error, input, output,
};

use super::super::request::Request;
use super::{OUT, header, now_s, secret};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "verify",
    doc: "Passes a request on if a header has the HMAC of its body as it came, made with a secret \
          that both sides know, as webhooks do. Else it answers 401. If the signature has a time, \
          an old request is refused too.",
    ports: &[
        input("in", "A request, or a mapping with 'header' and a 'body' of text or bytes."),
        output("out", "The same packet."),
        error(),
    ],
    parameters: &[
        secret::SECRET,
        Parameter::new("secret_base64", ParameterType::Bool).or("false").doc(
            "Whether the secret is written as base64, perhaps behind 'whsec_': so do Standard \
             Webhooks.",
        ),
        Parameter::new("header", ParameterType::Text)
            .doc("Where the signature stands, such as x-hub-signature-256."),
        Parameter::new("algorithm", ParameterType::Choice(&["sha256", "sha384", "sha512"]))
            .or("sha256")
            .doc("The hash function."),
        Parameter::new("encoding", ParameterType::Choice(&["hex", "base64"]))
            .or("hex")
            .doc("How the signature is written."),
        Parameter::new("prefix", ParameterType::Text).or("").doc(
            "What stands before the signature, such as 'sha256='. Of a header with several parts, \
             between commas or spaces, all parts with this prefix are tried.",
        ),
        Parameter::new("signed", ParameterType::Text).or("'{body}'").doc(
            "What is signed: text with {body}, {timestamp} and the names of headers in braces.",
        ),
        Parameter::new("timestamp_header", ParameterType::Text)
            .or("")
            .doc("Where the time stands, in seconds since 1970; it must be part of 'signed'."),
        Parameter::new("timestamp_prefix", ParameterType::Text)
            .or("")
            .doc("What stands before the time in a header with several parts, such as 't='."),
        Parameter::new(
            "tolerance",
            ParameterType::Duration { min_ns: 1_000_000_000, max_ns: 86_400_000_000_000 },
        )
        .or("5m")
        .doc("How far the time may be from now, both ways."),
    ],
    ..FLOW
};

/// Least length of a secret, in bytes. Some services make no longer ones.
const SECRET_LEN_MIN: usize = 8;
/// Most signatures of a header that are tried. A service sends two while it changes its secret.
const SIGNATURES_MAX: usize = 8;
/// Bytes that are hashed for one unit of work, at least.
const BYTES_PER_UNIT: usize = 16;

struct Verify {
    key: hmac::Key,
    header: ByteString,
    prefix: String,
    is_base64: bool,
    signed: Vec<Piece>,
    time: Option<Time>,
}

/// A part of what is signed.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Body,
    Timestamp,
    Header(String),
}

/// Where a request says its time.
struct Time {
    header: String,
    prefix: String,
    tolerance_s: u64,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(read(parameters)?))
}

fn read(parameters: &Parameters<'_>) -> Result<Verify, Vec<Refusal>> {
    let mut secret = secret::read(parameters, SECRET_LEN_MIN)?.to_vec();
    let refuse =
        |name, text: String, help: &str| Err(vec![Refusal::new(parameters.span(name), text, help)]);
    let name = |name| parameters.text(name).to_ascii_lowercase();
    let algorithm = match parameters.text("algorithm") {
        "sha384" => hmac::HMAC_SHA384,
        "sha512" => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    if parameters.bool("secret_base64") {
        let text = secret.strip_prefix(b"whsec_").unwrap_or(&secret);
        secret = match BASE64_STANDARD.decode(text) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = format!("the secret is not base64: {error}");
                return refuse("secret_base64", text, "leave 'secret_base64' out");
            }
        };
    }
    let signed = match pieces(parameters.text("signed")) {
        Ok(signed) => signed,
        Err(text) => return refuse("signed", text, "write it as '{timestamp}.{body}'"),
    };
    if !signed.contains(&Piece::Body) {
        let text = "'signed' has no {body}: anybody could change it".to_owned();
        return refuse("signed", text, "write it as '{timestamp}.{body}'");
    }
    let has_time = !parameters.text("timestamp_header").is_empty();
    if has_time != signed.contains(&Piece::Timestamp) {
        let text = match has_time {
            true => "the time is not part of 'signed': anybody could change it",
            false => "'signed' has a {timestamp}, and no 'timestamp_header' says where it stands",
        };
        let help = "write timestamp_header, and signed: '{timestamp}.{body}'";
        return refuse("signed", text.to_owned(), help);
    }
    if parameters.text("header").is_empty() {
        let text = "no header is named".to_owned();
        return refuse("header", text, "write header: x-hub-signature-256");
    }
    let time = has_time.then(|| Time {
        header: name("timestamp_header"),
        prefix: parameters.text("timestamp_prefix").to_owned(),
        tolerance_s: parameters.duration("tolerance").as_secs(),
    });
    Ok(Verify {
        key: hmac::Key::new(algorithm, &secret),
        header: name("header").into(),
        prefix: parameters.text("prefix").to_owned(),
        is_base64: parameters.text("encoding") == "base64",
        signed,
        time,
    })
}

/// The parts of what is signed.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or("a '{' is not closed")?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(match name {
            "body" => Piece::Body,
            "timestamp" => Piece::Timestamp,
            "" => return Err("there is nothing between '{' and '}'".to_owned()),
            header => Piece::Header(header.to_ascii_lowercase()),
        });
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

impl FlowNode for Verify {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.check(at.flow(), &packet, now_s()) {
            Ok(()) => Step::Pass(OUT, packet),
            Err(error) => Step::Fail(error),
        }
    }
}

impl Verify {
    fn check(&self, flow: &Flow, packet: &Value, now_s: i64) -> Result<(), Error> {
        let body = body(packet)?;
        flow.spend((body.len() / BYTES_PER_UNIT) as u64)?;
        let Some(signatures) = header(packet, &self.header)? else {
            return Err(refused(&format!("there is no header '{}'", self.header)));
        };
        let timestamp = self.time.as_ref().map(|time| time.of(packet, now_s)).transpose()?;
        let mut context = hmac::Context::with_key(&self.key);
        for piece in &self.signed {
            match piece {
                Piece::Text(text) => context.update(text.as_bytes()),
                Piece::Body => context.update(&body),
                Piece::Timestamp => {
                    context.update(timestamp.as_deref().unwrap_or_default().as_bytes());
                }
                Piece::Header(name) => match header(packet, name)? {
                    Some(value) => context.update(value.as_bytes()),
                    None => return Err(refused(&format!("there is no header '{name}'"))),
                },
            }
        }
        let expected = context.sign();
        // The time of the comparison must not tell how much of a signature is right. So both sides
        // are hashed again with the key, and those hashes are compared.
        let same = hmac::sign(&self.key, expected.as_ref());
        let candidates = parts(&signatures, &self.prefix).take(SIGNATURES_MAX);
        let found = candidates
            .filter_map(|text| self.decode(text))
            .any(|candidate| hmac::verify(&self.key, &candidate, same.as_ref()).is_ok());
        if found { Ok(()) } else { Err(refused("the signature is not that of this body")) }
    }

    fn decode(&self, text: &str) -> Option<Vec<u8>> {
        if self.is_base64 {
            return BASE64_STANDARD.decode(text).ok();
        }
        let digits = text.as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
        digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(pair).collect())?
    }
}

impl Time {
    /// The time that a request says, if it is about now.
    fn of(&self, packet: &Value, now_s: i64) -> Result<String, Error> {
        let value = header(packet, &self.header)?;
        let text = value.as_deref().and_then(|value| parts(value, &self.prefix).next());
        let time_s = text.and_then(|text| text.parse::<i64>().ok());
        let (Some(text), Some(time_s)) = (text, time_s) else {
            return Err(refused(&format!("there is no time in the header '{}'", self.header)));
        };
        if now_s.abs_diff(time_s) > self.tolerance_s {
            let (off_s, most_s) = (now_s.abs_diff(time_s), self.tolerance_s);
            return Err(refused(&format!("its time is {off_s} s from now; at most {most_s} s")));
        }
        Ok(text.to_owned())
    }
}

/// The parts of a header that begin with a prefix, without the prefix.
fn parts<'a>(value: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    value.split([',', ' ']).filter_map(move |part| part.trim().strip_prefix(prefix))
}

/// The body as it came. The decoded body no longer has those bytes.
fn body(packet: &Value) -> Result<Bytes, Error> {
    if let Some(request) = Request::of(packet) {
        return request.body_bytes().cloned();
    }
    match packet.field("body")? {
        Value::Text(text) => Ok(text.into_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Ok(Bytes::new()),
        other => Err(Error::new(format_args!(
            "a signature is of the body as it came, and this is {}; let 'verify' have the request \
             itself, before any other node",
            other.sort()
        ))),
    }
}

#[cold]
fn refused(why: &str) -> Error {
    Error::new(format_args!("the request is not signed: {why}")).with_status(401)
}
