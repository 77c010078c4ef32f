//! `graphs/apps/batch`, killed at random moments: each line of the file is in the database once, or
//! among the rejects. Two variants of the graph with a mistake show that the comparison can fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{
    Running, SINEW, children, folder, is_alive, ours, send, sinew, skip, wait_until,
};

/// Lines of the file. A debug build needs longer for them than from one checkpoint to the next.
const LINES: u64 = 60_000;
/// Lines for tests in which this does not matter: fewer than the forks that a worker allows.
const FEW: u64 = 5_000;
/// Number of imports that are killed. `SINEW_KILL_ROUNDS=100 cargo test` sets more.
const ROUNDS: u64 = 2;
/// Most kills of one import; after them it may finish.
const KILLS_MAX: u64 = 4;

/// A row: id, customer, amount, day.
type Order = (i64, String, i64, String);

/// The expected result for a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Rejected,
    /// Two lines have the same id: one of them is kept, whichever comes first.
    Either,
}

/// A file of orders in a folder of its own, and the expected results for its lines.
struct Import {
    folder: PathBuf,
    lines: BTreeMap<u64, (Order, Fate)>,
}

impl Import {
    /// The application with edits in its text, and a file with this many lines.
    fn new(name: &str, count: u64, edits: &[(&str, &str)]) -> Import {
        let folder = folder(name);
        let text = fs::read_to_string(ours("graphs/apps/batch/import.yaml")).expect("the graph");
        let text = edits.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "the application has no '{from}' any more");
            text.replace(from, to)
        });
        fs::write(folder.join("import.yaml"), text).expect("a place for it");
        let mut csv = String::from("id,customer,amount_cents,placed\n");
        let mut lines = BTreeMap::new();
        // The header is the first line.
        for number in 2..count + 2 {
            let (id, amount, fate) = match number % 3000 {
                1000 => (number, "a lot".into(), Fate::Rejected),
                2000 => (number, "0".into(), Fate::Rejected),
                2999 => (number, (number * 7).to_string(), Fate::Either),
                0 => (number - 1, (number * 7).to_string(), Fate::Either),
                _ => (number, (number * 7).to_string(), Fate::Kept),
            };
            csv += &format!("{id},\"{number}, \"\"x\"\"\",{amount},2026-03-01\n");
            let customer = format!("{number}, \"x\"");
            let order = (id as i64, customer, number as i64 * 7, "2026-03-01".into());
            lines.insert(number, (order, fate));
        }
        fs::write(folder.join("orders.csv"), csv).expect("a place for it");
        Import { folder, lines }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn start(&self) -> Running {
        let mut command = Command::new(SINEW);
        command.args(["run", "--json"]).arg(self.path("import.yaml"));
        Running::start(command)
    }

    /// Runs it to its end. Returns its report.
    fn end(&self) -> Value {
        self.start().answer().ended_with(0).json()
    }

    fn clear(&self) {
        for entry in fs::read_dir(&self.folder).expect("a folder").flatten() {
            let name = entry.file_name();
            if name != "import.yaml" && name != "orders.csv" {
                fs::remove_file(entry.path()).expect("it is there");
            }
        }
    }

    /// The expected number of rows at the end.
    fn kept(&self) -> usize {
        let of = |fate| self.lines.values().filter(|line| line.1 == fate).count();
        of(Fate::Kept) + of(Fate::Either) / 2
    }

    /// The lines that are lost, and the lines that are there twice.
    fn wrong(&self) -> (Vec<u64>, Vec<u64>) {
        let mut found = BTreeMap::<u64, u64>::new();
        for order in self.rows() {
            let number = order.1.split(',').next().and_then(|number| number.parse().ok());
            let number: u64 = number.expect("a customer begins with his line");
            let (expected, fate) = &self.lines[&number];
            assert!(order == *expected && *fate != Fate::Rejected, "line {number}: {order:?}");
            *found.entry(number).or_default() += 1;
        }
        // A reject may be twice in its file, with the same number.
        for number in self.rejects() {
            assert!(self.lines[&number].1 != Fate::Kept, "line {number} is rejected");
            *found.entry(number).or_default() += 1;
        }
        let all = self.lines.keys().copied();
        let lost = all.clone().filter(|line| !found.contains_key(line)).collect();
        let twice = all.filter(|line| found.get(line).is_some_and(|&count| count > 1)).collect();
        (lost, twice)
    }

    /// The rows, read by an independent reader.
    fn rows(&self) -> Vec<Order> {
        let database = Connection::open(self.path("orders.db")).expect("a database");
        let text = "SELECT id, customer, amount_cents, placed FROM orders";
        let mut statement = database.prepare(text).expect("a table");
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let rows = statement.query_map([], row).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    }

    fn rejects(&self) -> BTreeSet<u64> {
        let text = fs::read_to_string(self.path("orders.rejects")).unwrap_or_default();
        let number = |line: &str| {
            // A kill may have cut a line off. It is written again.
            let reject: Value = serde_json::from_str(line).ok()?;
            reject["number"].as_u64()
        };
        text.lines().filter_map(number).collect()
    }
}

/// What state the kills found.
#[derive(Debug, Default)]
struct Kills {
    supervisor: u64,
    domain: u64,
    /// There were rows, and more were to come.
    in_the_middle: u64,
    /// The next run continued at a checkpoint.
    resumed: u64,
}

/// Runs an import from the start, and kills it at random moments. A whole run takes `lasts`.
fn killed(import: &Import, lasts: Duration, chance: &mut fastrand::Rng, kills: &mut Kills) {
    import.clear();
    // Some kills before the first checkpoint, some after it, but not all after the end.
    let pause = |chance: &mut fastrand::Rng| lasts.mul_f64(chance.f64() / 2.0);
    for _ in 0..KILLS_MAX {
        kills.resumed += u64::from(import.path("orders.checkpoint").exists());
        let running = import.start();
        sleep(pause(chance));
        let domains = children(running.pid());
        if domains.is_empty() && !is_alive(running.pid()) {
            break;
        }
        if domains.is_empty() {
            // The kill would come too early.
            drop(running);
            continue;
        }
        if chance.bool() {
            send(running.pid(), Signal::KILL);
            kills.supervisor += 1;
            running.answer();
        } else {
            // Its supervisor starts it again, and its flow begins again.
            send(domains[0], Signal::KILL);
            kills.domain += 1;
            sleep(pause(chance));
            drop(running);
        }
        let is_there = import.path("orders.db").exists();
        let count = if is_there { row_count(&import.path("orders.db")) } else { 0 };
        kills.in_the_middle += u64::from(count > 0 && count < import.kept());
    }
    let outcome = import.end();
    assert_eq!(outcome["outcome"], "finished", "{outcome}");
    assert_eq!(row_count(&import.path("orders.db")), import.kept());
}

/// How many rows there are; 0 before the table exists.
fn row_count(database: &Path) -> usize {
    let database = Connection::open(database).expect("a database");
    let count = database.query_row("SELECT count(*) FROM orders", [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as usize)
}

/// How long an import takes that is not killed.
fn measured(import: &Import) -> Duration {
    let begun = Instant::now();
    import.end();
    begun.elapsed()
}

#[test]
#[expect(clippy::print_stdout, reason = "what the kills have met is a result")]
fn an_import_that_is_killed_loses_nothing_and_has_nothing_twice() {
    let import = Import::new("import_killed", LINES, &[]);
    let lasts = measured(&import);
    assert_eq!(import.wrong(), (vec![], vec![]), "not even killed");
    let rounds = std::env::var("SINEW_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let seed = fastrand::u64(..);
    let (mut chance, mut kills) = (fastrand::Rng::with_seed(seed), Kills::default());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        killed(&import, lasts, &mut chance, &mut kills);
        assert_eq!(import.wrong(), (vec![], vec![]), "round {round}, seed {seed}: {kills:?}");
    }
    println!("{kills:?}");
    assert!(kills.supervisor + kills.domain > 0, "no kill has landed");
}

/// A table that accepts an order twice, and a statement that inserts it twice.
const WITHOUT_A_KEY: &[(&str, &str)] = &[
    ("id BIGINT PRIMARY KEY,", "id BIGINT NOT NULL,"),
    (
        "ON CONFLICT (id) DO UPDATE SET amount_cents = CASE
        WHEN (orders.customer, orders.amount_cents, orders.placed)
           = (excluded.customer, excluded.amount_cents, excluded.placed)
        THEN orders.amount_cents END
    postgres",
        "\n    postgres",
    ),
];

#[test]
fn without_a_key_a_kill_has_rows_twice() {
    let import = Import::new("import_without_a_key", FEW * 4, WITHOUT_A_KEY);
    let running = import.start();
    let database = import.path("orders.db");
    wait_until("there are rows", || database.exists() && row_count(&database) > 0);
    send(running.pid(), Signal::KILL);
    running.answer();
    assert!(row_count(&database) < LINES as usize, "the kill came too late");
    import.end();
    let (lost, twice) = import.wrong();
    assert!(lost.is_empty() && !twice.is_empty(), "lost {lost:?}, nothing stands twice");
}

#[test]
fn where_a_line_is_answered_before_it_is_kept_a_kill_loses_lines() {
    let forked = "  ports: {out: [{name: later, port: in}]}
- {kind: fork, name: later, ports: {out: [{name: slow, port: in}]}}
- {kind: sleep, name: slow, duration: 5s, ports: {out: [{name: together, port: in}]}}";
    let edits = [("  ports: {out: [{name: together, port: in}]}", forked)];
    let import = Import::new("import_answered_early", FEW, &edits);
    let running = import.start();
    wait_until("there is a checkpoint", || import.path("orders.checkpoint").exists());
    send(running.pid(), Signal::KILL);
    running.answer();
    import.end();
    let (lost, _) = import.wrong();
    assert!(!lost.is_empty(), "nothing is lost");
}

/// Runs the import on a disk of 3 MB, then on the same disk with more room. Prints both statuses.
const SMALL_DISK: &str = r#"
mount -t tmpfs -o size=3m tmpfs small || exit 77
export DATABASE=sqlite://small/orders.db
"$0" run --json import.yaml > first.json; echo $?
mount -o remount,size=64m small
"$0" run --json import.yaml > second.json; echo $?
cp small/orders.db* .
"#;

#[test]
fn an_import_onto_a_full_disk_ends_and_goes_on_where_there_is_room() {
    let import = Import::new("import_full_disk", FEW * 4, &[]);
    fs::create_dir(import.path("small")).expect("a place for it");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", SMALL_DISK, SINEW]).current_dir(&import.folder);
    let answer = Running::start(command).answer();
    if answer.status != Some(0) {
        return skip(&format!("no disk of one's own: {}", answer.err));
    }
    assert_eq!(answer.out, "1\n0\n", "{}", answer.err);
    let first = fs::read_to_string(import.path("first.json")).expect("a report");
    assert!(first.contains("database or disk is full"), "{first}");
    assert_eq!(import.wrong(), (vec![], vec![]));
}

#[test]
fn a_file_that_is_followed_ends_with_its_run() {
    let folder = folder("import_followed");
    let text = "
- {kind: timer, name: t, interval: 1ms, deadline: 1h, ports: {out: [{name: f, port: in}]}}
- kind: file
  name: f
  path: data
  follow: true
  checkpoint: mark
  ports: {out: [{name: o, port: in}]}
- {kind: append, name: o, path: out, as: text}
";
    fs::write(folder.join("graph.yaml"), text).expect("a place for it");
    fs::write(folder.join("data"), "a\n").expect("a place for it");
    let mut command = Command::new(SINEW);
    command.args(["run", "--json"]).arg(folder.join("graph.yaml"));
    let running = Running::start(command);
    let is = |file: &str, expected: &str| {
        fs::read_to_string(folder.join(file)).unwrap_or_default().contains(expected)
    };
    wait_until("the line has come", || is("out", "a\n"));
    fs::write(folder.join("data"), "a\nb\n").expect("a place for it");
    wait_until("the next line has come", || is("out", "a\nb\n"));
    running.signal(Signal::TERM);
    let report = running.answer().ended_with(0).json();
    assert_eq!(report["outcome"], "stopped", "{report}");
    let flow = &report["domains"][0]["nodes"][0]["flow"];
    assert_eq!((&flow["packets"], &flow["errors"]), (&1.into(), &0.into()), "it was not cancelled");
    // The end is saved: the next run reads neither of the lines again.
    assert!(is("mark", "\"offset\":4,"));
}

#[test]
fn an_import_into_a_database_that_is_none_says_so() {
    let import = Import::new("import_no_database", FEW, &[]);
    fs::write(import.path("orders.db"), "no database at all, but long enough to look like one")
        .expect("a place for it");
    let graph = import.path("import.yaml").display().to_string();
    let answer = sinew(["run", "--json", &graph]).ended_with(1);
    assert!(answer.out.contains("not a database"), "{}", answer.out);
    assert!(!import.path("orders.checkpoint").exists());
}
