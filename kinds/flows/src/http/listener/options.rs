//! What the spec says of a listener, checked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use sinew_core::{Parameters, Refusal};
use sinew_flow::FlowLimits;
use sinew_spec::plan::Node;

use super::INFO;
use super::callers::Callers;
use super::life::{Patience, rounds};
use super::tls::Tls;
use crate::work::limits;

/// Largest body that is held in memory.
const GATHERED_SIZE_MAX: usize = 1 << 30;

/// What the spec says of a listener.
pub(super) struct Options {
    pub(super) address: SocketAddr,
    /// What a flow may take.
    pub(super) limits: FlowLimits,
    pub(super) patience: Patience,
    pub(super) body_deadline: Duration,
    pub(super) head_size_max: usize,
    pub(super) headers_max: usize,
    pub(super) body_size_max: usize,
    /// Whether a flow begins before its request's body is there.
    pub(super) streams: bool,
    pub(super) held_size_max: usize,
    pub(super) requests_max: usize,
    pub(super) wait_max: Duration,
    pub(super) connections_max: usize,
    pub(super) streams_max: u32,
    pub(super) compression: bool,
    /// Whether every answer says which flow it comes from.
    pub(super) flow_id: bool,
    /// Where the access log is, if there is one.
    pub(super) access_log: Option<PathBuf>,
    pub(super) tls: Option<Tls>,
    pub(super) callers: Callers,
}

impl Options {
    /// Reads and checks the parameters.
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Options, Vec<Refusal>> {
        let (host, tls) = match (host(parameters), Tls::of(parameters)) {
            (Ok(host), Ok(tls)) => (host, tls),
            (host, tls) => {
                let of_tls = tls.err().unwrap_or_default();
                return Err(host.err().into_iter().chain(of_tls).collect());
            }
        };
        // The limits in the table of parameters keep all of them within these types.
        let count = |name| parameters.integer(name) as usize;
        let size = |name| parameters.size(name) as usize;
        let address = SocketAddr::new(host, port(parameters));
        if let Some(refusal) = taken(parameters, address) {
            return Err(vec![refusal]);
        }
        let callers = Callers::of(parameters, address).map_err(|refusal| vec![refusal])?;
        let (body_size_max, held_size_max) = (size("body_size_max"), size("held_size_max"));
        let streams = parameters.bool("stream");
        if !streams && body_size_max > GATHERED_SIZE_MAX {
            let text = format!("a body of {body_size_max} bytes is too large to be gathered");
            let help = "write 'stream: true', or at most 1GiB";
            return Err(vec![Refusal::new(parameters.span("body_size_max"), text, help)]);
        }
        if !streams && held_size_max < body_size_max {
            let text = format!(
                "all bodies together may have {held_size_max} bytes, and one alone {body_size_max}"
            );
            let help = "raise 'held_size_max', or lower 'body_size_max'";
            return Err(vec![Refusal::new(parameters.span("held_size_max"), text, help)]);
        }
        Ok(Options {
            address,
            limits: limits(parameters),
            patience: Patience {
                head: rounds(parameters.duration("head_deadline")),
                idle: rounds(parameters.duration("idle_max")),
                stall: rounds(parameters.duration("stall_max")),
            },
            body_deadline: parameters.duration("body_deadline"),
            head_size_max: size("head_size_max"),
            headers_max: count("headers_max"),
            body_size_max,
            streams,
            held_size_max,
            requests_max: count("requests_max"),
            wait_max: parameters.duration("wait_max"),
            connections_max: count("connections_max"),
            streams_max: parameters.integer("streams_max") as u32,
            compression: parameters.bool("compression"),
            flow_id: parameters.bool("flow_id"),
            access_log: Some(parameters.path("access_log"))
                .filter(|_| !parameters.text("access_log").is_empty()),
            tls,
            callers,
        })
    }

    /// The scheme of the listener's urls.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

fn host(parameters: &Parameters<'_>) -> Result<IpAddr, Refusal> {
    let host = parameters.text("host");
    host.parse().map_err(|_| {
        let text = format!("'{host}' is not an address");
        let help = "write an address of this machine, such as 127.0.0.1, 0.0.0.0 or '::1'";
        Refusal::new(parameters.span("host"), text, help)
    })
}

fn port(parameters: &Parameters<'_>) -> u16 {
    // The limits in the table of parameters keep it within 16 bits.
    parameters.integer("port") as u16
}

/// Refuses a port that an earlier listener of the graph has, in whatever domain.
fn taken(parameters: &Parameters<'_>, address: SocketAddr) -> Option<Refusal> {
    let (plan, _) = parameters.home.filter(|_| address.port() != 0)?;
    let is_this = |node: &&Node| ptr::eq(&*node.values, parameters.values);
    let above = plan.nodes.iter().take_while(|node| !is_this(node));
    let (first, at) = above.filter(|node| node.kind.name == INFO.name).find_map(|node| {
        let other = Parameters::of(plan, node, parameters.base);
        let at = host(&other).ok().filter(|_| port(&other) == address.port())?;
        overlap(at, address.ip()).then_some((node, at))
    })?;
    let (name, line, port) = (&first.name, first.line, address.port());
    let text = format!("port {port} is that of '{name}' on line {line}, which listens at {at}");
    let help = "give one of them another port or another address; or link all to one";
    Some(Refusal::new(parameters.span("port"), text, help))
}

/// Whether the same port cannot be used at both addresses.
fn overlap(one: IpAddr, other: IpAddr) -> bool {
    let (one, other) = (one.to_canonical(), other.to_canonical());
    // All addresses of IPv6 include all of IPv4.
    let covers =
        |one: IpAddr, other: IpAddr| one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    one == other || covers(one, other) || covers(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_where_one_is_all() {
        let overlap = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| text.parse().expect("an address"));
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        };
        for (one, other) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "0.0.0.0"),
            ("127.0.0.1", "::"),
            ("0.0.0.0", "::"),
            ("::1", "::"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
        ] {
            assert!(overlap(one, other), "{one} {other}");
        }
        for (one, other) in [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "::1"), ("0.0.0.0", "::1")] {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }
}
