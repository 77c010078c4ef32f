//! The spec of a run, from which the same plan can be made again.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sinew_plan::plan::{
    Board, LinkClass, LinkProfile, LinkTuning, SlotLayout, TargetMachine, TunedPair,
};
use sinew_plan::{Brought, GuestImage, Wanted};

/// The spec of the run, from which the same plan can be made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The file, as the user named it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The folder that paths in it start from.
    pub base: PathBuf,
    /// `node.parameter` and the value that replaces the spec's.
    pub overrides: Vec<(String, String)>,
    /// The tables of kinds of its guests' images, as they were read.
    #[serde(default, serialize_with = "write_images", deserialize_with = "read_images")]
    pub images: Vec<GuestImage>,
    /// The values from outside of the spec, as they were read. They are for the processes of this
    /// run, and never written to a file.
    #[serde(default, with = "written_outside")]
    pub outside: Vec<Brought>,
    /// The host whose part of the graph it is.
    #[serde(default)]
    pub host: Option<String>,
    /// Whether every cycle of the core records its messages although no node observes the run.
    #[serde(default)]
    pub observe: bool,
    /// The machine that the plan was made for.
    #[serde(with = "WrittenMachine")]
    pub machine: TargetMachine,
}

/// How a [`TargetMachine`] is serialized. The crate of plans knows no format.
#[derive(Serialize, Deserialize)]
#[serde(remote = "TargetMachine")]
struct WrittenMachine {
    cpus: Vec<u32>,
    #[serde(with = "WrittenProfile")]
    profile: LinkProfile,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkProfile", rename_all = "snake_case")]
enum WrittenProfile {
    None,
    Refused(String),
    Measured {
        file: String,
        time: String,
        #[serde(serialize_with = "write_pairs", deserialize_with = "read_pairs")]
        pairs: Vec<TunedPair>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TunedPair")]
struct WrittenPair {
    cpus: [u32; 2],
    distance_changed: bool,
    #[serde(serialize_with = "write_tunings", deserialize_with = "read_tunings")]
    suited: Tunings,
}

/// One tuning for each class of links.
type Tunings = [Option<LinkTuning>; LinkClass::ALL.len()];

/// How a [`LinkTuning`] is serialized, here and in a machine profile.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkTuning", deny_unknown_fields)]
pub struct WrittenTuning {
    #[serde(with = "WrittenLayout")]
    layout: SlotLayout,
    eager_polls: u32,
    gap_ns: u32,
    fetches_ahead: bool,
    hands_over: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotLayout", rename_all = "snake_case")]
enum WrittenLayout {
    Index,
    Sequence,
}

/// How a [`GuestImage`] is serialized.
#[derive(Serialize, Deserialize)]
struct WrittenImage {
    image: String,
    board: String,
    table: Result<Vec<u8>, String>,
}

/// The images of a spec, as they are serialized.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WrittenImages(
    /// The images.
    #[serde(serialize_with = "write_images", deserialize_with = "read_images")]
    pub Vec<GuestImage>,
);

fn write_images<S: Serializer>(images: &[GuestImage], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(images.iter().map(|GuestImage { image, board, table }| WrittenImage {
        image: image.clone(),
        board: board.word().to_owned(),
        table: table.clone(),
    }))
}

fn read_images<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<GuestImage>, D::Error> {
    let image = |WrittenImage { image, board, table }: WrittenImage| {
        let board = Board::ALL.iter().find(|(_, word)| *word == board);
        let (board, _) = board.ok_or_else(|| D::Error::custom("a board that there is not"))?;
        Ok(GuestImage { image, board: *board, table })
    };
    Vec::<WrittenImage>::deserialize(from)?.into_iter().map(image).collect()
}

/// How a [`Brought`] is serialized.
#[derive(Serialize, Deserialize)]
struct WrittenBrought {
    is_file: bool,
    name: String,
    value: Result<String, String>,
}

/// How the values from outside of a spec are serialized.
pub(crate) mod written_outside {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(all: &[Brought], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|Brought { wanted, value }| {
            let (is_file, name) = match wanted {
                Wanted::Variable(name) => (false, name),
                Wanted::File(path) => (true, path),
            };
            WrittenBrought { is_file, name: name.clone(), value: value.clone() }
        }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Brought>, D::Error> {
        let brought = |WrittenBrought { is_file, name, value }: WrittenBrought| {
            let wanted = if is_file { Wanted::File(name) } else { Wanted::Variable(name) };
            Brought { wanted, value }
        };
        Ok(Vec::<WrittenBrought>::deserialize(from)?.into_iter().map(brought).collect())
    }
}

/// A pair in a list.
#[derive(Serialize, Deserialize)]
struct Listed(#[serde(with = "WrittenPair")] TunedPair);

/// A tuning that exists.
#[derive(Serialize, Deserialize)]
struct Chosen(#[serde(with = "WrittenTuning")] LinkTuning);

fn write_tunings<S: Serializer>(tunings: &Tunings, to: S) -> Result<S::Ok, S::Error> {
    tunings.map(|tuning| tuning.map(Chosen)).serialize(to)
}

fn read_tunings<'de, D: Deserializer<'de>>(from: D) -> Result<Tunings, D::Error> {
    let chosen = <[Option<Chosen>; LinkClass::ALL.len()]>::deserialize(from)?;
    Ok(chosen.map(|tuning| tuning.map(|Chosen(tuning)| tuning)))
}

fn write_pairs<S: Serializer>(pairs: &[TunedPair], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(pairs.iter().copied().map(Listed))
}

fn read_pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TunedPair>, D::Error> {
    let listed = Vec::<Listed>::deserialize(from)?;
    Ok(listed.into_iter().map(|Listed(pair)| pair).collect())
}
