//! What the number of threads for work that blocks costs a service: a graph whose node works,
//! sleeps or asks a database on its domain's pool, under 400 users or at a fixed rate.

mod auto;
mod case;
#[cfg(feature = "sql")]
mod client;
mod connections;
pub(super) mod database;
mod driver;
mod kind;
mod place;
mod request;
mod sizes;
mod verdicts;
#[cfg(not(feature = "sql"))]
mod without;
mod work;

use std::cell::RefCell;
use std::time::Duration;

use self::case::{AXES, PoolCase, PoolLoad};
use self::database::DatabaseServer;
use self::driver::{PoolBench, PoolRun};
use self::kind::Database;
pub(super) use self::kind::NODE;
#[cfg(not(feature = "sql"))]
use self::without as client;
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::graph::Files;
use crate::report::{Row, ScenarioReport};
use crate::rounds::{Contender, Session, measure};

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "pool",
    about: "how the number of threads for blocking work affects a service: throughput, tails, CPU \
            and switches per request, closed and open loop",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

/// Rounds, if no other number is requested, and how long a row is measured in each.
const ROUNDS: u32 = 7;
const SHARE: Duration = Duration::from_secs(3);
/// The same of the short form.
const QUICK_ROUNDS: u32 = 3;
const QUICK_SHARE: Duration = Duration::from_millis(800);

/// The kinds that its graph needs from the program.
const KINDS: [&str; 2] = ["listener", "lab_request"];

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    request.needs(&KINDS, "the flow nodes")?;
    let rows = PoolCase::all(request.quick).into_iter().map(|case| (case, case.row())).collect();
    let mut rows = request.only.pick(rows, |(_, row)| &row.axes)?;
    // This must be done before anything else runs.
    let units = work::calibrate();
    let _files = Files::write().map_err(CannotRun)?;
    let (databases, missing) = databases(&mut rows);
    let kinds = request.kinds.catalogue();
    let bench = PoolBench {
        session,
        cpus: &request.cpus,
        kinds: &kinds,
        share: if request.quick { QUICK_SHARE } else { SHARE },
        units,
        databases,
        rates: RefCell::default(),
        steps: RefCell::default(),
    };
    let contender = |(case, row)| (row, Box::new(PoolRun::new(&bench, case)) as Box<dyn Contender>);
    let contenders = rows.into_iter().map(contender).collect();
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let mut report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    auto::place(&mut report.rows);
    report.tables = verdicts::tables(&report.rows);
    report.tables.extend(auto::tables(&report.rows, &bench.steps.borrow()));
    report.verdicts = verdicts::of(&report.rows);
    report.verdicts.extend(auto::verdicts(&report.rows));
    report.notes = NOTES.map(Into::into).to_vec();
    report.notes.insert(0, format!("a request is {units} units of CPU work in all rows"));
    report.notes.extend(missing);
    Ok(report)
}

const NOTES: [&str; 4] = [
    "a unit is some arithmetic and, except for load 'control', a random line of a working set of \
     256 KiB, one for each thread of the pool; calibrated once so that a request alone takes about \
     300 us",
    "closed: 400 users, each with one request under way; open: requests at a fixed rate, a share \
     of what 15 threads served in the closed loop of the first round; a latency counts from the \
     time at which the request was due",
    "all rows: server, database and load on all CPUs; each round starts a new graph",
    "cpu_user and cpu_system: of the server's process by the kernel's count, in steps of 10 ms; \
     cpu_database: of PostgreSQL's processes; cpu_client: of the thread that makes the load; all \
     per request",
];

/// Starts the databases that the rows use. If PostgreSQL is missing, the rows use SQLite and say
/// so, and there is a note for the report.
type Databases = (Vec<(Database, DatabaseServer)>, Option<String>);

fn databases(rows: &mut Vec<(PoolCase, Row)>) -> Databases {
    let mut found = Vec::new();
    let mut missing = None;
    let asks =
        |rows: &[(PoolCase, Row)], database| rows.iter().any(|(case, _)| case.database == database);
    if asks(rows, Database::Postgres) {
        match DatabaseServer::postgres() {
            Ok(server) => found.push((Database::Postgres, server)),
            Err(why) => {
                on_sqlite(rows, &why);
                missing = Some(format!("without PostgreSQL, on SQLite: {why}"));
            }
        }
    }
    if asks(rows, Database::Sqlite) {
        match DatabaseServer::sqlite() {
            Ok(server) => found.push((Database::Sqlite, server)),
            Err(why) => {
                let ask = |case: &PoolCase| case.database == Database::Sqlite;
                let rows = rows.iter_mut().filter(|(case, _)| ask(case));
                rows.for_each(|(_, row)| row.skipped = Some(why.clone()));
            }
        }
    }
    (found, missing)
}

/// Lets the rows that should use PostgreSQL use SQLite, each row once.
fn on_sqlite(rows: &mut Vec<(PoolCase, Row)>, why: &str) {
    let mut seen = Vec::new();
    rows.retain_mut(|(case, row)| {
        if case.load == PoolLoad::Hang {
            row.skipped = Some(format!("SQLite has no query that never returns: {why}"));
        } else if case.database == Database::Postgres {
            case.database = Database::Sqlite;
            *row = case.row();
            row.notes.push(format!("SQLite instead of PostgreSQL: {why}"));
        }
        let is_new = !seen.contains(case);
        seen.push(*case);
        is_new
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_postgres_each_row_asks_sqlite_once_and_says_why() {
        let mut rows: Vec<_> =
            PoolCase::all(false).into_iter().map(|case| (case, case.row())).collect();
        on_sqlite(&mut rows, "it is not there");
        for (at, (case, row)) in rows.iter().enumerate() {
            if row.skipped.is_some() {
                assert_eq!(case.load, PoolLoad::Hang);
                continue;
            }
            assert_ne!(case.database, Database::Postgres);
            assert!(rows[..at].iter().all(|(other, _)| other != case), "{}", row.id());
            let is_told = row.notes == ["SQLite instead of PostgreSQL: it is not there"];
            assert_eq!(is_told, case.database == Database::Sqlite, "{}", row.id());
        }
    }
}
