//! `append`: lines at the end of a file, from all workers through one writer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Pool, Step, Value, error, input,
    output,
};
use tokio::sync::oneshot;

use crate::framing::write;
use crate::json;
use crate::script::refused_for_now;
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "append",
    doc: "Writes a line at the end of a file and passes the packet on. All workers and all nodes \
          with the same file write through one writer, in the order in which packets come. A line \
          is written whole or not at all: if the disk fails, the node fails and removes the part.",
    ports: &[input("in", "The packet."), error(), output("out", "The same packet.")],
    parameters: &[
        Parameter::new("path", ParameterType::Path)
            .doc("The file; created if missing. Its folder must exist."),
        Parameter::new("value", ParameterType::Yaml)
            .or("'{{ packet }}'")
            .doc("What is written, as a template."),
        Parameter::new("as", ParameterType::Choice(&["ndjson", "text", "csv"])).or("ndjson").doc(
            "Form of the line: JSON; a text without line breaks; or the values of a list or a \
             mapping as a row of CSV (RFC 4180).",
        ),
        Parameter::new("sync", ParameterType::Bool).or("false").doc(
            "Whether the answer waits for fsync. With it the line survives a power cut; without it \
             an answered line survives a kill of the process.",
        ),
    ],
    ..FLOW
};

const OUT: usize = 2;

/// Most lines that wait for a writer, and most bytes of these; one more fails with 503.
const WAITING_MAX: usize = 4096;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Longest line, in bytes.
const LINE_LEN_MAX: usize = 16 << 20;

#[derive(Clone, Copy)]
enum Format {
    Ndjson,
    Text,
    Csv,
}

struct Append {
    path: PathBuf,
    value: Template,
    format: Format,
    syncs: bool,
    /// `None` in a test, which changes no file.
    writer: Option<Arc<Writer>>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let value = Template::compile(parameters.yaml("value"))?;
    let path = parameters.path("path");
    if path.is_dir() || parameters.text("path").is_empty() {
        let text = format!("{} is a folder", path.display());
        let help = "name a file in it, such as rejects.ndjson";
        return Err(vec![Refusal::new(parameters.span("path"), text, help)]);
    }
    let format = match parameters.text("as") {
        "text" => Format::Text,
        "csv" => Format::Csv,
        _ => Format::Ndjson,
    };
    Ok(Box::new(Append { path, value, format, syncs: parameters.bool("sync"), writer: None }))
}

impl FlowNode for Append {
    fn attach(&mut self, site: &NodeContext) {
        if site.resources.is_trial() {
            return;
        }
        let path = absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let make = || Writer { path: path.clone(), file: Mutex::default(), line: Mutex::default() };
        self.writer = Some(site.resources.share(&path.to_string_lossy(), make));
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            let written = self.write(at, &packet).await;
            Step::pass(OUT, written.map(|()| packet))
        })
    }
}

impl Append {
    async fn write(&self, at: At<'_>, packet: &Value) -> Result<(), Error> {
        let value = self.value.render(at.flow(), packet).await?;
        let mut line = match self.format {
            Format::Ndjson => json::write(at.flow(), &value).await?,
            Format::Text => write::line(at.flow(), &value).await?,
            Format::Csv => write::row(at.flow(), &value).await?,
        };
        if line.len() > LINE_LEN_MAX {
            let text = format!("a line of {} bytes, at most {LINE_LEN_MAX}", line.len());
            return Err(Error::new(text).with_status(413));
        }
        line.push(b'\n');
        match &self.writer {
            Some(writer) => writer.write(at.pool(), line, self.syncs).await,
            None => Ok(()),
        }
    }
}

/// The only writer of a file, and the lines that wait for it.
struct Writer {
    path: PathBuf,
    /// `None` before the first line, and after a failure.
    file: Mutex<Option<File>>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    jobs: Vec<Job>,
    bytes: usize,
    /// A piece of work in the pool will write these lines.
    is_served: bool,
}

struct Job {
    bytes: Vec<u8>,
    syncs: bool,
    answer: oneshot::Sender<Result<(), Error>>,
}

impl Writer {
    async fn write(
        self: &Arc<Writer>,
        pool: &Pool,
        bytes: Vec<u8>,
        syncs: bool,
    ) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut line = lock(&self.line);
            let waiting = line.bytes + bytes.len();
            if line.jobs.len() >= WAITING_MAX || waiting > WAITING_BYTES_MAX {
                let what = "too many lines wait for the disk; try again";
                return Err(refused_for_now(503, what, 1));
            }
            line.bytes = waiting;
            line.jobs.push(Job { bytes, syncs, answer });
            !std::mem::replace(&mut line.is_served, true)
        };
        if is_first {
            self.serve(pool);
        }
        answered.await.unwrap_or_else(|_| Err(Error::new("the writer's thread has failed")))
    }

    /// Lets a thread write the waiting lines, until none waits.
    fn serve(self: &Arc<Writer>, pool: &Pool) {
        let (writer, again) = (Arc::clone(self), pool.clone());
        let work = move || {
            let jobs = writer.next(false);
            if !jobs.is_empty() {
                writer.answer(jobs);
                writer.serve(&again);
            }
        };
        // One poll puts the work into the pool's queue; nobody waits for its end.
        if let Some(Err(error)) = pool.run(work).now_or_never() {
            for job in self.next(true) {
                let _ = job.answer.send(Err(error.clone()));
            }
        }
    }

    /// Takes the waiting lines. If there are none, or if these are the last, the work that serves
    /// them ends.
    fn next(&self, are_last: bool) -> Vec<Job> {
        let mut line = lock(&self.line);
        let jobs = std::mem::take(&mut line.jobs);
        line.bytes = 0;
        line.is_served = !jobs.is_empty() && !are_last;
        jobs
    }

    fn answer(&self, jobs: Vec<Job>) {
        // Lines of flows that were cancelled while they waited are left out.
        let jobs: Vec<Job> = jobs.into_iter().filter(|job| !job.answer.is_closed()).collect();
        let done = self.put(&jobs).map_err(|error| {
            let path = self.path.display();
            let text = format!("cannot write to '{path}', nothing of it is there: {error}");
            Error::new(text).with_status(507)
        });
        for job in jobs {
            // An error means that the flow was cancelled.
            let _ = job.answer.send(done.clone());
        }
    }

    /// Writes all, or nothing.
    fn put(&self, jobs: &[Job]) -> io::Result<()> {
        let mut place = lock(&self.file);
        let mut file = match place.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        let len = file.metadata()?.len();
        let bytes: Vec<u8> = jobs.iter().map(|job| &*job.bytes).collect::<Vec<_>>().concat();
        let mut write = || {
            file.write_all(&bytes)?;
            if jobs.iter().any(|job| job.syncs) { file.sync_data() } else { Ok(()) }
        };
        if let Err(error) = write() {
            // Half a line would spoil the next one. If this fails too, the next `open` ends that
            // line.
            let _ = file.set_len(len);
            return Err(error);
        }
        *place = Some(file);
        Ok(())
    }
}

/// Opens a file to write at its end. A last line that a kill has cut off is ended first.
fn open(path: &Path) -> io::Result<File> {
    let mut file = File::options().read(true).append(true).create(true).mode(0o600).open(path)?;
    let len = file.metadata()?.len();
    if len > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(len - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// A poisoned lock is still good: a panic under it leaves nothing half done.
fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::future::join_all;
    use sinew_flow::{FlowFixture, Resources};
    use tempfile::tempdir;

    use super::*;
    use crate::testing::{LIMIT, plan, refusals, run, table};

    fn fixture(folder: &Path, parameters: &str) -> FlowFixture {
        let text = format!(
            "- {{kind: begin, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n\
             - {{kind: append, name: a, {parameters}}}"
        );
        // Resources as in a run, because 'sinew test' changes no file.
        let resources = Resources::default();
        let made = FlowFixture::with_sites(&plan(&text), &table(), folder, |_, site| {
            site.resources = resources.clone();
        });
        made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
    }

    /// The content of the file `out` after these packets, or the first error's status.
    fn written(parameters: &str, packets: &[Value]) -> Result<String, u16> {
        let folder = tempdir().expect("a folder");
        let path = folder.path().join("out");
        fs::write(&path, "cut").expect("a file");
        let fixture = fixture(folder.path(), &format!("path: out, {parameters}"));
        let open = |packet: &Value| fixture.open("begin", 0, packet.clone(), LIMIT);
        for (reply, packet) in run(join_all(packets.iter().map(open))).into_iter().zip(packets) {
            let passed = reply.map_err(|error| error.status())?.expect("the packet");
            assert_eq!(passed.to_json(), packet.to_json());
        }
        Ok(fs::read_to_string(&path).expect("a file"))
    }

    #[test]
    fn lines_stand_in_order_after_one_that_was_cut_off() {
        let packets: Vec<Value> = (0..100).map(Value::Integer).collect();
        let expected: String = (0..100).map(|at| format!("{at}\n")).collect();
        for parameters in ["sync: true", "as: text", "as: csv, value: ['{{ packet }}']"] {
            assert_eq!(written(parameters, &packets), Ok(format!("cut\n{expected}")));
        }
    }

    #[test]
    fn a_row_reads_back_as_what_was_written() {
        let fields = ["a,b", "say \"x\"", "two\r\nlines", "", "plain"];
        let rows = [Value::list(fields.map(Value::text)), Value::list([Value::text("")])];
        let text = written("as: csv", &rows).expect("rows");
        // Checked with a reader that is not ours.
        let text = text.strip_prefix("cut\n").expect("the line that was cut off");
        let mut reader = csv_core::Reader::new();
        let (mut bytes, mut ends) = ([0; 200], [0; 10]);
        let (_, read, _, count) = reader.read_record(text.as_bytes(), &mut bytes, &mut ends);
        let begins = [0].into_iter().chain(ends);
        let found: Vec<_> =
            begins.zip(ends).take(count).map(|(begin, end)| &bytes[begin..end]).collect();
        assert_eq!(found, fields.map(str::as_bytes));
        assert_eq!(&text[read..], "\"\"\n");
    }

    #[test]
    fn what_is_no_line_is_refused() {
        assert_eq!(written("as: text", &[Value::text("a\nb")]), Err(400));
        assert_eq!(written("as: csv", &[Value::Integer(1)]), Err(400));
        let refusals = refusals("- {kind: append, name: a, path: .}");
        assert!(refusals[0].message.contains("is a folder"), "{refusals:?}");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let fixture = fixture(Path::new("/dev"), "path: full");
        let error = run(fixture.open("begin", 0, Value::Null, LIMIT)).expect_err("it is full");
        assert!(error.status() == 507 && error.text().contains("No space left"), "{error}");
    }
}
