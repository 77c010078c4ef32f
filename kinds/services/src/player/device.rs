//! A sound device: plays on a thread of its own, which takes samples from a queue that the node
//! fills a little ahead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{OutputCallbackInfo, SampleFormat, Stream, StreamConfig};
use sinew_core::clock::now_ns;
use sinew_media::{CHANNELS, RATE_HZ};

use super::complaint::Complaint;
use super::sound::{Heard, Output};

/// Samples of each channel that are queued in advance.
const AHEAD: usize = RATE_HZ as usize / 10;

/// A sound device that plays.
pub(crate) struct Device {
    name: String,
    queue: Arc<Mutex<Queue>>,
    // Plays until it is dropped.
    _stream: Stream,
}

/// State that the node and the device share.
#[derive(Default)]
struct Queue {
    samples: VecDeque<[i16; CHANNELS]>,
    /// Samples that the device has taken, and when the last of them will have been heard.
    taken: u64,
    heard_ns: u64,
    silent: u64,
    is_held: bool,
}

impl Device {
    /// Opens the system's default device, and plays silence.
    ///
    /// # Errors
    /// There is none, or it does not play 48 000 samples a second, left and right.
    pub(crate) fn open() -> Result<Device, String> {
        let device = cpal::default_host().default_output_device();
        let device = device.ok_or("the system names none")?;
        let name = device.description().map_or("a device".into(), |about| about.name().to_owned());
        let configs = device.supported_output_configs();
        let mut configs = configs.map_err(|error| format!("{name}: {error}"))?;
        let format = configs
            .find_map(|config| {
                let rates = config.min_sample_rate()..=config.max_sample_rate();
                let fits = usize::from(config.channels()) == CHANNELS && rates.contains(&RATE_HZ);
                let format = config.sample_format();
                (fits && matches!(format, SampleFormat::I16 | SampleFormat::F32)).then_some(format)
            })
            .ok_or_else(|| format!("{name}: does not play {RATE_HZ} samples a second in stereo"))?;
        let queue = Arc::new(Mutex::new(Queue { is_held: true, ..Queue::default() }));
        let config = StreamConfig {
            channels: CHANNELS as u16,
            sample_rate: RATE_HZ,
            buffer_size: cpal::BufferSize::Default,
        };
        let stream = match format {
            SampleFormat::I16 => stream(&device, config, &queue, |sample| sample),
            _ => stream(&device, config, &queue, |sample| f32::from(sample) / 32_768.0),
        };
        let stream = stream.map_err(|error| format!("{name}: {error}"))?;
        stream.play().map_err(|error| format!("{name}: {error}"))?;
        Ok(Device { name, queue, _stream: stream })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stream<S: cpal::SizedSample + Send + 'static>(
    device: &cpal::Device,
    config: StreamConfig,
    queue: &Arc<Mutex<Queue>>,
    convert: impl Fn(i16) -> S + Send + 'static,
) -> Result<Stream, cpal::BuildStreamError> {
    let queue = Arc::clone(queue);
    let play = move |out: &mut [S], about: &OutputCallbackInfo| {
        let times = about.timestamp();
        let ahead = times.playback.duration_since(&times.callback).unwrap_or_default();
        let ahead_ns = u64::try_from(ahead.as_nanos()).unwrap_or(0);
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.fill(out, now_ns() + ahead_ns, &convert);
    };
    let mut wrong = Complaint::default();
    let complain =
        move |error| wrong.add(1, |count| format!("the sound device: {error} ({count})"));
    device.build_output_stream(&config, play, complain, None)
}

impl Queue {
    /// Fills a buffer whose first sample will be heard at this time.
    fn fill<S>(&mut self, out: &mut [S], first_ns: u64, convert: impl Fn(i16) -> S) {
        let mut count = 0;
        for frame in out.chunks_mut(CHANNELS) {
            let next = if self.is_held { None } else { self.samples.pop_front() };
            count += u64::from(next.is_some());
            self.silent += u64::from(next.is_none() && !self.is_held);
            let next = next.unwrap_or_default();
            frame.iter_mut().zip(next).for_each(|(to, from)| *to = convert(from));
        }
        self.taken += count;
        self.heard_ns = first_ns + count * 1_000_000_000 / u64::from(RATE_HZ);
    }
}

impl Output for Device {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_device(&self) -> bool {
        true
    }

    fn room(&self) -> usize {
        AHEAD.saturating_sub(self.queue().samples.len())
    }

    fn push(&mut self, samples: &[i16]) {
        self.queue().samples.extend(samples.as_chunks::<CHANNELS>().0);
    }

    fn heard(&mut self, now_ns: u64) -> Heard {
        let queue = self.queue();
        let at_ns = if queue.is_held { now_ns } else { queue.heard_ns };
        Heard { samples: queue.taken, at_ns }
    }

    fn hold(&mut self, is_held: bool, _: u64) {
        self.queue().is_held = is_held;
    }

    fn clear(&mut self) {
        let mut queue = self.queue();
        let cleared = queue.samples.len() as u64;
        queue.taken += cleared;
        queue.samples.clear();
    }

    fn silent(&self) -> u64 {
        self.queue().silent
    }
}
