//! Events for clients: `as: sse`.

use std::thread::sleep;
use std::time::Duration;

use super::server::{Client, Server, get, post, until};

/// A listener where the body of a POST is published, and a GET gets all that is published.
fn server(options: &str, topic: &str) -> Server {
    Server::of_graph(&format!(
        "
        - kind: listener
          name: listener
          port: 0
          hosts: ['*']
          ports: {{out: [{{name: router, port: in}}]}}
          {options}
        - kind: router
          name: router
          routes:
            - {{method: GET, path: /events, port: 'out[0]'}}
            - {{method: POST, path: /events, port: 'out[1]'}}
          ports:
            'out[0]': [{{name: events, port: in}}]
            'out[1]': [{{name: say, port: in}}]
        - {{kind: topic, name: news, {topic}}}
        - {{kind: subscribe, name: events, topic: news, as: sse, heartbeat: 50ms}}
        - {{kind: publish, name: say, topic: news, value: '{{{{ packet.body }}}}',
            ports: {{out: [{{name: said, port: in}}]}}}}
        - {{kind: snippet, name: said, language: text, code: said}}
        "
    ))
}

fn say(server: &Server, text: &str) -> u16 {
    server.ask(&post("/events", "Content-Type: text/plain\r\n", text)).status
}

/// The next chunk that is not a comment.
fn event(client: &mut Client) -> String {
    loop {
        let chunk = client.chunk();
        if chunk != ":\n\n" {
            return chunk;
        }
    }
}

#[test]
fn events_reach_all_clients_and_comments_come_between() {
    let server = server("compression: true", "");
    let asks = get("/events").replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut clients = [server.client(), server.client()];
    for client in &mut clients {
        client.send(&asks);
        let head = client.head();
        assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
        assert!(head.contains("cache-control: no-store\r\n"), "{head}");
        assert!(!head.contains("gzip"), "{head}");
        assert_eq!(client.chunk(), ":\n\n");
    }
    assert_eq!(say(&server, "one"), 200);
    assert!(clients.iter_mut().all(|client| event(client) == "data: one\n\n"));
    let [first, mut second] = clients;
    drop(first);
    assert_eq!(say(&server, "two"), 200);
    assert_eq!(event(&mut second), "data: two\n\n", "the other has lost nothing");
}

#[test]
fn a_client_that_never_reads_is_closed_and_keeps_others_no_longer() {
    let server = server("stall_max: 300ms", "capacity: 1");
    let mut good = server.client();
    good.send(get("/events"));
    let reads = std::thread::spawn(move || {
        good.head();
        let mut seen = 0;
        while seen < 200 {
            assert!(event(&mut good).len() > 60_000);
            seen += 1;
        }
    });
    let bad = server.slow_client(4096, &get("/events"));
    assert!(until(|| server.figures.waiting() == 0));
    sleep(Duration::from_millis(50));
    let long = "x".repeat(60_000);
    for _ in 0..200 {
        assert_eq!(say(&server, &long), 200);
    }
    reads.join().expect("it got all of them");
    drop(bad);
}

#[test]
fn a_stop_ends_events_in_order() {
    let server = server("", "");
    let mut client = server.client();
    client.send(get("/events"));
    client.head();
    assert_eq!(client.chunk(), ":\n\n");
    server.stop();
    // The empty chunk is the end.
    while !client.chunk().is_empty() {}
    assert!(client.is_closed() && server.has_ended());
}
