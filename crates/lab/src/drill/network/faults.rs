//! The table of what can happen to another host, or to the line to it.

use sinew_spec::plan::Plan;

use super::strike::Strike;
use super::{lines, programs, strangers};
use crate::drill::fault::DrilledFault;
use crate::drill::line::Condition;
use crate::drill::outside::SeenOutside;
use crate::drill::seen::SeenHost;

/// A fault of another host.
pub(in crate::drill) struct HostFault {
    /// Its name.
    pub(in crate::drill) fault: DrilledFault,
    /// What must be seen, beside a machine that goes on.
    pub(in crate::drill) must: &'static str,
    /// Why it cannot be carried out with two hosts, if so.
    pub(in crate::drill) obstacle: fn(&Pair<'_>) -> Option<&'static str>,
    /// Carries it out, and notes what is seen.
    pub(super) carry_out: fn(&Strike, &mut SeenOutside, &mut SeenHost),
}

const SILENT_AND_HEARD: &str = "that host is told silent, and heard again afterwards";

/// All of them, in the order of lists and reports.
static FAULTS: [HostFault; 11] = [
    HostFault {
        fault: DrilledFault::Cut100,
        must: "that host is heard afterwards",
        obstacle: |_| None,
        carry_out: |it, seen, host| {
            lines::spoil(it, Condition::Cut, Some(lines::SHORT), (seen, host));
        },
    },
    HostFault {
        fault: DrilledFault::Cut2000,
        must: SILENT_AND_HEARD,
        obstacle: |_| None,
        carry_out: |it, seen, host| {
            lines::spoil(it, Condition::Cut, Some(lines::LONG), (seen, host));
        },
    },
    HostFault {
        fault: DrilledFault::Cut,
        must: "that host is told silent, and stays so",
        obstacle: |_| None,
        carry_out: |it, seen, host| lines::spoil(it, Condition::Cut, None, (seen, host)),
    },
    HostFault {
        fault: DrilledFault::Half,
        must: "while nothing comes from there, that host is told silent; while nothing goes there, \
               it is told silent, or all that comes is late; it is heard again afterwards",
        obstacle: |_| None,
        carry_out: lines::half,
    },
    HostFault {
        fault: DrilledFault::Slow,
        must: "that host is heard afterwards",
        obstacle: |_| None,
        carry_out: |it, seen, host| {
            lines::spoil(it, Condition::Slow, Some(lines::SLOW), (seen, host));
        },
    },
    HostFault {
        fault: DrilledFault::HostKilled,
        must: SILENT_AND_HEARD,
        obstacle: |_| None,
        carry_out: programs::kill,
    },
    HostFault {
        fault: DrilledFault::Twin,
        must: "that host is told to be two, what the first says is obeyed meanwhile, and it is \
               heard again afterwards",
        obstacle: meets_no_twin,
        carry_out: programs::twin,
    },
    HostFault {
        fault: DrilledFault::Skew,
        must: "that host is told to run another graph, nothing of it is obeyed meanwhile, and it \
               is heard again afterwards",
        obstacle: has_no_message,
        carry_out: programs::skew,
    },
    HostFault {
        fault: DrilledFault::SentAgain,
        must: "all that was sent again is counted as late or refused",
        obstacle: cannot_be_heard,
        carry_out: |it, seen, _| strangers::send_again(it, seen),
    },
    HostFault {
        fault: DrilledFault::Misplaced,
        must: "all of it is counted as misplaced, and that host stays heard",
        obstacle: has_no_address,
        carry_out: |it, seen, _| strangers::misplace(it, seen),
    },
    HostFault {
        fault: DrilledFault::Stranger,
        must: "all its messages are counted as refused; that host stays heard, most of what it \
               says is obeyed, and after a cut of 2 s meanwhile it is heard again within 2 s",
        obstacle: has_no_address,
        carry_out: strangers::stranger,
    },
];

/// The row of a fault, if it is one of another host.
pub(in crate::drill) fn of(fault: DrilledFault) -> Option<&'static HostFault> {
    FAULTS.iter().find(|row| row.fault == fault)
}

/// All faults in the table.
pub(in crate::drill) fn of_hosts() -> impl Iterator<Item = DrilledFault> {
    FAULTS.iter().map(|row| row.fault)
}

/// The drilled host and another one.
pub(in crate::drill) struct Pair<'a> {
    /// The plan of the drilled host's part.
    pub(in crate::drill) plan: &'a Plan,
    /// The other host: index into the plan's hosts.
    pub(in crate::drill) other: usize,
}

impl Pair<'_> {
    /// Whether the drilled host, and the other one, has an address.
    fn listen(&self) -> [bool; 2] {
        let hosts = &self.plan.hosts;
        let listens = |host: usize| hosts.all[host].address.is_some();
        [hosts.own.is_some_and(listens), listens(self.other)]
    }
}

/// A stranger must hear messages of the other host to this one, and send to both.
fn cannot_be_heard(pair: &Pair<'_>) -> Option<&'static str> {
    let mut links = pair.plan.hosts.links.iter();
    let is_heard = links.any(|link| link.from.host == pair.other);
    (!is_heard || pair.listen() != [true; 2]).then_some(
        "nothing comes from there, or one of the two hosts has no address: to send again, the \
         drill connects to both",
    )
}

/// A stranger must connect to the drilled host.
fn has_no_address(pair: &Pair<'_>) -> Option<&'static str> {
    let [own, _] = pair.listen();
    (!own).then_some("the drilled host has no address, so nobody can connect to it")
}

/// A second program must connect to the drilled host by itself. Of two hosts with addresses that is
/// what the one later in the alphabet does.
fn meets_no_twin(pair: &Pair<'_>) -> Option<&'static str> {
    let hosts = &pair.plan.hosts;
    let name = |host: usize| &hosts.all[host].name;
    let is_later = hosts.own.is_some_and(|own| name(pair.other) > name(own));
    let meets = match pair.listen() {
        [own, false] => own,
        [own, true] => own && is_later,
    };
    (!meets).then_some(
        "the drilled host connects to that host, at its one address, and so meets no second \
         program",
    )
}

/// The version of the links between hosts is changed by a link with messages.
fn has_no_message(pair: &Pair<'_>) -> Option<&'static str> {
    let mut links = pair.plan.hosts.links.iter();
    let has = links.any(|link| [link.from.host, link.to.host].contains(&pair.other));
    (!has).then_some("no messages cross between the two hosts, only packets")
}
