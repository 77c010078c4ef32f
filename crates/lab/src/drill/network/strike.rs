//! A fault of another host under way: how the drilled host sees that host meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::{HostState, HostStatus};
use sinew_control::{Answer, Request};

use super::{LOOK, Network, Other, Running, row_of};
use crate::drill::fault::DrilledFault;
use crate::drill::outside::{SeenOutside, ask_run};
use crate::drill::seen::SeenHost;

/// Late messages have arrived within this time.
const SETTLES: Duration = Duration::from_millis(500);
/// A host that is not heard within this time is not there; it may have to start first.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// What happens to one of the others.
pub(super) struct Strike {
    pub(super) network: Network,
    pub(super) running: Running,
    pub(super) at: usize,
}

/// How the run sees the other host at a moment.
pub(super) struct Look {
    pub(super) status: HostStatus,
    /// Messages of it that were obeyed so far; `None` if it sends none, or that is not counted.
    pub(super) obeyed: Option<u64>,
}

impl Strike {
    pub(super) fn carry_out(self, fault: DrilledFault) -> SeenOutside {
        let mut seen = SeenOutside::default();
        let (Some(before), Some(row)) = (self.look(), row_of(fault)) else {
            seen.not_shown.push(unseen());
            return seen;
        };
        let mut host = SeenHost::default();
        (row.carry_out)(&self, &mut seen, &mut host);
        thread::sleep(SETTLES);
        let Some(after) = self.look() else {
            seen.not_shown.push(unseen());
            return seen;
        };
        host.count(&before.status, &after.status);
        seen.host = Some(host);
        seen
    }

    pub(super) fn other(&self) -> &Other {
        &self.network.others[self.at]
    }

    /// How the run sees the other host.
    pub(super) fn look(&self) -> Option<Look> {
        let Answer::Status(status) = ask_run(&Request::Status {}).ok()? else { return None };
        let written = |link: &usize| status.links.get(*link).and_then(|link| link.written);
        let obeyed: Option<Vec<u64>> = self.other().carried_on.iter().map(written).collect();
        let obeyed = obeyed.filter(|counts| !counts.is_empty());
        let obeyed = obeyed.map(|counts| counts.into_iter().sum());
        let mut hosts = status.domains.into_iter().flat_map(|domain| domain.hosts);
        let status = hosts.find(|seen| seen.name == self.other().name)?;
        Some(Look { status, obeyed })
    }

    pub(super) fn state(&self) -> Option<HostState> {
        self.look().map(|it| it.status.state)
    }

    /// Looks until the other host is seen in this state; returns after how many ms.
    pub(super) fn await_state(&self, state: HostState, within: Duration) -> Option<u64> {
        self.await_look(within, |seen| seen.status.state == state)
    }

    /// Looks until this is seen; returns after how many ms.
    pub(super) fn await_look(
        &self,
        within: Duration,
        is_it: impl Fn(&Look) -> bool,
    ) -> Option<u64> {
        let begun = Instant::now();
        while !self.look().as_ref().is_some_and(&is_it) {
            if begun.elapsed() > within {
                return None;
            }
            thread::sleep(LOOK);
        }
        u64::try_from(begun.elapsed().as_millis()).ok()
    }

    /// Waits until the other host is heard again.
    pub(super) fn await_heard(&self, seen: &mut SeenOutside, host: &mut SeenHost) {
        match self.await_state(HostState::Heard, HEARD_WITHIN) {
            // Of several times the longest is shown.
            Some(ms) => host.heard_ms = host.heard_ms.max(Some(ms)),
            None => {
                let within_s = HEARD_WITHIN.as_secs();
                let why = format!("the other host was not heard again within {within_s} s");
                seen.failures.push(why);
            }
        }
    }

    /// Whether messages of it are obeyed while nothing happens to it. A host that says something
    /// only now and then may say nothing meanwhile; then nobody expects it to be obeyed later.
    pub(super) fn is_obeyed(&self, seen: &mut SeenOutside) -> bool {
        let before = self.look();
        thread::sleep(SETTLES);
        let Some((before, after)) = before.zip(self.look()) else { return false };
        let is_obeyed = after.obeyed > before.obeyed;
        if !is_obeyed && after.status.late > before.status.late {
            let why = "this machine is too busy: all that comes is late, without a fault";
            seen.not_shown.push(why.into());
        }
        is_obeyed
    }

    /// How many messages of it are obeyed in this time; `None` if that is not known.
    pub(super) fn obeyed_within(&self, time: Duration) -> Option<u64> {
        let obeyed = || self.look().and_then(|it| it.obeyed);
        let before = obeyed();
        thread::sleep(time);
        Some(obeyed()?.saturating_sub(before?))
    }
}

/// Why nothing is known if the run does not show the other host.
pub(super) fn unseen() -> String {
    "the status of the run does not show the other host".into()
}
