//! The page of a player as this program uses it: it asks for the state, and gives orders.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;

/// A page that says nothing for this long hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The address of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page(pub(super) SocketAddr);

/// What the page says about a player, as far as the player's log does not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PageState {
    pub(super) shown: u64,
    pub(super) skipped: u64,
    pub(super) broken: u64,
    pub(super) sound: SoundState,
}

/// The same for its sound.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct SoundState {
    pub(super) underruns: u64,
    pub(super) silent_ms: f64,
}

impl Page {
    /// The state of the player.
    pub(super) fn state(&self) -> Result<PageState, String> {
        let text = self.ask("GET /state", "")?;
        serde_json::from_str(&text).map_err(|error| format!("the page's state: {error}: {text}"))
    }

    /// Gives an order, in the form that the page sends.
    pub(super) fn order(&self, order: &str) -> Result<(), String> {
        self.ask("POST /order", order).map(drop)
    }

    /// The body of a good answer.
    fn ask(&self, what: &str, body: &str) -> Result<String, String> {
        let site = self.0;
        let len = body.len();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: {site}\r\nOrigin: http://{site}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        let failed = |error: io::Error| format!("{what} at {site}: {error}");
        let answer = exchange(site, request.as_bytes()).map_err(failed)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default();
        match status.split(' ').nth(1) {
            Some(code) if code.starts_with('2') => Ok(body.to_owned()),
            _ => Err(format!("{what} at {site}: '{status}': {body}")),
        }
    }
}

fn exchange(site: SocketAddr, request: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&site, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The requests to a page that gives this answer, and the result of asking.
    fn asked(
        answer: &'static str,
        ask: impl Fn(Page) -> Result<(), String>,
    ) -> (String, Result<(), String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let page = Page(listener.local_addr().expect("an address"));
        let serve = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 4096];
            let mut len = 0;
            while !request[..len].ends_with(b"}") && !request[..len].ends_with(b"\r\n\r\n") {
                len += stream.read(&mut request[len..]).expect("a request");
            }
            stream.write_all(answer.as_bytes()).expect("an answer");
            String::from_utf8_lossy(&request[..len]).into_owned()
        });
        let found = ask(page);
        (serve.join().expect("a server"), found)
    }

    #[test]
    fn a_state_is_read_and_an_order_is_one_of_the_page_s_own() {
        let good =
            "HTTP/1.1 200 OK\r\n\r\n{\"shown\": 7, \"new\": [], \"sound\": {\"underruns\": 2}}";
        let (request, found) = asked(good, |page| {
            let state = page.state()?;
            assert_eq!((state.shown, state.skipped, state.sound.underruns), (7, 0, 2));
            Ok(())
        });
        assert_eq!(found, Ok(()));
        assert!(request.starts_with("GET /state HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        let order = "{\"order\":\"pause\"}";
        let (request, found) = asked("HTTP/1.1 202 Accepted\r\n\r\n", |page| page.order(order));
        assert_eq!(found, Ok(()));
        assert!(request.contains("\r\nOrigin: http://127.0.0.1:"), "{request}");
        assert!(request.ends_with("\r\n\r\n{\"order\":\"pause\"}"), "{request}");
    }

    #[test]
    fn a_refused_order_says_what_the_page_said() {
        let refused = "HTTP/1.1 403 Forbidden\r\n\r\nnot from there";
        let (_, found) = asked(refused, |page| page.order("{}"));
        let why = found.expect_err("refused");
        assert!(why.ends_with("'HTTP/1.1 403 Forbidden': not from there"), "{why}");
    }
}
