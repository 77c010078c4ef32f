//! A tap: who may see a run sees the packets that pass the nodes of a flow domain, and may hold one
//! of them.
//!
//! The process of the domain serves it, at a socket of its own beside that of the run
//! ([`socket_of`]). One connection is one tap: the first line says what is wanted, and the end of
//! the connection ends it, with whatever it holds.
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

/// Most packets, or flows, that a tap shows in a second.
pub const PER_S_MAX: u32 = 1000;

/// What whoever looks wants to see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapRequest {
    /// The packets of this node; `None`: of all nodes, with `way`.
    #[serde(default)]
    pub node: Option<String>,
    /// An expression in CEL of which `packet` is to be true: that which comes to the node, or,
    /// with `way`, that which the flow begins with.
    #[serde(default)]
    pub filter: Option<String>,
    /// So many in a second at most, packets or ways, from 1 to [`PER_S_MAX`].
    #[serde(default = "per_s")]
    pub per_s: u32,
    /// Whole flows, from their beginning to their end; with a node those that come to it.
    #[serde(default)]
    pub way: bool,
    /// To hold a packet that comes to the node, one at a time, until [`Request::Step`] or
    /// [`Request::Go`]; others pass.
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
    /// A node has done its part.
    Step(TapStep),
    /// A packet is held before its node.
    Held {
        /// Which.
        packet: TapPacket,
        /// So many others have passed since the last one that was held.
        passed: u64,
    },
    /// The flow whose way was shown, or that went on by steps, has ended.
    Ended(u64),
    /// So many lines were left out: they came faster than they were read.
    Lost(u64),
}

/// A packet that comes to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapPacket {
    /// Number of the flow, as the access log has it.
    pub flow: u64,
    /// The node.
    pub node: String,
    /// When, monotonic.
    pub at_us: u64,
    /// At which input; empty of a source, which has begun the flow with it.
    pub input: String,
    /// As JSON, or the beginning of that; values from outside of the graph and headers that let
    /// their owner in are hidden.
    pub packet: String,
}

/// What a node has made of a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapStep {
    /// Number of the flow.
    pub flow: u64,
    /// The node.
    pub node: String,
    /// When it had done its part, monotonic.
    pub at_us: u64,
    /// How long it had the packet, with what it waited for.
    pub took_us: u64,
    /// The output that it was passed to; or `reply`, or `error`.
    pub outcome: String,
    /// What it made of it, as [`TapPacket::packet`]; of an error its text.
    pub packet: String,
}

/// Where the taps of a process of a run are served.
pub fn socket_of(run: &Path, pid: u32) -> PathBuf {
    run.with_file_name(format!("{pid}.{}", place::TAP_ENDING))
}

/// The socket of this process for taps; it is removed when this is dropped.
#[derive(Debug)]
pub struct TapSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl TapSocket {
    /// Makes it, in the folder of the run's socket. It does not block.
    ///
    /// # Errors
    /// As for [`server::Server::open`].
    pub fn open() -> io::Result<TapSocket> {
        let folder = place::folder()?;
        client::remove_stale(&folder);
        let path = socket_of(&folder.join("run"), std::process::id());
        Ok(TapSocket { listener: server::listen(&path)?, path })
    }

    /// Where connections come in.
    ///
    /// # Errors
    /// No descriptor is left for it.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for TapSocket {
    fn drop(&mut self) {
        // It may be gone with its folder.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the process at the other end is this user's.
pub fn is_ours(peer: impl AsFd) -> bool {
    peer_of(peer.as_fd()).is_ok_and(|(_, uid)| uid == geteuid().as_raw())
}

/// What a line asks for.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub fn read(line: &[u8]) -> Result<Request, String> {
    crate::parse_request(line)
}

/// A line that says this.
pub fn line(answer: &Answer) -> Vec<u8> {
    to_line(answer)
}
