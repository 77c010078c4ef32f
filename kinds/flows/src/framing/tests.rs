//! Elements from bytes, in whatever pieces the bytes come; and elements as bytes.

use serde_json::json;

use super::write::Outgoing;
use super::*;
use crate::testing::{fixture, run};

/// The elements of bytes that come in pieces of `piece` bytes; an error comes last.
fn elements(
    format: ElementFormat,
    bytes: &[u8],
    piece: usize,
) -> Vec<Result<(u64, Value), String>> {
    let mut framer = Framer::new(String::new(), format, 100);
    let (mut pieces, mut found) = (bytes.chunks(piece), Vec::new());
    loop {
        match framer.next() {
            Ok(NextElement::Element(element)) => {
                let value = element.value.map_err(|error| error.text().to_owned());
                found.push(value.map(|value| (element.number, value)));
            }
            Ok(NextElement::More) => match pieces.next() {
                Some(piece) => framer.give(piece),
                None => framer.end(),
            },
            Ok(NextElement::End) => {
                assert_eq!(pieces.next(), None);
                return found;
            }
            Err(error) => {
                found.push(Err(error.text().to_owned()));
                return found;
            }
        }
    }
}

/// The elements as JSON. Checks that they are the same for pieces of any length.
fn whole(format: ElementFormat, bytes: &[u8]) -> serde_json::Value {
    let all = elements(format, bytes, bytes.len().max(1));
    for piece in 1..bytes.len() {
        assert_eq!(elements(format, bytes, piece), all, "pieces of {piece}");
    }
    let element = |it: Result<(u64, Value), String>| match it {
        Ok((number, value)) => json!([number, value.to_json().expect("JSON")]),
        Err(text) => json!(text),
    };
    all.into_iter().map(element).collect()
}

#[test]
fn elements_are_the_same_in_whatever_pieces_they_come() {
    let lines = whole(ElementFormat::Lines, b"\xef\xbb\xbfa\r\n\nb\xc3\xa4\nc");
    assert_eq!(lines, json!([[1, "a"], [2, ""], [3, "b\u{e4}"], [4, "c"]]));
    let ndjson = whole(ElementFormat::Ndjson, b"{\"a\":1}\n\n[2]\r\n3");
    assert_eq!(ndjson, json!([[1, {"a": 1}], [3, [2]], [4, 3]]));
    let csv = ElementFormat::Csv { has_header: true, separator: b';' };
    let rows = whole(csv, b"a;b\r\n1;\"2\r\n;\"\r\n\r\n3;4");
    assert_eq!(rows, json!([[2, {"a": "1", "b": "2\r\n;"}], [5, {"a": "3", "b": "4"}]]));
    let plain = ElementFormat::Csv { has_header: false, separator: b',' };
    assert_eq!(whole(plain, b"1,2\n3\n"), json!([[1, ["1", "2"]], [2, ["3"]]]));
    for format in [
        ElementFormat::Lines,
        ElementFormat::Ndjson,
        csv,
        plain,
        ElementFormat::Sse,
        ElementFormat::Bytes,
    ] {
        assert_eq!(whole(format, b""), json!([]), "{format:?}");
    }
}

#[test]
fn events_are_what_the_standard_says() {
    // The examples of HTML, 9.2.6, and what browsers are tested with.
    let events = whole(ElementFormat::Sse, b"data: YHOO\ndata: +2\ndata: 10\n\n");
    assert_eq!(events, json!([[1, {"event": "message", "data": "YHOO\n+2\n10"}]]));
    let events = whole(
        ElementFormat::Sse,
        b": test stream\n\ndata: first event\nid: 1\n\n\
          data:second event\nid\n\ndata:  third event\n\n",
    );
    assert_eq!(
        events,
        json!([
            [3, {"event": "message", "id": "1", "data": "first event"}],
            [6, {"event": "message", "data": "second event"}],
            [9, {"event": "message", "data": " third event"}],
        ])
    );
    let events = whole(ElementFormat::Sse, b"data\n\ndata\ndata\n\ndata:");
    let message = |data: &str| json!({"event": "message", "data": data});
    assert_eq!(events, json!([[1, message("")], [3, message("\n")]]));
    let events = whole(
        ElementFormat::Sse,
        b"event: a\rdata: 1\r\rretry: 20\r\ndata: 2\r\n\r\nid: x\0y\nretry: a\ndata: 3\n\n",
    );
    assert_eq!(
        events,
        json!([
            [1, {"event": "a", "data": "1"}],
            [4, {"event": "message", "data": "2", "retry": 20}],
            [7, message("3")],
        ])
    );
}

#[test]
fn what_is_too_long_or_malformed_says_where() {
    let long = [&b"a\n"[..], &[b'x'; 101]].concat();
    for (format, what) in [
        (ElementFormat::Lines, "the line is"),
        (ElementFormat::Csv { has_header: false, separator: b',' }, "the record is"),
        (ElementFormat::Sse, "the event is"),
    ] {
        let found = whole(format, &long);
        let last = found.as_array().and_then(|all| all.last()).and_then(|it| it.as_str());
        let last = last.expect("an error").to_owned();
        assert!(last.starts_with(&format!("line 2: {what}")), "{last}");
    }
    let many = b"data: 12345678901234567890\n".repeat(9);
    let found = whole(ElementFormat::Sse, &many);
    assert!(found[0].as_str().expect("an error").contains("longer than 100 bytes"), "{found}");
    let bad = whole(ElementFormat::Ndjson, b"{\n1\n");
    assert!(bad[0].as_str().expect("an error").starts_with("not JSON"), "{bad}");
    assert_eq!(bad[1], json!([2, 1]));
    let short = whole(ElementFormat::Csv { has_header: true, separator: b',' }, b"a,b\n1\n1,2\n");
    assert_eq!(short[0], json!("1 fields, expected 2 as in the header"));
}

fn written(format: Outgoing, value: serde_json::Value) -> Result<String, u16> {
    let fixture = fixture("- {kind: nop, name: a}");
    let written = run(format.write(&fixture.flow(), &Value::from(value)));
    written.map(|bytes| String::from_utf8(bytes).expect("a text")).map_err(|error| error.status())
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let cases = [
        (Outgoing::Lines, ElementFormat::Lines, vec![json!("a"), json!("")]),
        (
            Outgoing::Ndjson,
            ElementFormat::Ndjson,
            vec![json!({"a": "b\n"}), json!(null), json!("c")],
        ),
        (
            Outgoing::Csv,
            ElementFormat::Csv { has_header: false, separator: b',' },
            vec![json!(["a,", "\"b\r\n\"", ""]), json!([""])],
        ),
        (
            Outgoing::Sse,
            ElementFormat::Sse,
            vec![
                json!({"event": "a", "id": "7", "data": "one\n\n two", "retry": 5}),
                json!({"event": "b", "id": "7", "data": ""}),
            ],
        ),
    ];
    for (outgoing, format, values) in cases {
        let texts = values.iter().map(|value| written(outgoing, value.clone()));
        let text: String = texts.map(|text| text.expect("written")).collect();
        let found = elements(format, text.as_bytes(), 7);
        let found: Vec<_> =
            found.into_iter().map(|it| it.expect("read").1.to_json().expect("JSON")).collect();
        assert_eq!(found, values, "{text}");
    }
}

#[test]
fn an_event_is_data_unless_it_says_more() {
    let sse = |value| written(Outgoing::Sse, value);
    assert_eq!(sse(json!({"a": 1})), Ok("data: {\"a\":1}\n\n".to_owned()));
    assert_eq!(sse(json!({"data": {"a": 1}, "id": 3})), Ok("id: 3\ndata: {\"a\":1}\n\n".into()));
    assert_eq!(sse(json!("a\r\nb\rc")), Ok("data: a\ndata: b\ndata: c\n\n".to_owned()));
    assert_eq!(sse(json!({"event": "a\ndata: b", "data": 1})), Err(422));
    assert_eq!(sse(json!({"retry": "soon", "data": 1})), Err(422));
    assert_eq!(written(Outgoing::Bytes, json!({"a": 1})), Err(422));
    assert_eq!(written(Outgoing::Lines, json!("a\nb")), Err(400));
    assert_eq!(written(Outgoing::Csv, json!(1)), Err(400));
}
