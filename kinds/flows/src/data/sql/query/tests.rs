//! What queries answer: the same from both databases, and what only one of them can do.

use std::fmt::Write;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::{Either, join, select};
use sinew_flow::{FlowFixture, Reply};
use tempfile::{TempDir, tempdir};
use tokio::time::sleep;

use super::*;
use crate::data::sql::testing::{PASSWORD, Postgres};
use crate::testing::{LIMIT, fixture, refusals, run};

/// A graph with a database and queries, each (name, rest of its node).
fn graph(database: &str, queries: &[(&str, &str)]) -> FlowFixture {
    let mut text = format!("- {{kind: sql, name: db, {database}}}\n");
    for (name, rest) in queries {
        let kind = if rest.contains("kind:") { "" } else { "kind: query, sql: db, " };
        writeln!(text, "- {{name: {name}, {kind}{rest}}}").expect("memory");
        writeln!(
            text,
            "- {{kind: begin, name: {name}_, ports: {{out: [{{name: {name}, port: in}}]}}}}"
        )
        .expect("memory");
    }
    fixture(&text)
}

async fn ask(graph: &FlowFixture, name: &str, packet: Value) -> Reply {
    graph.open(&format!("{name}_"), 0, packet, LIMIT).await
}

fn json(text: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(text).expect("JSON"))
}

fn status(reply: &Reply) -> u16 {
    reply.as_ref().expect_err("an error").status()
}

const TABLES: &str = "migrations: [
    {name: cities, sql: 'CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)'},
    'CREATE TABLE people (id INTEGER PRIMARY KEY, city INTEGER REFERENCES cities (id), \
     age INTEGER CHECK (age >= 0))',
    {sql: {sqlite: 'CREATE TABLE kinds (n INTEGER, f REAL, t TEXT, b BLOB, y BOOLEAN, j JSON, \
     at TIMESTAMP)', postgres: 'CREATE TABLE kinds (n BIGINT, f FLOAT8, t TEXT, b BYTEA, \
     y BOOLEAN, j JSONB, at TIMESTAMPTZ)'}}]";

const QUERIES: &[(&str, &str)] = &[
    (
        "city",
        "rows: none, args: [packet.id, packet.name], text: 'INSERT INTO cities VALUES ($1, $2)'",
    ),
    ("person", "rows: none, args: packet, text: 'INSERT INTO people VALUES ($1, $2, $3)'"),
    ("one", "rows: one, args: [packet], text: 'SELECT * FROM cities WHERE id = $1'"),
    ("any", "rows: one, text: SELECT * FROM cities"),
    ("all", "text: SELECT id FROM cities ORDER BY id"),
    ("few", "rows_max: 1, text: SELECT id FROM cities ORDER BY id"),
    ("large", "size_max: 1KiB, args: [packet], text: 'SELECT CAST($1 AS TEXT) AS t'"),
    ("lines", "rows: stream, text: SELECT id FROM cities ORDER BY id"),
    (
        "keep",
        "rows: one, args: packet, text: 'INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7) \
              RETURNING n, f, t, b, y, j, at'",
    ),
    ("kept", "rows: one, args: [packet], text: 'SELECT * FROM kinds WHERE n = $1'"),
    ("twice", "text: 'SELECT 1 AS a, 2 AS a'"),
    ("wrong", "text: SELECT nothing FROM nowhere"),
];

/// What both databases must answer alike.
fn contract(database: &str) {
    let graph = graph(&format!("{database}, {TABLES}"), QUERIES);
    run(async {
        let city = |id: i64, name: &str| json(&format!("{{\"id\": {id}, \"name\": \"{name}\"}}"));
        assert_eq!(ask(&graph, "city", city(1, "Ulm")).await, Ok(Some(json(r#"{"changed": 1}"#))));
        assert_eq!(status(&ask(&graph, "city", city(2, "Ulm")).await), 409);
        assert_eq!(status(&ask(&graph, "city", city(1, "Bonn")).await), 409);
        let unnamed = json(r#"{"id": 3, "name": null}"#);
        assert_eq!(status(&ask(&graph, "city", unnamed).await), 422);
        assert_eq!(status(&ask(&graph, "person", json("[1, 99, 5]")).await), 422, "no such city");
        assert_eq!(status(&ask(&graph, "person", json("[1, 1, -5]")).await), 422);
        assert!(ask(&graph, "person", json("[1, null, 5]")).await.is_ok());
        let few = ask(&graph, "person", json("[1]")).await;
        assert!(few.as_ref().unwrap_err().text().contains("places for 3 args, and there are 1"));
        // A text that looks like SQL stays a text.
        assert!(ask(&graph, "city", city(2, "'); DROP TABLE cities; --")).await.is_ok());
        assert_eq!(ask(&graph, "one", Value::Integer(1)).await, Ok(Some(city(1, "Ulm"))));
        assert_eq!(status(&ask(&graph, "one", Value::Integer(9)).await), 404);
        assert!(
            ask(&graph, "any", Value::Null).await.unwrap_err().text().contains("more than one")
        );
        let all = Ok(Some(json(r#"[{"id": 1}, {"id": 2}]"#)));
        assert_eq!(ask(&graph, "all", Value::Null).await, all);
        assert!(ask(&graph, "few", Value::Null).await.unwrap_err().text().contains("rows_max"));
        let large = ask(&graph, "large", Value::text("x".repeat(2000))).await;
        assert!(large.unwrap_err().text().contains("size_max"));
        assert!(ask(&graph, "twice", Value::Null).await.unwrap_err().text().contains("name 'a'"));
        assert_eq!(status(&ask(&graph, "wrong", Value::Null).await), 500);
        let lines = ask(&graph, "lines", Value::Null).await;
        let Ok(Some(Value::Stream(lines))) = lines else { panic!("{lines:?}") };
        let parts: Vec<_> = lines.take().expect("not yet taken").collect().await;
        let parts: Vec<u8> = parts.into_iter().flat_map(|part| part.expect("rows")).collect();
        assert_eq!(parts, b"{\"id\":1}\n{\"id\":2}\n");
        types(&graph).await;
    });
}

/// Each sort of value comes back as it was.
async fn types(graph: &FlowFixture) {
    let row = |n: i64, rest: [Value; 6]| {
        let values = [&[Value::Integer(n)], rest.as_slice()].concat();
        let names = ["n", "f", "t", "b", "y", "j", "at"];
        (Value::list(values.clone()), Value::map(names.into_iter().zip(values)))
    };
    let deep = json(r#"{"a": [1, null, {"b": "ü"}]}"#);
    let bytes = Value::Bytes(vec![0, 255, b'\\', b'x'].into());
    let at = Value::text("2026-11-25T16:05:00.25Z");
    let full = [Value::Number(0.1), Value::text("ü\n'"), bytes, Value::Bool(true), deep, at];
    for (packet, expected) in [row(i64::MAX, full), row(-1, Default::default())] {
        let kept = ask(graph, "keep", packet).await.expect("kept").expect("a row");
        let n = expected.field("n").expect("a field");
        assert_eq!(ask(graph, "kept", n).await, Ok(Some(expected.clone())));
        assert_eq!(kept.field("f"), expected.field("f"));
    }
    let whole = Value::list(
        [Value::Number(7.0), Value::Integer(7)].into_iter().chain(vec![Value::Null; 5]),
    );
    assert!(
        ask(graph, "keep", whole).await.is_ok(),
        "a whole number is one, however it is written"
    );
}

/// A transaction is carried out as a whole.
fn transactions(database: &str) {
    let text = format!(
        "
        - {{kind: sql, name: db, {database},
            migrations: ['CREATE TABLE t (n INTEGER PRIMARY KEY)']}}
        - kind: transaction
          name: both
          sql: db
          ports: {{'out[0]': [{{name: put, port: in}}], 'out[1]': [{{name: guard, port: in}}]}}
        - {{kind: query, name: put, sql: db, rows: none, args: ['packet.n'],
            text: 'INSERT INTO t VALUES ($1)', ports: {{out: [{{name: next, port: in}}]}}}}
        - {{kind: snippet, name: next, language: cel, code: values.n}}
        - {{kind: try, name: guard, ports: {{out: [{{name: again, port: in}}],
            error: [{{name: hide, port: in}}]}}}}
        - {{kind: snippet, name: hide, language: text, code: hidden}}
        - {{kind: query, name: again, sql: db, rows: none, args: [packet],
            text: 'INSERT INTO t VALUES ($1)'}}
        - {{kind: set, name: first, values: {{n: '{{{{ packet.next }}}}'}},
            ports: {{out: [{{name: both, port: in}}]}}}}
        - kind: transaction
          name: held
          sql: db
          ports: {{'out[0]': [{{name: again, port: in}}], 'out[1]': [{{name: slow, port: in}}]}}
        - {{kind: sleep, name: slow, duration: 60s}}
        - {{kind: begin, name: held_, ports: {{out: [{{name: held, port: in}}]}}}}
        - {{kind: begin, name: first_, ports: {{out: [{{name: first, port: in}}]}}}}
        - {{kind: query, name: count, sql: db, rows: one, text: SELECT count(*) AS n FROM t}}
        - {{kind: begin, name: count_, ports: {{out: [{{name: count, port: in}}]}}}}
        "
    );
    let graph = fixture(&text);
    run(async {
        let put = |n: i64, next: i64| json(&format!("{{\"n\": {n}, \"next\": {next}}}"));
        let count = |n: i64| Ok(Some(json(&format!("{{\"n\": {n}}}"))));
        assert!(ask(&graph, "first", put(1, 2)).await.is_ok());
        assert_eq!(ask(&graph, "count", Value::Null).await, count(2));
        // The second statement fails, and the graph turns its error into an answer; still nothing
        // stays.
        assert_eq!(status(&ask(&graph, "first", put(3, 1)).await), 409);
        assert_eq!(status(&ask(&graph, "first", put(1, 4)).await), 409);
        assert_eq!(ask(&graph, "count", Value::Null).await, count(2));
        // A flow that is cancelled in the middle leaves nothing, and the connection is free.
        let in_the_middle = async {
            while graph.figures("slow").waiting() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let cut = Box::pin(ask(&graph, "held", Value::Integer(5)));
        let ended = select(cut, Box::pin(timeout(LIMIT, in_the_middle))).await;
        assert!(matches!(&ended, Either::Right((Ok(()), _))), "it waits behind its statement");
        drop(ended);
        assert_eq!(ask(&graph, "count", Value::Null).await, count(2));
    });
}

fn file() -> (TempDir, String) {
    let folder = tempdir().expect("a folder");
    let database = format!("database: 'sqlite://{}'", folder.path().join("a.db").display());
    (folder, database)
}

const MEMORY: &str = "database: 'sqlite://:memory:'";

#[test]
fn sqlite_answers_from_memory_and_from_a_file() {
    let (_folder, file) = file();
    for database in [MEMORY, &file] {
        contract(database);
    }
    let (_folder, file) = self::file();
    transactions(&file);
    transactions(MEMORY);
}

#[test]
fn postgres_answers_as_sqlite_does() {
    let Some(mut server) = Postgres::start() else { return };
    let database = format!("database: '{}'", server.url());
    contract(&database);
    // The database now has the tables of another graph.
    let again = run(ask(
        &graph(&format!("{database}, migrations: [SELECT 1]"), QUERIES),
        "all",
        Value::Null,
    ));
    assert!(again.unwrap_err().text().contains("has changed"));
    postgres_types(&database);
    slow(
        &database,
        "SELECT pg_sleep(60)",
        "SELECT count(*) FROM pg_stat_activity WHERE \
          query LIKE 'SELECT pg_sleep%' AND state = 'active'",
    );
    over_tls(&server);
    over_socket(&server);
    lost(&mut server);
}

#[test]
fn a_transaction_of_postgres_holds_together() {
    let Some(server) = Postgres::start() else { return };
    transactions(&format!("database: '{}'", server.url()));
}

/// Types that SQLite does not have.
fn postgres_types(database: &str) {
    let text = "rows: one, text: \"SELECT 12.50::numeric AS a, DATE '2026-02-28' AS b, \
        TIME '10:30' AS c, NULL::int AS d, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS e, \
        TIMESTAMP '2026-11-25 16:00' AS f, 'infinity'::timestamptz AS g, 'x'::char(3) AS h, \
        7::smallint AS i, 1.5::real AS j\"";
    let range = "text: 'SELECT int4range(1, 2) AS r'";
    let graph = graph(
        database,
        &[
            ("all", text),
            ("range", range),
            ("number", "args: [packet], text: 'SELECT $1::int AS n'"),
        ],
    );
    let expected = json(
        r#"{"a": 12.5, "b": "2026-02-28", "c": "10:30:00", "d": null,
            "e": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "f": "2026-11-25T16:00:00",
            "g": "infinity", "h": "x  ", "i": 7, "j": 1.5}"#,
    );
    assert_eq!(run(ask(&graph, "all", Value::Null)), Ok(Some(expected)));
    let said = run(ask(&graph, "range", Value::Null)).unwrap_err();
    assert!(said.text().contains("column 'r': values of the type int4range"), "{said}");
    let said = run(ask(&graph, "number", Value::text("seven")));
    assert_eq!(status(&said), 422, "{said:?}");
}

/// A statement that does not end is cancelled, at its own deadline or with its flow, and
/// connections are free again. `under_way` is a query for how many are still under way.
fn slow(database: &str, statement: &str, under_way: &str) {
    let node = |rest: &str| format!("{rest}, text: \"{statement}\"");
    let graph = graph(
        &format!("{database}, connections_max: 1, connection_wait_max: 10s"),
        &[
            ("late", &node("deadline: 50ms")),
            ("slow", &node("rows: all")),
            ("quick", "rows: one, text: SELECT 1 AS n"),
            ("left", &format!("rows: one, text: \"{under_way} \"")),
        ],
    );
    run(async {
        assert_eq!(status(&ask(&graph, "late", Value::Null).await), 504);
        let flow = graph.open("slow_", 0, Value::Null, Duration::from_millis(50)).await;
        assert_eq!(status(&flow), 504);
        // Both wait for the one connection, which becomes free.
        let quick =
            join(ask(&graph, "quick", Value::Null), ask(&graph, "quick", Value::Null)).await;
        assert!(quick.0.is_ok() && quick.1.is_ok(), "{quick:?}");
        let begun = Instant::now();
        while let Ok(Some(left)) = ask(&graph, "left", Value::Null).await
            && left != json(r#"{"count": 0}"#)
        {
            assert!(begun.elapsed() < LIMIT, "the statement is still under way: {left:?}");
            sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn a_statement_of_sqlite_that_does_not_end_is_cancelled() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT max(i) FROM n";
    slow(MEMORY, endless, "SELECT 0 AS count");
}

fn over_tls(server: &Postgres) {
    let text = "rows: one, text: SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let database = format!("database: '{}?sslmode=require'", server.url());
    let (ca, node) = (server.ca(), [("is", text)]);
    let trusted = graph(&format!("{database}, ca: '{}'", ca.display()), &node);
    assert_eq!(run(ask(&trusted, "is", Value::Null)), Ok(Some(json(r#"{"ssl": true}"#))));
    let said = run(ask(&graph(&database, &node), "is", Value::Null));
    let said = said.expect_err("browsers do not trust it");
    assert!(said.status() == 503 && said.text().contains("certificate"), "{said}");
    assert!(!said.text().contains(PASSWORD), "{said}");
}

/// A local socket has no TLS, whatever its path is.
fn over_socket(server: &Postgres) {
    let text = "rows: one, text: SELECT inet_client_addr() IS NULL AS here";
    let graph = graph(&format!("database: '{}'", server.socket_url()), &[("is", text)]);
    assert_eq!(run(ask(&graph, "is", Value::Null)), Ok(Some(json(r#"{"here": true}"#))));
}

/// The server goes away in the middle, and comes back.
fn lost(server: &mut Postgres) {
    let nodes =
        [("slow", "text: SELECT pg_sleep(60)"), ("quick", "rows: one, text: SELECT 1 AS n")];
    let graph = graph(&format!("database: '{}'", server.url()), &nodes);
    run(async {
        let cut = ask(&graph, "slow", Value::Null);
        let end = async {
            assert!(ask(&graph, "quick", Value::Null).await.is_ok());
            server.end();
        };
        let (cut, ()) = join(cut, end).await;
        assert_eq!(status(&cut), 503, "{cut:?}");
        // The other connection's process ends when it sees that its server did.
        let begun = Instant::now();
        loop {
            let gone = ask(&graph, "quick", Value::Null).await;
            assert!(begun.elapsed() < LIMIT, "{gone:?}");
            let Err(error) = gone else { continue };
            assert_eq!(error.status(), 503, "{error:?}");
            if error.text().contains("cannot open 'db'") {
                break;
            }
        }
    });
    server.begin();
    assert!(run(ask(&graph, "quick", Value::Null)).is_ok(), "it is reached again");
}

#[test]
fn a_lock_of_another_process_is_awaited_and_then_an_error() {
    let (folder, database) = file();
    let nodes = [
        ("make", "rows: none, text: CREATE TABLE t (n)"),
        ("put", "rows: none, text: INSERT INTO t VALUES (1)"),
    ];
    let graph = graph(&format!("{database}, busy_max: 50ms"), &nodes);
    let other = rusqlite::Connection::open(folder.path().join("a.db")).expect("the file");
    run(async {
        assert!(ask(&graph, "make", Value::Null).await.is_ok());
        other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
        let locked = ask(&graph, "put", Value::Null).await;
        assert!(status(&locked) == 503 && locked.unwrap_err().text().contains("busy_max"));
        other.execute_batch("ROLLBACK").expect("it is ours");
        assert!(ask(&graph, "put", Value::Null).await.is_ok());
    });
}

#[test]
fn a_full_disk_is_an_error_and_what_was_there_stays() {
    let (_folder, database) = file();
    let graph = graph(
        &format!("{database}, connections_max: 1, migrations: ['CREATE TABLE t (n)']"),
        &[
            // Has the same effect as a full disk.
            ("bound", "text: PRAGMA max_page_count = 20"),
            ("put", "rows: none, text: INSERT INTO t VALUES (zeroblob(1000000))"),
            ("count", "rows: one, text: SELECT count(*) AS n FROM t"),
        ],
    );
    run(async {
        assert!(ask(&graph, "bound", Value::Null).await.is_ok());
        let full = ask(&graph, "put", Value::Null).await;
        assert!(status(&full) == 503 && full.unwrap_err().text().contains("no room"));
        assert_eq!(ask(&graph, "count", Value::Null).await, Ok(Some(json(r#"{"n": 0}"#))));
    });
}

#[test]
fn a_stream_of_rows_waits_for_who_takes_them() {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let nodes = [
        ("endless", format!("rows: stream, text: \"{rows}\"")),
        ("quick", "rows: one, text: SELECT 1 AS n".into()),
        ("bad", "rows: stream, text: SELECT nothing".into()),
    ];
    let nodes: Vec<(&str, &str)> =
        nodes.iter().map(|(name, rest)| (*name, rest.as_str())).collect();
    let graph = graph(&format!("{MEMORY}, connection_wait_max: 100ms"), &nodes);
    run(async {
        assert_eq!(status(&ask(&graph, "bad", Value::Null).await), 500, "before any row");
        let endless = ask(&graph, "endless", Value::Null).await;
        let Ok(Some(Value::Stream(endless))) = endless else { panic!("{endless:?}") };
        let mut parts = endless.take().expect("not yet taken");
        for _ in 0..10 {
            assert!(parts.next().await.expect("more").is_ok());
        }
        // The stream keeps the one connection until it is dropped.
        let none = ask(&graph, "quick", Value::Null).await;
        assert!(status(&none) == 503 && none.unwrap_err().text().contains("connections_max"));
        drop(parts);
        assert!(ask(&graph, "quick", Value::Null).await.is_ok());
    });
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (rest, expected) in [
        ("text: 'SELECT $1'", "places for 1 args, and there are 0"),
        ("text: SELECT 1, args: [packet]", "places for 0 args, and there are 1"),
        ("text: 'SELECT {{ packet }}'", "not a template"),
        ("text: ''", "there is no SQL"),
        ("text: {postgres: SELECT 1}", "no text for sqlite"),
        ("text: 'SELECT $1', args: [packet +]", "not an expression"),
    ] {
        let text = format!(
            "- {{kind: query, name: q, sql: db, {rest}}}\n- {{kind: sql, name: db, {MEMORY}}}"
        );
        let said = refusals(&text);
        assert!(said.len() == 1 && said[0].message.contains(expected), "{rest}: {said:?}");
    }
    let nodes = [
        ("q", "text: 'SELECT ?'"),
        ("t", "kind: transaction, sql: db, ports: {'out[0]': [{name: t2, port: in}]}"),
        ("t2", "kind: transaction, sql: db"),
        ("s", "kind: transaction, sql: db, ports: {'out[0]': [{name: lines, port: in}]}"),
        ("lines", "rows: stream, text: SELECT 1 AS n"),
    ];
    let graph = graph(MEMORY, &nodes);
    for (name, expected) in [
        ("q", "'?' is not a placeholder"),
        ("t", "within a transaction"),
        ("s", "would outlive its transaction"),
    ] {
        let said = run(ask(&graph, name, Value::Null)).expect_err(name);
        assert!(said.text().contains(expected), "{said}");
    }
}
