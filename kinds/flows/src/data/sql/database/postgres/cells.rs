//! Arguments and cells of PostgreSQL. Arguments are sent as text, which the server reads as the
//! type that it needs. Cells come in the binary format.

use std::error::Error as StdError;
use std::fmt::Write;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::civil::{Date, DateTime, Time};
use jiff::{Timestamp, ToSpan};
use sinew_flow::Value;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

/// The error of either.
type Failure = Box<dyn StdError + Sync + Send>;

/// An argument.
#[derive(Debug)]
pub(super) struct Arg<'a>(pub(super) &'a Value);

impl ToSql for Arg<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match self.0 {
            // The text of a boolean is not valid for a number column, so it is written as 0 or 1
            // there.
            Value::Bool(value) if is_number(ty) => out.put_u8(b'0' + u8::from(*value)),
            Value::Bool(value) => out.put_u8(if *value { b't' } else { b'f' }),
            Value::Integer(value) => write!(out, "{value}")?,
            // Without fraction, so that it is also valid for whole-number types.
            Value::Number(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
                write!(out, "{value:.0}")?;
            }
            Value::Number(value) => write!(out, "{value:?}")?,
            Value::Text(text) => out.put_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.put_slice(bytes),
            // Other values have become texts before.
            _ => return Ok(IsNull::Yes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        // In text format, bytes would have to be written in hexadecimal.
        let is_bytes = *ty == Type::BYTEA && matches!(self.0, Value::Text(_) | Value::Bytes(_));
        if is_bytes { Format::Binary } else { Format::Text }
    }

    to_sql_checked!();
}

fn is_number(ty: &Type) -> bool {
    [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC].contains(ty)
}

/// A cell.
pub(super) struct Cell(pub(super) Value);

impl FromSql<'_> for Cell {
    fn from_sql(ty: &Type, raw: &[u8]) -> Result<Cell, Failure> {
        let value = match *ty {
            Type::BOOL => Value::Bool(bool::from_sql(ty, raw)?),
            Type::INT2 => Value::Integer(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Value::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(ty, raw)?),
            Type::OID => Value::Integer(u32::from_sql(ty, raw)?.into()),
            Type::FLOAT4 => Value::Number(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Value::Number(f64::from_sql(ty, raw)?),
            Type::NUMERIC => Value::Number(numeric(raw)?),
            Type::BYTEA => Value::Bytes(Bytes::copy_from_slice(raw)),
            Type::JSON => json(raw)?,
            // The first byte is the version of the format, 1.
            Type::JSONB => json(raw.get(1..).unwrap_or_default())?,
            Type::TIMESTAMPTZ => Value::text(moment(raw)?),
            // The same without the `Z` of the zone.
            Type::TIMESTAMP => Value::text(moment(raw)?.trim_end_matches('Z')),
            Type::DATE => Value::text(date(raw)?),
            Type::TIME => Value::text(time(raw)?),
            Type::UUID => Value::text(uuid(raw)?),
            Type::VOID => Value::Null,
            _ if <&str as FromSql<'_>>::accepts(ty) || matches!(ty.kind(), Kind::Enum(_)) => {
                Value::text(std::str::from_utf8(raw)?)
            }
            _ => {
                return Err(format!(
                    "values of the type {ty} cannot be read; write CAST(... AS text)"
                )
                .into());
            }
        };
        Ok(Cell(value))
    }

    fn from_sql_null(_: &Type) -> Result<Cell, Failure> {
        Ok(Cell(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn json(raw: &[u8]) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(raw)?)
}

/// Microseconds since 2000, as RFC 3339.
fn moment(raw: &[u8]) -> Result<String, Failure> {
    let micros = match i64::from_sql(&Type::INT8, raw)? {
        i64::MAX => return Ok("infinity".into()),
        i64::MIN => return Ok("-infinity".into()),
        micros => micros,
    };
    const YEAR_2000_S: i64 = 946_684_800;
    let since_1970 = micros.checked_add(YEAR_2000_S * 1_000_000).ok_or("out of range")?;
    Ok(Timestamp::from_microsecond(since_1970)?.to_string())
}

/// Days since 2000.
fn date(raw: &[u8]) -> Result<String, Failure> {
    let days = match i32::from_sql(&Type::INT4, raw)? {
        i32::MAX => return Ok("infinity".into()),
        i32::MIN => return Ok("-infinity".into()),
        days => days,
    };
    let days = i64::from(days).checked_mul(1).and_then(|it| 0.days().try_days(it).ok());
    let date: Date = Date::constant(2000, 1, 1).checked_add(days.ok_or("out of range")?)?;
    Ok(date.to_string())
}

/// Microseconds since midnight.
fn time(raw: &[u8]) -> Result<String, Failure> {
    let micros = i64::from_sql(&Type::INT8, raw)?;
    let midnight = DateTime::from_parts(Date::constant(2000, 1, 1), Time::midnight());
    Ok(midnight.checked_add(micros.microseconds())?.time().to_string())
}

fn uuid(raw: &[u8]) -> Result<String, Failure> {
    if raw.len() != 16 {
        return Err("a UUID has 16 bytes".into());
    }
    let mut text = String::with_capacity(36);
    for (at, byte) in raw.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

/// A number as PostgreSQL's `numeric_send` writes it: the count of digits of base 10000, the power
/// of the first digit, a sign, the number of decimal places shown, and then the digits.
fn numeric(raw: &[u8]) -> Result<f64, Failure> {
    let word = |at: usize| {
        let bytes = raw.get(2 * at..2 * at + 2).ok_or("a number that ends too early")?;
        Ok::<_, Failure>(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let (count, weight, sign) = (word(0)?, word(1)? as i16, word(2)?);
    let mut text = match sign {
        0x0000 => String::new(),
        0x4000 => "-".into(),
        0xD000 => return Ok(f64::INFINITY),
        0xF000 => return Ok(f64::NEG_INFINITY),
        _ => return Ok(f64::NAN),
    };
    text.push('0');
    for at in 0..usize::from(count) {
        write!(text, "{:04}", word(4 + at)?)?;
    }
    write!(text, "e{}", 4 * (i32::from(weight) + 1 - i32::from(count)))?;
    // Parsed from text, so that it is rounded only once.
    Ok(text.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_is_the_nearest_number() {
        let raw =
            |words: &[u16]| -> Vec<u8> { words.iter().flat_map(|it| it.to_be_bytes()).collect() };
        for (words, expected) in [
            (&[0, 0, 0, 0][..], 0.0),
            (&[2, 0, 0, 1, 12, 5000], 12.5),
            (&[1, 1, 0x4000, 0, 3], -30000.0),
            (&[1, 0xFFFF, 0, 4, 1], 0.0001),
        ] {
            assert_eq!(numeric(&raw(words)).expect("a number"), expected, "{words:?}");
        }
        assert!(numeric(&raw(&[0, 0, 0xC000, 0])).expect("none").is_nan());
        assert!(numeric(&raw(&[2, 0, 0, 0, 1])).is_err());
    }
}
