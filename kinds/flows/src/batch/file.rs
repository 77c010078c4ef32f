//! `file`: the records of a file, each by itself, with a checkpoint.

mod checkpoint;
mod reading;
mod records;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::future::ready;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use self::checkpoint::ElementCounts;
use self::reading::{Order, Reading, saved_at};
use self::records::{FilePlace, Format, Known, Record};
use crate::path::for_each::ELEMENT_WORK;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "file",
    doc: "Reads a file and sends each element of it to 'out'. {read, done, rejected} goes to \
          'done', and where that leads nowhere it is the reply. It reads no further ahead than its \
          elements are answered, and never holds the file. With a checkpoint, a run that was \
          killed goes on where the last one was.",
    ports: &[
        input("in", "The packet, of which 'path' is made."),
        error(),
        output("out", "An element: a text, a row, or what a line of JSON says."),
        output("done", "{read, done, rejected}, with those before the checkpoint."),
        output(
            "rejected",
            "{file, line, number, error, status} of an element that has failed: its text, the \
             line where it begins, why. Where it leads nowhere, such an element fails the whole.",
        ),
    ],
    parameters: &[
        Parameter::new("path", ParameterType::Yaml).doc(
            "The file, or a pattern such as data/*.csv, relative to the folder of the spec: a \
             text with templates in it. Files are read one after the other, by name.",
        ),
        Parameter::new("as", ParameterType::Choice(&["whole", "lines", "csv", "ndjson"]))
            .or("lines")
            .doc("What an element is: the file, a line, a row, a JSON text in a line."),
        Parameter::new("header", ParameterType::Bool).or("true").doc(
            "Whether CSV begins with the names of its columns: a row is a mapping then, else a \
             list.",
        ),
        Parameter::new("separator", ParameterType::Text)
            .or("','")
            .doc("What stands between two fields of CSV: one character of ASCII."),
        Parameter::new("concurrency", ParameterType::Integer { min: 1, max: 1024 })
            .or("1")
            .doc("So many elements are under way at once."),
        Parameter::new("line_size_max", ParameterType::Size { min_bytes: 16, max_bytes: 64 << 20 })
            .or("1MiB")
            .doc("Longest line, row or whole file. A longer one fails the whole."),
        Parameter::new("checkpoint", ParameterType::Text).or("\"\"").doc(
            "A file, relative to the folder of the spec, that says once a second how far it is, \
             and at the end that it is done. Empty: none.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 2;
const DONE: usize = 3;
const REJECTED: usize = 4;

/// Between two checkpoints: so much is done again at most after a kill, beside what was under way.
const CHECKPOINT_SPACING: Duration = Duration::from_secs(1);
/// Between two lines of the log.
const PROGRESS_SPACING: Duration = Duration::from_secs(5);
/// Bytes that are decoded for one unit of work, and bytes of text that only come.
const BYTES_PER_UNIT: u64 = 4;
const TEXT_BYTES_PER_UNIT: u64 = 1024;

struct Files {
    path: Template,
    folder: PathBuf,
    format: Format,
    concurrency: usize,
    size_max: usize,
    checkpoint: Option<PathBuf>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let path = Template::compile(parameters.yaml("path"))?;
    let refuse = |name, message: String, help: &str| {
        Err(vec![Refusal::new(parameters.span(name), message, help)])
    };
    if let Some(path) = path.constant()
        && path.as_text().is_none_or(str::is_empty)
    {
        let text = format!("the path of a file is a text, this is {}", path.sort());
        return refuse("path", text, "write path: data/users.csv");
    }
    let separator = match *parameters.text("separator").as_bytes() {
        [separator] if !matches!(separator, b'"' | b'\n' | b'\r' | 128..) => separator,
        _ => {
            let text = "a separator is one character of ASCII, and no quote".to_owned();
            return refuse("separator", text, "write separator: ';', or \"\\t\"");
        }
    };
    let format = match parameters.text("as") {
        "whole" => Format::Whole,
        "csv" => Format::Csv { has_header: parameters.bool("header"), separator },
        "ndjson" => Format::Ndjson,
        _ => Format::Lines,
    };
    let checkpoint = Some(parameters.text("checkpoint")).filter(|path| !path.is_empty());
    Ok(Box::new(Files {
        path,
        folder: parameters.base.to_owned(),
        format,
        concurrency: parameters.integer("concurrency") as usize,
        size_max: parameters.size("line_size_max") as usize,
        checkpoint: checkpoint.map(|_| parameters.path("checkpoint")),
    }))
}

impl FlowNode for Files {
    fn attach(&mut self, site: &NodeContext) {
        if site.resources.is_trial() {
            // A test changes no file.
            self.checkpoint = None;
        }
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move { Step::pass(DONE, self.carry_out(at, packet).await) })
    }
}

/// What became of an element.
enum Outcome {
    Done,
    Rejected,
    Failed(Error),
}

impl Files {
    async fn carry_out(&self, at: At<'_>, packet: Value) -> Result<Value, Error> {
        let path = self.path.render(at.flow(), &packet).await?;
        drop(packet);
        let Some(path) = path.as_text() else {
            let text = format!("the path of a file is a text, this is {}", path.sort());
            return Err(Error::new(text).with_status(400));
        };
        let order = Order {
            folder: self.folder.clone(),
            path: path.to_owned(),
            is_foreign: self.path.constant().is_none(),
            format: self.format,
            size_max: self.size_max,
            checkpoint: self.checkpoint.clone(),
        };
        let reading = at.pool().run_slow(move || Reading::open(order)).await??;
        let mut journal = Journal::new(at, &reading, self.checkpoint.clone());
        let has_failed = Cell::new(false);
        let batches = stream::try_unfold(reading, |mut reading| async {
            let read = move || (reading.next(), reading);
            let (records, reading) = at.pool().run_slow(read).await?;
            let records = records?;
            let is_over = records.is_empty();
            let batch = stream::iter(records.into_iter().map(Ok::<_, Error>));
            Ok((!is_over).then_some((batch, reading)))
        });
        let records = batches.try_flatten().take_while(|_| ready(!has_failed.get()));
        let elements = records.map(async |record| {
            let (place, outcome) = match record {
                Ok(record) => {
                    let place = (Arc::clone(&record.file), record.next);
                    (Some(place), self.element(at, record).await)
                }
                Err(error) => (None, Outcome::Failed(error)),
            };
            has_failed.set(has_failed.get() || matches!(outcome, Outcome::Failed(_)));
            (place, outcome)
        });
        // In the order of the file: what lies before the last of them is answered.
        let mut elements = pin!(elements.buffered(self.concurrency));
        let mut errors = Vec::new();
        while let Some((place, outcome)) = elements.next().await {
            match (place, outcome) {
                (_, Outcome::Failed(error)) => errors.push(error),
                (Some(place), outcome) if errors.is_empty() => {
                    journal.add(place, &outcome);
                    journal.look().await?;
                }
                _ => {}
            }
        }
        journal.save().await?;
        if errors.is_empty() { Ok(journal.reply()) } else { Err(Error::joined(errors)) }
    }

    async fn element(&self, at: At<'_>, record: Record) -> Outcome {
        let Record { file, number, raw, value, .. } = record;
        let bytes_per_unit = match self.format {
            Format::Csv { .. } | Format::Ndjson => BYTES_PER_UNIT,
            Format::Whole | Format::Lines => TEXT_BYTES_PER_UNIT,
        };
        if let Err(error) = at.flow().spend(ELEMENT_WORK + raw.len() as u64 / bytes_per_unit) {
            return Outcome::Failed(error);
        }
        let reply = match value {
            // It lets others have the worker when its flow has had it for long enough.
            Ok(value) => at.call(OUT, value).await,
            Err(error) => Err(error),
        };
        let Err(error) = reply else { return Outcome::Done };
        // Without work left all others would fail, too.
        if !at.is_linked(REJECTED) || at.flow().work_left() == 0 {
            let text = format!("file '{}', line {number}: {error}", file.name);
            return Outcome::Failed(Error::new(text).with_status(error.status()));
        }
        let packet = Value::map([
            ("file", Value::text(file.name.clone())),
            ("line", Value::text(String::from_utf8_lossy(&raw).into_owned())),
            ("number", Value::Integer(number as i64)),
            ("error", Value::text(error.to_string())),
            ("status", Value::Integer(error.status().into())),
        ]);
        at.call(REJECTED, packet).await.map_or_else(Outcome::Failed, |_| Outcome::Rejected)
    }
}

/// How far it is, on the disk and in the log.
struct Journal<'a> {
    at: At<'a>,
    names: Arc<[String]>,
    path: Option<PathBuf>,
    /// `None` before the first element of this flow.
    last: Option<(Arc<Known>, FilePlace)>,
    counts: ElementCounts,
    saved: Instant,
    told: Instant,
    begun: Instant,
    /// Bytes of all files; of those that are done; and where this flow began.
    bytes: u64,
    bytes_before: u64,
    bytes_begun: u64,
}

impl<'a> Journal<'a> {
    fn new(at: At<'a>, reading: &Reading, path: Option<PathBuf>) -> Journal<'a> {
        let now = Instant::now();
        Journal {
            at,
            names: reading.names().into(),
            path,
            last: None,
            counts: reading.counts,
            saved: now,
            told: now,
            begun: now,
            bytes: reading.bytes,
            bytes_before: reading.bytes_before,
            bytes_begun: reading.bytes_before + reading.begun.offset,
        }
    }

    /// An element, the next in the order of the file, is answered.
    fn add(&mut self, place: (Arc<Known>, FilePlace), outcome: &Outcome) {
        if let Some((known, last)) = &self.last
            && known.at != place.0.at
        {
            self.bytes_before += last.offset;
        }
        self.last = Some(place);
        self.counts.read += 1;
        match outcome {
            Outcome::Done => self.counts.done += 1,
            Outcome::Rejected | Outcome::Failed(_) => self.counts.rejected += 1,
        }
    }

    /// Saves and tells, if it is time.
    async fn look(&mut self) -> Result<(), Error> {
        if self.told.elapsed() >= PROGRESS_SPACING {
            self.told = Instant::now();
            self.tell();
        }
        if self.path.is_some() && self.saved.elapsed() >= CHECKPOINT_SPACING {
            self.save().await?;
        }
        Ok(())
    }

    async fn save(&mut self) -> Result<(), Error> {
        let Some((path, (known, place))) = self.path.clone().zip(self.last.clone()) else {
            return Ok(());
        };
        let saved = saved_at(&self.names, &known, place, self.counts);
        self.at.pool().run_slow(move || saved.write(&path)).await??;
        self.saved = Instant::now();
        Ok(())
    }

    fn tell(&self) {
        let read = self.bytes_before + self.last.as_ref().map_or(0, |(_, place)| place.offset);
        let (done, left) = (read.saturating_sub(self.bytes_begun), self.bytes.saturating_sub(read));
        let left_s = self.begun.elapsed().as_secs_f64() * left as f64 / done.max(1) as f64;
        let ElementCounts { read: elements, rejected, .. } = self.counts;
        self.at.say(format_args!(
            "{read} of {} bytes, {elements} elements, {rejected} rejected; {left_s:.0} s left",
            self.bytes
        ));
    }

    fn reply(&self) -> Value {
        let ElementCounts { read, done, rejected } = self.counts;
        let counts = [("read", read), ("done", done), ("rejected", rejected)];
        Value::map(counts.map(|(name, count)| (name, Value::Integer(count as i64))))
    }
}
