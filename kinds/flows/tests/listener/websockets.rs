//! WebSockets, frame by frame (RFC 6455), and with a client that is not ours.

use std::env;
use std::io::Read;
use std::process::Command;

use super::server::{Client, Server, get, until};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A listener whose requests become websockets; `echo` answers with what it gets.
fn server(listener: &str, websocket: &str, more: &str) -> Server {
    let echo = match [websocket, more].concat().contains(": echo,") {
        true => "- {kind: nop, name: echo}",
        false => "",
    };
    Server::of_graph(&format!(
        "
        - kind: listener
          name: listener
          port: 0
          hosts: ['*']
          ports: {{out: [{{name: socket, port: in}}]}}
          {listener}
        - {{kind: websocket, name: socket, {websocket}}}
        {echo}
        {more}
        "
    ))
}

const ECHO: &str = "ports: {out: [{name: echo, port: in}]}";

/// A connected client that can send any frames.
struct Socket(Client);

impl Socket {
    fn to(server: &Server) -> Socket {
        let mut client = server.client();
        client.send(asks("x3JJHMbDL1EzLkh9GBhXDw=="));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        // The example of RFC 6455, 1.3, has another key; this one is from the page of Wikipedia.
        assert!(head.contains("sec-websocket-accept: HSmrc0sMlYUkAGmm5OPpG2HaGWk=\r\n"), "{head}");
        Socket(client)
    }

    fn say(&mut self, kind: u8, payload: impl AsRef<[u8]>) {
        self.0.send(frame(kind, payload.as_ref()));
    }

    /// The next frame: its first byte and its payload. `None` if the other side has closed.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.stream.read_exact(&mut head).ok()?;
        let len = match head[1] {
            126 => {
                let mut len = [0; 2];
                self.0.stream.read_exact(&mut len).ok()?;
                u16::from_be_bytes(len).into()
            }
            127 => panic!("longer than a test needs"),
            len => usize::from(len),
        };
        let mut payload = vec![0; len];
        self.0.stream.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }

    /// Reads up to the other side's close, and returns its code; then the other side must be gone.
    fn closed(&mut self) -> u16 {
        loop {
            let (kind, payload) = self.next().expect("a close");
            if kind == CLOSE {
                let _ = self.0.stream.get_ref().shutdown(std::net::Shutdown::Write);
                assert!(self.next().is_none(), "nothing comes after a close");
                return u16::from_be_bytes([payload[0], payload[1]]);
            }
        }
    }
}

fn asks(key: &str) -> String {
    get("/").replace(
        "\r\n\r\n",
        &format!(
            "\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Protocol: a, chat\r\n\r\n"
        ),
    )
}

/// A frame of a client, masked by zeros.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    match payload.len() {
        len @ ..126 => frame.push(0x80 | len as u8),
        len @ ..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

#[test]
fn each_message_is_a_packet_and_its_reply_is_sent_back() {
    let server = server("", &format!("protocols: [chat], {ECHO}"), "");
    let mut socket = Socket::to(&server);
    socket.say(TEXT, "h\u{e4}llo");
    assert_eq!(socket.next(), Some((TEXT, "h\u{e4}llo".as_bytes().to_vec())));
    socket.say(BINARY, [0, 255]);
    assert_eq!(socket.next(), Some((BINARY, vec![0, 255])));
    socket.say(PING, "x");
    assert_eq!(socket.next(), Some((PONG, b"x".to_vec())));
    // In fragments, with a ping between them.
    socket.say(0x01, "a");
    socket.say(PING, "");
    socket.say(0x80, "b");
    assert_eq!(socket.next(), Some((PONG, Vec::new())));
    assert_eq!(socket.next(), Some((TEXT, b"ab".to_vec())));
    let long = "x".repeat(60_000);
    socket.say(TEXT, &long);
    assert_eq!(socket.next(), Some((TEXT, long.into_bytes())));
    socket.say(CLOSE, 1000_u16.to_be_bytes());
    assert_eq!(socket.closed(), 1000);
    assert!(until(|| server.figures.waiting() == 0));
}

/// A proxy before this server.
fn proxy(server: &Server) -> Server {
    Server::of_graph(&format!(
        "
        - {{kind: listener, name: listener, port: 0, hosts: ['*'],
           ports: {{out: [{{name: proxy, port: in}}]}}}}
        - {{kind: http, name: proxy, url: 'http://{}', proxy: true}}
        ",
        server.address
    ))
}

#[test]
fn a_proxy_passes_a_websocket_on_until_one_side_ends() {
    let server = server("", &format!("protocols: [chat], {ECHO}"), "");
    let proxy = proxy(&server);
    let mut socket = Socket::to(&proxy);
    socket.say(TEXT, "h\u{e4}llo");
    assert_eq!(socket.next(), Some((TEXT, "h\u{e4}llo".as_bytes().to_vec())));
    let long = "x".repeat(60_000);
    for _ in 0..20 {
        socket.say(TEXT, &long);
        assert_eq!(socket.next(), Some((TEXT, long.clone().into_bytes())));
    }
    // The server closes the websocket in order, because of the client's bad frame.
    socket.say(0x70, "");
    assert_eq!(socket.closed(), 1002);
    // The client goes away, and the server learns of it.
    let mut gone = Socket::to(&proxy);
    gone.say(PING, "");
    assert_eq!(gone.next(), Some((PONG, Vec::new())));
    drop(gone);
    assert!(until(|| server.figures.waiting() == 0 && proxy.figures.waiting() == 0));
    // A request that the server refuses stays an ordinary request.
    let mut client = proxy.client();
    let answer = client.ask(&asks("short"));
    assert_eq!((answer.status, client.ask(&get("/")).status), (400, 426));
}

#[test]
fn a_stop_ends_the_websockets_that_a_proxy_passes_on() {
    let server = server("", ECHO, "");
    let proxy = proxy(&server);
    let mut socket = Socket::to(&proxy);
    proxy.stop();
    assert_eq!(socket.next(), None);
    assert!(until(|| server.figures.waiting() == 0), "the backend still has it");
}

#[test]
fn what_asks_for_no_websocket_is_refused_and_the_connection_goes_on() {
    let server = server("", ECHO, "");
    let mut client = server.client();
    let answer = client.ask(&get("/"));
    assert_eq!((answer.status, answer.header("sec-websocket-version")), (426, Some("13")));
    assert_eq!(client.ask(&asks("short")).status, 400);
    let old = asks("x3JJHMbDL1EzLkh9GBhXDw==").replace("Version: 13", "Version: 8");
    assert_eq!(server.ask(&old).status, 426);
}

#[test]
fn frames_that_break_the_protocol_close_it_with_the_code_for_that() {
    let server = server("", &format!("as: json, message_size_max: 1KiB, {ECHO}"), "");
    let cases: [(&[u8], u16); 9] = [
        (&[0x81, 0x01, b'x'], 1002),         // not masked
        (&frame(0x83, b""), 1002),           // an unknown kind
        (&frame(0xc1, b"x"), 1002),          // a reserved bit
        (&frame(0x80, b"x"), 1002),          // goes on with nothing
        (&frame(0x09, b""), 1002),           // a ping in fragments
        (&frame(PING, &[b'x'; 126]), 1002),  // a ping too long
        (&frame(TEXT, b"\xff"), 1007),       // no UTF-8
        (&frame(TEXT, b"{"), 1007),          // no JSON
        (&frame(TEXT, &[b'1'; 1025]), 1009), // too long
    ];
    for (bytes, code) in cases {
        let mut socket = Socket::to(&server);
        socket.0.send(bytes);
        assert_eq!(socket.closed(), code, "{bytes:?}");
    }
    // A frame that claims to be huge, and a message that never ends.
    let mut huge = Socket::to(&server);
    huge.0.send([0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(huge.closed(), 1009);
    let mut endless = Socket::to(&server);
    endless.say(0x01, [b'1'; 1000]);
    endless.say(0x00, [b'1'; 1000]);
    assert_eq!(endless.closed(), 1009);
    let mut good = Socket::to(&server);
    good.say(TEXT, "{\"a\": [1]}");
    assert_eq!(good.next(), Some((TEXT, b"{\"a\":[1]}".to_vec())));
}

#[test]
fn a_message_that_fails_closes_it_and_a_slow_one_holds_back_the_next() {
    let fails = server(
        "",
        "ports: {out: [{name: no, port: in}]}",
        "- {kind: throw, name: no, status: 500, message: a secret}",
    );
    let mut socket = Socket::to(&fails);
    socket.say(TEXT, "x");
    assert_eq!(socket.closed(), 1011);
    let slow = server(
        "",
        "ports: {out: [{name: wait, port: in}]}",
        "- {kind: sleep, name: wait, duration: 50ms, ports: {out: [{name: echo, port: in}]}}",
    );
    let mut socket = Socket::to(&slow);
    for text in ["1", "2", "3"] {
        socket.say(TEXT, text);
    }
    socket.say(PING, "");
    let mut heard = Vec::new();
    while heard.len() < 3 {
        let (kind, payload) = socket.next().expect("an answer");
        if kind == TEXT {
            heard.push(payload[0]);
        }
    }
    assert_eq!(heard, b"123");
}

#[test]
fn a_stream_is_sent_while_it_comes_and_a_stop_closes_in_order() {
    let server = server(
        "",
        "ports: {out: [{name: say, port: in}], send: [{name: hear, port: in}]}",
        "
        - {kind: topic, name: news}
        - {kind: publish, name: say, topic: news, ports: {out: [{name: none, port: in}]}}
        - {kind: subscribe, name: hear, topic: news, as: lines}
        - {kind: snippet, name: none, language: cel, code: 'null'}
        ",
    );
    let (mut first, mut second) = (Socket::to(&server), Socket::to(&server));
    // When both have got this, both have joined.
    for text in ["one", "two"] {
        first.say(TEXT, text);
        assert_eq!(first.next(), Some((TEXT, text.into())));
    }
    let mut heard = second.next().expect("a message");
    if heard.1 == b"one" {
        heard = second.next().expect("a message");
    }
    assert_eq!(heard, (TEXT, b"two".to_vec()));
    drop(first);
    second.say(TEXT, "three");
    assert_eq!(second.next(), Some((TEXT, b"three".to_vec())), "the other keeps nobody waiting");
    server.stop();
    assert_eq!(second.closed(), 1001);
    assert!(server.has_ended());
}

#[test]
fn who_says_nothing_is_asked_and_then_closed() {
    let server = server("idle_max: 1s", &format!("ping: 200ms, {ECHO}"), "");
    let mut lively = Socket::to(&server);
    let mut dead = Socket::to(&server);
    for _ in 0..10 {
        assert_eq!(lively.next(), Some((PING, Vec::new())), "it outlives what idles");
        lively.say(PONG, "");
    }
    assert_eq!(dead.next(), Some((PING, Vec::new())));
    assert!(dead.next().is_none());
    lively.say(TEXT, "here");
    while lively.next() != Some((TEXT, b"here".to_vec())) {}
}

#[test]
fn a_client_that_never_reads_is_closed() {
    let server = server("stall_max: 300ms", ECHO, "");
    let mut bad = server.slow_client(4096, &asks("x3JJHMbDL1EzLkh9GBhXDw=="));
    let _ = bad.stream.get_ref().set_nonblocking(true);
    let long = frame(TEXT, &[b'x'; 60_000]);
    let sends = |bad: &mut Client| std::io::Write::write(&mut bad.stream.get_ref(), &long);
    assert!(until(|| {
        let sent = sends(&mut bad);
        sent.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
    }));
}

/// A client that is not ours: Python's package websockets.
#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
fn a_client_of_others_is_understood() {
    let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = Command::new(&python).args(["-c", "import websockets"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        let missing =
            format!("'{python}' cannot import websockets; name another in SINEW_TEST_PYTHON");
        assert!(env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    }
    let server = server("", &format!("message_size_max: 1MiB, {ECHO}"), "");
    let script = "
import asyncio, sys, websockets
async def main(uri):
    async with websockets.connect(uri, max_size=None) as socket:
        short = ['', 'h\\u00e4llo', b'\\x00\\xff', 'x' * 125, 'x' * 126]
        for message in short + [b'y' * 70000, 'z' * 1000000]:
            await socket.send(message)
            assert await socket.recv() == message
        await socket.send(['in ', 'three ', 'pieces'])
        assert await socket.recv() == 'in three pieces'
        await (await socket.ping())
        for number in range(1000):
            await socket.send(str(number))
        assert [await socket.recv() for _ in range(1000)] == [str(it) for it in range(1000)]
    assert socket.close_code == 1000, socket.close_code
    async with websockets.connect(uri) as socket:
        await socket.send(b'x' * 1048577)
        try:
            await socket.recv()
            assert False, 'too long'
        except websockets.exceptions.ConnectionClosed as closed:
            assert closed.rcvd.code == 1009, closed
asyncio.run(main(sys.argv[1]))
";
    let proxy = proxy(&server);
    for at in [server.address, proxy.address] {
        let uri = format!("ws://{at}/");
        let output = Command::new(&python).args(["-c", script, &uri]).output().expect("it runs");
        assert!(output.status.success(), "{at}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
