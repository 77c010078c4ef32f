//! When a timer's flows are due, and the wait for these times.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use sinew_core::{Parameters, Refusal};
use tokio::time::{Instant, sleep, sleep_until};

/// How often the time of day is read during a wait, because somebody may set the clock.
const LOOK: Duration = Duration::from_secs(10);
/// Missed times are counted up to here.
const LOST_MAX: i64 = 10_000;
/// If the clock is set back by less than this, no time is repeated. If by more, the clock was wrong
/// before, and times count from the new one.
const SET_BACK_MAX: SignedDuration = SignedDuration::from_hours(3);

/// When flows are due.
pub(super) enum Schedule {
    Every(Duration),
    At(Box<Cron>, TimeZone),
}

impl Schedule {
    /// The schedule that the parameters give; it has a time after `now`.
    pub(super) fn new(
        parameters: &Parameters<'_>,
        now: Timestamp,
    ) -> Result<Schedule, Vec<Refusal>> {
        let (interval, cron) = (parameters.duration("interval"), parameters.text("cron"));
        let refuse = |name, message: String, help: &str| {
            Err(vec![Refusal::new(parameters.span(name), message, help)])
        };
        match (interval, cron) {
            (Duration::ZERO, "") => {
                let help = "add 'interval: 1s', or 'cron: 30 6 * * *'".to_owned();
                Err(vec![Refusal::of_node("neither 'interval' nor 'cron' is given", help)])
            }
            (interval, "") if interval < Duration::from_millis(1) => {
                let message = format!("interval cannot be {interval:?}");
                refuse("interval", message, "write 1ms or more")
            }
            (interval, "") => Ok(Schedule::Every(interval)),
            (Duration::ZERO, cron) => {
                let name = parameters.text("timezone");
                let Ok(zone) = TimeZone::get(name) else {
                    let message = format!("this system knows no timezone '{name}'");
                    let help = "write UTC, or a name of tzselect(8) and install tzdata";
                    return refuse("timezone", message, help);
                };
                let parsed = CronParser::builder().seconds(Seconds::Optional).build().parse(cron);
                let schedule = parsed.map(|cron| Schedule::At(Box::new(cron), zone));
                match schedule.map_err(|error| error.to_string()) {
                    Ok(schedule) if schedule.after(now).is_some() => Ok(schedule),
                    Ok(_) => refuse("cron", format!("the time '{cron}' never comes"), CRON_HELP),
                    Err(error) => {
                        let error = error.trim_end_matches('.');
                        refuse("cron", format!("cron cannot be '{cron}': {error}"), CRON_HELP)
                    }
                }
            }
            _ => {
                refuse("cron", "both 'interval' and 'cron' are given".into(), "remove one of them")
            }
        }
    }

    /// The first time of day after another; `None` if there is none.
    pub(super) fn after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Every(interval) => time.checked_add(*interval).ok(),
            Schedule::At(cron, zone) => {
                let time: Zoned = time.to_zoned(zone.clone());
                Some(cron.find_next_occurrence(&time, false).ok()?.timestamp())
            }
        }
    }
}

const CRON_HELP: &str = "write minute, hour, day, month, weekday: '30 6 * * MON-FRI'";

/// Waits for the times of a schedule.
pub(super) struct Clock<'a> {
    schedule: &'a Schedule,
    /// For an interval: when it is due next.
    due: Instant,
    /// For cron: the time that was waited for last.
    last: Timestamp,
}

impl<'a> Clock<'a> {
    /// A clock that waits from now on.
    pub(super) fn new(schedule: &'a Schedule) -> Clock<'a> {
        let mut due = Instant::now();
        if let Schedule::Every(interval) = schedule {
            due += *interval;
        }
        Clock { schedule, due, last: Timestamp::now() }
    }

    /// Waits for the next time; returns it, and how many were missed before it. The future may be
    /// dropped and `next` called again without losing a time.
    pub(super) async fn next(&mut self) -> (Timestamp, i64) {
        if let Schedule::Every(interval) = self.schedule {
            sleep_until(self.due).await;
            let lost = whole(self.due.elapsed(), *interval);
            self.due += *interval * (lost as u32 + 1);
            return (Timestamp::now(), lost);
        }
        loop {
            let now = Timestamp::now();
            match due(self.schedule, self.last, now) {
                Due::Now(time, lost) => {
                    self.last = time;
                    return (time, lost);
                }
                Due::In(wait) => sleep(wait.min(LOOK)).await,
            }
            if now.duration_since(self.last) < -SET_BACK_MAX {
                self.last = now;
            }
        }
    }
}

/// How often `interval` fits into `late`.
fn whole(late: Duration, interval: Duration) -> i64 {
    let times = late.as_nanos() / interval.as_nanos().max(1);
    i64::try_from(times).unwrap_or(LOST_MAX).min(LOST_MAX)
}

/// What a look at the time of day finds.
#[derive(Debug, PartialEq)]
enum Due {
    /// This time has come, and this many before it.
    Now(Timestamp, i64),
    /// Nothing is due before this long.
    In(Duration),
}

/// What is due `now`, if `last` was the time before.
fn due(schedule: &Schedule, last: Timestamp, now: Timestamp) -> Due {
    let Some(mut time) = schedule.after(last) else { return Due::In(LOOK) };
    if time > now {
        let wait = time.duration_since(now);
        return Due::In(wait.try_into().unwrap_or(LOOK));
    }
    let mut lost = 0;
    while let Some(next) = schedule.after(time).filter(|next| *next <= now) {
        time = next;
        lost += 1;
        if lost == LOST_MAX {
            time = now;
            break;
        }
    }
    Due::Now(time, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn cron(text: &str, zone: TimeZone) -> Schedule {
        let cron = CronParser::builder().seconds(Seconds::Optional).build().parse(text);
        Schedule::At(Box::new(cron.expect("a pattern")), zone)
    }

    #[test]
    fn the_last_time_that_has_come_is_taken_and_those_before_it_are_counted() {
        let (new_year, jumped) = ("2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        for (pattern, last, now, expected) in [
            // The time has not come yet.
            ("30 6 * * *", new_year, "2026-01-01T06:00:00Z", Due::In(Duration::from_secs(1800))),
            // Some times were missed.
            (
                "*/10 * * * *",
                new_year,
                "2026-01-01T00:35:00Z",
                Due::Now(at("2026-01-01T00:30:00Z"), 2),
            ),
            // A clock that jumps far costs a bounded count.
            ("* * * * * *", jumped, new_year, Due::Now(at(new_year), LOST_MAX)),
            // A clock that is set back a little repeats nothing.
            (
                "0 * * * *",
                "2026-01-01T01:00:00Z",
                "2026-01-01T00:59:00Z",
                Due::In(Duration::from_secs(3660)),
            ),
        ] {
            let schedule = cron(pattern, TimeZone::UTC);
            assert_eq!(due(&schedule, at(last), at(now)), expected, "{pattern}");
        }
    }

    #[test]
    fn summer_time_moves_the_hour_and_not_the_local_time() {
        let Ok(zone) = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3") else { panic!("a zone") };
        let schedule = cron("0 12 * * *", zone);
        let saturday = at("2026-03-28T11:00:00Z");
        assert_eq!(schedule.after(saturday), Some(at("2026-03-29T10:00:00Z")));
    }

    #[test]
    fn intervals_that_were_slept_through_are_counted() {
        let interval = Duration::from_millis(10);
        assert_eq!(whole(Duration::from_millis(9), interval), 0);
        assert_eq!(whole(Duration::from_millis(35), interval), 3);
        assert_eq!(whole(Duration::MAX, interval), LOST_MAX);
    }
}
