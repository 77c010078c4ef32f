//! The path of a route: what the user wrote, in the form that the radix tree takes, and the names
//! of its parameters in their order. Also the normal spelling of any path, and the text that it
//! means.

use std::borrow::Cow;

use bytestring::ByteString;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What must be encoded everywhere in a path. The rest is allowed by RFC 3986 (3.3, `pchar` and
/// `/`).
const NOT_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'|');

/// A path of a route.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The path for the tree, with numbers for the names: two paths that match the same have the
    /// same shape.
    pub(super) shape: String,
    /// The parameters, from the left.
    pub(super) names: Vec<ByteString>,
}

/// What is wrong with a path, and what to write.
type Wrong = (String, &'static str);

impl Pattern {
    /// Reads a path such as `/users/:id`, `/files/*rest` or `/images/{name}.png`.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub(super) fn parse(path: &str) -> Result<Pattern, Wrong> {
        let Some(path) = path.strip_prefix('/') else {
            return Err((format!("the path '{path}' does not begin with '/'"), "write /users/:id"));
        };
        let mut pattern = Pattern { shape: String::new(), names: Vec::new() };
        let mut segments = path.split('/').peekable();
        while let Some(text) = segments.next() {
            let is_rest = pattern.push(text)?;
            if is_rest && segments.peek().is_some() {
                let message = format!("'{text}' takes all that follows, so nothing can follow it");
                return Err((message, "put it at the end of the path"));
            }
        }
        Ok(pattern)
    }

    /// Adds a segment; says whether it takes all that follows.
    fn push(&mut self, text: &str) -> Result<bool, Wrong> {
        self.shape.push('/');
        let Some((before, name, after)) = parts(text)? else {
            self.shape.push_str(&literal(text)?);
            return Ok(false);
        };
        let (name, is_rest) = name.strip_prefix('*').map_or((name, false), |name| (name, true));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            let message = format!("'{name}' in '{text}' is not a name of a parameter");
            return Err((message, "write letters, digits and '_'"));
        }
        if is_rest && !(before.is_empty() && after.is_empty()) {
            return Err((format!("'{text}' mixes text and '*'"), "give '*' a separate segment"));
        }
        if after.replace("{{", "").replace("}}", "").contains(['{', '}']) {
            return Err((format!("'{text}' has two parameters in one segment"), BRACES));
        }
        if self.names.iter().any(|known| known == name) {
            return Err((format!("the path has two parameters '{name}'"), "rename one of them"));
        }
        let (star, number) = (if is_rest { "*" } else { "" }, self.names.len());
        let (before, after) = (literal(before)?, literal(after)?);
        self.shape.push_str(&format!("{before}{{{star}{number}}}{after}"));
        self.names.push(name.into());
        Ok(is_rest)
    }
}

/// Text as it is written in the path of a request, with its braces doubled for the tree.
fn literal(text: &str) -> Result<String, Wrong> {
    let encoded = utf8_percent_encode(text, NOT_IN_PATHS).to_string();
    let spelling = normal(&encoded).map(Cow::into_owned);
    spelling
        .ok_or_else(|| (format!("'{text}' has a '%' without two digits"), "write %25 for a '%'"))
}

/// The path of which this is the shape, if it has no parameters.
pub(super) fn literal_of(shape: &str) -> String {
    shape.replace("{{", "{").replace("}}", "}")
}

/// The path of this shape with the names of its parameters in braces; literal braces are escaped.
pub(super) fn with_names(shape: &str, names: &[ByteString]) -> String {
    let plain = shape.replace("{{", "%7B").replace("}}", "%7D");
    let mut parts = plain.split('{');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for (part, name) in parts.zip(names) {
        let after = part.split_once('}').map_or("", |(_number, after)| after);
        path.push_str(&format!("{{{name}}}{after}"));
    }
    path
}

/// The name of the parameter in a segment, with the text before and after it.
fn parts(text: &str) -> Result<Option<(&str, &str, &str)>, Wrong> {
    if let Some(name) = text.strip_prefix(':') {
        return Ok(Some(("", name, "")));
    }
    if text.starts_with('*') {
        return Ok(Some(("", text, "")));
    }
    let mut begin = 0;
    while let Some(found) = text[begin..].find(['{', '}']) {
        let (before, rest) = text.split_at(begin + found);
        let (brace, rest) = rest.split_at(1);
        if rest.starts_with(brace) {
            begin += found + 2;
            continue;
        }
        let inside = rest.split_once('}').filter(|_| brace == "{");
        let inside = inside.map(|(name, after)| Some((before, name, after)));
        return inside.ok_or_else(|| (format!("a brace of '{text}' has no partner"), BRACES));
    }
    Ok(None)
}

const BRACES: &str = "write one parameter as {name}, and {{ or }} for a brace itself";

/// The path in its normal spelling (RFC 3986, 6.2.2): escapes of characters that need none are
/// resolved, the others have digits in upper case. `None` if a `%` has no two digits after it.
pub(super) fn normal(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut parts = path.split('%');
    let mut normal = String::with_capacity(path.len());
    normal.push_str(parts.next()?);
    for part in parts {
        let digits = part.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let byte = u8::from_str_radix(digits, 16).ok()?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            normal.push(byte.into());
        } else {
            normal.push('%');
            normal.push_str(&digits.to_ascii_uppercase());
        }
        normal.push_str(&part[2..]);
    }
    Some(Cow::Owned(normal))
}

/// The text that a part of a path means. `None` if it is not UTF-8.
pub(super) fn decode(part: &str) -> Option<ByteString> {
    Some(percent_decode_str(part).decode_utf8().ok()?.into_owned().into())
}
