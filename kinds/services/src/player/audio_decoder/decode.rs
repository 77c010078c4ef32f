//! Decodes packets of sound as they come.

use std::time::Duration;

use sinew_core::{Fault, fault};
use sinew_ffmpeg::{FilmRefused, SoundDecoder, StreamSetup};
use sinew_media::{BLOCK_FRAMES_MAX, BlockHead, CHANNELS, PacketHead, RATE_HZ, flag};
use sinew_pictures::messages::SoundBlock;
use sinew_pictures::picture::write_head;
use sinew_runtime::{Service, ServiceIo};
use zerocopy::IntoBytes;

use crate::player::complaint::Complaint;
use crate::player::packets::{self, Received};

const IN: usize = 0;
const OUT: usize = 1;

/// Interval between two checks whether to stop.
const LOOK: Duration = Duration::from_millis(50);
const NS_PER_S: u64 = 1_000_000_000;
/// Longest silence of one packet that is believed, ns.
const SILENCE_NS_MAX: u64 = 60 * NS_PER_S;

#[derive(Default)]
pub(super) struct AudioDecoder {
    decoder: Option<(StreamSetup, SoundDecoder)>,
    serial: Option<u32>,
    broken: Complaint,
}

impl Service for AudioDecoder {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        while io.wait_for(IN, LOOK) {
            while let Some(packet) = packets::next(io, IN)? {
                if !self.take(io, packet)? {
                    return Ok(());
                }
                io.beat();
            }
        }
        Ok(())
    }
}

impl AudioDecoder {
    /// Decodes a packet and sends its samples; `false`: the service must end.
    fn take(&mut self, io: &mut ServiceIo, packet: Received) -> Result<bool, Fault> {
        let Received { head, setup, bytes } = packet;
        if self.serial != Some(head.serial) || head.has(flag::GAP) {
            self.serial = Some(head.serial);
            if let Some((_, decoder)) = &mut self.decoder {
                decoder.clear();
            }
        }
        if head.has(flag::SILENCE) {
            return silence(io, &head);
        }
        if head.has(flag::END) {
            return send(io, &head, head.position_ns, &[]);
        }
        if self.decoder.as_ref().is_none_or(|(known, _)| *known != setup) {
            let decoder =
                SoundDecoder::new(&setup).map_err(|FilmRefused(text)| fault!("{text}"))?;
            self.decoder = Some((setup, decoder));
        }
        let (_, decoder) = self.decoder.as_mut().expect("it was just made");
        let (mut goes_on, mut failed) = (true, None);
        let decoded =
            decoder.decode(&bytes, head.position_ns, &mut |position_ns, samples| match send_all(
                io,
                &head,
                position_ns,
                samples,
            ) {
                Ok(sent) => goes_on &= sent,
                Err(fault) => failed = Some(fault),
            });
        if let Err(refused) = decoded {
            let say =
                |count| format!("packets that could not be decoded: {count} so far ({refused})");
            self.broken.add(1, say);
        }
        failed.map_or(Ok(goes_on), Err)
    }
}

fn silence(io: &mut ServiceIo, head: &PacketHead) -> Result<bool, Fault> {
    let duration_ns = head.duration_ns.min(SILENCE_NS_MAX);
    let frames = (duration_ns * u64::from(RATE_HZ)).div_ceil(NS_PER_S) as usize;
    send_all(io, head, head.position_ns, &vec![0; frames * CHANNELS])
}

/// Sends samples, block by block; `false`: the service must end.
fn send_all(
    io: &mut ServiceIo,
    head: &PacketHead,
    position_ns: u64,
    samples: &[i16],
) -> Result<bool, Fault> {
    let mut frames = 0;
    for block in samples.chunks(BLOCK_FRAMES_MAX * CHANNELS) {
        let at_ns = position_ns + frames as u64 * NS_PER_S / u64::from(RATE_HZ);
        if !send(io, head, at_ns, block)? {
            return Ok(false);
        }
        frames += block.len() / CHANNELS;
    }
    Ok(true)
}

/// Waits for room and sends a block.
fn send(
    io: &mut ServiceIo,
    head: &PacketHead,
    position_ns: u64,
    samples: &[i16],
) -> Result<bool, Fault> {
    while !io.has_room(OUT) {
        if !io.wait_room(OUT, LOOK) {
            return Ok(false);
        }
    }
    let block = BlockHead {
        position_ns,
        serial: head.serial,
        frames: (samples.len() / CHANNELS) as u32,
        flags: head.flags & flag::END,
        waiting: packets::waiting(io, IN)?.len() as u32,
    };
    // Without a claim there is no reader any more.
    if let Some(mut message) = io.claim::<SoundBlock>(OUT)? {
        write_head(&mut message, &block);
        message.write_at(size_of::<BlockHead>(), samples.as_bytes());
        message.commit();
    }
    Ok(true)
}
