//! The arguments of `sinew scope`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use sinew_control::traces::RunLayout;
use sinew_scope::{ScopeSettings, Slope, Sweep, Trigger, WITHIN};
use sinew_spec::decimal_comma;

use super::Chosen;
use crate::duration::duration;
use crate::number::number;

/// Show numbers of the core cycle by cycle: signals of nodes, and messages at their ports.
///
/// Names are NODE.SIGNAL, NODE.PORT or NODE.PORT.FIELD; NAME[i] is one of several numbers. The
/// scope does not disturb the core: each cycle leaves its numbers in memory anyway, and the scope
/// reads them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScopeArgs {
    /// What to show, 16 numbers at most
    #[arg(value_name = "NODE.SIGNAL")]
    pub(super) traces: Vec<String>,
    /// Process number or graph of the run. May be left out if there is only one run
    #[arg(long, value_name = "RUN")]
    pub(super) run: Option<String>,
    /// List the names that can be shown
    #[arg(long)]
    pub(super) list: bool,
    /// Length of a capture: 500us, 20ms, 10s. Default: 1s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// What starts a capture: a name, or 'NODE.SIGNAL > 0.5' to rise through 0.5; '<' to fall
    #[arg(long, value_name = "NODE.SIGNAL", allow_hyphen_values = true)]
    trigger: Option<String>,
    /// How the trigger crosses its level; above and below: it is on that side, without crossing
    #[arg(long, requires = "trigger", value_name = "WAY",
        value_parser = PossibleValuesParser::new(Slope::ALL.map(|(_, word)| word)))]
    slope: Option<String>,
    /// The trigger's level, in its unit
    #[arg(long, requires = "trigger", value_name = "NUMBER", value_parser = number,
        allow_hyphen_values = true)]
    level: Option<f64>,
    /// How far the trigger must go back before the next one, in its unit
    #[arg(
        long,
        requires = "trigger",
        value_name = "NUMBER",
        value_parser = number,
        default_value = "0",
        allow_hyphen_values = true
    )]
    hysteresis: f64,
    /// Part of the window before the trigger
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent,
        allow_hyphen_values = true)]
    pre: f64,
    /// What a capture waits for: nothing (roll), the trigger or not (auto), the trigger (normal),
    /// the trigger once (single)
    #[arg(long, value_name = "WORD",
        value_parser = PossibleValuesParser::new(Sweep::ALL.map(|(_, word)| word)))]
    sweep: Option<String>,
    /// Print the figures of one capture, as without a terminal and with --plain
    #[arg(long)]
    once: bool,
    /// Like --once, with a capture of this length
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "window")]
    length: Option<Duration>,
    /// Print the figures of one capture as one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Write one capture as CSV: a row for each cycle
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write one capture as MCAP: a topic for each number
    #[arg(long, value_name = "FILE")]
    pub(super) mcap: Option<PathBuf>,
    /// Add the step response of each number: rise, overshoot, settling
    #[arg(long)]
    pub(super) step: bool,
    /// The number that steps. Default: the step is at the trigger
    #[arg(long, value_name = "NODE.SIGNAL", requires = "step")]
    pub(super) input: Option<String>,
    /// Band around the final value that counts as settled, in percent of the step
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent,
        requires = "step")]
    pub(super) within: f64,
    /// Add the frequency response from INPUT to OUTPUT. Something must excite the input, such as a
    /// chirp of the kind 'signal'
    #[arg(long, num_args = 2, value_names = ["INPUT", "OUTPUT"], conflicts_with = "input")]
    pub(super) bode: Option<Vec<String>>,
    /// Cycles in one segment of the transform of --bode. Default: an eighth of the capture
    #[arg(long, value_name = "CYCLES", requires = "bode")]
    pub(super) segment: Option<usize>,
    /// Frequencies of --bode with less coherence than this are not shown
    #[arg(long, value_name = "PART", value_parser = number, default_value = "0.9",
        requires = "bode")]
    pub(super) coherence: f64,
    /// Add the spectrum of each number
    #[arg(long)]
    pub(super) spectrum: bool,
    /// How long to wait for one capture
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(super) wait: Duration,
}

const EXAMPLES: &str = "\
Examples:
  sinew scope --list
  sinew scope pid.out motor.speed_rad_per_s
  sinew scope pid.setpoint pid.measured --trigger 'pid.setpoint > 1' --pre 20% --window 500ms
  sinew scope motor.current_a --for 2s --csv current.csv --mcap current.mcap
  sinew scope pid.measured --for 2s --json --spectrum | jq '.spectrum[0].peaks'
  sinew scope pid.measured --trigger pid.setpoint --level 3 --step --input pid.setpoint
  sinew scope --bode chirp.out plant.out --for 20s

Keys (? shows them): space freezes; left, right change the window; up, down the level; t sweep,
g slope, s single; n next trace, c cursors; x XY, f spectrum, r step, b Bode; e writes files;
q quits.

A run without a dashboard, recorder or other observer shows signals only. For messages at ports,
start it with 'sinew run --observe'.
After a reset the core starts a new life. The CSV has a column for it; no curve crosses a reset.
Exit status: 0 good, even if the run has stopped while it was shown; 1 the run faulted, does not
answer, or stopped before a capture was complete, or no trigger came; 2 bad request, or no such run
or name.";

/// The trace of a trigger, and what an expression such as `NODE.SIGNAL > 0.5` adds.
type NamedTrigger = (String, Option<(Slope, f64)>);

impl ScopeArgs {
    /// Whether it answers with one capture, even on a terminal.
    pub(super) fn is_answered_once(&self) -> bool {
        let files = self.csv.is_some() || self.mcap.is_some();
        let asked = self.step || self.spectrum || self.bode.is_some();
        self.once || self.list || self.json || files || asked || self.length.is_some()
    }

    /// The trigger's name, and what an expression says about slope and level.
    pub(super) fn trigger(&self) -> Result<Option<NamedTrigger>, String> {
        let Some(text) = &self.trigger else { return Ok(None) };
        let Some(at) = text.find(['<', '>']) else { return Ok(Some((text.clone(), None))) };
        if self.slope.is_some() || self.level.is_some() {
            return Err(format!(
                "--trigger: '{text}' says the level already; leave --level and --slope out"
            ));
        }
        let (name, rest) = text.split_at(at);
        let slope = if rest.starts_with('>') { Slope::Rising } else { Slope::Falling };
        let level = rest[1..].trim();
        let level = number(level).map_err(|why| {
            format!("--trigger: '{level}' is not a number: {why}, as in 'NODE.SIGNAL > 0.5'")
        })?;
        Ok(Some((name.trim().into(), Some((slope, level)))))
    }

    /// The settings of the scope.
    pub(super) fn settings(
        &self,
        layout: &RunLayout,
        chosen: &Chosen,
        on_screen: bool,
    ) -> Result<ScopeSettings, String> {
        let default = ScopeSettings::default();
        let window = self.length.or(self.window);
        let period_ns = chosen.traces.iter().filter_map(|trace| {
            layout.threads.iter().find(|it| it.id() == trace.thread).map(|it| it.period_ns)
        });
        // 1000 cycles of a fast core fill the picture; a slow core gets the default window.
        let fitting = period_ns.min().unwrap_or(1).saturating_mul(1000);
        let window_ns = window.map_or(fitting.min(default.window_ns), |it| it.as_nanos() as u64);
        let said = self.trigger()?.and_then(|(_, said)| said);
        let slope = self.slope.as_deref().map_or(Slope::Rising, |word| {
            let found = Slope::ALL.iter().find(|(_, it)| *it == word);
            found.map_or(Slope::Rising, |(slope, _)| *slope)
        });
        let level = self.level.unwrap_or(0.0);
        let (slope, level) = said.unwrap_or((slope, level));
        let trigger = chosen.trigger.map(|trace| Trigger {
            trace,
            slope,
            level,
            hysteresis: self.hysteresis,
        });
        let sweep = match (&self.sweep, &trigger) {
            (Some(word), trigger) => {
                let found = Sweep::ALL.iter().find(|(_, it)| it == word).map(|(sweep, _)| *sweep);
                let sweep = found.unwrap_or_default();
                if sweep != Sweep::Roll && trigger.is_none() {
                    return Err(format!("--sweep {word} waits for a trigger; add --trigger"));
                }
                sweep
            }
            (None, None) => Sweep::Roll,
            (None, Some(_)) if on_screen => Sweep::Auto,
            (None, Some(_)) => Sweep::Single,
        };
        let trigger = trigger.unwrap_or_default();
        Ok(ScopeSettings { window_ns, pre: self.pre, sweep, trigger })
    }

    /// The band that counts as settled.
    pub(super) fn settled(&self) -> f64 {
        if self.within > 0.0 { self.within } else { WITHIN }
    }
}

/// A percentage such as `20%`, as a fraction of one.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.map(|number| number / 100.0).ok_or_else(|| {
        let with_point = decimal_comma(text, |point| percent(point).is_ok());
        with_point.unwrap_or_else(|| {
            format!("'{text}' is not a percentage: expected a number from 0% to 100%, such as 20%")
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ScopeArgs,
    }

    fn trigger(arguments: &[&str]) -> Result<Option<NamedTrigger>, String> {
        let line = Line::try_parse_from([&["scope", "a.b"], arguments].concat());
        line.map_err(|error| error.to_string())?.args.trigger()
    }

    #[test]
    fn a_trigger_is_a_name_or_says_its_level() {
        assert_eq!(trigger(&["--trigger", "pid.out"]), Ok(Some(("pid.out".into(), None))));
        let said = Ok(Some(("pid.out".into(), Some((Slope::Falling, -0.5)))));
        assert_eq!(trigger(&["--trigger", "pid.out < -0.5"]), said);
        for bad in [&["--trigger", "pid.out > x"][..], &["--trigger", "a.b>1", "--level", "2"]] {
            assert!(trigger(bad).is_err(), "{bad:?}");
        }
        for comma in
            [&["--trigger", "pid.out < -0,5"][..], &["--trigger", "a.b", "--level", "-0,5"]]
        {
            assert!(trigger(comma).unwrap_err().contains("write -0.5: "), "{comma:?}");
        }
    }

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(percent("20%"), Ok(0.2));
        for bad in ["20", "-1%", "101%", "nan%", "%", ""] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert!(percent("2,5%").unwrap_err().starts_with("write 2.5%: "));
    }
}
