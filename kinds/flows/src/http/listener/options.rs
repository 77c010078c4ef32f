//! What the spec says of a listener, checked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use sinew_core::{Parameters, Refusal};
use sinew_flow::FlowLimits;

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
    /// Reads and checks them.
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Options, Vec<Refusal>> {
        let (host, tls) = match (host(parameters), Tls::of(parameters)) {
            (Ok(host), Ok(tls)) => (host, tls),
            (host, tls) => {
                let of_tls = tls.err().unwrap_or_default();
                return Err(host.err().into_iter().chain(of_tls).collect());
            }
        };
        // The table of parameters holds all of them within these types.
        let count = |name| parameters.integer(name) as usize;
        let size = |name| parameters.size(name) as usize;
        let address = SocketAddr::new(host, parameters.integer("port") as u16);
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

    /// By which the listener is asked.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

fn host(parameters: &Parameters<'_>) -> Result<IpAddr, Refusal> {
    let host = parameters.text("host");
    host.parse().map_err(|_| {
        let text = format!("'{host}' is no address");
        let help = "write an address of this machine, such as 127.0.0.1, 0.0.0.0 or '::1'";
        Refusal::new(parameters.span("host"), text, help)
    })
}
