//! The node of ROS over Zenoh, as rmw_zenoh_cpp does it (Jazzy and newer). Keys, bytes, attachments
//! and liveliness tokens are those of its docs/design.md and sources; the session is set up as its
//! sessions are.

mod ends;
mod parameters;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ros2_client::qos::QosProfile;
use ros2_client::{Name, NodeName};
use sinew_core::{Fault, fault};
use zenoh::liveliness::LivelinessToken;
use zenoh::{Config, Wait};

pub(super) use self::ends::{ZenohReader, ZenohService, ZenohWriter};
pub(crate) use self::parameters::ParameterServices;
use self::wire::{MESSAGE_MAX, Subject, TRIGGER, gid, qos_text, token};
use super::trigger_qos;
use crate::definition::RosMessage;
use crate::settings::Settings;
use crate::values::Values;

/// A session of zenoh and the one node of ROS in it.
pub(super) struct Zenoh {
    session: zenoh::Session,
    domain: u16,
    /// Address and port.
    router: String,
    node: NodeName,
    /// Ends of this session so far; the first is the node itself.
    ends: AtomicU64,
    _node: LivelinessToken,
}

fn refused(what: &str, error: &dyn std::fmt::Display) -> Fault {
    fault!("{what}: zenoh says: {error}")
}

impl Zenoh {
    /// Opens the session. Returns at once, with or without a router: as long as it is open, the
    /// session tries to connect to one.
    ///
    /// # Errors
    /// Zenoh refuses it.
    pub(super) fn begin(settings: &Settings, router: &str) -> Result<Zenoh, Fault> {
        let said = |error: zenoh::Error| refused("no session", &error);
        let config = Config::from_json5(&configuration(router)).map_err(said)?;
        let session = zenoh::open(config).wait().map_err(said)?;
        let node = settings.node_name()?;
        let zid = session.zid().to_string();
        let key = token(settings.domain, &zid, 0, "NN", &node, None);
        let _node = session.liveliness().declare_token(key).wait().map_err(said)?;
        let (domain, router, ends) = (settings.domain, router.to_owned(), AtomicU64::new(1));
        Ok(Zenoh { session, domain, router, node, ends, _node })
    }

    pub(super) fn publish<M: RosMessage>(
        &self,
        name: &Name,
        qos: &QosProfile,
    ) -> Result<ZenohWriter, Fault> {
        let subject = Subject::of(name, M::DEFINITION);
        ZenohWriter::declare(self, &subject, qos)
    }

    pub(super) fn subscribe<M: RosMessage>(
        &self,
        name: &Name,
        qos: &QosProfile,
    ) -> Result<ZenohReader, Fault> {
        let subject = Subject::of(name, M::DEFINITION);
        ZenohReader::declare(self, &subject, qos)
    }

    pub(super) fn offer(&self, name: &Name) -> Result<ZenohService, Fault> {
        let subject = Subject::of_service(name, "std_srvs", "Trigger", TRIGGER);
        ZenohService::declare(self, &subject, &trigger_qos())
    }

    pub(super) fn parameters(&self, values: &Arc<Values>) -> Result<ParameterServices, Fault> {
        ParameterServices::declare(self, values)
    }

    /// Announces an end of the node. Returns its token, and its number among the nodes of ROS.
    fn show(
        &self,
        sort: &str,
        subject: &Subject,
        qos: &QosProfile,
    ) -> zenoh::Result<(LivelinessToken, [u8; 16])> {
        // Orders nothing: each end gets a number of its own.
        let end = self.ends.fetch_add(1, Ordering::Relaxed);
        let zid = self.session.zid().to_string();
        let about = Some((subject, qos_text(qos)));
        let key = token(self.domain, &zid, end, sort, &self.node, about);
        let gid = gid(&key);
        Ok((self.session.liveliness().declare_token(key).wait()?, gid))
    }

    /// The router's address, and whether the session is connected to a router.
    pub(super) fn router(&self) -> (&str, bool) {
        (&self.router, self.session.info().routers_zid().wait().next().is_some())
    }

    /// Checks that the session still works.
    ///
    /// # Errors
    /// It does not work any more.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.session.is_closed() {
            true => Err(fault!("zenoh has ended in this process: it must start again")),
            false => Ok(()),
        }
    }

    /// The number of its domain.
    pub(super) fn domain(&self) -> u16 {
        self.domain
    }
}

/// The session's settings, as in `DEFAULT_RMW_ZENOH_SESSION_CONFIG.json5`: a peer that learns of
/// the others on this machine from the router, and talks to them directly. It keeps trying to
/// connect.
fn configuration(router: &str) -> String {
    format!(
        r#"{{
mode: "peer",
connect: {{
  endpoints: ["tcp/{router}"], exit_on_failure: false, timeout_ms: -1,
  retry: {{ period_init_ms: 200, period_max_ms: 2000, period_increase_factor: 2 }},
}},
listen: {{ endpoints: ["tcp/127.0.0.1:0"], exit_on_failure: true, timeout_ms: 0 }},
open: {{ return_conditions: {{ connect_scouted: false, declares: false }} }},
scouting: {{
  delay: 0, multicast: {{ enabled: false }},
  gossip: {{
    enabled: true, multihop: false, target: {{ peer: ["router"] }},
    autoconnect: {{ peer: ["router", "peer"] }},
    autoconnect_strategy: {{ peer: {{ to_router: "always", to_peer: "greater-zid" }} }},
  }},
}},
timestamping: {{ enabled: true }},
adminspace: {{ enabled: false }},
transport: {{ link: {{ protocols: ["tcp"], rx: {{ max_message_size: {} }} }} }},
}}"#,
        MESSAGE_MAX * 16
    )
}
