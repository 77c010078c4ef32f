//! What the tests are made of: settings, a clock that records what it said, sessions of strangers.

use std::cell::Cell;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sinew_hosts::{MessageHeader, number};
use sinew_zenoh::{IncomingPort, Mirror, NotTaken, OutgoingPort, Peer, Setting, TlsFiles};
use zenoh::{Config, Session, Wait};

/// What a test waits for comes long before this limit.
const LIMIT: Duration = Duration::from_secs(30);
/// The type of the messages of tests.
pub(crate) const HASH: u32 = 0xabc;

thread_local! {
    static SAID: Cell<u64> = const { Cell::new(0) };
}

/// The clock of all mirrors of this process.
pub(crate) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // The clock starts at 1 s, so that no stamp would have to be before 0.
    let now_ns = 1_000_000_000 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64;
    SAID.set(now_ns);
    now_ns
}

/// What the clock said last on this thread: the time by which the last message was judged.
pub(crate) fn said_ns() -> u64 {
    SAID.get()
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    until_within(LIMIT, what, holds);
}

/// The same with another limit.
#[track_caller]
pub(crate) fn until_within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < end, "waited {limit:?} for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An address that nobody listens at, with TCP or UDP. Its port is none that the kernel gives to
/// connections, so none of the other tests gets it by chance.
pub(crate) fn free_address() -> String {
    const PORTS: std::ops::Range<u32> = 12_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // A number of its own for each call; processes begin at different ones.
        let number = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id().wrapping_mul(61);
        let address = format!("127.0.0.1:{}", PORTS.start + number % PORTS.len() as u32);
        if TcpListener::bind(&address).is_ok() && UdpSocket::bind(&address).is_ok() {
            return address;
        }
    }
}

/// A host of graph `g` that listens at `listen`, with others where they are reached.
pub(crate) fn setting(host: &str, listen: Option<&str>, peers: &[(&str, Option<&str>)]) -> Setting {
    let peer = |(name, address): &(&str, Option<&str>)| Peer {
        name: (*name).into(),
        address: address.map(str::to_owned),
        calls_router: false,
    };
    Setting {
        graph: "g".into(),
        host: host.into(),
        version: 1,
        listen: listen.map(str::to_owned),
        router: None,
        peers: peers.iter().map(peer).collect(),
        tls: None,
        secret: None,
        outgoing: vec![],
        incoming: vec![],
        calls: vec![],
        called: vec![],
        now_ns,
    }
}

/// A port of the node `n`.
pub(crate) fn outgoing(port: &str, bytes: usize) -> OutgoingPort {
    OutgoingPort { node: "n".into(), port: port.into(), hash: HASH, bytes }
}

/// The port of the node `n` of another host; up to 64 messages wait.
pub(crate) fn incoming(
    from: &str,
    port: &str,
    bytes: usize,
    after_ms: Option<u64>,
) -> IncomingPort {
    IncomingPort {
        from: from.into(),
        node: "n".into(),
        port: port.into(),
        hash: HASH,
        bytes,
        after_ns: after_ms.map(|it| it * 1_000_000),
        newest_only: false,
        capacity: 64,
    }
}

/// The header of what a life of a host sends under a key, without echoes.
pub(crate) fn header(host: &str, life: u64, key: &str) -> MessageHeader {
    MessageHeader { host: number(host), life, key: number(key), ..MessageHeader::default() }
}

/// How often host `at` of the setting was met with this reason.
pub(crate) fn not_taken(mirror: &Mirror, at: usize, reason: NotTaken) -> u64 {
    mirror.not_taken()[at].of(reason)
}

/// One turn: sends these at outgoing port 0.
pub(crate) fn turn(mirror: &mut Mirror, messages: &[&[u8]]) {
    mirror.begin();
    for message in messages {
        mirror.send(0, message);
    }
    mirror.end();
}

/// All that is there at an incoming port whose messages are one number.
pub(crate) fn numbers(mirror: &mut Mirror, incoming: usize) -> Vec<u64> {
    let mut bytes = [0; 8];
    let mut next = || mirror.receive(incoming, &mut bytes).map(|_| u64::from_le_bytes(bytes));
    std::iter::from_fn(&mut next).collect()
}

/// A session of somebody who is no host, with more settings of zenoh.
pub(crate) fn stranger(addresses: &[&str], more: &str) -> Session {
    somebody("peer", addresses, more)
}

fn somebody(mode: &str, addresses: &[&str], more: &str) -> Session {
    let endpoints: Vec<_> = addresses.iter().map(|it| format!("\"{it}\"")).collect();
    let text = format!(
        "{{ mode: \"{mode}\", listen: {{ endpoints: [] }}, {more} \
         connect: {{ endpoints: [{}], exit_on_failure: false, timeout_ms: -1, \
         retry: {{ period_init_ms: 100, period_max_ms: 200 }} }}, \
         open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }}, \
         scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }} }}",
        endpoints.join(", ")
    );
    zenoh::open(Config::from_json5(&text).expect("settings")).wait().expect("a session")
}

/// The same, in a mode of zenoh, over TLS with these files, if any.
pub(crate) fn dials(
    address: &str,
    authority: &Path,
    shown: Option<&TlsFiles>,
    mode: &str,
) -> Session {
    let path = |it: &Path| it.display().to_string();
    let files = shown.map(|it| {
        let (certificate, key) = (path(&it.certificate), path(&it.key));
        format!("connect_certificate: '{certificate}', connect_private_key: '{key}', ")
    });
    let tls = format!(
        "transport: {{ link: {{ tls: {{ {} enable_mtls: {}, root_ca_certificate: '{}' }} }} }},",
        files.as_deref().unwrap_or_default(),
        shown.is_some(),
        path(authority)
    );
    somebody(mode, &[&format!("quic/{address}?multistream=0")], &tls)
}

/// How many others a session is connected to.
pub(crate) fn connected(session: &Session) -> usize {
    session.info().peers_zid().wait().count()
}
