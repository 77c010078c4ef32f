//! The functions of expressions, and what an evaluation may cost.
//!
//! CEL always ends, but an end may be far: `l.map(a, l.map(b, l.map(c, 0)))` has a thousand million
//! steps with a list of a thousand, and `[t].map(a, a + a).map(b, b + b)` doubles a text each time.
//! So everything that is looked at has a price, and an evaluation has [`WORK_MAX`] to spend. The
//! compiler puts `@each` around what is gone through and `@weigh` around what a step looks at.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use cel::{Env, ExecutionError, extensions};
use regex::{Regex, RegexBuilder};

use super::convert::cel_weight;
use super::types::{
    CelBool, CelInt, CelList, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE, Type,
};
use super::value::{CowVal, Val};

/// Most that one evaluation may look at: values, steps of loops, and parts of 16 bytes of text. At
/// some 100 ns each that is a tenth of a second; past it the evaluation is an error.
pub(crate) const WORK_MAX: u64 = 1_000_000;
/// What it costs to compile a regular expression.
const REGEX_WORK: u64 = 5_000;
/// Largest compiled regular expression, in bytes.
const REGEX_SIZE_MAX: usize = 1 << 20;
/// Most regular expressions that a thread keeps compiled.
const REGEXES_MAX: usize = 64;

/// Goes through something.
pub(super) const EACH: &str = "@each";
/// Looks at something.
pub(super) const WEIGH: &str = "@weigh";

/// The functions that an expression may call, by name; operators and macros are none. `replace`
/// and `join` are our own: the library's would first make the text and then ask what it costs.
pub(super) const FUNCTIONS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
    "type",
    "dyn",
    "of",
    "none",
    "ofNonZeroValue",
    "hasValue",
    "value",
    "or",
    "orValue",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "join",
    "lowerAscii",
    "upperAscii",
    "trim",
    "replace",
    "split",
    "substring",
    "reverse",
    "encode",
    "decode",
    "greatest",
    "least",
    "ceil",
    "floor",
    "round",
    "trunc",
    "abs",
    "sign",
    "isNaN",
    "isInf",
    "isFinite",
    "sqrt",
    "bitAnd",
    "bitOr",
    "bitXor",
    "bitNot",
    "bitShiftLeft",
    "bitShiftRight",
];

thread_local! {
    /// The language, made once for each worker: it is asked for with every evaluation.
    pub(super) static LANGUAGE: Arc<Env> = Arc::new(language());
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static REGEXES: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// One evaluation's work, on this thread: functions of CEL see nothing but their arguments.
pub(super) struct Work(());

impl Work {
    /// Begins an evaluation.
    pub(super) fn begin() -> Work {
        LEFT.set(WORK_MAX);
        Work(())
    }

    /// What is wrong if all was spent.
    pub(super) fn exhausted(self) -> Option<String> {
        (LEFT.get() == 0).then(|| {
            format!("it looks at more than {WORK_MAX} values; give it less, or a snippet in lua")
        })
    }
}

/// Takes the price of something; `false` if it is too high, and then nothing is left at all.
pub(super) fn charge(price: u64) -> bool {
    let left = LEFT.get().saturating_sub(price);
    LEFT.set(left);
    left > 0
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
    env.add_extension(extensions::encoders)?;
    let any = || vec![DYN_TYPE.to_owned()];
    env.add_overload(EACH, EACH, any(), each)?;
    env.add_overload(WEIGH, WEIGH, any(), weigh)?;
    env.add_overload("matches", "matches", vec![text(), text()], matches)?;
    env.add_member_overload("matches", "text.matches", text(), vec![text()], matches)?;
    let list: fn() -> Type = || LIST_TYPE.to_owned();
    env.add_member_overload("@join", "list.join", list(), vec![], join)?;
    env.add_member_overload("@join", "list.join_with", list(), vec![text()], join)?;
    env.add_member_overload("@replace", "text.replace", text(), vec![text(), text()], replace)?;
    let counted = vec![text(), text(), INT_TYPE.to_owned()];
    env.add_member_overload("@replace", "text.replace_n", text(), counted, replace)
}

/// The name under which the language knows a function of ours.
pub(super) fn own_name(name: &str) -> Option<&'static str> {
    match name {
        "join" => Some("@join"),
        "replace" => Some("@replace"),
        _ => None,
    }
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn each<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let range = arguments.remove(0);
    let steps = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    pay(1 + u64::try_from(steps).unwrap_or(0))?;
    Ok(range)
}

fn weigh<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let value = arguments.remove(0);
    pay(cel_weight(value.as_ref()))?;
    Ok(value)
}

fn text<'b>(value: &'b (dyn Val + '_), function: &str) -> Result<&'b str, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>().map(CelString::inner);
    text.ok_or_else(|| ExecutionError::function_error(function, "takes texts"))
}

fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let pattern = text(arguments[1].as_ref(), "matches")?;
    let subject = text(arguments[0].as_ref(), "matches")?;
    let known = REGEXES.with_borrow(|known| known.get(pattern).cloned());
    let regex = match known {
        Some(regex) => regex,
        None => {
            pay(REGEX_WORK)?;
            let regex = regex(pattern).map_err(|e| ExecutionError::function_error("matches", e))?;
            REGEXES.with_borrow_mut(|known| {
                if known.len() >= REGEXES_MAX {
                    known.clear();
                }
                known.insert(pattern.to_owned(), regex.clone());
            });
            regex
        }
    };
    Ok(CowVal::owned(CelBool::from(regex.is_match(subject))))
}

/// Compiles a regular expression; the error is one line.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern).size_limit(REGEX_SIZE_MAX).build();
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
    let count = arguments.get(3).and_then(|count| count.downcast_ref::<CelInt>());
    // A negative number means all of them.
    let count = count.and_then(|count| usize::try_from(*count.inner()).ok()).unwrap_or(usize::MAX);
    let found = subject.matches(from).count().min(count);
    pay((subject.len() + found.saturating_mul(to.len())) as u64 / 16)?;
    Ok(CowVal::owned(CelString::from(subject.replacen(from, to, count))))
}
