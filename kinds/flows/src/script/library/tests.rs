//! The functions checked with test vectors of those who defined them.

use std::collections::BTreeSet;

use super::Argument::{Bytes, Integer, Text};
use super::*;

/// The value of a function; `called` is its name as scripts call it.
fn call(called: &str, arguments: &[Argument<'_>]) -> Result<Value, String> {
    let (namespace, name) = called.split_once('.').unwrap_or(("", called));
    find(namespace, name).expect("a function").1.call(arguments)
}

fn text(called: &str, arguments: &[Argument<'_>]) -> String {
    match call(called, arguments) {
        Ok(Value::Text(text)) => text.to_string(),
        other => panic!("{called}: {other:?}"),
    }
}

fn error(called: &str, arguments: &[Argument<'_>]) -> String {
    call(called, arguments).expect_err(called)
}

/// FIPS 180-4: the examples that NIST gives with it.
#[test]
fn digests_are_those_of_nist() {
    let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    let table = [
        ("sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("sha1", long, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
        ("sha256", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("sha256", long, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        (
            "sha384",
            "abc",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
             8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "sha512",
            "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
    ];
    for (algorithm, message, expected) in table {
        let digest = text("hash", &[Text(algorithm), Text(message)]);
        assert_eq!(digest, expected, "{algorithm} {message}");
    }
    assert!(error("hash", &[Text("md5"), Text("")]).contains("sha256, sha384"));
}

/// RFC 4231, test cases 1, 2, 3 and 6; RFC 2202, test case 2.
#[test]
fn authentication_codes_are_those_of_the_rfcs() {
    let table: [(&str, &[u8], &[u8], &str); 6] = [
        (
            "sha256",
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            "sha512",
            &[0x0b; 20],
            b"Hi There",
            "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde\
             daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
        ),
        (
            "sha256",
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "sha256",
            &[0xaa; 20],
            &[0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            "sha256",
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (
            "sha1",
            b"Jefe",
            b"what do ya want for nothing?",
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        ),
    ];
    for (algorithm, key, message, expected) in table {
        let code = text("hmac", &[Text(algorithm), Bytes(key), Bytes(message)]);
        assert_eq!(code, expected, "{algorithm} {key:?}");
    }
}

/// RFC 4648, section 10, and what differs in section 5.
#[test]
fn base64_is_that_of_the_rfc() {
    let table = [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ];
    for (plain, encoded) in table {
        assert_eq!(text("base64.encode", &[Text(plain)]), encoded);
        let bare = encoded.trim_end_matches('=');
        assert_eq!(text("base64.encode_url", &[Text(plain)]), bare);
        for function in ["base64.decode", "base64.decode_url"] {
            for given in [encoded, bare] {
                let bytes = Value::Bytes(plain.as_bytes().to_vec().into());
                assert_eq!(call(function, &[Text(given)]), Ok(bytes), "{function} {given}");
            }
        }
    }
    let bytes = [0xfb, 0xff, 0xfe];
    assert_eq!(text("base64.encode", &[Bytes(&bytes)]), "+//+");
    assert_eq!(text("base64.encode_url", &[Bytes(&bytes)]), "-__-");
    assert!(error("base64.decode_url", &[Text("+//+")]).contains("with '-_'"));
    assert!(call("base64.decode", &[Text("Zm\r\n8=")]).is_ok());
}

/// RFC 3339, section 5.8; the other figures are those of GNU date.
#[test]
fn times_are_written_and_read() {
    let read = |given| call("time.parse", &[Text(given)]);
    assert_eq!(read("1985-04-12T23:20:50.52Z"), Ok(Value::Integer(482_196_050_520)));
    assert_eq!(read("1996-12-19T16:39:57-08:00"), read("1996-12-20T00:39:57Z"));
    assert_eq!(read("1937-01-01T12:00:27.87+00:20"), Ok(Value::Integer(-1_041_337_172_130)));
    let at = Integer(482_196_050_520);
    assert_eq!(text("time.format", &[at]), "1985-04-12T23:20:50.520Z");
    let pattern = Text("%Y-%m-%d %H:%M:%S %z");
    let berlin = Text("Europe/Berlin");
    assert_eq!(text("time.format", &[at, pattern]), "1985-04-12 23:20:50 +0000");
    assert_eq!(text("time.format", &[at, pattern, berlin]), "1985-04-13 01:20:50 +0200");
    let day = [Text("13.4.1985"), Text("%d.%m.%Y"), berlin];
    assert_eq!(call("time.parse", &day), Ok(Value::Integer(482_191_200_000)));
    // The night in which clocks went forward has 23 hours.
    let day = [Text("2024-03-30 12:00"), Text("%F %H:%M"), berlin];
    let Ok(Value::Integer(noon)) = call("time.parse", &day) else { panic!("a time") };
    for (zone, hours) in [(berlin, 23), (Text("UTC"), 24)] {
        let later = call("time.add", &[Integer(noon), Text("1 day"), zone]);
        assert_eq!(later, Ok(Value::Integer(noon + hours * 3_600_000)));
    }
    for given in ["1h 30m", "90m", "PT1H30M"] {
        assert_eq!(call("time.duration", &[Text(given)]), Ok(Value::Integer(5_400_000)));
    }
}

#[test]
fn what_is_no_time_is_an_error() {
    assert!(!error("time.parse", &[Text("yesterday")]).is_empty());
    assert!(error("time.format", &[Integer(0), Text("%F"), Text("Mars/Base")]).contains("Mars"));
    assert!(error("time.format", &[Integer(0), Text(&"%".repeat(300))]).contains("at most 256"));
    assert!(!error("time.format", &[Integer(i64::MAX)]).is_empty());
    assert!(!error("time.add", &[Integer(0), Text("99999 years")]).is_empty());
    assert!(error("time.format", &[Text("0")]).contains("a whole number"));
    assert!(error("now", &[Integer(0)]).contains("does not take 1"));
}

/// The form and the bits of RFC 9562.
#[test]
fn identifiers_have_their_form_and_differ() {
    for (function, version) in [("uuid", '4'), ("uuid7", '7')] {
        let all: BTreeSet<_> = (0..100).map(|_| text(function, &[])).collect();
        assert_eq!(all.len(), 100);
        for id in all {
            let is_dash = |at| [8, 13, 18, 23].contains(&at);
            let fits = |(at, sign): (usize, char)| {
                if is_dash(at) { sign == '-' } else { sign.is_ascii_hexdigit() }
            };
            assert!(id.len() == 36 && id.chars().enumerate().all(fits), "{id}");
            assert_eq!(id.as_bytes()[14] as char, version, "{id}");
            assert!("89ab".contains(id.as_bytes()[19] as char), "{id}");
        }
    }
    let id = text("uuid7", &[]).replace('-', "");
    let time = i64::from_str_radix(&id[..12], 16).expect("hex");
    assert!(time <= now_ms() && time > 1_700_000_000_000, "{id}");
}

#[test]
fn chance_stays_in_its_bounds() {
    let all: BTreeSet<_> = (0..200)
        .map(|_| match call("random", &[Integer(-1), Integer(1)]) {
            Ok(Value::Integer(value)) => value,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(all, BTreeSet::from([-1, 0, 1]));
    assert!(call("random", &[Integer(i64::MIN), Integer(i64::MAX)]).is_ok());
    let Ok(Value::Number(value)) = call("random", &[]) else { panic!("a number") };
    assert!((0.0..1.0).contains(&value));
    assert!(error("random", &[Integer(2), Integer(1)]).contains("above the greatest"));
    assert!(error("random", &[Integer(2)]).contains("the least and the greatest"));
}

#[test]
fn texts_are_compared_and_written_for_html() {
    let same = |a, b| call("same_secret", &[Text(a), Text(b)]);
    assert_eq!([same("ab", "ab"), same("ab", "ac")], [true, false].map(|it| Ok(Value::Bool(it))));
    assert_eq!(same("ab", "abc"), Ok(Value::Bool(false)));
    let escaped = text("html_escape", &[Text("<a href=\"x\">Tom & 'é'</a>")]);
    assert_eq!(escaped, "&lt;a href=&quot;x&quot;&gt;Tom &amp; &#39;é&#39;&lt;/a&gt;");
    assert!(error("html_escape", &[Bytes(b"\xff")]).contains("UTF-8"));
}

#[test]
fn the_guide_has_a_row_for_each() {
    let guide = include_str!("../../../../../docs/scripts.md");
    for row in LIBRARY {
        let line = format!("| `{}` | {} |", row.form, row.doc);
        assert!(guide.contains(&line), "docs/scripts.md lacks the line\n{line}");
    }
}
