//! `jwt_sign`: makes tokens for `jwt`.

use std::time::Duration;

use ring::hmac;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::token::{self, LEN_MAX, Way};
use super::{OUT, now_s, secret};
use crate::json;
use crate::script::taken;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "jwt_sign",
    doc: "Makes a JSON Web Token of claims, signed by a secret, and passes it on as a text. It \
          sets 'iat' and 'exp', and 'iss' and 'aud' if they are given.",
    ports: &[input("in", "The packet."), output("out", "The token."), error()],
    parameters: &[
        Parameter::new("algorithm", ParameterType::Choice(&["HS256", "HS384", "HS512"]))
            .or("HS256")
            .doc("Algorithm of the signature."),
        secret::SECRET,
        Parameter::new("claims", ParameterType::Yaml).doc("A mapping, as a template."),
        Parameter::new(
            "expires",
            ParameterType::Duration { min_ns: 1_000_000_000, max_ns: 31_536_000_000_000_000 },
        )
        .or("1h")
        .doc("How long it is valid, a year at most."),
        Parameter::new("issuer", ParameterType::Text).or("").doc("The issuer: 'iss'."),
        Parameter::new("audience", ParameterType::Text).or("").doc("The audience: 'aud'."),
    ],
    ..FLOW
};

struct JwtSign {
    word: &'static str,
    key: hmac::Key,
    claims: Template,
    expires: Duration,
    fixed: Vec<(&'static str, Value)>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let algorithm = token::algorithm(parameters.text("algorithm"));
    let Way::Secret(hash, len_min) = algorithm.way else {
        unreachable!("the table of parameters names those with a secret")
    };
    let key = taken(secret::read(parameters, len_min), &mut refusals);
    let claims = taken(Template::compile(parameters.yaml("claims")), &mut refusals);
    if let Some(constant) = claims.as_ref().and_then(Template::constant)
        && !matches!(constant, Value::Map(_))
    {
        let text = format!("claims are a mapping, found {}", constant.sort());
        let help = "write claims: {sub: '{{ packet.user }}'}";
        refusals.push(Refusal::new(parameters.span("claims"), text, help));
    }
    let fixed = [("iss", "issuer"), ("aud", "audience")].into_iter();
    let fixed = fixed.map(|(claim, name)| (claim, parameters.text(name)));
    let fixed = fixed.filter(|(_, text)| !text.is_empty());
    let fixed = fixed.map(|(claim, text)| (claim, Value::text(text))).collect();
    let (word, expires) = (algorithm.word, parameters.duration("expires"));
    match (key, claims) {
        (Some(key), Some(claims)) if refusals.is_empty() => {
            let key = hmac::Key::new(hash, key);
            Ok(Box::new(JwtSign { word, key, claims, expires, fixed }))
        }
        _ => Err(refusals),
    }
}

impl FlowNode for JwtSign {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move { Step::pass(OUT, self.token(at, &packet).await) })
    }
}

impl JwtSign {
    async fn token(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let claims = self.claims.render(at.flow(), packet).await?;
        let Value::Map(claims) = at.flow().resolve(&claims)? else {
            let sort = claims.sort();
            return Err(Error::new(format_args!("claims are a mapping, this is {sort}")));
        };
        let mut claims = (*claims).clone();
        let now_s = now_s();
        claims.insert("iat".into(), Value::Integer(now_s));
        let expires_s = i64::try_from(self.expires.as_secs()).unwrap_or(i64::MAX);
        claims.insert("exp".into(), Value::Integer(now_s.saturating_add(expires_s)));
        for (name, value) in &self.fixed {
            claims.insert((*name).into(), value.clone());
        }
        let claims = json::write(at.flow(), &Value::Map(claims.into())).await?;
        let token = token::sign(self.word, &self.key, &claims);
        if token.len() > LEN_MAX {
            let len = token.len();
            return Err(Error::new(format_args!("a token of {len} bytes; at most {LEN_MAX}")));
        }
        Ok(Value::text(token))
    }
}
