//! Which callers a listener answers: by the host name that was called, and by the page that asks.

use super::server::{Answer, Server, get, post};

fn ask(server: &Server, host: &str, origins: &[&str]) -> Answer {
    let origins: String = origins.iter().map(|it| format!("Origin: {it}\r\n")).collect();
    server.ask(&post("/text", &origins, "").replace("Host: test", &format!("Host: {host}")))
}

#[test]
fn a_foreign_name_and_a_foreign_page_are_refused_and_told_why() {
    let strict = Server::start("hosts: [api.example], origins: ['https://app.example']");
    let usual = Server::start("hosts: []");
    for server in [&strict, &usual] {
        let own = &*server.address.to_string();
        // Any port is allowed, because a tunnel has a port of its own.
        for host in [own, "127.0.0.1", "LOCALHOST:8000", "localhost:1", "[::1]"] {
            assert_eq!(ask(server, host, &[]).status, 200, "{host}");
        }
        assert_eq!(ask(server, own, &[&format!("http://{own}")]).status, 200);
        let rebound = ask(server, "evil.example:8000", &[]);
        assert_eq!(rebound.status, 403);
        for part in ["'evil.example:8000'", "add it to 'hosts'", own] {
            assert!(rebound.text().contains(part), "{}", rebound.text());
        }
        let same = format!("http://{own}");
        let several = [&*same, &*same];
        for origins in
            [&["http://evil.example"][..], &["null"], &["http://localhost:3000"], &[""], &several]
        {
            let refused = ask(server, own, origins);
            assert_eq!(refused.status, 403, "{origins:?}");
            let text = refused.text();
            assert!(text.contains("may not ask") && text.contains("add it to 'origins'"), "{text}");
        }
        let unnamed = server.ask("GET /text HTTP/1.0\r\n\r\n");
        assert_eq!(unnamed.status, 200, "HTTP/1.0 calls no name");
    }
    assert_eq!(ask(&strict, "api.example", &["https://api.example"]).status, 200);
    assert_eq!(ask(&strict, "localhost", &["https://app.example"]).status, 200);
    assert_eq!(ask(&strict, "localhost", &["http://app.example"]).status, 403);
    assert_eq!(ask(&usual, "api.example", &[]).status, 403);
}

#[test]
fn who_is_reached_from_everywhere_or_says_so_answers_all() {
    for options in ["host: 0.0.0.0, hosts: []", "hosts: ['*'], origins: ['*']"] {
        let open = Server::start(options);
        assert_eq!(ask(&open, "evil.example", &["http://evil.example"]).status, 200, "{options}");
    }
    let named = Server::start("host: 0.0.0.0, hosts: [api.example]");
    assert_eq!(named.ask(&get("/text")).status, 403);
    assert_eq!(ask(&named, "api.example", &[]).status, 200);
}
