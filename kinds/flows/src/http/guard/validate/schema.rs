//! A JSON Schema, read and checked once.

use std::collections::HashSet;
use std::fmt;

use jsonschema::error::ValidationErrorKind as Sort;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value as Json;
use sinew_core::{Parameters, Refusal};
use sinew_spec::{Data, Item, Span, item_json};

use super::from_file;
use crate::script::expression::shortened;

/// Largest compiled pattern of a schema, in bytes; a larger one is refused.
const PATTERN_SIZE_MAX: usize = 1 << 20;
/// Most places that an answer names. It names the first ones.
const COMPLAINTS_MAX: usize = 20;
/// Most characters of the reason at one place, and of the place itself.
const WHY_MAX: usize = 300;
/// A schema that refers to itself is gone through again for each of its references at each level of
/// the value. Past so many times the answer says only that the value does not match.
const VISITS_MAX: usize = 10_000;

/// A schema.
pub(super) struct Schema {
    validator: Validator,
    /// How many references it has, if some of them lead back to themselves; else 0.
    own_references: usize,
}

/// Something that a schema does not allow.
pub(super) struct Complaint {
    /// Where, as a JSON pointer (RFC 6901) into the value.
    pub(super) path: String,
    /// What was expected.
    pub(super) why: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.path, self.why)
    }
}

impl Schema {
    /// Reads the schema in the spec, or in a file.
    pub(super) fn read(parameters: &Parameters<'_>) -> Result<Schema, Vec<Refusal>> {
        let (item, file) = (parameters.yaml("schema"), parameters.text("schema_file"));
        let is_given = !matches!(item_json(item), Json::Null);
        let refuse = |span, text: String, help: &str| vec![Refusal::new(span, text, help)];
        let made = match (is_given, file.is_empty()) {
            (true, true) => Schema::of(&item_json(item), &|location| place(item, location)),
            (false, false) => {
                let span = parameters.span("schema_file");
                let json = from_file(parameters).map_err(|text| {
                    refuse(span, text, "expected a file of JSON that holds a JSON Schema")
                })?;
                Schema::of(&json, &|_| span)
            }
            (true, false) => {
                let text = "there is a 'schema' and a 'schema_file'".to_owned();
                return Err(refuse(parameters.span("schema_file"), text, "leave one of them out"));
            }
            (false, true) => {
                let help = "write schema: {type: object, required: [name]}";
                let text = "there is neither 'schema' nor 'schema_file'".to_owned();
                return Err(refuse(parameters.span("schema"), text, help));
            }
        };
        made.map_err(|refusal| vec![refusal])
    }

    fn of(json: &Json, place: &dyn Fn(&Location) -> Span) -> Result<Schema, Refusal> {
        let patterns = PatternOptions::regex().size_limit(PATTERN_SIZE_MAX);
        let options = jsonschema::options().with_pattern_options(patterns);
        let made = options.should_validate_formats(true).build(json);
        let validator = made.map_err(|error| {
            let at = error.instance_path();
            let where_to = if at.is_empty() { String::new() } else { format!(" at {at}") };
            let text = format!("not a JSON Schema{where_to}: {}", reason(&error, None));
            let help = "write it as json-schema.org says; references lead to '#/$defs/...' only, \
                        and patterns have no look-around";
            Refusal::new(place(at), text, help)
        })?;
        let mut known = Vec::new();
        let is_circle = closes(json, json, &mut known, &mut HashSet::new());
        let own_references = if is_circle { references(json).len() } else { 0 };
        Ok(Schema { validator, own_references })
    }

    /// The first things that are wrong with a value; none if it matches.
    pub(super) fn complaints(&self, value: &Json) -> Vec<Complaint> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        if let Some(vague) = self.vague(value) {
            return vec![vague];
        }
        let mut complaints = Vec::new();
        for error in self.validator.iter_errors(value) {
            complaints.extend(of_error(&error));
            if complaints.len() >= COMPLAINTS_MAX {
                complaints.truncate(COMPLAINTS_MAX);
                break;
            }
        }
        complaints.sort_by(|a, b| a.path.cmp(&b.path));
        complaints
    }

    /// The first thing that is wrong with a value that may be large.
    pub(super) fn first_complaint(&self, value: &Json) -> Option<Complaint> {
        if self.validator.is_valid(value) {
            return None;
        }
        let vague = self.vague(value);
        vague.or_else(|| of_error(&self.validator.validate(value).err()?).into_iter().next())
    }

    /// The complaint that names no place, if to find the places could take for ever.
    fn vague(&self, value: &Json) -> Option<Complaint> {
        let visits = self.own_references.checked_pow(depth(value));
        let why = "it does not match; the schema refers to itself, and this is nested too deep to \
                   say where";
        let complaint = Complaint { path: String::new(), why: why.into() };
        visits.is_none_or(|visits| visits > VISITS_MAX).then_some(complaint)
    }
}

/// Where the part of a schema at this location is in the spec, or the nearest part around it.
fn place(item: &Item, location: &Location) -> Span {
    let mut item = item;
    for segment in location.segments() {
        let next = match (&item.data, segment) {
            (Data::List(items), LocationSegment::Index(at)) => items.get(at),
            (_, LocationSegment::Property(name)) => item.get(&name),
            (_, LocationSegment::Index(at)) => item.get(&at.to_string()),
        };
        let Some(next) = next else { break };
        item = next;
    }
    item.span
}

/// An error as complaints: one for each part that is missing or not expected.
fn of_error(error: &ValidationError<'_>) -> Vec<Complaint> {
    let at = error.instance_path();
    let part = |name: &str, why: &str| {
        let path = shortened(at.join(name).as_str(), WHY_MAX).into_owned();
        Complaint { path, why: why.to_owned() }
    };
    match error.kind() {
        Sort::Required { property } => {
            vec![part(property.as_str().unwrap_or_default(), "it is required")]
        }
        Sort::AdditionalProperties { unexpected } | Sort::UnevaluatedProperties { unexpected } => {
            let few = unexpected.iter().take(COMPLAINTS_MAX);
            few.map(|name| part(name, TOO_MUCH)).collect()
        }
        Sort::FalseSchema => {
            let path = shortened(at.as_str(), WHY_MAX).into_owned();
            vec![Complaint { path, why: TOO_MUCH.to_owned() }]
        }
        _ => {
            let path = shortened(at.as_str(), WHY_MAX).into_owned();
            vec![Complaint { path, why: reason(error, Some("it")) }]
        }
    }
}

const TOO_MUCH: &str = "it is not expected";

/// The text of an error; for alternatives, why each of them does not match. The value may be a
/// secret, so `masked` takes its place in the text.
fn reason(error: &ValidationError<'_>, masked: Option<&str>) -> String {
    let said = |error: &ValidationError<'_>| match (error.kind(), masked) {
        (Sort::Enum { options }, Some(masked)) => format!("{masked} is not one of {options}"),
        (Sort::Enum { options }, None) => format!("{} is not one of {options}", error.instance()),
        (_, Some(masked)) => error.masked_with(masked).to_string(),
        (_, None) => error.to_string(),
    };
    let text = match error.kind() {
        Sort::AnyOf { context } | Sort::OneOfNotValid { context } => {
            let firsts = context.iter().filter_map(|errors| errors.first());
            firsts.map(said).collect::<Vec<_>>().join(", and ")
        }
        _ => said(error),
    };
    shortened(&text, WHY_MAX).into_owned()
}

/// How deep lists and mappings are nested.
fn depth(value: &Json) -> u32 {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// All references within a part of a schema.
fn references(part: &Json) -> Vec<&str> {
    const WORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
    match part {
        Json::Array(items) => items.iter().flat_map(references).collect(),
        Json::Object(entries) => {
            let parts = entries.iter().map(|(key, value)| match value {
                Json::String(to) if WORDS.contains(&key.as_str()) => vec![to.as_str()],
                other => references(other),
            });
            parts.flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether references of a part may lead back to themselves. One that is not a pointer counts as
/// one that may.
fn closes<'a>(
    schema: &'a Json,
    part: &'a Json,
    open: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> bool {
    for to in references(part) {
        let target = to.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
        let Some(target) = target.filter(|_| !open.contains(&to)) else { return true };
        if done.insert(to) {
            open.push(to);
            if closes(schema, target, open, done) {
                return true;
            }
            open.pop();
        }
    }
    false
}
