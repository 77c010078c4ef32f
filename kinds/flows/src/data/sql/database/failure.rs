//! The errors of a database, with HTTP statuses.

use std::fmt;
use std::time::Duration;

use rusqlite::ErrorCode;
use rusqlite::ffi;
use sinew_flow::Error;
use tokio_postgres::error::SqlState;

/// There is such a row already.
const CONFLICT: u16 = 409;
/// The row would break a rule of its table.
const UNPROCESSABLE: u16 = 422;
/// The database is not there, or has too much to do.
const UNAVAILABLE: u16 = 503;
/// The database took too long.
const TIMEOUT: u16 = 504;

#[cold]
pub(super) fn unavailable(text: impl fmt::Display) -> Error {
    Error::new(text).with_status(UNAVAILABLE)
}

#[cold]
pub(in crate::data::sql) fn too_late(limit: Duration) -> Error {
    let text = format_args!("the database has not answered within {limit:?}; raise 'deadline'");
    Error::new(text).with_status(TIMEOUT)
}

/// Converts an error of SQLite.
#[cold]
pub(super) fn of_sqlite(error: &rusqlite::Error) -> Error {
    let text = |what: &str| format!("{what}: {error}");
    let Some(code) = error.sqlite_error() else { return Error::new(error) };
    match code.code {
        ErrorCode::ConstraintViolation => {
            let is_unique = matches!(
                code.extended_code,
                ffi::SQLITE_CONSTRAINT_UNIQUE
                    | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                    | ffi::SQLITE_CONSTRAINT_ROWID
            );
            Error::new(error).with_status(if is_unique { CONFLICT } else { UNPROCESSABLE })
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            unavailable(text("another connection holds the lock for longer than 'busy_max'"))
        }
        ErrorCode::DiskFull => unavailable(text("no room is left on the disk")),
        ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => {
            unavailable(error)
        }
        ErrorCode::NotADatabase => Error::new(text("the file is not a database of SQLite")),
        ErrorCode::OperationInterrupted => unavailable(text("the statement was cancelled")),
        _ => Error::new(error),
    }
}

/// Converts an error of PostgreSQL.
#[cold]
pub(super) fn of_postgres(error: &tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        let reason = std::error::Error::source(error).map(|reason| format!(": {reason}"));
        let text = format!("{error}{}", reason.unwrap_or_default());
        // If the server has not answered, it is not available, unless an argument could not be
        // written or a cell not be read.
        let is_ours = text.starts_with("error serializing") || text.starts_with("error deser");
        return if is_ours { Error::new(text) } else { unavailable(text) };
    };
    let code = said.code();
    let error = Error::new(format_args!("{} (SQLSTATE {})", said.message(), code.code()));
    match &code.code()[..2] {
        _ if [SqlState::UNIQUE_VIOLATION, SqlState::EXCLUSION_VIOLATION].contains(code) => {
            error.with_status(CONFLICT)
        }
        // Classes: a rule of the table is broken, a value does not fit into its column, or one row
        // comes twice.
        "23" | "22" | "21" => error.with_status(UNPROCESSABLE),
        _ if *code == SqlState::QUERY_CANCELED => error.with_status(TIMEOUT),
        // Classes: connections, colliding transactions, resources, and an order to end.
        "08" | "40" | "53" | "55" | "57" | "58" => error.with_status(UNAVAILABLE),
        _ => error,
    }
}
