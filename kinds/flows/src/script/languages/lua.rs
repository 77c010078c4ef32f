//! `lua`: the body of a function in Lua 5.4, which sees `packet`, `values`, `env` and `flow`.
//!
//! Each node has states in each worker. No script can change their globals: each call gets a table
//! of its own for the globals that it sets. A script has neither files nor processes nor other
//! code. It has three limits: time, instructions and memory. A script that exceeds a limit is
//! stopped, even inside `pcall`, and its state is thrown away. It takes turns with other flows:
//! after a slice of time its coroutine waits, and meanwhile the next packet has another state.

mod budget;
mod convert;
mod globals;
mod json;
mod library;
mod pattern;
mod shared;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use budget::{Budget, STRETCH_MAX, Stop};
use convert::{Converter, Requests};
use mlua::chunk::ChunkMode;
use mlua::thread::ThreadStatus;
use mlua::{
    Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Thread,
    Value as LuaValue, VmState,
};
use sinew_core::{Made, Refusal};
use sinew_flow::{Document, Error, Flow, FlowValues, Step, Value};
use sinew_spec::plan::SpecText;
use sinew_spec::{Item, Span, near};
use tokio::sync::Notify;

use super::origin::ScriptLines;
use super::{Limits, Script, code, made};
use crate::script::line_start;
use crate::script::template::RENDERED_MAX;
use globals::{Read, Words};

/// Most states of a node in each worker: so many of its scripts may have begun and wait for their
/// next turn. A further one begins when another has ended. So together they take so many times
/// `memory` at most.
const STATES_MAX: usize = 8;
/// Instructions between two looks at the clock: a look costs what a few instructions do.
const INSTRUCTIONS_PER_LOOK: u32 = 100;
/// What a call costs beside the code that it runs, in units of work.
const CALL: u64 = 1;
/// Values of a flow that a search passes in the time of one instruction.
const VALUES_PER_INSTRUCTION: usize = 4;
/// Most bytes of text that one call of the library handles, and that become one value. This takes
/// some ten milliseconds, in which the clock is not checked. The limit is that of a template's
/// text.
const TEXTS_LEN_MAX: usize = RENDERED_MAX;
/// What the code is given beside its globals.
const GIVEN: &str = "packet, values, env, flow";
/// Most globals of one script that are reported as missing.
const UNSET_MAX: usize = 20;
/// The text before the line of the code in messages of Lua.
const CHUNK: &str = "code:";
/// What to write as a script.
const BODY: &str = "write the body of a function in Lua 5.4, such as return packet.name";
/// Where Lua stops at the syntax of other languages, and what to write in Lua.
const FOREIGN: &[(&str, &str)] = &[
    ("near '!'", "Lua writes ~= for != and 'not' for !"),
    ("near '&'", "Lua writes 'and' for &&"),
    ("near '|'", "Lua writes 'or' for ||"),
    ("near '+'", "Lua writes x = x + 1 for x += 1 and x++"),
    ("near '?'", "Lua writes 'condition and this or that' for condition ? this : that"),
    ("near '{'", "Lua writes 'if condition then ... end', 'for ... do ... end'"),
];
/// What Lua has elsewhere, and what there is here instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["print"], "there is no console here; pass the packet through a node 'print'"),
    (
        &["io", "os", "require", "dofile", "loadfile", "package"],
        "there are no files, processes and modules here; for the time there is 'now()', for the \
         environment 'env.NAME'",
    ),
    (&["load", "loadstring", "debug"], "a script cannot make code while it runs"),
    (
        &["coroutine", "setmetatable", "getmetatable", "rawset", "rawget", "collectgarbage"],
        "it does not exist here: nothing of a script outlives a call",
    ),
    (&["unpack"], "did you mean 'table.unpack'?"),
    (&["null", "undefined", "None"], "Lua writes nil; in a list, json.null"),
];
/// What Lua says when it has no memory left.
const NO_MEMORY: &str = "not enough memory";

struct Snippet {
    code: String,
    limits: Limits,
    origin: ScriptLines,
    /// The states that are not in use.
    idle: RefCell<Vec<State>>,
    /// How many states are in use.
    used: Cell<usize>,
    freed: Notify,
}

struct State {
    lua: Lua,
    /// The globals that are there for all scripts.
    library: Table,
    /// The compiled code.
    body: Function,
    /// Calls the code with globals of its own; catches its errors.
    run: Function,
    /// The coroutine in which the code runs, so that it can be interrupted.
    thread: Thread,
    budget: Rc<Budget>,
    converter: Converter,
    requests: Requests,
    /// The values of the flow, as a table that reads and sets them.
    values: Table,
    current: Rc<Current>,
    /// Whether the code has this word; without the word it cannot use what the word stands for.
    uses_packet: bool,
    uses_values: bool,
    uses_flow: bool,
}

/// What functions of ours see of the call that is under way.
#[derive(Default)]
struct Current {
    values: RefCell<Option<FlowValues>>,
    request: RefCell<Option<Arc<dyn Document>>>,
}

/// One of a node's states in use.
struct Use<'a>(&'a Snippet);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.used.set(self.0.used.get() - 1);
        self.0.freed.notify_one();
    }
}

pub(super) fn compile(item: &Item, limits: &Limits, spec: Option<&SpecText>) -> Made<dyn Script> {
    let code = code(item)?;
    let state = State::new(code, limits).map_err(|error| {
        let text = innermost(&error);
        let (line, reason) = split_line(&text).unwrap_or((1, &text));
        let foreign = FOREIGN.iter().find(|(near, _)| reason.ends_with(near));
        let help = foreign.map_or(BODY, |(_, help)| help);
        vec![Refusal::new(item.span_at(line_start(code, line)), format!("not Lua: {reason}"), help)]
    })?;
    let unset = state.unset(item, code);
    if !unset.is_empty() {
        return Err(unset);
    }
    let (idle, used, freed) = (RefCell::new(vec![state]), Cell::new(0), Notify::new());
    let (limits, origin) = (*limits, ScriptLines::of(item, code, spec));
    Ok(Box::new(Snippet { code: code.to_owned(), limits, origin, idle, used, freed }))
}

impl Script for Snippet {
    fn run<'a>(&'a self, flow: &'a Flow, packet: Value) -> Step<'a> {
        Step::compute(async move { made(self.call(flow, &packet).await) })
    }
}

impl Snippet {
    async fn call(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        while self.used.get() == STATES_MAX {
            self.freed.notified().await;
        }
        self.used.set(self.used.get() + 1);
        let _used = Use(self);
        // A flow that has no work left would only spoil a state.
        flow.spend(CALL)?;
        let idle = self.idle.borrow_mut().pop();
        let new = || State::new(&self.code, &self.limits);
        let state = idle.map_or_else(new, Ok).map_err(|error| failed(&innermost(&error)))?;
        let result = state.call(flow, packet).await;
        // A state that met a limit may hold anything, so it is not kept.
        if state.budget.stopped().is_none() && !matches!(&result, Err(Failure::Memory)) {
            self.idle.borrow_mut().push(state);
        }
        result.map_err(|failure| failure.into_error(&self.limits, &self.origin))
    }
}

impl State {
    fn new(code: &str, limits: &Limits) -> mlua::Result<State> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let budget = Rc::new(Budget::new(limits));
        let (run, library, converter) = library::install(&lua, &budget)?;
        // The text before the code is on the code's first line.
        let body = lua.load(format!("local _ENV, {GIVEN} = ... {code}")).set_name("=code");
        let body = body.set_mode(ChunkMode::Text).into_function()?;
        let current = Rc::<Current>::default();
        let requests = Requests::new(&lua, &converter, &current)?;
        let values = values(&lua, &converter, &current)?;
        let hook = HookTriggers::new().every_nth_instruction(INSTRUCTIONS_PER_LOOK);
        let looked = Rc::clone(&budget);
        lua.set_global_hook(hook, move |_, _| {
            looked.spend(INSTRUCTIONS_PER_LOOK.into())?;
            // Where the code cannot wait, because a function of the library calls it, it goes on.
            Ok(if looked.is_due() { VmState::Yield } else { VmState::Continue })
        })?;
        let thread = lua.create_thread(run.clone())?;
        lua.set_memory_limit(limits.memory_bytes)?;
        let [uses_packet, uses_values, uses_flow] =
            ["packet", "values", "flow"].map(|word| code.contains(word));
        Ok(State {
            lua,
            library,
            body,
            run,
            thread,
            budget,
            converter,
            requests,
            values,
            current,
            uses_packet,
            uses_values,
            uses_flow,
        })
    }

    /// The globals that the code reads, and that neither it nor the library sets.
    fn unset(&self, item: &Item, code: &str) -> Vec<Refusal> {
        let mut unset = globals::unset(code, GIVEN);
        unset.retain(|read| !self.library.contains_key(&*read.name).unwrap_or(true));
        if unset.is_empty() {
            return Vec::new();
        }
        let known: Vec<String> =
            self.library.pairs::<String, LuaValue>().flatten().map(|it| it.0).collect();
        let known = || known.iter().map(String::as_str).chain(GIVEN.split(", "));
        let words = Words::of(code);
        let refuse = |read: &Read| {
            let place = item.span_at(words.place(read));
            let len = if place.len == 1 { read.name.len() as u32 } else { place.len };
            let message = format!("the global '{}' is never set", read.name);
            Refusal::new(Span { len, ..place }, message, instead(&read.name, known()))
        };
        unset.iter().take(UNSET_MAX).map(refuse).collect()
    }

    async fn call(&self, flow: &Flow, packet: &Value) -> Result<Value, Failure> {
        self.budget.begin();
        if self.uses_values {
            *self.current.values.borrow_mut() = Some(flow.values());
        }
        let value = self.turns(flow, packet).await;
        *self.current.values.borrow_mut() = None;
        *self.current.request.borrow_mut() = None;
        value
    }

    /// Runs the code, one turn after the other.
    async fn turns(&self, flow: &Flow, packet: &Value) -> Result<Value, Failure> {
        self.budget.begin_turn(flow.work_left());
        let mut turn = self.begin(flow, packet);
        loop {
            flow.spend(self.budget.end_turn()).map_err(Failure::Flow)?;
            if let Some(stop) = self.budget.stopped() {
                return Err(Failure::Stopped(stop));
            }
            let ended = turn.map_err(|error| Failure::of(&error))?;
            if self.thread.status() != ThreadStatus::Resumable {
                self.budget.begin_turn(flow.work_left());
                let value = self.result(ended);
                flow.spend(self.budget.end_turn()).map_err(Failure::Flow)?;
                return match self.budget.stopped() {
                    Some(stop) => Err(Failure::Stopped(stop)),
                    None => value,
                };
            }
            flow.turn().await;
            self.budget.begin_turn(flow.work_left());
            turn = self.thread.resume(());
        }
    }

    /// The first turn.
    fn begin(&self, flow: &Flow, packet: &Value) -> mlua::Result<MultiValue> {
        let packet = match packet {
            _ if !self.uses_packet => LuaValue::Nil,
            Value::Document(document) => {
                *self.current.request.borrow_mut() = Some(Arc::clone(document));
                LuaValue::Table(self.requests.table(&self.lua)?)
            }
            other => self.converter.to_lua(&self.lua, other)?,
        };
        let about = self.uses_flow.then(|| self.lua.create_table_from([("id", flow.id())]));
        let values = self.uses_values.then(|| self.values.clone());
        self.thread.reset(self.run.clone())?;
        self.thread.resume((self.body.clone(), packet, values, about.transpose()?))
    }

    /// What the code gave, or threw.
    fn result(&self, ended: MultiValue) -> Result<Value, Failure> {
        let mut ended = ended.into_iter();
        let is_fine = matches!(ended.next(), Some(LuaValue::Boolean(true)));
        let made = ended.next().unwrap_or(LuaValue::Nil);
        if !is_fine {
            return Err(self.thrown(&made));
        }
        // If the request itself is the answer, all its fields must be there.
        let filled = self.requests.fill(&made);
        filled.and_then(|()| self.converter.value(&made)).map_err(|error| Failure::of(&error))
    }

    /// What the code threw: a text, a table `{status, message}`, or an error of a function of ours.
    fn thrown(&self, thrown: &LuaValue) -> Failure {
        Failure::Flow(match thrown {
            LuaValue::String(text) if text.as_bytes() == NO_MEMORY.as_bytes() => {
                return Failure::Memory;
            }
            LuaValue::String(text) => return Failure::Code(text.to_string_lossy()),
            LuaValue::Error(error) => return Failure::of(error),
            LuaValue::Table(table) => {
                let status = table.raw_get::<Option<u16>>("status").ok().flatten();
                let message = table.raw_get::<Option<String>>("message").ok().flatten();
                let message = message.unwrap_or_else(|| "an error without 'message'".into());
                let error = Error::new(&message);
                match status.filter(|status| (400..600).contains(status)) {
                    Some(status) if status < 500 => {
                        error.with_status(status).with_shown(Value::text(message))
                    }
                    Some(status) => error.with_status(status),
                    None => error,
                }
            }
            other => failed(&format!("error of type {}", other.type_name())),
        })
    }
}

/// Why a call has no value.
enum Failure {
    Stopped(Stop),
    Memory,
    /// What the code or a function of the library threw as text: with a line of the code, if one is
    /// known.
    Code(String),
    /// An error that the code made, or one of a flow that passed through the script, such as a
    /// malformed body.
    Flow(Error),
}

impl Failure {
    fn of(error: &mlua::Error) -> Failure {
        match error {
            mlua::Error::MemoryError(_) => Failure::Memory,
            mlua::Error::CallbackError { cause, traceback } => match Failure::of(cause) {
                // A function of the library does not know which line called it.
                Failure::Code(text) if !text.starts_with(CHUNK) => {
                    let place = traceback.find(CHUNK).map(|at| &traceback[at..]);
                    let line = place.and_then(|place| place[CHUNK.len()..].split(':').next());
                    let front = line.map_or(String::new(), |line| format!("{CHUNK}{line}: "));
                    Failure::Code(front + &text)
                }
                other => other,
            },
            mlua::Error::ExternalError(cause) => match cause.downcast_ref::<Error>() {
                Some(error) => Failure::Flow(error.clone()),
                None => Failure::Code(cause.to_string()),
            },
            other => Failure::Code(innermost(other)),
        }
    }

    fn into_error(self, limits: &Limits, origin: &ScriptLines) -> Error {
        match self {
            Failure::Code(text) => failed(&placed(&text, origin)),
            Failure::Stopped(Stop::Time) => failed(&format!(
                "the code ran longer than {:?} and was stopped; raise 'time'",
                limits.time
            )),
            Failure::Stopped(Stop::Instructions) => failed(&format!(
                "the code took more than {} instructions and was stopped; raise 'instructions_max'",
                limits.instructions_max
            )),
            Failure::Stopped(Stop::Stretch) => failed(&format!(
                "one function of the library took more than {STRETCH_MAX} instructions and was \
                 stopped; give it less at once"
            )),
            // The flow itself has reported this.
            Failure::Stopped(Stop::Work) => failed("its flow has no work left"),
            Failure::Memory => failed(&format!(
                "the code needed more than {} bytes of memory and was stopped; raise 'memory'",
                limits.memory_bytes
            )),
            Failure::Flow(error) => error,
        }
    }
}

/// The values of the flow that is under way, as a table.
fn values(lua: &Lua, converter: &Converter, current: &Rc<Current>) -> mlua::Result<Table> {
    let (flow, reader) = (Rc::clone(current), converter.clone());
    let get = lua.create_function(move |lua, (_, name): (Table, LuaString)| {
        let value = match &*flow.values.borrow() {
            Some(values) => {
                reader.budget.spend(search(values))?;
                name.to_str().ok().and_then(|name| values.get(&name))
            }
            None => None,
        };
        reader.to_lua(lua, &value.unwrap_or_default())
    })?;
    let (flow, writer) = (Rc::clone(current), converter.clone());
    let set = lua.create_function(move |_, (_, name, value): (Table, LuaString, LuaValue)| {
        let (name, value) = (name.to_str()?.to_string(), writer.value(&value)?);
        if let Some(values) = &*flow.values.borrow() {
            writer.budget.spend(search(values))?;
            values.set(name.into(), value);
        }
        Ok(())
    })?;
    let meta = lua.create_table()?;
    meta.raw_set("__index", get)?;
    meta.raw_set("__newindex", set)?;
    let values = lua.create_table()?;
    values.set_metatable(Some(meta))?;
    Ok(values)
}

/// What it takes to look for a value among these, in instructions.
fn search(values: &FlowValues) -> u64 {
    (values.count() / VALUES_PER_INSTRUCTION) as u64
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

/// An error text in which the lines of the script before it are places of the spec. An error that
/// was caught and thrown again has several.
fn placed(text: &str, origin: &ScriptLines) -> String {
    let (mut placed, mut rest) = (String::new(), text);
    while let Some((line, reason)) = split_line(rest) {
        placed += &format!("{}: ", origin.place(line));
        rest = reason;
    }
    placed + rest
}

/// The line and the rest of `code:3: reason`.
fn split_line(text: &str) -> Option<(usize, &str)> {
    let (line, reason) = text.strip_prefix(CHUNK)?.split_once(": ")?;
    Some((line.parse().ok()?, reason))
}

/// What to write instead of a global that is not there.
fn instead<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match ELSEWHERE.iter().find(|(names, _)| names.contains(&name)) {
        Some((_, instead)) => (*instead).to_owned(),
        None => near(name, known).unwrap_or_else(|| {
            format!("write 'local {name} = ...' above it; also where it may be absent")
        }),
    }
}
