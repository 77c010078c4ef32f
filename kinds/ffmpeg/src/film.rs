//! Takes a film apart: from a file, a pipe or an address to pieces of video and sound.

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;

use ffmpeg_next::ffi::{
    AVCodecParameters, AVDictionary, av_dict_free, av_dict_set, avformat_alloc_context,
    avformat_close_input, avformat_find_stream_info, avformat_open_input,
};
use ffmpeg_next::format::context::Input;
use ffmpeg_next::util::interrupt;
use ffmpeg_next::{Error, Packet, Rational, Rescale, codec, media};
use sinew_media::{PacketHead, flag};

use crate::{FilmRefused, StreamSetup, prepare, refused};

/// Nanoseconds, as FFmpeg's unit of time.
const NS: Rational = Rational(1, 1_000_000_000);
/// The unit of the times of a whole film.
const FILM_TIME: Rational = Rational(1, 1_000_000);

/// Longest duration of a picture in a film that moves, ns.
const ROUNDED_NS: u64 = 100_000_000;

/// Where a film comes from.
#[derive(Clone, Debug)]
pub struct FilmSource {
    /// A path, or an address with a protocol that FFmpeg knows.
    pub name: String,
    /// Whether the file grows: at its end it is read again and again, and no jump is possible.
    pub grows: bool,
}

/// An open film.
pub struct Film {
    input: Input,
    /// Start of its first piece, in [`FILM_TIME`].
    start: i64,
    /// Its video; if it has several, the best.
    pub video: Option<StreamInfo>,
    /// Its sound; if it has several, the best.
    pub sound: Option<StreamInfo>,
}

/// A stream of a film.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// What its decoder needs.
    pub setup: Arc<StreamSetup>,
    index: usize,
    time_base: Rational,
}

/// A piece of a film.
pub struct Piece {
    /// Its head. The caller sets number and serial.
    pub head: PacketHead,
    /// What its decoder needs.
    pub setup: Arc<StreamSetup>,
    /// Whether it is video. If not, it is sound.
    pub is_video: bool,
    packet: Packet,
}

impl Piece {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.packet.data().unwrap_or(&[])
    }
}

impl Film {
    /// Opens a film and reads what streams it has. Blocks until it knows them. `is_over` is called
    /// repeatedly meanwhile, here and in all other calls, and ends them by returning true.
    ///
    /// # Errors
    /// The film does not exist, or FFmpeg does not know its format.
    pub fn open(
        source: &FilmSource,
        is_over: impl FnMut() -> bool + 'static,
    ) -> Result<Film, FilmRefused> {
        prepare();
        let input = open(source, is_over).map_err(refused(&source.name))?;
        // SAFETY: the input is open, and so its context is there.
        let start = unsafe { (*input.as_ptr()).start_time }.max(0);
        let best = |medium| {
            let stream = input.streams().best(medium)?;
            let parameters = stream.parameters();
            // SAFETY: the parameters are those of an open stream, which lives as long as `input`.
            let setup = unsafe { setup(&*parameters.as_ptr()) };
            let (index, time_base) = (stream.index(), stream.time_base());
            Some(StreamInfo { setup: Arc::new(setup), index, time_base })
        };
        let (video, sound) = (best(media::Type::Video), best(media::Type::Audio));
        Ok(Film { start, video, sound, input })
    }

    /// Duration as the film gives it, ns. FFmpeg's own figure covers only what is there. The header
    /// of a truncated film still says how many pictures it had.
    pub fn duration_ns(&self) -> Option<u64> {
        let there_ns = self.input.duration().rescale(FILM_TIME, NS);
        let video = self.video.as_ref().and_then(|video| self.input.stream(video.index));
        let said_ns = video.map_or(0, |video| {
            let lasts = video.avg_frame_rate().invert();
            if lasts.1 > 0 { video.frames().rescale(lasts, NS) } else { 0 }
        });
        u64::try_from(there_ns.max(said_ns)).ok().filter(|&ns| ns > 0)
    }

    /// The next piece; `None`: the film is over, or `is_over` returned true.
    ///
    /// # Errors
    /// The film cannot be read.
    pub fn read(&mut self) -> Result<Option<Piece>, FilmRefused> {
        loop {
            let mut packet = Packet::empty();
            match packet.read(&mut self.input) {
                Ok(()) => {}
                Err(Error::Eof | Error::Exit) => return Ok(None),
                Err(error) => return Err(FilmRefused(error.to_string())),
            }
            if let Some(piece) = self.piece(packet) {
                return Ok(Some(piece));
            }
        }
    }

    /// Goes to the last place at or before `position_ns` from which video can be decoded.
    ///
    /// # Errors
    /// The film cannot be read there. In a pipe no jump is possible.
    pub fn seek(&mut self, position_ns: u64) -> Result<(), FilmRefused> {
        // FFmpeg rounds to the nearest picture, which may be the one after.
        let before_ns = position_ns.saturating_sub(ROUNDED_NS);
        let at = i64::try_from(before_ns).unwrap_or(i64::MAX).rescale(NS, FILM_TIME);
        let at = at.saturating_add(self.start);
        self.input.seek(at, ..at).map_err(refused("cannot go there"))
    }

    /// The piece of a packet, if it is of one of the two streams.
    fn piece(&self, packet: Packet) -> Option<Piece> {
        let is_of = |stream: &&StreamInfo| stream.index == packet.stream();
        let video = self.video.as_ref().filter(is_of);
        let stream = video.or(self.sound.as_ref().filter(is_of))?;
        let start = self.start.rescale(FILM_TIME, NS);
        let ns = |time: i64| time.rescale(stream.time_base, NS);
        let ns = |time: i64| u64::try_from(ns(time).saturating_sub(start)).unwrap_or(0);
        // For many packets AVI gives only the time of decoding.
        let (shown, decoded) = (packet.pts(), packet.dts());
        let [position_ns, decoding_ns] =
            [shown.or(decoded), decoded.or(shown)].map(|time| ns(time.unwrap_or(0)));
        let unplaced = if shown.is_none() { flag::UNPLACED } else { 0 };
        let head = PacketHead {
            position_ns,
            decoding_ns,
            duration_ns: u64::try_from(packet.duration().rescale(stream.time_base, NS))
                .unwrap_or(0),
            codec: PacketHead::codec_of(&stream.setup.codec),
            flags: unplaced | if packet.is_key() { flag::KEY } else { 0 },
            setup_bytes: u32::try_from(stream.setup.bytes.len()).unwrap_or(u32::MAX),
            bytes: u32::try_from(packet.size()).unwrap_or(u32::MAX),
            shape: stream.setup.shape,
            sample: stream.setup.sample,
            ..PacketHead::default()
        };
        Some(Piece { head, setup: stream.setup.clone(), is_video: video.is_some(), packet })
    }
}

fn open(source: &FilmSource, is_over: impl FnMut() -> bool + 'static) -> Result<Input, Error> {
    let name = CString::new(source.name.as_str()).map_err(|_| Error::InvalidData)?;
    // SAFETY: the calls are those of FFmpeg's own example of a demultiplexer, in its order: a
    // context that `avformat_open_input` frees if it fails, options that are freed in any case, and
    // an open context that `Input` owns from then on. The question whether it is over lives as long
    // as the program: whoever opens a film opens few.
    unsafe {
        let mut context = avformat_alloc_context();
        if context.is_null() {
            return Err(Error::Unknown);
        }
        (*context).interrupt_callback = interrupt::new(Box::new(is_over)).interrupt;
        let mut options: *mut AVDictionary = ptr::null_mut();
        if source.grows {
            // The end is not there yet, so FFmpeg must not seek there.
            av_dict_set(&mut options, c"follow".as_ptr(), c"1".as_ptr(), 0);
            av_dict_set(&mut options, c"seekable".as_ptr(), c"0".as_ptr(), 0);
        }
        let opened =
            avformat_open_input(&mut context, name.as_ptr(), ptr::null_mut(), &mut options);
        av_dict_free(&mut options);
        good(opened)?;
        let found = avformat_find_stream_info(context, ptr::null_mut());
        if found < 0 {
            avformat_close_input(&mut context);
        }
        good(found)?;
        Ok(Input::wrap(context))
    }
}

fn good(returned: c_int) -> Result<(), Error> {
    if returned < 0 { Err(Error::from(returned)) } else { Ok(()) }
}

fn setup(parameters: &AVCodecParameters) -> StreamSetup {
    let number = |value: c_int| u32::try_from(value).unwrap_or(0);
    let bytes = match usize::try_from(parameters.extradata_size) {
        Ok(len) if !parameters.extradata.is_null() => {
            // SAFETY: FFmpeg says that so many bytes stand there.
            unsafe { std::slice::from_raw_parts(parameters.extradata, len) }.to_vec()
        }
        _ => vec![],
    };
    let is_video = media::Type::from(parameters.codec_type) == media::Type::Video;
    StreamSetup {
        codec: codec::Id::from(parameters.codec_id).name().to_owned(),
        bytes,
        shape: match is_video {
            true => [number(parameters.width), number(parameters.height)],
            false => [number(parameters.sample_rate), number(channels(parameters))],
        },
        sample: [number(parameters.bits_per_coded_sample), number(parameters.block_align)],
    }
}

/// Count of channels, as this version of FFmpeg gives it.
fn channels(parameters: &AVCodecParameters) -> c_int {
    parameters.ch_layout.nb_channels
}
