//! Graphs of flow nodes in tests: text in, reply out.

use std::cell::Cell;
use std::env;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytestring::ByteString;
use sinew_core::Refusal;
pub(crate) use sinew_flow::testing::run;
use sinew_flow::testing::{self, BEGIN};
use sinew_flow::{Document, Error, FlowEntry, FlowFixture, Reply, Value};
use sinew_spec::plan::Plan;
use tokio::task::{spawn_local, yield_now};

use crate::FLOWS;

/// Longest that a flow in a test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A request whose path and query can be read, and whose body is malformed.
#[derive(Debug)]
pub(crate) struct MalformedRequest;

impl Document for MalformedRequest {
    fn field(&self, name: &str) -> Result<Value, Error> {
        match name {
            "path" => Ok(Value::text("/x")),
            "query" => Ok(Value::map([("a", Value::text("1"))])),
            _ => Err(Error::new("the body is not JSON").with_status(400)),
        }
    }
    fn names(&self) -> &[ByteString] {
        static NAMES: LazyLock<[ByteString; 3]> =
            LazyLock::new(|| ["path", "query", "body"].map(ByteString::from_static));
        &*NAMES
    }
}

/// All kinds, and `begin`.
pub(crate) fn table() -> Vec<FlowEntry> {
    [&[BEGIN], FLOWS].concat()
}

/// The output of a future, and how many turns another future of its worker had meanwhile.
pub(crate) async fn turns<T>(work: impl Future<Output = T>) -> (T, u32) {
    let (turns, is_over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (counted, over) = (Rc::clone(&turns), Rc::clone(&is_over));
    let other = spawn_local(async move {
        while !over.get() {
            counted.set(counted.get() + 1);
            yield_now().await;
        }
    });
    let made = work.await;
    is_over.set(true);
    other.await.expect("it counts");
    (made, turns.get())
}

/// The plan of a graph.
///
/// # Panics
/// If it does not compile.
pub(crate) fn plan(text: &str) -> Arc<Plan> {
    try_plan(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The plan of a graph, or what the compiler says.
pub(crate) fn try_plan(text: &str) -> Result<Arc<Plan>, String> {
    let kinds: Vec<_> = table().iter().map(|row| row.kind).collect();
    testing::try_plan(text, &kinds)
}

/// The nodes of a graph, made. `begin` is added if the graph needs it.
///
/// # Panics
/// If they cannot be made.
pub(crate) fn fixture(text: &str) -> FlowFixture {
    testing::fixture(text, FLOWS)
}

/// Why the nodes of a graph cannot be made.
///
/// # Panics
/// If they can be made.
pub(crate) fn refusals(text: &str) -> Vec<Refusal> {
    testing::try_fixture(text, FLOWS).err().expect("a refusal")
}

/// The reply to a packet that the node `begin` sends.
pub(crate) fn reply(text: &str, packet: Value) -> Reply {
    let fixture = fixture(text);
    run(fixture.open("begin", 0, packet, LIMIT))
}

/// A Python that can import these modules. Without one, says that the test is skipped and gives
/// `None`.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn python(modules: &str) -> Option<String> {
    let python = env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let imports = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if imports.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let missing = format!("'{python}' cannot import {modules}; see tests/python");
    assert!(env::var("CI").is_err(), "{missing}");
    eprintln!("skipped: {missing}");
    None
}
