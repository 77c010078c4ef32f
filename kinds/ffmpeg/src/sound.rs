//! Decodes sound into samples of one format, whatever the film has.

use ffmpeg_next::codec::decoder;
use ffmpeg_next::ffi::{AVRational, av_channel_layout_default, av_mallocz};
use ffmpeg_next::format::Sample;
use ffmpeg_next::format::sample::Type;
use ffmpeg_next::software::resampling;
use ffmpeg_next::{ChannelLayout, Packet, codec, frame};
use sinew_media::{CHANNELS, RATE_HZ};

use crate::{FilmRefused, StreamSetup, decoder_of, prepare, refused};

/// The output format.
const FORMAT: Sample = Sample::I16(Type::Packed);
const LAYOUT: ChannelLayout = ChannelLayout::STEREO;
/// A larger jump of the film's own times is taken over; smaller ones come from rounding.
const JUMP_NS: u64 = 50_000_000;

/// Decodes the packets of one stream into samples: 16 bits, [`RATE_HZ`], left and right in turn.
pub struct SoundDecoder {
    decoder: decoder::Audio,
    converter: Option<resampling::Context>,
    /// The position last taken over from the film, ns, and the count of samples since then.
    since: Option<(u64, u64)>,
}

impl SoundDecoder {
    /// A decoder of one stream.
    ///
    /// # Errors
    /// There is no decoder for the codec, or it refuses this stream.
    pub fn new(setup: &StreamSetup) -> Result<SoundDecoder, FilmRefused> {
        prepare();
        let found = decoder_of(&setup.codec)?;
        let mut context = codec::Context::new_with_codec(found);
        let number = |value: u32| i32::try_from(value).unwrap_or(0);
        // SAFETY: the context is not open yet, so nobody else uses it; FFmpeg frees the set-up with
        // its own allocator.
        unsafe {
            let raw = &mut *context.as_mut_ptr();
            raw.pkt_timebase = AVRational { num: 1, den: 1_000_000_000 };
            raw.sample_rate = number(setup.shape[0]);
            av_channel_layout_default(&mut raw.ch_layout, number(setup.shape[1]));
            raw.bits_per_coded_sample = number(setup.sample[0]);
            raw.block_align = number(setup.sample[1]);
            let bytes = av_mallocz(setup.bytes.len() + 64).cast::<u8>();
            if !bytes.is_null() {
                bytes.copy_from_nonoverlapping(setup.bytes.as_ptr(), setup.bytes.len());
                (raw.extradata, raw.extradata_size) = (bytes, number(setup.bytes.len() as u32));
            }
        }
        let decoder = context.decoder().open_as(found).map_err(refused(&setup.codec))?;
        let decoder = decoder.audio().map_err(refused(&setup.codec))?;
        Ok(SoundDecoder { decoder, converter: None, since: None })
    }

    /// Decodes a packet whose first sample is to be heard at `position_ns`. Calls `take` with
    /// samples as they come, and with the position of the first of them.
    ///
    /// # Errors
    /// The packet cannot be decoded. The decoder can go on with the next one.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        position_ns: u64,
        take: &mut dyn FnMut(u64, &[i16]),
    ) -> Result<(), FilmRefused> {
        let mut packet = Packet::copy(bytes);
        packet.set_pts(i64::try_from(position_ns).ok());
        self.decoder.send_packet(&packet).map_err(refused("cannot be decoded"))?;
        let mut decoded = frame::Audio::empty();
        while self.decoder.receive_frame(&mut decoded).is_ok() {
            if decoded.channel_layout().is_empty() {
                decoded.set_channel_layout(ChannelLayout::default(decoded.channels().into()));
            }
            let samples = self.converted(&decoded)?;
            let heard_ns = decoded.pts().and_then(|pts| u64::try_from(pts).ok());
            let at_ns = self.position(heard_ns.unwrap_or(position_ns), samples.len() / CHANNELS);
            take(at_ns, &samples);
        }
        Ok(())
    }

    /// Drops what the decoder holds back: the next packet comes from another place in the film.
    pub fn clear(&mut self) {
        self.decoder.flush();
        (self.converter, self.since) = (None, None);
    }

    fn converted(&mut self, decoded: &frame::Audio) -> Result<Vec<i16>, FilmRefused> {
        let (format, rate) = (decoded.format(), decoded.rate());
        let is = resampling::context::Definition {
            format,
            channel_layout: decoded.channel_layout(),
            rate,
        };
        if self.converter.as_ref().is_none_or(|converter| *converter.input() != is) {
            let layout = is.channel_layout;
            let made = resampling::Context::get(format, layout, rate, FORMAT, LAYOUT, RATE_HZ);
            self.converter = Some(made.map_err(refused("cannot be converted"))?);
        }
        let converter = self.converter.as_mut().expect("it was just made");
        // Room for the converted samples, and for those that the converter may have held back.
        let room = decoded.samples() as u64 * u64::from(RATE_HZ) / u64::from(rate.max(1)) + 256;
        let mut out = frame::Audio::new(FORMAT, room as usize, LAYOUT);
        converter.run(decoded, &mut out).map_err(refused("cannot be converted"))?;
        Ok(out.plane::<(i16, i16)>(0).iter().flat_map(|&(left, right)| [left, right]).collect())
    }

    /// The position of the next samples: counted on, unless the film's own times jumped.
    fn position(&mut self, said_ns: u64, samples: usize) -> u64 {
        let counted = |(base, count): (u64, u64)| base + count * 1_000_000_000 / u64::from(RATE_HZ);
        let goes_on = |since: &(u64, u64)| counted(*since).abs_diff(said_ns) < JUMP_NS;
        let (base, count) = self.since.filter(goes_on).unwrap_or((said_ns, 0));
        self.since = Some((base, count + samples as u64));
        counted((base, count))
    }
}
