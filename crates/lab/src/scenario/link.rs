//! What a link costs: round trip and throughput of every link that the runtime has, beside the
//! least that two CPUs need to pass a word to and fro.

mod case;
mod ends;
mod measure;

pub(crate) use measure::PART;
