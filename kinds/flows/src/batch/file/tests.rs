//! Files that are read: their elements, errors in them, and where a second flow goes on.

mod bad;
mod follow;

use std::fs;
use std::path::Path;

use sinew_flow::{FlowFixture, Reply, Resources};
use tempfile::{TempDir, tempdir};

use super::records::Records;
use super::*;
use crate::testing::{LIMIT, plan, refusals, run, table};

/// A folder with a file `data` of this content.
fn folder(data: impl AsRef<[u8]>) -> TempDir {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("data"), data).expect("a file");
    folder
}

/// A graph whose elements go to the node `next`.
fn graph(parameters: &str, next: &str) -> String {
    format!(
        "- {{kind: file, name: f, path: data, {parameters}, \
         ports: {{out: [{{name: next, port: in}}]}}}}\n\
         - {{name: next, {next}}}\n"
    )
}

/// The reply of the graph in that folder.
fn reply(folder: &Path, graph: &str) -> Reply {
    let graph =
        format!("- {{kind: begin, name: begin, ports: {{out: [{{name: f, port: in}}]}}}}\n{graph}");
    // Resources as in a run, because 'sinew test' has no checkpoints.
    let resources = Resources::default();
    let made = FlowFixture::with_sites(&plan(&graph), &table(), folder, |_, site| {
        site.resources = resources.clone();
    });
    let fixture = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
    let paths = [("up", "../data"), ("top", "/etc/passwd"), ("two", "data2")];
    let packet = Value::map(paths.map(|(name, path)| (name, Value::text(path))));
    run(fixture.open("begin", 0, packet, LIMIT))
}

fn counts(read: i64, done: i64, rejected: i64) -> Reply {
    let counts = [("read", read), ("done", done), ("rejected", rejected)];
    Ok(Some(Value::map(counts.map(|(name, count)| (name, Value::Integer(count))))))
}

fn manner(format: ElementFormat) -> Manner {
    Manner { format, size_max: 1000, follows: false }
}

/// All records of a file: the line, the value as JSON or its error, and the raw text.
fn records(data: &[u8], format: ElementFormat) -> Result<Vec<(u64, String, String)>, Error> {
    let folder = folder(data);
    let path = folder.path().join("data");
    let mut records = Records::open((&path, "data", 0), manner(format), false)?;
    let mut found = Vec::new();
    let mut places = vec![];
    while let Some(record) = records.next()? {
        let value = record
            .value
            .map_or_else(|error| error.to_string(), |it| it.to_json().expect("JSON").to_string());
        found.push((record.number, String::from_utf8_lossy(&record.raw).into_owned(), value));
        places.push(record.next);
    }
    // From each place, the rest is the same.
    for (at, place) in places.into_iter().enumerate() {
        let mut again = Records::open((&path, "data", 0), manner(format), false)?;
        again.go_to(place)?;
        let next = again.next()?.map(|record| record.number);
        assert_eq!(next, found.get(at + 1).map(|(number, ..)| *number), "after {:?}", found[at]);
    }
    Ok(found)
}

#[test]
fn records_are_what_the_format_says() {
    let one = |number, raw: &str, value: &str| (number, raw.to_owned(), value.to_owned());
    let csv = |has_header| ElementFormat::Csv { has_header, separator: b',' };
    // RFC 4180: quotes, commas and lines in fields, with both ends of lines.
    let text = "\u{feff}a,b\r\n1,\"x, \"\"y\"\"\"\r\n\r\n\"two\nlines\",3\r\n4\r\n5,6";
    assert_eq!(
        records(text.as_bytes(), csv(true)).expect("CSV"),
        [
            one(2, "1,\"x, \"\"y\"\"\"", r#"{"a":"1","b":"x, \"y\""}"#),
            one(4, "\"two\nlines\",3", r#"{"a":"two\nlines","b":"3"}"#),
            one(6, "4", "1 fields, expected 2 as in the header"),
            one(7, "5,6", r#"{"a":"5","b":"6"}"#),
        ]
    );
    assert_eq!(records(b"a,a\n", csv(false)).expect("CSV"), [one(1, "a,a", r#"["a","a"]"#)]);
    assert!(records(b"a,a\n", csv(true)).expect_err("twice").text().contains("'a' twice"));
    assert_eq!(
        records(b"a\r\n\nb\xff\nc", ElementFormat::Lines).expect("lines"),
        [
            one(1, "a", "\"a\""),
            one(2, "", "\"\""),
            one(3, "b\u{fffd}", "invalid utf-8 sequence of 1 bytes from index 1"),
            one(4, "c", "\"c\""),
        ]
    );
    let json = records(b"{\"a\":1}\n\n[}\n2", ElementFormat::Ndjson).expect("lines");
    assert_eq!(json[0], one(1, "{\"a\":1}", "{\"a\":1}"));
    assert!(json[1].2.starts_with("not JSON: ") && json[1].0 == 3, "{json:?}");
    assert_eq!(json[2], one(4, "2", "2"));
    assert_eq!(records(b"", ElementFormat::Lines).expect("nothing"), []);
    assert_eq!(records(b"a\nb", ElementFormat::Whole).expect("all"), [one(1, "a\nb", "\"a\\nb\"")]);
}

#[test]
fn a_record_that_is_too_long_says_where_and_what_to_change() {
    let data = format!("a\n\"{}\n", "x\n".repeat(100_000));
    for (format, line) in
        [(ElementFormat::Csv { has_header: true, separator: b',' }, 2), (ElementFormat::Whole, 1)]
    {
        let error = records(data.as_bytes(), format).expect_err("it is too long");
        let expected = format!("file 'data', line {line}: ");
        assert!(error.text().starts_with(&expected) && error.status() == 413, "{error}");
        assert!(error.text().ends_with("longer than 1000 bytes; raise line_size_max"), "{error}");
    }
    assert!(records(&[b'x'; 1000], ElementFormat::Lines).is_ok());
    assert!(records(&[b'x'; 1001], ElementFormat::Lines).is_err());
}

#[test]
fn elements_are_sent_and_counted_and_those_that_fail_are_rejected() {
    let folder = folder("n\n1\n2\nx\n");
    let next = "kind: snippet, language: cel, code: int(packet.n)";
    let error = reply(folder.path(), &graph("as: csv", next)).expect_err("x is not a number");
    assert!(error.text().starts_with("file 'data', line 4: node 'next'"), "{error}");
    let rejected = "
- kind: file
  name: f
  path: data
  as: csv
  concurrency: 3
  ports: {out: [{name: next, port: in}], rejected: [{name: keep, port: in}]}
- {kind: snippet, name: next, language: cel, code: int(packet.n)}
- {kind: append, name: keep, path: rejects, value: ['{{ packet.number }}', '{{ packet.line }}']}
";
    assert_eq!(reply(folder.path(), rejected), counts(3, 2, 1));
    let kept = fs::read_to_string(folder.path().join("rejects")).expect("rejects");
    assert_eq!(kept, "[4,\"x\"]\n");
    let to_bad = rejected
        .replace("append", "throw")
        .replace(", path: rejects, value: ['{{ packet.number }}', '{{ packet.line }}']", "");
    assert!(reply(folder.path(), &to_bad).is_err(), "nothing is lost where rejects cannot go");
}

#[test]
fn a_path_of_a_packet_stays_in_the_folder_and_a_pattern_means_files_by_name() {
    let folder = folder("a\n");
    fs::write(folder.path().join("data2"), "b\nc").expect("a file");
    let with = |path: &str| {
        let graph =
            graph("as: lines", "kind: nop").replace("path: data", &format!("path: \"{path}\""));
        reply(folder.path(), &graph)
    };
    assert_eq!(with("data*"), counts(3, 3, 0));
    for (path, status) in [
        ("none", 404),
        ("none*", 404),
        (".", 400),
        ("{{ packet.up }}", 400),
        ("{{ packet.top }}", 400),
        ("{{ size(packet) }}", 400),
    ] {
        assert_eq!(with(path).expect_err(path).status(), status, "{path}");
    }
    assert_eq!(with("{{ packet.two }}"), counts(2, 2, 0));
}

/// Reads `data` with the checkpoint `mark`; the element `stop`, if it is there, fails.
fn resumed(folder: &Path) -> Reply {
    let next = "kind: if, when: packet.n == 'stop', ports: {\"out[0]\": [{name: no, port: in}]}";
    let text = graph("as: csv, concurrency: 4, checkpoint: mark", next);
    reply(folder, &format!("{text}- {{kind: throw, name: no}}"))
}

#[test]
fn a_second_flow_goes_on_where_the_first_one_ended() {
    let folder = folder("n\n1\n2\nstop\n4\n");
    let (data, mark) = (folder.path().join("data"), folder.path().join("mark"));
    let error = resumed(folder.path()).expect_err("it is to fail");
    assert!(error.text().contains("line 4"), "{error}");
    let saved = fs::read_to_string(&mark).expect("a checkpoint");
    // The same file, corrected: answered elements are not read again, but they count.
    fs::write(&data, "n\n1\n2\n3333\n4\n5\n").expect("a file");
    assert_eq!(resumed(folder.path()), counts(5, 5, 0));
    assert_eq!(resumed(folder.path()), counts(5, 5, 0), "it is done");
    fs::write(&data, "n\n1\n2\n3333\n4\n5\n6\n").expect("a file");
    assert_eq!(resumed(folder.path()), counts(6, 6, 0), "it has grown");
    // With the old checkpoint, only the elements that it does not count as answered are read.
    fs::write(&mark, saved).expect("a file");
    assert_eq!(resumed(folder.path()), counts(6, 6, 0));
}

#[test]
fn a_checkpoint_of_something_else_is_refused_and_says_what_to_do() {
    let folder = folder("n\n1\n2\n");
    let (data, mark) = (folder.path().join("data"), folder.path().join("mark"));
    assert_eq!(resumed(folder.path()), counts(2, 2, 0));
    let refused = |expected: &str| {
        let error = resumed(folder.path()).expect_err(expected);
        let text = error.text();
        assert!(text.contains(expected) && text.contains("remove it"), "{error}");
    };
    fs::write(&data, "n\n1\n").expect("a file");
    refused("6 bytes of 'data' were read, it has 4");
    fs::write(&data, "n\n7\n2\n8\n").expect("a file");
    refused("begins otherwise");
    fs::write(folder.path().join("new"), "n\n1\n2\n").expect("a file");
    fs::rename(folder.path().join("new"), &data).expect("a file");
    refused("another file");
    fs::write(&mark, "{}").expect("a file");
    refused("not a checkpoint that can be read");
    fs::remove_file(&mark).expect("it is there");
    assert_eq!(resumed(folder.path()), counts(2, 2, 0));
    // While one flow reads it with a checkpoint, no other can.
    let held =
        Records::open((&data, "data", 0), manner(ElementFormat::Lines), true).expect("a file");
    assert_eq!(resumed(folder.path()).expect_err("it is read").status(), 409);
    drop(held);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (parameters, expected) in [
        ("path: 7", "is a text, this is a whole number"),
        ("path: ''", "is a text"),
        ("path: a, separator: ab", "one character"),
        ("path: a, separator: '\"'", "one character"),
        ("path: a, as: whole, follow: true", "cannot be one element"),
        ("path: a, checkpoint: [a]", "a file, or an entry of a store"),
        ("path: a, checkpoint: {store: s}", "a file, or an entry of a store"),
        ("path: a, checkpoint: {store: s, key: packet.file}", "there is no store 's'"),
    ] {
        let refusals = refusals(&format!("- {{kind: file, name: f, {parameters}}}"));
        assert!(refusals[0].message.contains(expected), "{refusals:?}");
    }
}
