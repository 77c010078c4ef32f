//! Random graphs: the runtime must reply the same as the reference.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sinew_flow::{Reply, Value};

use crate::begin;
use crate::graph::{Does, Fan, Sort, Tree, number, spec};
use crate::reference::{self, Answer};

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![4 => Just(Does::Pass), 1 => Just(Does::Nothing), 1 => Just(Does::Fail)]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just((Sort::Nop, vec![vec![]])),
        does().prop_map(|does| (Sort::Step(does), vec![vec![]])),
        Just((Sort::Throw(404), vec![])),
        vec(does(), 0..3).prop_map(|steps| (Sort::Fork(steps), vec![])),
    ];
    let leaf = leaf.prop_map(|(sort, outs)| Tree { number: 0, sort, outs, error: vec![] });
    leaf.prop_recursive(5, 32, 3, |inner| {
        let fan = || vec(inner.clone(), 0..3);
        let fans = || vec(vec(inner.clone(), 0..2), 0..4);
        let ways = vec(vec(does(), 0..3), 2..4);
        let one = prop_oneof![
            Just(Sort::Nop),
            does().prop_map(Sort::Step),
            Just(Sort::Try),
            (1..4usize).prop_map(Sort::Retry),
            ways.prop_map(Sort::Merge),
        ];
        let made = prop_oneof![
            5 => (one, vec(fan(), 1)),
            2 => (prop_oneof![Just(Sort::Pipe), Just(Sort::Split)], fans()),
            1 => ((1..4usize).prop_map(Sort::For), vec(fan(), 2)),
        ];
        let error = prop_oneof![2 => Just(vec![]), 1 => vec(inner, 1..3)];
        (made, error).prop_map(|((sort, outs), error)| Tree { number: 0, sort, outs, error })
    })
}

fn graph() -> impl Strategy<Value = Fan> {
    vec(tree(), 1..3).prop_map(|mut fan| {
        number(&mut fan, &mut 0);
        fan
    })
}

/// A reply of the runtime in the form of the reference: without the texts of errors.
fn came(reply: Reply) -> Json {
    match reply {
        Ok(value) => json!({"value": value.map(|value| wordless(to_json(&value)))}),
        Err(error) => json!({"error": wordless(to_json(&error.to_value()))}),
    }
}

fn to_json(value: &Value) -> Json {
    value.to_json().expect("no document")
}

fn wordless(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(wordless).collect(),
        Json::Object(entries) => {
            let told = entries.into_iter().filter(|(key, _)| key != "error");
            Json::Object(told.map(|(key, value)| (key, wordless(value))).collect())
        }
        other => other,
    }
}

fn expected(answer: Answer) -> Json {
    match answer {
        Ok(value) => json!({"value": value}),
        Err(failure) => json!({"error": failure.to_json()}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_random_graph_replies_as_the_rules_say(fan in graph(), is_list in any::<bool>()) {
        let packet = if is_list { json!([1, [2, 3]]) } else { json!("x") };
        let text = spec(&fan);
        let came = came(begin::reply(&text, Value::from(packet.clone())));
        prop_assert_eq!(came, expected(reference::fan(&fan, &packet)), "{}", text);
    }
}
