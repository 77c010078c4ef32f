//! Message types of ROS: their definitions, and the hash that is computed from a definition (REP
//! 2016, RIHS01). By it the two ends of a topic can tell that they mean the same type.
//!
//! [`ros_messages!`] makes the Rust type and the definition from one text, so that they cannot
//! differ. On the wire a message is its fields in this order, in CDR.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Added to the number of a type for a sequence of it without bound.
const SEQUENCE: u8 = 144;
/// The number of a type that has fields of its own.
const NESTED: u8 = 1;

/// A message type: its name and its fields in order.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The package, such as `sensor_msgs`.
    pub(crate) package: &'static str,
    /// The name in the package, such as `JointState`.
    pub(crate) name: &'static str,
    /// Name and type of each field.
    pub(crate) fields: &'static [(&'static str, Shape)],
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The number of `type_description_interfaces/msg/FieldType`.
    number: u8,
    /// The definition, if the type has fields of its own.
    definition: Option<&'static Definition>,
}

/// A type of Rust that can be a field.
pub(crate) trait Described {
    /// What ROS calls it.
    const SHAPE: Shape;
}

macro_rules! scalars {
    ($($rust:ty = $number:literal),*) => { $(
        impl Described for $rust {
            const SHAPE: Shape = Shape { number: $number, definition: None };
        }
    )* };
}

scalars!(u8 = 3, i32 = 6, u32 = 7, f64 = 11, bool = 15, String = 17);

impl<T: Described> Described for Vec<T> {
    const SHAPE: Shape = Shape { number: T::SHAPE.number + SEQUENCE, ..T::SHAPE };
}

/// A `byte` of ROS: a u8 that counts as another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Byte(pub(crate) u8);

impl Described for Byte {
    const SHAPE: Shape = Shape { number: 16, definition: None };
}

/// A `uint8[]` that is written at once, not byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Described for Bytes {
    const SHAPE: Shape = <Vec<u8>>::SHAPE;
}

impl serde::Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl Shape {
    /// The shape of a type with fields of its own.
    pub(crate) const fn of(definition: &'static Definition) -> Shape {
        Shape { number: NESTED, definition: Some(definition) }
    }
}

/// A message type that crosses topics.
pub(crate) trait RosMessage: Described {
    /// Its definition.
    const DEFINITION: &'static Definition;
}

/// Declares message types: `"package" Name { field: type, }`. Each becomes a struct and its
/// definition.
macro_rules! ros_messages {
    ($($(#[$doc:meta])* $package:literal $name:ident { $($field:ident: $ty:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        pub(crate) struct $name { $(pub(crate) $field: $ty,)* }

        impl $crate::definition::Described for $name {
            const SHAPE: $crate::definition::Shape = $crate::definition::Shape::of(
                <$name as $crate::definition::RosMessage>::DEFINITION,
            );
        }

        impl $crate::definition::RosMessage for $name {
            const DEFINITION: &'static $crate::definition::Definition =
                &$crate::definition::Definition {
                    package: $package,
                    name: stringify!($name),
                    fields: &[$((
                        stringify!($field),
                        <$ty as $crate::definition::Described>::SHAPE,
                    ),)*],
                };
        }
    )* };
}
pub(crate) use ros_messages;

impl Definition {
    /// As people write it: `sensor_msgs/msg/JointState`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/msg/{}", self.package, self.name)
    }

    /// As DDS knows it: `sensor_msgs::msg::dds_::JointState_`.
    pub(crate) fn dds_name(&self) -> String {
        format!("{}::msg::dds_::{}_", self.package, self.name)
    }

    /// Whether a message of this type names the frame in which its values are given.
    pub(crate) fn has_frame(&self) -> bool {
        let is_header = |(_, shape): &(&str, Shape)| {
            shape.definition.is_some_and(|it| it.name == "Header" || it.has_frame())
        };
        self.fields.iter().any(is_header)
    }

    /// Its hash: `RIHS01_` and 64 digits.
    pub(crate) fn hash(&self) -> String {
        let mut hash = "RIHS01_".to_owned();
        for byte in Sha256::digest(self.description()) {
            // Writing to a String does not fail.
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }

    /// The text that is hashed: the type and all types that it is made of, as JSON with exactly
    /// these spaces.
    fn description(&self) -> String {
        let mut parts = BTreeMap::new();
        self.add_parts(&mut parts);
        let parts: Vec<_> = parts.values().map(|part| part.json()).collect();
        format!(
            r#"{{"type_description": {}, "referenced_type_descriptions": [{}]}}"#,
            self.json(),
            parts.join(", ")
        )
    }

    fn add_parts<'a>(&'a self, parts: &mut BTreeMap<String, &'a Definition>) {
        for part in self.fields.iter().filter_map(|(_, shape)| shape.definition) {
            if parts.insert(part.full_name(), part).is_none() {
                part.add_parts(parts);
            }
        }
    }

    fn json(&self) -> String {
        let field = |(name, shape): &(&str, Shape)| {
            let nested = shape.definition.map(Definition::full_name).unwrap_or_default();
            let limits = r#""capacity": 0, "string_capacity": 0"#;
            let number = shape.number;
            let ty = format!(r#""type_id": {number}, {limits}, "nested_type_name": "{nested}""#);
            format!(r#"{{"name": "{name}", "type": {{{ty}}}}}"#)
        };
        let fields: Vec<_> = self.fields.iter().map(field).collect();
        format!(r#"{{"type_name": "{}", "fields": [{}]}}"#, self.full_name(), fields.join(", "))
    }
}
