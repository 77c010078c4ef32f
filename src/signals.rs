//! Signals that ask a command to end: after the first it ends in order, after a second at once.

use std::ffi::c_int;
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Blocking;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::answer::FAULTED;

/// Signals as they arrive. Its socket becomes readable when there is one.
pub(crate) type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// Starts to receive the signals that ask for an end.
pub(crate) fn hear() -> io::Result<Signals> {
    let (read, write) = UnixStream::pair()?;
    SignalDelivery::with_pipe(read, write, SignalOnly, asking())
}

/// The signals that ask for an end. SIGHUP is left out if it was ignored when this process began:
/// nohup(1) does so for a process that must outlive its terminal.
fn asking() -> impl Iterator<Item = c_int> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let asks = move |&signal: &c_int| signal != SIGHUP || !is_ignored(signal, &status);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(asks)
}

/// Whether a process ignores a signal, according to /proc.
fn is_ignored(signal: c_int, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Signals closer together than this count as one. A closing terminal and timeout(1) send theirs
/// twice, without any user having lost patience.
const APART: Duration = Duration::from_millis(300);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To end in order.
    End,
    /// To end at once and wait for nothing.
    EndAtOnce,
}

/// The signals received so far.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    first: Option<Instant>,
}

impl Heard {
    /// What a signal that arrives now asks for. `None` if it only repeats the one before.
    pub(crate) fn signal(&mut self, now: Instant) -> Option<Wish> {
        let Some(first) = self.first else {
            self.first = Some(now);
            return Some(Wish::End);
        };
        (now.saturating_duration_since(first) >= APART).then_some(Wish::EndAtOnce)
    }
}

/// Returns a flag that the first signal sets. The second signal ends the process after `clean_up`.
pub(crate) fn stop_on_signals(clean_up: fn()) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Blocking::new(asking())?;
    let stopped = stop.clone();
    let watch = move || {
        let mut heard = Heard::default();
        for _ in &mut signals {
            match heard.signal(Instant::now()) {
                // Relaxed: the flag protects no other data.
                Some(Wish::End) => stopped.store(true, Ordering::Relaxed),
                Some(Wish::EndAtOnce) => {
                    clean_up();
                    exit(FAULTED.into());
                }
                None => {}
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch)?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_mask() {
        let status = "Name:\tsinew\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!([SIGHUP, SIGINT, 13].map(|it| is_ignored(it, status)), [true, false, true]);
        assert!(!is_ignored(SIGHUP, "") && !is_ignored(SIGHUP, "SigIgn:\tx\n"));
    }

    #[test]
    fn a_signal_that_comes_twice_is_one_and_a_later_one_is_another() {
        let (mut heard, begun) = (Heard::default(), Instant::now());
        let wishes =
            [0, 1, 299, 300, 301].map(|ms| heard.signal(begun + Duration::from_millis(ms)));
        let [end, at_once] = [Wish::End, Wish::EndAtOnce].map(Some);
        assert_eq!(wishes, [end, None, None, at_once, at_once]);
    }
}
