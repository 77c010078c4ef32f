//! The images of guests: those that a spec names, and the kinds that each brings.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use sinew_carve_out::image::{self, ImageField, ImageKind, ImageParameter, ImagePort};
use sinew_plan::catalogue::{
    Direction, Field, Kind, MessageType, Parameter, ParameterType, Port, RunsIn, type_hash,
};
use sinew_plan::plan::{Board, Guest};
use sinew_plan::{Data, GuestImage, Item};

use crate::diagnostic::Report;
use crate::yaml;

/// Tables of kinds that were read, and the kinds made from them. A kind is kept as long as the
/// program runs, so the kinds of a table are made only once.
static READ: LazyLock<Mutex<BTreeMap<Vec<u8>, &'static [&'static Kind]>>> =
    LazyLock::new(Mutex::default);

/// The images that a spec names and what they run on, each once; the caller of the compiler must
/// read them first. Empty for a text that is not a spec.
pub fn images_of(text: &str) -> Vec<(String, Board)> {
    if !text.contains("guest") {
        return Vec::new();
    }
    let Some(root) = yaml::parse(text, 0, &Report::default()) else { return Vec::new() };
    let Some(Item { data: Data::Map(domains), .. }) = root.get("domains") else {
        return Vec::new();
    };
    let word = |item: Option<&Item>| match item.map(|item| &item.data) {
        Some(Data::Scalar { text, .. }) => Some(text.clone()),
        _ => None,
    };
    let mut images = Vec::new();
    for guest in domains.iter().filter_map(|entry| entry.value.get("guest")) {
        let board = word(guest.get("board"));
        let board = Board::ALL.iter().find(|(_, word)| board.as_deref() == Some(word));
        let board = board.map_or(Board::Virt, |(board, _)| *board);
        let found = word(guest.get("image")).map(|image| (image, board));
        images.extend(found.filter(|found| !images.contains(found)));
    }
    images
}

/// The kinds of an image's table.
///
/// # Errors
/// What is wrong with it, in words.
pub fn kinds(table: &[u8]) -> Result<&'static [&'static Kind], String> {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kinds) = read.get(table) {
        return Ok(kinds);
    }
    let records = image::records(table).map_err(|error| error.to_string())?;
    let kinds: Vec<&'static Kind> =
        records.map(|record| kind(record).map(leak)).collect::<Result<_, _>>()?;
    let kinds: &'static [&'static Kind] = kinds.leak();
    read.insert(table.to_vec(), kinds);
    Ok(kinds)
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn text(text: &str) -> &'static str {
    leak(text.to_owned()).as_str()
}

fn kind(record: ImageKind<'_>) -> Result<Kind, String> {
    let ports = record.ports().map(|row| port(record, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Kind {
        name: text(record.name()),
        runs_in: RunsIn::Guest,
        doc: text(record.doc()),
        ports: ports.leak(),
        parameters: record.parameters().map(parameter).collect::<Vec<_>>().leak(),
        signals: &[],
    })
}

fn port(kind: ImageKind<'_>, row: ImagePort<'_>) -> Result<Port, String> {
    let field = |field: ImageField<'_>| {
        let (name, scalar) = (text(field.name), field.scalar);
        let (count, offset) = (field.count, field.offset);
        Field { name, scalar, count, offset, labels: &[] }
    };
    let fields: &'static [Field] = row.fields().map(field).collect::<Vec<_>>().leak();
    let (name, size, hash) = (text(row.message()), row.size(), row.hash());
    let counted = type_hash(name, size, fields);
    // C writes no hash.
    if hash != 0 && counted != hash {
        return Err(format!(
            "message {name} of port '{}' of its kind '{}' has hash {hash:#010x}, but its fields \
             give {counted:#010x}",
            row.name(),
            kind.name()
        ));
    }
    let message = leak(MessageType { name, size, align: row.align(), fields, hash: counted });
    let direction = if row.writes() { Direction::Out } else { Direction::In };
    let (name, doc, optional) = (text(row.name()), text(row.doc()), row.is_optional());
    Ok(Port { direction, optional, ..Port::input(name, doc, message) })
}

fn parameter(row: ImageParameter<'_>) -> Parameter {
    let (min, max) = row.range();
    let ty = match row.ty() {
        0 => ParameterType::Number { min, max },
        1 => ParameterType::Integer { min: min as i64, max: max as i64 },
        2 => ParameterType::Bool,
        _ => {
            let count = row.count() as usize;
            ParameterType::Numbers { count_min: count, count_max: count, min, max }
        }
    };
    let default = Some(text(row.default())).filter(|default| !default.is_empty());
    let (name, doc, unit) = (text(row.name()), text(row.doc()), text(row.unit()));
    Parameter { default, ..Parameter::new(name, ty).doc(doc).unit(unit) }
}

/// The catalogue with the kinds of all images, and whether none is missing. An error in an image is
/// reported where the spec names the image.
pub(crate) fn catalogue<'g>(
    catalogue: &[&'static Kind],
    guests: impl Iterator<Item = &'g Guest>,
    images: &[GuestImage],
    report: &Report,
) -> (Vec<&'static Kind>, bool) {
    let (mut all, mut complete) = (catalogue.to_vec(), true);
    for guest in guests {
        let at = guest.image_span;
        let found = match find(images, guest) {
            Some(GuestImage { table: Ok(table), .. }) => kinds(table).map_err(|error| {
                format!("{error}; build the image with the same version of this program")
            }),
            Some(GuestImage { table: Err(why), .. }) => Err(why.clone()),
            None => Err("it was not read".to_owned()),
        };
        match found {
            Ok(kinds) => {
                for &kind in kinds {
                    let known = all.iter().find(|known| known.name == kind.name);
                    match known {
                        Some(known) if std::ptr::eq(*known, kind) => {}
                        Some(_) => {
                            let message = format!(
                                "image '{}' has a kind '{}', and there is one of this name already",
                                guest.image, kind.name
                            );
                            report.error(at, message, "give the kind of the image another name");
                            complete = false;
                        }
                        None => all.push(kind),
                    }
                }
            }
            Err(why) => {
                let (why, help) = why.split_once("; ").unwrap_or((&why, ""));
                report.error(at, format!("image '{}': {why}", guest.image), help);
                complete = false;
            }
        }
    }
    (all, complete)
}

/// Whether the image of a guest brings a kind.
pub(crate) fn brings(images: &[GuestImage], guest: &Guest, kind: &Kind) -> bool {
    let table = find(images, guest).and_then(|image| image.table.as_ref().ok());
    let kinds = table.and_then(|table| kinds(table).ok()).unwrap_or_default();
    kinds.iter().any(|known| std::ptr::eq(*known, kind))
}

fn find<'i>(images: &'i [GuestImage], guest: &Guest) -> Option<&'i GuestImage> {
    images.iter().find(|it| (&it.image, it.board) == (&guest.image, guest.board))
}
