//! Kind `audio_sink`: plays sound, and sends what is heard: the clock of a film.

use std::path::Path;
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, Message, Parameters, fault};
use sinew_media::{BlockHead, flag};
use sinew_pictures::messages::{PlayClock, PlayOrder, SoundBlock};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use super::complaint::Complaint;
use super::metronome::Metronome;
use super::orders;
use super::sound::{Output, Sound};

const IN: usize = 0;
const ORDERS: usize = 1;
const CLOCK: usize = 2;

/// Interval between two polls: the clock that others read may be this old.
const LOOK: Duration = Duration::from_millis(5);

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "audio_sink",
    runs_in: RunsIn::Service,
    doc: "Plays sound on a sound device, or without one by a clock, which takes 48 000 samples a \
          second and counts when there are none. Reports which place of the film is heard. Starts \
          when there is enough sound and, if 'orders' is linked, when the first picture is there, \
          but not later than after 3 s, or half a second after a jump. Pauses, jumps, and plays \
          slower or faster (then the pitch changes too).",
    ports: &[
        Port::input("in", "Blocks of samples.", SoundBlock::TYPE),
        Port::input("orders", "Orders of the viewer.", PlayOrder::TYPE).optional(),
        Port::output("clock", "What is heard, 200 times a second.", PlayClock::TYPE).optional(),
    ],
    parameters: &[Parameter::new("output", ParameterType::Choice(&["auto", "device", "clock"]))
        .or("auto")
        .doc(
            "'device': the sound device that the system names, and without one a fault; \
                 'clock': none; 'auto': a device if the kernel has one (/dev/snd). Devices need a \
                 program that is built with 'media'.",
        )],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(AudioSink { output: parameters.text("output").to_owned() }))
}

struct AudioSink {
    output: String,
}

impl Service for AudioSink {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let mut sound = Sound::new(self.open()?, io.is_linked(ORDERS));
        tell(format_args!("sound goes to {}", sound.output().name()));
        let (mut counted, mut underruns) = (0, Complaint::default());
        let mut has_begun = false;
        while io.wait(LOOK) {
            while let Some(orders::Wanted { order, serial, value }) = orders::next(io, ORDERS)? {
                has_begun = true;
                sound.obey(order, serial, value, now_ns());
            }
            take(io, &mut sound)?;
            sound.go_on(now_ns());
            let clock = sound.clock(now_ns());
            // A new life does not know the position of its film before sound comes.
            if has_begun || sound.has_begun() {
                io.send(CLOCK, &clock)?;
            }
            let more = clock.underruns - counted;
            counted = clock.underruns;
            underruns.add(more, |count| {
                let silent_s = clock.silent_ns as f64 / 1e9;
                format!("sound was due and not there: {count} so far, {silent_s:.2} s in all")
            });
        }
        Ok(())
    }
}

impl AudioSink {
    fn open(&self) -> Result<Box<dyn Output>, Fault> {
        let opened = match self.output.as_str() {
            "clock" => return Ok(Box::new(Metronome::new())),
            // ALSA would print a page of text to say the same.
            "auto" if !Path::new("/dev/snd").exists() => Err("the kernel has none".to_owned()),
            _ => device(),
        };
        match opened {
            Ok(device) => Ok(device),
            Err(why) if self.output == "device" => Err(fault!("no sound device: {why}")),
            Err(why) => {
                tell(format_args!("no sound device: {why}"));
                Ok(Box::new(Metronome::new()))
            }
        }
    }
}

#[cfg(feature = "media")]
fn device() -> Result<Box<dyn Output>, String> {
    super::device::Device::open().map(|device| Box::new(device) as Box<dyn Output>)
}

#[cfg(not(feature = "media"))]
fn device() -> Result<Box<dyn Output>, String> {
    Err(super::without_media().to_string())
}

/// Takes blocks for as long as they are wanted.
fn take(io: &mut ServiceIo, sound: &mut Sound<Box<dyn Output>>) -> Result<(), Fault> {
    while sound.wants() {
        let Some(block) = io.receive::<SoundBlock>(IN)? else { return Ok(()) };
        let SoundBlock { position_ns, serial, frames, flags, waiting, samples } = block;
        let head = BlockHead { position_ns, serial, frames, flags, waiting };
        let frames = head.check().map_err(|bad| fault!("{bad}"))?;
        if flags & flag::END != 0 {
            sound.end(position_ns, serial, now_ns());
        }
        let samples = &samples[..frames * sinew_media::CHANNELS];
        sound.take(position_ns, serial, samples, waiting, now_ns());
    }
    Ok(())
}
