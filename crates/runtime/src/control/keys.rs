//! A mapping of JSON in which a key stands twice: JSON allows it, and serde_json takes the last.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Refuses a text in which a key of some mapping stands twice.
///
/// # Errors
/// Which key, and where; or it is no JSON.
pub(super) fn check(line: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice(line).map(|Once| ())
}

/// Any JSON, in which each key stands once.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Once, D::Error> {
        from.deserialize_any(Once)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Once, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("key '{key}' stands twice")));
            }
            keys.insert(key);
            entries.next_value::<Once>()?;
        }
        Ok(Once)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Once, A::Error> {
        while items.next_element::<Once>()?.is_some() {}
        Ok(Once)
    }

    fn visit_unit<E: Error>(self) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_str<E: Error>(self, _value: &str) -> Result<Once, E> {
        Ok(Once)
    }
}
