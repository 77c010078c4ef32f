//! How large a terminal may say it is: a picture takes memory for each of its places, and whoever
//! is at its other end sets the size.

use std::io;

use ratatui::crossterm::terminal::size;

/// Most places of a terminal that is drawn on; each takes some hundred bytes.
const PLACES_MAX: u32 = 1_000_000;

/// Looks whether the terminal has a size that can be drawn on.
///
/// # Errors
/// It has not, or there is no terminal.
pub(crate) fn check_size() -> io::Result<()> {
    let (columns, rows) = size()?;
    if fits(columns, rows) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the terminal says that it has {columns} columns and {rows} rows; a picture has \
         {PLACES_MAX} places at most: set its size (stty columns 120 rows 40)"
    )))
}

fn fits(columns: u16, rows: u16) -> bool {
    u32::from(columns) * u32::from(rows) <= PLACES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_is_too_large_for_memory() {
        assert!(fits(0, 0) && fits(1000, 1000));
        assert!(!fits(u16::MAX, u16::MAX) && !fits(1001, 1000));
    }
}
