//! Spans as lines of a file, which the environment names.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write, stderr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytestring::ByteString;
use sinew_control::outside;
use tracing::level_filters::LevelFilter;
use tracing::{Span, Subscriber, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

/// The environment variable that names the file for spans.
const FILE: &str = "SINEW_TRACE";

/// The target of our spans; those of libraries are not written.
const TARGET: &str = "sinew";

/// The file of this process, if it writes one.
static SPANS: OnceLock<Arc<Spans<File>>> = OnceLock::new();

/// Where lines go. A line that the file does not take is lost; lost lines are counted and reported.
/// Later lines are tried again, after an empty line.
struct Spans<W>(Mutex<Lines<W>>);

struct Lines<W> {
    file: W,
    lost: u64,
}

/// Writes the spans of this process, if its environment names a file: a line of JSON for each as it
/// ends. The lines of all domains go to the end of that file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn begin() -> io::Result<()> {
    let Some(file) = open()? else { return Ok(()) };
    let spans = SPANS.get_or_init(|| Arc::new(Spans::of(file)));
    tracing::subscriber::set_global_default(subscriber(Arc::clone(spans)))
        .map_err(|_| io::Error::new(ErrorKind::AlreadyExists, "a bug: spans have a reader already"))
}

/// When all flows have ended: says how many lines are missing.
pub(super) fn end() {
    if let Some(spans) = SPANS.get() {
        spans.end();
    }
}

/// The file that the environment names for spans, if it names one.
///
/// # Errors
/// The file cannot be written.
pub(super) fn open() -> io::Result<Option<File>> {
    let Some(path) = env::var_os(FILE).map(PathBuf::from) else { return Ok(None) };
    File::options().append(true).create(true).open(&path).map(Some).map_err(|error| {
        let text =
            format!("{FILE}: cannot write to '{}': {error}; name another file", path.display());
        io::Error::new(error.kind(), text)
    })
}

impl<W> Spans<W> {
    fn of(file: W) -> Spans<W> {
        Spans(Mutex::new(Lines { file, lost: 0 }))
    }

    fn end(&self) {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner).lost;
        if lost > 0 {
            say(format_args!("ends without {lost} spans that could not be written"));
        }
    }
}

impl<W: Write> Write for &Spans<W> {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let (len, line) = (line.len(), &*outside::hide_in(line));
        // A poisoned lock is still good: a count is never left half changed.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_after_gap = lines.lost > 0;
        let gap = if is_after_gap { &b"\n"[..] } else { &[] };
        match lines.file.write_all(gap).and_then(|()| lines.file.write_all(line)) {
            Ok(()) if is_after_gap => {
                let lost = std::mem::take(&mut lines.lost);
                say(format_args!("is written again; {lost} spans are not in it"));
            }
            Ok(()) => {}
            Err(error) => {
                if !is_after_gap {
                    say(format_args!(
                        "cannot be written: {error}; writing goes on when it is possible again"
                    ));
                }
                lines.lost += 1;
            }
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn say(what: fmt::Arguments<'_>) {
    // If standard error is closed, there is nobody to tell.
    let _ = writeln!(stderr(), "the file of {FILE} {what}");
}

/// Makes lines of spans.
fn subscriber<W>(writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = layer().json().with_span_events(FmtSpan::CLOSE).with_writer(writer);
    registry().with(Targets::new().with_target(TARGET, LevelFilter::INFO)).with(lines)
}

/// Whether there is a file; that is known before the first program is made.
pub(super) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// A flow that the source `source` begins.
pub(super) fn flow(id: u64, source: &ByteString) -> Span {
    info_span!(target: TARGET, parent: None, "flow", id, source = &**source)
}

/// A flow that the node `by` of the flow `parent` forks.
pub(super) fn child(id: u64, by: &ByteString, parent: u64) -> Span {
    info_span!(target: TARGET, parent: None, "flow", id, by = &**by, parent)
}

/// A node that has the packet of the flow whose span this thread is in.
pub(super) fn node(name: &ByteString) -> Span {
    info_span!(target: TARGET, "node", node = &**name)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::Value;
    use tracing::subscriber::with_default;

    use super::*;

    /// Where lines go in a test.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A writer that takes a line, then nothing, then everything.
    #[derive(Default)]
    struct Full {
        asked: usize,
        taken: Vec<u8>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked += 1;
            match self.asked {
                2..=3 => Err(ErrorKind::StorageFull.into()),
                _ => self.taken.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn spans_that_a_full_disk_does_not_take_are_counted_and_it_goes_on() {
        let spans = Spans::of(Full::default());
        let lost = || spans.0.lock().expect("no panic").lost;
        let mut write = |line: &str| (&spans).write_all(line.as_bytes()).expect("it is taken");
        ["a\n", "b\n", "c\n"].into_iter().for_each(&mut write);
        assert_eq!(lost(), 2);
        write("d\n");
        assert_eq!(lost(), 0);
        assert_eq!(spans.0.lock().expect("no panic").file.taken, b"a\n\nd\n");
    }

    #[test]
    fn a_span_is_a_line_with_its_times_and_the_flow_around_it() {
        let lines = Kept::default();
        let writer = lines.clone();
        with_default(subscriber(move || writer.clone()), || {
            assert!(is_on());
            // Other tests see the level too. The thread that meets a span first decides, for all
            // threads, whether anybody wants it, and the threads of other tests have no reader.
            drop((flow(0, &"".into()), node(&"".into())));
            tracing::callsite::rebuild_interest_cache();
            lines.0.lock().expect("no panic").clear();
            let flow = flow(7, &"listener".into());
            flow.in_scope(|| node(&"pong".into()).in_scope(|| ()));
            drop(info_span!(target: "hyper", "not ours").entered());
        });
        let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [node, flow] = lines.as_slice() else { panic!("two spans: {text}") };
        let names = (&node["span"]["name"], &flow["span"]["name"]);
        assert_eq!(names, (&"node".into(), &"flow".into()));
        assert_eq!((&node["span"]["node"], &node["spans"][0]["id"]), (&"pong".into(), &7.into()));
        assert!(node["fields"]["time.busy"].is_string(), "{text}");
    }
}
