//! Requests that are passed on to one server or several, as they came.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use sinew_core::sys::end_with_parent;

use super::*;
use crate::testing::python;

/// A request as a mapping.
fn request(path: &str) -> Value {
    Value::from(json!({
        "method": "PUT", "path": path, "scheme": "https", "host": "shop.example",
        "remote": "10.1.2.3:456", "query": {"a": "1 2"}, "body": "hello",
        "header": {
            "x-it": "1", "connection": "close, X-Hop", "x-hop": "2", "host": "shop.example",
            "content-type": "text/x-odd", "x-forwarded-for": "6.6.6.6",
            "x-forwarded-host": "evil.example", "transfer-encoding": "chunked", "te": "trailers",
        },
    }))
}

async fn passed(parameters: &str, packet: Value) -> serde_json::Value {
    let answer = ask(&fixture(&graph(parameters)), packet).await;
    let answer = answer.expect("an answer").expect("a value");
    let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
    let parts: Vec<Bytes> =
        stream.take().expect("once").map(|part| part.expect("a part")).collect().await;
    serde_json::from_slice(&parts.concat()).expect("JSON")
}

#[test]
fn what_comes_goes_on_without_what_is_of_its_connection() {
    run(async {
        let server = Server::start(echo).await;
        let place = format!("url: 'http://{}/base/', proxy: true", server.address);
        let said = passed(&place, request("/x%2Fy")).await;
        assert_eq!(said["method"], "PUT");
        assert_eq!(said["target"], "/base/x%2Fy?a=1%202");
        assert_eq!(said["body"], "hello");
        let header = &said["header"];
        for (name, value) in [
            ("x-it", json!("1")),
            ("content-type", json!("text/x-odd")),
            ("host", json!(server.address.to_string())),
            ("x-forwarded-for", json!("10.1.2.3")),
            ("x-forwarded-proto", json!("https")),
            ("x-forwarded-host", json!("shop.example")),
        ] {
            assert_eq!(header[name], value, "{name}: {header}");
        }
        for name in ["x-hop", "te", "transfer-encoding", "connection"] {
            assert_eq!(header.get(name), None, "{name}: {header}");
        }
        let more = place.clone() + ", forwarded: append, header: {x-it: '2', x-key: k}";
        let header = passed(&more, request("/")).await["header"].clone();
        assert_eq!((&header["x-it"], &header["x-key"]), (&json!("2"), &json!("k")));
        assert_eq!(header["x-forwarded-for"], "6.6.6.6, 10.1.2.3");
        assert_eq!(header["x-forwarded-host"], "evil.example");
        let header = passed(&(place + ", forwarded: keep"), request("/")).await["header"].clone();
        assert_eq!(header["x-forwarded-for"], "6.6.6.6");
        assert_eq!(header.get("x-forwarded-proto"), None);
    });
}

#[test]
fn no_path_leads_out_of_its_place() {
    run(async {
        let server = Server::start(echo).await;
        let place = format!("url: 'http://{}/base', proxy: true", server.address);
        for path in ["/../a", "/a/..", "/%2e%2E/a", "/a/./b", "/.%2e", "/..\\a"] {
            let error = ask(&fixture(&graph(&place)), request(path)).await.expect_err(path);
            assert_eq!(error.status(), 400, "{path}: {error}");
        }
        for path in ["/a..b", "/...", "/.well-known/x"] {
            assert_eq!(
                passed(&place, request(path)).await["target"],
                format!("/base{path}?a=1%202")
            );
        }
        for path in ["@evil.example/", ".evil.example/", "*", "a"] {
            let place = place.replace("/base", "");
            let error = ask(&fixture(&graph(&place)), request(path)).await.expect_err(path);
            assert_eq!(error.status(), 400, "{path}: {error}");
        }
    });
}

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").to_string()
}

#[test]
fn several_are_asked_in_turn_and_who_is_not_there_is_left_out() {
    run(async {
        let (one, two) = (Server::start(echo).await, Server::start(echo).await);
        let gone = nobody();
        let places = format!("[http://{}, http://{gone}, http://{}]", one.address, two.address);
        let graph = graph(&format!("targets: {places}, url: '/x/{{{{ packet }}}}', rest: 1h"));
        let fixture = fixture(&graph);
        let mut hosts = Vec::new();
        for at in 0..12 {
            let answer = ask(&fixture, Value::Integer(at)).await.expect("an answer");
            let said = body(&answer.expect("a value"));
            assert_eq!(said["target"], format!("/x/{at}"));
            hosts.push(said["header"]["host"].as_str().expect("a text").to_owned());
        }
        for server in [&one, &two] {
            let own = server.address.to_string();
            let count = hosts.iter().filter(|host| **host == own).count();
            assert!((4..=8).contains(&count), "{hosts:?}");
        }
        assert_eq!(fixture.figures("http").errors(), 0, "another one was asked");
    });
}

#[test]
fn without_any_left_the_answer_is_503_and_says_when_to_come_back() {
    run(async {
        let graph =
            graph(&format!("targets: [http://{}, http://{}], rest: 1h", nobody(), nobody()));
        let fixture = fixture(&graph);
        let first = ask(&fixture, Value::Null).await.expect_err("nobody");
        assert_eq!(first.status(), 502, "{first}");
        let then = ask(&fixture, Value::Null).await.expect_err("nobody");
        assert_eq!(then.status(), 503, "{then}");
        let (name, after) = &then.headers()[0];
        assert_eq!(&**name, "retry-after");
        assert!((3590..=3600).contains(&after.parse().expect("seconds")), "{after}");
        assert_eq!(fixture.figures("http").errors(), 2);
    });
}

#[test]
fn a_target_that_is_ill_gets_no_requests_until_it_is_well() {
    run(async {
        let ill = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let said = Arc::clone(&ill);
        let server = Server::start(move |request| {
            let is_ill = said.load(std::sync::atomic::Ordering::Relaxed);
            async move {
                match request.uri().path() {
                    "/health" if is_ill => text(StatusCode::INTERNAL_SERVER_ERROR, "ill").await,
                    _ => text(StatusCode::OK, "well").await,
                }
            }
        })
        .await;
        let graph = graph(&format!(
            "targets: [http://{}], health: /health, health_every: 10ms, health_fails: 2",
            server.address
        ));
        let fixture = fixture(&graph);
        let until = async |status: u16| {
            let begun = Instant::now();
            loop {
                let found = ask(&fixture, Value::Null).await.map_or_else(|it| it.status(), |_| 200);
                if found == status {
                    return;
                }
                assert!(begun.elapsed() < LIMIT, "{found}, waiting for {status}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        until(503).await;
        ill.store(false, std::sync::atomic::Ordering::Relaxed);
        until(200).await;
    });
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (parameters, expected) in [
        ("method: GET", "neither 'url' nor 'targets'"),
        ("targets: [http://a], url: 'http://b/'", "must be a path"),
        ("targets: ['a:80']", "scheme"),
        ("targets: ['http://a/?x']", "has more than scheme, host"),
        ("url: 'http://a/', health: /health", "'targets' are asked for"),
        ("targets: [http://a], health: health", "is a path"),
        ("url: 'http://', proxy: true", "is not valid"),
        ("url: 'http:', proxy: true", "the url"),
        ("url: 'http://a/?x', proxy: true", "has more than scheme, host"),
        ("url: 'http://a', proxy: true, method: POST", "'method' is that of the packet"),
        ("url: 'http://a', proxy: true, query: {a: 1}", "'query' is that of the packet"),
        ("url: 'http://a', proxy: true, body: x", "'body' is that of the packet"),
    ] {
        let found = refusals(&graph(parameters));
        assert!(found[0].message.contains(expected), "{parameters}: {found:?}");
    }
}

struct Python(Child);

impl Drop for Python {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pythons_server_is_asked_as_if_nothing_stood_between() {
    let Some(python) = python("http.server") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a b.txt"), "hello").expect("room");
    let address = nobody();
    let port = address.rsplit(':').next().expect("a port");
    let mut command = Command::new(python);
    command.args(["-m", "http.server", port, "--bind", "127.0.0.1", "--directory"]);
    command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    end_with_parent(&mut command);
    let _server = Python(command.spawn().expect("python"));
    run(async {
        let graph = graph(&format!("targets: [http://{address}], proxy: true, rest: 1ms"));
        let fixture = fixture(&graph);
        let packet = |method: &str, path: &str| {
            Value::from(json!({"method": method, "path": path, "header": {"accept": "*/*"}}))
        };
        let begun = Instant::now();
        let answer = loop {
            match ask(&fixture, packet("GET", "/a%20b.txt")).await {
                Ok(answer) => break answer.expect("a value"),
                Err(error) => assert!(begun.elapsed() < LIMIT, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(answer.field("status"), Ok(Value::Integer(200)));
        let header = answer.field("header").expect("headers");
        assert_eq!(header.field("content-type"), Ok(Value::text("text/plain")));
        let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
        assert_eq!(stream.known_len(), Some(5), "the client is told too");
        let parts: Vec<Bytes> =
            stream.take().expect("once").map(|part| part.expect("a part")).collect().await;
        assert_eq!(parts.concat(), b"hello");
        let head = ask(&fixture, packet("HEAD", "/a%20b.txt")).await.expect("an answer");
        let Ok(Value::Stream(nothing)) = head.expect("a value").field("body") else { panic!() };
        assert_eq!(nothing.known_len(), None, "it is not the length of the file");
        let missing = ask(&fixture, packet("GET", "/nothing")).await.expect("an answer");
        assert_eq!(missing.expect("a value").field("status"), Ok(Value::Integer(404)));
        let refused = ask(&fixture, packet("POST", "/a%20b.txt")).await.expect("an answer");
        assert_eq!(refused.expect("a value").field("status"), Ok(Value::Integer(501)));
    });
}
