//! Placeholders for arguments in a statement: `$1`, `$2` and so on, for both databases.

/// The highest number of a placeholder. Texts, quoted names and comments contain no placeholders.
pub(in crate::data::sql) fn highest(text: &str) -> usize {
    let (bytes, mut at, mut highest) = (text.as_bytes(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        at += match byte {
            b'\'' | b'"' => past(rest, 1, &rest[..1]),
            b'-' if rest.starts_with("--") => past(rest, 2, "\n"),
            b'/' if rest.starts_with("/*") => past(rest, 2, "*/"),
            b'$' => {
                let digits = digits(&rest[1..]);
                highest = highest.max(rest[1..=digits].parse().unwrap_or(0));
                // In PostgreSQL, $tag$ begins a text, which ends with the same tag.
                match tag(rest) {
                    Some(tag) => past(rest, tag.len(), tag),
                    None => 1 + digits,
                }
            }
            // A `$1` within a name is not a placeholder.
            _ if byte == b'_' || byte.is_ascii_alphabetic() => {
                let is_part = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'$');
                bytes[at..].iter().take_while(|it| is_part(it)).count()
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    highest
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The index behind the first `end` at or after `from`.
fn past(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

/// The tag that begins a dollar-quoted text, if there is one.
fn tag(text: &str) -> Option<&str> {
    let name = text[1..].find('$')?;
    let is_name = |it: u8| it == b'_' || it.is_ascii_alphanumeric();
    let tag = &text[..name + 2];
    let begins = text.as_bytes()[1];
    (!begins.is_ascii_digit() && tag[1..=name].bytes().all(is_name)).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::highest;

    #[test]
    fn places_are_found_and_what_looks_like_one_is_not() {
        for (text, expected) in [
            ("SELECT 1", 0),
            ("SELECT $2, $1, $2", 2),
            ("a = $1::int4 AND b=$10", 10),
            ("'$3 ''$4' || $1", 1),
            ("\"$3\" = $1 -- $4\n, $2", 2),
            ("/* $9 */ $1 /* $8", 1),
            ("$$ $5 $$ $f$ $6 $$ $f$ $1", 1),
            ("a$7 = $1", 1),
            ("ü$1", 1),
            ("$", 0),
            ("$99999999999999999999999", 0),
        ] {
            assert_eq!(highest(text), expected, "{text}");
        }
    }
}
