//! Text that is cut off for lack of room gets a mark.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use sinew_figures::wrap::wrap_at;

use crate::theme::Theme;

/// Marks text that is cut off.
pub(crate) const MARK: &str = "…";

/// Words in this many columns.
pub fn fit_words(text: &str, columns: usize) -> String {
    fit(Line::raw(text.to_owned()), columns).to_string()
}

/// A line in this many columns.
pub(crate) fn fit(line: Line<'static>, columns: usize) -> Line<'static> {
    if line.width() <= columns {
        return line;
    }
    let mut room = columns.saturating_sub(1);
    let mut spans = Vec::new();
    for span in &line.spans {
        if span.width() <= room {
            room -= span.width();
            spans.push(span.clone());
            continue;
        }
        let mut text = String::new();
        for sign in span.styled_graphemes(Style::new()) {
            let width = Span::raw(sign.symbol).width();
            if width > room {
                break;
            }
            room -= width;
            text += sign.symbol;
        }
        text += if columns > 0 { MARK } else { "" };
        spans.push(Span::styled(text, span.style));
        break;
    }
    Line { spans, ..line }
}

/// Draws lines. The last row says how many lines do not fit. `below` more lines are added to this
/// number.
pub(crate) fn draw_lines(
    frame: &mut Frame<'_>,
    mut lines: Vec<Line<'static>>,
    below: usize,
    area: Rect,
    theme: Theme,
) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    if below > 0 || lines.len() > rows {
        let kept = lines.len().min(rows.saturating_sub(1));
        let hidden = lines.len() - kept + below;
        lines.truncate(kept);
        let what = if hidden == 1 { "row" } else { "rows" };
        lines.push(Line::styled(
            format!("{MARK} {hidden} more {what} on a higher screen"),
            theme.dim(),
        ));
    }
    let lines: Vec<_> = lines.into_iter().map(|line| fit(line, columns)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Words in rows of this many columns. Further rows are indented to the first word. A word that is
/// too long continues in the next row.
pub(crate) fn rows_of(lead: &str, words: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(lead.len() + 1);
    let mut text = String::new();
    wrap_at(&mut text, lead, words, columns);
    let broken = |line: &str| {
        let signs: Vec<char> = line.chars().collect();
        let (first, rest) = signs.split_at(signs.len().min(columns));
        let rest = rest.chunks(columns - lead.len());
        let rest = rest.map(|row| " ".repeat(lead.len()) + &row.iter().collect::<String>());
        [first.iter().collect()].into_iter().chain(rest).collect::<Vec<String>>()
    };
    text.lines().flat_map(broken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::picture;

    #[test]
    fn a_line_that_is_cut_has_a_mark_and_keeps_its_looks() {
        let style = Theme { color: true }.bad();
        let line = Line::from(vec![Span::raw("ab "), Span::styled("cdef", style), Span::raw("g")]);
        let cut = |columns| fit(line.clone(), columns).to_string();
        let expected = ["", "…", "a…", "ab…", "ab …", "ab c…", "ab cd…", "ab cde…", "ab cdefg"];
        assert_eq!((0..=8).map(cut).collect::<Vec<_>>(), expected);
        assert_eq!(fit(line.clone(), 6).spans[1].style, style);
        assert_eq!(fit_words("字字字", 4), "字…");
    }

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let shown = |count: usize, below, size| {
            let lines = (0..count).map(|at| Line::raw(format!("row {at}"))).collect();
            let theme = Theme { color: false };
            picture(size, |frame| draw_lines(frame, lines, below, frame.area(), theme)).0
        };
        assert_eq!(shown(2, 0, (9, 2)), "row 0\nrow 1\n");
        assert_eq!(shown(3, 0, (40, 2)), "row 0\n… 2 more rows on a higher screen\n");
        assert_eq!(shown(2, 1, (40, 3)), "row 0\nrow 1\n… 1 more row on a higher screen\n");
        assert_eq!(shown(2, 5, (9, 1)), "… 7 more…\n");
    }

    #[test]
    fn a_long_word_goes_on_in_the_next_row() {
        assert_eq!(
            rows_of("  ", "at http://abcdef now", 10),
            ["  at", "  http://a", "  bcdef", "  now"]
        );
        assert_eq!(rows_of("  ", "ab", 0), ["  a", "  b"]);
        assert!(rows_of("", "", 10).iter().all(String::is_empty));
    }
}
