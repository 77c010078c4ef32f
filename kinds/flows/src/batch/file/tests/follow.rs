//! A file that is followed: it grows, is moved away or is cut, while a flow reads it and while none
//! does.

use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use tokio::time::sleep;

use super::*;

/// Elements of `data` go to the file `out`.
fn graph(parameters: &str) -> String {
    format!(
        "- {{kind: begin, name: begin, ports: {{out: [{{name: f, port: in}}]}}}}\n\
         - {{kind: file, name: f, path: data, follow: true, {parameters}, \
         ports: {{out: [{{name: out, port: in}}]}}}}\n\
         - {{kind: append, name: out, path: out, as: csv, \
         value: '{{{{ type(packet) == string ? [packet] : packet }}}}'}}"
    )
}

fn fixture(folder: &Path, graph: &str, resources: &Resources) -> FlowFixture {
    let made = FlowFixture::with_sites(&plan(graph), &table(), folder, |_, site| {
        site.resources = resources.clone();
    });
    made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
}

/// Follows the file while `happens` runs; then the flow is cancelled.
fn meanwhile(folder: &Path, parameters: &str, happens: impl AsyncFnOnce()) {
    let fixture = fixture(folder, &graph(parameters), &Resources::default());
    run(async {
        let flow = pin!(fixture.open("begin", 0, Value::Null, LIMIT));
        match select(flow, pin!(happens())).await {
            Either::Left((reply, _)) => panic!("it has ended: {reply:?}"),
            Either::Right(_) => {}
        }
    });
}

/// Waits until these elements have come.
async fn until_out_is(folder: &Path, expected: &str) {
    until(expected, || fs::read_to_string(folder.join("out")).unwrap_or_default() == expected)
        .await;
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT / 2, "waited in vain for {what:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn add(path: &Path, text: &str) {
    let mut file = File::options().append(true).create(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("room on the disk");
}

#[test]
fn what_is_added_comes_as_soon_as_its_line_has_an_end() {
    let folder = folder("a\nb");
    let (path, data) = (folder.path(), folder.path().join("data"));
    meanwhile(path, "as: lines", async || {
        until_out_is(path, "a\n").await;
        add(&data, "c\n");
        until_out_is(path, "a\nbc\n").await;
        add(&data, "d\ne\nf");
        until_out_is(path, "a\nbc\nd\ne\n").await;
    });
}

#[test]
fn a_row_of_csv_waits_for_its_last_quote() {
    let folder = folder("");
    let (path, data) = (folder.path(), folder.path().join("data"));
    meanwhile(path, "as: csv", async || {
        add(&data, "n,");
        sleep(Duration::from_millis(30)).await;
        add(&data, "t\n1,\"x\n");
        sleep(Duration::from_millis(30)).await;
        add(&data, "y\"\r\n2,z\r\n");
        until_out_is(path, "1,\"x\ny\"\n2,z\n").await;
    });
}

#[test]
fn a_file_that_is_moved_away_is_read_to_its_end_and_then_the_new_one() {
    let folder = folder("n\n1\n");
    let (path, data) = (folder.path(), folder.path().join("data"));
    meanwhile(path, "as: csv, checkpoint: mark", async || {
        until_out_is(path, "1\n").await;
        fs::rename(&data, path.join("data.1")).expect("a file");
        // The writer does not know yet that the file was moved.
        add(&path.join("data.1"), "2\n");
        until_out_is(path, "1\n2\n").await;
        add(&data, "n\n4\n");
        // A last line without an end is a line, once nothing more can come.
        add(&path.join("data.1"), "3");
        until_out_is(path, "1\n2\n3\n4\n").await;
        add(&data, "5\n");
        until_out_is(path, "1\n2\n3\n4\n5\n").await;
    });
}

#[test]
fn a_file_that_is_cut_is_read_from_its_beginning() {
    let folder = folder("first\n");
    let (path, data) = (folder.path(), folder.path().join("data"));
    meanwhile(path, "as: lines", async || {
        until_out_is(path, "first\n").await;
        fs::write(&data, "").expect("a file");
        add(&data, "2\n");
        until_out_is(path, "first\n2\n").await;
        // The same length as before, but other text.
        fs::write(&data, "3\n4\n5\n").expect("a file");
        until_out_is(path, "first\n2\n3\n4\n5\n").await;
    });
}

/// Follows the file until `expected` has come and the checkpoint says `offset`.
fn resumed(folder: &Path, expected: &str, offset: &str) {
    let _ = fs::remove_file(folder.join("out"));
    meanwhile(folder, "as: lines, checkpoint: mark", async || {
        until_out_is(folder, expected).await;
        let mark = || fs::read_to_string(folder.join("mark")).unwrap_or_default();
        until("the checkpoint", || mark().contains(&format!("\"offset\":{offset},"))).await;
    });
}

#[test]
fn what_was_rotated_while_nobody_read_is_found_again() {
    let folder = folder("a\nb\n");
    let (path, data) = (folder.path(), folder.path().join("data"));
    // Nothing comes after `a` and `b`, and the checkpoint says that they are answered.
    resumed(path, "a\nb\n", "4");
    add(&data, "c\n");
    fs::rename(&data, path.join("data.1")).expect("a file");
    fs::write(&data, "dd\n").expect("a file");
    resumed(path, "c\ndd\n", "3");
    // The old file is gone: the new one is read from its beginning.
    fs::remove_file(&data).expect("a file");
    fs::write(&data, "e\n").expect("a file");
    resumed(path, "e\n", "2");
    // The file was cut.
    fs::write(&data, "f\ng\n").expect("a file");
    resumed(path, "f\ng\n", "4");
}

#[test]
fn an_element_that_fails_ends_it_and_so_does_its_deadline() {
    let folder = folder("a\n");
    let wrong = graph("as: lines").replace("type(packet) == string ? [packet] : packet", "7");
    let with = |graph: &str| fixture(folder.path(), graph, &Resources::default());
    let error = run(with(&wrong).open("begin", 0, Value::Null, LIMIT)).expect_err("a row of what?");
    assert!(error.text().starts_with("file 'data', line 1: "), "{error}");
    let fixture = with(&graph("as: lines"));
    let late = run(fixture.open("begin", 0, Value::Null, Duration::from_millis(50)));
    assert_eq!(late.expect_err("more may come").status(), 504);
}

#[test]
fn a_checkpoint_in_a_store_is_that_of_its_key() {
    let folder = folder("a\nb\n");
    let (path, data) = (folder.path(), folder.path().join("data"));
    let text = "- {kind: begin, name: begin, ports: {out: [{name: f, port: in}]}}
- kind: file
  name: f
  path: data
  checkpoint: {store: s, key: packet.two}
- {kind: store, name: s}";
    let fixture = fixture(path, text, &Resources::default());
    let reply = |key: &'static str| {
        let packet = Value::map([("two", Value::text(key))]);
        run(fixture.open("begin", 0, packet, LIMIT))
    };
    assert_eq!(reply("x"), counts(2, 2, 0));
    add(&data, "c\n");
    assert_eq!(reply("x"), counts(3, 3, 0), "it goes on");
    assert_eq!(reply("y"), counts(3, 3, 0), "another one begins");
    fs::write(&data, "a\n").expect("a file");
    let error = reply("x").expect_err("it is shorter");
    assert!(error.status() == 409 && error.text().contains("'x (in its store)'"), "{error}");
}
