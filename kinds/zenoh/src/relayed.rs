//! Joins the calls between hosts with the flows of this host. A packet that leaves becomes a
//! question to another host, and a question of another host becomes a packet that comes.

use std::io;
use std::sync::{Arc, Weak};

use sinew_flow::{Arriving, Leaving, Relay, RelayDoors};
use sinew_plan::plan::{Plan, RemoteCall};

use crate::calls::IncomingCall;
use crate::exchange::Exchange;
use crate::setting::{CallPort, Setting};

/// The inputs of other hosts that packets of this host go to.
pub(crate) fn calls(plan: &Plan) -> Vec<CallPort> {
    ports(plan, true)
}

/// The inputs of this host that packets of others come to, with each host that calls them.
pub(crate) fn called(plan: &Plan) -> Vec<CallPort> {
    ports(plan, false)
}

fn ports(plan: &Plan, leaves: bool) -> Vec<CallPort> {
    let those =
        plan.hosts.calls.iter().filter(|it| (Some(it.from.host) == plan.hosts.own) == leaves);
    let mut ports = Vec::new();
    for RemoteCall { from, to, .. } in those {
        let other = if leaves { to } else { from };
        let host = plan.hosts.all[other.host].name.clone();
        let port = CallPort { host, node: to.node.clone(), input: to.port.clone() };
        // Several nodes of a host that call the same input share an entry.
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    ports
}

/// The domain of each input of this host.
pub(crate) fn domains(plan: &Plan, called: &[CallPort]) -> Vec<String> {
    let domain = |port: &CallPort| {
        let node = plan.nodes.iter().find(|node| node.name == port.node);
        node.map(|node| plan.domains[node.domain].name.clone()).unwrap_or_default()
    };
    called.iter().map(domain).collect()
}

/// Begins to carry packets, through doors to and from the domains of flows. `None`: no packets
/// cross.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn begin(
    (setting, domains): (&Setting, &[String]),
    doors: RelayDoors,
    exchange: Exchange,
) -> io::Result<Option<Arc<Relay>>> {
    let (calls, called) = (setting.calls.clone(), setting.called.clone());
    if calls.is_empty() && called.is_empty() {
        return Ok(None);
    }
    let asks = exchange.clone();
    let relay = Arc::new(Relay::begin(doors, move |packet| leave(&calls, &asks, packet))?);
    let ways: Vec<_> = domains.iter().cloned().zip(called).collect();
    // The node that serves holds the relay. When the node ends, the relay is gone.
    let weak = Arc::downgrade(&relay);
    exchange.take(move |call| arrive(&ways, &weak, call));
    Ok(Some(relay))
}

fn leave(calls: &[CallPort], exchange: &Exchange, mut packet: Leaving) {
    // The compiler has given this name to the port that stands for the input.
    let is_it = |it: &CallPort| packet.input == format!("{}.{}", it.node, it.input);
    let Some(at) = calls.iter().position(is_it) else {
        let why = format!("no other host has an input '{}'", packet.input);
        return packet.fail(502, why);
    };
    let (host, wait) = (calls[at].host.clone(), packet.wait);
    let bytes = std::mem::take(&mut packet.bytes);
    let answer = move |said: Result<Vec<u8>, crate::CallFailure>| match said {
        Ok(bytes) => packet.answer(bytes),
        Err(failure) => packet.fail(failure.status(), format!("its host '{host}' {failure}")),
    };
    exchange.ask(at, wait, bytes, Box::new(answer));
}

fn arrive(ways: &[(String, CallPort)], relay: &Weak<Relay>, mut call: IncomingCall) {
    let ((domain, port), Some(relay)) = (&ways[call.at], relay.upgrade()) else { return };
    relay.arrive(Arriving {
        domain: domain.clone(),
        node: port.node.clone(),
        input: port.input.clone(),
        wait: call.wait,
        bytes: std::mem::take(&mut call.packet),
        answer: Box::new(move |bytes| call.answer(bytes)),
    });
}
