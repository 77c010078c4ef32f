//! Expressions: uniflow's CEL sees the keys of the packet as variables and the packet as `self`.
//! Ours sees `packet`.

use std::ops::Range;

/// What a piece of an expression is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sort {
    Name,
    Text,
    Other,
}

/// A piece of an expression, and where it is.
#[derive(Clone, Copy, Debug)]
struct Piece<'c> {
    sort: Sort,
    text: &'c str,
    at: usize,
}

/// What an expression looks at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum About {
    /// The packet.
    Packet,
    /// The error at an `error` port. It is a mapping here.
    Error,
    /// The reply that a test looks at.
    Reply,
}

/// An expression for a graph, and what is left to do in it: where in the old expression, what, how.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rewritten {
    pub(super) code: String,
    pub(super) left: Vec<(usize, String, &'static str)>,
    pub(super) notes: Vec<(usize, String, &'static str)>,
}

/// Functions that our CEL does not have, and what to write instead.
const MISSING: &[(&str, &str)] = &[
    ("timestamp", "write time.parse(text): a time is a number of milliseconds"),
    ("duration", "write time.duration('1h'): milliseconds"),
    ("format", "write a snippet with language: text, in which {{ expressions }} stand"),
    ("sets", "write it with 'all', 'exists' and 'in'"),
    ("lists", "write it with 'map', 'filter' and '+', or as a snippet in lua or javascript"),
    ("range", "write it as a snippet in lua or javascript"),
];

/// Namespaces: the functions in them are called with this name in front, as in `time.parse`.
const SPACES: [&str; 7] = ["math", "base64", "strings", "optional", "sets", "lists", "time"];
/// Names of types, which `type(x)` is compared with.
const TYPES: [&str; 11] =
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type", "dyn"];
/// Macros that bind a name to each element.
const MACROS: [&str; 6] = ["map", "filter", "all", "exists", "exists_one", "existsOne"];

/// Rewrites an expression. Text that is no expression comes back nearly unchanged; the checker
/// reports it.
pub(super) fn rewrite(code: &str, about: About) -> Rewritten {
    let pieces = pieces(code);
    let mut rewriter = Rewriter {
        pieces: &pieces,
        about,
        has_types: pieces.windows(2).any(|pair| pair[0].text == "type" && pair[1].text == "("),
        bound: Vec::new(),
        depth: 0,
        made: Rewritten::default(),
    };
    let (mut next, mut end) = (0, 0);
    while let Some(piece) = pieces.get(next) {
        rewriter.made.code += &code[end..piece.at];
        let count = rewriter.take(next);
        let last = &pieces[next + count - 1];
        end = last.at + last.text.len();
        next += count;
    }
    rewriter.made.code += &code[end..];
    rewriter.made
}

struct Rewriter<'r, 'c> {
    pieces: &'r [Piece<'c>],
    about: About,
    has_types: bool,
    /// Names that a macro binds, and the depth of brackets within which each name holds.
    bound: Vec<(&'c str, usize)>,
    depth: usize,
    made: Rewritten,
}

impl<'c> Rewriter<'_, 'c> {
    fn text(&self, at: usize) -> &'c str {
        self.pieces.get(at).map_or("", |piece| piece.text)
    }

    /// Writes the replacement of the piece at `at`. Returns how many pieces it replaces.
    fn take(&mut self, at: usize) -> usize {
        let Piece { sort, text, at: offset } = self.pieces[at];
        match text {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => {
                self.depth = self.depth.saturating_sub(1);
                let depth = self.depth;
                self.bound.retain(|(_, from)| *from <= depth);
            }
            _ => {}
        }
        let is_member = at > 0 && self.text(at - 1) == "."
            || at > 1 && self.text(at - 1) == "?" && self.text(at - 2) == ".";
        let is_call = self.text(at + 1) == "(";
        if sort == Sort::Name && is_call {
            self.call(at, is_member);
        }
        if sort != Sort::Name || is_member || is_call || self.stays(at) {
            self.made.code += text;
            return 1;
        }
        let is_self = text == "self";
        let base = match self.about {
            About::Reply => "reply",
            _ => "packet",
        };
        self.made.code += base;
        if is_self && self.about == About::Error {
            return self.of_error(at);
        }
        if is_self
            && self.text(at + 1) == "."
            && self.text(at + 2) == "error"
            && self.text(at + 3) == "("
        {
            self.made.code += ".error";
            return if self.text(at + 4) == ")" { 5 } else { 3 };
        }
        // In a request, the values of `header` and `query` are lists in uniflow and texts here.
        let field = match is_self {
            true if self.text(at + 1) == "." => at + 2,
            true => return 1,
            false => at,
        };
        let name = self.text(field);
        self.made.code += ".";
        self.made.code += name;
        let count = field + 1 - at;
        match name {
            "header" | "query" => count + self.of_request(field + 1, name == "header", offset),
            _ => count,
        }
    }

    /// Writes the error that a node is given, behind `packet`. Returns how many pieces it replaces.
    fn of_error(&mut self, at: usize) -> usize {
        self.made.code += ".error";
        let calls = self.text(at + 1) == "." && self.text(at + 2) == "error";
        if calls && self.text(at + 3) == "(" && self.text(at + 4) == ")" { 5 } else { 1 }
    }

    /// Rewrites what follows `header` or `query`: a name, and perhaps an index for its first value.
    fn of_request(&mut self, at: usize, is_header: bool, offset: usize) -> usize {
        let is_asked = self.made.code.ends_with("has(packet.header")
            || self.made.code.ends_with("has(packet.query");
        let (count, way) = match (self.text(at), self.pieces.get(at + 1), self.text(at + 2)) {
            (".", Some(Piece { sort: Sort::Name, text, .. }), after) if after != "(" => {
                (2, format!(".{text}"))
            }
            ("[", Some(Piece { sort: Sort::Text, text, .. }), "]") => (3, format!("[{text}]")),
            _ => return 0,
        };
        self.made.code += &if is_header { way.to_lowercase() } else { way };
        let is_first = self.text(at + count) == "["
            && self.text(at + count + 1) == "0"
            && self.text(at + count + 2) == "]";
        if is_first {
            return count + 3;
        }
        if !is_asked {
            let what = if is_header { "a header" } else { "a name in 'query'" };
            let message = format!("{what} has a text here, not a list");
            let help = "compare the text itself; 'query' has a list only for a name that is there \
                        several times";
            self.made.notes.push((offset, message, help));
        }
        count
    }

    /// Whether a name that is not called stays as it is.
    fn stays(&self, at: usize) -> bool {
        let text = self.text(at);
        let is_space =
            SPACES.contains(&text) && self.text(at + 1) == "." && self.text(at + 3) == "(";
        matches!(text, "true" | "false" | "null" | "in")
            || is_space
            || self.has_types && TYPES.contains(&text)
            || self.bound.iter().any(|(name, _)| *name == text)
    }

    /// Remembers the name that a macro binds. Reports a function that our CEL does not have.
    fn call(&mut self, at: usize, is_member: bool) {
        let text = self.text(at);
        if is_member && MACROS.contains(&text) && self.text(at + 3) == "," {
            self.bound.push((self.text(at + 2), self.depth + 1));
        }
        let space = if is_member && at > 1 { self.text(at - 2) } else { "" };
        let missing = MISSING.iter().find(|(name, _)| {
            let is_method = ["format", "range"].contains(name);
            *name == space || *name == text && is_method == is_member
        });
        if let Some((_, help)) = missing {
            let message = format!("there is no '{text}' in expressions");
            self.made.left.push((self.pieces[at].at, message, *help));
        }
    }
}

/// Cuts an expression into names, texts and signs. Blanks and comments belong to no piece.
fn pieces(code: &str) -> Vec<Piece<'_>> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(sign) = code[at..].chars().next() {
        let rest = &code[at..];
        let (sort, len) = if sign.is_whitespace() {
            at += sign.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(len) = text_len(rest) {
            (Sort::Text, len)
        } else if sign.is_alphabetic() || sign == '_' {
            let is_in = |sign: char| sign.is_alphanumeric() || sign == '_';
            (Sort::Name, rest.find(|sign: char| !is_in(sign)).unwrap_or(rest.len()))
        } else if sign.is_ascii_digit() {
            let is_in = |sign: char| sign.is_ascii_alphanumeric() || sign == '.';
            (Sort::Other, rest.find(|sign: char| !is_in(sign)).unwrap_or(rest.len()))
        } else {
            (Sort::Other, sign.len_utf8())
        };
        all.push(Piece { sort, text: &rest[..len], at });
        at += len;
    }
    all
}

/// The length of the quoted text that begins here.
fn text_len(code: &str) -> Option<usize> {
    let prefix = code.find(|sign: char| !"rRbB".contains(sign)).filter(|len| *len <= 2)?;
    let rest = &code[prefix..];
    let is_raw = code[..prefix].contains(['r', 'R']);
    let quote = ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| rest.starts_with(quote))?;
    let mut at = quote.len();
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return Some(prefix + at + quote.len());
        }
        let sign = rest[at..].chars().next()?;
        at += sign.len_utf8();
        if sign == '\\' && !is_raw {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    Some(code.len())
}

/// If the expression is a list: the places of its entries. `None` if it is anything else.
pub(super) fn entries(code: &str) -> Option<Vec<Range<usize>>> {
    let pieces = pieces(code);
    let (first, last) = (pieces.first()?, pieces.last()?);
    if first.text != "[" || last.text != "]" {
        return None;
    }
    let (mut all, mut depth, mut start) = (Vec::new(), 0usize, first.at + 1);
    for piece in &pieces {
        match piece.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && piece.at != last.at {
                    return None;
                }
            }
            "," if depth == 1 => {
                all.push(start..piece.at);
                start = piece.at + 1;
            }
            _ => {}
        }
    }
    all.push(start..last.at);
    let is_there = |range: &Range<usize>| !code[range.clone()].trim().is_empty();
    all.retain(is_there);
    Some(all)
}

/// The content of a quoted text. `None` if `code` is no quoted text, or has escapes other than
/// those of quotes and line breaks.
pub(super) fn unquoted(code: &str) -> Option<String> {
    let code = code.trim();
    let quote = code.chars().next().filter(|quote| "'\"`".contains(*quote))?;
    let inner = code[1..].strip_suffix(quote)?;
    let (mut text, mut signs) = (String::new(), inner.chars());
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                sign @ ('\'' | '"' | '`' | '\\') => text.push(sign),
                _ => return None,
            },
            sign if sign == quote => return None,
            sign => text.push(sign),
        }
    }
    let is_filled = quote == '`' && text.contains("${");
    (!is_filled).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_and_its_keys_are_named() {
        for (code, expected) in [
            ("self", "packet"),
            ("count > 10", "packet.count > 10"),
            ("self[1].uid == self[0].uid", "packet[1].uid == packet[0].uid"),
            ("has(self.body) ? self.body : null", "has(packet.body) ? packet.body : null"),
            ("payload['status'] == 'self'", "packet.payload['status'] == 'self'"),
            ("items.map(x, x.price * rate)", "packet.items.map(x, x.price * packet.rate)"),
            ("items.all(x, x > 1) && x", "packet.items.all(x, x > 1) && packet.x"),
            ("size(name) + math.abs(self.n)", "size(packet.name) + math.abs(packet.n)"),
            ("type(self) == list", "type(packet) == list"),
            ("list == 1", "packet.list == 1"),
            ("r'a\\' + b", "r'a\\' + packet.b"),
            ("\"a\\\"b\" + '''it's''' + c // self", "\"a\\\"b\" + '''it's''' + packet.c // self"),
            ("self.error() == 'x'", "packet.error == 'x'"),
            ("query.page[0]", "packet.query.page"),
            ("header['X-Key'][0]", "packet.header['x-key']"),
            ("!has(header.Connection)", "!has(packet.header.connection)"),
            ("{'a': b}[c]", "{'a': packet.b}[packet.c]"),
            ("self.?a.orValue(0)", "packet.?a.orValue(0)"),
            ("", ""),
        ] {
            let made = rewrite(code, About::Packet);
            assert_eq!((made.code.as_str(), &made.left), (expected, &vec![]), "{code}");
            assert_eq!(made.notes, [], "{code}");
        }
        assert_eq!(rewrite("self == 42 && ok", About::Reply).code, "reply == 42 && reply.ok");
        assert_eq!(rewrite("self == 'bad'", About::Error).code, "packet.error == 'bad'");
        assert_eq!(rewrite("self.error()", About::Error).code, "packet.error");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let made = rewrite("timestamp(at) > sets.contains(a, b)", About::Packet);
        let places: Vec<_> = made.left.iter().map(|(at, ..)| *at).collect();
        assert_eq!(places, [0, 21]);
        assert_eq!(rewrite("header.Accept == 'x'", About::Packet).notes.len(), 1);
    }

    #[test]
    fn a_list_is_taken_apart() {
        let code = "['a, b', [x, f(1, 2)], ]";
        let parts: Vec<_> = entries(code).unwrap().into_iter().map(|it| code[it].trim()).collect();
        assert_eq!(parts, ["'a, b'", "[x, f(1, 2)]"]);
        for code in ["[a] + [b]", "a", "[a", ""] {
            assert_eq!(entries(code), None, "{code}");
        }
        assert_eq!(unquoted("'it\\'s\\n'").as_deref(), Some("it's\n"));
        assert_eq!(unquoted("'a' + 'b'"), None);
        assert_eq!(unquoted("`${a}`"), None);
    }
}
