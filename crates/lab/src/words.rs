//! Axes of rows as enums: each value has a word, used in tables and when it is passed to another
//! process.

/// Defines an enum with a word for each value, and the conversions in both directions.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All values, in the order of the table's rows.
            $vis const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Their words.
            $vis const WORDS: &'static [&'static str] = &[$($word,)*];

            /// Its word.
            $vis fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<$name, String> {
                let found = $name::ALL.iter().copied().find(|value| value.word() == word);
                found.ok_or_else(|| {
                    format!("'{word}': expected one of {}", $name::WORDS.join(", "))
                })
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    words! {
        /// One or the other.
        enum Side {
            Left = "left",
            Right = "right",
        }
    }

    #[test]
    fn every_value_comes_back_from_its_word_and_others_are_told_which_there_are() {
        assert!(Side::ALL.iter().all(|side| side.word().parse() == Ok(*side)));
        assert_eq!("up".parse::<Side>(), Err("'up': expected one of left, right".into()));
    }
}
