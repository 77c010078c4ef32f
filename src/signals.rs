//! Signals that ask a command to end: the first one in order, a second one at once.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// Signals as they come; its socket can be read once there is one.
pub(crate) type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// Hears the signals that ask for an end, from now on.
pub(crate) fn hear() -> io::Result<Signals> {
    let (read, write) = UnixStream::pair()?;
    SignalDelivery::with_pipe(read, write, SignalOnly, [SIGINT, SIGTERM, SIGHUP])
}

/// Signals closer together than this are one: a terminal that closes, and timeout(1), send theirs
/// twice, and nobody who lost patience did so.
const APART: Duration = Duration::from_millis(300);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To end in order.
    End,
    /// To wait for nothing any more.
    EndAtOnce,
}

/// What was heard so far.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    first: Option<Instant>,
}

impl Heard {
    /// What a signal asks for that came now; `None` if it only repeats the one before.
    pub(crate) fn signal(&mut self, now: Instant) -> Option<Wish> {
        let Some(first) = self.first else {
            self.first = Some(now);
            return Some(Wish::End);
        };
        (now.saturating_duration_since(first) >= APART).then_some(Wish::EndAtOnce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_is_one_and_a_later_one_is_another() {
        let (mut heard, begun) = (Heard::default(), Instant::now());
        let wishes =
            [0, 1, 299, 300, 301].map(|ms| heard.signal(begun + Duration::from_millis(ms)));
        let [end, at_once] = [Wish::End, Wish::EndAtOnce].map(Some);
        assert_eq!(wishes, [end, None, None, at_once, at_once]);
    }
}
