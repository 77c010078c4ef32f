//! Who a domain is among the nodes of ROS: read from its node of kind `ros2_node`, by that and by
//! all others of the domain.

use std::net::IpAddr;

use ros2_client::NodeName;
use sinew_core::{Fault, Parameters, Refusal, fault};

use crate::values::{Declared, declared};

/// The kind that holds them.
pub(crate) const KIND: &str = "ros2_node";
/// The greatest number of a domain whose ports are valid.
pub(crate) const DOMAIN_MAX: u16 = 232;

/// Who it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Domain of DDS.
    pub(crate) domain: u16,
    /// Begins with a slash.
    pub(crate) namespace: String,
    /// Of the node.
    pub(crate) name: String,
    /// The only interface that is told to others; `None`: all.
    pub(crate) network: Option<IpAddr>,
    /// Its parameters.
    pub(crate) declared: Vec<Declared>,
}

impl Settings {
    /// Those of a node of kind `ros2_node`.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn of(parameters: &Parameters<'_>) -> Result<Settings, Vec<Refusal>> {
        let mut wrong = Vec::new();
        let mut refuse = |name, fault: Fault| {
            wrong.push(Refusal::new(parameters.span(name), fault.text(), ""));
        };
        let domain = domain(parameters.integer("ros_domain")).unwrap_or_else(|fault| {
            refuse("ros_domain", fault);
            0
        });
        let network = match parameters.text("network") {
            "" => None,
            text => text.parse().map(Some).unwrap_or_else(|_| {
                let fault = fault!("'{text}' is no address; write one such as 127.0.0.1");
                refuse("network", fault);
                None
            }),
        };
        let namespace = parameters.text("namespace").to_owned();
        let name = parameters.text("ros_node").to_owned();
        let mut settings = Settings { domain, namespace, name, network, declared: Vec::new() };
        if let Err(fault) = settings.node_name() {
            refuse("ros_node", fault);
        }
        match declared(parameters.yaml("parameters")) {
            Ok(declared) => settings.declared = declared,
            Err(refusals) => wrong.extend(refusals),
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    /// Those that another node of the domain gives to the node of these parameters. `Ok(None)`:
    /// something is wrong with that one, or it stands outside a graph, and is said there.
    ///
    /// # Errors
    /// The domain has no such node.
    pub(crate) fn of_domain(parameters: &Parameters<'_>) -> Result<Option<Settings>, Refusal> {
        let node = parameters.neighbours().find(|node| node.kind.name == KIND);
        let Some(node) = node else {
            let message = "its domain is no node of ROS";
            let help = format!("add a node of kind '{KIND}' to the domain");
            let follows = parameters.is_left_out(KIND, None);
            let refusal = Refusal::of_node(message, help).following(follows);
            return if parameters.home.is_some() { Err(refusal) } else { Ok(None) };
        };
        let settings = parameters.of_neighbour(node).map(|it| Settings::of(&it).ok());
        Ok(settings.flatten())
    }

    /// The name of the node.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn node_name(&self) -> Result<NodeName, Fault> {
        let Settings { namespace, name, .. } = self;
        NodeName::new(namespace, name).map_err(|_| {
            fault!(
                "'{name}' in '{namespace}' is no name of a node of ROS; write letters, digits and \
                 '_', beginning with a letter, and a namespace that begins with '/' and does not \
                 end with it"
            )
        })
    }
}

/// The domain of DDS; -1: what the environment says, as for every node of ROS, or 0.
fn domain(number: i64) -> Result<u16, Fault> {
    if let Ok(domain) = u16::try_from(number) {
        return Ok(domain);
    }
    let text = std::env::var("ROS_DOMAIN_ID").unwrap_or_default();
    if text.is_empty() {
        return Ok(0);
    }
    let domain = text.parse().ok().filter(|domain| *domain <= DOMAIN_MAX);
    domain.ok_or_else(|| {
        fault!("ROS_DOMAIN_ID is '{text}'; expected a number from 0 to {DOMAIN_MAX}")
    })
}
