//! The hot verbs, a thousand repetitions of each.

mod cycle;
mod flows;
mod http;
mod links;
mod plan;

/// How often each verb is repeated. For a plan it is the number of nodes, for `flow/hop` the number
/// of hops.
pub(crate) const TIMES: usize = 1000;

/// The work that is counted: all repetitions of a verb. It is created before counting and dropped
/// after it.
pub(crate) type Work = Box<dyn FnMut()>;

/// A verb that is counted.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Work,
    /// The same verb with a mistake, for the test that the gate rings.
    pub(crate) mistaken: Option<fn() -> Work>,
}

const fn verb(name: &'static str, make: fn() -> Work) -> Verb {
    Verb { name, make, mistaken: None }
}

/// All verbs.
pub(crate) const VERBS: &[Verb] = &[
    verb("queue_send/8", || links::send(8)),
    Verb { mistaken: Some(|| links::send_copy(64)), ..verb("queue_send/64", || links::send(64)) },
    verb("queue_send/256", || links::send(256)),
    verb("queue_send/4096", || links::send(4096)),
    verb("queue_receive/8", || links::receive(8)),
    verb("queue_receive/64", || links::receive(64)),
    verb("queue_receive/256", || links::receive(256)),
    verb("queue_receive/4096", || links::receive(4096)),
    verb("latest/64", || links::exchange(64)),
    verb("latest/4096", || links::exchange(4096)),
    verb("cycle/four_nodes", cycle::four),
    Verb { mistaken: Some(flows::open_locked), ..verb("flow/open", flows::open) },
    verb("flow/hop", flows::hop),
    verb("route/fixed", || flows::route("/ping")),
    verb("route/parameter", || flows::route("/users/7/posts")),
    verb("expression/two_fields", || {
        flows::node("kind: if, when: 'packet.user.age >= 18 && packet.user.name != \"\"'")
    }),
    verb("template/one_field", || {
        flows::node("kind: snippet, language: text, code: 'Hello, {{ packet.user.name }}'")
    }),
    verb("request/ping", http::ping),
    verb("request/ping_apart", http::ping_apart),
    verb("request/ping_traced", http::ping_traced),
    verb("plan/nodes", plan::compiled),
];
