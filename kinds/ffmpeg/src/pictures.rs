//! Decodes pictures into places of a link, in the order of the places. So a picture is where its
//! reader finds it, without a copy, while the decoder still uses it as a reference.
//!
//! A decoder of MPEG takes places in the order in which it decodes, shows pictures in another
//! order, and keeps some as references. So a place goes through these states: it *waits*, is *lent*
//! to the decoder, is *shown* by it, and *leaves* when all before it have left. A place that the
//! decoder took and never showed leaves as a picture of [`PixelFormat::Nothing`].

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use ffmpeg_next::codec::decoder::Opened;
use ffmpeg_next::ffi::{AVDiscard, AVRational, av_mallocz};
use ffmpeg_next::{Error, Frame, Packet, codec};
use sinew_core::transport::MessagePlace;
use sinew_media::{PacketHead, PictureHead, PixelFormat, flag, planes_of};

use crate::place::{Lot, Shelf, format_of, lend};
use crate::{FilmRefused, StreamSetup, decoder_of, prepare, refused};

/// Count of places that a decoder may take for one packet: mostly one, and with a damaged film a
/// few more.
const OFFERED: usize = 3;
/// Count of zeros that FFmpeg needs after the bytes that set a decoder up.
const PADDING: usize = 64;

/// Which packets may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// None: every packet is decoded.
    Nothing,
    /// Packets that no others refer to may be skipped, to catch up.
    Unreferenced,
}

/// Decodes the packets of one stream into pictures.
pub struct PictureDecoder {
    // Declared before the shelf, so it is dropped first: it lends from the shelf until it is gone.
    decoder: Opened,
    shelf: Box<Shelf>,
    /// The places that have not left, in order.
    lots: VecDeque<Held>,
    /// Pictures that FFmpeg keeps in memory of its own until a place is offered.
    strays: VecDeque<(PictureHead, Frame)>,
    /// The last place at each address.
    earlier: HashMap<usize, Arc<Lot>>,
    /// Duration of the last packet.
    duration_ns: u64,
    /// Position of the last picture that was shown since the decoder was last cleared.
    shown_ns: Option<u64>,
}

/// A place that has not left, and what its head will need.
struct Held {
    lot: Arc<Lot>,
    decode_ns: u64,
    is_taken: bool,
    head: Option<PictureHead>,
}

// SAFETY: the decoder runs on whatever thread calls it, one at a time, and so does its shelf, which
// only it and this type reach.
unsafe impl Send for PictureDecoder {}

impl PictureDecoder {
    /// A decoder of one stream.
    ///
    /// # Errors
    /// There is no decoder for the codec, or it refuses this stream.
    pub fn new(setup: &StreamSetup) -> Result<PictureDecoder, FilmRefused> {
        prepare();
        let found = decoder_of(&setup.codec)?;
        let mut context = codec::Context::new_with_codec(found);
        let shelf = Box::<Shelf>::default();
        // SAFETY: the context is not open yet, so nobody else uses it. The shelf has an address of
        // its own and outlives the decoder. FFmpeg frees the set-up with its own allocator.
        unsafe {
            let raw = &mut *context.as_mut_ptr();
            raw.opaque = ptr::from_ref(&*shelf).cast_mut().cast();
            raw.get_buffer2 = Some(lend);
            raw.thread_count = 1;
            raw.pkt_timebase = AVRational { num: 1, den: 1_000_000_000 };
            [raw.width, raw.height] = setup.shape.map(|side| side.try_into().unwrap_or(0));
            raw.bits_per_coded_sample = setup.sample[0].try_into().unwrap_or(0);
            if let Ok(len) = i32::try_from(setup.bytes.len()) {
                let bytes = av_mallocz(setup.bytes.len() + PADDING).cast::<u8>();
                if !bytes.is_null() {
                    bytes.copy_from_nonoverlapping(setup.bytes.as_ptr(), setup.bytes.len());
                    (raw.extradata, raw.extradata_size) = (bytes, len);
                }
            }
        }
        let decoder = context.decoder().open_as(found).map_err(refused(&setup.codec))?;
        let (lots, strays, earlier) = Default::default();
        Ok(PictureDecoder { decoder, shelf, lots, strays, earlier, duration_ns: 0, shown_ns: None })
    }

    /// Sets which packets may be skipped, from the next one on.
    pub fn skip(&mut self, skip: Skip) {
        let discard = match skip {
            Skip::Nothing => AVDiscard::AVDISCARD_DEFAULT,
            Skip::Unreferenced => AVDiscard::AVDISCARD_NONREF,
        };
        // SAFETY: the decoder is open, and nobody else uses it.
        unsafe { (*self.decoder.as_mut_ptr()).skip_frame = discard };
    }

    /// Which place it wants next, counted from the first that has not left; `None`: it has enough.
    pub fn wanted(&self) -> Option<u32> {
        let has_enough = self.shelf.waiting.borrow().len() >= OFFERED;
        (!has_enough).then(|| u32::try_from(self.lots.len()).unwrap_or(u32::MAX))
    }

    /// Whether a packet may be decoded, since a place waits.
    pub fn is_ready(&self) -> bool {
        !self.shelf.waiting.borrow().is_empty()
    }

    /// Gives it the place that it [wanted](Self::wanted). Returns `false` if it still uses the
    /// picture that was in the place before; offer it again later.
    pub fn offer(&mut self, place: MessagePlace) -> bool {
        let address = place.start().as_ptr().addr();
        if self.earlier.get(&address).is_some_and(|earlier| earlier.is_lent()) {
            return false;
        }
        let lot = Arc::new(Lot::new(place));
        self.lots.push_back(Held { lot: lot.clone(), decode_ns: 0, is_taken: false, head: None });
        self.shelf.waiting.borrow_mut().push_back(lot);
        self.house_strays();
        true
    }

    /// Decodes a packet: its bytes, without the set-up of the decoder.
    ///
    /// # Errors
    /// The packet cannot be decoded. The decoder can go on with the next one.
    pub fn decode(&mut self, head: &PacketHead, bytes: &[u8]) -> Result<(), FilmRefused> {
        self.duration_ns = head.duration_ns;
        let mut packet = Packet::copy(bytes);
        let [shown, decoded] =
            [head.position_ns, head.decoding_ns].map(|ns| i64::try_from(ns).ok());
        packet.set_pts(shown.filter(|_| !head.has(flag::UNPLACED)));
        packet.set_dts(decoded);
        let began = Instant::now();
        let sent = self.decoder.send_packet(&packet);
        let shown = self.take_shown();
        self.note_taken(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        sent.map_err(refused("cannot be decoded"))?;
        shown
    }

    /// Shows what the decoder still holds back. Then it can only be [cleared](Self::clear).
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    pub fn finish(&mut self) -> Result<(), FilmRefused> {
        self.decoder.send_eof().map_err(refused("cannot be ended"))?;
        self.take_shown()
    }

    /// Drops what the decoder holds back: the next packet comes from another place in the film.
    pub fn clear(&mut self) {
        self.decoder.flush();
        self.strays.clear();
        self.shown_ns = None;
    }

    /// The head of the next picture that leaves, to be written in front of its points.
    pub fn next_head(&mut self) -> Option<PictureHead> {
        let front = self.lots.front()?;
        let is_unused = front.is_taken && front.head.is_none() && !front.lot.is_lent();
        if front.head.is_none() && !is_unused {
            return None;
        }
        self.leave()
    }

    /// As [`next_head`](Self::next_head), although the decoder has not shown the picture yet. For
    /// the case that no place waits and none can ever be had. If the picture is shown later it is
    /// copied.
    pub fn next_unseen(&mut self) -> Option<PictureHead> {
        let is_stuck = !self.is_ready() && self.lots.front().is_some_and(|front| front.is_taken);
        is_stuck.then(|| self.leave()).flatten()
    }

    fn leave(&mut self) -> Option<PictureHead> {
        let Held { lot, head, decode_ns, .. } = self.lots.pop_front()?;
        self.earlier.insert(lot.place.start().as_ptr().addr(), lot);
        let nothing = PictureHead { decode_ns, ..PictureHead::default() };
        Some(head.unwrap_or(nothing))
    }

    /// Takes the pictures that the decoder can show now.
    fn take_shown(&mut self) -> Result<(), FilmRefused> {
        loop {
            // SAFETY: an empty frame is freed when it is dropped.
            let mut frame = unsafe { Frame::empty() };
            match self.decoder.receive_frame(&mut frame) {
                Ok(()) => self.show(frame)?,
                Err(Error::Eof | Error::Other { errno: ffmpeg_next::util::error::EAGAIN }) => {
                    return Ok(());
                }
                Err(error) => return Err(refused("cannot be decoded")(error)),
            }
        }
    }

    fn show(&mut self, frame: Frame) -> Result<(), FilmRefused> {
        self.note_taken(0);
        // SAFETY: the decoder has just filled it.
        let raw = unsafe { &*frame.as_ptr() };
        let (format, range) = (raw.format, raw.color_range);
        let format = format_of(format, range).ok_or_else(|| {
            // SAFETY: FFmpeg's own number of a format.
            let name = ffmpeg_next::format::Pixel::from(unsafe {
                std::mem::transmute::<i32, ffmpeg_next::ffi::AVPixelFormat>(raw.format)
            });
            FilmRefused(format!(
                "its points are {name:?}; convert the film: ffmpeg -i FILM -pix_fmt yuv420p OTHER"
            ))
        })?;
        let sides = [raw.width, raw.height].map(i32::unsigned_abs);
        // FFmpeg may not know the position of the last pictures. Then it is that of the one before,
        // plus one duration.
        let next_ns = self.shown_ns.map_or(0, |shown_ns| shown_ns + self.duration_ns);
        let position_ns = u64::try_from(raw.best_effort_timestamp).unwrap_or(next_ns);
        self.shown_ns = Some(position_ns);
        let head = PictureHead {
            position_ns,
            duration_ns: self.duration_ns,
            width: sides[0],
            height: sides[1],
            ..PictureHead::default()
        };
        let first = raw.data[0];
        let place = self.lots.iter_mut().find(|held| held.is_taken && held.lot.points() == first);
        match place {
            Some(held) => {
                let mut head = PictureHead { format: format as u32, ..head };
                head.decode_ns = held.decode_ns;
                for at in 0..planes_of(format).len() {
                    // The planes are in sequence in one place, so the differences are small.
                    head.offset[at] = raw.data[at].addr().wrapping_sub(first.addr()) as u32;
                    head.stride[at] = raw.linesize[at].unsigned_abs();
                }
                held.head = Some(head);
            }
            None => {
                let head = head.packed(format).map_err(|bad| FilmRefused(bad.to_string()))?;
                self.strays.push_back((PictureHead { copies: 1, ..head }, frame));
                self.house_strays();
            }
        }
        Ok(())
    }

    /// Copies pictures that are kept elsewhere into places that wait.
    fn house_strays(&mut self) {
        while let Some((head, frame)) = self.strays.pop_front() {
            let Some(lot) = self.shelf.waiting.borrow_mut().pop_front() else {
                return self.strays.push_front((head, frame));
            };
            copy(&head, &frame, &lot);
            let held = self.lots.iter_mut().find(|held| Arc::ptr_eq(&held.lot, &lot));
            let held = held.expect("a place that waits has not left");
            (held.is_taken, held.head) = (true, Some(head));
        }
    }

    /// Records which places the decoder has taken, and how long it worked on them.
    fn note_taken(&mut self, decode_ns: u64) {
        for lot in self.shelf.taken.borrow_mut().drain(..) {
            if let Some(held) = self.lots.iter_mut().find(|held| Arc::ptr_eq(&held.lot, &lot)) {
                held.is_taken = true;
            }
        }
        if let Some(held) = self.lots.iter_mut().rfind(|held| held.is_taken && held.decode_ns == 0)
        {
            held.decode_ns = decode_ns;
            if let Some(head) = &mut held.head {
                head.decode_ns = decode_ns;
            }
        }
    }
}

/// Copies a picture from FFmpeg's memory into a place, as its head says.
fn copy(head: &PictureHead, frame: &Frame, lot: &Lot) {
    // SAFETY: the decoder has filled it.
    let raw = unsafe { &*frame.as_ptr() };
    let format = head.check().unwrap_or(PixelFormat::Nothing);
    for (at, &plane) in planes_of(format).iter().enumerate() {
        for y in (0..head.height).step_by(1 << plane.rows_shift) {
            let row = head.row(plane, at, y);
            let from = (y >> plane.rows_shift) as isize * raw.linesize[at] as isize;
            // SAFETY: the head was checked, so the row lies among the place's points; FFmpeg's
            // plane has as many rows and bytes in a row, and the two do not overlap.
            unsafe {
                let from = raw.data[at].offset(from);
                lot.points().add(row.offset).copy_from_nonoverlapping(from, row.len);
            }
        }
    }
}
