//! A row of a database as JSON, written by hand with the drivers that a graph has: eight
//! connections, each for one request at a time, statements that are prepared once, and for SQLite a
//! pool of threads that may block.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use deadpool_postgres::{Config, Pool, PoolConfig, Runtime};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio_postgres::NoTls;

/// As many connections as `sql` has in a graph.
const CONNECTIONS: usize = 8;
const QUERY: &str = "SELECT id, text FROM items WHERE id = $1";

/// An answer.
#[derive(Serialize)]
struct Item {
    id: i32,
    text: String,
}

/// Connections to SQLite, used in turn.
struct Turns {
    all: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

/// The route, with connections of its own.
pub async fn router(url: &str) -> io::Result<Router> {
    match url.strip_prefix("sqlite://") {
        Some(path) => {
            let open = |_| {
                let connection = Connection::open(path)?;
                connection.pragma_update(None, "journal_mode", "wal")?;
                Ok(Mutex::new(connection))
            };
            let all = (0..CONNECTIONS).map(open).collect::<rusqlite::Result<Vec<_>>>();
            let all = all.map_err(io::Error::other)?;
            let turns = Arc::new(Turns { all, next: AtomicUsize::new(0) });
            Ok(Router::new().route("/items/{id}", get(of_sqlite)).with_state(turns))
        }
        None => {
            let mut config = Config::new();
            config.url = Some(url.to_owned());
            config.pool = Some(PoolConfig::new(CONNECTIONS));
            let pool = config.create_pool(Some(Runtime::Tokio1), NoTls);
            let pool = pool.map_err(io::Error::other)?;
            Ok(Router::new().route("/items/{id}", get(of_postgres)).with_state(pool))
        }
    }
}

async fn of_sqlite(
    State(turns): State<Arc<Turns>>,
    Path(id): Path<i32>,
) -> Result<Json<Item>, StatusCode> {
    let asked = spawn_blocking(move || {
        // Relaxed: no other memory depends on it.
        let at = turns.next.fetch_add(1, Ordering::Relaxed) % turns.all.len();
        let connection = turns.all[at].lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(QUERY)?;
        statement.query_row([id], |row| Ok(Item { id: row.get(0)?, text: row.get(1)? })).optional()
    });
    match asked.await {
        Ok(Ok(Some(item))) => Ok(Json(item)),
        Ok(Ok(None)) => Err(StatusCode::NOT_FOUND),
        _ => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn of_postgres(
    State(pool): State<Pool>,
    Path(id): Path<i32>,
) -> Result<Json<Item>, StatusCode> {
    let asked = async {
        let client = pool.get().await.ok()?;
        let statement = client.prepare_cached(QUERY).await.ok()?;
        client.query_opt(&statement, &[&id]).await.ok()
    };
    match asked.await {
        Some(Some(row)) => Ok(Json(Item { id: row.get(0), text: row.get(1) })),
        Some(None) => Err(StatusCode::NOT_FOUND),
        None => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
