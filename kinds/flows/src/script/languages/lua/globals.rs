//! Globals that a script reads and that nothing sets, found before it runs.
//!
//! The output of Lua's own compiler says which names are globals. So no second parser is needed,
//! which could read the scopes differently. But the compiler's binary format must be read here,
//! which is that of Lua 5.4 only. A chunk of any other format is not judged, and the tests below
//! show that.

use std::collections::HashSet;

use mlua::{Lua, LuaOptions, StdLib};
use sinew_spec::LineStarts;

use crate::script::line_start;

/// What a chunk of Lua 5.4 begins with: signature, version and format; then bytes that show whether
/// a transfer changed any, and the sizes of an instruction, an integer and a number.
const HEADER: &[u8] = b"\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08";
/// Bytes of the integer and the number that follow.
const SAMPLES: usize = 16;

/// Instructions (`lopcodes.h` of Lua 5.4).
mod op {
    pub(super) const LOADK: u32 = 3;
    pub(super) const GETUPVAL: u32 = 9;
    pub(super) const GETTABUP: u32 = 11;
    pub(super) const GETTABLE: u32 = 12;
    pub(super) const SETTABUP: u32 = 15;
}

/// Kinds of constants (`lobject.h`).
mod constant {
    pub(super) const FLOAT: u8 = 0x13;
    pub(super) const INTEGER: u8 = 0x03;
    pub(super) const TEXT: [u8; 2] = [0x04, 0x14];
}

/// The step that means that the line is in a table of its own.
const ABSOLUTE: i8 = -128;

/// A global that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) name: String,
    /// Line of the code, from 1.
    pub(super) line: usize,
}

/// The globals that a script reads and never sets, each where it is read first. There are none if
/// it uses its table of globals in a way that cannot be followed here, or is not Lua.
pub(super) fn unset(code: &str, given: &str) -> Vec<Read> {
    // A state of its own, so that compiling for this takes none of the script's memory.
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new());
    let chunk = lua.and_then(|lua| {
        let code = lua.load(format!("local {given} = ... {code}")).set_name("=code");
        Ok(code.into_function()?.dump(false))
    });
    chunk.map_or(Vec::new(), |chunk| unset_in(&chunk))
}

fn unset_in(chunk: &[u8]) -> Vec<Read> {
    let mut found = Found::default();
    let mut reader = Reader(chunk);
    let whole = reader.main(&mut found);
    if whole.is_none() || found.is_opaque {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let Found { mut read, set, .. } = found;
    read.sort_by_key(|read| read.line);
    read.retain(|read| !set.contains(&read.name) && seen.insert(read.name.clone()));
    read
}

#[derive(Default)]
struct Found {
    read: Vec<Read>,
    set: HashSet<String>,
    /// Whether the table of globals is used as a value.
    is_opaque: bool,
}

/// What is left of a chunk.
struct Reader<'a>(&'a [u8]);

/// A function's instructions and what they name.
struct Code {
    instructions: Vec<u32>,
    /// The constants that are texts; `None` for others.
    constants: Vec<Option<String>>,
    /// Which of its outer variables is the table of globals.
    is_globals: Vec<bool>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A number in seven bits of each byte; the last byte has its highest bit set.
    fn size(&mut self) -> Option<usize> {
        let mut size = 0_usize;
        loop {
            let byte = self.byte()?;
            size = size.checked_mul(128)? + usize::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                return Some(size);
            }
        }
    }

    fn text(&mut self) -> Option<Option<String>> {
        let Some(len) = self.size()?.checked_sub(1) else { return Some(None) };
        Some(Some(String::from_utf8_lossy(self.take(len)?).into_owned()))
    }

    fn main(&mut self, found: &mut Found) -> Option<()> {
        (self.take(HEADER.len())? == HEADER).then_some(())?;
        self.take(SAMPLES)?;
        self.byte()?;
        // The only outer variable of a chunk is its table of globals.
        self.function(None, found)
    }

    /// Reads a function and those within it. `outer` says which outer variables of the function
    /// around it are the table of globals.
    fn function(&mut self, outer: Option<&[bool]>, found: &mut Found) -> Option<()> {
        self.text()?;
        let line = self.size()?;
        self.size()?;
        self.take(3)?;
        let count = self.size()?;
        let words = self.take(count.checked_mul(4)?)?.chunks_exact(4);
        let words = words.map(|word| word.try_into().map(u32::from_le_bytes));
        let instructions = words.collect::<Result<Vec<_>, _>>().ok()?;
        let constants = (0..self.size()?).map(|_| self.constant()).collect::<Option<_>>()?;
        let is_globals =
            (0..self.size()?).map(|_| {
                let [in_stack, index, _] = *self.take(3)? else { return None };
                Some(outer.is_none_or(|outer| {
                    in_stack == 0 && outer.get(usize::from(index)) == Some(&true)
                }))
            });
        let is_globals: Vec<bool> = is_globals.collect::<Option<_>>()?;
        for _ in 0..self.size()? {
            self.function(Some(&is_globals), found)?;
        }
        let lines = self.lines(line)?;
        Code { instructions, constants, is_globals }.look(&lines, found);
        Some(())
    }

    fn constant(&mut self) -> Option<Option<String>> {
        match self.byte()? {
            constant::FLOAT | constant::INTEGER => self.take(8).map(|_| None),
            kind if constant::TEXT.contains(&kind) => self.text(),
            _ => Some(None),
        }
    }

    /// The line of each instruction of a function that begins at `line`. Skips the function's
    /// names.
    fn lines(&mut self, mut line: usize) -> Option<Vec<usize>> {
        let count = self.size()?;
        let steps = self.take(count)?;
        let table = (0..self.size()?).map(|_| Some((self.size()?, self.size()?)));
        let table: Vec<(usize, usize)> = table.collect::<Option<_>>()?;
        for _ in 0..self.size()? {
            self.text()?;
            self.size()?;
            self.size()?;
        }
        for _ in 0..self.size()? {
            self.text()?;
        }
        let mut table = table.into_iter();
        let line_of = |&step: &u8| {
            line = match step.cast_signed() {
                ABSOLUTE => table.next()?.1,
                step => line.checked_add_signed(step.into())?,
            };
            Some(line)
        };
        steps.iter().map(line_of).collect()
    }
}

impl Code {
    fn look(&self, lines: &[usize], found: &mut Found) {
        let mut words = self.instructions.iter().copied().enumerate().peekable();
        while let Some((at, word)) = words.next() {
            let (a, b, c) = (word >> 7 & 0xff, word >> 16 & 0xff, word >> 24);
            let (name, is_read) = match word & 0x7f {
                op::GETTABUP if self.is_globals(b) => (self.text(c), true),
                op::SETTABUP if self.is_globals(a) => (self.text(b), false),
                // With many constants a name is loaded first.
                op::GETUPVAL if self.is_globals(b) => {
                    let loads = |next: u32| next & 0x7f == op::LOADK && next >> 7 & 0xff == a + 1;
                    let Some((_, load)) = words.next_if(|&(_, next)| loads(next)) else {
                        found.is_opaque = true;
                        return;
                    };
                    let gets = |next: u32| {
                        next & 0x7f == op::GETTABLE && next >> 16 & 0xff == a && next >> 24 == a + 1
                    };
                    (self.text(load >> 15), words.peek().is_some_and(|&(_, next)| gets(next)))
                }
                _ => continue,
            };
            match (name, is_read) {
                (None, _) => found.is_opaque = true,
                (Some(name), true) => {
                    let line = lines.get(at).copied().unwrap_or(1);
                    found.read.push(Read { name: name.clone(), line });
                }
                (Some(name), false) => drop(found.set.insert(name.clone())),
            }
        }
    }

    fn is_globals(&self, at: u32) -> bool {
        self.is_globals.get(at as usize) == Some(&true)
    }

    fn text(&self, at: u32) -> Option<&String> {
        self.constants.get(at as usize)?.as_ref()
    }
}

/// The names and words of a script, to find one that was read.
pub(super) struct Words<'a> {
    code: &'a str,
    words: Vec<(usize, &'a str)>,
    lines: LineStarts,
}

impl<'a> Words<'a> {
    pub(super) fn of(code: &'a str) -> Words<'a> {
        Words { code, words: words(code), lines: LineStarts::new(code) }
    }

    /// Where a name is that is read in a line, or above it if an expression goes on over several
    /// lines. Gives the first byte of the line if the name cannot be found.
    pub(super) fn place(&self, read: &Read) -> usize {
        let line = |at: usize| self.lines.line(at);
        let read_at = self.words.iter().filter(|word| word.1 == read.name && self.is_read(word));
        let above = read_at.map(|&(at, _)| at).take_while(|&at| line(at) <= read.line);
        let above: Vec<usize> = above.collect();
        let last = above.last().map(|&at| line(at));
        // The first of those in the same line.
        let first = above.iter().find(|&&at| Some(line(at)) == last);
        first.copied().unwrap_or_else(|| line_start(self.code, read.line))
    }

    fn is_read(&self, &(at, word): &(usize, &str)) -> bool {
        let (front, behind) = self.code.split_at(at);
        let (front, behind) = (front.trim_end(), behind[word.len()..].trim_start());
        let is_part = front.ends_with(['.', ':']) && !front.ends_with("..");
        // A name that is set there is the key of a table, or something local.
        let is_set = behind.starts_with('=') && !behind.starts_with("==");
        !is_part && !is_set
    }
}

/// The names and words of a text in Lua, with their places: not those in comments and texts.
fn words(code: &str) -> Vec<(usize, &str)> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(sign) = code[at..].chars().next() {
        let rest = &code[at..];
        let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        at += if let Some(comment) = rest.strip_prefix("--") {
            2 + long(comment).unwrap_or_else(|| comment.find('\n').unwrap_or(comment.len()))
        } else if let Some(len) = long(rest) {
            len
        } else if matches!(sign, '"' | '\'') {
            quoted(rest)
        } else if is_word(sign) {
            let len = rest.find(|sign| !is_word(sign)).unwrap_or(rest.len());
            if !sign.is_ascii_digit() {
                words.push((at, &rest[..len]));
            }
            len
        } else {
            sign.len_utf8()
        };
    }
    words
}

/// The length of `[[...]]` or `[==[...]==]`, if a text begins so.
fn long(text: &str) -> Option<usize> {
    let level = text.strip_prefix('[')?.bytes().take_while(|&byte| byte == b'=').count();
    text[1 + level..].starts_with('[').then_some(())?;
    let end = format!("]{}]", "=".repeat(level));
    let start = level + 2;
    Some(text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// The length of the quoted text at the beginning of a text.
fn quoted(text: &str) -> usize {
    let (quote, mut is_escaped) = (text.as_bytes()[0], false);
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn found(code: &str) -> Vec<(String, usize)> {
        unset(code, "packet").into_iter().map(|read| (read.name, read.line)).collect()
    }

    #[test]
    fn a_global_that_nobody_sets_is_found_with_its_line() {
        let read = |name: &str, line| (name.to_owned(), line);
        assert_eq!(found("return a"), [read("a", 1)]);
        assert_eq!(found("local a = 1\nreturn a + b.c + b"), [read("b", 2)]);
        assert_eq!(
            found("local f = function()\n return function() return\n deep end end"),
            [read("deep", 3)]
        );
        // In the order of the code, though functions within come first in the chunk.
        assert_eq!(found("b()\nlocal f = function() a() end\nf()"), [read("b", 1), read("a", 2)]);
        assert_eq!(found("if maybe then return 1 end"), [read("maybe", 1)]);
        assert_eq!(found("do local x = 1 end\nreturn x"), [read("x", 2)]);
        assert_eq!(found("return _ENV.a"), [read("a", 1)]);
    }

    #[test]
    fn what_is_set_anywhere_is_no_mistake() {
        for code in [
            "a = 1 return a",
            "function a() return a end",
            "local f = function() a = 1 end f() return a",
            "local a <const> = 1 return a",
            "for a = 1, 2 do local b = a end",
            "local _ENV = {} return a",
            "local function f(_ENV) return a end",
            "goto a ::a::",
            "return ({a = 1}).a, ('x'):a()",
        ] {
            assert_eq!(found(code), [], "{code}");
        }
    }

    #[test]
    fn a_table_of_globals_that_is_a_value_is_not_seen_through() {
        for code in ["_ENV['a' .. 1] = 1 return a", "local g = _ENV g.a = 1 return a"] {
            assert_eq!(found(code), [], "{code}");
        }
    }

    #[test]
    fn names_behind_many_constants_and_lines_are_found_too() {
        let mut code = "local t = {}\n".to_owned();
        for at in 0..400 {
            writeln!(code, "t[{at}] = 'text {at}'{}", "\n".repeat(at % 200)).expect("a string");
        }
        let line = code.lines().count() + 2;
        let code = format!("{code}late = 1\nreturn late, absent");
        assert_eq!(found(&code), [("absent".to_owned(), line)]);
        let long = "x".repeat(100);
        assert_eq!(found(&format!("\n\nreturn {long}")), [(long, 3)]);
    }

    #[test]
    fn what_is_no_chunk_is_not_judged() {
        let chunk = Lua::new().load("return a").into_function().expect("Lua").dump(false);
        for len in 0..chunk.len() {
            assert_eq!(unset_in(&chunk[..len]), [], "{len} bytes");
        }
        let mut other = chunk;
        other[4] = 0x55;
        assert_eq!(unset_in(&other), []);
    }

    #[test]
    fn a_place_is_that_of_a_name_and_no_text_or_key() {
        let place = |code: &str, line, expected: &str| {
            let at = Words::of(code).place(&Read { name: "foo".into(), line });
            assert!(code[at..].starts_with(expected), "{code}: {}", &code[at..]);
        };
        place("return 'foo' .. foo", 1, "foo");
        place("return t.foo, a..foo - 1", 1, "foo -");
        place("-- foo\nlocal t = {foo = foo + 1}", 2, "foo +");
        place("--[[ foo\n]] local a = [==[foo]]]==] .. foo * 2", 2, "foo *");
        place("local s = 'it\\'s foo' .. foo == 1", 1, "foo ==");
        place("return foo\n  + 1", 2, "foo\n");
        place("x = 0xfoo", 1, "x");
    }
}
