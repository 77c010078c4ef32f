//! `file`: reads the records of a file, one packet each, with a checkpoint.

mod checkpoint;
mod keeper;
mod reading;
mod records;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};
use tokio::time::timeout_at;

use self::checkpoint::ElementCounts;
use self::keeper::{Keeper, KeptAt};
use self::reading::{Order, Reading, saved_at};
use self::records::{Known, Manner, Record};
use super::watch::FolderWatch;
use crate::framing::{self, ElementFormat, FilePlace};
use crate::path::for_each::ELEMENT_WORK;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "file",
    doc: "Reads a file and sends each element of it to 'out'. At the end {read, done, rejected} \
          goes to 'done'; without a link it is the reply. It reads only as fast as elements are \
          answered, and never holds the whole file. With a checkpoint, a new run goes on where a \
          killed one was.",
    ports: &[
        input("in", "The packet, for the templates in 'path'."),
        error(),
        output("out", "An element: a text, a row, or the value of a line of JSON."),
        output("done", "{read, done, rejected}, with those before the checkpoint."),
        output(
            "rejected",
            "{file, line, number, error, status} of an element that has failed: its text, the line \
             where it begins, why. Without a link, such an element fails the whole file.",
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
            .doc("Most elements that are under way at once."),
        Parameter::new("line_size_max", ParameterType::Size { min_bytes: 16, max_bytes: 64 << 20 })
            .or("1MiB")
            .doc("Longest line, row or whole file. A longer one fails the whole."),
        Parameter::new("checkpoint", ParameterType::Yaml).or("\"\"").doc(
            "Where the progress is kept, once a second and at the end: a file, relative to the \
             folder of the spec, or an entry {store: NAME, key: expression}. Empty: none.",
        ),
        Parameter::new("follow", ParameterType::Bool).or("false").doc(
            "Whether it waits for more at the end of the file, even if the file is replaced or \
             cut. Then it runs until its flow, its domain or its graph ends.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 2;
const DONE: usize = 3;
const REJECTED: usize = 4;

/// Time between two checkpoints. After a kill at most this much is done again, beside what was
/// under way.
const CHECKPOINT_SPACING: Duration = Duration::from_secs(1);
/// A time far away, used if there is nothing to save.
const FAR: Duration = Duration::from_secs(3600);
/// Time between two lines of the log.
const PROGRESS_SPACING: Duration = Duration::from_secs(5);

struct Files {
    path: Template,
    folder: PathBuf,
    manner: Manner,
    concurrency: usize,
    keeper: Option<Keeper>,
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
    let separator = framing::separator(parameters).map_err(|refusal| vec![refusal])?;
    let format = match parameters.text("as") {
        "whole" => ElementFormat::Whole,
        "csv" => ElementFormat::Csv { has_header: parameters.bool("header"), separator },
        "ndjson" => ElementFormat::Ndjson,
        _ => ElementFormat::Lines,
    };
    let follows = parameters.bool("follow");
    if follows && matches!(format, ElementFormat::Whole) {
        let text = "a file that is followed has no end, so it cannot be one element".to_owned();
        return refuse("follow", text, "write as: lines, or another");
    }
    let size_max = parameters.size("line_size_max") as usize;
    Ok(Box::new(Files {
        path,
        folder: parameters.base.to_owned(),
        manner: Manner { format, size_max, follows },
        concurrency: parameters.integer("concurrency") as usize,
        keeper: Keeper::of(parameters)?,
    }))
}

impl FlowNode for Files {
    fn attach(&mut self, site: &NodeContext) {
        if site.resources.is_trial() {
            // A trial changes no file.
            self.keeper = None;
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.attach(site);
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
        let kept = self.keeper.as_ref().map(|keeper| keeper.find(at, &packet)).transpose()?;
        drop(packet);
        let Some(path) = path.as_text() else {
            let text = format!("the path of a file is a text, this is {}", path.sort());
            return Err(Error::new(text).with_status(400));
        };
        // Watches before the first look, so that no later change is missed.
        let folder = self.folder.join(path).parent().map(Path::to_owned).unwrap_or_default();
        let watch = self.manner.follows.then(|| FolderWatch::new(&folder));
        let order = Order {
            folder: self.folder.clone(),
            path: path.to_owned(),
            is_foreign: self.path.constant().is_none(),
            manner: self.manner,
            saved: match &kept {
                Some(kept) => kept.read(at).await?,
                None => None,
            },
            checkpoint: kept.as_ref().map(KeptAt::to_string),
        };
        let reading = at.pool().run_slow(move || Reading::open(order)).await??;
        let mut journal = Journal::new(at, &reading, kept);
        let has_failed = Cell::new(false);
        let batches = stream::try_unfold(reading, |reading| {
            let (watch, has_failed) = (watch.as_ref(), &has_failed);
            async move {
                let next = more(at, reading, watch, has_failed).await?;
                let batch =
                    |records: Vec<Record>| stream::iter(records.into_iter().map(Ok::<_, Error>));
                Ok(next.map(|(records, reading)| (batch(records), reading)))
            }
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
        // Outcomes come in the order of the file, so everything before the last of them is
        // answered.
        let mut elements = pin!(elements.buffered(self.concurrency));
        let mut errors = Vec::new();
        loop {
            let Ok(next) = timeout_at(journal.due().into(), elements.next()).await else {
                journal.save().await?;
                continue;
            };
            match next {
                None => break,
                Some((_, Outcome::Failed(error))) => errors.push(error),
                Some((Some(place), outcome)) if errors.is_empty() => {
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
        let price = self.manner.format.price(raw.len());
        if let Err(error) = at.flow().spend(ELEMENT_WORK + price) {
            return Outcome::Failed(error);
        }
        let reply = match value {
            // `call` lets other flows have the worker after a slice of time.
            Ok(value) => at.call(OUT, value).await,
            Err(error) => Err(error),
        };
        let Err(error) = reply else { return Outcome::Done };
        // If the flow has no work left, all further elements would fail too.
        if !at.is_linked(REJECTED) || at.flow().work_left() == 0 {
            let text = format!("file '{}', line {number}: {error}", file.name);
            return Outcome::Failed(Error::new(text).with_status(error.status()));
        }
        let name = ("file", Value::text(file.name.clone()));
        let why = framing::rejected(number, &raw, &error);
        let packet = Value::map(std::iter::once(name).chain(why));
        at.call(REJECTED, packet).await.map_or_else(Outcome::Failed, |_| Outcome::Rejected)
    }
}

/// The next records; `None` after the last one. A file that is followed ends as soon as its graph
/// is replaced or the worker stops, or an element has failed.
async fn more(
    at: At<'_>,
    mut reading: Reading,
    watch: Option<&FolderWatch>,
    has_failed: &Cell<bool>,
) -> Result<Option<(Vec<Record>, Reading)>, Error> {
    loop {
        // Checked here too, because new records may come all the time.
        if watch.is_some() && at.is_retired() {
            return Ok(None);
        }
        let read = move || (reading.next(), reading);
        let (records, back) = at.pool().run_slow(read).await?;
        reading = back;
        reading.notes.drain(..).for_each(|note| at.say(format_args!("{note}")));
        let records = records?;
        let Some(watch) = watch.filter(|_| records.is_empty()) else {
            return Ok((!records.is_empty()).then_some((records, reading)));
        };
        tokio::select! {
            biased;
            () = at.retired() => {}
            () = watch.changed() => {}
        }
        if has_failed.get() {
            return Ok(None);
        }
    }
}

/// Keeps how far the file is read: saves it, and tells it to the log.
struct Journal<'a> {
    at: At<'a>,
    names: Arc<[String]>,
    kept: Option<KeptAt>,
    /// `None` before the first element of this flow.
    last: Option<(Arc<Known>, FilePlace)>,
    /// Whether `last` is not saved yet.
    is_new: bool,
    follows: bool,
    counts: ElementCounts,
    saved: Instant,
    told: Instant,
    begun: Instant,
    /// Bytes of all files; of the files that are done; and the byte at which this flow began.
    bytes: u64,
    bytes_before: u64,
    bytes_begun: u64,
}

impl<'a> Journal<'a> {
    fn new(at: At<'a>, reading: &Reading, kept: Option<KeptAt>) -> Journal<'a> {
        let now = Instant::now();
        Journal {
            at,
            names: reading.names.as_slice().into(),
            kept,
            last: None,
            is_new: false,
            follows: reading.order.manner.follows,
            counts: reading.counts,
            saved: now,
            told: now,
            begun: now,
            bytes: reading.bytes,
            bytes_before: reading.bytes_before,
            bytes_begun: reading.bytes_before + reading.begun.offset,
        }
    }

    /// Notes that the next element in the order of the file is answered.
    fn add(&mut self, place: (Arc<Known>, FilePlace), outcome: &Outcome) {
        if let Some((known, last)) = &self.last
            && (known.at, known.inode) != (place.0.at, place.0.inode)
        {
            self.bytes_before += last.offset;
        }
        (self.last, self.is_new) = (Some(place), true);
        self.counts.read += 1;
        match outcome {
            Outcome::Done => self.counts.done += 1,
            Outcome::Rejected | Outcome::Failed(_) => self.counts.rejected += 1,
        }
    }

    /// Saves and logs, if it is time.
    async fn look(&mut self) -> Result<(), Error> {
        if self.told.elapsed() >= PROGRESS_SPACING {
            self.told = Instant::now();
            self.tell();
        }
        if Instant::now() >= self.due() {
            self.save().await?;
        }
        Ok(())
    }

    /// When to save next.
    fn due(&self) -> Instant {
        let has_to = self.is_new && self.kept.is_some();
        if has_to { self.saved + CHECKPOINT_SPACING } else { self.saved + FAR }
    }

    async fn save(&mut self) -> Result<(), Error> {
        self.saved = Instant::now();
        if let (Some(kept), Some((known, place))) = (&self.kept, &self.last)
            && std::mem::take(&mut self.is_new)
        {
            kept.write(self.at, saved_at(&self.names, known, *place, self.counts)).await?;
        }
        Ok(())
    }

    fn tell(&self) {
        let read = self.bytes_before + self.last.as_ref().map_or(0, |(_, place)| place.offset);
        let (done, left) = (read.saturating_sub(self.bytes_begun), self.bytes.saturating_sub(read));
        let left_s = self.begun.elapsed().as_secs_f64() * left as f64 / done.max(1) as f64;
        let ElementCounts { read: elements, rejected, .. } = self.counts;
        if self.follows {
            return self.at.say(format_args!(
                "{read} bytes, {elements} elements, {rejected} rejected; more may come"
            ));
        }
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
