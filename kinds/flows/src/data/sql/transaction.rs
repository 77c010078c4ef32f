//! `transaction`: the database work of the nodes behind its outputs is done as a whole, or not at
//! all.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FlowNode, NodeContext, Reply, Step, Value};
use tokio::sync::Mutex;

use super::database::{Database, Lease};
use super::resource::Named;
use crate::path::ports::linked_outputs;

const OUT: usize = 2;

struct Transaction {
    database: Named,
    /// The outputs that lead somewhere.
    steps: Vec<usize>,
}

pub(super) fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let database = Named::of(parameters, &mut refusals).ok_or(refusals)?;
    Ok(Box::new(Transaction { database, steps: Vec::new() }))
}

/// A transaction that is open. Branches of the flow take turns in it.
pub(super) struct Open {
    database: Arc<Database>,
    lease: Mutex<Lease>,
    /// The error after which it can only be rolled back. PostgreSQL ends a transaction at the first
    /// statement that fails, and the same graph must do the same with SQLite.
    failure: RefCell<Option<Error>>,
}

impl Open {
    /// Whether it is a transaction of this database.
    pub(super) fn is_of(&self, database: &Arc<Database>) -> bool {
        Arc::ptr_eq(&self.database, database)
    }

    /// Does something in the transaction.
    ///
    /// # Errors
    /// The transaction fails now, or has failed before.
    pub(super) async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&mut Lease) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut lease = self.lease.lock().await;
        if let Some(failure) = &*self.failure.borrow() {
            let text = format_args!("its transaction has failed before: {}", failure.text());
            return Err(Error::new(text).with_status(failure.status()).following());
        }
        let done = work(&mut lease).await;
        if let Err(error) = &done {
            self.failure.replace(Some(error.clone()));
        }
        done
    }
}

impl FlowNode for Transaction {
    fn attach(&mut self, site: &NodeContext) {
        self.steps = linked_outputs(site, OUT);
        self.database.attach(site);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move { Step::answer(self.carry_out(at, packet).await) })
    }
}

impl Transaction {
    async fn carry_out(&self, at: At<'_>, packet: Value) -> Reply {
        let database = self.database.get();
        if at.around::<Open>().any(|open| open.is_of(database)) {
            return Err(Error::new(
                "a transaction within a transaction of the same database; leave the inner one out",
            ));
        }
        let mut lease = database.lease().await?;
        lease.begin().await?;
        let (database, lease) = (Arc::clone(database), Mutex::new(lease));
        let open = Rc::new(Open { database, lease, failure: RefCell::new(None) });
        let mut reply = Ok(Some(packet));
        for &step in &self.steps {
            let Ok(Some(packet)) = reply else { break };
            reply = at.call_within(step, packet, Rc::clone(&open) as _).await;
        }
        let mut lease = open.lease.lock().await;
        // Even if a node has turned the error into an answer, half a transaction must not stay.
        if let (Ok(_), Some(failure)) = (&reply, &*open.failure.borrow()) {
            reply = Err(failure.clone());
        }
        match reply {
            Ok(reply) => {
                lease.commit().await?;
                Ok(reply)
            }
            Err(error) => {
                lease.roll_back().await;
                Err(error)
            }
        }
    }
}
