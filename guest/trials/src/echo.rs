//! Kind `echo`: sends back its input, to show that a guest runs and to measure the way there and
//! back.

use alloc::boxed::Box;

use sinew_guest::{
    Cycle, Fault, Fresh, GuestNode, Io, Kind, KindRecord, Message, Parameters, numbers, port,
};

const IN: usize = 0;
const OUT: usize = 1;

const ANSWERED: usize = 0;
const LOST: usize = 1;

sinew_guest::message! {
    /// The message that goes there and comes back.
    pub struct Echo {
        /// Counts the messages of the sender.
        pub sequence: u64,
        /// Anything.
        pub values: [f64; 6],
    }
}

/// The kind's row in the table.
pub(crate) const KIND: Kind = Kind {
    record: KindRecord::new(
        "echo",
        "Sends every message back, its values times `gain`.",
        8 * 1024,
        &[
            port("in", "What is to come back.", 0, Echo::TYPE),
            port("out", "What came.", 1, Echo::TYPE),
        ],
        &[numbers("gain", "Factor of the values.", "", "1", 1, (-1e6, 1e6))],
        &["answered", "lost"],
    ),
    make,
};

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn GuestNode>, Fault> {
    Ok(Box::new(Node { gain: parameters.number("gain") }))
}

struct Node {
    gain: f64,
}

impl GuestNode for Node {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        *io.counter(LOST) = io.lost();
        if io.fresh(IN) != Fresh::New {
            return Ok(());
        }
        let mut message = *io.read::<Echo>(IN);
        message.values.iter_mut().for_each(|value| *value *= self.gain);
        *io.write::<Echo>(OUT) = message;
        let answered = io.counter(ANSWERED);
        *answered = answered.wrapping_add(1);
        Ok(())
    }

    fn stop(&mut self, io: &mut Io<'_>) {
        // The safe values are zeros.
        *io.write::<Echo>(OUT) = Echo { sequence: 0, values: [0.0; 6] };
    }
}
