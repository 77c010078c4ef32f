//! Where the time of a flow goes: a span for each flow and for each node that has its packet, for
//! whoever asks. Nobody does as a rule, and then a node costs one look at a word more.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use bytestring::ByteString;
use tracing::level_filters::LevelFilter;
use tracing::{Span, Subscriber, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

/// The environment's word for the file that spans go to.
const FILE: &str = "SINEW_TRACE";

/// What our spans are of; those of libraries are not written.
const TARGET: &str = "sinew";

/// Writes the spans of this process, if its environment names a file: a line of JSON for each as it
/// ends. The lines of all domains go to the end of that file.
///
/// # Errors
/// It cannot be written.
pub(super) fn begin() -> io::Result<()> {
    let Some(file) = open()? else { return Ok(()) };
    tracing::subscriber::set_global_default(subscriber(Arc::new(file)))
        .map_err(|_| io::Error::new(ErrorKind::AlreadyExists, "a bug: spans have a reader already"))
}

/// Whether the file that the environment names for spans, if it does, can be written: known before
/// a domain starts, which would be restarted in vain.
///
/// # Errors
/// It cannot be written.
pub fn try_trace() -> io::Result<()> {
    open().map(drop)
}

fn open() -> io::Result<Option<File>> {
    let Some(path) = env::var_os(FILE).map(PathBuf::from) else { return Ok(None) };
    File::options().append(true).create(true).open(&path).map(Some).map_err(|error| {
        let text =
            format!("{FILE}: cannot write to '{}': {error}; name another file", path.display());
        io::Error::new(error.kind(), text)
    })
}

/// What makes lines of spans.
fn subscriber<W>(writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = layer().json().with_span_events(FmtSpan::CLOSE).with_writer(writer);
    registry().with(Targets::new().with_target(TARGET, LevelFilter::INFO)).with(lines)
}

/// Whether anybody asks; that is known before the first program is made.
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
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_span_is_a_line_with_its_times_and_the_flow_around_it() {
        let lines = Lines::default();
        let writer = lines.clone();
        with_default(subscriber(move || writer.clone()), || {
            assert!(is_on());
            // Other tests see the level too, and whoever meets a span first decides, for all
            // threads, whether anybody wants it: they have no reader here.
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
