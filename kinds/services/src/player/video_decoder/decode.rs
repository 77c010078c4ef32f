//! Decodes packets as they come, and leaves out those that would be too late.

use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_core::{Fault, fault};
use sinew_ffmpeg::{FilmRefused, PictureDecoder, Skip, StreamSetup};
use sinew_media::{PacketHead, flag};
use sinew_pictures::messages::{Picture, PlayClock};
use sinew_pictures::picture::write_head;
use sinew_runtime::{Service, ServiceIo};

use crate::player::clock::Clock;
use crate::player::complaint::Complaint;
use crate::player::packets::{self, Received};

const IN: usize = 0;
const CLOCK: usize = 1;
const OUT: usize = 2;

/// Interval between two checks whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between two checks whether a picture was shown, so that a place is free.
const ROOM_LOOK: Duration = Duration::from_millis(4);
/// If it is this far behind the sound, a decoder skips to the next key packet, ns.
const FAR_BEHIND_NS: u64 = 300_000_000;

pub(super) struct VideoDecoder;

impl Service for VideoDecoder {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut stream = Stream::default();
        while io.wait_for(IN, LOOK) {
            while let Some(packet) = packets::next(io, IN)? {
                if !stream.take(io, packet)? {
                    return Ok(());
                }
                io.beat();
            }
        }
        Ok(())
    }
}

/// One stream after the other.
struct Stream {
    decoder: Option<(StreamSetup, PictureDecoder)>,
    clock: Option<Clock>,
    serial: Option<u32>,
    film_ns: u64,
    number: u64,
    /// Nothing can be decoded before a key packet, which can be decoded alone.
    waits_for_key: bool,
    /// Whether all packets so far can be decoded alone.
    stand_alone: bool,
    skipped: u32,
    broken: u32,
    complaint: Complaint,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            decoder: None,
            clock: None,
            serial: None,
            film_ns: 0,
            number: 0,
            waits_for_key: true,
            stand_alone: true,
            skipped: 0,
            broken: 0,
            complaint: Complaint::default(),
        }
    }
}

impl Stream {
    /// Decodes a packet and sends the results; `false`: the service must end.
    fn take(&mut self, io: &mut ServiceIo, packet: Received) -> Result<bool, Fault> {
        let Received { head, setup, bytes } = packet;
        if let Some(clock) = io.receive::<PlayClock>(CLOCK)? {
            self.clock = Some(Clock::of(&clock));
        }
        self.follow(io, &head)?;
        if head.has(flag::END) {
            self.waits_for_key = true;
            return self.finish(io).map(|()| true);
        }
        if self.is_left_out(io, &head)? {
            self.skipped = self.skipped.saturating_add(1);
            return Ok(true);
        }
        self.prepare(io, setup)?;
        if !self.make_room(io)? {
            return Ok(false);
        }
        let (_, decoder) = self.decoder.as_mut().expect("it was just made");
        if let Err(refused) = decoder.decode(&head, &bytes) {
            self.complain(&refused);
        }
        self.publish(io)?;
        Ok(true)
    }

    /// Forgets everything before a jump or a gap.
    fn follow(&mut self, io: &mut ServiceIo, head: &PacketHead) -> Result<(), Fault> {
        self.film_ns = head.film_ns;
        if self.serial.is_some_and(|serial| serial != head.serial) {
            self.publish(io)?;
            if let Some((_, decoder)) = &mut self.decoder {
                decoder.clear();
            }
            self.publish(io)?;
            self.waits_for_key = true;
        }
        self.serial = Some(head.serial);
        self.waits_for_key |= head.has(flag::GAP);
        Ok(())
    }

    /// Whether a packet is left out: packets that it needs were not decoded, or it would be too
    /// late.
    fn is_left_out(&mut self, io: &mut ServiceIo, head: &PacketHead) -> Result<bool, Fault> {
        self.stand_alone &= head.has(flag::KEY);
        if self.waits_for_key && !head.has(flag::KEY) {
            return Ok(true);
        }
        let clock = self.clock.filter(|clock| clock.serial == head.serial && clock.moves());
        let heard_ns = clock.map_or(0, |clock| clock.position_ns(now_ns()));
        let behind_ns = heard_ns.saturating_sub(head.position_ns.saturating_add(head.duration_ns));
        let is_late = behind_ns > 0;
        if is_late && !self.stand_alone && behind_ns >= FAR_BEHIND_NS {
            let leads_on = |it: &PacketHead| it.has(flag::KEY) && it.position_ns <= heard_ns;
            if packets::waiting(io, IN)?.iter().any(leads_on) {
                self.waits_for_key = true;
                return Ok(true);
            }
        }
        if let Some((_, decoder)) = &mut self.decoder {
            decoder.skip(if is_late { Skip::Unreferenced } else { Skip::Nothing });
        }
        let is_left_out = is_late && self.stand_alone;
        // The first packet of a life can be decoded alone; those after it may need it nevertheless.
        self.waits_for_key = is_left_out;
        Ok(is_left_out)
    }

    /// Makes sure that there is a decoder for such packets.
    fn prepare(&mut self, io: &mut ServiceIo, setup: StreamSetup) -> Result<(), Fault> {
        if self.decoder.as_ref().is_some_and(|(known, _)| *known == setup) {
            return Ok(());
        }
        self.finish(io)?;
        let decoder = PictureDecoder::new(&setup).map_err(|FilmRefused(text)| fault!("{text}"))?;
        self.decoder = Some((setup, decoder));
        Ok(())
    }

    /// Waits until the decoder has a place to write to; `false`: the service must end.
    fn make_room(&mut self, io: &mut ServiceIo) -> Result<bool, Fault> {
        loop {
            let (_, decoder) = self.decoder.as_mut().expect("it was prepared");
            let mut is_refused = false;
            while let Some(ahead) = decoder.wanted().filter(|_| !is_refused) {
                let Some(place) = io.place::<Picture>(OUT, ahead)? else { break };
                is_refused = !decoder.offer(place);
            }
            // If the decoder itself still uses the next place, the picture is copied.
            if decoder.is_ready() || is_refused {
                return Ok(true);
            }
            // If the decoder uses all places, none of them will ever be freed.
            let unseen = match decoder.wanted() == Some(io.places(OUT)?) {
                true => decoder.next_unseen(),
                false => None,
            };
            if let Some(head) = unseen {
                self.send(io, head)?;
            } else if !io.wait(ROOM_LOOK) {
                return Ok(false);
            }
        }
    }

    /// Sends the pictures that the decoder still holds.
    fn finish(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        if let Some((_, decoder)) = &mut self.decoder {
            let finished = decoder.finish();
            if let Err(refused) = finished {
                self.complain(&refused);
            }
            self.publish(io)?;
            if let Some((_, decoder)) = &mut self.decoder {
                decoder.clear();
            }
        }
        self.publish(io)
    }

    /// Sends the pictures whose turn has come.
    fn publish(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        while let Some(head) = self.decoder.as_mut().and_then(|(_, decoder)| decoder.next_head()) {
            self.send(io, head)?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        io: &mut ServiceIo,
        mut head: sinew_media::PictureHead,
    ) -> Result<(), Fault> {
        self.number += 1;
        (head.number, head.time_ns) = (self.number, now_ns());
        (head.serial, head.film_ns) = (self.serial.unwrap_or(0), self.film_ns);
        head.waiting = packets::waiting(io, IN)?.len() as u32;
        (head.skipped, head.broken) = (self.skipped, self.broken);
        // Without a claim there is no reader any more.
        if let Some(mut picture) = io.claim::<Picture>(OUT)? {
            write_head(&mut picture, &head);
            picture.commit();
        }
        Ok(())
    }

    fn complain(&mut self, refused: &FilmRefused) {
        self.broken = self.broken.saturating_add(1);
        self.complaint.add(1, |count| {
            format!("packets that could not be decoded: {count} so far ({refused})")
        });
    }
}
