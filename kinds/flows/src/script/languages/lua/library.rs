//! The functions that a script may call. Those of Lua's library that can take for ever within one
//! call are replaced by our own, which count what they do.

use std::rc::Rc;

use memchr::memmem;
use mlua::{
    Error, FromLuaMulti, Function, IntoLuaMulti, Lua, LuaString, MultiValue, Result, Table,
    Value as LuaValue,
};

use sinew_control::outside;

use super::convert::Converter;
use super::pattern::{Captured, Matcher};
use super::{Budget, TEXTS_LEN_MAX, json, shared};

/// Signs that mean something in a pattern. `find` takes a pattern without any of them as plain
/// text.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Puts the library into a state. Gives the function that calls a script, the globals that a script
/// finds, and the converter of its values.
pub(super) fn install(lua: &Lua, budget: &Rc<Budget>) -> Result<(Function, Table, Converter)> {
    let list = lua.create_table()?;
    list.raw_set("__metatable", false)?;
    let converter = Converter { list, budget: Rc::clone(budget) };
    let natives = &lua.create_table()?;
    native(lua, natives, "spend", budget, |_, budget, count: u64| budget.spend(count))?;
    native(lua, natives, "handle", budget, |_, budget, len: usize| budget.handle(len))?;
    native(lua, natives, "env", budget, |_, _, name: String| {
        outside::variable(&name).map_err(|why| Error::runtime(format!("env.{name}: {why}")))
    })?;
    native(lua, natives, "rep", budget, repeated)?;
    native(lua, natives, "find", budget, found)?;
    native(lua, natives, "match", budget, |lua, budget, (text, pattern, from): Sought| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let start = start_of(from.unwrap_or(1), text.len());
        let found = Search::new(&text, &pattern, budget).next(start, None)?;
        found.map_or(Ok(nothing()), |found| Ok(MultiValue::from_vec(found.captured(lua)?)))
    })?;
    native(lua, natives, "gmatch", budget, all_matches)?;
    native(lua, natives, "seek", budget, sought)?;
    native(lua, natives, "gsub", budget, substituted)?;
    native(lua, natives, "encode", &converter, |lua, it, value| json::encode(lua, it, &value))?;
    native(lua, natives, "decode", &converter, |lua, it, text| json::decode(lua, it, &text))?;
    native(lua, natives, "list", &converter, |_, it: &Converter, table: Table| {
        // Another metatable protects a table that is not the script's own, such as the library.
        if table.metatable().is_some_and(|meta| meta != it.list) {
            return Err(Error::runtime("json.list: takes a table of your own"));
        }
        table.set_metatable(Some(it.list.clone()))?;
        Ok(table)
    })?;
    natives.raw_set("null", LuaValue::NULL)?;
    natives.raw_set("shared", shared::tables(lua, &converter)?)?;
    let library = lua.load(include_str!("library.lua")).set_name("=library").into_function()?;
    let (run, base) = library.call(natives)?;
    Ok((run, base, converter))
}

/// Puts a function of ours into a table, with what it needs.
fn native<T: Clone + 'static, A: FromLuaMulti, R: IntoLuaMulti>(
    lua: &Lua,
    natives: &Table,
    name: &str,
    with: &T,
    function: impl Fn(&Lua, &T, A) -> Result<R> + 'static,
) -> Result<()> {
    let with = with.clone();
    let function = lua.create_function(move |lua, arguments| function(lua, &with, arguments))?;
    natives.raw_set(name, function)
}

/// A text, a pattern, and where the search begins.
type Sought = (LuaString, LuaString, Option<i64>);

fn nothing() -> MultiValue {
    MultiValue::from_vec(vec![LuaValue::Nil])
}

fn repeated(
    lua: &Lua,
    budget: &Rc<Budget>,
    (text, count, between): (LuaString, i64, Option<LuaString>),
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
        // An empty text stays empty, however often it is repeated.
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

/// `find`: where the first match is, and its captures.
fn found(
    lua: &Lua,
    budget: &Rc<Budget>,
    (text, pattern, from, plain): (LuaString, LuaString, Option<i64>, Option<bool>),
) -> Result<MultiValue> {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let start = start_of(from.unwrap_or(1), text.len());
    if plain.unwrap_or(false) || !pattern.iter().any(|byte| SPECIAL.contains(byte)) {
        let Some(rest) = text.get(start..) else { return Ok(nothing()) };
        let found = memmem::find(rest, &pattern);
        // Charges for the bytes looked at: a script that goes on from match to match is charged for
        // the text once.
        budget.handle(found.unwrap_or(rest.len()))?;
        let place = found.map(|at| (start + at + 1, start + at + pattern.len()));
        return place.map_or(Ok(nothing()), |place| place.into_lua_multi(lua));
    }
    match Search::new(&text, &pattern, budget).next(start, None)? {
        Some(found) if found.matcher.captures() > 0 => found.placed(lua, 1),
        Some(found) => (found.start + 1, found.end).into_lua_multi(lua),
        None => Ok(nothing()),
    }
}

/// A search for matches of a pattern, one after the other.
struct Search<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    /// Whether only the first place is tried.
    is_anchored: bool,
    budget: &'a Budget,
}

/// A match, and where it is.
struct Match<'a> {
    matcher: Matcher<'a>,
    start: usize,
    end: usize,
}

impl<'a> Search<'a> {
    fn new(text: &'a [u8], pattern: &'a [u8], budget: &'a Budget) -> Search<'a> {
        let anchored = pattern.strip_prefix(b"^");
        let is_anchored = anchored.is_some();
        Search { text, pattern: anchored.unwrap_or(pattern), is_anchored, budget }
    }

    /// The next match from a byte on. A match that ends where the last one did does not count.
    fn next(&self, from: usize, last_end: Option<usize>) -> Result<Option<Match<'a>>> {
        for start in from..=self.text.len() {
            let mut matcher = Matcher::new(self.text, self.pattern, self.budget);
            if let Some(end) = matcher.matches(start)?.filter(|end| last_end != Some(*end)) {
                return Ok(Some(Match { matcher, start, end }));
            }
            if self.is_anchored {
                break;
            }
        }
        Ok(None)
    }
}

impl<'a> Match<'a> {
    /// A capture. Without captures, the first one is the whole match.
    fn capture(&self, at: usize) -> Result<Captured<'a>> {
        self.matcher.capture(at, self.start, self.end)
    }

    fn whole(&self) -> &'a [u8] {
        self.matcher.part(self.start, self.end)
    }

    /// All captures; the whole match if there are none.
    fn captured(&self, lua: &Lua) -> Result<Vec<LuaValue>> {
        let count = self.matcher.captures().max(1);
        (0..count).map(|at| value_of(lua, self.capture(at)?)).collect()
    }

    /// Its start, counted from `first`, its end, and its captures.
    fn placed(&self, lua: &Lua, first: usize) -> Result<MultiValue> {
        let place = [self.start + first, self.end].map(|at| LuaValue::Integer(at as i64));
        Ok(place.into_iter().chain(self.captured(lua)?).collect())
    }
}

fn value_of(lua: &Lua, captured: Captured<'_>) -> Result<LuaValue> {
    Ok(match captured {
        Captured::Bytes(bytes) => LuaValue::String(lua.create_string(bytes)?),
        Captured::Position(at) => LuaValue::Integer(at as i64),
    })
}

/// An iterator over the matches from a place on, as `for` takes it. A '^' means itself there.
fn all_matches(lua: &Lua, budget: &Rc<Budget>, (text, pattern, from): Sought) -> Result<Function> {
    let budget = Rc::clone(budget);
    let (mut next, mut last_end) = (start_of(from.unwrap_or(1), text.as_bytes().len()), None);
    lua.create_function_mut(move |lua, ()| {
        let (text, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
        let search = Search { text, pattern, is_anchored: false, budget: &budget };
        let Some(found) = search.next(next, last_end)? else {
            next = usize::MAX;
            return Ok(nothing());
        };
        (next, last_end) = (found.end, Some(found.end));
        Ok(MultiValue::from_vec(found.captured(lua)?))
    })
}

/// The next match from a byte on: how many bytes are before its start and before its end, and its
/// captures.
fn sought(
    lua: &Lua,
    budget: &Rc<Budget>,
    (text, pattern, from, last): (LuaString, LuaString, usize, Option<usize>),
) -> Result<MultiValue> {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let found = Search::new(&text, &pattern, budget).next(from, last)?;
    found.map_or(Ok(nothing()), |found| found.placed(lua, 0))
}

/// `gsub`: the text with its matches replaced, and how many were replaced.
fn substituted(
    lua: &Lua,
    budget: &Rc<Budget>,
    (text, pattern, with, most): (LuaString, LuaString, LuaValue, Option<i64>),
) -> Result<(LuaString, usize)> {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    let search = Search::new(&text, &pattern, budget);
    let (mut made, mut count, mut at, mut last_end) = (Vec::new(), 0, 0, None);
    while count < most
        && let Some(found) = search.next(at, last_end)?
    {
        made.extend_from_slice(&text[at..found.start]);
        append(lua, &mut made, &found, &with)?;
        if made.len() > budget.limits.memory_bytes.min(TEXTS_LEN_MAX) {
            let text = format!(
                "string.gsub: its text is more than 'memory', or than {TEXTS_LEN_MAX} bytes"
            );
            return Err(Error::runtime(text));
        }
        (count, at, last_end) = (count + 1, found.end, Some(found.end));
        if search.is_anchored {
            break;
        }
    }
    made.extend_from_slice(text.get(at..).unwrap_or_default());
    budget.handle(made.len())?;
    Ok((lua.create_string(made)?, count))
}

/// Replaces a match by a text with %0 to %9, or by the entry of a table. Nil and false leave the
/// match as it is. The values of a function are put there by `library.lua`.
fn append(lua: &Lua, made: &mut Vec<u8>, found: &Match<'_>, with: &LuaValue) -> Result<()> {
    let instead = match with {
        LuaValue::String(text) => return expand(made, found, &text.as_bytes()),
        LuaValue::Integer(_) | LuaValue::Number(_) => with.clone(),
        LuaValue::Table(table) => table.get(value_of(lua, found.capture(0)?)?)?,
        other => {
            let name = other.type_name();
            let text = format!("string.gsub: takes a text, table or function, found a {name}");
            return Err(Error::runtime(text));
        }
    };
    if matches!(instead, LuaValue::Nil | LuaValue::Boolean(false)) {
        made.extend_from_slice(found.whole());
        return Ok(());
    }
    let name = instead.type_name();
    let text = lua.coerce_string(instead)?;
    let text =
        text.ok_or_else(|| Error::runtime(format!("string.gsub: cannot put in a {name}")))?;
    made.extend_from_slice(&text.as_bytes());
    Ok(())
}

fn expand(made: &mut Vec<u8>, found: &Match<'_>, text: &[u8]) -> Result<()> {
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            made.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'%') => made.push(b'%'),
            Some(b'0') => made.extend_from_slice(found.whole()),
            Some(digit @ b'1'..=b'9') => match found.capture(usize::from(digit - b'1'))? {
                Captured::Bytes(bytes) => made.extend_from_slice(bytes),
                Captured::Position(at) => made.extend_from_slice(at.to_string().as_bytes()),
            },
            _ => return Err(Error::runtime("string.gsub: '%' stands before a digit or '%'")),
        }
    }
    Ok(())
}
