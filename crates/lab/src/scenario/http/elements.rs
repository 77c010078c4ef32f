//! A load of elements: one request with lines as its body, whose answer is lines too, for as long
//! as it is measured. Request and answer pass at the same time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use sinew_figures::process::Taken;

use crate::scenario::load::{Answered, SILENCE};

/// An element as it is sent.
const LINE: &str = "{\"n\":7,\"v\":2.5}\n";
/// Elements that are sent in one write.
const LINES: u64 = 1000;
/// The byte that ends an element. Nothing else in the answer contains it: neither the head nor the
/// words between the parts.
const MARK: u8 = b'}';
/// The end of an answer that comes in chunks.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// Sends elements for this long, and counts those that come back.
///
/// # Errors
/// The connection fails, or the answer is invalid or breaks off.
pub(super) fn pour(
    address: SocketAddr,
    path: &str,
    share: Duration,
    is_stopped: impl Fn() -> bool + Sync,
) -> Result<Answered, String> {
    let begun = Instant::now();
    let sent = AtomicU64::new(0);
    let poured = || -> io::Result<Answered> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\
             Content-Type: application/x-ndjson\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let done = send(&stream, &sent, || begun.elapsed() >= share || is_stopped());
                done.and_then(|()| Taken::by_this_thread())
            });
            let before = Taken::by_this_thread()?;
            let answers = receive(&stream);
            if answers.is_err() {
                // Otherwise the sender would wait for a server that no longer reads.
                let _ = stream.shutdown(Shutdown::Both);
            }
            let after = Taken::by_this_thread()?;
            let sends = sender.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            let (answers, sends) = (answers?, sends?);
            let mut answered = Answered { answers, ..Answered::default() };
            answered.time = begun.elapsed();
            answered.taken.cpu = after.cpu.saturating_sub(before.cpu) + sends.cpu;
            answered.taken.waited = after.waited.saturating_sub(before.waited) + sends.waited;
            Ok(answered)
        })
    };
    let mut answered = poured().map_err(|error| format!("elements to {address}: {error}"))?;
    // Relaxed: the thread that wrote it has ended.
    answered.failed = sent.load(Relaxed).saturating_sub(answered.answers);
    if answered.failed > 0 {
        answered.failure = Some(format!("{} elements did not come back", answered.failed));
    }
    Ok(answered)
}

fn send(mut stream: &TcpStream, sent: &AtomicU64, is_enough: impl Fn() -> bool) -> io::Result<()> {
    let lines = LINE.repeat(LINES as usize);
    let part = format!("{:x}\r\n{lines}\r\n", lines.len());
    while !is_enough() {
        stream.write_all(part.as_bytes())?;
        sent.fetch_add(LINES, Relaxed);
    }
    stream.write_all(b"0\r\n\r\n")
}

/// Counts the elements of the answer, until all of it has arrived.
fn receive(mut stream: &TcpStream) -> io::Result<u64> {
    let mut bytes = vec![0; 256 << 10];
    // The last bytes are kept at the beginning of the buffer: the end may come in two pieces.
    let (mut kept, mut count) = (0, 0);
    loop {
        let read = stream.read(&mut bytes[kept..])?;
        if read == 0 {
            return Err(io::Error::other("the answer breaks off"));
        }
        let new = &bytes[kept..kept + read];
        count += new.iter().filter(|byte| **byte == MARK).count() as u64;
        let all = kept + read;
        if bytes[..all].ends_with(END) {
            return Ok(count);
        }
        let rest = all.min(END.len());
        bytes.copy_within(all - rest..all, 0);
        kept = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::io::BufReader;
    use std::net::TcpListener;

    use super::*;

    /// A server that gives this answer when it has read a whole request.
    fn answers(text: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let reader = BufReader::new(stream.try_clone().expect("a socket"));
            reader.lines().map_while(Result::ok).find(|line| line == "0");
            stream.write_all(text.as_bytes()).expect("sent");
        });
        address
    }

    #[test]
    fn elements_that_do_not_come_back_are_counted_and_an_answer_that_breaks_off_is_none() {
        let pour = |text| pour(answers(text), "/", Duration::from_millis(5), || false);
        let some = pour("HTTP/1.1 200 OK\r\n\r\n6\r\n{}\n{}\n\r\n0\r\n\r\n").expect("an answer");
        assert_eq!(some.answers, 2);
        assert_eq!((some.failed + 2) % LINES, 0, "{}", some.failed);
        assert!(some.failure.is_some());
        let error = pour("HTTP/1.1 200 OK\r\n\r\n6\r\n{}\n{}").err().expect("it breaks off");
        assert!(error.contains("breaks off"), "{error}");
    }
}
