//! The functions that expressions and Lua share. Both languages, the names that an error offers and
//! the guide take them from one table.

mod chance;
mod digest;
mod moment;
#[cfg(test)]
mod tests;
mod text;

use sinew_flow::Value;

pub(crate) use self::digest::hex;
pub(crate) use self::moment::{now_ms, pretend};
pub(crate) use self::text::escape_html;

/// A function.
#[derive(Debug)]
pub(crate) struct LibraryRow {
    /// The name before its dot; empty if there is none.
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
    /// How it is written; arguments in brackets may be left out.
    pub(crate) form: &'static str,
    pub(crate) doc: &'static str,
    /// Fewest and most arguments.
    pub(crate) arguments: [usize; 2],
    /// Whether it gives another value each time.
    pub(crate) changes: bool,
    /// What a call costs whatever its arguments are, in units of work.
    pub(crate) work: u64,
    /// Bytes of its arguments that cost one unit more.
    bytes_per_unit: u64,
    run: fn(&Given<'_>) -> Result<Value, String>,
}

/// An argument of a function, independent of the language.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Integer(i64),
    Number(f64),
    /// A value that no function takes.
    Other,
}

/// All arguments of a function.
struct Given<'a>(&'a [Argument<'a>]);

const ROW: LibraryRow = LibraryRow {
    namespace: "",
    name: "",
    form: "",
    doc: "",
    arguments: [1, 1],
    changes: false,
    work: 10,
    bytes_per_unit: 32,
    run: |_| Ok(Value::Null),
};

/// All functions.
pub(crate) const LIBRARY: &[LibraryRow] = &[
    LibraryRow {
        name: "now",
        form: "now()",
        doc: "The time: milliseconds since 1970-01-01T00:00:00Z.",
        arguments: [0, 0],
        changes: true,
        run: |_| Ok(Value::Integer(now_ms())),
        ..ROW
    },
    LibraryRow {
        namespace: "time",
        name: "format",
        form: "time.format(ms[, pattern[, zone]])",
        doc: "A time as text: by RFC 3339 in UTC, or by a pattern of `strftime`.",
        arguments: [1, 3],
        work: moment::WORK,
        run: moment::format,
        ..ROW
    },
    LibraryRow {
        namespace: "time",
        name: "parse",
        form: "time.parse(text[, pattern[, zone]])",
        doc: "The time of a text, in milliseconds, by RFC 3339 or by a pattern. `zone` is used \
              if the text names none.",
        arguments: [1, 3],
        work: moment::WORK,
        run: moment::parse,
        ..ROW
    },
    LibraryRow {
        namespace: "time",
        name: "add",
        form: "time.add(ms, span[, zone])",
        doc: "The time plus a span: `90m`, `-1 day`, `1 month 2 days`, `P1M2D`. Days and months \
              follow the zone's calendar.",
        arguments: [2, 3],
        work: moment::WORK,
        run: moment::add,
        ..ROW
    },
    LibraryRow {
        namespace: "time",
        name: "duration",
        form: "time.duration(text)",
        doc: "The milliseconds of `1h 30m`, `500ms` or `PT1H30M`.",
        run: moment::duration,
        ..ROW
    },
    LibraryRow {
        name: "uuid",
        form: "uuid()",
        doc: "A random UUID, version 4.",
        arguments: [0, 0],
        changes: true,
        run: |_| chance::uuid4(),
        ..ROW
    },
    LibraryRow {
        name: "uuid7",
        form: "uuid7()",
        doc: "A UUID of version 7. It begins with the time, so UUIDs sort by age.",
        arguments: [0, 0],
        changes: true,
        run: |_| chance::uuid7(),
        ..ROW
    },
    LibraryRow {
        name: "random",
        form: "random([min, max])",
        doc: "A number from 0 up to 1, or a whole one from `min` to `max`, both included.",
        arguments: [0, 2],
        changes: true,
        run: chance::random,
        ..ROW
    },
    LibraryRow {
        name: "hash",
        form: "hash(algorithm, text)",
        doc: "A digest in hex: `sha256`, `sha384`, `sha512`, or `sha1` for old interfaces.",
        arguments: [2, 2],
        run: digest::hash,
        ..ROW
    },
    LibraryRow {
        name: "hmac",
        form: "hmac(algorithm, key, text)",
        doc: "The HMAC of a text by a key, in hex; algorithms as for `hash`.",
        arguments: [3, 3],
        work: 30,
        run: digest::hmac,
        ..ROW
    },
    LibraryRow {
        name: "same_secret",
        form: "same_secret(a, b)",
        doc: "Whether two texts are the same, for signatures and tokens. The time it takes does \
              not show where they differ.",
        arguments: [2, 2],
        run: digest::same_secret,
        ..ROW
    },
    LibraryRow {
        namespace: "base64",
        name: "encode",
        form: "base64.encode(text)",
        doc: "Base64 with padding.",
        run: text::encode,
        ..ROW
    },
    LibraryRow {
        namespace: "base64",
        name: "decode",
        form: "base64.decode(text)",
        doc: "The bytes of a Base64 text. Padding may be missing; line breaks are ignored.",
        run: text::decode,
        ..ROW
    },
    LibraryRow {
        namespace: "base64",
        name: "encode_url",
        form: "base64.encode_url(text)",
        doc: "Base64 for addresses and JWT: `-` and `_`, without padding.",
        run: text::encode_url,
        ..ROW
    },
    LibraryRow {
        namespace: "base64",
        name: "decode_url",
        form: "base64.decode_url(text)",
        doc: "The bytes of such a text. It may have padding.",
        run: text::decode_url,
        ..ROW
    },
    LibraryRow {
        name: "html_escape",
        form: "html_escape(text)",
        doc: "The text for HTML: `&`, `<`, `>` and both quotes become entities.",
        bytes_per_unit: 16,
        run: text::html_escape,
        ..ROW
    },
];

/// The function of this name, and its place in the table.
pub(crate) fn find(namespace: &str, name: &str) -> Option<(usize, &'static LibraryRow)> {
    LIBRARY.iter().enumerate().find(|(_, row)| (row.namespace, row.name) == (namespace, name))
}

impl LibraryRow {
    /// Its name as scripts call it.
    pub(crate) fn called(&self) -> &'static str {
        self.form.split('(').next().unwrap_or(self.form)
    }

    /// Whether it takes so many arguments; if not, the error says what it takes.
    pub(crate) fn takes(&self, count: usize) -> Result<(), String> {
        let [fewest, most] = self.arguments;
        match (fewest..=most).contains(&count) {
            true => Ok(()),
            false => Err(format!("it does not take {count} arguments but {}", self.form)),
        }
    }

    /// What it costs to go through its arguments, in units of work.
    pub(crate) fn price(&self, arguments: &[Argument<'_>]) -> u64 {
        let len = |argument: &Argument<'_>| match argument {
            Argument::Text(text) => text.len() as u64,
            Argument::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        };
        arguments.iter().map(len).sum::<u64>() / self.bytes_per_unit
    }

    /// Calls it.
    ///
    /// # Errors
    /// It has no value for these arguments. The error says why, without the name of the function.
    pub(crate) fn call(&self, arguments: &[Argument<'_>]) -> Result<Value, String> {
        self.takes(arguments.len())?;
        (self.run)(&Given(arguments))
    }
}

impl<'a> Given<'a> {
    fn has(&self, at: usize) -> bool {
        at < self.0.len()
    }

    fn text(&self, at: usize) -> Result<&'a str, String> {
        let wrong = || format!("argument {} is a text", at + 1);
        match self.0.get(at) {
            Some(Argument::Text(text)) => Ok(text),
            Some(Argument::Bytes(bytes)) => std::str::from_utf8(bytes)
                .map_err(|_| format!("argument {} is a text in UTF-8", at + 1)),
            _ => Err(wrong()),
        }
    }

    fn bytes(&self, at: usize) -> Result<&'a [u8], String> {
        match self.0.get(at) {
            Some(Argument::Text(text)) => Ok(text.as_bytes()),
            Some(Argument::Bytes(bytes)) => Ok(bytes),
            _ => Err(format!("argument {} is a text or bytes", at + 1)),
        }
    }

    fn integer(&self, at: usize) -> Result<i64, String> {
        match self.0.get(at) {
            Some(Argument::Integer(value)) => Ok(*value),
            // A whole number that a double holds exactly: in Lua, dividing whole numbers gives a
            // double.
            Some(Argument::Number(value)) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Ok(*value as i64)
            }
            _ => Err(format!("argument {} is a whole number", at + 1)),
        }
    }
}
