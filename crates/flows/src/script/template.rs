//! Templates: texts and whole trees of YAML with `{{ expression }}` in them.
//!
//! A text that is one expression keeps the type of its value; in a longer text, values are written
//! out. Values go in as values: what a packet holds is never read as a template or as syntax.

#[cfg(test)]
mod tests;

use bytestring::ByteString;
use sinew_runtime::Refusal;
use sinew_runtime::flow::{Error, Flow, Map, Value};
use sinew_spec::{Data, Item};

use super::expression::{Expression, Place, Scope};

/// Longest text that a template makes, in bytes; past it, rendering is an error.
pub(crate) const RENDERED_MAX: usize = 16 << 20;

/// A compiled template.
#[derive(Debug)]
pub(crate) struct Template(Part);

#[derive(Debug)]
enum Part {
    /// The same for every packet: a clone of it is the rendering.
    Constant(Value),
    /// A value of any type.
    Expression(Expression),
    /// A text, piece by piece.
    Text(Vec<Piece>),
    List(Vec<Part>),
    Map(Vec<(ByteString, Part)>),
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Expression(Expression),
}

impl Template {
    /// Compiles a piece of the spec, with all that is in it.
    ///
    /// # Errors
    /// Everything that is wrong in it.
    pub(crate) fn compile(item: &Item) -> Result<Template, Vec<Refusal>> {
        Template::compile_with(item, &[])
    }

    /// As [`Template::compile`]; `also` names variables beside the usual ones.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn compile_with(item: &Item, also: &[&str]) -> Result<Template, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let part = compile(item, also, &mut refusals);
        if refusals.is_empty() { Ok(Template(part)) } else { Err(refusals) }
    }

    /// Compiles a text, which never stands for anything else, such as a number; `place` says where
    /// each of its bytes stands.
    ///
    /// # Errors
    /// As [`Template::compile`].
    pub(crate) fn text(text: &str, place: Place<'_>) -> Result<Template, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let part = pieces(text, place, &[], &mut refusals);
        if refusals.is_empty() { Ok(Template(part)) } else { Err(refusals) }
    }

    /// The value, if it is the same for every packet.
    pub(crate) fn constant(&self) -> Option<&Value> {
        if let Part::Constant(value) = &self.0 { Some(value) } else { None }
    }

    /// The value for a packet.
    ///
    /// # Errors
    /// As an expression's; or the text gets too long, or holds a value that cannot be written out.
    pub(crate) fn render(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        self.render_in(&Scope { flow: Some(flow), packet, also: &[] })
    }

    /// As [`Template::render`], with other variables.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn render_in(&self, scope: &Scope<'_>) -> Result<Value, Error> {
        self.0.render(scope)
    }
}

impl Part {
    fn render(&self, scope: &Scope<'_>) -> Result<Value, Error> {
        match self {
            Part::Constant(value) => Ok(value.clone()),
            Part::Expression(expression) => expression.evaluate_in(scope),
            Part::Text(pieces) => write_out(pieces, scope).map(Value::text),
            Part::List(parts) => {
                let values: Result<Vec<_>, _> =
                    parts.iter().map(|part| part.render(scope)).collect();
                Ok(Value::list(values?))
            }
            Part::Map(entries) => {
                let entry =
                    |(key, part): &(ByteString, Part)| Ok((key.clone(), part.render(scope)?));
                let map: Result<Map, Error> = entries.iter().map(entry).collect();
                Ok(Value::Map(map?.into()))
            }
        }
    }

    fn constant(&self) -> Option<&Value> {
        if let Part::Constant(value) = self { Some(value) } else { None }
    }
}

fn write_out(pieces: &[Piece], scope: &Scope<'_>) -> Result<String, Error> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text += piece,
            Piece::Expression(expression) => {
                let value = expression.evaluate_in(scope)?;
                append(&mut text, &value, expression)?;
            }
        }
        if text.len() > RENDERED_MAX {
            let reason = format_args!("a template makes more than {RENDERED_MAX} bytes of text");
            return Err(Error::new(reason));
        }
    }
    Ok(text)
}

/// Writes a value into a text: nothing as nothing, lists and mappings as JSON.
fn append(text: &mut String, value: &Value, expression: &Expression) -> Result<(), Error> {
    let refuse = |what: &str| {
        let name = expression.text();
        Err(Error::new(format_args!("a template cannot write {what} into a text: '{name}'")))
    };
    match value {
        Value::Null => {}
        Value::Bool(value) => *text += if *value { "true" } else { "false" },
        Value::Integer(value) => *text += &value.to_string(),
        Value::Number(value) => *text += &value.to_string(),
        Value::Text(value) => *text += value,
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(value) => *text += value,
            Err(_) => return refuse("bytes that are not UTF-8"),
        },
        Value::List(_) | Value::Map(_) | Value::Document(_) => {
            *text += &value.to_json()?.to_string()
        }
        Value::Stream(_) => return refuse("bytes that are still to come"),
    }
    Ok(())
}

fn compile(item: &Item, also: &[&str], refusals: &mut Vec<Refusal>) -> Part {
    match &item.data {
        Data::Scalar { text, .. } if text.contains("{{") => {
            pieces(text, &|offset| item.span_at(offset), also, refusals)
        }
        Data::Scalar { .. } => Part::Constant(Value::from(item.to_json())),
        Data::List(items) => {
            let parts: Vec<Part> = items.iter().map(|item| compile(item, also, refusals)).collect();
            let constants: Option<Vec<Value>> =
                parts.iter().map(|part| part.constant().cloned()).collect();
            constants.map_or(Part::List(parts), |values| Part::Constant(Value::list(values)))
        }
        Data::Map(entries) => {
            let mut parts = Vec::with_capacity(entries.len());
            for entry in entries {
                if entry.key.contains("{{") {
                    let message = "the key of a mapping cannot be a template";
                    let help = "make the mapping by one expression: '{{ {packet.key: 1} }}'";
                    refusals.push(Refusal::new(entry.span, message, help));
                }
                parts.push((entry.key.as_str().into(), compile(&entry.value, also, refusals)));
            }
            let constant = |(key, part): &(ByteString, Part)| {
                part.constant().map(|value| (key.clone(), value.clone()))
            };
            let constants: Option<Map> = parts.iter().map(constant).collect();
            constants.map_or(Part::Map(parts), |map| Part::Constant(Value::Map(map.into())))
        }
    }
}

/// A text with its expressions, where `{{` stands for one begins.
fn pieces(text: &str, place: Place<'_>, also: &[&str], refusals: &mut Vec<Refusal>) -> Part {
    let mut pieces = Vec::new();
    let mut rest = 0;
    while let Some(open) = text[rest..].find("{{").map(|at| rest + at) {
        let begin = open + 2;
        let Some(end) = closing(&text[begin..]).map(|at| begin + at) else {
            let help = "close it with '}}'; for the signs themselves write {{ '{{' }}";
            refusals.push(Refusal::new(place(open), "this '{{' is not closed", help));
            return Part::Constant(Value::Null);
        };
        push(&mut pieces, &text[rest..open]);
        let inner = &text[begin..end];
        let start = begin + (inner.len() - inner.trim_start().len());
        match Expression::compile_at(inner.trim(), &|offset| place(start + offset), also) {
            Ok(expression) => pieces.push(Piece::Expression(expression)),
            Err(refusal) => refusals.push(refusal),
        }
        rest = end + 2;
    }
    push(&mut pieces, &text[rest..]);
    match pieces.len() {
        0 => Part::Constant(Value::text("")),
        1 => match pieces.swap_remove(0) {
            Piece::Text(text) => Part::Constant(Value::text(text)),
            Piece::Expression(expression) => match expression.constant() {
                Some(value) => Part::Constant(value.clone()),
                None => Part::Expression(expression),
            },
        },
        _ => folded(pieces, place, refusals),
    }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// Pieces of which those that never change are one text already.
fn folded(pieces: Vec<Piece>, place: Place<'_>, refusals: &mut Vec<Refusal>) -> Part {
    let mut folded: Vec<Piece> = Vec::new();
    for piece in pieces {
        let mut text = String::new();
        match piece {
            Piece::Text(piece) => text = piece,
            Piece::Expression(expression) => match expression.constant() {
                Some(value) => {
                    if let Err(error) = append(&mut text, value, &expression) {
                        refusals.push(Refusal::new(place(0), error.text(), "write it out"));
                    }
                }
                None => {
                    folded.push(Piece::Expression(expression));
                    continue;
                }
            },
        }
        match folded.last_mut() {
            Some(Piece::Text(before)) => *before += &text,
            _ => folded.push(Piece::Text(text)),
        }
    }
    match folded.as_slice() {
        [Piece::Text(text)] => Part::Constant(Value::text(text.as_str())),
        _ => Part::Text(folded),
    }
}

/// Where the `}}` that ends an expression stands: not in its texts, and not in its own brackets.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                let raw = at > 0 && matches!(bytes[at - 1], b'r' | b'R');
                at = end_of_quoted(bytes, at, raw)?;
                continue;
            }
            b'{' => open += 1,
            b'}' if open > 0 => open -= 1,
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The byte after a quoted text of CEL that begins at `start`.
fn end_of_quoted(bytes: &[u8], start: usize, raw: bool) -> Option<usize> {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let end: &[u8] = if triple { &[quote; 3] } else { &bytes[start..=start] };
    let mut at = start + end.len();
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(end) {
            return Some(at + end.len());
        } else {
            at += 1;
        }
    }
    None
}
