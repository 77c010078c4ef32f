//! Reads values from JSON and whatever else serde knows, without a tree in between.

use std::fmt;

use bytestring::ByteString;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Map, Value};

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Number(value as f64), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::text(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values.into()))
    }

    /// If two entries have one name, the later value counts, at the place of the first.
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.insert(ByteString::from(key), entries.next_value()?);
        }
        Ok(Value::Map(map.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn what_is_read_at_once_is_what_a_tree_of_json_holds() {
        for text in [
            "null",
            "true",
            "-1",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "0.1",
            "-0.0",
            "1e300",
            r#""a\nü\ud83d\ude00""#,
            "[]",
            "{}",
            r#"[1, [2, {"a": null}], "x", 2.5]"#,
            r#"{"b": 1, "a": {"c": [true]}, "b": 2}"#,
        ] {
            let read: Value = serde_json::from_str(text).expect(text);
            let tree: Json = serde_json::from_str(text).expect(text);
            let tree = Value::from(tree);
            assert_eq!(read, tree, "{text}");
            assert_eq!(format!("{read:?}"), format!("{tree:?}"), "{text}: of the same sort");
        }
        for text in ["", "{", "1e400", "[1,]", r#"{"a": 1 "b": 2}"#, "nul", "1 2", r#""\ud800""#] {
            let (read, tree) =
                (serde_json::from_str::<Value>(text), serde_json::from_str::<Json>(text));
            let (read, tree) = (read.expect_err(text), tree.expect_err(text));
            assert_eq!(read.to_string(), tree.to_string(), "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(serde_json::from_str::<Value>(&deep).is_err(), "too deep");
    }
}
