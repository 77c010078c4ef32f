//! Lines on the serial port, for people who look for why a guest does not start.

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

/// Prints a line on the serial port. It waits for the port: not for a node's every cycle.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::Console, $($part)*);
    }};
}
