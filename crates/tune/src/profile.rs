//! The machine profile: what was measured, and on which machine, as JSON. A reader checks
//! everything in it before use.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sinew_figures::{Interval, Machine};
use sinew_plan::plan::{LinkClass, LinkProfile, LinkTuning, TunedPair};

use crate::candidates::usual;
use crate::search::Suited;

/// Identifies a profile.
const FORMAT: &str = "sinew machine profile";
/// Version of the format. Other versions are refused.
const VERSION: u32 = 3;
/// Most pairs: those of 45 CPUs, which take two hours. More are neither measured nor read.
pub const PAIRS_MAX: usize = 1024;
/// Most bytes of a pair in the file. Most pairs are half as long.
const PAIR_BYTES_MAX: usize = 32 << 10;
/// Longest file that is read.
pub(crate) const BYTES_MAX: usize = PAIRS_MAX * PAIR_BYTES_MAX;
/// Longest gap between two polls, ns. With a longer gap a link would sleep instead of polling.
const GAP_NS_MAX: u32 = 1_000_000;
/// Most polls at the start of a wait.
const EAGER_POLLS_MAX: u32 = 1000;
/// Longest text that is shown, in bytes. A longer text is cut.
const TEXT_MAX: usize = 200;

/// What to do about a profile that cannot be used.
const INSTEAD: &str =
    "run 'sinew tune' to measure again, or take the default with '--profile-machine none'";

/// The measurements of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    format: String,
    version: u32,
    /// When, in words.
    pub time: String,
    /// The machine.
    pub machine: Machine,
    /// Each pair of CPUs once.
    pub pairs: Vec<MeasuredPair>,
    /// Pairs that could not be measured.
    pub not_measured: Vec<NotMeasured>,
}

/// The measurements between two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredPair {
    /// The CPUs, ascending.
    pub cpus: [u32; 2],
    /// How long a PAUSE takes on each.
    pub pause_ns: [u32; 2],
    /// Round trip of a word that both write in turn: the least that a round trip can cost.
    pub token_ns: Interval,
    /// The 10 % and the 90 % quantile of the token times of all rounds.
    pub token_range_ns: [f64; 2],
    /// Whether these quantiles are so far apart that the host must have moved the CPUs.
    pub distance_changed: bool,
    /// The same with a cache line for each direction: the least cost for two links.
    pub pair_ns: Interval,
    /// For links of few small messages.
    pub small: Suited,
    /// For links of few longer ones.
    pub short: Suited,
    /// For links of many messages.
    pub long: Suited,
}

impl MeasuredPair {
    /// What suits each class, in the order of [`LinkClass::ALL`].
    pub(crate) fn suited(&self) -> [(LinkClass, &Suited); LinkClass::ALL.len()] {
        let MeasuredPair { small, short, long, .. } = self;
        [(LinkClass::Small, small), (LinkClass::Short, short), (LinkClass::Long, long)]
    }
}

/// A pair that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotMeasured {
    /// The CPUs.
    pub cpus: [u32; 2],
    /// Why not.
    pub why: String,
}

/// The fields that every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl MachineProfile {
    /// A profile without measurements.
    pub(crate) fn new(time: String, machine: Machine) -> MachineProfile {
        let (pairs, not_measured) = (vec![], vec![]);
        MachineProfile {
            format: FORMAT.into(),
            version: VERSION,
            time,
            machine,
            pairs,
            not_measured,
        }
    }

    /// The profile as it is written.
    pub fn to_json(&self) -> String {
        format!("{}\n", json!(self))
    }

    /// Whether the bytes are a profile of any version.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        serde_json::from_slice(bytes).is_ok_and(|head: Head| head.format == FORMAT)
    }

    /// Parses and checks the bytes of a file.
    ///
    /// # Errors
    /// What is wrong, what was expected, and what to do.
    pub(crate) fn parse(bytes: &[u8]) -> Result<MachineProfile, String> {
        // The error may contain text from the file.
        MachineProfile::checked(bytes).map_err(|wrong| format!("{}; {INSTEAD}", line_of(&wrong)))
    }

    fn checked(bytes: &[u8]) -> Result<MachineProfile, String> {
        let no_json = |error| format!("it is not a machine profile: {error}");
        let Head { format, version } = serde_json::from_slice(bytes).map_err(no_json)?;
        if format != FORMAT {
            return Err(format!("expected the format '{FORMAT}', it is '{format}'"));
        }
        if version != VERSION {
            return Err(format!("it is of version {version}, expected {VERSION}"));
        }
        let profile: MachineProfile = serde_json::from_slice(bytes).map_err(no_json)?;
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), String> {
        check_texts("", &json!(self))?;
        if self.pairs.len() > PAIRS_MAX {
            return Err(format!("it has {} pairs, expected {PAIRS_MAX} at most", self.pairs.len()));
        }
        let mut seen = HashSet::new();
        for (at, pair) in self.pairs.iter().enumerate() {
            let [one, other] = pair.cpus;
            if one >= other {
                let expected = "expected two different CPUs, the lower one first";
                return Err(format!("pairs[{at}].cpus is [{one}, {other}], {expected}"));
            }
            if !seen.insert(pair.cpus) {
                return Err(format!("pairs[{at}].cpus is [{one}, {other}] once more"));
            }
            for (class, suited) in pair.suited() {
                check_chosen(&suited.chosen)
                    .map_err(|wrong| format!("pairs[{at}].{}.chosen.{wrong}", class.word()))?;
            }
        }
        Ok(())
    }

    /// Keeps the pairs of an earlier profile that this one does not have, if it is of this machine
    /// and there is room. Returns how many pairs were kept.
    pub fn keep(&mut self, earlier: MachineProfile) -> usize {
        if earlier.refused_on(&self.machine).is_some() {
            return 0;
        }
        let measured: HashSet<_> = self.pairs.iter().map(|pair| pair.cpus).collect();
        let others = earlier.pairs.into_iter().filter(|pair| !measured.contains(&pair.cpus));
        self.pairs.extend(others.take(PAIRS_MAX - measured.len()));
        self.pairs.len() - measured.len()
    }

    /// Why the profile must not be used on this machine.
    pub fn refused_on(&self, here: &Machine) -> Option<String> {
        let differences = here.is_another(&self.machine);
        (!differences.is_empty())
            .then(|| format!("it is of another machine: {}; {INSTEAD}", differences.join(", ")))
    }

    /// The profile's tuning of links, for a plan. `file` is the name that users know.
    pub fn links(&self, file: String) -> LinkProfile {
        let tuned = |pair: &MeasuredPair| TunedPair {
            cpus: pair.cpus,
            distance_changed: pair.distance_changed,
            suited: pair.suited().map(|(class, suited)| other_than_usual(class, suited)),
        };
        let (time, pairs) = (self.time.clone(), self.pairs.iter().map(tuned).collect());
        LinkProfile::Measured { file, time, pairs }
    }
}

/// The chosen tuning. `None` if it is the default.
fn other_than_usual(class: LinkClass, suited: &Suited) -> Option<LinkTuning> {
    (suited.chosen != usual(class)).then_some(suited.chosen)
}

/// A text that is safe on a terminal: cut at [`TEXT_MAX`], and without unprintable characters.
pub(crate) fn line_of(text: &str) -> String {
    let shown: String = text
        .chars()
        .map(|c| if is_shown(c) { c.to_string() } else { c.escape_default().to_string() })
        .collect();
    match shown.char_indices().find(|(at, c)| at + c.len_utf8() > TEXT_MAX) {
        Some((at, _)) => format!("{}...", &shown[..at]),
        None => shown,
    }
}

/// Whether a character may be shown. Control characters may not, nor characters that change the
/// direction of writing.
fn is_shown(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\') || c.escape_debug().count() == 1
}

/// Checks that all texts of the part of a profile at `place` can be shown.
fn check_texts(place: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.len() > TEXT_MAX || !text.chars().all(is_shown) => {
            Err(format!("{}: expected a line of {TEXT_MAX} bytes at most", &place[1..]))
        }
        Value::Array(values) => values
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| check_texts(&format!("{place}[{at}]"), value)),
        Value::Object(fields) => fields
            .iter()
            .try_for_each(|(name, value)| check_texts(&format!("{place}.{name}"), value)),
        _ => Ok(()),
    }
}

fn check_chosen(chosen: &LinkTuning) -> Result<(), String> {
    let LinkTuning { eager_polls, gap_ns, .. } = *chosen;
    if gap_ns > GAP_NS_MAX {
        return Err(format!("gap_ns is {gap_ns}, expected {GAP_NS_MAX} at most"));
    }
    if eager_polls > EAGER_POLLS_MAX {
        return Err(format!("eager_polls is {eager_polls}, expected {EAGER_POLLS_MAX} at most"));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
