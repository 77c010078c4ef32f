//! Templates: texts and whole trees of YAML with `{{ expression }}` in them.
//!
//! A text that is one expression keeps the type of its value; in a longer text, values are written
//! out. Values go in as values: what a packet holds is never read as a template or as syntax.

mod html;
#[cfg(test)]
mod tests;

use std::path::Path;

use bytestring::ByteString;
use sinew_control::outside;
use sinew_core::Refusal;
use sinew_flow::{Error, Flow, Map, Value};
use sinew_spec::{Data, Entry, Item, TextSlot, Wanted, item_json, slot_at, text_slots, value_of};

use super::expression::{Expression, Place, weight};
use super::library::escape_html;
use crate::json;

/// Longest text that a template makes, in bytes; a longer one is an error.
pub(crate) const RENDERED_MAX: usize = 16 << 20;

/// A compiled template.
#[derive(Debug)]
pub(crate) struct Template {
    part: Part,
    /// The places of values, in their order.
    slots: Vec<Slot>,
    /// Changes the value of an expression before it is put in, if there is one.
    veil: Option<Veil>,
}

/// Gives what may be shown of a value of a flow. The text is the expression that gave the value.
pub(crate) type Veil = fn(&Flow, &str, Value) -> Result<Value, Error>;

/// A place for a value.
#[derive(Debug)]
struct Slot {
    expression: Expression,
    /// It is part of a longer text.
    is_in_text: bool,
    /// Its value is not HTML, and must not become HTML.
    is_escaped: bool,
}

/// How far a template was rendered at once.
pub(crate) enum Rendered {
    /// The whole value.
    All(Value),
    /// These values of its expressions: the rest may take longer.
    Values(Vec<Value>),
}

#[derive(Debug)]
enum Part {
    /// The same for every packet: a clone of it is the rendering.
    Constant(Value),
    /// A value of any type: that of the expression with this index.
    Expression(usize),
    /// A text, piece by piece.
    Text(Vec<Piece>),
    List(Vec<Part>),
    Map(Vec<(ByteString, Part)>),
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Expression(usize),
}

impl Template {
    /// Compiles a piece of the spec, with all that is in it.
    ///
    /// # Errors
    /// Everything that is wrong in it.
    pub(crate) fn compile(item: &Item) -> Result<Template, Vec<Refusal>> {
        Compiler::run(|compiler| compiler.item(item))
    }

    /// Compiles a text, which never stands for anything else, such as a number. `place` says where
    /// each of its bytes is in the spec.
    pub(crate) fn text(text: &str, place: Place<'_>) -> Result<Template, Vec<Refusal>> {
        Compiler::run(|compiler| compiler.pieces(text, place))
    }

    /// The same, but the values of its expressions go through `veil`.
    pub(crate) fn veiled(self, veil: Veil) -> Template {
        Template { veil: Some(veil), ..self }
    }

    /// Compiles a page: the values of its expressions are text and never HTML, except for those in
    /// three braces.
    pub(crate) fn html(text: &str, place: Place<'_>) -> Result<Template, Vec<Refusal>> {
        Compiler::run(|compiler| {
            compiler.is_html = true;
            compiler.pieces(text, place)
        })
    }

    /// The value, if it is the same for every packet.
    pub(crate) fn constant(&self) -> Option<&Value> {
        self.part.constant()
    }

    fn evaluate(&self, slot: &Slot, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        let value = slot.expression.evaluate((flow, packet))?;
        match self.veil {
            Some(veil) => veil(flow, slot.expression.text(), value),
            None => Ok(value),
        }
    }

    /// The value for a packet. Others may have the worker between two expressions, and while a list
    /// or a mapping is written into a text.
    ///
    /// # Errors
    /// An expression fails; or the text gets too long, or holds a value that cannot be written out.
    pub(crate) async fn render(&self, flow: &Flow, packet: &Value) -> Result<Value, Error> {
        match self.begin(flow, packet)? {
            Rendered::All(value) => Ok(value),
            Rendered::Values(values) => self.go_on(flow, packet, values).await,
        }
    }

    /// The same at once, as far as no pause is needed.
    pub(crate) fn begin(&self, flow: &Flow, packet: &Value) -> Result<Rendered, Error> {
        let mut values = Vec::new();
        match (&self.part, &*self.slots) {
            (Part::Constant(value), _) => return Ok(Rendered::All(value.clone())),
            (Part::Expression(_), [only]) => {
                return self.evaluate(only, flow, packet).map(Rendered::All);
            }
            (part, [only]) => {
                values.push(self.evaluate(only, flow, packet)?);
                if !only.is_written_as_json(&values[0]) {
                    return self.assemble(part, &values, flow).map(Rendered::All);
                }
            }
            _ => {}
        }
        Ok(Rendered::Values(values))
    }

    /// The rest of what `begin` has begun.
    pub(crate) async fn go_on(
        &self,
        flow: &Flow,
        packet: &Value,
        mut values: Vec<Value>,
    ) -> Result<Value, Error> {
        for slot in &self.slots[values.len()..] {
            flow.turn().await;
            values.push(self.evaluate(slot, flow, packet)?);
        }
        for (slot, value) in self.slots.iter().zip(&mut values) {
            if slot.is_written_as_json(value) {
                *value = Value::text(json::text(flow, value).await?);
            }
        }
        flow.turn().await;
        self.assemble(&self.part, &values, flow)
    }

    /// Puts the values of the expressions in their places.
    fn assemble(&self, part: &Part, values: &[Value], flow: &Flow) -> Result<Value, Error> {
        match part {
            Part::Constant(value) => Ok(value.clone()),
            Part::Expression(at) => Ok(values[*at].clone()),
            Part::Text(pieces) => self.write_out(pieces, values, flow).map(Value::text),
            Part::List(parts) => {
                let values: Result<Vec<_>, _> =
                    parts.iter().map(|part| self.assemble(part, values, flow)).collect();
                Ok(Value::list(values?))
            }
            Part::Map(entries) => {
                let entry = |(key, part): &(ByteString, Part)| {
                    Ok((key.clone(), self.assemble(part, values, flow)?))
                };
                let map: Result<Map, Error> = entries.iter().map(entry).collect();
                Ok(Value::Map(map?.into()))
            }
        }
    }

    fn write_out(&self, pieces: &[Piece], values: &[Value], flow: &Flow) -> Result<String, Error> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(piece) => text += piece,
                Piece::Expression(at) => {
                    // To write a value out, all of it is gone through.
                    flow.spend(weight(&values[*at]))?;
                    let Slot { expression, is_escaped, .. } = &self.slots[*at];
                    append(&mut text, &values[*at], expression, *is_escaped)?;
                }
            }
            if text.len() > RENDERED_MAX {
                let reason =
                    format_args!("a template makes more than {RENDERED_MAX} bytes of text");
                return Err(Error::new(reason));
            }
        }
        Ok(text)
    }
}

impl Slot {
    /// Whether the value is first written piece by piece into a text of its own.
    fn is_written_as_json(&self, value: &Value) -> bool {
        self.is_in_text && matches!(value, Value::List(_) | Value::Map(_) | Value::Document(_))
    }
}

impl Part {
    fn constant(&self) -> Option<&Value> {
        if let Part::Constant(value) = self { Some(value) } else { None }
    }
}

/// Writes a value into a text: null as nothing, lists and mappings as JSON. In a page the text is
/// escaped.
fn append(
    text: &mut String,
    value: &Value,
    expression: &Expression,
    is_escaped: bool,
) -> Result<(), Error> {
    let begin = text.len();
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
    if is_escaped {
        let plain = text.split_off(begin);
        escape_html(text, &plain);
    }
    Ok(())
}

/// What a template is compiled with.
#[derive(Default)]
struct Compiler {
    slots: Vec<Slot>,
    refusals: Vec<Refusal>,
    is_html: bool,
}

impl Compiler {
    fn run(compile: impl FnOnce(&mut Compiler) -> Part) -> Result<Template, Vec<Refusal>> {
        let mut compiler = Compiler::default();
        let part = compile(&mut compiler);
        let Compiler { slots, refusals, .. } = compiler;
        if refusals.is_empty() { Ok(Template { part, slots, veil: None }) } else { Err(refusals) }
    }

    fn item(&mut self, item: &Item) -> Part {
        match &item.data {
            Data::Scalar { text, .. } if text.contains("{{") => {
                self.pieces(text, &|offset| item.span_at(offset))
            }
            Data::Scalar { .. } => Part::Constant(Value::from(item_json(item))),
            Data::List(items) => {
                let parts: Vec<Part> = items.iter().map(|item| self.item(item)).collect();
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
                        self.refusals.push(Refusal::new(entry.span, message, help));
                    }
                    parts.push((entry.key.as_str().into(), self.item(&entry.value)));
                }
                let constant = |(key, part): &(ByteString, Part)| {
                    part.constant().map(|value| (key.clone(), value.clone()))
                };
                let constants: Option<Map> = parts.iter().map(constant).collect();
                constants.map_or(Part::Map(parts), |map| Part::Constant(Value::Map(map.into())))
            }
        }
    }

    /// The value from outside for a slot of the text, ready to be put there.
    fn brought_in(&mut self, slot: &TextSlot, place: Place<'_>) -> String {
        match value_of(slot, known) {
            Ok(value) if self.is_html => {
                let mut escaped = String::new();
                escape_html(&mut escaped, &value);
                escaped
            }
            Ok(value) => value,
            Err(why) => {
                let (message, help) = why.split_once("; ").unwrap_or((&why, ""));
                self.refusals.push(Refusal::new(place(slot.range.start), message, help));
                String::new()
            }
        }
    }

    /// Compiles a text with its expressions, each of which begins with `{{`.
    fn pieces(&mut self, text: &str, place: Place<'_>) -> Part {
        let mut pieces = Vec::new();
        let mut rest = 0;
        while let Some(open) = text[rest..].find("{{").map(|at| rest + at) {
            if let Some(slot) = slot_at(text, open) {
                push(&mut pieces, &text[rest..open]);
                push(&mut pieces, &self.brought_in(&slot, place));
                rest = slot.range.end;
                continue;
            }
            let begin = open + 2;
            let Some(end) = closing(&text[begin..]).map(|at| begin + at) else {
                let help = "close it with '}}'; for the characters themselves write {{ '{{' }}";
                self.refusals.push(Refusal::new(place(open), "this '{{' is not closed", help));
                return Part::Constant(Value::Null);
            };
            push(&mut pieces, &text[rest..open]);
            let inner = &text[begin..end];
            let raw = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
            let raw = raw.filter(|_| self.is_html);
            let is_escaped = self.is_html && raw.is_none();
            if is_escaped && let Some((message, help)) = html::unsafe_at(&text[..open]) {
                self.refusals.push(Refusal::new(place(open), message, help));
            }
            let begin = begin + usize::from(raw.is_some());
            let inner = raw.unwrap_or(inner);
            let start = begin + (inner.len() - inner.trim_start().len());
            let whole = open == 0 && end + 2 == text.len() && !self.is_html;
            match Expression::compile_at(inner.trim(), &|offset| place(start + offset), &[]) {
                Ok(expression) => match expression.constant() {
                    Some(value) if whole => return Part::Constant(value.clone()),
                    Some(value) => {
                        let mut text = String::new();
                        match append(&mut text, value, &expression, is_escaped) {
                            Ok(()) => push(&mut pieces, &text),
                            Err(error) => {
                                let refusal = Refusal::new(place(0), error.text(), "write it out");
                                self.refusals.push(refusal);
                            }
                        }
                    }
                    None => {
                        let at = self.slots.len();
                        self.slots.push(Slot { expression, is_in_text: !whole, is_escaped });
                        if whole {
                            return Part::Expression(at);
                        }
                        pieces.push(Piece::Expression(at));
                    }
                },
                Err(refusal) => self.refusals.push(refusal),
            }
            rest = end + 2;
        }
        push(&mut pieces, &text[rest..]);
        match pieces.as_mut_slice() {
            [] => Part::Constant(Value::text("")),
            [Piece::Text(text)] => Part::Constant(Value::text(std::mem::take(text))),
            _ => Part::Text(pieces),
        }
    }
}

/// A piece of the spec that is not a template, with its values from outside filled in. All else in
/// braces stays as it is.
///
/// # Errors
/// A value that is not available.
pub(crate) fn filled(item: &Item) -> Result<Item, Vec<Refusal>> {
    let data = match &item.data {
        Data::List(items) => Data::List(items.iter().map(filled).collect::<Result<_, _>>()?),
        Data::Map(entries) => {
            let entry = |it: &Entry| Ok(Entry { value: filled(&it.value)?, ..it.clone() });
            Data::Map(entries.iter().map(entry).collect::<Result<_, Vec<Refusal>>>()?)
        }
        Data::Scalar { text, .. } => {
            let (slots, mut filled, mut rest) = (text_slots(text), String::new(), 0);
            if slots.is_empty() {
                return Ok(item.clone());
            }
            for slot in slots {
                let value = value_of(&slot, known).map_err(|why| {
                    let (message, help) = why.split_once("; ").unwrap_or((&why, ""));
                    vec![Refusal::new(item.span_at(slot.range.start), message, help)]
                })?;
                filled.extend([&text[rest..slot.range.start], &value]);
                rest = slot.range.end;
            }
            filled += &text[rest..];
            Data::Scalar { text: filled, plain: false }
        }
    };
    Ok(Item::new(item.span, data))
}

/// A value from outside of the spec, if this process knows it. A variable of the environment that
/// the spec names in an expression becomes known when it is first asked for.
fn known(wanted: &Wanted) -> Option<Result<String, String>> {
    outside::known(wanted).or_else(|| match wanted {
        Wanted::Variable(_) => {
            outside::bring(vec![wanted.clone()], Path::new("")).pop().map(|one| {
                outside::know(std::slice::from_ref(&one));
                one.value
            })
        }
        Wanted::File(_) => None,
    })
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => *before += text,
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// Where the `}}` that ends an expression is. It is not in a text of the expression, and not in its
/// own braces.
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
