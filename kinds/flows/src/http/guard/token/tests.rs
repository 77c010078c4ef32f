//! Tokens of the RFCs, of another library, and forged ones.

use ring::hmac;
use serde_json::{Value as Json, from_str, json};

use super::*;

/// RFC 7515, A.1 to A.3: one payload, three signatures.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvb\
                       S9pc19yb290Ijp0cnVlfQ";
/// A time before that token expires.
const THEN_S: i64 = 1_300_819_379;

fn public(word: &str, key: &Json) -> Keys {
    Keys::public(algorithm(word), key.to_string().as_bytes()).expect("a key")
}

fn secret(word: &str, key: &[u8]) -> Keys {
    let Way::Secret(hash, _) = algorithm(word).way else { panic!("{word} has no secret") };
    Keys::Secret(hmac::Key::new(hash, key))
}

fn seen(token: &str, word: &str, keys: &Keys) -> Result<Json, Invalid> {
    claims(token, word, keys, &Rules::default(), THEN_S)
}

#[test]
fn every_algorithm_is_a_word() {
    assert_eq!(ALGORITHMS.iter().map(|row| row.word).collect::<Vec<_>>(), WORDS);
}

#[test]
fn the_tokens_of_rfc_7515_hold() {
    let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9\
               CAow";
    let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2m\
                   JPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7O\
                   Mg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTB\
                   QY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkML\
                   s91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let point = json!({"kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
    let rows = [
        (
            "HS256",
            secret("HS256", &BASE64.decode(key).expect("base64")),
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        ),
        (
            "RS256",
            public("RS256", &json!({"kty": "RSA", "n": modulus, "e": "AQAB"})),
            "eyJhbGciOiJSUzI1NiJ9",
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_\
             O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIA\
             RNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPq\
             vhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77\
             Rw",
        ),
        (
            "ES256",
            public("ES256", &json!({"keys": [{"kty": "oct", "k": "AA"}, point]})),
            "eyJhbGciOiJFUzI1NiJ9",
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU\
             1Q",
        ),
    ];
    for (word, keys, header, signature) in rows {
        let token = format!("{header}.{PAYLOAD}.{signature}");
        let claims = seen(&token, word, &keys).expect(word);
        assert_eq!(claims["http://example.com/is_root"], json!(true));
        let late = super::claims(&token, word, &keys, &Rules::default(), THEN_S + 1);
        assert_eq!(late, Err(Invalid("it has expired")), "{word}");
        let changed = format!("{header}.{}.{signature}", PAYLOAD.replace("joe", "moe") + "A");
        assert!(seen(&changed, word, &keys).is_err(), "{word}");
        for other in WORDS.iter().filter(|other| **other != word) {
            assert!(seen(&token, other, &keys).is_err(), "{word} as {other}");
        }
    }
}

/// RFC 8037, A.4: the signed text there is not claims.
#[test]
fn the_signature_of_rfc_8037_holds() {
    let key = json!({"kty": "OKP", "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let signed = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpA\
                     r_MuM0KAg";
    let signature = BASE64.decode(signature).expect("base64");
    assert!(public("EdDSA", &key).verify(None, signed, &signature));
    assert!(!public("EdDSA", &key).verify(None, &signed[1..], &signature));
}

/// Tokens and keys that PyJWT 2.15 and Python's cryptography 50 made.
#[test]
fn the_tokens_of_another_library_hold_by_every_algorithm() {
    let rows: Vec<Json> = from_str(include_str!("pyjwt.json")).expect("JSON");
    assert_eq!(rows.len(), WORDS.len());
    let rules = Rules {
        issuer: Some("https://a.example".into()),
        audience: Some("web".into()),
        ..Rules::default()
    };
    for row in &rows {
        let text = |name: &str| row[name].as_str().expect("a text");
        let (word, key, token) = (text("algorithm"), text("key").as_bytes(), text("token"));
        let keys = match key.starts_with(b"--") {
            true => Keys::public(algorithm(word), key).expect(word),
            false => secret(word, key),
        };
        let claims = |token: &str, now_s| claims(token, word, &keys, &rules, now_s);
        assert_eq!(claims(token, 1_700_000_000).expect(word)["sub"], "ada");
        assert_eq!(claims(token, 1_699_999_999), Err(Invalid("it is not valid yet")), "{word}");
        assert_eq!(claims(token, 2_000_000_000), Err(Invalid("it has expired")), "{word}");
        let mut forged = token.to_owned().into_bytes();
        let last = forged.len() - 10;
        forged[last] = if forged[last] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("ASCII");
        assert_eq!(claims(&forged, 1_700_000_000), Err(NOT_SIGNED), "{word}");
        // A key that everybody knows is not a secret: a token that is signed with it is not valid.
        let confused = sign(word, &hmac::Key::new(hmac::HMAC_SHA256, key), b"{\"exp\":2e9}");
        if word != "HS256" {
            assert!(claims(&confused, 1_700_000_000).is_err(), "{word}");
        }
        let other = if word == "ES256" { "ES384" } else { "ES256" };
        if key.starts_with(b"--") {
            assert!(Keys::public(algorithm(other), key).is_err(), "{word}'s key as {other}'s");
        }
    }
}

const NOT_SIGNED: Invalid = Invalid("its signature is not of a key that is known here");

fn made(header: &str, claims: &str) -> String {
    let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"k"), signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(tag))
}

#[test]
fn what_is_no_token_is_none() {
    let keys = secret("HS256", b"k");
    let seen = |token: &str| seen(token, "HS256", &keys);
    let plain = r#"{"alg":"HS256"}"#;
    assert!(seen(&made(plain, r#"{"exp":2e9}"#)).is_ok());
    let none = format!("{}.{}.", BASE64.encode(r#"{"alg":"none"}"#), BASE64.encode("{}"));
    for (token, why) in [
        (none.as_str(), "it is signed by another algorithm"),
        (&made(r#"{"alg":"None"}"#, "{}"), "it is signed by another algorithm"),
        (&made(r#"{"alg":["HS256"]}"#, "{}"), "it is signed by another algorithm"),
        (&made("{}", "{}"), "it is signed by another algorithm"),
        (
            &made(r#"{"alg":"HS256","crit":["b64"]}"#, "{}"),
            "it needs an extension that is not \
                                                            known here",
        ),
        (&made(plain, "{}"), "it never expires"),
        (&made(plain, r#"{"exp":"2000000000"}"#), "a time in it is not a number"),
        (&made(plain, r#"{"exp":null}"#), "a time in it is not a number"),
        (&made(plain, r#"{"exp":2e9,"nbf":1.9e9}"#), "it is not valid yet"),
        (&made(plain, "[]"), "it is malformed"),
        (&made("[]", "{}"), "it is malformed"),
        ("", "it is malformed"),
        ("a.b", "it is malformed"),
        ("....", "it is malformed"),
        (&"a".repeat(LEN_MAX + 1), "it is too long"),
    ] {
        assert_eq!(seen(token), Err(Invalid(why)), "{token}");
    }
    // No byte is ignored, so none may be added.
    let good = made(plain, r#"{"exp":2e9}"#);
    for bad in [format!("{good}="), format!("{good} "), format!("{good}.x"), format!(" {good}")] {
        assert!(seen(&bad).is_err(), "{bad}");
    }
}

#[test]
fn issuer_audience_and_clock_are_as_the_rules_say() {
    let keys = secret("HS256", b"k");
    let held = |claims: &str, rules: &Rules, now_s| {
        let token = made(r#"{"alg":"HS256"}"#, claims);
        super::claims(&token, "HS256", &keys, rules, now_s).err().map(|why| why.0)
    };
    let of = |issuer: &str, audience: &str| Rules {
        issuer: Some(issuer.into()),
        audience: Some(audience.into()),
        leeway_s: 5.0,
        is_endless: true,
    };
    let (other, another) = ("it is of another issuer", "it is for another audience");
    assert_eq!(held(r#"{"iss":"a","aud":"b"}"#, &of("a", "b"), 0), None);
    assert_eq!(held(r#"{"iss":"a","aud":["c","b"]}"#, &of("a", "b"), 0), None);
    assert_eq!(held(r#"{"iss":"c","aud":"b"}"#, &of("a", "b"), 0), Some(other));
    assert_eq!(held(r#"{"aud":"b"}"#, &of("a", "b"), 0), Some(other));
    assert_eq!(held(r#"{"iss":"a","aud":"bb"}"#, &of("a", "b"), 0), Some(another));
    assert_eq!(held(r#"{"iss":"a"}"#, &of("a", "b"), 0), Some(another));
    let timed = r#"{"iss":"a","aud":"b","nbf":100,"exp":200}"#;
    let at = |now_s| held(timed, &of("a", "b"), now_s);
    assert_eq!([at(95), at(204)], [None, None]);
    assert_eq!([at(94), at(205)], [Some("it is not valid yet"), Some("it has expired")]);
}

#[test]
fn a_set_of_keys_is_looked_through_by_name() {
    let key = |kid: &str, x: &str| json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x});
    let right = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    let keys = public(
        "EdDSA",
        &json!({"keys": [key("a", &right.replace("11q", "22q")), key("b",
        right)]}),
    );
    let signed = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpA\
                     r_MuM0KAg";
    let signature = BASE64.decode(signature).expect("base64");
    let verify = |kid| keys.verify(kid, signed, &signature);
    assert_eq!([verify(None), verify(Some("b")), verify(Some("a"))], [true, true, false]);
    let bad = |text: &str| Keys::public(algorithm("EdDSA"), text.as_bytes()).err().expect("none");
    assert!(bad("{").contains("EOF"), "{}", bad("{"));
    assert!(bad("hello").contains("PEM") || bad("hello").contains("BEGIN PUBLIC KEY"));
    let encryption = json!({"kty": "OKP", "crv": "Ed25519", "use": "enc", "x": right});
    assert!(bad(&encryption.to_string()).contains("no key for EdDSA"));
    let many = json!({"keys": vec![key("a", right); 17]});
    assert!(bad(&many.to_string()).contains("more than 16"));
}
