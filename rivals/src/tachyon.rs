//! tachyon-ipc: a one-way ring of bytes between two processes, one for each direction, told that
//! both sides always poll (`set_polling_mode`). Only unsafe code can write its slots in place, so
//! messages are copied in. They are read in place.
//!
//! Only built with `--features tachyon`: its core needs GCC 14 or Clang 17, its bindings are made
//! with libclang (`CXX=clang++-19 LIBCLANG_PATH=/usr/lib/llvm-19/lib`). Its consumer can only wait
//! in C++, where nothing checks whether the other side is alive: if the far process is killed, the
//! near side waits for ever.

use crate::table::Measure;

/// How to measure it, if it was built.
#[cfg(not(feature = "tachyon"))]
pub(crate) const MEASURE: Result<Measure, &str> =
    Err("not built: it needs GCC 14 or Clang 17 and libclang; build with --features tachyon");

/// How to measure it.
#[cfg(feature = "tachyon")]
pub(crate) const MEASURE: Result<Measure, &str> = Ok(built::between_processes);

#[cfg(feature = "tachyon")]
pub(crate) use built::{PART, far};

#[cfg(feature = "tachyon")]
mod built {
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::yield_now;

    use sinew_lab::harness::process::Process;
    use sinew_lab::harness::{Found, Gone, Life, Side, on_thread};
    use tachyon_ipc::{Bus, TachyonError};
    use zerocopy::{FromBytes, IntoBytes};

    use crate::measure::{Answer, Cell, Form, Role};
    use crate::rings::read;

    /// The part that the far process plays.
    pub(crate) const PART: &str = "tachyon-ipc";

    /// Bytes before every message, and the alignment of messages.
    const HEADER: usize = 64;
    /// Looks before the consumer would sleep for 200 ms: so many that it never sleeps.
    const LOOKS: u32 = u32::MAX;

    fn failed(error: TachyonError) -> Gone {
        Gone(format!("tachyon-ipc: {error:?}"))
    }

    /// Both directions, as one side sees them.
    struct Buses<'a> {
        there: Bus,
        back: Bus,
        life: &'a Life,
        buffer: Vec<u64>,
    }

    impl Side for Buses<'_> {
        fn send(&mut self, word: u64) -> Result<(), Gone> {
            self.buffer.fill(word);
            let mut patience = self.life.patience();
            loop {
                match self.there.send(self.buffer.as_bytes(), 0) {
                    Err(TachyonError::BufferFull) => patience.poll()?,
                    sent => return sent.map_err(failed),
                }
            }
        }

        fn receive(&mut self) -> Result<u64, Gone> {
            let message = self.back.acquire_rx(LOOKS).map_err(failed)?;
            let words = <[u64]>::ref_from_bytes(message.data())
                .map_err(|_| Gone("tachyon-ipc: a message that is not aligned to 8".into()))?;
            let word = read(words);
            message.commit().map_err(failed)?;
            Ok(word)
        }
    }

    fn play<R: Role>(form: &Form, ends: [Bus; 2], life: &Life, role: R) -> Result<R::Found, Gone> {
        let [there, back] = ends;
        there.set_polling_mode(1);
        role.play(&mut Buses { there, back, life, buffer: vec![0; form.words()] })
    }

    /// Bytes of a ring that holds as many messages as asked, or the minimum with which it works:
    /// its consumer frees room only after every 32nd message.
    fn ring_bytes(form: &Form) -> usize {
        const MESSAGES_MIN: usize = 64;
        let message = (HEADER + form.bytes).next_multiple_of(HEADER);
        (message * form.capacity.max(MESSAGES_MIN)).next_power_of_two()
    }

    /// Measures between two processes.
    pub(crate) fn between_processes(cell: &Cell) -> Result<Found, Gone> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the count is used.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sinew-rivals-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name).display().to_string();
        on_thread(cell.cpus.near, || {
            let far = Process::start(PART, &format!("{path} {}", cell.form), &[], cell.cpus.far)?;
            let connected = ["there", "back"].map(|way| connect(&format!("{path}-{way}"), &far));
            let found = match connected {
                [Ok(there), Ok(back)] => play(&cell.form, [there, back], far.life(), cell),
                [Err(gone), _] | [_, Err(gone)] => Err(gone),
            };
            far.join(found)
        })
    }

    /// Connects as soon as the far process listens.
    fn connect(path: &str, far: &Process) -> Result<Bus, Gone> {
        let mut patience = far.life().patience();
        loop {
            match Bus::connect(path) {
                Ok(bus) => return Ok(bus),
                Err(error) => patience.look().map_err(|Gone(why)| {
                    Gone(format!("{why}; connecting failed with {error:?}"))
                })?,
            }
            yield_now();
        }
    }

    /// The far process listens, as listening waits for ever but ends with the parent process.
    pub(crate) fn far(text: &str, _: Vec<OwnedFd>) -> Result<(), Gone> {
        let bad = || Gone(format!("'{text}': expected a path and a form"));
        let (path, form) = text.split_once(' ').ok_or_else(bad)?;
        let form = form.parse()?;
        let listen = |way| Bus::listen(&format!("{path}-{way}"), ring_bytes(&form)).map_err(failed);
        let back = listen("there")?;
        let there = listen("back")?;
        play(&form, [there, back], &Life::Parent, Answer)
    }
}
