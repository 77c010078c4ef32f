//! Kind `jpeg_decoder`: decodes Motion JPEG into the places of a link. No picture is ever copied.

use alloc::boxed::Box;
use alloc::vec;

use sinew_guest::zerocopy::IntoBytes;
use sinew_guest::{
    Cycle, Fault, GuestNode, Io, Kind, KindRecord, Message, Parameters, Patience, Peek, Serving,
    fault, now_ns, port,
};
use sinew_media::{PACKET_BYTES_MAX, PacketHead, PictureHead, flag};

use crate::jpeg;
use crate::messages::{Packet, Picture, PlayClock};

const IN: usize = 0;
const WANTED: usize = 1;
const OUT: usize = 2;

const DECODED: usize = 0;
const SKIPPED: usize = 1;
const BROKEN: usize = 2;

/// Twice the stack that the JPEGs of the tests need, which is between 44 KiB and 48 KiB. If it
/// overflows, the guest ends with a fault that says so.
const STACK: u32 = 96 * 1024;
/// The codec that it decodes, by FFmpeg's name.
const CODEC: &str = "mjpeg";
/// Duration of a picture whose packet does not give it.
const DURATION_NS: u64 = 40_000_000;
/// Bytes of a picture before its points.
const HEAD: usize = size_of::<PictureHead>();

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "jpeg_decoder",
        "Decodes Motion JPEG (codec `mjpeg`) into the places of a link: red, green, blue. What \
         comes too late or is torn becomes no picture and is counted.",
        STACK,
        &[
            port("in", "Packets; `delivery: queue`.", 0, Packet::TYPE),
            port(
                "wanted",
                "What is heard; `delivery: latest`. Packets that end before it, or follow an \
                 older order, are skipped.",
                0,
                PlayClock::TYPE,
            )
            .optional(),
            port("out", "Pictures; one link, `delivery: queue`.", 1, Picture::TYPE),
        ],
        &[],
        &["decoded", "skipped", "broken"],
    ),
    make: |_: &Parameters<'_>| Ok(Box::new(Decoder::new())),
};

struct Decoder {
    /// The bytes of the packet that is being decoded. They are copied, as their writer could still
    /// change them in place.
    coded: Box<[u8]>,
    /// The clock of the sound, if it is known.
    wanted: Option<Wanted>,
    /// Packets so far.
    number: u64,
}

/// The place of the sound in the film.
struct Wanted {
    position_ns: u64,
    serial: u32,
}

/// What shall be done with a packet.
enum Fate {
    /// It comes too late.
    Skipped,
    /// It contains no picture.
    Broken,
    /// The film is over.
    End,
    /// The first bytes of [`Decoder::coded`], of this count, become a picture.
    Decoded(usize),
}

impl GuestNode for Decoder {
    fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        Ok(())
    }

    fn serve(&mut self, serving: &mut Serving<'_>) -> Option<Result<(), Fault>> {
        Some(Decoder::serve(self, serving))
    }
}

impl Decoder {
    fn new() -> Decoder {
        let coded = vec![0; PACKET_BYTES_MAX].into_boxed_slice();
        Decoder { coded, wanted: None, number: 0 }
    }

    fn serve(&mut self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        let patience = Patience::default();
        // It waits for room first, so that a packet is checked for lateness when its picture can
        // begin.
        while serving.wait_message(IN, patience)? && serving.wait_room(OUT, patience)? {
            self.look(serving)?;
            // The packet is freed before it is decoded, so that a packet that ends the guest does
            // so only once.
            let Some(taken) = serving.read_in_place(IN, |packet| self.take(packet))? else {
                continue;
            };
            let (packet, fate) = taken?;
            self.number += 1;
            match fate {
                Fate::Skipped => count(serving, SKIPPED),
                Fate::Broken => count(serving, BROKEN),
                Fate::End => self.end(serving, &packet)?,
                Fate::Decoded(len) => self.decode(serving, &packet, len)?,
            }
        }
        Ok(())
    }

    /// Reads the clock of the sound.
    fn look(&mut self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        if serving.io().next(WANTED)? {
            let clock = serving.io().read::<PlayClock>(WANTED);
            self.wanted = Some(Wanted { position_ns: clock.position_ns, serial: clock.serial });
        }
        Ok(())
    }

    /// Takes the needed parts out of a packet.
    fn take(&mut self, packet: &Peek<'_>) -> Result<(PacketHead, Fate), Fault> {
        let mut head = PacketHead::default();
        packet.read_at(0, head.as_mut_bytes());
        if head.has(flag::END) {
            let fate = if self.is_stale(&head) { Fate::Skipped } else { Fate::End };
            return Ok((head, fate));
        }
        if head.codec() != CODEC {
            return Err(fault!(
                "decodes {CODEC}, got '{}'; have it decoded by a kind on Linux",
                head.codec()
            ));
        }
        if self.is_stale(&head) || self.is_late(&head) {
            return Ok((head, Fate::Skipped));
        }
        if head.payload().is_err() {
            return Ok((head, Fate::Broken));
        }
        // The set-up of a decoder comes first; a JPEG needs none.
        let (setup, len) = (head.setup_bytes as usize, head.bytes as usize);
        packet.read_at(size_of::<PacketHead>() + setup, &mut self.coded[..len]);
        Ok((head, Fate::Decoded(len)))
    }

    /// Whether it follows an older order than the sound. Orders are numbered modulo 2^32.
    fn is_stale(&self, head: &PacketHead) -> bool {
        let ahead = |wanted: &Wanted| head.serial.wrapping_sub(wanted.serial).cast_signed();
        self.wanted.as_ref().is_some_and(|wanted| ahead(wanted) < 0)
    }

    /// Whether its picture would end before the sound that is heard.
    fn is_late(&self, head: &PacketHead) -> bool {
        let duration_ns = if head.duration_ns == 0 { DURATION_NS } else { head.duration_ns };
        let end_ns = position_ns(head).saturating_add(duration_ns);
        let wanted = self.wanted.as_ref().filter(|wanted| wanted.serial == head.serial);
        wanted.is_some_and(|wanted| end_ns < wanted.position_ns)
    }

    /// The head of a picture, before it is decoded.
    fn head(&self, serving: &mut Serving<'_>, packet: &PacketHead) -> Result<PictureHead, Fault> {
        let waiting = serving.waiting(IN)?;
        let [skipped, broken] = [SKIPPED, BROKEN].map(|counter| *serving.io().counter(counter));
        // Without `time_ns`, as the guest has a clock of its own.
        let PacketHead { duration_ns, film_ns, serial, .. } = *packet;
        Ok(PictureHead {
            number: self.number,
            position_ns: position_ns(packet),
            duration_ns,
            film_ns,
            serial,
            waiting,
            skipped,
            broken,
            ..PictureHead::default()
        })
    }

    /// Sends the message that the film is over.
    fn end(&self, serving: &mut Serving<'_>, packet: &PacketHead) -> Result<(), Fault> {
        let head = self.head(serving, packet)?;
        serving.write_in_place(OUT, |place| {
            place[..HEAD].copy_from_slice(head.as_bytes());
            Some(HEAD)
        })?;
        Ok(())
    }

    /// Decodes the first `len` copied bytes into the place of the next picture.
    fn decode(
        &self,
        serving: &mut Serving<'_>,
        packet: &PacketHead,
        len: usize,
    ) -> Result<(), Fault> {
        let head = self.head(serving, packet)?;
        let is_decoded = serving.write_in_place(OUT, |place| {
            let (front, points) = place.split_at_mut(HEAD);
            let begun_ns = now_ns();
            let head = jpeg::decode(&self.coded[..len], head, points)?;
            let head = PictureHead { decode_ns: now_ns() - begun_ns, ..head };
            front.copy_from_slice(head.as_bytes());
            Some(HEAD + head.stride[0] as usize * head.height as usize)
        })?;
        count(serving, if is_decoded { DECODED } else { BROKEN });
        Ok(())
    }
}

/// When its picture is to be seen. If the film does not give it, this is when it is to be decoded,
/// as no JPEG needs another one.
fn position_ns(packet: &PacketHead) -> u64 {
    if packet.has(flag::UNPLACED) { packet.decoding_ns } else { packet.position_ns }
}

fn count(serving: &mut Serving<'_>, counter: usize) {
    let counter = serving.io().counter(counter);
    *counter = counter.wrapping_add(1);
}
