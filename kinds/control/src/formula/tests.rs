//! Formulas against the answers of Python, and the formulas that are refused.

use std::fmt::Write;

use serde_json::{Map, json};

use super::*;
use crate::testing::{hold, reference};

const NAMES: [&str; 4] = ["a", "b", "speed_2", "_x"];

fn bank() -> Bank {
    Bank::new(&NAMES.map(str::to_owned))
}

fn misread(text: &str) -> Misread {
    bank().read(text).err().unwrap_or_else(|| panic!("reads '{text:.80}'"))
}

/// Formulas, each with a number for each name.
type Rows = Vec<(String, [f64; 4])>;

/// Our values, and Python's values of the same texts: for each row whether it is finite, and the
/// value.
fn both(rows: &Rows) -> Option<[Vec<f64>; 2]> {
    let numbers = |row: &(String, [f64; 4])| {
        let named = NAMES.iter().zip(row.1).map(|(name, number)| ((*name).into(), number.into()));
        named.collect::<Map<_, _>>()
    };
    let formulas: Vec<_> = rows.iter().map(|row| &row.0).collect();
    let numbers: Vec<_> = rows.iter().map(numbers).collect();
    let theirs = reference("logic.values", &json!({ "formulas": formulas, "numbers": numbers }))?;
    let mut ours = Vec::new();
    for (text, numbers) in rows {
        let mut bank = bank();
        let formula = bank.read(text).unwrap_or_else(|bad| panic!("'{text}': {bad:?}"));
        numbers.iter().enumerate().for_each(|(at, number)| bank.set(at, *number));
        let value = formula.value(&mut bank);
        let finite = value.is_finite();
        ours.extend([f64::from(u8::from(finite)), if finite { value } else { 0.0 }]);
    }
    Some([ours, theirs])
}

/// Every rule of the table above, and every function.
const TABLE: &str = "
    a + b * speed_2 - _x
    a - b - speed_2
    a / b / speed_2
    a / b * speed_2
    a * b % speed_2
    a * b + speed_2 * _x
    a * b - speed_2 * _x
    a * b + _x
    a * b - _x
    a - b * _x
    _x + a * b
    (a + b) * speed_2 + (a - b) * _x
    (a + 1) - (b + 2) * (speed_2 + 3)
    a * b + (speed_2 + _x)
    a * b * speed_2 + 1
    a + b + speed_2
    a + b - speed_2
    (a + b) * speed_2
    a - b + speed_2
    (a - b) * speed_2
    (a * b) + (speed_2 - _x)
    a + (b - speed_2)
    a + (b + speed_2)
    a - (b - speed_2) * _x
    a - b * speed_2 * _x
    a + b * speed_2 / _x
    -a % b
    a % -b
    a % (2 * pi)
    -a ^ 2
    -a ^ -b
    2 ^ 3 ^ 2
    a ^ b ^ 0.5
    (-a) ^ 2
    (-a) ^ 0.5
    2 ^ -a
    - - a
    a * -b
    a - -b
    a < b
    a <= b
    a > b
    a >= b
    a == b
    a != b
    a + 1 < b * 2
    (a < b) + (b < a)
    not a
    not a == b
    not not a
    not 0
    not a < b and b < a
    a < b and b < speed_2 or _x
    a or b and 0
    (a or b) and 0
    0 or 0.5
    a and b
    true and not false
    if(a < b, a, b)
    if(a, 1, 2) * 3
    if(0, a, b) + if(-0.5, a, b)
    abs(a - b) - abs(b - a)
    sqrt(abs(a)) + sqrt(2)
    sin(a) + cos(b) * tan(_x)
    asin(_x) + acos(_x) + atan(a)
    asin(a * 100)
    atan2(a, b) - atan2(-a, -b)
    exp(_x) + ln(abs(a) + 1) + log10(abs(b) + 1)
    ln(a - a)
    ln(-1 - abs(a))
    min(a, b) + max(a, b, speed_2) * min(_x, 1, 2, 3)
    max(sqrt(-1 - a * a), 0)
    min(0, sqrt(-1 - a * a))
    min(sqrt(-1 - a * a), 0)
    max(0, sqrt(-1 - a * a))
    clamp(a, -1, 1) + clamp(a, b, speed_2) + clamp(a, 1, -1)
    floor(a) + ceil(a) * 10 + round(a) * 100
    floor(-a) + ceil(-a) * 10 + round(-a) * 100
    round(0.5) + round(1.5) * 10 + round(-2.5) * 100
    round(a - a + 0.49999999999999994)
    sign(a) + sign(-b) * 10 + sign(a - a) * 100
    hypot(a, b)
    1 / (a - a)
    (a - a) / (a - a)
    1.5e3 + .5 + 2. + 1e-3 + 0.1E+1
    ((((a))))+  (b )\t*2
    pi * a ^ 2 / 4
    if(a > 0 and b != 0, (a + _x) / b, 0) + 1";

#[test]
fn formulas_have_the_values_of_pythons_own_eval() {
    let numbers = [
        [2.0, 3.0, 5.0, 0.25],
        [-1.5, 1.5, -1.5, -0.75],
        [0.0, 0.0, 1.0, 0.0],
        [2.5, -2.5, 1e3, 0.5],
        [1e-3, 7.25, -0.5, 1.0],
    ];
    let texts = TABLE.lines().map(str::trim).filter(|text| !text.is_empty());
    let rows: Rows =
        texts.flat_map(|text| numbers.map(|numbers| (text.to_owned(), numbers))).collect();
    let Some([ours, theirs]) = both(&rows) else { return };
    for (at, (our, their)) in ours.chunks(2).zip(theirs.chunks(2)).enumerate() {
        hold(&format!("{:?}", rows[at]), our, their);
    }
}

/// A random formula whose arithmetic is exact in any implementation, and in which the sign of a
/// zero does not matter.
fn grow(random: &mut fastrand::Rng, depth: usize) -> String {
    let leaf = |random: &mut fastrand::Rng| match random.u8(0..3) {
        0 => format!("{}", f64::from(random.u8(0..16)) / 4.0),
        _ => NAMES[random.usize(0..NAMES.len())].to_owned(),
    };
    if depth == 0 || random.u8(0..8) == 0 {
        return leaf(random);
    }
    let mut part = || grow(random, depth - 1);
    let (a, b, c) = (part(), part(), part());
    let shapes = [
        // Without brackets: precedence decides, here and in Python.
        format!("{a} + {b} * {c}"),
        format!("{a} - {b} - {c}"),
        format!("{a} * {b} - {c}"),
        format!("({a}) * ({b})"),
        format!("-({a})"),
        format!("-{a} + {b}"),
        format!("{a} / (1 + abs({b}))"),
        format!("({a}) % (1 + abs({b}))"),
        format!("({a} < {b}) + ({b} <= {c})"),
        format!("({a} > {b})"),
        format!("({a} == {b} or {b} >= {c})"),
        format!("({a} != {b} and not {c})"),
        format!("(not {a} or {b} and {c})"),
        format!("if({a}, {b}, {c})"),
        format!("min({a}, {b}, {c})"),
        format!("max({a}, {b})"),
        format!("clamp({a}, {b}, {c})"),
        format!("floor({a}) + ceil({b})"),
        format!("round({a})"),
        format!("sign({a})"),
        format!("sqrt(abs({a}))"),
    ];
    shapes[random.usize(0..shapes.len())].clone()
}

#[test]
fn random_formulas_have_the_values_of_pythons_own_eval_to_the_last_digit() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut rows = Rows::new();
    while rows.len() < 2000 {
        let depth = random.usize(1..5);
        let text = grow(&mut random, depth);
        if text.contains("not") && bank().read(&text).is_err_and(|bad| bad.what.contains("(not")) {
            continue; // A bare `not` after a sign, which Python refuses too.
        }
        match bank().read(&text) {
            Ok(_) => {}
            Err(bad) if bad.what.contains("compares twice") => continue,
            Err(bad) => panic!("'{text}': {bad:?}"),
        }
        rows.push((text, [(); 4].map(|()| f64::from(random.i8(-16..16)) / 4.0)));
    }
    let Some([ours, theirs]) = both(&rows) else { return };
    for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        // The JSON reader rounds the last digit of their numbers.
        let same = (our - their).abs() <= 2.0 * f64::EPSILON * their.abs();
        assert!(same, "{:?}: {our:?}, and Python's {their:?}", rows[at / 2]);
    }
}

#[test]
fn whatever_stands_there_is_read_or_refused() {
    let words = [
        "a",
        "b",
        "speed_2",
        "pi",
        "true",
        "if(",
        "min(",
        "sqrt(",
        "atan2(",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "<",
        "<=",
        "==",
        "!=",
        "and",
        "or",
        "not",
        "1",
        "0.5",
        ".",
        "1e",
        "1e999",
        "=",
        "!",
        "&&",
        "\u{b5}",
        "\0",
        " ",
        "log",
        "\u{1f600}",
        "'",
        "\n",
    ];
    let mut random = fastrand::Rng::with_seed(11);
    let mut good = 0;
    for round in 0..200_000 {
        let mut text = String::new();
        for _ in 0..random.usize(0..12) {
            match round % 2 {
                0 => text.push_str(words[random.usize(0..words.len())]),
                _ => text.push(char::from(random.u8(..))),
            }
        }
        let mut bank = bank();
        match bank.read(&text) {
            Ok(formula) => {
                good += 1;
                let _ = formula.value(&mut bank);
            }
            Err(bad) => {
                assert!(bad.at <= text.len() && text.is_char_boundary(bad.at), "{text:?} {bad:?}");
                let _ = bad.fault("formula", &placed(&text, Span::default()));
            }
        }
    }
    assert!(good > 1000, "{good}");
}

#[test]
fn hostile_formulas_end_in_time_and_on_any_stack() {
    for part in ["(", "-", "not ", "2^", "abs(", "if(1,", "min(1,", "a-(", "1+", "a<(", "a or not "]
    {
        for count in [90, 500, 100_000] {
            let _ = bank().read(&part.repeat(count));
            let closed = format!("{}a{}", part.repeat(count), ")".repeat(count));
            let _ = bank().read(&closed);
        }
    }
    let deep = misread(&"(".repeat(101));
    assert_eq!(deep.what, "too many parts in one another; make two nodes of the formula");
    let long = misread(&"a".repeat(TEXT_MAX + 1));
    assert_eq!(long.what, "has 4097 bytes; at most 4096");
    let many = misread(&format!("a{}", "+a".repeat(OPERATIONS_MAX + 1)));
    assert_eq!(many.what, "more than 256 operations; make two nodes of the formula");
    let sum = format!("a{}", "+a".repeat(OPERATIONS_MAX));
    assert_eq!(bank().read(&sum).expect("as many as may be").steps.len(), OPERATIONS_MAX / 2);
}

#[test]
fn what_has_no_place_in_the_bank_is_refused() {
    let mut text = "a".to_owned();
    for number in 1..=256 {
        let _ = write!(text, "+{number}");
    }
    let full = misread(&text);
    assert_eq!(full.what, "too many numbers; make two nodes of the formulas");
    // Each part waits for all parts after it.
    let mut bank = bank();
    for number in 0..251 {
        bank.read(&format!("a + {number}.5")).expect("a place for each constant");
    }
    assert!(bank.read("a + b").is_ok());
    assert!(bank.read("a + 0.5").is_ok(), "an old constant has its place");
    assert!(bank.read("a + 1000").is_err());
}

#[test]
fn formulas_of_one_bank_do_not_disturb_each_other() {
    let mut bank = bank();
    let texts = ["a * 2 + b * 3", "(a + 3) * (b + 2) - 5", "7", "a", "b - 5 * (a - (b - 2))"];
    let formulas = texts.map(|text| bank.read(text).expect(text));
    for (a, b) in [(1.0, 2.0), (-3.0, 0.5)] {
        bank.set(0, a);
        bank.set(1, b);
        let values =
            [a * 2.0 + b * 3.0, (a + 3.0) * (b + 2.0) - 5.0, 7.0, a, b - 5.0 * (a - (b - 2.0))];
        for _ in 0..2 {
            let ours: Vec<f64> = formulas.iter().map(|it| it.value(&mut bank)).collect();
            assert_eq!(ours, values);
        }
    }
}

#[test]
fn constants_are_folded() {
    let mut bank = bank();
    let folded = bank.read("2 * pi / 4 + sqrt(9)").expect("reads");
    assert!(folded.steps.is_empty() && bank.constants == 0);
    assert_eq!(bank.read("a * (2 + 3 * 4)").expect("reads").steps.len(), 1);
    assert_eq!(bank.read("a * 2 + b * 3 - speed_2 * 4 + 1").expect("reads").steps.len(), 4);
    assert_eq!(bank.read("min(1, 2, a, 3)").expect("reads").steps.len(), 2);
}

#[test]
fn a_mistake_is_named_with_its_column_and_what_to_write() {
    for (text, at, what) in [
        ("", 0, "expected a number, a name or '(', found the end"),
        ("a b", 2, "expected a sign such as + or the end, found 'b'"),
        ("2a", 1, "expected a sign such as + or the end, found 'a'"),
        ("(a", 2, "expected ')' that closes a bracket, found the end"),
        ("a ** 2", 2, "write '^' for '**'"),
        ("3,5 * a", 1, "write '.' for ',': a number has a decimal point"),
        ("(a, 2)", 2, "expected ')' that closes a bracket, found ','"),
        ("a && b", 2, "write 'and' for '&&'"),
        ("a = b", 2, "write '==' for '='"),
        ("!a", 0, "write 'not' for '!'"),
        ("a < b < 1", 6, "compares twice; write 'a < b and b < c'"),
        ("a + not b", 4, "put '(not ...)' in brackets here"),
        ("sin a", 4, "expected '(' behind sin, found 'a'"),
        ("atan2(a)", 0, "atan2 takes 2 arguments, found 1"),
        ("min(a)", 0, "min takes 2 to 16 arguments, found 1"),
        ("clamp(a, 1, 2, 3)", 0, "clamp takes 3 arguments, found 4"),
        ("log(a)", 0, "write ln for base e, or log10"),
        ("1 + c", 4, "no name 'c'; there are a, b, speed_2, _x"),
        ("a + 1e999", 4, "'1e999' is not a number that a double holds"),
        ("a + .", 4, "'.' is not a number that a double holds"),
        ("a $ b", 2, "'$' has no meaning in a formula"),
        ("a + sqrt(-1)", 4, "is NaN here, whatever the inputs are"),
        ("and", 0, "expected a number, a name or '(', found 'and'"),
    ] {
        assert_eq!(misread(text), Misread { at, what: what.to_owned() }, "{text}");
    }
    let text = "µ_total";
    let fault = misread(text).fault("output 'x'", &placed(text, Span::default()));
    assert_eq!(fault.text(), "output 'x', column 1: 'µ' has no meaning in a formula");
    let called = misread("nosuch(1)").what;
    assert!(called.starts_with("no function 'nosuch'; there are if, abs, sqrt"), "{called}");
}

#[test]
fn a_mistake_points_into_the_spec() {
    let quoted = Span { source: 0, start: 100, len: 7 };
    let fault = misread("a = b").fault("x", &placed("a = b", quoted));
    assert_eq!(fault.span(), Some(Span { source: 0, start: 103, len: 1 }));
    let plain = Span { source: 0, start: 100, len: 5 };
    let fault = misread("a = b").fault("x", &placed("a = b", plain));
    assert_eq!(fault.span(), Some(Span { source: 0, start: 102, len: 1 }));
}
