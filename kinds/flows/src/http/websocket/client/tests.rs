//! The client against servers of this machine, ours and those of others.

use std::path::Path;
use std::process::Stdio;
use std::{env, io};

use futures_util::{SinkExt, StreamExt};
use sinew_flow::FlowFixture;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::testing::{fixture, plan, run, table};

/// A graph whose source answers messages with what a node makes of them.
fn graph(url: &str) -> String {
    format!(
        "
        - kind: websocket_client
          name: client
          url: {url}
          as: json
          backoff: 1ms
          ports: {{out: [{{name: double, port: in}}], send: [{{name: hello, port: in}}]}}
        - {{kind: snippet, name: double, language: cel, code: packet * 2}}
        - {{kind: snippet, name: hello, language: cel, code: '\"hello\"'}}
        "
    )
}

/// Serves the source of a graph; gives what stops it.
fn serve(graph: &str) -> (FlowFixture, sinew_flow::Stopper) {
    let plan = plan(graph);
    let parameters = Parameters::of(&plan, &plan.nodes[0], Path::new("."));
    let made = make(&parameters).unwrap_or_else(|refusals| panic!("{refusals:?}"));
    let part = made.open(1).expect("it opens nothing").remove(0);
    let fixture = fixture(graph);
    let (stopper, stop) = StopSignal::new();
    let serving = part.serve(fixture.outlet("client"), stop);
    spawn_local(async move { serving.await.expect("it ends in order") });
    (fixture, stopper)
}

#[test]
fn messages_are_answered_and_a_connection_that_ends_is_made_again() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (fixture, stopper) = serve(&graph(&format!("ws://{address}/x")));
        for number in 1..4 {
            let (stream, _) = listener.accept().await.expect("it comes");
            let mut socket = accept_async(stream).await.expect("a websocket");
            let mut next = async || socket.next().await.expect("a message").expect("no error");
            assert_eq!(next().await, Message::text("hello"));
            socket.send(Message::text(number.to_string())).await.expect("sent");
            let answer = socket.next().await.expect("an answer").expect("no error");
            assert_eq!(answer, Message::text((number * 2).to_string()));
        }
        let (stream, _) = listener.accept().await.expect("it comes again");
        let mut socket = accept_async(stream).await.expect("a websocket");
        assert_eq!(socket.next().await.expect("one").expect("good"), Message::text("hello"));
        stopper.end();
        fixture.retire();
        let close = socket.next().await.expect("a close").expect("no error");
        assert!(matches!(&close, Message::Close(Some(it)) if it.code == 1001.into()), "{close:?}");
    });
}

/// Talks with one client, and says when all of it was right.
const SCRIPT: &str = "
import asyncio, websockets
async def main():
    done = asyncio.Future()
    async def talk(socket):
        assert await socket.recv() == 'hello'
        await (await socket.ping())
        for number in range(200):
            await socket.send(str(number))
        answers = [await socket.recv() for _ in range(200)]
        assert answers == [str(number * 2) for number in range(200)], answers
        await socket.close()
        done.set_result(None)
    async with websockets.serve(talk, '127.0.0.1', 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.wait_for(done, 30)
    print('done', flush=True)
asyncio.run(main())
";

/// Against another implementation: the package websockets of Python.
#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
fn a_server_of_others_is_understood() {
    let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = std::process::Command::new(&python).args(["-c", "import websockets"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        let missing =
            format!("'{python}' cannot import websockets; name another in SINEW_TEST_PYTHON");
        assert!(env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    }
    let mut server = std::process::Command::new(&python)
        .args(["-c", SCRIPT])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let said = server.stdout.take().expect("what it says");
    run(async {
        let said = tokio::net::unix::pipe::Receiver::from_owned_fd(said.into());
        let mut lines = BufReader::new(said.expect("a pipe")).lines();
        let mut line = async || -> io::Result<Option<String>> { lines.next_line().await };
        let port = line().await.expect("a line").expect("a port");
        let (_fixture, stopper) = serve(&graph(&format!("ws://127.0.0.1:{port}/")));
        assert_eq!(line().await.expect("a line").as_deref(), Some("done"));
        stopper.end();
    });
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn what_is_no_url_or_header_is_refused() {
    let refused = |parameters: &str| {
        let text = format!(
            "- {{kind: websocket_client, name: c, {parameters}, \
             ports: {{out: [{{name: n, port: in}}]}}}}\n\
             - {{kind: nop, name: n}}"
        );
        let plan = plan(&text);
        let row = table().into_iter().find(|row| row.kind.name == INFO.name).expect("its row");
        let found = row.check(&Parameters::of(&plan, &plan.nodes[0], Path::new(".")));
        found.err().map(|refusals| refusals[0].message.clone()).unwrap_or_default()
    };
    assert!(refused("url: http://a/b").contains("neither ws nor wss"));
    assert!(refused("url: 'ws://a:b@c/'").contains("a user"));
    assert!(refused("url: 'ws://{{ packet.host }}/'").contains("no packet"));
    assert!(refused("url: ws://a/, header: {'a b': c}").contains("not a header"));
    assert_eq!(refused("url: wss://a/b, header: {authorization: x}"), "");
}
