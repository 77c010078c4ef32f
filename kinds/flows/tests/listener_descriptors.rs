//! A listener whose process has no descriptors left. A test of its own: the limit is the process's.

#[path = "listener/server.rs"]
#[expect(dead_code, reason = "one test needs little of it")]
mod server;

use std::fs::read_dir;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use server::{Client, Server, get};

/// Connections that find a descriptor.
const SERVED: usize = 3;

#[test]
fn without_descriptors_those_that_are_served_go_on_and_others_wait() {
    let server = Server::start("");
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let sockets: Vec<Socket> = (0..SERVED + 2).map(|_| socket()).collect();
    let used = read_dir("/proc/self/fd").expect("descriptors");
    let highest = used.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
    // Reading the folder took one more, which is free again.
    let highest = highest.max().expect("some") - 1;
    let before = getrlimit(Resource::Nofile);
    let current = Some(highest + 1 + SERVED as u64);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).expect("a lower limit");
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
    waiting.iter_mut().for_each(|client| client.send(get("/text")));
    for client in &mut clients {
        assert_eq!(client.ask(&get("/text")).text(), "pong", "it is still served");
    }
    drop(clients);
    for client in &mut waiting {
        assert_eq!(client.answer(true).text(), "pong", "its turn has come");
    }
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
}
