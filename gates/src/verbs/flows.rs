//! Flows that are begun as by a source, without a worker around them.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use sinew_flow::testing::fixture;
use sinew_flow::{Outlet, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::{TIMES, Work};

/// Longest time that a flow may take. None comes near it.
const LIMIT: Duration = Duration::from_secs(60);

struct Flows {
    outlet: Outlet,
    /// One packet for each flow. The order of a map's fields is random, and different in each map.
    /// With so many packets, the count does not depend on it.
    packets: Vec<Value>,
    runtime: Runtime,
    set: LocalSet,
}

impl Flows {
    /// Flows through this graph. Each begins with a packet from `packet`.
    fn new(text: &str, packet: impl Fn() -> Value) -> Flows {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let outlet = fixture(text, &sinew::kinds().flows).outlet("begin");
        let packets = (0..TIMES).map(|_| packet()).collect();
        let flows = Flows { outlet, packets, runtime, set: LocalSet::new() };
        // The first flow with a packet may create things that stay in the packet or in the nodes.
        flows.run(TIMES);
        flows
    }

    /// Runs this many flows, one after another.
    fn run(&self, times: usize) {
        self.set.block_on(&self.runtime, async {
            for packet in &self.packets[..times] {
                self.open(packet).await;
            }
        });
    }

    async fn open(&self, packet: &Value) {
        let reply = self.outlet.open(0, black_box(packet.clone()), LIMIT).await;
        black_box(reply).expect("nothing fails");
    }
}

/// This many `nop` nodes in a row.
fn chain(nodes: usize) -> Flows {
    let mut text = String::new();
    for at in 1..nodes {
        let ports = format!("{{out: [{{name: n{}, port: in}}]}}", at + 1);
        writeln!(text, "- {{kind: nop, name: n{at}, ports: {ports}}}").expect("memory");
    }
    writeln!(text, "- {{kind: nop, name: n{nodes}}}").expect("memory");
    Flows::new(&text, || Value::text("x"))
}

/// Opens flows that have one node on their path.
pub(super) fn open() -> Work {
    let flows = chain(1);
    Box::new(move || flows.run(TIMES))
}

/// A mistake: the same, with a lock that is held while each flow is opened.
#[expect(clippy::await_holding_lock, reason = "that is the mistake")]
pub(super) fn open_locked() -> Work {
    static OPENING: Mutex<()> = Mutex::new(());
    let flows = chain(1);
    Box::new(move || {
        flows.set.block_on(&flows.runtime, async {
            for packet in &flows.packets {
                let opening = OPENING.lock().expect("nobody panics");
                flows.open(packet).await;
                drop(opening);
            }
        });
    })
}

/// Passes flows from node to node.
pub(super) fn hop() -> Work {
    const NODES: usize = 100;
    let flows = chain(NODES);
    Box::new(move || flows.run(TIMES / NODES))
}

const ROUTER: &str = "
- kind: router
  name: router
  routes:
    - {method: GET, path: /ping, port: 'out[0]'}
    - {method: GET, path: '/users/{id}/posts', port: 'out[1]'}
    - {method: POST, path: '/users/{id}/posts', port: 'out[1]'}
    - {method: GET, path: '/files/{*rest}', port: 'out[0]'}
  ports:
    out[0]: [{name: end, port: in}]
    out[1]: [{name: end, port: in}]
- {kind: nop, name: end}
";

/// Sends this path to a router.
pub(super) fn route(path: &str) -> Work {
    let packet = || Value::map([("method", Value::text("GET")), ("path", Value::text(path))]);
    let flows = Flows::new(ROUTER, packet);
    Box::new(move || flows.run(TIMES))
}

/// Sends a user to this node.
pub(super) fn node(node: &str) -> Work {
    let user = || Value::map([("name", Value::text("Ada")), ("age", Value::Integer(36))]);
    let flows = Flows::new(&format!("- {{{node}, name: a}}"), || Value::map([("user", user())]));
    Box::new(move || flows.run(TIMES))
}
