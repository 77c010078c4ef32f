//! The hosts of `graphs/cell` through a router: a session of eclipse-zenoh for Python.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::stage::Cell;
use crate::program::{ours, refused, skip, wait_until};

/// A router that runs until its input ends.
const ROUTER: &str = "
import sys, zenoh
settings = zenoh.Config.from_json5('''{
    mode: 'router', listen: { endpoints: ['tcp/%s'] },
    scouting: { multicast: { enabled: false }, gossip: { enabled: false } },
    transport: { link: { tx: { lease: 500 } }, shared_memory: { enabled: false } },
}''' % sys.argv[1])
with zenoh.open(settings) as session:
    sys.stdin.read()
";

/// The router's process.
struct Router(Child);

impl Router {
    /// A router that listens at this address.
    fn start(python: &str, address: &str) -> Router {
        let mut command = Command::new(python);
        let child = command.args(["-c", ROUTER, address]).stdin(Stdio::piped()).spawn();
        Router(child.expect("it runs"))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        // Killed without a message to anybody, as in an outage.
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// A Python that has zenoh. `None` if there is none.
fn python() -> Option<String> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_it = Command::new(&python).args(["-c", "import zenoh"]).output();
    if has_it.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(&format!("'{python}' cannot import zenoh; name another in SINEW_TEST_PYTHON"));
    None
}

/// Edits with which the hosts connect to a router instead of each other.
fn edits(router: &str) -> [(&'static str, String); 3] {
    [
        ("{address: \"{{ env.CELL or '127.0.0.1:7447' }}\"}", format!("{{router: '{router}'}}")),
        ("{address: \"{{ env.OFFICE or '127.0.0.1:7448' }}\"}", format!("{{router: '{router}'}}")),
        ("hall: {}", format!("hall: {{router: '{router}'}}")),
    ]
}

#[test]
fn hosts_go_on_when_their_router_vanishes_and_comes_back() {
    let Some(python) = python() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    drop(listener);
    let cell = Cell::new("routed");
    let edits = edits(&address);
    let edits = edits.each_ref().map(|(from, to)| (*from, to.as_str()));
    // The hosts run before the router.
    let (here, office) = (cell.run_edited("cell", &edits), cell.run_edited("office", &edits));
    here.sees("(router)", "unheard");
    let router = Router::start(&python, &address);
    here.obeys_more_targets("through the router");
    here.sees("(router)", "heard");
    drop(router);
    here.sees("(router)", "silent");
    here.sees("office", "silent");
    assert!(here.shown().contains("not connected"), "{}", here.shown());
    assert_eq!(here.top()["phase"], "running");
    let _router = Router::start(&python, &address);
    here.obeys_more_targets("through the router that came back");
    here.sees("office", "heard");
    wait_until("the log says all of it", || {
        let log = here.log();
        let texts = ["the router is connected", "the router cannot be reached; the host goes on"];
        texts.iter().all(|text| log.contains(text))
    });
    office.stop();
    here.stop();
}

#[test]
fn a_graph_with_a_router_is_not_drilled() {
    let graph = ours("graphs/cell/cell.yaml").display().to_string();
    let router = ["cell", "office"].map(|host| format!("hosts.{host}.router=router.example:7447"));
    let words = ["drill", "--host", "cell", "--set", &router[0], "--set", &router[1], &graph];
    refused(&words, "so it takes no host with a 'router'");
}
