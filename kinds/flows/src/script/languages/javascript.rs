//! `javascript`: the body of a function in JavaScript (ES2023), which sees `packet`, `values`,
//! `env` and `flow`.
//!
//! Each node has a state in each worker, whose objects no script can change. A script has neither
//! files nor processes, and cannot compile other code. It has three limits: time, instructions and
//! memory. A script that exceeds a limit is stopped, even inside `try`, and its state is thrown
//! away. A script runs without a pause: other flows of its worker wait.

mod budget;
mod convert;
mod natives;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use budget::{ScriptBudget, ScriptStop};
use convert::JsConverter;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Error as JsError, Function, Object, Persistent,
    Runtime, Value as JsValue,
};
use sinew_core::{Made, Refusal};
use sinew_flow::{Document, Error, Flow, FlowValues, Step, Value};
use sinew_spec::Item;
use sinew_spec::plan::SpecText;

use super::origin::ScriptLines;
use super::{Limits, Script, code, made};
use crate::script::line_start;

/// Most stack of a script, out of the 2 MiB of its worker.
const STACK_SIZE: usize = 512 << 10;
/// What a call costs beside the code that it runs, in units of work.
const CALL: u64 = 20;
/// The text around the code; the opening is on the first line of the code.
const OPENING: &str = "(function (packet, values, env, flow) { \"use strict\"; ";
const CLOSING: &str = "\n})";
/// What the engine says when it has no memory left.
const NO_MEMORY: &str = "out of memory";

/// The built-in objects of the engine that a script may use.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

struct Snippet {
    code: String,
    limits: Limits,
    origin: ScriptLines,
    state: RefCell<Option<State>>,
}

/// Runs the code. The saved functions come first, so that they are dropped before their engine.
struct State {
    /// The compiled code.
    body: Persistent<Function<'static>>,
    /// Calls the code.
    run: Persistent<Function<'static>>,
    /// Gives bytes as text.
    latin: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    current: Rc<Current>,
    converter: JsConverter,
    /// Whether the code has this word; without the word it cannot use what the word stands for.
    uses_packet: bool,
}

/// What functions of ours see of the call that is under way.
#[derive(Default)]
struct Current {
    values: RefCell<Option<FlowValues>>,
    request: RefCell<Option<Arc<dyn Document>>>,
    /// The last error of a flow that passed through the script, such as a malformed body.
    failed: RefCell<Option<Error>>,
}

pub(super) fn compile(item: &Item, limits: &Limits, spec: Option<&SpecText>) -> Made<dyn Script> {
    let code = code(item)?;
    let state = State::new(code, limits).map_err(|(line, reason)| {
        let help = "write the body of a function, such as return packet.name";
        let text = format!("not JavaScript: {reason}");
        vec![Refusal::new(item.span_at(line_start(code, line)), text, help)]
    })?;
    let (state, origin) = (RefCell::new(Some(state)), ScriptLines::of(item, code, spec));
    Ok(Box::new(Snippet { code: code.to_owned(), limits: *limits, origin, state }))
}

impl Script for Snippet {
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a> {
        Step::compute(async move {
            flow.turn().await;
            made(self.call(flow, &packet))
        })
    }
}

impl Snippet {
    fn call(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        flow.spend(CALL)?;
        let state = match self.state.borrow_mut().take() {
            Some(state) => state,
            None => State::new(&self.code, &self.limits).map_err(|(_, reason)| failed(&reason))?,
        };
        let result = state.call(flow, packet, &self.origin);
        // A state that met a limit, or has promises that wait, may hold anything, so it is not
        // kept.
        let is_whole = state.converter.0.stopped().is_none() && !state.runtime.is_job_pending();
        if is_whole && !matches!(&result, Err(Failure::Memory)) {
            *self.state.borrow_mut() = Some(state);
        }
        result.map_err(|failure| failure.into_error(&self.limits))
    }
}

impl State {
    /// # Errors
    /// The line of the code that is wrong, and why.
    fn new(code: &str, limits: &Limits) -> Result<State, (usize, String)> {
        let said = |error: JsError| (1, error.to_string());
        let runtime = Runtime::new().map_err(said)?;
        runtime.set_max_stack_size(STACK_SIZE);
        let context = Context::custom::<Intrinsics>(&runtime).map_err(said)?;
        let budget = Rc::new(ScriptBudget::new(limits));
        let looked = Rc::clone(&budget);
        let current = Rc::<Current>::default();
        let converter = JsConverter(budget);
        let saved = context.with(|ctx| {
            let body = eval::<Function<'_>>(&ctx, "code", format!("{OPENING}{code}{CLOSING}"));
            let body = body.catch(&ctx).map_err(|error| thrown(&error))?;
            let it = natives::install(&ctx, &converter, &current);
            let it: Object<'_> = it.catch(&ctx).map_err(|error| thrown(&error))?;
            let part = |name| it.get::<_, Function<'_>>(name).catch(&ctx).map_err(|it| thrown(&it));
            let save = |function| Persistent::save(&ctx, function);
            Ok([save(body), save(part("run")?), save(part("latin")?)])
        });
        let [body, run, latin] = saved?;
        runtime.set_interrupt_handler(Some(Box::new(move || !looked.look())));
        runtime.set_memory_limit(limits.memory_bytes);
        let uses_packet = code.contains("packet") || code.contains("arguments");
        Ok(State { body, run, latin, context, runtime, current, converter, uses_packet })
    }

    fn call(&self, flow: &Flow, packet: &Value, origin: &ScriptLines) -> Result<Value, Failure> {
        let budget = &self.converter.0;
        budget.begin(flow.work_left());
        *self.current.values.borrow_mut() = Some(flow.values());
        let value = self.context.with(|ctx| {
            let value = self.run(&ctx, flow, packet).catch(&ctx);
            value.map_err(|error| self.failure(&error, origin))
        });
        *self.current.values.borrow_mut() = None;
        *self.current.request.borrow_mut() = None;
        let through = self.current.failed.borrow_mut().take();
        flow.spend(budget.end()).map_err(Failure::Flow)?;
        match (budget.stopped(), value) {
            (Some(stop), _) => Err(Failure::Stopped(stop)),
            (None, Err(Failure::Thrown(text, error))) => Err(Failure::Flow(match through {
                Some(through) if text == through.text() => through,
                _ => error,
            })),
            (None, value) => value,
        }
    }

    fn run<'js>(&self, ctx: &Ctx<'js>, flow: &Flow, packet: &Value) -> rquickjs::Result<Value> {
        let restore = |it: &Persistent<Function<'static>>| it.clone().restore(ctx);
        let (body, run, latin) = (restore(&self.body)?, restore(&self.run)?, restore(&self.latin)?);
        let nothing = JsValue::new_undefined(ctx.clone());
        let (packet, names) = match packet {
            _ if !self.uses_packet => (nothing, None),
            Value::Document(document) => {
                *self.current.request.borrow_mut() = Some(Arc::clone(document));
                (nothing, Some(document.names().iter().map(|it| &**it).collect::<Vec<&str>>()))
            }
            other => (self.converter.to_js(ctx, other)?, None),
        };
        let about = Object::new(ctx.clone())?;
        about.set("id", flow.id() as f64)?;
        let made: JsValue<'js> = run.call((body, packet, names, about))?;
        self.converter.value(ctx, &latin, &made)
    }

    /// What the code threw: an error, or an object `{status, message}`.
    fn failure(&self, error: &CaughtError<'_>, origin: &ScriptLines) -> Failure {
        let (line, reason) = thrown(error);
        if matches!(error, CaughtError::Error(JsError::Allocation)) || reason.contains(NO_MEMORY) {
            return Failure::Memory;
        }
        let object = match error {
            CaughtError::Exception(exception) => Some(exception.as_object().clone()),
            CaughtError::Value(value) => value.as_object().cloned(),
            CaughtError::Error(_) => None,
        };
        let part = |name: &str| object.as_ref()?.get::<_, Option<JsValue<'_>>>(name).ok().flatten();
        let message = part("message").and_then(|it| it.as_string()?.to_string().ok());
        let status = part("status").and_then(|it| it.as_number());
        let status = status.filter(|it| (400.0..600.0).contains(it)).map(|it| it as u16);
        let text = message.clone().unwrap_or_default();
        let error = match (status, message) {
            (Some(status), message) => {
                let message = message.unwrap_or_else(|| "an error without 'message'".to_owned());
                let error = Error::new(&message).with_status(status);
                if status < 500 { error.with_shown(Value::text(message)) } else { error }
            }
            _ => failed(&format!("{}: {reason}", origin.place(line))),
        };
        Failure::Thrown(text, error)
    }
}

/// Runs a text that is an expression.
fn eval<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    file: &str,
    text: impl Into<Vec<u8>>,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(text, options)
}

/// The line of the code at which something was thrown, and what was.
fn thrown(error: &CaughtError<'_>) -> (usize, String) {
    match error {
        CaughtError::Exception(exception) => {
            let name = exception.as_object().get::<_, String>("name");
            let name = name.unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            let stack = exception.stack().unwrap_or_default();
            // The first place that is not a function of ours.
            let place = stack.split("code:").nth(1).unwrap_or_default();
            let digits = place.split(|sign: char| !sign.is_ascii_digit()).next();
            let line = digits.and_then(|digits| digits.parse().ok()).unwrap_or(1);
            (line, format!("{name}: {message}"))
        }
        CaughtError::Value(value) => {
            let text = value.as_string().and_then(|text| text.to_string().ok());
            (1, text.unwrap_or_else(|| format!("threw {}", value.type_name())))
        }
        CaughtError::Error(error) => (1, error.to_string()),
    }
}

/// Why a call has no value.
enum Failure {
    Stopped(ScriptStop),
    Memory,
    /// What the code threw, and the error that it becomes.
    Thrown(String, Error),
    Flow(Error),
}

impl Failure {
    fn into_error(self, limits: &Limits) -> Error {
        match self {
            Failure::Stopped(ScriptStop::Time) => failed(&format!(
                "the code ran longer than {:?} and was stopped; raise 'time'",
                limits.time
            )),
            Failure::Stopped(ScriptStop::Instructions) => failed(&format!(
                "the code took more than {} instructions and was stopped; raise 'instructions_max'",
                limits.instructions_max
            )),
            // The flow itself has reported this.
            Failure::Stopped(ScriptStop::Work) => failed("its flow has no work left"),
            Failure::Memory => failed(&format!(
                "the code needed more than {} bytes of memory and was stopped; raise 'memory'",
                limits.memory_bytes
            )),
            Failure::Thrown(_, error) | Failure::Flow(error) => error,
        }
    }
}

fn failed(reason: &str) -> Error {
    Error::new(format_args!("javascript: {reason}"))
}
