//! Converts messages of realtime links to values, and back, by the fields that their type declares.

use bytestring::ByteString;
use sinew_spec::catalogue::{Field, MessageType, Scalar};

use crate::{Error, Map, Value};

/// 2^53: up to here every whole number has a double of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A message as a mapping of its fields; several scalars in a row are a list. A whole number past
/// 2^63 - 1 becomes a number.
///
/// # Panics
/// If `bytes` are not as many as the type says.
pub fn from_message(ty: &MessageType, bytes: &[u8]) -> Value {
    assert_eq!(bytes.len(), ty.size as usize, "bytes of a {}", ty.name);
    let mut map = Map::with_capacity(ty.fields.len());
    for field in ty.fields {
        let step = field.scalar.bytes() as usize;
        let start = field.offset as usize;
        let all = &bytes[start..start + step * field.count as usize];
        let mut values = all.chunks_exact(step).map(|bytes| read(field, bytes));
        let value = match field.count {
            1 => values.next().unwrap_or_default(),
            _ => Value::list(values),
        };
        map.insert(ByteString::from_static(field.name), value);
    }
    Value::Map(map.into())
}

/// A mapping as a message: every field must be there and fit, and there may be no other.
///
/// # Errors
/// Names the field that is missing, unknown or does not fit; the caller is at fault (400).
pub fn to_message(ty: &MessageType, value: &Value) -> Result<Vec<u8>, Error> {
    let bad = |text: String| Error::new(text).with_status(400);
    let Value::Map(map) = value.resolve()? else {
        return Err(bad(format!("a {} is a mapping, found {}", ty.name, value.sort())));
    };
    let names = || ty.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = map.keys().find(|name| !ty.fields.iter().any(|it| it.name == &***name)) {
        return Err(bad(format!("a {} has no field '{name}'; it has: {}", ty.name, names())));
    }
    let mut bytes = vec![0; ty.size as usize];
    for field in ty.fields {
        let value = map.get(field.name).ok_or_else(|| {
            bad(format!("a {} needs '{}'; it has: {}", ty.name, field.name, names()))
        })?;
        write_field(field, value, &mut bytes).ok_or_else(|| {
            let (expected, found) = (expected(field), found(value));
            bad(format!("'{}' of a {} must be {expected}, found {found}", field.name, ty.name))
        })?;
    }
    Ok(bytes)
}

fn write_field(field: &Field, value: &Value, bytes: &mut [u8]) -> Option<()> {
    let (start, step) = (field.offset as usize, field.scalar.bytes() as usize);
    let one = std::slice::from_ref(value);
    let values = match value {
        Value::List(items) if field.count > 1 => items.as_slice(),
        _ => one,
    };
    if values.len() != field.count as usize {
        return None;
    }
    let places = bytes[start..start + step * values.len()].chunks_exact_mut(step);
    places.zip(values).try_for_each(|(place, value)| write(field, value, place))
}

/// What a field takes, in words.
fn expected(field: &Field) -> String {
    let words: Vec<&str> = field.labels.iter().copied().filter(|it| !it.is_empty()).collect();
    let sort = match field.scalar {
        _ if !words.is_empty() => format!("one of {}", words.join(", ")),
        Scalar::F32 | Scalar::F64 => "a finite number".to_owned(),
        Scalar::Bool => "true or false".to_owned(),
        other => {
            let (min, max) = range(other);
            format!("a whole number from {min} to {max}")
        }
    };
    match field.count {
        1 => sort,
        count => format!("a list with {count} times {sort}"),
    }
}

/// A value that does not fit, in words.
fn found(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Number(value) => format!("{value:?}"),
        Value::List(items) => format!("a list of {}", items.len()),
        other => other.sort().to_owned(),
    }
}

/// The least and the greatest value of a whole scalar.
fn range(scalar: Scalar) -> (i128, i128) {
    let values = 1 << (8 * scalar.bytes());
    match scalar {
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => (-values / 2, values / 2 - 1),
        _ => (0, values - 1),
    }
}

/// The whole number that a value is. Scripts give some whole numbers as doubles.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(value) => Some(*value),
        // Up to there every whole number has a double of its own.
        Value::Number(value) if value.fract() == 0.0 && value.abs() <= WHOLE_MAX => {
            Some(*value as i64)
        }
        _ => None,
    }
}

/// Reads one scalar. A number of an enum becomes its word, if the enum has that number.
fn read(field: &Field, bytes: &[u8]) -> Value {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = i128::from_le_bytes(word);
    match field.scalar {
        Scalar::F32 => Value::Number(f32::from_bits(bits as u32).into()),
        Scalar::F64 => Value::Number(f64::from_bits(bits as u64)),
        Scalar::Bool => Value::Bool(bits != 0),
        whole => {
            let (min, max) = range(whole);
            // Bits above `max` are a negative number.
            let value = if bits > max { bits - max + min - 1 } else { bits };
            match u64::try_from(value).ok().and_then(|number| field.label(number)) {
                Some(word) => Value::Text(ByteString::from_static(word)),
                None => i64::try_from(value).map_or(Value::Number(value as f64), Value::Integer),
            }
        }
    }
}

/// Writes one scalar. An enum takes the word of a value or its number.
fn write(field: &Field, value: &Value, place: &mut [u8]) -> Option<()> {
    let number = || match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Number(value) => Some(*value),
        _ => None,
    };
    let is_enum = !field.labels.is_empty();
    let bits = match field.scalar {
        _ if is_enum => i128::from(number_of(field, value)?),
        Scalar::F32 => {
            let number = number()? as f32;
            number.is_finite().then_some(i128::from(number.to_bits()))?
        }
        Scalar::F64 => i128::from(number().filter(|number| number.is_finite())?.to_bits()),
        Scalar::Bool => match value {
            Value::Bool(value) => i128::from(*value),
            _ => return None,
        },
        scalar => {
            let ((min, max), value) = (range(scalar), i128::from(whole(value)?));
            (min..=max).contains(&value).then_some(value)?
        }
    };
    place.copy_from_slice(&bits.to_le_bytes()[..place.len()]);
    Some(())
}

/// The number of an enum's value, given as word or number.
fn number_of(field: &Field, value: &Value) -> Option<u64> {
    match value {
        Value::Text(word) => {
            let is_it = |label: &&str| !label.is_empty() && **label == **word;
            field.labels.iter().position(is_it).map(|at| at as u64)
        }
        other => whole(other)?.try_into().ok().filter(|&number| field.label(number).is_some()),
    }
}

#[cfg(test)]
mod tests;
