//! Reads a film on a thread of its own, which may wait for a disk, a pipe or a network without
//! delaying the node.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use sinew_ffmpeg::{Film, FilmRefused, FilmSource, Piece, StreamSetup};
use sinew_media::{PICTURE_BYTES_MAX, PictureHead, PixelFormat};

/// Pieces that may wait between the thread and the node.
const PIECES: usize = 32;

/// A message of the thread.
pub(super) enum Said {
    /// The film is open.
    Open(FilmInfo),
    /// The next piece.
    Piece(Piece),
    /// It has jumped as ordered; if it could not, the reason.
    Went { serial: u32, refused: Option<FilmRefused> },
    /// The film is over; the reason, if this is not the film's end.
    Over(Option<FilmRefused>),
}

/// What an open film contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilmInfo {
    pub(super) has_video: bool,
    pub(super) has_sound: bool,
    /// Its duration, ns; 0: not known.
    pub(super) film_ns: u64,
}

/// A place to jump to.
struct Jump {
    serial: u32,
    position_ns: u64,
}

/// The thread, seen from outside. Dropping this ends the thread as soon as possible.
pub(super) struct FilmReader {
    said: Receiver<Said>,
    jumps: Sender<Jump>,
    is_over: Arc<AtomicBool>,
}

impl FilmReader {
    /// Begins to open a film.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub(super) fn start(source: FilmSource) -> io::Result<FilmReader> {
        let (say, said) = sync_channel(PIECES);
        let (jumps, jumped) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        // Nothing waits for its end, because a read of a pipe may never end.
        thread::Builder::new().name("film".into()).spawn(move || {
            let open = open(&source, asked);
            // If nothing listens any more, it ends.
            let _ = match open {
                Ok((mut film, info)) => {
                    say.send(Said::Open(info)).and_then(|()| read(&mut film, &say, &jumped))
                }
                Err(refused) => say.send(Said::Over(Some(refused))),
            };
        })?;
        Ok(FilmReader { said, jumps, is_over })
    }

    /// The next message of the thread, if there is one.
    pub(super) fn next(&self) -> Option<Said> {
        self.said.try_recv().ok()
    }

    /// Waits for the next message of the thread, at most for `time`.
    pub(super) fn wait(&self, time: Duration) -> Option<Said> {
        self.said.recv_timeout(time).ok()
    }

    /// Jumps to a place; [`Said::Went`] says when it is there.
    pub(super) fn jump(&self, serial: u32, position_ns: u64) {
        // A thread that is gone has given the reason.
        let _ = self.jumps.send(Jump { serial, position_ns });
    }
}

impl Drop for FilmReader {
    fn drop(&mut self) {
        // Relaxed: no other memory goes with it.
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Opens a film and reads what it contains.
///
/// # Errors
/// It cannot be played; the error says what to change.
pub(super) fn open(
    source: &FilmSource,
    is_over: Arc<AtomicBool>,
) -> Result<(Film, FilmInfo), FilmRefused> {
    // Relaxed: no other memory goes with it.
    let film = Film::open(source, move || is_over.load(Ordering::Relaxed))
        .map_err(|FilmRefused(text)| FilmRefused(format!("{text}; give a film in 'film'")))?;
    let info = FilmInfo {
        has_video: film.video.is_some(),
        has_sound: film.sound.is_some(),
        film_ns: film.duration_ns().unwrap_or(0),
    };
    if !info.has_video && !info.has_sound {
        return Err(FilmRefused(format!("{}: has neither video nor sound", source.name)));
    }
    if let Some(video) = &film.video {
        check_size(&source.name, &video.setup)?;
    }
    Ok((film, info))
}

fn check_size(name: &str, setup: &StreamSetup) -> Result<(), FilmRefused> {
    let [width, height] = setup.shape;
    let head = PictureHead { width, height, ..PictureHead::default() };
    head.packed(PixelFormat::Yuv420).map(drop).map_err(|_| {
        FilmRefused(format!(
            "{name}: its pictures have {width} x {height} points; expected 1 x 1 or more, and at \
             most {PICTURE_BYTES_MAX} bytes, which 1920 x 1080 are; convert it: ffmpeg -i FILM \
             -vf scale=1280:-2 OTHER"
        ))
    })
}

/// Reads until nothing listens any more.
fn read(
    film: &mut Film,
    say: &SyncSender<Said>,
    jumps: &Receiver<Jump>,
) -> Result<(), std::sync::mpsc::SendError<Said>> {
    let mut is_over = false;
    loop {
        // At the end of the film only a jump continues.
        let jump = if is_over { jumps.recv().ok() } else { newest(jumps) };
        if let Some(Jump { serial, position_ns }) = jump {
            let refused = film.seek(position_ns).err();
            say.send(Said::Went { serial, refused })?;
        } else if is_over {
            return Ok(());
        }
        let next = film.read();
        is_over = !matches!(next, Ok(Some(_)));
        say.send(match next {
            Ok(Some(piece)) => Said::Piece(piece),
            Ok(None) => Said::Over(None),
            Err(refused) => Said::Over(Some(refused)),
        })?;
    }
}

/// The last of the places that were ordered.
fn newest(jumps: &Receiver<Jump>) -> Option<Jump> {
    let mut newest = None;
    loop {
        match jumps.try_recv() {
            Ok(jump) => newest = Some(jump),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return newest,
        }
    }
}
