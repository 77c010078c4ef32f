//! Films, taken apart and decoded by FFmpeg's libraries. It is a crate of its own for two reasons.
//! It is built only where those libraries are (feature `libraries`). And a decoder in C writes
//! through pointers: all unsafe code of the player is in `film.rs`, `place.rs` and `pictures.rs`
//! here.
//!
//! - `Film`: opens a file or an address and hands out its pieces, video and sound;
//! - `PictureDecoder`: decodes pieces into pictures, in places that it was offered;
//! - `SoundDecoder`: decodes pieces into blocks of sound.
#![cfg(feature = "libraries")]

mod film;
mod pictures;
mod place;
mod sound;

use std::ffi::CString;
use std::fmt;
use std::sync::Once;

use ffmpeg_next::ffi::{avcodec_descriptor_get_by_name, avcodec_version};
use ffmpeg_next::{Codec, codec, log};

pub use film::{Film, FilmSource, Piece, StreamInfo};
pub use pictures::{PictureDecoder, Skip};
pub use sound::SoundDecoder;

/// What FFmpeg's libraries refused, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilmRefused(pub String);

impl fmt::Display for FilmRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilmRefused {}

/// Converts the error of a call.
fn refused(what: &str) -> impl Fn(ffmpeg_next::Error) -> FilmRefused + '_ {
    move |error| FilmRefused(format!("{what}: {error}"))
}

/// The version of the loaded libavcodec, such as `59.37.100`.
pub fn version() -> String {
    // SAFETY: it only returns a number.
    let version = unsafe { avcodec_version() };
    format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff)
}

/// What a decoder needs from the heads of its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSetup {
    /// The codec's name, as FFmpeg writes it.
    pub codec: String,
    /// Bytes that belong to the stream as a whole.
    pub bytes: Vec<u8>,
    /// Columns and rows, or samples a second and channels; 0: not known.
    pub shape: [u32; 2],
    /// Bits of a sample and bytes of a block; 0: not known.
    pub sample: [u32; 2],
}

/// Prepares the libraries and turns off their log: we report what they refuse.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without it errors have no texts. It can only fail for devices, which we do not use.
        let _ = ffmpeg_next::init();
        log::set_level(log::Level::Fatal);
    });
}

/// The decoder of a codec of this name.
fn decoder_of(name: &str) -> Result<Codec, FilmRefused> {
    let unknown = || {
        FilmRefused(format!(
            "no decoder for '{name}' in the FFmpeg libraries of this machine (libavcodec {}); \
             convert the film: ffmpeg -i FILM -c:v mpeg4 -c:a mp3 OTHER.avi",
            version()
        ))
    };
    let text = CString::new(name).map_err(|_| unknown())?;
    // SAFETY: the text ends with a zero; the descriptor is a constant of the library, or null.
    let id = unsafe { avcodec_descriptor_get_by_name(text.as_ptr()).as_ref() }.map(|it| it.id);
    id.and_then(|id| codec::decoder::find(id.into())).ok_or_else(unknown)
}
