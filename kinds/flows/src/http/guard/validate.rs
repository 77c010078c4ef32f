//! `validate`: lets pass what a JSON Schema allows.

mod schema;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use self::schema::{Complaint, Schema};
use super::OUT;
use crate::script::expression::{Expression, weight};
use crate::script::taken;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "validate",
    doc: "Passes a packet on if a value in it, usually the body, matches a JSON Schema. Else it \
          answers 422 with the wrong places and what was expected there. Patterns are linear, \
          formats are checked, and no schema is fetched from elsewhere.",
    ports: &[
        input("in", "The packet."),
        output("out", "The same packet, if the schema allows the value."),
        error(),
    ],
    parameters: &[
        Parameter::new("schema", ParameterType::Yaml)
            .or("null")
            .doc("A JSON Schema, written as YAML. Without '$schema' it is of draft 2020-12."),
        Parameter::new("schema_file", ParameterType::Text)
            .or("")
            .doc("A JSON file with the schema, in place of 'schema'."),
        Parameter::new("value", ParameterType::Yaml)
            .or("packet.body")
            .doc("An expression over packet: the value that is checked."),
    ],
    ..FLOW
};

/// Units of work for each value that is looked at. Measured: 70 ns a value in a debug build.
const WORK: u64 = 2;
/// A value of more than this weight is looked at on a thread for what blocks: some two
/// milliseconds. Of such a one only the first complaint is told.
const WORKER_WEIGHT_MAX: u64 = 20_000;

struct Validate {
    value: Expression,
    schema: Arc<Schema>,
    file: Option<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
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

/// What the node with these parameters looks at, and the schema; `None` if that cannot be read.
pub(crate) fn described<'a>(parameters: &'a Parameters<'_>) -> Option<(&'a str, Json)> {
    let value = parameters.yaml("value").text()?;
    Some((value, schema::json(parameters)?))
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
