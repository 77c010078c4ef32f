//! Expressions in CEL: compiled once, with a bound on what one may cost.
//!
//! Before it runs, an expression is rewritten: each path into a variable (`packet.user.name`)
//! becomes one look-up, so that a request makes only the fields that are asked for. An expression
//! that is only such a path does not need the interpreter. One without variables is evaluated when
//! it is compiled.

mod budget;
mod convert;
mod functions;
mod paths;
mod rewrite;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::thread;

use cel::common::{ast, types, value};
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, IdedExpr};
use sinew_core::Refusal;
use sinew_flow::{Error, Flow, Value};
use sinew_spec::{Data, Item, Span};

use super::line_start;
use ast::Expr;
use budget::{WORK_MAX, Work};
use convert::from_cel;
pub(crate) use convert::weight;
use functions::LANGUAGE;
use paths::{Gap, Lookup, Path};
use rewrite::rewrite;
use value::CowVal;

/// Longest expression, in bytes: one fits on a screen. A longer one is refused.
pub(crate) const LEN_MAX: usize = 4096;
/// Deepest nesting of an expression, as written and as a tree; a deeper one is refused. Evaluation
/// is recursive. A level takes some 50 KiB of stack in a debug build (8 KiB in a release build),
/// and a worker's stack has 2 MiB.
pub(crate) const DEPTH_MAX: usize = 24;
/// Stack of the thread that reads an expression, in bytes. The parser takes up to 256 KiB for a
/// level in a debug build. Only the stack that is used takes memory.
const STACK_SIZE: usize = 32 << 20;
/// Most characters of an expression that an error repeats.
const SHOWN_MAX: usize = 60;
/// What to write instead of something that is not an expression.
const HELP: &str = "write CEL, such as packet.user.age >= 18 && packet.user.name != ''";
/// What other languages write, and what to write in CEL.
const FOREIGN: &[(&str, &str)] = &[
    ("and", "write && instead"),
    ("or", "write || instead"),
    ("not", "write ! instead, such as !packet.done"),
    ("is", "write == instead"),
    ("===", "write == instead"),
    ("!==", "write != instead"),
    ("<>", "write != instead"),
    ("~=", "write != instead"),
    ("if", "write condition ? this : that"),
];
/// Most characters of the interpreter's own words in an error.
const REASON_MAX: usize = 200;

/// The place in the spec of each byte of a text.
pub(crate) type Place<'a> = &'a (dyn Fn(usize) -> Span + Sync);

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    text: Box<str>,
    code: Code,
}

#[derive(Debug)]
enum Code {
    /// The same for every packet.
    Constant(Value),
    /// Nothing but a variable, or a part of one.
    Path(Path),
    /// An expression that must be evaluated.
    Tree(Tree),
}

/// An expression for the interpreter.
#[derive(Debug)]
struct Tree {
    /// In it, identifier `@n` stands for the path with this index.
    root: IdedExpr,
    paths: Vec<Path>,
    /// What its operators cost, without the steps of its loops and the values that it looks at.
    price: u64,
    /// Whether its value may differ each time, even if its variables do not.
    changes: bool,
}

/// What an expression sees.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The flow whose values `values` has; without a flow it has none.
    pub(crate) flow: Option<&'a Flow>,
    /// The variable `packet`.
    pub(crate) packet: &'a Value,
    /// Variables beside the usual ones, in the order in which they were named to the compiler.
    pub(crate) also: &'a [&'a Value],
}

impl<'a> From<(&'a Flow, &'a Value)> for Scope<'a> {
    fn from((flow, packet): (&'a Flow, &'a Value)) -> Scope<'a> {
        Scope { flow: Some(flow), packet, also: &[] }
    }
}

impl Expression {
    /// Compiles a text; all its errors are reported at `span`.
    pub(crate) fn compile(text: &str, span: Span) -> Result<Expression, Vec<Refusal>> {
        Expression::compile_at(text, &|_| span, &[]).map_err(|refusal| vec![refusal])
    }

    /// Compiles a single value of the spec; each error is reported at its place in that value.
    pub(crate) fn of(item: &Item, also: &[&str]) -> Result<Expression, Vec<Refusal>> {
        let Data::Scalar { text, .. } = &item.data else {
            let message = format!("an expression is a text, found {}", item.sort());
            let help = "write it in quotes, such as '1 + 1'";
            return Err(vec![Refusal::new(item.span, message, help)]);
        };
        let made = Expression::compile_at(text, &|offset| item.span_at(offset), also);
        made.map_err(|refusal| vec![refusal])
    }

    /// Compiles a text. `place` says where each of its bytes is in the spec; `also` names variables
    /// beside the usual ones.
    pub(crate) fn compile_at(
        text: &str,
        place: Place<'_>,
        also: &[&str],
    ) -> Result<Expression, Refusal> {
        check_shape(text)
            .map_err(|(offset, message, help)| Refusal::new(place(offset), message, help))?;
        let mut tree = read(text, place, also)?;
        let code = match tree.paths.as_slice() {
            [path] if path.plain() && matches!(tree.root.expr, Expr::Ident(_)) => {
                Code::Path(tree.paths.swap_remove(0))
            }
            _ => Code::Tree(tree),
        };
        let mut expression = Expression { text: text.into(), code };
        if matches!(&expression.code, Code::Tree(it) if it.paths.is_empty() && !it.changes) {
            let nothing = Scope { flow: None, packet: &Value::Null, also: &[] };
            let value = expression.evaluate(nothing).map_err(|error| {
                Refusal::new(place(0), error.text(), "it fails for every packet; change it")
            })?;
            expression.code = Code::Constant(value);
        }
        Ok(expression)
    }

    /// The value, if it is the same for every packet.
    pub(crate) fn constant(&self) -> Option<&Value> {
        if let Code::Constant(value) = &self.code { Some(value) } else { None }
    }

    /// The text it was compiled from.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is true for this scope.
    ///
    /// # Errors
    /// As for [`Expression::evaluate`]; or its value is neither true nor false.
    pub(crate) fn holds<'a>(&self, scope: impl Into<Scope<'a>>) -> Result<bool, Error> {
        match self.evaluate(scope)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.failed(format_args!("it gives {}, not true or false", other.sort()))),
        }
    }

    /// Its value for this scope, such as a flow and its packet.
    ///
    /// # Errors
    /// It asks for something that is not there, does something that is not possible, or costs too
    /// much.
    pub(crate) fn evaluate<'a>(&self, scope: impl Into<Scope<'a>>) -> Result<Value, Error> {
        let scope = &scope.into();
        match &self.code {
            Code::Constant(value) => Ok(value.clone()),
            Code::Path(path) => {
                let pay = |price| match scope.flow {
                    Some(flow) => flow.spend(price).map_err(Gap::Broken),
                    None => Ok(()),
                };
                let found = path.find(path.start(scope), &pay).map(Cow::into_owned);
                found.map_err(|gap| gap.into_error(|text| self.failed(text)))
            }
            Code::Tree(tree) => self.interpret(tree, scope),
        }
    }

    fn interpret(&self, tree: &Tree, scope: &Scope<'_>) -> Result<Value, Error> {
        let Tree { root, paths, price, .. } = tree;
        let variables = Variables(paths.iter().map(|path| Lookup::new(path, scope)).collect());
        let work = Work::begin(scope.flow.map_or(u64::MAX, Flow::work_left));
        let mut context = Context::with_env(LANGUAGE.with(Arc::clone));
        context.set_variable_resolver(&variables);
        let result = cel::Value::resolve_val(root, &context);
        // An evaluation that was cut short gives no answer, whatever the expression made of that
        // error.
        let (spent, is_cut) = work.end();
        scope.flow.map_or(Ok(()), |flow| flow.spend(price + spent))?;
        if is_cut {
            return Err(self.failed(format_args!(
                "it looks at more than {WORK_MAX} values; give it less, go through the list with \
                 'for', or write a snippet in lua"
            )));
        }
        let failed = |text: &dyn fmt::Display| self.failed(text);
        match result {
            Ok(value) => from_cel(value.as_ref()).map_err(|text| self.failed(text)),
            Err(ExecutionError::UndeclaredReference(name)) => {
                let gap = variables.get(&name).and_then(Lookup::gap);
                Err(match gap {
                    Some(gap) => gap.into_error(|text| failed(&text)),
                    None => failed(&format_args!("there is no '{name}'")),
                })
            }
            Err(error) => Err(failed(&shortened(&error.to_string(), REASON_MAX))),
        }
    }

    /// An error of this expression.
    fn failed(&self, reason: impl fmt::Display) -> Error {
        Error::new(format_args!("expression '{}': {reason}", shortened(&self.text, SHOWN_MAX)))
    }
}

/// What the identifiers `@0`, `@1`.. stand for while an expression is evaluated.
struct Variables<'a>(Vec<Lookup<'a>>);

impl<'a> Variables<'a> {
    fn get(&self, name: &str) -> Option<&Lookup<'a>> {
        self.0.get(name.strip_prefix('@')?.parse::<usize>().ok()?)
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        self.get(variable)?.value()
    }
}

/// Refuses what is too long or nested too deep before the parser sees it. The parser is recursive,
/// and makes a deep tree of operators in a row.
fn check_shape(text: &str) -> Result<(), (usize, String, &'static str)> {
    if text.len() > LEN_MAX {
        let message = format!("an expression of {} bytes; at most {LEN_MAX}", text.len());
        return Err((
            0,
            message,
            "set values in a node 'set' before it, or write a snippet in lua",
        ));
    }
    let (mut open, mut row) = (0_usize, 0_usize);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        row = if matches!(byte, b'!' | b'-' | b'?') {
            row + 1
        } else if byte.is_ascii_whitespace() {
            row
        } else {
            0
        };
        if open.max(row) > DEPTH_MAX {
            return Err((
                offset,
                format!("nested deeper than {DEPTH_MAX} levels"),
                "take it apart",
            ));
        }
    }
    Ok(())
}

/// Reads an expression on a thread of its own: for a larger stack, and because the parser is
/// foreign code that gets whatever a user typed.
fn read(text: &str, place: Place<'_>, also: &[&str]) -> Result<Tree, Refusal> {
    let language = LANGUAGE.with(Arc::clone);
    let read = || parse(&language, text, place).and_then(|tree| rewrite(tree, text, place, also));
    let refuse =
        |reason: &str| Refusal::new(place(0), format!("not an expression: {reason}"), HELP);
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, read);
        let reader = reader.map_err(|error| refuse(&format!("no thread to read it: {error}")))?;
        reader.join().unwrap_or_else(|_| Err(refuse("the parser gave up")))
    })
}

fn parse(language: &Env, text: &str, place: Place<'_>) -> Result<IdedExpr, Refusal> {
    language.parser().parse(text).map_err(|errors| {
        // Errors that follow from another one come before it in the list, without a place.
        let cause = errors.errors.iter().find(|error| error.msg.starts_with("Syntax error"));
        let first = cause.or(errors.errors.first());
        let at = first.map_or(0, |error| offset_of(text, error.pos));
        if let Some((at, word, help)) = foreign(text, at) {
            return Refusal::new(
                place(at),
                format!("not an expression: '{word}' is not CEL"),
                help,
            );
        }
        let reason = first.map_or("", |error| &error.msg);
        let message = if reason.contains("Recursion limit") {
            format!("nested deeper than {DEPTH_MAX} levels")
        } else {
            format!("not an expression: {}", shortened(&plainly(reason), REASON_MAX))
        };
        Refusal::new(place(at), message, HELP)
    })
}

/// A word of another language where the parser stopped, or before that place; and what to write
/// instead.
fn foreign(text: &str, at: usize) -> Option<(usize, &str, &'static str)> {
    if let Some(at) = text.find("{{") {
        return Some((at, "{{", "write an expression without braces; braces are for templates"));
    }
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    if bytes.get(at) == Some(&b',') && digit(bytes[..at].last()) && digit(bytes.get(at + 1)) {
        return Some((at, ",", "write a decimal point, such as 3.5"));
    }
    let is_space = |sign: char| sign.is_whitespace();
    let before = text[..at].trim_end();
    let before = before.rfind(is_space).map_or(0, |at| at + 1);
    [at, before].into_iter().find_map(|at| {
        let word = text[at..].split(is_space).next()?;
        let (_, help) = FOREIGN.iter().find(|(other, _)| word == *other)?;
        Some((at, word, *help))
    })
}

/// What the parser says, in words that need no knowledge of its grammar.
fn plainly(reason: &str) -> String {
    let said = reason.strip_prefix("Syntax error: ").unwrap_or(reason);
    // The rest is a list of all tokens of the language.
    let said = said.split(" expecting ").next().unwrap_or(said);
    if said.contains("'<EOF>'") {
        return "it ends too early".into();
    }
    match said.strip_prefix("token recognition error at: ") {
        Some(sign) if sign.starts_with("'=") => "'=' alone means nothing; '==' compares".into(),
        Some(sign) => format!("{sign} has no meaning here"),
        None => said.into(),
    }
}

/// The byte at a line and a column, both from 1.
fn offset_of(text: &str, (line, column): (isize, isize)) -> usize {
    let start = line_start(text, usize::try_from(line).unwrap_or(1));
    let columns = usize::try_from(column - 1).unwrap_or(0);
    let rest = &text[start..];
    start + rest.char_indices().nth(columns).map_or(rest.len(), |(offset, _)| offset)
}

/// The beginning of a text, of at most so many characters.
pub(crate) fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
