//! `graphs/apps` and the rover: runs the tests in each graph, and uses the API server as its
//! clients do.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::api::Api;
use crate::control::Place;
use crate::program::{Running, SINEW, folder, ours, send, wait_until};

/// Each application, and the number of its tests.
const APPS: &[(&str, usize)] = &[
    ("api_server/api_server.yaml", 26),
    ("batch/import.yaml", 4),
    ("chat_bot/chat_bot.yaml", 6),
    ("streaming/streaming.yaml", 7),
    ("../rover/rover.yaml", 8),
];

#[test]
fn their_own_tests_pass() {
    for (path, count) in APPS {
        let mut command = Command::new(SINEW);
        command.arg("test").arg(ours("graphs/apps").join(path));
        command.env("DATABASE", "sqlite://:memory:");
        let answer = Running::start(command).answer().ended_with(0);
        let last = format!("{count} passed, 0 failed\n");
        assert!(answer.out.ends_with(&last), "{path}: {}", answer.out);
    }
}

#[test]
fn users_sign_up_log_in_and_outlive_a_kill() {
    let place = Place::new("api_server");
    let database = folder("api_server_data").join("users.db");
    let graph = ours("graphs/apps/api_server/api_server.yaml").display().to_string();
    let database = format!("db.database='sqlite://{}'", database.display());
    let (running, pid) = place.run(&[&graph, "--set", "api.port=0", "--set", &database]);
    let api = Api::of(&place, &pid, "services");

    let ada = r#"{"email": "ada@example.org", "name": "Ada", "password": "a long password"}"#;
    let (status, made) = api.post("/signup", ada);
    assert_eq!((status, &made["role"]), (201, &json!("admin")), "{made}");
    let taken = json!({"error": "this email has an account"});
    assert_eq!(api.post("/signup", ada), (409, taken));
    let (status, said) = api.post("/signup", r#"{"email": "nobody", "name": "Eve"}"#);
    assert_eq!((status, &said["fields"][0]["path"]), (422, &json!("/email")), "{said}");
    assert_eq!(api.post("/signup", "{").0, 400);

    let page = "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n";
    let answer = api.raw(&format!("{page}Connection: close\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<h1>Users</h1>"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: http://localhost:3000\r\n"), "{answer}");
    let etag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an etag");
    let again = format!("{page}If-None-Match: {etag}\r\nConnection: close\r\n\r\n");
    assert!(api.raw(&again).starts_with("HTTP/1.1 304 "));
    assert_eq!(api.ask_with("GET", "/../Cargo.toml", "", "").0, 404);

    let domain = place.domain(&pid, "services")["pid"].as_u64().expect("it runs");
    send(domain as u32, Signal::KILL);
    wait_until("it runs again", || {
        let now = place.domain(&pid, "services");
        now["state"] == "running" && now["pid"].as_u64().is_some_and(|pid| pid != domain)
    });
    // Port 0 has become a real port.
    let api = Api::of(&place, &pid, "services");
    let login = r#"{"email": "ada@example.org", "password": "a long password"}"#;
    let (status, token) = api.post("/login", login);
    let token = token["token"].as_str().expect("a token").to_owned();
    let header = format!("Authorization: Bearer {token}\r\n");
    let (read, users) = api.ask_with("GET", "/users?limit=1", &header, "");
    assert_eq!((status, read, &users["users"][0]["id"]), (200, 200, &made["id"]), "{users}");
    assert_eq!(api.ask_with("GET", "/users", "", "").0, 401);
    place.stop(running).ended_with(0);
}
