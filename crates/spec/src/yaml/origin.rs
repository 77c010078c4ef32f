//! The places in the spec of the bytes of a value's text, which has no quotes and no indentation.

use granit_parser::ScalarStyle;
use sinew_plan::LinePlaces;

/// The lines of a scalar that is written as `raw` and begins at byte `start` of the spec. `None` if
/// it is not a block scalar; empty if it is folded, as its lines are then not those of the spec.
pub(super) fn lines(style: ScalarStyle, text: &str, raw: &str, start: usize) -> Option<LinePlaces> {
    match style {
        ScalarStyle::Literal => Some(literal(text, raw, start).unwrap_or_default()),
        ScalarStyle::Folded => Some(LinePlaces::default()),
        _ => None,
    }
}

/// `raw` begins with the first line that is not empty; each of its lines is an indented line of the
/// text.
fn literal(text: &str, raw: &str, start: usize) -> Option<LinePlaces> {
    let mut text_start = text.find(|c| c != '\n')?;
    let mut raw_start = 0;
    let mut lines = Vec::new();
    for line in text[text_start..].split('\n') {
        let Some(written) = raw.get(raw_start..).and_then(|rest| rest.split('\n').next()) else {
            break;
        };
        let indent = written.trim_end_matches('\r').strip_suffix(line)?.len();
        lines.push((text_start as u32, (start + raw_start + indent) as u32));
        text_start += line.len() + 1;
        raw_start += written.len() + 1;
    }
    Some(lines.into())
}
