//! The parameters of the node of ROS: declared in the spec, and set by whoever reaches the node,
//! within the limits of the spec.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ros2_client::ParameterValue;
use sinew_core::Refusal;
use sinew_spec::{Data, Item};

/// Longest text that others may set, in bytes.
const TEXT_MAX: usize = 1024;

/// A parameter as the spec declares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    /// Its name.
    pub(crate) name: String,
    /// Its first value; others must be of the same type.
    pub(crate) value: ParameterValue,
    /// Least and greatest number.
    pub(crate) limits: (f64, f64),
}

/// The current values.
pub(crate) struct Values {
    declared: Vec<Declared>,
    now: Mutex<(u64, BTreeMap<String, ParameterValue>)>,
}

impl Values {
    /// No values yet, for these parameters.
    pub(crate) fn new(declared: &[Declared]) -> Values {
        Values { declared: declared.to_vec(), now: Mutex::default() }
    }

    /// Whether a value may be set.
    pub(crate) fn judge(&self, name: &str, value: &ParameterValue) -> Result<(), String> {
        let Some(declared) = self.declared.iter().find(|it| it.name == name) else {
            return Err(format!("'{name}' is not declared"));
        };
        let (min, max) = declared.limits;
        let is_within = |number: f64| number.is_finite() && (min..=max).contains(&number);
        let good = match value {
            ParameterValue::NotSet => return Err(format!("'{name}' cannot be removed")),
            ParameterValue::Integer(number) => is_within(*number as f64),
            ParameterValue::Double(number) => is_within(*number),
            ParameterValue::String(text) if text.len() > TEXT_MAX => {
                let found = text.len();
                return Err(format!("'{name}' has {found} bytes; {TEXT_MAX} are the most"));
            }
            _ => true,
        };
        good.then_some(()).ok_or_else(|| format!("'{name}' is from {min} to {max}"))
    }

    /// Whether a value is of the type that the parameter has, if there is one.
    pub(crate) fn judge_type(&self, name: &str, value: &ParameterValue) -> Result<(), String> {
        let declared = self.declared.iter().find(|it| it.name == name);
        let is_other = |it: &&Declared| it.value.to_parameter_type() != value.to_parameter_type();
        declared.filter(is_other).map_or(Ok(()), |it| {
            let (ty, found) = (it.value.to_parameter_type(), value.to_parameter_type());
            Err(format!("'{name}' is of type {ty:?}; found {found:?}"))
        })
    }

    /// Sets each parameter to its first value.
    pub(crate) fn keep_first(&self) {
        self.declared.iter().for_each(|it| self.keep(&it.name, &it.value));
    }

    /// Sets a value that was judged.
    pub(crate) fn keep(&self, name: &str, value: &ParameterValue) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.0 += 1;
        now.1.insert(name.to_owned(), value.clone());
    }

    /// How often a value was set so far, and all values.
    pub(crate) fn now(&self) -> (u64, BTreeMap<String, ParameterValue>) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the spec declares: `{gain: 1.0, speed: {value: 1.0, min: 0, max: 2}}`.
///
/// # Errors
/// All that is wrong, each with its place.
pub(crate) fn declared(item: &Item) -> Result<Vec<Declared>, Vec<Refusal>> {
    let Data::Map(entries) = &item.data else {
        let message = format!("'parameters' is {}", item.sort());
        return Err(vec![Refusal::new(item.span, message, "write a mapping such as {gain: 1.0}")]);
    };
    let (mut declared, mut wrong) = (Vec::new(), Vec::new());
    for entry in entries {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if entry.key == "use_sim_time" || entry.key.is_empty() || !entry.key.chars().all(is_name) {
            let message = format!("'{}' cannot be the name of a parameter", entry.key);
            wrong.push(Refusal::new(entry.span, message, "write letters, digits, '_' and '.'"));
        }
        match one(&entry.key, &entry.value) {
            Ok(one) => declared.push(one),
            Err(message) => wrong.push(Refusal::new(
                entry.value.span,
                format!("'{}' {message}", entry.key),
                "write true, 1, 1.0, a text, or {value: 1.0, min: 0, max: 2}",
            )),
        }
    }
    if wrong.is_empty() { Ok(declared) } else { Err(wrong) }
}

fn one(name: &str, item: &Item) -> Result<Declared, String> {
    let mut limits = (f64::NEG_INFINITY, f64::INFINITY);
    let value = match &item.data {
        Data::Map(entries) => {
            let known = ["value", "min", "max"];
            if let Some(entry) = entries.iter().find(|it| !known.contains(&it.key.as_str())) {
                return Err(format!("has no key '{}'", entry.key));
            }
            let number = |key, default| match item.get(key) {
                None => Ok(default),
                Some(item) => item.text().and_then(|text| text.parse().ok()).ok_or(key),
            };
            let min = number("min", limits.0)
                .map_err(|key| format!("has a '{key}' that is not a number"))?;
            let max = number("max", limits.1)
                .map_err(|key| format!("has a '{key}' that is not a number"))?;
            limits = (min, max);
            scalar(item.get("value").ok_or("has no 'value'")?)?
        }
        _ => scalar(item)?,
    };
    let declared = Declared { name: name.to_owned(), value, limits };
    let values = Values::new(std::slice::from_ref(&declared));
    values
        .judge(name, &declared.value)
        .map_err(|why| format!("begins outside its limits: {why}"))?;
    Ok(declared)
}

/// A value; its type is the one that the text looks like.
fn scalar(item: &Item) -> Result<ParameterValue, String> {
    let Data::Scalar { text, plain } = &item.data else {
        return Err(format!("is {}", item.sort()));
    };
    let number = || text.parse().ok().map(ParameterValue::Double);
    Ok(match text.as_str() {
        _ if !plain => ParameterValue::String(text.clone()),
        "" => return Err("is nothing".into()),
        "true" => ParameterValue::Boolean(true),
        "false" => ParameterValue::Boolean(false),
        _ => match text.parse() {
            Ok(whole) => ParameterValue::Integer(whole),
            Err(_) => number().unwrap_or_else(|| ParameterValue::String(text.clone())),
        },
    })
}
