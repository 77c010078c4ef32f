//! A film from a file: Motion JPEG, one JPEG after the other.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Take};
use std::path::{Path, PathBuf};

use sinew_core::{Fault, fault};

use super::image::{POINTS_LEN, PixelRow, ROW_LEN};
use super::jpeg;
use super::source::{FrameSource, Shot};

/// Most bytes of a frame: even its uncoded points take less, so more is an error.
const FRAME_BYTES_MAX: u64 = 1 << 20;

/// Markers of JPEG (ITU-T T.81, annex B): start of a picture, its end, start of coded points.
const BEGIN: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;

/// A film, open.
pub(super) struct Film {
    path: PathBuf,
    repeats: bool,
    file: BufReader<File>,
    /// The frame that was read last, from 1, and the place in the file where it begins.
    number: u64,
    at: u64,
    jpeg: Vec<u8>,
    /// Whether it was read and not yet shown.
    is_next: bool,
    points: Vec<u8>,
}

impl Film {
    /// Opens a film and reads its first frame. `repeats`: after the last frame it begins again.
    pub(super) fn open(path: &Path, repeats: bool) -> Result<Film, Fault> {
        let unread = |what: &dyn Display| {
            fault!("{}: {what}; give a Motion JPEG file in 'file'", path.display())
        };
        // Checked before the file is opened, because opening a pipe waits for its writer.
        if !fs::metadata(path).map_err(|error| unread(&error))?.is_file() {
            return Err(unread(&"is not a regular file"));
        }
        let file = BufReader::new(File::open(path).map_err(|error| unread(&error))?);
        let (path, jpeg, points) = (path.to_owned(), Vec::new(), vec![0; POINTS_LEN]);
        let mut film = Film { path, repeats, file, number: 0, at: 0, jpeg, is_next: false, points };
        if !film.read()? {
            return Err(film.bad(&"expected a JPEG, found the end of the file"));
        }
        film.decode()?;
        film.begin()?;
        Ok(film)
    }

    /// Goes to the first frame.
    fn begin(&mut self) -> Result<(), Fault> {
        self.file.rewind().map_err(|error| self.bad(&error))?;
        (self.number, self.is_next) = (0, false);
        Ok(())
    }

    /// Reads the next frame; `false` if there is none.
    fn read(&mut self) -> Result<bool, Fault> {
        self.at = self.file.stream_position().map_err(|error| self.bad(&error))?;
        match self.file.fill_buf().map(<[u8]>::is_empty) {
            Ok(true) => return Ok(false),
            Ok(false) => {}
            Err(error) => return Err(self.bad(&error)),
        }
        self.number += 1;
        self.jpeg.clear();
        let file = self.file.by_ref().take(FRAME_BYTES_MAX);
        Cut { file, jpeg: &mut self.jpeg }.all().map_err(|what| self.bad(&what))?;
        self.is_next = true;
        Ok(true)
    }

    fn decode(&mut self) -> Result<(), Fault> {
        jpeg::decode(&self.jpeg, &mut self.points).map_err(|what| self.bad(&what))
    }

    /// The error of a frame, and what to change.
    fn bad(&self, what: &dyn Display) -> Fault {
        let Film { path, number, at, .. } = self;
        fault!(
            "{}: frame {} at byte {at}: {what}; make the file with 'ffmpeg -i VIDEO -vf \
             scale=640:480 -c:v mjpeg -q:v 3 FILM.mjpeg'",
            path.display(),
            number.max(&1)
        )
    }
}

impl FrameSource for Film {
    fn is_over(&mut self) -> Result<bool, Fault> {
        if self.is_next || self.read()? {
            return Ok(false);
        }
        if !self.repeats {
            return Ok(true);
        }
        self.begin()?;
        Ok(!self.read()?)
    }

    fn frame(&mut self, _: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault> {
        self.is_next = false;
        self.decode()?;
        self.points.as_chunks::<ROW_LEN>().0.iter().enumerate().for_each(|(y, row)| put(y, row));
        Ok(())
    }

    fn skip(&mut self) -> Result<(), Fault> {
        self.is_next = false;
        Ok(())
    }
}

/// Cuts a JPEG out of a file that continues after it.
struct Cut<'a, R> {
    file: Take<R>,
    jpeg: &'a mut Vec<u8>,
}

impl<R: BufRead> Cut<'_, R> {
    fn all(mut self) -> Result<(), String> {
        if [self.byte()?, self.byte()?] != [0xff, BEGIN] {
            let [one, other] = [self.jpeg[0], self.jpeg[1]];
            return Err(format!("expected a JPEG (ff d8), found {one:02x} {other:02x}"));
        }
        let mut marker = self.marker()?;
        while marker != END {
            let len = u16::from_be_bytes([self.byte()?, self.byte()?]);
            self.bytes(u64::from(len).saturating_sub(2))?;
            marker = if marker == SCAN { self.scan()? } else { self.marker()? };
        }
        Ok(())
    }

    /// The next marker.
    fn marker(&mut self) -> Result<u8, String> {
        match self.byte()? {
            0xff => self.code(),
            other => Err(format!("expected a marker of JPEG (ff), found {other:02x}")),
        }
    }

    /// The marker after coded points. These may contain 0xff too, followed by a zero or a restart
    /// marker.
    fn scan(&mut self) -> Result<u8, String> {
        loop {
            self.file.read_until(0xff, self.jpeg).map_err(|error| error.to_string())?;
            let code = self.code()?;
            if !matches!(code, 0 | 0xd0..=0xd7) {
                return Ok(code);
            }
        }
    }

    /// The byte after 0xff; further 0xff may come before it.
    fn code(&mut self) -> Result<u8, String> {
        loop {
            match self.byte()? {
                0xff => {}
                code => return Ok(code),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.bytes(1)?;
        Ok(self.jpeg[self.jpeg.len() - 1])
    }

    fn bytes(&mut self, count: u64) -> Result<(), String> {
        let read = self.file.by_ref().take(count).read_to_end(self.jpeg);
        if read.map_err(|error| error.to_string())? as u64 == count {
            return Ok(());
        }
        Err(match self.file.limit() {
            0 => format!("has no end within {FRAME_BYTES_MAX} bytes, the limit for a frame"),
            _ => format!("is torn: the file ends {} bytes later, within it", self.jpeg.len()),
        })
    }
}

#[cfg(test)]
mod tests;
