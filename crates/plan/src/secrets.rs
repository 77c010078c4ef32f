//! What a spec takes from outside, from the environment and from files, and how such a value is
//! kept out of everything that a run prints.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Replaces a secret in a text.
pub const HIDDEN: &str = "***";
/// Values shorter than this many bytes are no secrets: they would be found in every second word.
const LEN_MIN: usize = 4;
/// Below this many bytes a value is hidden only where it is a word of its own, and numbers and the
/// like are no secrets.
const LONG: usize = 8;
/// Units and words; a value of a number and one of these is no secret.
const PLAIN: &[&str] =
    &["", "ns", "us", "ms", "s", "m", "h", "KiB", "MiB", "GiB", "%", "true", "false", "null"];

/// Something outside of the spec that the spec names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A variable of the environment.
    Variable(String),
    /// The contents of a file, as the spec names it.
    File(String),
}

/// A value from outside of the spec. The caller of the compiler reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// What the value belongs to.
    pub wanted: Wanted,
    /// The value; or why it could not be read, then `; ` and what to do.
    pub value: Result<String, String>,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Variable(name) => write!(f, "env.{name}"),
            Wanted::File(path) => write!(f, "file.{path}"),
        }
    }
}

/// Texts that must not be shown to anybody.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// The longest comes first, because it may contain a shorter one.
    texts: Vec<String>,
}

impl Secrets {
    /// The secrets among values that were read.
    pub fn of<'b>(all: impl IntoIterator<Item = &'b Brought>) -> Secrets {
        let mut secrets = Secrets::default();
        all.into_iter().flat_map(|one| &one.value).for_each(|value| secrets.add(value));
        secrets
    }

    /// Adds a value and each of its lines, also in the forms that JSON and URLs write.
    pub fn add(&mut self, value: &str) {
        let lines = value.lines().filter(|_| value.contains('\n'));
        for text in [value].into_iter().chain(lines).map(str::trim).filter(|text| is_secret(text)) {
            for written in [text.to_owned(), in_json(text), in_address(text)] {
                if !self.texts.contains(&written) {
                    self.texts.push(written);
                }
            }
        }
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// How many texts are looked for.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// Bytes of the longest secret.
    pub fn len_max(&self) -> usize {
        self.texts.first().map_or(0, String::len)
    }

    /// The text without any secret.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for secret in &self.texts {
            let mut found = places(&hidden, secret).peekable();
            if found.peek().is_none() {
                continue;
            }
            let (mut without, mut rest) = (String::with_capacity(hidden.len()), 0);
            for at in found {
                without += &hidden[rest..at];
                without += HIDDEN;
                rest = at + secret.len();
            }
            without += &hidden[rest..];
            hidden = Cow::Owned(without);
        }
        hidden
    }
}

/// Where a secret is in a text; a short one, or a number, only as a word of its own.
fn places<'t>(text: &'t str, secret: &'t str) -> impl Iterator<Item = usize> {
    let is_of_word = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
    let is_anywhere = secret.len() >= LONG && !secret.bytes().all(|byte| byte.is_ascii_digit());
    text.match_indices(secret).map(|(at, _)| at).filter(move |&at| {
        is_anywhere
            || !(is_of_word(text[..at].chars().next_back())
                || is_of_word(text[at + secret.len()..].chars().next()))
    })
}

fn is_secret(text: &str) -> bool {
    let unit = text.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let is_address = text == "localhost" || text.parse::<IpAddr>().is_ok();
    text.len() >= LEN_MIN && !is_address && (text.len() >= LONG || !PLAIN.contains(&unit))
}

/// The text as JSON writes it within quotes.
fn in_json(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '"' | '\\' => written.extend(['\\', sign]),
            '\n' => written += "\\n",
            '\r' => written += "\\r",
            '\t' => written += "\\t",
            sign if sign.is_ascii_control() => written += &format!("\\u{:04x}", u32::from(sign)),
            sign => written.push(sign),
        }
    }
    written
}

/// The text as a path or a query of a URL writes it.
fn in_address(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => written.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => written.push(byte.into()),
            byte => written += &format!("%{byte:02X}"),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(secret: &str, text: &str) -> String {
        let mut secrets = Secrets::default();
        secrets.add(secret);
        secrets.hide(text).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        let secret = "a \"b\"/c\nsecond line";
        let table = [
            ("x a \"b\"/c\nsecond line y", "x *** y"),
            (r#"{"k":"a \"b\"/c\nsecond line"}"#, r#"{"k":"***"}"#),
            ("?q=a%20%22b%22%2Fc%0Asecond%20line", "?q=***"),
            ("only second line", "only ***"),
            ("nothing of it", "nothing of it"),
        ];
        for (text, expected) in table {
            assert_eq!(hidden(secret, text), expected, "{text}");
        }
        let mut both = Secrets::default();
        both.add("long-secret");
        both.add("long-secret-and-more");
        assert_eq!(both.hide("long-secret-and-more, long-secret"), "***, ***");
    }

    #[test]
    fn a_short_one_is_hidden_as_a_word_and_a_number_is_none() {
        assert_eq!(hidden("prod", "prod: a product, 'prod'"), "***: a product, '***'");
        assert_eq!(hidden("s3cret", "s3cret!"), "***!");
        assert_eq!(hidden("s3cret-x", "As3cret-xB"), "A***B");
        for plain in ["", "abc", "8000", "1.5s", "256MiB", "true", "127.0.0.1"] {
            let text = "abc 8000 1.5s 256MiB true 127.0.0.1";
            assert_eq!(hidden(plain, text), text);
        }
        assert_eq!(hidden("12345678", "12345678, 912345678"), "***, 912345678");
    }
}
