//! Lines on the serial port, for people who debug the start of a guest.

use core::fmt;

use crate::board;

/// Writes to the serial port.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        board::print(text);
        Ok(())
    }
}

/// Prints a line on the serial port. It waits for the port, so do not use it in every cycle of a
/// node.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::Console, $($part)*);
    }};
}
