//! Mappings, and the numbers that they find.

use sinew_core::catalogue::type_hash;
use sinew_spec::Entry;

use super::*;

const fn field(name: &'static str, scalar: Scalar, count: u32, offset: u32) -> Field {
    Field { name, scalar, count, offset, labels: &[] }
}

const FIELDS: &[Field] = &[
    field("position_rad", Scalar::F64, 2, 0),
    field("place_mm", Scalar::F32, 3, 16),
    field("count", Scalar::U16, 1, 28),
    field("sign", Scalar::I8, 1, 30),
    field("velocity_rad_per_s", Scalar::F64, 4, 32),
];
static MESSAGE: MessageType =
    MessageType { name: "M", size: 64, align: 8, fields: FIELDS, hash: type_hash("M", 64, FIELDS) };

const SLOTS: &[Slot] = &[
    Slot { name: "position", width: Width::Joints, usual: &["position_rad", "position_m"] },
    Slot { name: "place", width: Width::Xyz, usual: &[] },
    Slot { name: "velocities", width: Width::JointPoints, usual: &["velocity_rad_per_s"] },
    Slot { name: "count", width: Width::One, usual: &[] },
    Slot { name: "turned", width: Width::Xyzw, usual: &[] },
];

fn text(text: &str) -> Item {
    Item::scalar(Span::default(), text.into(), true, None)
}

fn list<const N: usize>(texts: [&str; N]) -> Item {
    Item::new(Span::default(), Data::List(texts.map(text).to_vec()))
}

fn fields<const N: usize>(rows: [(&str, Item); N]) -> Item {
    let entry =
        |(key, value): (&str, Item)| Entry { key: key.into(), span: Span::default(), value };
    Item::new(Span::default(), Data::Map(rows.map(entry).to_vec()))
}

fn mapped<const N: usize>(rows: [(&str, Item); N]) -> Result<Mapping, Vec<Refusal>> {
    map(SLOTS, &fields(rows), &MESSAGE, 2)
}

#[track_caller]
fn refuses(key: &str, value: Item, what: &str) {
    let refusals = mapped([(key, value)]).expect_err(what);
    assert!(refusals[0].to_string().contains(what), "{refusals:?}");
}

#[test]
fn numbers_are_read_and_written_in_the_units_of_ros() {
    let scaled = fields([("field", text("place_mm")), ("scale", text("0.001"))]);
    let rows = [("place", scaled), ("position", list(["sign", "count"]))];
    let mapping = mapped(rows).expect("it maps");
    let mut message = vec![0; 64];
    let place: Vec<_> = mapping.slots[1].iter().flatten().copied().collect();
    for (place, number) in place.iter().zip([1.5, -0.25, 3.0]) {
        assert!(place.write(&mut message, number));
    }
    // Finite in m, but 1e307 is not in mm, and 1e36 is not in mm and 32 bits.
    assert!(!place[0].write(&mut message, 1e307) && !place[0].write(&mut message, 1e36));
    assert_eq!(f32::from_ne_bytes(message[16..20].try_into().expect("4 bytes")), 1500.0);
    let read: Vec<_> = place.iter().map(|place| place.read(&message)).collect();
    assert_eq!(read, [1.5, -0.25, 3.0]);
    let [Some(sign), Some(count)] = mapping.slots[0][..] else { panic!("two places") };
    assert!(sign.write(&mut message, -7.6) && count.write(&mut message, 1e9));
    assert_eq!((sign.read(&message), count.read(&message)), (-8.0, 65535.0));
}

#[test]
fn without_a_word_the_usual_names_count() {
    let mapping = mapped([]).expect("it maps");
    let counts: Vec<_> = mapping.slots.iter().map(Vec::len).collect();
    assert_eq!((counts, mapping.points), (vec![2, 0, 4, 0, 0], 2));
}

#[test]
fn a_single_number_of_a_vector_may_be_mapped() {
    let mapping = mapped([("place.z", text("position_rad[1]"))]).expect("it maps");
    let places = &mapping.slots[1];
    assert_eq!((places.len(), places[0], places[2].is_some()), (3, None, true));
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("nothing", text("count"), "this type of ROS has no part 'nothing'");
    refuses("place", text("count"), "'place' is 3 (x, y, z); found 1 numbers");
    refuses("position", text("place_mm"), "'position' is 2, one for each of 'names'; found 3");
    refuses("velocities", text("place_mm"), "'velocities' is 2 (one for each of 'names') for each");
    refuses("position", text("angle"), "message M has no field 'angle'; it has: position_rad");
    refuses("position", list(["count", "sign[1]"]), "'sign' has no number '1'; it has 0 to 0");
    refuses("place.w", text("count"), "'place' has no part 'w'");
    refuses("place.x", text("place_mm"), "'place.x' is one number");
    refuses("count.x", text("count"), "'count' has no part 'x'");
    refuses("turned.x", text("count"), "of 'turned' only a part is mapped");
    refuses("place", fields([("field", text("place_mm"))]), "'scale' is not a number, or 0");
    let zero = fields([("field", text("place_mm")), ("scale", text("0"))]);
    refuses("place", zero, "'scale' is not a number, or 0");
    refuses("place", fields([("scale", text("2"))]), "it names no 'field'");
    let other = fields([("field", text("place_mm")), ("offset", text("1"))]);
    refuses("place", other, "it has no key 'offset'");
}

#[test]
fn a_message_without_a_usual_name_needs_a_word() {
    let refusals = map(&SLOTS[1..2], &fields([]), &MESSAGE, 0).expect_err("nothing is usual");
    assert!(refusals[0].to_string().contains("write 'fields' with one or more of: place"));
    let refusals = map(SLOTS, &text("position"), &MESSAGE, 2).expect_err("it is not a mapping");
    assert!(refusals[0].to_string().contains("'fields' is a single value"));
}
