//! Films made by FFmpeg's own program, taken apart and decoded here: every picture and every sample
//! must be as that program decodes it, at the position that the program gives.
#![cfg(feature = "libraries")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sinew_core::transport::{LinkShape, Receiver, Sender, row};
use sinew_ffmpeg::{Film, FilmSource, PictureDecoder, Piece, SoundDecoder};
use sinew_media::{PICTURE_BYTES_MAX, PictureHead, PixelFormat, flag, planes_of};
use sinew_plan::plan::{Delivery, Sync, Transport, Wait};
use zerocopy::{FromBytes, IntoBytes};

/// Count of places of the link into which pictures are decoded.
const CAPACITY: u32 = 8;

fn ffmpeg(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).output();
    let output = output.expect("the program 'ffmpeg', as the README says");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A film of two seconds, with this video and sound.
fn film(folder: &Path, name: &str, video: &[&str], sound: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let picture = ["-f", "lavfi", "-i", "testsrc2=size=640x352:rate=25:duration=2"];
    let tone = ["-f", "lavfi", "-i", "sine=frequency=440:duration=2"];
    let out = path.to_str().expect("a name of ours");
    ffmpeg(&[&picture[..], &tone, video, sound, &[out]].concat());
    path
}

fn open(path: &Path) -> Film {
    let source = FilmSource { name: path.to_str().expect("a name of ours").into(), grows: false };
    Film::open(&source, || false).expect("a film of FFmpeg's own")
}

/// A link with the places for decoding.
fn link() -> (Box<dyn Sender>, Box<dyn Receiver>) {
    let shape = LinkShape {
        message_size: (PICTURE_BYTES_MAX + size_of::<PictureHead>()) as u32,
        type_hash: 1,
        capacity: CAPACITY,
        sync: Sync::LockFree,
        delivery: Delivery::Queue,
        wait: Wait::Park,
        tuning: None,
    };
    let row = row(Transport::SharedMemory);
    let (writer, reader) = (row.open)(&shape).expect("memory");
    ((row.sender)(writer, &shape).expect("fresh"), (row.receiver)(reader, &shape).expect("fresh"))
}

/// Decodes, and reads the pictures at the other end of the link.
struct Screen {
    decoder: PictureDecoder,
    writer: Box<dyn Sender>,
    reader: Box<dyn Receiver>,
    shown: Vec<(PictureHead, Vec<u8>)>,
}

impl Screen {
    fn new(film: &Film) -> Screen {
        let setup = &film.video.as_ref().expect("video").setup;
        let decoder = PictureDecoder::new(setup).expect("a decoder");
        let (writer, reader) = link();
        Screen { decoder, writer, reader, shown: vec![] }
    }

    fn offer(&mut self) {
        while let Some(ahead) = self.decoder.wanted() {
            let Some(place) = self.writer.place(ahead).expect("an honest reader") else { break };
            if !self.decoder.offer(place) {
                break;
            }
        }
    }

    fn show(&mut self, piece: &Piece) {
        self.offer();
        assert!(self.decoder.is_ready(), "everything is read at once");
        self.decoder.decode(&piece.head, piece.bytes()).expect("good");
        self.leave();
    }

    fn leave(&mut self) {
        while let Some(head) = self.decoder.next_head() {
            let mut claim = self.writer.claim().expect("honest").expect("it was offered");
            claim.write_at(0, head.as_bytes());
            claim.commit();
            let next = self.reader.peek().expect("honest").expect("just sent");
            let mut bytes = [0; size_of::<PictureHead>()];
            next.read_at(0, &mut bytes);
            let head = PictureHead::read_from_bytes(&bytes).expect("its size");
            let points = points(&head, |offset, row| next.read_at(offset, row));
            next.release();
            self.shown.push((head, points));
        }
        self.offer();
    }
}

/// The points of a picture, without gaps between planes, like FFmpeg's `rawvideo`.
fn points(head: &PictureHead, read: impl Fn(usize, &mut [u8])) -> Vec<u8> {
    let format = head.check().expect("within its place");
    let mut points = vec![];
    for (at, &plane) in planes_of(format).iter().enumerate() {
        for y in (0..head.height).step_by(1 << plane.rows_shift) {
            let row = head.row(plane, at, y);
            let from = points.len();
            points.resize(from + row.len, 0);
            read(size_of::<PictureHead>() + row.offset, &mut points[from..]);
        }
    }
    points
}

/// Positions of all pictures according to ffprobe, ns.
fn probed(path: &Path) -> Vec<u64> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v", "-show_entries"])
        .args(["frame=best_effort_timestamp_time", "-of", "csv=p=0"])
        .arg(path)
        .output()
        .expect("the program 'ffprobe'");
    let text = String::from_utf8(output.stdout).expect("text");
    let seconds = text.lines().filter_map(|line| line.trim_end_matches(',').parse::<f64>().ok());
    seconds.map(|seconds| (seconds * 1e9).round() as u64).collect()
}

/// Decodes a whole film into places, and compares it with what FFmpeg's programs give.
fn as_ffmpeg_decodes_it(name: &str, video: &[&str], pixels: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = film(folder.path(), name, video, &["-c:a", "mp3"]);
    let mut film = open(&path);
    let mut screen = Screen::new(&film);
    while let Some(piece) = film.read().expect("whole") {
        if piece.is_video {
            screen.show(&piece);
        }
    }
    screen.decoder.finish().expect("good");
    screen.leave();
    let shown: Vec<_> =
        screen.shown.iter().filter(|it| it.0.format != PixelFormat::Nothing as u32).collect();
    assert!(shown.iter().all(|(head, _)| head.copies == 0), "a picture was copied");
    let mut in_order = shown.clone();
    in_order.sort_by_key(|(head, _)| head.position_ns);
    let raw = ffmpeg(&[
        "-i",
        path.to_str().expect("ours"),
        "-fps_mode",
        "passthrough",
        "-f",
        "rawvideo",
        "-pix_fmt",
        pixels,
        "-",
    ]);
    let frames: Vec<_> = raw.chunks(shown[0].1.len()).collect();
    assert_eq!((in_order.len(), frames.len()), (50, 50), "{name}");
    for (at, ((_, points), frame)) in in_order.iter().zip(&frames).enumerate() {
        assert!(points == frame, "{name}: picture {at} differs from FFmpeg's");
    }
    let positions: Vec<_> = in_order.iter().map(|it| it.0.position_ns).collect();
    let probed = probed(&path);
    // FFmpeg does not know the position of the last picture of a reordered film.
    assert!(positions.len() - probed.len() <= 1);
    let near = positions.iter().zip(&probed).all(|(ours, theirs)| ours.abs_diff(*theirs) < 2_000);
    assert!(near, "{name}: {positions:?} {probed:?}");
}

#[test]
fn xvid_lies_in_its_places_as_ffmpeg_decodes_it() {
    let xvid = ["-c:v", "mpeg4", "-vtag", "xvid", "-q:v", "4"];
    as_ffmpeg_decodes_it("plain.avi", &xvid, "yuv420p");
}

#[test]
fn pictures_that_are_shown_in_another_order_are_not_copied_either() {
    let reordered = ["-c:v", "mpeg4", "-bf", "2", "-q:v", "4"];
    as_ffmpeg_decodes_it("reordered.avi", &reordered, "yuv420p");
    as_ffmpeg_decodes_it("reordered.mkv", &reordered, "yuv420p");
}

#[test]
fn motion_jpeg_lies_in_its_places_as_ffmpeg_decodes_it() {
    for (name, pixels) in [("a.avi", "yuvj420p"), ("b.avi", "yuvj422p"), ("c.avi", "yuvj444p")] {
        let jpeg = ["-c:v", "mjpeg", "-q:v", "3", "-pix_fmt", pixels];
        as_ffmpeg_decodes_it(name, &jpeg, pixels);
    }
}

#[test]
fn sound_of_every_sort_becomes_the_same_samples_as_by_ffmpeg() {
    let folder = tempfile::tempdir().expect("a folder");
    let jpeg = ["-c:v", "mjpeg"];
    for (name, sound) in [
        ("pcm44.avi", &["-c:a", "pcm_s16le", "-ar", "44100"][..]),
        ("pcm48.avi", &["-c:a", "pcm_s16le", "-ar", "48000", "-ac", "2"]),
        ("mp3.avi", &["-c:a", "mp3", "-ar", "44100", "-ac", "2"]),
        ("mono.avi", &["-c:a", "mp3", "-ar", "48000", "-ac", "1"]),
        ("adpcm.avi", &["-c:a", "adpcm_ima_wav", "-ar", "44100"]),
    ] {
        let path = film(folder.path(), name, &jpeg, sound);
        let mut film = open(&path);
        let setup = film.sound.as_ref().expect("sound").setup.clone();
        let mut decoder = SoundDecoder::new(&setup).expect("a decoder");
        let (mut ours, mut positions) = (vec![], vec![]);
        while let Some(piece) = film.read().expect("whole") {
            if !piece.is_video {
                let take = &mut |at, samples: &[i16]| {
                    positions.push((at, ours.len() / 2));
                    ours.extend_from_slice(samples);
                };
                decoder.decode(piece.bytes(), piece.head.position_ns, take).expect("good");
            }
        }
        let out = path.to_str().expect("ours");
        let raw = ffmpeg(&["-i", out, "-f", "s16le", "-ar", "48000", "-ac", "2", "-"]);
        let theirs: Vec<i16> = raw.as_chunks().0.iter().map(|it| i16::from_le_bytes(*it)).collect();
        // What the converter still holds back at the end is not fetched.
        let near = ours.len().abs_diff(theirs.len());
        assert!(near < 4800, "{name}: {} and {}", ours.len(), theirs.len());
        let differ = ours.iter().zip(&theirs).filter(|(a, b)| a.abs_diff(**b) > 2).count();
        assert_eq!(differ, 0, "{name}");
        for (at, frames) in positions {
            let counted = frames as u64 * 1_000_000_000 / 48_000;
            assert!(counted.abs_diff(at) < 60_000_000, "{name}: {at} {counted}");
        }
    }
}

#[test]
fn what_nobody_can_take_apart_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("noise.avi");
    std::fs::write(&path, vec![7; 100_000]).expect("a file");
    let open = |name: &Path| {
        let source = FilmSource { name: name.to_str().expect("ours").into(), grows: false };
        Film::open(&source, || false).err().expect("refused").0
    };
    assert!(open(&path).contains("noise.avi: Invalid data"), "{}", open(&path));
    let none = folder.path().join("none.avi");
    assert!(open(&none).contains("none.avi: No such file"), "{}", open(&none));
    let unknown = sinew_ffmpeg::StreamSetup { codec: "h999".into(), ..Default::default() };
    let error = PictureDecoder::new(&unknown).err().expect("refused").0;
    assert!(error.starts_with("no decoder for 'h999'"), "{error}");
    assert!(SoundDecoder::new(&unknown).is_err());
}

#[test]
fn a_server_that_says_nothing_is_left_when_it_is_over() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let name = format!("http://{}/film.avi", server.local_addr().expect("bound"));
    let over = Arc::new(AtomicBool::new(false));
    let asked = over.clone();
    let opening = thread::spawn(move || {
        // Relaxed: nothing goes with it.
        let is_over = move || asked.load(Ordering::Relaxed);
        Film::open(&FilmSource { name, grows: false }, is_over).err().map(|it| it.0)
    });
    let held = server.accept().expect("it asks");
    over.store(true, Ordering::Relaxed);
    assert!(opening.join().expect("no panic").is_some());
    drop(held);
}

#[test]
fn a_jump_lands_at_or_before_where_it_was_meant_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let xvid = ["-c:v", "mpeg4", "-g", "10"];
    let path = film(folder.path(), "jump.avi", &xvid, &["-c:a", "mp3"]);
    let mut film = open(&path);
    assert!(film.duration_ns().expect("it says so").abs_diff(2_000_000_000) < 100_000_000);
    for to_ns in [1_500_000_000, 300_000_000, 0] {
        film.seek(to_ns).expect("a file");
        let piece = loop {
            let piece = film.read().expect("whole").expect("more");
            if piece.is_video {
                break piece;
            }
        };
        assert!(piece.head.has(flag::KEY));
        let away = to_ns.saturating_sub(piece.head.position_ns);
        assert!(piece.head.position_ns <= to_ns && away <= 400_000_000, "{:?}", piece.head);
    }
}
