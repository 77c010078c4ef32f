//! What stands before the nodes that do the work: who may ask, and what he may send.

pub(crate) mod basic;
pub(crate) mod cors;
mod hashed;
pub(crate) mod jwt;
pub(crate) mod jwt_sign;
pub(crate) mod password;
mod secret;
mod token;
pub(crate) mod validate;
pub(crate) mod verify;

use bytestring::ByteString;
use sinew_flow::{Error, Value};

use crate::script::library;

/// The output of these kinds, by index of their tables.
const OUT: usize = 1;

/// A header of a request, or of a mapping that stands for one; several of one name are joined.
pub(crate) fn header(packet: &Value, name: &str) -> Result<Option<ByteString>, Error> {
    match packet.field("header")?.field(name)? {
        Value::Text(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

/// Seconds of the time of day: tokens and signatures of others name it. Before 1970 it is that.
fn now_s() -> i64 {
    library::now_ms().div_euclid(1000)
}
