//! Values of flows as values of Lua, and back.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use mlua::{Function, Lua, Table, Value as LuaValue};
use sinew_flow::{Document, Error, Value};

use super::{Budget, Current, NO_MEMORY, TEXTS_LEN_MAX};

/// Deepest table that becomes a value; one that holds itself has no end.
const DEPTH_MAX: usize = 64;
/// Most bytes of text in one value. A text that a table holds several times counts each time.
const BYTES_MAX: usize = TEXTS_LEN_MAX;

/// What it takes to make a value, in instructions.
pub(super) const VALUE: u64 = 8;
/// What a value takes with its name, in bytes.
const VALUE_LEN: usize = 64;

/// What is left for a value that is made.
struct Room {
    memory: Cell<usize>,
    text: Cell<usize>,
}

impl Room {
    fn take(&self, len: usize) -> mlua::Result<()> {
        let left = self.memory.get().checked_sub(len);
        self.memory.set(left.ok_or_else(|| mlua::Error::MemoryError(NO_MEMORY.into()))?);
        Ok(())
    }

    fn take_text(&self, len: usize) -> mlua::Result<()> {
        match self.text.get().checked_sub(len) {
            Some(left) => self.text.set(left),
            None => return refuse(&format!("more than {BYTES_MAX} bytes of text in one value")),
        }
        self.take(len)
    }
}

/// What both directions need.
#[derive(Clone)]
pub(super) struct Converter {
    /// Marks tables that were lists, so that an empty one stays one.
    pub(super) list: Table,
    pub(super) budget: Rc<Budget>,
}

impl Converter {
    /// A value of flows as a value of Lua. Null is nil, which no table can hold, so in a list it is
    /// `json.null`.
    pub(super) fn to_lua(&self, lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
        self.budget.spend(VALUE)?;
        Ok(match value {
            Value::Null => LuaValue::Nil,
            Value::Bool(value) => LuaValue::Boolean(*value),
            Value::Integer(value) => LuaValue::Integer(*value),
            Value::Number(value) => LuaValue::Number(*value),
            Value::Text(text) => self.text(lua, text.as_bytes())?,
            Value::Bytes(bytes) => self.text(lua, bytes)?,
            Value::List(items) => {
                let table = lua.create_table_with_capacity(items.len(), 0)?;
                for (at, item) in items.iter().enumerate() {
                    let item = match item {
                        Value::Null => LuaValue::NULL,
                        item => self.to_lua(lua, item)?,
                    };
                    table.raw_set(at + 1, item)?;
                }
                table.set_metatable(Some(self.list.clone()))?;
                LuaValue::Table(table)
            }
            Value::Map(map) => {
                let table = lua.create_table_with_capacity(0, map.len())?;
                for (key, value) in map.iter() {
                    table.raw_set(&**key, self.to_lua(lua, value)?)?;
                }
                LuaValue::Table(table)
            }
            Value::Document(_) => {
                self.budget.spend_work(value.price())?;
                let whole = value.resolve().map_err(mlua::Error::external)?;
                self.to_lua(lua, &whole)?
            }
            Value::Stream(_) => {
                let text = "a stream cannot be read in lua";
                return Err(mlua::Error::external(Error::new(text)));
            }
        })
    }

    /// A field of a request.
    fn field(&self, lua: &Lua, request: &dyn Document, name: &str) -> mlua::Result<LuaValue> {
        self.budget.spend_work(request.price(name))?;
        let value = request.field(name).map_err(mlua::Error::external)?;
        self.to_lua(lua, &value)
    }

    pub(super) fn text(&self, lua: &Lua, text: &[u8]) -> mlua::Result<LuaValue> {
        self.budget.handle(text.len())?;
        lua.create_string(text).map(LuaValue::String)
    }

    /// A value of Lua as a value of flows. It takes `memory` at most, as the code does.
    pub(super) fn value(&self, value: &LuaValue) -> mlua::Result<Value> {
        self.value_within(value, self.budget.limits.memory_bytes)
    }

    /// The same in at most so many bytes of memory.
    pub(super) fn value_within(&self, value: &LuaValue, memory: usize) -> mlua::Result<Value> {
        let room = Room { memory: Cell::new(memory), text: Cell::new(BYTES_MAX) };
        self.value_at(value, 0, &room)
    }

    fn value_at(&self, value: &LuaValue, depth: usize, room: &Room) -> mlua::Result<Value> {
        self.budget.spend(VALUE)?;
        room.take(VALUE_LEN)?;
        Ok(match value {
            LuaValue::Nil | LuaValue::LightUserData(_) => Value::Null,
            LuaValue::Boolean(value) => Value::Bool(*value),
            LuaValue::Integer(value) => Value::Integer(*value),
            LuaValue::Number(value) => Value::Number(*value),
            LuaValue::String(text) => {
                let text = text.as_bytes();
                room.take_text(text.len())?;
                self.budget.handle(text.len())?;
                match std::str::from_utf8(&text) {
                    Ok(text) => Value::text(text),
                    Err(_) => Value::Bytes(Bytes::copy_from_slice(&text)),
                }
            }
            LuaValue::Table(_) if depth == DEPTH_MAX => {
                return refuse(&format!("a table nested deeper than {DEPTH_MAX} levels"));
            }
            LuaValue::Table(table) => self.table(table, depth + 1, room)?,
            other => return refuse(&format!("a {} is not a value of a flow", other.type_name())),
        })
    }

    /// A table with the keys 1 to n is a list, every other a mapping.
    fn table(&self, table: &Table, depth: usize, room: &Room) -> mlua::Result<Value> {
        let len = table.raw_len();
        let marked = table.metatable().is_some_and(|meta| meta == self.list);
        let (mut numbered, mut entries) = (0, Vec::new());
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, value) = pair?;
            let name = match &key {
                LuaValue::Integer(at) => {
                    numbered +=
                        usize::from(usize::try_from(*at).is_ok_and(|at| (1..=len).contains(&at)));
                    at.to_string()
                }
                LuaValue::String(name) => name.to_str()?.to_string(),
                LuaValue::Number(number) => number.to_string(),
                LuaValue::Boolean(key) => key.to_string(),
                other => {
                    return refuse(&format!("a key of type {} is not a name", other.type_name()));
                }
            };
            room.take(name.len())?;
            entries.push((name, self.value_at(&value, depth, room)?));
        }
        if numbered == len && entries.len() == len && (len > 0 || marked) {
            // A table gives the numbers of its list in their order, except for those in its hash
            // part.
            let mut items = entries;
            items.sort_by_key(|(at, _)| at.parse::<usize>().unwrap_or(usize::MAX));
            return Ok(Value::list(items.into_iter().map(|(_, value)| value)));
        }
        // The order of a table's names differs from one process to the next.
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Value::map(entries))
    }
}

fn refuse<T>(text: &str) -> mlua::Result<T> {
    Err(mlua::Error::runtime(text))
}

/// Makes tables of requests, whose fields are made when the code asks for them.
pub(super) struct Requests {
    meta: Table,
    /// Makes all fields that are not there yet.
    fill: Function,
}

impl Requests {
    /// The request is that of the call under way.
    pub(super) fn new(
        lua: &Lua,
        converter: &Converter,
        current: &Rc<Current>,
    ) -> mlua::Result<Requests> {
        let (flow, made) = (Rc::clone(current), converter.clone());
        let get = lua.create_function(move |lua, (table, name): (Table, LuaValue)| {
            let (LuaValue::String(name), Some(request)) = (name, flow.request()) else {
                return Ok(LuaValue::Nil);
            };
            let name = name.to_str()?;
            if !request.names().iter().any(|it| **it == *name) {
                return Ok(LuaValue::Nil);
            }
            made.field(lua, &*request, &name).and_then(|value| {
                table.raw_set(&*name, &value)?;
                Ok(value)
            })
        })?;
        let (flow, made) = (Rc::clone(current), converter.clone());
        let fill = lua.create_function(move |lua, table: Table| {
            let Some(request) = flow.request() else { return Ok(()) };
            for name in request.names() {
                if table.raw_get::<LuaValue>(&**name)?.is_nil() {
                    table.raw_set(&**name, made.field(lua, &*request, name)?)?;
                }
            }
            Ok(())
        })?;
        let meta = lua.create_table()?;
        meta.raw_set("__index", get)?;
        meta.raw_set("__metatable", false)?;
        let (filled, next) = (fill.clone(), lua.globals().raw_get::<Function>("next")?);
        let pairs = lua.create_function(move |_, table: Table| {
            filled.call::<()>(&table)?;
            Ok((next.clone(), table, LuaValue::Nil))
        })?;
        meta.raw_set("__pairs", pairs)?;
        Ok(Requests { meta, fill })
    }

    /// A table of the request under way.
    pub(super) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set_metatable(Some(self.meta.clone()))?;
        Ok(table)
    }

    /// Makes the rest of the fields, if the value is a request.
    pub(super) fn fill(&self, value: &LuaValue) -> mlua::Result<()> {
        match value {
            LuaValue::Table(table) if table.metatable().is_some_and(|it| it == self.meta) => {
                self.fill.call(table)
            }
            _ => Ok(()),
        }
    }
}

impl Current {
    fn request(&self) -> Option<Arc<dyn Document>> {
        self.request.borrow().clone()
    }
}
