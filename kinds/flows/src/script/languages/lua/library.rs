//! What a script may call. Functions of Lua's library that can take for ever within one call are
//! our own here, and count what they do.

use std::rc::Rc;

use memchr::memmem;
use mlua::{
    Error, Function, IntoLuaMulti, Lua, LuaString, MultiValue, Result, Table, Value as LuaValue,
};

use super::convert::Converter;
use super::pattern::{Captured, Matcher};
use super::{Budget, TEXTS_LEN_MAX, json};

/// What means something in a pattern; `find` takes one without any of it as a word.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Puts the library into a state; gives what calls a script, and what converts its values.
pub(super) fn install(lua: &Lua, budget: &Rc<Budget>) -> Result<(Function, Converter)> {
    let list = lua.create_table()?;
    list.raw_set("__metatable", false)?;
    let converter = Converter { list, budget: Rc::clone(budget) };
    let natives = lua.create_table()?;
    let counted = Rc::clone(budget);
    natives.raw_set("spend", lua.create_function(move |_, count: u64| counted.spend(count))?)?;
    let handled = Rc::clone(budget);
    natives.raw_set("handle", lua.create_function(move |_, len: usize| handled.handle(len))?)?;
    natives.raw_set("env", lua.create_function(|_, name: String| Ok(std::env::var(name).ok()))?)?;
    texts(lua, &natives, budget)?;
    json_library(lua, &natives, &converter)?;
    let library = lua.load(include_str!("library.lua")).set_name("=library").into_function()?;
    Ok((library.call(natives)?, converter))
}

fn json_library(lua: &Lua, natives: &Table, converter: &Converter) -> Result<()> {
    let encoder = converter.clone();
    let encode = lua.create_function(move |lua, value| json::encode(lua, &encoder, &value))?;
    natives.raw_set("encode", encode)?;
    let decoder = converter.clone();
    let decode = lua.create_function(move |lua, text| json::decode(lua, &decoder, &text))?;
    natives.raw_set("decode", decode)?;
    let marker = converter.list.clone();
    natives.raw_set(
        "list",
        lua.create_function(move |_, table: Table| {
            // Another one protects what is not the script's own, such as the library.
            if table.metatable().is_some_and(|meta| meta != marker) {
                return Err(Error::runtime("json.list: takes a table of your own"));
            }
            table.set_metatable(Some(marker.clone()))?;
            Ok(table)
        })?,
    )?;
    natives.raw_set("null", LuaValue::NULL)
}

fn texts(lua: &Lua, natives: &Table, budget: &Rc<Budget>) -> Result<()> {
    let counted = Rc::clone(budget);
    natives.raw_set(
        "rep",
        lua.create_function(
            move |lua, (text, count, between): (LuaString, i64, Option<LuaString>)| {
                repeated(lua, &counted, &text, count, between.as_ref())
            },
        )?,
    )?;
    for (name, find) in [("find", true), ("match", false)] {
        let counted = Rc::clone(budget);
        let function = lua.create_function(
            move |lua,
                  (text, pattern, from, plain): (
                LuaString,
                LuaString,
                Option<i64>,
                Option<bool>,
            )| {
                let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
                let start = start_of(from.unwrap_or(1), text.len());
                let plain = plain.unwrap_or(false) || !pattern.iter().any(|b| SPECIAL.contains(b));
                if find && plain {
                    return found_plain(lua, &counted, &text, &pattern, start);
                }
                search(lua, &counted, &text, &pattern, start, find)
            },
        )?;
        natives.raw_set(name, function)?;
    }
    let counted = Rc::clone(budget);
    natives.raw_set(
        "gmatch",
        lua.create_function(
            move |lua, (text, pattern, from): (LuaString, LuaString, Option<i64>)| {
                all_matches(lua, &counted, text, pattern, from.unwrap_or(1))
            },
        )?,
    )?;
    let counted = Rc::clone(budget);
    natives.raw_set(
        "seek",
        lua.create_function(
            move |lua, (text, pattern, from, last): (LuaString, LuaString, usize, Option<usize>)| {
                sought(lua, &counted, (&text.as_bytes(), &pattern.as_bytes()), from, last)
            },
        )?,
    )?;
    let counted = Rc::clone(budget);
    natives.raw_set(
        "gsub",
        lua.create_function(
            move |lua, (text, pattern, with, most): (LuaString, LuaString, LuaValue, Option<i64>)| {
                let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
                substituted(lua, &counted, (&text, &pattern), &with, most)
            },
        )?,
    )
}

fn repeated(
    lua: &Lua,
    budget: &Budget,
    text: &LuaString,
    count: i64,
    between: Option<&LuaString>,
) -> Result<LuaString> {
    let (text, between) = (text.as_bytes(), between.map(|text| text.as_bytes().to_vec()));
    let between = between.unwrap_or_default();
    let count = usize::try_from(count).unwrap_or(0);
    let len = count.saturating_mul(text.len() + between.len());
    if len > budget.limits.memory_bytes {
        return Err(Error::runtime(format!("string.rep: {len} bytes are more than 'memory'")));
    }
    budget.handle(len)?;
    if between.is_empty() {
        // Nothing, however often, is nothing.
        return lua.create_string(if len == 0 { Vec::new() } else { text.repeat(count) });
    }
    let mut made = Vec::with_capacity(len);
    for at in 0..count {
        if at > 0 {
            made.extend_from_slice(&between);
        }
        made.extend_from_slice(&text);
    }
    lua.create_string(made)
}

/// The byte where a search begins: counted from 1, or from the end if negative. One past the end
/// of the text finds nothing.
fn start_of(from: i64, len: usize) -> usize {
    let from = match from {
        1.. => from - 1,
        0 => 0,
        _ => (len as i64).saturating_add(from).max(0),
    };
    usize::try_from(from).unwrap_or(usize::MAX)
}

fn found_plain(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    word: &[u8],
    start: usize,
) -> Result<MultiValue> {
    let Some(rest) = text.get(start..) else { return LuaValue::Nil.into_lua_multi(lua) };
    let found = memmem::find(rest, word);
    // What was looked at: who goes on from match to match pays for the text once.
    budget.handle(found.unwrap_or(rest.len()))?;
    match found {
        Some(at) => (start + at + 1, start + at + word.len()).into_lua_multi(lua),
        None => LuaValue::Nil.into_lua_multi(lua),
    }
}

fn search(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    pattern: &[u8],
    start: usize,
    find: bool,
) -> Result<MultiValue> {
    let (anchored, pattern) = anchor(pattern);
    let mut at = start;
    while at <= text.len() {
        let mut matcher = Matcher::new(text, pattern, budget);
        if let Some(end) = matcher.matches(at)? {
            let mut values = Vec::new();
            if find {
                values.push(LuaValue::Integer(at as i64 + 1));
                values.push(LuaValue::Integer(end as i64));
            }
            // `match` without captures gives the whole match, `find` nothing more.
            if !find || matcher.captures() > 0 {
                values.extend(captured(lua, &matcher, at, end)?);
            }
            return Ok(MultiValue::from_vec(values));
        }
        if anchored {
            break;
        }
        at += 1;
    }
    LuaValue::Nil.into_lua_multi(lua)
}

fn anchor(pattern: &[u8]) -> (bool, &[u8]) {
    pattern.strip_prefix(b"^").map_or((false, pattern), |rest| (true, rest))
}

/// The captures of a match; the whole match if there are none.
fn captured(lua: &Lua, matcher: &Matcher<'_>, start: usize, end: usize) -> Result<Vec<LuaValue>> {
    let count = matcher.captures().max(1);
    (0..count).map(|at| value_of(lua, matcher.capture(at, start, end)?)).collect()
}

fn value_of(lua: &Lua, captured: Captured<'_>) -> Result<LuaValue> {
    Ok(match captured {
        Captured::Bytes(bytes) => LuaValue::String(lua.create_string(bytes)?),
        Captured::Position(at) => LuaValue::Integer(at as i64),
    })
}

/// An iterator over the matches from a place on, as `for` takes it.
fn all_matches(
    lua: &Lua,
    budget: &Rc<Budget>,
    text: LuaString,
    pattern: LuaString,
    from: i64,
) -> Result<Function> {
    let counted = Rc::clone(budget);
    let (mut next, mut last_end) = (start_of(from, text.as_bytes().len()), None);
    lua.create_function_mut(move |lua, ()| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        while next <= text.len() {
            let at = next;
            let mut matcher = Matcher::new(&text, &pattern, &counted);
            if let Some(end) = matcher.matches(at)?.filter(|end| last_end != Some(*end)) {
                next = end;
                last_end = Some(end);
                return Ok(MultiValue::from_vec(captured(lua, &matcher, at, end)?));
            }
            next += 1;
        }
        LuaValue::Nil.into_lua_multi(lua)
    })
}

/// From a byte on, the next match of a pattern: the bytes before its start and before its end, and
/// its captures. One that ends where the last one did is none.
fn sought(
    lua: &Lua,
    budget: &Budget,
    (text, pattern): (&[u8], &[u8]),
    from: usize,
    last_end: Option<usize>,
) -> Result<MultiValue> {
    let (anchored, pattern) = anchor(pattern);
    for at in from..=text.len() {
        let mut matcher = Matcher::new(text, pattern, budget);
        if let Some(end) = matcher.matches(at)?.filter(|end| last_end != Some(*end)) {
            let mut found = vec![LuaValue::Integer(at as i64), LuaValue::Integer(end as i64)];
            found.extend(captured(lua, &matcher, at, end)?);
            return Ok(MultiValue::from_vec(found));
        }
        if anchored {
            break;
        }
    }
    LuaValue::Nil.into_lua_multi(lua)
}

/// `gsub`: the text with what matches replaced, and how often that was.
fn substituted(
    lua: &Lua,
    budget: &Budget,
    (text, pattern): (&[u8], &[u8]),
    with: &LuaValue,
    most: Option<i64>,
) -> Result<(LuaString, usize)> {
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    let (anchored, pattern) = anchor(pattern);
    let (mut made, mut count, mut at) = (Vec::new(), 0, 0);
    let mut last_end = None;
    while count < most {
        let mut matcher = Matcher::new(text, pattern, budget);
        match matcher.matches(at)?.filter(|end| last_end != Some(*end)) {
            Some(end) => {
                count += 1;
                append(lua, &mut made, &matcher, (at, end), with)?;
                at = end;
                last_end = Some(end);
            }
            None if at < text.len() => {
                made.push(text[at]);
                at += 1;
            }
            None => break,
        }
        if made.len() > budget.limits.memory_bytes.min(TEXTS_LEN_MAX) {
            let text = format!(
                "string.gsub: its text is more than 'memory', or than {TEXTS_LEN_MAX} bytes"
            );
            return Err(Error::runtime(text));
        }
        if anchored {
            break;
        }
    }
    made.extend_from_slice(text.get(at..).unwrap_or_default());
    budget.handle(made.len())?;
    Ok((lua.create_string(made)?, count))
}

/// What takes the place of a match: a text with %0 to %9, or the entry of a table; nothing and
/// false leave the match as it is. What a function gives, `library.lua` puts there.
fn append(
    lua: &Lua,
    made: &mut Vec<u8>,
    matcher: &Matcher<'_>,
    (start, end): (usize, usize),
    with: &LuaValue,
) -> Result<()> {
    let instead = match with {
        LuaValue::String(text) => return expand(made, matcher, (start, end), &text.as_bytes()),
        LuaValue::Integer(_) | LuaValue::Number(_) => {
            let text = lua.coerce_string(with.clone())?;
            return text.map_or(Ok(()), |text| {
                made.extend_from_slice(&text.as_bytes());
                Ok(())
            });
        }
        LuaValue::Table(table) => {
            table.get::<LuaValue>(value_of(lua, matcher.capture(0, start, end)?)?)?
        }
        other => {
            let name = other.type_name();
            let text = format!("string.gsub: takes a text, table or function, found a {name}");
            return Err(Error::runtime(text));
        }
    };
    match instead {
        LuaValue::Nil | LuaValue::Boolean(false) => {
            made.extend_from_slice(matcher.part(start, end))
        }
        LuaValue::String(text) => made.extend_from_slice(&text.as_bytes()),
        other => match lua.coerce_string(other.clone())? {
            Some(text) => made.extend_from_slice(&text.as_bytes()),
            None => {
                let text = format!("string.gsub: cannot put in a {}", other.type_name());
                return Err(Error::runtime(text));
            }
        },
    }
    Ok(())
}

fn expand(
    made: &mut Vec<u8>,
    matcher: &Matcher<'_>,
    (start, end): (usize, usize),
    text: &[u8],
) -> Result<()> {
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            made.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'%') => made.push(b'%'),
            Some(b'0') => made.extend_from_slice(matcher.part(start, end)),
            Some(digit @ b'1'..=b'9') => {
                match matcher.capture(usize::from(digit - b'1'), start, end)? {
                    Captured::Bytes(bytes) => made.extend_from_slice(bytes),
                    Captured::Position(at) => made.extend_from_slice(at.to_string().as_bytes()),
                }
            }
            _ => return Err(Error::runtime("string.gsub: '%' stands before a digit or '%'")),
        }
    }
    Ok(())
}
