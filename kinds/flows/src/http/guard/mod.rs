//! Nodes in front of those that do the work: they check who may send a request, and what it may
//! hold.

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

/// The output of these kinds, as an index into their ports.
const OUT: usize = 1;

/// A header of a request, or of a mapping that stands for one; several of one name are joined.
pub(crate) fn header(packet: &Value, name: &str) -> Result<Option<ByteString>, Error> {
    match packet.field("header")?.field(name)? {
        Value::Text(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

/// The current time in seconds since 1970, as tokens and signatures of others name it. It is
/// negative before 1970.
fn now_s() -> i64 {
    library::now_ms().div_euclid(1000)
}
