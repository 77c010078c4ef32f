//! A tap: a user who may see a run sees the packets that pass the nodes of a flow domain, and may
//! hold one of them.
//!
//! The process of the domain serves the tap, at its own socket beside the socket of the run
//! ([`socket_of`]). One connection is one tap. Its first line says what is wanted. The end of the
//! connection ends the tap and releases the packet that it holds.
//!
//! ```text
//! > {"sinew": 1, "request": "tap", "node": "greet", "filter": "packet.method == 'GET'"}
//! < {"sinew":1,"done":{"text":"the tap is open","newest":0}}
//! < {"sinew":1,"tap":{"packet":{"flow":7,"node":"greet","at_us":1,"input":"in","packet":"{}"}}}
//! < {"sinew":1,"tap":{"step":{"flow":7,"node":"greet","at_us":5,"took_us":4,"outcome":"out",...}}}
//! < {"sinew":1,"tap":{"lost":3}}
//! ```

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sinew_core::sys::peer_of;

use crate::{Answer, Request, client, place, server, to_line};

/// Most packets, or flows, that a tap shows per second.
pub const PER_S_MAX: u32 = 1000;

/// What a tap should show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapRequest {
    /// The packets of this node. `None`: of all nodes, with `way`.
    #[serde(default)]
    pub node: Option<String>,
    /// A CEL expression that must be true of `packet`. This is the packet that comes to the node
    /// or, with `way`, the packet with which the flow begins.
    #[serde(default)]
    pub filter: Option<String>,
    /// Most packets or ways per second, from 1 to [`PER_S_MAX`].
    #[serde(default = "per_s")]
    pub per_s: u32,
    /// Whole flows, from their beginning to their end; with `node` only the flows that come to it.
    #[serde(default)]
    pub way: bool,
    /// Holds a packet that comes to the node, one at a time, until [`Request::Step`] or
    /// [`Request::Go`]. Others pass.
    #[serde(default)]
    pub pause: bool,
}

fn per_s() -> u32 {
    10
}

/// What a tap shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TapLine {
    /// A packet comes to a node.
    Packet(TapPacket),
    /// A node has finished with a packet.
    Step(TapStep),
    /// A packet is held before its node.
    Held {
        /// The packet.
        packet: TapPacket,
        /// This many others have passed since the last packet that was held.
        passed: u64,
    },
    /// A flow has ended whose way was shown, or that went on step by step.
    Ended(u64),
    /// This many lines were left out: they came faster than they were read.
    Lost(u64),
}

/// A packet that comes to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapPacket {
    /// Number of the flow, as in the access log.
    pub flow: u64,
    /// The node.
    pub node: String,
    /// When, monotonic.
    pub at_us: u64,
    /// The input at which it comes. Empty for a source, which has begun the flow with this packet.
    pub input: String,
    /// The packet as JSON, or the beginning of it. Values from outside of the graph and headers
    /// with credentials are hidden.
    pub packet: String,
}

/// The result of a node's work on a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapStep {
    /// Number of the flow.
    pub flow: u64,
    /// The node.
    pub node: String,
    /// When the node finished, monotonic.
    pub at_us: u64,
    /// How long the node had the packet, including its waits.
    pub took_us: u64,
    /// The output that the packet was passed to, or `reply`, or `error`.
    pub outcome: String,
    /// The packet that the node made, as [`TapPacket::packet`]. For an error, its text.
    pub packet: String,
}

/// The socket for the taps of a process of a run.
pub fn socket_of(run: &Path, pid: u32) -> PathBuf {
    run.with_file_name(format!("{pid}.{}", place::TAP_ENDING))
}

/// This process's socket for taps. Dropping it removes the socket.
#[derive(Debug)]
pub struct TapSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl TapSocket {
    /// Makes the socket, in the folder of the run's socket. The socket does not block.
    ///
    /// # Errors
    /// As for [`server::Server::open`].
    pub fn open() -> io::Result<TapSocket> {
        let folder = place::folder()?;
        client::remove_stale(&folder);
        let path = socket_of(&folder.join("run"), std::process::id());
        Ok(TapSocket { listener: server::listen(&path)?, path })
    }

    /// The listener for connections.
    ///
    /// # Errors
    /// No file descriptor is left for it.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for TapSocket {
    fn drop(&mut self) {
        // The socket may be gone with its folder.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the process at the other end belongs to this user.
pub fn is_ours(peer: impl AsFd) -> bool {
    peer_of(peer.as_fd()).is_ok_and(|(_, uid)| uid == geteuid().as_raw())
}

/// The request in a line.
///
/// # Errors
/// What is wrong with the line, and what was expected.
pub fn read(line: &[u8]) -> Result<Request, String> {
    crate::parse_request(line)
}

/// The line for an answer.
pub fn line(answer: &Answer) -> Vec<u8> {
    to_line(answer)
}
