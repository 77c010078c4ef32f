//! What a graph creates: message types, and kinds whose ports depend on the graph. Both are kept as
//! long as the program runs, so equal ones are created once.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use sinew_plan::catalogue::{
    Field, Kind, MessageType, Parameter, Port, RunsIn, Scalar, TUNING_PORT, type_hash,
};

/// A port to be created: its name, and everything else.
pub(crate) struct PortRow {
    pub(crate) name: String,
    pub(crate) rest: Port,
}

static KINDS: LazyLock<Mutex<BTreeMap<String, &'static Kind>>> = LazyLock::new(Mutex::default);
static MESSAGES: LazyLock<Mutex<BTreeMap<String, &'static MessageType>>> =
    LazyLock::new(Mutex::default);
static LABELS: LazyLock<Mutex<BTreeMap<String, &'static [&'static str]>>> =
    LazyLock::new(Mutex::default);
static TUNING: LazyLock<Mutex<BTreeMap<&str, &'static Port>>> = LazyLock::new(Mutex::default);

/// The kind `template` with these ports instead of its own.
pub(crate) fn kind(template: &'static Kind, ports: &[PortRow]) -> &'static Kind {
    let row = |PortRow { name, rest }: &PortRow| {
        let Port { direction, message, form, unit, .. } = *rest;
        format!("{name} {direction:?} {:08x} {message:p} {form:?} {unit:?}\n", message.hash)
    };
    let key = ports.iter().map(row).fold(format!("{template:p}\n"), |all, row| all + &row);
    let mut made = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(key).or_insert_with(|| {
        let port = |PortRow { name, rest }: &PortRow| Port { name: name.clone().leak(), ..*rest };
        let ports: Vec<Port> = ports.iter().map(port).collect();
        Box::leak(Box::new(Kind { ports: ports.leak(), ..*template }))
    })
}

/// A field before its offset is known.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) scalar: Scalar,
    pub(crate) count: u32,
    pub(crate) labels: &'static [&'static str],
}

/// Lays fields out as C does: with their offsets, the size and the alignment of the whole.
pub(crate) fn lay_out<'a>(rows: &[Row<'a>]) -> (Vec<(&'a str, Field)>, u64, u32) {
    let (mut fields, mut end, mut align) = (Vec::new(), 0, 1);
    for &Row { name, scalar, count, labels } in rows {
        let bytes = scalar.bytes();
        let offset = u64::next_multiple_of(end, bytes.into());
        (end, align) = (offset + u64::from(bytes * count), u32::max(align, bytes));
        fields.push((name, Field { name: "", scalar, count, offset: offset as u32, labels }));
    }
    (fields, end.next_multiple_of(align.into()), align)
}

/// The words of an enum, kept as long as the program runs.
pub(crate) fn labels(words: &[&str]) -> &'static [&'static str] {
    let mut made = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(words.join(" ")).or_insert_with(|| {
        let word = |word: &&str| -> &'static str { String::leak((*word).to_owned()) };
        words.iter().map(word).collect::<Vec<_>>().leak()
    })
}

/// A message type of this name, size, alignment and fields.
pub(crate) fn message(
    name: &str,
    size: u32,
    align: u32,
    fields: &[(&str, Field)],
) -> &'static MessageType {
    let key = format!("{name} {size} {align} {fields:?}");
    let mut made = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(key).or_insert_with(|| {
        let field = |(name, field): &(&str, Field)| Field {
            name: String::leak((*name).to_owned()),
            ..*field
        };
        let fields: &'static [Field] = fields.iter().map(field).collect::<Vec<_>>().leak();
        let name: &'static str = String::leak(name.to_owned());
        let hash = type_hash(name, size, fields);
        Box::leak(Box::new(MessageType { name, size, align, fields, hash }))
    })
}

/// The port where nodes of a kind are tuned while they run, if they can be tuned.
pub(crate) fn tuning(kind: &'static Kind) -> Option<&'static Port> {
    let rows = kind.parameters.iter().filter(|row| row.tunable);
    let row = |row: &'static Parameter| {
        Some(Row { name: row.name, scalar: row.ty.scalar()?, count: 1, labels: &[] })
    };
    let rows: Vec<Row<'_>> = rows.filter_map(row).collect();
    if rows.is_empty() || kind.runs_in != RunsIn::Realtime {
        return None;
    }
    let (fields, size, align) = lay_out(&rows);
    let message =
        message(&format!("{}_tuning", kind.name.replace('-', "_")), size as u32, align, &fields);
    let mut made = TUNING.lock().unwrap_or_else(PoisonError::into_inner);
    Some(made.entry(kind.name).or_insert_with(|| {
        let doc = "New values of the parameters that may change while the node runs.";
        Box::leak(Box::new(Port::input(TUNING_PORT, doc, message).optional()))
    }))
}
