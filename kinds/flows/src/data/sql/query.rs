//! `query`: runs a statement in a database.

use std::sync::Arc;
use std::time::Duration;

use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, Flow, FlowNode, NodeContext, Step, Stream, Value};
use sinew_spec::{Data, Item};
use tokio::time::timeout;

use super::database::migrations::text_for;
use super::database::{BoundStatement, Bounds, Lease, TableRows, placeholders, too_late};
use super::resource::Named;
use super::transaction::Open;
use crate::json;
use crate::script::expression::Expression;
use crate::script::taken;

const OUT: usize = 1;

const NOT_FOUND: u16 = 404;

/// Which rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    One,
    None,
    Stream,
}

enum Args {
    /// An expression for each argument.
    Each(Vec<Expression>),
    /// One expression that gives a list of the arguments.
    List(Expression),
}

struct Query {
    database: Named,
    text: Arc<str>,
    /// How many arguments the text has placeholders for.
    places: usize,
    args: Args,
    wanted: Wanted,
    bounds: Bounds,
    patience: Duration,
}

pub(super) fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let database = Named::of(parameters, &mut refusals);
    let args = args(parameters.yaml("args"), &mut refusals);
    let text = database.as_ref().and_then(|database| {
        let text = text(parameters.yaml("text"), database.is_postgres, args.as_ref());
        taken(text.map_err(|refusal| vec![refusal]), &mut refusals)
    });
    let wanted = match parameters.text("rows") {
        "all" => Wanted::All,
        "one" => Wanted::One,
        "none" => Wanted::None,
        _ => Wanted::Stream,
    };
    let rows_max = match wanted {
        Wanted::All => parameters.integer("rows_max") as usize,
        // Two, so that a second row is noticed, which is an error.
        Wanted::One => 2,
        Wanted::None | Wanted::Stream => usize::MAX,
    };
    let (Some(database), Some(args), Some(text)) = (database, args, text) else {
        return Err(refusals);
    };
    Ok(Box::new(Query {
        database,
        places: placeholders::highest(text),
        text: text.into(),
        args,
        wanted,
        bounds: Bounds {
            keeps: wanted != Wanted::None,
            rows_max,
            size_max: parameters.size("size_max"),
        },
        patience: parameters.duration("deadline"),
    }))
}

fn args(item: &Item, refusals: &mut Vec<Refusal>) -> Option<Args> {
    let Data::List(items) = &item.data else {
        return taken(Expression::of(item, &[]), refusals).map(Args::List);
    };
    let made = items.iter().map(|item| taken(Expression::of(item, &[]), refusals));
    // All are compiled first, so that all errors are reported.
    let made: Vec<_> = made.collect();
    made.into_iter().collect::<Option<_>>().map(Args::Each)
}

fn text<'a>(item: &'a Item, is_postgres: bool, args: Option<&Args>) -> Result<&'a str, Refusal> {
    let text = text_for(item, is_postgres)?;
    if text.contains("{{") {
        let message = "a statement is not a template: what a packet holds would be read as SQL";
        let help = "write $1 in its place, and the expression under 'args'";
        return Err(Refusal::new(item.span, message, help));
    }
    let places = placeholders::highest(text);
    match args {
        Some(Args::Each(args)) if args.len() != places => {
            let message =
                format!("the text has places for {places} args, and there are {}", args.len());
            Err(Refusal::new(item.span, message, "write $1, $2 and so on, one for each of 'args'"))
        }
        _ => Ok(text),
    }
}

impl FlowNode for Query {
    fn attach(&mut self, site: &NodeContext) {
        self.database.attach(site);
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move { Step::pass(OUT, self.answer(at, &packet).await) })
    }
}

impl Query {
    async fn answer(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let args = self.args(at.flow(), packet).await?;
        let asked = BoundStatement { text: Arc::clone(&self.text), args };
        let (flow, database) = (at.flow(), self.database.get());
        if let Some(open) = at.around::<Open>().find(|open| open.is_of(database)) {
            if self.wanted == Wanted::Stream {
                return Err(Error::new(
                    "a stream of rows would outlive its transaction; take 'rows: all'",
                ));
            }
            let answer = open.with(async |lease| self.ask(flow, lease, asked).await).await?;
            return self.value(answer);
        }
        let mut lease = database.lease().await?;
        if self.wanted == Wanted::Stream {
            let parts = timeout(self.patience, lease.stream(asked, self.patience)).await;
            let parts = parts.map_err(|_| too_late(self.patience))??;
            return Ok(Value::Stream(Stream::new(parts)));
        }
        let answer = self.ask(flow, &mut lease, asked).await?;
        self.value(answer)
    }

    /// The arguments. Lists and mappings are passed as JSON.
    async fn args(&self, flow: &Flow, packet: &Value) -> Result<Vec<Value>, Error> {
        let values = match &self.args {
            Args::Each(expressions) => {
                let mut values = Vec::with_capacity(expressions.len());
                for expression in expressions {
                    flow.turn().await;
                    values.push(expression.evaluate((flow, packet))?);
                }
                values
            }
            Args::List(expression) => match expression.evaluate((flow, packet))? {
                Value::List(values) => values.to_vec(),
                other => {
                    let text = format_args!("'args' are a list, got {}", other.sort());
                    return Err(Error::new(text));
                }
            },
        };
        if values.len() != self.places {
            return Err(Error::new(format_args!(
                "the text has places for {} args, and there are {}",
                self.places,
                values.len()
            )));
        }
        let mut args = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            args.push(match value {
                Value::Stream(_) => {
                    let text = format_args!("argument ${} is a stream, expected a value", at + 1);
                    return Err(Error::new(text));
                }
                Value::List(_) | Value::Map(_) | Value::Document(_) => {
                    Value::text(json::text(flow, &value).await?)
                }
                single => single,
            });
        }
        Ok(args)
    }

    async fn ask(
        &self,
        flow: &Flow,
        lease: &mut Lease,
        asked: BoundStatement,
    ) -> Result<TableRows, Error> {
        let asking = lease.ask(flow, asked, self.bounds);
        timeout(self.patience, asking).await.map_err(|_| too_late(self.patience))?
    }

    fn value(&self, mut answer: TableRows) -> Result<Value, Error> {
        match self.wanted {
            Wanted::All | Wanted::Stream => Ok(Value::list(answer.rows)),
            Wanted::None => Ok(Value::map([("changed", Value::Integer(answer.changed as i64))])),
            Wanted::One if answer.rows.len() > 1 => Err(Error::new(
                "more than one row where one is asked for; write LIMIT 1, or take 'rows: all'",
            )),
            Wanted::One => answer.rows.pop().ok_or_else(no_row),
        }
    }
}

#[cold]
fn no_row() -> Error {
    Error::new("there is no such row").with_status(NOT_FOUND)
}

#[cfg(test)]
mod tests;
