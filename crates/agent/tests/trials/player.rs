//! The image `player`: a guest decodes Motion JPEG into the places of a link, as Linux would.

use std::thread::sleep;
use std::time::{Duration, Instant};

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use sinew_agent::{BoardRow, image};
use sinew_carve_out::Delivery;
use sinew_core::Message;
use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::Doorbell;
use sinew_link::queue::{Reader, Writer};
use sinew_link::{Wait, latest};
use sinew_media::{PACKET_BYTES_MAX, PacketHead, PictureHead, PixelFormat, flag};
use sinew_plan::plan::Board;
use zerocopy::{FromZeros, IntoBytes};
use zune_core::bytestream::ZCursor;
use zune_jpeg::JpegDecoder;

use crate::in_step::steps;
use crate::life::{self, Life, NodeLife, PATIENCE, say};

sinew_media::messages!(sinew_core::message);

/// Time between two looks at the guest.
const LOOK_NS: u64 = 10_000_000;
const WIDTH: u16 = 640;
const HEIGHT: u16 = 352;

/// Gradients, blocks with sharp edges, and noise. Each number gives another picture.
fn points(number: usize, width: u16, height: u16) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(number as u64);
    let (width, height) = (usize::from(width), usize::from(height));
    let point = |at: usize| {
        let (x, y) = (at % width, at / width);
        let is_block = ((x + 7 * number) / 64 + y / 64).is_multiple_of(3);
        let noise = rng.u8(..8);
        let red = if is_block { 240 } else { (x * 200 / width) as u8 + noise };
        [red, (y * 200 / height) as u8 + noise, 100 + noise]
    };
    (0..width * height).flat_map(point).collect()
}

/// A JPEG from an encoder with this setup.
fn jpeg_by(
    number: usize,
    (width, height): (u16, u16),
    set_up: impl FnOnce(&mut Encoder<&mut Vec<u8>>),
) -> Vec<u8> {
    let mut jpeg = vec![];
    let mut encoder = Encoder::new(&mut jpeg, 85);
    set_up(&mut encoder);
    let points = points(number, width, height);
    encoder.encode(&points, width, height, ColorType::Rgb).expect("a JPEG");
    jpeg
}

fn jpeg(number: usize) -> Vec<u8> {
    jpeg_by(number, (WIDTH, HEIGHT), |_| ())
}

/// The JPEG that takes the most memory to decode.
fn largest(number: usize) -> Vec<u8> {
    jpeg_by(number, (1064, 1064), |encoder| {
        encoder.set_progressive(true);
        encoder.set_sampling_factor(SamplingFactor::F_1_1);
    })
}

/// The same JPEG as films of Motion JPEG in AVI have it: without Huffman tables, which are always
/// the same.
fn without_tables(jpeg: &[u8]) -> Vec<u8> {
    let (mut bare, mut at) = (jpeg[..2].to_vec(), 2);
    loop {
        let len = 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        match jpeg[at + 1] {
            0xe0 => bare.extend_from_slice(b"\xff\xe0\0\x10AVI1\0\0\0\0\0\0\0\0\0\0"),
            0xc4 => {}
            0xda => break,
            _ => bare.extend_from_slice(&jpeg[at..at + len]),
        }
        at += len;
    }
    bare.extend_from_slice(&jpeg[at..]);
    bare
}

/// The points of a JPEG, as Linux decodes it.
fn decoded_here(jpeg: &[u8]) -> Vec<u8> {
    JpegDecoder::new(ZCursor::new(jpeg)).decode().expect("a whole JPEG")
}

/// A guest with the decoder, and the Linux ends of its links.
struct Player {
    life: Life,
    packets: Writer<Region>,
    pictures: Reader<Region>,
    clock: Option<latest::Writer<Region>>,
    bells: [Doorbell; 2],
    sent: u64,
}

impl Player {
    /// `None` if something is missing here.
    fn start(has_clock: bool) -> Option<Player> {
        let all = [(0, Delivery::Queue, 4), (2, Delivery::Queue, 2), (1, Delivery::Latest, 1)];
        let links = if has_clock { &all } else { &all[..2] };
        let (image, kind) = ("player", "jpeg_decoder");
        let life = Life::of(&NodeLife { image, kind, values: &[], links, bytes: 16 << 20 })?;
        let end = |port| life.link(port);
        let ((region, shape), (pictures, picture)) = (end(0), end(2));
        let packets = Writer::attach(region, &shape).expect("a link");
        let pictures = Reader::attach(pictures, &picture).expect("a link");
        let clock = has_clock.then(|| {
            let (region, shape) = end(1);
            latest::Writer::attach(region, &shape).expect("a link")
        });
        let bells = [1, 3].map(|bell| life.keeper.bells().doorbell(bell).expect("bells"));
        Some(Player { life, packets, pictures, clock, bells, sent: 0 })
    }

    /// Sends a packet of Motion JPEG with a duration of 40 ms.
    fn send(&mut self, jpeg: &[u8]) {
        let head = self.head(jpeg.len());
        self.send_as(&head, jpeg);
    }

    fn head(&mut self, bytes: usize) -> PacketHead {
        self.sent += 1;
        PacketHead {
            number: self.sent,
            position_ns: self.sent * 40_000_000,
            decoding_ns: self.sent * 40_000_000,
            duration_ns: 40_000_000,
            film_ns: 2_000_000_000,
            codec: PacketHead::codec_of("mjpeg"),
            serial: 7,
            flags: flag::KEY,
            setup_bytes: 5,
            bytes: bytes as u32,
            ..PacketHead::default()
        }
    }

    fn send_as(&mut self, head: &PacketHead, jpeg: &[u8]) {
        let begun = Instant::now();
        loop {
            if let Ok(mut claim) = self.packets.claim() {
                claim.write_at(0, head.as_bytes());
                claim.write_at(size_of::<PacketHead>(), b"setup");
                claim.write_at(size_of::<PacketHead>() + 5, jpeg);
                claim.commit_and_wake(&self.bells[0]);
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "there is no room for a packet");
            self.life.look();
            self.packets.wait_room(Wait::Park, Some(now_ns() + LOOK_NS), &self.bells[0]);
        }
    }

    /// The next picture, and its points.
    fn receive(&mut self) -> (PictureHead, Vec<u8>) {
        let begun = Instant::now();
        loop {
            if let Some(peek) = self.pictures.peek().expect("a whole link") {
                let mut head = PictureHead::default();
                peek.read_at(0, head.as_mut_bytes());
                head.check().expect("a good head");
                let mut points = vec![0; (head.stride[0] * head.height) as usize];
                peek.read_at(size_of::<PictureHead>(), &mut points);
                peek.release_and_wake(&self.bells[1]);
                return (head, points);
            }
            assert!(begun.elapsed() < PATIENCE, "no picture comes");
            self.life.look();
            self.pictures.wait(Wait::Park, Some(now_ns() + LOOK_NS), &self.bells[1]);
        }
    }

    /// The decoder's counters: decoded, skipped, broken.
    fn counted(&self) -> [u32; 3] {
        let counters = self.life.keeper.tally(0).counters;
        [counters[0], counters[1], counters[2]]
    }

    fn until(&mut self, what: &str, holds: impl Fn(&Player) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}: {:?}", self.counted());
            self.life.look();
            sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_guest_decodes_jpegs_as_linux_does() {
    let Some(mut player) = Player::start(false) else { return };
    let mut times_us = vec![];
    for number in 0..20 {
        let jpeg = jpeg(number);
        player.send(&jpeg);
        let (head, points) = player.receive();
        let expected = PictureHead {
            number: number as u64 + 1,
            position_ns: (number as u64 + 1) * 40_000_000,
            duration_ns: 40_000_000,
            decode_ns: head.decode_ns,
            film_ns: 2_000_000_000,
            serial: 7,
            width: WIDTH.into(),
            height: HEIGHT.into(),
            ..PictureHead::default()
        };
        assert_eq!(head, expected.packed(PixelFormat::Rgb24).expect("it fits"));
        assert!(points == decoded_here(&jpeg), "picture {number} has other points");
        times_us.push(head.decode_ns / 1000);
    }
    times_us.sort_unstable();
    let [least, most] = [times_us[0], times_us[times_us.len() - 1]];
    let median = times_us[times_us.len() / 2];
    say(&format!("{WIDTH} x {HEIGHT} by an emulated core: {median} us, {least} to {most}"));
    player.until("the counters", |player| player.counted() == [20, 0, 0]);
    assert_eq!(player.life.keeper.tally(0).messages, [20, 0, 20, 0]);
    let [reads, writes] = steps(&player.life.stop());
    // Read: head and bytes of each packet. Written: the points, the index that says that they are
    // there, and the index that frees the packet's place.
    assert!(reads >= 40 && writes >= 60, "{reads} before a read, {writes} after a write");
}

#[test]
fn jpegs_of_all_sorts_have_the_points_that_linux_gives_them() {
    let Some(mut player) = Player::start(false) else { return };
    let sampled = |factor| jpeg_by(1, (321, 177), |encoder| encoder.set_sampling_factor(factor));
    let mut grey = vec![];
    let luma: Vec<u8> = points(1, WIDTH, HEIGHT).into_iter().step_by(3).collect();
    let encoder = Encoder::new(&mut grey, 85);
    encoder.encode(&luma, WIDTH, HEIGHT, ColorType::Luma).expect("a JPEG");
    let jpegs = [
        ("4:4:4", sampled(SamplingFactor::F_1_1)),
        ("4:2:2", sampled(SamplingFactor::F_2_1)),
        ("4:4:0", sampled(SamplingFactor::F_1_2)),
        ("4:2:0", sampled(SamplingFactor::F_2_2)),
        ("4:1:1", sampled(SamplingFactor::F_4_1)),
        ("small", jpeg_by(1, (5, 3), |_| ())),
        ("narrow", jpeg_by(1, (1, 8192), |_| ())),
        ("wide", jpeg_by(1, (8192, 1), |_| ())),
        ("with restarts", jpeg_by(1, (WIDTH, HEIGHT), |it| it.set_restart_interval(7))),
        ("progressive", jpeg_by(1, (WIDTH, HEIGHT), |it| it.set_progressive(true))),
        ("grey", grey),
        ("without tables", without_tables(&jpeg(1))),
        // With another message buffer for each port, the heap would be too small.
        ("the largest", largest(1)),
        ("one as others are", jpeg(1)),
        ("the largest once more", largest(2)),
    ];
    for (what, jpeg) in &jpegs {
        assert!(jpeg.len() < PACKET_BYTES_MAX - 5, "{what}: {} bytes", jpeg.len());
        player.send(jpeg);
        player.until(what, |player| player.counted().iter().sum::<u32>() == player.sent as u32);
        assert_eq!(player.counted(), [player.sent as u32, 0, 0], "{what}");
        let (head, points) = player.receive();
        let PictureHead { width, height, decode_ns, .. } = head;
        say(&format!("{what}: {width} x {height}, {} us", decode_ns / 1000));
        assert!(points == decoded_here(jpeg), "{what}: other points");
    }
    player.life.stop();
}

#[test]
fn what_is_no_jpeg_is_counted_and_the_next_one_is_decoded() {
    let Some(mut player) = Player::start(false) else { return };
    let whole = jpeg(3);
    let mut bent = whole.clone();
    let middle = bent.len() / 2;
    bent[middle..][..64].fill(0xff);
    let mut printed = vec![];
    let encoder = Encoder::new(&mut printed, 85);
    encoder.encode(&vec![90; 64 * 64 * 4], 64, 64, ColorType::Cmyk).expect("a JPEG");
    let bad = [
        ("torn", whole[..middle].to_vec()),
        ("torn in its tables", whole[..100].to_vec()),
        ("bent", bent),
        ("nothing", vec![]),
        ("no JPEG", vec![0x5a; 1000]),
        ("too large", jpeg_by(1, (1065, 1067), |_| ())),
        ("too high", jpeg_by(1, (1, 8193), |_| ())),
        ("for a printer", printed),
    ];
    for (at, (what, jpeg)) in bad.iter().enumerate() {
        player.send(jpeg);
        player.send(&whole);
        let (head, points) = player.receive();
        assert_eq!((head.number, head.broken), (2 * at as u64 + 2, at as u32 + 1), "{what}");
        assert!(points == decoded_here(&whole), "after {what}: other points");
    }
    // A head with a false length.
    let head = player.head(0);
    player.send_as(&PacketHead { bytes: u32::MAX, ..head }, &[]);
    player.send(&whole);
    assert_eq!(player.receive().0.broken, bad.len() as u32 + 1);
    player.life.stop();
}

#[test]
fn what_comes_too_late_is_not_decoded() {
    let Some(mut player) = Player::start(true) else { return };
    let jpeg = jpeg(4);
    let send = |player: &mut Player, serial, position_ms: u64, duration_ms: u64| {
        let head = player.head(jpeg.len());
        let [position_ns, duration_ns] = [position_ms, duration_ms].map(|ms| ms * 1_000_000);
        let head = PacketHead { serial, position_ns, duration_ns, ..head };
        player.send_as(&head, &jpeg);
    };
    // As long as no sound is heard, no picture is late.
    send(&mut player, 7, 0, 40);
    assert_eq!(player.receive().0.number, 1);
    let clock = PlayClock { position_ns: 1_000_000_000, serial: 7, ..FromZeros::new_zeroed() };
    player.clock.as_mut().expect("a clock").send(clock.as_bytes());
    send(&mut player, 7, 959, 40);
    send(&mut player, 7, 959, 0);
    // A packet of an older order.
    send(&mut player, 6, 2000, 40);
    // A packet that is just not late.
    send(&mut player, 7, 960, 40);
    let (head, _) = player.receive();
    assert_eq!((head.number, head.skipped, head.serial), (5, 3, 7));
    // A packet of an order that the clock does not obey yet.
    send(&mut player, 8, 0, 40);
    let (head, _) = player.receive();
    assert_eq!((head.number, head.skipped, head.serial), (6, 3, 8));
    // A packet of a film that gives only the time of decoding.
    let head = player.head(jpeg.len());
    let unplaced = PacketHead { position_ns: 0, flags: flag::UNPLACED, ..head };
    player.send_as(&PacketHead { decoding_ns: 1_000_000_000, ..unplaced }, &jpeg);
    assert_eq!(player.receive().0.position_ns, 1_000_000_000);
    player.until("the counters", |player| player.counted() == [4, 3, 0]);
    player.life.stop();
}

#[test]
fn a_decoder_waits_for_room_lives_meanwhile_and_says_what_waits() {
    let Some(mut player) = Player::start(false) else { return };
    let jpeg = jpeg(5);
    player.send(&jpeg);
    player.send(&jpeg);
    player.until("two pictures", |player| player.counted() == [2, 0, 0]);
    (0..4).for_each(|_| player.send(&jpeg));
    let beats = player.life.keeper.tally(0).cycles;
    player.until("beats", |player| player.life.keeper.tally(0).cycles > beats + 5);
    assert_eq!(player.counted(), [2, 0, 0]);
    let waiting: Vec<_> = (0..6).map(|_| player.receive().0.waiting).collect();
    assert_eq!(waiting[2..], [3, 2, 1, 0]);
    // The guest ends while it waits for room.
    (0..3).for_each(|_| player.send(&jpeg));
    player.until("two more", |player| player.counted() == [8, 0, 0]);
    player.life.stop();
}

#[test]
fn the_end_is_passed_on_and_another_codec_is_refused_by_name() {
    let Some(mut player) = Player::start(false) else { return };
    let head = player.head(0);
    player.send_as(&PacketHead { flags: flag::END, codec: [0; 24], ..head }, &[]);
    let (head, _) = player.receive();
    assert_eq!((head.format, head.number), (PixelFormat::Nothing as u32, 1));
    assert_eq!((head.position_ns, head.serial), (40_000_000, 7));
    let head = player.head(3);
    player.send_as(&PacketHead { codec: PacketHead::codec_of("h264"), ..head }, b"abc");
    let fault = player.life.fault();
    assert!(fault.contains("decodes mjpeg, got 'h264'; "), "{fault}");
}

#[test]
fn the_image_names_the_messages_of_linux() {
    let Some(path) = life::image("player") else { return };
    let image = image::read(&path, BoardRow::of(Board::Virt)).expect("an image");
    let kind = image.kinds().next().expect("a kind");
    let expected = [("in", Packet::TYPE, false), ("wanted", PlayClock::TYPE, true)];
    let expected = expected.into_iter().chain([("out", Picture::TYPE, false)]);
    for (port, (name, message, is_optional)) in kind.ports().zip(expected) {
        assert_eq!((port.name(), port.message(), port.hash()), (name, message.name, message.hash));
        assert_eq!(port.is_optional(), is_optional, "{name}");
    }
}
