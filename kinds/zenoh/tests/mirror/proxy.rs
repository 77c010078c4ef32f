//! A line between two hosts that can stand still: what is sent meanwhile comes later, all at once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Whether bytes go on: there, to the address that it stands before, and back.
type Gate = (Mutex<[bool; 2]>, Condvar);

/// Carries bytes from its own address to another, and back.
pub(crate) struct Proxy {
    pub(crate) address: String,
    gate: Arc<Gate>,
}

impl Proxy {
    pub(crate) fn to(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let gate = Arc::new((Mutex::new([true; 2]), Condvar::new()));
        let (target, for_thread) = (target.to_owned(), Arc::clone(&gate));
        // It ends with the test's process.
        thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let Ok(there) = TcpStream::connect(&target) else { continue };
                let twins = here.try_clone().and_then(|it| Ok((it, there.try_clone()?)));
                let (here_too, there_too) = twins.expect("a second hand");
                for (way, (from, to)) in
                    [(here, there), (there_too, here_too)].into_iter().enumerate()
                {
                    let _ = (from.set_nodelay(true), to.set_nodelay(true));
                    let gate = Arc::clone(&for_thread);
                    thread::spawn(move || carry(from, to, way, &gate));
                }
            }
        });
        Proxy { address, gate }
    }

    /// From now on it carries there and back, or not.
    pub(crate) fn set_open(&self, is_open: [bool; 2]) {
        *self.gate.0.lock().expect("nobody panics with it") = is_open;
        self.gate.1.notify_all();
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, way: usize, gate: &Gate) {
    let mut bytes = [0; 65_536];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        let is_open = gate.0.lock().expect("nobody panics with it");
        drop(gate.1.wait_while(is_open, |is_open| !is_open[way]).expect("nobody panics with it"));
        if to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
