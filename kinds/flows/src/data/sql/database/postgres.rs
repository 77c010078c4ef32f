//! A connection to PostgreSQL. The worker that made it drives its socket; any worker may use it.

mod cells;
mod tls;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use jiff::Timestamp;
use sinew_flow::{Error, Flow};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, RowStream, Statement};

use self::cells::{Arg, Cell};
use self::tls::ClientTls;
use super::BoundStatement;
use super::failure::{of_postgres, unavailable};
use super::migrations::{self, APPLIED, Applied, Migration, RECORD, TABLE};
use super::rows::{Bounds, Columns, PART_SIZE, Row, TableRows};

/// How long a server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Statements that each connection keeps prepared: enough for a graph of any reasonable size.
const PREPARED_MAX: usize = 256;
/// A lock, by a number of our own, so that processes migrate one database one after the other.
const LOCK: &str = "BEGIN; SET LOCAL client_min_messages = warning; \
                    SELECT pg_advisory_xact_lock(7307498240167)";

/// A server.
pub(in crate::data::sql) struct Server {
    config: Config,
    tls: ClientTls,
    url: String,
    ca: String,
}

/// A connection.
pub(super) struct PostgresConnection {
    client: Client,
    tls: ClientTls,
    prepared: HashMap<Arc<str>, (Statement, Arc<Columns>)>,
    home: ThreadId,
    /// Whether nothing is under way.
    pub(super) is_over: bool,
}

impl Server {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with the URL, without repeating it.
    pub(super) fn read(url: &str, ca: Option<&Path>) -> Result<Server, String> {
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            // A reason with quotes may repeat a part of the URL, and so of the password; it is left
            // out.
            let reason = reason.filter(|reason| !reason.contains(['`', '\'']));
            format!("this is not a URL of PostgreSQL: {}", reason.as_deref().unwrap_or("its form"))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the URL names no host".into());
        }
        if config.get_dbname().is_none() {
            return Err("the URL names no database: write its name behind the host".into());
        }
        // The default is encrypted, unless the connection stays on this machine.
        if !url.contains("sslmode=") {
            let is_here =
                config.get_hosts().iter().all(is_here) && config.get_hostaddrs().is_empty();
            config.ssl_mode(if is_here { SslMode::Disable } else { SslMode::Require });
        }
        config.connect_timeout(CONNECT_MAX);
        if config.get_application_name().is_none() {
            config.application_name("sinew");
        }
        let ca_text = ca.map(|ca| ca.display().to_string()).unwrap_or_default();
        Ok(Server { config, tls: ClientTls::new(ca)?, url: url.into(), ca: ca_text })
    }

    /// A key that differs if two servers are not the same. It must not be shown, as it contains the
    /// password.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.url, self.ca)
    }

    /// A new connection, whose socket the runtime of this thread drives.
    ///
    /// # Errors
    /// The server does not take it (503).
    pub(super) async fn connect(&self) -> Result<PostgresConnection, Error> {
        let connecting = self.config.connect(self.tls.clone());
        let connected = timeout(CONNECT_MAX, connecting).await.map_err(|_| {
            unavailable(format_args!("the server does not answer within {CONNECT_MAX:?}"))
        })?;
        let (client, socket) = connected.map_err(|error| {
            let error = of_postgres(&error);
            Error::new(error.text()).with_status(503)
        })?;
        // The reason for its end is not lost: the statements that are under way report it.
        tokio::spawn(async move { drop(socket.await) });
        let (tls, home) = (self.tls.clone(), thread::current().id());
        Ok(PostgresConnection { client, tls, prepared: HashMap::new(), home, is_over: true })
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|it| it.is_loopback())
        }
    }
}

/// The server as it may be shown: without a password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            if at > 0 {
                f.write_char(',')?;
            }
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            if let Some(port) = self.config.get_ports().get(at) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl PostgresConnection {
    /// Whether the other end is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether this thread drives its socket.
    pub(super) fn is_near(&self) -> bool {
        self.home == thread::current().id()
    }

    /// Runs a statement, and takes all rows.
    pub(super) async fn ask(
        &mut self,
        flow: &Flow,
        asked: BoundStatement,
        bounds: Bounds,
    ) -> Result<TableRows, Error> {
        let (mut rows, columns) = self.begin(&asked).await?;
        let mut answer = TableRows::default();
        let mut paid = 0;
        while let Some(row) = self.next(&mut rows).await? {
            answer.add(read(&row, &columns)?, bounds)?;
            flow.spend(answer.price() - paid)?;
            paid = answer.price();
            flow.turn().await;
        }
        answer.changed = rows.rows_affected().unwrap_or(0);
        Ok(answer)
    }

    /// Runs a statement, and gives the rows as lines of JSON. Rows that are not taken yet stay with
    /// the server.
    pub(super) async fn stream(
        &mut self,
        asked: BoundStatement,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let (rows, columns) = self.begin(&asked).await?;
        let next = |state: Option<(Pin<Box<RowStream>>, Arc<Columns>)>| async move {
            let (mut rows, columns) = state?;
            let mut part = Vec::with_capacity(PART_SIZE);
            while part.len() < PART_SIZE {
                let Some(row) = rows.next().await else {
                    return (!part.is_empty()).then(|| (Ok(Bytes::from(part)), None));
                };
                let row = row.map_err(|error| of_postgres(&error));
                let row = row.and_then(|row| read(&row, &columns)?.write(&mut part));
                if let Err(error) = row {
                    return Some((Err(error), None));
                }
            }
            Some((Ok(Bytes::from(part)), Some((rows, columns))))
        };
        Ok(unfold(Some((rows, columns)), next).boxed())
    }

    /// Sends a statement; from then on it is under way.
    async fn begin(
        &mut self,
        asked: &BoundStatement,
    ) -> Result<(Pin<Box<RowStream>>, Arc<Columns>), Error> {
        self.is_over = false;
        let begun = self.send(asked).await;
        if begun.is_err() {
            // The server has refused it, so nothing is under way.
            self.is_over = true;
            // The server may not know the prepared statement any more.
            self.prepared.remove(&asked.text);
        }
        begun
    }

    async fn send(
        &mut self,
        asked: &BoundStatement,
    ) -> Result<(Pin<Box<RowStream>>, Arc<Columns>), Error> {
        let said = |error: tokio_postgres::Error| of_postgres(&error);
        if !self.prepared.contains_key(&asked.text) {
            let statement = self.client.prepare(&asked.text).await.map_err(said)?;
            let names = statement.columns().iter().map(tokio_postgres::Column::name);
            let columns = Arc::new(Columns::new(names)?);
            if self.prepared.len() >= PREPARED_MAX {
                self.prepared.clear();
            }
            self.prepared.insert(Arc::clone(&asked.text), (statement, columns));
        }
        let (statement, columns) = &self.prepared[&asked.text];
        let (expected, given) = (statement.params().len(), asked.args.len());
        if expected != given {
            return Err(Error::new(format_args!(
                "the statement has places for {expected} arguments, and there are {given}"
            )));
        }
        let rows = self.client.query_raw(statement, asked.args.iter().map(Arg)).await;
        Ok((Box::pin(rows.map_err(said)?), Arc::clone(columns)))
    }

    async fn next(
        &mut self,
        rows: &mut Pin<Box<RowStream>>,
    ) -> Result<Option<tokio_postgres::Row>, Error> {
        let row = rows.next().await.transpose();
        self.is_over = !matches!(row, Ok(Some(_)));
        row.map_err(|error| of_postgres(&error))
    }

    /// Carries out a command that has no result.
    pub(super) async fn command(&mut self, text: &str) -> Result<(), Error> {
        self.is_over = false;
        let done = self.client.batch_execute(text).await;
        self.is_over = true;
        done.map_err(|error| of_postgres(&error))
    }

    /// Applies the migrations that were not applied, each in a transaction of its own.
    pub(super) async fn migrate(&mut self, all: &[Migration]) -> Result<(), Error> {
        while self.migrate_one(all).await? {}
        Ok(())
    }

    /// Applies the next migration; whether there was one.
    async fn migrate_one(&mut self, all: &[Migration]) -> Result<bool, Error> {
        let said = |error: tokio_postgres::Error| of_postgres(&error);
        // Other processes that migrate this database wait here.
        self.command(LOCK).await?;
        self.command(TABLE).await?;
        let rows = self.client.query(APPLIED, &[]).await.map_err(said)?;
        let applied = rows.iter().map(|row| {
            let (number, name) = (i64::from(row.try_get::<_, i32>(0)?), row.try_get(1)?);
            Ok(Applied { number, name, checksum: row.try_get(2)?, applied_at: row.try_get(3)? })
        });
        let applied: Vec<Applied> = applied.collect::<Result<_, _>>().map_err(said)?;
        let Some(next) = migrations::next(all, &applied)? else {
            self.command("COMMIT").await?;
            return Ok(false);
        };
        let migration = &all[next];
        let done = self.command(&migration.sql).await;
        done.map_err(|error| migrations::failed(migration, &error))?;
        let (number, applied_at) = (next as i32 + 1, Timestamp::now().to_string());
        let (name, checksum) = (&migration.name, migration.checksum());
        let recorded = self.client.execute(RECORD, &[&number, name, &checksum, &applied_at]).await;
        recorded.map_err(said)?;
        self.command("COMMIT").await?;
        Ok(true)
    }

    /// Makes the server cancel what is under way, and closes the connection. The permit is free
    /// once the server knows.
    pub(super) fn cancel(self, permit: Option<OwnedSemaphorePermit>) {
        let PostgresConnection { client, tls, is_over, .. } = self;
        let Ok(runtime) = Handle::try_current() else { return };
        if is_over {
            // The server rolls back an open transaction when it sees the end of the connection.
            return;
        }
        runtime.spawn(async move {
            let token = client.cancel_token();
            // If the server cannot be told, it ends the statement when it finds the connection
            // closed.
            let _ = timeout(CONNECT_MAX, token.cancel_query(tls)).await;
            drop((client, permit));
        });
    }
}

fn read(row: &tokio_postgres::Row, columns: &Columns) -> Result<Row, Error> {
    columns.row(|at| match row.try_get::<_, Cell>(at) {
        Ok(Cell(value)) => Ok(value),
        Err(error) => {
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            let name = row.columns()[at].name();
            Err(Error::new(format_args!("column '{name}': {}", reason.unwrap_or_default())))
        }
    })
}
