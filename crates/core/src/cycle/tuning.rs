//! New values of a node's tunable parameters, on their way from the supervisor: all of a node at
//! once, between two cycles.

use std::mem::take;
use std::path::Path;

use sinew_plan::catalogue::{Field, Kind, MessageType, ParameterType, ParameterValue, Port};

use crate::fault::{Cause, Fault};
use crate::node::{Node, Parameters};
use crate::slots::{Slot, Slots};
use crate::transport::{Received, Receiver};

/// The newest values, and where newer ones come from.
pub(crate) struct Tuning {
    slot: Slot,
    receiver: Box<dyn Receiver>,
    kind: &'static Kind,
    period_ns: u64,
    /// Of all parameters, also those that never change.
    values: Vec<ParameterValue>,
    /// Those that may: their place among all, and in the message.
    fields: Vec<(usize, Field)>,
    /// As in [`Parameters::messages`].
    messages: Vec<(usize, &'static MessageType)>,
}

impl Tuning {
    /// Of a node that was made of `parameters`; its new values come to `slot`.
    pub(crate) fn new(
        parameters: &Parameters<'_>,
        port: &Port,
        slot: Slot,
        receiver: Box<dyn Receiver>,
    ) -> Tuning {
        let Parameters { kind, values, period_ns, ref messages, .. } = *parameters;
        let place = |field: &Field| kind.parameters.iter().position(|row| row.name == field.name);
        let fields = port.message.fields.iter().filter_map(|field| Some((place(field)?, *field)));
        Tuning {
            slot,
            receiver,
            kind,
            period_ns,
            values: values.to_vec(),
            fields: fields.collect(),
            messages: messages.clone(),
        }
    }

    /// Hands new values to the node, if there are any.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        node: &mut dyn Node,
        slots: &mut Slots,
        cycle: u64,
    ) -> Result<(), Fault> {
        match self.receiver.receive(slots.bytes_mut(self.slot))? {
            Received::New { .. } => self.take(node, slots, cycle),
            Received::None | Received::Closed => Ok(()),
        }
    }

    /// Apart, so that the cycle stays small.
    #[cold]
    #[inline(never)]
    fn take(&mut self, node: &mut dyn Node, slots: &mut Slots, cycle: u64) -> Result<(), Fault> {
        slots.mark_new(self.slot, cycle);
        let bytes = slots.bytes(self.slot);
        for (at, field) in &self.fields {
            let row = &self.kind.parameters[*at];
            let value = value(row.ty, &bytes[field.offset as usize..]);
            self.values[*at] = value.ok_or_else(|| out_of_limits(row.name))?;
        }
        let parameters = Parameters {
            kind: self.kind,
            values: &self.values,
            base: Path::new(""),
            spans: &[],
            period_ns: self.period_ns,
            messages: take(&mut self.messages),
            home: None,
        };
        let tuned = node.tune(&parameters);
        self.messages = parameters.messages;
        tuned
    }
}

/// The value at the beginning of these bytes, if it is within its limits.
fn value(ty: ParameterType, bytes: &[u8]) -> Option<ParameterValue> {
    Some(match ty {
        ParameterType::Bool => ParameterValue::Bool(*bytes.first()? != 0),
        ParameterType::Integer { min, max } => {
            let value = i64::from_ne_bytes(*bytes.first_chunk()?);
            ParameterValue::Integer(Some(value).filter(|it| (min..=max).contains(it))?)
        }
        ParameterType::Number { min, max } => {
            let value = f64::from_ne_bytes(*bytes.first_chunk()?);
            ParameterValue::Number(Some(value).filter(|it| (min..=max).contains(it))?)
        }
        _ => return None,
    })
}

/// The supervisor has looked at it before, so the memory between both is spoiled.
fn out_of_limits(name: &str) -> Fault {
    Fault::new(
        Cause::BadPeer,
        format_args!("a new value of parameter '{name}' is out of its limits: it was overwritten"),
    )
}

/// The message that brings these values, one for each of the kind's parameters, to a node; `port`
/// is where it comes in.
pub fn tuning_message(kind: &Kind, port: &Port, values: &[ParameterValue]) -> Vec<u8> {
    let mut message = vec![0; port.message.size as usize];
    for (row, value) in kind.parameters.iter().zip(values) {
        let field = port.message.fields.iter().find(|field| field.name == row.name);
        let mut put = |bytes: &[u8]| {
            if let Some(field) = field {
                message[field.offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
        };
        match value {
            ParameterValue::Bool(value) => put(&[u8::from(*value)]),
            ParameterValue::Integer(value) => put(&value.to_ne_bytes()),
            ParameterValue::Number(value) => put(&value.to_ne_bytes()),
            _ => {}
        }
    }
    message
}
