//! A listener with one worker on a thread, and a client that can send any bytes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use sinew_core::catalogue::Kind;
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    Ahead, At, Error, FLOW, FlowEntry, FlowFixture, FlowNode, Make, NodeFigures,
    Source as FlowSource, Step, StopSignal, Stopper, Stream, Value, input, testing,
};
use sinew_flows::FLOWS;
use sinew_spec::plan::Plan;
use socket2::{Domain, Socket, Type};

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

static APP: Kind =
    Kind { name: "app", doc: "Answers by the path.", ports: &[input("in", "A request.")], ..FLOW };

struct App;

fn make(_parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    Ok(Box::new(App))
}

/// Ids of requests that were cancelled.
static CANCELLED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether the request with this id is cancelled within the patience of a test.
pub(crate) fn is_cancelled(id: &str) -> bool {
    let seen = || CANCELLED.lock().unwrap_or_else(PoisonError::into_inner).contains(id);
    until(seen)
}

/// Whether something comes true within the patience of a test.
pub(crate) fn until(mut seen: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !seen() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

struct Guard(String);

impl Drop for Guard {
    fn drop(&mut self) {
        CANCELLED.lock().unwrap_or_else(PoisonError::into_inner).insert(self.0.clone());
    }
}

fn query(packet: &Value, name: &str) -> String {
    let query = packet.field("query").and_then(|query| query.field(name));
    query.ok().and_then(|value| value.as_text().map(str::to_owned)).unwrap_or_default()
}

impl FlowNode for App {
    fn ahead(&self, packet: &Value) -> Ahead {
        match packet.field("path").expect("a path").as_text() {
            Some("/stop") => Ahead::Reserved,
            _ => Ahead::Ordinary,
        }
    }

    fn handle<'a>(&'a self, _at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let path = packet.field("path").expect("a path");
        match path.as_text().expect("a text") {
            "/stop" => Step::Reply(Some(Value::text("stopped"))),
            "/text" => Step::Reply(Some(Value::text("pong"))),
            "/json" => packet.resolve().map_or_else(Step::Fail, |it| Step::Reply(Some(it))),
            "/fail" => Step::Fail(Error::new("a secret")),
            "/never" => {
                let guard = Guard(query(&packet, "id"));
                Step::wait(async move {
                    std::future::pending::<()>().await;
                    drop((guard, packet));
                    Step::Reply(None)
                })
            }
            // Takes all of the body, and does not answer.
            "/take" => {
                let guard = Guard(query(&packet, "id"));
                Step::wait(async move {
                    if let Ok(Value::Stream(stream)) = packet.field("body") {
                        let parts = stream.take().expect("nobody else reads it");
                        parts.for_each(|_| std::future::ready(())).await;
                    }
                    std::future::pending::<()>().await;
                    drop(guard);
                    Step::Reply(None)
                })
            }
            "/slow" => Step::wait(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Step::Reply(Some(Value::text("slow")))
            }),
            "/big" => {
                let size = query(&packet, "size").parse().expect("a size");
                Step::Reply(Some(Value::Bytes(Bytes::from(vec![b'x'; size]))))
            }
            "/numbers" => {
                let count: i64 = query(&packet, "count").parse().expect("a count");
                Step::Reply(Some(Value::list((0..count).map(|_| Value::Integer(7)))))
            }
            // Text that can hardly be compressed.
            "/noise" => {
                let size = query(&packet, "size").parse().expect("a size");
                let mut state = 1_u32;
                let mut next = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    char::from(b' ' + (state >> 26) as u8)
                };
                let text: String = (0..size).map(|_: usize| next()).collect();
                Step::Reply(Some(Value::text(text)))
            }
            "/page" => Step::Reply(Some(Value::text("page ".repeat(1000)))),
            "/stream" => {
                let parts = ["a", "b", "c"].map(|part| Ok(Bytes::from_static(part.as_bytes())));
                let stream = Stream::new(futures_util::stream::iter(parts));
                Step::Reply(Some(Value::Stream(stream)))
            }
            _ => Step::Reply(Some(packet)),
        }
    }
}

fn table() -> Vec<FlowEntry> {
    let app = FlowEntry { kind: &APP, make: Make::Node(make) };
    [&[app], FLOWS].concat()
}

/// The plan of a graph with a listener; `options` are its keys in YAML. Without `port` it listens
/// at any free port; without `hosts` it may be called by any name.
fn plan(options: &str) -> Arc<Plan> {
    let port = if options.contains("port:") { "" } else { "port: 0, " };
    let hosts = if options.contains("hosts:") { "" } else { "hosts: ['*'], " };
    let text = format!(
        "- {{kind: listener, name: listener, {port}{hosts}ports: {{out: [{{name: app, \
         port: in}}]}}, {options}}}\n- {{kind: app, name: app}}\n"
    );
    plan_of(&text)
}

fn plan_of(text: &str) -> Arc<Plan> {
    let kinds: Vec<_> = table().iter().map(|row| row.kind).collect();
    testing::try_plan(text, &kinds).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Makes the listener with these options.
pub(crate) fn source(options: &str) -> Result<Box<dyn FlowSource>, Vec<Refusal>> {
    source_of(&plan(options))
}

fn source_of(plan: &Plan) -> Result<Box<dyn FlowSource>, Vec<Refusal>> {
    let node = plan.nodes.iter().find(|node| node.name == "listener").expect("a listener");
    let parameters = Parameters::of(plan, node, Path::new("."));
    let row = FLOWS.iter().find(|row| row.kind.name == "listener").expect("its row");
    match row.make {
        Make::Source(make) => make(&parameters),
        Make::Node(_) | Make::Resource(_) => panic!("a listener is a source"),
    }
}

/// A listener that serves.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) figures: Arc<NodeFigures>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a listener with these options.
    pub(crate) fn start(options: &str) -> Server {
        Server::serve(plan(options))
    }

    /// Starts the node `listener` of a graph.
    pub(crate) fn of_graph(text: &str) -> Server {
        Server::serve(plan_of(text))
    }

    fn serve(plan: Arc<Plan>) -> Server {
        let source = source_of(&plan).unwrap_or_else(|refusals| panic!("{refusals:?}"));
        let mut parts = source.open(1).unwrap_or_else(|fault| panic!("{fault}"));
        let part = parts.remove(0);
        let address = part.address().expect("an address");
        let address = address.split("//").nth(1).expect("a URI").parse().expect("an address");
        let (sender, receiver) = sync_channel(1);
        let thread = thread::spawn(move || {
            let fixture = FlowFixture::new(&plan, &table(), Path::new("."));
            let fixture = fixture.unwrap_or_else(|refusals| panic!("{refusals:?}"));
            let (stopper, stop) = StopSignal::new();
            let said = (stopper, fixture.figures("listener"));
            sender.send(said).expect("the test listens");
            let serves = part.serve(fixture.outlet("listener"), stop.clone());
            testing::run(async {
                let retires = async {
                    let mut stop = stop;
                    stop.wait().await;
                    fixture.retire();
                };
                tokio::join!(serves, retires).0
            })
            .expect("served");
        });
        let (stopper, figures) = receiver.recv().expect("a stopper");
        Server { address, figures, stopper, thread: Some(thread) }
    }

    /// Tells it to stop.
    pub(crate) fn stop(&self) {
        self.stopper.end();
    }

    /// Tells it that another listener has taken its place.
    pub(crate) fn make_way(&self) {
        self.stopper.make_way();
    }

    /// Whether it has ended within the patience of a test.
    pub(crate) fn has_ended(&self) -> bool {
        until(|| self.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// A client with a small receive buffer. It sends a request, and does not read yet.
    pub(crate) fn slow_client(&self, buffer_size: usize, request: &str) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(buffer_size).expect("a small buffer");
        socket.connect(&self.address.into()).expect("connected");
        let mut client = Client::of(socket.into());
        client.send(request);
        client
    }

    /// The answer to one request.
    pub(crate) fn ask(&self, request: &str) -> Answer {
        self.client().ask(request)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper.end();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok(), "the server panicked");
        }
    }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// An HTTP/1.1 request.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// A request with a body.
pub(crate) fn post(target: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Client {
        Client::of(TcpStream::connect(address).expect("a connection"))
    }

    pub(crate) fn of(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a limit");
        Client { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.get_ref().write_all(text.as_ref()).expect("sent");
    }

    pub(crate) fn ask(&mut self, request: &str) -> Answer {
        self.send(request);
        self.answer(!request.starts_with("HEAD"))
    }

    /// Reads an answer.
    pub(crate) fn answer(&mut self, has_body: bool) -> Answer {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").and_then(|it| it.parse().ok());
        if answer.header("transfer-encoding") == Some("chunked") {
            while let size @ 1.. = usize::from_str_radix(self.line().trim(), 16).expect("a size") {
                answer.body.extend(self.bytes(size));
                self.bytes(2);
            }
            self.bytes(2);
        } else if has_body {
            answer.body = self.bytes(length.unwrap_or(0));
        }
        answer
    }

    /// Reads a head.
    pub(crate) fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head += &self.line();
        }
        head
    }

    /// Reads a chunk; the last one is empty.
    pub(crate) fn chunk(&mut self) -> String {
        let size = usize::from_str_radix(self.line().trim(), 16).expect("a size");
        let bytes = self.bytes(size);
        self.bytes(2);
        String::from_utf8(bytes).expect("a text")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).expect("an answer in time");
        assert!(read > 0, "closed within an answer");
        line
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).expect("a whole answer in time");
        bytes
    }

    /// Whether the other side closes without sending more.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let closed = match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        closed && rest.is_empty()
    }
}
