//! The verdicts: the source's figures for 200 -> 15 threads beside ours, and how much of them is
//! due to caches, to switching, and to the order of a queue.

use sinew_figures::Interval;

use super::case::{AFTER, Arriving, BEFORE, PoolLoad};
use super::kind::Database;
use crate::bar::Holds;
use crate::report::{Row, Table, Verdict};
use crate::scenario::beside::Judged;

/// The source's figures, after over before: requests a second, P95 and P99. The source rounds its
/// latencies to whole seconds, so a claim about them holds if ours fall as far or farther.
const TPS: f64 = 1.091;
const P95: f64 = 1.0 / 2.0;
const P99: f64 = 1.0 / 3.0;
/// A share of a request's cost that proves no effect of caches: stacks, buffers of the server and
/// the kernel's own lines are a small working set that the control row has too.
const CONTROL_MAX: f64 = 0.02;

/// The costs of a request: the measures of which it is the sum.
const COSTS: [&str; 4] = ["cpu_user", "cpu_system", "cpu_database", "cpu_client"];

/// The rows before and after the change, under one load.
struct Change<'a> {
    load: PoolLoad,
    arriving: Arriving,
    database: Database,
    before: &'a Row,
    after: &'a Row,
}

impl Change<'_> {
    /// A figure of each round, from these measures before and after.
    fn rounds(&self, measures: &[&str], of: impl Fn(&[f64], &[f64]) -> f64) -> Option<Interval> {
        let all = |row: &Row| -> Option<Vec<Vec<f64>>> {
            measures.iter().map(|name| Some(row.measure(name)?.rounds.clone())).collect()
        };
        let (before, after) = (all(self.before)?, all(self.after)?);
        let rounds = before.iter().chain(&after).map(Vec::len).min()?;
        let at = |all: &[Vec<f64>], round: usize| -> Vec<f64> {
            all.iter().map(|values| values[round]).collect()
        };
        let figures = (0..rounds).map(|round| of(&at(&before, round), &at(&after, round)));
        Interval::of(&figures.collect::<Vec<_>>())
    }

    /// Requests a second, after over before.
    fn tps(&self) -> Option<Interval> {
        self.rounds(&["time_per_request"], |before, after| before[0] / after[0])
    }

    /// A latency, after over before.
    fn latency(&self, measure: &str) -> Option<Interval> {
        self.rounds(&[measure], |before, after| after[0] / before[0])
    }

    /// The cost of a request before, over its cost after, all processes together.
    fn cost(&self) -> Option<Interval> {
        let sum = |all: &[f64]| all.iter().sum::<f64>();
        self.rounds(&COSTS, |before, after| sum(before) / sum(after))
    }

    /// What the change saves of one of [`COSTS`], as a share of what a request costs after it.
    fn saved(&self, cost: usize) -> Option<Interval> {
        self.rounds(&COSTS, |before, after| {
            (before[cost] - after[cost]) / after.iter().sum::<f64>()
        })
    }

    /// How much of the fall of a latency remains without the part that throughput explains. With a
    /// fixed number of users the mean latency is their number over requests a second (Little's
    /// law). So the remainder is due to which request waits how long: the order of the queue.
    fn order(&self, measure: &str) -> Option<Interval> {
        self.rounds(&[measure, "time_per_request"], |before, after| {
            (after[0] / before[0]) * (before[1] / after[1])
        })
    }
}

/// The changes that were measured, in the order of loads.
fn changes(rows: &[Row]) -> Vec<Change<'_>> {
    let mut found = Vec::new();
    for &load in PoolLoad::ALL {
        for &arriving in Arriving::ALL {
            for &database in Database::ALL {
                let row = |threads| {
                    let axes = [
                        ("load", load.word()),
                        ("arrivals", arriving.word()),
                        ("threads", threads),
                        ("database", database.word()),
                    ];
                    rows.iter().find(|row| row.is(&axes) && !row.measures.is_empty())
                };
                if let (Some(before), Some(after)) = (row(BEFORE), row(AFTER)) {
                    found.push(Change { load, arriving, database, before, after });
                }
            }
        }
    }
    found
}

/// The change under this load in the closed loop.
fn closed<'a, 'r>(changes: &'a [Change<'r>], load: PoolLoad) -> Option<&'a Change<'r>> {
    changes.iter().find(|it| it.load == load && it.arriving == Arriving::Closed)
}

/// All tables.
pub(super) fn tables(rows: &[Row]) -> Vec<Table> {
    let changes = changes(rows);
    if changes.is_empty() {
        return vec![];
    }
    let axes = |of: &Change<'_>| {
        [of.load.word(), of.arriving.word(), of.database.word()].map(String::from).to_vec()
    };
    let cell = |of: Option<Interval>| of.map_or("-".into(), |of| of.to_string());
    let ratios = changes.iter().map(|of| {
        let is_closed = of.arriving == Arriving::Closed;
        let order = if is_closed { of.order("latency_p95") } else { None };
        let (p95, p99) = (of.latency("latency_p95"), of.latency("latency_p99"));
        [axes(of), [of.tps(), p95, p99, order].map(cell).to_vec()].concat()
    });
    let saved = changes.iter().map(|of| {
        let saved = |cost| of.saved(cost).map_or("-".into(), percent);
        [axes(of), [0, 1, 2, 3].map(saved).to_vec()].concat()
    });
    vec![
        Table::of(
            "from 200 threads to 15, round by round: 15 over 200",
            ["load", "arrivals", "database", "requests/s", "P95", "P99", "P95 beyond requests/s"],
            ratios.collect(),
        ),
        Table::of(
            "from 200 threads to 15, round by round: CPU saved, as a share of a request's cost \
             with 15",
            ["load", "arrivals", "database", "user", "system", "database CPU", "client"],
            saved.collect(),
        ),
    ]
}

/// All verdicts.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let changes = changes(rows);
    let query = closed(&changes, PoolLoad::Query);
    vec![
        Verdict::of(
            "from 200 threads to 15: requests a second",
            "+9.1 %",
            claimed(query.and_then(Change::tps), TPS),
        ),
        Verdict::of(
            "from 200 threads to 15: P95",
            "2 s -> 1 s, a ratio of 0.50 or less",
            claimed(query.and_then(|it| it.latency("latency_p95")), P95),
        ),
        Verdict::of(
            "from 200 threads to 15: P99",
            "3 s -> 1 s, a ratio of 0.33 or less",
            claimed(query.and_then(|it| it.latency("latency_p99")), P99),
        ),
        Verdict::of(
            "the gain comes from caches more than from switches",
            "lost caches are most of the cost of a switch",
            caches(query, closed(&changes, PoolLoad::Control)),
        ),
        Verdict::of(
            "the tails fall because a request costs less",
            "context switching is why P95 and P99 fall",
            query.and_then(tails),
        ),
    ]
}

/// Whether a ratio goes in the same direction as the source's, and as far.
fn claimed(ratio: Option<Interval>, theirs: f64) -> Judged {
    let ratio = ratio?;
    let (is_right, is_reached) = match theirs > 1.0 {
        true => (ratio.low > 1.0, ratio.high >= theirs),
        false => (ratio.high < 1.0, ratio.low <= theirs),
    };
    let holds = match (ratio.differs_from_one(), is_right, is_reached) {
        (false, ..) => Holds::NotDistinguishable,
        (_, false, _) => Holds::No,
        (_, _, true) => Holds::Yes,
        (_, _, false) => Holds::Partly,
    };
    Some((ratio.to_string(), holds))
}

/// Whether more is saved in the server's own code than in the kernel's work for it, and nothing is
/// saved in the server's code if there is no working set.
fn caches(query: Option<&Change<'_>>, control: Option<&Change<'_>>) -> Judged {
    let (query, control) = (query?, control?);
    let (tps, cost) = (query.tps()?, query.cost()?);
    let (user, system, without) = (query.saved(0)?, query.saved(1)?, control.saved(0)?);
    let [user_text, system_text, without_text] = [user, system, without].map(percent);
    let text = format!(
        "requests a second {tps}; CPU per request, 200 over 15: {cost}; of it user (caches) \
         {user_text}, system (switching) {system_text}; user without a working set {without_text}"
    );
    let firm = [tps, user, system, without];
    if without.low > CONTROL_MAX && without.is_firm() {
        let text = format!("the explanation does not hold, the control shows it too: {text}");
        return Some((text, Holds::No));
    }
    let holds = match () {
        () if tps.low <= 1.0 => Holds::NotDistinguishable,
        () if user.high <= 0.0 => Holds::No,
        () if user.low <= 0.0 => Holds::NotDistinguishable,
        () if user.low > system.high => Holds::Yes,
        () if user.high < system.low => Holds::No,
        () => Holds::Partly,
    };
    Some((text, holds.if_firm(&firm)))
}

/// Whether throughput explains more of the fall of P95 than the order of the queue does.
fn tails(query: &Change<'_>) -> Judged {
    let (all, order) = (query.latency("latency_p95")?, query.order("latency_p95")?);
    let tps = query.tps()?;
    let by_cost = 1.0 / tps.median;
    let text = format!(
        "P95 {all}; requests a second explain {by_cost:.2} of it (Little's law), the order of the \
         queue {order}"
    );
    let holds = match () {
        () if !all.differs_from_one() => Holds::NotDistinguishable,
        () if all.low > 1.0 => Holds::No,
        // Both are factors of the fall: the smaller factor is the greater part.
        () if order.high < by_cost => Holds::No,
        () if order.low > by_cost => Holds::Yes,
        () => Holds::Partly,
    };
    Some((text, holds.if_firm(&[all, order])))
}

/// A share in hundredths, with its interval.
fn percent(of: Interval) -> String {
    let Interval { median, low, high, rounds } = of;
    let of = [median, low, high].map(|it| it * 100.0);
    format!("{:.1} %", Interval { median: of[0], low: of[1], high: of[2], rounds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_figures::Distribution;

    /// A row of the closed loop with these values in each of three rounds: time per request,
    /// P95, user and system.
    fn row(load: PoolLoad, threads: &str, values: [f64; 4]) -> Row {
        let axes = [("load", load.word()), ("arrivals", "closed"), ("threads", threads)];
        let mut row = Row::of(&[&axes[..], &[("database", "-")]].concat());
        let [time, p95, user, system] = values;
        for (name, ns) in [
            ("time_per_request", time),
            ("latency_p95", p95),
            ("latency_p99", 1.5 * p95),
            ("cpu_user", user),
            ("cpu_system", system),
            ("cpu_database", 100.0),
            ("cpu_client", 20.0),
        ] {
            for _ in 0..3 {
                row.measure_mut(name).add_round(&Distribution::new(), ns, None);
            }
        }
        row
    }

    /// The verdicts for a query and a control with these values before and after.
    fn judged(query: [[f64; 4]; 2], control: [[f64; 4]; 2]) -> Vec<Holds> {
        let both = |load, [before, after]: [[f64; 4]; 2]| {
            [row(load, BEFORE, before), row(load, AFTER, after)]
        };
        let rows = [both(PoolLoad::Query, query), both(PoolLoad::Control, control)].concat();
        assert_eq!(tables(&rows)[0].rows.len(), 2);
        of(&rows).iter().map(|verdict| verdict.holds).collect()
    }

    const SAME: [[f64; 4]; 2] = [[200.0, 100.0, 300.0, 50.0]; 2];

    #[test]
    fn a_gain_by_caches_alone_is_told_from_one_that_the_control_has_too() {
        let before = [250.0, 200.0, 380.0, 52.0];
        let after = [200.0, 80.0, 300.0, 50.0];
        let found = judged([before, after], SAME);
        assert_eq!(found, [Holds::Yes, Holds::Yes, Holds::Partly, Holds::Yes, Holds::No]);
        let found = judged([before, after], [before, after]);
        assert_eq!(found[3], Holds::No, "the control has a cache part");
        let switching = [250.0, 200.0, 302.0, 130.0];
        assert_eq!(judged([switching, after], SAME)[3], Holds::No);
    }

    #[test]
    fn a_tail_that_throughput_explains_is_no_matter_of_order() {
        let found = judged([[400.0, 200.0, 600.0, 90.0], [200.0, 100.0, 300.0, 50.0]], SAME);
        assert_eq!(found[4], Holds::Yes);
    }

    #[test]
    fn nothing_changes_and_nothing_was_measured() {
        use Holds::{NotDistinguishable, NotMeasured};
        assert_eq!(judged(SAME, SAME), [NotDistinguishable; 5]);
        assert!(of(&[]).iter().all(|verdict| verdict.holds == NotMeasured));
        assert_eq!(tables(&[]), []);
        let worse = [[200.0, 100.0, 300.0, 50.0], [220.0, 130.0, 330.0, 60.0]];
        assert_eq!(judged(worse, SAME)[..3], [Holds::No; 3]);
    }
}
