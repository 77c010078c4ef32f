//! Garbage from somebody who has no part in the graph.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use fastrand::Rng;
use zenoh::qos::CongestionControl;
use zenoh::{Session, Wait};

use super::{CONNECTED_WITHIN, failed, key, number, open};

/// Threads that connect, say garbage and leave.
const CALLERS: usize = 2;
/// Pause between two such connections of a thread.
const PAUSE: Duration = Duration::from_millis(5);
/// Most bytes that are said over one, and under a key at once.
const SAID_MAX: usize = 4096;
const MESSAGE_MAX: usize = 200;
/// Connections that stay open and say nothing: half of those that a host accepts before they have
/// said who they are. The other half is for hosts.
const MUTE: usize = 8;
/// How often it is looked whether a mute one was closed by the other side; then it is opened again.
const LOOK: Duration = Duration::from_millis(50);
/// A connection is there within this time, or not at all.
const CONNECTS_WITHIN: Duration = Duration::from_millis(500);

/// Sends garbage to a host: `<graph> <its address> <for how many seconds> <how many messages>
/// <key>...`, with keys as for [`misplace`](super::misplace). The messages are spread over that
/// time. Connections that say garbage, or nothing, come meanwhile.
///
/// # Errors
/// The host cannot be reached, or the text is malformed.
pub fn send_garbage(text: &str) -> Result<(), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let [graph, to, seconds, count, keys @ ..] = words.as_slice() else {
        return Err(format!("'{text}': expected a graph, an address, two numbers and keys"));
    };
    let address: SocketAddr = to.parse().map_err(|_| format!("'{to}': no address"))?;
    let seconds: u32 = seconds.parse().map_err(|_| format!("'{seconds}': no number"))?;
    let keys = keys.iter().map(|word| key(graph, word)).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(format!("'{text}': expected a key"));
    }
    let (count, session) = (number(count)?, open(&[to])?);
    await_hearers(&session, &keys)?;
    let (time, end) = (Duration::from_secs(1) * seconds, Instant::now());
    let end = end + time;
    let [said, mute] = [(); 2].map(|()| AtomicU64::new(0));
    let put = thread::scope(|scope| {
        (0..CALLERS).for_each(|_| _ = scope.spawn(|| shout(address, end, &said)));
        scope.spawn(|| stay(address, end, &mute));
        put(&session, &keys, count, time)
    });
    put.and_then(|()| session.close().wait()).map_err(failed)?;
    match (said.into_inner(), mute.into_inner()) {
        (1.., 1..) => Ok(()),
        _ => Err(format!("no connection to {to} was taken")),
    }
}

/// Waits until the host is known to hear all keys: what is sent before that goes nowhere.
fn await_hearers(session: &Session, keys: &[String]) -> Result<(), String> {
    let begun = Instant::now();
    for key in keys {
        let publisher = session.declare_publisher(key.clone()).wait().map_err(failed)?;
        while !publisher.matching_status().wait().map_err(failed)?.matching() {
            if begun.elapsed() > CONNECTED_WITHIN {
                return Err(format!("nobody hears '{key}'"));
            }
            sleep(LOOK);
        }
    }
    Ok(())
}

/// Sends the messages of garbage.
fn put(session: &Session, keys: &[String], count: usize, time: Duration) -> zenoh::Result<()> {
    let (mut random, begun) = (Rng::new(), Instant::now());
    for at in 0..count {
        let bytes = garbage(&mut random, MESSAGE_MAX);
        // Without a wait for room it would drop some of them itself.
        let put = session.put(&keys[at % keys.len()], bytes);
        put.congestion_control(CongestionControl::Block).wait()?;
        let due = time.mul_f64((at + 1) as f64 / count as f64);
        sleep(due.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// Connects, says garbage, leaves, and so on.
fn shout(to: SocketAddr, end: Instant, said: &AtomicU64) {
    let mut random = Rng::new();
    while Instant::now() < end {
        let bytes = garbage(&mut random, SAID_MAX);
        let stream = TcpStream::connect_timeout(&to, CONNECTS_WITHIN);
        if stream.is_ok_and(|mut stream| stream.write_all(&bytes).is_ok()) {
            said.fetch_add(1, Relaxed);
        }
        sleep(PAUSE);
    }
}

/// Keeps connections open that say nothing.
fn stay(to: SocketAddr, end: Instant, opened: &AtomicU64) {
    let mut mute: Vec<TcpStream> = vec![];
    while Instant::now() < end {
        mute.retain_mut(|stream| {
            // An error other than 'nothing to read' means that it is closed.
            let is_open = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
            stream.read(&mut [0; 64]).map_or_else(is_open, |len| len > 0)
        });
        if mute.len() < MUTE
            && let Ok(stream) = TcpStream::connect_timeout(&to, CONNECTS_WITHIN)
            && stream.set_nonblocking(true).is_ok()
        {
            opened.fetch_add(1, Relaxed);
            mute.push(stream);
            continue;
        }
        sleep(LOOK);
    }
}

fn garbage(random: &mut Rng, len_max: usize) -> Vec<u8> {
    let len = random.usize(1..=len_max);
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}
