//! A restart policy at work: what is to become of a service that has ended.

use std::collections::VecDeque;

use sinew_spec::plan::{Restart, RestartPolicy};

/// What is to become of a service that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It comes back after a pause.
    Restart { after_ns: u64 },
    /// It has done its job, or its policy is not to restart it.
    Leave,
    /// It has ended too often.
    GiveUp,
}

/// The lives and restarts of a service so far.
#[derive(Debug)]
pub(crate) struct History {
    /// How often a start of its process was tried.
    pub(super) lives: u32,
    pub(crate) restarts: u32,
    pub(crate) reason: Option<String>,
    policy: Restart,
    /// Times of the restarts within the window, oldest first.
    recent_ns: VecDeque<u64>,
}

impl History {
    pub(super) fn new(policy: Restart) -> History {
        History { lives: 0, restarts: 0, reason: None, policy, recent_ns: VecDeque::new() }
    }

    /// It was started, for the first time or again.
    pub(super) fn started(&mut self) {
        self.restarts += u32::from(self.reason.is_some());
    }

    pub(super) fn ended(&mut self, now_ns: u64, in_order: bool) -> Next {
        let comes_back = match self.policy.policy {
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => !in_order,
            RestartPolicy::Always => true,
        };
        if !comes_back {
            return Next::Leave;
        }
        let since_ns = now_ns.saturating_sub(self.policy.window_ns);
        while self.recent_ns.front().is_some_and(|&at_ns| at_ns < since_ns) {
            self.recent_ns.pop_front();
        }
        if self.recent_ns.len() >= self.policy.restarts_max as usize {
            return Next::GiveUp;
        }
        // Doubling ends at the limit, long before it would overflow.
        let doublings = self.recent_ns.len().min(63) as u32;
        let after_ns = self.policy.backoff_ns.saturating_mul(1 << doublings);
        let after_ns = after_ns.min(self.policy.backoff_max_ns);
        self.recent_ns.push_back(now_ns + after_ns);
        Next::Restart { after_ns }
    }

    /// Somebody wants it back: its earlier ends are forgotten.
    pub(super) fn forget(&mut self) {
        self.recent_ns.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn history(restarts_max: u32) -> History {
        let policy = RestartPolicy::Always;
        let (backoff_ns, backoff_max_ns, window_ns) = (S, 5 * S, 60 * S);
        History::new(Restart { policy, backoff_ns, backoff_max_ns, restarts_max, window_ns })
    }

    #[test]
    fn restarts_before_the_window_do_not_count() {
        let mut history = history(1);
        assert_eq!(history.ended(0, false), Next::Restart { after_ns: S });
        assert_eq!(history.ended(61 * S, false), Next::GiveUp);
        assert_eq!(history.ended(62 * S, false), Next::Restart { after_ns: S });
    }

    #[test]
    fn no_restarts_at_all_is_a_policy_too() {
        assert_eq!(history(0).ended(0, false), Next::GiveUp);
    }
}
