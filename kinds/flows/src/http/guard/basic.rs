//! `basic`: lets a request pass that has a name and its password (RFC 7617).

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytestring::ByteString;
use ring::hmac;
use ring::rand::SystemRandom;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use sinew_spec::{Data, Item};

use super::hashed::Hashed;
use super::{OUT, header};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "basic",
    doc: "Passes a packet on if it has the name and password of a user (HTTP basic \
          authentication). The name becomes a value of the flow. Else it answers 401. Passwords \
          stand in the spec as hashes of Argon2.",
    ports: &[
        input("in", "A request, or a mapping with 'header'."),
        output("out", "The same packet."),
        error(),
    ],
    parameters: &[
        Parameter::new("users", ParameterType::Yaml)
            .doc("A mapping of names and hashes, such as {ada: '$argon2id$v=19$m=19456,...'}."),
        Parameter::new("realm", ParameterType::Text)
            .or("sinew")
            .doc("The realm, which a browser shows when it asks."),
        Parameter::new("into", ParameterType::Text)
            .or("user")
            .doc("The flow's value (values.NAME) that is set to the user's name."),
    ],
    ..FLOW
};

/// Most users of a node.
const USERS_MAX: usize = 1000;
/// Most users that are remembered, so that not each of their requests needs a hash. When there are
/// more, all are forgotten.
const REMEMBERED_MAX: usize = 1000;

struct Basic {
    users: HashMap<String, Hashed>,
    /// Checked for an unknown name, so that the answer takes as long as for a known one.
    nobody: Hashed,
    realm: String,
    into: ByteString,
    /// Users who have shown their passwords, by the digest of both that `key` makes.
    remembered: RefCell<HashMap<[u8; 32], ByteString>>,
    key: hmac::Key,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let users = users(parameters.yaml("users"))?;
    let realm = parameters.text("realm").to_owned();
    if !realm.chars().all(|sign| sign == ' ' || sign.is_ascii_graphic() && !"\"\\".contains(sign)) {
        let text = "a realm is plain letters, without quotes".to_owned();
        return Err(vec![Refusal::new(parameters.span("realm"), text, "write realm: staff")]);
    }
    let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
    let key = key.map_err(|_| {
        let text = "the kernel gives no random bytes";
        vec![Refusal::new(parameters.span("users"), text, "")]
    })?;
    let nobody = users.values().next().cloned().expect("there is one");
    let into = parameters.text("into").into();
    Ok(Box::new(Basic { users, nobody, realm, into, remembered: RefCell::default(), key }))
}

fn users(item: &Item) -> Result<HashMap<String, Hashed>, Vec<Refusal>> {
    let help = "write users: {ada: '$argon2id$...'}, made by 'argon2' or a library for it";
    let refuse = |span, text: String| Refusal::new(span, text, help);
    let Data::Map(entries) = &item.data else {
        let text = format!("users are a mapping of names and hashes, found {}", item.sort());
        return Err(vec![refuse(item.span, text)]);
    };
    if entries.is_empty() || entries.len() > USERS_MAX {
        let text = format!("{} users; from 1 to {USERS_MAX}", entries.len());
        return Err(vec![refuse(item.span, text)]);
    }
    let (mut users, mut refusals) = (HashMap::new(), Vec::new());
    for entry in entries {
        match Hashed::read(entry.value.text().unwrap_or_default()) {
            _ if entry.key.contains(':') => {
                refusals.push(refuse(entry.span, "a name has no colon".to_owned()));
            }
            Ok(hash) => drop(users.insert(entry.key.clone(), hash)),
            Err(text) => refusals.push(refuse(entry.value.span, text)),
        }
    }
    if refusals.is_empty() { Ok(users) } else { Err(refusals) }
}

impl FlowNode for Basic {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let pass = move |name: ByteString, packet| {
            at.flow().set(self.into.clone(), Value::Text(name));
            Step::Pass(OUT, packet)
        };
        let credentials = match header(&packet, "authorization") {
            Ok(header) => header.as_deref().and_then(credentials),
            Err(error) => return Step::Fail(error),
        };
        let Some(credentials) = credentials else {
            return Step::Fail(self.refused("it has no name and password"));
        };
        let mut shown = [0; 32];
        shown.copy_from_slice(hmac::sign(&self.key, &credentials).as_ref());
        if let Some(name) = self.remembered.borrow().get(&shown).cloned() {
            return pass(name, packet);
        }
        Step::wait(async move {
            match self.look(at, &credentials).await {
                Ok(Some(name)) => {
                    let mut remembered = self.remembered.borrow_mut();
                    if remembered.len() >= REMEMBERED_MAX {
                        remembered.clear();
                    }
                    remembered.insert(shown, name.clone());
                    pass(name, packet)
                }
                Ok(None) => Step::Fail(self.refused("name or password is wrong")),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Basic {
    /// The name in credentials, if the password there is right.
    async fn look(&self, at: At<'_>, credentials: &[u8]) -> Result<Option<ByteString>, Error> {
        let colon = credentials.iter().position(|byte| *byte == b':');
        let Some((name, password)) = colon.map(|at| credentials.split_at(at)) else {
            return Ok(None);
        };
        let name = std::str::from_utf8(name).unwrap_or_default();
        let known = self.users.get(name);
        let is_right = known.unwrap_or(&self.nobody).is_of(at, &password[1..]).await?;
        Ok((is_right && known.is_some()).then(|| name.into()))
    }

    #[cold]
    fn refused(&self, why: &str) -> Error {
        let asks = format!("Basic realm=\"{}\", charset=\"UTF-8\"", self.realm);
        Error::new(format_args!("the request may not pass: {why}"))
            .with_status(401)
            .with_header("www-authenticate", asks)
    }
}

/// Name and password in a header, with a colon between them.
fn credentials(header: &str) -> Option<Vec<u8>> {
    let (scheme, text) = header.split_once(' ')?;
    BASE64_STANDARD.decode(text.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))
}
