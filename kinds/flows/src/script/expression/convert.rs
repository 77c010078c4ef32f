//! Values of flows as values of CEL, and back.

use std::collections::HashMap;

use bytes::Bytes;
use bytestring::ByteString;
use sinew_flow::Value;

use super::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional,
    CelString, CelType, CelUInt,
};
use super::value::Val;

/// Bytes of text that weigh as much as one value in a list.
const BYTES_PER_UNIT: u64 = 16;

/// What it costs to look at a value with all that is in it.
pub(crate) fn weight(value: &Value) -> u64 {
    1 + match value {
        Value::Text(text) => text.len() as u64 / BYTES_PER_UNIT,
        Value::Bytes(bytes) => bytes.len() as u64 / BYTES_PER_UNIT,
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Map(map) => map.values().map(|value| 1 + weight(value)).sum(),
        _ => 0,
    }
}

/// The same for a value of CEL.
pub(super) fn cel_weight(value: &dyn Val) -> u64 {
    1 + if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        text.inner().len() as u64 / BYTES_PER_UNIT
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        bytes.inner().len() as u64 / BYTES_PER_UNIT
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().iter().map(|item| cel_weight(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        map.inner().values().map(|value| 1 + cel_weight(value.as_ref())).sum()
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        optional.option().map_or(0, cel_weight)
    } else {
        0
    }
}

/// Whether it is a stream, or has one in it: a stream can be read only once, and CEL has no type
/// for it.
pub(super) fn is_to_come(value: &Value) -> bool {
    match value {
        Value::Stream(_) => true,
        Value::List(items) => items.iter().any(is_to_come),
        Value::Map(map) => map.values().any(is_to_come),
        _ => false,
    }
}

/// A value as CEL sees it; text and bytes are shared with it.
pub(super) fn look(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Text(text) => Box::new(CelString::from(&**text)),
        Value::Bytes(bytes) => Box::new(CelBytes::from(&**bytes)),
        other => to_cel(other),
    }
}

/// A value as CEL sees it, copied. A document must have been resolved; otherwise it becomes null.
/// So do streams, which [`is_to_come`] finds before.
pub(super) fn to_cel(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null | Value::Document(_) | Value::Stream(_) => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Integer(value) => Box::new(CelInt::from(*value)),
        Value::Number(value) => Box::new(CelDouble::from(*value)),
        Value::Text(text) => Box::new(CelString::from(text.to_string())),
        Value::Bytes(bytes) => Box::new(CelBytes::from(bytes.to_vec())),
        Value::List(items) => Box::new(CelList::from(items.iter().map(to_cel).collect::<Vec<_>>())),
        Value::Map(map) => {
            let entry =
                |(key, value): (&ByteString, &Value)| (key.to_string().into(), to_cel(value));
            let entries: HashMap<CelMapKey<'static>, Box<dyn Val>> =
                map.iter().map(entry).collect();
            Box::new(CelMap::from(entries))
        }
    }
}

/// A value of CEL as a value of flows. The entries of a mapping of CEL have no order, so they are
/// sorted by their keys. The error says what has no counterpart.
pub(super) fn from_cel(value: &dyn Val) -> Result<Value, String> {
    Ok(if let Some(value) = value.downcast_ref::<CelBool>() {
        Value::Bool(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelInt>() {
        Value::Integer(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelDouble>() {
        Value::Number(*value.inner())
    } else if let Some(value) = value.downcast_ref::<CelString<'_>>() {
        Value::text(value.inner())
    } else if let Some(value) = value.downcast_ref::<CelBytes<'_>>() {
        Value::Bytes(Bytes::copy_from_slice(value.inner()))
    } else if let Some(value) = value.downcast_ref::<CelUInt>() {
        let whole = i64::try_from(*value.inner());
        whole.map_or(Value::Number(*value.inner() as f64), Value::Integer)
    } else if value.downcast_ref::<CelNull>().is_some() {
        Value::Null
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        let items: Result<Vec<_>, _> =
            list.inner().iter().map(|item| from_cel(item.as_ref())).collect();
        Value::list(items?)
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let entries = map.inner().iter();
        let entries = entries.map(|(key, value)| Ok((key_text(key), from_cel(value.as_ref())?)));
        let mut entries = entries.collect::<Result<Vec<_>, String>>()?;
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Value::map(entries)
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        optional.option().map_or(Ok(Value::Null), from_cel)?
    } else if let Some(kind) = value.downcast_ref::<CelType>() {
        Value::text(kind.name())
    } else {
        return Err(format!("it gives a value of type {}", value.get_type().name()));
    })
}

/// Keys in values of flows are texts.
fn key_text(key: &CelMapKey<'_>) -> String {
    match key {
        CelMapKey::Bool(key) => key.inner().to_string(),
        CelMapKey::Int(key) => key.inner().to_string(),
        CelMapKey::UInt(key) => key.inner().to_string(),
        CelMapKey::String(key) => key.inner().to_owned(),
    }
}
