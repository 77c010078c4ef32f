//! Carries out the tests of a graph in this process: no source is started, no port is opened, and
//! there is no core.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sinew_core::Parameters;
use sinew_core::Refusal;
use sinew_flow::{FlowEntry, FlowFixture, Reply, Value};
use sinew_spec::plan::{Node, Plan};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::mock::{self, Current};
use super::show;
use super::test::{INFO, Test};
use crate::script::library;

/// The output of the kind `test`, by index of its table.
const OUT: usize = 0;

/// The tests of a graph.
pub struct Suite {
    /// Each with its node's name, in the order of the spec.
    tests: Vec<(String, Test)>,
    /// With the mocks of the test that runs; `None` without tests.
    fixture: Option<(FlowFixture, Current)>,
    runtime: Runtime,
}

/// What became of a test.
#[derive(Clone, Debug)]
pub struct TestOutcome {
    /// Its node.
    pub name: String,
    /// What was expected, as the spec says it.
    pub expected: String,
    /// Why it failed, if there is more to say than that the expectation is not true.
    pub reason: Option<String>,
    /// The reply that came.
    pub reply: Reply,
    /// Whether the reply is as expected.
    pub passed: bool,
}

impl Suite {
    /// Makes the flow nodes of a graph.
    ///
    /// # Errors
    /// Why a node cannot be made.
    ///
    /// # Panics
    /// If the plan was made with another table, or the kernel refuses a thread.
    pub fn new(
        plan: &Arc<Plan>,
        table: &[FlowEntry],
        folder: &Path,
    ) -> Result<Suite, Vec<Refusal>> {
        let nodes = plan.nodes.iter().filter(|node| node.kind.name == INFO.name);
        let test =
            |node: &Node| Ok((node.name.clone(), Test::of(&Parameters::of(plan, node, folder))?));
        let tests = nodes.map(test).collect::<Result<Vec<_>, Vec<Refusal>>>()?;
        let made =
            (!tests.is_empty()).then(|| FlowFixture::new(plan, table, folder)).transpose()?;
        let mocked: BTreeSet<&str> =
            tests.iter().flat_map(|(_, test)| test.mocks.keys().map(String::as_str)).collect();
        let fixture = made.map(|mut fixture| {
            let mocks = mock::install(&mut fixture, mocked.into_iter());
            (fixture, mocks)
        });
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Suite { tests, fixture, runtime: runtime.expect("a timer and a poll of our own") })
    }

    /// The names of the tests, in the order of the spec.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().map(|(name, _)| name.as_str())
    }

    /// Carries out the test with this name; `None` if there is none.
    pub fn run(&self, name: &str) -> Option<TestOutcome> {
        let (name, test) = self.tests.iter().find(|(test, _)| test == name)?;
        let (fixture, mocks) = self.fixture.as_ref()?;
        mocks.replace(test.mocks.clone());
        let _now = test.now_ms.map(library::pretend);
        let flow = fixture.flow();
        // Forked children that the test leaves behind end with the `LocalSet`.
        let (packet, reply) = LocalSet::new().block_on(&self.runtime, async {
            match test.packet(&flow).await {
                Ok(packet) => {
                    let sent = packet.clone();
                    (packet, fixture.send(&flow, name, OUT, sent, test.limits).await)
                }
                Err(error) => (Value::Null, Err(error)),
            }
        });
        let judged = test.judge(&flow, &packet, &reply);
        Some(TestOutcome {
            name: name.clone(),
            expected: test.expected().to_owned(),
            passed: judged == Ok(true),
            reason: judged.err(),
            reply,
        })
    }
}

impl fmt::Display for TestOutcome {
    /// `ok name`, or `FAILED name` with what was expected and what came.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.passed {
            return write!(f, "ok      {}", self.name);
        }
        let TestOutcome { name, expected, reason, .. } = self;
        write!(f, "FAILED  {name}\n  expected: {expected}")?;
        if let Some(reason) = reason {
            write!(f, "\n  but: {reason}")?;
        }
        match &self.reply {
            Ok(None) => write!(f, "\n  came: nothing"),
            Ok(Some(reply)) => write!(f, "\n  came: {}", show(reply)),
            Err(error) => write!(f, "\n  came: error {}: {error}", error.status()),
        }
    }
}

#[cfg(test)]
mod tests;
