//! Reads formulas by precedence climbing. Each part becomes a step as soon as it is read.
//!
//! Intermediate results are kept in the order in which they were written, so that a step frees the
//! last places and its result takes the first of the freed places.

use super::{Bank, Formula, Misread, OPERATIONS_MAX, Op, Place, Step, TEXT_MAX};

/// Greatest depth of nested parts. A part in brackets counts once for each rank of the table above
/// that it passes. A natural formula has less than ten.
const DEPTH_MAX: usize = 100;
/// Most arguments of `min` and `max`.
const ARGUMENTS_MAX: usize = 16;

/// Ranks: a sign that binds more has the greater one.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const UNARY: u8 = 7;
const POWER: u8 = 8;

/// Signs and words between two parts: their text, rank and operation.
const BETWEEN: [(&str, u8, Op); 14] = [
    ("or", OR, Op::Or),
    ("and", AND, Op::And),
    ("<=", COMPARISON, Op::LessOrEqual),
    (">=", COMPARISON, Op::GreaterOrEqual),
    ("==", COMPARISON, Op::Equal),
    ("!=", COMPARISON, Op::NotEqual),
    ("<", COMPARISON, Op::Less),
    (">", COMPARISON, Op::Greater),
    ("+", SUM, Op::Add),
    ("-", SUM, Op::Subtract),
    ("*", PRODUCT, Op::Multiply),
    ("/", PRODUCT, Op::Divide),
    ("%", PRODUCT, Op::Modulo),
    ("^", POWER, Op::Power),
];

/// Functions, with the number of their arguments; 0: two or more.
const FUNCTIONS: [(&str, usize, Op); 21] = [
    ("if", 3, Op::If),
    ("abs", 1, Op::Abs),
    ("sqrt", 1, Op::Sqrt),
    ("sin", 1, Op::Sin),
    ("cos", 1, Op::Cos),
    ("tan", 1, Op::Tan),
    ("asin", 1, Op::Asin),
    ("acos", 1, Op::Acos),
    ("atan", 1, Op::Atan),
    ("atan2", 2, Op::Atan2),
    ("exp", 1, Op::Exp),
    ("ln", 1, Op::Ln),
    ("log10", 1, Op::Log10),
    ("min", 0, Op::Min),
    ("max", 0, Op::Max),
    ("clamp", 3, Op::Clamp),
    ("floor", 1, Op::Floor),
    ("ceil", 1, Op::Ceil),
    ("round", 1, Op::Round),
    ("sign", 1, Op::Sign),
    ("hypot", 2, Op::Hypot),
];

const CONSTANTS: [(&str, f64); 3] = [("pi", std::f64::consts::PI), ("true", 1.0), ("false", 0.0)];

/// Signs, longer ones first. Some are of other languages and only lead to a hint.
const SIGNS: [&str; 21] = [
    "<=", ">=", "==", "!=", "**", "&&", "||", "<>", "<", ">", "+", "-", "*", "/", "%", "^", "(",
    ")", ",", "=", "!",
];
/// Our spelling of the signs of other languages.
const OTHERS: [(&str, &str); 6] =
    [("**", "^"), ("&&", "and"), ("||", "or"), ("<>", "!="), ("=", "=="), ("!", "not")];

/// Whether a name is reserved in formulas.
pub(super) fn is_word(name: &str) -> bool {
    ["and", "or", "not"].contains(&name)
        || FUNCTIONS.iter().any(|row| row.0 == name)
        || CONSTANTS.iter().any(|row| row.0 == name)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Number(f64),
    Word(&'t str),
    Sign(&'static str),
    End,
}

/// A part that was read.
#[derive(Clone, Copy)]
enum Part {
    Constant(f64),
    Name(u8),
    /// The result of a step, by its place.
    Between(u8),
}

impl Bank {
    /// Reads a formula of the bank's names. Numbers that were set before are kept.
    pub(crate) fn read(&mut self, text: &str) -> Result<Formula, Misread> {
        if text.len() > TEXT_MAX {
            let what = format!("has {} bytes; at most {TEXT_MAX}", text.len());
            return Err(Misread { at: TEXT_MAX, what });
        }
        let (token, bank) = (Token::End, self);
        let mut reader = Reader {
            text,
            at: 0,
            token,
            end: 0,
            depth: 0,
            between: 0,
            bank,
            operations: 0,
            steps: Vec::new(),
            names: Vec::new(),
        };
        reader.step_on()?;
        let part = reader.part(OR)?;
        if reader.token != Token::End {
            return reader.expected("a sign such as + or the end");
        }
        let result = match part {
            Part::Constant(number) => Place::Constant(number),
            Part::Name(at) | Part::Between(at) => Place::At(at),
        };
        let Reader { steps, names, .. } = reader;
        Ok(Formula { text: text.into(), steps: steps.into(), result, names: names.into() })
    }
}

struct Reader<'t, 'b> {
    text: &'t str,
    /// Where the present token begins, the token, and where it ends.
    at: usize,
    token: Token<'t>,
    end: usize,
    /// How many parts are begun and not yet complete.
    depth: usize,
    /// Count of results of steps that wait for the step which takes them.
    between: usize,
    bank: &'b mut Bank,
    operations: usize,
    steps: Vec<Step>,
    names: Vec<u8>,
}

type Read<T> = Result<T, Misread>;

impl<'t> Reader<'t, '_> {
    fn wrong<T>(&self, at: usize, what: impl Into<String>) -> Read<T> {
        Err(Misread { at, what: what.into() })
    }

    /// The error for a token that is not the expected one.
    fn expected<T>(&self, what: &str) -> Read<T> {
        let found = &self.text[self.at..self.end];
        if let Some((_, ours)) = OTHERS.iter().find(|row| row.0 == found) {
            return self.wrong(self.at, format!("write '{ours}' for '{found}'"));
        }
        let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let text = self.text.as_bytes();
        if found == "," && digit(text[..self.at].last()) && digit(text.get(self.end)) {
            return self.wrong(self.at, "write '.' for ',': a number has a decimal point");
        }
        match self.token {
            Token::End => self.wrong(self.at, format!("expected {what}, found the end")),
            _ => self.wrong(self.at, format!("expected {what}, found '{found:.30}'")),
        }
    }

    /// Goes on to the next token.
    fn step_on(&mut self) -> Read<()> {
        let rest = self.text[self.end..].trim_start();
        self.at = self.text.len() - rest.len();
        let word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let (token, len) = match rest.chars().next() {
            None => (Token::End, 0),
            Some('0'..='9' | '.') => {
                let len = number_len(rest);
                let number = rest[..len].parse().ok().filter(|number: &f64| number.is_finite());
                let Some(number) = number else {
                    let what =
                        format!("'{:.30}' is not a number that a double holds", &rest[..len]);
                    return self.wrong(self.at, what);
                };
                (Token::Number(number), len)
            }
            Some(first) if word(first) => {
                let len = rest.find(|sign| !word(sign)).unwrap_or(rest.len());
                (Token::Word(&rest[..len]), len)
            }
            Some(first) => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => {
                    let what = format!("'{}' has no meaning in a formula", first.escape_debug());
                    return self.wrong(self.at, what);
                }
            },
        };
        (self.token, self.end) = (token, self.at + len);
        Ok(())
    }

    fn take(&mut self, sign: &'static str, where_: &str) -> Read<()> {
        if self.token != Token::Sign(sign) {
            return self.expected(&format!("'{sign}' {where_}"));
        }
        self.step_on()
    }

    /// The sign or word between the last part and the next, if there is one.
    fn between(&self) -> Option<(&'static str, u8, Op)> {
        let (Token::Sign(text) | Token::Word(text)) = self.token else { return None };
        BETWEEN.iter().find(|row| row.0 == text).copied()
    }

    /// Reads a part. Outside brackets it has no sign of a lower rank.
    fn part(&mut self, rank: u8) -> Read<Part> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let what = "too many parts in one another; make two nodes of the formula";
            return self.wrong(self.at, what);
        }
        let mut left = self.first(rank)?;
        while let Some((_, of, op)) = self.between().filter(|&(_, of, _)| of >= rank) {
            let at = self.at;
            self.step_on()?;
            let right = self.part(if of == POWER { UNARY } else { of + 1 })?;
            left = self.step(at, op, &[left, right])?;
            if of == COMPARISON && self.between().is_some_and(|(_, next, _)| next == COMPARISON) {
                return self.wrong(self.at, "compares twice; write 'a < b and b < c'");
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Reads the leftmost operand of a part, with its sign.
    fn first(&mut self, rank: u8) -> Read<Part> {
        let at = self.at;
        match self.token {
            Token::Number(number) => {
                self.step_on()?;
                Ok(Part::Constant(number))
            }
            Token::Sign("(") => {
                self.step_on()?;
                let part = self.part(OR)?;
                self.take(")", "that closes a bracket")?;
                Ok(part)
            }
            Token::Sign("-") => {
                self.step_on()?;
                let part = self.part(UNARY)?;
                self.step(at, Op::Negate, &[part])
            }
            Token::Word("not") if rank <= NOT => {
                self.step_on()?;
                let part = self.part(NOT)?;
                self.step(at, Op::Not, &[part])
            }
            Token::Word("not") => self.wrong(at, "put '(not ...)' in brackets here"),
            Token::Word(word) if !["and", "or"].contains(&word) => {
                self.step_on()?;
                self.word(at, word)
            }
            _ => self.expected("a number, a name or '('"),
        }
    }

    /// Reads a name, a constant or a function.
    fn word(&mut self, at: usize, word: &'t str) -> Read<Part> {
        if self.token == Token::Sign("(") {
            return self.call(at, word);
        }
        if let Some(name) = self.bank.names.iter().position(|name| name == word) {
            let name = name as u8;
            if !self.names.contains(&name) {
                self.names.push(name);
            }
            return Ok(Part::Name(name));
        }
        if let Some((_, number)) = CONSTANTS.iter().find(|row| row.0 == word) {
            return Ok(Part::Constant(*number));
        }
        if FUNCTIONS.iter().any(|row| row.0 == word) {
            return self.expected(&format!("'(' behind {word}"));
        }
        let known = self.bank.names.join(", ");
        let help = match self.bank.names.is_empty() {
            true => "there is none".to_owned(),
            false => format!("there are {known}"),
        };
        self.wrong(at, format!("no name '{word:.40}'; {help}"))
    }

    fn call(&mut self, at: usize, word: &str) -> Read<Part> {
        let Some(&(name, count, op)) = FUNCTIONS.iter().find(|row| row.0 == word) else {
            if word == "log" {
                return self.wrong(at, "write ln for base e, or log10");
            }
            let names: Vec<&str> = FUNCTIONS.iter().map(|row| row.0).collect();
            let what = format!("no function '{word:.20}'; there are {}", names.join(", "));
            return self.wrong(at, what);
        };
        self.step_on()?;
        let mut arguments = vec![self.part(OR)?];
        let mut given = 1;
        while self.token == Token::Sign(",") {
            self.step_on()?;
            arguments.push(self.part(OR)?);
            given += 1;
            if count == 0 {
                arguments = vec![self.step(at, op, &arguments)?];
            }
            if given > ARGUMENTS_MAX {
                break;
            }
        }
        let fits = if count == 0 { (2..=ARGUMENTS_MAX).contains(&given) } else { given == count };
        if !fits {
            let takes = match count {
                0 => format!("2 to {ARGUMENTS_MAX}"),
                count => count.to_string(),
            };
            return self.wrong(at, format!("{name} takes {takes} arguments, found {given}"));
        }
        self.take(")", &format!("behind the arguments of {name}"))?;
        if count == 0 { Ok(arguments[0]) } else { self.step(at, op, &arguments) }
    }

    /// Adds a step, or computes the result at once if all its operands are constants.
    fn step(&mut self, at: usize, op: Op, parts: &[Part]) -> Read<Part> {
        let number = |part: &Part| match part {
            Part::Constant(number) => Some(*number),
            _ => None,
        };
        if let Some(numbers) = parts.iter().map(number).collect::<Option<Vec<f64>>>() {
            let number = |at: usize| numbers.get(at).copied().unwrap_or_default();
            let result = op.of(number(0), number(1), number(2));
            if !result.is_finite() {
                return self.wrong(at, format!("is {result:?} here, whatever the inputs are"));
            }
            return Ok(Part::Constant(result));
        }
        if self.operations == OPERATIONS_MAX {
            let what =
                format!("more than {OPERATIONS_MAX} operations; make two nodes of the formula");
            return self.wrong(at, what);
        }
        self.operations += 1;
        const FULL: &str = "too many numbers; make two nodes of the formulas";
        let mut places = [0; 3];
        for (place, part) in places.iter_mut().zip(parts) {
            *place = match *part {
                Part::Name(at) | Part::Between(at) => at,
                Part::Constant(number) => match self.bank.constant(number) {
                    Some(at) => at,
                    None => return self.wrong(at, FULL),
                },
            };
        }
        self.between -= parts.iter().filter(|part| matches!(part, Part::Between(_))).count();
        let to = (self.bank.names.len() + self.between) as u8;
        self.between += 1;
        self.bank.between = self.bank.between.max(self.between);
        if !self.bank.has_room(self.bank.between) {
            return self.wrong(at, FULL);
        }
        let step = self.with_last(op, parts, places);
        let (op, [a, b, c]) = step.unwrap_or((op, places));
        self.steps.push(Step { op, to, a, b, c });
        Ok(Part::Between(to))
    }

    /// Fuses two operations into one step, if the first of them was the last step; that step is
    /// then removed.
    fn with_last(&mut self, op: Op, parts: &[Part], places: [u8; 3]) -> Option<(Op, [u8; 3])> {
        let last = *self.steps.last()?;
        let is_last = |part: Part| matches!(part, Part::Between(at) if at == last.to);
        let &[left, right] = parts else { return None };
        let (op, other) = if is_last(right) {
            let op = match (last.op, op) {
                (Op::Multiply, Op::Add) => Op::MultiplyAdd,
                (Op::Multiply, Op::Subtract) => Op::SubtractProduct,
                _ => return None,
            };
            (op, places[0])
        } else if is_last(left) && !matches!(right, Part::Between(_)) {
            (both(last.op, op)?, places[1])
        } else {
            return None;
        };
        self.steps.pop();
        Some((op, [last.a, last.b, other]))
    }
}

/// `(a first b) second c`.
fn both(first: Op, second: Op) -> Option<Op> {
    Some(match (first, second) {
        (Op::Add, Op::Add) => Op::AddAdd,
        (Op::Add, Op::Subtract) => Op::AddSubtract,
        (Op::Add, Op::Multiply) => Op::AddMultiply,
        (Op::Subtract, Op::Add) => Op::SubtractAdd,
        (Op::Subtract, Op::Subtract) => Op::SubtractSubtract,
        (Op::Subtract, Op::Multiply) => Op::SubtractMultiply,
        (Op::Multiply, Op::Add) => Op::MultiplyAdd,
        (Op::Multiply, Op::Subtract) => Op::MultiplySubtract,
        (Op::Multiply, Op::Multiply) => Op::MultiplyMultiply,
        _ => return None,
    })
}

/// Length in bytes of the number at the beginning: digits, a point, an exponent.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}
