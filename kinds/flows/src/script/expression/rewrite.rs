//! Rewrites an expression's tree before it runs: paths into variables become look-ups, the
//! environment becomes texts, what could cost much gets a price, and unknown names are refused.

use sinew_control::outside;
use sinew_core::Refusal;
use sinew_spec::Wanted;

use super::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use super::functions::{EACH, FUNCTIONS, MATCHES_ANY, SHARED, WEIGH, own_name, own_pattern};
use super::paths::{Path, Root, StepIn, Want};
use super::types::CelBool;
use super::{DEPTH_MAX, Place, Tree, shortened};
use crate::script::library::{self, LIBRARY, LibraryRow};

/// Most characters of a message: what it names may be as long as the expression.
const MESSAGE_MAX: usize = 300;
/// Names that stand for types.
const TYPES: &str = "bool bytes double dyn int list map null_type string type uint optional_type";
/// Names that come before functions: `math.abs(x)`.
const NAMESPACES: &[&str] = &["optional", "math"];

/// What the interpreter takes for the parts of an expression, in units of work; measured with
/// `cargo bench -p sinew-flows --bench work`. This is for a path into a variable, a part, a
/// literal.
const LOOK: u64 = 1;
/// A variable of a loop, which is weighed.
const WEIGHED: u64 = 3;
/// A sign such as '+'. A comparison makes the text of its error first.
const SIGN: u64 = 3;
/// A function, which is looked for by its name.
const FUNCTION: u64 = 5;
/// A list or a mapping, and the same for each of its elements.
const ELEMENT: u64 = 2;
/// A step of a loop: its variables are set and its condition is checked.
const STEP: u64 = 4;

/// Rewrites a tree; the paths are those of its identifiers `@0`, `@1`...
pub(super) fn rewrite(
    mut tree: IdedExpr,
    text: &str,
    place: Place<'_>,
    also: &[&str],
) -> Result<Tree, Refusal> {
    let (paths, bound) = (Vec::new(), Vec::new());
    let mut rewriter = Rewriter { text, place, also, paths, bound, changes: false };
    let price = rewriter.expression(&mut tree, 0)?;
    let Rewriter { paths, changes, .. } = rewriter;
    Ok(Tree { root: tree, paths, price, changes })
}

struct Rewriter<'a> {
    text: &'a str,
    place: Place<'a>,
    also: &'a [&'a str],
    paths: Vec<Path>,
    /// The variables of the loops around.
    bound: Vec<String>,
    /// Whether it calls a function that gives another value each time.
    changes: bool,
}

/// A path as it is written: a name, the steps from there, and what is wanted of its end.
struct Way<'t> {
    name: &'t str,
    steps: Vec<StepIn>,
    want: Want,
}

/// What it costs to evaluate an expression once, without the steps of loops, which are charged when
/// they run.
type Price = Result<u64, Refusal>;

impl Rewriter<'_> {
    fn expression(&mut self, expression: &mut IdedExpr, depth: usize) -> Price {
        if depth > DEPTH_MAX {
            let message = format!("nested deeper than {DEPTH_MAX} levels");
            return Err(self.refusal("", message, "set values in a node 'set' before it"));
        }
        if let Some(way) = way(expression).filter(|way| !self.is_bound(way.name)) {
            if let Some(instead) = self.variable(&way)? {
                expression.expr = instead;
                return Ok(LOOK);
            }
        } else if let Some(way) = sized(expression).filter(|way| self.is_of_packet(way)) {
            if let Some(instead) = self.variable(&way)? {
                expression.expr = instead;
                return Ok(LOOK);
            }
        } else if self.is_of_loop(expression) {
            wrap(expression, WEIGH, None);
            return Ok(WEIGHED);
        }
        match &mut expression.expr {
            Expr::Call(call) => self.call(call, depth),
            Expr::Select(select) => Ok(LOOK + self.expression(&mut select.operand, depth + 1)?),
            Expr::List(list) => self.elements(list.elements.iter_mut(), depth),
            Expr::Map(map) => {
                let both = map.entries.iter_mut().flat_map(|entry| match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
                    EntryExpr::StructField(field) => vec![&mut field.value],
                });
                self.elements(both, depth)
            }
            Expr::Comprehension(each) => self.comprehension(each, depth),
            Expr::Struct(made) => {
                let message = format!("there is no message type '{}'", made.type_name);
                Err(self.refusal(&made.type_name, message, "write a mapping: {'a': 1}"))
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(LOOK),
        }
    }

    fn elements<'e>(
        &mut self,
        elements: impl Iterator<Item = &'e mut IdedExpr>,
        depth: usize,
    ) -> Price {
        let mut price = ELEMENT;
        for element in elements {
            price += ELEMENT + self.expression(element, depth + 1)?;
        }
        Ok(price)
    }

    fn comprehension(&mut self, each: &mut ComprehensionExpr, depth: usize) -> Price {
        let range = self.expression(&mut each.iter_range, depth + 1)?;
        let first = self.expression(&mut each.accu_init, depth + 1)?;
        let outside = self.bound.len();
        self.bound.extend([each.iter_var.clone(), each.accu_var.clone()]);
        self.bound.extend(each.iter_var2.clone());
        let condition = self.expression(&mut each.loop_cond, depth + 1)?;
        let step = self.expression(&mut each.loop_step, depth + 1)?;
        let result = self.expression(&mut each.result, depth + 1)?;
        self.bound.truncate(outside);
        wrap(&mut each.iter_range, EACH, Some(STEP + condition + step));
        Ok(FUNCTION + range + first + result)
    }

    /// A call of a function of the table.
    fn shared(&mut self, call: &mut CallExpr, at: usize, row: &LibraryRow, depth: usize) -> Price {
        row.takes(call.args.len())
            .map_err(|message| self.refusal(&call.func_name, message, row.doc))?;
        self.changes |= row.changes;
        let mut price = FUNCTION + row.work;
        for argument in &mut call.args {
            price += self.expression(argument, depth + 1)?;
        }
        let place = Expr::Literal(LiteralValue::Int((at as i64).into()));
        call.args.insert(0, IdedExpr { id: 0, expr: place });
        (call.func_name, call.target) = (SHARED.to_owned(), None);
        Ok(price)
    }

    /// The function of the table that is called, if it is one of those.
    fn of_table(&self, call: &CallExpr) -> Option<(usize, &'static LibraryRow)> {
        match call.target.as_ref().map(|target| &target.expr) {
            None => library::find("", &call.func_name),
            Some(Expr::Ident(name)) if !self.is_bound(name) => library::find(name, &call.func_name),
            Some(_) => None,
        }
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Price {
        if let Some((at, row)) = self.of_table(call) {
            return self.shared(call, at, row, depth);
        }
        let symbol = call.func_name.starts_with(|c: char| !c.is_ascii_alphabetic());
        if !symbol && !has_word(FUNCTIONS, &call.func_name) {
            let message = format!("there is no function '{}'", call.func_name);
            let ours = LIBRARY.iter().map(|row| format!(", {}", row.called()));
            let help =
                format!("there are {}{}", FUNCTIONS.replace(' ', ", "), ours.collect::<String>());
            return Err(self.refusal(&call.func_name, message, help));
        }
        if call.func_name == "matches" && !self.has_own_pattern(call)? {
            call.func_name = MATCHES_ANY.to_owned();
        }
        if let Some(own) = call.target.as_ref().and_then(|_| own_name(&call.func_name)) {
            call.func_name = own.to_owned();
        }
        let mut price = if symbol { SIGN } else { FUNCTION };
        if let Some(target) = &mut call.target {
            let namespace = matches!(&target.expr, Expr::Ident(name)
                if NAMESPACES.contains(&name.as_str()) && !self.is_bound(name));
            if !namespace {
                price += self.expression(target, depth + 1)?;
            }
        }
        let adds = |expression: &IdedExpr| match &expression.expr {
            Expr::Call(call) => call.func_name == operators::ADD,
            _ => false,
        };
        let is_sum = call.func_name == operators::ADD;
        for argument in &mut call.args {
            let is_sum_of_sums = is_sum && adds(argument);
            price += self.expression(argument, depth + 1)?;
            // Each sum copies the one before, so the result of that one is charged for once more.
            if is_sum_of_sums {
                wrap(argument, WEIGH, None);
                price += WEIGHED;
            }
        }
        Ok(price)
    }

    /// Whether the pattern of `matches` is written in the spec; then it must be valid.
    fn has_own_pattern(&self, call: &CallExpr) -> Result<bool, Refusal> {
        let Some(Expr::Literal(LiteralValue::String(pattern))) = call.args.last().map(|a| &a.expr)
        else {
            return Ok(false);
        };
        own_pattern(pattern.inner()).map(|_| true).map_err(|reason| {
            let message = format!("'{}' is not a regular expression: {reason}", pattern.inner());
            self.refusal("matches", message, "see docs.rs/regex for what it may hold")
        })
    }

    /// The expression that replaces a variable; `None` if it is a name of the language.
    fn variable(&mut self, way: &Way<'_>) -> Result<Option<Expr>, Refusal> {
        let mut steps = way.steps.clone();
        let root = match way.name {
            "packet" => Root::Packet,
            "values" | "env" => {
                let name = way.name;
                if !matches!(steps.first(), Some(StepIn::Field(_))) {
                    let message = format!("'{name}' alone is not a value");
                    return Err(self.refusal(name, message, format!("write {name}.NAME")));
                }
                let StepIn::Field(field) = steps.remove(0) else { unreachable!("it was one") };
                if name == "env" {
                    return self.environment(&field, way, steps.is_empty()).map(Some);
                }
                Root::Value(field.into_string().into())
            }
            "file" => return self.file(&steps, way.want).map(Some),
            "flow" => {
                if steps != [StepIn::Field("id".into())] {
                    let message = "a flow has nothing but its 'id' here";
                    return Err(self.refusal("flow", message, "write flow.id"));
                }
                steps.clear();
                Root::FlowId
            }
            name => match self.also.iter().position(|also| *also == name) {
                Some(at) => Root::Also(at, name.into()),
                None if has_word(TYPES, name) => return Ok(None),
                None => return Err(self.unknown(name)),
            },
        };
        let path = Path { root, steps, want: way.want };
        self.paths.push(path);
        Ok(Some(Expr::Ident(format!("@{}", self.paths.len() - 1))))
    }

    fn unknown(&self, name: &str) -> Refusal {
        let also: String = self.also.iter().map(|name| format!(", {name}")).collect();
        let help = format!("there are packet, values.NAME, env.NAME, file['PATH'], flow.id{also}");
        self.refusal(name, format!("there is no variable '{name}'"), help)
    }

    /// A variable of the process's environment, as a literal text in the expression.
    fn environment(&self, name: &str, way: &Way<'_>, whole: bool) -> Result<Expr, Refusal> {
        let value = outside::variable(name).map_err(|why| self.told(name, &why))?;
        if !whole {
            let message = format!("env.{name} is a text and has no parts");
            return Err(self.refusal(name, message, "write env.NAME"));
        }
        let literal = |text: String| Expr::Literal(LiteralValue::String(text.into()));
        let optional = |function: &str, args: Vec<IdedExpr>| {
            let target = IdedExpr { id: 0, expr: Expr::Ident("optional".to_owned()) };
            let target = Some(Box::new(target));
            Expr::Call(CallExpr { func_name: function.to_owned(), target, args })
        };
        match (way.want, value) {
            (Want::Presence, value) => {
                Ok(Expr::Literal(LiteralValue::Boolean(CelBool::from(value.is_some()))))
            }
            // `Size` does not occur here: only paths into what a packet brings ask for it.
            (Want::Value | Want::Size, Some(text)) => Ok(literal(text)),
            (Want::Optional, Some(text)) => {
                Ok(optional("of", vec![IdedExpr { id: 0, expr: literal(text) }]))
            }
            (Want::Optional, None) => Ok(optional("none", vec![])),
            (Want::Value | Want::Size, None) => {
                let message = format!("the environment has no variable {name}");
                let help = format!("set it, or give a default: env.?{name}.orValue('...')");
                Err(self.refusal(name, message, help))
            }
        }
    }

    /// The contents of a file, as a literal text in the expression.
    fn file(&self, steps: &[StepIn], want: Want) -> Result<Expr, Refusal> {
        let ([StepIn::Field(path)], Want::Value) = (steps, want) else {
            let message = "'file' takes one path, in brackets";
            return Err(self.refusal("file", message, "write file['secrets/key.txt']"));
        };
        let wanted = Wanted::File(path.to_string());
        let found = outside::known(&wanted);
        let unread = || {
            format!(
                "'{path}' was not read; in an expression write the path as it is: file['{path}']"
            )
        };
        let text = found.unwrap_or_else(|| Err(unread()));
        let text = text.map_err(|why| self.told("file", &why))?;
        Ok(Expr::Literal(LiteralValue::String(text.into())))
    }

    /// A refusal by a text that says why there is no value, then `; ` and what to do.
    fn told(&self, word: &str, why: &str) -> Refusal {
        let (message, help) = why.split_once("; ").unwrap_or((why, ""));
        self.refusal(word, message, help)
    }

    /// Whether a path begins in what a packet brings, and not in the environment or a file.
    fn is_of_packet(&self, way: &Way<'_>) -> bool {
        let is_known = matches!(way.name, "packet" | "values") || self.also.contains(&way.name);
        is_known && !self.is_bound(way.name)
    }

    fn is_bound(&self, name: &str) -> bool {
        name.starts_with('@') || self.bound.iter().any(|bound| bound == name)
    }

    /// Whether this is a variable of a loop, or a part of one by its fields. The variable in which
    /// a loop gathers its result is not one: it cannot be named.
    fn is_of_loop(&self, expression: &IdedExpr) -> bool {
        match &expression.expr {
            Expr::Ident(name) => !name.starts_with('@') && self.is_bound(name),
            Expr::Select(select) => !select.test && self.is_of_loop(&select.operand),
            _ => false,
        }
    }

    /// A refusal at the first place of a word in the text.
    fn refusal(&self, word: &str, message: impl Into<String>, help: impl Into<String>) -> Refusal {
        let is_name =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let bytes = self.text.as_bytes();
        let whole = |&(at, _): &(usize, &str)| {
            !is_name(at.checked_sub(1).and_then(|at| bytes.get(at)))
                && !is_name(bytes.get(at + word.len()))
        };
        let offset = self.text.match_indices(word).find(whole).map_or(0, |(at, _)| at);
        let message = shortened(&message.into(), MESSAGE_MAX).into_owned();
        Refusal::new((self.place)(offset), message, help)
    }
}

/// The path that an expression is, if it is one: an identifier, or parts of one by constant names.
fn way(expression: &IdedExpr) -> Option<Way<'_>> {
    match &expression.expr {
        Expr::Ident(name) => Some(Way { name, steps: Vec::new(), want: Want::Value }),
        Expr::Select(select) => {
            let mut way = way(&select.operand)?;
            if way.want == Want::Presence {
                return None;
            }
            way.steps.push(StepIn::Field(select.field.as_str().into()));
            if select.test {
                way.want = Want::Presence;
            }
            Some(way)
        }
        Expr::Call(call) if call.target.is_none() && call.args.len() == 2 => {
            let mut way = way(&call.args[0])?;
            let Expr::Literal(literal) = &call.args[1].expr else { return None };
            let step = match literal {
                LiteralValue::String(name) => StepIn::Field(name.inner().into()),
                LiteralValue::Int(at) => StepIn::Element(usize::try_from(*at.inner()).ok()?),
                _ => return None,
            };
            match call.func_name.as_str() {
                operators::INDEX => {}
                operators::OPT_INDEX | operators::OPT_SELECT => way.want = Want::Optional,
                _ => return None,
            }
            way.steps.push(step);
            (way.want != Want::Presence).then_some(way)
        }
        _ => None,
    }
}

/// The path whose size an expression is, if it is a size: `size(packet.a)` or `packet.a.size()`.
fn sized(expression: &IdedExpr) -> Option<Way<'_>> {
    let Expr::Call(call) = &expression.expr else { return None };
    let of = match (&call.target, call.args.as_slice()) {
        (None, [of]) => of,
        (Some(of), []) => of,
        _ => return None,
    };
    let way = way(of).filter(|way| call.func_name == "size" && way.want == Want::Value)?;
    Some(Way { want: Want::Size, ..way })
}

fn has_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Puts a call of a function around an expression, with a number as another argument.
fn wrap(expression: &mut IdedExpr, function: &str, number: Option<u64>) {
    let id = expression.id;
    let inner = std::mem::take(expression);
    let number = number.map(|number| LiteralValue::Int((number as i64).into()));
    let number = number.map(|number| IdedExpr { id, expr: Expr::Literal(number) });
    let args = [inner].into_iter().chain(number).collect();
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *expression = IdedExpr { id, expr: Expr::Call(call) };
}
