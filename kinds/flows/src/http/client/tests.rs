//! Tests of the client against real servers on this machine, good and bad ones.

mod bad;
mod proxied;
mod server;
mod tls;

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use hyper::{Response, StatusCode};
use serde_json::json;
use server::{Server, echo, parts, text, whole};
use sinew_flow::{Error, FlowFixture, FlowLimits, NodeContext, Pool, Reply, Value};
use tokio::sync::Notify;

use crate::testing::{LIMIT, fixture, plan, refusals, run, table};

/// The source and one node `http` with these parameters.
fn graph(parameters: &str) -> String {
    format!(
        "- {{kind: begin, name: begin, ports: {{out: [{{name: http, port: in}}]}}}}\n\
         - {{kind: http, name: http, {parameters}}}\n"
    )
}

async fn ask(fixture: &FlowFixture, packet: Value) -> Reply {
    fixture.open("begin", 0, packet, LIMIT).await
}

/// One answer.
async fn get(parameters: &str) -> Value {
    let reply = ask(&fixture(&graph(parameters)), Value::Null).await;
    reply.expect("an answer").expect("a value")
}

/// The error, where there is no answer.
async fn fail(parameters: &str) -> Error {
    ask(&fixture(&graph(parameters)), Value::Null).await.expect_err("no answer")
}

fn body(answer: &Value) -> serde_json::Value {
    answer.field("body").expect("a body").to_json().expect("JSON")
}

#[test]
fn a_request_is_made_of_templates() {
    run(async {
        let server = Server::start(echo).await;
        let parameters = format!(
            "url: 'http://{}/{{{{ packet.place }}}}?a=1', method: '{{{{ packet.how }}}}', \
             query: {{b: '{{{{ packet.n }}}}'}}, \
             header: {{X-It: 'is {{{{ packet.n }}}}', x-no: null}}, \
             body: {{n: '{{{{ packet.n }}}}'}}",
            server.address
        );
        let fixture = fixture(&graph(&parameters));
        let packet = Value::from(json!({"place": "x/y", "how": "PUT", "n": 7}));
        let answer = ask(&fixture, packet).await.expect("an answer").expect("a value");
        assert_eq!(answer.field("status"), Ok(Value::Integer(200)));
        let said = body(&answer);
        assert_eq!(said["method"], "PUT");
        assert_eq!(said["target"], "/x/y?a=1&b=7");
        assert_eq!(said["header"]["x-it"], "is 7");
        assert_eq!(said["header"]["host"], server.address.to_string());
        assert_eq!(said["header"]["content-type"], "application/json");
        assert_eq!(said["header"].get("x-no"), None);
        assert_eq!(said["body"], "{\"n\":7}");
    });
}

#[test]
fn what_is_written_and_decoded_is_paid_by_the_flow() {
    run(async {
        let server = Server::start(echo).await;
        let then = "ports: {out: [{name: then, port: in}]}";
        let body = "method: POST, body: {all: '{{ packet }}'}";
        let url = format!("url: 'http://{}/', {body}, {then}", server.address);
        let code = "- {kind: snippet, name: then, language: cel, code: packet.body.method}\n";
        let fixture = fixture(&(graph(&url) + code));
        let list = Value::list((0..100_000).map(|_| Value::Integer(7)));
        let (writes, decodes) = (200_000 / 8, 200_000 / 4);
        let ask = async |work| {
            let limits = FlowLimits { deadline: LIMIT, work };
            fixture.open("begin", 0, list.clone(), limits).await
        };
        let enough = ask(2 * (writes + decodes) + 200_000).await;
        assert_eq!(enough, Ok(Some(Value::text("POST"))));
        for (work, node) in [(writes - 1, "http"), (writes + decodes / 2, "then")] {
            let error = ask(work).await.expect_err(node);
            assert_eq!(
                (error.status(), error.node().map(|it| &**it)),
                (503, Some(node)),
                "{error}"
            );
        }
    });
}

#[test]
fn a_kept_connection_is_used_again() {
    run(async {
        let server = Server::start(echo).await;
        let fixture = fixture(&graph(&server.url("/")));
        for _ in 0..5 {
            ask(&fixture, Value::Null).await.expect("an answer");
        }
        assert_eq!((server.connections(), server.requests()), (1, 5));
    });
}

#[test]
fn names_are_looked_up_on_the_threads_for_what_blocks() {
    run(async {
        let server = Server::start(echo).await;
        let port = server.address.port();
        let graph = graph(&format!("url: 'http://localhost:{port}/', deadline: 50ms"));
        // The only thread.
        let pool = Pool::start(1).expect("a thread");
        let site = |_: usize, site: &mut NodeContext| site.pool = pool.clone();
        let made = FlowFixture::with_sites(&plan(&graph), &table(), Path::new("."), site);
        let fixture = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
        let (go_on, wait) = mpsc::channel::<()>();
        let mut kept = Box::pin(pool.run(move || wait.recv()));
        assert!((&mut kept).now_or_never().is_none());
        let error = ask(&fixture, Value::Null).await.expect_err("no thread looks it up");
        assert_eq!(error.status(), 504, "{error}");
        drop(go_on);
        kept.await.expect("an end").expect_err("nobody said anything");
        // A slow system may need more than one attempt.
        while ask(&fixture, Value::Null).await.is_err() {}
        assert!(server.requests() > 0);
    });
}

#[test]
fn a_thousand_flows_ask_at_once() {
    run(async {
        let server = Server::start(echo).await;
        let url =
            format!("url: 'http://{}/{{{{ packet }}}}', idle_connections_max: 8", server.address);
        let fixture = fixture(&graph(&url));
        let all = join_all((0..1000).map(|n| ask(&fixture, Value::Integer(n)))).await;
        for (n, reply) in all.into_iter().enumerate() {
            let answer = reply.expect("an answer").expect("a value");
            assert_eq!(body(&answer)["target"], format!("/{n}"));
        }
        assert_eq!(server.requests(), 1000);
    });
}

#[test]
fn an_answer_is_an_answer_whatever_its_status_unless_the_spec_says_otherwise() {
    run(async {
        let server = Server::start(|_| text(StatusCode::NOT_FOUND, "gone")).await;
        let url = server.url("/x?secret=1");
        let answer = get(&url).await;
        assert_eq!(answer.field("status"), Ok(Value::Integer(404)));
        assert_eq!(answer.field("body"), Ok(Value::text("gone")));
        let error = fail(&format!("{url}, fail: true")).await;
        assert_eq!(error.status(), 502);
        assert!(error.text().ends_with("/x: answered 404 Not Found"), "{error}");
        assert!(!error.text().contains("secret"), "{error}");
    });
}

#[test]
fn a_body_is_what_its_type_says_and_nonsense_fails_where_it_is_asked_for() {
    run(async {
        let server = Server::start(|request| async move {
            let path = request.uri().path().trim_start_matches('/').replace('.', "/");
            let body = whole(&b"{\"a\":"[..]);
            Response::builder().header("content-type", path).body(body).expect("an answer")
        })
        .await;
        let text = get(&server.url("/text.plain")).await;
        assert_eq!(text.field("body"), Ok(Value::text("{\"a\":")));
        let json = get(&server.url("/application.json")).await;
        assert_eq!(json.field("status"), Ok(Value::Integer(200)));
        let error = json.field("body").expect_err("no JSON");
        assert_eq!((error.status(), error.shown()), (502, None));
    });
}

#[test]
fn a_stream_is_passed_on_while_it_comes() {
    run(async {
        let more = Arc::new(Notify::new());
        let wait = Arc::clone(&more);
        let server = Server::start(move |_| {
            let body = parts(["one", "two"], Arc::clone(&wait));
            async move { Response::new(body) }
        })
        .await;
        let url = server.url("/") + ", stream: true";
        let answer = get(&url).await;
        let Ok(Value::Stream(stream)) = answer.field("body") else { panic!("{answer:?}") };
        let mut stream = stream.take().expect("a stream");
        assert_eq!(stream.next().await, Some(Ok(Bytes::from_static(b"one"))));
        // Only now the server sends the rest.
        more.notify_one();
        assert_eq!(stream.next().await, Some(Ok(Bytes::from_static(b"two"))));
        assert_eq!(stream.next().await, None);
    });
}

#[test]
fn a_stream_is_sent_while_it_is_made_and_once() {
    run(async {
        let server = Server::start(echo).await;
        let url =
            format!("url: 'http://{}/', method: POST, body: '{{{{ packet }}}}'", server.address);
        let fixture = fixture(&graph(&url));
        let parts = [Ok(Bytes::from_static(b"a")), Ok(Bytes::from_static(b"b"))];
        let stream = sinew_flow::Stream::new(futures_util::stream::iter(parts));
        let packet = Value::Stream(stream);
        let answer = ask(&fixture, packet.clone()).await.expect("an answer").expect("a value");
        assert_eq!(body(&answer)["body"], "ab");
        assert_eq!(body(&answer)["header"]["transfer-encoding"], "chunked");
        let error = ask(&fixture, packet).await.expect_err("read before");
        assert!(error.text().contains("read before"), "{error}");
    });
}

/// A server that redirects from `/a` to `location` with `status`, and answers all else.
async fn leads(status: u16, location: String) -> Server {
    Server::start(move |request| {
        let location = location.clone();
        async move {
            if request.uri().path() != "/a" {
                return echo(request).await;
            }
            let response = Response::builder().status(status).header("location", location);
            response.body(whole(Bytes::new())).expect("an answer")
        }
    })
    .await
}

#[test]
fn a_redirect_is_followed_if_the_spec_says_so() {
    run(async {
        let server = leads(303, "b?c".into()).await;
        let url = server.url("/a") + ", method: POST, body: x";
        assert_eq!(get(&url).await.field("status"), Ok(Value::Integer(303)));
        let said = body(&get(&format!("{url}, redirects: 1")).await);
        assert_eq!((&said["method"], &said["target"]), (&json!("GET"), &json!("/b?c")));
        assert_eq!((&said["body"], said["header"].get("content-type")), (&json!(""), None));
        let server = leads(307, "/b".into()).await;
        let url = server.url("/a") + ", method: POST, body: x";
        let said = body(&get(&format!("{url}, redirects: 1")).await);
        assert_eq!((&said["method"], &said["body"]), (&json!("POST"), &json!("x")));
    });
}

#[test]
fn a_redirect_leads_in_no_circle_and_to_no_other_scheme_or_host() {
    run(async {
        let circle = leads(302, "/a".into()).await;
        let error = fail(&(circle.url("/a") + ", redirects: 5")).await;
        assert!(error.text().contains("more than 5 redirects"), "{error}");
        assert_eq!(circle.requests(), 6);
        for to in ["https://127.0.0.1/", "file:///etc/passwd", "http://169.254.169.254/", "//h/"] {
            let server = leads(302, to.into()).await;
            let error = fail(&(server.url("/a") + ", redirects: 5")).await;
            assert_eq!((error.status(), server.requests()), (502, 1), "{to}: {error}");
        }
    });
}

#[test]
fn what_proves_who_asks_stays_with_the_host_it_was_written_for() {
    run(async {
        let other = Server::start(echo).await;
        let server = leads(302, format!("http://{}/b", other.address)).await;
        let url = format!(
            "url: 'http://{}/a', redirects: 1, hosts: [127.0.0.1], \
             header: {{authorization: secret, x-it: y}}",
            server.address
        );
        let said = body(&get(&url).await);
        assert_eq!(said["header"].get("authorization"), None);
        assert_eq!(said["header"]["x-it"], "y");
    });
}

#[test]
fn no_value_of_a_packet_adds_a_header_or_changes_the_host() {
    run(async {
        let server = Server::start(echo).await;
        let header =
            format!("url: 'http://{}/', header: {{a: '{{{{ packet }}}}'}}", server.address);
        let graph_header = fixture(&graph(&header));
        let error = ask(&graph_header, Value::text("x\r\nb: c")).await.expect_err("a line end");
        assert!(error.text().contains("control characters"), "{error}");
        let graph_url = fixture(&graph(&server.url("{{ packet }}")));
        for packet in ["@evil.example/", ".evil.example/", "1/", "/a b", "/\r\nx: y"] {
            assert!(ask(&graph_url, Value::text(packet)).await.is_err(), "{packet}");
        }
        let all = "header: '{{ packet }}'";
        let graph_all = fixture(&graph(&format!("url: 'http://{}/', {all}", server.address)));
        let packet = Value::from(json!({"host": "evil", "content-length": "9", "x": "y"}));
        let said = body(&ask(&graph_all, packet).await.expect("an answer").expect("a value"));
        assert_eq!(said["header"]["host"], server.address.to_string());
        assert_eq!(said["header"]["x"], "y");
        assert_eq!(server.requests(), 1);
    });
}

#[test]
fn a_host_from_outside_is_one_of_the_spec() {
    run(async {
        let server = Server::start(echo).await;
        let outside = format!("{{{{ env.SINEW_NOWHERE or 'http://{}' }}}}", server.address);
        let graph = fixture(&graph(&format!("url: \"{outside}/{{{{ packet }}}}\"")));
        for packet in ["a", "@evil.example/"] {
            assert!(ask(&graph, Value::text(packet)).await.is_ok(), "{packet} is a path");
        }
        assert_eq!(server.requests(), 2);
    });
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let wrong = "url: '{{ packet }}', method: 'G T', header: {'a b': c, host: d}, ca: nowhere.pem";
    assert_eq!(refusals(&graph(wrong)).len(), 5);
}

#[test]
fn what_is_wrong_in_the_spec_is_said_before_the_start() {
    for (parameters, what) in [
        ("url: 'ftp://h/'", "scheme 'ftp'"),
        ("url: /x", "no scheme and host"),
        ("url: [a]", "url takes a text"),
        ("url: 'http://u@h/'", "a user in it"),
        ("url: '{{ packet.url }}'", "a packet says which host is asked"),
        ("url: 'http://h/{{ packet'", "not closed"),
        ("url: 'http://h/', hosts: ['a/b']", "'a/b' is not a host"),
        ("url: 'http://h/', hosts: [g]", "'h' is not among the hosts (g)"),
        ("url: 'http://h/', method: 'G T'", "is not a method"),
        ("url: 'http://h/', method: CONNECT", "opens tunnels"),
        ("url: 'http://h/', header: {'a b': c}", "not a name of a header"),
        ("url: 'http://h/', header: {Host: c}", "follows from the url"),
        ("url: 'http://h/', ca: nowhere.pem", "cannot read './nowhere.pem'"),
    ] {
        let refusals = refusals(&graph(parameters));
        assert!(refusals.iter().all(|refusal| refusal.span.is_some()), "{parameters}");
        let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1, "{parameters}: {texts:?}");
        assert!(texts[0].contains(what), "{parameters}: {texts:?}");
    }
}
