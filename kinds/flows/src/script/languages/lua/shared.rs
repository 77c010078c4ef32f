//! The functions that Lua shares with expressions.

use mlua::{Error, Lua, MultiValue, Result, Table, Value as LuaValue};

use super::budget::INSTRUCTIONS_PER_WORK;
use super::convert::Converter;
use crate::script::library::{Argument, LIBRARY, LibraryRow};

/// A table for each namespace. Functions without a namespace are in the table with the empty name.
pub(super) fn tables(lua: &Lua, converter: &Converter) -> Result<Table> {
    let tables = lua.create_table()?;
    for row in LIBRARY {
        let table: Option<Table> = tables.raw_get(row.namespace)?;
        let table = table.map_or_else(|| lua.create_table(), Ok)?;
        let converter = converter.clone();
        let function = lua.create_function(move |lua, arguments: MultiValue| {
            call(lua, &converter, row, arguments)
        })?;
        table.raw_set(row.name, function)?;
        tables.raw_set(row.namespace, table)?;
    }
    Ok(tables)
}

fn call(lua: &Lua, it: &Converter, row: &LibraryRow, given: MultiValue) -> Result<LuaValue> {
    let mut given = given.into_vec();
    // Arguments at the end that are nil were left out.
    while given.last().is_some_and(LuaValue::is_nil) {
        given.pop();
    }
    let texts: Vec<_> =
        given.iter().map(|value| value.as_string().map(|text| text.as_bytes())).collect();
    it.budget.handle(texts.iter().flatten().map(|text| text.len()).sum())?;
    let argument = |(value, text): (&LuaValue, _)| match (value, text) {
        (_, Some(text)) => Argument::Bytes(text),
        (LuaValue::Integer(value), _) => Argument::Integer(*value),
        (LuaValue::Number(value), _) => Argument::Number(*value),
        _ => Argument::Other,
    };
    let bytes = texts.iter().map(|text| text.as_deref());
    let arguments: Vec<_> = given.iter().zip(bytes).map(argument).collect();
    it.budget.spend((row.work + row.price(&arguments)) * INSTRUCTIONS_PER_WORK)?;
    let value = row.call(&arguments);
    let value = value.map_err(|text| Error::runtime(format!("{}: {text}", row.called())))?;
    it.to_lua(lua, &value)
}
