//! Files, parts of them, and names that lead nowhere.

use std::fs::{self, create_dir, write};
use std::os::unix::fs::symlink;
use std::path::Path;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sinew_flow::{Error, FlowFixture, Value};
use tempfile::TempDir;

use crate::testing::{LIMIT, plan, refusals, run, table};

/// A site, and beside it files that must not be served.
fn site() -> TempDir {
    let place = TempDir::new().expect("a folder");
    let at = |name: &str| place.path().join(name);
    for folder in ["www", "www/docs", "www/empty", "www/.git", "wwwsecret"] {
        create_dir(at(folder)).expect("a folder");
    }
    for (name, text) in [
        ("secret.txt", "secret"),
        ("wwwsecret/a.txt", "secret"),
        ("www/.env", "secret"),
        ("www/.git/config", "secret"),
        ("www/index.html", "<h1>home</h1>"),
        ("www/a b%2e.txt", "0123456789"),
        ("www/docs/index.html", "docs"),
        ("www/app.js", "let a;"),
        ("www/none", ""),
    ] {
        write(at(name), text).expect("a file");
    }
    write(at("www/large.bin"), large()).expect("a file");
    for (to, name) in [
        ("../secret.txt", "www/out.txt"),
        ("..", "www/up"),
        ("/", "www/root"),
        ("docs/index.html", "www/in.html"),
        ("loop", "www/loop"),
    ] {
        symlink(to, at(name)).expect("a link");
    }
    place
}

fn large() -> Vec<u8> {
    (0..300_000_u32).map(|n| (n % 251) as u8).collect()
}

struct Site {
    fixture: FlowFixture,
    place: TempDir,
}

struct Answer {
    status: u16,
    header: Value,
    body: Bytes,
    len: Option<u64>,
}

impl Site {
    fn new(more: &str) -> Site {
        let place = site();
        let text = format!(
            "- {{kind: begin, name: begin, ports: {{out: [{{name: s, port: in}}]}}}}\n\
             - {{kind: static, name: s, folder: www{more}}}\n"
        );
        let fixture = FlowFixture::new(&plan(&text), &table(), place.path());
        let fixture = fixture.unwrap_or_else(|refusals| panic!("{refusals:?}"));
        Site { fixture, place }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&'static str, &str)]) -> Answer {
        let headers = headers.iter().map(|(name, value)| (*name, Value::text(*value)));
        let packet = Value::map([
            ("method", Value::text(method)),
            ("path", Value::text(path)),
            ("header", Value::map(headers)),
        ]);
        run(async {
            match self.fixture.open("begin", 0, packet, LIMIT).await {
                Ok(reply) => answer(reply.expect("a value")).await,
                Err(error) => of_error(&error),
            }
        })
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    fn part(&self, path: &str, range: &str) -> (u16, String, Bytes) {
        let answer = self.ask("GET", path, &[("range", range)]);
        (answer.status, answer.header("content-range"), answer.body)
    }
}

async fn answer(value: Value) -> Answer {
    let field = |name| value.field(name).expect("a field");
    let Value::Integer(status) = field("status") else { panic!("no status") };
    let (body, len) = match field("body") {
        Value::Stream(stream) => {
            let parts: Vec<Bytes> =
                stream.take().expect("it was not read").try_collect().await.expect("bytes");
            (parts.concat().into(), stream.known_len())
        }
        Value::Bytes(bytes) => (bytes.clone(), Some(bytes.len() as u64)),
        _ => (Bytes::new(), None),
    };
    Answer { status: status as u16, header: field("header"), body, len }
}

fn of_error(error: &Error) -> Answer {
    let headers = error.headers().iter().map(|(name, value)| (&**name, Value::Text(value.clone())));
    Answer { status: error.status(), header: Value::map(headers), body: Bytes::new(), len: None }
}

impl Answer {
    fn header(&self, name: &str) -> String {
        let value = self.header.field(name).expect("a mapping");
        value.as_text().unwrap_or_default().to_owned()
    }
}

#[test]
fn files_come_with_their_type_and_folders_with_their_index() {
    let site = Site::new("");
    for (path, content_type, body) in [
        ("/", "text/html; charset=utf-8", "<h1>home</h1>"),
        ("/index.html", "text/html; charset=utf-8", "<h1>home</h1>"),
        ("/docs/", "text/html; charset=utf-8", "docs"),
        ("/app.js", "text/javascript; charset=utf-8", "let a;"),
        ("/a%20b%252e.txt", "text/plain; charset=utf-8", "0123456789"),
        ("/in.html", "text/html; charset=utf-8", "docs"),
        ("/none", "application/octet-stream", ""),
    ] {
        let answer = site.get(path);
        assert_eq!((answer.status, &*answer.body), (200, body.as_bytes()), "{path}");
        assert_eq!(answer.header("content-type"), content_type, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let folder = site.get("/docs");
    assert_eq!((folder.status, folder.header("location")), (308, "./docs/".to_owned()));
    let large_one = site.get("/large.bin");
    assert_eq!((large_one.len, &*large_one.body), (Some(300_000), &*large()));
    let head = site.ask("HEAD", "/large.bin", &[("range", "bytes=0-1")]);
    assert_eq!((head.status, head.len), (200, Some(300_000)));
    let posted = site.ask("POST", "/", &[]);
    assert_eq!((posted.status, posted.header("allow")), (405, "GET, HEAD".to_owned()));
    let named = Site::new(", path: packet.header.name");
    let asked = named.ask("GET", "/x", &[("name", "a b%2e.txt")]);
    assert_eq!((asked.status, &*asked.body), (200, &b"0123456789"[..]));
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let (site, plain) = (Site::new(""), Site::new(", path: packet.header.name"));
    for path in [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2E%2E%2Fsecret.txt",
        "/docs/../../secret.txt",
        "/docs/..%2f..%2fsecret.txt",
        "/..\\secret.txt",
        "/%5c..%5csecret.txt",
        "/....//secret.txt",
        "/../wwwsecret/a.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/out.txt",
        "/up/secret.txt",
        "/root/etc/passwd",
        "/loop",
        "/.env",
        "/.git/config",
        "/docs/./index.html",
        "/index.html%00.png",
        "/%ff",
        "/index.html/",
        "/empty",
        "/empty/",
        "/absent",
        "/proc/self/environ",
    ] {
        let answer = site.get(path);
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path}");
        let answer = plain.ask("GET", "/", &[("name", path)]);
        assert_eq!((answer.status, answer.body.len()), (404, 0), "plain {path}");
    }
    let long = "/a".repeat(600);
    assert_eq!(site.get(&long).status, 404);
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let site = Site::new(", cache_control: max-age=60");
    let first = site.get("/index.html");
    let (tag, date) = (first.header("etag"), first.header("last-modified"));
    assert_eq!(first.header("cache-control"), "max-age=60");
    let ask = |headers: &[(&'static str, &str)]| site.ask("GET", "/index.html", headers).status;
    assert!(tag.starts_with('"') && tag.ends_with('"') && !date.is_empty(), "{tag} {date}");
    assert_eq!(ask(&[("if-none-match", &tag)]), 304);
    assert_eq!(ask(&[("if-none-match", &format!("\"x\", W/{tag}"))]), 304);
    assert_eq!(ask(&[("if-none-match", "*")]), 304);
    assert_eq!(ask(&[("if-none-match", "\"x\""), ("if-modified-since", &date)]), 200);
    assert_eq!(ask(&[("if-modified-since", &date)]), 304);
    assert_eq!(ask(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]), 200);
    assert_eq!(ask(&[("if-modified-since", "yesterday")]), 200);
    let unchanged = site.ask("GET", "/index.html", &[("if-none-match", &tag)]);
    assert_eq!((unchanged.header("etag"), unchanged.body.len()), (tag.clone(), 0));
    assert_eq!(unchanged.header("content-type"), "");
    let file = site.place.path().join("www/index.html");
    write(file, "another one").expect("written");
    assert_eq!(ask(&[("if-none-match", &tag)]), 200);
}

/// The ranges of RFC 9110, 14.1.2, of ten bytes.
#[test]
fn a_part_of_a_file_is_answered_as_it_was_asked_for() {
    let site = Site::new("");
    let path = "/a%20b%252e.txt";
    for (range, content_range, body) in [
        ("bytes=0-4", "bytes 0-4/10", "01234"),
        ("bytes=5-9", "bytes 5-9/10", "56789"),
        ("bytes=-3", "bytes 7-9/10", "789"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=0-0", "bytes 0-0/10", "0"),
        ("bytes=8-99", "bytes 8-9/10", "89"),
        ("bytes=-99", "bytes 0-9/10", "0123456789"),
        ("BYTES=9-99999999999999999999999", "bytes 9-9/10", "9"),
    ] {
        let expected = (206, content_range.to_owned(), Bytes::from(body));
        assert_eq!(site.part(path, range), expected, "{range}");
    }
    for range in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
        let expected = (416, "bytes */10".to_owned(), Bytes::new());
        assert_eq!(site.part(path, range), expected, "{range}");
    }
    for range in [
        "bytes=4-2",
        "bytes=0-1,3-4",
        "lines=0-1",
        "bytes=a-b",
        "bytes=",
        "bytes=-",
        "bytes=+1-2",
        "0-1",
    ] {
        let expected = (200, String::new(), Bytes::from("0123456789"));
        assert_eq!(site.part(path, range), expected, "{range}");
    }
    assert_eq!(site.part("/none", "bytes=0-").0, 416);
    let middle = site.part("/large.bin", "bytes=100000-299998");
    assert_eq!((middle.0, &*middle.2), (206, &large()[100_000..299_999]));
    let tag = site.get(path).header("etag");
    let only_if =
        |of: &str| site.ask("GET", path, &[("range", "bytes=0-1"), ("if-range", of)]).status;
    assert_eq!([only_if(&tag), only_if("\"x\""), only_if(&format!("W/{tag}"))], [206, 200, 200]);
    assert_eq!(only_if("Sun, 06 Nov 1994 08:49:37 GMT"), 200);
}

#[test]
fn a_file_that_gets_shorter_ends_in_an_error_and_a_lost_folder_in_404() {
    let site = Site::new("");
    let packet = Value::map([("path", Value::text("/large.bin"))]);
    let folder = site.place.path().join("www");
    let read = run(async {
        let reply = site.fixture.open("begin", 0, packet, LIMIT).await.expect("a reply");
        fs::OpenOptions::new()
            .write(true)
            .open(folder.join("large.bin"))
            .and_then(|file| file.set_len(1000))
            .expect("it is shorter");
        let Ok(Value::Stream(stream)) = reply.expect("a value").field("body") else {
            panic!("no stream")
        };
        stream.take().expect("it was not read").try_collect::<Vec<Bytes>>().await
    });
    assert!(read.is_err(), "{read:?}");
    fs::rename(&folder, folder.with_file_name("gone")).expect("moved");
    assert_eq!(site.get("/index.html").status, 404);
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let refused = |more: &str| refusals(&format!("- {{kind: static, name: s, folder: {more}}}"));
    assert!(refused("/none")[0].message.contains("/none"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(refused(&file.display().to_string())[0].message.contains("Cargo.toml"));
    assert!(refused("/, index: ../a")[0].message.contains("'../a' is not a name"));
    assert!(refused("/, path: '1 +'")[0].message.contains("not an expression"));
}
