//! Whom a listener that only this machine reaches answers.

use super::server::{Server, get, post};

#[test]
fn a_page_of_another_site_is_refused_and_told_why() {
    let server = Server::start("hosts: []");
    let own = server.address.to_string();
    let ask = |host: &str, more: &str| {
        let request = post("/text", more, "").replace("Host: test", &format!("Host: {host}"));
        server.ask(&request)
    };
    assert_eq!(ask(&own, "").status, 200);
    assert_eq!(ask("localhost:1", "").status, 200, "a tunnel has a port of its own");
    assert_eq!(ask(&own, &format!("Origin: http://{own}\r\n")).status, 200);
    let rebound = ask("evil.example", "");
    assert_eq!(rebound.status, 403);
    assert!(rebound.text().contains("add it to 'hosts'"), "{}", rebound.text());
    assert!(rebound.text().contains(&own), "its address with its port: {}", rebound.text());
    for origin in ["http://evil.example", "null", "http://localhost:3000"] {
        let foreign = ask(&own, &format!("Origin: {origin}\r\n"));
        assert_eq!(foreign.status, 403, "{origin}");
        assert!(foreign.text().contains("add it to 'origins'"), "{}", foreign.text());
    }
}

#[test]
fn the_spec_may_allow_others() {
    let server = Server::start("hosts: [test], origins: ['https://app.example']");
    let ask = |origin: &str| server.ask(&post("/text", &format!("Origin: {origin}\r\n"), ""));
    assert_eq!(ask("https://app.example").status, 200);
    assert_eq!(ask("http://app.example").status, 403);
    let all = Server::start("hosts: ['*'], origins: ['*']");
    assert_eq!(all.ask(&post("/text", "Origin: http://evil.example\r\n", "")).status, 200);
}

#[test]
fn who_is_reached_from_everywhere_says_whom_it_answers() {
    let open = Server::start("host: 0.0.0.0, hosts: []");
    assert_eq!(open.ask(&get("/text")).status, 200);
    let named = Server::start("host: 0.0.0.0, hosts: [api.example]");
    assert_eq!(named.ask(&get("/text")).status, 403);
    assert_eq!(named.ask(&get("/text").replace("test", "api.example")).status, 200);
}
