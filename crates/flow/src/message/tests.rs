//! Messages to values and back: every sort of scalar, and what does not fit.

use sinew_core::message::Message;
use zerocopy::IntoBytes;

use super::*;

sinew_core::message! {
    /// A scalar of each sort, and some in a row.
    pub struct Sorts {
        /// A field.
        pub a: u64,
        /// A field.
        pub b: i64,
        /// A field.
        pub c: f64,
        /// A field.
        pub d: [f64; 2],
        /// A field.
        pub e: u32,
        /// A field.
        pub f: f32,
        /// A field.
        pub g: u16,
        /// A field.
        pub h: i16,
        /// A field.
        pub i: u8,
        /// A field.
        pub j: i8,
        /// A field.
        pub k: [i8; 2],
    }
}

sinew_core::message! {
    /// What an oven does.
    pub enum Mode: u8 {
        /// Nothing.
        Off = 0,
        /// It heats.
        Heat = 2,
    }
    /// All of an oven.
    pub struct Oven {
        /// Now.
        pub mode: Label<Mode>,
        /// Before.
        pub before: [Label<Mode>; 2],
    }
}

#[test]
fn an_enum_is_its_word_and_takes_word_or_number() {
    let word = |text: &'static str| Value::Text(ByteString::from_static(text));
    let of = |mode: Value, before: [Value; 2]| {
        let fields = [("mode", mode), ("before", Value::list(before))];
        let map: Map = fields.into_iter().map(|(name, it)| (name.into(), it)).collect();
        Value::Map(map.into())
    };
    let written = of(Value::Integer(2), [word("Off"), word("Heat")]);
    let bytes = to_message(Oven::TYPE, &written).expect("all fit");
    assert_eq!(bytes, [2, 0, 2]);
    let json = |bytes: &[u8]| from_message(Oven::TYPE, bytes).to_json().expect("no stream");
    assert_eq!(json(&bytes), serde_json::json!({"mode": "Heat", "before": ["Off", "Heat"]}));
    // A peer may have written any number.
    assert_eq!(json(&[1, 255, 0]), serde_json::json!({"mode": 1, "before": [255, "Off"]}));
    for bad in [word("heat"), word(""), Value::Integer(1), Value::Integer(-1), Value::Null] {
        let error = to_message(Oven::TYPE, &of(bad, [word("Off"), word("Off")])).expect_err("bad");
        assert!(error.to_string().contains("must be one of Off, Heat, found "), "{error}");
    }
}

const SORTS: Sorts = Sorts {
    a: 7,
    b: i64::MIN,
    c: -0.5,
    d: [1.0, f64::MIN_POSITIVE],
    e: u32::MAX,
    f: 0.25,
    g: u16::MAX,
    h: i16::MIN,
    i: u8::MAX,
    j: i8::MIN,
    k: [1, -1],
};

/// The mapping of `SORTS` with another value for a field; `None` takes it away.
fn with(name: &'static str, value: Option<Value>) -> Value {
    let Value::Map(map) = from_message(Sorts::TYPE, SORTS.as_bytes()) else { unreachable!() };
    let mut map = (*map).clone();
    match value {
        Some(value) => drop(map.insert(name.into(), value)),
        None => drop(map.shift_remove(name)),
    }
    Value::Map(map.into())
}

#[test]
fn a_message_comes_back_from_its_value() {
    let value = from_message(Sorts::TYPE, SORTS.as_bytes());
    assert_eq!(value.field("b"), Ok(Value::Integer(i64::MIN)));
    assert_eq!(value.field("k"), Ok(Value::list([Value::Integer(1), Value::Integer(-1)])));
    assert_eq!(to_message(Sorts::TYPE, &value).as_deref(), Ok(SORTS.as_bytes()));
    let json = Value::from(value.to_json().expect("plain values"));
    assert_eq!(to_message(Sorts::TYPE, &json).as_deref(), Ok(SORTS.as_bytes()), "also as JSON");
}

#[test]
fn a_number_past_the_greatest_whole_one_is_shown_as_a_number() {
    let most = Sorts { a: u64::MAX, ..SORTS };
    let value = from_message(Sorts::TYPE, most.as_bytes());
    assert_eq!(value.field("a"), Ok(Value::Number(u64::MAX as f64)));
}

#[test]
fn whole_numbers_may_come_as_numbers_and_the_other_way_round() {
    for (name, value) in [("e", Value::Number(3.0)), ("c", Value::Integer(3))] {
        assert!(to_message(Sorts::TYPE, &with(name, Some(value))).is_ok(), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_named_with_what_was_expected() {
    let list = |count: usize| Value::list(vec![Value::Number(0.0); count]);
    let cases = [
        ("a", None, "a Sorts needs 'a'; it has: a, b, c"),
        ("z", Some(Value::Null), "a Sorts has no field 'z'; it has: a, b"),
        ("a", Some(Value::Integer(-1)), "from 0 to 18446744073709551615, found -1"),
        ("e", Some(Value::Integer(1 << 32)), "from 0 to 4294967295, found 4294967296"),
        ("e", Some(Value::Number(0.5)), "found 0.5"),
        ("e", Some(Value::Number(1e300)), "found 1e300"),
        ("e", Some(Value::Number(f64::NAN)), "found NaN"),
        ("e", Some(Value::text("1")), "found a text"),
        ("j", Some(Value::Integer(128)), "from -128 to 127, found 128"),
        ("c", Some(Value::Number(f64::NAN)), "'c' of a Sorts must be a finite number, found NaN"),
        ("c", Some(Value::Number(f64::INFINITY)), "found inf"),
        ("c", Some(Value::Null), "found nothing"),
        ("c", Some(list(1)), "must be a finite number, found a list of 1"),
        ("f", Some(Value::Number(1e39)), "a finite number, found 1e39"),
        ("d", Some(list(3)), "a list with 2 times a finite number, found a list of 3"),
        ("d", Some(Value::Number(1.0)), "found 1.0"),
        ("d", Some(Value::list([Value::Number(0.0), Value::Number(f64::NAN)])), "a list of 2"),
    ];
    for (name, value, expected) in cases {
        let error = to_message(Sorts::TYPE, &with(name, value)).expect_err(expected);
        assert!(error.text().contains(expected), "{error}");
        assert_eq!(error.status(), 400);
    }
    for value in [Value::Null, Value::text("{}"), Value::list([])] {
        let error = to_message(Sorts::TYPE, &value).expect_err("no mapping");
        assert!(error.text().starts_with("a Sorts is a mapping, found "), "{error}");
    }
}
