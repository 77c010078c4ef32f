//! `websocket`: a listener's request that becomes a websocket.

use hyper::header::HeaderName;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::session::{AS, CONCURRENCY, DEADLINE, MESSAGE_SIZE_MAX, Manners, PING, SocketSession};
use crate::http::request::Request;
use crate::http::upgrade::{SWITCHING, Upgrade, WEBSOCKET, asks_for_websocket, has_word, words};
use crate::work::WORK_MAX;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "websocket",
    doc: "Makes a websocket of a listener's request. Each message goes to 'out', and its reply is \
          sent back; a reply of nothing sends nothing. The next message is read when the reply of \
          the one before has been sent. A request that asks for no websocket fails with 426.",
    ports: &[
        input("in", "The request."),
        error(),
        output("out", "A message: a text, bytes, or the value of its JSON."),
        output(
            "send",
            "The request, when the connection is open: its reply is sent; of a stream each \
             element, while it comes.",
        ),
    ],
    parameters: &[
        AS,
        CONCURRENCY,
        MESSAGE_SIZE_MAX,
        DEADLINE,
        WORK_MAX,
        PING,
        Parameter::new("protocols", ParameterType::Texts { max: 64 })
            .or("[]")
            .doc("Supported subprotocols; of those that the client offers, the first one is used."),
    ],
    ..FLOW
};

const OUT: usize = 2;
const SEND: usize = 3;

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");

struct WebSocket {
    manners: Manners,
    protocols: Vec<String>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let protocols = parameters.texts("protocols").to_vec();
    Ok(Box::new(WebSocket { manners: Manners::of(parameters), protocols }))
}

impl FlowNode for WebSocket {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        match self.shake_hands(at, packet) {
            Ok(reply) => Step::Reply(Some(reply)),
            Err(error) => Step::Fail(error),
        }
    }
}

impl WebSocket {
    /// Answers the handshake; what follows is left to the listener.
    fn shake_hands(&self, at: At<'_>, packet: Value) -> Result<Value, Error> {
        let request = Request::of(&packet).ok_or_else(|| {
            Error::new(format_args!(
                "a websocket begins with the request of a listener, got {}",
                packet.sort()
            ))
        })?;
        let headers = &request.parts().headers;
        if !asks_for_websocket(request.parts()) || !has_word(headers, &VERSION, "13") {
            return Err(Error::new("the request asks for no websocket of version 13")
                .with_status(426)
                .with_header("upgrade", WEBSOCKET)
                .with_header("connection", "upgrade")
                .with_header("sec-websocket-version", "13"));
        }
        // 16 bytes in Base64 (RFC 6455, 4.1).
        let key = headers.get(KEY).filter(|key| key.len() == 24).ok_or_else(|| {
            Error::new("the request has no 'sec-websocket-key' of 16 bytes").with_status(400)
        })?;
        let accept = Value::text(derive_accept_key(key.as_bytes()));
        let mut header = vec![("sec-websocket-accept", accept)];
        let spoken = |offered: &&str| self.protocols.iter().any(|spoken| spoken == offered);
        header.extend(
            words(headers, &PROTOCOL)
                .find(spoken)
                .map(|agreed| ("sec-websocket-protocol", Value::text(agreed))),
        );
        let reply =
            Value::map([("status", Value::Integer(SWITCHING)), ("header", Value::map(header))]);
        let (beside, manners) = (at.beside(self.manners.work_max())?, self.manners);
        // A copy, because otherwise the buffer of its head would be kept as long as the connection.
        let request = at.is_linked(SEND).then(|| packet.compact());
        let upgrade = Upgrade::new(WEBSOCKET, move |wire, first| {
            Box::pin(beside.run(async move |at: At<'_>| {
                let config = Some(manners.config());
                let socket = match first.is_empty() {
                    true => WebSocketStream::from_raw_socket(wire, Role::Server, config).await,
                    false => {
                        let role = Role::Server;
                        WebSocketStream::from_partially_read(wire, first, role, config).await
                    }
                };
                let opening = request.map(|request| (SEND, request));
                SocketSession::over(at, OUT, manners, socket).run(opening).await
            }))
        });
        at.flow().leave(Box::new(upgrade));
        Ok(reply)
    }
}
