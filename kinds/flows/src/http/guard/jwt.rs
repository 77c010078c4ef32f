//! `jwt`: lets a request pass that has a valid token.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::{fmt, fs};

use bytestring::ByteString;
use ring::hmac;
use serde_json::Value as Json;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, Step, Value, error, input, output,
};
use sinew_spec::item_json;

use super::token::{self, Algorithm, Invalid, Keys, Rules, WORDS, Way};
use super::{OUT, header, now_s, secret};
use crate::script::expression::{Expression, Scope};
use crate::script::taken;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "jwt",
    doc: "Passes a packet on if it has a valid JSON Web Token: signed with a known key and the \
          algorithm that is named here, and not expired. Its claims become a value of the flow. \
          Else it answers 401, or 403 if the claims are not what 'require' asks for.",
    ports: &[
        input("in", "A request, or a mapping with 'header'."),
        output("out", "The same packet."),
        error(),
    ],
    parameters: &[
        Parameter::new("algorithm", ParameterType::Choice(WORDS))
            .or("HS256")
            .doc("The only algorithm that is accepted."),
        secret::SECRET,
        Parameter::new("public_key", ParameterType::Text).or("").doc(
            "For all but HS256, HS384 and HS512: a file with a public key in PEM, or with one or a \
             set of them in JSON (JWK).",
        ),
        Parameter::new("token", ParameterType::Yaml).or("null").doc(
            "An expression over packet: the token. Default: what follows 'Bearer' in the header \
             authorization.",
        ),
        Parameter::new("issuer", ParameterType::Text).or("").doc("The required issuer: 'iss'."),
        Parameter::new("audience", ParameterType::Text)
            .or("")
            .doc("The required audience: 'aud', or one of it."),
        Parameter::new("leeway", ParameterType::Duration { min_ns: 0, max_ns: 600_000_000_000 })
            .or("0s")
            .doc("How far the clock of the issuer may be off."),
        Parameter::new("endless", ParameterType::Bool)
            .or("false")
            .doc("Whether a token without 'exp' is accepted."),
        Parameter::new("require", ParameterType::Yaml)
            .or("null")
            .doc("An expression over packet and claims that must be true, else 403."),
        Parameter::new("into", ParameterType::Text)
            .or("claims")
            .doc("The flow's value (values.NAME) that is set to the claims."),
    ],
    ..FLOW
};

/// Units of work to check a signature by a secret, and by a public key.
const SECRET_WORK: u64 = 100;
const PUBLIC_WORK: u64 = 3_000;
/// Longest file of keys, in bytes.
const KEYS_LEN_MAX: u64 = 256 << 10;

struct Jwt {
    algorithm: &'static Algorithm,
    keys: Keys,
    rules: Rules,
    token: Option<Expression>,
    require: Option<Expression>,
    into: ByteString,
    files: Vec<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let optional = |name, also: &[&str], refusals: &mut Vec<Refusal>| {
        let item = parameters.yaml(name);
        let is_given = !matches!(item_json(item), Json::Null);
        is_given.then(|| taken(Expression::of(item, also), refusals)).flatten()
    };
    let token = optional("token", &[], &mut refusals);
    let require = optional("require", &["claims"], &mut refusals);
    let algorithm = token::algorithm(parameters.text("algorithm"));
    let keys = taken(keys(parameters, algorithm), &mut refusals);
    let text = |name| Some(parameters.text(name).to_owned()).filter(|text| !text.is_empty());
    let rules = Rules {
        issuer: text("issuer"),
        audience: text("audience"),
        leeway_s: parameters.duration("leeway").as_secs_f64(),
        is_endless: parameters.bool("endless"),
    };
    let public = text("public_key").map(|_| parameters.path("public_key"));
    let files = public.into_iter().collect();
    let into = parameters.text("into").into();
    match keys {
        Some(keys) if refusals.is_empty() => {
            Ok(Box::new(Jwt { algorithm, keys, rules, token, require, into, files }))
        }
        _ => Err(refusals),
    }
}

/// The keys for an algorithm: a secret for some, public keys for others. No key serves for both.
fn keys(parameters: &Parameters<'_>, algorithm: &Algorithm) -> Result<Keys, Vec<Refusal>> {
    let is_given = |name| !parameters.text(name).is_empty();
    let refuse =
        |name, text: String, help: &str| Err(vec![Refusal::new(parameters.span(name), text, help)]);
    let word = algorithm.word;
    if let Way::Secret(hash, len_min) = algorithm.way {
        if is_given("public_key") {
            let text = format!("{word} has a secret, and no public key");
            return refuse("public_key", text, "write 'secret', or another algorithm");
        }
        return Ok(Keys::Secret(hmac::Key::new(hash, secret::read(parameters, len_min)?)));
    }
    if is_given("secret") {
        let text = format!("{word} has a public key, and no secret");
        return refuse("secret", text, "write 'public_key', or HS256");
    }
    if !is_given("public_key") {
        let text = format!("{word} needs a 'public_key'");
        return refuse("algorithm", text, "name a file in PEM or JSON");
    }
    let path = parameters.path("public_key");
    let read = || -> Result<Keys, String> {
        let len = fs::metadata(&path).map_err(|error| error.to_string())?.len();
        if len > KEYS_LEN_MAX {
            return Err(format!("{len} bytes; at most {KEYS_LEN_MAX}"));
        }
        Keys::public(algorithm, &fs::read(&path).map_err(|error| error.to_string())?)
    };
    read().or_else(|why| {
        let help = format!("expected a public key for {word}, in PEM or as JWK");
        refuse("public_key", format!("{}: {why}", path.display()), &help)
    })
}

impl FlowNode for Jwt {
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.check(at.flow(), &packet) {
            Ok(claims) => {
                at.flow().set(self.into.clone(), claims);
                Step::Pass(OUT, packet)
            }
            Err(error) => Step::Fail(error),
        }
    }
}

impl Jwt {
    fn check(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        let token = match &self.token {
            Some(expression) => match expression.evaluate((flow, packet)) {
                Ok(Value::Text(token)) => Some(token),
                Err(error) if error.status() == 503 => return Err(error),
                _ => None,
            },
            None => header(packet, "authorization")?.as_deref().and_then(bearer).map(Into::into),
        };
        let Some(token) = token else { return Err(missing()) };
        let price = SECRET_WORK + PUBLIC_WORK * self.keys.count() as u64 + token.len() as u64 / 4;
        flow.spend(price)?;
        let claims = token::claims(&token, self.algorithm.word, &self.keys, &self.rules, now_s());
        let claims = Value::from(claims.map_err(invalid)?);
        let Some(require) = &self.require else { return Ok(claims) };
        let scope = Scope { flow: Some(flow), packet, also: &[&claims] };
        match require.holds(scope) {
            Ok(true) => Ok(claims),
            Ok(false) => Err(forbidden(&format_args!("'{}' is false", require.text()))),
            Err(error) if error.status() == 503 => Err(error),
            // A missing claim must not let a request pass.
            Err(error) => Err(forbidden(&error)),
        }
    }
}

/// What follows the scheme `Bearer` (RFC 6750, 2.1).
fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, token) = credentials.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn missing() -> Error {
    Error::new("the request has no token")
        .with_status(401)
        .with_header("www-authenticate", "Bearer")
}

fn invalid(why: Invalid) -> Error {
    let header = format!("Bearer error=\"invalid_token\", error_description=\"{why}\"");
    Error::new(format_args!("the token is not valid: {why}"))
        .with_status(401)
        .with_header("www-authenticate", header)
}

fn forbidden(why: &dyn fmt::Display) -> Error {
    Error::new(format_args!("the claims are not what 'require' asks for: {why}"))
        .with_status(403)
        .with_header("www-authenticate", "Bearer error=\"insufficient_scope\"")
}
