//! Faults of the program of another host: it is killed, runs twice, or runs another graph.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use sinew_control::status::HostState;

use super::copy::{self, EditedCopy};
use super::strike::Strike;
use super::{end, held};
use crate::drill::outside::SeenOutside;
use crate::drill::seen::SeenHost;
use crate::harness::process::Killed;

/// A host that was killed is told silent within this time.
const SILENT_WITHIN: Duration = Duration::from_secs(4);
/// A program has started, and is told, within this time.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// How long two programs of one host run side by side, and how long one runs another graph.
const BESIDE: Duration = Duration::from_secs(3);

/// Kills the other host and all that it has started, and starts it again.
pub(super) fn kill(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let Some(mut killed) = take(it, seen) else { return };
    // If it has ended by itself, this fails and there is no proof.
    let _ = killed.0.kill();
    let status = killed.0.wait().ok().and_then(|status| status.signal());
    seen.proof = status.map(|signal| format!("its run was ended by signal {signal}"));
    host.silent_ms = it.await_state(HostState::Silent, SILENT_WITHIN);
    if host.silent_ms.is_none() {
        seen.failures.push("the run did not report that the other host is silent".into());
    }
    start_again(it, seen);
    it.await_heard(seen, host);
}

/// Starts a second program with its name beside it, and ends that again.
pub(super) fn twin(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let is_obeyed = it.is_obeyed(seen);
    let mut second = match it.network.start_second(it.at) {
        Ok(second) => second,
        Err(error) => return seen.not_shown.push(format!("no second program: {error}")),
    };
    let told_ms = it.await_state(HostState::Two, STARTS_WITHIN);
    let obeyed = it.obeyed_within(BESIDE);
    let state = it.state();
    if let Some(why) = ended(&mut second) {
        return seen.not_shown.push(format!("the second program {why}"));
    }
    seen.proof = Some(match told_ms {
        Some(ms) => format!("a second program with its name ran, and was told after {ms} ms"),
        None => "a second program with its name ran".into(),
    });
    end(vec![second]);
    match state {
        _ if told_ms.is_none() => {
            seen.failures.push("the run did not report that two programs have its name".into());
        }
        Some(HostState::Two) => {}
        _ => {
            let state = state.map_or("not shown".into(), |state| state.to_string());
            seen.failures.push(format!("beside a second program the other host is {state}"));
        }
    }
    it.await_heard(seen, host);
    // Unless nothing is obeyed without a second program either: on a machine that is too busy.
    if is_obeyed && obeyed == Some(0) && it.is_obeyed(seen) {
        seen.failures.push("beside a second program nothing of the first was obeyed".into());
    }
}

/// Has it run a graph with other links between hosts for a while.
pub(super) fn skew(it: &Strike, seen: &mut SeenOutside, host: &mut SeenHost) {
    let copy = match edited(&it.network.file, it) {
        Ok(copy) => copy,
        Err(why) => return seen.void = Some(why),
    };
    let Some(first) = take(it, seen) else { return };
    end(vec![first]);
    let settings = it.network.settings_of(it.at, it.other().listens);
    let mut skewed = match it.network.start_with(it.at, copy.file(), &settings) {
        Ok(skewed) => skewed,
        Err(error) => return seen.not_shown.push(format!("it could not be started: {error}")),
    };
    let told_ms = it.await_state(HostState::OtherGraph, STARTS_WITHIN);
    let obeyed = it.obeyed_within(BESIDE);
    let state = it.state();
    match (ended(&mut skewed), told_ms) {
        (Some(why), _) => seen.not_shown.push(format!("with another graph its run {why}")),
        (None, told_ms) => {
            let after = told_ms.map(|ms| format!(", and was told after {ms} ms"));
            let after = after.unwrap_or_default();
            seen.proof = Some(format!("it ran a graph with other links between hosts{after}"));
            if told_ms.is_none() || state != Some(HostState::OtherGraph) {
                seen.failures.push("the run did not report that it runs another graph".into());
            }
        }
    }
    if let Some(n @ 1..) = obeyed {
        seen.failures.push(format!("{n} messages of another graph were obeyed"));
    }
    end(vec![skewed]);
    start_again(it, seen);
    it.await_heard(seen, host);
}

/// A copy of the graph with other links between hosts.
fn edited(file: &Path, it: &Strike) -> Result<EditedCopy, String> {
    let cannot = |error| format!("no copy of the graph can be written: {error}");
    let text = fs::read_to_string(file).map_err(cannot)?;
    let other = copy::of_another_version(&text, &it.other().links)?;
    EditedCopy::write(file, &other).map_err(cannot)
}

/// Its process.
fn take(it: &Strike, seen: &mut SeenOutside) -> Option<Killed> {
    let taken = held(&it.running)[it.at].take();
    if taken.is_none() {
        seen.not_shown.push("it does not run".into());
    }
    taken
}

fn start_again(it: &Strike, seen: &mut SeenOutside) {
    match it.network.start_one(it.at) {
        Ok(started) => held(&it.running)[it.at] = Some(started),
        Err(error) => seen.not_shown.push(format!("it could not be started again: {error}")),
    }
}

/// How a program has ended, if it has.
fn ended(program: &mut Killed) -> Option<String> {
    let status = program.0.try_wait().ok().flatten()?;
    Some(format!("has ended by itself with {status}"))
}
