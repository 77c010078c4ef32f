//! Panics as faults: the hook writes nothing, because a cycle that panics must first bring its
//! outputs to safety. It keeps the text for the report that comes after.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::fault::{Cause, Fault};

thread_local! {
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
    /// Whether this thread is within [`caught`].
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Makes panics of this process silent until [`take`] asks for them.
pub fn install() {
    panic::set_hook(Box::new(keep));
}

fn keep(info: &PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or("a panic without a text");
    let fault = match info.location() {
        Some(at) => Fault::new(
            Cause::Panic,
            format_args!("panicked at {}:{}: {text}", at.file(), at.line()),
        ),
        None => Fault::new(Cause::Panic, format_args!("panicked: {text}")),
    };
    LAST.with(|last| last.replace(Some(fault)));
}

/// Carries out `work` in a process that is not a domain. A panic in `work` is a fault, and as
/// silent as one in a domain; all other panics stay as they are.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(
            move |info| {
                if CATCHES.get() { keep(info) } else { before(info) }
            },
        ));
    });
    CATCHES.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(false);
    result.map_err(|_| take())
}

/// The last panic of this thread; in a process whose hook keeps none, what was caught.
pub fn take_or(caught: &(dyn Any + Send)) -> Fault {
    let text = caught.downcast_ref::<&str>().copied();
    let text = text.or_else(|| caught.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a text");
    LAST.with(|last| last.take())
        .unwrap_or_else(|| Fault::new(Cause::Panic, format_args!("panicked: {text}")))
}

/// Panics once and unwinds: code and tables that nothing else needs are then in memory, and can be
/// locked there. Call it after [`install`], otherwise the panic would be printed.
pub fn rehearse() {
    let _ = catch_unwind(|| panic!("rehearsed"));
    LAST.with(|last| last.take());
}

/// The last panic of this thread.
pub fn take() -> Fault {
    LAST.with(|last| last.take())
        .unwrap_or_else(|| Fault::new(Cause::Panic, format_args!("panicked without a text")))
}
