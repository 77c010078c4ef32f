//! Packets at the input of a decoder.

use sinew_core::{Fault, fault};
use sinew_ffmpeg::StreamSetup;
use sinew_media::PacketHead;
use sinew_pictures::messages::Packet;
use sinew_pictures::picture::read_head;
use sinew_runtime::ServiceIo;

/// A packet, copied out of its link: FFmpeg needs zeros after it, and a peer could change it.
pub(crate) struct Received {
    pub(crate) head: PacketHead,
    pub(crate) setup: StreamSetup,
    pub(crate) bytes: Vec<u8>,
}

/// Takes the next packet at input `port`; its place is freed.
///
/// # Errors
/// A head with values that are not possible.
pub(crate) fn next(io: &mut ServiceIo, port: usize) -> Result<Option<Received>, Fault> {
    let Some(packet) = io.peek::<Packet>(port)? else { return Ok(None) };
    let head: PacketHead = read_head(|bytes| packet.read_at(0, bytes));
    let payload = head.payload().map_err(|bad| fault!("{bad}"))?;
    let mut setup = vec![0; head.setup_bytes as usize];
    packet.read_at(size_of::<PacketHead>(), &mut setup);
    let mut bytes = vec![0; payload - setup.len()];
    packet.read_at(size_of::<PacketHead>() + setup.len(), &mut bytes);
    packet.release();
    let codec = head.codec().to_owned();
    let setup = StreamSetup { codec, bytes: setup, shape: head.shape, sample: head.sample };
    Ok(Some(Received { head, setup, bytes }))
}

/// The heads of the packets that wait, from the next one on.
pub(crate) fn waiting(io: &mut ServiceIo, port: usize) -> Result<Vec<PacketHead>, Fault> {
    let mut heads = vec![];
    while let Some(packet) = io.ahead::<Packet>(port, heads.len() as u32)? {
        heads.push(read_head(|bytes| packet.read_at(0, bytes)));
    }
    Ok(heads)
}
