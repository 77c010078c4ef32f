//! Random values. All of them come from the operating system's generator (getrandom), because a
//! token that can be guessed is useless.

use ring::rand::{SecureRandom, SystemRandom};
use sinew_flow::Value;

use super::{Given, moment};

fn bytes<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the operating system gives no random bytes".to_owned())?;
    Ok(bytes)
}

/// Version 4 of RFC 9562.
pub(super) fn uuid4() -> Result<Value, String> {
    Ok(written(bytes()?, 4))
}

/// Version 7: 48 bits of milliseconds, the rest is random.
pub(super) fn uuid7() -> Result<Value, String> {
    let mut bytes = bytes()?;
    bytes[..6].copy_from_slice(&moment::now_ms().to_be_bytes()[2..]);
    Ok(written(bytes, 7))
}

fn written(mut bytes: [u8; 16], version: u8) -> Value {
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = super::digest::hex(&bytes);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    Value::text(text)
}

/// A random number, or a whole one within bounds.
pub(super) fn random(given: &Given<'_>) -> Result<Value, String> {
    if !given.has(0) {
        // As many bits as a double holds.
        let bits = u64::from_ne_bytes(bytes()?) >> 11;
        return Ok(Value::Number(bits as f64 / (1_u64 << 53) as f64));
    }
    if !given.has(1) {
        return Err("takes no argument, or the least and the greatest number".into());
    }
    let (min, max) = (given.integer(0)?, given.integer(1)?);
    if min > max {
        return Err(format!("the least number, {min}, is above the greatest, {max}"));
    }
    let count = (i128::from(max) - i128::from(min) + 1) as u128;
    // Drawn from 128 bits: no number comes more often than another by more than 1 in 2^64.
    let drawn = u128::from_ne_bytes(bytes()?) % count;
    Ok(Value::Integer((i128::from(min) + drawn as i128) as i64))
}
