//! `multipart`: takes a form with files apart (RFC 7578).

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::{FutureExt, stream};
use hyper::header::CONTENT_TYPE;
use indexmap::map::Entry;
use multer::{Constraints, Error as Malformed, Multipart as Parts, SizeLimit};
use ring::rand::{SecureRandom, SystemRandom};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, Map, Step, Value, error, input, output,
};

use super::request::Request;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "multipart",
    doc: "Takes a body of the type multipart/form-data apart. Its fields and files become a value \
          of the flow, {fields, files}, and the packet is passed on. Files stay in memory, or are \
          written to a folder under names of their own. What is no such form is 400, another type \
          415, too much 413.",
    ports: &[
        input("in", "A request, or a mapping with 'header' and a 'body' of text or bytes."),
        output("out", "The same packet."),
        error(),
    ],
    parameters: &[
        Parameter::new("folder", ParameterType::Text)
            .or("")
            .doc("Where files are written. Default: they stay in memory, as 'bytes'."),
        Parameter::new("parts_max", ParameterType::Integer { min: 1, max: 10_000 })
            .or("100")
            .doc("Most fields and files together."),
        Parameter::new("part_size_max", SIZE).or("8MiB").doc("Largest field or file."),
        Parameter::new("size_max", SIZE).or("32MiB").doc("Largest body."),
        Parameter::new("into", ParameterType::Text)
            .or("form")
            .doc("The value of the flow that gets {fields, files}."),
    ],
    ..FLOW
};

const SIZE: ParameterType = ParameterType::Size { min_bytes: 1 << 10, max_bytes: 4 << 30 };
/// The output, by index of the table.
const OUT: usize = 1;
/// Bytes of a body for one unit of work, at least.
const BYTES_PER_UNIT: usize = 256;
/// Units of work for a part: its headers, and a file that is opened.
const PART_WORK: u64 = 100;
/// Longest name of a file, in characters, as it is told; the rest is cut off.
const NAME_CHARS_MAX: usize = 100;

struct Multipart {
    limits: Arc<Limits>,
    into: ByteString,
}

/// What may come, and where it goes.
struct Limits {
    folder: Option<PathBuf>,
    parts_max: usize,
    part_size_max: u64,
    size_max: u64,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let folder = Some(parameters.path("folder")).filter(|_| !parameters.text("folder").is_empty());
    if let Some(folder) = &folder
        && !fs::metadata(folder).is_ok_and(|it| it.is_dir())
    {
        let text = format!("{}: there is no such folder", folder.display());
        return Err(vec![Refusal::new(parameters.span("folder"), text, "make it first")]);
    }
    let limits = Limits {
        folder,
        parts_max: parameters.integer("parts_max") as usize,
        part_size_max: parameters.size("part_size_max"),
        size_max: parameters.size("size_max"),
    };
    Ok(Box::new(Multipart { limits: Arc::new(limits), into: parameters.text("into").into() }))
}

impl FlowNode for Multipart {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.form(at, &packet).await {
                Ok(form) => {
                    at.flow().set(self.into.clone(), form);
                    Step::Pass(OUT, packet)
                }
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Multipart {
    async fn form(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let (content_type, body) = sent(packet)?;
        let boundary = multer::parse_boundary(content_type).map_err(|_| {
            Error::new("the body is not of the type multipart/form-data").with_status(415)
        })?;
        let most = PART_WORK * self.limits.parts_max as u64;
        at.flow().spend(most.min(body.len() as u64) + (body.len() / BYTES_PER_UNIT) as u64)?;
        let limits = Arc::clone(&self.limits);
        at.pool().run_slow(move || limits.take_apart(&boundary, body)).await?
    }
}

/// The content type of a request and its body as it came.
fn sent(packet: &Value) -> Result<(String, Bytes), Error> {
    if let Some(request) = Request::of(packet) {
        let content_type = request.content_type().and_then(|it| it.to_str().ok());
        return Ok((content_type.unwrap_or_default().to_owned(), request.body_bytes()?.clone()));
    }
    let content_type = packet.field("header")?.field(CONTENT_TYPE.as_str())?;
    let body = match packet.field("body")? {
        Value::Text(text) => text.into_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => Bytes::new(),
    };
    Ok((content_type.as_text().unwrap_or_default().to_owned(), body))
}

impl Limits {
    /// Takes a body apart, on a thread for what blocks. If anything is wrong with it, nothing of it
    /// stays in the folder.
    fn take_apart(&self, boundary: &str, body: Bytes) -> Result<Value, Error> {
        if body.len() as u64 > self.size_max {
            return Err(self.too_much(format_args!("{} bytes", body.len())));
        }
        let mut written = Vec::new();
        // All of the body is here: nothing waits.
        let made = self.parts(boundary, body, &mut written).now_or_never();
        let made = made.unwrap_or_else(|| Err(malformed(&"it does not end")));
        if made.is_err() {
            for path in written {
                // It is of no use to anybody, and what cannot be removed hurts nobody either.
                let _ = fs::remove_file(path);
            }
        }
        made
    }

    async fn parts(
        &self,
        boundary: &str,
        body: Bytes,
        written: &mut Vec<PathBuf>,
    ) -> Result<Value, Error> {
        let sizes = SizeLimit::new().per_field(self.part_size_max);
        let constraints = Constraints::new().size_limit(sizes);
        let all = stream::iter([Ok::<Bytes, Infallible>(body)]);
        let mut parts = Parts::with_constraints(all, boundary, constraints);
        let (mut fields, mut files, mut count) = (Map::new(), Vec::new(), 0);
        while let Some(part) = parts.next_field().await.map_err(|error| self.refuse(&error))? {
            count += 1;
            if count > self.parts_max {
                return Err(self.too_much(format_args!("more than {} parts", self.parts_max)));
            }
            let Some(field) = part.name().map(ByteString::from) else {
                return Err(malformed(&"a part has no name"));
            };
            let name = part.file_name().map(safe_name);
            let content_type = part.content_type().map(|it| Value::text(it.to_string()));
            let bytes = part.bytes().await.map_err(|error| self.refuse(&error))?;
            match name {
                Some(name) => {
                    let size = Value::Integer(bytes.len() as i64);
                    let content = self.keep(bytes, written)?;
                    files.push(Value::map([
                        ("field", Value::Text(field)),
                        ("name", Value::text(name)),
                        ("type", content_type.unwrap_or_default()),
                        ("size", size),
                        content,
                    ]));
                }
                None => add(&mut fields, field, text(&bytes)?),
            }
        }
        Ok(Value::map([("fields", Value::Map(fields.into())), ("files", Value::list(files))]))
    }

    /// Keeps a file in memory or in the folder: there under a name that nobody could choose.
    fn keep(
        &self,
        bytes: Bytes,
        written: &mut Vec<PathBuf>,
    ) -> Result<(&'static str, Value), Error> {
        let Some(folder) = &self.folder else { return Ok(("bytes", Value::Bytes(bytes))) };
        let path = write(folder, &bytes, written).map_err(|error| {
            let full = error.kind() == io::ErrorKind::StorageFull;
            Error::new(format_args!("a file cannot be kept in {}: {error}", folder.display()))
                .with_status(if full { 507 } else { 503 })
        })?;
        Ok(("path", Value::text(path.display().to_string())))
    }

    fn refuse(&self, error: &Malformed) -> Error {
        match error {
            Malformed::FieldSizeExceeded { .. } => {
                self.too_much(format_args!("a part of more than {} bytes", self.part_size_max))
            }
            other => malformed(other),
        }
    }

    #[cold]
    fn too_much(&self, what: std::fmt::Arguments<'_>) -> Error {
        Error::new(format_args!(
            "the form has {what}; at most {} parts of {} bytes, {} bytes in all",
            self.parts_max, self.part_size_max, self.size_max
        ))
        .with_status(413)
    }
}

#[cold]
fn malformed(why: &dyn std::fmt::Display) -> Error {
    Error::new(format_args!("the body is no form of several parts: {why}")).with_status(400)
}

/// Writes a new file that only its owner reads.
fn write(folder: &Path, bytes: &[u8], written: &mut Vec<PathBuf>) -> io::Result<PathBuf> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let path = folder.join(format!("{:032x}", u128::from_ne_bytes(random)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    written.push(path.clone());
    file.write_all(bytes)?;
    Ok(path)
}

/// A name of a file without its folders, and without what means something to a shell, a disk or a
/// browser: letters, digits, spaces, dots, dashes, and not hidden.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe = |sign: char| match sign {
        ' ' | '.' | '-' | '_' => sign,
        sign if sign.is_alphanumeric() => sign,
        _ => '_',
    };
    let name: String = last.trim().trim_start_matches('.').chars().map(safe).collect();
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}

fn text(bytes: &Bytes) -> Result<Value, Error> {
    ByteString::try_from(bytes.clone())
        .map(Value::Text)
        .map_err(|_| malformed(&"a field is not UTF-8"))
}

/// A field; one that comes several times has the list of its values.
fn add(fields: &mut Map, name: ByteString, value: Value) {
    match fields.entry(name) {
        Entry::Vacant(new) => drop(new.insert(value)),
        Entry::Occupied(known) => match known.into_mut() {
            Value::List(values) => Arc::make_mut(values).push(value),
            first => *first = Value::list([std::mem::take(first), value]),
        },
    }
}
