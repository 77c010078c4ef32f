//! `json.decode` and `json.encode`: what they make is charged for while it is made, and counts as
//! memory of the script.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};

use mlua::{Error, Lua, LuaString, Result, Value as LuaValue};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::convert::{Converter, VALUE};

/// The value of a JSON text.
pub(super) fn decode(lua: &Lua, converter: &Converter, text: &LuaString) -> Result<LuaValue> {
    let text = text.as_bytes();
    converter.budget.handle(text.len())?;
    let failed = RefCell::new(None);
    let maker = Maker { lua, converter, failed: &failed, null: LuaValue::Nil };
    let mut from = serde_json::Deserializer::from_slice(&text);
    let value = maker.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
    // The error of Lua says more than that of the parser, which only says that the text goes on.
    value.map_err(|error| {
        failed.into_inner().unwrap_or_else(|| Error::runtime(format!("not JSON: {error}")))
    })
}

/// A value as JSON text.
pub(super) fn encode(lua: &Lua, converter: &Converter, value: &LuaValue) -> Result<LuaString> {
    let room = converter.budget.limits.memory_bytes.saturating_sub(lua.used_memory());
    let value = converter.value_within(value, room)?;
    let mut text = Bounded { bytes: Vec::new(), len_max: room };
    serde_json::to_writer(&mut text, &value).map_err(|error| match error.is_io() {
        true => Error::MemoryError(super::NO_MEMORY.into()),
        false => Error::runtime(error),
    })?;
    converter.budget.handle(text.bytes.len())?;
    lua.create_string(text.bytes)
}

/// Takes no more than so many bytes.
struct Bounded {
    bytes: Vec<u8>,
    len_max: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.len_max {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes values of Lua as they are read.
#[derive(Clone)]
struct Maker<'a> {
    lua: &'a Lua,
    converter: &'a Converter,
    /// Why Lua cannot hold the value.
    failed: &'a RefCell<Option<Error>>,
    /// The value that stands for null: in a list it cannot be nil.
    null: LuaValue,
}

impl Maker<'_> {
    fn make<T, E: de::Error>(&self, make: impl FnOnce() -> Result<T>) -> std::result::Result<T, E> {
        make().map_err(|error| {
            let text = error.to_string();
            *self.failed.borrow_mut() = Some(error);
            E::custom(text)
        })
    }

    fn one<E: de::Error>(&self, value: LuaValue) -> std::result::Result<LuaValue, E> {
        self.make(|| self.converter.budget.spend(VALUE)).map(|()| value)
    }
}

impl<'de> DeserializeSeed<'de> for Maker<'_> {
    type Value = LuaValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<LuaValue, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Maker<'_> {
    type Value = LuaValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> std::result::Result<LuaValue, E> {
        self.one(self.null.clone())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> std::result::Result<LuaValue, E> {
        self.one(LuaValue::Boolean(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> std::result::Result<LuaValue, E> {
        self.one(LuaValue::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<LuaValue, E> {
        let whole = i64::try_from(value);
        self.one(whole.map_or(LuaValue::Number(value as f64), LuaValue::Integer))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> std::result::Result<LuaValue, E> {
        self.one(LuaValue::Number(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<LuaValue, E> {
        self.make(|| self.converter.budget.spend(VALUE))?;
        self.make(|| self.converter.text(self.lua, text.as_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<LuaValue, A::Error> {
        self.make(|| self.converter.budget.spend(VALUE))?;
        let table = self.make(|| self.lua.create_table())?;
        let item = Maker { null: LuaValue::NULL, ..self.clone() };
        while let Some(value) = items.next_element_seed(item.clone())? {
            self.make(|| table.raw_push(value))?;
        }
        self.make(|| table.set_metatable(Some(self.converter.list.clone())))?;
        Ok(LuaValue::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut entries: A,
    ) -> std::result::Result<LuaValue, A::Error> {
        self.make(|| self.converter.budget.spend(VALUE))?;
        let table = self.make(|| self.lua.create_table())?;
        let item = Maker { null: LuaValue::Nil, ..self.clone() };
        while let Some(key) = entries.next_key_seed(item.clone())? {
            let value = entries.next_value_seed(item.clone())?;
            self.make(|| table.raw_set(key, value))?;
        }
        Ok(LuaValue::Table(table))
    }
}
