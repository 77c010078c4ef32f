//! Parameters of ROS as a message of the graph, one field each.

use std::time::{Duration, Instant};

use ros2_client::ParameterValue;
use sinew_core::catalogue::MessageType;
use sinew_core::{Fault, Refusal};
use sinew_spec::Span;

use crate::fields::{Place, places};
use crate::values::{Declared, Values};

/// The values are sent again after this time: a core that was restarted has lost earlier messages.
const AGAIN: Duration = Duration::from_secs(1);

/// Which parameter goes to which place in the message.
pub(super) struct Told {
    rows: Vec<(String, Place)>,
    message: Vec<u8>,
    /// [`Values::now`]'s count at the last send, and when that was.
    sent: Option<(u64, Instant)>,
}

impl Told {
    /// Each field of the message takes the parameter of its name: a number or a boolean.
    ///
    /// # Errors
    /// All fields without such a parameter.
    pub(super) fn of(
        message: &'static MessageType,
        declared: &[Declared],
        span: Span,
    ) -> Result<Told, Vec<Refusal>> {
        let (mut rows, mut wrong) = (Vec::new(), Vec::new());
        for field in message.fields {
            let found = declared.iter().find(|it| it.name == field.name);
            let is_number = matches!(
                found.map(|it| &it.value),
                Some(
                    ParameterValue::Boolean(_)
                        | ParameterValue::Integer(_)
                        | ParameterValue::Double(_)
                )
            );
            match places(field).next() {
                Some(place) if is_number && field.count == 1 => {
                    rows.push((field.name.to_owned(), place));
                }
                _ => {
                    let (name, ty) = (field.name, message.name);
                    let what = format!("no parameter stands for field '{name}' of message {ty}");
                    let help = "declare one of this name that is a number, true or false";
                    wrong.push(Refusal::new(span, what, help));
                }
            }
        }
        let message = vec![0; message.size as usize];
        if wrong.is_empty() { Ok(Told { rows, message, sent: None }) } else { Err(wrong) }
    }

    /// Sends the values, if one was set or a second has passed. `send` says whether there was room.
    pub(super) fn send(
        &mut self,
        values: &Values,
        send: impl FnOnce(&[u8]) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let (number, now) = values.now();
        if self.sent.is_some_and(|(sent, at)| sent == number && at.elapsed() < AGAIN) {
            return Ok(());
        }
        for (name, place) in &self.rows {
            let value = match now.get(name) {
                Some(ParameterValue::Boolean(is)) => f64::from(u8::from(*is)),
                Some(ParameterValue::Integer(number)) => *number as f64,
                Some(ParameterValue::Double(number)) => *number,
                // Not reached: the type of a parameter never changes.
                _ => continue,
            };
            // A value that the field cannot hold leaves the field as it was.
            let _ = place.write(&mut self.message, value);
        }
        if send(&self.message)? {
            self.sent = Some((number, Instant::now()));
        }
        Ok(())
    }
}
