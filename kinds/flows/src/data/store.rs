//! `store`: keeps entries that outlive a flow, for the nodes that name it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_core::catalogue::{Kind, Parameter, ParameterType, ParameterValue};
use sinew_core::clock::now_ns;
use sinew_core::fault::{Cause, Fault};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    At, Error, FLOW, FlowEntry, Make, OpenResource, Pool, Resource, Resources, Value, cbor,
};
use sinew_spec::plan::Node;
use sinew_spec::{Span, suggest};

use super::disk::Disk;
use super::entries::{Act, Asked, Counts, Outcome, StoreLimits, Table, carry_out};
use super::memory::Memory;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Resource(make) };

static INFO: Kind = Kind {
    name: "store",
    doc: "Keeps values by key for the nodes 'state' and 'cache' of its domain that name it, in \
          whichever worker: in memory until the domain ends, or in a file. It has no ports.",
    parameters: &[
        Parameter::new("path", ParameterType::Text).or("\"\"").doc(
            "The file, relative to the folder of the spec; created if missing. An operation is \
             answered after fsync. Empty: in memory.",
        ),
        Parameter::new("entries_max", ParameterType::Integer { min: 1, max: 1_000_000_000 })
            .or("100000")
            .doc("Most entries."),
        Parameter::new("bytes_max", ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 40 })
            .or("64MiB")
            .doc("Most bytes of all keys and values, with 256 for each entry."),
        Parameter::new(
            "value_max",
            ParameterType::Size { min_bytes: 1 << 10, max_bytes: VALUE_MAX },
        )
        .or("1MiB")
        .doc("Longest value, in bytes of CBOR."),
        Parameter::new("full", ParameterType::Choice(&["refuse", "evict"])).or("refuse").doc(
            "When there is no room for an entry: an error with status 507 (refuse), or other \
             entries are removed (evict): in memory the least recently used, on disk the least \
             recently written.",
        ),
    ],
    ..FLOW
};

/// Longest value that a spec may allow. A value is read and written in one piece, which takes about
/// twenty milliseconds at most.
const VALUE_MAX: u64 = 1 << 20;

/// A store as the spec gives it, not open yet.
struct Closed {
    path: Option<PathBuf>,
    limits: StoreLimits,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Resource> {
    let path = Some(parameters.text("path")).filter(|path| !path.is_empty());
    let is_of_several = |path: &str| {
        // The file is the first parameter of the table.
        let has = |node: &Node| matches!(&node.values[0], ParameterValue::Text(it) if it == path);
        stores(parameters).filter(|store| has(store)).count() > 1
    };
    if path.is_some_and(is_of_several) {
        let message = "another store has the same file";
        let help = "give each store a separate file, or use one store for both";
        return Err(vec![Refusal::new(parameters.span("path"), message, help)]);
    }
    Ok(Box::new(Closed {
        path: path.map(|_| parameters.path("path")),
        limits: StoreLimits {
            entries_max: parameters.integer("entries_max").unsigned_abs(),
            bytes_max: parameters.size("bytes_max"),
            value_max: parameters.size("value_max") as usize,
            evicts: parameters.text("full") == "evict",
        },
    }))
}

impl Resource for Closed {
    fn open(self: Box<Self>, name: &str, resources: &Resources) -> Result<OpenResource, Fault> {
        let Closed { path, limits } = *self;
        let place = match path.filter(|_| !resources.is_trial()) {
            None => Place::Memory(resources.share(name, Mutex::<Memory>::default)),
            Some(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                // After an edit, the same file is already open.
                let disk = resources.try_share(&path.to_string_lossy(), || Disk::open(&path));
                let fault = |error: Error| Fault::new(Cause::Error, format_args!("{error}"));
                Place::Disk(disk.map_err(fault)?)
            }
        };
        let counts = resources.share(name, Counts::default);
        Ok(Arc::new(Store { limits, counts, place }))
    }
}

fn stores<'a>(parameters: &Parameters<'a>) -> impl Iterator<Item = &'a Node> + Clone {
    parameters.neighbours().filter(|node| node.kind.name == INFO.name)
}

/// The store that a node names.
///
/// # Errors
/// There is no store of this name.
pub(super) fn named(parameters: &Parameters<'_>) -> Result<String, Refusal> {
    named_at(parameters, parameters.text("store"), parameters.span("store"))
}

/// The same for a store that another parameter names.
///
/// # Errors
/// There is no store of this name.
pub(crate) fn named_at(
    parameters: &Parameters<'_>,
    name: &str,
    span: Span,
) -> Result<String, Refusal> {
    let names = stores(parameters).map(|node| node.name.as_str());
    if names.clone().any(|store| store == name) {
        return Ok(name.to_owned());
    }
    let message = format!("there is no store '{name}' in this domain");
    let help = match names.clone().next() {
        Some(_) => suggest(name, names),
        None => format!("add '- {{kind: store, name: {name}}}'"),
    };
    let follows = parameters.is_left_out(INFO.name, Some(name));
    Err(Refusal::new(span, message, help).following(follows))
}

/// A store that is open.
pub(crate) struct Store {
    limits: StoreLimits,
    pub(super) counts: Arc<Counts>,
    place: Place,
}

enum Place {
    Memory(Arc<Mutex<Memory>>),
    Disk(Arc<Disk>),
}

impl Store {
    /// Longest value, in bytes.
    pub(super) fn value_max(&self) -> usize {
        self.limits.value_max
    }

    /// Carries out an operation: in memory at once, on disk on a thread of the pool.
    ///
    /// # Errors
    /// The error of the operation, of the limits or of the disk.
    pub(super) async fn carry_out(&self, pool: &Pool, asked: Asked) -> Result<Outcome, Error> {
        match &self.place {
            Place::Memory(memory) => {
                let now_ms = now_ns() / 1_000_000;
                carry_out(&mut *lock(memory), &asked, self.limits, now_ms, &self.counts)
            }
            Place::Disk(disk) => disk.carry_out(pool, asked, self.limits, &self.counts).await,
        }
    }

    /// The value of an entry, if there is one.
    ///
    /// # Errors
    /// The error of the disk, or the entry's bytes are not a value.
    pub(crate) async fn get(&self, at: At<'_>, key: &str) -> Result<Option<Value>, Error> {
        let asked = Asked { key: key.into(), act: Act::Get, expire_ms: None };
        match self.carry_out(at.pool(), asked).await? {
            Outcome::Is(bytes) => cbor::value(&bytes).map(Some),
            Outcome::Missing | Outcome::Differs => Ok(None),
        }
    }

    /// Gives an entry a value that does not expire.
    ///
    /// # Errors
    /// The error of the limits or of the disk.
    pub(crate) async fn set(&self, at: At<'_>, key: &str, value: &Value) -> Result<(), Error> {
        let act = Act::Set(cbor::bytes(value, self.value_max())?);
        let asked = Asked { key: key.into(), act, expire_ms: None };
        self.carry_out(at.pool(), asked).await.map(drop)
    }

    /// How much it holds, and its counters.
    pub(super) fn figures(&self) -> Value {
        let totals = match &self.place {
            Place::Memory(memory) => lock(memory).totals(),
            Place::Disk(disk) => disk.totals(),
        };
        // Relaxed: each counter is correct by itself.
        let count = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let Counts { evicted, expired, refused, hits, misses, unkept } = &*self.counts;
        let figures = [
            ("entries", totals.entries),
            ("bytes", totals.bytes),
            ("evicted", count(evicted)),
            ("expired", count(expired)),
            ("refused", count(refused)),
            ("hits", count(hits)),
            ("misses", count(misses)),
            ("unkept", count(unkept)),
        ];
        Value::map(figures.map(|(name, figure)| (name, Value::Integer(figure as i64))))
    }
}

/// A poisoned lock is still good: an operation that panicked has changed nothing, or all it had to.
fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
