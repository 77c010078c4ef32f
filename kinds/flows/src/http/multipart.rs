//! `multipart`: splits a form with files into its parts (RFC 7578).

#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use futures_util::{StreamExt, stream};
use hyper::header::CONTENT_TYPE;
use indexmap::map::Entry;
use multer::{Constraints, Error as Malformed, Multipart as Parts, SizeLimit};
use ring::rand::{SecureRandom, SystemRandom};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, BytesToCome, Error, FLOW, FlowEntry, FlowNode, Make, Map, Step, Value, error, input, output,
};

use super::request::Request;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "multipart",
    doc: "Splits a body of the type multipart/form-data. Its fields and files become a value of \
          the flow, {fields, files}, and the packet is passed on. Files stay in memory, or are \
          written to a folder under names of their own, as they come if the body is a stream. A \
          form that is not valid fails with 400, another type with 415, a form that is too large \
          with 413.",
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
            .doc("The flow's value (values.NAME) that is set to {fields, files}."),
    ],
    ..FLOW
};

const SIZE: ParameterType = ParameterType::Size { min_bytes: 1 << 10, max_bytes: 4 << 30 };
/// The output, as an index into the kind's ports.
const OUT: usize = 1;
/// Bytes of a body for one unit of work, at least.
const BYTES_PER_UNIT: usize = 256;
/// Units of work for a part: its headers, and a file that is opened.
const PART_WORK: u64 = 100;
/// A file is written in blocks of so many bytes at least.
const BLOCK_LEN: usize = 256 << 10;
/// Longest name of a file that the flow gets, in characters; the rest is cut off.
const NAME_CHARS_MAX: usize = 100;

struct Multipart {
    limits: Limits,
    into: ByteString,
}

/// What may come, and where files are written.
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
        return Err(vec![Refusal::new(parameters.span("folder"), text, "create it first")]);
    }
    let limits = Limits {
        folder,
        parts_max: parameters.integer("parts_max") as usize,
        part_size_max: parameters.size("part_size_max"),
        size_max: parameters.size("size_max"),
    };
    Ok(Box::new(Multipart { limits, into: parameters.text("into").into() }))
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
        let taking = Taking { at, limits: &self.limits, written: Arc::default() };
        let form = taking.parts(&boundary, body).await?;
        // Relaxed: the thread that drops it last has seen all that was done before.
        taking.written.stay.store(true, Ordering::Relaxed);
        Ok(form)
    }
}

/// The content type of a request and its body as it came.
fn sent(packet: &Value) -> Result<(String, BytesToCome), Error> {
    let whole = |bytes| stream::iter([Ok(bytes)]).boxed();
    if let Some(request) = Request::of(packet) {
        let content_type = request.content_type().and_then(|it| it.to_str().ok());
        let body = match request.body() {
            Value::Stream(stream) => stream.take().ok_or_else(read_before)?,
            _ => whole(request.body_bytes()?.clone()),
        };
        return Ok((content_type.unwrap_or_default().to_owned(), body));
    }
    let content_type = packet.field("header")?.field(CONTENT_TYPE.as_str())?;
    let body = match packet.field("body")? {
        Value::Text(text) => whole(text.into_bytes()),
        Value::Bytes(bytes) => whole(bytes),
        Value::Stream(stream) => stream.take().ok_or_else(read_before)?,
        _ => whole(Bytes::new()),
    };
    Ok((content_type.as_text().unwrap_or_default().to_owned(), body))
}

#[cold]
fn read_before() -> Error {
    Error::new("the body was read before; it passes once")
}

/// Files that were written for a form. They are removed if the form fails.
#[derive(Default)]
struct Written {
    paths: Mutex<Vec<PathBuf>>,
    stay: AtomicBool,
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.stay.load(Ordering::Relaxed) {
            return;
        }
        for path in self.paths.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // The file is of no use; if it cannot be removed, it does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

/// A form that is split as it comes.
struct Taking<'a> {
    at: At<'a>,
    limits: &'a Limits,
    written: Arc<Written>,
}

type Part = multer::Field<'static>;

impl Taking<'_> {
    async fn parts(&self, boundary: &str, body: BytesToCome) -> Result<Value, Error> {
        let limits = self.limits;
        let sizes = SizeLimit::new().per_field(limits.part_size_max);
        let constraints = Constraints::new().size_limit(sizes);
        let (mut len, size_max) = (0, limits.size_max);
        let too_long = limits.too_much(format_args!("more than {size_max} bytes"));
        let counted = body.map(move |part| {
            let part = part?;
            len += part.len() as u64;
            if len > size_max { Err(too_long.clone()) } else { Ok(part) }
        });
        let mut parts = Parts::with_constraints(counted, boundary, constraints);
        let (mut fields, mut files, mut count) = (Map::new(), Vec::new(), 0);
        while let Some(part) = parts.next_field().await.map_err(|error| limits.refuse(error))? {
            count += 1;
            if count > limits.parts_max {
                return Err(limits.too_much(format_args!("more than {} parts", limits.parts_max)));
            }
            self.at.flow().spend(PART_WORK)?;
            let Some(field) = part.name().map(ByteString::from) else {
                return Err(malformed(&"a part has no name"));
            };
            match part.file_name().map(safe_name) {
                Some(name) => files.push(self.file(field, name, part).await?),
                None => add(&mut fields, field, text(&self.whole(part).await?)?),
            }
        }
        Ok(Value::map([("fields", Value::Map(fields.into())), ("files", Value::list(files))]))
    }

    /// The next piece of a part, for which the flow is charged.
    async fn piece(&self, part: &mut Part) -> Result<Option<Bytes>, Error> {
        let piece = part.chunk().await.map_err(|error| self.limits.refuse(error))?;
        let len = piece.as_ref().map_or(0, Bytes::len);
        self.at.flow().spend((len / BYTES_PER_UNIT) as u64)?;
        self.at.flow().turn().await;
        Ok(piece)
    }

    /// Reads a whole part.
    async fn whole(&self, mut part: Part) -> Result<Bytes, Error> {
        let mut bytes = BytesMut::new();
        while let Some(piece) = self.piece(&mut part).await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }

    async fn file(&self, field: ByteString, name: String, part: Part) -> Result<Value, Error> {
        let content_type = part.content_type().map(|it| Value::text(it.to_string()));
        let (size, content) = match &self.limits.folder {
            None => {
                let bytes = self.whole(part).await?;
                (bytes.len(), ("bytes", Value::Bytes(bytes)))
            }
            Some(folder) => {
                let path = unused(folder)?;
                let size = self.write(folder, path.clone(), part).await?;
                (size, ("path", Value::text(path.display().to_string())))
            }
        };
        Ok(Value::map([
            ("field", Value::Text(field)),
            ("name", Value::text(name)),
            ("type", content_type.unwrap_or_default()),
            ("size", Value::Integer(size as i64)),
            content,
        ]))
    }

    /// Writes a part into a new file that only its owner can read. Gives its size.
    async fn write(&self, folder: &Path, path: PathBuf, mut part: Part) -> Result<usize, Error> {
        let cannot = |error: io::Error| {
            let full = error.kind() == io::ErrorKind::StorageFull;
            Error::new(format_args!("a file cannot be kept in {}: {error}", folder.display()))
                .with_status(if full { 507 } else { 503 })
        };
        let written = Arc::clone(&self.written);
        let open = move || {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            written.paths.lock().unwrap_or_else(PoisonError::into_inner).push(path);
            Ok(file)
        };
        let mut file = self.at.pool().run_slow(open).await?.map_err(cannot)?;
        let (mut size, mut block) = (0, BytesMut::new());
        loop {
            let piece = self.piece(&mut part).await?;
            let is_last = piece.is_none();
            let piece = piece.unwrap_or_default();
            size += piece.len();
            block.extend_from_slice(&piece);
            if block.len() >= BLOCK_LEN || is_last {
                let bytes = block.split().freeze();
                let write = move || file.write_all(&bytes).map(|()| file);
                file = self.at.pool().run_slow(write).await?.map_err(cannot)?;
            }
            if is_last {
                return Ok(size);
            }
        }
    }
}

/// The path of a file that is not there yet, with a random name.
fn unused(folder: &Path) -> Result<PathBuf, Error> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).map_err(|_| Error::new("no random bytes"))?;
    Ok(folder.join(format!("{:032x}", u128::from_ne_bytes(random))))
}

impl Limits {
    fn refuse(&self, error: Malformed) -> Error {
        match error {
            // The source of the bytes has the better error text.
            Malformed::StreamReadFailed(inner) => match inner.downcast::<Error>() {
                Ok(error) => *error,
                Err(other) => malformed(&other),
            },
            Malformed::FieldSizeExceeded { .. } => {
                self.too_much(format_args!("a part of more than {} bytes", self.part_size_max))
            }
            other => malformed(&other),
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
    Error::new(format_args!("the body is not a form of several parts: {why}")).with_status(400)
}

/// A name of a file without its folders, and without signs that mean something to a shell, a disk
/// or a browser. It has letters, digits, spaces, dots and dashes, and is not a hidden one.
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
