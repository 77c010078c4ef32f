//! Faults by somebody who has no part in the graph, and connects to its hosts. That is a process of
//! its own, for this crate does not speak their protocol.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::{HostState, HostStatus};
use sinew_core::privileges;
use sinew_spec::plan::RemoteLink;

use super::LOOK;
use super::lines::LONG;
use super::strike::{Look, Strike, unseen};
use crate::drill::line::{Condition, Line};
use crate::drill::outside::SeenOutside;
use crate::drill::seen::SeenHost;
use crate::harness::Gone;
use crate::harness::process::Process;

/// The far side that hears messages of a host, as anybody on the network could, and sends them
/// again later. Its text holds: the graph, the host, the address to listen at, the address to send
/// to, and how many messages.
pub const SEND_AGAIN: &str = "send_again";
/// The far side that hears messages under one key, and sends each under another key at once. Its
/// text holds: the graph, the address to listen at, the address to send to, how many messages, and
/// the two keys. A key is `HOST` for the host's stamps, or `HOST:NODE:PORT:HASH`.
pub const MISPLACE: &str = "misplace";
/// The far side that sends garbage: over connections that say nothing sensible or nothing at all,
/// and under keys. Its text holds: the graph, the address, for how many seconds, how many messages,
/// and the keys in the same form.
pub const STRANGER: &str = "stranger";

/// How many messages are sent again, or under another key.
const SENT: u64 = 50;
/// How many times this is tried.
const TRIES: usize = 3;
/// The messages have been sent within this time.
const SENT_WITHIN_S: i64 = 20;
/// They have been counted within this time.
const COUNTED_WITHIN: Duration = Duration::from_secs(5);
/// All that comes late has come within this time.
const SETTLES: Duration = Duration::from_millis(500);

/// How long a stranger sends garbage: alone, during a cut, and afterwards.
const GARBAGE_S: u64 = 8;
/// How many messages of garbage it sends in that time.
const GARBAGE: u64 = 2000;
/// How long it does so before the line to the other host is cut.
const ALONE: Duration = Duration::from_secs(2);
/// The other host is heard again this soon after the cut, whatever a stranger does.
const HEARD_MS: u64 = 2000;

/// Has messages of the other host sent again. On a busy machine its own messages may come late
/// meanwhile. Then nobody knows which were dropped, and it is tried once more.
pub(super) fn send_again(it: &Strike, seen: &mut SeenOutside) {
    let (Some(to), Some(from)) = (it.network.own.1, it.other().listens) else {
        return seen.not_shown.push("both hosts must have an address".into());
    };
    let text = format!("{} {} {from} {to} {SENT}", it.network.graph, it.other().name);
    for _ in 0..TRIES {
        match counted(it, (SEND_AGAIN, &text), |status| status.refused + status.late) {
            Err(why) => return seen.not_shown.push(why),
            Ok(SENT) => {
                return seen.proof = Some(format!("{SENT} messages were sent again"));
            }
            Ok(n @ 0..SENT) => {
                let why = format!("of {SENT} messages sent again {n} were dropped");
                return seen.failures.push(why);
            }
            Ok(_) => {}
        }
    }
    let why = "this machine is too busy: more was dropped than was sent again";
    seen.not_shown.push(why.into());
}

/// Has messages sent under the key of another port, or host.
pub(super) fn misplace(it: &Strike, seen: &mut SeenOutside) {
    let Some((from, [heard, put], what)) = misplaced(it) else {
        return seen.not_shown.push("the drilled host must have an address".into());
    };
    let (to, graph) = (it.network.own.1.unwrap_or(from), &it.network.graph);
    let text = format!("{graph} {from} {to} {SENT} {heard} {put}");
    match counted(it, (MISPLACE, &text), |status| status.misplaced) {
        Err(why) => return seen.not_shown.push(why),
        Ok(n @ 0..SENT) => {
            seen.failures.push(format!("of {SENT} misplaced messages {n} were counted as such"));
        }
        Ok(_) => {}
    }
    seen.proof = Some(format!("{SENT} {what}"));
    if it.state() != Some(HostState::Heard) {
        seen.failures.push("the other host is not heard beside misplaced messages".into());
    }
}

/// What is to be heard, and where; under which key it is to be sent; and the same in words. Two
/// ports of the other host with messages of one size, if there are such; a message of another size
/// would be refused for that. Else the stamps of the drilled host, in place of those of the other.
fn misplaced(it: &Strike) -> Option<(SocketAddr, [String; 2], String)> {
    let (own, name) = (&it.network.own, &it.other().name);
    let links = sent_links(it);
    let same = |a: &&RemoteLink, b: &&RemoteLink| {
        a.message.size == b.message.size
            && (&a.from.node, &a.from.port) != (&b.from.node, &b.from.port)
    };
    let pairs = links.iter().flat_map(|a| links.iter().map(move |b| (*a, *b)));
    let pair = it.other().listens.zip(pairs.into_iter().find(|(a, b)| same(a, b)));
    match pair {
        Some((from, (a, b))) => {
            let port = |link: &RemoteLink| format!("{}.{}", link.from.node, link.from.port);
            let what = format!("messages of {} came under the key of {}", port(a), port(b));
            Some((from, [key(name, a), key(name, b)], what))
        }
        None => {
            let what = format!("stamps of '{}' came under the key of '{name}'", own.0);
            Some((own.1?, [own.0.clone(), name.clone()], what))
        }
    }
}

/// The links from the other host to the drilled one.
fn sent_links(it: &Strike) -> Vec<&RemoteLink> {
    let links = it.other().links.iter();
    links.filter(|link| link.from.host == it.other().number).collect()
}

fn key(host: &str, RemoteLink { from, message, .. }: &RemoteLink) -> String {
    format!("{host}:{}:{}:{:08x}", from.node, from.port, message.hash)
}

/// Has garbage sent to the drilled host, and cuts the line to the other host meanwhile.
pub(super) fn stranger(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let Some(to) = it.network.own.1 else {
        return seen.not_shown.push("the drilled host must have an address".into());
    };
    let name = &it.other().name;
    let keys = sent_links(it).into_iter().map(|link| key(name, link)).chain([name.clone()]);
    let keys = keys.collect::<Vec<_>>().join(" ");
    let text = format!("{} {to} {GARBAGE_S} {GARBAGE} {keys}", it.network.graph);
    let is_obeyed = it.is_obeyed(seen);
    let Some(before) = it.look() else { return seen.not_shown.push(unseen()) };
    let process = match far_side(STRANGER, &text) {
        Ok(process) => process,
        Err(why) => return seen.not_shown.push(why),
    };
    let has_come = |look: &Look| look.status.refused > before.status.refused;
    if it.await_look(Duration::from_secs(GARBAGE_S), has_come).is_some() {
        alone(it, is_obeyed, seen);
        cut(it, seen, host);
    }
    process.await_end(SENT_WITHIN_S);
    if let Err(Gone(why)) = process.join(Ok(())) {
        return seen.not_shown.push(why);
    }
    let what = "messages of garbage were sent, next to connections that said garbage or nothing";
    seen.proof = Some(format!("{GARBAGE} {what}"));
    let refused = |look: &Look| look.status.refused.saturating_sub(before.status.refused);
    it.await_look(COUNTED_WITHIN, |look| refused(look) >= GARBAGE);
    match it.look().as_ref().map(refused) {
        None => seen.not_shown.push(unseen()),
        Some(n @ 0..GARBAGE) => {
            seen.failures.push(format!("of {GARBAGE} messages of garbage {n} were refused"));
        }
        Some(_) => {}
    }
}

/// Watches the other host while a stranger sends garbage. `is_obeyed`: it was obeyed before.
fn alone(it: &Strike, is_obeyed: bool, seen: &mut SeenOutside) {
    let Some(before) = it.look() else { return seen.not_shown.push(unseen()) };
    let (begun, mut not_heard) = (Instant::now(), None);
    while begun.elapsed() < ALONE {
        let state = it.state();
        not_heard = not_heard.or(state.filter(|state| *state != HostState::Heard));
        thread::sleep(LOOK);
    }
    if let Some(state) = not_heard {
        seen.failures.push(format!("beside a stranger the other host is {state}"));
    }
    let Some(after) = it.look() else { return seen.not_shown.push(unseen()) };
    let dropped = |look: &Look| look.status.late + look.status.lost;
    let dropped = dropped(&after).saturating_sub(dropped(&before));
    let obeyed = after.obeyed.zip(before.obeyed).map(|(after, before)| after - before);
    if let Some(obeyed) = obeyed.filter(|obeyed| is_obeyed && dropped > *obeyed) {
        let why = format!("beside a stranger {obeyed} messages were obeyed, and {dropped} dropped");
        seen.failures.push(why);
    }
}

/// Cuts the line while a stranger sends garbage.
fn cut(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let set =
        |condition| it.other().lines.iter().flatten().for_each(|line: &Line| line.set(condition));
    let begun = Instant::now();
    set(Condition::Cut);
    host.silent_ms = it.await_state(HostState::Silent, LONG);
    thread::sleep(LONG.saturating_sub(begun.elapsed()));
    set(Condition::Open);
    if host.silent_ms.is_none() {
        seen.failures.push("the run did not report that the other host is silent".into());
    }
    it.await_heard(seen, host);
    if let Some(ms) = host.heard_ms.filter(|ms| *ms > HEARD_MS) {
        let after = format!("{ms} ms after a cut, expected within {HEARD_MS} ms");
        let why = format!("beside a stranger the other host is heard only {after}");
        seen.failures.push(why);
    }
}

/// How much higher a count of the other host is after a far side has played its part.
fn counted(
    it: &Strike,
    (part, text): (&str, &str),
    count: fn(&HostStatus) -> u64,
) -> Result<u64, String> {
    let now = || it.look().map(|look| count(&look.status));
    let before = now().ok_or_else(unseen)?;
    let process = far_side(part, text)?;
    process.await_end(SENT_WITHIN_S);
    process.join(Ok(())).map_err(|Gone(why)| why)?;
    it.await_look(COUNTED_WITHIN, |look| count(&look.status) >= before + SENT);
    thread::sleep(SETTLES);
    now().map(|now| now.saturating_sub(before)).ok_or_else(unseen)
}

fn far_side(part: &str, text: &str) -> Result<Process, String> {
    let cpus = privileges::cpus().map_err(|error| error.to_string())?;
    Process::start(part, text, &[], cpus[0]).map_err(|Gone(why)| why)
}
