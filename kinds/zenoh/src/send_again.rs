//! What a stranger can do that hears hosts and may call others: send again what it has heard, send
//! it under another key, or send garbage.

mod garbage;

use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sinew_hosts::{message_key, stamp_key};
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::{Config, Session, Wait};

pub use garbage::send_garbage;

/// Messages that are sent, at most.
const MESSAGES_MAX: usize = 10_000;
/// They must be heard within this time.
const HEARD_WITHIN: Duration = Duration::from_secs(5);
/// What was heard is kept for this long, so that its first hearer has taken it before.
const KEPT_FOR: Duration = Duration::from_millis(500);
/// All hosts must be connected within this time.
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
    let (count, session) = (number(count)?, open(&[from, to])?);
    // `**` stands for no part that begins with '@': for no stamp.
    let heard = hear(&session, &format!("sinew/{graph}/{host}/**"), count)?;
    sleep(KEPT_FOR);
    for (key, message) in heard {
        session.put(key, message).wait().map_err(failed)?;
    }
    session.close().wait().map_err(failed)
}

/// Hears messages under one key and sends them under another: `<graph> <where they are heard>
/// <where they are sent> <how many> <key> <key>`. A key is `HOST` for the stamps of a host, or
/// `HOST:NODE:PORT:HASH` with the hash of the type in hexadecimal. Blocks for seconds.
///
/// # Errors
/// A host cannot be reached or says fewer messages, or the text is malformed.
pub fn misplace(text: &str) -> Result<(), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let &[graph, from, to, count, heard, put] = words.as_slice() else {
        return Err(format!("'{text}': expected a graph, two addresses, a number and two keys"));
    };
    let (count, session) = (number(count)?, open(&[from, to])?);
    let put = key(graph, put)?;
    for (_, message) in hear(&session, &key(graph, heard)?, count)? {
        session.put(&put, message).wait().map_err(failed)?;
    }
    session.close().wait().map_err(failed)
}

/// A session with the hosts that listen at these addresses.
fn open(addresses: &[&str]) -> Result<Session, String> {
    let mut addresses = addresses.to_vec();
    addresses.dedup();
    let endpoints = addresses.iter().map(|it| format!("\"tcp/{it}\""));
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"{{ mode: "peer", listen: {{ endpoints: [] }},
connect: {{ endpoints: [{endpoints}], exit_on_failure: false, timeout_ms: -1 }},
open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }},
scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }} }}"#
    );
    let session = zenoh::open(Config::from_json5(&text).map_err(failed)?).wait().map_err(failed)?;
    let begun = Instant::now();
    while session.info().peers_zid().wait().count() < addresses.len() {
        if begun.elapsed() > CONNECTED_WITHIN {
            return Err(format!("the sender cannot reach {}", addresses.join(" and ")));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(session)
}

/// What came, and its key.
type Heard = (KeyExpr<'static>, ZBytes);

/// As many messages as are wanted, under keys of this form.
fn hear(session: &Session, keys: &str, count: usize) -> Result<Vec<Heard>, String> {
    let (say, said) = mpsc::sync_channel(count);
    let subscriber = session.declare_subscriber(keys);
    // Messages beyond the wanted number are dropped.
    let subscriber = subscriber.callback(move |it| {
        drop(say.try_send((it.key_expr().clone(), it.payload().clone())));
    });
    let subscriber = subscriber.wait().map_err(failed)?;
    let end = Instant::now() + HEARD_WITHIN;
    let next = || said.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let heard: Vec<Heard> = std::iter::from_fn(next).take(count).collect();
    drop(subscriber);
    match heard.len() == count {
        true => Ok(heard),
        false => Err(format!("under '{keys}' came {} of {count} messages", heard.len())),
    }
}

fn number(word: &str) -> Result<usize, String> {
    let count = word.parse().ok().filter(|count| (1..=MESSAGES_MAX).contains(count));
    count.ok_or_else(|| format!("'{word}': expected 1 to {MESSAGES_MAX} messages"))
}

/// A key from its word.
fn key(graph: &str, word: &str) -> Result<String, String> {
    let parts: Vec<&str> = word.split(':').collect();
    match *parts.as_slice() {
        [host] => Ok(stamp_key(graph, host)),
        [host, node, port, hash] => {
            let hash = u32::from_str_radix(hash, 16).map_err(|_| format!("'{hash}': no hash"))?;
            Ok(message_key(graph, host, node, port, hash))
        }
        _ => Err(format!("'{word}': expected HOST or HOST:NODE:PORT:HASH")),
    }
}

fn failed(error: zenoh::Error) -> String {
    format!("cannot send: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_key() {
        assert_eq!(key("g", "a").as_deref(), Ok("sinew/g/a/@stamp"));
        assert_eq!(key("g", "a:n/m:out:1f").as_deref(), Ok("sinew/g/a/n/m/out/0000001f"));
        assert!(key("g", "a:b").is_err() && key("g", "a:n:out:x").is_err());
    }
}
