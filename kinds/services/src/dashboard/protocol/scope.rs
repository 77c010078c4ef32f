//! Messages between the page and the dashboard about a scope.
//!
//! ```text
//! {"do":"scope","id":1,"traces":["pid.out","motor.position"],
//!  "settings":{"window_ns":1000000000,"pre":0.1,"sweep":"roll",
//!              "trigger":{"trace":0,"slope":"rising","level":0,"hysteresis":0}},
//!  "look":{"columns":600},"frozen":false}            opens a scope, or sets the one that is open
//! {"do":"arm","id":2}                                 waits for the next trigger, after "single"
//! {"do":"unscope","id":3}                             closes it
//! ```
//!
//! None of these orders needs a token: a scope shows only what can be seen without one. A viewer
//! has at most one scope, all viewers together at most [`SCOPES_MAX`]. What a scope shows comes as
//! `{"type":"scope",...}`, see [`ScopePicture`]; a slow viewer misses some of these. It can also be
//! fetched as a file, at `/scope/KEY.csv` and `/scope/KEY.mcap`.

use serde::{Deserialize, Serialize};
use sinew_scope::{
    Cursors, Doing, FrequencyPoint, NotShown, ScopeSettings, StepResponse, TraceFigures,
};

/// Most scopes of all viewers. One takes at most 2 MiB for each trace and 5 MiB for each thread.
pub const SCOPES_MAX: usize = 4;
/// Most traces of one scope.
pub const SCOPE_TRACES_MAX: usize = 8;
/// Most columns of a picture, pairs of an XY picture, and points of a spectrum or a response.
pub const COLUMNS_MAX: usize = 1000;
/// The longest name of a trace, bytes.
pub const TRACE_NAME_MAX: usize = 200;
/// Most numbers in a file. Longer captures are for `sinew scope`.
pub const FILE_NUMBERS_MAX: usize = 1 << 20;

/// What a viewer wants to see on its scope.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeWanted {
    /// Is repeated in the answer.
    pub id: u64,
    /// Names of one number each.
    pub traces: Vec<String>,
    /// The settings of the capture.
    #[serde(default)]
    pub settings: ScopeSettings,
    /// What is shown of the capture.
    pub look: ScopeLook,
    /// Whether the scope keeps showing what it shows now.
    #[serde(default)]
    pub frozen: bool,
}

/// What is shown of a capture; a trace is given by its index.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeLook {
    /// Columns of the picture, 2 to [`COLUMNS_MAX`].
    pub columns: usize,
    /// A part of the window, s after its zero; the whole window if not given.
    #[serde(default)]
    pub span_s: Option<[f64; 2]>,
    /// The places of cursors, also s after the window's zero.
    #[serde(default)]
    pub cursors_s: Option<[f64; 2]>,
    /// A picture of two traces: x, y.
    #[serde(default)]
    pub xy: Option<[usize; 2]>,
    /// The spectrum of a trace.
    #[serde(default)]
    pub spectrum: Option<usize>,
    /// How a trace follows a step.
    #[serde(default)]
    pub step: Option<StepLook>,
    /// The frequency response from the first trace to the second.
    #[serde(default)]
    pub bode: Option<[usize; 2]>,
}

/// A step, and the trace that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepLook {
    /// The trace that has the step; if not given, the step is at the capture's zero.
    #[serde(default)]
    pub input: Option<usize>,
    /// The trace that follows.
    pub output: usize,
}

/// What a scope shows.
#[derive(Clone, Debug, Serialize)]
pub struct ScopePicture {
    /// The name of its files.
    pub key: u64,
    /// Number of captures before this one.
    pub number: u64,
    /// What the scope is doing.
    pub doing: Doing,
    /// Whether a trigger started the capture.
    pub triggered: bool,
    /// The window, s after its zero.
    pub window_s: [f64; 2],
    /// The part of the window that the columns show.
    pub span_s: [f64; 2],
    /// Cycles that were overwritten before they were read, since the scope was opened.
    pub lost: u64,
    /// How often the core had been started again.
    pub life: u32,
    /// Why nothing new comes, if that is so.
    pub ended: Option<String>,
    /// In the order in which they were chosen.
    pub traces: Vec<TracePicture>,
    /// If requested: x and y of each pair, `None` where the line breaks.
    pub xy: Option<Vec<Option<[f32; 2]>>>,
    /// The spectrum, if requested.
    pub spectrum: Option<Result<SpectrumPicture, NotShown>>,
    /// The step response, if requested.
    pub step: Option<Result<StepResponse, NotShown>>,
    /// The frequency response, if requested: only meaningful points.
    pub bode: Option<Result<Vec<FrequencyPoint>, NotShown>>,
}

/// A trace of a scope.
#[derive(Clone, Debug, Serialize)]
pub struct TracePicture {
    /// Its name.
    pub name: String,
    /// Its unit, or empty.
    pub unit: String,
    /// If not empty, its numbers are indices into these words.
    pub labels: Vec<String>,
    /// Least value in each column; `None` for a column without a value.
    pub min: Vec<Option<f32>>,
    /// Greatest value in each column, likewise.
    pub max: Vec<Option<f32>>,
    /// Figures of the whole window; `None` without a finite value in it.
    pub figures: Option<TraceFigures>,
    /// Values at the cursors, if they were requested.
    pub cursors: Option<Cursors>,
}

/// A spectrum; of neighbouring frequencies only the one with the greatest amplitude.
#[derive(Clone, Debug, Serialize)]
pub struct SpectrumPicture {
    /// Frequency in Hz, and the amplitude of a sine there, in the trace's unit.
    pub points: Vec<[f64; 2]>,
    /// The greatest peaks, likewise.
    pub peaks: Vec<[f64; 2]>,
    /// Distance between two frequencies, Hz.
    pub resolution_hz: f64,
}

impl ScopeWanted {
    /// Checks whether it can be shown. The scope itself checks its settings.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let count = self.traces.len();
        if !(1..=SCOPE_TRACES_MAX).contains(&count) {
            return Err(format!("{count} traces; expected 1 to {SCOPE_TRACES_MAX}"));
        }
        if let Some(long) = self.traces.iter().find(|name| name.len() > TRACE_NAME_MAX) {
            let len = long.len();
            return Err(format!("a name of {len} bytes; expected {TRACE_NAME_MAX} at most"));
        }
        let look = &self.look;
        if !(2..=COLUMNS_MAX).contains(&look.columns) {
            return Err(format!("{} columns; expected 2 to {COLUMNS_MAX}", look.columns));
        }
        for [from, until] in look.span_s.into_iter().chain(look.cursors_s) {
            if !from.is_finite() || !until.is_finite() {
                return Err("a time is not finite; expected seconds after the zero".into());
            }
        }
        if look.span_s.is_some_and(|[from, until]| from >= until) {
            return Err("span_s ends before it begins; expected [from, until]".into());
        }
        let step = look.step.iter().flat_map(|step| step.input.into_iter().chain([step.output]));
        let pairs = look.xy.into_iter().chain(look.bode).flatten();
        let mut all = step.chain(pairs).chain(look.spectrum);
        match all.find(|&place| place >= count) {
            Some(place) => Err(format!("there is no trace {place}, expected less than {count}")),
            None => Ok(()),
        }
    }
}
