//! What must hold of a table of kinds, ours and a user's own rows, before anything is made of it.
//! It is looked at in one place, when a program starts; nothing after that asks again.

use sinew_link::MESSAGE_SIZE_MAX;
use sinew_spec::catalogue::{Kind, Port, RunsIn};
use sinew_spec::catalogue_errors;
use zerocopy::IntoBytes;

use crate::finite::Finite;
use crate::node::{Make, NodeEntry};
use crate::panics;

/// Everything that is wrong with a table, a sentence each. It calls each row's `safe` once for
/// every safe value that the kind offers.
pub fn table_errors(table: &[NodeEntry]) -> Vec<String> {
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let mut errors = catalogue_errors(&kinds);
    for row in table {
        let say = |why: String| format!("kind '{}': {why}", row.kind.name);
        errors.extend(of_make(row).into_iter().chain(of_sizes(row.kind)).map(say));
        errors.extend(of_safe(row).into_iter().map(say));
    }
    errors
}

/// A kind runs where its code can.
fn of_make(row: &NodeEntry) -> Option<String> {
    use RunsIn::{Flow, Observer, Realtime, Service, Test};
    let (made, allowed): (_, &[RunsIn]) = match row.make {
        Make::Cyclic(_) => ("a cyclic node", &[Realtime]),
        Make::Service(_) => ("a service", &[Service, Observer]),
        Make::Flow(_) => ("a flow node", &[Flow]),
        Make::Source(_) => ("a source of flows", &[Flow, Test]),
    };
    let runs_in = row.kind.runs_in;
    (!allowed.contains(&runs_in)).then(|| {
        let allowed: Vec<_> = allowed.iter().map(|it| format!("{it:?}")).collect();
        let allowed = allowed.join(" or ");
        format!("it is made as {made} and says 'runs_in: {runs_in:?}'; expected {allowed}")
    })
}

/// No link carries a greater message. (Of none at all the catalogue says so.)
fn of_sizes(kind: &Kind) -> Vec<String> {
    let is_large = |port: &&Port| port.message.size > MESSAGE_SIZE_MAX;
    let large = kind.ports.iter().filter(is_large).map(|port| {
        let (name, size) = (port.message.name, port.message.size);
        format!(
            "port '{}': message '{name}' has {size} bytes; at most {MESSAGE_SIZE_MAX}",
            port.name
        )
    });
    large.collect()
}

/// Every safe value that is offered can be written.
fn of_safe(row: &NodeEntry) -> Vec<String> {
    let ports = row.kind.ports.iter().enumerate().filter(|(_, port)| !port.safe.is_empty());
    let ports: Vec<_> = ports.collect();
    let Some(write) = row.safe else {
        let lacking = ports.iter().map(|(_, port)| {
            format!(
                "port '{}' moves an actuator, and the row has 'safe: None'; give it a function \
                 that writes the safe values",
                port.name
            )
        });
        return lacking.collect();
    };
    if ports.is_empty() {
        return vec![
            "its row writes safe values, and no port offers any; name them in 'safe' of \
                     the actuator's port, or write 'safe: None'"
                .into(),
        ];
    }
    let mut errors = Vec::new();
    for (at, port) in ports {
        // What is too large is said already.
        if port.message.size > MESSAGE_SIZE_MAX {
            continue;
        }
        for (safe, value) in port.safe.iter().enumerate() {
            let mut words = vec![0_u64; port.message.size.div_ceil(8) as usize];
            let message = &mut words.as_mut_bytes()[..port.message.size as usize];
            let why = match panics::caught(|| write(at, safe, message)) {
                Err(panic) => format!("cannot be written: it {panic}"),
                Ok(()) if !is_finite(port, &words) => "holds a number that is not finite".into(),
                Ok(()) => continue,
            };
            errors.push(format!("port '{}': safe value '{}' {why}", port.name, value.name));
        }
    }
    errors
}

fn is_finite(port: &Port, words: &[u64]) -> bool {
    // A field past the end of its message is an error of the catalogue.
    let fits = port.message.fields.iter().all(|field| {
        let end =
            u64::from(field.offset) + u64::from(field.scalar.bytes()) * u64::from(field.count);
        end <= u64::from(port.message.size)
    });
    !fits || Finite::of(port.message).is_none_or(|finite| finite.holds(words))
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "`message!` declares public types")]
mod tests;
