//! How people see packets: which of them they want, as an expression, and what of a packet is
//! shown.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytestring::ByteString;
use sinew_control::outside;
use sinew_flow::{Error, Flow, Lens, PacketFilter, Value};
use sinew_spec::{HIDDEN, Span};

use crate::json;
use crate::script::expression::{Expression, weight};

/// For `sinew tap`.
pub const LENS: Lens = Lens { filter, show };

/// Longest text of a packet that is shown, in bytes. Of a longer one only the beginning is shown.
const SHOWN_MAX: usize = 4096;
/// Headers whose values are never shown, whatever the case of the letters in their names.
pub(crate) const SHY_HEADERS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "cookies", "set-cookie"];
/// Values that are searched for such headers, for one unit of work.
const VALUES_PER_UNIT: u64 = 8;

fn filter(text: &str) -> Result<PacketFilter, String> {
    let compiled = Expression::compile(text, Span::default()).map_err(|refusals| {
        let words = refusals.iter().map(|refusal| format!("filter: {refusal}"));
        words.collect::<Vec<_>>().join("; ")
    })?;
    Ok(Box::new(move |flow, packet| compiled.holds((flow, packet))))
}

fn show(flow: &Flow, value: &Value) -> String {
    let text = pin!(async { json::text(flow, &veiled(flow, value.clone())?).await });
    match text.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(text)) => shortened(&text),
        Poll::Ready(Err(error)) => format!("(not shown: {})", error.text()),
        // To write it would keep the worker for longer than a slice.
        Poll::Pending => "(not shown: too long)".into(),
    }
}

fn shortened(text: &str) -> String {
    let shown = outside::hide_first(text, SHOWN_MAX);
    match shown.len() > SHOWN_MAX {
        true => format!("{}…", &shown[..shown.floor_char_boundary(SHOWN_MAX)]),
        false => shown.into_owned(),
    }
}

/// A value as people may see it: without the headers that hold credentials.
///
/// # Errors
/// The value cannot be resolved, or the flow has too little work left to search it.
pub(crate) fn veiled(flow: &Flow, value: Value) -> Result<Value, Error> {
    let value = if let Value::Document(_) = value { flow.resolve(&value)? } else { value };
    flow.spend(weight(&value) / VALUES_PER_UNIT)?;
    Ok(without(&value).unwrap_or(value))
}

/// The value with such headers hidden and its streams replaced; `None` if it has neither.
fn without(value: &Value) -> Option<Value> {
    match value {
        Value::List(items) => {
            let hidden: Vec<_> = items.iter().map(without).collect();
            let is_same = hidden.iter().all(Option::is_none);
            let items =
                items.iter().zip(hidden).map(|(item, hidden)| hidden.unwrap_or(item.clone()));
            (!is_same).then(|| Value::list(items))
        }
        Value::Map(map) => {
            let is_shy = |key: &str| SHY_HEADERS.iter().any(|name| key.eq_ignore_ascii_case(name));
            let hide = |(key, value): (&ByteString, &Value)| match is_shy(key) {
                true => Some(Value::text(HIDDEN)),
                false => without(value),
            };
            let hidden: Vec<_> = map.iter().map(hide).collect();
            let is_same = hidden.iter().all(Option::is_none);
            let entries = map.iter().zip(hidden);
            let entries = entries
                .map(|((key, value), hidden)| (key.clone(), hidden.unwrap_or(value.clone())));
            (!is_same).then(|| Value::Map(Arc::new(entries.collect())))
        }
        Value::Stream(_) => Some(Value::text("(a stream)")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::{FlowLimits, Stream};

    use super::*;
    use crate::testing::{LIMIT, MalformedRequest, fixture};

    fn flow() -> Flow {
        let flow = fixture("- {kind: nop, name: a}").flow();
        flow.allow(FlowLimits::from(LIMIT).work);
        flow
    }

    #[test]
    fn headers_that_let_in_are_hidden_wherever_they_stand() {
        let json = |text: &str| {
            Value::from(serde_json::from_str::<serde_json::Value>(text).expect("JSON"))
        };
        let packet = json(
            r#"[{"header": {"AUTHORIZATION": "x", "Cookie": ["x"], "accept": "y"}},
                {"a": {"set-cookie": {"x": 1}, "proxy-authorization": null}}]"#,
        );
        let shown = without(&packet).expect("some are hidden").to_json().expect("JSON").to_string();
        let header = r#"{"header":{"AUTHORIZATION":"***","Cookie":"***","accept":"y"}}"#;
        let other = r#"{"a":{"set-cookie":"***","proxy-authorization":"***"}}"#;
        assert_eq!(shown, format!("[{header},{other}]"));
        assert!(without(&json(r#"{"header": {"accept": "y"}}"#)).is_none());
    }

    #[test]
    fn a_packet_is_wanted_by_an_expression() {
        let wants = filter("packet.a > 1").expect("an expression");
        let number = |a| Value::map([("a", Value::Integer(a))]);
        assert_eq!(wants(&flow(), &number(1)), Ok(false));
        assert_eq!(wants(&flow(), &number(2)), Ok(true));
        assert!(wants(&flow(), &Value::Null).is_err(), "it has no 'a'");
        let error = filter("packet.a >").err().expect("no expression");
        assert!(error.starts_with("filter: "), "{error}");
    }

    #[test]
    fn a_packet_is_shown_as_far_as_it_can_be() {
        let stream = Value::Stream(Stream::new(futures_util::stream::empty()));
        let packet = Value::map([("body", stream), ("cookie", Value::text("x"))]);
        assert_eq!(show(&flow(), &packet), r#"{"body":"(a stream)","cookie":"***"}"#);
        let long = show(&flow(), &Value::text("ä".repeat(SHOWN_MAX)));
        assert!(long.starts_with("\"ää") && long.ends_with("ä…"), "{long}");
        assert!(long.len() <= SHOWN_MAX + "…".len());
        let malformed = show(&flow(), &Value::Document(Arc::new(MalformedRequest)));
        assert_eq!(malformed, "(not shown: the body is not JSON)");
        let poor = flow();
        poor.allow(1);
        let costly = show(&poor, &Value::text("x".repeat(SHOWN_MAX)));
        assert!(costly.starts_with("(not shown: "), "{costly}");
    }
}
