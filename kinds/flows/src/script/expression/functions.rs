//! The functions of expressions.
//!
//! The compiler puts `@each` around what a loop goes through, with the price of a step, and
//! `@weigh` around what a step looks at.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use cel::{Env, ExecutionError, extensions};
use regex::{Regex, RegexBuilder};

use super::budget::charge;
use super::convert::{cel_weight, to_cel};
use super::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE,
    STRING_TYPE, Type,
};
use super::value::{CowVal, Val};
use crate::script::library::{Argument, LIBRARY};

/// Largest compiled size of a pattern that is written in the spec, in bytes.
const OWN_PATTERN_SIZE_MAX: usize = 1 << 20;
/// What it costs to compile a pattern at run time.
const PATTERN_WORK: u64 = 10_000;
/// Longest pattern that is not written in the spec, in bytes.
const PATTERN_LEN_MAX: usize = 1_000;
/// Sizes that such a pattern is compiled to, in bytes. The first size that it fits into decides
/// what a search with it costs, because the worst patterns look at each byte with all that they
/// have.
const PATTERN_SIZES: [usize; 3] = [4 << 10, 32 << 10, 256 << 10];
/// For each byte of text, so many bytes of a compiled pattern cost as much as one value.
const PATTERN_SIZE_PER_UNIT: usize = 512;
/// Most compiled patterns of the spec that a thread keeps, and most of the other ones.
const PATTERNS_MAX: usize = 64;

/// Charges for a loop over something.
pub(super) const EACH: &str = "@each";
/// Charges for looking at something.
pub(super) const WEIGH: &str = "@weigh";
/// Searches with a pattern that is not written in the spec.
pub(super) const MATCHES_ANY: &str = "@matches";
/// Calls a function that Lua has too, by its place in their table.
pub(super) const SHARED: &str = "@shared";

/// The functions that an expression may call, by name; operators and macros are not among them.
/// `replace`, `join` and `split` are our own: those of the CEL library make the result first,
/// whatever it costs.
pub(super) const FUNCTIONS: &str = "\
    size contains startsWith endsWith matches string int uint double bool bytes type dyn of \
    none ofNonZeroValue hasValue value or orValue charAt indexOf lastIndexOf join lowerAscii \
    upperAscii trim replace split substring reverse greatest least ceil floor \
    round trunc abs sign isNaN isInf isFinite sqrt bitAnd bitOr bitXor bitNot bitShiftLeft \
    bitShiftRight";

thread_local! {
    /// The language, made once for each worker: every evaluation needs it.
    pub(super) static LANGUAGE: Arc<Env> = Arc::new(language());
    /// Compiled patterns by their text: first those that are not of the spec, then those of the
    /// spec. They are shared, because a copy of one would allocate its memory for a search anew for
    /// each text.
    static PATTERNS: RefCell<[HashMap<String, Rc<Pattern>>; 2]> = RefCell::default();
}

/// A pattern, and what a search with it costs for each byte of text.
struct Pattern {
    regex: Regex,
    work_per_byte: u64,
}

fn pay(price: u64) -> Result<(), ExecutionError> {
    if charge(price) { Ok(()) } else { Err(ExecutionError::function_error("", "too much work")) }
}

fn language() -> Env {
    let mut env = Env::stdlib();
    declare(&mut env).expect("the names of the language's functions differ");
    env
}

fn declare(env: &mut Env) -> Result<(), cel::DeclarationError> {
    let text = || STRING_TYPE.to_owned();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::math)?;
    let any = || vec![DYN_TYPE.to_owned()];
    env.add_overload(EACH, EACH, vec![DYN_TYPE.to_owned(), INT_TYPE.to_owned()], each)?;
    env.add_overload(WEIGH, WEIGH, any(), weigh)?;
    env.add_overload("matches", "matches", vec![text(), text()], matches)?;
    env.add_member_overload("matches", "text.matches", text(), vec![text()], matches)?;
    env.add_overload(MATCHES_ANY, MATCHES_ANY, vec![text(), text()], matches_any)?;
    env.add_member_overload(MATCHES_ANY, "text.@matches", text(), vec![text()], matches_any)?;
    for count in 0..=LIBRARY.iter().map(|row| row.arguments[1]).max().unwrap_or(0) {
        let arguments = [INT_TYPE].into_iter().chain((0..count).map(|_| DYN_TYPE));
        env.add_overload(SHARED, &format!("{SHARED}{count}"), arguments.collect(), shared)?;
    }
    let list: fn() -> Type = || LIST_TYPE.to_owned();
    env.add_member_overload("@join", "list.join", list(), vec![], join)?;
    env.add_member_overload("@join", "list.join_with", list(), vec![text()], join)?;
    env.add_member_overload("@replace", "text.replace", text(), vec![text(), text()], replace)?;
    let counted = vec![text(), text(), INT_TYPE.to_owned()];
    env.add_member_overload("@replace", "text.replace_n", text(), counted, replace)?;
    env.add_member_overload("@split", "text.split", text(), vec![text()], split)?;
    let counted = vec![text(), INT_TYPE.to_owned()];
    env.add_member_overload("@split", "text.split_n", text(), counted, split)
}

/// The name under which the language knows our own version of a function.
pub(super) fn own_name(name: &str) -> Option<&'static str> {
    match name {
        "join" => Some("@join"),
        "replace" => Some("@replace"),
        "split" => Some("@split"),
        _ => None,
    }
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn each<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let price = arguments.pop().and_then(|it| it.downcast_ref::<CelInt>().map(|it| *it.inner()));
    let range = arguments.remove(0);
    let steps = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    let [steps, price] = [steps, price.unwrap_or(1)].map(|it| u64::try_from(it).unwrap_or(0));
    pay(steps.saturating_mul(price))?;
    Ok(range)
}

fn weigh<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let value = arguments.remove(0);
    pay(cel_weight(value.as_ref()))?;
    Ok(value)
}

/// Calls a function of the table; the first argument is its place there.
fn shared<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let at = arguments[0].downcast_ref::<CelInt>().map_or(0, |at| *at.inner() as usize);
    let row = &LIBRARY[at];
    let given: Vec<_> = arguments[1..].iter().map(|value| argument(value.as_ref())).collect();
    pay(row.price(&given))?;
    let value = row.call(&given);
    let value = value.map_err(|text| ExecutionError::function_error(row.called(), text))?;
    Ok(CowVal::Owned(to_cel(&value)))
}

fn argument<'b>(value: &'b (dyn Val + '_)) -> Argument<'b> {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        Argument::Text(text.inner())
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        Argument::Bytes(bytes.inner())
    } else if let Some(value) = value.downcast_ref::<CelInt>() {
        Argument::Integer(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelDouble>() {
        Argument::Number(*value.inner())
    } else {
        Argument::Other
    }
}

fn text<'b>(value: &'b (dyn Val + '_), function: &str) -> Result<&'b str, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>().map(CelString::inner);
    text.ok_or_else(|| ExecutionError::function_error(function, "takes texts"))
}

/// `matches` with a pattern of the spec. The text was charged for when its variable was looked up.
fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    matches_with(&arguments, true, |pattern| {
        Ok(Pattern { regex: own_pattern(pattern)?, work_per_byte: 0 })
    })
}

/// `matches` with any pattern, which may come with the packet and be made to take long.
fn matches_any<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    matches_with(&arguments, false, any_pattern)
}

fn matches_with<'b, 'v>(
    arguments: &Arguments<'_, '_>,
    is_own: bool,
    compile: fn(&str) -> Result<Pattern, String>,
) -> Answer<'b, 'v> {
    let argument = |at: usize| text(arguments[at].as_ref(), "matches");
    let (subject, pattern) = (argument(0)?, argument(1)?);
    let kept = kept(pattern, is_own, compile)?;
    pay((subject.len() as u64).saturating_mul(kept.work_per_byte))?;
    Ok(CowVal::owned(CelBool::from(kept.regex.is_match(subject))))
}

/// A compiled pattern of those that this thread keeps; `compile` makes it if it is not there.
fn kept(
    pattern: &str,
    is_own: bool,
    compile: fn(&str) -> Result<Pattern, String>,
) -> Result<Rc<Pattern>, ExecutionError> {
    let place = usize::from(is_own);
    if let Some(known) = PATTERNS.with_borrow(|known| known[place].get(pattern).cloned()) {
        return Ok(known);
    }
    pay(PATTERN_WORK)?;
    let compiled = compile(pattern);
    let compiled = compiled.map_err(|text| ExecutionError::function_error("matches", text))?;
    let compiled = Rc::new(compiled);
    PATTERNS.with_borrow_mut(|known| {
        if known[place].len() >= PATTERNS_MAX {
            known[place].clear();
        }
        known[place].insert(pattern.to_owned(), Rc::clone(&compiled));
    });
    Ok(compiled)
}

/// Compiles a pattern that is written in the spec.
pub(super) fn own_pattern(pattern: &str) -> Result<Regex, String> {
    compiled(pattern, OWN_PATTERN_SIZE_MAX)
}

fn any_pattern(pattern: &str) -> Result<Pattern, String> {
    if pattern.len() > PATTERN_LEN_MAX {
        return Err(format!("a pattern of {} bytes, at most {PATTERN_LEN_MAX}", pattern.len()));
    }
    let [sizes @ .., last] = PATTERN_SIZES;
    let fitting = sizes.into_iter().find_map(|size| Some((size, compiled(pattern, size).ok()?)));
    let (size, regex) = match fitting {
        Some(fitting) => fitting,
        None => (last, compiled(pattern, last)?),
    };
    Ok(Pattern { regex, work_per_byte: (size / PATTERN_SIZE_PER_UNIT) as u64 })
}

/// Compiles a pattern to `size_max` bytes at most; the error is one line.
fn compiled(pattern: &str, size_max: usize) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern).size_limit(size_max).build();
    regex.map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

fn join<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let wrong = || ExecutionError::function_error("join", "takes a list of texts");
    let list = arguments[0].downcast_ref::<CelList<'_>>().ok_or_else(wrong)?;
    let between = arguments.get(1).map_or(Ok(""), |value| text(value.as_ref(), "join"))?;
    let parts: Result<Vec<&str>, _> =
        list.inner().iter().map(|item| text(item.as_ref(), "join")).collect();
    let parts = parts?;
    let len = parts.iter().map(|part| part.len() + between.len()).sum::<usize>();
    pay(len as u64 / 16)?;
    Ok(CowVal::owned(CelString::from(parts.join(between))))
}

fn replace<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let argument = |at: usize| text(arguments[at].as_ref(), "replace");
    let (subject, from, to) = (argument(0)?, argument(1)?, argument(2)?);
    let count = count(&arguments, 3);
    let found = subject.matches(from).count().min(count);
    pay((subject.len() + found.saturating_mul(to.len())) as u64 / 16)?;
    Ok(CowVal::owned(CelString::from(subject.replacen(from, to, count))))
}

fn split<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let argument = |at: usize| text(arguments[at].as_ref(), "split");
    let (subject, between) = (argument(0)?, argument(1)?);
    let parts_max = count(&arguments, 2);
    let found = match between {
        "" => subject.chars().count(),
        _ => subject.matches(between).count() + 1,
    };
    pay(subject.len() as u64 / 16 + found.min(parts_max) as u64)?;
    let parts: Vec<&str> = match between {
        "" => signs(subject, parts_max),
        _ => subject.splitn(parts_max, between).collect(),
    };
    let parts = parts.into_iter().map(|part| Box::new(CelString::from(part.to_owned())) as Box<_>);
    Ok(CowVal::owned(CelList::from(parts.collect::<Vec<Box<dyn Val>>>())))
}

/// The characters of a text, each by itself; the last of `parts_max` is the rest.
fn signs(text: &str, parts_max: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(sign) = rest.chars().next()
        && parts.len() + 1 < parts_max
    {
        let (part, behind) = rest.split_at(sign.len_utf8());
        parts.push(part);
        rest = behind;
    }
    if !rest.is_empty() && parts_max > 0 {
        parts.push(rest);
    }
    parts
}

/// How often something is done at most; a negative number, or none, means without a limit.
fn count(arguments: &Arguments<'_, '_>, at: usize) -> usize {
    let count = arguments.get(at).and_then(|count| count.downcast_ref::<CelInt>());
    count.and_then(|count| usize::try_from(*count.inner()).ok()).unwrap_or(usize::MAX)
}
