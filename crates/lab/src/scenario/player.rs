//! How well a film is played: how far sound and picture are apart, depending on where pictures are
//! decoded and what else uses the CPUs, compared with the figures of a published player.

mod busy;
mod case;
mod page;
mod playing;
mod script;
mod setup;
mod shown;
mod verdicts;

use std::time::Duration;

use self::case::{AXES, Decoder, PlayerCase, QUICK_ROWS, ROWS};
use self::playing::{PlayerBench, Playing};
use self::setup::{PlayerSetup, guest_lack, make_films};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::graph::Files;
use crate::harness::Cpus;
use crate::report::{Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};

/// Rounds, if no other number is requested, and how long a row plays in each of them.
const ROUNDS: u32 = 5;
const SHARE: Duration = Duration::from_secs(15);
/// The same for the rows without a load that are compared with each other.
const LONG_SHARE: Duration = Duration::from_secs(60);
/// How long a film is paused.
const PAUSE: Duration = Duration::from_secs(1);
/// The same for the short form.
const QUICK_ROUNDS: u32 = 3;
const QUICK_SHARE: Duration = Duration::from_millis(3500);
const QUICK_PAUSE: Duration = Duration::from_millis(500);
/// How much longer a film is than the time for which it is played, because of the jump forward.
const FILM_BEYOND: Duration = Duration::from_secs(6);

/// The kinds that its graphs need.
const KINDS: [&str; 5] =
    ["media_source", "video_decoder", "audio_decoder", "audio_sink", "video_sink"];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "player",
    about: "how far apart sound and picture of a film are: on one CPU, on two, with a guest, with \
            and without a load; how soon they are in step after a start, a jump, a pause",
    axes: AXES,
    takes_rivals: false,
    takes_image: true,
    run,
};

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    request.needs(&KINDS, "its services' nodes")?;
    let (Some(&near), Some(&far)) = (request.cpus.first(), request.cpus.last()) else {
        return Err(CannotRun("there is no CPU".into()));
    };
    let rows = if request.quick { QUICK_ROWS } else { ROWS };
    let rows = rows.iter().map(|case| (*case, case.row())).collect();
    let mut rows = request.only.pick(rows, |(_, row): &(PlayerCase, Row)| &row.axes)?;
    let _files = Files::write().map_err(CannotRun)?;
    let cpus = Cpus { near, far };
    let setup = PlayerSetup { cpus, allowed: &request.cpus, kinds: &request.kinds };
    let has_guest = rows.iter().any(|(case, _)| case.decoder == Decoder::Guest);
    let lack = has_guest.then(|| guest_lack(request.image.as_deref())).flatten();
    if let (Some(why), Some(_)) = (&lack, &request.image) {
        return Err(CannotRun(why.clone()));
    }
    for (case, row) in &mut rows {
        let alone = "the decoder has a separate CPU: that needs two, and there is one";
        row.skipped = match case.decoder {
            Decoder::OneCpu => None,
            _ if !cpus.are_two() => Some(alone.into()),
            Decoder::TwoCpus => None,
            Decoder::Guest => lack.clone(),
        };
        if row.skipped.is_none() {
            setup.check(case.decoder).map_err(CannotRun)?;
        }
    }
    let played = rows.iter().filter(|(_, row)| row.skipped.is_none());
    if let Some(longest) = played.map(|(case, _)| share(*case, request.quick)).max() {
        make_films(longest + FILM_BEYOND, session)?;
    }
    let bench =
        PlayerBench { session, setup, pause: if request.quick { QUICK_PAUSE } else { PAUSE } };
    let contender = |(case, row): (PlayerCase, Row)| {
        let playing = Playing::new(&bench, case, share(case, request.quick));
        (row, Box::new(playing) as Box<dyn Contender + '_>)
    };
    let contenders = rows.into_iter().map(contender).collect();
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let mut report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    report.tables = vec![verdicts::table(&report.rows)];
    report.verdicts = verdicts::of(&report.rows);
    report.notes = NOTES.map(Into::into).to_vec();
    report.notes.push(format!(
        "source, sound and screen on CPU {near}; the decoder with them (one_cpu) or on CPU {far}"
    ));
    Ok(report)
}

/// How long a row plays in a round.
fn share(case: PlayerCase, is_quick: bool) -> Duration {
    match case {
        _ if is_quick => QUICK_SHARE,
        _ if case.is_compared() => LONG_SHARE,
        _ => SHARE,
    }
}

const NOTES: [&str; 7] = [
    "the films are made by FFmpeg for this run: 640 x 352 points, 25 pictures a second; Xvid with \
     MP3 for one_cpu and two_cpus, Motion JPEG with PCM for guest",
    "av_difference: place of the sound minus place of the picture, as an absolute value, when the \
     picture is shown; of every picture that is shown while sound is heard. av_difference_p95: the \
     P95 of each round. decode: the time to decode every picture that is shown",
    "no sound device is used: the sound's clock is the monotonic one, at 48000 frames a second. \
     There is no viewer, so no picture is encoded for a page",
    "each run has a jump forward, a jump back and a pause. step_after_...: from the first picture \
     of the run, from each order to jump, from the order to go on after the pause, until the first \
     picture that is at most 40 ms from the sound; first_picture: from the start of the processes",
    "late, dropped, repeated, copies: as the screen counts them (docs/player.md); skipped: packets \
     that the decoder left out, because they would have come too late or, with guest, belonged to \
     the time before a jump; never_in_step: starts and orders after which no picture was in step",
    "load: two threads of normal priority that never sleep, on the CPU of the sound or of the \
     decoder, from before the start to the end; with one_cpu these are the same",
    "the paper: Jung and Kim 2010, 'Improvement Method and Performance Analysis of Shared Memory \
     in Dual Core Embedded Linux system', section 5.3 and figure 13: MPlayer on a chip with ARM926 \
     and ARM946; it does not say whether its figures are means or maxima",
];
