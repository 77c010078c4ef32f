//! `lua`: the body of a function in Lua 5.4, which sees `packet`, `values`, `env` and `flow`.
//!
//! One state for each node and worker, whose globals nobody can change: each call gets a table of
//! its own for what it sets. A script has neither files nor processes nor other code, and three
//! limits: time, instructions and memory. One that goes past a limit is stopped, also inside
//! `pcall`, and its state is thrown away.

mod convert;
mod library;
mod pattern;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, Lua, LuaOptions, LuaString, Scope, StdLib, Table, Value as LuaValue,
    VmState,
};
use sinew_runtime::flow::{Error, Flow, Value};
use sinew_runtime::{Made, Refusal};
use sinew_spec::Item;

use super::{Limits, Script, code};
use crate::script::template::RENDERED_MAX;
use convert::{Converter, lazy};

/// Instructions between two looks at the clock: a look costs what a few instructions do.
const INSTRUCTIONS_PER_LOOK: u32 = 100;
/// Most bytes of text that one call of the library handles, and that become one value: it takes
/// some ten milliseconds, in which nobody looks at the clock. As long as a template's text.
const TEXTS_LEN_MAX: usize = RENDERED_MAX;
/// Bytes of text that count as one instruction.
const BYTES_PER_INSTRUCTION: usize = 16;
/// Calls that functions of ours make back into the code, within each other. One takes some 10 KiB
/// of a worker's stack in a debug build; past this it is an error.
const CALLS_BACK_MAX: u32 = 16;
/// Stands before the code, on its first line, and names what it is given.
const OPENING: &str = "local _ENV, packet, values, env, flow = ... ";
/// What Lua says when it has no memory left.
const NO_MEMORY: &str = "not enough memory";

struct Snippet {
    code: String,
    limits: Limits,
    /// `None` after a call went past a limit.
    state: RefCell<Option<State>>,
}

struct State {
    lua: Lua,
    /// The compiled code.
    body: Function,
    /// Calls the code with globals of its own; catches its errors.
    run: Function,
    budget: Rc<Budget>,
    converter: Converter,
    /// Whether the code has the word; without it, it cannot ask for what the word stands for.
    uses_packet: bool,
    uses_values: bool,
    uses_flow: bool,
}

pub(super) fn compile(item: &Item, limits: &Limits) -> Made<dyn Script> {
    let code = code(item)?;
    let state = State::new(code, limits).map_err(|error| {
        let text = innermost(&error);
        let (line, reason) = split_line(&text);
        let offset = code.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let help = "write the body of a function in Lua 5.4, such as return packet.name";
        vec![Refusal::new(item.span_at(offset), format!("not Lua: {reason}"), help)]
    })?;
    let state = RefCell::new(Some(state));
    Ok(Box::new(Snippet { code: code.to_owned(), limits: *limits, state }))
}

impl Script for Snippet {
    fn run(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        let mut place = self.state.borrow_mut();
        let state = match place.take() {
            Some(state) => state,
            None => {
                State::new(&self.code, &self.limits).map_err(|error| failed(&innermost(&error)))?
            }
        };
        let result = state.call(flow, packet);
        let memory = matches!(&result, Err(Failure::Memory));
        if state.budget.stopped.get().is_none() && !memory {
            *place = Some(state);
        }
        result.map_err(|failure| failure.into_error(&self.limits))
    }
}

impl State {
    fn new(code: &str, limits: &Limits) -> mlua::Result<State> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let budget = Rc::new(Budget::new(limits));
        let (run, converter) = library::install(&lua, &budget)?;
        let body = lua.load(format!("{OPENING}{code}")).set_name("=code");
        let body = body.set_mode(ChunkMode::Text).into_function()?;
        let hook = HookTriggers::new().every_nth_instruction(INSTRUCTIONS_PER_LOOK);
        let looked = Rc::clone(&budget);
        lua.set_hook(hook, move |_, _| {
            looked.spend(INSTRUCTIONS_PER_LOOK.into())?;
            Ok(VmState::Continue)
        })?;
        lua.set_memory_limit(limits.memory_bytes)?;
        let [uses_packet, uses_values, uses_flow] =
            ["packet", "values", "flow"].map(|word| code.contains(word));
        Ok(State { lua, body, run, budget, converter, uses_packet, uses_values, uses_flow })
    }

    /// The values of a flow, as a table that reads and sets them.
    fn values<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        flow: &'env Flow,
    ) -> mlua::Result<Table> {
        let get = scope.create_function(|_, (_, name): (Table, LuaString)| {
            let value = flow.get(&name.to_str()?).unwrap_or_default();
            self.converter.to_lua(&self.lua, &value)
        })?;
        let set = scope.create_function(|_, (_, name, value): (Table, LuaString, LuaValue)| {
            let value = self.converter.value(&value)?;
            flow.set(name.to_str()?.to_string().into(), value);
            Ok(())
        })?;
        let meta = self.lua.create_table()?;
        meta.raw_set("__index", get)?;
        meta.raw_set("__newindex", set)?;
        let values = self.lua.create_table()?;
        values.set_metatable(Some(meta))?;
        Ok(values)
    }

    fn call(&self, flow: &Flow, packet: &Value) -> Result<Value, Failure> {
        self.budget.begin();
        let result = self.lua.scope(|scope| {
            let values = self.uses_values.then(|| self.values(scope, flow)).transpose()?;
            let (packet, fill) = match packet {
                _ if !self.uses_packet => (LuaValue::Nil, None),
                Value::Document(document) => {
                    let (table, fill) = lazy(&self.lua, scope, &self.converter, document)?;
                    (LuaValue::Table(table), Some(fill))
                }
                other => (self.converter.to_lua(&self.lua, other)?, None),
            };
            let about = self.uses_flow.then(|| self.lua.create_table_from([("id", flow.id())]));
            let about = about.transpose()?;
            let body = self.body.clone();
            let (fine, made): (bool, LuaValue) =
                self.run.call((body, packet.clone(), values, about))?;
            // A request that is the answer as a whole must be there as a whole.
            if let (true, Some(fill)) = (fine && made == packet, fill) {
                fill.call::<()>(&made)?;
            }
            Ok(if fine { Ok(self.converter.value(&made)?) } else { Err(self.thrown(&made)) })
        });
        if let Some(stop) = self.budget.stopped.get() {
            return Err(Failure::Stopped(stop));
        }
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => Err(failure),
            Err(error) => Err(Failure::of(&error)),
        }
    }

    /// What the code threw: a text, a table `{status, message}`, or an error of a function of ours.
    fn thrown(&self, thrown: &LuaValue) -> Failure {
        match thrown {
            LuaValue::String(text) if text.as_bytes() == NO_MEMORY.as_bytes() => Failure::Memory,
            LuaValue::String(text) => Failure::Text(text.to_string_lossy()),
            LuaValue::Error(error) => Failure::of(error),
            LuaValue::Table(table) => {
                let status = table.raw_get::<Option<u16>>("status").ok().flatten();
                let message = table.raw_get::<Option<String>>("message").ok().flatten();
                Failure::Made(
                    status,
                    message.unwrap_or_else(|| "an error without 'message'".into()),
                )
            }
            other => Failure::Text(format!("error of type {}", other.type_name())),
        }
    }
}

/// Why a call has no value.
enum Failure {
    Stopped(Stop),
    Memory,
    /// An error of the code, in words.
    Text(String),
    /// An error that the code made: its status, and what whoever asked may read.
    Made(Option<u16>, String),
    /// An error of a flow that came through, such as a body that is malformed.
    Flow(Error),
}

impl Failure {
    fn of(error: &mlua::Error) -> Failure {
        match error {
            mlua::Error::MemoryError(_) => Failure::Memory,
            mlua::Error::CallbackError { cause, .. } => Failure::of(cause),
            mlua::Error::ExternalError(cause) => match cause.downcast_ref::<Error>() {
                Some(error) => Failure::Flow(error.clone()),
                None => Failure::Text(cause.to_string()),
            },
            other => Failure::Text(innermost(other)),
        }
    }

    fn into_error(self, limits: &Limits) -> Error {
        match self {
            Failure::Stopped(Stop::Time) => failed(&format!(
                "the code ran longer than {:?} and was stopped; raise 'time'",
                limits.time
            )),
            Failure::Stopped(Stop::Instructions) => failed(&format!(
                "the code took more than {} instructions and was stopped; raise 'instructions_max'",
                limits.instructions_max
            )),
            Failure::Memory => failed(&format!(
                "the code needed more than {} bytes of memory and was stopped; raise 'memory'",
                limits.memory_bytes
            )),
            Failure::Text(text) => failed(&text),
            Failure::Made(status, message) => {
                let error = Error::new(&message);
                match status.filter(|status| (400..600).contains(status)) {
                    Some(status) if status < 500 => {
                        error.with_status(status).with_shown(Value::text(message))
                    }
                    Some(status) => error.with_status(status),
                    None => error,
                }
            }
            Failure::Flow(error) => error,
        }
    }
}

fn failed(reason: &str) -> Error {
    Error::new(format_args!("lua: {reason}"))
}

/// What an error of Lua says, without the trace around it.
fn innermost(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => innermost(cause),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::RuntimeError(text) => {
            text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}

/// The line and the rest of `code:3: reason`.
fn split_line(text: &str) -> (usize, &str) {
    let rest = text.strip_prefix("code:").and_then(|rest| rest.split_once(": "));
    let found = rest.and_then(|(line, reason)| Some((line.parse().ok()?, reason)));
    found.unwrap_or((1, text))
}

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Time,
    Instructions,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the code is stopped at a limit")
    }
}

impl std::error::Error for Stop {}

/// What is left of a call's time and instructions.
struct Budget {
    limits: Limits,
    began: Cell<Instant>,
    left: Cell<u64>,
    stopped: Cell<Option<Stop>>,
    calls_back: Cell<u32>,
}

impl Budget {
    fn new(limits: &Limits) -> Budget {
        Budget {
            limits: *limits,
            began: Cell::new(Instant::now()),
            left: Cell::new(limits.instructions_max),
            stopped: Cell::new(None),
            calls_back: Cell::new(0),
        }
    }

    fn begin(&self) {
        self.began.set(Instant::now());
        self.left.set(self.limits.instructions_max);
        self.stopped.set(None);
    }

    /// Calls the code from a function of ours that it has called.
    fn call_back<T>(&self, call: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
        let outer = self.calls_back.get();
        if outer == CALLS_BACK_MAX {
            let text = format!("more than {CALLS_BACK_MAX} calls of string.gsub within each other");
            return Err(mlua::Error::runtime(text));
        }
        self.calls_back.set(outer + 1);
        let called = call();
        self.calls_back.set(outer);
        called
    }

    /// Spends what it takes to handle a text of `len` bytes in one call; more than
    /// [`TEXTS_LEN_MAX`] cannot be had at any price.
    fn handle(&self, len: usize) -> mlua::Result<()> {
        if len > TEXTS_LEN_MAX {
            return Err(mlua::Error::runtime(format!(
                "{len} bytes of text in one call, at most {TEXTS_LEN_MAX}; take it apart"
            )));
        }
        self.spend((len / BYTES_PER_INSTRUCTION) as u64)
    }

    /// Spends instructions, or what takes as long. Once a limit is met this fails for good.
    fn spend(&self, instructions: u64) -> mlua::Result<()> {
        let before = self.left.get();
        let left = before.saturating_sub(instructions);
        self.left.set(left);
        let look = u64::from(INSTRUCTIONS_PER_LOOK);
        let looks = left == 0 || before / look != left / look;
        if looks && self.stopped.get().is_none() {
            if left == 0 {
                self.stopped.set(Some(Stop::Instructions));
            } else if self.began.get().elapsed() > self.limits.time {
                self.stopped.set(Some(Stop::Time));
            }
        }
        self.stopped.get().map_or(Ok(()), |stop| Err(mlua::Error::external(stop)))
    }
}
