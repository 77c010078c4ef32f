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
    /// The values of all parameters, also of those that never change.
    values: Vec<ParameterValue>,
    /// The parameters that may change: their place among all, and in the message.
    fields: Vec<(usize, Field)>,
    /// As in [`Parameters::messages`].
    messages: Vec<(usize, &'static MessageType)>,
}

impl Tuning {
    /// For a node that was made of `parameters`; its new values come to `slot`.
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

    /// Hands new values to the node, if there are any; sets `updating` when the node is at work.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        node: &mut dyn Node,
        slots: &mut Slots,
        cycle: u64,
        updating: &mut bool,
    ) -> Result<(), Fault> {
        match self.receiver.receive(slots.bytes_mut(self.slot))? {
            Received::New { .. } => self.take(node, slots, cycle, updating),
            Received::None | Received::Closed => Ok(()),
        }
    }

    /// Not inlined, so that the cycle's code stays small.
    #[cold]
    #[inline(never)]
    fn take(
        &mut self,
        node: &mut dyn Node,
        slots: &mut Slots,
        cycle: u64,
        updating: &mut bool,
    ) -> Result<(), Fault> {
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
        *updating = true;
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

/// The supervisor has checked the value before, so the memory between both was overwritten.
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

#[cfg(test)]
mod tests {
    use sinew_plan::catalogue::{Parameter, RunsIn, Scalar, type_hash};

    use super::*;
    use crate::node::{Cycle, Io};
    use crate::transport::Received::{Closed, New, None as Nothing};

    const NUMBER: ParameterType = ParameterType::Number { min: -2.0, max: 2.0 };
    const COUNT: ParameterType = ParameterType::Integer { min: 0, max: 9 };
    static KIND: Kind = Kind {
        parameters: &[
            Parameter::new("name", ParameterType::Text),
            Parameter::new("fast", ParameterType::Bool).tunable(),
            Parameter::new("gain", NUMBER).tunable(),
            Parameter::new("count", COUNT).tunable(),
        ],
        ..Kind::new("tuned", RunsIn::Realtime, &[])
    };
    const fn field(name: &'static str, scalar: Scalar, offset: u32) -> Field {
        Field { name, scalar, count: 1, offset, labels: &[] }
    }
    const FIELDS: &[Field] = &[
        field("fast", Scalar::Bool, 0),
        field("gain", Scalar::F64, 8),
        field("count", Scalar::I64, 16),
    ];
    static MESSAGE: MessageType = MessageType {
        name: "tuned_tuning",
        size: 24,
        align: 8,
        fields: FIELDS,
        hash: type_hash("tuned_tuning", 24, FIELDS),
    };
    const PORT: Port = Port::input("tuning", "New values.", &MESSAGE);

    /// Keeps what it was told.
    #[derive(Default)]
    struct Told(Vec<(String, bool, f64, i64)>);

    impl Node for Told {
        fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
            Ok(())
        }

        fn tune(&mut self, it: &Parameters<'_>) -> Result<(), Fault> {
            let name = it.text("name").to_owned();
            self.0.push((name, it.bool("fast"), it.number("gain"), it.integer("count")));
            Ok(())
        }
    }

    struct Sent(Vec<Vec<u8>>);

    impl Receiver for Sent {
        fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
            let Some(message) = self.0.pop() else { return Ok(Nothing) };
            if message.is_empty() {
                return Ok(Closed);
            }
            into.copy_from_slice(&message);
            Ok(New { lost: 0 })
        }

        fn wait(&mut self, _: u64) -> bool {
            false
        }
    }

    fn values(fast: bool, gain: f64, count: i64) -> Vec<ParameterValue> {
        use ParameterValue::{Bool, Integer, Number, Text};
        vec![Text("axis".into()), Bool(fast), Number(gain), Integer(count)]
    }

    #[test]
    fn what_was_sent_is_told_once_with_all_that_never_changes() {
        let (first, base) = (values(false, 1.0, 1), Path::new(""));
        let parameters = Parameters {
            kind: &KIND,
            values: &first,
            base,
            spans: &[],
            period_ns: 1,
            messages: Vec::new(),
            home: None,
        };
        let good = tuning_message(&KIND, &PORT, &values(true, -2.0, 9));
        let mut slots = Slots::default();
        let slot = slots.add(MESSAGE.size);
        let receiver = Box::new(Sent(vec![vec![], good]));
        let mut tuning = Tuning::new(&parameters, &PORT, slot, receiver);
        let mut node = Told::default();
        for cycle in 0..3 {
            tuning.pass(&mut node, &mut slots, cycle, &mut false).expect("good values");
            assert_eq!(slots.is_new(slot, cycle), cycle == 0);
        }
        assert_eq!(node.0, [("axis".to_owned(), true, -2.0, 9)]);
    }

    #[test]
    fn a_value_that_nobody_can_have_sent_is_a_fault_and_never_told() {
        let bad = [(2.5, 1), (f64::NAN, 1), (1.0, -1), (1.0, i64::MAX)];
        for (gain, count) in bad {
            let message = tuning_message(&KIND, &PORT, &values(true, gain, count));
            let row = |at: usize| KIND.parameters[at + 1].ty;
            let fields = FIELDS.iter().enumerate();
            let taken: Vec<_> = fields
                .map(|(at, field)| value(row(at), &message[field.offset as usize..]).is_some())
                .collect();
            assert!(taken[0] && taken.contains(&false), "{gain} {count}");
        }
        assert_eq!(value(COUNT, &[0; 4]), None, "too short");
    }
}
