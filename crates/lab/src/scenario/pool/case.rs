//! What is measured: the load, how requests arrive, how many threads serve them, and which database
//! they use.

use std::time::Duration;

use super::kind::Database;
use super::request::{Asked, CONNECTIONS};
use crate::report::{Axis, Row};
use crate::words::words;

/// The axes of the rows.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "load", values: PoolLoad::WORDS },
    Axis { name: "arrivals", values: Arriving::WORDS },
    Axis { name: "threads", values: THREADS },
    Axis { name: "database", values: Database::WORDS },
];

/// Numbers of threads for work that blocks, as words of the axis.
pub(super) const THREADS: &[&str] =
    &["1", "2", "4", "8", "15", "16", "32", "64", "128", "200", "400", AUTO];
/// The word for a pool that finds its own size.
pub(super) const AUTO: &str = "auto";
/// The numbers that the source compares.
pub(super) const BEFORE: &str = "200";
pub(super) const AFTER: &str = "15";

words! {
    /// What is done for a request.
    pub(super) enum PoolLoad {
        /// CPU work over a working set, and a query over ten connections.
        Query = "query",
        /// The same over four connections.
        Query4 = "query_4",
        /// CPU work over a working set, and a sleep of 1 ms.
        Sleep1Ms = "sleep_1ms",
        /// The same with 3 ms.
        Sleep3Ms = "sleep_3ms",
        /// CPU work over a working set.
        Cpu = "cpu",
        /// The same units without a working set: this must show no effect of caches.
        Control = "control",
        /// Several loads one after the other, on one running graph.
        Steps = "steps",
        /// A query that never returns, on every thread: how soon the lab can end the graph.
        Hang = "hang",
    }
}

words! {
    /// When requests arrive.
    pub(super) enum Arriving {
        /// From 400 users, each of whom sends the next request when the answer is there.
        Closed = "closed",
        /// At a fixed rate: 50 % of the rate that 15 threads serve in the closed loop.
        Open50 = "open_50",
        /// 80 %.
        Open80 = "open_80",
        /// 95 %.
        Open95 = "open_95",
    }
}

impl PoolLoad {
    /// The loads by which a pool that finds its own size is judged.
    pub(super) const JUDGED: [PoolLoad; 5] =
        [PoolLoad::Query, PoolLoad::Query4, PoolLoad::Sleep1Ms, PoolLoad::Sleep3Ms, PoolLoad::Cpu];

    /// The order of loads under `steps`.
    pub(super) const STEPS: [PoolLoad; 5] =
        [PoolLoad::Sleep1Ms, PoolLoad::Sleep3Ms, PoolLoad::Cpu, PoolLoad::Query, PoolLoad::Query4];

    /// What each request asks for; for `steps`, one of its loads.
    pub(super) fn asked(self) -> Asked {
        let [ten, four] = CONNECTIONS;
        let with_set = Asked { has_set: true, ..Asked::default() };
        let sleeping = |ms| Asked { sleep: Duration::from_millis(ms), ..with_set };
        match self {
            PoolLoad::Query | PoolLoad::Steps => Asked { connections: Some(ten), ..with_set },
            PoolLoad::Query4 => Asked { connections: Some(four), ..with_set },
            PoolLoad::Sleep1Ms => sleeping(1),
            PoolLoad::Sleep3Ms => sleeping(3),
            PoolLoad::Cpu => with_set,
            PoolLoad::Control => Asked::default(),
            PoolLoad::Hang => Asked { connections: Some(ten), hangs: true, ..Asked::default() },
        }
    }

    /// The database that it uses if all are there.
    fn database(self) -> Database {
        if self.asked().connections.is_some() { Database::Postgres } else { Database::None }
    }
}

impl Arriving {
    /// The share of the closed loop's rate; `None` for the closed loop.
    pub(super) fn share(self) -> Option<f64> {
        match self {
            Arriving::Closed => None,
            Arriving::Open50 => Some(0.5),
            Arriving::Open80 => Some(0.8),
            Arriving::Open95 => Some(0.95),
        }
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolCase {
    pub(super) load: PoolLoad,
    pub(super) arriving: Arriving,
    pub(super) threads: &'static str,
    pub(super) database: Database,
}

/// Rows with the same load and arrivals, one for each number of threads.
type Group = (PoolLoad, Arriving, &'static [&'static str]);

const WHOLE: &[Group] = &[
    (PoolLoad::Query, Arriving::Closed, THREADS),
    (PoolLoad::Query4, Arriving::Closed, THREADS),
    (PoolLoad::Sleep1Ms, Arriving::Closed, THREADS),
    (PoolLoad::Sleep3Ms, Arriving::Closed, THREADS),
    (PoolLoad::Cpu, Arriving::Closed, THREADS),
    (PoolLoad::Control, Arriving::Closed, &["2", AFTER, "64", BEFORE, "400"]),
    (PoolLoad::Query, Arriving::Open50, &["8", AFTER, "64", BEFORE, AUTO]),
    (PoolLoad::Query, Arriving::Open80, &["8", AFTER, "64", BEFORE, AUTO]),
    (PoolLoad::Query, Arriving::Open95, &["8", AFTER, "64", BEFORE, AUTO]),
    (PoolLoad::Steps, Arriving::Closed, &[AUTO]),
    (PoolLoad::Hang, Arriving::Closed, &["2"]),
];
/// The rows of the whole form that use SQLite.
const WITH_SQLITE: Group = (PoolLoad::Query, Arriving::Closed, &["2", "8", AFTER, "64", BEFORE]);
const QUICK: &[Group] = &[
    (PoolLoad::Query, Arriving::Closed, &["2", "8", AFTER, "64", BEFORE, AUTO]),
    (PoolLoad::Control, Arriving::Closed, &[AFTER, BEFORE]),
    (PoolLoad::Query, Arriving::Open80, &[AFTER, BEFORE]),
];

impl PoolCase {
    /// All rows of a form.
    pub(super) fn all(quick: bool) -> Vec<PoolCase> {
        let of = |&(load, arriving, threads): &Group, database| {
            let case = move |&threads| PoolCase { load, arriving, threads, database };
            threads.iter().map(case)
        };
        let groups = if quick { QUICK } else { WHOLE };
        let rows = groups.iter().flat_map(|group| of(group, group.0.database()));
        let more = (!quick).then(|| of(&WITH_SQLITE, Database::Sqlite));
        rows.chain(more.into_iter().flatten()).collect()
    }

    /// Its row in the report.
    pub(super) fn row(&self) -> Row {
        Row::of(&[
            ("load", self.load.word()),
            ("arrivals", self.arriving.word()),
            ("threads", self.threads),
            ("database", self.database.word()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_on_the_axes_and_none_twice() {
        for quick in [false, true] {
            let rows: Vec<_> = PoolCase::all(quick).iter().map(PoolCase::row).collect();
            for row in &rows {
                for (name, value) in &row.axes {
                    let axis = AXES.iter().find(|axis| axis.name == name).expect("an axis");
                    assert!(axis.values.contains(&value.as_str()), "{name}={value}");
                }
                assert_eq!(rows.iter().filter(|other| other.axes == row.axes).count(), 1);
            }
        }
    }
}
