//! What every part of a run begins with: what the run is, the files of its core, schemas, topics.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sinew_runtime::Watch;
use sinew_runtime::catalogue::{Direction, MessageType, ParameterType, Value};
use sinew_runtime::clock::now_ns;
use sinew_runtime::run::ThreadId;
use sinew_runtime::trace::Tap;
use sinew_spec::plan::{End, Plan};

use super::cycle;
use super::format::{
    ATTACHMENT_BYTES_MAX, Head, SPEC, cycle_topic, schema_name, schema_text, tap_topic,
};
use super::part::{Opening, Topic};

/// How often the two clocks are compared: the closest look counts.
const CLOCK_LOOKS: usize = 16;

/// What the parts of this run begin with, and what is to be said of files that are left out.
pub(super) fn opening(watch: &Watch) -> (Opening, Vec<String>) {
    let (plan, spec) = (watch.plan(), watch.spec());
    let head = Head {
        run: run(watch.secret()),
        part: 0,
        life: 0,
        graph: plan.name.clone(),
        file: spec.file.clone(),
        // Who replays it stands elsewhere; a folder that is gone keeps its name.
        base: spec.base.canonicalize().unwrap_or_else(|_| spec.base.clone()),
        overrides: spec.overrides.clone(),
        cpus: spec.cpus.clone(),
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
    let (mut schemas, mut topics) = (Vec::new(), Vec::new());
    for id in watch.threads() {
        for (at, tap) in watch.taps(id).iter().enumerate() {
            let message = plan.port(tap.end).message;
            let schema = place(&mut schemas, (schema_name(message), schema_text(message)));
            topics.push(tap_row(plan, id, at, tap, message, schema));
        }
        let schema = place(&mut schemas, cycle::schema(plan, id));
        let name = cycle_topic(plan, id);
        topics.push(Topic { name, schema, metadata: thread_rows(plan, id).into() });
    }
    (Opening { head, attachments, schemas, topics }, lines)
}

/// Where a schema stands, which is added if it is not there.
fn place(schemas: &mut Vec<(String, String)>, schema: (String, String)) -> usize {
    schemas.iter().position(|other| *other == schema).unwrap_or_else(|| {
        schemas.push(schema);
        schemas.len() - 1
    })
}

fn thread_rows(plan: &Plan, id: ThreadId) -> [(&'static str, String); 2] {
    [("domain", plan.domains[id.domain].name.clone()), ("thread", id.thread.to_string())]
}

/// The topic of a tap: what it is, in words that a person can read too.
fn tap_row(
    plan: &Plan,
    id: ThreadId,
    at: usize,
    tap: &Tap,
    message: &MessageType,
    schema: usize,
) -> Topic {
    let name = |end: End| format!("{}.{}", plan.nodes[end.node].name, plan.port(end).name);
    let links = plan.links.iter().filter(|link| match tap.direction {
        Direction::In => link.to == tap.end,
        Direction::Out => link.from == tap.end,
    });
    let links = links.map(|link| format!("{} -> {}", name(link.from), name(link.to)));
    let direction = match tap.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let mut metadata = vec![
        ("direction", direction.into()),
        ("links", links.collect::<Vec<_>>().join(", ")),
        ("tap", at.to_string()),
        ("hash", format!("{:08x}", message.hash)),
    ];
    metadata.extend(thread_rows(plan, id));
    Topic { name: tap_topic(plan, tap.end), schema, metadata }
}

/// The files that parameters of the core's nodes name, each once.
fn files(plan: &Plan) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let core = (0..plan.nodes.len()).filter(|&node| !plan.is_service(node));
    for node in core.map(|node| &plan.nodes[node]) {
        for (parameter, value) in node.kind.parameters.iter().zip(&node.values) {
            match (parameter.ty, value) {
                (ParameterType::Path, Value::Text(name)) => files.push(name.clone()),
                (ParameterType::Paths { .. }, Value::Texts(names)) => {
                    files.extend_from_slice(names)
                }
                _ => {}
            }
        }
    }
    files.sort();
    files.dedup();
    files.retain(|name| !name.is_empty());
    files
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would keep us waiting for whoever writes it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(ATTACHMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > ATTACHMENT_BYTES_MAX {
        let mib = ATTACHMENT_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("it has more than {mib} MiB")));
    }
    Ok(bytes)
}

/// Tells runs apart and keeps the secret: half as long, so that every name has very many secrets.
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
