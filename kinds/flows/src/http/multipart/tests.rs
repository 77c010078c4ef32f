//! Forms as another library writes them, and broken ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use sinew_flow::FlowFixture;
use tempfile::TempDir;

use super::*;
use crate::testing::{LIMIT, plan, reply, run, table};

/// As urllib3 of Python writes it.
const SENT: &[u8] = b"--7d9f\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\n\
    Gr\xc3\xbc\xc3\x9fe\r\n\
    --7d9f\r\nContent-Disposition: form-data; name=\"tag\"\r\n\r\na\r\n\
    --7d9f\r\nContent-Disposition: form-data; name=\"tag\"\r\n\r\nb\r\n\
    --7d9f\r\nContent-Disposition: form-data; name=\"photo\"; \
    filename=\"../../etc/pass wd.png\"\r\nContent-Type: image/png\r\n\r\n\
    \x89PNG\r\n--x\r\n\r\n\
    --7d9f\r\nContent-Disposition: form-data; name=\"photo\"; \
    filename=\"../../etc/pass wd.png\"\r\nContent-Type: image/png\r\n\r\ntwo\r\n--7d9f--\r\n";

fn packet(body: &'static [u8]) -> Value {
    let content_type = Value::text("multipart/form-data; boundary=7d9f");
    let header = Value::map([("content-type", content_type)]);
    Value::map([("header", header), ("body", Value::Bytes(Bytes::from_static(body)))])
}

fn graph(more: &str) -> String {
    format!(
        "- {{kind: multipart, name: m{more}, ports: {{out: [{{name: a, port: in}}]}}}}\n\
         - {{kind: snippet, name: a, language: cel, code: values.form}}\n"
    )
}

fn status(more: &str, body: &'static [u8]) -> u16 {
    reply(&graph(more), packet(body)).expect_err("an error").status()
}

#[test]
fn fields_and_files_come_apart() {
    let form = reply(&graph(""), packet(SENT)).expect("a reply").expect("a value");
    let fields = form.field("fields").expect("fields").to_json();
    assert_eq!(fields, Ok(json!({"title": "Gr\u{fc}\u{df}e", "tag": ["a", "b"]})));
    let Ok(Value::List(files)) = form.field("files") else { panic!("a list") };
    let bytes = |at: usize| files[at].field("bytes").expect("bytes");
    assert_eq!(bytes(0), Value::Bytes(Bytes::from_static(b"\x89PNG\r\n--x\r\n")));
    assert_eq!(bytes(1), Value::Bytes(Bytes::from_static(b"two")));
    for (name, value) in [("field", "photo"), ("name", "pass wd.png"), ("type", "image/png")] {
        assert_eq!(files[0].field(name), Ok(Value::text(value)));
    }
    assert_eq!(files[1].field("size"), Ok(Value::Integer(3)));
}

#[test]
fn two_files_of_one_name_are_two_and_lie_where_nobody_chose() {
    let place = TempDir::new().expect("a folder");
    let text = "- {kind: begin, name: begin, ports: {out: [{name: m, port: in}]}}\n".to_owned();
    let text = text + &graph(", folder: up, parts_max: 6");
    fs::create_dir(place.path().join("up")).expect("a folder");
    let fixture = FlowFixture::new(&plan(&text), &table(), place.path()).expect("nodes");
    let ask = |body| run(fixture.open("begin", 0, packet(body), LIMIT));
    let form = ask(SENT).expect("a reply").expect("a value");
    let Ok(Value::List(files)) = form.field("files") else { panic!("a list") };
    let mut paths = Vec::new();
    for (file, content) in files.iter().zip([&b"\x89PNG\r\n--x\r\n"[..], b"two"]) {
        let path = file.field("path").expect("a path");
        let path = PathBuf::from(path.as_text().expect("a text"));
        assert_eq!(path.parent(), Some(&*place.path().join("up")));
        assert_eq!(fs::read(&path).expect("a file"), content);
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        paths.push(path);
    }
    assert_ne!(paths[0], paths[1]);
    // A form that breaks off leaves nothing behind.
    assert_eq!(ask(&SENT[..SENT.len() - 8]).expect_err("an end").status(), 400);
    assert_eq!(fs::read_dir(place.path().join("up")).expect("a folder").count(), 2);
    fs::remove_dir_all(place.path().join("up")).expect("gone");
    assert_eq!(ask(SENT).expect_err("no folder").status(), 503);
}

#[test]
fn no_name_leads_anywhere() {
    for (name, safe) in [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:\\a\\b.txt", "b.txt"),
        ("/", "file"),
        ("..", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("a\0b\r\nc<d>\".png", "a_b__c_d__.png"),
        ("\u{202e}gpj.exe", "_gpj.exe"),
        ("Gr\u{fc}\u{df}e.txt", "Gr\u{fc}\u{df}e.txt"),
    ] {
        assert_eq!(safe_name(name), safe, "{name:?}");
    }
    assert_eq!(safe_name(&"x".repeat(1000)).len(), NAME_CHARS_MAX);
}

#[test]
fn too_much_is_413_and_what_is_no_form_400_or_415() {
    assert_eq!(status(", parts_max: 4", SENT), 413);
    let head = b"--7d9f\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    let large = [&head[..], &[b'x'; 2000], b"\r\n--7d9f--\r\n"].concat().leak();
    assert_eq!(status(", part_size_max: 1KiB", large), 413);
    assert_eq!(status(", size_max: 1KiB", large), 413);
    assert!(reply(&graph(", part_size_max: 2KiB"), packet(large)).is_ok());
    for bad in [
        &b""[..],
        b"x",
        b"--7d9f",
        b"--7d9f\r\n\r\nno name\r\n--7d9f--",
        b"--7d9f\r\nContent-Disposition: form-data\r\n\r\nx\r\n--7d9f--\r\n",
        b"--7d9f\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--7d9f--\r\n",
    ] {
        assert_eq!(status("", bad), 400, "{bad:?}");
    }
    let other = Value::map([("header", Value::map([("content-type", Value::text("text/plain"))]))]);
    assert_eq!(reply(&graph(""), other).expect_err("no form").status(), 415);
    assert_eq!(reply(&graph(""), Value::Null).expect_err("no form").status(), 415);
    let refused = crate::testing::refusals(&graph(", folder: /none/there"));
    assert!(refused[0].message.contains("no such folder"), "{refused:?}");
}
