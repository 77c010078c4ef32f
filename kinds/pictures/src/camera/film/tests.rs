//! Films, good and bad.

use std::io::Cursor;

use tempfile::TempPath;

use super::super::image::{HEIGHT, head};
use super::*;
use crate::picture::PictureView;
use crate::picture::jpeg::encode;

/// A picture of one colour.
fn picture(code: u8) -> Vec<u8> {
    let points = vec![code; POINTS_LEN];
    encode(&PictureView::new(head(1, 0), &points).expect("a frame's"), 90)
}

/// A file with these bytes, whose name ends like this.
fn written(name: &str, bytes: &[u8]) -> TempPath {
    let file = tempfile::Builder::new().suffix(name).tempfile().expect("a folder to write in");
    fs::write(file.path(), bytes).expect("room for it");
    file.into_temp_path()
}

/// The code of the next frame's first point; `None` when the film is over.
fn shown(film: &mut Film) -> Result<Option<u8>, Fault> {
    if film.is_over()? {
        return Ok(None);
    }
    let (mut rows, mut code) = (0..HEIGHT, 0);
    film.frame(&Shot::default(), &mut |y, row| {
        assert_eq!(Some(y), rows.next(), "each row once, from the top");
        code = row[0];
    })?;
    assert_eq!(rows.len(), 0);
    Ok(Some(code))
}

/// The error when a file with these bytes is opened.
fn refused(name: &str, bytes: &[u8]) -> String {
    let file = written(name, bytes);
    let refused = Film::open(&file, true).err().expect("it is not a film").text().to_owned();
    assert!(refused.contains(name), "{refused}");
    refused
}

#[test]
fn a_film_shows_its_frames_in_order_and_ends_or_begins_again() {
    let frames = [picture(10), picture(120), picture(250)].concat();
    let file = written("order.mjpeg", &frames);
    for repeats in [false, true] {
        let mut film = Film::open(&file, repeats).expect("a film");
        for code in [10_u8, 120, 250] {
            let found = shown(&mut film).expect("a good one").expect("three frames");
            assert!(found.abs_diff(code) < 3, "{found} for {code}");
        }
        let next = shown(&mut film).expect("a good one");
        assert_eq!(next.map(|found| found.abs_diff(10) < 3), repeats.then_some(true));
    }
}

#[test]
fn a_frame_that_is_skipped_is_passed_over() {
    let file = written("skipped.mjpeg", &[picture(10), picture(250)].concat());
    let mut film = Film::open(&file, false).expect("a film");
    assert!(!film.is_over().expect("a good one"));
    film.skip().expect("a good one");
    assert!(shown(&mut film).expect("a good one").is_some_and(|code| code > 240));
    assert_eq!(shown(&mut film).expect("a good one"), None);
}

#[test]
fn files_that_are_no_films_are_named_with_what_was_expected() {
    let remedy = "ffmpeg -i VIDEO";
    let empty = refused("empty", b"");
    assert!(empty.contains("end of the file") && empty.contains(remedy), "{empty}");
    let text = refused("text", b"Sinew, a dataflow runtime for machines");
    assert!(text.contains("frame 1 at byte 0: expected a JPEG (ff d8), found 53 69"), "{text}");
    let short = refused("short", &picture(9)[..1000]);
    assert!(short.contains("is torn: the file ends 1000 bytes later") && short.contains(remedy));
    let hollow = refused("hollow", &[0xff, 0xd8, 0xff, 0xd9]);
    assert!(hollow.contains("not a whole JPEG"), "{hollow}");
    let mut small = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut small, 80);
    encoder.encode(&[7; 32 * 16 * 3], 32, 16, jpeg_encoder::ColorType::Rgb).expect("a good one");
    let small = refused("small", &small);
    assert!(small.contains("has 32 x 16 points, expected 640 x 480"), "{small}");
    let endless = [&[0xff, 0xd8, 0xff, SCAN, 0, 2][..], &vec![7; 3 << 20]].concat();
    let endless = refused("endless", &endless);
    assert!(endless.contains("no end within 1048576 bytes"), "{endless}");
}

#[test]
fn what_is_no_file_is_refused_and_never_waited_for() {
    let pipe = written("pipe", b"");
    fs::remove_file(&pipe).expect("it was written");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &*pipe, kind, mode, 0).expect("a folder to write in");
    let refused = Film::open(&pipe, true).err().expect("nobody writes into it");
    assert!(refused.text().contains("not a regular file"), "{refused:?}");
    for (path, words) in [
        ("/no/such.mjpeg", "No such file"),
        ("/dev/zero", "not a regular file"),
        ("/dev", "not a regular file"),
    ] {
        let refused = Film::open(Path::new(path), true).err().expect("it is not a film");
        assert!(refused.text().contains(path) && refused.text().contains(words), "{refused:?}");
    }
}

#[test]
fn a_bad_frame_behind_good_ones_is_named_with_its_place() {
    let good = picture(50);
    let torn = written("torn.mjpeg", &[&good[..], &good[..good.len() / 2]].concat());
    let mut film = Film::open(&torn, true).expect("its first frame is good");
    assert!(shown(&mut film).expect("a good one").is_some());
    let error = shown(&mut film).expect_err("half a frame").text().to_owned();
    assert!(error.contains(&format!("frame 2 at byte {}: is torn", good.len())), "{error}");

    // A frame of another size among good ones.
    let size = good.windows(2).position(|two| two == [0xff, 0xc0]).expect("it has a size") + 5;
    let mut low = good.clone();
    low[size..size + 2].copy_from_slice(&300_u16.to_be_bytes());
    let mixed = written("mixed.mjpeg", &[&good[..], &low].concat());
    let mut film = Film::open(&mixed, true).expect("its first frame is good");
    assert!(shown(&mut film).expect("a good one").is_some());
    let error = shown(&mut film).expect_err("a low frame").text().to_owned();
    assert!(error.contains("frame 2 at byte") && error.contains("640 x 300"), "{error}");
}

#[test]
fn whatever_the_bytes_a_jpeg_is_cut_out_or_refused() {
    // A JPEG within a JPEG (a thumbnail) and padded markers do not end it; whatever follows the
    // JPEG stays in the file.
    let inner = [0xff, BEGIN, 0xff, END];
    let bytes = [
        &[0xff, BEGIN, 0xff, 0xff, 0xe1, 0, 6][..],
        &inner,
        &[0xff, SCAN, 0, 2, 1, 0xff, 0, 0xff, 0xd3, 2, 0xff, 0xff, END],
    ];
    let bytes = bytes.concat();
    let mut file = Cursor::new([&bytes[..], b"next"].concat());
    let mut found = Vec::new();
    let cut = Cut { file: file.by_ref().take(FRAME_BYTES_MAX), jpeg: &mut found }.all();
    assert_eq!((cut, found == bytes, file.position()), (Ok(()), true, bytes.len() as u64));

    // Cut off anywhere, or with any byte changed: the result is an end or an error, never a panic.
    let good = picture(50);
    let mut points = vec![0; POINTS_LEN];
    for at in 0..600 {
        for code in [0, 1, 0x7f, 0xd8, 0xd9, 0xda, 0xff] {
            let mut bad = good.clone();
            bad[at] = code;
            let mut found = Vec::new();
            let file = Cursor::new(&bad).take(FRAME_BYTES_MAX);
            if (Cut { file, jpeg: &mut found }).all().is_ok() && at % 41 == 0 {
                // The result does not matter.
                let _ = jpeg::decode(&found, &mut points);
            }
        }
        let file = Cursor::new(&good[..at]).take(FRAME_BYTES_MAX);
        assert!(Cut { file, jpeg: &mut Vec::new() }.all().is_err(), "{at}");
    }
}
