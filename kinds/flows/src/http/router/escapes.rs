//! Percent escapes in paths (RFC 3986): one spelling for each path, and the text that is meant.

use std::borrow::Cow;

use bytestring::ByteString;
use percent_encoding::percent_decode_str;

/// The path in its normal spelling (RFC 3986, 6.2.2): escapes of characters that need none are
/// resolved, the others have digits in upper case. `None` if a `%` has no two digits after it.
pub(super) fn normal(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut parts = path.split('%');
    let mut normal = String::with_capacity(path.len());
    normal.push_str(parts.next()?);
    for part in parts {
        let digits = part.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let byte = u8::from_str_radix(digits, 16).ok()?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            normal.push(byte.into());
        } else {
            normal.push('%');
            normal.push_str(&digits.to_ascii_uppercase());
        }
        normal.push_str(&part[2..]);
    }
    Some(Cow::Owned(normal))
}

/// What a part of a path means. `None` if that is no UTF-8.
pub(super) fn decode(part: &str) -> Option<ByteString> {
    Some(percent_decode_str(part).decode_utf8().ok()?.into_owned().into())
}
