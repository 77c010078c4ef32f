//! What expressions see, what they may cost, and what they say.

use super::budget::WORK_MAX;
use super::*;
use crate::testing::MalformedRequest;
use sinew_flow::Stream;

/// How many texts are tried; reading one takes a millisecond in a debug build.
const RANDOM_TEXTS: usize = 1000;

fn span(start: usize) -> Span {
    Span { source: 0, start: start as u32, len: 1 }
}

fn compile(text: &str) -> Result<Expression, Refusal> {
    Expression::compile_at(text, &span, &["reply"])
}

fn compiled(text: &str) -> Expression {
    compile(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"))
}

fn evaluate(text: &str, packet: &Value) -> Result<Value, Error> {
    let reply = Value::Integer(7);
    compiled(text).evaluate(Scope { flow: None, packet, also: &[&reply] })
}

/// The value of an expression about a packet.
fn value(text: &str, packet: &Value) -> Value {
    evaluate(text, packet).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str, packet: &Value) -> String {
    match evaluate(text, packet) {
        Ok(value) => panic!("{text} gives {value:?}"),
        Err(error) => error.text().to_owned(),
    }
}

fn refusal(text: &str) -> (usize, String) {
    let refusal = compile(text).map(|_| ()).expect_err(text);
    (refusal.span.expect("a place").start as usize, refusal.to_string())
}

fn json(text: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(text).expect("JSON"))
}

fn user() -> Value {
    json(r#"{"user": {"name": "Ada", "age": 36, "tags": ["a", "b"], "none": null}, "n": 2.5}"#)
}

#[test]
fn an_expression_sees_the_packet() {
    let table = [
        ("packet.user.name", r#""Ada""#),
        ("packet.user.age + 1", "37"),
        ("packet.n * 2.0", "5.0"),
        ("packet.user.tags[1]", r#""b""#),
        ("packet['user']['name']", r#""Ada""#),
        ("packet.user.none", "null"),
        ("packet.user.age >= 18 && packet.user.name.startsWith('A')", "true"),
        ("has(packet.user.name)", "true"),
        ("has(packet.user.phone)", "false"),
        ("has(packet.nobody.name)", "false"),
        ("packet.user.?phone.orValue('unknown')", r#""unknown""#),
        ("packet.?user.name.orValue('unknown')", r#""Ada""#),
        ("packet.?nobody.name.orValue('unknown')", r#""unknown""#),
        ("packet.user.tags.map(t, t + '!')", r#"["a!", "b!"]"#),
        ("packet.user.tags.filter(t, t != packet.user.tags[0])", r#"["b"]"#),
        ("packet.user.tags == ['a', 'b'] && ['a', 'b'] == packet.user.tags", "true"),
        ("'a' in packet.user.tags && 'name' in packet.user", "true"),
        ("packet.user.tags.join('-').upperAscii()", r#""A-B""#),
        ("{'b': packet.n, 'a': [packet.user.age]}", r#"{"a": [36], "b": 2.5}"#),
        ("size(packet.user) + size(packet.user.name)", "7"),
        ("type(packet.n) == double ? 'number' : 'else'", r#""number""#),
        ("reply + 1", "8"),
        ("packet.user.name.replace('a', 'e')", r#""Ade""#),
        ("packet.user.name.matches('^A.a$')", "true"),
        ("base64.encode(bytes(packet.user.name))", r#""QWRh""#),
        ("math.abs(-3)", "3"),
        ("packet.user.tags.exists(t, t == 'b') && packet.user.tags.all(t, size(t) == 1)", "true"),
    ];
    for (text, expected) in table {
        assert_eq!(value(text, &user()), json(expected), "{text}");
    }
}

#[test]
fn what_does_not_change_is_worked_out_when_the_graph_is_compiled() {
    assert_eq!(compiled("1 + 2 * 3").constant(), Some(&Value::Integer(7)));
    assert_eq!(compiled("[1, 2].map(x, x * 2)").constant(), Some(&json("[2, 4]")));
    assert_eq!(compiled("packet").constant(), None);
    assert!(refusal("1 / 0").1.contains("by zero"));
}

#[test]
fn functions_of_the_table_are_called_checked_and_paid_for() {
    let packet = json(r#"{"t": "abc", "list": ["a", "b"]}"#);
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(value("hash('sha256', packet.t)", &packet), Value::text(digest));
    assert_eq!(value("packet.list.map(x, hash('sha1', x)).size()", &packet), Value::Integer(2));
    assert_eq!(value("time.format(0)", &packet), Value::text("1970-01-01T00:00:00.000Z"));
    assert_eq!(
        value("base64.decode(packet.t + 'd') == base64.decode('abcd')", &packet),
        json("true")
    );
    assert_eq!(compiled("hash('sha256', 'abc')").constant(), Some(&Value::text(digest)));
    // A value that changes is never evaluated beforehand.
    for text in ["now()", "uuid()", "[1].map(x, random())", "time.format(now())"] {
        assert_eq!(compiled(text).constant(), None, "{text}");
    }
    assert_ne!(value("uuid()", &packet), value("uuid()", &packet));
    let (at, text) = refusal("1 + size(hash('sha256'))");
    assert_eq!(at, 9);
    assert!(text.contains("does not take 1") && text.contains("hash(algorithm, text)"), "{text}");
    assert!(refusal("hsah('a', 'b')").1.contains("base64.encode_url"));
    assert!(error("hash(packet.t, 'x')", &packet).contains("no algorithm 'abc'"));
    assert!(error("hash('sha1', packet.list)", &packet).contains("argument 2 is a text or bytes"));
    let long = json(&format!(r#"{{"t": "{}"}}"#, "x".repeat((1 << 20) - 64)));
    assert!(value("size(hash('sha256', packet.t))", &long) == Value::Integer(64));
    assert!(
        error("hash('sha1', packet.t) + hash('sha1', packet.t)", &long).contains("looks at more")
    );
}

#[test]
fn a_path_alone_gives_the_very_value() {
    let list = Value::list([Value::Integer(1)]);
    let packet = Value::map([("a", list.clone())]);
    let (Value::List(inside), Value::List(found)) = (list, value("packet.a", &packet)) else {
        panic!("lists")
    };
    assert!(Arc::ptr_eq(&inside, &found));
}

#[test]
fn the_environment_is_read_once() {
    assert!(compiled("env.PATH").constant().is_some());
    assert_eq!(compiled("has(env.PATH)").constant(), Some(&Value::Bool(true)));
    assert_eq!(compiled("has(env.SINEW_NO)").constant(), Some(&Value::Bool(false)));
    let port = compiled("env.?SINEW_NO.orValue('8000')");
    assert_eq!(port.constant(), Some(&Value::text("8000")));
    assert_eq!(compiled("env.?PATH.hasValue()").constant(), Some(&Value::Bool(true)));
    let (at, text) = refusal("'x' + env.SINEW_NO");
    assert_eq!(at, 10);
    assert!(text.contains("env.?SINEW_NO.orValue"), "{text}");
}

#[test]
fn what_nobody_offers_is_refused_where_it_stands() {
    let table = [
        ("1 + packte.a", 4, "no variable 'packte'"),
        ("packet.a.frobnicate()", 9, "no function 'frobnicate'"),
        ("1 + + 2", 4, "not an expression"),
        ("'ä' + ?", 7, "not an expression"),
        ("(1", 2, "not an expression: it ends too early"),
        ("", 0, "not an expression"),
        ("packet.a > 3,5", 12, "write a decimal point, such as 3.5"),
        ("packet.a >=", 11, "not an expression: it ends too early"),
        ("packet.a = 3", 9, "'==' compares"),
        ("values", 0, "'values' alone"),
        ("flow.name", 0, "write flow.id"),
        ("env", 0, "'env' alone"),
        ("env.PATH.x", 4, "has no parts"),
        ("packet.a.matches('(')", 9, "not a regular expression"),
        ("google.Duration{seconds: 1}", 0, "no message type"),
        ("'%s'.format([1])", 5, "no function 'format'"),
        ("[1].map(x, y)", 11, "no variable 'y'"),
    ];
    for (text, place, expected) in table {
        let (at, message) = refusal(text);
        assert!(message.contains(expected), "{text}: {message}");
        assert_eq!(at, place, "{text}: {message}");
    }
}

#[test]
fn what_is_not_there_is_an_error_that_says_where() {
    let text = error("packet.user.phone.number == 1", &user());
    assert!(text.contains("packet.user.phone: there is no such part"), "{text}");
    let text = error("packet.user.tags[5]", &user());
    assert!(text.contains("packet.user.tags[5]"), "{text}");
    let text = error("values.count + 1", &user());
    assert!(text.contains("values.count: the flow has no such value"), "{text}");
    let text = error("packet.user.name + 1", &user());
    assert!(text.contains("expression 'packet.user.name + 1'"), "{text}");
    // An error that does not change the value is ignored.
    assert_eq!(value("packet.nothing == 1 || true", &user()), Value::Bool(true));
}

#[test]
fn an_error_repeats_neither_a_long_expression_nor_a_long_packet() {
    let packet = Value::text("x".repeat(1 << 20));
    let long = format!("packet + {} + 1", vec!["'abcdefgh'"; 20].join(" + "));
    let text = error(&long, &packet);
    assert!(text.len() < 600, "{} bytes", text.len());
}

#[test]
fn of_a_request_only_those_fields_are_made_that_are_asked_for() {
    let packet = Value::Document(Arc::new(MalformedRequest));
    assert_eq!(value("packet.path == '/x' && has(packet.path)", &packet), Value::Bool(true));
    assert_eq!(value("has(packet.method)", &packet), Value::Bool(false));
    assert_eq!(value("size(packet)", &packet), Value::Integer(3));
    for text in ["packet.body", "packet.body.name == 1", "has(packet.body.name)"] {
        let error = evaluate(text, &packet).expect_err(text);
        assert_eq!((error.status(), error.text()), (400, "the body is not JSON"), "{text}");
    }
}

#[test]
fn a_size_is_told_without_a_look_at_what_is_inside() {
    let many = Value::list(vec![Value::Integer(1); 600_000]);
    let packet = Value::map([("items", many), ("text", Value::text("äö"))]);
    for text in ["size(packet.items)", "packet.items.size()", "size(packet['items'])"] {
        assert_eq!(value(text, &packet), Value::Integer(600_000), "{text}");
    }
    assert_eq!(value("packet.size() + packet.text.size()", &packet), Value::Integer(4));
    assert_eq!(value("[[1, 2]].map(packet, size(packet))", &packet), json("[2]"));
    assert!(error("size(packet.items + [1])", &packet).contains("looks at more than"));
    assert!(error("size(packet.none)", &packet).contains("packet.none: there is no such part"));
    assert!(error("size(reply) == 1", &packet).contains("reply: a whole number has no size"));
    let long = Value::text("x".repeat(16 * WORK_MAX as usize));
    assert!(error("size(packet)", &long).contains("looks at more than"));
}

#[test]
fn bytes_to_come_are_an_error_and_not_nothing() {
    let stream = || Value::Stream(Stream::new(futures_util::stream::empty()));
    let packet = Value::map([("body", stream()), ("all", Value::list([stream()]))]);
    for text in [
        "packet.body == null",
        "packet.body == null ? 'none' : 'some'",
        "packet == {}",
        "packet.all.map(one, one)",
        "packet.?body.hasValue()",
        "size(packet.body)",
        "type(packet.body)",
    ] {
        assert!(error(text, &packet).contains("a stream"), "{text}: {}", error(text, &packet));
    }
    assert_eq!(value("has(packet.body)", &packet), Value::Bool(true));
    assert!(matches!(value("packet.body", &packet), Value::Stream(_)), "it is passed on");
}

#[test]
fn true_or_false_is_asked_for_and_nothing_else_taken() {
    let scope = Scope { flow: None, packet: &user(), also: &[] };
    assert_eq!(compiled("packet.n > 2.0").holds(scope), Ok(true));
    let error = compiled("packet.n").holds(scope).unwrap_err();
    assert!(error.text().contains("gives a number"), "{error}");
}

#[test]
fn what_takes_too_much_work_is_stopped() {
    let thousand = Value::list((0..1000).map(Value::Integer));
    let texts = Value::list([Value::text("x".repeat(100_000))]);
    let long = Value::list([Value::text("x".repeat(1_000_000))]);
    let doubling = format!("packet{}", ".map(a, a + a)".repeat(20));
    let nested = format!("packet{}", ".map(a, [a, a, a, a])".repeat(20));
    let table = [
        ("packet.map(a, packet.map(b, packet.map(c, 0)))", &thousand),
        ("packet.all(a, packet.all(b, a + b >= 0))", &thousand),
        ("packet.exists(a, packet.exists(b, packet.exists(c, false)))", &thousand),
        ("packet.filter(a, packet.filter(b, packet == packet) == [])", &thousand),
        (&doubling, &texts),
        (&nested, &texts),
        ("packet[0].replace('', packet[0])", &texts),
        ("packet[0].replace('x', packet[0])", &texts),
        ("packet[0].split('').map(a, packet[0].split('').join(packet[0]))", &texts),
        ("packet.map(a, 'x'.matches(string(a)))", &thousand),
        ("packet[0].split('')", &long),
        ("packet[0].split(',')", &Value::list([Value::text(",".repeat(1_000_000))])),
    ];
    for (text, packet) in table {
        let message = error(text, packet);
        assert!(message.contains("looks at more than"), "{text}: {message}");
    }
    // An expression that ignores the error does not get around the limit.
    let message = error("packet.all(a, packet.all(b, a + b >= 0)) || true", &thousand);
    assert!(message.contains(&WORK_MAX.to_string()), "{message}");
    assert_eq!(value("packet.map(a, a * 2).size()", &thousand), Value::Integer(1000));
}

#[test]
fn a_pattern_that_comes_with_the_packet_has_its_price() {
    let packet = |pattern: &str, len: usize| {
        Value::map([("p", Value::text(pattern)), ("t", Value::text("x".repeat(len)))])
    };
    let text = "packet.t.matches(packet.p)";
    assert_eq!(value(text, &packet("^x+$", 10_000)), Value::Bool(true));
    assert_eq!(value("matches(packet.t, '^' + packet.p)", &packet("y", 9)), Value::Bool(false));
    for (pattern, len, said) in [
        ("(x+x+)+y", 200_000, "looks at more than"),
        (r"(?:x?){700}y", 50_000, "looks at more than"),
        (r"\w{3}\d", 5_000, "looks at more than"),
        (r"(\w{100}){100}", 1, "size limit"),
        (&"x".repeat(1001), 1, "a pattern of 1001 bytes, at most 1000"),
        ("(", 1, "unclosed"),
    ] {
        let message = error(text, &packet(pattern, len));
        assert!(message.contains(said), "{pattern}: {message}");
    }
    // A pattern in the spec is the author's: the text is charged for once, when it is looked up.
    let own = r"packet.t.matches('(x+x+)+y|\\w{3}\\d')";
    assert_eq!(value(own, &packet("", 200_000)), Value::Bool(false));
}

#[test]
fn deep_and_long_expressions_are_refused_on_a_small_stack() {
    let deep = [
        ("(".repeat(2000) + "1" + &")".repeat(2000), "nested deeper"),
        ("[".repeat(2000) + &"]".repeat(2000), "nested deeper"),
        ("!".repeat(4000) + "true", "nested deeper"),
        ("- ".repeat(2000) + "1", "nested deeper"),
        (vec!["1"; 2000].join("+"), "nested deeper"),
        (format!("packet{}", ".a".repeat(2000)), ""),
        (format!("packet{}", ".size()".repeat(500)), "nested deeper"),
        (format!("packet{}", "[packet.a]".repeat(400)), "nested deeper"),
        ("true?1:".repeat(500) + "1", "nested deeper"),
        (vec!["packet.a"; 400].join("&&"), ""),
        (format!("packet{}", ".map(a, a)".repeat(300)), "nested deeper"),
        ("1".repeat(5000), "5000 bytes"),
        ("(1 + ".repeat(23) + "packet" + &")".repeat(23), ""),
        ("[1].map(a, ".repeat(7) + "packet.a" + &")".repeat(7), ""),
    ];
    let small = thread::Builder::new().stack_size(2 << 20);
    let checked = small.spawn(move || {
        for (text, expected) in deep {
            let shown = &text[..20];
            match compile(&text) {
                Ok(expression) => {
                    assert!(expected.is_empty(), "{shown} is taken");
                    let scope = Scope { flow: None, packet: &Value::Null, also: &[] };
                    assert!(expression.evaluate(scope).is_err(), "{shown}");
                }
                Err(refusal) => {
                    assert!(refusal.to_string().contains(expected), "{shown}: {refusal}");
                }
            }
        }
    });
    checked.expect("a thread").join().expect("no overflow");
}

/// What a random text is made of, with '~' between.
const SIGNS: &str = "\
    packet~.a~.?a~[0]~['a']~(~)~[~]~{~}~ ~1~-1~1u~1.5e3~9223372036854775807~'x'~\"\\u00e9\"~\
    b'\\xff'~r'\\'~'~\"~+~-~*~/~%~==~<~>=~&&~||~!~?~:~,~ in ~true~null~.map(x, ~.filter(x, x)~\
    .all(~x~has(~size(~.split('')~.replace('', 'yy')~.matches('a*')~optional.of(~.orValue(~\
    math.abs(~type(~int(~string(~é~\\~\n~`~@~//~.substring(1)~values.a~flow.id";

/// Signs put together at random: each text is refused with a reason, or has a value or an error.
#[test]
fn any_text_is_refused_or_evaluated() {
    let packet = json(r#"{"a": [{"a": 1}, "é", null, 2.5, -9223372036854775808]}"#);
    let mut random = fastrand::Rng::with_seed(7);
    let signs: Vec<&str> = SIGNS.split('~').collect();
    for _ in 0..RANDOM_TEXTS {
        let text: String =
            (0..random.usize(1..10)).map(|_| signs[random.usize(..signs.len())]).collect();
        if let Ok(expression) = compile(&text) {
            let scope = Scope { flow: None, packet: &packet, also: &[&Value::Null] };
            let _ = expression.evaluate(scope);
        }
    }
}
