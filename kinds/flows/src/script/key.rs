//! The key of a packet. Packets with the same key share an order, a limit or an entry.

use bytestring::ByteString;
use sinew_core::Refusal;
use sinew_flow::{Error, Flow, Value};
use sinew_spec::Item;

use super::expression::Expression;
use super::refused;

/// Longest key, in bytes: names and paths fit, and a table of keys stays small. A longer one is an
/// error of the client (413).
const KEY_LEN_MAX: usize = 1024;

/// An expression that gives the key.
pub(crate) struct Key(Expression);

impl Key {
    /// Compiles the expression of a key.
    ///
    /// # Errors
    /// As for [`Expression::of`]; or it gives the same value for all packets, and that cannot be a
    /// key.
    pub(crate) fn of(item: &Item) -> Result<Key, Vec<Refusal>> {
        let expression = Expression::of(item, &[])?;
        let wrong = expression.constant().and_then(|value| text(value.clone()).err());
        match wrong {
            Some(error) => {
                let help = "write an expression such as packet.user, or a text: \"'all'\"";
                Err(vec![Refusal::new(item.span, error.text(), help)])
            }
            None => Ok(Key(expression)),
        }
    }

    /// The key of a packet: a text, or a whole number as its digits.
    ///
    /// # Errors
    /// The expression fails; or its value is neither (400), or too long (413).
    pub(crate) fn find(&self, flow: &Flow, packet: &Value) -> Result<ByteString, Error> {
        text(self.0.evaluate((flow, packet))?)
    }
}

fn text(value: Value) -> Result<ByteString, Error> {
    match value {
        Value::Text(text) if text.len() <= KEY_LEN_MAX => Ok(text),
        Value::Text(text) => {
            let what = format!("a key of {} bytes; at most {KEY_LEN_MAX}", text.len());
            Err(refused(413, what))
        }
        Value::Integer(number) => Ok(number.to_string().into()),
        other => {
            let what = format!("a key is a text or a whole number, and this is {}", other.sort());
            Err(refused(400, what))
        }
    }
}
