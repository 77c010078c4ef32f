//! Schemas of messages, in the language of ROS 2.

use std::fmt::Write as _;

use sinew_core::catalogue::{MessageType, Scalar};

/// Name of a message type's schema. Readers of ROS's language accept only this form.
pub(crate) fn schema_name(message: &MessageType) -> String {
    format!("sinew/msg/{}", Names::default().of_type(message.name))
}

/// A message type's schema.
pub(crate) fn schema_text(message: &MessageType) -> String {
    let mut text = String::new();
    let mut names = Names::default();
    let mut constants = Names::default();
    for field in message.fields {
        let (scalar, name) = (scalar_word(field.scalar), names.field(field.name));
        // Readers take constants in front of a field of the same type as the field's enum.
        let words = field.labels.iter().enumerate().filter(|(_, word)| !word.is_empty());
        for (number, word) in words {
            let constant = constants.constant(&name, word);
            writeln!(text, "{scalar} {constant}={number}").expect("a string takes all");
        }
        field_line(&mut text, scalar, field.count, &name);
    }
    text
}

/// A line of a schema for `count` scalars. A single one has no brackets.
pub(crate) fn field_line(text: &mut String, scalar: &str, count: u32, name: &str) {
    let written = match count {
        1 => writeln!(text, "{scalar} {name}"),
        _ => writeln!(text, "{scalar}[{count}] {name}"),
    };
    written.expect("a string takes all");
}

fn scalar_word(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U8 => "uint8",
        Scalar::I8 => "int8",
        Scalar::U16 => "uint16",
        Scalar::I16 => "int16",
        Scalar::U32 => "uint32",
        Scalar::I32 => "int32",
        Scalar::U64 => "uint64",
        Scalar::I64 => "int64",
        Scalar::F32 => "float32",
        Scalar::F64 => "float64",
        Scalar::Bool => "bool",
    }
}

/// Makes names that ROS allows from our names. Each result is unique.
#[derive(Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// For a field: `[a-z][a-z0-9_]*`, no `__`, no `_` at the end.
    pub(crate) fn field(&mut self, name: &str) -> String {
        let words = words(name).map(|word| word.to_ascii_lowercase());
        self.once(words.collect::<Vec<_>>().join("_"), "f", "_")
    }

    /// For a value of an enum: `[A-Z][A-Z0-9_]*`, beginning with the field's name.
    fn constant(&mut self, field: &str, word: &str) -> String {
        let words = words(word).collect::<Vec<_>>().join("_");
        self.once(format!("{field}_{words}").to_ascii_uppercase(), "F", "_")
    }

    /// For a type: `[A-Z][A-Za-z0-9]*`.
    pub(crate) fn of_type(&mut self, name: &str) -> String {
        let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
        self.once(words(name).map(capital).collect(), "T", "N")
    }

    fn once(&mut self, mut name: String, first: &str, join: &str) -> String {
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name = format!("{first}{name}");
        }
        let others = (2..).map(|number| format!("{name}{join}{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        let name = names.find(|name| !self.0.contains(name)).expect("numbers do not end");
        self.0.push(name.clone());
        name
    }
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use sinew_core::{Message, message};
    use sinew_robot::messages::{AxisFeedback, Frame};

    use super::*;

    #[test]
    fn a_schema_names_each_field_with_its_count() {
        let text = "float64[6] position_rad\nfloat64[6] velocity_rad_per_s\nuint64 sequence\n\
                    uint16[6] status\nuint32 flags\n";
        assert_eq!(schema_text(AxisFeedback::TYPE), text);
        assert_eq!(schema_name(Frame::TYPE), "sinew/msg/Frame");
        assert!(schema_text(Frame::TYPE).starts_with("uint8[184] bytes\nuint32 length\n"));
    }

    message! {
        /// What an oven does.
        pub enum Mode: u8 {
            /// Nothing.
            Off = 0,
            /// It heats.
            HeatUp = 2,
        }
        /// All of an oven.
        pub struct Oven {
            /// Now.
            pub mode: Label<Mode>,
            /// Before.
            pub modes_before: [Label<Mode>; 2],
        }
    }

    #[test]
    fn the_words_of_an_enum_are_constants_before_its_field() {
        let text = "uint8 MODE_OFF=0\nuint8 MODE_HEATUP=2\nuint8 mode\n\
                    uint8 MODES_BEFORE_OFF=0\nuint8 MODES_BEFORE_HEATUP=2\nuint8[2] modes_before\n";
        assert_eq!(schema_text(Oven::TYPE), text);
    }

    #[test]
    fn names_are_what_ros_allows_and_each_stands_once() {
        let mut names = Names::default();
        let fields = ["left-arm", "Left__arm_", "3d", "_"].map(|name| names.field(name));
        assert_eq!(fields, ["left_arm", "left_arm_2", "f3d", "f"]);
        let mut names = Names::default();
        assert_eq!(
            ["left-arm", "left_arm", "3"].map(|name| names.of_type(name)),
            ["LeftArm", "LeftArmN2", "T3"]
        );
    }
}
