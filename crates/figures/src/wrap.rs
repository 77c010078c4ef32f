//! Words in lines of a given width.

use std::fmt::Write;

/// Columns of what fits any terminal.
pub const NARROW: usize = 80;

/// As [`wrap_at`], in lines of [`NARROW`].
pub fn wrap_narrow(text: &mut String, before: &str, words: &str) {
    wrap_at(text, before, words, NARROW);
}

/// Adds `words` after `before`, in lines of `width` columns; further lines stand below the first
/// word.
pub fn wrap_at(text: &mut String, before: &str, words: &str, width: usize) {
    let indent = before.chars().count();
    let mut column = indent;
    text.push_str(before);
    for (at, word) in words.split(' ').enumerate() {
        let len = word.chars().count();
        if at > 0 && column + 1 + len > width {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += len;
    }
    text.push('\n');
}
