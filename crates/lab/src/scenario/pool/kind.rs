//! `lab_request`: a flow node with blocking work. It does what the path of a request asks for, on
//! the domain's pool, and answers with the units of CPU work that it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Pool, Step, Value, input,
};

use super::connections::Connections;
use super::place::{Place, ROWS};
use super::request::{Asked, CONNECTIONS, COUNTED};
use super::work::{done, work};
use crate::words::words;

words! {
    /// The database that a query uses.
    pub(super) enum Database {
        /// A separate server, over a socket.
        Postgres = "postgres",
        /// A file that is read in the calling thread.
        Sqlite = "sqlite",
        /// There are no queries.
        None = "-",
    }
}

/// Most units of a request: some minutes of work.
const UNITS_MAX: i64 = 1 << 40;
/// Keys are this far apart, so that all rows of the table are used and two keys in a row are not
/// neighbours.
const STRIDE: u32 = 7919;

static KIND: Kind = Kind {
    name: "lab_request",
    doc: "Does CPU work, sleeps, asks a database, as a request's path says; on a thread for work \
          that blocks.",
    ports: &[input("in", "A listener's request.")],
    parameters: &[
        Parameter::new("units", ParameterType::Integer { min: 1, max: UNITS_MAX })
            .doc("CPU work of a request."),
        Parameter::new("database", ParameterType::Choice(Database::WORDS)).doc("Whom it asks."),
        Parameter::new("folder", ParameterType::Text).or("''").doc("Where the database is."),
    ],
    ..FLOW
};

/// The kind's row in the table; users do not see it.
pub(in crate::scenario) const NODE: FlowEntry = FlowEntry { kind: &KIND, make: Make::Node(make) };

struct Request {
    units: u64,
    /// One pool for each number of connections.
    pools: Arc<Vec<(usize, Connections)>>,
    key: Arc<AtomicU32>,
    /// `None` before it is attached.
    threads: Option<Pool>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let folder = parameters.path("folder");
    let place = match parameters.text("database") {
        "postgres" => Some(Place::Postgres(folder)),
        "sqlite" => Some(Place::Sqlite(folder)),
        _ => None,
    };
    let pools = place.map_or_else(Vec::new, |place| {
        CONNECTIONS.map(|max| (max, Connections::new(place.clone(), max))).into()
    });
    let units = parameters.integer("units").unsigned_abs();
    Ok(Box::new(Request { units, pools: Arc::new(pools), key: Arc::default(), threads: None }))
}

impl FlowNode for Request {
    fn attach(&mut self, site: &NodeContext) {
        self.threads = Some(site.pool.clone());
    }

    fn handle<'a>(&'a self, _: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        let path = match packet.field("path") {
            Ok(path) => path,
            Err(error) => return Step::Fail(error),
        };
        let path = path.as_text().unwrap_or_default();
        if path == COUNTED {
            return Step::Reply(Some(Value::text(done().to_string())));
        }
        match path.parse() {
            Ok(asked) => Step::wait(async move {
                match self.serve(asked).await {
                    Ok(units) => Step::Reply(Some(Value::text(units.to_string()))),
                    Err(error) => Step::Fail(error),
                }
            }),
            Err(why) => Step::Fail(Error::new(why).with_status(404)),
        }
    }
}

impl Request {
    /// Does what is asked for on one of the threads; returns the units that were done.
    async fn serve(&self, asked: Asked) -> Result<u64, Error> {
        let (units, pools, key) = (self.units, Arc::clone(&self.pools), Arc::clone(&self.key));
        let threads = self.threads.as_ref().ok_or_else(|| Error::new("it is not attached"))?;
        let served = threads.run(move || {
            let done = work(units, asked.has_set);
            if !asked.sleep.is_zero() {
                thread::sleep(asked.sleep);
            }
            if let Some(max) = asked.connections {
                // Relaxed: a number that orders nothing else.
                let id = key.fetch_add(STRIDE, Ordering::Relaxed) % ROWS;
                let pool = pools.iter().find(|(it, _)| *it == max);
                let (_, pool) = pool.ok_or("a query, and there is no database")?;
                pool.query(id, asked.hangs)?;
            }
            Ok::<u64, String>(done)
        });
        // The client is the lab itself, so it may see why.
        served.await?.map_err(|why| Error::new(&why).with_shown(Value::text(why)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sinew_flow::testing::{fixture, run};

    use super::*;

    /// The answer to a request for this path, without a database.
    fn answer(path: &str) -> Result<Option<Value>, Error> {
        let node = "- {kind: lab_request, name: request, units: 7, database: '-'}";
        let fixture = fixture(node, &[NODE]);
        let packet = Value::map([("path", Value::text(path.to_owned()))]);
        run(fixture.open("begin", 0, packet, Duration::from_secs(60)))
    }

    #[test]
    fn a_request_does_its_units_on_the_pool_and_says_so() {
        let asked = Asked { has_set: true, sleep: Duration::from_millis(1), ..Asked::default() };
        let before = done();
        assert_eq!(answer(&asked.to_string()), Ok(Some(Value::text("7"))));
        let counted = answer(COUNTED).expect("it counts").expect("a number");
        let counted: u64 = counted.as_text().expect("a text").parse().expect("a number");
        assert!(counted >= before + 7);
    }

    #[test]
    fn what_cannot_be_done_is_an_error() {
        let query = Asked { connections: Some(10), ..Asked::default() };
        let error = answer(&query.to_string()).expect_err("there is no database");
        assert!(error.text().contains("there is no database"), "{error}");
        assert_eq!(answer("/else").expect_err("no such path").status(), 404);
    }
}
