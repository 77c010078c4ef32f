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

/// Twice what the JPEGs of the tests take, which is more than 44 KiB and less than 48. Past it the
/// guest ends with a fault that says so.
const STACK: u32 = 96 * 1024;
/// What is decoded, by FFmpeg's name.
const CODEC: &str = "mjpeg";
/// How long a picture is shown whose packet does not say it.
const DURATION_NS: u64 = 40_000_000;
/// Bytes of a picture in front of its points.
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
    /// The bytes of the packet that is being decoded. A copy: in their place who wrote them could
    /// still change them.
    coded: Box<[u8]>,
    /// What is heard, if it is known.
    wanted: Option<Wanted>,
    /// Packets so far.
    number: u64,
}

/// Where in the film the sound is.
struct Wanted {
    position_ns: u64,
    serial: u32,
}

/// What is to become of a packet.
enum Fate {
    /// It comes too late.
    Skipped,
    /// There is no picture in it.
    Broken,
    /// The film is over.
    End,
    /// So many bytes of [`Decoder::coded`] become a picture.
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
        // Room first: whether a packet is too late is asked when its picture can begin.
        while serving.wait_message(IN, patience)? && serving.wait_room(OUT, patience)? {
            self.look(serving)?;
            // The packet is gone before it is decoded: one that ends the guest does so once.
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

    /// Looks what is heard now.
    fn look(&mut self, serving: &mut Serving<'_>) -> Result<(), Fault> {
        if serving.io().next(WANTED)? {
            let clock = serving.io().read::<PlayClock>(WANTED);
            self.wanted = Some(Wanted { position_ns: clock.position_ns, serial: clock.serial });
        }
        Ok(())
    }

    /// Takes out of a packet what it needs of it.
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
        // What sets a decoder up stands in front; a JPEG needs none.
        let (setup, len) = (head.setup_bytes as usize, head.bytes as usize);
        packet.read_at(size_of::<PacketHead>() + setup, &mut self.coded[..len]);
        Ok((head, Fate::Decoded(len)))
    }

    /// Whether it follows an older order than what is heard. Orders are numbered modulo 2^32.
    fn is_stale(&self, head: &PacketHead) -> bool {
        let ahead = |wanted: &Wanted| head.serial.wrapping_sub(wanted.serial).cast_signed();
        self.wanted.as_ref().is_some_and(|wanted| ahead(wanted) < 0)
    }

    /// Whether its picture would end before what is heard.
    fn is_late(&self, head: &PacketHead) -> bool {
        let duration_ns = if head.duration_ns == 0 { DURATION_NS } else { head.duration_ns };
        let end_ns = position_ns(head).saturating_add(duration_ns);
        let wanted = self.wanted.as_ref().filter(|wanted| wanted.serial == head.serial);
        wanted.is_some_and(|wanted| end_ns < wanted.position_ns)
    }

    /// What a picture says of itself before it is decoded.
    fn head(&self, serving: &mut Serving<'_>, packet: &PacketHead) -> Result<PictureHead, Fault> {
        let waiting = serving.waiting(IN)?;
        let [skipped, broken] = [SKIPPED, BROKEN].map(|counter| *serving.io().counter(counter));
        // No `time_ns`: the guest's clock is its own.
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

    /// Says that the film is over.
    fn end(&self, serving: &mut Serving<'_>, packet: &PacketHead) -> Result<(), Fault> {
        let head = self.head(serving, packet)?;
        serving.write_in_place(OUT, |place| {
            place[..HEAD].copy_from_slice(head.as_bytes());
            Some(HEAD)
        })?;
        Ok(())
    }

    /// Decodes the first `len` bytes of what was copied into the place of the next picture.
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

/// When its picture is to be seen. If the film does not say it: each is decoded when it is to be
/// seen, since none needs another one.
fn position_ns(packet: &PacketHead) -> u64 {
    if packet.has(flag::UNPLACED) { packet.decoding_ns } else { packet.position_ns }
}

fn count(serving: &mut Serving<'_>, counter: usize) {
    let counter = serving.io().counter(counter);
    *counter = counter.wrapping_add(1);
}
