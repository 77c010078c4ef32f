//! Tests the rules of entries with both tables, and each table against the other.

use proptest::prelude::*;

use super::super::disk::tests::InFile;
use super::super::memory::Memory;
use super::*;

const ROOMY: StoreLimits =
    StoreLimits { entries_max: 100, bytes_max: 100_000, value_max: 1000, evicts: false };

/// A table with its counts, for operations at any given time.
trait Place {
    fn run(&mut self, asked: &Asked, limits: StoreLimits, now_ms: u64) -> Result<Outcome, Error>;
    fn totals(&self) -> Totals;
    fn counts(&self) -> &Counts;
}

#[derive(Default)]
struct InMemory(Memory, Counts);

impl Place for InMemory {
    fn run(&mut self, asked: &Asked, limits: StoreLimits, now_ms: u64) -> Result<Outcome, Error> {
        carry_out(&mut self.0, asked, limits, now_ms, &self.1)
    }
    fn totals(&self) -> Totals {
        self.0.totals()
    }
    fn counts(&self) -> &Counts {
        &self.1
    }
}

impl Place for InFile {
    fn run(&mut self, asked: &Asked, limits: StoreLimits, now_ms: u64) -> Result<Outcome, Error> {
        InFile::run(self, asked, limits, now_ms)
    }
    fn totals(&self) -> Totals {
        self.disk.totals()
    }
    fn counts(&self) -> &Counts {
        &self.counts
    }
}

fn both() -> [Box<dyn Place>; 2] {
    [Box::new(InMemory::default()), Box::new(InFile::new())]
}

fn request(key: &str, act: Act) -> Asked {
    Asked { key: key.into(), act, expire_ms: None }
}

fn cbor_of(value: impl Into<i64>) -> Bytes {
    cbor::bytes(&Value::Integer(value.into()), 9).expect("short")
}

fn is(value: i64) -> Result<Outcome, Error> {
    Ok(Outcome::Is(cbor_of(value)))
}

fn status(done: Result<Outcome, Error>) -> u16 {
    done.expect_err("it cannot be").status()
}

#[test]
fn operations_do_what_they_say() {
    for mut place in both() {
        let mut run = |key: &str, act| place.run(&request(key, act), ROOMY, 0);
        assert_eq!(run("a", Act::Get), Ok(Outcome::Missing));
        assert_eq!(run("a", Act::Set(cbor_of(1))), is(1));
        assert_eq!((run("a", Act::Get), run("b", Act::Get)), (is(1), Ok(Outcome::Missing)));
        let replace = |expected| Act::Replace { expected, value: cbor_of(2) };
        assert_eq!(run("a", replace(Value::Integer(5))), Ok(Outcome::Differs));
        assert_eq!(run("a", replace(Value::Integer(1))), is(2));
        assert_eq!(run("c", replace(Value::Null)), is(2), "nothing was there, as expected");
        assert_eq!(run("a", Act::Increment(-5)), is(-3));
        assert_eq!(run("n", Act::Increment(i64::MAX)), is(i64::MAX));
        assert_eq!(status(run("n", Act::Increment(1))), 409);
        let append = Act::Append { element: cbor_of(1), keep: 2 };
        assert_eq!(status(run("a", append.clone())), 409);
        let list = [1_u8, 2, 2].map(|len| {
            cbor::bytes(&Value::list(vec![Value::Integer(1); len.into()]), 99).expect("short")
        });
        for expected in list {
            assert_eq!(run("l", append.clone()), Ok(Outcome::Is(expected)));
        }
        assert_eq!(status(run("l", Act::Increment(1))), 409);
        assert_eq!((run("a", Act::Delete), run("a", Act::Delete)), (is(-3), Ok(Outcome::Missing)));
        for key in ["c", "n", "l"] {
            run(key, Act::Delete).expect("it is there");
        }
        assert_eq!(place.totals(), Totals::default());
    }
}

#[test]
fn an_entry_goes_when_its_time_is_over_and_not_before() {
    for mut place in both() {
        let mut run = |act, expire_ms, now_ms| {
            place.run(&Asked { key: "a".into(), act, expire_ms }, ROOMY, now_ms)
        };
        run(Act::Set(cbor_of(1)), Some(10), 100).expect("room");
        assert_eq!(
            (run(Act::Get, None, 109), run(Act::Get, None, 110)),
            (is(1), Ok(Outcome::Missing))
        );
        // An operation on an entry leaves its expiry as it is; a new entry begins without one.
        run(Act::Increment(1), Some(10), 200).expect("room");
        assert_eq!(run(Act::Increment(1), None, 205), is(2));
        assert_eq!(run(Act::Increment(1), None, 210), is(1));
        assert_eq!(run(Act::Get, None, 1_000_000), is(1));
        run(Act::Set(cbor_of(1)), Some(u64::MAX), 1).expect("room");
        run(Act::Set(cbor_of(7)), None, 2).expect("room");
        assert_eq!(run(Act::Get, None, u64::MAX - 1), is(7));
        assert_eq!(place.counts().expired.load(Ordering::Relaxed), 2);
        assert_eq!(place.totals().entries, 1);
    }
}

#[test]
fn a_full_store_says_so_and_changes_nothing() {
    let limits = StoreLimits { entries_max: 2, ..ROOMY };
    for mut place in both() {
        for key in ["a", "b"] {
            place.run(&request(key, Act::Set(cbor_of(1))), limits, 0).expect("room");
        }
        let full = place.run(&request("c", Act::Set(cbor_of(1))), limits, 0);
        assert_eq!(status(full), 507);
        assert_eq!(place.run(&request("b", Act::Set(cbor_of(2))), limits, 0), is(2));
        let totals = place.totals();
        // A limit of bytes: the entry must fit together with all others, and also alone.
        let limits = StoreLimits { bytes_max: totals.bytes + 3, ..ROOMY };
        let long = cbor::bytes(&Value::text("12345"), 99).expect("short");
        assert_eq!(status(place.run(&request("b", Act::Set(long)), limits, 0)), 507);
        assert_eq!(
            (place.totals(), place.run(&request("b", Act::Get), limits, 0)),
            (totals, is(2))
        );
        let limits = StoreLimits { value_max: 1, ..ROOMY };
        assert_eq!(status(place.run(&request("a", Act::Increment(99)), limits, 0)), 413);
        assert_eq!(place.counts().refused.load(Ordering::Relaxed), 2);
    }
}

#[test]
fn what_has_expired_makes_way_before_a_store_is_full() {
    let limits = StoreLimits { entries_max: 40, ..ROOMY };
    for mut place in both() {
        for number in 0..40 {
            let (key, act) = (format!("{number}").into(), Act::Set(cbor_of(number)));
            place.run(&Asked { key, act, expire_ms: Some(5) }, limits, 0).expect("room");
        }
        let one = Totals::of("x", &cbor_of(1));
        let tight = StoreLimits { bytes_max: one.bytes, ..limits };
        assert_eq!(place.run(&request("x", Act::Set(cbor_of(1))), tight, 5), is(1));
        assert_eq!(place.totals(), one);
    }
}

#[test]
fn entries_make_way_where_the_spec_says_so() {
    let limits = StoreLimits { entries_max: 3, evicts: true, ..ROOMY };
    let [mut memory, mut disk] = both();
    for place in [&mut memory, &mut disk] {
        for (number, key) in ["a", "b", "c"].iter().enumerate() {
            place.run(&request(key, Act::Set(cbor_of(number as i64))), limits, 0).expect("room");
        }
        place.run(&request("a", Act::Get), limits, 0).expect("it is there");
        place.run(&request("d", Act::Set(cbor_of(9))), limits, 0).expect("another makes way");
        assert_eq!(place.counts().evicted.load(Ordering::Relaxed), 1);
        assert_eq!(place.totals().entries, 3);
        // An entry that could never fit removes no others.
        let tiny = StoreLimits { bytes_max: 10, ..limits };
        assert_eq!(status(place.run(&request("e", Act::Set(cbor_of(1))), tiny, 0)), 507);
        assert_eq!(place.totals().entries, 3);
    }
    let gone = |place: &mut dyn Place, key: &str| {
        place.run(&request(key, Act::Get), limits, 0) == Ok(Outcome::Missing)
    };
    assert!(gone(&mut *memory, "b"), "it was used longest ago");
    assert!(gone(&mut *disk, "a"), "it was written longest ago");
}

fn any_request() -> impl Strategy<Value = (Asked, u64)> {
    let act = prop_oneof![
        Just(Act::Get),
        Just(Act::Delete),
        (0..100_i64).prop_map(|value| Act::Set(cbor_of(value))),
        (-5..5_i64).prop_map(Act::Increment),
        (0..3_i64, 1..5_u64)
            .prop_map(|(value, keep)| Act::Append { element: cbor_of(value), keep }),
        (0..3_i64).prop_map(|value| Act::Replace {
            expected: Value::Integer(value),
            value: cbor_of(value + 1)
        }),
    ];
    let key = (0..6_u8).prop_map(|key| key.to_string().into());
    let expire = prop_oneof![Just(None), (1..50_u64).prop_map(Some)];
    (key, act, expire, 0..20_u64)
        .prop_map(|(key, act, expire_ms, pause)| (Asked { key, act, expire_ms }, pause))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn memory_and_disk_do_the_same(asked in prop::collection::vec(any_request(), 1..40)) {
        let limits = StoreLimits { entries_max: 4, ..ROOMY };
        let (mut memory, mut disk, mut now_ms) = (InMemory::default(), InFile::new(), 0);
        for (asked, pause) in asked {
            now_ms += pause;
            let expected = Place::run(&mut memory, &asked, limits, now_ms);
            prop_assert_eq!(&expected, &disk.run(&asked, limits, now_ms), "{:?}", asked);
            // A `Get` writes nothing, and so leaves expired entries in the file.
            if !matches!(asked.act, Act::Get) {
                Place::run(&mut memory, &request("none", Act::Delete), limits, now_ms)?;
                disk.run(&request("none", Act::Delete), limits, now_ms)?;
                prop_assert_eq!(memory.totals(), disk.disk.totals());
            }
            prop_assert!(memory.totals().entries <= 4);
        }
    }
}
