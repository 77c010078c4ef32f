//! `session`: recognises a logged-in user by a cookie, until he logs out.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytestring::ByteString;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Reply, Step, Value, error, input,
    output,
};
use sinew_spec::item_json;

use super::entries::{Act, Asked, Outcome};
use super::state::{read, write};
use super::store::{self, Store};
use crate::http::cookie::{self, CookieFrame, MAX_AGE_NS_MAX, SAME_SITE, SECURE, with_cookie};
use crate::http::guard::header;
use crate::script::template::Template;
use crate::script::{refused, taken};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "session",
    doc: "Keeps the sessions of users who have logged in, by a random number in a cookie; a store \
          has its hash. find: if the cookie is that of a session, passes the packet on, with what \
          the session holds as a value of the flow; else it answers 401. begin: begins a session, \
          always under a new number. end: ends it. Requests of pages of other sites are refused \
          with 403, unless they only read.",
    ports: &[
        input("in", "A request, or a mapping with 'method', 'header' and perhaps 'cookies'."),
        output("out", "The same packet."),
        error(),
        output("otherwise", "The packet, if 'find' finds no session; without a link that is 401."),
    ],
    parameters: &[
        Parameter::new("store", ParameterType::Text).doc("The name of a node of the kind 'store'."),
        Parameter::new("do", ParameterType::Choice(&["find", "begin", "end"])).or("find").doc(
            "find: looks the session up. begin: after the login. end: at the logout. The replies \
             of begin and end set the cookie.",
        ),
        Parameter::new("value", ParameterType::Yaml)
            .or("~")
            .doc("A template: what a session that begins holds, such as the name of its user."),
        Parameter::new("into", ParameterType::Text)
            .or("session")
            .doc("The flow's value (values.NAME) that is set to the data of the session."),
        Parameter::new("cookie", ParameterType::Text)
            .or("__Host-session")
            .doc("The name of the cookie; the same for all nodes of these sessions."),
        Parameter::new(
            "expire",
            ParameterType::Duration { min_ns: 1_000_000_000, max_ns: MAX_AGE_NS_MAX },
        )
        .or("12h")
        .doc("A session ends this long after it began."),
        SECURE,
        SAME_SITE,
        Parameter::new("origins", ParameterType::Texts { max: ORIGINS_MAX })
            .or("[]")
            .doc("Other sites whose pages may do more than read, such as https://app.example."),
    ],
    ..FLOW
};

const OUT: usize = 1;
const OTHERWISE: usize = 3;
/// Most entries of `origins`.
const ORIGINS_MAX: usize = 64;
/// Random bytes of a session's number, too many to be guessed.
const ID_LEN: usize = 32;
/// Longest number that is looked up; ours are shorter.
const ID_TEXT_MAX: usize = 64;
/// Methods that only read.
const READING: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];

struct Session {
    store_name: String,
    store: Option<Arc<Store>>,
    act: Doing,
    cookie: CookieFrame,
    into: ByteString,
    expire_ms: u64,
    origins: Vec<String>,
}

enum Doing {
    Find,
    Begin(Template),
    End,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let store_name = store::named(parameters).map_err(|refusal| vec![refusal]);
    let store_name = taken(store_name, &mut refusals);
    let expire = parameters.duration("expire");
    let cookie = CookieFrame::of(parameters, ("/", ""), expire, true);
    let cookie = taken(cookie, &mut refusals);
    let value = parameters.yaml("value");
    let act = match (parameters.text("do"), item_json(value).is_null()) {
        ("begin", false) => taken(Template::compile(value), &mut refusals).map(Doing::Begin),
        ("begin", true) => {
            let help = "add value: {user: '{{ packet.body.name }}'}";
            let text = "'do: begin' needs 'value': what the session holds";
            refusals.push(Refusal::new(parameters.span("do"), text, help));
            None
        }
        (_, false) => {
            let text = "'value' has a meaning with 'do: begin' only";
            refusals.push(Refusal::new(parameters.span("value"), text, "remove it"));
            None
        }
        ("end", true) => Some(Doing::End),
        _ => Some(Doing::Find),
    };
    let (Some(store_name), Some(cookie), Some(act)) = (store_name, cookie, act) else {
        return Err(refusals);
    };
    let origins = parameters.texts("origins").iter();
    Ok(Box::new(Session {
        store_name,
        store: None,
        act,
        cookie,
        into: parameters.text("into").into(),
        expire_ms: expire.as_millis() as u64,
        origins: origins.map(|origin| origin.to_lowercase()).collect(),
    }))
}

impl FlowNode for Session {
    fn attach(&mut self, site: &NodeContext) {
        self.store = site.resource(&self.store_name);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            if let Err(error) = self.is_own_page(&packet) {
                return Step::Fail(error);
            }
            match &self.act {
                Doing::Find => self.find(at, packet).await,
                Doing::Begin(value) => Step::answer(self.begin(at, packet, value).await),
                Doing::End => Step::answer(self.end(at, packet).await),
            }
        })
    }
}

impl Session {
    async fn find<'a>(&'a self, at: At<'a>, packet: Value) -> Step<'a> {
        let found = async {
            let Some(key) = self.key_of(&packet)? else { return Ok(None) };
            match self.carry_out(at, &key, Act::Get, None).await? {
                Outcome::Is(bytes) => read(at.flow(), &bytes).map(Some),
                Outcome::Missing | Outcome::Differs => Ok::<_, Error>(None),
            }
        };
        match found.await {
            Ok(Some(held)) => {
                at.flow().set(self.into.clone(), held);
                Step::Pass(OUT, packet)
            }
            Ok(None) if at.is_linked(OTHERWISE) => Step::Pass(OTHERWISE, packet),
            Ok(None) => Step::Fail(refused(401, "there is no session; log in")),
            Err(error) => Step::Fail(error),
        }
    }

    async fn begin(&self, at: At<'_>, packet: Value, value: &Template) -> Reply {
        let flow = at.flow();
        let held = flow.resolve(&value.render(flow, &packet).await?)?;
        let bytes = write(flow, &held, self.store().value_max())?;
        let id = new_id()?;
        // Someone may know the old number, perhaps because he gave it to this browser. He must not
        // get into the new session.
        self.forget(at, &packet).await?;
        self.carry_out(at, &key(&id), Act::Set(bytes), Some(self.expire_ms)).await?;
        flow.set(self.into.clone(), held);
        let reply = at.call(OUT, packet).await;
        let line = self.cookie.line(&id)?;
        let made = reply.and_then(|reply| with_cookie(flow, reply, line));
        if made.is_err() {
            // The session is deleted, because nobody gets its number. If that fails too, the entry
            // expires some day.
            let _ = self.carry_out(at, &key(&id), Act::Delete, None).await;
        }
        made
    }

    async fn end(&self, at: At<'_>, packet: Value) -> Reply {
        self.forget(at, &packet).await?;
        let line = self.cookie.deleted();
        match at.call(OUT, packet).await {
            Ok(reply) => with_cookie(at.flow(), reply, line),
            Err(error) => Err(error.with_header("set-cookie", line)),
        }
    }

    /// Deletes the session of the request, if it has one.
    async fn forget(&self, at: At<'_>, packet: &Value) -> Result<(), Error> {
        let Some(key) = self.key_of(packet)? else { return Ok(()) };
        self.carry_out(at, &key, Act::Delete, None).await.map(drop)
    }

    fn store(&self) -> &Store {
        self.store.as_deref().expect("its name was looked up as the node was made")
    }

    async fn carry_out(
        &self,
        at: At<'_>,
        key: &str,
        act: Act,
        expire_ms: Option<u64>,
    ) -> Result<Outcome, Error> {
        let asked = Asked { key: key.into(), act, expire_ms };
        self.store().carry_out(at.pool(), asked).await
    }

    /// The key of the entry that the request's cookie names.
    fn key_of(&self, packet: &Value) -> Result<Option<String>, Error> {
        let id = cookie::of_packet(packet, &self.cookie.name)?;
        Ok(id.filter(|id| id.len() <= ID_TEXT_MAX).map(|id| key(&id)))
    }

    /// Refuses (403) requests that a page of another site makes a browser send, if they do more
    /// than read. A request to change the protocol, such as to a websocket, counts as more.
    /// Browsers name the site in `Sec-Fetch-Site`, older ones in `Origin`. A client that sends
    /// neither is not a browser, and no page can make it send a cookie.
    fn is_own_page(&self, packet: &Value) -> Result<(), Error> {
        let method = packet.field("method")?;
        let reads = method.as_text().is_some_and(|method| READING.contains(&method));
        if reads && header(packet, "upgrade")?.is_none() {
            return Ok(());
        }
        let origin = header(packet, "origin")?;
        let is_listed =
            || origin.as_ref().is_some_and(|it| self.origins.contains(&it.to_lowercase()));
        let site = header(packet, "sec-fetch-site")?;
        let is_own = match (site.as_deref(), origin.as_deref()) {
            (Some("same-origin" | "none"), _) | (None, None) => true,
            (Some(_), _) => is_listed(),
            (None, Some(origin)) => {
                let host = match packet.field("host")? {
                    Value::Text(host) => Some(host),
                    _ => header(packet, "host")?,
                };
                let name = origin.split_once("://").map(|(_scheme, name)| name);
                let is_same =
                    |host: &ByteString| name.is_some_and(|it| it.eq_ignore_ascii_case(host));
                host.as_ref().is_some_and(is_same) || is_listed()
            }
        };
        match is_own {
            true => Ok(()),
            false => {
                let text = "the request is from a page of another site; to allow it, add the site \
                            to 'origins'";
                Err(refused(403, text))
            }
        }
    }
}

/// A new number that nobody has or can guess, as text.
fn new_id() -> Result<String, Error> {
    let mut bytes = [0; ID_LEN];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::new("the kernel gives no random bytes"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The key of a session's entry. It is a hash, so that someone who reads the store does not get the
/// numbers.
fn key(id: &str) -> String {
    let hash = digest::digest(&digest::SHA256, id.as_bytes());
    format!("session/{}", BASE64_URL_SAFE_NO_PAD.encode(hash))
}
