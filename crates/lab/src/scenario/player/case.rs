//! What is measured: where pictures are decoded, and what else uses the CPUs.

use crate::report::{Axis, Row};
use crate::words::words;

/// The axes of the rows.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "decoder", values: Decoder::WORDS },
    Axis { name: "load", values: CpuLoad::WORDS },
];

words! {
    /// Where pictures are decoded.
    pub(super) enum Decoder {
        /// On the same CPU as everything else.
        OneCpu = "one_cpu",
        /// In a process on the second CPU.
        TwoCpus = "two_cpus",
        /// Under another operating system on the second CPU.
        Guest = "guest",
    }
}

words! {
    /// What else uses the CPUs.
    pub(super) enum CpuLoad {
        /// Nothing that we start.
        None = "none",
        /// Threads that never sleep, on the CPU of the sound.
        Sound = "sound_cpu",
        /// The same on the CPU of the decoder.
        Decoder = "decoder_cpu",
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlayerCase {
    pub(super) decoder: Decoder,
    pub(super) load: CpuLoad,
}

const fn case(decoder: Decoder, load: CpuLoad) -> PlayerCase {
    PlayerCase { decoder, load }
}

/// All rows. With one CPU there is only one place for a load.
pub(super) const ROWS: &[PlayerCase] = &[
    case(Decoder::OneCpu, CpuLoad::None),
    case(Decoder::TwoCpus, CpuLoad::None),
    case(Decoder::Guest, CpuLoad::None),
    case(Decoder::OneCpu, CpuLoad::Sound),
    case(Decoder::TwoCpus, CpuLoad::Sound),
    case(Decoder::TwoCpus, CpuLoad::Decoder),
    case(Decoder::Guest, CpuLoad::Sound),
    case(Decoder::Guest, CpuLoad::Decoder),
];
/// The rows of the short form.
pub(super) const QUICK_ROWS: &[PlayerCase] = &[
    case(Decoder::OneCpu, CpuLoad::None),
    case(Decoder::TwoCpus, CpuLoad::None),
    case(Decoder::Guest, CpuLoad::None),
    case(Decoder::TwoCpus, CpuLoad::Decoder),
];

impl PlayerCase {
    /// Its row; nothing is measured yet.
    pub(super) fn row(self) -> Row {
        let mut row = Row::of(&[("decoder", self.decoder.word()), ("load", self.load.word())]);
        if self.decoder == Decoder::Guest {
            row.notes.push(
                "'decode' is the time of an emulated core and says nothing of speed: what counts \
                 of this row is whether sound and picture are in step, and whether any is copied"
                    .into(),
            );
        }
        row
    }

    /// Whether it is one of the two rows that show what a second CPU gains.
    pub(super) fn is_compared(self) -> bool {
        self.load == CpuLoad::None && self.decoder != Decoder::Guest
    }
}
