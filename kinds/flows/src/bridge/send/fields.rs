//! Checks a `send` before anything is sent: whether its fields are those of the message that the
//! mailbox takes.

use sinew_core::catalogue::{MessageType, Scalar};
use sinew_core::{Parameters, Refusal};
use sinew_spec::{Data, suggest};

/// What is wrong with `value` and `count` for messages of this type.
pub(super) fn check(
    ty: &MessageType,
    parameters: &Parameters<'_>,
    count: Option<&str>,
) -> Vec<Refusal> {
    let names = || ty.fields.iter().map(|field| field.name);
    let mut refusals = Vec::new();
    if let Some(name) = count.filter(|name| count_max(ty, name).is_none()) {
        let countable = names().filter(|name| count_max(ty, name).is_some());
        let message = format!("a {} has no field '{name}' that could count", ty.name);
        let help = suggest(name, countable.collect::<Vec<_>>().into_iter());
        refusals.push(Refusal::new(parameters.span("count"), message, help));
    }
    let value = parameters.yaml("value");
    let Data::Map(entries) = &value.data else { return refusals };
    for entry in entries {
        let key = entry.key.as_str();
        if count == Some(key) {
            let message = format!("'{key}' is filled in by 'count: {key}'");
            refusals.push(Refusal::new(entry.span, message, "remove one of them"));
        } else if !names().any(|name| name == key) {
            let message = format!("a {} has no field '{key}'", ty.name);
            let help = suggest(key, names().collect::<Vec<_>>().into_iter());
            refusals.push(Refusal::new(entry.span, message, help));
        }
    }
    let is_given = |name| count == Some(name) || entries.iter().any(|entry| entry.key == name);
    for name in names().filter(|name| !is_given(name)) {
        let message = format!("a {} needs '{name}'", ty.name);
        let help = format!("add '{name}: ...' to 'value'");
        refusals.push(Refusal::new(value.span, message, help));
    }
    refusals
}

/// The greatest number that a field can count to and a value can hold; `None` if the field cannot
/// count.
pub(super) fn count_max(ty: &MessageType, name: &str) -> Option<u64> {
    let field = ty.fields.iter().find(|field| field.name == name && field.count == 1)?;
    if !field.labels.is_empty() {
        return None;
    }
    match field.scalar {
        Scalar::U8 => Some(u8::MAX.into()),
        Scalar::U16 => Some(u16::MAX.into()),
        Scalar::U32 => Some(u32::MAX.into()),
        Scalar::U64 => Some(i64::MAX as u64),
        _ => None,
    }
}
