//! `sql`, `query` and `transaction`: databases. Here are the kinds as a graph names them; the code
//! that carries them out is built with the feature `sql`.

#[cfg(feature = "sql")]
mod database;
#[cfg(feature = "sql")]
mod query;
#[cfg(feature = "sql")]
mod resource;
#[cfg(all(test, feature = "sql"))]
mod testing;
#[cfg(feature = "sql")]
mod transaction;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_flow::{FLOW, FlowEntry, Make, error, input, output};

pub(crate) const SQL: FlowEntry = FlowEntry { kind: &SQL_KIND, make: SQL_MAKE };
pub(crate) const QUERY: FlowEntry = FlowEntry { kind: &QUERY_KIND, make: QUERY_MAKE };
pub(crate) const TRANSACTION: FlowEntry =
    FlowEntry { kind: &TRANSACTION_KIND, make: TRANSACTION_MAKE };

const SECOND_NS: u64 = 1_000_000_000;

static SQL_KIND: Kind = Kind {
    name: "sql",
    doc: "A database that nodes of the kinds 'query' and 'transaction' name: SQLite, which needs \
          no server, or PostgreSQL. All workers of its domain share its connections. Before any \
          flow begins, it connects and applies its migrations.",
    ports: &[],
    parameters: &[
        Parameter::new("database", ParameterType::Yaml).doc(
            "Where it is: sqlite://file.db (from the folder of the spec), sqlite://:memory: or \
             postgres://user:password@host/database; a template that needs no packet, such as \
             '{{ env.DATABASE }}'.",
        ),
        Parameter::new("migrations", ParameterType::Yaml).or("[]").doc(
            "What makes its tables: a list of SQL texts, applied once each in their order, or a \
             folder of .sql files in the order of their names.",
        ),
        Parameter::new("connections_max", ParameterType::Integer { min: 1, max: 1000 })
            .or("8")
            .doc("Most connections, for all workers together; for memory it is always 1."),
        Parameter::new(
            "connection_wait_max",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3600 * SECOND_NS },
        )
        .or("10s")
        .doc("How long a flow waits for a connection; past it, it fails with 503."),
        Parameter::new(
            "busy_max",
            ParameterType::Duration { min_ns: 0, max_ns: 3600 * SECOND_NS },
        )
        .or("5s")
        .doc(
            "SQLite: how long a statement waits for a lock of another connection or process; past \
             it, it fails with 503.",
        ),
        Parameter::new("wait", ParameterType::Duration { min_ns: 0, max_ns: 3600 * SECOND_NS })
            .or("0s")
            .doc("How long the start waits for a database that cannot be reached yet."),
        Parameter::new("ca", ParameterType::Text).or("''").doc(
            "PostgreSQL: a PEM file with the authorities to trust, instead of those that browsers \
             trust; empty: those.",
        ),
    ],
    ..FLOW
};

static QUERY_KIND: Kind = Kind {
    name: "query",
    doc: "Runs a statement on a database, and passes the answer on: a row as a mapping, a list of \
          rows, how many rows were changed, or rows as lines of JSON while they come. Values are \
          arguments, never part of the text. Errors have status 404 if 'rows: one' finds no row, \
          409 if a row exists already, 422 if a row breaks another rule of its table, 503 if the \
          database cannot be reached or is too busy.",
    ports: &[input("in", "The packet, for the arguments."), output("out", "The answer."), error()],
    parameters: &[
        Parameter::new("sql", ParameterType::Text).doc("The node of the kind sql to ask."),
        Parameter::new("text", ParameterType::Yaml).doc(
            "The statement, with $1, $2 and so on for the arguments; or one for each database, as \
             {sqlite: text, postgres: text}.",
        ),
        Parameter::new("args", ParameterType::Yaml).or("[]").doc(
            "The arguments: a list of expressions (CEL) over 'packet', or one expression that \
             gives a list.",
        ),
        Parameter::new("rows", ParameterType::Choice(&["all", "one", "none", "stream"]))
            .or("all")
            .doc(
                "all: a list of mappings. one: a mapping; no row is an error with status 404. \
                 none: {changed}, the number of changed rows. stream: a stream with a line of JSON \
                 for each row.",
            ),
        Parameter::new("rows_max", ParameterType::Integer { min: 1, max: 10_000_000 })
            .or("10000")
            .doc("Most rows with 'rows: all'; more are an error."),
        Parameter::new("size_max", ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 30 })
            .or("16MiB")
            .doc("Most bytes of rows with 'all' or 'one'; more are an error."),
        Parameter::new(
            "deadline",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 86_400_000_000_000 },
        )
        .or("30s")
        .doc(
            "Longest time until the answer is there; with 'stream', until each part of it is. Past \
             it the statement is cancelled, and the error has status 504.",
        ),
    ],
    ..FLOW
};

static TRANSACTION_KIND: Kind = Kind {
    name: "transaction",
    doc: "Takes a packet through steps as 'pipe' does; all that nodes 'query' of the same database \
          do until the reply is back is one transaction. If the reply is an error, or a statement \
          in it fails, all of it is rolled back.",
    ports: &[
        input("in", "The packet for the first step."),
        error(),
        output("out[]", "The steps, in the order of their numbers."),
    ],
    parameters: &[Parameter::new("sql", ParameterType::Text).doc("The node of the kind sql.")],
    ..FLOW
};

cfg_select! {
    feature = "sql" => {
        const SQL_MAKE: Make = Make::Resource(resource::make);
        const QUERY_MAKE: Make = Make::Node(query::make);
        const TRANSACTION_MAKE: Make = Make::Node(transaction::make);
    }
    _ => {
        const SQL_MAKE: Make = Make::Resource(|_| Err(without()));
        const QUERY_MAKE: Make = Make::Node(|_| Err(without()));
        const TRANSACTION_MAKE: Make = Make::Node(|_| Err(without()));

        fn without() -> Vec<sinew_core::Refusal> {
            vec![crate::without("databases", "sql").into()]
        }
    }
}
