//! The kinds of a program, ours and a user's own, and what must hold of their tables before
//! anything is made of them. That is checked in one place, when a program starts, and never again
//! after that.

use std::path::{Path, PathBuf};

use sinew_core::cycle::finite::Finite;
use sinew_core::{Fault, NodeEntry, Parameters, Refusal, panics};
use sinew_flow::{FlowEntry, Held, Lens, Make};
use sinew_link::MESSAGE_SIZE_MAX;
use sinew_spec::catalogue::{Kind, ParameterValue, Port, RunsIn};
use sinew_spec::catalogue_errors;
use sinew_spec::plan::{Node, Plan};
use zerocopy::IntoBytes;

use crate::service::{MakeService, ServiceEntry};

/// The three tables of a program, a row for each kind.
#[derive(Clone, Default)]
pub struct Kinds {
    /// Nodes of realtime domains.
    pub nodes: Vec<NodeEntry>,
    /// Nodes of service domains, each on a thread of its own.
    pub services: Vec<ServiceEntry>,
    /// Nodes of flows.
    pub flows: Vec<FlowEntry>,
    /// How people see packets of flows, with `sinew tap`; `None`: they cannot.
    pub lens: Option<Lens>,
}

impl Kinds {
    /// What the compiler knows of the kinds.
    pub fn catalogue(&self) -> Vec<&'static Kind> {
        let nodes = self.nodes.iter().map(|row| row.kind);
        let others = self.services.iter().map(|row| row.kind);
        nodes.chain(others).chain(self.flows.iter().map(|row| row.kind)).collect()
    }

    /// Makes the node at `index` and drops it again: its files are read, its parameters checked,
    /// and a service checks whether it fits into the graph. In a faulty graph a service does not
    /// check that, because nodes and links that it names may be missing.
    ///
    /// # Errors
    /// The kind refuses.
    ///
    /// # Panics
    /// If the plan was made from another catalogue, as in all methods that take a plan.
    pub fn check_node(&self, plan: &Plan, index: usize, base: &Path) -> Result<(), Vec<Refusal>> {
        let node = &plan.nodes[index];
        let parameters = Parameters::of(plan, node, base);
        match node.kind.runs_in {
            RunsIn::Realtime => {
                let made = (self.node(node).make)(&parameters);
                made.map(drop).map_err(|fault| vec![fault.into()])
            }
            RunsIn::Service | RunsIn::Observer | RunsIn::Hosts => {
                let made = self.service(node)(&parameters).map_err(|fault| vec![fault.into()])?;
                if plan.left_out.is_none() { made.check(plan, index) } else { Ok(()) }
            }
            RunsIn::Flow | RunsIn::Test => self.flow(node).check(&parameters),
            // The guest's image makes it, and nothing else can.
            RunsIn::Guest => Ok(()),
        }
    }

    /// Makes the node of the core at `index` with other values of its parameters, and drops it
    /// again.
    ///
    /// # Errors
    /// The kind refuses.
    pub fn try_values(
        &self,
        plan: &Plan,
        index: usize,
        base: &Path,
        values: &[ParameterValue],
    ) -> Result<(), Fault> {
        let node = &plan.nodes[index];
        let parameters = Parameters { values, ..Parameters::of(plan, node, base) };
        (self.node(node).make)(&parameters).map(drop)
    }

    /// Has the source at `index` try, before its domain is started, to get what it needs to open.
    /// The returned value holds that. `None` if the node holds nothing or cannot be made.
    ///
    /// # Errors
    /// The source refuses ([`sinew_flow::Source::try_open`]).
    pub fn try_open(
        &self,
        plan: &Plan,
        index: usize,
        base: &Path,
    ) -> Result<Option<Held>, Refusal> {
        let node = &plan.nodes[index];
        let entry = plan.is_flow(index).then(|| self.flow(node));
        entry.map_or(Ok(None), |entry| entry.try_open(&Parameters::of(plan, node, base)))
    }

    /// The files that the flow node at `index` is made of: an edit of one of them is an edit of the
    /// node.
    pub fn files(&self, plan: &Plan, index: usize, base: &Path) -> Vec<PathBuf> {
        let node = &plan.nodes[index];
        let entry = plan.is_flow(index).then(|| self.flow(node));
        entry.map_or(Vec::new(), |entry| entry.files(&Parameters::of(plan, node, base)))
    }

    fn node(&self, node: &Node) -> &NodeEntry {
        let row = self.nodes.iter().find(|row| row.kind.name == node.kind.name);
        row.expect(SAME_TABLES)
    }

    pub(crate) fn service(&self, node: &Node) -> MakeService {
        let row = self.services.iter().find(|row| row.kind.name == node.kind.name);
        row.expect(SAME_TABLES).make
    }

    fn flow(&self, node: &Node) -> &FlowEntry {
        let row = self.flows.iter().find(|row| row.kind.name == node.kind.name);
        row.expect(SAME_TABLES)
    }

    /// Everything that is wrong with the tables, a sentence each. It calls each row's `safe` once
    /// for every safe value that the kind offers.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = catalogue_errors(&self.catalogue());
        let mut look = |kind: &Kind, made, allowed: &[RunsIn], safe| {
            let say = |why: String| format!("kind '{}': {why}", kind.name);
            let of_home = of_home(kind, made, allowed).into_iter();
            errors.extend(of_home.chain(of_sizes(kind)).chain(of_safe(kind, safe)).map(say));
        };
        for row in &self.nodes {
            look(row.kind, "a cyclic node", &[RunsIn::Realtime], row.safe);
        }
        let of_services = [RunsIn::Service, RunsIn::Observer, RunsIn::Hosts];
        for row in &self.services {
            look(row.kind, "a service", &of_services, None);
        }
        for row in &self.flows {
            match row.make {
                Make::Node(_) => look(row.kind, "a flow node", &[RunsIn::Flow], None),
                Make::Resource(_) => {
                    look(row.kind, "a resource of flows", &[RunsIn::Flow], None);
                }
                Make::Source(_) => {
                    look(row.kind, "a source of flows", &[RunsIn::Flow, RunsIn::Test], None);
                }
            }
        }
        errors
    }
}

const SAME_TABLES: &str = "the plan is made from the same tables";

/// Writes a safe value, as [`NodeEntry::safe`].
type WriteSafe = fn(usize, usize, &mut [u8]);

/// A kind runs where its code can.
fn of_home(kind: &Kind, made: &str, allowed: &[RunsIn]) -> Option<String> {
    let runs_in = kind.runs_in;
    (!allowed.contains(&runs_in)).then(|| {
        let allowed: Vec<_> = allowed.iter().map(|it| format!("{it:?}")).collect();
        let allowed = allowed.join(" or ");
        format!("it is made as {made} and says 'runs_in: {runs_in:?}'; expected {allowed}")
    })
}

/// No link carries a larger message. (The catalogue reports a message of no bytes.)
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
fn of_safe(kind: &Kind, safe: Option<WriteSafe>) -> Vec<String> {
    let ports = kind.ports.iter().enumerate().filter(|(_, port)| !port.safe.is_empty());
    let ports: Vec<_> = ports.collect();
    let Some(write) = safe else {
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
        // A message that is too large is reported already.
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
mod tests;
