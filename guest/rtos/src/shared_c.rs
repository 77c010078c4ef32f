//! Named memory for C: `include/sinew_guest.h` is the other half of this file. Each function
//! returns 0, or the number of the refusal.

use core::ffi::{CStr, c_char, c_void};

use crate::{MadeBy, SharedRefusal, SharedWish, shared};

type Outcome = Result<(), SharedRefusal>;

fn number(outcome: Outcome) -> u32 {
    outcome.map_or_else(|why| why as u32, |()| 0)
}

/// # Safety
/// `name` is a text that ends with a zero, valid during the call.
unsafe fn text<'a>(name: *const c_char) -> &'a str {
    // SAFETY: the caller's promise. A text that is not UTF-8 counts as an empty name, which is
    // refused.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
}

fn get(name: &str, wish: &SharedWish, maker: u32, deadline_ms: u32) -> u32 {
    let maker = MadeBy::of(maker).ok_or(SharedRefusal::BadRequest);
    number(maker.and_then(|maker| shared::get(name, wish, maker, deadline_ms)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_get_region(
    name: *const c_char,
    bytes: u32,
    hash: u32,
    maker: u32,
    deadline_ms: u32,
) -> u32 {
    // SAFETY: what the header asks for, here and below.
    get(unsafe { text(name) }, &SharedWish::region(bytes, hash), maker, deadline_ms)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_get_semaphore(
    name: *const c_char,
    tokens: u32,
    maker: u32,
    deadline_ms: u32,
) -> u32 {
    // SAFETY: as above.
    get(unsafe { text(name) }, &SharedWish::semaphore(tokens), maker, deadline_ms)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_get_queue(
    name: *const c_char,
    message_size: u32,
    capacity: u32,
    hash: u32,
    maker: u32,
    deadline_ms: u32,
) -> u32 {
    let wish = SharedWish::queue(message_size, capacity, hash);
    // SAFETY: as above.
    get(unsafe { text(name) }, &wish, maker, deadline_ms)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_attach(name: *const c_char) -> u32 {
    // SAFETY: as above.
    number(shared::attach(unsafe { text(name) }).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_detach(name: *const c_char) -> u32 {
    // SAFETY: as above.
    number(shared::detach(unsafe { text(name) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_remove(name: *const c_char, deadline_ms: u32) -> u32 {
    // SAFETY: as above.
    number(shared::remove(unsafe { text(name) }, deadline_ms))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_region_read(
    name: *const c_char,
    at: u32,
    bytes: *mut c_void,
    len: u32,
) -> u32 {
    // SAFETY: as above; the bytes are the caller's for writing.
    let (name, bytes) =
        unsafe { (text(name), core::slice::from_raw_parts_mut(bytes.cast(), len as usize)) };
    number(shared::read(name, at as usize, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_region_write(
    name: *const c_char,
    at: u32,
    bytes: *const c_void,
    len: u32,
) -> u32 {
    // SAFETY: as above; the bytes are the caller's for reading.
    let (name, bytes) =
        unsafe { (text(name), core::slice::from_raw_parts(bytes.cast(), len as usize)) };
    number(shared::write(name, at as usize, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_post(name: *const c_char) -> u32 {
    // SAFETY: as above.
    number(shared::post(unsafe { text(name) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_take(name: *const c_char, deadline_ms: u32) -> u32 {
    // SAFETY: as above.
    number(shared::take(unsafe { text(name) }, deadline_ms))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_send(
    name: *const c_char,
    message: *const c_void,
    len: u32,
    deadline_ms: u32,
) -> u32 {
    // SAFETY: as above; the message is the caller's for reading.
    let (name, message) =
        unsafe { (text(name), core::slice::from_raw_parts(message.cast(), len as usize)) };
    number(shared::send(name, message, deadline_ms))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sinew_receive(
    name: *const c_char,
    message: *mut c_void,
    len: u32,
    deadline_ms: u32,
) -> u32 {
    // SAFETY: as above; the message is the caller's for writing.
    let (name, message) =
        unsafe { (text(name), core::slice::from_raw_parts_mut(message.cast(), len as usize)) };
    number(shared::receive(name, message, deadline_ms))
}
