//! What a viewer does while a film is played: a jump forward, one back, and a pause.

use std::time::{Duration, Instant};

use sinew_core::clock::now_ns;

use super::page::{Page, PageState};

/// A player that shows no picture within this time will never show one.
const SHOWS_WITHIN: Duration = Duration::from_secs(20);
/// How far the jump forward leads, s. Because of the fraction, it ends between two pictures that
/// can be decoded without others.
const FORWARD_S: f64 = 4.3;
/// Where the jump back leads, s.
const BACK_TO_S: f64 = 1.3;

/// A step of the script.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Seek(f64),
    Pause,
    Play,
    End,
}

/// When orders were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// When a jump was ordered; the first jump has number 1 in the screen's log.
    pub(super) seeks_ns: Vec<u64>,
    /// When the player was told to go on.
    pub(super) plays_ns: Vec<u64>,
}

/// Gives orders while a film is played.
pub(super) struct Script {
    page: Page,
    begun: Instant,
    /// When the first picture was known to be shown.
    shows: Option<Instant>,
    /// The steps in reverse order, each with its time after the first picture.
    steps: Vec<(Duration, Step)>,
    given: Given,
}

impl Script {
    /// For a film that plays this long, with a pause in it.
    pub(super) fn new(page: Page, share: Duration, pause: Duration) -> Script {
        let mut steps = steps(share, pause);
        steps.reverse();
        Script { page, begun: Instant::now(), shows: None, steps, given: Given::default() }
    }

    /// Gives the orders that are due. At the end, returns when they were given, and the state.
    ///
    /// # Errors
    /// If no picture is shown, or an order is refused.
    pub(super) fn go_on(&mut self) -> Result<Option<(Given, PageState)>, String> {
        let Some(shows) = self.shows else {
            let state = self.page.state();
            match state {
                Ok(state) if state.shown > 0 => self.shows = Some(Instant::now()),
                Ok(_) | Err(_) if self.begun.elapsed() < SHOWS_WITHIN => {}
                answer => {
                    let why = answer.err().unwrap_or("it says that none is shown".into());
                    let within = SHOWS_WITHIN.as_secs();
                    return Err(format!("no picture within {within} s of the start: {why}"));
                }
            }
            return Ok(None);
        };
        while let Some((_, step)) = self.steps.pop_if(|(at, _)| *at <= shows.elapsed()) {
            match step {
                Step::Seek(place_s) => {
                    self.given.seeks_ns.push(now_ns());
                    self.page.order(&format!("{{\"order\":\"seek\",\"value\":{place_s}}}"))?;
                }
                Step::Pause => self.page.order("{\"order\":\"pause\"}")?,
                Step::Play => {
                    self.given.plays_ns.push(now_ns());
                    self.page.order("{\"order\":\"play\"}")?;
                }
                Step::End => return Ok(Some((self.given.clone(), self.page.state()?))),
            }
        }
        Ok(None)
    }
}

/// The steps, and how long after the first picture each is due: the film plays for a quarter of its
/// time before each.
fn steps(share: Duration, pause: Duration) -> Vec<(Duration, Step)> {
    let quarter = share / 4;
    vec![
        (quarter, Step::Seek(quarter.as_secs_f64() + FORWARD_S)),
        (quarter * 2, Step::Seek(BACK_TO_S)),
        (quarter * 3, Step::Pause),
        (quarter * 3 + pause, Step::Play),
        (share + pause, Step::End),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{FILM_BEYOND, LONG_SHARE, QUICK_SHARE};
    use super::*;

    #[test]
    fn a_film_is_long_enough_for_its_jumps_and_both_lead_elsewhere() {
        for share in [QUICK_SHARE, LONG_SHARE] {
            let steps = steps(share, Duration::from_secs(1));
            let [(_, Step::Seek(forward_s)), (_, Step::Seek(back_s)), ..] = steps[..] else {
                panic!("two jumps first: {steps:?}");
            };
            let quarter_s = share.as_secs_f64() / 4.0;
            let film_s = (share + FILM_BEYOND).as_secs_f64();
            assert!(forward_s > quarter_s + 1.0 && forward_s + quarter_s + 1.0 < film_s);
            assert!(back_s < forward_s && back_s + 2.0 * quarter_s + 1.0 < film_s);
            assert!(steps.is_sorted_by_key(|(at, _)| *at), "{steps:?}");
        }
    }
}
