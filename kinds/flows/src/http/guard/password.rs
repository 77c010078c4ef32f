//! `password`: makes the hash of a password, or lets a packet pass whose password fits a hash.

#[cfg(test)]
mod tests;

use bytestring::ByteString;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{At, Error, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};
use sinew_spec::item_json;

use super::OUT;
use super::hashed::{HashCost, Hashed, MEMORY_KIB_MAX, PASSES_MAX, PASSWORD_LEN_MAX};
use crate::script::expression::Expression;
use crate::script::{refused, taken};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "password",
    doc: "Makes the hash of a password by Argon2id, for a database. With 'hash' it passes a packet \
          on if the password is that of the hash, else it answers 401, after the same time if \
          there is no such hash. Both take some tens of milliseconds of a thread, not of a worker.",
    ports: &[
        input("in", "The packet, for 'password' and 'hash'."),
        output("out", "The hash, as a text; with 'into' or 'hash' the same packet."),
        error(),
    ],
    parameters: &[
        Parameter::new("password", ParameterType::Yaml)
            .doc("An expression over packet: the password, a text."),
        Parameter::new("hash", ParameterType::Yaml).or("null").doc(
            "An expression over packet: the hash to check it against, as it was made. null, for a \
             user who does not exist, fits no password.",
        ),
        Parameter::new("into", ParameterType::Text).or("").doc(
            "The flow's value (values.NAME) that is set to the hash; the packet is unchanged.",
        ),
        Parameter::new("length_min", ParameterType::Integer { min: 1, max: 1024 })
            .or("8")
            .doc("A new password of fewer characters is refused with 422."),
        Parameter::new(
            "memory",
            ParameterType::Size { min_bytes: 64 << 10, max_bytes: (MEMORY_KIB_MAX as u64) << 10 },
        )
        .or("19MiB")
        .doc("Memory that it takes to make a hash, and to check one."),
        Parameter::new("passes", ParameterType::Integer { min: 1, max: PASSES_MAX as i64 })
            .or("2")
            .doc("Passes over this memory."),
    ],
    ..FLOW
};

struct Password {
    password: Expression,
    /// The hash, and the one that is checked in its place where there is none.
    hash: Option<(Expression, Hashed)>,
    cost: HashCost,
    length_min: usize,
    into: Option<ByteString>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let mut refusals = Vec::new();
    let password = taken(Expression::of(parameters.yaml("password"), &[]), &mut refusals);
    let cost = HashCost {
        memory_kib: (parameters.size("memory") >> 10) as u32,
        passes: parameters.integer("passes") as u32,
    };
    let item = parameters.yaml("hash");
    let hash = (!item_json(item).is_null()).then(|| Expression::of(item, &[]));
    let hash = hash.and_then(|made| taken(made, &mut refusals));
    let into = Some(parameters.text("into")).filter(|name| !name.is_empty());
    if into.is_some() && !item_json(item).is_null() {
        let text = "'into' gets a hash that is made, and here one is checked";
        refusals.push(Refusal::new(parameters.span("into"), text, "leave out 'into', or 'hash'"));
    }
    let constant = hash.as_ref().and_then(Expression::constant);
    if let Some(Err(error)) = constant.map(read) {
        let help = "write an expression such as packet.hash; a text in quotes: \"'$argon2id$...'\"";
        refusals.push(Refusal::new(item.span, error, help));
    }
    match password {
        Some(password) if refusals.is_empty() => Ok(Box::new(Password {
            password,
            hash: hash.map(|hash| (hash, cost.of_nobody())),
            cost,
            length_min: parameters.integer("length_min") as usize,
            into: into.map(ByteString::from),
        })),
        _ => Err(refusals),
    }
}

/// The hash that an expression gave; `None` for null.
fn read(value: &Value) -> Result<Option<Hashed>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Hashed::read(text).map(Some),
        other => Err(format!("a hash is a text, and this is {}", other.sort())),
    }
}

impl FlowNode for Password {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::wait(async move {
            match self.answer(at, &packet).await {
                Ok(Some(made)) => Step::Pass(OUT, made),
                Ok(None) => Step::Pass(OUT, packet),
                Err(error) => Step::Fail(error),
            }
        })
    }
}

impl Password {
    /// Checks the password, or makes its hash; gives the hash where it takes the packet's place.
    async fn answer(&self, at: At<'_>, packet: &Value) -> Result<Option<Value>, Error> {
        let password = match self.password.evaluate((at.flow(), packet))? {
            Value::Text(text) => text,
            other => {
                let text = format!("a password is a text, and this is {}", other.sort());
                return Err(refused(400, text));
            }
        };
        if let Some((hash, nobody)) = &self.hash {
            return self.check(at, packet, &password, (hash, nobody)).await.map(|()| None);
        }
        self.is_fit(&password)?;
        let hash = Value::text(self.cost.hash(at, password.as_bytes()).await?);
        match &self.into {
            Some(name) => {
                at.flow().set(name.clone(), hash);
                Ok(None)
            }
            None => Ok(Some(hash)),
        }
    }

    /// Refuses a new password that is too short or too long.
    fn is_fit(&self, password: &str) -> Result<(), Error> {
        let chars = password.chars().count();
        if chars < self.length_min {
            let least = self.length_min;
            let text = format!("the password has {chars} characters; at least {least} are needed");
            return Err(refused(422, text));
        }
        if password.len() > PASSWORD_LEN_MAX {
            let len = password.len();
            let text = format!("the password has {len} bytes; at most {PASSWORD_LEN_MAX}");
            return Err(refused(422, text));
        }
        Ok(())
    }

    async fn check(
        &self,
        at: At<'_>,
        packet: &Value,
        password: &str,
        (hash, nobody): (&Expression, &Hashed),
    ) -> Result<(), Error> {
        let known = read(&hash.evaluate((at.flow(), packet))?).map_err(Error::new)?;
        let is_right = known.as_ref().unwrap_or(nobody).is_of(at, password.as_bytes()).await?;
        // A client that tries names must not learn which of the two is wrong.
        match is_right && known.is_some() {
            true => Ok(()),
            false => Err(refused(401, "name or password is wrong")),
        }
    }
}
