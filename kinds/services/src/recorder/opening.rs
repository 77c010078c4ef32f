//! The beginning of every part of a run: what the run is, the files of its core, schemas, topics.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sinew_core::clock::now_ns;
use sinew_recording::format::{ATTACHMENT_BYTES_MAX, PartHead, SPEC};
use sinew_recording::topics::{clock_topics, event_topic, files, topics};
use sinew_recording::writer::Opening;
use sinew_runtime::Watch;

/// How often the two clocks are compared; the closest pair counts.
const CLOCK_LOOKS: usize = 16;

/// The beginning of the parts of this run, and lines about files that are left out.
pub(super) fn opening(watch: &Watch) -> (Opening, Vec<String>) {
    let (plan, spec) = (watch.plan(), watch.spec());
    let head = PartHead {
        run: run(watch.secret()),
        part: 0,
        life: 0,
        graph: plan.name.clone(),
        file: spec.file.clone(),
        part_of: spec.host.clone(),
        // The absolute path, because a replay runs elsewhere; a folder that no longer exists keeps
        // its name.
        base: spec.base.canonicalize().unwrap_or_else(|_| spec.base.clone()),
        overrides: spec.overrides.clone(),
        images: spec.images.clone(),
        cpus: spec.machine.cpus.clone(),
        clock_offset_ns: clock_offset_ns(),
        host: host(),
    };
    let mut attachments = vec![(SPEC.to_owned(), spec.text.clone().into_bytes())];
    let mut lines = Vec::new();
    for name in files(plan) {
        match read(&spec.base.join(&name)) {
            Ok(bytes) => attachments.push((name, bytes)),
            Err(error) => lines.push(format!(
                "leaves '{name}' out of the recording: {error}; to replay it elsewhere, take the \
                 file along"
            )),
        }
    }
    let of_core = topics(plan).into_iter().map(|topic| topic.head);
    let topics = of_core.chain(clock_topics(plan)).chain([event_topic()]).collect();
    (Opening { head, attachments, topics }, lines)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would block until something is written to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(ATTACHMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > ATTACHMENT_BYTES_MAX {
        let mib = ATTACHMENT_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("it has more than {mib} MiB")));
    }
    Ok(bytes)
}

/// Identifies the run without revealing the secret: it has half its length, so that very many
/// secrets give the same name.
fn run(secret: &str) -> String {
    let mut hasher = DefaultHasher::new();
    secret.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What to add to a monotonic time to get nanoseconds since 1970.
fn clock_offset_ns() -> i64 {
    let look = || {
        let before_ns = now_ns();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let took_ns = now_ns() - before_ns;
        (took_ns, unix.as_nanos() as i64 - (before_ns + took_ns / 2) as i64)
    };
    let closest = (0..CLOCK_LOOKS).map(|_| look()).min();
    closest.expect("there are looks").1
}

fn host() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname");
    host.map_or_else(|_| "unknown".into(), |host| host.trim().into())
}
