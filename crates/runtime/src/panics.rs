//! Panics as faults: the hook writes nothing, for a cycle that panics must first bring its outputs
//! to safety; it keeps the text for the report that comes after.

use std::cell::RefCell;
use std::panic;

use crate::fault::{Cause, Fault};

thread_local! {
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Makes panics of this process silent until [`take`] asks for them.
pub(crate) fn install() {
    panic::set_hook(Box::new(|info| {
        let text = info.payload_as_str().unwrap_or("a panic without a text");
        let fault = match info.location() {
            Some(at) => Fault::new(
                Cause::Panic,
                format_args!("panicked at {}:{}: {text}", at.file(), at.line()),
            ),
            None => Fault::new(Cause::Panic, format_args!("panicked: {text}")),
        };
        LAST.with(|last| last.replace(Some(fault)));
    }));
}

/// The last panic of this thread.
pub(crate) fn take() -> Fault {
    LAST.with(|last| last.take())
        .unwrap_or_else(|| Fault::new(Cause::Panic, format_args!("panicked without a text")))
}
