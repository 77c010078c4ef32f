//! `sql`: a database, which is reached before any flow begins.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sinew_core::fault::Cause;
use sinew_core::{Fault, Made, Parameters, Refusal};
use sinew_flow::{Error, NodeContext, OpenResource, Resource, Resources};
use sinew_spec::suggest;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::SQL_KIND;
use super::database::address::{Address, HELP};
use super::database::{Database, Settings, migrations};
use crate::script::taken;
use crate::script::template::Template;

/// Pause between two tries to reach a database that is not there yet.
const LOOK: Duration = Duration::from_millis(200);

/// The settings that the parameters give.
fn settings(parameters: &Parameters<'_>, name: &str) -> Result<Settings, Vec<Refusal>> {
    let item = parameters.yaml("database");
    let refuse = |message: String, help| vec![Refusal::new(item.span, message, help)];
    let template = Template::compile(item)?;
    let Some(url) = template.constant().and_then(|url| url.as_text()) else {
        let help = "only env.NAME can stand in it, for it is opened before the first packet";
        return Err(refuse("'database' is a text that no packet changes".into(), help));
    };
    let ca = (!parameters.text("ca").is_empty()).then(|| parameters.path("ca"));
    let address = Address::read(url, parameters.base, ca.as_deref());
    let address = address.map_err(|message| refuse(message, HELP))?;
    let (migrations, folder) = (parameters.yaml("migrations"), parameters.base);
    Ok(Settings {
        name: name.to_owned(),
        migrations: migrations::read(migrations, folder, address.is_postgres())?,
        address,
        connections_max: parameters.integer("connections_max") as usize,
        connection_wait_max: parameters.duration("connection_wait_max"),
        busy_max: parameters.duration("busy_max"),
    })
}

/// The database that a node names in its parameter `sql`.
pub(super) struct Named {
    name: String,
    /// Set when the node is attached to a worker.
    database: Option<Arc<Database>>,
    pub(super) is_postgres: bool,
}

impl Named {
    /// Finds the database in the graph.
    pub(super) fn of(parameters: &Parameters<'_>, refusals: &mut Vec<Refusal>) -> Option<Named> {
        let (name, span) = (parameters.text("sql"), parameters.span("sql"));
        let all = parameters.neighbours().filter(|node| node.kind.name == SQL_KIND.name);
        let found = all.clone().find(|node| node.name == name);
        let made = match found.and_then(|node| parameters.of_neighbour(node)) {
            Some(other) => settings(&other, name).map_err(|_| {
                let message = format!("the node '{name}' cannot be made");
                vec![Refusal::new(span, message, "correct that node").following(true)]
            }),
            None => {
                let message = format!("there is no node '{name}' of the kind sql in this domain");
                let names = all.map(|node| node.name.as_str());
                let follows = parameters.is_left_out(SQL_KIND.name, Some(name));
                let refusal = Refusal::new(span, message, suggest(name, names));
                Err(vec![refusal.following(follows)])
            }
        };
        let is_postgres = taken(made, refusals)?.address.is_postgres();
        Some(Named { name: name.to_owned(), database: None, is_postgres })
    }

    /// Takes the database that all workers share.
    pub(super) fn attach(&mut self, site: &NodeContext) {
        self.database = site.resource(&self.name);
    }

    /// The database.
    ///
    /// # Panics
    /// Before [`Named::attach`]: a node is attached before its first packet.
    pub(super) fn get(&self) -> &Arc<Database> {
        self.database.as_ref().expect("a node is attached before its first packet")
    }
}

struct Sql {
    settings: Settings,
    files: Vec<PathBuf>,
    patience: Duration,
}

pub(super) fn make(parameters: &Parameters<'_>) -> Made<dyn Resource> {
    let mut files = migrations::files(parameters.yaml("migrations"), parameters.base);
    if !parameters.text("ca").is_empty() {
        files.push(parameters.path("ca"));
    }
    // Its name is known only when it is opened.
    let settings = settings(parameters, "")?;
    Ok(Box::new(Sql { settings, files, patience: parameters.duration("wait") }))
}

impl Resource for Sql {
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn open(self: Box<Self>, name: &str, resources: &Resources) -> Result<OpenResource, Fault> {
        let settings = Settings { name: name.to_owned(), ..self.settings };
        let key = settings.key();
        let database = resources.share(&key, || Database::new(settings));
        // A trial connects only when a node asks something.
        if !resources.is_trial() {
            reached(&database, self.patience).map_err(|error| fault(&error))?;
        }
        Ok(database)
    }
}

/// Waits on a thread of its own, because this thread may have a runtime already.
fn reached(database: &Arc<Database>, patience: Duration) -> Result<(), Error> {
    let wait = || {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::new)?;
        runtime.block_on(reach(database, patience))
    };
    let waited = thread::scope(|scope| scope.spawn(wait).join());
    waited.unwrap_or_else(|_| Err(Error::new("it panicked while it was opened")))
}

/// Waits until the database is ready; an error if it cannot be reached within `patience`.
async fn reach(database: &Arc<Database>, patience: Duration) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match database.ready().await {
            Err(error) if error.status() == 503 && begun.elapsed() < patience => sleep(LOOK).await,
            reached => return reached,
        }
    }
}

fn fault(error: &Error) -> Fault {
    Fault::new(Cause::Error, format_args!("{}", error.text()))
}

#[cfg(test)]
mod tests;
