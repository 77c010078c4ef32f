//! A stream of events from a server that is not ours: Python's.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::server::{Server, get};

const SCRIPT: &str = "
from http.server import BaseHTTPRequestHandler, HTTPServer
class Events(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(200)
        self.send_header('content-type', 'text/event-stream')
        self.send_header('transfer-encoding', 'chunked')
        self.end_headers()
        def chunk(text):
            self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(text), text))
            self.wfile.flush()
        for number in range(1000):
            text = b': c\\r\\nevent: n\\r\\ndata: %d\\r\\n\\r\\n' % number
            for at in range(0, len(text), 5):
                chunk(text[at:at + 5])
        self.wfile.write(b'0\\r\\n\\r\\n')
    def log_message(self, *_):
        pass
server = HTTPServer(('127.0.0.1', 0), Events)
print(server.server_port, flush=True)
server.handle_request()
";

#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]
fn events_of_another_server_pass_through_a_stream() {
    let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let begun = Command::new(&python).args(["-c", SCRIPT]).stdout(Stdio::piped()).spawn();
    let mut other = match begun {
        Ok(other) => other,
        Err(error) => {
            assert!(env::var_os("CI").is_none(), "'{python}' cannot be run: {error}");
            eprintln!("skipped: '{python}' cannot be run; name another in SINEW_TEST_PYTHON");
            return;
        }
    };
    let mut port = String::new();
    let said = other.stdout.take().expect("what it says");
    BufReader::new(said).read_line(&mut port).expect("its port");
    let server = Server::of_graph(&format!(
        "
        - kind: listener
          name: listener
          port: 0
          hosts: ['*']
          ports: {{out: [{{name: ask, port: in}}]}}
        - kind: http
          name: ask
          url: http://127.0.0.1:{}/
          stream: true
          ports: {{out: [{{name: each, port: in}}]}}
        - kind: stream
          name: each
          of: packet.body
          framing: sse
          as: lines
          ports: {{out: [{{name: data, port: in}}]}}
        - {{kind: snippet, name: data, language: cel, code: 'packet.event + packet.data'}}
        ",
        port.trim()
    ));
    let expected: String = (0..1000).map(|number| format!("n{number}\n")).collect();
    assert_eq!(server.ask(&get("/")).text(), expected);
    assert!(other.wait().expect("it ends").success());
}
