//! Reads a rule; an error says where the rule is wrong and what was expected there.

use std::cmp::Ordering;

use sinew_spec::suggest;

use super::quantity::{How, Known, QUANTITIES};
use super::{Bound, COMPARISONS, Comparison, LEN_MAX, Quantity, Rule, WITHIN_NS};

/// The shortest time in rules on quantities of the status, which is polled twice a second.
const SLOW_NS_MIN: u64 = 1_000_000_000;
/// Longest time in a rule: a day.
const TIME_NS_MAX: f64 = 86_400e9;
const UNITS: [(&str, f64); 4] = [("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const ACTIONS: [&str; 3] = ["event", "webhook", "stop"];

/// An error, and its byte offset in the rule.
#[derive(Debug)]
pub(in crate::monitor) struct Wrong {
    pub(in crate::monitor) at: usize,
    pub(in crate::monitor) message: String,
}

impl Wrong {
    /// The error for readers who do not see the place: which rule, where in it, what was expected.
    pub(in crate::monitor) fn of(&self, number: usize, text: &str) -> String {
        let column = text[..self.at].chars().count() + 1;
        let rest: String = text[self.at..].chars().take(24).collect();
        let place = if rest.is_empty() { "its end".into() } else { format!("'{rest}'") };
        format!("rule {number}, column {column}, at {place}: {}", self.message)
    }
}

fn wrong<T>(at: usize, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { at, message: message.into() })
}

impl Rule {
    /// Reads rule number `number`.
    ///
    /// # Errors
    /// Where the rule is wrong, and what was expected there.
    pub(in crate::monitor) fn parse(number: usize, text: &str) -> Result<Rule, Wrong> {
        if text.len() > LEN_MAX || text.contains(char::is_control) {
            let len = text.len();
            return wrong(
                0,
                format!("it has {len} bytes: expected one line of {LEN_MAX} bytes at most"),
            );
        }
        let mut cursor = Cursor { text, at: 0 };
        let quantity = cursor.quantity()?;
        let comparison = cursor.comparison(&quantity)?;
        let bound = cursor.bound(&quantity, comparison)?;
        let (for_ns, within_ns) = cursor.times(&quantity)?;
        cursor.expect(":", "':' and an action (event, webhook, stop)")?;
        let mut rule = Rule {
            number,
            text: text.trim().into(),
            quantity,
            comparison,
            bound,
            for_ns: for_ns.unwrap_or(0),
            within_ns: within_ns.or(for_ns).unwrap_or(WITHIN_NS),
            webhook: false,
            stop: false,
            say: None,
        };
        loop {
            match ACTIONS[cursor.one_of("an action", &ACTIONS)?] {
                "webhook" => rule.webhook = true,
                "stop" => rule.stop = true,
                _ => {}
            }
            if !cursor.eat(",") {
                break;
            }
        }
        rule.say = cursor.quoted()?;
        match cursor.at_end() {
            true => Ok(rule),
            false => wrong(cursor.at, "expected the end of the rule, or a text in double quotes"),
        }
    }
}

/// The reading position.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips spaces, and returns the position.
    fn space(&mut self) -> usize {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.at
    }

    fn at_end(&mut self) -> bool {
        self.space();
        self.rest().is_empty()
    }

    fn eat(&mut self, what: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(what);
        self.at += if found { what.len() } else { 0 };
        found
    }

    fn expect(&mut self, what: &str, expected: &str) -> Result<(), Wrong> {
        match self.eat(what) {
            true => Ok(()),
            false => wrong(self.at, format!("expected {expected}")),
        }
    }

    /// Takes the longest run of characters for which `is_part` holds.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// A name, and where it begins.
    fn name(&mut self, expected: &str) -> Result<(usize, &'a str), Wrong> {
        let at = self.space();
        let name = self.take(|c| c.is_alphanumeric() || c == '_' || c == '-');
        match name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            true => Ok((at, name)),
            false => wrong(at, format!("expected {expected}")),
        }
    }

    /// One of these words, as an index into `words`.
    fn one_of(&mut self, what: &str, words: &[&'static str]) -> Result<usize, Wrong> {
        let (at, name) = self.name(&format!("{what}: {}", words.join(", ")))?;
        match words.iter().position(|word| *word == name) {
            Some(place) => Ok(place),
            None => {
                let help = suggest(name, words.iter().copied());
                wrong(at, format!("'{name}' is not {what}; {help}"))
            }
        }
    }

    fn quantity(&mut self) -> Result<Quantity, Wrong> {
        let absolute = self.eat("|");
        let (at, name) = self.name("a quantity, such as overruns, or node.signal")?;
        if self.eat(".") {
            let quantity = self.signal(name, absolute)?;
            if absolute {
                self.expect("|", "'|', as before the signal")?;
            }
            return Ok(quantity);
        }
        if absolute {
            return wrong(at, "expected a signal, node.signal, between '|' and '|'");
        }
        let Some(known) = QUANTITIES.iter().find(|known| known.name == name) else {
            let help = suggest(name, QUANTITIES.iter().map(|known| known.name));
            return wrong(at, format!("no quantity '{name}'; {help}, or node.signal"));
        };
        Ok(Quantity::Known { known, selector: self.selector(known)? })
    }

    fn signal(&mut self, node: &str, absolute: bool) -> Result<Quantity, Wrong> {
        let (_, signal) = self.name(&format!("the name of a signal of '{node}'"))?;
        let mut element = None;
        if self.eat("[") {
            let (at, digits) = (self.space(), self.take(|c| c.is_ascii_digit()));
            let Ok(index) = digits.parse() else {
                return wrong(at, "expected an index from 0, such as [2]");
            };
            element = Some(index);
            self.expect("]", "']' after the index")?;
        }
        Ok(Quantity::Signal { node: node.into(), signal: signal.into(), element, absolute })
    }

    fn selector(&mut self, known: &Known) -> Result<Vec<(&'static str, String)>, Wrong> {
        let mut selector: Vec<(&'static str, String)> = Vec::new();
        if !self.eat("{") {
            return Ok(selector);
        }
        let (keys, what) = (known.take.keys(), format!("a selector of '{}'", known.name));
        loop {
            let at = self.space();
            let key = keys[self.one_of(&what, keys)?];
            if selector.iter().any(|(given, _)| *given == key) {
                return wrong(at, format!("'{key}' stands here twice"));
            }
            self.expect("=", &format!("'=' and the name of a {key}"))?;
            let at = self.space();
            let value = self.take(|c| c.is_alphanumeric() || "_-.".contains(c));
            if value.is_empty() {
                return wrong(at, format!("expected a value for '{key}'"));
            }
            selector.push((key, value.into()));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", "',' and a further selector, or '}'")?;
        Ok(selector)
    }

    fn comparison(&mut self, quantity: &Quantity) -> Result<Comparison, Wrong> {
        let at = self.space();
        let Some(comparison) = COMPARISONS.into_iter().find(|it| self.eat(it.word)) else {
            return wrong(at, "expected a comparison: >, >=, <, <=, ==, !=");
        };
        if quantity.how() != How::Each && comparison.better != Ordering::Greater {
            let word = comparison.word;
            let what = "a count or a maximum is known only when its window is over";
            return wrong(at, format!("expected > or >= instead of {word}: {what}"));
        }
        Ok(comparison)
    }

    fn bound(&mut self, quantity: &Quantity, comparison: Comparison) -> Result<Bound, Wrong> {
        let at = self.space();
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return self.number().map(Bound::Number);
        }
        let is_state = matches!(quantity, Quantity::Signal { absolute: false, .. })
            && comparison.better == Ordering::Equal;
        if !is_state {
            return wrong(at, "expected a number");
        }
        if let Some(word) = self.quoted()? {
            return Ok(Bound::Word(word));
        }
        let (_, word) = self.name("a number, or the word of a state")?;
        Ok(Bound::Word(word.into()))
    }

    fn number(&mut self) -> Result<f64, Wrong> {
        let at = self.space();
        let sign = self.take(|c| c == '+' || c == '-').len();
        self.take(|c| c.is_ascii_digit() || c == '.' || c == '_');
        // An exponent, and not the letters of a unit.
        let mut rest = self.rest().chars();
        if matches!(rest.next(), Some('e' | 'E'))
            && matches!(rest.next(), Some('+' | '-' | '0'..='9'))
        {
            self.at += 2;
            self.take(|c| c.is_ascii_digit());
        }
        let mut rest = self.rest().chars();
        if rest.next() == Some(',') && rest.next().is_some_and(|it| it.is_ascii_digit()) {
            return wrong(self.at, "expected a decimal point, such as 3.5, not a comma");
        }
        let digits = self.text[at..self.at].replace('_', "");
        let number = digits.parse().ok().filter(|it: &f64| it.is_finite() && sign <= 1);
        number.map_or_else(|| wrong(at, "expected a number"), Ok)
    }

    /// `for` and `within`, in any order.
    fn times(&mut self, quantity: &Quantity) -> Result<(Option<u64>, Option<u64>), Wrong> {
        let (mut for_ns, mut within_ns) = (None, None);
        let is_slow = matches!(quantity, Quantity::Known { known, .. } if known.take.is_slow());
        loop {
            let at = self.space();
            if !self.rest().starts_with(char::is_alphabetic) {
                return Ok((for_ns, within_ns));
            }
            let words = ["for", "within"];
            let is_within = words[self.one_of("a time of a rule", &words)?] == "within";
            if is_within && quantity.how() == How::Each {
                let what = "it looks back, and this quantity is compared as it comes";
                return wrong(at, format!("no 'within' here: {what}; write 'for'"));
            }
            let known = if is_within { &mut within_ns } else { &mut for_ns };
            if known.is_some() {
                return wrong(at, "stands here twice");
            }
            let (at, ns) = self.time()?;
            if is_slow && ns < SLOW_NS_MIN {
                return wrong(at, "expected 1s at least: it is looked at twice a second");
            }
            *known = Some(ns);
        }
    }

    fn time(&mut self) -> Result<(usize, u64), Wrong> {
        let at = self.space();
        let expected = "expected a time above 0, a day at most, such as 500ms, 1s, 5min or 1h";
        let Ok(number) = self.number() else { return wrong(at, expected) };
        let unit = self.take(char::is_alphabetic);
        let unit = UNITS.iter().find(|(word, _)| *word == unit);
        let ns = unit.map_or(0.0, |(_, ns)| number * ns);
        match (1.0..=TIME_NS_MAX).contains(&ns) {
            true => Ok((at, ns as u64)),
            false => wrong(at, expected),
        }
    }

    /// A text in double quotes, if there is one here.
    fn quoted(&mut self) -> Result<Option<String>, Wrong> {
        let at = self.space();
        if !self.eat("\"") {
            return Ok(None);
        }
        let text = self.take(|c| c != '"');
        match self.eat("\"") {
            true => Ok(Some(text.into())),
            false => wrong(at, "expected a closing '\"'"),
        }
    }
}
