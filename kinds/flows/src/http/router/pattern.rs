//! The path of a route: what the user wrote as what the radix tree takes, and the names of its
//! parameters in their order.

use bytestring::ByteString;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::escapes;

/// What stands for itself nowhere in a path: the rest is as RFC 3986 has it (3.3, `pchar` and `/`).
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
    /// For the tree, with numbers for the names: two paths that match the same have the same.
    pub(super) shape: String,
    /// The parameters, from the left.
    pub(super) names: Vec<ByteString>,
}

/// What a segment is made of: text, a parameter, text.
struct Segment<'a> {
    before: String,
    name: Option<&'a str>,
    is_rest: bool,
    after: String,
}

impl Pattern {
    /// Reads a path such as `/users/:id`, `/files/*rest` or `/images/{name}.png`.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub(super) fn parse(path: &str) -> Result<Pattern, (String, &'static str)> {
        let Some(path) = path.strip_prefix('/') else {
            return Err((format!("the path '{path}' does not begin with '/'"), "write /users/:id"));
        };
        let mut pattern = Pattern { shape: String::new(), names: Vec::new() };
        let mut segments = path.split('/').peekable();
        while let Some(text) = segments.next() {
            let segment = Segment::parse(text)?;
            if segment.is_rest && segments.peek().is_some() {
                let message = format!("'{text}' takes all that follows, so nothing can follow it");
                return Err((message, "put it at the end of the path"));
            }
            pattern.push(&segment)?;
        }
        Ok(pattern)
    }

    fn push(&mut self, segment: &Segment<'_>) -> Result<(), (String, &'static str)> {
        self.shape.push('/');
        self.shape.push_str(&literal(&segment.before)?);
        if let Some(name) = segment.name {
            if self.names.iter().any(|known| known == name) {
                return Err((
                    format!("the path has two parameters '{name}'"),
                    "rename one of them",
                ));
            }
            let star = if segment.is_rest { "*" } else { "" };
            self.shape.push_str(&format!("{{{star}{}}}", self.names.len()));
            self.names.push(name.into());
        }
        self.shape.push_str(&literal(&segment.after)?);
        Ok(())
    }
}

/// Text as it stands in the path of a request, for the tree, where braces are doubled.
fn literal(text: &str) -> Result<String, (String, &'static str)> {
    let encoded = utf8_percent_encode(text, NOT_IN_PATHS).to_string();
    let Some(normal) = escapes::normal(&encoded) else {
        return Err((format!("'{text}' has a '%' without two digits"), "write %25 for a '%'"));
    };
    Ok(normal.replace('{', "{{").replace('}', "}}"))
}

/// The path of which this is the shape, if it has no parameters.
pub(super) fn literal_of(shape: &str) -> String {
    shape.replace("{{", "{").replace("}}", "}")
}

impl<'a> Segment<'a> {
    fn parse(text: &'a str) -> Result<Segment<'a>, (String, &'static str)> {
        if let Some(name) = text.strip_prefix(':') {
            return Segment::parameter(text, "", name, "");
        }
        if text.starts_with('*') {
            return Segment::parameter(text, "", text, "");
        }
        let mut before = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            before.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(doubled) = rest.strip_prefix(brace) {
                before.push_str(brace);
                rest = doubled;
                continue;
            }
            let inside = rest.split_once('}').filter(|_| brace == "{");
            let Some((name, after)) = inside else {
                return Err((format!("a brace of '{text}' has no partner"), BRACES));
            };
            return Segment::parameter(text, &before, name, after);
        }
        before.push_str(rest);
        Ok(Segment { before, name: None, is_rest: false, after: String::new() })
    }

    fn parameter(
        text: &'a str,
        before: &str,
        name: &'a str,
        after: &str,
    ) -> Result<Segment<'a>, (String, &'static str)> {
        let (name, is_rest) = name.strip_prefix('*').map_or((name, false), |name| (name, true));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            let message = format!("'{name}' in '{text}' is no name of a parameter");
            return Err((message, "write letters, digits and '_'"));
        }
        if is_rest && !(before.is_empty() && after.is_empty()) {
            return Err((format!("'{text}' mixes text and '*'"), "give '*' a segment of its own"));
        }
        if after.replace("{{", "").replace("}}", "").contains(['{', '}']) {
            return Err((format!("'{text}' has two parameters in one segment"), BRACES));
        }
        let after = literal_of(after);
        Ok(Segment { before: before.to_owned(), name: Some(name), is_rest, after })
    }
}

const BRACES: &str = "write one parameter as {name}, and {{ or }} for a brace itself";
