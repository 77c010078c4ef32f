//! For the tests: values for a kind's parameters, from its defaults.

use std::path::Path;

use sinew_core::catalogue::{Kind, ParameterType, Value};
use sinew_core::{Fault, Fixture, NodeEntry, Parameters};

/// A node with default parameters but for `given` (name and value as in a spec), 1 ms.
pub(crate) fn fixture(
    entry: &NodeEntry,
    base: &Path,
    given: &[(&str, &str)],
) -> Result<Fixture, Fault> {
    let values = values(entry.kind, given);
    let parameters = Parameters {
        kind: entry.kind,
        values: &values,
        base,
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![],
    };
    Fixture::new(entry, &parameters)
}

/// One value for each parameter of a kind.
pub(crate) fn values(kind: &'static Kind, given: &[(&str, &str)]) -> Vec<Value> {
    for (name, _) in given {
        assert!(kind.parameters.iter().any(|p| p.name == *name), "{} has no {name}", kind.name);
    }
    let value = |parameter: &sinew_core::catalogue::Parameter| {
        let given = given.iter().find(|(name, _)| *name == parameter.name).map(|row| row.1);
        let text = given.or(parameter.default);
        parse(&parameter.ty, text.unwrap_or_else(|| panic!("{} is required", parameter.name)))
    };
    kind.parameters.iter().map(value).collect()
}

fn parse(ty: &ParameterType, text: &str) -> Value {
    let within = |min: f64, max: f64, value: f64| {
        assert!((min..=max).contains(&value), "{value} is not in {min} to {max}");
        value
    };
    match *ty {
        ParameterType::Bool => Value::Bool(text == "true"),
        ParameterType::Integer { min, max } => {
            let value = text.parse().expect("a whole number");
            assert!((min..=max).contains(&value));
            Value::Integer(value)
        }
        ParameterType::Number { min, max } => {
            Value::Number(within(min, max, text.parse().expect("a number")))
        }
        ParameterType::Numbers { count, min, max } => {
            let list = text.trim_matches(['[', ']']).split(',');
            let number = |text: &str| within(min, max, text.trim().parse().expect("a number"));
            let numbers: Vec<f64> = list.map(number).collect();
            assert_eq!(numbers.len(), count);
            Value::Numbers(numbers)
        }
        ParameterType::Text | ParameterType::Choice(_) | ParameterType::Path => {
            Value::Text(text.to_owned())
        }
        ParameterType::Texts { .. } | ParameterType::Paths { .. } => {
            let list = text.trim_matches(['[', ']']).split(',').map(|text| text.trim().to_owned());
            Value::Texts(list.filter(|text| !text.is_empty()).collect())
        }
        ParameterType::Duration { .. } | ParameterType::Size { .. } | ParameterType::Yaml => {
            panic!("no kind of this crate has a parameter of type {ty:?}")
        }
    }
}
