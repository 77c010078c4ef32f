//! What who watches wants while a film is played: a jump forward, one back, and a pause.

use std::time::{Duration, Instant};

use sinew_core::clock::now_ns;

use super::page::{Page, PageState};

/// Who shows no picture by then will show none.
const SHOWS_WITHIN: Duration = Duration::from_secs(20);
/// How far the jump forward leads, s; with the part of a second it ends between two pictures that
/// stand alone.
const FORWARD_S: f64 = 4.3;
/// Where the jump back leads, s.
const BACK_TO_S: f64 = 1.3;

/// Something that is wanted.
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
    /// To jump; the first one is number 1 in the screen's log.
    pub(super) seeks_ns: Vec<u64>,
    /// To go on.
    pub(super) plays_ns: Vec<u64>,
}

/// Gives orders while a film is played.
pub(super) struct Script {
    page: Page,
    begun: Instant,
    /// When the first picture was known to be shown.
    shows: Option<Instant>,
    /// From then on, in their order.
    steps: Vec<(Duration, Step)>,
    given: Given,
}

impl Script {
    /// For a film that plays for so long, with a pause in it.
    pub(super) fn new(page: Page, share: Duration, pause: Duration) -> Script {
        let mut steps = steps(share, pause);
        steps.reverse();
        Script { page, begun: Instant::now(), shows: None, steps, given: Given::default() }
    }

    /// Gives the orders whose time has come. At the end: how it went.
    ///
    /// # Errors
    /// No picture is shown, or an order is refused.
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

/// What is wanted, and how long after the first picture: it plays for a quarter of its time before
/// each.
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
