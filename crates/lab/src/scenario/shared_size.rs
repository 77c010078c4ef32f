//! What shared memory between two processes costs by size: on one CPU and on two, copied and in
//! place, beside a table from the literature. The links and their ends are those of the scenario
//! `link`.

mod verdicts;

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_spec::plan::{Delivery, Sync, Transport, Wait};

use super::jung_kim::{PAPER, SIZE_WORDS, SIZES};
use super::link::{Case, Ends, with_link};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::{Access, Cpus, Gone, Placement, What, other_pages, time};
use crate::report::{Axis, Row, ScenarioReport};
use crate::rounds::{Contender, Contenders, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "shared_size",
    about: "shared memory between processes by message size: on one CPU and on two, copied and in \
            place",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

const AXES: &[Axis] = &[
    Axis { name: "access", values: Access::WORDS },
    Axis { name: "wait", values: &["park", "spin_then_park"] },
    Axis { name: "cpus", values: &["one", "two"] },
    Axis { name: "bytes", values: &SIZE_WORDS },
];

/// Rounds, if no other number is requested: enough for an interval without the extremes.
const ROUNDS: u32 = 9;
/// How long a row is measured in each of them.
const SHARE: Duration = Duration::from_millis(100);
/// The same for the short form.
const QUICK_SHARE: Duration = Duration::from_millis(25);
/// Time to start the far side, to warm up, and to end the far side.
const AROUND: Duration = Duration::from_millis(20);

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeCase {
    form: SizeForm,
    bytes: usize,
}

/// A row without its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeForm {
    access: Access,
    /// Whether the sides sleep at once; otherwise they poll for a while before.
    sleeps_at_once: bool,
    on_two: bool,
}

impl SizeForm {
    const fn of(access: Access, sleeps_at_once: bool, on_two: bool) -> SizeForm {
        SizeForm { access, sleeps_at_once, on_two }
    }
}

/// What is measured for each size. On one CPU no side polls for a while: it would keep the CPU from
/// the other side, whose message it waits for.
const FORMS: [SizeForm; 6] = [
    SizeForm::of(Access::Copied, true, false),
    SizeForm::of(Access::InPlace, true, false),
    SizeForm::of(Access::Copied, true, true),
    SizeForm::of(Access::InPlace, true, true),
    SizeForm::of(Access::Copied, false, true),
    SizeForm::of(Access::InPlace, false, true),
];

impl SizeCase {
    /// Its row in the report.
    fn row(self) -> Row {
        let SizeForm { access, sleeps_at_once, on_two } = self.form;
        Row::of(&[
            ("access", access.word()),
            ("wait", if sleeps_at_once { "park" } else { "spin_then_park" }),
            ("cpus", if on_two { "two" } else { "one" }),
            ("bytes", &self.bytes.to_string()),
        ])
    }

    /// Its link.
    fn link(self) -> Case {
        Case {
            transport: Transport::SharedMemory,
            sync: Sync::LockFree,
            delivery: Delivery::Queue,
            wait: if self.form.sleeps_at_once { Wait::Park } else { Wait::SpinThenPark },
            placement: Placement::Processes,
            access: self.form.access,
            bytes: self.bytes as u32,
        }
    }
}

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let cpus = Cpus::ends(&request.cpus).ok_or_else(|| CannotRun("there is no CPU".into()))?;
    let share = if request.quick { QUICK_SHARE } else { SHARE };
    let clock = Clock::calibrate();
    // Rows of the same size are next to each other: ratios are between neighbours.
    let all = SIZES.iter().flat_map(|&bytes| FORMS.map(|form| SizeCase { form, bytes }));
    let contender = |case: SizeCase| {
        let mut row = case.row();
        let lacks_one = case.form.on_two && !cpus.are_two();
        row.skipped = lacks_one.then(|| "it needs two CPUs, and there is one".into());
        let contending = SizeContender { case, cpus, clock, share, rounds: 0 };
        (row, Box::new(contending) as Box<dyn Contender>)
    };
    let rows: Contenders<'_> = all.map(contender).collect();
    let rows = request.only.pick(rows, |(row, _)| &row.axes)?;
    let rounds = request.rounds_or(ROUNDS, ROUNDS);
    let mut report = measure(SCENARIO.name, request.quick, rounds, rows, session);
    report.tables = verdicts::tables(&report.rows);
    report.verdicts = verdicts::of(&report.rows);
    report.notes = NOTES.map(Into::into).to_vec();
    report.notes.push(format!(
        "two CPUs: the near side on CPU {}, the far one on CPU {}; one: both on CPU {}; no \
         realtime priority",
        cpus.near, cpus.far, cpus.near
    ));
    Ok(report)
}

const NOTES: [&str; 5] = [
    "round trip: a message of that size to another process and back, every byte written and read \
     in both directions; copied: through a buffer of the sender and one of the receiver; in place: \
     in the link itself",
    "park: both sides sleep at once when there is no message, on one CPU and on two: so both do \
     the same, except for the CPU of the other side. On one CPU the kernel only switches; on two \
     it must also wake a sleeping CPU",
    "spin_then_park: both sides poll for a while first; on two CPUs only",
    "only one message is on its way at a time, so nothing overlaps: a second CPU cannot work in \
     parallel",
    PAPER,
];

/// A row that is measured.
struct SizeContender {
    case: SizeCase,
    cpus: Cpus,
    clock: Clock,
    share: Duration,
    /// Rounds before this one.
    rounds: usize,
}

impl Contender for SizeContender {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let SizeContender { case, cpus, clock, share, rounds } = self;
        let _pages = other_pages(*rounds).map_err(|Gone(why)| why)?;
        *rounds += 1;
        let far = if case.form.on_two { cpus.far } else { cpus.near };
        let (link, what) = (case.link(), What::RoundTrip);
        let capacity = link.shape(what).capacity;
        let time = |ends: &mut Ends| time(ends, what, capacity, *clock, *share);
        let found = with_link(&link, what, Cpus { far, ..*cpus }, time);
        let found = found.map_err(|Gone(why)| why)?;
        row.measure_mut(what.word()).add_round(&found.values, found.median_ns, None);
        Ok(())
    }

    fn takes(&self) -> Duration {
        self.share + AROUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_on_the_axes_and_none_twice() {
        let all = SIZES.iter().flat_map(|&bytes| FORMS.map(|form| SizeCase { form, bytes }.row()));
        let all: Vec<_> = all.collect();
        for (name, value) in all.iter().flat_map(|row| &row.axes) {
            let axis = AXES.iter().find(|axis| axis.name == name).expect("it is listed");
            assert!(axis.values.contains(&value.as_str()), "{name}={value}");
        }
        let ids: std::collections::BTreeSet<_> = all.iter().map(Row::id).collect();
        assert_eq!(ids.len(), 6 * 16);
    }

    #[test]
    fn on_one_cpu_nobody_polls() {
        assert!(FORMS.iter().all(|form| form.on_two || form.sleeps_at_once));
    }
}
