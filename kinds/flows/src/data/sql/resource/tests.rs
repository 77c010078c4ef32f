//! Databases at the start of a graph.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use sinew_flow::Value;
use tempfile::tempdir;

use super::*;
use crate::data::sql::testing::{PASSWORD, Postgres};
use crate::testing::{plan, refusals, reply, run};

/// Opens the database of a graph as a run does.
fn open(parameters: &str) -> Result<(), String> {
    let plan = plan(&format!("- {{kind: sql, name: db, {parameters}}}"));
    let made = make(&Parameters::of(&plan, &plan.nodes[0], Path::new(".")));
    let resource = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
    resource.open("db", &Resources::default()).map(drop).map_err(|fault| fault.to_string())
}

fn refused(parameters: &str) -> String {
    let plan = plan(&format!("- {{kind: sql, name: db, {parameters}}}"));
    let made = make(&Parameters::of(&plan, &plan.nodes[0], Path::new(".")));
    let refusals = made.err().expect("a refusal");
    refusals.iter().map(|it| format!("{}; {}\n", it.message, it.help)).collect()
}

#[test]
fn what_is_no_database_is_refused_without_its_password() {
    for (parameters, expected) in [
        ("database: users.db", "not a URL of a database"),
        ("database: 'mysql://ada:hush-hush@h/d'", "write sqlite://users.db"),
        ("database: 'sqlite://'", "no path"),
        ("database: 'sqlite://a?mode=ro'", "no '?'"),
        ("database: 'postgres://ada:hush-hush@/d'", "no host"),
        ("database: 'postgres://ada:hush-hush@h'", "no database"),
        ("database: 'postgres://ada:hush-hush@h:x/d'", "not a URL of PostgreSQL"),
        ("database: 'postgres://ada:hush-hush@h/d?sslmode=hush-hush'", "not a URL of PostgreSQL"),
        ("database: '{{ packet.url }}'", "that no packet changes"),
        ("database: 'postgres://h/d', ca: nowhere.pem", "nowhere.pem"),
        ("database: 'sqlite://a', migrations: nowhere", "nowhere"),
        ("database: 'sqlite://a', migrations: [[]]", "SQL is a text"),
        ("database: 'sqlite://a', migrations: ['']", "there is no SQL"),
        ("database: 'sqlite://a', migrations: [{name: a}]", "has 'sql'"),
        ("database: 'sqlite://a', migrations: [{postgres: a}]", "no key 'postgres'"),
        ("database: 'sqlite://a', migrations: [{sql: {postgres: a}}]", "no text for sqlite"),
        ("database: 'sqlite://a', migrations: [{sql: {oracle: a}}]", "no database 'oracle'"),
    ] {
        let said = refused(parameters);
        assert!(said.contains(expected) && !said.contains(PASSWORD), "{parameters}: {said}");
    }
    let text = "- {kind: query, name: q, sql: bd, text: SELECT 1}\n\
                - {kind: sql, name: db, database: 'sqlite://:memory:'}";
    let dangling = &refusals(text)[0];
    assert!(dangling.message.contains("no node 'bd'") && dangling.help.contains("'db'"));
}

#[test]
fn a_migration_is_applied_once_and_must_not_change() {
    let folder = tempdir().expect("a folder");
    let database = format!("database: 'sqlite://{}'", folder.path().join("a.db").display());
    let begin = |migrations: &str| open(&format!("{database}, migrations: [{migrations}]"));
    let (one, two) =
        ("'CREATE TABLE a (n INTEGER)'", "{name: two, sql: 'INSERT INTO a VALUES (1)'}");
    assert_eq!(begin(one), Ok(()));
    for _ in 0..2 {
        assert_eq!(begin(&format!("{one}, {two}")), Ok(()));
    }
    let changed = begin(&format!("{one}, 'INSERT INTO a VALUES (2)'")).unwrap_err();
    assert!(changed.contains("migration 2 ('two') has changed"), "{changed}");
    let missing = begin(one).unwrap_err();
    assert!(missing.contains("and the graph has 1"), "{missing}");
    // A migration that fails is rolled back, and earlier ones stay.
    let bad = begin(&format!("{one}, {two}, 'CREATE TABLE b (n); SELECT x'")).unwrap_err();
    assert!(bad.contains("migration 'number 3'") && bad.contains("no such column"), "{bad}");
    let graph = format!(
        "- {{kind: query, name: q, sql: db, rows: one, text: \"SELECT count(*) AS n, \
         (SELECT count(*) FROM sqlite_schema WHERE name = 'b') AS b FROM a\"}}\n\
         - {{kind: sql, name: db, {database}}}"
    );
    let row = Value::map([("n", Value::Integer(1)), ("b", Value::Integer(0))]);
    assert_eq!(reply(&graph, Value::Null), Ok(Some(row)));
}

#[test]
fn a_folder_of_migrations_may_have_files_for_one_database() {
    let folder = tempdir().expect("a folder");
    let migrations = folder.path().join("migrations");
    fs::create_dir(&migrations).expect("a folder");
    for (name, text) in [
        ("2.sqlite.sql", "INSERT INTO a VALUES (1)"),
        ("2.postgres.sql", "no SQLite"),
        ("1.sql", "CREATE TABLE a (n)"),
        ("readme.md", "no SQL"),
    ] {
        fs::write(migrations.join(name), text).expect("a file");
    }
    let text = format!("database: 'sqlite://:memory:', migrations: '{}'", migrations.display());
    assert_eq!(open(&text), Ok(()));
    let plan = plan(&format!("- {{kind: sql, name: db, {text}}}"));
    let made = make(&Parameters::of(&plan, &plan.nodes[0], Path::new("."))).expect("made");
    assert_eq!(made.files().len(), 3, "an edit of one of them edits the node");
}

/// Migrates a database in many threads at once, each as a process would.
fn migrate_at_once(database: &str) {
    let text = format!(
        "{database}, wait: 20s, migrations: ['CREATE TABLE at_once (n INTEGER)', \
         'INSERT INTO at_once VALUES (1)']"
    );
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(open(&text), Ok(())));
        }
    });
    let graph = format!(
        "- {{kind: query, name: q, sql: db, rows: one, text: SELECT n FROM at_once}}\n\
         - {{kind: sql, name: db, {database}}}"
    );
    let row = Value::map([("n", Value::Integer(1))]);
    assert_eq!(reply(&graph, Value::Null), Ok(Some(row)), "a second row would be an error");
}

#[test]
fn several_may_start_at_once() {
    let folder = tempdir().expect("a folder");
    migrate_at_once(&format!("database: 'sqlite://{}'", folder.path().join("a.db").display()));
    if let Some(server) = Postgres::start() {
        migrate_at_once(&format!("database: '{}'", server.url()));
    }
}

#[test]
fn what_cannot_be_opened_is_a_fault_of_the_start() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "These are notes and no database. ".repeat(100)).expect("a file");
    for (url, expected) in [
        (format!("sqlite://{}", file.display()), "not a database of SQLite"),
        (format!("sqlite://{}/none/a.db", folder.path().display()), "unable to open"),
        // Nobody listens at port 1.
        ("postgres://ada:hush-hush@127.0.0.1:1/d".into(), "postgres://127.0.0.1:1/d"),
    ] {
        let said = open(&format!("database: '{url}'")).unwrap_err();
        assert!(said.contains(expected) && said.contains("'db'"), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
    let said = open("database: 'postgres://127.0.0.1:1/d', wait: 250ms").unwrap_err();
    assert!(said.contains("refused"), "{said}");
}

#[test]
fn a_database_is_awaited_and_shared() {
    let Some(mut server) = Postgres::start() else { return };
    server.end();
    let url = server.url();
    let waits = thread::spawn(move || open(&format!("database: '{url}', wait: 20s")));
    thread::sleep(LOOK);
    server.begin();
    assert_eq!(waits.join().expect("no panic"), Ok(()));
    // Nodes of all workers, and of an edited graph, share one database.
    let plan = plan("- {kind: sql, name: db, database: 'sqlite://:memory:'}");
    let parameters = Parameters::of(&plan, &plan.nodes[0], Path::new("."));
    let resources = Resources::default();
    let open = || {
        let made = make(&parameters).unwrap_or_else(|refusals| panic!("{refusals:?}"));
        let open = made.open("db", &resources).expect("memory is always there");
        open.downcast::<Database>().expect("a database")
    };
    let (a, b) = (open(), open());
    assert!(Arc::ptr_eq(&a, &b));
    run(a.ready()).expect("memory is always there");
}
