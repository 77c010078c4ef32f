//! A camera of Linux: Video4Linux2, with buffers that the driver fills.

use std::io::{self, ErrorKind};
use std::time::Duration;

use moq_v4l::buffer::Type;
use moq_v4l::io::mmap::Stream;
use moq_v4l::io::traits::CaptureStream;
use moq_v4l::video::Capture;
use moq_v4l::video::capture::Parameters;
use moq_v4l::{Device, Format, FourCC};
use sinew_core::{Fault, fault};

use super::image::{HEIGHT, POINTS_LEN, PixelRow, ROW_LEN, WIDTH};
use super::jpeg;
use super::source::{FrameSource, Shot};
use super::yuyv::{YUYV_ROW_LEN, to_rgb};

/// Frames that the driver may hold: one being filled, one being read, one ready.
const BUFFERS: u32 = 3;
/// How long the first frame may take: many cameras need time to warm up.
const FIRST: Duration = Duration::from_secs(3);
/// How long a further frame may take: less than the shortest heartbeat limit of a service.
const NEXT: Duration = Duration::from_millis(400);

/// Most damaged JPEGs in a row: one can be a short disturbance of the bus, more mean a bad camera.
const TORN_MAX: usize = 4;

/// EBUSY and ENODEV; the standard library has no error kind for them.
const BUSY: i32 = 16;
const GONE: i32 = 19;

/// The coding of a frame's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Yuyv,
    Rgb,
    /// Each frame is a JPEG: many cameras reach their rate only with these.
    Jpeg,
}

/// In the order in which they are requested: the cheapest to read comes first.
const CODINGS: [(Coding, [u8; 4]); 3] =
    [(Coding::Rgb, *b"RGB3"), (Coding::Yuyv, *b"YUYV"), (Coding::Jpeg, *b"MJPG")];

/// A camera, not yet opened.
pub(super) struct V4l2 {
    device: String,
    rate_hz: u32,
    open: Option<Open>,
}

struct Open {
    stream: Stream<'static>,
    coding: Coding,
    /// Bytes from one row to the next.
    stride: usize,
    /// The points of a frame that came as a JPEG.
    points: Vec<u8>,
}

impl V4l2 {
    pub(super) fn new(device: &str, rate_hz: u32) -> V4l2 {
        V4l2 { device: device.to_owned(), rate_hz, open: None }
    }

    fn opened(&self) -> Result<Open, Fault> {
        let said = |error| trouble(&self.device, &error);
        let device = Device::with_path(&self.device).map_err(said)?;
        // Requested first, because it distinguishes a camera from any other file.
        device.query_caps().map_err(said)?;
        let (coding, format) = self.format(&device)?;
        // A driver without rates has a rate of its own; frames then come at that rate.
        let _ = device.set_params(&Parameters::with_fps(self.rate_hz));
        let stream = Stream::with_buffers(&device, Type::VideoCapture, BUFFERS).map_err(said)?;
        let stride = (format.stride as usize).max(row_len(coding));
        Ok(Open { stream, coding, stride, points: vec![0; POINTS_LEN] })
    }

    fn format(&self, device: &Device) -> Result<(Coding, Format), Fault> {
        for (coding, code) in CODINGS {
            let asked = Format::new(WIDTH as u32, HEIGHT as u32, FourCC::new(&code));
            let got = device.set_format(&asked).map_err(|error| trouble(&self.device, &error))?;
            if is_met(&asked, &got) {
                return Ok((coding, got));
            }
        }
        let offered = device.enum_formats().unwrap_or_default();
        let offered: Vec<_> = offered.iter().map(|format| format.fourcc.to_string()).collect();
        Err(fault!(
            "camera '{}' offers no {WIDTH} x {HEIGHT} in RGB3, YUYV or MJPG (it has {}); take \
             another 'device', or another 'source'",
            self.device,
            offered.join(", ")
        ))
    }
}

/// Whether the driver gives what was requested; it may change what it cannot give.
fn is_met(asked: &Format, got: &Format) -> bool {
    (got.width, got.height, got.fourcc) == (asked.width, asked.height, asked.fourcc)
}

fn row_len(coding: Coding) -> usize {
    match coding {
        Coding::Yuyv => YUYV_ROW_LEN,
        Coding::Rgb | Coding::Jpeg => ROW_LEN,
    }
}

/// The error of a device, and what to change.
fn trouble(device: &str, error: &io::Error) -> Fault {
    let remedy = match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) => "plug it in, or name the right one in 'device'",
        (ErrorKind::PermissionDenied, _) => "let the user read it (group 'video')",
        (ErrorKind::TimedOut, _) => "no frame came; see whether it is plugged in and works",
        (_, Some(BUSY)) => "another program uses it; end that one, or name another in 'device'",
        (_, Some(GONE)) => "it was unplugged; plug it in again",
        _ => "it is not a camera, or it does not work; name the right one in 'device'",
    };
    fault!("camera '{device}': {error}; {remedy}")
}

impl Open {
    /// Takes the next frame and hands out its rows.
    fn frame(&mut self, put: &mut dyn FnMut(usize, &PixelRow)) -> io::Result<()> {
        let mut torn = String::new();
        for _ in 0..=TORN_MAX {
            let (buffer, frame) = CaptureStream::next(&mut self.stream)?;
            let bytes = buffer.get(..frame.bytesused as usize).unwrap_or(buffer);
            if self.coding != Coding::Jpeg {
                return rows(bytes, self.coding, self.stride, put);
            }
            match jpeg::decode(bytes, &mut self.points) {
                Ok(()) => return rows(&self.points, Coding::Rgb, ROW_LEN, put),
                Err(what) => torn = what,
            }
        }
        Err(io::Error::other(format!("{} frames in a row are torn; the last {torn}", TORN_MAX + 1)))
    }
}

/// The rows of a frame in a buffer.
fn rows(
    bytes: &[u8],
    coding: Coding,
    stride: usize,
    put: &mut dyn FnMut(usize, &PixelRow),
) -> io::Result<()> {
    for y in 0..HEIGHT {
        let from = bytes.get(y * stride..).unwrap_or_default();
        let row = match coding {
            Coding::Yuyv => from.first_chunk().map(to_rgb),
            Coding::Rgb | Coding::Jpeg => from.first_chunk().copied(),
        };
        let row = row.ok_or_else(|| {
            let len = bytes.len();
            io::Error::other(format!("a frame of {len} bytes ends within row {y} of {HEIGHT}"))
        })?;
        put(y, &row);
    }
    Ok(())
}

impl FrameSource for V4l2 {
    fn start(&mut self) -> Result<(), Fault> {
        let mut open = self.opened()?;
        open.stream.set_timeout(FIRST);
        open.frame(&mut |_, _| ()).map_err(|error| trouble(&self.device, &error))?;
        open.stream.set_timeout(NEXT);
        self.open = Some(open);
        Ok(())
    }

    fn frame(&mut self, _: &Shot, put: &mut dyn FnMut(usize, &PixelRow)) -> Result<(), Fault> {
        let open = self.open.as_mut().expect("a source is started before its first frame");
        open.frame(put).map_err(|error| trouble(&self.device, &error))
    }

    fn skip(&mut self) -> Result<(), Fault> {
        self.frame(&Shot::default(), &mut |_, _| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(device: &str) -> String {
        let refused = V4l2::new(device, 30).start().expect_err("there is no such camera");
        refused.text().to_owned()
    }

    #[test]
    fn a_device_that_is_missing_or_no_camera_is_named_with_what_to_change() {
        let missing = refused("/dev/video-of-nobody");
        assert!(missing.contains("/dev/video-of-nobody") && missing.contains("plug it in"));
        let other = refused("/dev/null");
        assert!(other.contains("/dev/null") && other.contains("not a camera"), "{other}");
    }

    #[test]
    fn each_trouble_has_its_remedy() {
        let said = |code| trouble("/dev/video0", &io::Error::from_raw_os_error(code));
        assert!(said(BUSY).text().contains("another program"));
        assert!(said(GONE).text().contains("unplugged"));
        assert!(said(13).text().contains("group 'video'"));
        let late = trouble("/dev/video0", &ErrorKind::TimedOut.into());
        assert!(late.text().contains("no frame came"));
    }

    #[test]
    fn a_format_that_the_driver_changed_is_not_taken() {
        let asked = Format::new(640, 480, FourCC::new(b"YUYV"));
        assert!(is_met(&asked, &asked));
        for got in [
            Format::new(640, 480, FourCC::new(b"MJPG")),
            Format::new(1280, 720, FourCC::new(b"YUYV")),
        ] {
            assert!(!is_met(&asked, &got));
        }
    }

    #[test]
    fn rows_are_found_by_their_stride_and_a_short_frame_is_an_error() {
        let stride = ROW_LEN + 64;
        let mut bytes = vec![0; stride * HEIGHT];
        bytes[stride * 7..][..3].copy_from_slice(&[1, 2, 3]);
        let mut found = Vec::new();
        rows(&bytes, Coding::Rgb, stride, &mut |y, row| found.push((y, row[0], row[2])))
            .expect("whole");
        assert_eq!((found.len(), found[7], found[8]), (HEIGHT, (7, 1, 3), (8, 0, 0)));
        bytes.truncate(stride * 100);
        let error = rows(&bytes, Coding::Yuyv, stride, &mut |_, _| ()).expect_err("short");
        assert!(error.to_string().contains("row 100 of 480"), "{error}");
    }
}
