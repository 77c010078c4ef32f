//! An SQLite statement: its arguments, and its rows as values.

use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql};
use sinew_flow::{Error, Value};

use super::super::BoundStatement;
use super::super::failure::of_sqlite;
use super::super::rows::{Columns, Row};

/// What the declared type of a column says beyond the value.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Truth,
    Json,
    Plain,
}

/// Runs a statement, and gives each row to `take` until `take` fails. Returns how many rows were
/// changed.
pub(super) fn each_row(
    connection: &Connection,
    asked: &BoundStatement,
    mut take: impl FnMut(Row) -> Result<(), Error>,
) -> Result<u64, Error> {
    let said = |error: rusqlite::Error| of_sqlite(&error);
    let mut statement = connection.prepare_cached(&asked.text).map_err(said)?;
    bind(&mut statement, &asked.args)?;
    let columns = Columns::new(statement.column_names())?;
    let sorts: Vec<Sort> = statement.columns().map(|column| sort(column.decl_type())).collect();
    let before = connection.total_changes();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(said)? {
        take(columns.row(|at| Ok(value(row.get_ref(at).map_err(said)?, sorts[at])))?)?;
    }
    // If this statement changes nothing, `changes` still has the count of an earlier one.
    Ok(if connection.total_changes() == before { 0 } else { connection.changes() })
}

fn bind(statement: &mut Statement<'_>, args: &[Value]) -> Result<(), Error> {
    for at in 1..=statement.parameter_count() {
        let name = statement.parameter_name(at).unwrap_or("?");
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(arg) = number.and_then(|number| args.get(number.checked_sub(1)?)) else {
            return Err(Error::new(format_args!(
                "'{name}' is not a placeholder of an argument; there are {} arguments: write $1, \
                 $2 and so on, and CAST($1 AS type) for $1::type",
                args.len()
            )));
        };
        statement.raw_bind_parameter(at, Bound(arg)).map_err(|error| of_sqlite(&error))?;
    }
    Ok(())
}

/// An argument.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Bool(value) => ValueRef::Integer((*value).into()),
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Number(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            // Other values have become texts before.
            _ => ValueRef::Null,
        }))
    }
}

fn sort(declared: Option<&str>) -> Sort {
    let begins = |word: &str| {
        declared.and_then(|it| it.get(..word.len())).is_some_and(|it| it.eq_ignore_ascii_case(word))
    };
    match () {
        () if begins("BOOL") => Sort::Truth,
        () if begins("JSON") => Sort::Json,
        () => Sort::Plain,
    }
}

fn value(cell: ValueRef<'_>, sort: Sort) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value @ 0..=1) if sort == Sort::Truth => Value::Bool(value == 1),
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Number(value),
        ValueRef::Blob(bytes) => Value::Bytes(Bytes::copy_from_slice(bytes)),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Err(_) => Value::Bytes(Bytes::copy_from_slice(text)),
            Ok(text) if sort == Sort::Json => json(text),
            Ok(text) => Value::text(text),
        },
    }
}

/// SQLite keeps any text in a column, also text that is not JSON.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::text(text))
}
