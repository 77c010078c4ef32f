//! Where a listener listens, and what it takes over.

use std::net::TcpListener;

use super::server::{Client, Server, get, source};

#[test]
fn a_port_in_use_is_refused_before_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("an address").port();
    let made = source(&format!("port: {port}")).expect("made");
    let fault = made.open(2).err().expect("refused").to_string();
    assert!(fault.contains(&format!("cannot listen at 127.0.0.1:{port}")), "{fault}");
    assert!(fault.contains("choose another 'port'"), "{fault}");
}

#[test]
fn a_port_of_another_listener_is_refused_though_both_share_it_among_workers() {
    let server = Server::start("");
    let port = server.address.port();
    let made = source(&format!("port: {port}")).expect("made");
    assert!(made.open(2).is_err());
    assert_eq!(server.ask(&get("/text")).status, 200);
}

#[test]
fn every_worker_has_a_socket_at_the_same_port() {
    let parts = source("").expect("made").open(3).expect("opened");
    let addresses: Vec<_> = parts.iter().map(|part| part.address()).collect();
    assert_eq!(addresses.len(), 3);
    assert!(addresses.iter().all(|address| *address == addresses[0] && address.is_some()));
}

#[test]
fn sockets_go_on_in_the_listener_that_takes_the_place() {
    let parts = source("").expect("made").open(2).expect("opened");
    let held: Vec<_> = parts.iter().filter_map(|part| part.held()).collect();
    let address = parts[0].address().expect("an address");
    let address: std::net::SocketAddr =
        address.trim_start_matches("http://").parse().expect("an address");
    // This connection waits to be accepted.
    let waits = Client::to(address);
    let options = format!("port: {}, idle_max: 1s", address.port());
    let next = source(&options).expect("made").open_after(2, &held).expect("opened");
    drop(parts);
    assert_eq!(next[0].address().expect("an address"), format!("http://{address}"));
    let other = source("").expect("made").open_after(2, &held).expect("opened");
    assert_ne!(other[0].address(), next[0].address());
    drop(waits);
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let made = source("host: 192.0.2.1").expect("made");
    let fault = made.open(1).err().expect("refused").to_string();
    assert!(fault.contains("must be an address of this machine"), "{fault}");
}

#[test]
fn a_name_is_no_address() {
    let refusals = source("host: localhost").err().expect("refused");
    assert_eq!(refusals[0].message, "'localhost' is not an address");
    assert!(refusals[0].span.is_some());
}

#[test]
fn the_access_log_has_a_line_for_each_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let server = Server::start(&format!("access_log: {}", path.display()));
    server.ask(&get("/text"));
    server.ask(&get("/fail"));
    drop(server);
    let read = || std::fs::read_to_string(&path).expect("the log");
    assert!(super::server::until(|| read().lines().count() == 2), "{}", read());
    assert!(read().contains("\"GET /text HTTP/1.1\" 200 4 "), "{}", read());
    assert!(read().contains("\"GET /fail HTTP/1.1\" 500 21 "), "{}", read());
}
