//! Hands out the pieces of a film, video and sound, each as fast as its reader takes them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sinew_core::clock::now_ns;
use sinew_core::{Fault, Parameters, fault};
use sinew_ffmpeg::{FilmRefused, FilmSource, StreamSetup};
use sinew_media::{Order, PACKET_BYTES_MAX, PacketHead, flag};
use sinew_pictures::messages::{Packet, PlayClock};
use sinew_pictures::picture::write_head;
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceIo};

use super::backlog::{Backlog, Waiting};
use super::reader::{FilmInfo, FilmReader, Said, open};
use crate::player::clock::Clock;
use crate::player::complaint::Complaint;
use crate::player::orders;

const ORDERS: usize = 0;
const CLOCK: usize = 1;
const VIDEO: usize = 2;
const SOUND: usize = 3;

/// Interval between two polls: as long as the shortest packet.
const LOOK: Duration = Duration::from_millis(4);
/// How long a film may take to open.
const OPEN_MAX: Duration = Duration::from_secs(8);
/// Time without a piece, although one is wanted, after which this is reported, ns.
const STALLED_NS: u64 = 2_000_000_000;
/// A film that ends this long before its declared end is cut off, ns.
const CUT_OFF_NS: u64 = 1_000_000_000;
/// Sound that is this far behind the video counts as missing, ns, and is replaced by silence.
const BEHIND_NS: u64 = 2_000_000_000;

pub(super) fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let name = parameters.text("film");
    let is_address = name.contains("://");
    let path = parameters.base.join(name);
    let source = FilmSource {
        name: if is_address { name.to_owned() } else { path.display().to_string() },
        grows: parameters.bool("grows"),
    };
    if !is_address {
        check(&path, &source)?;
    }
    Ok(Box::new(MediaSource { source, reader: None, info: None }))
}

/// Checks a file before anything runs. A pipe is opened only when it is needed.
fn check(path: &PathBuf, source: &FilmSource) -> Result<(), Fault> {
    let shown = path.display();
    let found = fs::metadata(path).map_err(|error| {
        fault!("{shown}: {error}; give a film in 'film' (graphs/dual_os/make_films.sh makes some)")
    })?;
    if found.is_dir() {
        return Err(fault!("{shown}: is a folder; give a film in 'film'"));
    }
    // The end of a growing file is waited for, so it is not read here.
    if found.is_file() && !source.grows {
        let over = Arc::new(AtomicBool::new(false));
        open(source, over).map_err(|FilmRefused(text)| fault!("{text}"))?;
    }
    Ok(())
}

struct MediaSource {
    source: FilmSource,
    reader: Option<FilmReader>,
    info: Option<FilmInfo>,
}

impl Service for MediaSource {
    fn start(&mut self) -> Result<(), Fault> {
        let reader = FilmReader::start(self.source.clone());
        let reader = reader.map_err(|error| fault!("no thread to read the film: {error}"))?;
        match reader.wait(OPEN_MAX) {
            Some(Said::Open(info)) => self.info = Some(info),
            Some(Said::Over(Some(FilmRefused(text)))) => return Err(fault!("{text}")),
            _ => {
                let name = &self.source.name;
                return Err(fault!("{name}: nothing came within {} s", OPEN_MAX.as_secs()));
            }
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let reader = self.reader.take().expect("start comes before run");
        let info = self.info.take().expect("start comes before run");
        HandOut::new(self.source.name.clone(), reader, info).run(io)
    }
}

/// A film that is being handed out.
struct HandOut {
    name: String,
    reader: FilmReader,
    info: FilmInfo,
    video: Backlog,
    sound: Backlog,
    /// Whether the port of each stream is linked.
    hands_out_video: bool,
    hands_out_sound: bool,
    /// The number of the last jump; pieces that were read before it are not handed on.
    serial: u32,
    is_there: bool,
    is_over: bool,
    /// Time of the last piece.
    came_ns: u64,
    no_setup: Arc<StreamSetup>,
    left_out: Complaint,
    too_large: Complaint,
    stalled: Complaint,
}

impl HandOut {
    fn new(name: String, reader: FilmReader, info: FilmInfo) -> HandOut {
        HandOut {
            name,
            reader,
            info,
            video: Backlog::default(),
            sound: Backlog::default(),
            hands_out_video: false,
            hands_out_sound: false,
            serial: 0,
            is_there: true,
            is_over: false,
            came_ns: now_ns(),
            no_setup: Arc::default(),
            left_out: Complaint::default(),
            too_large: Complaint::default(),
            stalled: Complaint::default(),
        }
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        self.hands_out_video = io.is_linked(VIDEO) && self.info.has_video;
        self.hands_out_sound = io.is_linked(SOUND);
        if let Some(clock) = io.receive::<PlayClock>(CLOCK)? {
            // An earlier life of this node had come this far.
            let clock = Clock::of(&clock);
            self.jump(clock.serial, clock.position_ns(now_ns()));
        }
        while io.wait(LOOK) {
            while let Some(wanted) = orders::next(io, ORDERS)? {
                if wanted.order == Order::Seek {
                    self.jump(wanted.serial, wanted.value);
                }
            }
            // The clock is read at the start only; its link keeps the newest value for the next
            // life.
            self.read(io);
            self.hand_on(io, VIDEO)?;
            self.hand_on(io, SOUND)?;
        }
        Ok(())
    }

    fn jump(&mut self, serial: u32, position_ns: u64) {
        (self.serial, self.is_there, self.is_over) = (serial, false, false);
        self.video.clear(position_ns);
        self.sound.clear(position_ns);
        self.reader.jump(serial, position_ns);
    }

    /// Takes pieces from the reader for as long as one of the streams has nothing to hand on.
    fn read(&mut self, io: &mut ServiceIo) {
        loop {
            let wants = |port, backlog: &Backlog, io: &mut ServiceIo| {
                backlog.is_empty() && io.has_room(port)
            };
            let for_sound = self.hands_out_sound && wants(SOUND, &self.sound, io);
            let for_video = self.hands_out_video && wants(VIDEO, &self.video, io);
            if self.is_over || !(for_sound || for_video || !self.is_there) {
                self.came_ns = now_ns();
                return;
            }
            if for_sound && self.video.is_full() {
                // The sound continues, whatever happens to the pictures.
                let count = self.video.leave_out();
                let say = |count| {
                    format!(
                        "left out {count} packets of video so far: the decoder does not take them"
                    )
                };
                self.left_out.add(count, say);
            } else if for_video && !for_sound && self.sound.is_full() {
                return;
            }
            let Some(said) = self.reader.next() else { return self.look_whether_it_stalls() };
            self.came_ns = now_ns();
            self.heed(said);
        }
    }

    fn look_whether_it_stalls(&mut self) {
        let since_ns = now_ns().saturating_sub(self.came_ns);
        if since_ns >= STALLED_NS {
            self.came_ns = now_ns();
            let name = &self.name;
            self.stalled
                .add(1, |_| format!("{name}: nothing has come for {} s", since_ns / 1_000_000_000));
        }
    }

    fn heed(&mut self, said: Said) {
        match said {
            Said::Open(_) => {}
            Said::Went { serial, refused } => {
                self.is_there |= serial == self.serial;
                if let Some(refused) = refused {
                    tell(format_args!("{}: {refused}", self.name));
                }
            }
            // It was read before a jump.
            _ if !self.is_there => {}
            Said::Piece(piece) => self.put(piece),
            Said::Over(why) => self.end(why),
        }
    }

    fn put(&mut self, piece: sinew_ffmpeg::Piece) {
        let (mut head, setup) = (piece.head, Arc::clone(&piece.setup));
        (head.serial, head.film_ns) = (self.serial, self.info.film_ns);
        let (is_video, until_ns) = (piece.is_video, head.decoding_ns);
        let waiting = Waiting { head, setup, piece: Some(piece) };
        match is_video {
            true if self.hands_out_video => self.video.put(waiting),
            false if self.hands_out_sound => self.sound.put(waiting),
            _ => {}
        }
        if !is_video {
            return;
        }
        let patience_ns = if self.info.has_sound { BEHIND_NS } else { 0 };
        if until_ns.saturating_sub(self.sound.ends_ns) >= patience_ns.max(1) {
            self.silence(until_ns.saturating_sub(patience_ns / 2));
        }
    }

    /// Fills the sound with silence up to a place.
    fn silence(&mut self, until_ns: u64) {
        let from_ns = self.sound.ends_ns;
        if until_ns > from_ns && self.hands_out_sound {
            self.sound.put(self.empty(flag::SILENCE, from_ns, until_ns - from_ns));
        }
    }

    fn empty(&self, flags: u32, position_ns: u64, duration_ns: u64) -> Waiting {
        let head = PacketHead {
            position_ns,
            decoding_ns: position_ns,
            duration_ns,
            film_ns: self.info.film_ns,
            serial: self.serial,
            flags,
            ..PacketHead::default()
        };
        Waiting { head, setup: Arc::clone(&self.no_setup), piece: None }
    }

    fn end(&mut self, why: Option<FilmRefused>) {
        self.is_over = true;
        let ends_ns = self.video.ends_ns.max(self.sound.ends_ns);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let is_cut_off = ends_ns + CUT_OFF_NS < self.info.film_ns;
        if is_cut_off || why.is_some() {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            let (name, at, of) = (&self.name, seconds(ends_ns), seconds(self.info.film_ns));
            tell(format_args!(
                "{name}: ends at {at:.1} s of {of:.1} s{why}; it is cut off or damaged"
            ));
        }
        self.silence(ends_ns);
        if self.hands_out_video {
            self.video.put(self.empty(flag::END, ends_ns, 0));
        }
        if self.hands_out_sound {
            self.sound.put(self.empty(flag::END, ends_ns, 0));
        }
    }

    /// Hands on the packets of a stream, as far as there is room.
    fn hand_on(&mut self, io: &mut ServiceIo, port: usize) -> Result<(), Fault> {
        let backlog = if port == VIDEO { &mut self.video } else { &mut self.sound };
        while !backlog.is_empty() && io.has_room(port) {
            let Some(Waiting { head, setup, piece }) = backlog.take() else { return Ok(()) };
            let bytes = piece.as_ref().map_or(&[][..], |piece| piece.bytes());
            if setup.bytes.len() + bytes.len() > PACKET_BYTES_MAX {
                backlog.left_out();
                let len = bytes.len();
                let (most, why) = (PACKET_BYTES_MAX, "so long a packet has no place");
                let say =
                    |count| format!("left out {count} packets so far: {why} ({len} > {most})");
                self.too_large.add(1, say);
                continue;
            }
            let Some(mut packet) = io.claim::<Packet>(port)? else { return Ok(()) };
            write_head(&mut packet, &head);
            packet.write_at(size_of::<PacketHead>(), &setup.bytes);
            packet.write_at(size_of::<PacketHead>() + setup.bytes.len(), bytes);
            packet.commit();
        }
        Ok(())
    }
}
