//! Levels of what is wrong.

use sinew_control::status::ThreadStatus;

use super::*;

fn domain(state: DomainState, overruns: u64, restarts: u32) -> DomainStatus {
    let thread = ThreadStatus { overruns, ..ThreadStatus::default() };
    let last_reason = Some("why".into());
    DomainStatus { state, restarts, last_reason, threads: vec![thread], ..DomainStatus::default() }
}

#[test]
fn only_what_is_new_is_a_warning() {
    let mut seen = Default::default();
    let mut judge =
        |state, overruns, restarts| judged(&domain(state, overruns, restarts), &mut seen);
    assert_eq!(judge(DomainState::Running, 0, 0), (OK, "running".into()));
    let (level, message) = judge(DomainState::Running, 3, 0);
    assert_eq!((level, message.as_str()), (WARN, "3 overruns since the last diagnosis"));
    assert_eq!(judge(DomainState::Running, 3, 0).0, OK);
    assert_eq!(judge(DomainState::Running, 3, 1), (WARN, "was restarted: why".into()));
    assert_eq!(judge(DomainState::Backoff, 3, 1), (WARN, "backoff: why".into()));
    assert_eq!(judge(DomainState::GivenUp, 3, 1), (ERROR, "given_up: why".into()));
    assert_eq!(judge(DomainState::Faulted, 3, 1).0, ERROR);
}

#[test]
fn a_core_that_has_stopped_is_an_error() {
    let level = |phase| run(&Status { phase, ..Status::default() }).0;
    assert_eq!(level(Phase::Running), OK);
    assert_eq!(level(Phase::Held), ERROR);
    assert_eq!(level(Phase::Starting), WARN);
}
