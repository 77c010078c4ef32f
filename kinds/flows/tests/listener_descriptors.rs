//! A listener whose process has no descriptors left. A test program of its own, because the limit
//! holds for the whole process.

#[path = "listener/server.rs"]
#[expect(dead_code, reason = "one test needs little of it")]
mod server;

use std::fs::File;
use std::iter::from_fn;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use server::{Client, PATIENCE, Server, get};

/// Connections that get a descriptor.
const SERVED: usize = 3;

/// New descriptors are below this. The process uses fewer.
const LIMIT: u64 = 128;

#[test]
fn without_descriptors_those_that_are_served_go_on_and_others_wait() {
    let server = Server::start("");
    // Once it has answered, it has all descriptors that it needs itself.
    let mut first = server.client();
    assert_eq!(first.ask(&get("/text")).text(), "pong");
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let sockets: Vec<Socket> = (0..SERVED + 2).map(|_| socket()).collect();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), ..before }).expect("a lower limit");
    let mut taken: Vec<File> = from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(taken.len() >= SERVED, "descriptors below {LIMIT} are free");
    drop(taken.split_off(taken.len() - SERVED));
    let mut clients: Vec<Client> = sockets
        .into_iter()
        .map(|socket| {
            socket.connect(&server.address.into()).expect("connected");
            Client::of(socket.into())
        })
        .collect();
    let mut waiting = clients.split_off(SERVED);
    for client in &mut clients {
        assert_eq!(client.ask(&get("/text")).text(), "pong");
    }
    for client in &mut waiting {
        client.send(get("/text"));
        let stream = client.stream.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a limit");
        let read = stream.peek(&mut [0]);
        assert!(read.is_err(), "who has no descriptor waits: {read:?}");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    }
    for client in &mut clients {
        assert_eq!(client.ask(&get("/text")).text(), "pong", "it is still served");
    }
    assert_eq!(first.ask(&get("/text")).text(), "pong", "so is who came first");
    drop(clients);
    for client in &mut waiting {
        assert_eq!(client.answer(true).text(), "pong", "its turn has come");
    }
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
}
