//! Words in lines of a given width.

/// A width that fits any terminal.
pub const NARROW: usize = 80;

/// As [`wrap_at`], in lines of [`NARROW`].
pub fn wrap_narrow(text: &mut String, before: &str, words: &str) {
    wrap_at(text, before, words, NARROW);
}

/// Adds `words` after `before`, in lines of `width` columns. Further lines are indented to the
/// first word.
pub fn wrap_at(text: &mut String, before: &str, words: &str, width: usize) {
    for line in sinew_spec::picture::wrap(before, words, width) {
        *text += &line;
        text.push('\n');
    }
}
