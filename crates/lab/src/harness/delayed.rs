//! Sides for tests: one that takes longer by a known time, which the harness must measure, and one
//! that uses nothing of ours.

use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sinew_core::clock::now_ns;

use super::{Gone, Side};

/// A side that waits, with its CPU busy, before it passes on a message.
pub struct Delayed<S> {
    /// The side itself.
    pub side: S,
    /// How long it waits.
    pub delay: Duration,
}

impl<S: Side> Side for Delayed<S> {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.side.send(word)
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let word = self.side.receive()?;
        let until_ns = now_ns() + self.delay.as_nanos() as u64;
        while now_ns() < until_ns {
            spin_loop();
        }
        Ok(word)
    }
}

/// A socket of the standard library as a side, with nothing of ours in between.
pub struct Socket(pub UnixStream);

impl Side for Socket {
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        self.0.write_all(&word.to_ne_bytes()).map_err(|error| Gone(error.to_string()))
    }

    fn receive(&mut self) -> Result<u64, Gone> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).map_err(|error| Gone(error.to_string()))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Cpus, Found, What, answer, on_threads, stop, time};
    use sinew_core::clock::Clock;

    fn std_pair() -> (Socket, Socket) {
        let (near, far) = UnixStream::pair().expect("sockets");
        (Socket(near), Socket(far))
    }

    const DELAY: Duration = Duration::from_micros(50);

    fn found(what: What) -> Found {
        let (mut near, far) = std_pair();
        let near = move |_: &_| {
            let found = time(&mut near, what, 1, Clock::calibrate(), DELAY * 100)?;
            stop(&mut near)?;
            Ok(found)
        };
        let far = |_: &_| answer(&mut Delayed { side: far, delay: DELAY });
        on_threads(Cpus::of_this_process(), near, far).expect("both live")
    }

    #[test]
    fn a_delay_that_is_built_in_is_found() {
        // The rate of the counter is right to about 10 ppm.
        let least_ns = DELAY.as_nanos() as u64 * 99 / 100;
        for what in [What::RoundTrip, What::PerMessage] {
            let Found { values, median_ns } = found(what);
            assert!(values.n() >= 3 && values.min() >= Some(least_ns), "{what:?} {values:?}");
            assert!(median_ns >= least_ns as f64, "{what:?} {median_ns}");
        }
    }

    #[test]
    fn a_far_side_that_ends_is_an_error_of_the_near_one() {
        let (mut near, mut far) = std_pair();
        let near = move |_: &_| {
            stop(&mut near)?;
            time(&mut near, What::RoundTrip, 1, Clock::calibrate(), DELAY)
        };
        assert!(on_threads(Cpus::of_this_process(), near, move |_| answer(&mut far)).is_err());
    }
}
