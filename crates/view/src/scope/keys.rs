//! The effects of keys.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sinew_scope::settings::{WINDOW_NS_MIN, longest_ns};
use sinew_scope::{Capture, Doing, Scope, ScopeSettings, Slope, Sweep, figures};

use super::{Look, Pane, ScopeWish};

/// The keys, one line each.
pub(super) const HELP: &[(&str, &str)] = &[
    ("space", "freeze, and go on"),
    ("left, right", "shorter, longer window; with cursors: move one"),
    ("up, down", "the trigger's level, on the chosen trace"),
    ("n", "choose the next trace: for level, spectrum, step, XY, Bode"),
    ("t", "wait for: nothing (roll), trigger or not (auto), trigger (normal)"),
    ("g", "the trigger's slope: rising, falling, either, above, below"),
    ("s", "single: one capture, then stop; again: the next one"),
    ("p", "part of the window before the trigger: 10, 20, 50, 80 %"),
    ("c, Tab", "cursors on or off; the other cursor"),
    ("x", "XY: the chosen trace over the first"),
    ("f", "spectrum of the chosen trace"),
    ("r", "step response of the chosen trace, to the first or the trigger"),
    ("b", "Bode: how the chosen trace answers the first"),
    ("e", "write the capture as CSV and MCAP into this folder"),
    ("Esc", "back to the traces"),
    ("q", "quit"),
];

/// How far a key moves the level, as part of the trace's range.
const LEVEL_STEP: f64 = 0.05;

/// How far a key moves a cursor, as part of the window.
const CURSOR_STEP: f64 = 0.01;

const PARTS_BEFORE: [f64; 4] = [0.1, 0.2, 0.5, 0.8];

impl Look {
    /// Handles a key. Returns a wish that the screen cannot carry out itself.
    pub(super) fn press(
        &mut self,
        key: KeyEvent,
        scope: &mut Scope,
        capture: &Arc<Capture>,
    ) -> Option<ScopeWish> {
        self.said.clear();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let pane = |wanted, now| if wanted == now { Pane::Time } else { wanted };
        match key.code {
            KeyCode::Char('q') => return Some(ScopeWish::Quit),
            KeyCode::Char('c') if control => return Some(ScopeWish::Quit),
            KeyCode::Char('e') => return Some(ScopeWish::Export(Arc::clone(capture))),
            KeyCode::Esc => (self.pane, self.cursors) = (Pane::Time, None),
            KeyCode::Char('?') => self.pane = pane(Pane::Help, self.pane),
            KeyCode::Char('x') => self.pane = pane(Pane::Xy, self.pane),
            KeyCode::Char('f') => self.pane = pane(Pane::Spectrum, self.pane),
            KeyCode::Char('r') => self.pane = pane(Pane::Step, self.pane),
            KeyCode::Char('b') => self.pane = pane(Pane::Bode, self.pane),
            KeyCode::Char('n') => self.chosen = (self.chosen + 1) % scope.traces().len(),
            KeyCode::Char(' ') => scope.freeze(scope.doing() != Doing::Frozen),
            KeyCode::Char('s') if scope.settings().sweep == Sweep::Single => scope.arm(),
            KeyCode::Char('s') => self.set(scope, |it| it.sweep = Sweep::Single),
            KeyCode::Char('t') => self.set(scope, |it| it.sweep = next_sweep(it.sweep)),
            KeyCode::Char('g') => {
                self.set(scope, |it| it.trigger.slope = next_slope(it.trigger.slope));
            }
            KeyCode::Char('p') => self.set(scope, |it| it.pre = next_part(it.pre)),
            KeyCode::Char('c') => {
                self.cursors = if self.cursors.is_some() { None } else { Some(([0.25, 0.75], 0)) };
            }
            KeyCode::Tab => self.cursors = self.cursors.map(|(at, which)| (at, 1 - which)),
            KeyCode::Left => self.sideways(scope, -1.0),
            KeyCode::Right => self.sideways(scope, 1.0),
            KeyCode::Up => self.level(scope, capture, LEVEL_STEP),
            KeyCode::Down => self.level(scope, capture, -LEVEL_STEP),
            _ => {}
        }
        None
    }

    fn set(&mut self, scope: &mut Scope, change: impl FnOnce(&mut ScopeSettings)) {
        let mut settings = *scope.settings();
        change(&mut settings);
        if let Err(text) = scope.set(settings) {
            self.said = text;
        }
    }

    /// Moves a cursor, or changes the window.
    fn sideways(&mut self, scope: &mut Scope, way: f64) {
        if let Some((at, which)) = &mut self.cursors {
            at[*which] = (at[*which] + way * CURSOR_STEP).clamp(0.0, 1.0);
            return;
        }
        let (least, most) = (WINDOW_NS_MIN, longest_ns(scope.period_ns()));
        let window_ns = scope.settings().window_ns;
        let longer = way > 0.0;
        self.set(scope, |it| it.window_ns = next_window(window_ns, longer).clamp(least, most));
    }

    /// Moves the level of the trigger. The trigger changes to the chosen trace.
    fn level(&mut self, scope: &mut Scope, capture: &Capture, part: f64) {
        let Some(figures) = capture.traces.get(self.chosen).and_then(figures) else {
            self.said = "the chosen trace has no value yet".into();
            return;
        };
        let chosen = self.chosen;
        let step = if figures.peak_to_peak > 0.0 { figures.peak_to_peak } else { 1.0 };
        self.set(scope, |it| {
            if it.trigger.trace != chosen {
                it.trigger.trace = chosen;
                it.trigger.level = (figures.min + figures.max) / 2.0;
            }
            it.trigger.level += step * part;
        });
    }
}

fn next_sweep(sweep: Sweep) -> Sweep {
    match sweep {
        Sweep::Roll => Sweep::Auto,
        Sweep::Auto => Sweep::Normal,
        Sweep::Normal | Sweep::Single => Sweep::Roll,
    }
}

fn next_slope(slope: Slope) -> Slope {
    let at = Slope::ALL.iter().position(|(one, _)| *one == slope).unwrap_or(0);
    Slope::ALL[(at + 1) % Slope::ALL.len()].0
}

fn next_part(pre: f64) -> f64 {
    PARTS_BEFORE.into_iter().find(|part| *part > pre + 1e-9).unwrap_or(PARTS_BEFORE[0])
}

/// The next window among 1, 2, 5, 10 and so on.
fn next_window(window_ns: u64, longer: bool) -> u64 {
    let steps = (0..15).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    let mut steps = steps.collect::<Vec<_>>().into_iter();
    match longer {
        true => steps.find(|step| *step > window_ns).unwrap_or(window_ns),
        false => steps.rfind(|step| *step < window_ns).unwrap_or(window_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_by_one_two_five() {
        assert_eq!([10, 11, 20, 49].map(|it| next_window(it, true)), [20, 20, 50, 50]);
        assert_eq!([10, 11, 20, 51].map(|it| next_window(it, false)), [5, 10, 10, 50]);
    }

    #[test]
    fn sweep_slope_and_part_come_round() {
        assert_eq!(next_slope(Slope::Below), Slope::Rising);
        assert_eq!(next_sweep(Sweep::Normal), Sweep::Roll);
        assert_eq!([0.1, 0.8, 0.3].map(next_part), [0.2, 0.1, 0.5]);
    }
}
