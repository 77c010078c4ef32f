//! `static`: answers with files of a folder, and of nothing else.

mod conditions;
mod folder;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::stream::try_unfold;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value as Json;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, Pool, Step, Stream, Value, error, input,
};
use sinew_spec::item_json;

use self::conditions::{Part, State};
use self::folder::{Found, Opened};
use crate::script::expression::Expression;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "static",
    doc: "Answers GET and HEAD with a file of a folder: its type, tag and date, a part of it if \
          the request asks for a range, 304 if the client has it. For a folder within it the \
          answer is the index file, never a list. No name leads out of the folder, and hidden \
          files are not served. Files are read on threads for what blocks.",
    ports: &[input("in", "A request, or a mapping with 'method', 'path' and 'header'."), error()],
    parameters: &[
        Parameter::new("folder", ParameterType::Path).doc("The folder."),
        Parameter::new("path", ParameterType::Yaml).or("null").doc(
            "An expression over packet: the name of the file in the folder, without escapes, such \
             as packet.params.rest. Default: the path of the request.",
        ),
        Parameter::new("index", ParameterType::Text)
            .or("index.html")
            .doc("The index file: the answer for its folder."),
        Parameter::new("cache_control", ParameterType::Text).or("no-cache").doc(
            "The header 'cache-control'. Default: caches ask each time whether the file has \
             changed.",
        ),
    ],
    ..FLOW
};

/// Largest file that is read at once, in bytes; larger ones are streamed.
const WHOLE_LEN_MAX: u64 = 64 << 10;
/// Bytes that a stream reads at a time, and so the memory that it takes.
const PIECE_LEN: u64 = 128 << 10;

struct Static {
    folder: Arc<PathBuf>,
    path: Option<Expression>,
    index: Arc<str>,
    cache_control: ByteString,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let folder = parameters.path("folder");
    if let Err(why) = folder::check(&folder) {
        let text = format!("{}: {why}", folder.display());
        let help = "name a folder, seen from that of the spec";
        refusals.push(Refusal::new(parameters.span("folder"), text, help));
    }
    let item = parameters.yaml("path");
    let path = match item_json(item) {
        Json::Null => None,
        _ => crate::script::taken(Expression::of(item, &[]), &mut refusals),
    };
    let index = parameters.text("index");
    if !folder::is_name(index) {
        let text = format!("'{index}' is not a name of a file");
        refusals.push(Refusal::new(parameters.span("index"), text, "write index: index.html"));
    }
    let cache_control = parameters.text("cache_control").into();
    match refusals.is_empty() {
        true => Ok(Box::new(Static {
            folder: Arc::new(folder),
            path,
            index: index.into(),
            cache_control,
        })),
        false => Err(refusals),
    }
}

impl FlowNode for Static {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            let made = self.answer(at, &packet).await;
            made.map_or_else(Step::Fail, |answer| Step::Reply(Some(answer)))
        })
    }
}

impl Static {
    async fn answer(&self, at: At<'_>, packet: &Value) -> Result<Value, Error> {
        let method = packet.field("method")?;
        let is_head = match method.as_text() {
            None | Some("GET") => false,
            Some("HEAD") => true,
            Some(other) => {
                return Err(Error::new(format_args!("files can only be read, not '{other}'"))
                    .with_status(405)
                    .with_header("allow", "GET, HEAD"));
            }
        };
        let name = self.name(at, packet)?;
        let Some(relative) = folder::relative(&name) else { return Err(missing(&name)) };
        let (folder, index) = (Arc::clone(&self.folder), Arc::clone(&self.index));
        let opened = at.pool().run_slow(move || folder::open(&folder, &relative, &index)).await?;
        let (found, ending) = match opened {
            Opened::File(found, ending) => (found, ending),
            Opened::Folder => return Ok(redirect(&name)),
            Opened::Nothing => return Err(missing(&name)),
            Opened::Failed(error) => return Err(failed(&name, &error)),
        };
        let headers = packet.field("header")?;
        let state = State::of(
            &found,
            |name| headers.field(name).ok().and_then(|value| value.as_text().map(str::to_owned)),
            is_head,
        );
        let mut header = self.header(&found, &ending);
        let (status, part) = match state {
            State::Unchanged => {
                header.retain(|(name, _)| !["content-type", "accept-ranges"].contains(name));
                return Ok(reply(304, header, Value::Null));
            }
            State::OutOfRange => {
                let range = format!("bytes */{}", found.len);
                let error = Error::new(format_args!("'{name}' has {} bytes", found.len));
                return Err(error.with_status(416).with_header("content-range", range));
            }
            State::Whole => (200, Part { begin: 0, len: found.len }),
            State::Part(part) => {
                let last = part.begin + part.len - 1;
                let range = format!("bytes {}-{last}/{}", part.begin, found.len);
                header.push(("content-range", Value::text(range)));
                (206, part)
            }
        };
        let body = if !is_head && part.len <= WHOLE_LEN_MAX {
            let read = at.pool().run_slow(move || piece(&found.file, part.begin, part.len)).await?;
            Value::Bytes(read.map_err(|error| failed(&name, &error))?)
        } else {
            Value::Stream(stream(at.pool().clone(), found.file, part))
        };
        Ok(reply(status, header, body))
    }

    /// The name of the file, without escapes.
    fn name(&self, at: At<'_>, packet: &Value) -> Result<String, Error> {
        if let Some(path) = &self.path {
            let name = path.evaluate((at.flow(), packet))?;
            let text = name.as_text().map(str::to_owned);
            return text.ok_or_else(|| {
                Error::new(format_args!("the path of a file is a text, this is {}", name.sort()))
            });
        }
        let path = packet.field("path")?;
        let path = path.as_text().unwrap_or_default();
        match percent_decode_str(path).decode_utf8() {
            Ok(name) => Ok(name.into_owned()),
            Err(_) => Err(missing(path)),
        }
    }

    fn header(&self, found: &Found, ending: &str) -> Vec<(&'static str, Value)> {
        let mut header = vec![
            ("content-type", Value::text(content_type(ending))),
            ("etag", Value::text(found.tag.clone())),
            ("accept-ranges", Value::text("bytes")),
            ("x-content-type-options", Value::text("nosniff")),
        ];
        if let Some(modified) = found.modified() {
            header.push(("last-modified", Value::text(httpdate::fmt_http_date(modified))));
        }
        if !self.cache_control.is_empty() {
            header.push(("cache-control", Value::Text(self.cache_control.clone())));
        }
        header
    }
}

fn reply(status: i64, header: Vec<(&'static str, Value)>, body: Value) -> Value {
    let header = Value::map(header);
    Value::map([("status", Value::Integer(status)), ("header", header), ("body", body)])
}

/// The content type of a file, by the end of its name.
fn content_type(ending: &str) -> String {
    let guess = mime_guess::from_ext(ending).first_or_octet_stream();
    let is_text = guess.type_() == mime_guess::mime::TEXT;
    format!("{guess}{}", if is_text { "; charset=utf-8" } else { "" })
}

/// Redirects to a folder whose name was sent without the slash at its end: relative links of its
/// index would be wrong. The location is relative, so it does not depend on what comes before this
/// path.
fn redirect(name: &str) -> Value {
    let last = name.rsplit('/').next().unwrap_or_default();
    let to = format!("./{}/", utf8_percent_encode(last, NON_ALPHANUMERIC));
    reply(308, vec![("location", Value::text(to))], Value::Null)
}

#[cold]
fn missing(name: &str) -> Error {
    Error::new(format_args!("there is no file {name:?}")).with_status(404)
}

#[cold]
fn failed(name: &str, error: &io::Error) -> Error {
    Error::new(format_args!("the file {name:?} cannot be read: {error}")).with_status(503)
}

/// The bytes of a part, which are read from the disk as they are taken.
fn stream(pool: Pool, file: File, part: Part) -> Stream {
    let file = Arc::new(file);
    let parts = try_unfold(part, move |rest| {
        let (pool, file) = (pool.clone(), Arc::clone(&file));
        async move {
            if rest.len == 0 {
                return Ok(None);
            }
            let len = rest.len.min(PIECE_LEN);
            let read = pool.run_slow(move || piece(&file, rest.begin, len)).await?;
            let bytes = read.map_err(Error::new)?;
            Ok(Some((bytes, Part { begin: rest.begin + len, len: rest.len - len })))
        }
    });
    Stream::new(parts).with_len(part.len)
}

/// Reads exactly so many bytes of a file.
fn piece(file: &File, begin: u64, len: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, begin)?;
    Ok(bytes.into())
}

impl Found {
    /// When it was changed last, in whole seconds, as dates of HTTP are.
    fn modified(&self) -> Option<SystemTime> {
        let since = Duration::from_secs(u64::try_from(self.modified_s).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}
