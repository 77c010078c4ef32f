//! The node, with its schema compiled.

use std::path::PathBuf;
use std::sync::Arc;

use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FlowNode, Step, Value};

use super::super::OUT;
use super::schema::{Complaint, Schema};
use crate::script::expression::{Expression, weight};
use crate::script::taken;

/// Units of work for each value that is checked. Measured: 70 ns a value in a debug build.
const WORK: u64 = 2;
/// A value of more than this weight (some two milliseconds) is checked on a thread for blocking
/// work. For such a value only the first complaint is told.
const WORKER_WEIGHT_MAX: u64 = 20_000;

struct Validate {
    value: Expression,
    schema: Arc<Schema>,
    file: Option<PathBuf>,
}

pub(super) fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let value = taken(Expression::of(parameters.yaml("value"), &[]), &mut refusals);
    let schema = taken(Schema::read(parameters), &mut refusals);
    let file = Some(parameters.path("schema_file"));
    let file = file.filter(|_| !parameters.text("schema_file").is_empty());
    match (value, schema) {
        (Some(value), Some(schema)) => {
            Ok(Box::new(Validate { value, schema: Arc::new(schema), file }))
        }
        _ => Err(refusals),
    }
}

impl FlowNode for Validate {
    fn files(&self) -> Vec<PathBuf> {
        self.file.iter().cloned().collect()
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            match self.check(at, &packet).await {
                Ok(()) => Step::Pass(OUT, packet),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Validate {
    async fn check(&self, at: At<'_>, packet: &Value) -> Result<(), Error> {
        let flow = at.flow();
        let value = flow.resolve(&self.value.evaluate((flow, packet))?)?;
        let weight = weight(&value);
        flow.spend(weight.saturating_mul(WORK))?;
        let complaints = if weight <= WORKER_WEIGHT_MAX {
            self.schema.complaints(&value.to_json()?)
        } else {
            let schema = Arc::clone(&self.schema);
            let first = move || Ok(schema.first_complaint(&value.to_json()?));
            at.pool().run_slow(first).await??.into_iter().collect()
        };
        if complaints.is_empty() { Ok(()) } else { Err(self.refuse(complaints)) }
    }

    #[cold]
    fn refuse(&self, complaints: Vec<Complaint>) -> Error {
        let lines: Vec<String> = complaints.iter().map(Complaint::to_string).collect();
        let what = self.value.text();
        let what = what.strip_prefix("packet.").unwrap_or(what);
        let fields = complaints
            .into_iter()
            .map(|it| Value::map([("path", Value::text(it.path)), ("why", Value::text(it.why))]));
        let shown = Value::map([
            ("error", Value::text(format!("{what} is not what was expected"))),
            ("fields", Value::list(fields)),
        ]);
        Error::new(format_args!("{what} does not match the schema: {}", lines.join("; ")))
            .with_status(422)
            .with_shown(shown)
    }
}
