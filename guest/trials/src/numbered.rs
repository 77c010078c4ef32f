//! Kinds `mirror` and `passer` send numbers back: `mirror` as soon as they come, `passer` in each
//! cycle.

use alloc::boxed::Box;
use core::arch::asm;

use sinew_guest::{
    Cycle, Fault, Fresh, GuestNode, Io, Kind, KindRecord, Message, Parameters, Patience, Serving,
    fault, port,
};

const IN: usize = 0;
const OUT: usize = 1;

sinew_guest::message! {
    /// A number, repeated so often that half a message is noticed.
    pub struct Numbered {
        /// Rises with every message, across all lives of a writer.
        pub number: u64,
        /// Says what `mirror` is to do.
        pub value: f64,
        /// The number again.
        pub again: [u64; 30],
    }
}

impl Numbered {
    fn check(&self) -> Result<(), Fault> {
        let is_whole = self.again.iter().all(|&again| again == self.number);
        if is_whole { Ok(()) } else { Err(fault!("message {} is not whole", self.number)) }
    }
}

const fn record(name: &str, doc: &str) -> KindRecord {
    let ports = [
        port("in", "A number.", 0, Numbered::TYPE),
        port("out", "The same number.", 1, Numbered::TYPE),
    ];
    KindRecord::new(name, doc, 8 * 1024, &ports, &[], &["answered"])
}

/// The row of `mirror` in the table.
pub(crate) const MIRROR: Kind = Kind {
    record: record(
        "mirror",
        "Serves: sends every message back as soon as it comes, or, by its value, does wrong: 2 an \
         instruction that there is not, 3 reads past the carve-out, 4 panics, 5 returns a fault.",
    ),
    make: |_: &Parameters<'_>| Ok(Box::new(Mirror)),
};

/// The row of `passer` in the table.
pub(crate) const PASSER: Kind = Kind {
    record: record("passer", "Sends the newest message on, once a cycle."),
    make: |_: &Parameters<'_>| Ok(Box::new(Passer)),
};

struct Mirror;

impl GuestNode for Mirror {
    fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        Ok(())
    }

    fn serve(&mut self, serving: &mut Serving<'_>) -> Option<Result<(), Fault>> {
        Some(Mirror::serve(serving))
    }
}

impl Mirror {
    fn serve(serving: &mut Serving<'_>) -> Result<(), Fault> {
        while serving.receive(IN, Patience::default())? {
            let message = *serving.io().read::<Numbered>(IN);
            message.check()?;
            obey(message.value as u32)?;
            if serving.forward(IN, OUT, Patience::default())? {
                let answered = serving.io().counter(0);
                *answered = answered.wrapping_add(1);
            }
        }
        Ok(())
    }
}

fn obey(order: u32) -> Result<(), Fault> {
    match order {
        // SAFETY: it ends the guest, as intended.
        2 => unsafe { asm!("udf #0") },
        // SAFETY: as above: 256 MiB is the largest carve-out of this board, and it begins at
        // 0x6000_0000.
        3 => drop(unsafe { (0x7000_0000 as *const u8).read_volatile() }),
        4 => panic!("told to"),
        5 => return Err(fault!("told to")),
        _ => {}
    }
    Ok(())
}

struct Passer;

impl GuestNode for Passer {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if io.fresh(IN) == Fresh::New {
            let message = *io.read::<Numbered>(IN);
            message.check()?;
            *io.write::<Numbered>(OUT) = message;
            let answered = io.counter(0);
            *answered = answered.wrapping_add(1);
        }
        Ok(())
    }
}
