//! The values that templates make of texts and trees.

use std::pin::pin;

use sinew_spec::{Brought, Span};

use super::*;
use crate::testing::{fixture, run};

fn span(start: usize) -> Span {
    Span { source: 0, start: start as u32, len: 1 }
}

fn template(text: &str) -> Result<Template, Vec<Refusal>> {
    Template::text(text, &span)
}

fn rendered(text: &str, packet: &Value) -> Result<Value, Error> {
    let template = template(text).unwrap_or_else(|refusals| panic!("{text}: {refusals:?}"));
    made(&template, packet)
}

fn made(template: &Template, packet: &Value) -> Result<Value, Error> {
    let flow = fixture("- {kind: nop, name: a}").flow();
    flow.allow(u64::MAX);
    run(flow.in_time(pin!(template.render(&flow, packet))))
}

fn packet() -> Value {
    let list = Value::list([Value::Integer(1), Value::text("}}")]);
    Value::map([
        ("name", Value::text("{{ 1 }} & \"co\"")),
        ("age", Value::Integer(36)),
        ("n", Value::Number(2.5)),
        ("list", list),
        ("nothing", Value::Null),
        ("raw", Value::Bytes(bytes::Bytes::from_static(b"\xff"))),
    ])
}

#[test]
fn one_expression_keeps_its_type_and_a_text_writes_it_out() {
    let table = [
        ("{{ packet.age }}", Value::Integer(36)),
        ("{{packet.n}}", Value::Number(2.5)),
        ("age {{ packet.age }}, {{ packet.n }}", Value::text("age 36, 2.5")),
        ("{{ packet.list }}!", Value::text("[1,\"}}\"]!")),
        ("<{{ packet.nothing }}>", Value::text("<>")),
        ("{{ {'a': {'b': '}}'}}.a.b }}", Value::text("}}")),
        ("{{ '{{' }} stays", Value::text("{{ stays")),
        ("{{ r'\\' }}x", Value::text("\\x")),
        ("{{ \"\"\"a\"}}\"b\"\"\" }}", Value::text("a\"}}\"b")),
        ("", Value::text("")),
        ("no } or }} or { here", Value::text("no } or }} or { here")),
    ];
    for (text, expected) in table {
        assert_eq!(rendered(text, &packet()), Ok(expected), "{text}");
    }
}

#[test]
fn what_a_packet_holds_is_never_a_template() {
    let value = rendered("{{ packet.name }}/{{ packet.name }}", &packet());
    assert_eq!(value, Ok(Value::text("{{ 1 }} & \"co\"/{{ 1 }} & \"co\"")));
}

#[test]
fn what_never_changes_is_made_once() {
    let constant = |text: &str| template(text).expect(text).constant().cloned();
    assert_eq!(constant("pong"), Some(Value::text("pong")));
    assert_eq!(constant("{{ 1 + 1 }}"), Some(Value::Integer(2)));
    assert_eq!(constant("a{{ 1 }}b{{ 'c' }}"), Some(Value::text("a1bc")));
    assert!(constant("{{ env.PATH }}/x").is_some());
    assert_eq!(constant("a{{ packet }}"), None);
}

#[test]
fn everything_that_is_wrong_is_said_with_its_place() {
    let refusals = template("ab {{ packte }} {{ 1 + }} {{ open").unwrap_err();
    let places: Vec<_> = refusals.iter().map(|refusal| refusal.span.map(|s| s.start)).collect();
    assert_eq!(places, [Some(6), Some(22), Some(26)], "{refusals:?}");
    for unclosed in ["{{", "{{ '}}", "{{ {1: 2} }", "{{ \"\\", "a {{ '''}}' }}"] {
        assert!(template(unclosed).is_err(), "{unclosed}");
    }
}

#[test]
fn a_text_has_no_room_for_some_values_and_no_end() {
    let error = rendered("x{{ packet.raw }}", &packet()).unwrap_err();
    assert!(error.text().contains("not UTF-8"), "{error}");
    let big = Value::text("x".repeat(9 << 20));
    let error = rendered("{{ packet }}{{ packet }}", &big).unwrap_err();
    assert!(error.text().contains("more than 16777216 bytes"), "{error}");
}

fn scalar(text: &str, plain: bool) -> Item {
    Item::new(span(0), Data::Scalar { text: text.to_owned(), plain })
}

#[test]
fn a_tree_keeps_its_shape_and_its_types() {
    let entry = |key: &str, value| Entry { key: key.to_owned(), span: span(0), value };
    let tree = Item::new(
        span(0),
        Data::Map(vec![
            entry("z", scalar("{{ packet.age }}", false)),
            entry("a", Item::new(span(0), Data::List(vec![scalar("5", true), scalar("5", false)]))),
        ]),
    );
    let template = Template::compile(&tree).expect("a template");
    let value = made(&template, &packet()).expect("a value");
    let json = value.to_json().expect("JSON").to_string();
    assert_eq!(json, r#"{"z":36,"a":[5,"5"]}"#);
    let bad = Item::new(span(0), Data::Map(vec![entry("{{ 1 }}", scalar("1", true))]));
    assert!(Template::compile(&bad).unwrap_err()[0].message.contains("key"));
}

#[test]
fn what_comes_from_outside_is_put_in_once_and_is_no_template() {
    let brought = |path: &str, value| Brought {
        wanted: Wanted::File(path.into()),
        value: Ok(String::from(value)),
    };
    outside::know(&[brought("t/braces", "{{ packet.only_here }}"), brought("t/number", "8000")]);
    let constant = |text: &str| {
        let template = Template::text(text, &span).unwrap_or_else(|all| panic!("{text}: {all:?}"));
        template.constant().cloned()
    };
    let text = |text| Some(Value::text(text));
    assert_eq!(constant("a {{ file.t/braces }} b"), text("a {{ packet.only_here }} b"));
    assert_eq!(constant("{{ file.t/number }}"), text("8000"));
    assert_eq!(constant("{{ int(file['t/number']) + 1 }}"), Some(Value::Integer(8001)));
    assert_eq!(constant("{{ file.t/none or 'x' }}{{ env.SINEW_NO or \"y\" }}"), text("xy"));
    let path = std::env::var("PATH").expect("there is one");
    assert_eq!(constant("{{ env.PATH }}"), Some(Value::text(path)));
    for (text, at, expected) in [
        ("ab{{ file.t/none }}", 2, "file.t/none was not read"),
        ("{{ env.SINEW_NO }}", 0, "no variable SINEW_NO"),
        ("{{ file['t/none'] + 'x' }}", 3, "'t/none' was not read"),
        ("{{ file.t + 'x' }}", 3, "'t' was not read"),
    ] {
        let refusal = Template::text(text, &span).map(|_| ()).expect_err(text).remove(0);
        assert_eq!(refusal.span, Some(span(at)), "{text}: {refusal}");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
    // Text that is not a template keeps its own braces.
    let routes = Item::new(span(0), Data::List(vec![scalar("/{{ file.t/number }}/{{id}}", false)]));
    let routes = item_json(&filled(&routes).expect("it is there"));
    assert_eq!(routes.to_string(), r#"["/8000/{{id}}"]"#);
    let bad = scalar("/{{ file.t/none }}", false);
    assert_eq!(filled(&bad).expect_err("nobody has read it").len(), 1);
}

fn page(text: &str, packet: &Value) -> String {
    let template = Template::html(text, &span).unwrap_or_else(|it| panic!("{text}: {it:?}"));
    match made(&template, packet) {
        Ok(Value::Text(text)) => text.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_is_put_into_a_page_is_shown_as_text() {
    let evil = Value::map([("x", Value::text("<a href=\"&\" onclick='b'>\u{e4}"))]);
    let shown = "&lt;a href=&quot;&amp;&quot; onclick=&#39;b&#39;&gt;\u{e4}";
    for (text, expected) in [
        ("{{ packet.x }}", shown.to_owned()),
        ("<p title=\"{{ packet.x }}\">", format!("<p title=\"{shown}\">")),
        ("{{{ packet.x }}}", "<a href=\"&\" onclick='b'>\u{e4}".to_owned()),
        ("{{ '<i>' }}{{{ '<i>' }}}", "&lt;i&gt;<i>".to_owned()),
        (
            "{{ packet }}",
            format!("{{&quot;x&quot;:&quot;{}&quot;}}", shown.replace("&quot;", "\\&quot;")),
        ),
        ("<script>let a;</script><b>{{ 1 }}</b>", "<script>let a;</script><b>1</b>".to_owned()),
        ("<b>plain</b>", "<b>plain</b>".to_owned()),
        ("{{ env.SINEW_NO or '<b>' }}", "&lt;b&gt;".to_owned()),
        ("a = {{ 1 }}", "a = 1".to_owned()),
    ] {
        assert_eq!(page(text, &evil), expected, "{text}");
    }
}

#[test]
fn where_no_escape_helps_a_value_is_refused() {
    for (text, at, why) in [
        ("<script>let a = \"{{ packet }}\";</script>", 17, "what a script can"),
        ("<b></b><STYLE media=x>{{ packet }}", 22, "what a script can"),
        ("<b title={{ packet }}>", 9, "without quotes"),
        ("<b title = {{ packet }}>", 11, "without quotes"),
    ] {
        let refusals = Template::html(text, &span).expect_err(text);
        assert_eq!(refusals[0].span.map(|span| span.start), Some(at), "{text}");
        assert!(refusals[0].message.contains(why), "{text}: {refusals:?}");
    }
    assert!(Template::html("<script>let a = {{{ packet }}};</script>", &span).is_ok());
    assert!(Template::html("{{{ packet }}", &span).is_err());
}
