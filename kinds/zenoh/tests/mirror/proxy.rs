//! A line between two hosts that can stand still: what is sent meanwhile comes later, all at once.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Whether bytes pass there, to the target address, and back.
type Gate = (Mutex<[bool; 2]>, Condvar);

/// Carries bytes from its own address to another, and back.
pub(crate) struct Proxy {
    pub(crate) address: String,
    gate: Arc<Gate>,
}

impl Proxy {
    /// A proxy for connections of TCP.
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

    /// A proxy for datagrams, of one client at a time. While it stands still the kernel keeps some
    /// hundreds of them, and drops the rest.
    pub(crate) fn of_datagrams_to(target: &str) -> Proxy {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let address = front.local_addr().expect("its address").to_string();
        let gate: Arc<Gate> = Arc::new((Mutex::new([true; 2]), Condvar::new()));
        let (target, for_thread) = (target.to_owned(), Arc::clone(&gate));
        thread::spawn(move || {
            let (mut backs, mut bytes) = (HashMap::new(), [0; 65_536]);
            while let Ok((len, client)) = front.recv_from(&mut bytes) {
                let back: &Arc<UdpSocket> = backs.entry(client).or_insert_with(|| {
                    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
                    back.connect(&target).expect("an address");
                    let (front, back_too) = (Arc::clone(&front), Arc::clone(&back));
                    let gate = Arc::clone(&for_thread);
                    thread::spawn(move || {
                        let mut bytes = [0; 65_536];
                        loop {
                            // It fails while nobody listens there.
                            let Ok(len) = back_too.recv(&mut bytes) else { continue };
                            pass(&gate, 1);
                            let _ = front.send_to(&bytes[..len], client);
                        }
                    });
                    back
                });
                pass(&for_thread, 0);
                let _ = back.send(&bytes[..len]);
            }
        });
        Proxy { address, gate }
    }

    /// Sets whether bytes pass there and back from now on.
    pub(crate) fn set_open(&self, is_open: [bool; 2]) {
        *self.gate.0.lock().expect("nobody panics with it") = is_open;
        self.gate.1.notify_all();
    }
}

/// Waits until it is open this way.
fn pass(gate: &Gate, way: usize) {
    let is_open = gate.0.lock().expect("nobody panics with it");
    drop(gate.1.wait_while(is_open, |is_open| !is_open[way]).expect("nobody panics with it"));
}

fn carry(mut from: TcpStream, mut to: TcpStream, way: usize, gate: &Gate) {
    let mut bytes = [0; 65_536];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        pass(gate, way);
        if to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
