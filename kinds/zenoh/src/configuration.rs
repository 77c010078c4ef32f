//! The settings of zenoh, as the JSON5 that it reads.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sinew_flow::RELAYED_MAX;
use sinew_hosts::{HEADER_LEN, call_key, message_key, number, stamp_key};

use crate::setting::{CallPort, MESSAGE_MAX, Peer, Setting, TlsFiles, Way, cn};

/// A connection is over when nothing came for this long. Both sides have the same limit, so that
/// both see the end at about the same time.
pub(crate) const LEASE: Duration = Duration::from_millis(500);
/// Longest packet or reply of a call, in bytes.
pub(crate) const CALL_MAX: usize = RELAYED_MAX;
/// Bytes of a place in zenoh's queues to the network: one batch.
const BATCH: usize = 64 << 10;
/// Bytes that the kernel keeps of what was sent and not acknowledged, at least. After an outage
/// they come late. Nothing of them is obeyed, but they delay what comes behind them.
const SOCKET_MIN: usize = 64 << 10;
/// The same, at most: the kernel would refuse more.
const SOCKET_MAX: usize = 4 << 20;

/// The key of an outgoing port.
pub(crate) fn outgoing_key(setting: &Setting, port: usize) -> String {
    let it = &setting.outgoing[port];
    message_key(&setting.graph, &setting.host, &it.node, &it.port, it.hash)
}

/// The key of an incoming port.
pub(crate) fn incoming_key(setting: &Setting, port: usize) -> String {
    let it = &setting.incoming[port];
    message_key(&setting.graph, &it.from, &it.node, &it.port, it.hash)
}

/// The key of an input of another host.
pub(crate) fn asked_key(setting: &Setting, CallPort { host, node, input }: &CallPort) -> String {
    call_key(&setting.graph, host, &setting.host, node, input)
}

/// The key of an input of this host, for one host that calls it.
pub(crate) fn answered_key(setting: &Setting, CallPort { host, node, input }: &CallPort) -> String {
    call_key(&setting.graph, &setting.host, host, node, input)
}

/// What a host subscribes to, to hear what is sent under a key.
///
/// Zenoh replaces the beginning of a key without wildcards by a number, and each side of a
/// connection has numbers of its own. After a short outage a connection may begin anew at one side
/// while the other side still uses the numbers of the one before: data then comes out under the
/// key of another port. A pattern whose first part has a wildcard gets no number, and what is sent
/// to it bears its whole key.
pub(crate) fn heard(key: &str) -> String {
    key.replacen("sinew/", "sinew$*/", 1)
}

/// The key of the token that says that a host is there.
pub(crate) fn alive_key(graph: &str, host: &str) -> String {
    format!("sinew/{graph}/{host}/@alive")
}

/// The number by which the end of a connection shows its host: not that of a host with the same
/// name in another graph.
pub(crate) fn end_number(setting: &Setting, host: &str) -> u64 {
    number(&format!("{}/{host}", setting.graph))
}

/// The name of this connection's end, in hexadecimal: zenoh's id. Its upper half is the host's
/// number, so that the others know whose end it is; its lower half is new each time.
pub(crate) fn end_name(host: u64, life: u64) -> String {
    format!("{:x}", u128::from(host) << 64 | u128::from(life))
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The number of its host, if it says one.
    pub(crate) host: Option<u64>,
    /// Where it is, if that is an address of IP.
    pub(crate) address: Option<SocketAddr>,
}

/// The number of the host at an end.
pub(crate) fn host_of(end: &str) -> Option<u64> {
    u128::from_str_radix(end, 16).ok().map(|it| (it >> 64) as u64)
}

/// All settings for one way. The end of the connection gets the name `end`; zenoh listens at
/// `listened`.
///
/// A connection to a router is first tried once, because zenoh opens no client without one. If it
/// is lost later, zenoh dials again for ever.
pub(crate) fn configuration(setting: &Setting, way: Way, end: &str, listened: &[String]) -> String {
    let is_direct = way == Way::Direct;
    let protocol = if setting.tls.is_some() { "quic" } else { "tcp" };
    let endpoint = |address: &str| quoted(&endpoint(setting, address));
    let listen = listened.iter().map(|it| endpoint(it)).collect::<Vec<_>>().join(", ");
    let (mode, dialled, timeout_ms): (_, Vec<_>, _) = match way {
        Way::Direct => ("peer", setting.dialled().map(|it| endpoint(it.1)).collect(), -1),
        Way::Router => ("client", setting.router.as_deref().map(endpoint).into_iter().collect(), 0),
    };
    let sessions = setting.places();
    let ports = setting.outgoing.iter().map(|it| it.bytes);
    let largest = ports.chain(setting.incoming.iter().map(|it| it.bytes)).max().unwrap_or(0);
    let socket = (largest * 4).clamp(SOCKET_MIN, SOCKET_MAX);
    let has_calls = !(setting.calls.is_empty() && setting.called.is_empty());
    let call = if has_calls { CALL_MAX } else { 0 };
    // Enough places for a whole call: while one waits for the network, those behind it wait, too.
    let data = if has_calls { CALL_MAX / BATCH } else { 1 };
    // Beside the message: its header with echoes, key and attributes, and declarations, which are
    // small.
    let message =
        (largest.max(call) + HEADER_LEN + 4096).clamp(SOCKET_MIN, MESSAGE_MAX + SOCKET_MIN);
    let lease = LEASE.as_millis();
    let buffers = format!("so_sndbuf: {socket}, so_rcvbuf: {socket}");
    let tls = setting.tls.as_ref().map(tls).unwrap_or_default();
    // With a router, it is the router that knows who is who.
    let access = setting.tls.as_ref().filter(|_| is_direct).map(|_| access(setting));
    let access = access.unwrap_or_default();
    format!(
        r#"{{
mode: "{mode}", id: "{end}",
listen: {{ endpoints: [{listen}], exit_on_failure: true, timeout_ms: 0 }},
connect: {{
  endpoints: [{}], exit_on_failure: false, timeout_ms: {timeout_ms},
  retry: {{ period_init_ms: 100, period_max_ms: 200, period_increase_factor: 2 }},
}},
open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }},
scouting: {{ delay: 0, multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }},
adminspace: {{ enabled: false }},
{access}
transport: {{
  unicast: {{
    open_timeout: 1000, accept_timeout: 1000, accept_pending: 16,
    max_sessions: {sessions}, max_links: 1, qos: {{ enabled: true }},
  }},
  link: {{
    protocols: ["{protocol}"],
    tx: {{
      lease: {lease}, keep_alive: 4,
      queue: {{
        size: {{
          control: 2, real_time: 4, interactive_high: 8, interactive_low: 1, data_high: 1,
          data: {data}, data_low: 1, background: 1,
        }},
        congestion_control: {{
          drop: {{ wait_before_drop: 1000, max_wait_before_drop_fragments: 20000 }},
          block: {{ wait_before_close: 200000 }},
        }},
        allocation: {{ mode: "lazy" }},
      }},
    }},
    rx: {{ max_message_size: {message} }},
    tcp: {{ {buffers} }},
    {tls}
  }},
}},
}}"#,
        dialled.join(", ")
    )
}

/// The endpoint of an address. With certificates it is QUIC, which includes TLS. Zenoh's own link
/// over TLS and TCP reads and writes one connection from two threads (zenoh's issue 2557), and has
/// crashed here. There is one stream, so that all comes in the order in which it was sent.
fn endpoint(setting: &Setting, address: &str) -> String {
    match setting.tls {
        Some(_) => format!("quic/{address}?multistream=0"),
        None => format!("tcp/{address}"),
    }
}

fn tls(files: &TlsFiles) -> String {
    let path = |it: &Path| quoted(&it.display().to_string());
    let (certificate, key) = (path(&files.certificate), path(&files.key));
    format!(
        "tls: {{ root_ca_certificate: {}, enable_mtls: true, verify_name_on_connect: true, \
         close_link_on_expiration: true, listen_certificate: {certificate}, \
         listen_private_key: {key}, connect_certificate: {certificate}, \
         connect_private_key: {key} }},",
        path(&files.authority)
    )
}

/// Who may do what. Each peer that is spoken with directly may send under its own name and hear
/// what this host sends; nobody may do anything else. The CN of a peer's certificate says who it
/// is.
fn access(setting: &Setting) -> String {
    let own = &setting.host;
    // `**` matches no part that begins with '@'.
    let all = |host: &str| {
        [format!("sinew/{}/{host}/**", setting.graph), stamp_key(&setting.graph, host)]
    };
    let keys = |host: &str| all(host).map(|it| quoted(&it)).join(", ");
    let patterns = |host: &str| all(host).map(|it| quoted(&heard(&it))).join(", ");
    let token = |host: &str| quoted(&alive_key(&setting.graph, host));
    let (mut rules, mut subjects, mut policies) = (String::new(), String::new(), String::new());
    let direct = |it: &&Peer| setting.way(it) == Way::Direct;
    for (at, peer) in setting.peers.iter().filter(direct).map(|it| &it.name).enumerate() {
        let rows = [
            ("ingress", r#""put""#, keys(peer)),
            ("egress", r#""declare_subscriber""#, patterns(peer)),
            ("egress", r#""put""#, keys(own)),
            ("ingress", r#""declare_subscriber""#, patterns(own)),
            ("ingress", r#""liveliness_token""#, token(peer)),
            ("egress", r#""liveliness_token""#, token(own)),
            ("egress", r#""declare_liveliness_subscriber", "liveliness_query""#, token(peer)),
            ("ingress", r#""declare_liveliness_subscriber", "liveliness_query""#, token(own)),
        ];
        let calls = calls(setting, peer);
        let rows = rows.into_iter().chain(calls).filter(|(.., keys)| !keys.is_empty());
        let mut names = Vec::new();
        for (number, (flow, messages, keys)) in rows.enumerate() {
            names.push(format!(r#""r{at}_{number}""#));
            let _ = writeln!(
                rules,
                "{{ id: \"r{at}_{number}\", permission: \"allow\", flows: [\"{flow}\"], \
                 messages: [{messages}], key_exprs: [{keys}] }},"
            );
        }
        let _ = writeln!(
            subjects,
            r#"{{ id: "h{at}", cert_common_names: [{}], link_protocols: ["quic"] }},"#,
            cn(&setting.graph, peer).map(|it| quoted(&it)).join(", ")
        );
        let names = names.join(", ");
        let _ = writeln!(policies, r#"{{ rules: [{names}], subjects: ["h{at}"] }},"#);
    }
    format!(
        "access_control: {{ enabled: true, default_permission: \"deny\",\nrules: [\n{rules}],\n\
         subjects: [\n{subjects}],\npolicies: [\n{policies}] }},"
    )
}

/// What a peer may ask and answer, and what this host may ask it.
fn calls(setting: &Setting, peer: &str) -> [(&'static str, &'static str, String); 6] {
    let keys = |of: &[CallPort], key: fn(&Setting, &CallPort) -> String, as_heard: bool| {
        let of = of.iter().filter(|it| it.host == peer).map(|it| key(setting, it));
        let of = of.map(|key| if as_heard { heard(&key) } else { key });
        of.map(|key| quoted(&key)).collect::<Vec<_>>().join(", ")
    };
    let there = |as_heard| keys(&setting.calls, asked_key, as_heard);
    let here = |as_heard| keys(&setting.called, answered_key, as_heard);
    [
        ("egress", r#""query""#, there(false)),
        ("ingress", r#""reply""#, there(false)),
        ("ingress", r#""declare_queryable""#, there(true)),
        ("ingress", r#""query""#, here(false)),
        ("egress", r#""reply""#, here(false)),
        ("egress", r#""declare_queryable""#, here(true)),
    ]
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let sign = |sign: char| match sign {
        '"' | '\\' => format!("\\{sign}"),
        sign if sign.is_control() => format!("\\u{:04x}", u32::from(sign)),
        sign => sign.to_string(),
    };
    format!("\"{}\"", text.chars().map(sign).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_tells_whose_it_is() {
        for host in [1, u64::MAX, number("arm")] {
            assert_eq!(host_of(&end_name(host, 7)), Some(host));
        }
        assert_eq!(host_of("none"), None);
    }

    #[test]
    fn a_text_is_a_text_whatever_is_in_it() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }
}
