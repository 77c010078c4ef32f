//! What a stranger can do that hears a host and may call others: send again what it has heard.

use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use zenoh::{Config, Wait};

/// Messages that are sent again, at most.
const MESSAGES_MAX: usize = 1000;
/// They must be heard within this time.
const HEARD_WITHIN: Duration = Duration::from_secs(5);
/// What was heard is kept for this long, so that its first hearer has taken it before.
const KEPT_FOR: Duration = Duration::from_millis(500);
/// Both hosts must be connected within this time.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// Hears messages of a host and sends them again: `<graph> <host> <where it listens> <where they
/// are sent> <how many>`, with `ADDRESS:PORT` twice. Blocks for seconds.
///
/// # Errors
/// A host cannot be reached or says fewer messages, or the text is malformed.
pub fn send_again(text: &str) -> Result<(), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let &[graph, host, from, to, count] = words.as_slice() else {
        return Err(format!("'{text}': expected a graph, a host, two addresses and a number"));
    };
    let count = count.parse().ok().filter(|count| (1..=MESSAGES_MAX).contains(count));
    let count: usize = count.ok_or(format!("'{text}': expected 1 to {MESSAGES_MAX} messages"))?;
    let failed = |error: zenoh::Error| format!("cannot send again: {error}");
    let text = format!(
        r#"{{ mode: "peer", listen: {{ endpoints: [] }},
connect: {{ endpoints: ["tcp/{from}", "tcp/{to}"], exit_on_failure: false, timeout_ms: -1 }},
open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }},
scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }} }}"#
    );
    let session = zenoh::open(Config::from_json5(&text).map_err(failed)?).wait().map_err(failed)?;
    let begun = Instant::now();
    while session.info().peers_zid().wait().count() < 2 {
        if begun.elapsed() > CONNECTED_WITHIN {
            return Err(format!("the sender cannot reach {from} and {to}"));
        }
        sleep(Duration::from_millis(10));
    }
    let (say, said) = mpsc::sync_channel(count);
    // `**` stands for no part that begins with '@': for no stamp.
    let subscriber = session.declare_subscriber(format!("sinew/{graph}/{host}/**"));
    // Messages beyond the wanted number are dropped.
    let subscriber = subscriber.callback(move |it| drop(say.try_send(it)));
    let subscriber = subscriber.wait().map_err(failed)?;
    let end = Instant::now() + HEARD_WITHIN;
    let next = || said.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let heard: Vec<_> = std::iter::from_fn(next).take(count).collect();
    drop(subscriber);
    if heard.len() < count {
        return Err(format!("'{host}' has said {} of {count} messages", heard.len()));
    }
    sleep(KEPT_FOR);
    for it in &heard {
        session.put(it.key_expr(), it.payload().clone()).wait().map_err(failed)?;
    }
    session.close().wait().map_err(failed)
}
