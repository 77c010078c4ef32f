//! Words in lines of a given width.

/// Columns of what fits any terminal.
pub const NARROW: usize = 80;

/// As [`wrap_at`], in lines of [`NARROW`].
pub fn wrap_narrow(text: &mut String, before: &str, words: &str) {
    wrap_at(text, before, words, NARROW);
}

/// Adds `words` after `before`, in lines of `width` columns; further lines stand below the first
/// word.
pub fn wrap_at(text: &mut String, before: &str, words: &str, width: usize) {
    for line in sinew_spec::picture::wrap(before, words, width) {
        *text += &line;
        text.push('\n');
    }
}
