//! Patterns of Lua's `string` library, after `lstrlib.c` of Lua 5.4: the same language, but every
//! step is counted. Lua's own matcher can take n^k steps for a pattern of a few signs, and no hook
//! can stop it.

use mlua::{Error, Result};

use super::Budget;

/// Most captures of a pattern.
const CAPTURES_MAX: usize = 32;
/// Most nested calls, because of the stack.
const DEPTH_MAX: usize = 200;
/// Steps that are counted at once.
const STEPS_PER_COUNT: u32 = 256;

/// One attempt to match a pattern.
pub(super) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Capture>,
    depth: usize,
    steps: u32,
    budget: &'a Budget,
}

#[derive(Clone, Copy)]
struct Capture {
    start: usize,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Open,
    At(usize),
    /// `()`: captures only its position.
    Position,
}

/// What a capture holds.
pub(super) enum Captured<'a> {
    Bytes(&'a [u8]),
    /// Counted from 1.
    Position(usize),
}

type Matched = Result<Option<usize>>;

impl<'a> Matcher<'a> {
    pub(super) fn new(text: &'a [u8], pattern: &'a [u8], budget: &'a Budget) -> Matcher<'a> {
        Matcher { text, pattern, captures: Vec::new(), depth: 0, steps: 0, budget }
    }

    /// Matches from one place; gives the end of the match.
    pub(super) fn matches(&mut self, start: usize) -> Matched {
        let matched = self.from(start, 0);
        self.budget.spend(u64::from(self.steps / 8 + 1))?;
        self.steps = 0;
        matched
    }

    /// How many captures there are.
    pub(super) fn captures(&self) -> usize {
        self.captures.len()
    }

    /// A capture. Without captures, the first one is the whole match.
    pub(super) fn capture(&self, at: usize, start: usize, end: usize) -> Result<Captured<'a>> {
        match self.captures.get(at) {
            Some(Capture { start, end: End::At(end) }) => {
                Ok(Captured::Bytes(&self.text[*start..*end]))
            }
            Some(Capture { start, end: End::Position }) => Ok(Captured::Position(start + 1)),
            Some(Capture { end: End::Open, .. }) => malformed("a capture is not closed"),
            None if at == 0 => Ok(Captured::Bytes(&self.text[start..end])),
            None => malformed(&format!("there is no capture %{}", at + 1)),
        }
    }

    /// A part of the text.
    pub(super) fn part(&self, start: usize, end: usize) -> &'a [u8] {
        &self.text[start..end]
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps == STEPS_PER_COUNT {
            self.steps = 0;
            // A step takes a fraction of what an instruction does.
            self.budget.spend(u64::from(STEPS_PER_COUNT / 8))?;
        }
        Ok(())
    }

    fn from(&mut self, s: usize, p: usize) -> Matched {
        if self.depth == DEPTH_MAX {
            return malformed("the pattern is too complex for this text");
        }
        self.depth += 1;
        let matched = self.walk(s, p);
        self.depth -= 1;
        matched
    }

    /// Goes along text and pattern; calls itself only where there is a choice.
    fn walk(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.step()?;
            let Some(&sign) = self.pattern.get(p) else { return Ok(Some(s)) };
            match (sign, self.pattern.get(p + 1)) {
                (b'(', Some(b')')) => return self.open(s, p + 2, End::Position),
                (b'(', _) => return self.open(s, p + 1, End::Open),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.text.len()).then_some(s)),
                (b'%', Some(b'b')) => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (b'%', Some(digit @ b'0'..=b'9')) => match self.again(s, *digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.class_end(p)?;
                    let one = self.single(s, p, end);
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if one && let Some(found) = self.from(s + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        Some(b'+') if one => return self.most(s + 1, p, end),
                        Some(b'*') => return self.most(s, p, end),
                        Some(b'-') => return self.least(s, p, end),
                        _ if !one => return Ok(None),
                        _ => (s, p) = (s + 1, end),
                    }
                }
            }
        }
    }

    /// Tries as many repetitions as there are, then fewer.
    fn most(&mut self, s: usize, p: usize, end: usize) -> Matched {
        let mut count = 0;
        while self.single(s + count, p, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.from(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// Tries as few repetitions as possible, then more.
    fn least(&mut self, mut s: usize, p: usize, end: usize) -> Matched {
        loop {
            if let Some(found) = self.from(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, end: End) -> Matched {
        if self.captures.len() == CAPTURES_MAX {
            return malformed("too many captures");
        }
        self.captures.push(Capture { start: s, end });
        let matched = self.from(s, p)?;
        if matched.is_none() {
            self.captures.pop();
        }
        Ok(matched)
    }

    fn close(&mut self, s: usize, p: usize) -> Matched {
        let open = self.captures.iter().rposition(|capture| capture.end == End::Open);
        let Some(at) = open else { return malformed("')' without '('") };
        self.captures[at].end = End::At(s);
        let matched = self.from(s, p)?;
        if matched.is_none() {
            self.captures[at].end = End::Open;
        }
        Ok(matched)
    }

    /// `%1`: what a capture holds, once more.
    fn again(&mut self, s: usize, digit: u8) -> Matched {
        let capture = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = capture.and_then(|at| self.captures.get(at)).copied();
        let (start, end) = match capture {
            Some(Capture { start, end: End::At(end) }) => (start, end),
            // A position holds no text that could come again.
            Some(Capture { end: End::Position, .. }) => return Ok(None),
            _ => return malformed(&format!("there is no capture %{}", digit as char)),
        };
        let same = self.text[s..].starts_with(&self.text[start..end]);
        Ok(same.then(|| s + (end - start)))
    }

    /// `%bxy`: from x to the matching y.
    fn balanced(&mut self, s: usize, p: usize) -> Matched {
        let (Some(&begin), Some(&end)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return malformed("'%b' takes two signs");
        };
        if self.text.get(s) != Some(&begin) {
            return Ok(None);
        }
        let mut open = 1;
        for at in s + 1..self.text.len() {
            self.step()?;
            let byte = self.text[at];
            if byte == end {
                open -= 1;
                if open == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == begin {
                open += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: where the set begins; gives the rest of the pattern.
    fn frontier(&mut self, s: usize, p: usize) -> Matched {
        if self.pattern.get(p) != Some(&b'[') {
            return malformed("'%f' takes a set");
        }
        let end = self.class_end(p)?;
        let before = s.checked_sub(1).map_or(0, |at| self.text[at]);
        let after = self.text.get(s).copied().unwrap_or(0);
        let here = !self.in_set(before, p, end - 1) && self.in_set(after, p, end - 1);
        Ok(here.then_some(end))
    }

    /// The end of a sign, class or set that begins at `p`.
    fn class_end(&self, p: usize) -> Result<usize> {
        match self.pattern[p] {
            b'%' if p + 1 < self.pattern.len() => Ok(p + 2),
            b'%' => malformed("it ends with '%'"),
            b'[' => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                loop {
                    let Some(&sign) = self.pattern.get(at) else {
                        return malformed("'[' without ']'");
                    };
                    at += if sign == b'%' { 2 } else { 1 };
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the byte at `s` fits the sign, class or set from `p` to `end`.
    fn single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            b'%' => fits(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end - 1),
            sign => sign == byte,
        }
    }

    /// Whether a byte is in the set from its '[' to its ']'.
    fn in_set(&self, byte: u8, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        let wanted = self.pattern[at] != b'^';
        if !wanted {
            at += 1;
        }
        while at < close {
            let sign = self.pattern[at];
            if sign == b'%' {
                at += 1;
                if fits(byte, self.pattern[at]) {
                    return wanted;
                }
                at += 1;
            } else if at + 2 < close && self.pattern[at + 1] == b'-' {
                if (sign..=self.pattern[at + 2]).contains(&byte) {
                    return wanted;
                }
                at += 3;
            } else {
                if sign == byte {
                    return wanted;
                }
                at += 1;
            }
        }
        !wanted
    }
}

/// Whether a byte is of a class; an upper-case letter means all others, any other sign itself.
fn fits(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}

fn malformed<T>(reason: &str) -> Result<T> {
    Err(Error::runtime(format!("malformed pattern: {reason}")))
}
