//! The orders of a viewer, and their execution: by the supervisor, at once and from any thread, or
//! by the planner, through a bounded mailbox that the core reads at the boundary of a cycle.

use axum::extract::ws::Utf8Bytes;
use sinew_control::{Request, Supervisor};
use sinew_robot::messages::{PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME};
use subtle::ConstantTimeEq;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

use super::hub::{Hub, ScopeAsk, ScopeWish, Wants, Wish};
use super::protocol::{PageOrder, Signed, Text};
use super::tapped::{self, TapSaid, Tapped};

const WRONG_TOKEN: &str =
    "wrong token; use the one behind '#token=' in the address that 'sinew run' prints";

/// What a message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// An order.
    Done,
    /// Not an order.
    Malformed,
    /// An order without the right token.
    WrongToken,
}

/// What to do next.
pub(super) struct Reply {
    pub(super) told: Told,
    /// To be sent; an order for the planner is answered later.
    pub(super) text: Option<Utf8Bytes>,
    /// What the viewer wants from now on, if it has said so.
    pub(super) wants: Option<Wants>,
    pub(super) tap: TapChange,
}

/// What happens to the viewer's tap.
pub(super) enum TapChange {
    None,
    Begins(Tapped),
    Ends,
}

/// An order that needs a token, without the token.
enum Command {
    Check,
    Ask(Request),
    Plan { what: u32, path: u32 },
    Tap { domain: String, node: Option<String> },
    Untap,
}

/// Where a viewer gets the results of its orders.
pub(super) struct Ears {
    /// The viewer's key.
    pub(super) key: u64,
    pub(super) answers: Sender<Utf8Bytes>,
    /// Lines of its tap.
    pub(super) lines: Sender<TapSaid>,
    /// Pictures of its scope.
    pub(super) pictures: watch::Sender<Utf8Bytes>,
}

/// Carries out the order in a message.
pub(super) async fn carry_out(hub: &Hub, text: &str, ears: &Ears) -> Reply {
    let done = |text| Reply { told: Told::Done, text, wants: None, tap: TapChange::None };
    let order = match parse(text) {
        Ok(order) => order,
        Err((id, text)) => return failed(hub, Told::Malformed, id, &text),
    };
    let plan = |what: u32, path: u32| Command::Plan { what, path };
    let (Signed { id, token }, command) = match order {
        PageOrder::Ping { at } => return done(Some(hub.encode(&Text::Pong { at }))),
        PageOrder::View { image, values } => {
            return Reply { wants: Some([image, values]), ..done(None) };
        }
        PageOrder::Check(signed) => (signed, Command::Check),
        PageOrder::Halt(signed) => {
            let reason = Some("asked for on the dashboard".to_owned());
            (signed, Command::Ask(Request::Halt { reason }))
        }
        PageOrder::Reset(signed) => (signed, Command::Ask(Request::Reset {})),
        PageOrder::Restart { id, token, domain } => {
            (Signed { id, token }, Command::Ask(Request::Restart { domain }))
        }
        PageOrder::Set { id, token, settings, save } => {
            (Signed { id, token }, Command::Ask(Request::Set { settings, save }))
        }
        PageOrder::Choose { id, token, path } => (Signed { id, token }, plan(PLANNER_CHOOSE, path)),
        PageOrder::Pause(signed) => (signed, plan(PLANNER_PAUSE, 0)),
        PageOrder::Resume(signed) => (signed, plan(PLANNER_RESUME, 0)),
        PageOrder::Tap { id, token, domain, node } => {
            (Signed { id, token }, Command::Tap { domain, node })
        }
        PageOrder::Untap(signed) => (signed, Command::Untap),
        PageOrder::Scope(wanted) => {
            return scope(hub, ears, wanted.id, ScopeAsk::Set(wanted));
        }
        PageOrder::Arm { id } => return scope(hub, ears, id, ScopeAsk::Arm(id)),
        PageOrder::Unscope { id } => return scope(hub, ears, id, ScopeAsk::Close(id)),
    };
    if !bool::from(token.as_bytes().ct_eq(hub.owner.secret.as_bytes())) {
        return failed(hub, Told::WrongToken, Some(id), WRONG_TOKEN);
    }
    let mut tap = TapChange::None;
    let outcome = match command {
        Command::Check => Ok("the token is right".into()),
        Command::Ask(request) => ask(hub, move |supervisor| supervisor.order(&request)).await,
        Command::Plan { what, path } => {
            let wish = Wish { id, what, path, answers: ears.answers.clone() };
            match hub.wish(wish, what == PLANNER_CHOOSE) {
                Ok(()) => return done(None),
                Err(text) => Err(text),
            }
        }
        Command::Tap { domain, node } => {
            let lines = ears.lines.clone();
            let open = move |it: &Supervisor| tapped::open(it, &domain, node, lines);
            ask(hub, open).await.map(|tapped| {
                tap = TapChange::Begins(tapped);
                "the ways of flows are shown".into()
            })
        }
        Command::Untap => {
            tap = TapChange::Ends;
            Ok("no more ways are shown".into())
        }
    };
    match outcome {
        Ok(text) => Reply { tap, ..done(Some(hub.encode(&Text::Done { id, text: &text }))) },
        Err(text) => failed(hub, Told::Done, Some(id), &text),
    }
}

/// Passes on an order to the viewer's scope; the node's thread answers.
fn scope(hub: &Hub, ears: &Ears, id: u64, ask: ScopeAsk) -> Reply {
    let (answers, pictures) = (ears.answers.clone(), ears.pictures.clone());
    match hub.scope(ScopeWish { key: ears.key, ask, answers, pictures }) {
        Ok(()) => Reply { told: Told::Done, text: None, wants: None, tap: TapChange::None },
        Err(text) => failed(hub, Told::Done, Some(id), &text),
    }
}

fn failed(hub: &Hub, told: Told, id: Option<u64>, text: &str) -> Reply {
    let text = hub.encode(&Text::Error { id, text });
    Reply { told, text: Some(text), wants: None, tap: TapChange::None }
}

/// The order in a message; otherwise its id, if there is one, and what is wrong.
fn parse(text: &str) -> Result<PageOrder, (Option<u64>, String)> {
    serde_json::from_str(text).map_err(|error| {
        let json: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let id = json.and_then(|json| json.get("id")?.as_u64());
        (id, format!(r#"not an order: {error}; expected one such as {{"do":"ping","at":1}}"#))
    })
}

/// Asks the supervisor, which answers within a millisecond or so, on a thread that may wait.
async fn ask<T: Send + 'static>(
    hub: &Hub,
    ask: impl FnOnce(&Supervisor) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let supervisor = hub.owner.supervisor.clone();
    let asked = Handle::current().spawn_blocking(move || ask(&supervisor)).await;
    asked.unwrap_or_else(|error| Err(format!("a bug: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_the_protocol_is_understood() {
        let signed = || Signed { id: 1, token: "t".into() };
        let cases = [
            (r#"{"do":"ping","at":1.5}"#, PageOrder::Ping { at: 1.5 }),
            (r#"{"do":"view","image":true}"#, PageOrder::View { image: true, values: false }),
            (
                r#"{"do":"view","image":false,"values":true}"#,
                PageOrder::View { image: false, values: true },
            ),
            (r#"{"do":"check","id":1,"token":"t"}"#, PageOrder::Check(signed())),
            (r#"{"do":"halt","id":1,"token":"t"}"#, PageOrder::Halt(signed())),
            (r#"{"id":1,"token":"t","do":"reset"}"#, PageOrder::Reset(signed())),
            (
                r#"{"do":"restart","id":1,"token":"t","domain":"camera"}"#,
                PageOrder::Restart { id: 1, token: "t".into(), domain: "camera".into() },
            ),
            (
                r#"{"do":"choose","id":1,"token":"t","path":2}"#,
                PageOrder::Choose { id: 1, token: "t".into(), path: 2 },
            ),
            (r#"{"do":"pause","id":1,"token":"t"}"#, PageOrder::Pause(signed())),
            (r#"{"do":"resume","id":1,"token":"t"}"#, PageOrder::Resume(signed())),
            (
                r#"{"do":"tap","id":1,"token":"t","domain":"api","node":"router"}"#,
                PageOrder::Tap {
                    id: 1,
                    token: "t".into(),
                    domain: "api".into(),
                    node: Some("router".into()),
                },
            ),
            (
                r#"{"do":"set","id":1,"token":"t","settings":["pid.kp=2"],"save":true}"#,
                PageOrder::Set {
                    id: 1,
                    token: "t".into(),
                    settings: vec!["pid.kp=2".into()],
                    save: true,
                },
            ),
            (r#"{"do":"arm","id":1}"#, PageOrder::Arm { id: 1 }),
            (r#"{"do":"untap","id":1,"token":"t"}"#, PageOrder::Untap(signed())),
        ];
        for (text, order) in cases {
            assert_eq!(parse(text), Ok(order));
        }
    }

    #[test]
    fn what_is_no_order_is_answered_with_its_id_and_what_was_expected() {
        let deep = format!(r#"{{"do":"check","id":{}"#, "[".repeat(4000));
        let cases = [
            ("", None, "EOF"),
            ("null", None, "expected"),
            ("{}", None, "missing field `do`"),
            (r#"{"do":"explode","id":9}"#, Some(9), "unknown variant `explode`"),
            (r#"{"do":"halt","id":9}"#, Some(9), "missing field `token`"),
            (r#"{"do":"halt","id":-1,"token":"t"}"#, None, "invalid value"),
            (r#"{"do":"halt","id":9,"token":"t","x":1}"#, Some(9), "unknown field `x`"),
            (r#"{"do":"ping","do":"halt","id":9,"token":"t"}"#, Some(9), "duplicate field `do`"),
            (r#"{"do":"halt","id":9,"id":8,"token":"t"}"#, Some(8), "duplicate field `id`"),
            (r#"{"do":"choose","id":9,"token":"t","path":4294967296}"#, Some(9), "invalid value"),
            (r#"{"do":"ping","at":1e999}"#, None, "out of range"),
            (deep.as_str(), None, "recursion limit"),
        ];
        for (text, id, expected) in cases {
            let (found, error) = parse(text).expect_err(text);
            assert_eq!(found, id, "{text}");
            assert!(error.contains(expected) && error.contains("ping"), "{error}");
        }
    }
}
