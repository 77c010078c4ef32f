//! Kinds written in C: `include/sinew_guest.h` is the other half of this file.

use alloc::boxed::Box;
use alloc::vec;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use sinew_carve_out::image::KindRecord;

use crate::{Cycle, Fault, Fresh, GuestNode, Io, Parameters, fault};

/// `struct sinew_maker`.
#[repr(C)]
pub(crate) struct Maker {
    pub(crate) record: *const KindRecord,
    state_size: u32,
    make: Option<unsafe extern "C" fn(*mut c_void, *const CParameters) -> *const c_char>,
    update: unsafe extern "C" fn(*mut c_void, *mut CIo, *const CCycle) -> *const c_char,
    stop: Option<unsafe extern "C" fn(*mut c_void, *mut CIo)>,
}

/// `struct sinew_parameters`.
#[repr(C)]
struct CParameters {
    values: *const f64,
    value_count: u32,
    period_us: u32,
}

/// `struct sinew_cycle`.
#[repr(C)]
struct CCycle {
    number: u64,
    period_us: u32,
    skipped: u32,
    linux_silent_ms: u32,
}

/// `struct sinew_io`, of which C has only pointers: it is our `Io`.
#[repr(C)]
struct CIo(c_void);

/// A node of a kind in C, with its state, which begins as zeros.
struct CNode {
    maker: &'static Maker,
    /// Words, so that it is aligned to 8.
    state: Box<[u64]>,
}

/// Makes a node of a kind in C.
pub(crate) fn make(
    maker: &'static Maker,
    parameters: &Parameters<'_>,
) -> Result<Box<dyn GuestNode>, Fault> {
    let words = (maker.state_size as usize).div_ceil(8);
    let mut node = CNode { maker, state: vec![0; words].into_boxed_slice() };
    let values = parameters.values();
    let given = CParameters {
        values: values.as_ptr(),
        value_count: values.len() as u32,
        period_us: parameters.period_us(),
    };
    if let Some(make) = maker.make {
        // SAFETY: the state is as long as the kind says, and both are valid during the call.
        result(unsafe { make(node.state(), &given) })?;
    }
    Ok(Box::new(node))
}

/// The result of a C function: null, or a text that says why it failed.
pub(crate) fn result(why: *const c_char) -> Result<(), Fault> {
    if why.is_null() {
        return Ok(());
    }
    // SAFETY: the header asks for a text that ends with a zero and stays.
    let why = unsafe { CStr::from_ptr(why) };
    Err(fault!("{}", why.to_str().unwrap_or("a text that is not UTF-8")))
}

impl CNode {
    fn state(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }
}

impl GuestNode for CNode {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        let Cycle { number, period_us, skipped, linux_silent_ms } = *cycle;
        let cycle = CCycle { number, period_us, skipped, linux_silent_ms };
        // SAFETY: all three are valid during the call, and C only hands `io` back to us.
        result(unsafe { (self.maker.update)(self.state(), ptr::from_mut(io).cast(), &cycle) })
    }

    fn stop(&mut self, io: &mut Io<'_>) {
        if let Some(stop) = self.maker.stop {
            // SAFETY: as for `update`.
            unsafe { stop(self.state(), ptr::from_mut(io).cast()) };
        }
    }
}

/// The `Io` that C was given.
///
/// # Safety
/// It is the pointer with which `update` or `stop` was called, and they have not returned.
unsafe fn given<'a>(io: *mut CIo) -> &'a mut Io<'a> {
    // SAFETY: the caller's promise.
    unsafe { &mut *io.cast::<Io<'a>>() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_is_linked(io: *mut CIo, port: u32) -> bool {
    // SAFETY: what the header asks for, here and below.
    unsafe { given(io) }.is_linked(port as usize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_fresh(io: *mut CIo, port: u32) -> u32 {
    // SAFETY: as above.
    match unsafe { given(io) }.fresh(port as usize) {
        Fresh::None => 0,
        Fresh::Old => 1,
        Fresh::New => 2,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_read(io: *mut CIo, port: u32) -> *const c_void {
    // SAFETY: as above.
    unsafe { given(io) }.bytes(port as usize).as_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_write(io: *mut CIo, port: u32) -> *mut c_void {
    // SAFETY: as above.
    unsafe { given(io) }.bytes_mut(port as usize).as_mut_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_next(io: *mut CIo, port: u32) -> bool {
    // SAFETY: as above. If the peer broke the rules, the read of the next cycle reports it.
    unsafe { given(io) }.next(port as usize).unwrap_or(false)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_counter(io: *mut CIo, counter: u32) -> *mut u32 {
    // SAFETY: as above.
    unsafe { given(io) }.counter(counter as usize)
}
