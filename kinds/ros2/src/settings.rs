//! The identity of a domain among the nodes of ROS. It is read from the domain's node of kind
//! `ros2_node`, by that node and by all others of the domain.

use std::net::IpAddr;

use ros2_client::NodeName;
use sinew_core::{Fault, Parameters, Refusal, fault};

use crate::values::{self, Declared};

/// The kind that holds them.
pub(crate) const KIND: &str = "ros2_node";
/// How a node reaches others; the first one is the default.
pub(crate) const MIDDLEWARE: [&str; 2] = ["dds", "zenoh"];
/// The default address of rmw_zenoh's router.
const ROUTER: &str = "localhost:7447";
/// The greatest number of a domain whose ports are valid.
pub(crate) const DOMAIN_MAX: u16 = 232;

/// The settings of a node of ROS.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The domain's number in DDS or rmw_zenoh.
    pub(crate) domain: u16,
    /// Begins with a slash.
    pub(crate) namespace: String,
    /// The node's name.
    pub(crate) name: String,
    /// Over Zenoh: the address and the port of its router. `None`: over DDS.
    pub(crate) router: Option<String>,
    /// With DDS: the address of the only interface that is announced. `None`: all are.
    pub(crate) network: Option<IpAddr>,
    /// Its parameters.
    pub(crate) declared: Vec<Declared>,
}

impl Settings {
    /// The settings of a node of kind `ros2_node`.
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
                let fault = fault!("'{text}' is not an address; write one such as 127.0.0.1");
                refuse("network", fault);
                None
            }),
        };
        let namespace = parameters.text("namespace").to_owned();
        let name = parameters.text("ros_node").to_owned();
        let declared = Vec::new();
        let mut settings = Settings { domain, namespace, name, router: None, network, declared };
        if let Err(fault) = settings.node_name() {
            refuse("ros_node", fault);
        }
        match router(parameters) {
            Ok(router) => settings.router = router,
            Err(refusal) => wrong.push(refusal),
        }
        match values::declared(parameters.yaml("parameters")) {
            Ok(declared) => settings.declared = declared,
            Err(refusals) => wrong.extend(refusals),
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    /// The settings for a node with these parameters, from the `ros2_node` of its domain.
    /// `Ok(None)`: that node's settings are wrong, which is reported there; or the node is outside
    /// of a graph.
    ///
    /// # Errors
    /// The domain has no such node.
    pub(crate) fn of_domain(parameters: &Parameters<'_>) -> Result<Option<Settings>, Refusal> {
        let node = parameters.neighbours().find(|node| node.kind.name == KIND);
        let Some(node) = node else {
            let message = "its domain is not a node of ROS";
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
    /// It is not a valid name.
    pub(crate) fn node_name(&self) -> Result<NodeName, Fault> {
        let Settings { namespace, name, .. } = self;
        NodeName::new(namespace, name).map_err(|_| {
            fault!(
                "'{name}' in '{namespace}' is not a name of a node of ROS; write letters, digits \
                 and '_', beginning with a letter, and a namespace that begins with '/' and does \
                 not end with it"
            )
        })
    }
}

/// The router's address, if the node is to use Zenoh. Parameters of the other middleware are
/// refused.
fn router(parameters: &Parameters<'_>) -> Result<Option<String>, Refusal> {
    let refuse =
        |name, message: &str, help: &str| Err(Refusal::new(parameters.span(name), message, help));
    let text = parameters.text("router");
    if parameters.text("middleware") == MIDDLEWARE[0] {
        return match text {
            "" => Ok(None),
            _ => refuse("router", "DDS has no router", "write middleware: zenoh, or no router"),
        };
    }
    if !parameters.text("network").is_empty() {
        return refuse("network", "'network' is of DDS", "leave it out: its router finds others");
    }
    let text = if text.is_empty() { ROUTER } else { text };
    let is_of_host = |sign: char| sign.is_ascii_alphanumeric() || "-._:[]".contains(sign);
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && host.chars().all(is_of_host) && port.parse::<u16>().is_ok() =>
        {
            Ok(Some(text.to_owned()))
        }
        _ => {
            let message = format!("'{text}' is not an address with a port");
            refuse("router", &message, "write one such as localhost:7447")
        }
    }
}

/// The domain's number. -1: as for every node of ROS, the number in the environment, or else 0.
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
